//! What integers are, if some values are known: constant folding on demand.
//!
//! Cranelift folds constants in its egraph pass, but only those that it can see: a value that is a constant in the third
//! iteration of a loop is none in the loop. An [`Evaluator`] is told what the parameters of a header are in one iteration and
//! says what follows from that.
//!
//! A block parameter is known if all edges pass the same. Those of loop headers are unknown, unless assumed or if all edges
//! pass one constant: the argument on the back edge is of another iteration.
//!
//! # What is assumed holds in one iteration only
//!
//! Of a value inside the loop in question, it is said what it is each time that it is computed in this iteration; of a value outside, what it
//! is each time at all. So nothing outside may follow from something inside. It could, along a cycle that encloses the loop: where that is a natural
//! loop, its header's parameters stop it, but an irreducible cycle has no header. What leaves the loop then comes back by one of
//! the entries of that cycle, while the first iteration may have been entered by the other. That is why a value outside with an input inside is
//! unknown (`Evaluator::leaves`), whatever the cycle is.
//!
//! Inside, nothing more is needed. A value that is not assumed is known only from others that are, and no value from itself, so
//! that by induction over this chain each computation of it in the iteration gives the same, also in a cycle that runs several times in
//! the iteration, has a header or not: every input inside the loop dominates its use, or the edge that passes it, and thus was computed in
//! the same iteration.

use crate::analysis::cfg::edges::edges_into;
use crate::analysis::cfg::loops::{Loop, LoopForest, def_block};
use crate::analysis::scev::linear_expr::known;
use crate::fault::fault;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::entity::packed_option::ReservedValue;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstructionData, Opcode, Type, Value, ValueDef, types};

/// Edges into a block above which its parameters count as unknown. 8: joins of more edges seldom carry one constant, and
/// this bounds the work.
const MAX_EDGES: usize = 8;

/// Values outside of a loop that are followed. 8: where a counter starts is a constant, and a few conversions at most.
const MAX_OUTSIDE: usize = 8;

/// Evaluates integers of up to 128 bits. A value's bits are the low ones of a `u128`, the others are zero.
pub struct Evaluator<'f> {
    func: &'f Function,
    cfg: &'f ControlFlowGraph,
    forest: &'f LoopForest,
    /// The loop in question, and how many values outside of it may still be followed.
    inside: Option<(Loop, usize)>,
    known: FxHashMap<Value, Option<u128>>,
    /// Values that wait for others: a buffer.
    stack: Vec<Value>,
    /// Values that may still be looked at. When there are none left, all others are unknown.
    budget: usize,
}

impl<'f> Evaluator<'f> {
    /// An evaluator that has assumed nothing and looks at no more than `budget` values.
    pub fn new(func: &'f Function, cfg: &'f ControlFlowGraph, forest: &'f LoopForest, budget: usize) -> Self {
        // Room for a small loop.
        let known = FxHashMap::with_capacity_and_hasher(28, Default::default());
        Self { func, cfg, forest, inside: None, known, stack: Vec::with_capacity(8), budget }
    }

    /// Follows few values outside of `lp`, so that time does not depend on what is before the loop. Once they are used up,
    /// what comes from there is a constant or unknown.
    pub fn inside(self, lp: Loop) -> Self {
        Self { inside: Some((lp, MAX_OUTSIDE)), ..self }
    }

    /// Forgets all that was assumed and found, and looks at no more than `budget` values from here on.
    pub fn reset(&mut self, budget: usize) {
        self.known.clear();
        self.budget = budget;
        self.inside = self.inside.map(|(lp, _)| (lp, MAX_OUTSIDE));
    }

    /// Takes `value` for what is given, or for unknown.
    pub fn assume(&mut self, value: Value, what: Option<u128>) {
        self.known.insert(value, what);
    }

    /// Looks whether `value` is a constant, without following it.
    pub fn assume_constant(&mut self, value: Value) {
        if let Some(what) = known(self.func, self.cfg, value) {
            self.assume(value, Some(what));
        }
    }

    /// Forgets all that is known of values for which `keep` does not hold.
    pub fn forget_unless(&mut self, mut keep: impl FnMut(Value) -> bool) {
        self.known.retain(|&value, _| keep(value));
    }

