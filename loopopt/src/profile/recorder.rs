//! Where code counts.

use super::counters::{Counters, WORDS_PER_VALUE};
use super::{EXIT_COUNT_CLASSES, FunctionProfile, LoopProfile, LoopSites, Profile, TOP_VALUES, ValueProfile};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where code that was compiled with [`Profiling::Record`](super::Profiling::Record) counts.
///
/// It has to live as long as the code runs: the code holds its address.
///
/// No two recorders have the same [`Options::fingerprint`](crate::Options::fingerprint), in one process or in several: a cache takes code for no other recorder.
pub struct Recorder {
    /// A number by chance.
    identity: u64,
    functions: Mutex<Vec<Recorded>>,
}

/// The counters of a function that was compiled.
struct Recorded {
    name: String,
    /// For each loop its key, and how many blocks and values of it are counted.
    loops: Vec<(String, [usize; 2])>,
    counters: Box<[AtomicU64]>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self { identity: RandomState::new().hash_one(0), functions: Mutex::default() }
    }
}

impl Recorder {
    /// One that has recorded nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was recorded until now. Functions that were compiled several times are added up.
    pub fn profile(&self) -> Profile {
        let mut profile = Profile::default();
        for function in &*self.functions() {
            let one = FunctionProfile { loops: function.read() };
            profile.merge(&Profile { functions: [(function.name.clone(), one)].into() });
        }
        profile
    }

    /// Makes counters for the loops of a function.
    pub(crate) fn add(&self, name: String, sites: &[LoopSites]) -> Counters {
        let loops: Vec<_> = sites.iter().map(|lp| (lp.key.clone(), [lp.blocks.len(), lp.values.len()])).collect();
        let words = loops.iter().map(|&(_, [blocks, values])| words(blocks, values)).sum();
        let counters: Box<[AtomicU64]> = std::iter::repeat_with(AtomicU64::default).take(words).collect();
        let address = counters.as_ptr().expose_provenance() as u64;
        self.functions().push(Recorded { name, loops, counters });
        Counters::new(address)
    }

    fn functions(&self) -> MutexGuard<'_, Vec<Recorded>> {
        // Whoever panicked has left whole functions.
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many counters a loop has with so many blocks and values.
fn words(blocks: usize, values: usize) -> usize {
    1 + EXIT_COUNT_CLASSES + blocks + values * WORDS_PER_VALUE
}

impl Recorded {
    fn read(&self) -> Vec<LoopProfile> {
        let mut rest = self.counters.iter().map(|counter| counter.load(Ordering::Relaxed));
        let mut next = || rest.next().expect("each loop has its counters");
        let mut loops = Vec::with_capacity(self.loops.len());
        for (key, [blocks, values]) in &self.loops {
            loops.push(LoopProfile {
                key: key.clone(),
                back_edges: next(),
                exit_counts: std::array::from_fn(|_| next()),
                blocks: (0..*blocks).map(|_| next()).collect(),
                values: (0..*values)
                    .map(|_| ValueProfile {
                        total: next(),
                        top: std::array::from_fn::<_, TOP_VALUES, _>(|_| (next(), next())),
                    })
                    .collect(),
            });
        }
        loops
    }
}
