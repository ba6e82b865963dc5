//! What stands still as long as nobody writes: numbers that move only if a flag is set, in a register or in memory.
//!
//! ```text
//! header(v1):
//!     v2 = load.i8 v0            brif v2, body, next(v1)          a branch decides whether it moves
//!     v3 = icmp ne v2, v9        v4 = uextend v3                  or how far: by one or not at all
//!     v5 = iadd v1, v4           brif (v5 > 3), exit, header(v5)
//! ```
//!
//! A loop that such a number ends waits for the flag. A number that stands still because of what changes, as in a binary search, is none: the next
//! iteration finds something else.

use super::{Guards, Operands, Search, is_choice, settles};
use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::LoopData;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Value, ValueDef};
use cranelift_codegen::{FxHashMap, FxHashSet};

/// Values on one way down to what a condition is made of. Conditions of more are taken for moving.
const MAX_DEPTH: usize = 16;

/// Values that are looked at to see whether one of them is passed on as it is.
const MAX_VALUES: usize = 32;

impl Search<'_> {
    /// Whether one of the values that are asked together stands still as long as nobody writes to memory. Adds the conditions that decide that.
    pub(super) fn stand_still(&mut self, asked: &[Value], guards: &mut Vec<Value>) -> bool {
        let mut stand_still = false;
        for &value in asked {
            stand_still |= !self.is_steady(value) && !self.moves(value, MAX_DEPTH, guards);
        }
        stand_still
    }

    /// Whether `value` is another one in each iteration: it is made of what moves, or of what is chosen among values that move. Adds what decides
    /// that it does not.
    fn moves(&mut self, value: Value, depth: usize, guards: &mut Vec<Value>) -> bool {
        if self.is_steady(value) {
            return false;
        }
        if depth == 0 {
            return true;
        }
        if let Some(&known) = self.moving.get(&value) {
            return known;
        }
        // A parameter of a loop inside that is made of itself.
        self.moving.insert(value, true);
        let moves = match self.func.dfg.value_def(value) {
            ValueDef::Param(block, _) if block == self.forest.data(self.lp).header => !self.may_be_kept(value, guards),
            ValueDef::Param(..) => {
                let passed = self.operands(value).unwrap_or_default();
                self.all_move(&passed, depth, guards)
            }
            ValueDef::Result(inst, _) if is_choice(self.func.dfg.insts[inst].opcode()) => {
                let args = self.func.dfg.inst_args(inst);
                self.all_move(&args[1..], depth, guards)
            }
            _ => {
                let operands = self.operands(value).unwrap_or_default();
                operands.is_empty() || operands.iter().any(|&operand| self.moves(operand, depth - 1, guards))
            }
        };
        self.moving.insert(value, moves);
        moves
    }

    /// Whether all values that one is chosen among move, or were there before: none is loaded and steady. Adds those that are.
    fn all_move(&mut self, values: &[Value], depth: usize, guards: &mut Vec<Value>) -> bool {
        let mut all_move = true;
        for &value in values {
            if self.is_loaded(value) {
                guards.push(value);
                all_move = false;
            } else {
                all_move &= self.is_steady(value) || self.moves(value, depth - 1, guards);
            }
        }
        all_move
    }

    /// Whether an iteration may pass `param` of the header on as it is, or come to rest with it, and what is steady and loaded decides that. Adds what
    /// does.
    fn may_be_kept(&mut self, param: Value, guards: &mut Vec<Value>) -> bool {
        let Self { func, cfg, forest, lp, .. } = *self;
        let LoopData { header, ref back_edges, .. } = *forest.data(lp);
        let passed = |edges: &[Edge], value| -> Vec<Value> {
            edges.iter().filter_map(|edge| edge.passed_for(func, value)).collect()
        };
        let (mut open, mut seen) = (passed(back_edges, param), FxHashSet::default());
        let (mut is_kept, mut amounts) = (false, Vec::new());
        while let Some(next) = open.pop().filter(|_| seen.len() < MAX_VALUES) {
            is_kept |= next == param;
            match func.dfg.value_def(next) {
                _ if next == param || !seen.insert(next) => {}
                ValueDef::Param(block, _) if block != header && forest.contains(lp, block) => {
                    open.extend(passed(forest.edges_into(func, cfg, block), next));
                }
                ValueDef::Result(inst, _) => open.extend(self.kept_by(inst, &mut amounts)),
                _ => {}
            }
        }
        if !is_kept {
            return false;
        }
        let decides = self.add_steady_branches(guards) || !amounts.is_empty();
        guards.append(&mut amounts);
        decides
    }

    /// The operands of `inst` that its result may be equal to, or comes to rest with. Adds those that are loaded and steady and decide that.
    fn kept_by(&mut self, inst: Inst, amounts: &mut Vec<Value>) -> Operands {
        let func = self.func;
        let args = func.dfg.inst_args(inst);
        match (func.dfg.insts[inst].opcode(), args) {
            (opcode, [_, chosen @ ..]) if is_choice(opcode) => Operands::from_slice(chosen),
            (opcode, _) if settles(opcode) => {
                let loaded = args.iter().copied().filter(|&arg| self.is_loaded(arg));
                amounts.extend(loaded.collect::<Operands>());
                Operands::from_slice(args)
            }
            (Opcode::Iadd, &[a, b]) if self.is_flag(a) => {
                amounts.push(a);
                Operands::from_slice(&[b])
            }
            (Opcode::Iadd | Opcode::Isub, &[a, b]) if self.is_flag(b) => {
                amounts.push(b);
                Operands::from_slice(&[a])
            }
            _ => Operands::new(),
        }
    }

    /// Whether `value` is loaded, steady, and made into some bits: zero as long as a flag is not set. A distance that is loaded is none.
    fn is_flag(&mut self, value: Value) -> bool {
        use Opcode::{Band, Fcmp, Icmp, Ireduce, Select, Sextend, Uextend, Ushr};
        let mut bits = value;
        while let Some(inst) = self.func.dfg.value_def(bits).inst() {
            match self.func.dfg.insts[inst].opcode() {
                Ireduce | Sextend | Uextend => bits = self.func.dfg.inst_args(inst)[0],
                Band | Fcmp | Icmp | Select | Ushr => return self.is_loaded(value),
                _ => break,
            }
        }
        false
    }

    /// The polls `loads`, and those that decide what the loop itself stores where these load: `while (*n < 4) if (*flag) ++*n` waits for the flag.
    pub(super) fn with_stored(&mut self, mut loads: Vec<Inst>) -> Vec<Inst> {
        let mut stores = if loads.is_empty() { FxHashMap::default() } else { self.stores() };
        let mut known: FxHashSet<_> = loads.iter().copied().collect();
        let mut next = 0;
        while let Some(&load) = loads.get(next) {
            next += 1;
            // Each place is looked at once.
            for store in place(self.func, load).and_then(|place| stores.remove(&place)).unwrap_or_default() {
                let decide = self.decide_stored(store);
                loads.extend(self.loads_behind(decide).into_iter().filter(|&found| known.insert(found)));
            }
        }
        loads.sort_unstable();
        loads
    }

    /// The stores of the loop, by where they write.
    fn stores(&self) -> FxHashMap<Place, Vec<Inst>> {
        let Self { func, forest, lp, .. } = *self;
        let mut stores: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for inst in forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block)) {
            if let InstructionData::Store { .. } = func.dfg.insts[inst]
                && let Some(place) = place(func, inst)
            {
                stores.entry(place).or_default().push(inst);
            }
        }
        stores
    }

    /// What is steady and loaded and decides whether `store` is done, or what it stores: how far what was there is moved, or what comes in its place.
    fn decide_stored(&mut self, store: Inst) -> Vec<Value> {
        let func = self.func;
        let mut guards = Guards::default();
        if let Some(block) = func.layout.inst_block(store) {
            self.is_guarded(block, &mut guards);
        }
        let mut decide = guards.conditions;
        let (mut open, mut seen) = (vec![func.dfg.inst_args(store)[0]], FxHashSet::default());
        while let Some(value) = open.pop().filter(|_| seen.len() < MAX_VALUES) {
            match func.dfg.value_def(value) {
                _ if !seen.insert(value) => {}
                // What the place holds decides nothing.
                ValueDef::Result(inst, _) if place(func, inst) == place(func, store) => {}
                ValueDef::Result(inst, _) if place(func, inst).is_some() => {
                    decide.extend(self.is_loaded(value).then_some(value));
                }
                ValueDef::Result(inst, _) => open.extend(self.kept_by(inst, &mut decide)),
                ValueDef::Param(block, _) if self.forest.contains(self.lp, block) => {
                    self.add_steady_branches(&mut decide);
                    open.extend(self.operands(value).unwrap_or_default());
                }
                _ => {}
            }
        }
        decide
    }
}

/// An address, and an offset from there.
type Place = (Value, i32);

/// Where a load or a store accesses memory.
fn place(func: &Function, inst: Inst) -> Option<Place> {
    match func.dfg.insts[inst] {
        InstructionData::Load { arg, offset, .. } => Some((arg, offset.into())),
        InstructionData::Store { args: [_, address], offset, .. } => Some((address, offset.into())),
        _ => None,
    }
}
