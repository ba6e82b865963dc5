//! The `; options:` lines of a CLIF file: settings of the optimizer, and what an embedder says.

use super::program::directive;
use super::{Compiled, Expectation, Pipeline, Program, Settings, Unknown, require_passes};
use crate::profile::{Profile, Profiling};
use crate::{Embedder, Options, SpectreGuards, Writers};
use anyhow::{Context as _, Result, bail};
use cranelift_codegen::ir::{AliasRegionData, TrapCode};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;

/// The settings that a file asks for: `base`, changed by its `; options: <name>=<value> …` lines, and then by more `given` settings of this form.
///
/// * The name of a field of [`Options`], with a number, with `true` or `false`, or, for `passes`, with names. Commas separate the parts of a list.
/// * What the embedder says, of the regions whose description starts with a name: `others_write=<names>` and `calls_write=<names>`
///   ([`Embedder::writers`]), `checked=<names>` for accesses that trap with `heap_oob`, `never_shrink=<names>`, `confine=<names>`
///   ([`Embedder::extension_confines`]), `bounds=<name>:<least>:<largest>`,
///   `dereferenceable=<name>:<bytes>` ([`Embedder::dereferenceable_bytes`]); and `poll_latency=<number>`,
///   `spectre_guards=keep`, `consolidate` or `drop`. An embedder of `base` stays if the file says nothing of the kind.
/// * `profiling=record`, or a [`profile`](crate::profile) to use: `profiling=runs` for what the `; run:` lines of the file record, which are run for
///   that with 64 KiB of memory at `mem`, or `profiling=` and JSON without a space.
///
/// Fails with the line, if it is one of the file, if there is no such option, or no such value.
///
/// ```
/// use loopopt::{Options, oracle::file_options};
///
/// let options = file_options("; options: passes=rotate,licm fuel=3", &["max_rounds=1".to_owned()], Options::default())?;
/// assert_eq!((options.fuel, options.max_rounds), (Some(3), 1));
/// # Ok::<(), anyhow::Error>(())
/// ```
pub fn file_options(text: &str, given: &[String], base: Options) -> Result<Options> {
    let mut options = base;
    let mut words = None;
    let mut uses_runs = false;
    for (line, content) in (1..).zip(text.lines()) {
        let settings = directive(content).filter(|(word, _)| *word == "options").and_then(|(_, settings)| settings);
        for setting in settings.into_iter().flat_map(str::split_whitespace) {
            uses_runs |= setting == "profiling=runs";
            set(&mut options, &mut words, setting).with_context(|| format!("line {line}: {setting}"))?;
        }
    }
    for setting in given {
        uses_runs |= setting == "profiling=runs";
        set(&mut options, &mut words, setting).with_context(|| setting.clone())?;
    }
    if let Some(words) = words {
        options.embedder = Arc::new(words);
    }
    if let Profiling::Record(recorder) = &options.profiling
        && uses_runs
    {
        record(text, &options)?;
        options.profiling = Profiling::Use(Arc::new(recorder.profile()));
    }
    Ok(options)
}

/// All that [`file_options`] can set: the fields of [`Options`] that are numbers or `true` or `false`, with their values in `options`, and
/// the other names, each with the form of its value.
///
/// ```
/// use loopopt::{Options, oracle::option_values};
///
/// let values = option_values(&Options::default());
/// assert!(values.contains(&("refusals", "true".to_owned())));
/// assert!(values.contains(&("passes", "<names>".to_owned())));
/// ```
pub fn option_values(options: &Options) -> Vec<(&'static str, String)> {
    let words = WORDS.iter().map(|&(name, form)| (name, form.to_owned()));
    words.chain(field_values(options)).collect()
}

/// Makes the calls of the `; run:` lines.
fn record(text: &str, recording: &Options) -> Result<()> {
    let program = Program::parse(text)?;
    let mut compiled = Compiled::new(&program, Pipeline::LoopOpt(recording), Settings::default())?;
    let memory: Vec<u8> = (0..=250).cycle().take(64 << 10).collect();
    for run in program.runs(text)?.into_iter().filter(|run| !matches!(run.expectation, Expectation::Trap(_))) {
        compiled.observe(&run.call, &memory)?;
    }
    Ok(())
}

