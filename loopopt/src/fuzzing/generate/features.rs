//! What may occur in a program.
//!
//! Each program has a part of all features only: a program that has everything has little of each, and a store, a call
//! or a trap everywhere is in the way of what would happen without it.

use super::choices::Choices;

/// Something that a program may or may not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feature {
    /// A memory image.
    Memory,
    /// Accesses that may be outside of the memory image.
    OutOfRange,
    /// Alias regions on accesses.
    Regions,
    /// Stack slots.
    Slots,
    /// Calls to host functions.
    Hosts,
    /// Calls to other functions of the program.
    Functions,
    /// Calls with an exception table.
    TryCalls,
    /// `f32` and `f64`.
    Floats,
    /// Vectors of 128 bits.
    Vectors,
    /// `i128`.
    Wide,
    /// `trapz` and `trapnz`, and branches to traps.
    Traps,
    /// Divisions and conversions that may trap.
    Partial,
    /// Atomic accesses and fences.
    Atomics,
    /// `br_table`.
    Tables,
    /// Cycles with several entries.
    Irreducible,
    /// Cold blocks.
    Cold,
    /// Aliases of values.
    Aliases,
    /// Source locations, debug tags and stack maps.
    Marks,
    /// Blocks that nothing branches to.
    Unreachable,
    /// `sequence_point`.
    SequencePoints,
    /// Blocks in any order.
    Shuffled,
    /// Loops that need not end.
    Endless,
    /// Stack slots that hold locals: accessed at constant offsets, unless their address escapes.
    Locals,
    /// Locals whose address escapes.
    Escapes,
    /// Places in memory that are updated again and again.
    Cells,
    /// Accesses at an index that counts up or down, and at the one before.
    Series,
    /// Instructions whose operands are all from outside of the loop.
    Invariants,
    /// Loads of a flag whose cold path calls a host function.
    Polls,
    /// Values that are computed in a loop and used after it.
    Late,
    /// Parameters of headers that vary in the first iterations only, or never.
    Flags,
    /// Few instructions, most of which belong to one of the above.
    Sparse,
    /// Accesses that are known to be in range say so.
    Trusted,
    /// Loops with several counters of different widths, of which one ends the loop and others are checked.
    Ranges = 32,
    /// A few places in memory that are accessed under many names.
    Disguises = 33,
    /// Irreducible cycles around and beside loops.
    Entries = 34,
    /// Pointers that are kept in memory, and step.
    Pointers = 35,
    /// Fields of stack slots that inner loops count in, and outer loops write at an index.
    SlotNests = 36,
    /// Loops that only a trap ends.
    Doomed = 37,
    /// An exit test of a loop in the middle of an inner one.
    MidExits = 38,
    /// Loads that can be moved, at addresses that are chosen, and null on the other path.
    Chosen = 39,
    /// Loops of which an iteration counts down in inner loops.
    Countdowns = 42,
    /// Places that have one alias region where they are accessed, and another one in what never runs.
    Variants = 43,
    /// Addresses that are computed from a slot and are not in it, of accesses that never run, and of accesses to another slot.
    Beyond = 44,
    /// Several elements around a counter are loaded, and one of an array that may be the same is stored.
    Stencils = 45,
    /// Two memories that begin at one place, and have a length each.
    Twins = 46,
    /// Numbers of 32 bits and less that are loaded, and loaded at in the next iteration.
    Links = 47,
    /// Neighbours in an array that change places.
    Exchanges = 48,
    /// Short branches on what is loaded choose values.
    ShortIfs = 49,
    /// Objects that say how long an array is, and where.
    Objects = 50,
    /// Loops walk over arrays with checks, in all shapes. This bit keeps the programs as they are that show the rarest faults.
    Checks = 51,
    /// Carried values to which an iteration applies several operations in a row.
    Reductions = 52,
    /// Carried values that grow by what a counter says.
    Sums = 53,
}

