//! What passes are good for, in words.

/// What it is good for that a pass fired, each sentence after the name of the pass.
const GAINS: &[&str] = &[
    "forward_select_load: the value is selected from two that are loaded already, and is not loaded again from an address that has \
     to be selected first",
    "propagate_equality: a condition that a branch has decided is a constant. It is not kept as a value beside the flags of the \
     processor",
    "mem2reg: variables that were stored and loaded again at each use are in registers, as far as there are enough, and \
     what other passes can find out about values they can find out about these too",
    "rotate: the loop tests at its end, so an iteration has one jump where it had two. A first test decides whether \
     the loop runs at all: values that are computed before the loop are computed only if it runs",
    "elide_checks: a check that the tests before it imply cannot fail. It is removed, and the code after it is free to move",
    "guard_to_trap: an access does not wait for a guard to select its address. After a check that traps, the condition of the \
     check is known to hold",
    "licm: a value that is the same in each iteration is computed once, before the loop, and is kept in a register. A \
     check that is done before the loop is not repeated in it",
    "unswitch: an invariant branch is decided once, before the loop; each of its arms has a loop of its \
     own, which does nothing for the others",
    "version: one test before the loop, of first and last values, takes the place of a check in each iteration. If it fails, \
     the loop runs as it was, with its checks, so that it traps where it did. Without the checks, loads and stores of the \
     fast loop are free to move; addresses that do not wrap have one base for all that lies next to each other",
    "record_profile: the loop counts what it does, for the next compilation",
    "apply_profile: what hardly ever ran when the profile was recorded is cold, and hinders nothing",
    "specialize: where the values are those that were recorded, the loop knows them: divisions become shifts or multiplications, and \
     short inner loops are unrolled. One test before the loop says which version runs",
    "strip_mine: the loop polls once before many iterations, and these run without a call",
    "fuse_exit_tests: one test ends the strip and the loop, so that a counter of the strip is not needed",
    "consolidate_guards: one Spectre guard protects all accesses near one address",
    "transfer: an iteration that needs the rare part is finished in a copy, and the loop is entered again. What only the rare \
     part changes is read once in between",
    "split_iterations: a branch that changes its direction once is decided by the test that ends the first loop; a second loop does the \
     remaining iterations",
    "widen_indices: an index is counted and added up in 64 bits, as the machine adds it up in an address, so that nothing is extended \
     in each iteration",
    "promote: an iteration does not wait until the value that the one before has stored is loaded again. If the store has left \
     the loop, too, memory is written only at the end",
    "sink: what only one exit of the loop uses, or only a rare block, is computed there and not in each iteration",
    "full_unroll: the iterations are placed one after the other, so nothing counts them, and what depends on the count alone is \
     constant",
    "partial_unroll: several iterations share one jump and one step of each counter. If the loop is counted, they also share one test, \
     and the original loop does the iterations that remain",
    "if_convert: a branch that depends on data is often predicted wrongly, which costs as much as twenty instructions; a choice of values \
     costs one",
    "load_elimination: what an iteration has loaded or stored stays in a register until it, or the next one of its group, needs it",
    "reassociate: the values that an iteration adds are combined before they are added to the sum, so that an iteration waits for \
     one operation of the one before",
    "thread_jumps: a condition that is known on a path to its test is not tested on that path, and its operands need not be merged",
    "gvn_sink: a value that all paths to the back edge compute in the same way is computed once, so that the counter of the loop is recognized",
    "hoist_header_stores: an iteration starts with its poll, which need not be in each iteration then",
    "final_values: what the loop would count up is computed at once, from how often it would run; a loop without effect takes no \
     time at all",
    "peel: the first iterations are placed before the loop. What they have checked, loaded or computed for all others is not \
     done again",
    "extend_loads: a number of 8, 16 or 32 bits that is loaded is extended by the load itself, and not once more for each use as an \
     index",
    "tail_duplicate: each path through the loop ends in a test of its own, and not in a jump to a common one",
    "layout: the code of the loop is in one piece, and goes on without a jump as long as the loop does",
    "order_latch: the old value is not needed any more when the new one is made, so both can be in the same register, \
     and no iteration moves one to the other",
    "save_at_cold_calls: values that live across a call that hardly ever runs are saved at the call, and stay in registers everywhere else",
    "split_at_cold_edges: a float of the loop can be in a register, even if it is passed to or from rare code that makes calls",
    "split_live_ranges: what a loop without calls uses is loaded where the loop is entered, and not in each iteration",
    "split_latch: a load is an operand of the instruction that uses it",
];

/// What it is good for that a pass fired.
pub(in crate::command) fn gain(pass: &str) -> Option<&'static str> {
    GAINS.iter().copied().find(|gain| gain.split_once(':').is_some_and(|(name, _)| name == pass))
}