fn set(options: &mut Options, words: &mut Option<Words>, setting: &str) -> Result<()> {
    let (name, value) = setting.split_once('=').context("an option is name=value")?;
    match name {
        "passes" => options.passes = Some(passes(value)?),
        "fuel" => options.fuel = Some(parsed(name, value)?),
        "profiling" => options.profiling = profiling(value)?,
        _ if set_field(options, name, value)? => {}
        _ => words.get_or_insert_default().say(name, value)?,
    }
    Ok(())
}

fn passes(value: &str) -> Result<Vec<String>> {
    let names = list(value);
    require_passes(names.iter().map(String::as_str).filter(|name| !name.is_empty()))?;
    Ok(names)
}

/// What is recorded is known once all settings are.
fn profiling(value: &str) -> Result<Profiling> {
    match value {
        "record" | "runs" => Ok(Profiling::Record(Arc::default())),
        _ if value.starts_with('{') => Ok(Profiling::Use(Arc::new(Profile::from_json(value)?))),
        _ => bail!("profiling is record, runs or a profile"),
    }
}

/// What a file can set besides, and to what.
const WORDS: &[(&str, &str)] = &[
    ("passes", "<names>"),
    ("fuel", "<number>"),
    ("profiling", "record, runs or a profile"),
    ("others_write", "<regions>"),
    ("poll_latency", "<number>"),
    ("calls_write", "<regions>"),
    ("checked", "<regions>"),
    ("bounds", "<region>:<least>:<largest>"),
    ("dereferenceable", "<region>:<bytes>"),
    ("never_shrink", "<regions>"),
    ("confine", "<regions>"),
    ("spectre_guards", "keep, consolidate or drop"),
];

macro_rules! fields {
    ($($name:ident),* $(,)?) => {
        /// Sets the field of this name, if there is one.
        fn set_field(options: &mut Options, name: &str, value: &str) -> Result<bool> {
            match name {
                $(stringify!($name) => options.$name = parsed(name, value)?,)*
                _ => return Ok(false),
            }
            Ok(true)
        }

        /// The values of these fields.
        fn field_values(options: &Options) -> Vec<(&'static str, String)> {
            vec![$((stringify!($name), options.$name.to_string())),*]
        }
    };
}

fields! {
    refusals,
    verify_each_pass,
    dumps,
    ignore_cost,
    profile_cold_ratio,
    specialize_min_share,
    specialize_max_values,
    specialize_max_insts,
    specialize_max_insts_per_gain,
    specialize_min_gain,
    lowers_directly,
    assert_claims,
    max_rounds,
    rotate_max_header_insts,
    rotate_max_dispatched,
    mem2reg_max_live,
    layout_max_exits,
    order_latch_max_insts,
    order_latch_max_early,
    tail_duplicate_max_insts,
    tail_duplicate_max_copies,
    thread_jumps_max_insts,
    sink_max_places,
    sink_max_values,
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
    version_max_insts_per_extension,
    version_max_insts_per_cell_access,
    version_max_copied,
    version_max_requirements,
    if_convert_max_insts,
    version_min_iterations,
    split_iterations_max_insts,
    split_iterations_min_iterations,
    partial_unroll_max_iterations,
    partial_unroll_min_iterations,
    partial_unroll_max_insts,
    partial_unroll_max_uncounted_insts,
    partial_unroll_max_copied,
    strip_mine_min_iterations,
    strip_mine_min_whole,
    strip_mine_max_nest_fuel,
    reassociate_insts_per_cycle,
    widen_indices_max_accesses,
    widen_indices_min_saved_per_base,
    widen_indices_max_questions,
    max_function_insts,
    promote_max_accesses,
    promote_max_pairs,
    save_at_cold_calls_max_calls,
    save_at_cold_calls_max_saved,
    max_closing_args,
    select_max_dispatched,
    select_max_insts_per_call,
    select_max_own_insts,
    full_effort_max_insts,
    full_effort_min_insts,
    full_effort_min_insts_per_call,
    max_loops,
}

/// What an option can be set to.
trait Value: FromStr {
    /// What it is, for messages.
    const KIND: &str;
}

impl Value for bool {
    const KIND: &str = "true or false";
}

impl Value for u32 {
    const KIND: &str = "a number from 0 to 2^32 - 1";
}

impl Value for u64 {
    const KIND: &str = "a number from 0 to 2^64 - 1";
}

