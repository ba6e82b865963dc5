//! What a loop makes of its cells, made before it: the loads of which [`assumed`](super::assumed) says that they may be done there, and the addresses that these are at.

use crate::analysis::cfg::edges::edges_from;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::Effects;
use crate::analysis::memory::alias::Access;
use crate::analysis::memory::checked_memory::CheckedMemories;
use crate::analysis::scev::linear_expr::Sum;
use crate::claim::asserted;
use crate::edit::at;
use crate::edit::inst::clone::copy_before;
use crate::fault::fault;
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{
    Function, Inst, InstBuilder, InstructionData, MemFlags, MemFlagsData, Opcode, Type, Value, ValueDef,
};
use cranelift_codegen::{FxHashMap, FxHashSet};

/// A load that was done before the loop.
pub(super) struct Loaded {
    kind: (Opcode, MemFlags, Type),
    place: Sum,
    /// Its address, without the offset.
    address: Value,
    offset: Offset32,
    /// How many bytes.
    size: u32,
    value: Value,
    /// Whether it has been loaded whatever the checks in the loop say.
    is_sure: bool,
}

impl Loaded {
    /// What `load` loads, if it is a load.
    pub(super) fn of(func: &Function, load: Inst) -> Option<Self> {
        let InstructionData::Load { opcode, arg, flags, offset } = func.dfg.insts[load] else { return None };
        let (access, value) = (Access::of(func, load)?, func.dfg.first_result(load));
        let kind = (opcode, flags, func.dfg.value_type(value));
        Some(Self { kind, place: access.address, address: arg, offset, size: access.size, value, is_sure: true })
    }
}

/// Why a load may be done before the loop.
#[derive(Clone, Copy)]
pub(super) struct May {
    /// It cannot trap, and may run wherever its address is known.
    pub(super) anywhere: bool,
    /// It runs in the first iteration, unless a check before it fails, and nothing that can be seen comes before it, or it cannot trap.
    pub(super) at_first: bool,
}

/// Whether an instruction is a check that guards what follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Guarding {
    No,
    Yes,
    /// It is one, and of a kind that cannot be asked before the loop.
    InTheWay,
}

/// A check in the first iteration.
struct Guard {
    inst: Inst,
    condition: Value,
    /// Whether it does nothing if the condition is not zero.
    holds: bool,
}

/// What is made before a loop.
pub(super) struct PreheaderLoads<'a> {
    pub(super) func: &'a mut Function,
    forest: &'a LoopForest,
    lp: Loop,
    /// The jump into the loop.
    jump: Inst,
    /// The memories that Spectre guards confine accesses to.
    memories: &'a CheckedMemories,
    /// What values of the loop are, if they can be made: those that are loop-invariant, and those of the first iteration.
    fixed: FxHashMap<Value, Option<Value>>,
    first: FxHashMap<Value, Option<Value>>,
    loads: Vec<Loaded>,
    /// Values of the loop that are made of what it loads.
    loaded: FxHashSet<Value>,
    /// The checks on the path.
    guards: Vec<Guard>,
    /// Whether a store comes before what is looked at.
    pub(super) is_written: bool,
    /// How many of the checks, from the first, guard a load.
    needed: usize,
    made: Vec<Inst>,
}

