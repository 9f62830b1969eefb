//! Several instances over a simulated Valkey and Postgres, in virtual time: lost requests, lost
//! answers, late commits, outages, an emptied Valkey, killed instances and clocks that differ. The
//! tasks are the real ones. `QM_SEED=n` runs one seed, `QM_SEEDS=n` that many from 1.

mod store;
mod world_tests;
