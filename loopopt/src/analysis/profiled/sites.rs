//! What is recorded of a loop: its blocks, and the values that it would be faster to know.
//!
//! The same for the same loop, whether it is recorded or what was recorded is used: nothing but the loop decides.

use super::key;
use crate::analysis::cfg::edges::edges_of;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::number::constant_of;
use crate::profile::{LoopSites, Use, ValueSite};
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value};
use cranelift_codegen::{Context, FxHashMap};

/// Values of one loop that are recorded: each takes 30 instructions where the loop is entered.
const MAX_VALUES: usize = 6;

/// Instructions of a loop, those of inner loops included, above which nothing is recorded of it. 1,000: nothing would be made of it, and each loop of a nest is
/// hashed for itself, which takes time that grows with the square of the depth.
pub(crate) const MAX_INSTS: usize = 1_000;

/// How many instructions are looked through for what a value is computed from.
pub(crate) const MAX_CHAIN: usize = 8;

/// What is recorded of the loops of a function in canonical form, outer loops first, and without those that are too large. Linear in the size of the function, but for the chains of
/// instructions before loops, which are short.
pub(crate) fn sites(ctx: &Context, forest: &LoopForest) -> Vec<LoopSites> {
    let func = &ctx.func;
    let mut same = FxHashMap::<u64, usize>::default();
    let mut values: FxHashMap<Loop, Vec<ValueSite>> = FxHashMap::default();
    for lp in forest.loops() {
        for block in forest.own_blocks(lp) {
            for inst in func.layout.block_insts(block).filter(|&inst| changes(func, forest, lp, inst)) {
                each_use(func, forest, lp, inst, |value, what| {
                    add(func, forest, (lp, &mut values), value, (what, inst));
                });
            }
        }
    }
    let loops = forest.loops().filter(|&lp| !is_too_large(func, forest, lp)).map(|lp| {
        let hash = key::hash(func, forest, lp);
        let before = same.entry(hash).or_default();
        let key = format!("{hash:016x}#{before}");
        *before += 1;
        let is_rare = |&block: &Block| !forest.is_in_each_iteration(func, &ctx.domtree, lp, block);
        LoopSites {
            header: forest.data(lp).header,
            key,
            blocks: forest.own_blocks(lp).filter(is_rare).collect(),
            values: values.remove(&lp).unwrap_or_default(),
        }
    });
    loops.collect()
}

/// Whether nothing is recorded of `lp`.
fn is_too_large(func: &Function, forest: &LoopForest, lp: Loop) -> bool {
    let insts = forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
    insts.take(MAX_INSTS + 1).count() > MAX_INSTS
}

/// Adds a use in `lp` to the site of what `value` is computed from, which is one of the outermost loop in which it is loop-invariant.
fn add(
    func: &Function,
    forest: &LoopForest,
    (lp, values): (Loop, &mut FxHashMap<Loop, Vec<ValueSite>>),
    value: Value,
    used: (Use, Inst),
) {
    let ty = func.dfg.value_type(value);
    if !ty.is_int() || ty.bits() > 64 || !forest.is_from_outside(func, lp, value) {
        return;
    }
    let root = root(func, value, |operand| forest.is_from_outside(func, lp, operand));
    let Some(root) = root else { return };
    let mut home = lp;
    while let Some(around) = forest.data(home).parent.filter(|&around| forest.is_from_outside(func, around, root)) {
        home = around;
    }
    // What an outer loop computes is recorded each time that the inner one is reached, which may be a large part of what that one does.
    if forest.data(home).parent.is_some() && !used.0.is_costly() {
        return;
    }
    let sites = values.entry(home).or_default();
    if let Some(site) = sites.iter_mut().find(|site| site.value == root) {
        site.uses.push(used);
    } else if sites.len() < MAX_VALUES {
        sites.push(ValueSite { value: root, uses: vec![used] });
    }
}

/// Whether `inst` is a branch or has an operand that varies in `lp`. All else is computed once before the loop.
fn changes(func: &Function, forest: &LoopForest, lp: Loop, inst: Inst) -> bool {
    func.dfg.insts[inst].opcode().is_branch()
        || func.dfg.inst_args(inst).iter().any(|&arg| !forest.is_from_outside(func, lp, arg))
}

