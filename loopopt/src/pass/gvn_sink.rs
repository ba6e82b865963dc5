//! Sinking of equal values: what all edges into a latch compute alike is computed in the latch.
//!
//! ```text
//! block3:                             block3:
//!     v5 = iadd v2, 1                     jump block5
//!     jump block5(v5)             ──► block4:
//! block4:                                 jump block5
//!     v6 = iadd v2, 1                 block5:
//!     jump block5(v6)                     v7 = iadd v2, 1
//! block5(v7: i64):                        jump block1(v7)
//!     jump block1(v7)
//! ```
//!
//! A front end with `continue` steps the counter on each path back, and Cranelift's egraph pass computes `i + 1` on each of them, even if the front end had
//! one block for it: a pure value is placed where it is used. Nobody sees that such a parameter is a counter. As one operation it is, and the loop is counted.
//!
//! # Needs
//!
//! Canonical form: one latch, which gathers the paths back.
//!
//! # Legal when
//!
//! (L1) On each edge into the latch, the block argument is the result of a pure instruction, the same with the same operands, or with constants that
//! are the same numbers. It does not matter when that is computed. Operands that are the same on all edges dominate the sources of all edges, and so the latch;
//! constants are rematerialized. A parameter of a block that one edge enters, as values have that leave an inner loop, stands for what that edge passes: both
//! dominate what comes after the block. (L2) No operand is a value of an inner loop, which may be used there only, or be passed as a block argument.
//!
//! # Pays when
//!
//! (P1) A parameter of the header is an operand: then it may be a counter. There is one instruction less on each path, and one more after them, and
//! no move. (P2) Nothing else uses the block argument, such as a test at the end of a path. (P3) No table picks one of many paths: each of them can go straight to the
//! header, as long as the latch does nothing.
//!
//! # Changes
//!
//! Instructions and parameters. No block and no edge.
//!
//! # Not done
//!
//! Several instructions in a row; other blocks than latches.
//!
//! # References
//!
//! LLVM `GVNSink`, and `InstCombine` (`foldPHIArgOpIntoPHI`).

use crate::analysis::cfg::edges::{Edge, count_uses, passed_alone};
use crate::analysis::cfg::loops::{Loop, LoopForest, def_block};
use crate::analysis::inst::effects::{Effects, is_constant};
use crate::analysis::inst::number::constant_of;
use crate::change::Change;
use crate::claim::{Claim, is_marked};
use crate::edit::inst::clone::repeat_before;
use crate::edit::inst::rename::Replaced;
use crate::edit::materialize::assertion::assert_equal;
use crate::edit::materialize::dce::remove_unused;
use crate::edit::materialize::neighbours::needs_neighbours;
use crate::edit::ssa::params::keep_params;
use crate::fault::fault;
use crate::pass::{Form, Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, Value, ValueDef};
use cranelift_codegen::{CodegenResult, Context};
use std::cell::OnceCell;

/// The name of this pass.
pub(crate) const NAME: &str = "gvn_sink";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS],
    claims: &[Claim::SameResult],
    needs: Form::Canonical,
    ..Pass::OPTIONAL
};

/// Does it in all latches. Linear in the size of the function, for each latch that it changes.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let forest = cx.forest(ctx);
    let (mut unused, mut uses) = (Vec::new(), OnceCell::new());
    for lp in forest.loops() {
        let header = forest.data(lp).header;
        let Some(latch) = Latch::find(ctx, &forest, lp).filter(|_| cx.marks.has_full_effort(header)) else { continue };
        let mut same = latch.same(ctx, &forest, lp);
        let why = latch.judge((ctx, &uses), cx, (&forest, lp), &mut same);
        match why {
            Some(why) => cx.declined(&ctx.func, NAME, header, &why),
            None if !cx.fuel.take() => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
            None => {
                cx.retract(NAME, header);
                cx.fired(&ctx.func, &PASS, header, describe(latch.edges.len(), same.len()));
                latch.apply(&mut ctx.func, &same, &mut unused);
                uses.take();
            }
        }
    }
    if unused.is_empty() {
        return Ok(Change::Nothing);
    }
    remove_unused(&mut ctx.func, unused);
    Ok(Change::Insts)
}

