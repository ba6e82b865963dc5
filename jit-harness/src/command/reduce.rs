//! `reduce`: a smaller program that fails in the same way.

use super::Ending;
use super::bisect::{not_compared, require_compared, require_met};
use crate::cli::ReduceArgs;
use crate::input::{Input, cannot_compile, image};
use crate::listing::count;
use crate::reduce::{Reduced, Reduction, run as reduce};
use anyhow::{Context as _, Result, anyhow, bail};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

pub(super) fn run(args: &ReduceArgs, out: &mut dyn Write) -> Result<Ending> {
    let input = Input::open(&args.calls.file)?;
    let options = args.optimizer.options_for(&input)?;
    if args.seconds == 0 {
        bail!("--seconds 0 leaves no time; give a number above 0");
    }
    let mut cases = input.cases(args.calls.function.as_deref(), &args.calls.invoke)?;
    // What comes out is a file, whose calls have this memory.
    cases.iter_mut().for_each(|case| case.memory = image());
    if let Some(path) = &args.output {
        require_writable(path)?;
    }
    let reduction = reduce(&input.program, &cases, &options, Duration::from_secs(args.seconds));
    match reduction.map_err(|error| cannot_compile(&input.name, &error))? {
        Reduction::Agrees(agreement) => {
            let undecided = agreement.timed_out + agreement.overflowed;
            require_compared(&input, [agreement.compared, undecided])?;
            let calls = count(agreement.compared, "call");
            writeln!(out, "nothing to reduce: all arms agree on {calls}{}", not_compared(undecided))?;
            require_met(&input, &options, &args.calls, out)
        }
        Reduction::Reduced(reduced) => {
            let text = file(&input, &reduced);
            match &args.output {
                Some(path) => {
                    fs::write(path, &text).with_context(|| path.display().to_string())?;
                    writeln!(out, "{}", summary(&input, &reduced))?;
                    writeln!(out, "what is wrong: {}", reduced.failure)?;
                }
                None => write!(out, "{text}")?,
            }
            Ok(Ending::Differs)
        }
    }
}

/// Fails early if the file cannot be written, and leaves no trace.
fn require_writable(path: &Path) -> Result<()> {
    let is_new = !path.exists();
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|error| anyhow!("{}: {error}; give a path that can be written with -o", path.display()))?;
    if is_new {
        fs::remove_file(path)?;
    }
    Ok(())
}

fn summary(input: &Input, reduced: &Reduced) -> String {
    let lines = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let (before, after) = (lines(&input.text), lines(&reduced.text));
    let end = if reduced.out_of_time { ", out of time" } else { "" };
    format!("{before} lines became {after}, {} tried{end}", count(reduced.candidates, "smaller program"))
}

/// The CLIF with what there is to know in comments.
fn file(input: &Input, reduced: &Reduced) -> String {
    let mut head = format!("; {}: {}\n; what is wrong: {}\n", input.name, summary(input, reduced), reduced.failure);
    if !reduced.stands_alone {
        head.push_str("; Read back from this text, the program does not fail: text does not keep everything.\n");
    }
    format!("{head}\n{}", reduced.text)
}