/// Something in a program that a pass may look for. [`Statistics`](crate::fuzzing::Statistics) counts the programs that
/// have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// The next value of a parameter of a header is a sum of it and what a counter or a constant says.
    Sum,
    /// Several operations in a row make the next value of a parameter of a header.
    Reduction,
    /// A local in a stack slot is accessed as a whole, in a loop.
    Local,
    /// A part of a local is accessed, or its bits in another type.
    LocalPart,
    /// The address of a local is stored, passed to a function, chosen or computed.
    LocalEscapes,
    /// A place in memory is read, changed and written in a loop, at a loop-invariant address.
    CellUpdate,
    /// A place in memory is written without being read, in a loop, at a loop-invariant address.
    CellOverwritten,
    /// Places of which one base address has several.
    Fields,
    /// An element is stored, and one of another iteration is loaded.
    Recurrence,
    /// The index of an access is computed in 32 bits.
    NarrowIndex,
    /// The same, with a number that is not known, or one near the end of 32 bits.
    NarrowSum,
    /// A load from a loop-invariant address.
    InvariantLoad,
    /// A check, or an operation that is not defined for all operands, whose operands are loop-invariant.
    InvariantTrap,
    /// An instruction with two results whose operands are loop-invariant.
    InvariantPair,
    /// A load from an address that was loaded, both of which are loop-invariant.
    Chain,
    /// A branch on a loop-invariant value.
    InvariantBranch,
    /// A trap in one iteration, which a counter tells.
    TrapAtIteration,
    /// A branch on a counter and one of its first values.
    BranchAtIteration,
    /// A branch on a parameter that differs in the first iterations, or is always the same.
    Flag,
    /// A load of a flag whose cold path calls.
    Poll,
    /// A branch on a counter and on something in memory whose cold path calls.
    RareWay,
    /// A value is computed in a loop, and used only after it.
    Late,
    /// A value is computed in a cold block of a loop from loop-invariant values.
    Rare,
    /// An index that counts is checked in place.
    CheckTrap,
    /// The same by a branch to a trap.
    CheckBranch,
    /// The same by a branch to a call and a trap.
    CheckCall,
    /// The same by a branch to a call that comes back, after the access.
    CheckRejoins,
    /// The same by a Spectre guard.
    CheckGuard,
    /// A sum or a product with an index that counts is checked for overflow.
    CheckOverflow,
    /// A loop-invariant divisor or pointer is compared with zero.
    CheckZero,
    /// An index of the form `i * n + j` is checked.
    RowMajor,
    /// What an index is checked against is loaded.
    LoadedLength,
    /// An index is checked against what the loop tests its counter against.
    OwnBound,
    /// The same, of an index some elements ahead of a counter that ends so much earlier.
    LagBound,
    /// How often a loop runs depends on the counter of an enclosing one.
    OuterBound,
    /// A jump table on a loop-invariant value.
    InvariantTable,
    /// A branch on what its loop loads from a loop-invariant address.
    LoadedBranch,
    /// A rare block of a loop calls, and comes back.
    RareCall,
    /// A loop has counters of different widths.
    MixedCounters,
    /// A loop has a second exit test, on any of its counters.
    SecondExit,
    /// A loop ends when a counter is equal to something that it need not reach.
    EndsAtEqual,
    /// A bound is a sum or a multiple that may wrap.
    BoundFromWrap,
    /// A checked index was narrowed.
    Narrowed,
    /// A checked index has a factor that may vanish.
    Vanishing,
    /// A checked index has the start of a counter added or subtracted.
    CancelledStart,
    /// A place in memory is accessed by an address that does not look like it.
    Disguised,
    /// An address is loaded from a variable that is written more than once.
    PointerVariable,
    /// An address is a parameter of a block in which paths meet.
    PointerParam,
    /// A cycle with two entries around a loop.
    EntriesAround,
    /// A cycle with two entries after a loop whose exits lead to both.
    EntriesBeside,
    /// A pointer that is kept in memory steps through an array.
    PointerCell,
    /// A field of a slot is counted in by an inner loop, and may be written by an outer one.
    SlotNest,
    /// A loop has no exit but a trap.
    Doomed,
    /// Some call is made because it just differs from another in what ends a loop.
    EdgeCall,
    /// The exit test of a loop is in the middle of an inner one.
    MidExit,
    /// A load that can be moved is at an address that is chosen, and null on the other path.
    ChosenLoad,
    /// A load at an address that is selected from two, both of which are loaded just before.
    SelectedLoad,
    /// An iteration of a loop counts down in inner loops.
    Countdown,
    /// An access that never runs has another alias region than those to the same place that run.
    IdleRegion,
    /// An access that never runs is beyond the slot that its address is computed from.
    BeyondSlot,
    /// The distance of two slots leads from one to the other.
    SlotDistance,
    /// Elements around a counter are loaded, one of an array that may be the same is stored.
    Stencil,
    /// Neighbours in an array change places on one of two paths.
    Exchange,
    /// A short branch on what is loaded chooses values.
    ShortIf,
    /// A loop fills an array of which an object says how long it is, and where.
    Object,
    /// Accesses to two memories with one base.
    TwoMemories,
    /// A number of 32 bits or less is loaded, and the next iteration loads at it.
    Link,
    /// A guard is by a length near 2^64.
    LongMemory,
    /// A loop looks at something in each iteration that another thread may write.
    PollingLoop,
    /// A loop ends when another thread writes to memory, and not before.
    WaitingLoop,
    /// A loop that waits until another thread answers what it stores.
    AnsweredLoop,
    /// The address of an exception handler is taken.
    HandlerAddress,
}

