//! Smaller constants, no offsets, flags and source locations.

use super::draft::{Draft, Edit, in_function, insts, is_constant, signed};
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::{Function, Inst, InstBuilder as _, InstructionData, MemFlagsData, SourceLoc};

pub(super) fn edits(draft: &Draft) -> Vec<Edit> {
    let mut edits = Vec::new();
    for func in &draft.functions {
        for inst in insts(func) {
            if is_constant(func, inst) {
                for shrink in [|_| 0, |_| 1, |value| value / 2] {
                    edits.push(in_function(func, move |func| shrink_integer(func, inst, shrink)));
                }
                edits.push(in_function(func, move |func| set_float(func, inst, 0.0)));
                edits.push(in_function(func, move |func| set_float(func, inst, 1.0)));
            }
            if func.dfg.insts[inst].load_store_offset().is_some_and(|offset| offset != 0) {
                edits.push(in_function(func, move |func| drop_offset(func, inst)));
            }
            if func.dfg.insts[inst].memflags().is_some() {
                edits.push(in_function(func, move |func| drop_flags(func, inst)));
            }
            if func.srcloc(inst) != SourceLoc::default() {
                edits.push(in_function(func, move |func| {
                    func.set_srcloc(inst, SourceLoc::default());
                    Some(())
                }));
            }
        }
    }
    edits
}

fn shrink_integer(func: &mut Function, inst: Inst, shrink: fn(i64) -> i64) -> Option<()> {
    func.layout.inst_block(inst)?;
    let InstructionData::UnaryImm { imm, .. } = func.dfg.insts[inst] else { return None };
    let ty = func.dfg.ctrl_typevar(inst);
    func.replace(inst).iconst(ty, Imm64::new(shrink(signed(imm.bits(), ty.bits()))));
    Some(())
}

fn set_float(func: &mut Function, inst: Inst, value: f32) -> Option<()> {
    func.layout.inst_block(inst)?;
    match func.dfg.insts[inst] {
        InstructionData::UnaryIeee32 { .. } => func.replace(inst).f32const(value),
        InstructionData::UnaryIeee64 { .. } => func.replace(inst).f64const(f64::from(value)),
        _ => return None,
    };
    Some(())
}

fn drop_offset(func: &mut Function, inst: Inst) -> Option<()> {
    match &mut func.dfg.insts[inst] {
        InstructionData::Load { offset, .. } | InstructionData::Store { offset, .. } => *offset = 0.into(),
        _ => return None,
    }
    Some(())
}

fn drop_flags(func: &mut Function, inst: Inst) -> Option<()> {
    let plain = func.dfg.mem_flags.insert(MemFlagsData::new()).ok()?;
    *func.dfg.insts[inst].memflags_mut()? = plain;
    Some(())
}
