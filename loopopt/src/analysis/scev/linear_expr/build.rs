//! What values are as sums: the instructions that a sum looks into.

use super::{Sum, Term};
use crate::analysis::cfg::edges::passed_alone;
use crate::analysis::inst::number::{constant_of, mask};
use crate::analysis::scev::const_eval::{signed, truncate};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Function, InstructionData, Opcode, Value, ValueDef};
use smallvec::{SmallVec, smallvec};

/// Instructions that one sum looks at. An access `a[i * n + j]` of a 32-bit front end takes 10.
const MAX_NODES: usize = 32;

/// Sums inside sums. WebAssembly needs 1; each level is one of recursion.
const MAX_EXTENSIONS: usize = 3;

/// Additions in a row above which a value is not followed. 16: the egraph pass makes one of those with constants.
const MAX_CHAIN: usize = 16;

impl Sum {
    /// The sum that `value` is.
    pub fn of(func: &Function, value: Value) -> Self {
        Self::with_leaves(func, value, &mut |leaf| Some(Self::of_leaf(func, leaf)))
            .unwrap_or_else(|| Self::of_leaf(func, value))
    }

    /// The sum that `value` is if each value that this does not look into is what `leaf` says, in the bits of that value.
    /// Nothing if `leaf` says so for one of them.
    pub fn with_leaves(func: &Function, value: Value, leaf: &mut dyn FnMut(Value) -> Option<Self>) -> Option<Self> {
        Builder { func, leaf, nodes: 0 }.sum(value, MAX_EXTENSIONS)
    }
}

/// Builds a sum.
struct Builder<'a> {
    func: &'a Function,
    leaf: &'a mut dyn FnMut(Value) -> Option<Sum>,
    nodes: usize,
}

/// What is still to be added to a sum: a value, times a factor.
type Part = (Value, u64);

/// A few of them.
type Parts = SmallVec<[Part; 8]>;

impl Builder<'_> {
    /// The sum that `value` is, with sums inside at most `depth` extensions.
    fn sum(&mut self, value: Value, depth: usize) -> Option<Sum> {
        if is_leaf(self.func, value) {
            self.nodes += 1;
            return (self.leaf)(value);
        }
        let bits = self.func.dfg.value_type(value).bits();
        let mut total = Sum::constant(0, bits);
        let mut parts: Parts = smallvec![(value, 1)];
        while let Some((value, factor)) = parts.pop() {
            self.nodes += 1;
            if self.nodes < MAX_NODES && self.split(value, factor, &mut parts, &mut total) {
                continue;
            }
            let one = match self.nodes < MAX_NODES && depth > 0 {
                true => self.changed_width(value, depth)?,
                false => None,
            };
            let one = match one {
                Some(one) => one,
                None => (self.leaf)(value)?,
            };
            total.add_owned(one, factor)?;
        }
        Some(total)
    }

    /// Takes `value` apart if it is a sum, a difference, a multiple, a constant or the address of a slot.
    fn split(&self, value: Value, factor: u64, parts: &mut Parts, total: &mut Sum) -> bool {
        let func = self.func;
        let is_narrow = func.dfg.value_type(value).is_int() && total.bits <= 64;
        let ValueDef::Result(inst, 0) = func.dfg.value_def(value) else { return false };
        if !is_narrow {
            return false;
        }
        let args = func.dfg.inst_args(inst);
        match func.dfg.insts[inst] {
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => {
                total.constant =
                    total.constant.wrapping_add((imm.bits() as u64).wrapping_mul(factor)) & mask(total.bits);
            }
            InstructionData::Unary { opcode: Opcode::Ineg, arg } => parts.push((arg, factor.wrapping_neg())),
            // It is `-1 - arg`.
            InstructionData::Unary { opcode: Opcode::Bnot, arg } => {
                parts.push((arg, factor.wrapping_neg()));
                total.constant = total.constant.wrapping_sub(factor) & mask(total.bits);
            }
            InstructionData::StackAddr { stack_slot, offset, .. } if factor == 1 => {
                let slot = Sum { bits: total.bits, constant: 0, terms: smallvec![(Term::Slot(stack_slot), 1)] };
                match total.plus(&slot, 1) {
                    Some(sum) => *total = sum.offset(offset.into()),
                    None => return false,
                }
            }
            InstructionData::Binary { opcode: Opcode::Iadd | Opcode::SaddOverflow | Opcode::UaddOverflow, .. }
            | InstructionData::IntAddTrap { .. } => parts.extend([(args[0], factor), (args[1], factor)]),
            InstructionData::Binary { opcode: Opcode::Isub | Opcode::SsubOverflow | Opcode::UsubOverflow, .. } => {
                parts.extend([(args[0], factor), (args[1], factor.wrapping_neg())]);
            }
            InstructionData::Binary { opcode: Opcode::Ishl, .. } => match constant_of(func, args[1]) {
                Some(by) => parts.push((args[0], factor.wrapping_mul(1 << (by & u64::from(total.bits - 1))))),
                None => return false,
            },
            InstructionData::Binary { opcode: Opcode::Imul, .. } => {
                match (constant_of(func, args[0]), constant_of(func, args[1])) {
                    (_, Some(times)) => parts.push((args[0], factor.wrapping_mul(times))),
                    (Some(times), None) => parts.push((args[1], factor.wrapping_mul(times))),
                    (None, None) => return false,
                }
            }
            _ => return false,
        }
        true
    }

    /// The sum inside `value` if that is an extension or a reduction. The outer nothing is that of a leaf.
    fn changed_width(&mut self, value: Value, depth: usize) -> Option<Option<Sum>> {
        let func = self.func;
        let bits = func.dfg.value_type(value).bits();
        let ValueDef::Result(inst, _) = func.dfg.value_def(value) else { return Some(None) };
        let opcode = func.dfg.insts[inst].opcode();
        if !matches!(opcode, Opcode::Uextend | Opcode::Sextend | Opcode::Ireduce) || bits > 64 {
            return Some(None);
        }
        let arg = func.dfg.inst_args(inst)[0];
        if func.dfg.value_type(arg).bits() > 64 {
            return Some(None);
        }
        let inner = self.sum(arg, depth - 1)?;
        Some(match opcode {
            Opcode::Ireduce => inner.reduced(bits),
            _ => Some(inner.extended(bits, opcode == Opcode::Sextend)),
        })
    }
}

