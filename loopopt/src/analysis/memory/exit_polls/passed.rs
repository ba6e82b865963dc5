//! What one path through an iteration passes to the next one: whether it moves parameters of the header, or keeps them.

use super::{Search, is_select};
use crate::analysis::cfg::edges::Edge;
use crate::analysis::inst::number::{constant_of, signed};
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value, ValueDef};
use cranelift_codegen::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Parameters of the header.
pub(super) type Params = SmallVec<[Value; 4]>;

/// States of all walks of one loop from the end of an iteration up to its start, with each value that is looked at on the way. From then on, all parameters may be
/// kept on one of the paths.
pub(super) const MAX_STEPS: usize = 4_000;

/// Values on one path down into a block argument. What is made of more may be the same again.
const MAX_DEPTH: usize = 24;

/// Values that are looked at to see how what is added to is made of a parameter.
const MAX_VALUES: usize = 16;

/// Parameters that are looked at together.
const MAX_TOGETHER: usize = 8;

/// Whether the block argument for a parameter may be the same from some iteration on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kept {
    /// It is a different value.
    No,
    /// It is what it was.
    Yes,
    /// It is what it was from then on: the number that is added to it, which is loaded from one place, is zero; or what it grows to is limited.
    ForGood,
}

/// The end of a block, on the walk up, and the block argument for each parameter from there.
type State = (Block, Params);

/// A walk for some parameters.
struct Walk<'p> {
    params: &'p [Value],
    /// What is known of a value that is the block argument for a parameter.
    known: FxHashMap<(Value, Value), Kept>,
}

