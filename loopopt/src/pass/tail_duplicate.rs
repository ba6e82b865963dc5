//! Give each latch a test of its own.
//!
//! ```text
//!  block4:          block5:               block4:                      block5:
//!      …                …                     …                            …
//!      jump block6      jump block6           brif …, header, exit         brif …, header, exit
//!           \           /           ──►
//!            ▼         ▼
//!          block6:
//!              brif …, header, exit
//! ```
//!
//! Rotation puts one test after all latches. Where several blocks jump to it, each iteration takes two jumps, one to the
//! test and one back to the header; a loop that tests at the top takes one. With a copy of the test in each of these
//! blocks, rotated loops take one, too. A block that branches to the test gains nothing and keeps the shared one.
//!
//! # Needs
//!
//! Dedicated exits.
//!
//! # Legal when
//!
//! (L1) The test may be copied. Each path through the loop passes through the same instructions as before. Values of the
//! test are used after the loop only, since the header is not entered from the test alone, and there they become
//! parameters of the exit block.
//!
//! # Pays when
//!
//! (P1) The test is small, (P2) several edges enter it, of which at least one is a jump and not too many are, cold ones not counted,
//! and (P3) the loop is an innermost one: in others, the inner loops mostly take the time.
//!
//! Where one block jumps to the test and others branch to it, no jump is saved: the block would fall through. But each path
//! through the iteration has a branch of its own then, and what depends on data seems to be predicted otherwise, mostly better:
//! over the 25 programs in Wasmtime that have such loops, the mean is 0.971, and 0.985 without the pass, single ones
//! from 0.85 (`floyd-warshall-o2`) to 1.13 (`floyd-warshall-o2-memory64`, the same loop with a longer address) of that.
//! (P4) Not in a loop that calls, be it in a poll: with epochs and fuel, the mean over 24 programs is 0.991 with the pass and 0.992 without, and
//! the worst is 1.26 with it (`floyd-warshall-o2-simd`, fuel) and 1.10 without (`json-o1`, epochs).
//!
//! # Changes
//!
//! Blocks and edges. The loop has several back edges afterwards, so this comes after all passes that want one.
//!
//! # References
//!
//! Tail duplication, as code generators do it (LLVM `TailDuplicator.cpp`: blocks of up to two instructions).

use crate::analysis::cfg::edges::{Edge, edges_from, edges_into};
use crate::analysis::cfg::jumps::jump_target;
use crate::analysis::cfg::loops::{Loop, LoopForest, def_block, defined_in};
use crate::analysis::inst::effects::{calls, is_constant};
use crate::change::Change;
use crate::edit::MAX_PARAMS;
use crate::edit::cfg::merge::join;
use crate::edit::cfg::split_edges::{append_arg, copy_edge, retarget};
use crate::edit::inst::clone::clone_blocks;
use crate::edit::inst::labels::copy_labels;
use crate::edit::inst::rename::{Renames, Replaced, each_use};
use crate::fault::fault;
use crate::options::Options;
use crate::pass::{Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Opcode, Value};
use cranelift_codegen::{CodegenResult, Context};
use std::collections::BTreeMap;

/// The name of this pass.
pub(crate) const NAME: &str = "tail_duplicate";

/// The pass.
pub(crate) const PASS: Pass =
    Pass { name: NAME, run, reasons: &[Decline::REASONS], claims: &[], copies: true, ..Pass::OPTIONAL };

/// Copies the tests of all loops where it pays.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let mut plans = Vec::new();
    for lp in cx.forest(ctx).loops() {
        let header = cx.forest(ctx).data(lp).header;
        if cx.marks.is_left_alone(header) {
            continue;
        }
        let Some(test) = SharedTest::find(ctx, &cx.forest(ctx), lp) else { continue };
        let options = cx.options;
        match test.judge(ctx, &cx.forest(ctx), options) {
            Ok(test) if cx.fuel.take() => plans.push(test),
            Ok(_) => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
            Err(why) => cx.declined(&ctx.func, NAME, header, &why),
        }
    }
    if plans.is_empty() {
        return Ok(Change::Nothing);
    }
    for plan in &plans {
        let message = format!("blocks that get a copy of the test of {}: {}", plan.block, plan.jumps.len());
        cx.fired(&ctx.func, &PASS, plan.header, message);
    }
    apply(&mut ctx.func, &plans);
    Ok(Change::Cfg)
}

/// A test at the bottom of a loop that several blocks jump to.
struct SharedTest {
    header: Block,
    /// The only latch.
    block: Block,
    /// The edge that leaves the loop.
    exit: Edge,
    /// The edges of jumps that enter the test.
    jumps: Vec<Edge>,
    /// Whether others enter it as well.
    has_others: bool,
    lp: Loop,
}

impl SharedTest {
    fn find(ctx: &Context, forest: &LoopForest, lp: Loop) -> Option<Self> {
        let func = &ctx.func;
        let header = forest.data(lp).header;
        let block = forest.latch(func, lp).filter(|&latch| latch != header)?;
        let branch = func.layout.last_inst(block)?;
        let mut edges = edges_from(func, block);
        let (first, second) = (edges.next()?, edges.next()?);
        let exit = [first, second].into_iter().find(|edge| !forest.contains(lp, edge.target(func)))?;
        let (jumps, others): (Vec<_>, Vec<_>) = edges_into(func, &ctx.cfg, block).partition(|edge| {
            let source = edge.source(func);
            jump_target(func, source).is_some() && !func.layout.is_cold(source)
        });
        let is_brif = func.dfg.insts[branch].opcode() == Opcode::Brif;
        (is_brif && jumps.len() + others.len() >= 2 && !jumps.is_empty()).then_some(Self {
            header,
            block,
            exit,
            jumps,
            has_others: !others.is_empty(),
            lp,
        })
    }

