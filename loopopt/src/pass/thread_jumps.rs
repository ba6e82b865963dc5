//! Jump threading: an edge into a block that decides how the block branches goes straight to where it branches.
//!
//! ```text
//! block1:                                     block1:
//!     brif v1, block2, block3(0)                  brif v1, block2, block5
//! block2:                                     block2:
//!     jump block3(v2)              ──►            brif v2, block4, block5
//! block3(v3: i8):
//!     brif v3, block4, block5
//! ```
//!
//! A front end that makes values of `a && b` and `a || b` joins both paths and tests the result, and so does one that sets a flag and tests it next. The
//! header of `while (a && b)` does not leave the loop then, and nobody can tell how often that runs.
//!
//! # Needs
//!
//! Nothing. It runs before `canon`, which makes its form of what is left.
//!
//! # Legal when
//!
//! (L1) The edge decides the branch: by the constants that it passes, by what the branches on the only path to it have tested
//! ([`tested`](crate::analysis::facts::tested)), and by what the block computes from these. Nothing else is taken for known, so that nothing of an iteration
//! before is taken for one of this. (L2) The edge gets a copy of the block that jumps: the same instructions run, which may be copied, and where values of the
//! block are used after it, they [meet](crate::edit::ssa::repair) those of the copy. (L3) No Spectre guard sees another number, and the processor runs nothing that it could not run before: a path that a
//! mispredicted branch opens led through the block to the same place.
//!
//! # Pays when
//!
//! (P1) The block is small. Where it is after others that only jump, they are copied with it. (P2) Neither it nor the edge is cold. (P3) It enters no loop except at its header: a header is threaded only to where its loop is left, such as
//! from a back edge after `done = true`. All other blocks of a loop are entered from the loop alone, and so is what they branch to. (P4) A test that each iteration
//! makes, and that may end the loop, is what counts it: there the block argument of the edge has to decide. (P5) Not too many values of the block are used after it.
//!
//! # Changes
//!
//! Blocks and edges.
//!
//! # Not done
//!
//! Interpreters and automata, of which the next state is known at the end of each path: that would be a cycle with many entries.
//!
//! # References
//!
//! LLVM `JumpThreading.cpp`.

mod prove;

use crate::analysis::cfg::edges::{Edge, each_use};
use crate::analysis::cfg::loops::defined_in;
use crate::analysis::cfg::must_execute::Order;
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::TooManyParams;
use crate::edit::cfg::split_edges::retarget;
use crate::edit::cfg::unreachable::remove_unreachable;
use crate::edit::copy::copy_iterations::settle;
use crate::edit::inst::clone::{Copies, clone_blocks};
use crate::edit::materialize::assertion::assert_takes;
use crate::edit::materialize::dce::remove_unused;
use crate::edit::ssa::frontier::Levels;
use crate::edit::ssa::repair::Repair;
use crate::pass::{Form, Pass, PassCx, canon};
use crate::refusal::refusals;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::entity::packed_option::PackedOption;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value};
use cranelift_codegen::{CodegenResult, Context, FxHashMap};
use prove::{Look, Plan};
use std::collections::BTreeMap;

/// The name of this pass.
pub(crate) const NAME: &str = "thread_jumps";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS],
    claims: &[Claim::BranchTaken],
    copies: true,
    ..Pass::OPTIONAL
};

/// Values of blocks that may meet those of copies. 256: for each of them, the blocks between are walked through.
const MAX_MEETING: usize = 256;

/// How often it is tried again. 3: once one path sets no flag any more, the others may say what it is; more than that is a state.
const MAX_ROUNDS: usize = 3;

/// Threads all edges in loops where it pays. Linear in the size of the function.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    for _ in 0..MAX_ROUNDS {
        let mut plans = plan(ctx, cx);
        keep_small(ctx, cx, &mut plans);
        if plans.is_empty() || cx.gave_up {
            break;
        }
        thread(ctx, cx, plans)?;
        // What one edge enters now has other names for its block arguments.
        canon::merge_blocks(ctx, cx);
    }
    Ok(Change::Nothing)
}

