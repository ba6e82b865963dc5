//! Settings: their fingerprint, and the names of the passes.

use loopopt::profile::{Profiling, Recorder};
use loopopt::{Embedder, Options};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The default settings, with one of these numbers changed in each.
macro_rules! each_number {
    ($($field:ident),* $(,)?) => {
        vec![$({
            let mut options = Options::default();
            options.$field += 1;
            (stringify!($field), options)
        }),*]
    };
}

/// The default settings, with this done to them.
fn changed(name: &'static str, change: impl FnOnce(&mut Options)) -> (&'static str, Options) {
    let mut options = Options::default();
    change(&mut options);
    (name, options)
}

/// For each number that changes code, settings that differ in it.
fn numbers() -> Vec<(&'static str, Options)> {
    each_number![
        max_rounds,
        rotate_max_header_insts,
        rotate_max_dispatched,
        mem2reg_max_live,
        thread_jumps_max_insts,
        final_values_max_insts_per_gain,
        final_values_max_loop,
        full_unroll_max_iterations,
        full_unroll_max_insts,
        full_unroll_max_few,
        full_unroll_max_insts_of_few,
        full_unroll_max_copied,
        peel_max_iterations,
        peel_max_insts,
        peel_max_insts_per_gain,
        peel_max_copied,
        cleanup_max_depth,
        unswitch_max_insts,
        unswitch_max_versions,
        unswitch_min_saved,
        unswitch_max_copied,
        unswitch_max_looks,
        transfer_max_insts,
        transfer_max_inner_iterations,
        transfer_min_values,
        transfer_max_copied,
        version_max_insts,
        version_max_copied,
        version_max_insts_per_extension,
        version_max_insts_per_cell_access,
        version_max_requirements,
        if_convert_max_insts,
        version_min_iterations,
        strip_mine_min_iterations,
        strip_mine_min_whole,
        strip_mine_max_nest_fuel,
        split_iterations_max_insts,
        split_iterations_min_iterations,
        partial_unroll_max_iterations,
        partial_unroll_min_iterations,
        partial_unroll_max_insts,
        partial_unroll_max_uncounted_insts,
        partial_unroll_max_copied,
        max_function_insts,
        max_closing_args,
    ]
}

/// The same for the passes after the rounds.
fn numbers_of_late_passes() -> Vec<(&'static str, Options)> {
    each_number![
        widen_indices_max_accesses,
        widen_indices_min_saved_per_base,
        widen_indices_max_questions,
        promote_max_accesses,
        promote_max_pairs,
        save_at_cold_calls_max_calls,
        save_at_cold_calls_max_saved,
        reassociate_insts_per_cycle,
        order_latch_max_insts,
        order_latch_max_early,
        tail_duplicate_max_insts,
        tail_duplicate_max_copies,
        sink_max_places,
        sink_max_values,
        layout_max_exits,
    ]
}

/// The same for what is looked at at all.
fn numbers_of_selection() -> Vec<(&'static str, Options)> {
    each_number![
        select_max_dispatched,
        select_max_insts_per_call,
        select_max_own_insts,
        full_effort_max_insts,
        full_effort_min_insts,
        full_effort_min_insts_per_call,
        max_loops,
    ]
}

/// The same for what was recorded.
fn numbers_of_profiles() -> Vec<(&'static str, Options)> {
    each_number![
        profile_cold_ratio,
        specialize_min_share,
        specialize_max_values,
        specialize_max_insts,
        specialize_max_insts_per_gain,
        specialize_min_gain,
    ]
}

/// For each field that changes code, settings that differ in it.
fn variants() -> Vec<(&'static str, Options)> {
    let mut all = [numbers(), numbers_of_late_passes(), numbers_of_selection(), numbers_of_profiles()].concat();
    all.extend([
        changed("passes", |options| options.passes = Some(vec!["licm".to_owned()])),
        changed("fuel", |options| options.fuel = Some(0)),
        changed("stress_seed", |options| options.stress_seed = Some(0)),
        changed("ignore_cost", |options| options.ignore_cost = true),
        changed("lowers_directly", |options| options.lowers_directly = true),
        changed("assert_claims", |options| options.assert_claims = true),
        changed("profiling", |options| options.profiling = Profiling::Use(Arc::default())),
        changed("embedder", |options| options.embedder = Arc::new(Versioned { version: 1 })),
    ]);
    all
}

#[derive(Debug)]
struct Versioned {
    #[expect(dead_code, reason = "read by `Debug`")]
    version: u32,
}

impl Embedder for Versioned {}

#[test]
fn fingerprint_changes_with_every_setting_that_changes_code() {
    let base = Options::default().fingerprint();
    assert!(base.contains(env!("CARGO_PKG_VERSION")) && base.contains(cranelift_codegen::VERSION));
    let variants = variants();
    let mut seen = BTreeSet::from([base.clone()]);
    for (name, options) in &variants {
        assert!(seen.insert(options.fingerprint()), "{name} is not in the fingerprint");
        assert_eq!(options.fingerprint(), options.clone().fingerprint());
    }
    // Whoever adds a field has to say above whether it changes code.
    let fields = format!("{:#?}", Options::default()).lines().filter(|line| is_field(line)).count();
    let others = ["refusals", "verify_each_pass", "dumps"];
    assert_eq!(fields, variants.len() + others.len());

    let mut watched = Options::default();
    (watched.refusals, watched.verify_each_pass, watched.dumps) = (false, true, true);
    assert_eq!(watched.fingerprint(), base, "the code is the same");
}

/// Whether this line of what `{:#?}` prints is that of a field.
fn is_field(line: &str) -> bool {
    line.strip_prefix("    ").is_some_and(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
}

/// The code of one recorder counts at its own addresses, which is no other's code to take.
#[test]
fn fingerprint_is_that_of_one_recorder() {
    let recording = |recorder: &Arc<Recorder>| {
        changed("profiling", |options| options.profiling = Profiling::Record(recorder.clone())).1.fingerprint()
    };
    let [one, other] = [Arc::new(Recorder::new()), Arc::new(Recorder::new())];
    assert_eq!(recording(&one), recording(&one));
    assert_ne!(recording(&one), recording(&other));
}

#[test]
fn fingerprint_changes_with_what_the_embedder_says() {
    let with = |version| changed("embedder", |options| options.embedder = Arc::new(Versioned { version })).1;
    assert_ne!(with(1).fingerprint(), with(2).fingerprint());
    assert_eq!(with(1).fingerprint(), with(1).fingerprint());
}

#[test]
fn names_of_passes_are_there_once() {
    let names: Vec<_> = loopopt::pass_names().collect();
    let different: BTreeSet<_> = names.iter().collect();
    assert_eq!(names.len(), different.len(), "{names:?}");
    assert!(names.contains(&"canon"), "it runs twice");
}

/// The table in the documentation of the crate has all passes, in the order in which they run.
#[test]
fn the_table_of_passes_is_complete() {
    let rows = include_str!("../src/lib.rs").lines().filter_map(|line| line.strip_prefix("//! | `")?.split_once('`'));
    let listed: Vec<_> = rows.map(|(name, _)| name).collect();
    assert_eq!(listed, loopopt::pass_names().collect::<Vec<_>>());
}
