//! Where loads trap that lowering makes a part of their user.
//!
//! ```text
//!     v1 = load.i64 v0        @1
//!     v4 = select v2, v1, v3  @2          cmov rax, [rdi]        traps at the location of the select
//! ```
//!
//! Lowering may do so with the last load before an instruction that is the only one to use it, if both are in one block by then. In what came in, the user
//! has a location that the front end gave it. What a pass makes has the one of what it stands for, and that need not be a user of the load.

use crate::analysis::inst::effects::is_comparison;
use cranelift_codegen::ir::{Function, Inst, InstructionData};

/// Gives `inst`, made by a pass, the location of the load that may become a part of it and trap.
pub(crate) fn locate_at_load(func: &mut Function, inst: Inst) {
    let args = func.dfg.inst_args(inst).iter();
    let defs: Vec<_> = args.filter_map(|&arg| func.dfg.value_def(arg).inst()).collect();
    // A comparison is made where it is used, with what is loaded for it.
    let compared = defs.iter().filter(|&&def| is_comparison(func, def)).flat_map(|&def| func.dfg.inst_args(def));
    let compared = compared.filter_map(|&arg| func.dfg.value_def(arg).inst());
    let loads = defs.iter().copied().chain(compared).filter(|&def| is_trapping_load(func, def));
    let home = func.layout.inst_block(inst);
    let is_near = |load: Inst| func.layout.inst_block(load) == home;
    let last = loads.max_by(|&a, &b| is_near(a).cmp(&is_near(b)).then_with(|| func.layout.pp_cmp(a, b)));
    let srcloc = last.filter(|load| defs.contains(load)).map(|load| func.srcloc(load));
    if let Some(srcloc) = srcloc.filter(|&srcloc| srcloc != func.srcloc(inst)) {
        func.set_srcloc(inst, srcloc);
    }
}

fn is_trapping_load(func: &Function, inst: Inst) -> bool {
    let InstructionData::Load { flags, .. } = func.dfg.insts[inst] else { return false };
    func.layout.inst_block(inst).is_some() && !func.dfg.mem_flags[flags].notrap()
}