    /// What `value` is, if that is known.
    pub fn value(&mut self, value: Value) -> Option<u128> {
        if let Some(&what) = self.known.get(&value) {
            return what;
        }
        let mut stack = std::mem::take(&mut self.stack);
        stack.push(value);
        let mut what = None;
        while let Some(&top) = stack.last() {
            // Until it is known, a value that depends on itself finds itself unknown.
            let inputs = self.inputs(top);
            let is_new = |input: &Value| !self.known.contains_key(input) && !stack.contains(input);
            match inputs.as_slice().iter().copied().find(is_new) {
                _ if self.leaves(top, inputs.as_slice()) || self.is_lost(top, inputs.as_slice()) => what = None,
                Some(input) if self.budget > 0 && stack.len() < MAX_DEPTH => {
                    self.budget -= 1;
                    if self.is_outside(input) {
                        self.inside = self.inside.map(|(lp, left)| (lp, left.saturating_sub(1)));
                    }
                    stack.push(input);
                    continue;
                }
                Some(_) => what = None,
                None => what = self.compute(top, inputs.as_slice()),
            }
            self.known.insert(top, what);
            stack.pop();
        }
        self.stack = stack;
        what
    }

    /// Whether the branch `inst` takes one of its edges only, and which.
    pub fn taken(&mut self, inst: Inst) -> Option<usize> {
        match self.func.dfg.insts[inst] {
            InstructionData::Brif { arg, .. } => Some(usize::from(self.value(arg)? == 0)),
            InstructionData::BranchTable { arg, table, .. } => {
                let entries = self.func.dfg.jump_tables[table].as_slice().len();
                let index = usize::try_from(self.value(arg)?).unwrap_or(usize::MAX);
                // The default comes first.
                Some(if index < entries { index + 1 } else { 0 })
            }
            _ => None,
        }
    }

    fn get(&self, value: Value) -> Option<u128> {
        self.known.get(&value).copied().flatten()
    }

    /// Whether `value` is not followed: it is outside of the loop in question, and the values to follow there are used up.
    fn is_too_far(&self, value: Value) -> bool {
        self.inside.is_some_and(|(_, left)| left == 0) && self.is_outside(value)
    }

    fn is_outside(&self, value: Value) -> bool {
        let home = || def_block(self.func, value);
        self.inside.is_some_and(|(lp, _)| home().is_none_or(|block| !self.forest.contains(lp, block)))
    }

    /// Whether `value` is outside of the loop in question and one of its inputs inside.
    fn leaves(&self, value: Value, inputs: &[Value]) -> bool {
        self.is_outside(value) && !inputs.iter().all(|&input| self.is_outside(input)) && !fault!(ForgottenEntry)
    }

    /// Whether `value` cannot be known because one of its inputs is unknown, at a glance.
    fn is_lost(&self, value: Value, inputs: &[Value]) -> bool {
        let dfg = &self.func.dfg;
        let is_select = |inst: Inst| dfg.insts[inst].opcode() == Opcode::Select;
        let is_unknown = |input: &Value| match self.known.get(input) {
            Some(what) => what.is_none(),
            None => match dfg.value_def(*input) {
                ValueDef::Param(block, _) => Some(block) == self.func.layout.entry_block(),
                ValueDef::Result(inst, _) => !is_foldable(self.func, inst),
                ValueDef::Union(..) => true,
            },
        };
        inputs.iter().any(is_unknown) && !dfg.value_def(value).inst().is_some_and(is_select)
    }

    /// The values that `value` follows from, nothing if it cannot be known.
    fn inputs(&self, value: Value) -> Inputs {
        if self.is_too_far(value) {
            return Inputs::none();
        }
        match self.func.dfg.value_def(value) {
            ValueDef::Result(inst, 0) if is_foldable(self.func, inst) => {
                Inputs::of(self.func.dfg.inst_args(inst).iter().map(|&arg| Some(arg)))
            }
            ValueDef::Param(block, index) => self.param_args(block, index).unwrap_or_else(Inputs::none),
            _ => Inputs::none(),
        }
    }

    /// The arguments on the edges into `block` for its parameter number `index`.
    fn param_args(&self, block: Block, index: usize) -> Option<Inputs> {
        let args = self.args_for(block, index);
        if args.len == 0 || self.forest.loop_of_header(block).is_none() {
            return Some(args);
        }
        // One value on all edges, the parameter itself aside, is defined before the loop.
        let param = self.func.dfg.block_params(block)[index];
        let mut others = args.as_slice().iter().filter(|&&arg| arg != param);
        let only = others.next()?;
        others.all(|other| other == only).then(|| Inputs::of([Some(*only)].into_iter()))
    }

    /// The arguments on the edges into `block`, none if they are too many or if one is something else.
    fn args_for(&self, block: Block, index: usize) -> Inputs {
        Inputs::of(
            edges_into(self.func, self.cfg, block)
                .map(|edge| edge.args(self.func).nth(index).as_ref().and_then(BlockArg::as_value)),
        )
    }

