//! `smith`: modules by chance, in all modes.

use crate::cli::SmithArgs;
use crate::mode::Mode;
use crate::smith::{Smith, Tally, campaign};
use anyhow::{Context as _, Result, bail};
use jit_harness::command::Ending;
use jit_harness::progress::progress;
use std::io::Write;
use std::path::Path;
use std::thread;

pub(super) fn run(args: &SmithArgs, out: &mut dyn Write) -> Result<Ending> {
    let modes = Mode::parse_all(&args.mode)?;
    if let Some(folder) = &args.keep {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    if args.count == 0 {
        bail!("without a module there is nothing to compare; give at least 1 to --count");
    }
    let bar = progress(usize::try_from(args.count)?);
    let threads = args.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let (tally, wrong) = campaign(args.seed..args.seed + args.count, threads, |seed| {
        bar.inc(1);
        check(seed, &modes, args.keep.as_deref())
    });
    bar.finish_and_clear();
    let Tally { modules, calls, exhausted, moved, loops, rewrites } = tally;
    writeln!(
        out,
        "{modules} modules, {} modes: {calls} calls, of which {exhausted} used up the stack and {moved} trapped in \
         an instruction that a load became a part of; {loops} loops, {rewrites} rewrites",
        modes.len()
    )?;
    for wrong in &wrong {
        writeln!(out, "DIFFERS: {wrong}")?;
    }
    Ok(if wrong.is_empty() { Ending::Fine } else { Ending::Differs })
}

fn check(seed: u64, modes: &[Mode], keep: Option<&Path>) -> Result<Tally> {
    let smith = Smith::new(seed)?;
    let result = smith.check_all(modes);
    if let (Err(_), Some(folder)) = (&result, keep) {
        for (name, bytes) in smith.modules() {
            std::fs::write(folder.join(format!("{seed}-{name}.wasm")), bytes)?;
        }
    }
    result
}