impl<'a> PreheaderLoads<'a> {
    /// Before the jump into `lp`, where this has been loaded.
    pub(super) fn new(
        func: &'a mut Function,
        forest: &'a LoopForest,
        (lp, jump): (Loop, Inst),
        (memories, loads): (&'a CheckedMemories, Vec<Loaded>),
    ) -> Self {
        Self {
            func,
            forest,
            lp,
            jump,
            memories,
            fixed: FxHashMap::default(),
            first: FxHashMap::default(),
            loads,
            loaded: FxHashSet::default(),
            guards: Vec::new(),
            is_written: false,
            needed: 0,
            made: Vec::new(),
        }
    }

    /// Takes note of `inst` if it is a check: it traps, or leaves the loop for a failure, unless something holds. `is_certain` says if each first iteration reaches
    /// it, unless checks before it fail.
    pub(super) fn guard(&mut self, inst: Inst, is_certain: bool) -> Guarding {
        let (func, forest) = (&*self.func, self.forest);
        let guard = match func.dfg.insts[inst] {
            InstructionData::CondTrap { opcode, arg, .. } if asserted(func, inst).is_none() && is_certain => {
                Guard { inst, condition: arg, holds: opcode == Opcode::Trapz }
            }
            data if data.opcode().is_branch() => {
                let Some(block) = func.layout.inst_block(inst) else { return Guarding::InTheWay };
                let fails = |target| !forest.contains(self.lp, target) && forest.fails_at(func, target);
                let mut failing = edges_from(func, block).filter(|edge| fails(edge.target(func)));
                match (failing.next(), failing.next(), data) {
                    (None, ..) => return Guarding::No,
                    (Some(edge), None, InstructionData::Brif { arg, .. }) if is_certain => {
                        Guard { inst, condition: arg, holds: edge.slot == 1 }
                    }
                    _ => return Guarding::InTheWay,
                }
            }
            _ => return Guarding::No,
        };
        self.guards.push(guard);
        Guarding::Yes
    }

    /// What `load`, a load of the loop, gives before it: what has been loaded there, or is now if it may be.
    pub(super) fn load(&mut self, load: &Access, may: May) -> Option<Value> {
        let loaded = Loaded::of(self.func, load.inst)?;
        let address = self.value(loaded.address, (0, false))?;
        let is_loaded = self.loaded.contains(&loaded.address);
        let place = Sum::of(self.func, address).offset(loaded.offset.into());
        let same = self.loads.iter().find(|there| there.kind == loaded.kind && there.place == place);
        let value = match same {
            Some(there) => there.value,
            None => self.load_now((load.inst, Loaded { address, place, ..loaded }), may, is_loaded)?,
        };
        self.fixed.insert(loaded.value, Some(value));
        self.loaded.insert(loaded.value);
        Some(value)
    }

    /// Loads before the loop, as `inst` does in it. After checks that fail, what was loaded earlier is loaded again in the place of that. `is_loaded` says if the address is
    /// made of what was loaded.
    fn load_now(&mut self, (inst, loaded): (Inst, Loaded), may: May, is_loaded: bool) -> Option<Value> {
        let (opcode, flags, ty) = loaded.kind;
        let Loaded { address, offset, size, .. } = loaded;
        let is_guarded = !self.guards.is_empty();
        let is_sure = may.anywhere && !is_loaded || !is_guarded;
        if !(may.at_first || may.anywhere && is_sure) {
            return None;
        }
        // After a store, this may be another place in the loop, or one that it does not reach.
        if self.is_written && (is_loaded || !is_sure) {
            return None;
        }
        let (place, at_offset, flags) = match is_sure {
            true => (address, offset, flags),
            false => (self.guarded((address, offset), size)?, Offset32::new(0), self.flags_of_either(flags)?),
        };
        let srcloc = self.func.srcloc(inst);
        let mut cursor = at(self.func, self.jump).with_srcloc(srcloc);
        let (load, _) = cursor.ins().Load(opcode, ty, flags, at_offset, place);
        self.made.push(load);
        let value = self.func.dfg.first_result(load);
        self.loads.push(Loaded { value, is_sure, ..loaded });
        Some(value)
    }

    /// An address, if the checks on the path do nothing in the first iteration, and one that was loaded at otherwise.
    fn guarded(&mut self, (address, offset): (Value, Offset32), size: u32) -> Option<Value> {
        /// Checks that may guard a load: each is a choice for each load.
        const MAX_GUARDS: usize = 8;
        if self.guards.len() > MAX_GUARDS {
            return None;
        }
        let ty = self.func.dfg.value_type(address);
        let is_safe =
            |there: &&Loaded| there.is_sure && there.size >= size && self.func.dfg.value_type(there.address) == ty;
        let safe = self.loads.iter().find(is_safe).map(|there| (there.address, there.offset))?;
        let mut conditions = Vec::with_capacity(self.guards.len());
        for at in 0..self.guards.len() {
            let Guard { condition, holds, .. } = self.guards[at];
            conditions.push((self.value(condition, (0, true))?, holds));
        }
        let [mut place, safe] = [(address, offset), safe].map(|(address, offset)| self.sum(address, offset));
        for (condition, holds) in conditions {
            let [yes, no] = if holds { [place, safe] } else { [safe, place] };
            place = at(self.func, self.jump).ins().select(condition, yes, no);
            self.made.extend(self.func.dfg.value_def(place).inst());
        }
        self.needed = self.guards.len();
        Some(place)
    }

    /// The flags of a load at one of two places: nothing that was said of one of them, but how to read it. None if guards confine it, which would have to
    /// be rebuilt for both.
    fn flags_of_either(&mut self, flags: MemFlags) -> Option<MemFlags> {
        if fault!(FlagsOfAnotherPlace) {
            return Some(flags);
        }
        let old = self.func.dfg.mem_flags[flags];
        if old.alias_region().is_some_and(|region| self.memories.hold(region)) {
            return None;
        }
        let mut new = MemFlagsData::new().with_trap_code(old.trap_code());
        if let Some(endianness) = old.explicit_endianness() {
            new.set_endianness(endianness);
        }
        self.func.dfg.mem_flags.insert(new).ok()
    }

    /// An address with its offset.
    fn sum(&mut self, address: Value, offset: Offset32) -> Value {
        if i32::from(offset) == 0 {
            return address;
        }
        let sum = at(self.func, self.jump).ins().iadd_imm_s(address, i64::from(offset));
        self.made.extend(self.func.dfg.value_def(sum).inst());
        sum
    }

    /// What was made before the loop, and the checks that guard a load there.
    pub(super) fn finish(self) -> (Vec<Inst>, Vec<Inst>) {
        (self.made, self.guards[..self.needed].iter().map(|guard| guard.inst).collect())
    }

    /// `value` before the loop, as it is or made there by pure instructions: of what is loop-invariant, or of what it is in the first iteration.
    fn value(&mut self, value: Value, (depth, is_first): (usize, bool)) -> Option<Value> {
        /// Instructions between a cell and an address that is made of it: an extension, a product and some sums.
        const MAX_DEPTH: usize = 8;
        if !self.forest.defines(self.func, self.lp, value) {
            return Some(value);
        }
        // What is loop-invariant is so in the first iteration, too.
        if let Some(&Some(fixed)) = self.fixed.get(&value) {
            return Some(fixed);
        }
        if let Some(&known) = if is_first { &self.first } else { &self.fixed }.get(&value) {
            return known;
        }
        let found = match self.func.dfg.value_def(value) {
            ValueDef::Param(block, index) if is_first && block == self.forest.data(self.lp).header => {
                let [entry] = self.forest.data(self.lp).entries[..] else { return None };
                entry.args(self.func).nth(index).and_then(|arg| arg.as_value())
            }
            ValueDef::Result(def, _) if depth < MAX_DEPTH => self.repeated(def, (depth + 1, is_first)),
            _ => None,
        };
        if is_first { &mut self.first } else { &mut self.fixed }.insert(value, found);
        found
    }

    /// What `def` gives, if it is pure and made of what can be made.
    fn repeated(&mut self, def: Inst, how: (usize, bool)) -> Option<Value> {
        if self.func.dfg.inst_results(def).len() != 1 || !Effects::of(self.func, def).is_pure() {
            return None;
        }
        let args = self.func.dfg.inst_args(def).to_vec();
        let args: Vec<_> = args.into_iter().map(|arg| self.value(arg, how)).collect::<Option<_>>()?;
        if self.func.dfg.inst_args(def).iter().any(|arg| self.loaded.contains(arg)) {
            self.loaded.insert(self.func.dfg.first_result(def));
        }
        let copy = copy_before(self.func, def, self.jump);
        self.func.dfg.overwrite_inst_values(copy, args.into_iter());
        self.made.push(copy);
        Some(self.func.dfg.first_result(copy))
    }
}
