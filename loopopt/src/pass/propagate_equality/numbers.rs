//! Numbers that a branch has found equal to a constant.

use super::{Is, Known, each_known_use};
use crate::analysis::cfg::edges::{Edge, edge_dominates};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::scev::comparison::Comparison;
use crate::analysis::scev::linear_expr::constant_of;
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

/// For each loop its uses of numbers that are known, for numbers that a loop uses which does not change them. Linear in the size of the function.
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
            if func.dfg.insts[branch].opcode() != Opcode::Brif {
                continue;
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
            let equals = &self.by_number[&value];
            let on_edge = edge.and_then(|edge| equals.iter().find(|equal| equal.edge == edge));
            let here = || equals.iter().find(|equal| edge_dominates(ctx, equal.edge, block));
            on_edge.or_else(here).filter(|_| !is_check(func, inst))
        };
        each_known_use(
            func,
            inst,
            |value| self.numbers.contains(value) && is_asked(value),
            is_known,
            |slot, value, equal| {
                visit(Known { inst, slot, value, is: Is::Number(equal.constant) }, equal.place);
            },
        );
    }
}

/// Whether `inst` is a check of just this number: for the passes that say what they do with checks.
fn is_check(func: &Function, inst: Inst) -> bool {
    matches!(func.dfg.insts[inst].opcode(), Opcode::Trapz | Opcode::Trapnz)
}
