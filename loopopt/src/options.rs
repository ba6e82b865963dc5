//! Every setting, and every threshold that decides whether something pays, each with its unit and the reason for its value. What only bounds the time of a
//! search is a constant beside it.

mod answers;
mod defaults;

use crate::embedder::{Embedder, Unknown};
use crate::ir::num_insts;
use crate::profile::Profiling;
use cranelift_codegen::ir::Function;
use std::sync::Arc;

/// How much compile time may be spent for faster code: a named set of [`Options`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effort {
    /// One round of the passes that cost little for what they gain: rotation, hoisting, promotion, unrolling by a factor, and the layout.
    /// No checks are removed, and no loop has two versions. The samples take 0.544 of Cranelift's run time, and 0.380 with the default; `sql.js`
    /// takes 1.31 of Cranelift's compile time, and 1.55 with the default (`docs/compile-time.md`).
    Quick,
    /// All passes.
    #[default]
    Default,
    /// All passes, with room for larger copies and longer tests: for code that is compiled once and runs long. The samples are as fast as with the default, which has room for all that
    /// they need.
    Full,
}

/// Settings of a [`LoopOptimizer`](crate::LoopOptimizer).
///
/// Made with [`Options::default`], then changed field by field.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Names of the passes that may fire, `None` for all of them. Canonical form is made in any case: it is not an
    /// optimization, and the other passes need it. Unknown names are ignored; [`pass_names`](crate::pass_names) lists
    /// the known ones.
    pub passes: Option<Vec<String>>,

    /// How many optional rewrites a [`LoopOptimizer`](crate::LoopOptimizer) may do in all its runs together, `None` for
    /// any number. To find the one rewrite that breaks a program, bisect this number: with one unit more, the rewrites
    /// before are the same.
    pub fuel: Option<u64>,

    /// Do each legal rewrite or not at random, by this seed. Set by [`Options::stress`].
    pub stress_seed: Option<u64>,

    /// Whether [`Report::remarks`](crate::Report::remarks) says why loops are left unchanged. True by default. The texts take about 3 % of loopopt's time: an
    /// embedder that reads none of them sets it to false. What is done to loops is said in any case.
    pub refusals: bool,

    /// Run Cranelift's verifier, and our own check of canonical form, after each pass, whatever the `enable_verifier`
    /// flag says. The error names the pass.
    pub verify_each_pass: bool,

    /// Keep the text of the function before the first pass and after each pass that changed it, in
    /// [`Report::dumps`](crate::Report::dumps).
    pub dumps: bool,

    /// Do every rewrite that is legal, whether it pays or not. For tests.
    pub ignore_cost: bool,

    /// Whether a profile of loops is recorded, or a recorded one is used: see [`profile`](crate::profile). Neither by default.
    pub profiling: Profiling,

    /// `apply_profile`: a block is cold if it ran less than once in so many iterations. 100: what a rare part costs once it has left the loop is some ten
    /// instructions.
    pub profile_cold_ratio: u64,

    /// `specialize`: in how many of 100 entries of a loop its values have to be those of the version. 75, as in Eclipse OMR.
    pub specialize_min_share: u64,

    /// `specialize`: the most values that one version is for. 4: each takes 2 instructions of the dispatch.
    pub specialize_max_values: usize,

    /// `specialize`: the most instructions of a loop, with its inner loops, of which there is a second version. 300, as for `version`.
    pub specialize_max_insts: usize,

    /// `specialize`: the most instructions that are run for each one that is saved. 16.
    pub specialize_max_insts_per_gain: u64,

    /// `specialize`: the fewest instructions that have to be saved each time that the loop is entered. 8: the dispatch takes 2 to 8.
    pub specialize_min_gain: u64,

    /// Whether the function is lowered as [`run`](crate::LoopOptimizer::run) leaves it: by `TargetIsa::compile_function`, or in a hook inside of
    /// `Context::compile` after its mid-end, as in Wasmtime. [`LoopOptModule`](crate::LoopOptModule) does so if this is true: it says there what is lost.
    ///
    /// False by default: `Context::compile` removes parameters of blocks that are always the same value, for which `split_latch` would change the order of
    /// a latch for nothing. It does not run then.
    pub lowers_directly: bool,

    /// Assert what each rewrite rests on, while the program runs: see [`claim`](crate::claim). For tests. Trap codes `user238` to
    /// `user250` say which claim is wrong; a function that has one of them itself is an error.
    pub assert_claims: bool,

    /// How often the passes before `widen_indices` run at most. 8: each further run is for loops that enclose one that has changed, and
    /// rarely needed, so that this bounds the time for nests made to be slow. Of 731 functions of `sql.js` with loops, 609 need one
    /// run, 109 two, 13 three or four.
    pub max_rounds: usize,

    /// `rotate`: the most instructions, without the branch and constants, that a header may hold to be copied. 16, as
    /// LLVM's `rotation-max-header-size`: the copy is run once per entry of the loop and costs its size in code, and a
    /// test that is longer than this takes most of the iteration's time itself.
    pub rotate_max_header_insts: usize,

    /// `rotate`: the most edges that may lead back to the header of a loop with a `br_table` on what it computes. 2: each of more takes two
    /// jumps if the test is at the bottom, or costs a copy of it. The sample `switch-loop` has 6 and takes 1.59 of its time without the
    /// copies, 1.04 with them, and 1.00 as it came (`jit-harness bench --filter switch-loop`).
    pub rotate_max_dispatched: usize,

    /// `mem2reg`: how many variables that were stack slots may be live at the start of a block, on average over all blocks,
    /// the arguments of edges counted too. If they are more, only variables that no block takes over from another become
    /// values. 64: most of so many values go back to the stack, and a function of 3,000 blocks takes twice as long to be
    /// lowered with 60 of them, and five times as long with 300 (x86-64). `mem2reg` itself takes 12 ns for each block of each.
    pub mem2reg_max_live: usize,

    /// `layout`: the most edges that leave a loop whose branches are put in order. 128: a loop with thousands of them is a whole
    /// function that the Go compiler has wrapped into one, and takes 15 % more code and two thirds more time to be lowered with
    /// its exits after it. In other functions of esbuild the code shrinks by 2.6 % with 128, by 1.1 % with 32.
    pub layout_max_exits: usize,

    /// `order_latch`: the most instructions in a latch that is put in order. 256: the time can grow with their square, and
    /// in a longer block one move more does not count.
    pub order_latch_max_insts: usize,

    /// `order_latch`: how many users of a parameter may be put before a load or store that is before them, so that its next value can
    /// take its register, if that value can be computed again instead. 1: what the user computes lives as long as the parameter
    /// would have. With 6 of them, `nbody-o2` with checks (in Wasmtime) keeps 7 addresses over the loads of an iteration, spills
    /// one, and takes 1.08 of its time; with a sum of its own for the branch, 1.00.
    pub order_latch_max_early: usize,

    /// `tail_duplicate`: the most instructions, without the branch and constants, of a test that is copied into each latch. 4: a
    /// copy saves one jump per iteration, and costs its size in code and in the branch predictor. When it was made, the geometric
    /// mean over all samples was 0.870, and 0.876 without it (`jit-harness bench --quick --set tail_duplicate_max_copies=0`).
    pub tail_duplicate_max_insts: usize,

    /// `tail_duplicate`: the most latches that get a test of their own. 8, as many as a small interpreter loop has.
    pub tail_duplicate_max_copies: usize,

    /// `thread_jumps`: the most instructions, without the branch and constants, of a block that is copied for an edge that decides its branch. 6, as LLVM's
    /// `jump-threading-threshold`.
    pub thread_jumps_max_insts: usize,

    /// `sink`: the most places that a value may be computed in instead. 4, as many as a loop has exits in what front ends
    /// emit for one statement: each is a copy of the instruction, and only one of them runs.
    pub sink_max_places: usize,

    /// `sink`: how many values may leave a loop by one exit, or live through it for one rare block, before a computation stays
    /// inside that would add to them. 4: each takes a register to the end of each iteration, and x86-64 has 14 for all.
    pub sink_max_values: usize,

    /// `final_values`: the most instructions of the formulas that replace what leaves a loop that stays, for each one that an iteration is shorter. 16: a sum
    /// of a counter takes 11 for one addition. The sample `checksum-of-places` has 18 for four, and takes 0.67 of Cranelift's time without them
    /// (`jit-harness bench --filter checksum-of-places`).
    pub final_values_max_insts_per_gain: usize,

    /// `final_values`: the most instructions of a loop that is looked at, those of inner loops counted. 1,000: it bounds the time for nests. What is
    /// saved in a larger loop is little beside the rest.
    pub final_values_max_loop: usize,

    /// `full_unroll`: the most iterations of a loop that is unrolled. 16, as in GCC (`max-completely-peel-times`): the time to find
    /// out how often a loop runs grows with it, and no more than 10,000 iterations are tried.
    pub full_unroll_max_iterations: usize,

    /// `full_unroll`: the most instructions that may remain of all iterations after folding. 200, as in GCC
    /// (`max-completely-peeled-insns`).
    pub full_unroll_max_insts: usize,

    /// `full_unroll`: the most iterations of a loop of which it is known that there are not more, but not how many. 8, as in LLVM
    /// (`UnrollMaxUpperBound`).
    pub full_unroll_max_few: usize,

    /// `full_unroll`: the most instructions, without constants and jumps, in these iterations. 64, as for `partial_unroll`.
    pub full_unroll_max_insts_of_few: usize,

    /// `full_unroll`: the most instructions that the copies of one loop may add, before folding and also if cost does not count.
    /// 1,000: it bounds the time of nests.
    pub full_unroll_max_copied: usize,

    /// `peel`: the most iterations that are taken out of a loop. 7, as LLVM's `unroll-peel-max-count`. No more than 1,000 count.
    pub peel_max_iterations: usize,

    /// `peel`: the most instructions, without constants and jumps, in all iterations that are taken out of a loop. 100, as in GCC
    /// (`max-peeled-insns`); Firefox takes 150.
    pub peel_max_insts: usize,

    /// `peel`: the most of those instructions for each one that an iteration of the loop is shorter, a check counting for
    /// two, a division for eight. 20: a check pays for a copy of 40.
    pub peel_max_insts_per_gain: usize,

    /// `peel`: the most instructions that the copies of one loop may add, also if cost does not count. 1,000, as for `full_unroll`.
    pub peel_max_copied: usize,

    /// `cleanup`: enclosing loops of a loop above which Cranelift's egraph pass does not run again: its time grows with the square of the depth. 256:
    /// 38 ms for a nest of 250 loops, 1.5 s for one of 1,000, which is no program that anybody has written.
    pub cleanup_max_depth: u32,

    /// `unswitch`: by how many instructions, without constants and jumps, the versions of a loop may add to it, times the versions
    /// that there are of it already. 50, as in LLVM (`unswitch-threshold`) and GCC (`max-unswitch-insns`); the factor is what LLVM's
    /// cost multiplier is for: a loop of 12 instructions is unswitched three times at most, a loop of 50 once.
    pub unswitch_max_insts: usize,

    /// `unswitch`: the most loops that one loop may become. 8: three branches, as in HotSpot, or a small `switch`.
    pub unswitch_max_versions: usize,

    /// `unswitch`: how many instructions of the loop have to serve one value of a `select` alone. 4: a `select` itself is one
    /// instruction that waits for nothing, and a loop with a branch for it would be as fast.
    pub unswitch_min_saved: usize,

    /// `unswitch`: the most instructions that the copies of one loop may add at once if cost does not count. 1,000, as for `full_unroll`.
    pub unswitch_max_copied: usize,

    /// `unswitch`: how many blocks it may look at in search of a branch, for each block of the function, in all rounds. 128: a look
    /// takes some 300 instructions. Without a limit, two nested loops with 32 branches that leave them at once took 115 million
    /// instructions, where `Context::optimize` took 1.4 million; with 128, 13 million (callgrind).
    pub unswitch_max_looks: usize,

    /// `transfer`: the most instructions, without constants and jumps, from the rare part to the end of the iteration. 200: they are
    /// copied once, and the copy is cold, so that it costs its size and nothing else. With 100, four of eight programs of a dynamic language took
    /// 0.91 to 1.07 of Cranelift's time, where they take 0.48 to 0.95 now; with 400 all eight take the same.
    pub transfer_max_insts: usize,

    /// `transfer`: how often an inner loop may take its back edge if its rare part leaves the outer loop, too. 64: after the rare part it is
    /// finished in a slow copy, and a loop that runs more often is worth to be made fast itself.
    pub transfer_max_inner_iterations: usize,

    /// `transfer`: the fewest values that may be what a cold call gives, if no load or store is to be won, and each of them is what decides whether that is called: fuel, or
    /// when time is up. 2: with 1, 84 kernels that poll for epochs took 1.03 of their time. Any other value is enough: 84 kernels of a dynamic language take
    /// 0.87 of Cranelift's time, and 0.89 where there have to be two.
    pub transfer_min_values: usize,

    /// `transfer`: the most instructions that one copy may add if cost does not count. 1,000, as for `full_unroll`.
    pub transfer_max_copied: usize,

    /// `version`: the most instructions of a loop, with its inner loops, of which there is a second version. 300: Graal and OMR
    /// bound blocks (OMR 200), LLVM's IRCE 64 of them; a matrix product with checks has 40 instructions.
    pub version_max_insts: usize,

    /// `version`: the most instructions of a loop for each sum of an address that is to be added up in 64 bits, guards not counted. 12: of
    /// 22 kernels of WebAssembly with guard pages in which 10 and 16 give other code, all take 0.768 of Cranelift's time (geometric mean), with 10 0.816 and with 16 0.759, but a radix
    /// sort 0.536 and not 0.782 or 0.789. SQLite gets 33 versions more than with 10, and 65 with 16, which take 0.7 and 1.7 % of Cranelift's compile time. Where checks are tested
    /// that imply that a sum does not wrap, this is no limit.
    pub version_max_insts_per_extension: usize,

    /// `version`: the most instructions of a loop for each load and store of a cell that is to leave it because a test says that nothing else is there.
    /// 12: `memory-accumulator`, `running-total` and `row-sums` have 3 to 6 and take 0.5, 0.25 and 0.4 of the time they take without. Of 1,068 functions
    /// of WebAssembly programs, loops of 31 to 244 instructions for one load would get 10 versions more; `sha256` would save 1 instruction of 77
    /// and be tested 6 times for it.
    pub version_max_insts_per_cell_access: usize,

    /// `version`: [`version_max_insts`](Self::version_max_insts), also if cost does not count. 2,000: it bounds the time for code made to be slow.
    pub version_max_copied: usize,

    /// `if_convert`: the most instructions on both sides of a branch and for the choice of values. 4: a choice of two values and what makes them. A branch that is
    /// predicted wrongly costs about 20.
    pub if_convert_max_insts: usize,

    /// `version`: the most comparisons in the test before a loop. 16: each takes 3 instructions, 20 bytes. With 12, a filter of
    /// 3 by 3 points with 32-bit indices is tested for each point, and takes 0.30 of Cranelift's time and not 0.20. With 32, `stencil2d` is tested before both its loops and not
    /// only before the inner one, is as fast, and takes 416 bytes more.
    pub version_max_requirements: usize,

    /// `version`: how often an innermost loop has to take its back edge at least, if that is known. 8: a loop that runs less often
    /// is better unrolled.
    pub version_min_iterations: usize,

    /// `split_iterations`: the most instructions, without constants and jumps, of a loop that becomes two, times the versions that there are of it
    /// already. 50, as for `unswitch`.
    pub split_iterations_max_insts: usize,

    /// `split_iterations`: how many iterations have to be on the first side of the branch at least, if that is known, and in the loop. 16: the first few are
    /// taken out by `peel`, and short loops are unrolled.
    pub split_iterations_min_iterations: usize,

    /// `partial_unroll`: the most iterations at a time. 4, as in V8.
    pub partial_unroll_max_iterations: usize,

    /// `partial_unroll`: how often a loop has to run at least, if that is known. 16: what runs less often and is small is unrolled, and two loops in place
    /// of one change which registers the rest of the function has (`tables` in Wasmtime took 1.08 for two loops of 14 iterations).
    pub partial_unroll_min_iterations: usize,

    /// `partial_unroll`: the most instructions, without constants and jumps, of all iterations of the unrolled loop. 64: with 100 instead, no program of 50
    /// from simple front ends is faster (geometric mean 0.901 with 64, 0.900 with 100; `loopopt-wasmtime bench`), and code is larger.
    pub partial_unroll_max_insts: usize,

    /// `partial_unroll`: the most instructions, without constants and jumps, of all iterations of an unrolled loop in which each iteration keeps its tests. 32:
    /// four iterations of a search or a copy. `string-length` takes 0.23 of Cranelift's time, and 0.54 without; `early-exit` 0.64 and 0.93 (`jit-harness bench
    /// --quick --filter`). The code of `sql.js` is 1.048 of that without loopopt, and was 1.037.
    pub partial_unroll_max_uncounted_insts: usize,

    /// `partial_unroll`: the most instructions of all iterations of an unrolled loop, with its cold blocks and what is no machine code. 1,000, as for `full_unroll`.
    pub partial_unroll_max_copied: usize,

    /// `reassociate`: how many instructions a processor starts in a cycle, as far as the cycles are counted that an iteration takes anyway. 8: with 4
    /// instead, `sum` takes 0.431 of Cranelift's time and not 0.218, `wasm-sum` 0.381 and not 0.302; with 64, `quads` takes 0.450 and not
    /// 0.383, whose iterations do not wait for each other (`jit-harness bench --quick`).
    pub reassociate_insts_per_cycle: usize,

    /// `strip_mine`: a loop with a counted strip is left unchanged if it is known, of fuel, or recorded to have fewer iterations. 8: the outer loop, and the count of the
    /// strip, take some instructions each time that the loop is entered (`nests` in Wasmtime takes 1.068 of its time with strips for 2 iterations, 0.811 without).
    pub strip_mine_min_iterations: usize,

    /// `strip_mine`: with fuel, the iterations, that of the last test included, that a loop has to have which is one strip. 5: in Wasmtime, `life-o1` takes 0.589 of its
    /// time and not 0.817 without strips for 3, `chacha20-o1` 0.787 and not 0.810 without those for 4. With 9, `convolve-o1` takes 0.772 and not 0.634, `sha256-o0`
    /// 0.686 and not 0.633 (busy).
    pub strip_mine_min_whole: usize,

    /// `strip_mine`: the most fuel that an iteration takes, all inner loops with it, for these to poll no more, and all iterations of a nest that is one strip. 1,000: an
    /// inner loop that takes more polls seldom, and where a program yields after some ten thousand, there is fuel for a strip nearly always. In Wasmtime, `life-o0` takes 0.53
    /// of its time with fuel and not 0.80 without nests.
    pub strip_mine_max_nest_fuel: usize,

    /// `widen_indices`: the most loads and stores of a loop that are looked at. 250, as for `promote`.
    pub widen_indices_max_accesses: usize,

    /// `widen_indices`: in a loop with a cold call, in which more lives than the call preserves, the fewest instructions that have to be removed for
    /// each base that is new. 3: a base that gets no preserved register is loaded and stored in each iteration. With epochs (in Wasmtime),
    /// `floyd-warshall-o0` saves 5 instructions with 3 bases and takes 1.19 of its time, 1.13 with what 3 leaves, and 1.01 with no base;
    /// `stencil3d-o2` saves 10 with 1 base and takes 0.88, 1.01 without, `convolve-o2` 0.77, 0.99 without. Higher limits are not measured.
    pub widen_indices_min_saved_per_base: usize,

    /// `widen_indices`: how often the accesses of one loop may ask what was compared before them. 4: most indices that are known not to
    /// wrap start and end at constants, for which nothing has to be asked, and most of the others are pointers that were loaded.
    pub widen_indices_max_questions: usize,

    /// All passes that copy loops: the most instructions that a function may come to have by that. 20,000: a function of this
    /// size takes Cranelift about 30 ms, and those written by people stay far below.
    pub max_function_insts: usize,

    /// What only the author of the compiler knows. By default nothing but what CLIF says.
    pub embedder: Arc<dyn Embedder>,

    /// `promote`: the most loads and stores of a loop that is looked at. 250, as LLVM's `licm-mssa-max-acc-promotion`.
    pub promote_max_accesses: usize,

    /// `promote`: the most pairs of addresses of a loop that are compared, without those that differ by a constant only and those that were
    /// compared for another loop. 2,000: a pair takes 0.25 µs, so that this is a tenth of what Cranelift takes for a loop of 240
    /// accesses, and 40 addresses of which no two overlap are proved disjoint; there are registers for fewer.
    pub promote_max_pairs: usize,

    /// `save_at_cold_calls`: the most rare parts of one loop that call and come back, and half of the most in one function. 32: each takes code of its own
    /// for all that lives across, and Cranelift 70 to 110 µs more to lower it, four times as long as without. In a function, the time for each grows with their number: 50 small loops of 5
    /// each take 87 times as long as Cranelift's without a limit.
    pub save_at_cold_calls_max_calls: usize,

    /// `save_at_cold_calls`: the most values that are saved in one function, each at each of the calls that it may live across. 512: 64 calls with 8 values each. Without a limit, a loop with 32
    /// such calls and 100 values that are loaded before and used after them takes 76 times as long as Cranelift, and becomes 29 times as long.
    pub save_at_cold_calls_max_saved: usize,

    /// Arguments that `canon` may add to edges so that values leave loops through parameters: above that the function is left
    /// unchanged. 1,000,000: each value needs one at each exit that leads to a use of it, which is the only thing here that can
    /// grow with the square of the function.
    pub max_closing_args: usize,

    /// Loops with a `br_table` in each iteration, on what they compute, are skipped if more edges than this lead back to the header. 4: the
    /// functions of a Go program are such loops. `esbuild` compiles in 1.21 of Cranelift's time if none is skipped, in 1.01 with 2, 1.00
    /// with 4, 1.09 with 8 (`loopopt-wasmtime compile-time`, busy); and bytecode interpreters took 0.92 to 1.29 of their time.
    pub select_max_dispatched: usize,

    /// Loops that call in each iteration and have at most this many instructions for each of these calls are skipped. 16: with 32, programs
    /// that call short functions become slower (`as-matrix-o2` 0.95 to 1.00 of their time, `png-filter-o0` 0.90 to 0.94), with 8 nothing becomes
    /// faster. It skips the loops of one in eight functions of `sql.js` that have any.
    pub select_max_insts_per_call: usize,

    /// Loops with more instructions of their own, those of inner loops not counted, are skipped. 4,000: with 1,000, `md5-o2` and others whose
    /// rounds are written out lose what they gained (0.91 to 0.96). The interpreter loop of `sql.js` has 20,000.
    pub select_max_own_insts: usize,

    /// Functions with more instructions get the passes of [`Effort::Quick`], one round of them: most of their loops are seldom run, and time
    /// grows with loops times passes. 2,500: no program of `bench-programs` has a larger function than 2,323. 20
    /// functions of `sql.js` have more, which took 45 % of loopopt's time there: of what `callgrind` counts, the limit leaves 75 %.
    pub full_effort_max_insts: usize,

    /// The passes that are not those of [`Effort::Quick`] leave a loop with more instructions of its own than this unchanged if it calls often
    /// ([`full_effort_min_insts_per_call`](Self::full_effort_min_insts_per_call)). 64: loops with checks and a rare call are smaller.
    pub full_effort_min_insts: usize,

    /// Such a loop calls often if it has at most this many instructions for each call in a block that is not cold. 32: three fifths of the code in
    /// loops of `sql.js` are like that. The passes take 13 % fewer instructions there, and code is 1.035 of Cranelift's and not 1.045. The code of 9 of
    /// 189 modules of `bench-programs/wasm` changes, and none becomes slower. With 64 instructions it would be 6 % fewer again.
    pub full_effort_min_insts_per_call: usize,

    /// Loops in a function above which it stays as it is. 100,000: all work is linear in the size of the function, so
    /// this only bounds memory.
    pub max_loops: usize,
}

