//! The harness: compiles programs with and without loopopt, proves that both do the same, and measures native code.
//!
//! ```text
//! entry, progress, interrupt                          around a command
//! command   what the user asked for, one file each
//!    │
//! names, older → input → subject → agree → arms → sample → stats     from a file to figures, one type per phase
//!    │                                └ schedule
//! native    the same kernels in C
//! recorded  profiles in files
//! report    figures as a table or as JSON
//! listing → machine                                   what was emitted, and the loops in it
//! traced → lowered                                    which line of code is from which
//! dot                                                 flow graphs as pictures
//! generate, scaling, heap                             for measuring the compiler
//! probe → bisect, reduce                              what to do about a program that fails
//! ```
//!
//! A phase takes what the one before it gives, so that what does not agree cannot be timed: [`arms::Arms`] is made from
//! [`agree::Agreed`] only.

pub mod agree;
pub mod arms;
pub mod beside;
pub mod bisect;
pub mod cli;
pub mod command;
pub mod dot;
pub mod entry;
pub mod error;
pub mod generate;
pub mod heap;
pub mod input;
pub mod interrupt;
pub mod listing;
pub mod lowered;
pub mod machine;
pub mod names;
pub mod native;
pub mod older;
pub mod probe;
pub mod progress;
pub mod recorded;
pub mod reduce;
pub mod report;
pub mod sample;
pub mod scaling;
pub mod schedule;
pub mod stats;
pub mod subject;
pub mod target;
pub mod traced;
