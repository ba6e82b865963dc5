//! All programs of `bench-programs/wasm/` in all modes: both arms agree, and give what is known.

use anyhow::{Context as _, Result, ensure};
use loopopt::Options;
use loopopt_wasmtime::arm::Setup;
use loopopt_wasmtime::mode::Mode;
use loopopt_wasmtime::programs::{Listed, Programs, Size};
use loopopt_wasmtime::trial::Pair;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;

fn programs() -> Programs {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench-programs/wasm/programs.toml");
    Programs::open(&path).expect("the list is right")
}

/// Compares both arms on the small call. Returns how many rewrites were done.
fn check(programs: &Programs, listed: &Listed, mode: &Mode, options: &Options) -> Result<u64> {
    let Some(case) = listed.case(Size::Test) else { return Ok(0) };
    let setup = Setup::new(mode.clone(), options.clone());
    let pair = Pair::new(&programs.program(listed)?, &setup)?;
    let compared = pair.compare(&case.call(listed))?;
    case.check(&compared.seen).context("without loopopt")?;
    ensure!(compared.difference.is_none(), "{}", compared.difference.unwrap_or_default());
    Ok(pair.loopopt.compilation.rewrites)
}

/// Compares all programs in all modes, several at a time. There has to be much to compare: `floor` rewrites for each.
fn check_all(modes: &[Mode], floor: u64, options: impl Fn(usize) -> Options + Sync) {
    let programs = programs();
    assert!(programs.listed.len() >= 30, "there are {} programs", programs.listed.len());
    let next = AtomicUsize::new(0);
    let rewrites = AtomicU64::new(0);
    let work = || {
        let mut wrong = Vec::new();
        loop {
            let index = next.fetch_add(1, Relaxed);
            let (Some(listed), mode) = (programs.listed.get(index / modes.len()), &modes[index % modes.len()]) else {
                return wrong;
            };
            match check(&programs, listed, mode, &options(index)) {
                Ok(count) => _ = rewrites.fetch_add(count, Relaxed),
                Err(error) => wrong.push(format!("{} ({mode}): {error:#}", listed.name)),
            }
        }
    };
    let count = thread::available_parallelism().map_or(1, usize::from);
    let wrong: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let (rewrites, compared) = (rewrites.into_inner(), programs.listed.len() * modes.len());
    assert!(rewrites >= floor * compared as u64, "{rewrites} rewrites in {compared} comparisons");
}

#[test]
fn all_programs_agree_in_all_modes() {
    check_all(&Mode::all(), 10, |_| Options::default());
}

#[test]
fn they_agree_whatever_is_worth_it() {
    let modes: Vec<Mode> =
        ["guard", "explicit", "epochs+fuel"].iter().map(|name| name.parse().expect("they exist")).collect();
    check_all(&modes, 10, |index| {
        let mut options = Options::stress(index as u64);
        options.verify_each_pass = true;
        // What each rewrite rests on is asserted, too.
        options.assert_claims = index % 2 == 0;
        options
    });
}

#[test]
#[ignore = "takes as long as all others together"]
fn what_rewrites_rest_on_holds_in_all_modes() {
    check_all(&Mode::all(), 10, |_| {
        let mut options = Options::default();
        options.assert_claims = true;
        options
    });
}
