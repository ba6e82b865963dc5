//! How far a long command is.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on the standard error, if that is a terminal.
pub fn progress(count: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}").expect("the template is valid");
    ProgressBar::new(count as u64).with_style(style)
}
