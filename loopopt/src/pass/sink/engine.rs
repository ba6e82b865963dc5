//! Decides what moves where: the last user first, then what only it used, and so on.

use super::loads::Loads;
use super::places::{Kind, Places};
use super::{Decline, is_movable};
use crate::analysis::cfg::loops::LoopForest;
use crate::analysis::inst::effects::is_constant;
use crate::edit::inst::rename::each_use;
use crate::options::Options;
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use std::collections::{BTreeMap, BTreeSet};

/// How often a value is tried again that was one too many: a bound on time.
const MAX_TRIES: usize = 8;

/// What bounds a move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Places that a value may be computed in.
    places: usize,
    /// Values that may live up to a place before a move that adds one is no longer worth it.
    values: usize,
}

impl Limits {
    /// As the options say.
    pub(super) fn of(options: &Options) -> Self {
        let values = if options.ignore_cost { usize::MAX } else { options.sink_max_values };
        Self { places: options.sink_max_places, values }
    }
}

/// An instruction that moves.
#[derive(Clone, Debug)]
pub(super) struct Move {
    pub(super) inst: Inst,
    /// The places that need it, by their numbers.
    pub(super) places: Vec<usize>,
    /// The header of the loop that gains by it.
    pub(super) header: Block,
}

/// What is known while a decision is made.
struct State {
    used_at: BTreeMap<Value, (u32, BTreeSet<usize>)>,
    needs: Vec<BTreeSet<Value>>,
    queue: Vec<Value>,
}

/// Makes the decision.
pub(super) struct Engine<'a> {
    func: &'a Function,
    forest: &'a LoopForest,
    places: &'a Places,
    limits: Limits,
    loads: &'a Loads<'a>,
    /// Where no step may take one more register.
    is_tight: Vec<bool>,
    declined: BTreeMap<Block, Decline>,
}

impl<'a> Engine<'a> {
    pub(super) fn new(
        func: &'a Function,
        forest: &'a LoopForest,
        places: &'a Places,
        (limits, loads): (Limits, &'a Loads<'a>),
    ) -> Self {
        let is_tight = vec![false; places.list.len()];
        Self { func, forest, places, limits, loads, is_tight, declined: BTreeMap::new() }
    }

