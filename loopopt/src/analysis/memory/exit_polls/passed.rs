//! What one way through an iteration passes to the next one: whether it moves parameters of the header, or keeps them.

use super::standing::Parts;
use super::{Search, is_choice};
use crate::analysis::cfg::edges::Edge;
use crate::analysis::scev::linear_expr::constant_of;
use cranelift_codegen::FxHashSet;
use cranelift_codegen::ir::{Block, Inst, Opcode, Value, ValueDef};
use smallvec::SmallVec;

/// Parameters of the header.
pub(super) type Params = SmallVec<[Value; 4]>;

/// States of one walk from the end of an iteration up to its start. If there are more, all parameters may be kept on one of the ways.
const MAX_STATES: usize = 128;

/// Values on one way down into what is passed. What is made of more may be the same again.
const MAX_DEPTH: usize = 24;

/// Whether what is passed for a parameter may be the same in all iterations from one on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kept {
    /// It is another.
    No,
    /// It is what it was, or comes to rest.
    Yes,
    /// So it is if what is loaded from one place says so: what it is moved by.
    ByAmount,
}

/// The end of a block, on the way up, and what is passed for each parameter from there.
type State = (Block, Params);

impl Search<'_> {
    /// Whether there is a way through an iteration that keeps all of these parameters of the header.
    pub(super) fn kept_on_one_way(&mut self, params: &[Value]) -> Kept {
        let func = self.func;
        let back_edges = self.forest.data(self.lp).back_edges.iter();
        let passed = |edge: &Edge| -> Params {
            params.iter().map(|&param| edge.passed_for(func, param).unwrap_or(param)).collect()
        };
        let mut open: Vec<State> = back_edges.map(|edge| (edge.source(func), passed(edge))).collect();
        let mut seen = FxHashSet::default();
        let mut found = Kept::No;
        while let Some(state) = open.pop() {
            if !seen.insert(state.clone()) {
                continue;
            }
            if seen.len() > MAX_STATES {
                return Kept::ByAmount;
            }
            let (block, values) = state;
            let mut kept = Kept::Yes;
            for (&param, &value) in params.iter().zip(&values) {
                match self.kept(param, value, params, MAX_DEPTH) {
                    Kept::No => kept = Kept::No,
                    by if kept != Kept::No => kept = kept.max(by),
                    _ => {}
                }
            }
            if kept == Kept::No {
                continue;
            }
            if values.iter().any(|&value| self.is_joined(value)) && block != self.forest.data(self.lp).header {
                self.go_up(block, &values, &mut open);
            } else {
                found = found.max(kept);
            }
        }
        found
    }

    /// Whether `value` is a parameter of a block inside of the loop, that one way or another decides.
    fn is_joined(&mut self, value: Value) -> bool {
        let header = self.forest.data(self.lp).header;
        let is_param = |block| block != header && self.forest.contains(self.lp, block);
        matches!(self.func.dfg.value_def(value), ValueDef::Param(block, _) if is_param(block)) && !self.is_steady(value)
    }

    /// What stands at the ends of the blocks before `block` for what stands at its own.
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

    /// Whether `value`, passed for `param`, may be what it was. What is joined on the way up may.
    fn kept(&mut self, param: Value, value: Value, params: &[Value], depth: usize) -> Kept {
        if value == param || depth == 0 || self.is_steady(value) {
            return Kept::Yes;
        }
        match self.func.dfg.value_def(value) {
            ValueDef::Result(inst, _) => self.kept_by(param, inst, params, depth),
            _ => Kept::Yes,
        }
    }

    fn kept_by(&mut self, param: Value, inst: Inst, params: &[Value], depth: usize) -> Kept {
        use Opcode::{Fadd, Fmax, Fmin, Fsub, Iadd, Imul, Isub, Smax, Smin, Umax, Umin};
        let func = self.func;
        let (opcode, args) = (func.dfg.insts[inst].opcode(), func.dfg.inst_args(inst));
        if opcode.can_load() || !super::is_function(func, inst) {
            return Kept::No;
        }
        match (opcode, args) {
            (Iadd | Fadd, &[a, b]) => {
                let (is_a, is_b) = (self.is_made_of(a, param), self.is_made_of(b, param));
                if is_a && (!is_b || self.may_be_none(b, params)) {
                    self.kept_by_sum(param, (a, b), params, depth)
                } else if is_b && (!is_a || self.may_be_none(a, params)) {
                    self.kept_by_sum(param, (b, a), params, depth)
                } else {
                    Kept::No
                }
            }
            (Isub | Fsub, &[a, b]) if self.is_made_of(a, param) => {
                let is_amount = !self.is_made_of(b, param) || self.may_be_none(b, params);
                if is_amount { self.kept_by_sum(param, (a, b), params, depth) } else { Kept::No }
            }
            (Imul, &[_, b]) if constant_of(func, b).is_some_and(|factor| factor > 1) => Kept::No,
            (Fmax | Fmin | Smax | Smin | Umax | Umin, args) if args.iter().any(|&arg| self.is_loaded(arg)) => {
                Kept::ByAmount
            }
            (opcode, [_, chosen @ ..]) if is_choice(opcode) => {
                let kept = chosen.iter().map(|&value| self.kept(param, value, params, depth - 1));
                kept.max().unwrap_or(Kept::Yes)
            }
            (_, args) => {
                let all: SmallVec<[Kept; 4]> =
                    args.iter().map(|&arg| self.kept(param, arg, params, depth - 1)).collect();
                match all.contains(&Kept::No) {
                    true => Kept::No,
                    false if args.iter().any(|&arg| self.is_loaded(arg)) => Kept::ByAmount,
                    false => all.into_iter().max().unwrap_or(Kept::Yes),
                }
            }
        }
    }

    /// Whether a sum, or a difference, of what is made of `param` and an amount may be what `param` was.
    fn kept_by_sum(&mut self, param: Value, (base, amount): (Value, Value), params: &[Value], depth: usize) -> Kept {
        let is_added = match constant_of(self.func, amount) {
            Some(constant) => constant != 0,
            None => !self.is_chosen(amount) && !self.may_be_none(amount, params),
        };
        match self.kept(param, base, params, depth - 1) {
            _ if is_added => Kept::No,
            Kept::No => Kept::No,
            kept if self.is_chosen(amount) => kept,
            _ => Kept::ByAmount,
        }
    }

    /// Whether `amount` may be zero as long as nobody writes: what is made of loads from one place, and of nothing that changes beside `params`, or so that
    /// what is loaded decides alone. A distance that is loaded as it is is none.
    fn may_be_none(&mut self, amount: Value, params: &[Value]) -> bool {
        if self.is_steady(amount) {
            return self.has_load(amount) && !self.is_distance(amount);
        }
        let Parts { is_loaded, params: made_of } = self.parts(amount);
        is_loaded && (made_of.iter().all(|param| params.contains(param)) || !self.progresses(amount, true))
    }

    /// Whether one value or another is `amount`, and nothing of it is loaded.
    fn is_chosen(&mut self, amount: Value) -> bool {
        let is_choice = match self.func.dfg.value_def(amount) {
            ValueDef::Result(inst, _) => is_choice(self.func.dfg.insts[inst].opcode()),
            ValueDef::Param(block, _) => self.forest.contains(self.lp, block),
            ValueDef::Union(..) => false,
        };
        is_choice && self.is_steady(amount) && !self.has_load(amount)
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
