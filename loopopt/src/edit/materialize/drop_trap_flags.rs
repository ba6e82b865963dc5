//! Accesses that the embedder vouches for cannot trap: [`is_checked`](crate::Embedder::is_checked).

use crate::analysis::inst::number::constant_of;
use crate::analysis::memory::alias::address_operand;
use crate::edit::materialize::pin::{loads_the_same_anywhere, pin_accesses_at, pinned, set_flags};
use crate::ir::all_mem_flags;
use crate::options::Options;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Function, Inst, MemFlags, Opcode, Value};

/// Says of each checked access of `func` that it does not trap, if its address is a sum, loaded, or returned by a call. Parameters stay: they may carry what
/// a guard chose. So does what else is computed: Cranelift's egraph pass makes of a `select` that chose an address to trap at whatever is
/// shorter, a minimum, an extension or a mask. Linear in the size of the function if a region has checked accesses, and nothing if not.
pub(crate) fn trust_checked(func: &mut Function, options: &Options) {
    trust(func, options, |func, address| {
        let Some(def) = func.dfg.value_def(address).inst() else { return false };
        let opcode = func.dfg.insts[def].opcode();
        opcode == Opcode::Iadd || opcode.can_load() || opcode.is_call()
    });
}

/// Guards that were removed, of which the embedder may know what that means for accesses.
#[derive(Default)]
pub(crate) struct GoneGuards {
    results: EntitySet<Value>,
}

impl GoneGuards {
    /// Takes note of `guard`, a `select_spectre_guard` still in place of which it is proved that it gives `gives`.
    pub(crate) fn add(&mut self, func: &Function, guard: Inst, gives: Value) {
        let other = func.dfg.inst_args(guard)[1..].iter().find(|&&arg| arg != gives);
        if other.is_some_and(|&other| constant_of(func, other) == Some(0)) {
            self.results.insert(func.dfg.first_result(guard));
        }
    }

    /// Says of the checked accesses at what these guards gave that they do not trap. Their values must not be resolved yet.
    /// Linear in the size of the function if there was a guard.
    pub(crate) fn trust(&self, func: &mut Function, options: &Options) {
        if !self.results.is_empty() {
            trust(func, options, |_, address| self.results.contains(address));
        }
    }
}

/// Says of a plain load or store that it is at `address`, where it does not trap.
pub(crate) fn trust_at(func: &mut Function, inst: Inst, address: Value) {
    let Some(flags) = func.dfg.insts[inst].memflags() else { return };
    let Some(trusted) = without_trap(func, flags) else { return };
    let loaded = loads_the_same_anywhere(func, inst);
    set_flags(func, inst, trusted);
    pin_accesses_at(func, loaded);
    *func.dfg.inst_args_mut(inst).last_mut().expect("an access has an address") = address;
}

/// The same flags without the trap, unless there are too many flags. And without `can_move`: what does not trap where it is may trap
/// elsewhere, where nothing has been checked.
fn without_trap(func: &mut Function, flags: MemFlags) -> Option<MemFlags> {
    let new = pinned(func.dfg.mem_flags[flags]).with_notrap();
    func.dfg.mem_flags.insert(new).ok()
}

fn trust(func: &mut Function, options: &Options, never_fails: impl Fn(&Function, Value) -> bool) {
    let trusted = trusted_flags(func, options);
    if trusted.is_empty() {
        return;
    }
    let blocks: Vec<_> = func.layout.blocks().collect();
    let mut loaded = Vec::new();
    for block in blocks {
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            let (Some(address), Some(flags)) = (address_operand(func, inst), func.dfg.insts[inst].memflags()) else {
                continue;
            };
            let Some(&flags) = trusted.get(&flags).filter(|_| never_fails(func, address)) else { continue };
            loaded.extend(loads_the_same_anywhere(func, inst));
            set_flags(func, inst, flags);
        }
    }
    pin_accesses_at(func, loaded);
}

/// For the flags of checked accesses, the same flags without the trap.
fn trusted_flags(func: &mut Function, options: &Options) -> FxHashMap<MemFlags, MemFlags> {
    let checked: Vec<_> =
        all_mem_flags(func).filter(|&flags| options.is_checked(func, func.dfg.mem_flags[flags])).collect();
    checked.into_iter().filter_map(|flags| Some((flags, without_trap(func, flags)?))).collect()
}