/// The number that alone decides `value`, as far as short chains of instructions without effect say. Nothing for constants.
fn root(func: &Function, value: Value, stays: impl Fn(Value) -> bool) -> Option<Value> {
    let mut root = value;
    for _ in 0..MAX_CHAIN {
        match only_operand(func, root).filter(|&operand| stays(operand)) {
            Some(operand) => root = operand,
            None => break,
        }
    }
    constant_of(func, root).is_none().then_some(root)
}

/// The operand that alone decides `value`: of an instruction without effect whose other operands are constants.
pub(crate) fn only_operand(func: &Function, value: Value) -> Option<Value> {
    use Opcode::{Band, Bnot, Bor, Bxor, Iadd, Icmp, Imul, Ineg, Ireduce, Ishl, Isub, Sextend, Sshr, Uextend, Ushr};
    let inst = func.dfg.value_def(value).inst()?;
    let opcode = func.dfg.insts[inst].opcode();
    let is_simple = matches!(
        opcode,
        Band | Bnot | Bor | Bxor | Iadd | Icmp | Imul | Ineg | Ireduce | Ishl | Isub | Sextend | Sshr | Uextend | Ushr
    );
    let mut open = func.dfg.inst_args(inst).iter().copied().filter(|&arg| constant_of(func, arg).is_none());
    let operand = open.next().filter(|_| is_simple)?;
    let ty = func.dfg.value_type(operand);
    (ty.is_int() && ty.bits() <= 64 && open.all(|other| other == operand)).then_some(operand)
}

/// Calls `visit` with each operand of `inst`, in `lp`, that would be faster as a constant.
fn each_use(func: &Function, forest: &LoopForest, lp: Loop, inst: Inst, mut visit: impl FnMut(Value, Use)) {
    use Opcode::{BrTable, Brif, Iadd, Icmp, Imul, Ishl, Isub, Rotl, Rotr, Sdiv, Select, Srem, Sshr, Udiv, Urem, Ushr};
    let args = func.dfg.inst_args(inst);
    match func.dfg.insts[inst].opcode() {
        Udiv | Sdiv | Urem | Srem => visit(args[1], Use::Divisor),
        Imul => args.iter().for_each(|&arg| visit(arg, Use::Factor)),
        Ishl | Ushr | Sshr | Rotl | Rotr => visit(args[1], Use::Shift),
        Iadd | Isub if is_stepped(func, forest, lp, inst) => args.iter().for_each(|&arg| visit(arg, Use::Step)),
        Icmp => args.iter().for_each(|&arg| visit(arg, Use::Compared)),
        Brif | Select => visit(args[0], Use::Asked),
        BrTable => visit(args[0], Use::Table),
        _ => {}
    }
    // Where an inner loop is entered, what its counter starts from may be what ends it.
    for edge in edges_of(func, inst) {
        let Some(inner) = forest.loop_of_header(edge.target(func)).filter(|&inner| inner != lp) else { continue };
        if forest.data(inner).entries.contains(&edge) {
            let params = func.dfg.block_params(edge.target(func)).iter().zip(edge.args(func));
            let counters = params.filter(|&(&param, _)| is_counter(func, forest, inner, param));
            counters.filter_map(|(_, arg)| arg.as_value()).for_each(|arg| visit(arg, Use::Bound));
        }
    }
}

/// The block arguments for `param` on the back edges of `lp`.
fn next_of(func: &Function, forest: &LoopForest, lp: Loop, param: Value) -> impl Iterator<Item = Value> {
    forest.data(lp).back_edges.iter().filter_map(move |edge| edge.passed_for(func, param))
}

/// Whether `inst` computes the next value of a parameter of the header from that.
fn is_stepped(func: &Function, forest: &LoopForest, lp: Loop, inst: Inst) -> bool {
    let result = func.dfg.first_result(inst);
    let mut params =
        func.dfg.inst_args(inst).iter().filter(|arg| func.dfg.block_params(forest.data(lp).header).contains(arg));
    params.any(|&param| next_of(func, forest, lp, param).any(|next| next == result))
}

/// Whether something is added to `param`, or taken from it, in each iteration.
fn is_counter(func: &Function, forest: &LoopForest, lp: Loop, param: Value) -> bool {
    next_of(func, forest, lp, param).all(|next| {
        let inst = func.dfg.value_def(next).inst();
        inst.is_some_and(|inst| {
            let opcode = func.dfg.insts[inst].opcode();
            matches!(opcode, Opcode::Iadd | Opcode::Isub) && func.dfg.inst_args(inst).contains(&param)
        })
    })
}
