//! Carries the value of a cell through a loop: parameters where values meet, and at the exits.

use super::neighbours::Located;
use super::{Cell, EntryLoad, Here};
use crate::analysis::cfg::edges::{Edge, edges_into};
use crate::analysis::cfg::loops::def_block;
use crate::analysis::memory::alias::Access;
use crate::claim::is_marked;
use crate::edit::cfg::split_edges::append_arg;
use crate::edit::inst::stand_for::stand_for;
use crate::edit::materialize::assertion::assert_loads;
use crate::fault::fault;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, MemFlagsData, Opcode, Type, Value};
use std::collections::BTreeMap;
use std::rc::Rc;

/// What a cell holds at the end of each block, as far as it is known.
type AtEnd = FxHashMap<Block, Option<Value>>;

impl Here<'_> {
    /// Carries `cell` in parameters.
    pub(super) fn apply(&mut self, cell: &Cell) {
        let first = &cell.accesses[0];
        let name = self.func.dfg.display_inst(first.inst).to_string();
        let entry = cell.entry.filter(|_| !cell.starts_with_store);
        self.repeat_before(entry.map_or(0, |entry| entry.traps_before));
        let address = self.make_before(address_of(self.func, first.inst), &|_, _| None);
        self.forget();
        let mut by_block = FxHashMap::<Block, Vec<&Rc<Located>>>::default();
        for access in &cell.accesses {
            let home = self.func.layout.inst_block(access.inst).expect("an access is in the layout");
            by_block.entry(home).or_default().push(access);
        }
        let header = self.forest.data(self.lp).header;
        let mut params = Vec::new();
        let mut at_end = AtEnd::default();
        let mut carried = None;
        if let Some(EntryLoad { flags, .. }) = entry {
            let entry = self.load_before(cell.ty, flags, (address, cell.offset), first.inst);
            let param = self.func.dfg.append_block_param(header, cell.ty);
            append_arg(self.func, self.entry_edge(), entry);
            carried = Some(param);
        }
        let mut loads = 0;
        for &block in self.blocks {
            let start = match block == header {
                true => carried,
                false => self.at_start(block, cell, &at_end, &mut params),
            };
            let accesses = by_block.get(&block).map_or(&[][..], Vec::as_slice);
            at_end.insert(block, self.walk(accesses, cell, start, &mut loads));
        }
        for block in params {
            let edges: Vec<_> = edges_into(self.func, self.cfg, block).collect();
            for edge in edges {
                self.pass_on(edge, &at_end);
            }
        }
        if carried.is_some() {
            let back_edge = self.forest.data(self.lp).back_edges[0];
            self.pass_on(back_edge, &at_end);
        }
        if cell.stays.is_none() {
            self.store_at_exits(cell, address, &at_end);
        }
        let stores = if cell.stays.is_none() { "the stores are after the loop" } else { "the stores stay" };
        self.done.push(format!("the cell of \"{name}\" is in a register, loads removed: {loads}; {stores}"));
    }

    /// What the cell holds at the start of a block that is not the header.
    fn at_start(&mut self, block: Block, cell: &Cell, at_end: &AtEnd, params: &mut Vec<Block>) -> Option<Value> {
        let preds: Vec<_> = self.cfg.pred_iter(block).map(|pred| pred.block).collect();
        let known: Vec<Value> = preds.iter().filter_map(|pred| at_end.get(pred)).copied().collect::<Option<_>>()?;
        let &value = known.first()?;
        let inner = self.forest.loop_of_header(block);
        let same = known.iter().all(|&other| other == value);
        // Across an inner loop without a store, the cell stays as it is.
        let complete = known.len() == preds.len() || inner.is_some_and(|inner| !self.stores_in(cell, inner));
        let home = def_block(self.func, value).and_then(|def| self.forest.innermost(def));
        let leaves_loop = home.is_some_and(|home| !self.forest.contains(home, block));
        if same && complete && !leaves_loop {
            return Some(value);
        }
        params.push(block);
        Some(self.func.dfg.append_block_param(block, cell.ty))
    }

    fn stores_in(&self, cell: &Cell, inner: crate::analysis::cfg::loops::Loop) -> bool {
        cell.accesses.iter().filter(|access| access.stored.is_some()).any(|access| {
            let block = self.func.layout.inst_block(access.inst);
            block.is_none_or(|block| self.forest.contains(inner, block))
        })
    }

    /// Replaces the accesses of a block, at whose start the cell holds `value`. Gives what it holds at the end.
    fn walk(
        &mut self,
        accesses: &[&Rc<Located>],
        cell: &Cell,
        mut value: Option<Value>,
        loads: &mut usize,
    ) -> Option<Value> {
        for access in accesses {
            let inst = access.inst;
            match access.stored {
                Some(stored) => {
                    value = Some(to_cell(self.func, inst, stored, cell.ty));
                    // To compare the cell with memory, that has to be up to date.
                    if cell.stays.is_none() && !is_marked(self.func) {
                        self.func.layout.remove_inst(inst);
                    }
                }
                None => {
                    if let Some(value) = value {
                        let value = as_loaded(self.func, inst, value);
                        if cell.is_located {
                            assert_loads(self.func, inst, inst, value);
                        }
                        replace_load(self.func, inst, value);
                        *loads += 1;
                    }
                }
            }
        }
        value
    }

    /// Passes what the cell holds at the source of `edge` along it.
    fn pass_on(&mut self, edge: Edge, at_end: &AtEnd) {
        let source = edge.source(self.func);
        let value = at_end.get(&source).copied().flatten().expect("the cell is known wherever values meet");
        append_arg(self.func, edge, value);
    }

    /// Stores the cell at each exit of the loop.
    fn store_at_exits(&mut self, cell: &Cell, address: Value, at_end: &AtEnd) {
        let store = cell.accesses.iter().find(|access| access.stored.is_some()).expect("a cell is stored to");
        let mut exits = BTreeMap::<Block, Vec<Edge>>::new();
        for &edge in &self.forest.data(self.lp).exits {
            exits.entry(edge.target(self.func)).or_default().push(edge);
        }
        if fault!(ForgottenStore) && exits.len() > 1 {
            exits.pop_last();
        }
        let srcloc = self.func.srcloc(store.inst);
        for (exit, edges) in exits {
            let param = self.func.dfg.append_block_param(exit, cell.ty);
            for edge in edges {
                self.pass_on(edge, at_end);
            }
            let first = self.func.layout.first_inst(exit).expect("a block ends in a terminator");
            let before = *self.exit_points.entry(exit).or_insert(first);
            let mut cursor = FuncCursor::new(self.func).at_inst(before).with_srcloc(srcloc);
            let flags = merged_flags(cell.accesses.iter().map(|access| &***access), store.flags);
            cursor.ins().store(flags, param, address, cell.offset);
        }
    }

    /// The edge from the preheader.
    pub(super) fn entry_edge(&self) -> Edge {
        self.forest.data(self.lp).entries[0]
    }

    /// Loads the cell of the access `like` in the preheader.
    pub(super) fn load_before(&mut self, ty: Type, flags: MemFlagsData, place: (Value, i32), like: Inst) -> Value {
        let jump = self.entry_edge().branch;
        let (address, offset) = place;
        let srcloc = self.func.srcloc(like);
        FuncCursor::new(self.func).at_inst(jump).with_srcloc(srcloc).ins().load(ty, flags, address, offset)
    }

    /// Does the first `count` of the loads that [come first](super::observers::Seen::traps_before) before the loop too, as they are in the first iteration.
    pub(super) fn repeat_before(&mut self, count: usize) {
        if fault!(FirstTrapForgotten) {
            return;
        }
        let before = self.seen().traps_before[..count].to_vec();
        for load in before {
            if !self.repeated.insert(load) {
                continue;
            }
            let address = self.make_before(address_of(self.func, load), &self.first_values());
            self.copy_before(load, [address].into_iter());
        }
    }

    /// Puts a copy of `inst` with other operands in the preheader.
    fn copy_before(&mut self, inst: Inst, operands: impl Iterator<Item = Value>) -> Inst {
        let jump = self.entry_edge().branch;
        let copy = self.func.dfg.clone_inst(inst);
        self.func.dfg.overwrite_inst_values(copy, operands);
        self.func.layout.insert_inst(copy, jump);
        self.addresses.private.add_copy(self.func, copy);
        if !self.func.srcloc(inst).is_default() {
            self.func.set_srcloc(copy, self.func.srcloc(inst));
        }
        copy
    }

    /// Computes in the preheader what `value`, a value of the loop, is in the first iteration. `known` says what
    /// replaces some values there. [`is_made_of`](Self::is_made_of) has to have said that it can be made, with the same known.
    pub(super) fn make_before(&mut self, value: Value, known: &dyn Fn(&Function, Value) -> Option<Value>) -> Value {
        let mut made = FxHashMap::<Value, Value>::default();
        let mut stack = vec![value];
        while let Some(&value) = stack.last() {
            let ready = |made: &FxHashMap<_, _>, func: &Function, value| {
                let outside = !self.forest.defines(func, self.lp, value);
                made.get(&value).copied().or_else(|| known(func, value)).or(outside.then_some(value))
            };
            if ready(&made, self.func, value).is_some() {
                stack.pop();
                continue;
            }
            let inst = self.func.dfg.value_def(value).inst().expect("no other parameter is in an address");
            let args = self.func.dfg.inst_args(inst).to_vec();
            let missing: Vec<_> = args.iter().copied().filter(|&arg| ready(&made, self.func, arg).is_none()).collect();
            if missing.is_empty() {
                let new: Vec<_> = args.iter().filter_map(|&arg| ready(&made, self.func, arg)).collect();
                let copy = self.copy_before(inst, new.into_iter());
                made.insert(value, self.func.dfg.first_result(copy));
                stack.pop();
            } else {
                stack.extend(missing);
            }
        }
        made.get(&value).copied().or_else(|| known(self.func, value)).unwrap_or(value)
    }

    /// Whether `value` is made by a few pure instructions of values from outside the loop and of such as `known` knows.
    pub(super) fn is_made_of(&self, value: Value, known: &dyn Fn(&Function, Value) -> Option<Value>) -> bool {
        /// As many as the analysis of addresses looks at.
        const MAX_INSTS: usize = 32;
        let mut stack = vec![value];
        for _ in 0..MAX_INSTS {
            let Some(value) = stack.pop() else { return true };
            let outside = !self.forest.defines(self.func, self.lp, value);
            if outside || known(self.func, value).is_some() {
                continue;
            }
            let Some(inst) = self.func.dfg.value_def(value).inst() else { return false };
            let effects = crate::analysis::inst::effects::Effects::of(self.func, inst);
            if !effects.is_pure() || self.func.dfg.inst_results(inst).len() != 1 {
                return false;
            }
            stack.extend(self.func.dfg.inst_args(inst));
        }
        stack.is_empty()
    }
}

