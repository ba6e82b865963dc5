//! Errors as one line: where, what is wrong, and what to do about it.

use anyhow::{Error, Result, anyhow};
use loopopt::oracle::Unknown;
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};

thread_local! {
    /// The source line of the last panic, as it is printed after a message.
    static LAST_PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes panics silent: [`guard`] turns them into errors.
pub fn silence_panics() {
    panic::set_hook(Box::new(|info| LAST_PLACE.set(place(info))));
}

/// A panic as an error.
#[derive(Debug)]
pub struct Panicked(String);

impl Panicked {
    /// A panic that said this.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl std::error::Error for Panicked {}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Runs `f`, with a panic as an error, [`Panicked`]: some valid CLIF makes Cranelift panic, and that is for the user to
/// know.
pub fn guard<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    panic::catch_unwind(AssertUnwindSafe(f))
        .unwrap_or_else(|payload| Err(Panicked(format!("{}{}", message(&*payload), LAST_PLACE.take())).into()))
}

/// What a panic says. The oracle has put before it whose panic it is, if it is one of a compilation.
fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
    let is_named = ["Cranelift panics ", "loopopt panics "].iter().any(|start| text.starts_with(start));
    if is_named { text.to_owned() } else { format!("panic: {text}") }
}

/// The source line of a panic without the folders that are different on each machine.
fn place(info: &PanicHookInfo<'_>) -> String {
    info.location().map_or(String::new(), |location| {
        let mut parts: Vec<&str> = location.file().rsplit('/').take(4).collect();
        parts.reverse();
        format!(" ({}:{})", parts.join("/"), location.line())
    })
}

/// An error in a file: `FILE:LINE: what is wrong; what to do`.
///
/// Messages of the library begin with `line N: ` if the line is known, which then becomes a part of the place.
pub fn in_file(file: &str, error: &Error, advice: &str) -> Error {
    let what = one_line(error);
    // What names all that there is needs no other advice.
    let advice = if error.is::<Unknown>() { String::new() } else { format!("; {advice}") };
    let line = what.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
    match line {
        Some((number, what)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            anyhow!("{file}:{number}: {what}{advice}")
        }
        _ => anyhow!("{file}: {what}{advice}"),
    }
}

/// The error with all its causes, without line breaks.
pub fn one_line(error: &Error) -> String {
    let text = format!("{error:#}");
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// Whether the reader of our output has gone away: no reason to complain.
pub fn is_broken_pipe(error: &Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_becomes_a_part_of_the_place() {
        let error = anyhow!("no such\nblock").context("line 12");
        assert_eq!(in_file("a.clif", &error, "fix it").to_string(), "a.clif:12: no such block; fix it");
    }

    #[test]
    fn other_messages_stay() {
        let error = anyhow!("line up: wrong");
        assert_eq!(in_file("a.clif", &error, "fix it").to_string(), "a.clif: line up: wrong; fix it");
    }

    #[test]
    fn a_panic_is_an_error() {
        let error = guard::<()>(|| panic!("no such {}", "loop")).expect_err("it panics");
        assert!(error.downcast_ref::<Panicked>().is_some());
        assert_eq!(error.to_string(), "panic: no such loop");
    }

    #[test]
    fn a_broken_pipe_is_found_below_a_context() {
        let error = Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).context("printing");
        assert!(is_broken_pipe(&error));
        assert!(!is_broken_pipe(&anyhow!("another")));
    }
}
