//! Many seeded lives of one room under a manual clock, each checked step by step against a model
//! written from the contract. `QM_SEED=n` runs one seed, `QM_SEEDS=n` that many from 1.

mod check;
mod due;
mod engine;
mod forget;
mod model;
mod random;
mod rules;
mod world;

use engine::Plant;
use world::{Failure, simulate};

const SEEDS: u64 = 300;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn seeds() -> std::ops::RangeInclusive<u64> {
    match number("QM_SEED") {
        Some(seed) => seed..=seed,
        None => 1..=number("QM_SEEDS").unwrap_or(SEEDS),
    }
}

fn report(failure: &Failure) -> String {
    let trail = failure.trail.join("\n  ");
    format!(
        "seed {} fails at step {}: {}\nrun it again with QM_SEED={}; the last steps:\n  {trail}",
        failure.seed, failure.step, failure.what, failure.seed
    )
}

#[test]
fn no_seed_breaks_a_rule() {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let failure = std::thread::scope(|scope| {
        let run = move |worker| {
            let mut part = seeds().skip(worker).step_by(workers);
            part.find_map(|seed| simulate(seed, Plant::Nothing).err())
        };
        let started: Vec<_> = (0..workers).map(|w| scope.spawn(move || run(w))).collect();
        let ended = started.into_iter().filter_map(|worker| worker.join().unwrap());
        ended.min_by_key(|failure| failure.seed)
    });
    if let Some(failure) = failure {
        panic!("{}", report(&failure));
    }
}

#[test]
fn every_planted_bug_is_found() {
    for plant in Plant::BUGS {
        let found = (1..=SEEDS).find_map(|seed| simulate(seed, plant).err());
        assert!(found.is_some(), "{plant:?} is not found within {SEEDS} seeds");
    }
}
