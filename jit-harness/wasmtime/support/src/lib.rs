//! loopopt inside Wasmtime: for programs that embed Wasmtime 48.0.8 and want its code optimized by loopopt.
//!
//! One call, before the first module is compiled:
//!
//! ```
//! use loopopt_wasmtime_support::{Settings, install};
//! use wasmtime::{Engine, Module};
//!
//! install(Settings::default())?;
//! let engine = Engine::default();
//! let module = Module::new(&engine, "(module (func (export \"f\") (result i32) i32.const 1))")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything else of the program stays what it is. The program is built with a cranelift-codegen that has the patch
//! `cranelift-codegen.patch`, see the README of this crate.
//!
//! ```text
//! Settings       options of loopopt, what is known, who is told what was done
//!    │  Knowledge    what Wasmtime knows of its code and CLIF cannot say: alias regions, Spectre guards, polls
//!    ▼
//! install, with_settings, without      which settings count: of the process, of a thread
//!    │
//!    ▼
//! the hook       a pass of our own instead: with_pass
//! ```
//!
//! # Which settings count
//!
//! The hook of Cranelift is one for the process and does not know engines. So a choice is made by thread:
//!
//! | functions that are compiled | are compiled with |
//! |---|---|
//! | inside of [`with_settings`], [`without`] or [`with_pass`], on this thread | what these were given |
//! | elsewhere | what [`install`] was given, or without loopopt if it was not called |
//!
//! Wasmtime compiles the functions of a module on the thread that asks for the module if it is built without its feature `parallel-compilation`, or
//! if `Config::parallel_compilation(false)` is set. Else it compiles them on the threads of the rayon pool that the caller is in: what [`install`]
//! was given counts on all of them, and [`with_settings`] on the calling thread alone, so it is not of use there. A pool whose threads each run
//! inside of [`with_settings`] is: see the README.
//!
//! # What the knowledge rests on
//!
//! [`Knowledge`] reads the descriptions of Wasmtime's alias regions, which are no interface. So it is true of one version, [`WASMTIME`], and this
//! crate depends on the one Cranelift that this Wasmtime uses: with another release of its line a program does not build. With another line it
//! does, but that has a Cranelift of its own without the hook, and loopopt is never called. `tests/regions.rs` compiles modules with all that the
//! knowledge is about, and compares the names.
//!
//! # Caches
//!
//! Code that was made with loopopt must not be taken for other code. With Wasmtime's cache of modules, or modules that are serialized, set
//! `Config::module_version` to [`Settings::module_version`]. Cranelift's incremental cache (`Config::enable_incremental_compilation`) needs
//! nothing: the hook puts the settings into its keys. Code that records a profile (`Profiling::Record`) counts at addresses of this process, and belongs in no cache that
//! outlives its recorder.
//!
//! # Other users of Cranelift in the process
//!
//! The hook sees every function that is optimized in the process, also those of a `JITModule` beside Wasmtime. What is wrapped in a `LoopOptModule` would be optimized
//! twice: compile it inside of [`without`].

mod claims;
mod error;
mod hook;
mod knowledge;
mod loops;
mod name;
mod rare;
mod settings;

pub use claims::{CLAIM_TRAP, translate as translate_claims};
pub use error::InstallError;
pub use hook::{Pass, install, with_pass, with_settings, without};
pub use knowledge::Knowledge;
pub use name::defined_function;
pub use rare::mark_rare;
pub use settings::{Compiled, Settings};

/// The version of Wasmtime that this crate knows.
pub const WASMTIME: &str = "48.0.8";
