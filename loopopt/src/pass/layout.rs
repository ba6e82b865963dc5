//! Order the operands of branches so that the machine code of loops is laid out well.
//!
//! ```text
//! brif v1, block3, block9     ──►    brif v2, block9, block3      (block9 leaves the loop, v2 is the inverse of v1)
//! ```
//!
//! Cranelift places blocks in reverse postorder of the dominator tree's traversal, in which the first operand of a `brif`
//! comes last and the second follows at once (`dominator_tree.rs`, "tends to prioritize loop backedges over out-edges").
//! So the exit has to be the first operand, or the code after the loop, and all that follows it, is put between the
//! blocks of the loop, and the register allocator takes it for a part of the loop. For a latch it is the other way round:
//! with the header first, moves on the back edge leave it one jump.
//!
//! Where an exit enters a block that other edges enter too, the moves of its arguments need a block, and Cranelift puts that one right after the branch
//! (`machinst/blockorder.rs`): the loop jumps over it in each iteration. So the exit gets a block of its own here, which is placed after the loop.
//!
//! # Needs
//!
//! Nothing.
//!
//! # Legal when
//!
//! (L1) The condition can be inverted: an integer or float comparison, by the opposite comparison (for
//! floats the one that is true for unordered operands where the first is false), or any other integer up to 64 bits, by a
//! comparison with zero. A block on an edge does nothing but jump.
//!
//! # Pays when
//!
//! A `brif` of a loop has one edge out of its innermost loop, in the wrong place, or one that passes values to a block that others enter. (P1) Not so many edges leave the loop that it takes
//! its time elsewhere, and what is at the end of one is better near the branch.
//!
//! # Changes
//!
//! Instructions, and by them the order of the dominator tree. Edges that leave loops are split.
//!
//! # Not done
//!
//! Branches with both targets inside the loop: which is likelier, nobody says. Cold blocks need nothing:
//! Cranelift moves those to the end.

use crate::analysis::cfg::edges::{Edge, count_uses, edges_from, only_edge_into};
use crate::analysis::cfg::jumps::jump_target;
use crate::analysis::cfg::jumps::only_jumps_to;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::change::Change;
use crate::edit::cfg::split_edges::split;
use crate::fault::fault;
use crate::pass::{Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::condcodes::{CondCode, FloatCC, IntCC};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef, types};
use cranelift_codegen::{CodegenResult, Context};

/// The name of this pass.
pub(crate) const NAME: &str = "layout";

/// The pass.
pub(crate) const PASS: Pass = Pass { name: NAME, run, reasons: &[Decline::REASONS], claims: &[], ..Pass::OPTIONAL };

/// Puts all branches of loops in order.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let branches = misplaced(ctx, &cx.forest(ctx));
    let mut change = Change::Nothing;
    let mut uses = None;
    for Misplaced { header, branch, what, exits } in branches {
        let max = cx.options.layout_max_exits;
        if exits > max && !cx.options.ignore_cost {
            cx.declined(&ctx.func, NAME, header, &Decline::TooManyExits { exits, max });
            continue;
        }
        match Inversion::prove(&ctx.func, branch) {
            Ok(inversion) if cx.fuel.take() => {
                let block = ctx.func.layout.inst_block(branch).expect("a branch is in the layout");
                let message = format!("{what} in {block} is placed after the loop");
                cx.fired(&ctx.func, &PASS, header, message);
                let uses = uses.get_or_insert_with(|| count_uses(&ctx.func));
                inversion.apply(&mut ctx.func, branch, uses);
                change = Change::Order;
            }
            Ok(_) => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
            Err(why) => cx.declined(&ctx.func, NAME, header, &why),
        }
    }
    for (header, edges) in inline_exits(ctx, cx) {
        let mut split_now = 0;
        for edge in edges {
            if !cx.fuel.take() {
                cx.declined(&ctx.func, NAME, header, &Decline::Withheld);
                break;
            }
            split(&mut ctx.func, edge);
            split_now += 1;
        }
        if split_now > 0 {
            let message = format!("the moves of its exits ({split_now}) are placed after the loop");
            cx.fired(&ctx.func, &PASS, header, message);
            change = Change::Cfg;
        }
    }
    Ok(change)
}

