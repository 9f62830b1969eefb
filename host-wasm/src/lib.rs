//! The edge host: the rules of `qm-core` in WebAssembly, behind a plain C ABI that any runtime can
//! call without generated glue. Decisions come from the core alone.

mod abi;
pub mod call;
mod edge;
