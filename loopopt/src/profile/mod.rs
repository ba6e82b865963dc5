//! Profiles: what loops did when the program ran, written down for the next compilation.
//!
//! ```text
//!            Profiling::Record(recorder)                  Profiling::Use(profile)
//! function ──► record_profile ──► code, runs ──► Profile ──► apply_profile ──► specialize ──► code
//! ```
//!
//! [`Options::profiling`](crate::Options::profiling) says which of the two is done. The function is looked at in the same place of the pipeline
//! both times, once its loops have canonical form, so what was recorded of a loop is found again by what the loop is ([`LoopProfile::key`]), not by numbers of
//! blocks and values, which any edit changes.
//!
//! **A profile changes how fast a program is, and never what it does.** A value that was nearly always 8 is compared with 8 before anything rests on it.
//! What does not fit the function, because that has changed or because somebody has edited the file, is ignored with a remark (`apply_profile`: `stale`).
//!
//! # What is recorded
//!
//! * How often each loop was left, and how often it had taken its back edge then ([`LoopProfile::exit_counts`]).
//! * How often the blocks of a loop ran that not each iteration runs through ([`LoopProfile::blocks`]).
//! * The values of what is loop-invariant and would be faster to know ([`LoopProfile::values`]): divisors, factors, shifts, steps, bounds of inner
//!   loops, what branches and tables ask.
//!
//! A call that traps, or leaves a loop by an exception past the function, is not counted for the loops that it is in. Counters are not atomic: threads
//! that run the same function at once may lose counts.
//!
//! # Record and use
//!
//! ```
//! # use cranelift_codegen::Context;
//! # use cranelift_codegen::control::ControlPlane;
//! # use cranelift_codegen::settings::{self, Configurable};
//! use loopopt::profile::{Profiling, Recorder};
//! use loopopt::{LoopOptimizer, Options};
//! use std::sync::Arc;
//!
//! # let text = "function %f(i64) { block0(v0: i64): v1 = iconst.i64 0  v5 = iconst.i64 1  jump block1(v1)
//! # block1(v2: i64): v3 = iadd v2, v5  v4 = icmp ult v3, v0  brif v4, block1(v3), block2
//! # block2: return }";
//! # let func = cranelift_reader::parse_functions(text)?.remove(0);
//! # let mut flags = settings::builder();
//! # flags.set("opt_level", "speed")?;
//! # let isa = cranelift_native::builder()?.finish(settings::Flags::new(flags))?;
//! let recorder = Arc::new(Recorder::new());
//! let mut options = Options::default();
//! options.profiling = Profiling::Record(recorder.clone());
//! LoopOptimizer::new(options).compile(&mut Context::for_function(func.clone()), &*isa, &mut ControlPlane::default())
//!     .map_err(|error| error.inner)?;
//! // … the code runs …
//! let profile = Arc::new(recorder.profile());
//!
//! let mut options = Options::default();
//! options.profiling = Profiling::Use(profile);
//! LoopOptimizer::new(options).compile(&mut Context::for_function(func), &*isa, &mut ControlPlane::default())
//!     .map_err(|error| error.inner)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # References
//!
//! LLVM and GCC for profiles that survive edits because what they are about is hashed; GCC for values that are counted in a small table of which one place
//! is for newcomers (`__gcov_topn_values_profiler`).

mod counters;
#[cfg(feature = "profile")]
mod file;
mod recorder;
mod sites;

pub(crate) use counters::{Counters, Emitter};
pub use recorder::Recorder;
pub(crate) use sites::{LoopSites, Use, ValueSite};

use std::collections::BTreeMap;
use std::sync::Arc;

/// Whether a run records what loops do, or uses what was recorded.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Profiling {
    /// Neither.
    #[default]
    Off,
    /// The code counts for this recorder, which has to live as long as the code runs, in the same process. Such code is for the profile: it does more than
    /// the program says, and is not for a cache.
    Record(Arc<Recorder>),
    /// What was recorded decides what pays.
    Use(Arc<Profile>),
}

/// How many numbers [`LoopProfile::exit_counts`] has.
pub const EXIT_COUNT_CLASSES: usize = 16;
/// How many values [`ValueProfile::top`] has at most.
pub const TOP_VALUES: usize = 4;

/// What was recorded of the functions of a program.
///
/// With the feature `profile`, it is read and written as JSON: [`from_json`](Self::from_json), [`to_json`](Self::to_json).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "profile", derive(serde::Serialize, serde::Deserialize))]
pub struct Profile {
    /// By the names of the functions, as CLIF shows them: `%sum`, `u0:7`.
    pub functions: BTreeMap<String, FunctionProfile>,
}

/// What was recorded of one function: its loops, outer ones first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "profile", derive(serde::Serialize, serde::Deserialize))]
pub struct FunctionProfile {
    /// The loops.
    pub loops: Vec<LoopProfile>,
}