/// A set of features.
#[derive(Clone, Copy, Debug)]
pub(super) struct Features(u64);

impl Features {
    /// A few of them, or all but a few.
    pub(super) fn draw(random: &mut Choices<'_, '_>) -> Self {
        let (a, b) = (random.word(), random.word());
        let bits = match random.below(4) {
            0 => a & b,
            1 | 2 => a,
            _ => a | b,
        };
        let mut features = Self(bits >> 8);
        let is_special = features.0 & SPECIAL_PROGRAM == SPECIAL_PROGRAM;
        features.remove(&SPECIAL);
        SCENES.iter().for_each(|&(_, scene)| features.remove(&[scene]));
        if features.0 & SUMS_PROGRAM != SUMS_PROGRAM {
            features.remove(&[Feature::Sums]);
        }
        if random.chance(20) {
            features.remove(&NOT_INTERPRETED);
        }
        if !random.chance(3) {
            features.remove(&[Feature::Endless]);
        }
        if features.has(Feature::Marks) {
            // A load is lowered as a part of its user, if both are in one block, and traps at the place of that.
            features.remove(&[Feature::OutOfRange]);
        }
        if is_special {
            features.specialize(random);
        }
        if a as u8 >= SCENE_PROGRAM {
            features.stage(random, reserved_scene(b as u8));
        }
        features
    }

    /// Makes it a program with one or two of the special features, and not much else.
    fn specialize(&mut self, random: &mut Choices<'_, '_>) {
        let specials = [random.weighted(&SPECIAL_SHARES), random.weighted(&SPECIAL_SHARES)];
        self.add(specials[0]);
        if random.chance(30) {
            self.add(specials[1]);
        }
        if random.chance(70) {
            self.add(Feature::Sparse);
        }
        if random.chance(70) {
            self.remove(&NOISE);
        }
        if random.chance(90) || self.has(Feature::Disguises) {
            self.add(Feature::Trusted);
        }
        if random.chance(85) || self.has(Feature::Disguises) || self.has(Feature::Pointers) {
            self.add(Feature::Memory);
        }
        if self.has(Feature::Disguises) && random.chance(70) {
            self.remove(&[Feature::Regions]);
        }
        if self.has(Feature::Pointers) {
            // After the image are the pointers.
            self.remove(&[Feature::OutOfRange]);
        }
    }

    /// Makes it a program around one of the scenes.
    fn stage(&mut self, random: &mut Choices<'_, '_>, reserved: Option<Feature>) {
        let drawn = random.weighted(&SCENES);
        let scene = reserved.unwrap_or(drawn);
        self.remove(&SPECIAL);
        self.remove(&NOISE);
        // What scenes keep after the image is theirs, and only of calls from outside is it known what they pass.
        self.remove(&[Feature::OutOfRange, Feature::Functions, Feature::Endless]);
        self.add(Feature::Memory);
        self.add(Feature::Trusted);
        self.add(scene);
        if matches!(scene, Feature::Variants | Feature::Countdowns) {
            self.add(Feature::Regions);
        }
        if random.chance(80) {
            self.add(Feature::Sparse);
        }
    }

