//! loopopt inside Wasmtime: runs WebAssembly with and without it, proves that both do the same, and measures.
//!
//! ```text
//! command   what the user asked for, one file each
//!    │
//! mode → arm → guest → observation     settings, a compiled module, a run, what can be seen of it
//!         │      └ world, values       WASI without chance and time, arguments and results
//!        hook                          what is seen of functions on their way through Wasmtime
//! programs, smith                      a list of programs with what they give, and programs by chance
//! trial → figures → report, page           arms that agree, how long they take, and a table of that
//! ```
//!
//! How loopopt gets into Wasmtime, and what Wasmtime knows, is the crate `loopopt-wasmtime-support`, for all who embed Wasmtime.
//! What is not about WebAssembly is the harness's: statistics, tables, the order of samples, errors.

pub mod arm;
pub mod cli;
pub mod command;
pub mod figures;
pub mod guest;
pub mod hook;
pub mod mode;
pub mod observation;
pub mod page;
pub mod placement;
pub mod programs;
pub mod report;
pub mod smith;
pub mod trial;
pub mod values;
pub mod world;