impl Options {
    /// The settings for this effort.
    pub fn effort(effort: Effort) -> Self {
        match effort {
            Effort::Quick => Self::default().quick(),
            Effort::Default => Self::default(),
            Effort::Full => Self {
                unswitch_max_insts: 100,
                version_max_insts: 600,
                version_max_requirements: 32,
                partial_unroll_max_insts: 100,
                peel_max_insts: 200,
                full_effort_max_insts: 20_000,
                full_effort_min_insts_per_call: 0,
                ..Self::default()
            },
        }
    }

    /// These settings, with only the passes of [`Effort::Quick`], beside those that always run.
    pub(crate) fn quick(self) -> Self {
        const PASSES: [&str; 12] = [
            "mem2reg",
            "thread_jumps",
            "rotate",
            "licm",
            "promote",
            "if_convert",
            "partial_unroll",
            "reassociate",
            "tail_duplicate",
            "layout",
            "order_latch",
            "split_latch",
        ];
        let passes = PASSES.into_iter().filter(|name| self.enables(name)).map(str::to_owned).collect();
        Self { passes: Some(passes), max_rounds: 1, ..self }
    }

    /// How many instructions `func` has, if these are more than [`full_effort_max_insts`](Self::full_effort_max_insts) allows.
    pub(crate) fn too_many_insts(&self, func: &Function) -> Option<usize> {
        let max = self.full_effort_max_insts;
        if self.ignore_cost || func.dfg.num_insts() <= max {
            return None;
        }
        Some(num_insts(func)).filter(|&insts| insts > max)
    }