fn describe(edges: usize, values: usize) -> String {
    let what = if values == 1 { "a value".into() } else { format!("{values} values") };
    format!("{what} computed alike on {edges} back edges: computed once, in the latch")
}

/// A latch that several edges enter.
struct Latch {
    block: Block,
    edges: Vec<Edge>,
}

impl Latch {
    fn find(ctx: &Context, forest: &LoopForest, lp: Loop) -> Option<Self> {
        let func = &ctx.func;
        let block = forest.latch(func, lp).filter(|&latch| latch != forest.data(lp).header)?;
        let edges = forest.edges_into(func, &ctx.cfg, block);
        let has_params = func.dfg.num_block_params(block) > 0;
        (has_params && edges.len() > 1).then(|| Self { block, edges: edges.to_vec() })
    }

    /// The places of parameters that are the same on each edge, with an instruction that computes it on one of them.
    fn same(&self, ctx: &Context, forest: &LoopForest, lp: Loop) -> Vec<(usize, Inst)> {
        let func = &ctx.func;
        let header = forest.data(lp).header;
        let places = 0..func.dfg.num_block_params(self.block);
        let computed = places.filter_map(|index| Some((index, self.computed(ctx, header, index)?)));
        let is_from_inside = |&value: &Value| {
            let inner = def_block(func, value).and_then(|block| forest.innermost(block));
            inner.is_some_and(|inner| !forest.contains(inner, self.block))
        };
        computed.filter(|&(_, inst)| !func.dfg.inst_args(inst).iter().any(is_from_inside)).collect()
    }

    /// The instruction that computes what each edge passes at this place.
    fn computed(&self, ctx: &Context, header: Block, index: usize) -> Option<Inst> {
        let func = &ctx.func;
        let passed = |edge: &Edge| {
            let inst = func.dfg.value_def(passed_by(ctx, *edge, index).last()?).inst()?;
            let is_movable =
                Effects::of(func, inst).is_pure() && !is_constant(func, inst) && !needs_neighbours(func, inst);
            (is_movable && func.dfg.inst_results(inst).len() == 1).then_some(inst)
        };
        let first = passed(&self.edges[0])?;
        let is_carried = |&arg: &Value| matches!(func.dfg.value_def(arg), ValueDef::Param(home, _) if home == header);
        let is_same =
            |edge: &Edge| passed(edge).is_some_and(|other| is_same(func, first, other) || fault!(FirstWayDecides));
        (func.dfg.inst_args(first).iter().any(is_carried) && self.edges[1..].iter().all(is_same)).then_some(first)
    }

    /// Why nothing of `same` is computed in the latch. Leaves there what is worth it. `uses` are counted if they matter.
    fn judge(
        &self,
        (ctx, uses): (&Context, &OnceCell<SecondaryMap<Value, u32>>),
        cx: &PassCx<'_>,
        (forest, lp): (&LoopForest, Loop),
        same: &mut Vec<(usize, Inst)>,
    ) -> Option<Decline> {
        if same.is_empty() {
            return Some(Decline::ValuesDiffer);
        }
        if cx.options.ignore_cost {
            return None;
        }
        let func = &ctx.func;
        let (paths, max) = (self.edges.len(), cx.options.rotate_max_dispatched);
        if paths > max && forest.own_blocks(lp).any(|block| forest.dispatches_at(func, lp, block)) {
            return Some(Decline::DispatchLoop { paths, max });
        }
        let uses = uses.get_or_init(|| count_uses(func));
        let is_passed_only = |edge: &Edge, index| passed_by(ctx, *edge, index).all(|value| uses[value] == 1);
        same.retain(|&(index, _)| self.edges.iter().all(|edge| is_passed_only(edge, index)));
        same.is_empty().then_some(Decline::UsedBefore)
    }

