//! Ctrl-C: a long command stops at the next place where it can, and prints what it has.

use anyhow::{Context as _, Result};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a command that was interrupted, as shells have it.
pub const EXIT_CODE: u8 = 130;

/// What is said of the results of a command that was interrupted.
pub const NOTICE: &str = "interrupted: these are the figures of what was measured until then";

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C makes [`is_asked`] true. The second one ends the process.
pub fn listen() -> Result<()> {
    let stop = || {
        if ASKED.swap(true, Ordering::Relaxed) {
            process::exit(EXIT_CODE.into());
        }
    };
    match ctrlc::set_handler(stop) {
        Err(ctrlc::Error::MultipleHandlers) => Ok(()),
        result => result.context("cannot listen to Ctrl-C"),
    }
}

/// Whether somebody has asked to stop.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