    fn judge(self, ctx: &Context, forest: &LoopForest, options: &Options) -> Result<Self, Decline> {
        let func = &ctx.func;
        let insts = || func.layout.block_insts(self.block);
        let values: usize = insts().map(|inst| func.dfg.inst_results(inst).len()).sum();
        let params = [self.block, self.exit.target(func)].map(|block| func.dfg.num_block_params(block));
        if values + params[0] + params[1] > MAX_PARAMS {
            return Err(Decline::TooLarge { insts: insts().count(), max: MAX_PARAMS });
        }
        if let Some(inst) = insts().find(|&inst| !forest.is_duplicable(func, inst)) {
            return Err(Decline::NotDuplicable(func.dfg.insts[inst].opcode()));
        }
        if options.ignore_cost {
            return Ok(self);
        }
        if !forest.is_innermost(self.lp) {
            return Err(Decline::NotInnermost);
        }
        if self.has_others && self.jumps.len() == 1 && forest.blocks(self.lp).iter().any(|&block| calls(func, block)) {
            return Err(Decline::LoneJump);
        }
        let size = insts().filter(|&inst| !is_constant(func, inst)).count() - 1;
        if size > options.tail_duplicate_max_insts {
            return Err(Decline::TooLarge { insts: size, max: options.tail_duplicate_max_insts });
        }
        if self.jumps.len() > options.tail_duplicate_max_copies {
            return Err(Decline::TooMany { jumps: self.jumps.len(), max: options.tail_duplicate_max_copies });
        }
        Ok(self)
    }
}

/// Gives each jump a test of its own, and joins the two. By then, nothing outside of a test uses its values.
fn apply(func: &mut Function, plans: &[SharedTest]) {
    close_over_exits(func, plans);
    let (mut replaced, mut joined) = (Replaced::default(), Vec::new());
    for plan in plans {
        // The block itself serves the edges that are no jumps, or else the last jump.
        let copied = if plan.has_others { plan.jumps.len() } else { plan.jumps.len() - 1 };
        for &edge in &plan.jumps[..copied] {
            let copies = clone_blocks(func, &[plan.block]);
            retarget(func, edge, copies.block(plan.block));
            joined.push((edge.source(func), copies.block(plan.block)));
            if fault!(WrongExit) {
                let branch = func.layout.last_inst(copies.block(plan.block)).expect("a copy of a terminator");
                let [exit, back] = [plan.exit.slot, 1 - plan.exit.slot].map(|slot| Edge { branch, slot });
                copy_edge(func, back, exit);
            }
        }
        joined.extend(
            plan.jumps[copied..].iter().filter(|_| !plan.has_others).map(|edge| (edge.source(func), plan.block)),
        );
    }
    joined.retain(|&(source, test)| join(func, source, test, &mut replaced));
    replaced.shorten();
    joined.iter().for_each(|&(source, _)| replaced.apply_in(func, source));
}

/// Lets the values of the tests leave the loops through parameters of the exit blocks. If a value of a test is used in
/// another block, the exit block is entered from the test alone and dominates the use: the test is the latch, so that its only other successor is the header,
/// which is not entered from the test alone.
fn close_over_exits(func: &mut Function, plans: &[SharedTest]) {
    let exits: BTreeMap<_, _> = plans.iter().map(|plan| (plan.block, plan.exit)).collect();
    let mut of_tests = EntitySet::with_capacity(func.dfg.num_values());
    for &test in exits.keys() {
        of_tests.extend(defined_in(func, test));
    }
    let mut escaping = BTreeMap::<Value, Edge>::new();
    for block in &func.layout {
        for inst in func.layout.block_insts(block) {
            each_use(func, inst, |value| {
                if of_tests.contains(value)
                    && let Some(home) = def_block(func, value).filter(|&home| home != block)
                {
                    escaping.insert(value, exits[&home]);
                }
            });
        }
    }
    let mut renames = Renames::default();
    for (value, exit) in escaping {
        let ty = func.dfg.value_type(value);
        let target = exit.target(func);
        let param = func.dfg.append_block_param(target, ty);
        copy_labels(func, value, param);
        append_arg(func, exit, value);
        renames.insert(value, param);
    }
    if !renames.is_empty() {
        renames.apply_elsewhere(func);
    }
}

refusals! {
    /// Why the latches of a loop share their test.
    enum Decline {
        /// (P1) The test is too large.
        TooLarge { insts: usize, max: usize }
            => "too-large", "the end of the loop holds {insts} instructions, more than {max}",
            help "raise Options::tail_duplicate_max_insts if the loop is hot";
        /// (P2) Too many blocks jump to it.
        TooMany { jumps: usize, max: usize } => "too-many", "{jumps} blocks jump to the test, more than {max}",
            help "raise Options::tail_duplicate_max_copies if the loop is hot";
        /// (P4) One block jumps to it, others branch, and the loop calls.
        LoneJump => "lone-jump", "one block jumps to the test of a loop that calls, and would save no jump";
    }
    shared { NotInnermost, NotDuplicable(opcode: Opcode), Withheld }
}