    fn apply(&self, func: &mut Function, same: &[(usize, Inst)], unused: &mut Vec<Value>) {
        let mut replaced = Replaced::default();
        let before = func.layout.first_inst(self.block).expect("a latch jumps");
        let mut pairs = Vec::new();
        for &(index, inst) in same {
            let param = func.dfg.block_params(self.block)[index];
            let new = compute_before(func, inst, before);
            replaced.insert(param, new);
            pairs.push([param, new]);
            unused.extend(self.edges.iter().filter_map(|edge| edge.args(func).nth(index)?.as_value()));
        }
        replaced.apply(func);
        if is_marked(func) {
            pairs.into_iter().for_each(|pair| assert_equal(func, before, Claim::SameResult, pair));
            return;
        }
        let is_gone = |index| same.iter().any(|(gone, _)| *gone == index);
        let keeps: Vec<_> = (0..func.dfg.num_block_params(self.block)).map(|index| !is_gone(index)).collect();
        keep_params(func, (self.block, &self.edges), &keeps);
    }
}

/// What `edge` passes at this place, and then what each of these stands for, as parameters of blocks that one edge enters.
fn passed_by(ctx: &Context, edge: Edge, index: usize) -> impl Iterator<Item = Value> {
    /// Loops that a value leaves one after the other on its path to a latch.
    const MAX_STEPS: usize = 8;
    let func = &ctx.func;
    let passed = edge.args(func).nth(index).and_then(|arg| arg.as_value());
    std::iter::successors(passed, |&value| passed_alone(func, &ctx.cfg, value)).take(MAX_STEPS)
}

/// Computes what `inst` does right before `before`, where all of its operands are defined but constants.
fn compute_before(func: &mut Function, inst: Inst, before: Inst) -> Value {
    let args: Vec<_> = func.dfg.inst_args(inst).to_vec();
    let args: Vec<_> = args
        .into_iter()
        .map(|arg| match func.dfg.value_def(arg).inst().filter(|_| constant_of(func, arg).is_some()) {
            Some(constant) => repeat_before(func, constant, before),
            None => arg,
        })
        .collect();
    let new = repeat_before(func, inst, before);
    let inst = func.dfg.value_def(new).unwrap_inst();
    func.dfg.inst_args_mut(inst).copy_from_slice(&args);
    new
}

/// Whether both compute the same from the same operands.
fn is_same(func: &Function, one: Inst, other: Inst) -> bool {
    let dfg = &func.dfg;
    let ty = |inst| dfg.value_type(dfg.first_result(inst));
    let (args, others) = (dfg.inst_args(one), dfg.inst_args(other));
    if one == other {
        return true;
    }
    let is_same_number = |a: Value, b: Value| {
        let number = constant_of(func, a);
        number.is_some() && number == constant_of(func, b) && dfg.value_type(a) == dfg.value_type(b)
    };
    let are_same = args.len() == others.len() && args.iter().zip(others).all(|(&a, &b)| a == b || is_same_number(a, b));
    if !are_same || ty(one) != ty(other) {
        return false;
    }
    let mut data = dfg.insts[other];
    for (arg, &of) in data.arguments_mut(&mut Default::default()).iter_mut().zip(args) {
        *arg = of;
    }
    data == dfg.insts[one]
}

refusals! {
    /// Why the values of a latch are computed before it.
    enum Decline {
        /// (L1) The paths back compute different things.
        ValuesDiffer => "values-differ", "no next value is computed alike on all paths back to the header";
        /// (P2) It is needed before the latch, too.
        UsedBefore => "used-before", "a next value that is computed alike on all paths back is needed before they meet, too";
        /// (P3) A table picks one of many paths.
        DispatchLoop { paths: usize, max: usize } => "dispatch-loop",
            "a table picks one of {paths} paths back to the header, more than {max}, and nothing else makes them meet";
    }
    shared { Withheld }
}