impl Search<'_> {
    /// Whether there is a path through an iteration that keeps all of these parameters of the header.
    pub(super) fn kept_on_some_path(&mut self, params: &[Value]) -> Kept {
        let func = self.func;
        let back_edges = self.forest.data(self.lp).back_edges.iter();
        let passed = |edge: &Edge| -> Params {
            params.iter().map(|&param| edge.passed_for(func, param).unwrap_or(param)).collect()
        };
        let mut open: Vec<State> = back_edges.map(|edge| (edge.source(func), passed(edge))).collect();
        let (mut seen, mut found) = (FxHashSet::default(), Kept::No);
        let mut walk = Walk { params, known: FxHashMap::default() };
        while let Some(state) = open.pop() {
            if !seen.insert(state.clone()) {
                continue;
            }
            if !self.take_step() {
                return Kept::ForGood;
            }
            let (block, values) = state;
            let kept: SmallVec<[Kept; 4]> = params
                .iter()
                .zip(&values)
                .map(|(&param, &value)| self.kept(&mut walk, param, value, MAX_DEPTH))
                .collect();
            if kept.contains(&Kept::No) {
                continue;
            }
            if values.iter().any(|&value| self.is_joined(value)) && block != self.forest.data(self.lp).header {
                self.go_up(block, &values, &mut open);
            } else {
                found = found.max(kept.into_iter().max().unwrap_or(Kept::Yes));
            }
        }
        found
    }

    /// Whether one more step may be taken.
    fn take_step(&mut self) -> bool {
        let left = self.steps.checked_sub(1);
        self.steps = left.unwrap_or(0);
        left.is_some()
    }

    /// Whether `value` is a parameter of a block inside of the loop, of which the path decides the value.
    fn is_joined(&mut self, value: Value) -> bool {
        let header = self.forest.data(self.lp).header;
        let is_param = |block| block != header && self.forest.contains(self.lp, block);
        matches!(self.func.dfg.value_def(value), ValueDef::Param(block, _) if is_param(block)) && !self.is_steady(value)
    }

    /// The values at the ends of the predecessors of `block` for those at its own.
    fn go_up(&self, block: Block, values: &Params, open: &mut Vec<State>) {
        for edge in self.forest.edges_into(self.func, self.cfg, block) {
            let source = edge.source(self.func);
            if self.forest.contains(self.lp, source) {
                let before = |&value: &Value| match self.func.dfg.value_def(value) {
                    ValueDef::Param(of, _) if of == block => edge.passed_for(self.func, value).unwrap_or(value),
                    _ => value,
                };
                open.push((source, values.iter().map(before).collect()));
            }
        }
    }

    /// Whether `value`, the block argument for `param`, may be what `param` was. What is joined on the walk up may.
    fn kept(&mut self, walk: &mut Walk<'_>, param: Value, value: Value, depth: usize) -> Kept {
        if self.is_loaded(value) {
            return Kept::ForGood;
        }
        if value == param || depth == 0 || self.is_steady(value) {
            return Kept::Yes;
        }
        let ValueDef::Result(inst, _) = self.func.dfg.value_def(value) else { return Kept::Yes };
        if let Some(&known) = walk.known.get(&(param, value)) {
            return known;
        }
        if !self.take_step() {
            return Kept::ForGood;
        }
        let kept = self.kept_by(walk, param, inst, depth - 1);
        walk.known.insert((param, value), kept);
        kept
    }

    fn kept_by(&mut self, walk: &mut Walk<'_>, param: Value, inst: Inst, depth: usize) -> Kept {
        use Opcode::{Fadd, Fsub, Iadd, Imul, Isub};
        let func = self.func;
        let (opcode, args) = (func.dfg.insts[inst].opcode(), func.dfg.inst_args(inst));
        if opcode.can_load() || !super::is_deterministic(func, inst) {
            return Kept::No;
        }
        match (opcode, args) {
            (Iadd | Fadd | Isub | Fsub, &[a, b]) => {
                let parts = self.parts(func.dfg.first_result(inst));
                if !parts.is_whole {
                    return Kept::ForGood;
                }
                let may_be_none = |search: &mut Self, amount| search.may_be_none(amount, walk.params);
                let (is_a, is_b) = (self.is_made_of(a, param), self.is_made_of(b, param));
                let commutes = matches!(opcode, Iadd | Fadd);
                if is_a && (!is_b || may_be_none(self, b)) {
                    self.kept_by_sum(walk, param, (a, b), depth)
                } else if is_b && commutes && (!is_a || may_be_none(self, a)) {
                    self.kept_by_sum(walk, param, (b, a), depth)
                } else if is_b && !commutes && parts.is_loaded {
                    Kept::ForGood
                } else if is_a && is_b && is_sum_of_parts(param, inst, func) {
                    // Half of a signed number is that of the number and its sign.
                    let is_moved = args.iter().any(|&arg| self.kept(walk, param, arg, depth) == Kept::No);
                    if is_moved { Kept::No } else { Kept::ForGood }
                } else if is_a || parts.params.is_empty() {
                    Kept::No
                } else {
                    Kept::Yes
                }
            }
            // Zero stays zero.
            (Imul, &[a, b]) if constant_of(func, b).is_some_and(|factor| factor > 1) && !self.parts(a).is_loaded => {
                Kept::No
            }
            (opcode, [_, chosen @ ..]) if is_select(opcode) => {
                let kept = chosen.iter().map(|&value| self.kept(walk, param, value, depth));
                kept.max().unwrap_or(Kept::Yes)
            }
            (_, args) if args.iter().any(|&arg| self.is_loaded(arg)) => Kept::ForGood,
            (_, args) => {
                let all: SmallVec<[Kept; 4]> = args.iter().map(|&arg| self.kept(walk, param, arg, depth)).collect();
                match all.contains(&Kept::No) {
                    true if self.passes_on(inst) => Kept::No,
                    true => Kept::ForGood,
                    false => all.into_iter().max().unwrap_or(Kept::Yes),
                }
            }
        }
    }

    /// Whether a sum, or a difference, of what is made of `param` and an amount may be what `param` was.
    fn kept_by_sum(&mut self, walk: &mut Walk<'_>, param: Value, (base, amount): (Value, Value), depth: usize) -> Kept {
        let is_chosen = self.is_chosen(amount);
        let is_added = match constant_of(self.func, amount) {
            Some(constant) => constant != 0,
            None => !is_chosen && !self.may_be_none(amount, walk.params),
        };
        match is_added {
            true if base != param && self.is_limited(base, param) => Kept::ForGood,
            true if base != param && self.may_be_moved_back(base, param) => Kept::Yes,
            true => Kept::No,
            false if is_chosen => self.kept(walk, param, base, depth).max(Kept::Yes),
            false => Kept::ForGood,
        }
    }

    /// Whether what `inst` gives is taken to be different in each iteration if one of its operands is. Not if it limits a number, or takes other bits of it
    /// than the lowest or the highest ones, as where a number is rounded and pointers have tags. A quotient ends at zero, as is asked there.
    fn passes_on(&self, inst: Inst) -> bool {
        use Opcode::{
            Band, Bitcast, Bxor, Imul, Ireduce, Ishl, Rotl, Rotr, Sdiv, Sextend, Sshr, Udiv, Uextend, Urem, Ushr,
        };
        let func = self.func;
        let is_rounding = |arg: &Value| {
            constant_of(func, *arg).is_none_or(|mask| {
                let mask = signed(mask, func.dfg.value_type(*arg).bits());
                let low = if mask < 0 { !mask } else { mask };
                low & low.wrapping_add(1) == 0
            })
        };
        match func.dfg.insts[inst].opcode() {
            Band => func.dfg.inst_args(inst).iter().all(is_rounding),
            Bitcast | Bxor | Imul | Ireduce | Ishl | Rotl | Rotr | Sdiv | Sextend | Sshr | Udiv | Uextend | Urem
            | Ushr => true,
            opcode => opcode.can_load() || opcode.is_call(),
        }
    }

    /// Whether `base`, to which something is added, is made of `param` so that the sum may be the same again: of a part of it, or of it less itself.
    fn is_limited(&mut self, base: Value, param: Value) -> bool {
        let func = self.func;
        let (mut open, mut seen) = (vec![base], FxHashSet::default());
        while let Some(value) = open.pop() {
            if value == param || !self.is_made_of(value, param) || !seen.insert(value) {
                continue;
            }
            if seen.len() > MAX_VALUES {
                return true;
            }
            // What is joined is looked at on the walk up.
            let Some(inst) = func.dfg.value_def(value).inst() else { continue };
            let args = func.dfg.inst_args(inst);
            match func.dfg.insts[inst].opcode() {
                opcode if is_select(opcode) => open.extend_from_slice(&args[1..]),
                Opcode::Fadd | Opcode::Fsub | Opcode::Iadd | Opcode::Isub => {
                    if args.iter().all(|&arg| self.is_made_of(arg, param)) && is_sum_of_parts(param, inst, func) {
                        return true;
                    }
                    open.extend_from_slice(args);
                }
                _ if self.passes_on(inst) => open.extend_from_slice(args),
                _ => return true,
            }
        }
        false
    }

    /// Whether `base`, to which something is added, may be `param` less something: it is so on one of several paths.
    fn may_be_moved_back(&mut self, base: Value, param: Value) -> bool {
        let func = self.func;
        let (mut open, mut seen) = (vec![(base, false)], FxHashSet::default());
        while let Some((value, is_path)) = open.pop() {
            if value == param || !seen.insert((value, is_path)) {
                continue;
            }
            if seen.len() > MAX_VALUES {
                return true;
            }
            match func.dfg.value_def(value) {
                ValueDef::Param(..) if self.is_joined(value) => {
                    open.extend(self.operands(value).unwrap_or_default().into_iter().map(|value| (value, true)));
                }
                ValueDef::Result(inst, _) => match (func.dfg.insts[inst].opcode(), func.dfg.inst_args(inst)) {
                    (Opcode::Isub | Opcode::Fsub, _) if is_path => return true,
                    (Opcode::Iadd, &[_, b]) if is_path && is_negative(func, b) => return true,
                    (opcode, [_, chosen @ ..]) if is_select(opcode) => {
                        open.extend(chosen.iter().map(|&value| (value, true)))
                    }
                    (Opcode::Iadd | Opcode::Isub, args) => open.extend(args.iter().map(|&arg| (arg, is_path))),
                    _ => {}
                },
                _ => {}
            }
        }
        false
    }

    /// Whether `amount` may be zero as long as nobody writes: what is made of loads from one place, and of nothing that varies besides `params`, or so that
    /// what is loaded decides alone. A distance that is loaded as it is counts as not zero.
    fn may_be_none(&mut self, amount: Value, params: &[Value]) -> bool {
        if self.is_steady(amount) {
            return self.has_load(amount) && !self.is_distance(amount);
        }
        let parts = self.parts(amount);
        if !parts.is_loaded || !self.progresses(amount, true) {
            return parts.is_loaded;
        }
        let mut together = Params::from_slice(params);
        together.extend(parts.params.iter().copied().filter(|param| !params.contains(param)));
        let is_more = together.len() > params.len();
        !is_more || together.len() > MAX_TOGETHER || self.kept_on_some_path(&together) != Kept::No
    }

    /// Whether one value or another is `amount`, and nothing of it is loaded.
    fn is_chosen(&mut self, amount: Value) -> bool {
        let is_select = match self.func.dfg.value_def(amount) {
            ValueDef::Result(inst, _) => is_select(self.func.dfg.insts[inst].opcode()),
            ValueDef::Param(block, _) => self.forest.contains(self.lp, block),
            ValueDef::Union(..) => false,
        };
        is_select && self.is_steady(amount) && !self.has_load(amount)
    }

    /// Whether `value` is what was loaded, extended perhaps.
    fn is_distance(&self, value: Value) -> bool {
        let mut bits = value;
        while let Some(inst) = self.func.dfg.value_def(bits).inst() {
            match self.func.dfg.insts[inst].opcode() {
                Opcode::Ireduce | Opcode::Sextend | Opcode::Uextend => bits = self.func.dfg.inst_args(inst)[0],
                _ => break,
            }
        }
        self.load_of(bits).is_some()
    }

    /// Whether `param` is among what `value` is made of in one iteration.
    fn is_made_of(&mut self, value: Value, param: Value) -> bool {
        value == param || self.parts(value).params.contains(&param)
    }
}

/// Whether a sum or a difference, of which both operands are made of `param`, may be the same for different numbers. It is not taken to be so where something is added to `param`
/// itself, or subtracted, as the lowest bit or at most a constant is; nor where a number is doubled.
fn is_sum_of_parts(param: Value, inst: Inst, func: &Function) -> bool {
    let args = func.dfg.inst_args(inst);
    let commutes = matches!(func.dfg.insts[inst].opcode(), Opcode::Iadd | Opcode::Fadd);
    args[0] != args[1] && args[0] != param && !(commutes && args[1] == param)
}

/// Whether `value` is a constant below zero.
fn is_negative(func: &Function, value: Value) -> bool {
    constant_of(func, value).is_some_and(|constant| signed(constant, func.dfg.value_type(value).bits()) < 0)
}
