//! Mistakes that the passes can be told to make, to see whether the tests notice.
//!
//! Each fault is a mistake that some loop optimizer has made, at the place where loopopt could make it. [`with`] switches
//! one on for the calling thread. Without the feature `fuzzing` there are none.

/// Whether the fault of this name is on; always false without the feature `fuzzing`.
macro_rules! fault {
    ($name:ident) => {{
        #[cfg(feature = "fuzzing")]
        {
            $crate::fault::is_on($crate::fault::Fault::$name)
        }
        #[cfg(not(feature = "fuzzing"))]
        {
            false
        }
    }};
}
pub(crate) use fault;

/// Declares the faults and the list of them all.
#[cfg(feature = "fuzzing")]
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A mistake that a pass can be told to make.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Fault { $($(#[$doc])* $name,)* }

        impl Fault {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

#[cfg(feature = "fuzzing")]
faults! {
    /// `specialize`: the values are taken for known in the version that is for all others.
    SpecializedElsewhere,
    /// `specialize`: it is enough that one of the values is there.
    AnyValueFits,
    /// `thread_jumps`: what the first edge decides, all do (golang/go#40367: what holds on one path is taken to hold after the join).
    FirstEdgeThreads,
    /// `version`: only the first value is tested, not how far it moves (openj9#15477).
    OnlyTheFirstValue,
    /// `version`: the counter before the step is taken for the counter after it (OMR 2c2cc0111).
    OneIterationLess,
    /// `version`: terms of an integer cancel although it overflows (a range of which the end is below the start).
    TermsCancel,
    /// `version`: an integer is multiplied although it overflows (a factor that is 0 modulo two to the bits).
    FactorsVanish,
    /// `version`: of what is loaded at another place while a check fails, all is believed that was said of the load after the check.
    FlagsOfAnotherPlace,
    /// `version`: a counter is shifted even if it may have wrapped, or be below zero.
    QuotientOfAnything,
    /// `elide_checks`: a sum that is clamped to a number is taken to be between the two, even if that number is on its other side.
    ClampedEitherWay,
    /// `version`, `reassociate`: a constant that is added to an index becomes an offset without being scaled.
    ConstantUnscaled,
    /// `strip_mine`: what the inner loops add to fuel is forgotten.
    InnerFuelForgotten,
    /// `strip_mine`: one iteration begins for which there is no fuel (off by one).
    OneIterationTooMany,
    /// `strip_mine`: fuel that counts down is used up to nothing, though a poll asks for more.
    LeastForgotten,
    /// `strip_mine`: what is added to fuel before it is tested is forgotten where the loop is entered.
    EnteredWithoutSum,
    /// `strip_mine`: a flag that stays set is found set once for each strip.
    SetFlagForgotten,
    /// All that decides: what a Spectre guard gives is taken for free to become something else than what it asks of.
    OnlyConditionsAsked,
    /// `consolidate_guards`: one guard is for accesses to two memories with one base.
    OneMemoryForAll,
    /// What is loaded is extended without its sign, whatever the loop does.
    LoadedWithoutSign,
    /// `strip_mine`: polls of inner loops ask what those of outer loops ask, whatever that is.
    OtherFlagInside,
    /// `full_unroll`: one iteration of a few that may run is forgotten (off by one).
    FewerIterations,
    /// `split_iterations`: the first loop has an iteration in which the branch has changed (off by one).
    SplitTooLate,
    /// `split_iterations`: the branch asks for a number of another width.
    AnyWidthDecides,
    /// `split_iterations`: the first loop goes on where the loop as it was ends.
    SplitRunsOn,
    /// `fuse_exit_tests`: the strip ends two iterations late.
    StripTooLong,
    /// `fuse_exit_tests`: a loop that an unrolled strip held is taken for the strip.
    AnyLoopIsAStrip,
    /// `widen_indices`: 32-bit sums do not wrap (LLVM IndVarSimplify's class of `nuw` that does not hold).
    SumsNeverWrap,
    /// `widen_indices`: there is room for a step above each bound and each start, whatever has been compared with them.
    RoomUnasked,
    /// `version`: what is added on one side of a comparison is not taken away on the other.
    AddedTwice,
    /// `version`: an extended sum may be as large as it likes (LLVM 123550: `nuw` of an address that wraps).
    AddressMayWrap,
    /// `version`: a sum of what it is in the first iteration and of a counter that begins at another number than zero holds that number twice.
    CountsFromZero,
    /// `version`: accesses are proved disjoint by where they begin alone (an off-by-one in a test of overlap).
    WidthForgotten,
    /// `version`: what is tested against one access keeps all others out of the cell (llvm PR 135168: no-alias without checks).
    OneOverlapTested,
    /// `version` gives the fast loop what it loads before the loop, and proves only one of its cells disjoint from one store.
    CellsAssumed,
    /// `version`: a store that is kept away from one load of an iteration is taken to be so from those of the next ones (llvm#39001: a
    /// dependence that is not seen).
    NextIterationForgotten,
    /// `widen_indices`: the step of a counter is taken for positive.
    StepsUpOnly,
    /// `consolidate_guards`: what has lost its guard stays without.
    GuardsForgotten,
    /// `pin`: an access at an address that is chosen may be moved before the choice (wasmtime#10340).
    ChosenAddressMoves,
    /// `guard_to_trap`: the check traps where the guard gave the address.
    UnguardedInverted,
    /// `version`: the fast loop goes on where the check fails (JDK-8307683).
    CheckInverted,
    /// `propagate_equality`: a condition is taken for what it is on the other edge.
    OtherEdge,
    /// `propagate_equality`: a number is what it is on the other edge.
    EqualElsewhere,
    /// `forward_select_load`: a store in between is not seen.
    SelectedAcrossStore,
    /// `rotate`: the back edge carries the value of the first iteration (a back-edge argument that is dropped).
    StaleBackEdge,
    /// `rotate`: the loop is entered without a guard (zero-trip loops).
    NoGuard,
    /// `rotate`: what the header does to memory is done on entry only by the old header (the swift PR 79198 class).
    ForgottenEffect,
    /// `rotate`: the header's exit edges carry the values of its copy (facts of one copy used in the other).
    ExitValueOfCopy,
    /// `rotate`: uses of a header's value in its own block are replaced as well (golang/go#63670: the loop never ends).
    RenamedInHeader,
    /// `rotate`: what is proved disjoint within an iteration is taken to be so from one to the next.
    ToldOfEachIteration,
    /// `final_values` takes a strip that may still end earlier for one that is counted.
    FormulaForStrip,
    /// `rotate`: closed form is taken to outlive the edges of a guard that takes one edge only (a cycle that has become a loop).
    FormOutlivesEdges,
    /// `evaluate`: what the first iteration passes comes back to it through a cycle with a second entry.
    ForgottenEntry,
    /// `merge`: a block that a handler's address names is merged away.
    MergedHandler,
    /// `clone`: two instructions share a jump table.
    SharedJumpTable,
    /// `clone`: two instructions share an exception table.
    SharedExceptionTable,
    /// `clone`: source locations are not copied.
    ForgottenSourceLocation,
    /// `close`: values leave a loop by one of its exits only (a forgotten exit value).
    ForgottenExitValue,
    /// `ssa`: definitions meet without a parameter.
    NoMeet,
    /// `merge`: the arguments of a merged block are mixed up.
    MixedArguments,
    /// `params`: a parameter is taken for redundant by its first edge alone.
    OneEdgeDecides,
    /// `edges`: a branch has one edge to a block, however many of its destinations that block is (cranelift 855a6374dd).
    OneEdgePerBranch,
    /// `layout`: the opposite of a comparison forgets the equal case (an off-by-one in the last test).
    OffByOneTest,
    /// `layout`: the opposite of a float comparison forgets NaN.
    ForgottenNan,
    /// `layout`: the edges of a branch change places, the condition stays (WebKit PR 43470).
    NotInverted,
    /// `order_latch`: loads and stores pass each other (an ignored alias).
    IgnoredAlias,
    /// `order_latch`: what may trap passes stores (hoisted above, or sunk below, a trap).
    IgnoredTrap,
    /// `order_latch`: operands of a subtraction change places.
    SwappedSubtraction,
    /// `order_latch`: the next value is counted up twice (OMR 472a9b3b7).
    CountedTwice,
    /// `constants`: a constant of the same type will do.
    AnyConstant,
    /// `tail_duplicate`: a copy of the test never leaves the loop.
    WrongExit,
    /// `memory`: no two accesses alias (wasmtime#13508, dotnet#54118).
    NothingAliases,
    /// `effects`: no division traps (one that is done before the test of its divisor).
    DivisorsUnknown,
    /// `entry`: stores, calls and traps on the path cannot be observed (hoisted above a trap).
    NothingObserves,
    /// `entry`: a block runs on every entry of the loop, whatever the branches (wasmtime#10340).
    EveryBlockRuns,
    /// `elide_checks`: what is known after a check is used for the check (golang/go#40367).
    FactsOfTheBody,
    /// `conditions`: less and less-or-equal are the same (OMR 2c2cc0111).
    OrEqual,
    /// `prover`: integers do not wrap (OMR 92e8f4535).
    NothingWraps,
    /// `prover`: what holds with sign is taken to hold without (OMR 92e8f4535).
    AnyReading,
    /// `prover`: what holds on entry to a loop holds in each iteration (golang/go#63955).
    FirstIterationOnly,
    /// `promote`: stores leave the loop although a load may read them (an ignored alias).
    UnseenStores,
    /// `promote`: stores leave the loop although it may trap (memory at the trap).
    StoresPassTraps,
    /// `promote`: the load before the loop has the region of an access that need not run.
    RegionOfOneVariant,
    /// `promote`: a load that was moved before a loop says that its address is in the slot.
    MovedLoadProvesSlot,
    /// `promote` loads a cell before the loop, and not what the loop would have loaded earlier.
    FirstTrapForgotten,
    /// `promote`: the stores of a loop that waits are done after it, and nobody answers.
    StoredAfterTheWait,
    /// `promote`: a store at an exit that none came before (llvm#57780).
    InventedStore,
    /// `promote`: an exit without the store (a forgotten exit value).
    ForgottenStore,
    /// `promote`: a narrow cell that was loaded with its sign is extended without (GCC's landing of 2026-05-11).
    UnsignedCell,
    /// `promote`: another store between the store and the load of the next iteration (llvm#195513).
    CellChangesInBetween,
    /// `promote`: what a cell holds on one of two paths that meet, it holds on both.
    OneWayForAll,
    /// `mem2reg`: places that overlap are taken for two variables (llvm#64897).
    IgnoredOverlap,
    /// `mem2reg`: an address that is added to is not one that escapes.
    IgnoredEscape,
    /// `construct`: a block in which definitions meet passes what it got, not what it writes (llvm#57780).
    StaleAtEnd,
    /// `available`: what is in memory stays there after a store that may be to it (an ignored alias).
    AvailableAfterStore,
    /// `available`: where paths meet, what one of them knows is known (golang/go#40367).
    AvailableOnOneWay,
    /// `available`: what memory held on entry to a loop, it holds in each iteration (wasmtime#14111's class).
    AvailableAroundLoops,
    /// `polls`: a load on which alone a loop ends is one like all others.
    PollsForgotten,
    /// `full_unroll`: counters do not wrap (a trip count from a wider type).
    NoWrap,
    /// `full_unroll`: a decided branch takes the other edge (WebKit PR 43470).
    InvertedExit,
    /// `peel`: the loop starts with the first iteration again (llvm#45284).
    FirstIterationTwice,
    /// `peel`: a comparison is settled one iteration too early.
    SettledTooEarly,
    /// `peel`: what is known of the later iterations is used in the first (LLVM PR 163720, golang/go#40367).
    SettledEverywhere,
    /// `partial_unroll`: a loop is taken for one that is entered only with its start on this side of the bound.
    EnteredAnyhow,
    /// `partial_unroll`: the last test that is removed is not looked at (an off-by-one in the bound of a main loop).
    BatchTooLarge,
    /// `partial_unroll`: the bound of the unrolled loop does not wrap (OMR 472a9b3b7, HotSpot's limit overflow).
    BatchWraps,
    /// `if_convert`: a load that becomes a part of the choice traps where the branch was.
    TrapAtTheChoice,
    /// `if_convert`: the value of the one side is chosen where the other one was to run.
    ChoosesTheOther,
    /// `gvn_sink`: what one path back to the header computes is taken for all.
    FirstWayDecides,
    /// `hoist_header_stores`: what the header stores is stored where the loop is entered only.
    StoredAtEntryOnly,
    /// `final_values`: the loop is taken to be left one iteration later.
    OneIterationOff,
    /// `final_values`: what the count rests on is not asked for (a loop of which the end was passed before it began).
    CountAssumed,
    /// `final_values`: a loop that writes or traps is taken for one without effect.
    EffectsForgotten,
    /// `reassociate`: operations of two kinds are one chain.
    MixedOperations,
    /// `reassociate`: what is taken away is added.
    SubtractionAdded,
    /// `reassociate`: of two constants that are added, one is forgotten.
    ConstantForgotten,
    /// `sink`: a load is taken for pure (a value of memory as it is after the loop).
    SunkLoad,
    /// `sink`: a load moves after the outer loop, too, past what that writes.
    SunkTwoLoops,
    /// `sink`: what may trap is taken for pure (a trap that comes too late, JDK-8379125).
    SunkTrap,
    /// `sink`: an exit that several edges lead to is known by the first of them (llvm#140444: another user).
    FirstExitEdgeDecides,
    /// `sink`: of a chain, only the last value is computed at its new place.
    ForgottenOperand,
    /// `unswitch`: a branch takes the same edge in all versions of the loop (llvm#63962, openj9#17249).
    InvertedVersion,
    /// `unswitch`: a condition that varies is taken for what it is in the first iteration.
    ConditionOfFirstIteration,
    /// `unswitch`: the default of a table goes to the target of its last entry.
    DefaultWay,
    /// `reroute_cold_path`: a rare edge goes to the rare part of another one.
    WrongLanding,
    /// `reroute_cold_path`: the rare part is never reached.
    ForgottenRareSide,
    /// `reroute_cold_path`: what is after the rare part uses the values of the fast loop (a live value that is not passed).
    StaleInColdPath,
}

#[cfg(feature = "fuzzing")]
thread_local! {
    static ON: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// Runs `body` with `fault` switched on in this thread.
#[cfg(feature = "fuzzing")]
pub fn with<R>(fault: Fault, body: impl FnOnce() -> R) -> R {
    /// Switches the fault off again, also if `body` panics.
    struct Off;
    impl Drop for Off {
        fn drop(&mut self) {
            ON.set(None);
        }
    }
    ON.set(Some(fault));
    let _off = Off;
    body()
}

#[cfg(feature = "fuzzing")]
pub(crate) fn is_on(fault: Fault) -> bool {
    ON.get() == Some(fault)
}
