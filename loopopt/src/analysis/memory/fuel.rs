//! Fuel: a number that runs out, of which each iteration of a loop takes a part.
//!
//! A poll asks whether there is [enough](crate::analysis::memory::enough). What is enough now, less what a few iterations take, is enough for the polls of these: numbers that count up stay
//! below zero, and those that count down do not get below what is enough, so that neither wraps.

use crate::analysis::cfg::edges::{Edge, edges_into};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::number::added_constant;
use crate::analysis::memory::enough::{Enough, MAX_COST};
use crate::analysis::memory::polls::Polls;
use crate::fault::fault;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Value, ValueDef};
use cranelift_codegen::{Context, FxHashMap};
use std::cell::RefCell;

/// What an iteration takes of a number that a poll asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuel {
    /// The number after the polls.
    pub left: Value,
    /// The most that is taken of it until the next ones.
    pub most: u64,
    /// What is enough for these.
    pub enough: Enough,
}

/// The inner loops of one that polls for fuel.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    /// What does not run while no rare edge is taken, in the inner loops.
    pub rare: EntitySet<Block>,
    /// The most iterations of the inner loops, by their headers, as far as they are known.
    pub most_iterations: FxHashMap<Block, u64>,
    /// The numbers that their polls ask for.
    pub asked: Vec<Value>,
}

impl Fuel {
    /// What an iteration takes of `param`: on each path a sum of constants, for an inner loop as much as in its most iterations. The inner polls have to ask for
    /// `param`, or what is made of it in the loop; a number from before the loop, like a parameter of the function, is none of these. `None` if it is not known.
    pub fn of(
        ctx: &Context,
        (forest, lp): (&LoopForest, Loop),
        polls: &Polls,
        ((param, enough), inside): ((Value, Enough), &Inside),
    ) -> Option<Self> {
        let &[back_edge] = &forest.data(lp).back_edges[..] else { return None };
        let around = Around { ctx, forest, lp, polls, inside, enough, each: RefCell::default() };
        let mut sums = Sums::new(&around, param);
        let mut most = sums.most(back_edge.passed_for(&ctx.func, param)?, MAX_SUMS)?;
        for &asked in &inside.asked {
            most = most.max(sums.most(asked, MAX_SUMS)?);
        }
        let left = sums.left?;
        (most > 0).then_some(Self { left, most, enough })
    }
}

/// Additions in a row: one for each block of an iteration.
const MAX_SUMS: usize = 256;

/// The loop for which sums are looked for.
struct Around<'a> {
    ctx: &'a Context,
    forest: &'a LoopForest,
    lp: Loop,
    polls: &'a Polls,
    inside: &'a Inside,
    enough: Enough,
    /// What an iteration of an inner loop takes of a parameter of its header.
    each: RefCell<FxHashMap<Value, u64>>,
}

struct Sums<'a> {
    around: &'a Around<'a>,
    param: Value,
    /// What all sums start from.
    left: Option<Value>,
    /// What is known.
    most: FxHashMap<Value, u64>,
}

impl<'a> Sums<'a> {
    fn new(around: &'a Around<'a>, param: Value) -> Self {
        Self { around, param, left: None, most: FxHashMap::default() }
    }

    /// The most that was taken of the number on the path to `value`. Recursive as deep as `depth` says.
    fn most(&mut self, value: Value, depth: usize) -> Option<u64> {
        let Around { ctx, forest, lp, polls, .. } = *self.around;
        let func = &ctx.func;
        if let Some(&most) = self.most.get(&value) {
            return Some(most);
        }
        if polls.resolve(func, value) == self.param {
            return (*self.left.get_or_insert(value) == value).then_some(0);
        }
        let depth = depth.checked_sub(1)?;
        let most = match func.dfg.value_def(value) {
            ValueDef::Param(block, _) if forest.contains(lp, block) && block != forest.data(lp).header => {
                match forest.loop_of_header(block) {
                    Some(inner) => self.in_loop((inner, block), value, depth)?,
                    None => self.most_of(edges_into(func, &ctx.cfg, block), value, depth)?,
                }
            }
            ValueDef::Result(inst, _) => {
                let (sum, added) = added_constant(func, inst)?;
                let taken = self.around.enough.taken(added);
                (taken <= MAX_COST).then_some(())?;
                self.most(sum, depth)? + taken
            }
            _ => return None,
        };
        self.most.insert(value, most);
        (most <= MAX_COST).then_some(most)
    }

    /// The same for the block arguments of these edges for `param`, those of rare code left out.
    fn most_of(&mut self, edges: impl Iterator<Item = Edge>, param: Value, depth: usize) -> Option<u64> {
        let func = &self.around.ctx.func;
        let runs = |edge: &Edge| !self.around.inside.rare.contains(edge.source(func));
        let passed: Vec<_> = edges.filter(runs).map(|edge| edge.passed_for(func, param)).collect();
        passed.into_iter().try_fold(0, |most, passed| Some(self.most(passed?, depth)?.max(most)))
    }

    /// The same for a parameter of the header of an inner loop: what it is entered with, and what all its iterations take.
    fn in_loop(&mut self, (inner, header): (Loop, Block), param: Value, depth: usize) -> Option<u64> {
        let Around { ctx, forest, inside, .. } = *self.around;
        let count = *inside.most_iterations.get(&header)?;
        let comes_back = |edge: &Edge| forest.contains(inner, edge.source(&ctx.func));
        let (back, entered): (Vec<_>, Vec<_>) = edges_into(&ctx.func, &ctx.cfg, header).partition(comes_back);
        let before = self.most_of(entered.into_iter(), param, depth)?;
        let known = self.around.each.borrow().get(&param).copied();
        let each = match known {
            _ if fault!(InnerFuelForgotten) => 0,
            Some(each) => each,
            None => Sums::new(self.around, param).most_of(back.into_iter(), param, depth)?,
        };
        self.around.each.borrow_mut().insert(param, each);
        before.checked_add(each.checked_mul(count)?)
    }
}
