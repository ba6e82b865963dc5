//! Order the instructions of a latch so that the back edge needs no move.
//!
//! ```text
//! block2(v2: i64, v3: i64):                block2(v2: i64, v3: i64):
//!     v4 = iadd v2, v1      (v1 = 1)           v4 = iadd v2, v1
//!     v5 = uload8.i64 v4                       v5 = uload8.i64 v4         movzx rdx, byte ptr [rdi+1]
//!     v6 = iadd v3, v5            ──►          v6 = iadd v3, v5
//!                                              v9 = iadd v2, v1           add rdi, 1
//!     v7 = icmp ne v5, v0                      v7 = icmp ne v5, v0
//!     brif v7, block2(v4, v6), block3          brif v7, block2(v9, v6), block3
//! ```
//!
//! The next value of a header parameter can take the register of the parameter if the parameter is dead by then. If
//! not, the back edge needs a move, and a branch with a move on its edge is two jumps: one around the move, one back.
//! Cranelift keeps the order of instructions and the egraph pass puts pure ones where they are first asked for, so the
//! order is made here: every user of a parameter before its next value.
//!
//! An address is read where the load or store is, because Cranelift folds sums and shifts into addressing modes. So
//! a load whose address is made from the next value `v4 = v2 + 1` reads `v2`. The branch then gets a sum of its own,
//! computed last; the first one vanishes in the addressing mode. Where something else needs the first one, it costs an
//! addition, which is still less than a move and a jump. The same is done where a load or store needs the next value and many
//! users of the parameter are after it: what those compute would have to be kept until it is used.
//!
//! Most x86-64 instructions leave their result in the register of their first operand. Where the next value is
//! a commutative operation on the parameter and something else, the parameter has to come first, or the result is in
//! the register of the other.
//!
//! The branch itself should not read what the next value is computed from either ([`condition`]).
//!
//! # Needs
//!
//! Nothing.
//!
//! # Legal when
//!
//! (L1) Only pure instructions move past others; what reads or writes memory, traps or calls keeps its order. (L2) Every value
//! is computed before it is used.
//!
//! # Pays when
//!
//! (P1) The next value is in the latch before a user of its parameter, and the order can be turned around. Not if the
//! branch itself uses the parameter: then both are alive. (P2) Operands do not change places in a loop that calls in each iteration:
//! what lives across a call is in a register that the callee keeps, or on the stack, and the register allocator splits it there, so that
//! the first operand is a copy in any case. With the parameter first, that copy has to go back to the stack where it came from: a
//! checksum by table with a call for each byte takes 0.995 of Cranelift's time then, and 0.598 if operands stay (`jit-harness bench
//! loopopt/tests/clif/order_latch/declines-calls.clif`, with and without).
//!
//! # Changes
//!
//! Instructions.
//!
//! # Not done
//!
//! Values that swap places on the back edge need a move in any order.
//!
//! # References
//!
//! Register allocators coalesce such copies where live ranges allow it; this makes them allow it. Cranelift has no
//! scheduler (wasmtime#6260).

mod condition;
mod graph;

use self::condition::Bits;
use self::graph::{Graph, Item, each_read};
use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::latches;
use crate::analysis::cfg::must_execute::calls_each_time;
use crate::analysis::inst::effects::Effects;
use crate::change::Change;
use crate::edit::inst::clone::repeat_before;
use crate::edit::inst::labels::copy_labels;
use crate::edit::inst::rename::{Renames, rename_uses};
use crate::fault::fault;
use crate::options::Options;
use crate::pass::{Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, Opcode, Value, ValueDef};
use cranelift_codegen::{CodegenResult, Context};
use std::collections::BTreeMap;
use target_lexicon::Architecture;

/// The name of this pass.
pub(crate) const NAME: &str = "order_latch";

/// The pass.
pub(crate) const PASS: Pass = Pass { name: NAME, run, reasons: &[Decline::REASONS], claims: &[], ..Pass::OPTIONAL };