    /// Whether the last argument of the first function is an address.
    pub(super) fn ends_in_address(self) -> bool {
        self.has(Feature::Chosen) || self.has(Feature::Stencils)
    }

    /// The scene that the program is made around, if it is one of those.
    pub(super) fn scene(self) -> Option<Feature> {
        SCENES.iter().map(|&(_, scene)| scene).find(|&scene| self.has(scene))
    }

    fn add(&mut self, feature: Feature) {
        self.0 |= 1 << feature as u64;
    }

    /// Whether it has one of the special features.
    pub(super) fn is_special(self) -> bool {
        self.scene().is_some() || SPECIAL.iter().any(|&feature| self.has(feature))
    }

    pub(super) fn has(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u64 != 0
    }

    fn remove(&mut self, features: &[Feature]) {
        for &feature in features {
            self.0 &= !(1 << feature as u64);
        }
    }
}

/// What Cranelift's interpreter does not know.
const NOT_INTERPRETED: [Feature; 8] = [
    Feature::Memory,
    Feature::Hosts,
    Feature::TryCalls,
    Feature::Vectors,
    Feature::Atomics,
    Feature::SequencePoints,
    Feature::Endless,
    Feature::Escapes,
];

/// Only programs with both of these bits have special features. The others are what they would be without those.
const SPECIAL_PROGRAM: u64 = 1 << 40 | 1 << 41;

/// Only programs with all of these bits have sums of counters.
const SUMS_PROGRAM: u64 = 1 << 53 | 1 << 54;

/// What only special programs have.
const SPECIAL: [Feature; 6] =
    [Feature::Ranges, Feature::Disguises, Feature::Entries, Feature::Pointers, Feature::SlotNests, Feature::Doomed];

const SPECIAL_SHARES: [(usize, Feature); 6] = [
    (12, Feature::Ranges),
    (6, Feature::Disguises),
    (8, Feature::Entries),
    (4, Feature::Pointers),
    (5, Feature::SlotNests),
    (1, Feature::Doomed),
];

/// Programs are made around scenes if the lowest eight bits, which stand for no feature, are at least this: one in thirteen.
const SCENE_PROGRAM: u8 = 236;

/// Of these, one in ten is made around each of four scenes that are not drawn, which leaves all other programs as they were before there were these
/// scenes. Eight bits of another number, which stand for no feature either, say so.
fn reserved_scene(bits: u8) -> Option<Feature> {
    match bits {
        ..152 => None,
        152..178 => Some(Feature::Objects),
        178..204 => Some(Feature::ShortIfs),
        204..230 => Some(Feature::Exchanges),
        230.. => Some(Feature::Links),
    }
}

/// What proofs went wrong with that takes several blocks, and how often programs are made around it. They have no other special feature.
const SCENES: [(usize, Feature); 11] = [
    (2, Feature::MidExits),
    (3, Feature::Chosen),
    (2, Feature::Countdowns),
    (2, Feature::Variants),
    (3, Feature::Beyond),
    (2, Feature::Stencils),
    (2, Feature::Twins),
    // Not drawn: see `reserved_scene`.
    (0, Feature::Objects),
    (0, Feature::ShortIfs),
    (0, Feature::Exchanges),
    (0, Feature::Links),
];

/// What is in the way of special features.
const NOISE: [Feature; 18] = [
    Feature::OutOfRange,
    Feature::Hosts,
    Feature::Functions,
    Feature::TryCalls,
    Feature::Floats,
    Feature::Vectors,
    Feature::Partial,
    Feature::Atomics,
    Feature::Tables,
    Feature::Cold,
    Feature::Marks,
    Feature::SequencePoints,
    Feature::Shuffled,
    Feature::Escapes,
    Feature::Series,
    Feature::Cells,
    Feature::Polls,
    Feature::Checks,
];