    /// Settings for tests: ignore cost, and do each legal rewrite or not at random. The same seed does the same to the same
    /// functions in the same order. A second run may find more to do.
    pub fn stress(seed: u64) -> Self {
        Self { stress_seed: Some(seed), ignore_cost: true, ..Self::default() }
    }

    /// A text that is another if the code may be: the version of loopopt, with a hash of its sources, that of Cranelift, and all settings that change
    /// code. For the keys of caches of compiled code, beside what says which ISA and which input the code is for.
    ///
    /// The same settings have the same text in all processes and on all machines. Of two texts that differ the code may still be the
    /// same. What the [`Embedder`] says is in it as far as [`Embedder::fingerprint`] says it.
    ///
    /// ```
    /// use loopopt::Options;
    ///
    /// assert_eq!(Options::default().fingerprint(), Options::default().fingerprint());
    /// assert_ne!(Options::default().fingerprint(), Options::for_size().fingerprint());
    /// ```
    pub fn fingerprint(&self) -> String {
        // All settings are in what is printed for debugging, those that are still to come too.
        let mut changing = Self { refusals: true, verify_each_pass: false, dumps: false, ..self.clone() };
        changing.embedder = Arc::new(Unknown);
        let [ours, sources, theirs] = [env!("CARGO_PKG_VERSION"), env!("LOOPOPT_SOURCES"), cranelift_codegen::VERSION];
        format!("loopopt {ours} {sources}, cranelift {theirs}, {}, {changing:?}", self.embedder.fingerprint())
    }

    /// Whether the pass of this name may fire.
    pub(crate) fn enables(&self, pass: &str) -> bool {
        self.passes.as_ref().is_none_or(|passes| passes.iter().any(|name| name == pass))
    }
}
