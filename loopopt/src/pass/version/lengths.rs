//! Lengths that only grow, such as that of a memory: what is below one before a loop is below it in the loop, whatever a call
//! in the loop makes of it.
//!
//! ```text
//! preheader:                                      v9 = load.i64 v0
//! header(i):                                  header(i):
//!     v1 = load.i64 v0                            v1 = load.i64 v0
//!     trapz i < v1            ──►                 trapz i < v1      ◄── fulfilled if i < v9
//!     call f(i)                                   call f(i)
//! ```
//!
//! Legal as such a length may be loaded wherever its address is known
//! ([`trust_lengths`](crate::edit::materialize::trust_lengths)). What grows is the whole number: its low half may get smaller.

use crate::analysis::cfg::loops::{Loop, LoopForest, def_block};
use crate::analysis::inst::number::mask;
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::requirement::Requirement;
use crate::ir::all_mem_flags;
use crate::options::Options;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, MemFlags, Opcode, Type, Value};
use cranelift_codegen::{FxHashMap, FxHashSet};

/// Where a length is: its address, and its type.
type Place = (Value, Offset32, MemFlags, Type);

/// Lengths that are loaded in loops, and what they are before these.
#[derive(Default)]
pub(super) struct Lengths {
    /// For a load in a loop, the same load before it, and the bits of both.
    before: FxHashMap<Value, (Value, u32)>,
    /// The loads before loops.
    made: Vec<Inst>,
}

impl Lengths {
    /// Loads each length that is loaded in a loop before that, too.
    pub(super) fn read(func: &mut Function, forest: &LoopForest, options: &Options) -> Self {
        let mut lengths = Self::default();
        if !all_mem_flags(func).any(|flags| options.never_shrinks(func, func.dfg.mem_flags[flags])) {
            return lengths;
        }
        let mut done: FxHashMap<(Loop, Place), Value> = FxHashMap::default();
        for lp in forest.loops() {
            let [entry] = forest.data(lp).entries[..] else { continue };
            let own = forest.own_blocks(lp);
            let insts: Vec<_> = own.flat_map(|block| func.layout.block_insts(block)).collect();
            for inst in insts {
                let Some(place) = length(func, inst, options) else { continue };
                if def_block(func, place.0).is_none_or(|block| forest.contains(lp, block)) {
                    continue;
                }
                let before = *done.entry((lp, place)).or_insert_with(|| {
                    let (address, offset, flags, ty) = place;
                    let srcloc = func.srcloc(entry.branch);
                    let mut cursor = FuncCursor::new(func).at_inst(entry.branch).with_srcloc(srcloc);
                    let (load, dfg) = cursor.ins().Load(Opcode::Load, ty, flags, offset, address);
                    lengths.made.push(load);
                    dfg.first_result(load)
                });
                lengths.before.insert(func.dfg.first_result(inst), (before, place.3.bits()));
            }
        }
        lengths
    }

    /// What is enough for `required` in the loop, said of lengths before it.
    pub(super) fn preheader_loads(&self, required: Requirement) -> Vec<Requirement> {
        match self.found(&required) {
            Some((cond, left, before, less)) => {
                let right = before.clone().offset(-less.cast_signed());
                let found = Requirement::new(cond, left.clone(), right);
                // Otherwise the difference might wrap before the loop and not in it.
                let is_large = Requirement::at_most(Sum::constant(less, before.bits()), before);
                if less == 0 { vec![found] } else { vec![is_large, found] }
            }
            None => vec![required],
        }
    }

    /// The parts of `left cond length - less`, with the length before the loop.
    fn found<'r>(&self, required: &'r Requirement) -> Option<(IntCC, &'r Sum, Sum, u64)> {
        let Requirement::Compare { cond, left, right } = required else { return None };
        let is_less = matches!(cond, IntCC::UnsignedLessThan | IntCC::UnsignedLessThanOrEqual);
        let [(Term::Value(length), 1)] = right.terms() else { return None };
        let mut changes = false;
        left.each_value(&mut |value| changes |= self.before.contains_key(&value));
        let (before, bits) = *self.before.get(length)?;
        if bits != right.bits() || !is_less || changes {
            return None;
        }
        let before = Sum::of_term(Term::Value(before), 1, bits);
        let less = right.constant_part().wrapping_neg() & mask(right.bits());
        (less <= mask(right.bits()) / 2).then_some((*cond, left, before, less))
    }

    /// Removes the loads of which none of these requirements makes use.
    pub(super) fn forget_unused<'r>(self, func: &mut Function, required: impl Iterator<Item = &'r Requirement>) {
        let mut used = FxHashSet::default();
        for requirement in required {
            requirement.each_value(&mut |value| _ = used.insert(value));
        }
        for load in self.made {
            if !used.contains(&func.dfg.first_result(load)) {
                func.layout.remove_inst(load);
            }
        }
    }
}

/// Where the length is that `inst` loads, if it loads one that may be loaded elsewhere.
fn length(func: &Function, inst: Inst, options: &Options) -> Option<Place> {
    let InstructionData::Load { opcode: Opcode::Load, arg, flags, offset } = func.dfg.insts[inst] else { return None };
    let (ty, data) = (func.dfg.value_type(func.dfg.first_result(inst)), func.dfg.mem_flags[flags]);
    (ty.is_int() && data.can_move() && options.never_shrinks(func, data)).then_some((arg, offset, flags, ty))
}