/// The exits of each loop that pass values to a block that others enter, too. Loops with very many are left out.
fn inline_exits(ctx: &Context, cx: &mut PassCx<'_>) -> Vec<(Block, Vec<Edge>)> {
    let (func, forest) = (&ctx.func, cx.forest(ctx));
    let is_hot = |block| !func.layout.is_cold(block);
    let is_inline = |edge: &Edge| {
        let (source, target) = (edge.source(func), edge.target(func));
        let moves = func.dfg.insts[edge.branch].opcode() == Opcode::Brif && edge.args(func).len() > 0;
        moves && is_hot(source) && is_hot(target) && ctx.cfg.pred_iter(target).nth(1).is_some()
    };
    let mut found = Vec::new();
    for lp in forest.loops() {
        if forest.data(lp).exits.len() > cx.options.layout_max_exits && !cx.options.ignore_cost {
            continue;
        }
        // Edges have changed places since the loops were found.
        let edges = forest.own_blocks(lp).flat_map(|block| edges_from(func, block));
        let exits = edges.filter(|edge| !forest.contains(lp, edge.target(func)));
        let edges: Vec<_> = exits.filter(is_inline).collect();
        if !edges.is_empty() {
            found.push((forest.data(lp).header, edges));
        }
    }
    found
}

/// A branch with its targets in the wrong order.
struct Misplaced {
    /// The header of the loop that it is about.
    header: Block,
    branch: Inst,
    /// What is in the wrong place.
    what: &'static str,
    /// How many edges leave the loop.
    exits: usize,
}

fn misplaced(ctx: &Context, forest: &LoopForest) -> Vec<Misplaced> {
    let func = &ctx.func;
    let mut found = Vec::new();
    for lp in forest.loops() {
        let header = forest.data(lp).header;
        let exits = forest.data(lp).exits.len();
        for block in forest.own_blocks(lp) {
            let Some((branch, [first, second])) = two_targets(func, block) else { continue };
            let (first_stays, second_stays) = (forest.contains(lp, first), forest.contains(lp, second));
            // A latch that only gathers several back edges stands for the header.
            let is_header = |block| block == header || only_jumps_to(func, block) == Some(header);
            let latch_is_wrong = !first_stays && second_stays && is_header(second);
            let exit_is_wrong = first_stays && !second_stays && !is_header(first);
            if latch_is_wrong || exit_is_wrong {
                found.push(Misplaced { header, branch, what: "the exit of the loop", exits });
            }
        }
        if let Some(branch) = misplaced_guard(ctx, forest, lp) {
            found.push(Misplaced { header, branch, what: "the edge that skips the loop", exits });
        }
    }
    found
}

/// The branch that enters the preheader alone, if the preheader is its first target.
fn misplaced_guard(ctx: &Context, forest: &LoopForest, lp: Loop) -> Option<Inst> {
    let preheader = forest.preheader(&ctx.func, lp)?;
    let guard = only_edge_into(&ctx.func, &ctx.cfg, preheader)?.source(&ctx.func);
    let (branch, [first, second]) = two_targets(&ctx.func, guard)?;
    // A branch that leaves a loop, by either edge, is not a guard but an exit. One with a loop at the end of each edge has no
    // better order.
    let around = forest.innermost(guard);
    let enters_loop = jump_target(&ctx.func, second).is_some_and(|next| forest.loop_of_header(next).is_some());
    let is_guard = around == forest.innermost(preheader)
        && around.is_none_or(|around| forest.contains(around, second))
        && !enters_loop;
    (first == preheader && is_guard).then_some(branch)
}

/// The `brif` that ends `block`, and its targets.
fn two_targets(func: &Function, block: Block) -> Option<(Inst, [Block; 2])> {
    let branch = func.layout.last_inst(block)?;
    if func.dfg.insts[branch].opcode() != Opcode::Brif {
        return None;
    }
    let [first, second] = [0, 1].map(|slot| Edge { branch, slot }.target(func));
    Some((branch, [first, second]))
}

