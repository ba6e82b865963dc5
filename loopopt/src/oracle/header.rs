//! The lines before the first function of a CLIF file: which settings it asks for, and for which targets it is.
//!
//! Cranelift's reader knows them, but only those of targets that it was built with, and it takes a `set` line between two others
//! for a mistake. So each target is read by itself, with the `set` lines before it, and the functions without all of them.

use super::isa::{Target, setting};
use anyhow::{Error, Result, anyhow};
use cranelift_codegen::settings::{self, Flags};
use cranelift_reader::{IsaSpec, ParseError, ParseOptions, parse_test};

/// What a file asks for.
pub(super) struct Header {
    /// The file without its `set` and `target` lines. All other lines have the numbers that they had.
    pub(super) rest: String,
    /// What the functions are compiled for, one after the other: one of this machine for each `target` line, or the host with
    /// the settings of the file if it has no such line.
    pub(super) targets: Vec<Target>,
    /// The `target` lines that are not for this machine.
    pub(super) foreign: Vec<Foreign>,
}

/// A target that is not this machine's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The line, from 1.
    pub line: usize,
    /// What it asks for: an architecture, and what the processor has to have.
    pub target: String,
    /// Why this machine cannot run it.
    pub reason: String,
}

/// What a line of the header is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Set,
    Target,
    Other,
}

impl Header {
    /// Reads the header of a file.
    ///
    /// Fails if a setting or a target is unknown, with the line in the message.
    pub(super) fn read(text: &str) -> Result<Self> {
        let count = text.lines().take_while(|line| !line.trim_start().starts_with("function ")).count();
        let lines: Vec<(&str, Kind)> = text.lines().take(count).map(|line| (line, kind(line))).collect();
        let defaults = Flags::new(settings::builder());
        let mut header = Self { rest: rest(text, &lines), targets: Vec::new(), foreign: Vec::new() };
        // With all `set` lines, so that each of them is looked at, whatever follows it.
        let IsaSpec::None(all) = spec(&lines, None)? else { unreachable!("there is no target line") };
        let targets = lines.iter().enumerate().filter(|(_, (_, kind))| *kind == Kind::Target);
        for (index, (line, _)) in targets {
            let spec = spec(&lines, Some(index))?;
            let target = content(line).trim_start_matches("target").trim().to_owned();
            let found = match spec {
                IsaSpec::Some(isas) => {
                    let isa = &isas[0];
                    Target::of_isa(&**isa, changed(isa.flags(), &defaults), asking(&lines, Some(index)))?
                }
                IsaSpec::None(_) => Err(Target::not_this_machine()?),
            };
            match found {
                Ok(target) => header.targets.push(target),
                Err(reason) => header.foreign.push(Foreign { line: index + 1, target, reason }),
            }
        }
        if header.targets.is_empty() && header.foreign.is_empty() {
            header.targets.push(Target::with_flags(changed(&all, &defaults), asking(&lines, None)));
        }
        Ok(header)
    }
}

/// The line without its comment.
fn content(line: &str) -> &str {
    line.split(';').next().unwrap_or_default().trim()
}

fn kind(line: &str) -> Kind {
    match content(line).split_whitespace().next() {
        Some("set") => Kind::Set,
        Some("target") => Kind::Target,
        _ => Kind::Other,
    }
}

/// What the reader makes of the `target` line at this index and of the `set` lines before it, or of all `set` lines.
fn spec(lines: &[(&str, Kind)], target: Option<usize>) -> Result<IsaSpec> {
    let mut text = String::new();
    for (index, (line, kind)) in lines.iter().enumerate() {
        if is_for(index, *kind, target) {
            text.push_str(content(line));
        }
        text.push('\n');
    }
    // As the settings are if nothing is said.
    let options = ParseOptions { unwind_info: true, ..ParseOptions::default() };
    parse_test(&text, options).map(|file| file.isa_spec).map_err(|error| at_line(&error))
}