/// Orders all latches.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let mut change = Change::Nothing;
    let mut copies = Copies::default();
    let is_x64 = matches!(cx.isa.triple().architecture, Architecture::X86_64);
    for (header, back_edge) in latches(&ctx.func, &ctx.domtree) {
        let mut latch = Latch::new(&ctx.func, header, back_edge);
        if is_x64 && let Some(bits) = Bits::find(&ctx.func, &latch) {
            if cx.fuel.take() {
                cx.fired(&ctx.func, &PASS, latch.header, bits.describe());
                bits.apply(&mut ctx.func, &latch);
                latch = Latch::new(&ctx.func, header, back_edge);
                change = Change::Insts;
            } else {
                cx.declined(&ctx.func, NAME, latch.header, &Decline::Withheld);
            }
        }
        let options = cx.options;
        let calls = || {
            let forest = cx.forest(ctx);
            let lp = forest.loop_of_header(latch.header);
            lp.is_some_and(|lp| calls_each_time(&ctx.func, &ctx.domtree, (forest.blocks(lp), latch.block)))
        };
        match latch.plan(&ctx.func, options, calls) {
            Ok(None) => {}
            Ok(Some(plan)) if cx.fuel.take() => {
                cx.fired(&ctx.func, &PASS, latch.header, plan.describe());
                plan.apply(&mut ctx.func, &latch, &mut copies);
                change = Change::Insts;
            }
            Ok(Some(_)) => cx.declined(&ctx.func, NAME, latch.header, &Decline::Withheld),
            Err(why) => cx.declined(&ctx.func, NAME, latch.header, &why),
        }
    }
    // After a latch that recomputes a next value, the first one would be kept alive for nothing.
    if !copies.renames.is_empty() {
        let homes = &copies.homes;
        let domtree = &ctx.domtree;
        copies.renames.apply_where(&mut ctx.func, |value, block| {
            homes[&value] != block && domtree.block_dominates(homes[&value], block)
        });
    }
    Ok(change)
}

/// Next values that were recomputed: what replaces them after the latch.
#[derive(Default)]
struct Copies {
    renames: Renames,
    /// The latch.
    homes: BTreeMap<Value, Block>,
}

/// A block with a back edge of a loop.
struct Latch {
    header: Block,
    block: Block,
    /// The instructions before the branch, none if nothing is carried.
    insts: Vec<Inst>,
    branch: Inst,
    /// Header parameters with their next values, for those computed in this block, and for those that can be recomputed
    /// in it. No value is the next one of two.
    carried: Vec<(Value, Value)>,
}

impl Latch {
    fn new(func: &Function, header: Block, back_edge: Edge) -> Self {
        let block = back_edge.source(func);
        let Edge { branch, .. } = back_edge;
        let params = func.dfg.block_params(header).iter().copied();
        let mut carried: Vec<_> = params
            .zip(back_edge.args(func))
            .filter_map(|(param, arg)| match arg {
                BlockArg::Value(next) if next != param => Some((param, next)),
                _ => None,
            })
            .collect();
        // A value that is the next one of several parameters needs moves in any order.
        let mut all: Vec<_> = carried.iter().map(|&(_, next)| next).collect();
        all.sort_unstable();
        let is_only_one = |next| {
            let first = all.partition_point(|&other| other < next);
            all.get(first + 1) != Some(&next)
        };
        carried.retain(|&(param, next)| {
            let ValueDef::Result(inst, _) = func.dfg.value_def(next) else { return false };
            let can_be_here = func.layout.inst_block(inst) == Some(block)
                || (is_small_sum(func, inst) && func.dfg.inst_args(inst).contains(&param));
            can_be_here && is_only_one(next)
        });
        let is_before_branch = |inst: &Inst| !carried.is_empty() && *inst != branch;
        let insts = func.layout.block_insts(block).take_while(is_before_branch).collect();
        Self { header, block, insts, branch, carried }
    }

