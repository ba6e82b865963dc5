//! Divisions that do not trap in front of their loop.
//!
//! Both operands are from outside of the loop, or pure and made of what is, so that they are there what they are in each iteration. What the branches and checks
//! say on all ways to the end of the preheader holds there, whether or not the loop asks again; what the loop itself asks does not count. A division that does
//! not trap has no effect, and may be done although no iteration would have come to it.

use super::Place;
use crate::analysis::facts::known::{self, Conditions};
use crate::analysis::scev::linear_expr::{Sum, mask};
use crate::fault::fault;
use crate::options::Options;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Inst, Opcode};

/// Whether `inst`, whose operands are the same in each iteration, is a division that does not trap at the end of the preheader: not by 0, and not the smallest number by -1.
pub(super) fn divides_well(func: &Function, place: &Place<'_>, inst: Inst, options: &Options) -> bool {
    let is_signed = match func.dfg.insts[inst].opcode() {
        Opcode::Udiv | Opcode::Urem => false,
        Opcode::Sdiv | Opcode::Srem => true,
        _ => return false,
    };
    let Place { flow: (cfg, domtree), preheader, .. } = *place;
    let [dividend, divisor] = *func.dfg.inst_args(inst) else { return false };
    let bits = func.dfg.value_type(divisor).bits();
    if bits > 64 {
        return false;
    }
    let mut conditions = Conditions::new(func, cfg, domtree).with_options(options);
    let mut is_never = |value, number: u64| {
        let sides = [&Sum::of(func, value), &Sum::constant(number & mask(bits), bits)];
        conditions.holds(known::Place::end(func, preheader), IntCC::NotEqual, sides)
    };
    if fault!(DivisorsUnknown) {
        return true;
    }
    is_never(divisor, 0) && (!is_signed || is_never(divisor, u64::MAX) || is_never(dividend, 1 << (bits - 1)))
}