/// The address operand of a plain load or store.
pub(super) fn address_of(func: &Function, access: Inst) -> Value {
    *func.dfg.inst_args(access).last().expect("an access has an address")
}

/// Flags for an access that stands for several, and that may trap as the one of `flags` does: what all of them have. A region that not all have
/// says where one of them is if it runs, and that may be never. What is stored to is not readonly.
fn merged_flags<'a>(
    accesses: impl IntoIterator<Item = &'a Access, IntoIter: Clone>,
    flags: MemFlagsData,
) -> MemFlagsData {
    let mut accesses = accesses.into_iter();
    let region = flags.alias_region();
    let is_same = |access: &Access| access.flags.alias_region() == region;
    let shared = accesses.clone().all(is_same) || fault!(RegionOfOneVariant);
    let mut all = MemFlagsData::new().with_trap_code(flags.trap_code()).with_alias_region(region.filter(|_| shared));
    if accesses.all(|access| access.flags.aligned()) {
        all.set_aligned();
    }
    if let Some(order) = flags.explicit_endianness() {
        all.set_endianness(order);
    }
    all
}

/// The same for a load before the loop, in the place of a load with `flags`.
pub(super) fn merged_load_flags<'a>(
    accesses: impl IntoIterator<Item = &'a Access, IntoIter: Clone>,
    flags: MemFlagsData,
) -> MemFlagsData {
    let all = merged_flags(accesses, flags);
    if flags.can_move() { all.with_can_move() } else { all }
}

