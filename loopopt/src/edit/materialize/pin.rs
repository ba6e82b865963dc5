//! Accesses that may be moved stay where they are if their addresses are known there only.
//!
//! ```text
//!     brif v0, block2, block1                          brif v0, block2, block1
//! block1:                                          block1:
//!     v1 = load.i64 notrap can_move v0+8    ──►        v1 = load.i64 notrap 0+8
//! ```
//!
//! `can_move` says of an access that it may be done wherever its address is there: at that address. What a branch has proved takes the place of an
//! operand where it is proved, and so, through instructions without effect, of an address. That is another address elsewhere. So is what a counter is in a
//! later iteration, where that has become a constant.

use crate::analysis::cfg::edges::{each_use, edges_of};
use crate::analysis::memory::alias::address_operand;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Function, Inst, MemFlags, MemFlagsData, Value};

/// Takes the permission to be moved from each access of which the address is computed from one of these values. Linear in the size of the function
/// times the nesting of what is carried around loops, and nothing if no access has it.
pub(crate) fn pin_accesses_at(func: &mut Function, values: impl IntoIterator<Item = Value>) {
    let known = (0..).map(MemFlags::from_u32).take_while(|&flags| func.dfg.mem_flags.is_valid(flags));
    if !known.into_iter().any(|flags| func.dfg.mem_flags[flags].can_move()) {
        return;
    }
    let mut found = EntitySet::new();
    values.into_iter().for_each(|value| _ = found.insert(value));
    let blocks: Vec<_> = func.layout.blocks().collect();
    let mut grows = !found.is_empty();
    while grows {
        grows = false;
        for inst in blocks.iter().flat_map(|&block| func.layout.block_insts(block)) {
            let mut uses = false;
            each_use(func, inst, |value| uses |= found.contains(value));
            // What is computed from a load that stays does not come before it.
            if !uses || func.dfg.insts[inst].opcode().can_load() {
                continue;
            }
            func.dfg.inst_results(inst).iter().for_each(|&result| grows |= found.insert(result));
            if func.dfg.insts[inst].opcode().is_branch() {
                for edge in edges_of(func, inst) {
                    let params = func.dfg.block_params(edge.target(func)).iter();
                    let passed: Vec<_> = params.copied().zip(edge.args(func)).collect();
                    for (param, arg) in passed {
                        let is_found = arg.as_value().is_some_and(|arg| found.contains(arg));
                        grows |= is_found && found.insert(param);
                    }
                }
            }
        }
    }
    let insts: Vec<_> = blocks.iter().flat_map(|&block| func.layout.block_insts(block)).collect();
    for inst in insts {
        if address_operand(func, inst).is_some_and(|address| found.contains(address)) {
            pin(func, inst);
        }
    }
}

/// Takes the permission to be moved from `inst`, if it is an access that has it.
pub(crate) fn pin(func: &mut Function, inst: Inst) {
    let Some(flags) = func.dfg.insts[inst].memflags() else { return };
    let old = func.dfg.mem_flags[flags];
    if !old.can_move() {
        return;
    }
    let mut new = MemFlagsData::new().with_trap_code(old.trap_code()).with_alias_region(old.alias_region());
    if old.aligned() {
        new.set_aligned();
    }
    if old.readonly() {
        new.set_readonly();
    }
    if let Some(endianness) = old.explicit_endianness() {
        new.set_endianness(endianness);
    }
    let pinned = func.dfg.mem_flags.insert(new).expect("no more flags than instructions");
    *func.dfg.insts[inst].memflags_mut().expect("an access has flags") = pinned;
}