/// Threads the edges of all plans.
fn thread(ctx: &mut Context, cx: &mut PassCx<'_>, mut plans: Vec<Plan>) -> CodegenResult<()> {
    for plan in &plans {
        cx.retract(NAME, plan.header);
        cx.fired(&ctx.func, &PASS, plan.header, plan.describe());
    }
    let homes = homes(&ctx.func, &plans);
    let conditions: Vec<_> = plans.iter().map(|plan| ctx.func.dfg.inst_args(plan.path.branch)[0]).collect();
    // Where one threaded block leads to another, the copy of the first one takes the edge that is threaded already.
    let order = Order::of(&ctx.func, &ctx.domtree);
    plans.sort_by_key(|plan| std::cmp::Reverse(order.position(plan.path.blocks[0])));
    let mut copies = FxHashMap::<Block, Vec<Copies>>::default();
    for (block, copied) in plans.iter().flat_map(|plan| plan.apply(&mut ctx.func)) {
        copies.entry(block).or_default().push(copied);
    }
    plans.iter().for_each(|plan| plan.settle_rest(&mut ctx.func));
    cx.invalidate(ctx, Change::Cfg);
    if repair(ctx, &homes, &copies) == Err(TooManyParams) {
        cx.gave_up = true;
    }
    remove_unreachable(ctx, cx.isa)?;
    let copied = conditions.iter().flat_map(|value| {
        let copies = homes[*value].expand().and_then(|home| copies.get(&home)).into_iter().flatten();
        copies.map(|copies| copies.value(*value))
    });
    remove_unused(&mut ctx.func, copied.chain(conditions.iter().copied()).collect());
    cx.invalidate(ctx, Change::Insts);
    cx.keep_form(Form::Any);
    Ok(())
}

fn plan(ctx: &Context, cx: &mut PassCx<'_>) -> Vec<Plan> {
    let forest = cx.forest(ctx);
    let mut plans = Vec::new();
    for lp in forest.loops() {
        let header = forest.data(lp).header;
        if cx.marks.is_left_alone(header) {
            continue;
        }
        let (mut refused, before) = (Decline::NothingDecided, plans.len());
        let look = Look { ctx, forest: &forest, lp };
        for block in forest.own_blocks(lp) {
            match look.prove(block, cx.options.thread_jumps_max_insts) {
                Ok(Some(plan)) if cx.fuel.take() => plans.push(plan),
                Ok(Some(_)) => refused = Decline::Withheld,
                Ok(None) => {}
                Err(why) => refused = why,
            }
        }
        if plans.len() == before && !cx.has_fired(NAME, header) {
            cx.declined(&ctx.func, NAME, header, &refused);
        }
    }
    plans
}

/// Leaves plans out so that no more than [`MAX_MEETING`] values meet.
fn keep_small(ctx: &Context, cx: &mut PassCx<'_>, plans: &mut Vec<Plan>) {
    if plans.is_empty() {
        return;
    }
    let homes = homes(&ctx.func, plans);
    let mut used = FxHashMap::<Block, usize>::default();
    for (home, _) in used_elsewhere(&ctx.func, &ctx.domtree, &homes).values() {
        *used.entry(*home).or_default() += 1;
    }
    let mut left = MAX_MEETING;
    plans.retain(|plan| {
        let meeting = plan.path.blocks.iter().map(|block| used.get(block).copied().unwrap_or(0)).sum();
        let rest = left.checked_sub(meeting);
        if rest.is_none() && !cx.has_fired(NAME, plan.header) {
            cx.declined(&ctx.func, NAME, plan.header, &Decline::TooManyValues(plan.path.last()));
        }
        left = rest.unwrap_or(left);
        rest.is_some()
    });
}

/// For each value that a block of a plan defines, the block.
type Homes = SecondaryMap<Value, PackedOption<Block>>;

/// The values that the blocks of `plans` define, with their blocks.
fn homes(func: &Function, plans: &[Plan]) -> Homes {
    let mut homes = Homes::new();
    for &block in plans.iter().flat_map(|plan| &plan.path.blocks) {
        for value in defined_in(func, block) {
            homes[value] = block.into();
        }
    }
    homes
}