/// What was recorded of one loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "profile", derive(serde::Serialize, serde::Deserialize))]
pub struct LoopProfile {
    /// What the loop is: a hash of its instructions with those of its inner loops, and how many loops before it in the function have the same. Code outside of
    /// the loop does not matter, nor do numbers of blocks and values.
    pub key: String,
    /// How often the back edge was taken, in all.
    pub back_edges: u64,
    /// How often the loop was left, by how often it had taken its back edge then: never, once, 2 to 3 times, 4 to 7 times and so on, the last with all above.
    pub exit_counts: [u64; EXIT_COUNT_CLASSES],
    /// How often the blocks ran that not each iteration runs through, inner loops not counted, in an order of their own.
    pub blocks: Vec<u64>,
    /// What was recorded of values, in an order of their own.
    pub values: Vec<ValueProfile>,
}

/// What was recorded of one loop-invariant value that a loop uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "profile", derive(serde::Serialize, serde::Deserialize))]
pub struct ValueProfile {
    /// How often the loop was entered.
    pub total: u64,
    /// Values, as unsigned numbers, and how often each was seen. The last place is for newcomers: it counts down for each value that has no place, and is
    /// free at 0. So its count is a lower bound.
    pub top: [(u64, u64); TOP_VALUES],
}

impl Profile {
    /// Adds what another run has recorded. What is about the same loops is added up.
    pub fn merge(&mut self, other: &Self) {
        for (name, function) in &other.functions {
            let own = self.functions.entry(name.clone()).or_default();
            for lp in &function.loops {
                match own.loops.iter_mut().find(|own| own.is_like(lp)) {
                    Some(own) => own.merge(lp),
                    None => own.loops.push(lp.clone()),
                }
            }
        }
    }
}

impl LoopProfile {
    /// How often the loop was entered, and left again.
    pub fn entries(&self) -> u64 {
        self.exit_counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// How often it took its back edge on average, rounded down, each time that it was entered. Nothing if it was not.
    pub fn usual_back_edges(&self) -> Option<u64> {
        self.back_edges.checked_div(self.entries())
    }

    /// Whether this can have been recorded of such a loop: that there are as many numbers. They may contradict each other: threads lose counts, each of them for
    /// itself.
    pub(crate) fn fits(&self, sites: &LoopSites) -> bool {
        [self.blocks.len(), self.values.len()] == [sites.blocks.len(), sites.values.len()]
    }

    /// Whether both are about a loop of one kind.
    fn is_like(&self, other: &Self) -> bool {
        let lens = |lp: &Self| [lp.blocks.len(), lp.values.len()];
        self.key == other.key && lens(self) == lens(other)
    }

    fn merge(&mut self, other: &Self) {
        let add = |own: &mut u64, other: &u64| *own = own.saturating_add(*other);
        add(&mut self.back_edges, &other.back_edges);
        self.exit_counts.iter_mut().zip(&other.exit_counts).for_each(|(own, other)| add(own, other));
        self.blocks.iter_mut().zip(&other.blocks).for_each(|(own, other)| add(own, other));
        self.values.iter_mut().zip(&other.values).for_each(|(own, other)| own.merge(other));
    }
}

impl ValueProfile {
    /// In how many of 100 entries a value was seen that was counted so often.
    pub(crate) fn share(&self, count: u64) -> u64 {
        // Where several threads have counted, the sum may be more than the total.
        let seen = self.top.iter().fold(0_u64, |sum, &(_, count)| sum.saturating_add(count)).max(self.total);
        (u128::from(count) * 100 / u128::from(seen.max(1))) as u64
    }

    /// The value that was seen most often, and how often.
    pub fn dominant(&self) -> Option<(u64, u64)> {
        self.top.into_iter().filter(|&(_, count)| count > 0).max_by_key(|&(_, count)| count)
    }

    fn merge(&mut self, other: &Self) {
        self.total = self.total.saturating_add(other.total);
        let mut counts = BTreeMap::<u64, u64>::new();
        for (value, count) in self.top.into_iter().chain(other.top) {
            let sum = counts.entry(value).or_default();
            *sum = sum.saturating_add(count);
        }
        let mut most: Vec<_> = counts.into_iter().filter(|&(_, count)| count > 0).collect();
        most.sort_by_key(|&(value, count)| (std::cmp::Reverse(count), value));
        most.resize(TOP_VALUES, (0, 0));
        self.top = std::array::from_fn(|place| most[place]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_what_is_about_the_same_loop() {
        let value = |total, top| ValueProfile { total, top };
        let lp = |values| LoopProfile { key: "a#0".into(), back_edges: 7, values, ..LoopProfile::default() };
        let profile = |lp| Profile { functions: [("%f".into(), FunctionProfile { loops: vec![lp] })].into() };
        let mut sum = profile(lp(vec![value(10, [(8, 7), (9, 3), (0, 0), (0, 0)])]));
        sum.merge(&profile(lp(vec![value(5, [(9, 5), (0, 0), (0, 0), (0, 0)])])));
        sum.merge(&profile(lp(vec![])));
        let loops = &sum.functions["%f"].loops;
        assert_eq!(loops.len(), 2, "one has other values, so it is another loop");
        assert_eq!((loops[0].back_edges, loops[0].values[0].total), (14, 15));
        assert_eq!(loops[0].values[0].dominant(), Some((9, 8)));
    }
}
