//! How far a long command is, on the standard error: a bar on a terminal, lines elsewhere.

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Seconds between two lines.
const SECONDS: u64 = 3;

/// How far a command is.
pub struct Progress {
    bar: ProgressBar,
    /// Nothing on a terminal.
    lines: Option<Lines>,
}

/// What the lines are made of.
struct Lines {
    start: Instant,
    /// The second after the start that the last line was said in.
    said: AtomicU64,
}

/// Shows how much of `count` units of work is done.
pub fn progress(count: usize) -> Progress {
    let style =
        ProgressStyle::with_template("{bar:40} {percent:>3} %, {eta} left: {msg}").expect("the template is valid");
    let lines = Lines { start: Instant::now(), said: AtomicU64::new(0) };
    Progress {
        bar: ProgressBar::new(count as u64).with_style(style),
        lines: (!io::stderr().is_terminal()).then_some(lines),
    }
}

/// Shows nothing: for what does not take long.
pub fn hidden() -> Progress {
    Progress { bar: ProgressBar::hidden(), lines: None }
}

impl Progress {
    /// Says what is done now.
    pub fn set_message(&self, message: impl Into<String>) {
        self.bar.set_message(message.into());
    }

    /// Counts work that is done. There is a line every few seconds, and one at the end.
    pub fn inc(&self, done: usize) {
        self.bar.inc(done as u64);
        let Some(lines) = &self.lines else { return };
        let (at, all) = (self.bar.position(), self.bar.length().unwrap_or(0).max(1));
        let elapsed = lines.start.elapsed();
        if at == all || elapsed.as_secs() >= lines.said.load(Ordering::Relaxed) + SECONDS {
            lines.said.store(elapsed.as_secs(), Ordering::Relaxed);
            let percent = (100 * at / all).min(100);
            let left = elapsed.mul_f64(all.saturating_sub(at) as f64 / at as f64);
            // Nobody reads it: no reason to stop.
            drop(writeln!(io::stderr(), "{percent} %, {} left: {}", HumanDuration(left), self.bar.message()));
        }
    }

    /// Removes the bar.
    pub fn finish_and_clear(&self) {
        self.bar.finish_and_clear();
    }
}