    /// The constant that is the argument on all edges into a header.
    fn same_constant(&self, block: Block, index: usize) -> Option<u128> {
        let args = self.args_for(block, index);
        let mut constants = args.as_slice().iter().map(|&arg| known(self.func, self.cfg, arg));
        let first = constants.next()??;
        constants.all(|other| other == Some(first)).then_some(first)
    }

    fn compute(&self, value: Value, inputs: &[Value]) -> Option<u128> {
        if self.is_too_far(value) {
            return known(self.func, self.cfg, value);
        }
        match self.func.dfg.value_def(value) {
            ValueDef::Result(inst, 0) if is_foldable(self.func, inst) => self.fold(inst),
            ValueDef::Param(block, index) if inputs.is_empty() && self.forest.loop_of_header(block).is_some() => {
                self.same_constant(block, index)
            }
            ValueDef::Param(..) => {
                let (first, rest) = inputs.split_first()?;
                let what = self.get(*first)?;
                rest.iter().all(|&input| self.get(input) == Some(what)).then_some(what)
            }
            _ => None,
        }
    }

    fn fold(&self, inst: Inst) -> Option<u128> {
        let dfg = &self.func.dfg;
        let ty = dfg.value_type(dfg.first_result(inst));
        let args = dfg.inst_args(inst);
        let get = |index: usize| self.get(args[index]);
        let arg_type = || dfg.value_type(args[0]);
        match dfg.insts[inst] {
            InstructionData::UnaryImm { imm, .. } => Some(truncate(i128::from(imm.bits()) as u128, ty)),
            InstructionData::IntCompare { cond, .. } => {
                Some(u128::from(compares(cond, [get(0)?, get(1)?], arg_type())))
            }
            InstructionData::Unary { opcode, .. } => Some(truncate(fold_unary(opcode, get(0)?, arg_type())?, ty)),
            InstructionData::Binary { opcode, .. } => {
                let bits = fold_binary(opcode, [get(0)?, get(1)?], ty)?;
                Some(if fault!(NoWrap) && opcode == Opcode::Iadd { bits } else { truncate(bits, ty) })
            }
            InstructionData::Ternary { .. } => get(if get(0)? == 0 { 2 } else { 1 }),
            _ => None,
        }
    }
}

/// A few values.
#[derive(Clone, Copy)]
struct Inputs {
    values: [Value; MAX_EDGES],
    len: usize,
}

impl Inputs {
    fn none() -> Self {
        Self { values: [Value::reserved_value(); MAX_EDGES], len: 0 }
    }

    /// All of `values`, or none if one of them is none or if they are too many.
    fn of(values: impl Iterator<Item = Option<Value>>) -> Self {
        let mut inputs = Self::none();
        for value in values {
            match value {
                Some(value) if inputs.len < MAX_EDGES => inputs.values[inputs.len] = value,
                _ => return Self::none(),
            }
            inputs.len += 1;
        }
        inputs
    }

    fn as_slice(&self) -> &[Value] {
        &self.values[..self.len]
    }
}

/// Values that wait for each other above which the first counts as unknown. 64: a longer chain in one iteration is no
/// counter, and to look for a cycle takes time in proportion.
const MAX_DEPTH: usize = 64;

/// Whether the only result of `inst` can be computed here.
pub(in crate::analysis) fn is_foldable(func: &Function, inst: Inst) -> bool {
    let is_int = |value: Value| func.dfg.value_type(value).is_int();
    let is_known = match func.dfg.insts[inst] {
        InstructionData::UnaryImm { opcode, .. } => opcode == Opcode::Iconst,
        InstructionData::IntCompare { .. } => true,
        InstructionData::Unary { opcode, .. } => fold_unary(opcode, 1, types::I8).is_some(),
        InstructionData::Binary { opcode, .. } => fold_binary(opcode, [1, 1], types::I8).is_some(),
        InstructionData::Ternary { opcode, .. } => opcode == Opcode::Select,
        _ => false,
    };
    is_known && is_int(func.dfg.first_result(inst)) && func.dfg.inst_args(inst).iter().all(|&arg| is_int(arg))
}

/// The low bits of `bits`, as many as `ty` has.
pub fn truncate(bits: u128, ty: Type) -> u128 {
    bits & max_of(ty)
}

/// The largest unsigned number of `ty`.
pub fn max_of(ty: Type) -> u128 {
    u128::MAX >> (128 - ty.bits())
}

/// The bits of a `ty` as a signed number.
pub fn signed(bits: u128, ty: Type) -> i128 {
    let unused = 128 - ty.bits();
    ((bits << unused) as i128) >> unused
}