/// How the condition of a branch becomes its opposite.
enum Inversion {
    Int { compare: Inst, opposite: IntCC, args: [Value; 2] },
    Float { compare: Inst, opposite: FloatCC, args: [Value; 2] },
    IsZero(Value),
}

impl Inversion {
    fn prove(func: &Function, branch: Inst) -> Result<Self, Decline> {
        let condition = func.dfg.inst_args(branch)[0];
        let ty = func.dfg.value_type(condition);
        if let ValueDef::Result(compare, _) = func.dfg.value_def(condition) {
            match func.dfg.insts[compare] {
                InstructionData::IntCompare { opcode: Opcode::Icmp, cond, args } if ty == types::I8 => {
                    let opposite = cond.complement();
                    let opposite = if fault!(OffByOneTest) { opposite.without_equal() } else { opposite };
                    return Ok(Self::Int { compare, opposite, args });
                }
                InstructionData::FloatCompare { opcode: Opcode::Fcmp, cond, args } if ty == types::I8 => {
                    let opposite = if fault!(ForgottenNan) { ordered_opposite(cond) } else { cond.complement() };
                    return Ok(Self::Float { compare, opposite, args });
                }
                data if matches!(data.opcode(), Opcode::VallTrue | Opcode::VanyTrue) => {
                    return Err(Decline::VectorTest);
                }
                _ => {}
            }
        }
        if ty.is_int() && ty.bits() <= 64 { Ok(Self::IsZero(condition)) } else { Err(Decline::WideCondition) }
    }

    /// Swaps the targets of `branch`. A comparison that served this branch alone is replaced.
    fn apply(self, func: &mut Function, branch: Inst, uses: &mut SecondaryMap<Value, u32>) {
        let old = func.dfg.inst_args(branch)[0];
        let mut cursor = FuncCursor::new(func).at_inst(branch);
        let (new, compare) = match self {
            Self::Int { compare, opposite, args: [x, y] } => (cursor.ins().icmp(opposite, x, y), Some(compare)),
            Self::Float { compare, opposite, args: [x, y] } => (cursor.ins().fcmp(opposite, x, y), Some(compare)),
            Self::IsZero(value) => {
                let ty = cursor.func.dfg.value_type(value);
                let zero = cursor.ins().iconst(ty, 0);
                (cursor.ins().icmp(IntCC::Equal, value, zero), None)
            }
        };
        func.dfg.inst_args_mut(branch)[0] = if fault!(NotInverted) { old } else { new };
        uses[new] = 1;
        uses[old] -= 1;
        if let Some(compare) = compare.filter(|_| uses[old] == 0) {
            func.layout.remove_inst(compare);
        }
        if let InstructionData::Brif { blocks, .. } = &mut func.dfg.insts[branch] {
            blocks.swap(0, 1);
        }
    }
}

/// A fault: what would be the opposite if there were no NaN.
fn ordered_opposite(cond: FloatCC) -> FloatCC {
    match cond {
        FloatCC::LessThan => FloatCC::GreaterThanOrEqual,
        FloatCC::LessThanOrEqual => FloatCC::GreaterThan,
        FloatCC::GreaterThan => FloatCC::LessThanOrEqual,
        FloatCC::GreaterThanOrEqual => FloatCC::LessThan,
        other => other.complement(),
    }
}

refusals! {
    /// Why a branch keeps its order.
    enum Decline {
        /// (L1) A test of all lanes of a vector branches on flags that an inversion would have to materialize.
        VectorTest => "vector-test", "the branch tests the lanes of a vector",
            help "make the exit of the loop the first operand of the brif";
        /// (L1) The condition is wider than 64 bits.
        WideCondition => "wide-condition", "the condition of the branch is wider than 64 bits",
            help "make the exit of the loop the first operand of the brif";
        /// (P1) Too many edges leave the loop.
        TooManyExits { exits: usize, max: usize } => "too-many-exits", "{exits} edges leave the loop, more than {max}",
            help "raise Options::layout_max_exits if the loop is hot";
    }
    shared { Withheld }
}
