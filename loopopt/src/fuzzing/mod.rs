//! Loop programs made from bytes, and what is demanded of the passes for each of them.
//!
//! [`generate`] makes a program and calls of it; a [`Body`] holds the passes to something for such a program. Fuzz
//! targets, tests and campaigns are a few lines around a body. [`Statistics`] says whether a run was worth anything: a
//! pass that never fires was not tested.
//!
//! ```
//! use loopopt::fuzzing::{Body, Statistics};
//!
//! let body = Body::named("pipeline").expect("there is such a body");
//! let mut statistics = Statistics::default();
//! for seed in 0..10 {
//!     body.run_seed(seed, &mut statistics)?;
//! }
//! println!("{statistics}");
//! # Ok::<(), anyhow::Error>(())
//! ```

mod addition;
mod analyses;
mod bodies;
mod effects;
mod generate;
mod guarded;
mod halves;
mod marked;
mod polled;
mod profiles;
mod reduce;
mod statistics;
mod unoptimized;
mod waits;

pub use bodies::{BODIES, Body, bytes_of};
pub use generate::{Shape, TestCase, generate};
pub use reduce::reduce;
pub use statistics::{Ordinary, Statistics};