/// Whether the comparison of these two numbers of `ty` holds.
pub fn compares(cond: IntCC, [a, b]: [u128; 2], ty: Type) -> bool {
    let (sa, sb) = (signed(a, ty), signed(b, ty));
    match cond {
        IntCC::Equal => a == b,
        IntCC::NotEqual => a != b,
        IntCC::SignedLessThan => sa < sb,
        IntCC::SignedGreaterThanOrEqual => sa >= sb,
        IntCC::SignedGreaterThan => sa > sb,
        IntCC::SignedLessThanOrEqual => sa <= sb,
        IntCC::UnsignedLessThan => a < b,
        IntCC::UnsignedGreaterThanOrEqual => a >= b,
        IntCC::UnsignedGreaterThan => a > b,
        IntCC::UnsignedLessThanOrEqual => a <= b,
    }
}

/// The result with any bits above those of its type.
fn fold_unary(opcode: Opcode, bits: u128, arg_type: Type) -> Option<u128> {
    match opcode {
        Opcode::Uextend | Opcode::Ireduce => Some(bits),
        Opcode::Sextend => Some(signed(bits, arg_type) as u128),
        Opcode::Ineg => Some(bits.wrapping_neg()),
        Opcode::Bnot => Some(!bits),
        _ => None,
    }
}

/// The result with any bits above those of its type.
fn fold_binary(opcode: Opcode, [a, b]: [u128; 2], ty: Type) -> Option<u128> {
    let amount = (b % u128::from(ty.bits())) as u32;
    match opcode {
        Opcode::Iadd => Some(a.wrapping_add(b)),
        Opcode::Isub => Some(a.wrapping_sub(b)),
        Opcode::Imul => Some(a.wrapping_mul(b)),
        Opcode::Band => Some(a & b),
        Opcode::Bor => Some(a | b),
        Opcode::Bxor => Some(a ^ b),
        Opcode::Ishl => Some(a << amount),
        Opcode::Ushr => Some(a >> amount),
        Opcode::Sshr => Some((signed(a, ty) >> amount) as u128),
        Opcode::Udiv => a.checked_div(b),
        Opcode::Urem => a.checked_rem(b),
        Opcode::Umin => Some(a.min(b)),
        Opcode::Umax => Some(a.max(b)),
        Opcode::Smin => Some(signed(a, ty).min(signed(b, ty)) as u128),
        Opcode::Smax => Some(signed(a, ty).max(signed(b, ty)) as u128),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, context, forest};

    #[test]
    fn folds_through_parameters() {
        let ctx = context(
            "function %f(i64, i8) -> i64 {
            block0(v0: i64, v1: i8):
                v2 = iconst.i8 -3
                v3 = sextend.i64 v2
                brif v1, block1(v3), block2(v3, v0)
            block1(v4: i64):
                v5 = ushr v4, v2
                jump block2(v4, v5)
            block2(v6: i64, v7: i64):
                v8 = iconst.i64 -3
                v9 = icmp sle v6, v8
                v10 = select v9, v6, v7
                return v10
            }",
        );
        let forest = forest(&ctx);
        let mut evaluator = Evaluator::new(&ctx.func, &ctx.cfg, &forest, 100);
        let returns = ctx.func.layout.last_inst(block(2)).expect("a return");
        assert_eq!(evaluator.value(ctx.func.dfg.inst_args(returns)[0]), Some(-3_i64 as u64 as u128));
        let [_, other] = ctx.func.dfg.block_params(block(2))[..] else { panic!("two parameters") };
        assert_eq!(evaluator.value(other), None);
    }

    #[test]
    fn unknown_around_a_cycle_and_without_budget() {
        let ctx = context(
            "function %f() -> i64 {
            block0:
                v0 = iconst.i64 0
                v5 = iadd v0, v0
                jump block1(v5)
            block1(v1: i64):
                v2 = iadd v1, v1
                brif v2, block1(v2), block2
            block2:
                return v1
            }",
        );
        let forest = forest(&ctx);
        let param = ctx.func.dfg.block_params(block(1))[0];
        assert_eq!(Evaluator::new(&ctx.func, &ctx.cfg, &forest, 100).value(param), None);
        let mut evaluator = Evaluator::new(&ctx.func, &ctx.cfg, &forest, 100);
        evaluator.assume(param, Some(3));
        let branch = ctx.func.layout.last_inst(block(1)).expect("a branch");
        assert_eq!(evaluator.taken(branch), Some(0));
        let mut poor = Evaluator::new(&ctx.func, &ctx.cfg, &forest, 0);
        assert_eq!(poor.taken(branch), None);
    }
}