/// The lines that ask for this, as text.
fn asking(lines: &[(&str, Kind)], target: Option<usize>) -> String {
    let own = lines.iter().enumerate().filter(|(index, (_, kind))| is_for(*index, *kind, target));
    own.map(|(_, (line, _))| format!("{}\n", content(line))).collect()
}

/// Whether the line at `index` says something of the target at another.
fn is_for(index: usize, kind: Kind, target: Option<usize>) -> bool {
    match kind {
        Kind::Set => target.is_none_or(|target| index < target),
        Kind::Target => Some(index) == target,
        Kind::Other => false,
    }
}

/// The settings that are not as they are by default.
fn changed(flags: &Flags, defaults: &Flags) -> Vec<(&'static str, String)> {
    let values = flags.iter().map(|value| setting(&value)).zip(defaults.iter().map(|value| setting(&value)));
    values.filter(|(value, default)| value != default).map(|(value, _)| value).collect()
}

/// The text without the lines of the header that speak of targets.
fn rest(text: &str, lines: &[(&str, Kind)]) -> String {
    let kept = lines.iter().map(|(line, kind)| if *kind == Kind::Other { *line } else { "" });
    kept.chain(text.lines().skip(lines.len())).flat_map(|line| [line, "\n"]).collect()
}

/// An error of the reader with its line.
pub(super) fn at_line(error: &ParseError) -> Error {
    anyhow!("line {}: {}", error.location.line_number, error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(text: &str) -> Header {
        Header::read(text).expect("the header is right")
    }

    #[test]
    fn settings_between_foreign_targets_are_no_mistake() {
        let header =
            read("test run\ntarget x86_64\nset opt_level=none\ntarget s390x\nset opt_level=speed\n\nfunction %f() {}");
        assert_eq!(header.rest, "test run\n\n\n\n\n\nfunction %f() {}\n");
        assert_eq!((header.targets.len(), header.foreign.len()), (1, 1));
        assert_eq!((header.foreign[0].line, &header.foreign[0].target[..]), (4, "s390x"));
    }

    #[test]
    fn a_target_has_the_settings_before_it() {
        let text = "set enable_nan_canonicalization ; as wasm has it\ntarget x86_64\nset preserve_frame_pointers=true\ntarget x86_64 has_sse3";
        let header = read(text);
        let flags = |index: usize| {
            let isa = header.targets[index].isa(super::super::isa::Use::Lower, false).expect("it can be made");
            (isa.flags().enable_nan_canonicalization(), isa.flags().preserve_frame_pointers())
        };
        assert_eq!([flags(0), flags(1)], [(true, false), (true, true)]);
        assert_eq!(header.targets[0].lines(), "set enable_nan_canonicalization\ntarget x86_64\n");
    }

    #[test]
    fn features_are_those_that_are_named() {
        let header = read("target x86_64 has_sse3\n");
        let isa = header.targets[0].isa(super::super::isa::Use::Lower, false).expect("it can be made");
        let on: Vec<_> = isa.isa_flags().iter().filter(|value| value.as_bool() == Some(true)).map(|v| v.name).collect();
        assert_eq!(on, ["has_sse3"]);
    }

    #[test]
    fn without_a_target_it_is_the_host() {
        let header = read("test interpret\nset enable_multi_ret_implicit_sret\nfeature \"simd\"\n");
        assert_eq!((header.targets.len(), header.foreign.len()), (1, 0));
        assert_eq!(header.rest, "test interpret\n\nfeature \"simd\"\n");
    }

    #[test]
    fn what_is_unknown_is_an_error_with_its_line() {
        for (text, message) in [
            ("test run\nset no_such_thing", "line 2: unknown setting 'no_such_thing'"),
            ("test run\n\ntarget x86_64 no_such_thing", "line 3: unknown setting 'no_such_thing'"),
            ("target aarch64\nset no_such_thing=3", "line 2: unknown setting 'no_such_thing=3'"),
            ("target pdp11", "line 1: "),
        ] {
            let error = Header::read(text).err().expect("it is wrong").to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
