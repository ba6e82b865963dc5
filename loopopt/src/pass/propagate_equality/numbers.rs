//! Numbers that a branch has found equal to a constant.

use super::{Is, Known, each_known_use};
use crate::analysis::cfg::edges::{Edge, edge_dominates, edges_of};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::number::{constant_of, mask, signed};
use crate::analysis::scev::comparison::Comparison;
use crate::fault::fault;
use crate::pass::PassCx;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value};
use cranelift_codegen::{Context, FxHashMap};
use smallvec::SmallVec;

/// Constants that one number is compared with, of which more are not looked at, so that time is linear.
const MAX_CONSTANTS: usize = 8;

/// The number is this constant on this edge.
#[derive(Clone, Copy)]
struct Equal {
    edge: Edge,
    constant: u64,
    /// Its place among all of them.
    place: usize,
}

/// What the branches of a function say.
#[derive(Default)]
struct Equals {
    by_number: FxHashMap<Value, SmallVec<[Equal; 2]>>,
    /// The same numbers: most operands are none of them.
    numbers: EntitySet<Value>,
    /// How much they say.
    count: usize,
}

/// For each loop its uses of numbers that are known, for numbers that are invariant in a loop that uses them. Linear in the size of the function.
pub(super) fn known(ctx: &Context, cx: &PassCx<'_>, forest: &LoopForest) -> FxHashMap<Loop, Vec<Known>> {
    let func = &ctx.func;
    let equals = Equals::of(func);
    if equals.count == 0 || cx.keeps_guards() {
        return FxHashMap::default();
    }
    let insts = |block| func.layout.block_insts(block).map(move |inst| (block, inst));
    let mut pays = vec![false; equals.count];
    for lp in forest.loops() {
        let is_from_outside = |value| forest.is_from_outside(func, lp, value);
        for place in forest.own_blocks(lp).flat_map(insts) {
            equals.each_known(ctx, place, is_from_outside, |_, place| pays[place] = true);
        }
    }
    let mut found = FxHashMap::<Loop, Vec<Known>>::default();
    if !pays.contains(&true) {
        return found;
    }
    for lp in forest.loops() {
        for place in forest.own_blocks(lp).flat_map(insts) {
            equals.each_known(
                ctx,
                place,
                |_| true,
                |known, place| {
                    if pays[place] {
                        found.entry(lp).or_default().push(known);
                    }
                },
            );
        }
    }
    found
}

impl Equals {
    fn of(func: &Function) -> Self {
        let mut equals = Self::default();
        for branch in func.layout.blocks().filter_map(|block| func.layout.last_inst(block)) {
            match func.dfg.insts[branch].opcode() {
                Opcode::Brif => {}
                Opcode::BrTable => {
                    equals.add_table(func, branch);
                    continue;
                }
                _ => continue,
            }
            let Comparison { cond, left, right } = Comparison::of(func, func.dfg.inst_args(branch)[0], true);
            let slot = match cond {
                IntCC::Equal => 0,
                IntCC::NotEqual => 1,
                _ => continue,
            };
            let edge = Edge { branch, slot: slot ^ usize::from(fault!(EqualElsewhere)) };
            let sides = [Some((left, right)), right.map(|right| (right, Some(left)))];
            for (number, other) in sides.into_iter().flatten() {
                let Some(constant) = other.map_or(Some(0), |other| constant_of(func, other)) else { continue };
                let ty = func.dfg.value_type(number);
                if ty.is_int() && ty.bits() <= 64 && constant_of(func, number).is_none() {
                    equals.add(number, edge, constant);
                }
            }
        }
        equals
    }

    /// The index of a `br_table` is the number of an entry on its edge. On the edge of the default it is any other number. (The entries come
    /// after the default among the edges.)
    fn add_table(&mut self, func: &Function, branch: Inst) {
        let index = func.dfg.inst_args(branch)[0];
        if constant_of(func, index).is_some() {
            return;
        }
        for edge in edges_of(func, branch).skip(1).take(MAX_CONSTANTS) {
            let constant = edge.slot as u64 - u64::from(!fault!(EqualElsewhere));
            self.add(index, edge, constant);
        }
    }

    fn add(&mut self, number: Value, edge: Edge, constant: u64) {
        let known = self.by_number.entry(number).or_default();
        if known.len() < MAX_CONSTANTS {
            self.numbers.insert(number);
            known.push(Equal { edge, constant, place: self.count });
            self.count += 1;
        }
    }

    /// Calls `visit` with each use of a number in `inst` that `is_asked` names and that is known there, and the place of what says so.
    fn each_known(
        &self,
        ctx: &Context,
        (block, inst): (Block, Inst),
        is_asked: impl Fn(Value) -> bool,
        mut visit: impl FnMut(Known, usize),
    ) {
        let func = &ctx.func;
        let is_known = |value, edge: Option<Edge>| {
            let equals = &self.by_number[&self.number_in(func, value)?];
            let on_edge = edge.and_then(|edge| equals.iter().find(|equal| equal.edge == edge));
            let here = || equals.iter().find(|equal| edge_dominates(ctx, equal.edge, block));
            on_edge.or_else(here).filter(|_| !is_check(func, inst))
        };
        each_known_use(
            func,
            inst,
            |value| self.number_in(func, value).is_some() && is_asked(value),
            is_known,
            |slot, value, equal| {
                let constant = as_in(func, value, equal.constant);
                visit(Known { inst, slot, value, is: Is::Number(constant) }, equal.place);
            },
        );
    }

    /// The number of which branches say something that is `value`, or of which `value` is an extension or a reduction. `value` is computed whenever that number is,
    /// and before it is used: the definition of the number dominates that of `value`.
    fn number_in(&self, func: &Function, value: Value) -> Option<Value> {
        if self.numbers.contains(value) {
            return Some(value);
        }
        resized(func, value).map(|(_, number)| number).filter(|&number| self.numbers.contains(number))
    }
}

/// The change of width that `value` is, and of what.
fn resized(func: &Function, value: Value) -> Option<(Opcode, Value)> {
    let inst = func.dfg.value_def(value).inst()?;
    let opcode = func.dfg.insts[inst].opcode();
    let is_narrow = func.dfg.value_type(value).bits() <= 64;
    let resizes = matches!(opcode, Opcode::Uextend | Opcode::Sextend | Opcode::Ireduce) && is_narrow;
    resizes.then(|| (opcode, func.dfg.inst_args(inst)[0]))
}

/// What `value` is if the number in it is `constant`.
fn as_in(func: &Function, value: Value, constant: u64) -> u64 {
    let bits = |value| func.dfg.value_type(value).bits();
    match resized(func, value) {
        Some((Opcode::Sextend, number)) => signed(constant, bits(number)).cast_unsigned() & mask(bits(value)),
        Some((Opcode::Ireduce, _)) => constant & mask(bits(value)),
        Some((_, number)) => constant & mask(bits(number)),
        None => constant,
    }
}

/// Whether `inst` is a check of just this number: for the passes that say what they do with checks.
fn is_check(func: &Function, inst: Inst) -> bool {
    matches!(func.dfg.insts[inst].opcode(), Opcode::Trapz | Opcode::Trapnz)
}
