//! The edge host: the rules of `qm-core` in WebAssembly. Either behind a plain C ABI that any
//! runtime calls without generated glue, or, with the feature `worker`, as a Cloudflare Worker.
//! Decisions come from the core alone.

#[cfg(not(feature = "worker"))]
mod abi;
pub mod call;
mod edge;
#[cfg(all(feature = "worker", target_arch = "wasm32"))]
mod worker;
