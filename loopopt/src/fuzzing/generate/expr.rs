//! Integer expressions that can be emitted and evaluated: what is known of a loop before it runs.

use super::choices::wrap;
use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::{InstBuilder, Opcode, Type, Value, types};

/// An expression over the function's parameters and the counters of one loop.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    /// A parameter of the function, by number.
    Param(usize, Type),
    /// A counter, by number.
    Counter(usize, Type),
    Constant(Type, i128),
    /// An extension or a reduction to a type.
    Convert(Opcode, Type, Box<Expr>),
    /// One of `iadd`, `isub`, `imul`, `ishl`, `band` and `umin`.
    Binary(Opcode, Box<Expr>, Box<Expr>),
}

/// What the variables of an expression stand for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'v, T> {
    pub(super) params: &'v [T],
    pub(super) counters: &'v [T],
}

impl Expr {
    pub(super) fn binary(opcode: Opcode, a: Self, b: Self) -> Self {
        Self::Binary(opcode, Box::new(a), Box::new(b))
    }

    pub(super) fn ty(&self) -> Type {
        match self {
            Self::Param(_, ty) | Self::Counter(_, ty) | Self::Constant(ty, _) | Self::Convert(_, ty, _) => *ty,
            Self::Binary(_, a, _) => a.ty(),
        }
    }

    /// Its value, sign-extended.
    pub(super) fn eval(&self, at: Values<'_, i128>) -> i128 {
        let bits = self.ty().bits();
        match self {
            Self::Param(index, _) => at.params[*index],
            Self::Counter(index, _) => at.counters[*index],
            Self::Constant(_, value) => wrap(*value, bits),
            Self::Convert(opcode, _, of) => {
                let value = of.eval(at);
                wrap(if *opcode == Opcode::Uextend { unsigned(value, of.ty().bits()) as i128 } else { value }, bits)
            }
            Self::Binary(opcode, a, b) => {
                let (a, b) = (a.eval(at), b.eval(at));
                let value = match opcode {
                    Opcode::Iadd => a.wrapping_add(b),
                    Opcode::Isub => a.wrapping_sub(b),
                    Opcode::Imul => a.wrapping_mul(b),
                    Opcode::Ishl => a << (b as u32 & (bits - 1)),
                    Opcode::Band => a & b,
                    Opcode::Umin => std::cmp::min_by_key(a, b, |&value| unsigned(value, bits)),
                    other => unreachable!("{other} is no operation of expressions"),
                };
                wrap(value, bits)
            }
        }
    }

    /// Computes it at a place.
    pub(super) fn emit(&self, pos: &mut FuncCursor<'_>, at: Values<'_, Value>) -> Value {
        match self {
            Self::Param(index, _) => at.params[*index],
            Self::Counter(index, _) => at.counters[*index],
            Self::Constant(types::I128, value) => {
                let low = pos.ins().iconst(types::I64, *value as i64);
                let high = pos.ins().iconst(types::I64, (value >> 64) as i64);
                pos.ins().iconcat(low, high)
            }
            Self::Constant(ty, value) => pos.ins().iconst(*ty, unsigned(*value, ty.bits()) as i64),
            Self::Convert(opcode, ty, of) => {
                let of = of.emit(pos, at);
                let (inst, dfg) = pos.ins().Unary(*opcode, *ty, of);
                dfg.first_result(inst)
            }
            Self::Binary(opcode, a, b) => {
                let (a, b) = (a.emit(pos, at), b.emit(pos, at));
                let ty = pos.func.dfg.value_type(a);
                let (inst, dfg) = pos.ins().Binary(*opcode, ty, a, b);
                dfg.first_result(inst)
            }
        }
    }

    /// Adds all constants to a list.
    pub(super) fn constants(&self, list: &mut Vec<i128>) {
        match self {
            Self::Param(..) | Self::Counter(..) => {}
            Self::Constant(_, value) => list.push(*value),
            Self::Convert(_, _, of) => of.constants(list),
            Self::Binary(_, a, b) => {
                a.constants(list);
                b.constants(list);
            }
        }
    }
}

/// The lowest bits of a number, without sign.
pub(super) fn unsigned(value: i128, bits: u32) -> u128 {
    value as u128 & (u128::MAX >> (128 - bits))
}