    /// An order in which the back edge needs fewer moves, if there is one.
    /// `calls` says whether each iteration calls a function.
    fn plan(&self, func: &Function, options: &Options, calls: impl FnOnce() -> bool) -> Result<Option<Plan>, Decline> {
        if self.carried.is_empty() {
            return Ok(None);
        }
        let max = options.order_latch_max_insts;
        if self.insts.len() > max {
            return Err(Decline::TooLarge { insts: self.insts.len(), max });
        }
        let mut swaps = self.swaps(func);
        let stays = !swaps.is_empty() && !options.ignore_cost && calls();
        if stays {
            swaps.clear();
        }
        let nothing = || if stays { Err(Decline::Calls) } else { Ok(None) };
        if swaps.is_empty() && !self.may_be_late(func) {
            return nothing();
        }
        let mut graph = Graph::of(func, self);
        let late: Vec<_> = self.carried.iter().filter(|&&(param, next)| graph.is_late(param, next)).copied().collect();
        if late.is_empty() && swaps.is_empty() {
            return nothing();
        }
        // What is in order has to stay so, which is always possible before anything is turned around.
        let max_early = options.order_latch_max_early;
        for &pair in self.carried.iter().filter(|pair| !late.contains(pair)) {
            graph.put_last(func, pair, max_early);
        }
        let mut turned: Vec<_> =
            late.into_iter().filter(|&pair| graph.put_last(func, pair, max_early)).map(|(param, _)| param).collect();
        turned.extend(swaps.iter().map(|&(param, _)| param));
        let swaps = swaps.into_iter().map(|(_, inst)| inst).collect();
        if turned.is_empty() {
            return nothing();
        }
        Ok(Some(Plan { order: graph.sorted(), swaps, turned }))
    }

    /// Whether a header parameter is read after its next value: a quick look, which sees too much rather than too little.
    fn may_be_late(&self, func: &Function) -> bool {
        let is_elsewhere = |next| {
            let def = func.dfg.value_def(next).inst();
            def.and_then(|def| func.layout.inst_block(def)) != Some(self.block)
        };
        let mut computed: Vec<_> = self.carried.iter().map(|&(_, next)| is_elsewhere(next)).collect();
        for &inst in &self.insts {
            if computed.contains(&true) {
                let mut is_late = false;
                each_read(func, self.block, inst, |value| {
                    is_late |=
                        self.carried.iter().zip(&computed).any(|(&(param, _), &computed)| computed && param == value);
                });
                if is_late {
                    return true;
                }
            }
            for (&(_, next), computed) in self.carried.iter().zip(&mut computed) {
                *computed |= func.dfg.inst_results(inst).contains(&next);
            }
        }
        false
    }

    /// The comparison in this block that the branch tests, and that is folded into it.
    fn compare(&self, func: &Function) -> Option<Inst> {
        let condition = *func.dfg.inst_args(self.branch).first()?;
        let def = func.dfg.value_def(condition).inst()?;
        let is_compare = matches!(func.dfg.insts[def].opcode(), Opcode::Icmp | Opcode::Fcmp);
        (is_compare && func.layout.inst_block(def) == Some(self.block)).then_some(def)
    }

    /// Next values that are commutative operations with their parameter on the second operand. In the order of the block,
    /// so that each sees what the swaps before it have made of its operands.
    fn swaps(&self, func: &Function) -> Vec<(Value, Inst)> {
        let mut params: Vec<_> = self.carried.iter().map(|&(param, next)| (next, param)).collect();
        params.sort_unstable();
        let param_of = |next| params.binary_search_by_key(&next, |&(next, _)| next).ok().map(|place| params[place].1);
        let mut swaps = Vec::<(Value, Inst)>::new();
        for &inst in &self.insts {
            let commutes = matches!(
                func.dfg.insts[inst].opcode(),
                Opcode::Iadd | Opcode::Imul | Opcode::Band | Opcode::Bor | Opcode::Bxor
            ) || (fault!(SwappedSubtraction) && func.dfg.insts[inst].opcode() == Opcode::Isub);
            if !commutes {
                continue;
            }
            let [next] = func.dfg.inst_results(inst) else { continue };
            let (Some(param), &[first, second]) = (param_of(*next), func.dfg.inst_args(inst)) else { continue };
            let takes = |value| self.takes_register(func, &swaps, value, param);
            if takes(second) && !takes(first) {
                swaps.push((param, inst));
            }
        }
        swaps
    }

