//! `bisect`: the one rewrite that breaks a program.

use super::Ending;
use super::run::unmet;
use crate::bisect::{Bisection, Culprit, run as bisect};
use crate::cli::{BisectArgs, CallArgs};
use crate::input::{Input, cannot_compile};
use crate::listing::count;
use anyhow::{Result, bail};
use loopopt::Options;
use similar::TextDiff;
use std::io::{self, Write};

pub(super) fn run(args: &BisectArgs, out: &mut dyn Write) -> Result<Ending> {
    let input = Input::open(&args.calls.file)?;
    let options = args.optimizer.options_for(&input)?;
    let cases = input.cases(args.calls.function.as_deref(), &args.calls.invoke)?;
    let bisection = bisect(&input.program, &cases, &options);
    match bisection.map_err(|error| cannot_compile(&input.name, &error))? {
        Bisection::Agrees { rewrites, compared, undecided } => {
            require_compared(&input, [compared, undecided])?;
            let (rewrites, calls) = (count(amount(rewrites), "rewrite"), count(compared, "call"));
            writeln!(out, "{rewrites}, all arms agree on {calls}{}", not_compared(undecided))?;
            require_met(&input, &options, &args.calls, out)
        }
        Bisection::Foreign(failure) => {
            writeln!(out, "not loopopt's doing: it fails without loopopt as well\n\nwhat differs: {failure}")?;
            Ok(Ending::Differs)
        }
        Bisection::NoRewrite(failure) => {
            writeln!(out, "not a rewrite: it fails with loopopt and --fuel 0 as well\n\nwhat is wrong: {failure}")?;
            Ok(Ending::Differs)
        }
        Bisection::Found(culprit) => {
            print(&culprit, args.clif, out)?;
            Ok(Ending::Differs)
        }
    }
}

/// Fails if there was nothing to compare.
pub(super) fn require_compared(input: &Input, [compared, undecided]: [usize; 2]) -> Result<()> {
    match (compared, undecided) {
        (0, 0) => {
            let name = input.function_names().into_iter().next().unwrap_or_default();
            bail!(
                "{}: there is no call to compare; add a line like `; call: %{name}(…)`, or give one with --invoke",
                input.name
            )
        }
        (0, _) => bail!("{}: no call ended in time and within the stack; give it less to do", input.name),
        _ => Ok(()),
    }
}

/// Says which `; run:` line of the file is not what all arms do, if the calls are those of the file.
pub(super) fn require_met(input: &Input, options: &Options, calls: &CallArgs, out: &mut dyn Write) -> Result<Ending> {
    let unmet = match calls.invoke.is_empty() {
        true => unmet(input, options, calls.function.as_deref())?,
        false => None,
    };
    let Some(unmet) = unmet else { return Ok(Ending::Fine) };
    writeln!(out, "the line of the file is wrong, or all arms are: {unmet}")?;
    Ok(Ending::Differs)
}

/// What there is to say about calls that were not compared.
pub(super) fn not_compared(undecided: usize) -> String {
    match undecided {
        0 => String::new(),
        _ => format!(" ({} not compared: out of time or stack)", count(undecided, "more call")),
    }
}

fn amount(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn print(culprit: &Culprit, clif: bool, out: &mut dyn Write) -> io::Result<()> {
    let Culprit { rewrites, number, function, remark, failure, before, after } = culprit;
    let less = number - 1;
    let end = if after.is_some() { "" } else { " until loopopt fails" };
    writeln!(out, "{}{end}, the program breaks with number {number}", count(amount(*rewrites), "rewrite"))?;
    writeln!(out, "(it agrees with --fuel {less}, and does not with --fuel {number})\n")?;
    match remark {
        Some(remark) if remark.fired() => writeln!(out, "rewrite {number}: {function}: {remark}")?,
        Some(remark) => writeln!(out, "rewrite {number}: {function}: {}: {}", remark.header, remark.pass)?,
        None => writeln!(out, "rewrite {number}: {function}: no remark")?,
    }
    writeln!(out, "what is wrong: {failure}\n")?;
    let old = format!("{function} with --fuel {less}");
    let new = format!("{function} with --fuel {number}");
    if let Some(after) = after {
        let diff = TextDiff::from_lines(&before[..], &after[..]).unified_diff().header(&old, &new).to_string();
        write!(out, "{diff}")?;
    }
    if clif {
        writeln!(out, "\nCLIF of {old}\n\n{}", before.trim_end())?;
        let after = after.as_ref().map_or("loopopt fails, so there is none", |after| after.trim_end());
        writeln!(out, "\nCLIF of {new}\n\n{after}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Failure;
    use anyhow::anyhow;

    fn printed(after: Option<&str>, clif: bool) -> String {
        let culprit = Culprit {
            rewrites: 7,
            number: 3,
            function: "%f".to_owned(),
            remark: None,
            failure: Failure::new(anyhow!("wrong")),
            before: "block0:\n    v0 = iconst.i64 1\n    return v0\n".to_owned(),
            after: after.map(str::to_owned),
        };
        let mut out = Vec::new();
        print(&culprit, clif, &mut out).expect("a vector takes everything");
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn the_change_is_shown() {
        let text = printed(Some("block0:\n    v0 = iconst.i64 2\n    return v0\n"), false);
        let expected = "7 rewrites, the program breaks with number 3
(it agrees with --fuel 2, and does not with --fuel 3)

rewrite 3: %f: no remark
what is wrong: wrong

--- %f with --fuel 2
+++ %f with --fuel 3
@@ -1,3 +1,3 @@
 block0:
-    v0 = iconst.i64 1
+    v0 = iconst.i64 2
     return v0
";
        assert_eq!(text, expected);
    }

    #[test]
    fn there_is_no_change_to_show_if_loopopt_fails() {
        let text = printed(None, true);
        assert!(text.starts_with("7 rewrites until loopopt fails, the program breaks with number 3\n"), "{text}");
        assert!(text.ends_with("CLIF of %f with --fuel 3\n\nloopopt fails, so there is none\n"), "{text}");
    }
}