/// The bytes that `store` writes if it stores `stored`, as one value.
pub(super) fn to_cell(func: &mut Function, store: Inst, stored: Value, ty: Type) -> Value {
    if func.dfg.value_type(stored) == ty {
        return stored;
    }
    let srcloc = func.srcloc(store);
    FuncCursor::new(func).at_inst(store).with_srcloc(srcloc).ins().ireduce(ty, stored)
}

/// What `load` gives of `cell`, the bytes that it would read. Made before it.
pub(super) fn as_loaded(func: &mut Function, load: Inst, cell: Value) -> Value {
    use Opcode::{Sload8, Sload16, Sload32, Uload8, Uload16, Uload32};
    let (opcode, ty) = (func.dfg.insts[load].opcode(), func.dfg.value_type(func.dfg.first_result(load)));
    let srcloc = func.srcloc(load);
    let mut cursor = FuncCursor::new(func).at_inst(load).with_srcloc(srcloc);
    match opcode {
        Uload8 | Uload16 | Uload32 => cursor.ins().uextend(ty, cell),
        Sload8 | Sload16 | Sload32 if !fault!(UnsignedCell) => cursor.ins().sextend(ty, cell),
        Sload8 | Sload16 | Sload32 => cursor.ins().uextend(ty, cell),
        _ => cell,
    }
}

/// Uses `value` in the place of what `load` gives.
pub(super) fn replace_load(func: &mut Function, load: Inst, value: Value) {
    stand_for(func, load, value);
    func.dfg.insts[load] = cranelift_codegen::ir::InstructionData::NullAry { opcode: Opcode::Nop };
}