impl Value for usize {
    const KIND: &str = u64::KIND;
}

fn parsed<T: Value>(name: &str, value: &str) -> Result<T> {
    value.parse().ok().with_context(|| format!("{name} has to be {}", T::KIND))
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(String::from).collect()
}

/// An embedder who says what a file says: how the descriptions of regions start.
#[derive(Debug, Default)]
struct Words {
    others_write: Vec<String>,
    poll_latency: Option<u32>,
    calls_write: Vec<String>,
    checked: Vec<String>,
    /// The region that these are the bounds of what is loaded from.
    bounds: Option<(String, RangeInclusive<u64>)>,
    /// The region that a load from gives an address with so many bytes from there on.
    dereferenceable: Option<(String, u64)>,
    never_shrink: Vec<String>,
    confine: Vec<String>,
    spectre_guards: SpectreGuards,
}

impl Words {
    fn say(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "others_write" => self.others_write = list(value),
            "poll_latency" => self.poll_latency = Some(parsed(name, value)?),
            "calls_write" => self.calls_write = list(value),
            "checked" => self.checked = list(value),
            "bounds" => self.bounds = Some(bounds(value)?),
            "dereferenceable" => self.dereferenceable = Some(dereferenceable(value)?),
            "never_shrink" => self.never_shrink = list(value),
            "confine" => self.confine = list(value),
            "spectre_guards" => self.spectre_guards = spectre_guards(value)?,
            _ => {
                let values = option_values(&Options::default());
                let names: Vec<_> = values.iter().map(|(name, _)| *name).collect();
                return Err(Unknown::of_many((name, format!("no option {name}")), &names).into());
            }
        }
        Ok(())
    }
}

fn spectre_guards(value: &str) -> Result<SpectreGuards> {
    match value {
        "keep" => Ok(SpectreGuards::Keep),
        "consolidate" => Ok(SpectreGuards::Consolidate),
        "drop" => Ok(SpectreGuards::Drop),
        _ => bail!("spectre_guards is keep, consolidate or drop"),
    }
}

fn bounds(value: &str) -> Result<(String, RangeInclusive<u64>)> {
    let mut parts = value.split(':');
    let (Some(region), Some(least), Some(largest)) = (parts.next(), parts.next(), parts.next()) else {
        bail!("bounds are region:least:largest")
    };
    Ok((region.to_owned(), parsed("the least of bounds", least)?..=parsed("the largest of bounds", largest)?))
}

fn dereferenceable(value: &str) -> Result<(String, u64)> {
    let (region, bytes) = value.split_once(':').context("dereferenceable is region:bytes")?;
    Ok((region.to_owned(), parsed("the number of dereferenceable", bytes)?))
}

fn is_listed(list: &[String], region: &AliasRegionData) -> bool {
    list.iter().any(|start| region.description.starts_with(start))
}

impl Embedder for Words {
    fn writers(&self, region: &AliasRegionData) -> Writers {
        match () {
            () if is_listed(&self.others_write, region) => Writers::Others,
            () if is_listed(&self.calls_write, region) => Writers::Calls,
            () => Writers::Any,
        }
    }

    fn poll_latency(&self) -> u32 {
        self.poll_latency.unwrap_or(4096)
    }

    fn is_checked(&self, region: &AliasRegionData, code: TrapCode) -> bool {
        code == TrapCode::HEAP_OUT_OF_BOUNDS && is_listed(&self.checked, region)
    }

    fn bounds(&self, region: &AliasRegionData) -> RangeInclusive<u64> {
        let told = self.bounds.as_ref().filter(|(start, _)| region.description.starts_with(start));
        told.map_or(0..=u64::MAX, |(_, bounds)| bounds.clone())
    }

    fn dereferenceable_bytes(&self, region: &AliasRegionData) -> u64 {
        let told = self.dereferenceable.as_ref().filter(|(start, _)| region.description.starts_with(start));
        told.map_or(0, |(_, bytes)| *bytes)
    }

    fn never_shrinks(&self, region: &AliasRegionData) -> bool {
        is_listed(&self.never_shrink, region)
    }

    fn extension_confines(&self, region: &AliasRegionData) -> bool {
        is_listed(&self.confine, region)
    }

    fn spectre_guards(&self) -> SpectreGuards {
        self.spectre_guards
    }
}