    /// Whether `value` is `param`, or is computed from it in this block by instructions with it as their first operand, once
    /// `swaps` are made.
    fn takes_register(&self, func: &Function, swaps: &[(Value, Inst)], value: Value, param: Value) -> bool {
        /// Chains that are longer than this are rare; a bound on time.
        const LENGTH: usize = 8;
        let mut value = value;
        for _ in 0..LENGTH {
            if value == param {
                return true;
            }
            let ValueDef::Result(inst, _) = func.dfg.value_def(value) else { return false };
            let is_here = func.layout.inst_block(inst) == Some(self.block) && Effects::of(func, inst).is_pure();
            let swapped = swaps.iter().any(|&(_, other)| other == inst);
            match func.dfg.inst_args(inst).get(usize::from(swapped)) {
                Some(&operand) if is_here => value = operand,
                _ => return false,
            }
        }
        false
    }
}

/// A better order for a latch.
struct Plan {
    order: Vec<Item>,
    /// Commutative instructions whose operands change places.
    swaps: Vec<Inst>,
    /// The parameters whose next values are in order now.
    turned: Vec<Value>,
}

impl Plan {
    fn describe(&self) -> String {
        let turned: Vec<_> = self.turned.iter().map(ToString::to_string).collect();
        format!("the next value of {} can take its register", turned.join(", "))
    }

    /// Puts the latch in order. What is recomputed is added to `copies`.
    fn apply(self, func: &mut Function, latch: &Latch, copies: &mut Copies) {
        for inst in self.swaps {
            func.dfg.inst_args_mut(inst).swap(0, 1);
        }
        for item in self.order {
            match item {
                Item::Keep(inst) => {
                    func.layout.remove_inst(inst);
                    func.layout.insert_inst(inst, latch.branch);
                }
                Item::Again(sum) => {
                    let old = func.dfg.first_result(sum);
                    let new = repeat_before(func, sum, latch.branch);
                    copy_labels(func, old, new);
                    if fault!(CountedTwice) {
                        let copy = func.dfg.value_def(new).unwrap_inst();
                        func.dfg.inst_args_mut(copy)[0] = old;
                    }
                    for reader in latch.compare(func).into_iter().chain([latch.branch]) {
                        rename_uses(func, reader, |value| if value == old { new } else { value });
                    }
                    copies.renames.insert(old, new);
                    copies.homes.insert(old, latch.block);
                }
            }
        }
    }
}

/// Whether `inst` is the sum or difference of a value and a small constant, which costs nothing in an addressing mode and little elsewhere.
fn is_small_sum(func: &Function, inst: Inst) -> bool {
    use cranelift_codegen::ir::InstructionData::UnaryImm;
    let is_small = |value| {
        let def = func.dfg.value_def(value).inst();
        matches!(def.map(|def| func.dfg.insts[def]),
            Some(UnaryImm { opcode: Opcode::Iconst, imm }) if i32::try_from(imm.bits()).is_ok())
    };
    let args = func.dfg.inst_args(inst);
    match func.dfg.insts[inst].opcode() {
        Opcode::Iadd => args.iter().any(|&arg| is_small(arg)),
        Opcode::Isub => is_small(args[1]),
        _ => false,
    }
}

refusals! {
    /// Why a latch keeps its order.
    enum Decline {
        /// Finding an order takes time that grows with the square of the instructions.
        TooLarge { insts: usize, max: usize } => "too-large", "the latch holds {insts} instructions, more than {max}",
            help "raise Options::order_latch_max_insts";
        /// (P2) Operands would change places in a loop that calls.
        Calls => "calls", "each iteration calls a function, and carried values are copied there in any case";
    }
    shared { Withheld }
}