/// Whether a sum does not look into `value`.
fn is_leaf(func: &Function, value: Value) -> bool {
    use Opcode::{
        Bnot, Iadd, Iconst, Imul, Ineg, Ireduce, Ishl, Isub, SaddOverflow, Sextend, SsubOverflow, StackAddr,
        UaddOverflow, UaddOverflowTrap, Uextend, UsubOverflow,
    };
    let ValueDef::Result(inst, 0) = func.dfg.value_def(value) else { return true };
    !matches!(
        func.dfg.insts[inst].opcode(),
        Bnot | Iadd
            | Iconst
            | Imul
            | Ineg
            | Ireduce
            | Ishl
            | Isub
            | SaddOverflow
            | Sextend
            | SsubOverflow
            | StackAddr
            | UaddOverflow
            | UaddOverflowTrap
            | Uextend
            | UsubOverflow
    )
}

/// `value` as another value and a constant that is added to it, with the bits of its type. With `cfg`, it also follows parameters of
/// blocks that one edge enters, which are other names only.
pub fn offset(func: &Function, cfg: Option<&ControlFlowGraph>, value: Value) -> (Value, u128) {
    let (mut base, mut sum) = (value, 0_u128);
    for _ in 0..MAX_CHAIN {
        let Some((next, added)) = step_back(func, cfg, base) else { break };
        base = next;
        sum = sum.wrapping_add(added);
    }
    let ty = func.dfg.value_type(value);
    (base, if ty.is_int() { truncate(sum, ty) } else { 0 })
}

/// What `value` is the sum of, if one of it is a constant.
fn step_back(func: &Function, cfg: Option<&ControlFlowGraph>, value: Value) -> Option<(Value, u128)> {
    let inst = match func.dfg.value_def(value) {
        ValueDef::Result(inst, _) => inst,
        ValueDef::Param(..) => return Some((passed_alone(func, cfg?, value)?, 0)),
        ValueDef::Union(..) => return None,
    };
    match func.dfg.insts[inst] {
        InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } => {
            let with_right = constant(func, b).map(|bits| (a, bits));
            with_right.or_else(|| Some((b, constant(func, a)?)))
        }
        InstructionData::Binary { opcode: Opcode::Isub, args: [a, b] } => Some((a, constant(func, b)?.wrapping_neg())),
        _ => None,
    }
}

/// What `value` is, if it is a constant and others added to it, as far as [`offset`] looks.
pub fn known(func: &Function, cfg: &ControlFlowGraph, value: Value) -> Option<u128> {
    let (base, added) = offset(func, Some(cfg), value);
    Some(truncate(constant(func, base)?.wrapping_add(added), func.dfg.value_type(value)))
}

/// The bits of a constant, which may be extended: there is no `iconst` of 128 bits.
fn constant(func: &Function, value: Value) -> Option<u128> {
    let ty = func.dfg.value_type(value);
    match func.dfg.insts[func.dfg.value_def(value).inst()?] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => Some(truncate(i128::from(imm.bits()) as u128, ty)),
        InstructionData::Unary { opcode: Opcode::Uextend, arg } => constant(func, arg),
        InstructionData::Unary { opcode: Opcode::Sextend, arg } => {
            Some(truncate(signed(constant(func, arg)?, func.dfg.value_type(arg)) as u128, ty))
        }
        _ => None,
    }
}