    /// Whether nobody can tell that `inst` runs in these places, by their numbers.
    fn is_movable<'p>(&self, inst: Inst, places: impl IntoIterator<Item = &'p usize>) -> bool {
        let sources = places.into_iter().flat_map(|&number| self.places.list[number].sources.iter().copied());
        is_movable(self.func, inst) || self.loads.may_wait(inst, sources)
    }

    /// Tries what would come of it if registers did not count. Where they turn out to be too few, no step may take one
    /// more.
    ///
    /// If nothing would move, nothing is going to: then the reasons that this leaves are all that there is to say.
    fn tighten(&mut self) -> bool {
        let mut state = self.start();
        if self.go(&mut state, &mut || true).is_empty() {
            self.note_mixed(&state);
            return false;
        }
        for (number, place) in self.places.list.iter().enumerate() {
            let (before, after) = (place.needs.len(), state.needs[number].len());
            self.is_tight[number] = after > before.max(self.limits.values);
        }
        self.declined.clear();
        true
    }

    /// The moves, users before operands. `may_move` is asked before each.
    pub(super) fn run(&mut self, may_move: &mut dyn FnMut() -> bool) -> Vec<Move> {
        if !self.tighten() {
            return Vec::new();
        }
        let mut state = self.start();
        let moves = self.go(&mut state, may_move);
        self.note_mixed(&state);
        moves
    }

    /// Declines the values that leave the loop by one exit with another value.
    fn note_mixed(&mut self, state: &State) {
        for (&value, &count) in &self.places.mixed {
            let used_at = state.used_at.get(&value).map_or(0, |used| used.0);
            if used_at + count == self.places.uses[value]
                && let Some((inst, header)) = self.in_loop(value)
                && self.is_movable(inst, [])
            {
                self.declined.entry(header).or_insert(Decline::SeveralValues);
            }
        }
    }

    /// Why something stayed, by the header of its loop.
    pub(super) fn declined(self) -> BTreeMap<Block, Decline> {
        self.declined
    }

    fn start(&self) -> State {
        let needs = self.places.list.iter().map(|place| place.needs.clone()).collect();
        let used_at = self.places.used_at.clone();
        let is_ready =
            |(value, used): (&Value, &(u32, BTreeSet<usize>))| (used.0 == self.places.uses[*value]).then_some(*value);
        let queue = used_at.iter().filter_map(is_ready).collect();
        State { used_at, needs, queue }
    }

    fn go(&mut self, state: &mut State, may_move: &mut dyn FnMut() -> bool) -> Vec<Move> {
        let mut moves = Vec::new();
        for _ in 0..MAX_TRIES {
            let (before, mut stuck) = (moves.len(), Vec::new());
            while let Some(value) = state.queue.pop() {
                let Some((inst, header)) = self.candidate(state, value) else { continue };
                match self.judge(state, value, inst) {
                    Ok(()) if may_move() => {
                        let places = state.used_at[&value].1.iter().copied().collect();
                        self.accept(state, value, inst);
                        moves.push(Move { inst, places, header });
                    }
                    Ok(()) => drop(self.declined.insert(header, Decline::Withheld)),
                    Err(why) => {
                        if matches!(why, Decline::TooManyValues { .. }) {
                            stuck.push(value);
                        }
                        self.declined.insert(header, why);
                    }
                }
            }
            if moves.len() == before {
                break;
            }
            // A place that has lost a value since has room for another.
            state.queue = stuck;
        }
        moves
    }

    /// The instruction of a value that only the places use, if these are better places, and the header of the loop that
    /// gains.
    fn candidate(&self, state: &State, value: Value) -> Option<(Inst, Block)> {
        let places = &state.used_at[&value].1;
        let inst = self.func.dfg.value_def(value).inst()?;
        let home = self.func.layout.inst_block(inst)?;
        if is_constant(self.func, inst) || self.func.dfg.inst_results(inst).len() != 1 {
            return None;
        }
        let blocks = || places.iter().map(|&number| self.places.list[number].block);
        match self.places.kind {
            Kind::Exits => {
                let (inst, header) = self.in_loop(value)?;
                let is_better = |block| {
                    let lp = self.forest.innermost(home).expect("the value is in a loop");
                    !self.forest.contains(lp, block)
                        && self.forest.innermost(block).is_none_or(|around| self.forest.encloses(around, lp))
                };
                (!places.is_empty() && blocks().all(is_better)).then_some((inst, header))
            }
            Kind::Cold => {
                let lp = blocks().find_map(|block| self.forest.innermost(block))?;
                let is_hot = !self.func.is_effectively_cold(home);
                let is_worth_it =
                    is_hot && self.is_movable(inst, places) && blocks().all(|block| self.is_rare(home, block));
                is_worth_it.then_some((inst, self.forest.data(lp).header))
            }
        }
    }

    /// The instruction that makes a value, and the header of the innermost loop that it is in.
    fn in_loop(&self, value: Value) -> Option<(Inst, Block)> {
        let inst = self.func.dfg.value_def(value).inst()?;
        let lp = self.forest.innermost(self.func.layout.inst_block(inst)?)?;
        Some((inst, self.forest.data(lp).header))
    }

    /// Whether the cold block `block` runs more rarely than `home`: the loops that are entered on the path there are not cold
    /// as a whole.
    fn is_rare(&self, home: Block, block: Block) -> bool {
        let mut around = self.forest.innermost(block);
        while let Some(lp) = around.filter(|&lp| !self.forest.contains(lp, home)) {
            if self.func.is_effectively_cold(self.forest.data(lp).header) {
                return false;
            }
            around = self.forest.data(lp).parent;
        }
        true
    }

    fn judge(&self, state: &State, value: Value, inst: Inst) -> Result<(), Decline> {
        let places = &state.used_at[&value].1;
        if !self.is_movable(inst, places) {
            return Err(Decline::HasEffects(self.func.dfg.insts[inst].opcode()));
        }
        if places.len() > self.limits.places {
            return Err(Decline::TooManyPlaces { places: places.len(), max: self.limits.places });
        }
        for &number in places.iter().filter(|&&number| self.is_tight[number]) {
            let (before, needs) = (state.needs[number].len(), &state.needs[number]);
            let values = before - usize::from(needs.contains(&value)) + self.new_needs(state, inst, number).len();
            if values > before {
                return Err(Decline::TooManyValues { values, max: self.limits.values });
            }
        }
        Ok(())
    }

    /// The operands of `inst` that would live up to a place in addition to what does already.
    fn new_needs(&self, state: &State, inst: Inst, number: usize) -> BTreeSet<Value> {
        let mut new = BTreeSet::new();
        let block = self.places.list[number].block;
        each_use(self.func, inst, |operand| {
            let is_need = self.places.is_need(self.func, self.forest, operand, block);
            if is_need && !state.needs[number].contains(&operand) {
                new.insert(operand);
            }
        });
        new
    }

    fn accept(&self, state: &mut State, value: Value, inst: Inst) {
        let places = state.used_at[&value].1.clone();
        for &number in &places {
            let new = self.new_needs(state, inst, number);
            state.needs[number].remove(&value);
            state.needs[number].extend(new);
        }
        each_use(self.func, inst, |operand| {
            let entry = state.used_at.entry(operand).or_default();
            entry.0 += 1;
            entry.1.extend(&places);
            if entry.0 == self.places.uses[operand] {
                state.queue.push(operand);
            }
        });
    }
}
