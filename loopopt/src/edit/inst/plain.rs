//! Operations that do not tell whether they overflow.

use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Value};

/// Makes an operation that tells whether it overflows one that does not, with the same first result. Gives what told it, which nothing defines any more.
/// `None` if `inst` is no such operation.
pub(crate) fn make_plain(func: &mut Function, inst: Inst) -> Option<Value> {
    let opcode = match func.dfg.insts[inst].opcode() {
        Opcode::UaddOverflow | Opcode::SaddOverflow => Opcode::Iadd,
        Opcode::UsubOverflow | Opcode::SsubOverflow => Opcode::Isub,
        Opcode::UmulOverflow | Opcode::SmulOverflow => Opcode::Imul,
        _ => return None,
    };
    let ([a, b], [result, flag]) = (func.dfg.inst_args(inst), func.dfg.inst_results(inst)) else { return None };
    let (args, result, flag) = ([*a, *b], *result, *flag);
    let ty = func.dfg.value_type(result);
    func.dfg.detach_inst_results(inst);
    func.dfg.insts[inst] = InstructionData::Binary { opcode, args };
    func.dfg.make_inst_results_reusing(inst, ty, [Some(result)].into_iter());
    Some(flag)
}