/// Those of the values that are used in other blocks than theirs, with their block and what uses them.
fn used_elsewhere(func: &Function, domtree: &DominatorTree, homes: &Homes) -> BTreeMap<Value, (Block, Vec<Inst>)> {
    let mut used = BTreeMap::<Value, (Block, Vec<Inst>)>::new();
    for block in func.layout.blocks().filter(|&block| domtree.is_reachable(block)) {
        for inst in func.layout.block_insts(block) {
            each_use(func, inst, |value| {
                if let Some(home) = homes[value].expand().filter(|&home| home != block) {
                    let (_, users) = used.entry(value).or_insert_with(|| (home, Vec::new()));
                    if users.last() != Some(&inst) {
                        users.push(inst);
                    }
                }
            });
        }
    }
    used
}

/// Lets what is used after threaded blocks be that of the block, or of the copy that ran instead. `copies` are those of each block.
fn repair(ctx: &mut Context, homes: &Homes, copies: &FxHashMap<Block, Vec<Copies>>) -> Result<(), TooManyParams> {
    let mut levels = Levels::default();
    for (value, (home, users)) in used_elsewhere(&ctx.func, &ctx.domtree, homes) {
        let Context { func, cfg, domtree, .. } = &mut *ctx;
        let copied = copies.get(&home).into_iter().flatten();
        let copied = copied.map(|copies| (copies.block(home), copies.value(value)));
        let defs = copied.chain([(home, value)]).filter(|&(block, _)| domtree.is_reachable(block));
        Repair::new(func, (cfg, domtree), &mut levels, value, defs).run(&users)?;
    }
    Ok(())
}

impl Plan {
    fn describe(&self) -> String {
        let block = self.path.last();
        match self.threaded.len() {
            0 => format!("{block} always takes one edge"),
            1 => format!("an edge goes straight to where {block} would branch"),
            edges => format!("{edges} edges go straight to where {block} would branch"),
        }
    }

    /// Gives each edge a copy of the path that goes on to its successor. Returns the copies of each block. What a block uses of one after it is of another iteration,
    /// so they are copied one by one.
    fn apply(&self, func: &mut Function) -> Vec<(Block, Copies)> {
        let mut made = Vec::new();
        for &(edge, slot) in &self.threaded {
            let mut next = None;
            for &block in self.path.blocks.iter().rev() {
                let copies = clone_blocks(func, &[block]);
                let branch = func.layout.last_inst(copies.block(block)).expect("a copy of a terminator");
                match next.replace(copies.block(block)) {
                    Some(next) => retarget(func, Edge { branch, slot: 0 }, next),
                    None => {
                        assert_takes(func, branch, Claim::BranchTaken, slot);
                        settle(func, branch, slot);
                    }
                }
                made.push((block, copies));
            }
            retarget(func, edge, next.expect("a path has a block"));
        }
        made
    }

    /// Lets the block itself go on to the successor that all edges decide on, once no edge of its branch is looked for any more.
    fn settle_rest(&self, func: &mut Function) {
        if let Some(slot) = self.rest {
            assert_takes(func, self.path.branch, Claim::BranchTaken, slot);
            settle(func, self.path.branch, slot);
        }
    }
}

refusals! {
    /// Why no edge of a loop is threaded.
    enum Decline {
        /// (L1) No edge decides how the block that it enters branches.
        NothingDecided => "nothing-decided", "no edge decides how the block that it enters branches";
        /// (P1) The block is too large.
        TooLarge { block: Block, insts: usize, max: usize } => "too-large",
            "an edge decides how {block} branches, which holds {insts} instructions, more than {max}",
            help "raise Options::thread_jumps_max_insts, or test the condition before the rest";
        /// (P3) The path leads into a loop.
        EntersLoop(block: Block) => "enters-loop", "an edge decides how {block} branches, which is the header of a loop that it would enter elsewhere";
        /// (P4) The loop would no longer be counted by its test.
        EachIteration(block: Block) => "each-iteration", "an edge decides how {block} branches, where each iteration tests whether there is another one";
        /// (P5) Too many values would meet those of a copy.
        TooManyValues(block: Block) => "too-many-values",
            "an edge decides how {block} branches, and of the values that are used after it, too many would meet those of copies";
    }
    shared { NotDuplicable(opcode: Opcode), Withheld }
}
