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
use crate::analysis::memory::effects::all_mem_flags;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Function, Inst, MemFlagsData, Value};

/// Takes the permission to be moved from each access of which the address is computed from one of these values. Takes time as sorting all uses
/// of values does, and nothing if no access has it.
pub(crate) fn pin_accesses_at(func: &mut Function, values: impl IntoIterator<Item = Value>) {
    if !all_mem_flags(func).any(|flags| func.dfg.mem_flags[flags].can_move()) {
        return;
    }
    let mut open: Vec<Value> = values.into_iter().collect();
    if open.is_empty() {
        return;
    }
    let mut uses = Vec::new();
    for inst in func.layout.blocks().flat_map(|block| func.layout.block_insts(block)) {
        each_use(func, inst, |value| uses.push((value, inst)));
    }
    uses.sort_unstable();
    let mut found = EntitySet::new();
    while let Some(value) = open.pop() {
        if !found.insert(value) {
            continue;
        }
        let first = uses.partition_point(|&(used, _)| used < value);
        for inst in uses[first..].iter().take_while(|&&(used, _)| used == value).map(|&(_, inst)| inst) {
            if address_operand(func, inst) == Some(value) {
                pin(func, inst);
            }
            let opcode = func.dfg.insts[inst].opcode();
            if opcode.is_branch() {
                for edge in edges_of(func, inst) {
                    let params = func.dfg.block_params(edge.target(func)).iter().copied();
                    let passed = params.zip(edge.args(func)).filter(|(_, arg)| arg.as_value() == Some(value));
                    open.extend(passed.map(|(param, _)| param));
                }
            }
            // What is computed from a load that stays does not come before it.
            if !opcode.can_load() {
                open.extend_from_slice(func.dfg.inst_results(inst));
            }
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
    let pinned = func.dfg.mem_flags.insert(pinned(old)).expect("no more flags than instructions");
    *func.dfg.insts[inst].memflags_mut().expect("an access has flags") = pinned;
}

/// The same flags without the permission to be moved.
pub(super) fn pinned(old: MemFlagsData) -> MemFlagsData {
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
    new
}
