//! Which edges decide a branch, and whether they are threaded.

use super::Decline;
use crate::analysis::cfg::edges::{Edge, edges_from, edges_of};
use crate::analysis::cfg::jumps::jump_target;
use crate::analysis::cfg::loops::{Loop, LoopForest, def_block};
use crate::analysis::facts::tested::{Tested, is_true_on, number_on};
use crate::analysis::inst::effects::{Effects, is_constant, is_constant_value};
use crate::analysis::scev::const_eval::Evaluator;
use crate::analysis::scev::linear_expr::known;
use crate::fault::fault;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value};
use smallvec::SmallVec;

/// Edges into one block that are looked at, so that time is linear.
const MAX_EDGES: usize = 16;

/// Values that are looked at for each edge. 64: more than the instructions of a small block use.
const MAX_VALUES: usize = 64;

/// Blocks on the path to a branch. 4: as deep as conditions are nested, of which each joins what it has set.
const MAX_PATH: usize = 4;

/// Blocks of which each but the last one jumps to the next, and the last one branches.
pub(super) struct Path {
    pub(super) blocks: SmallVec<[Block; MAX_PATH]>,
    pub(super) branch: Inst,
    /// The values of these blocks that the branch is computed from.
    needed: SmallVec<[Value; 8]>,
    /// Whether an edge may decide the branch: a parameter of the first block is among them, or they are computed from an earlier value that is no constant, or there are
    /// none.
    is_open: bool,
}

/// A path of which some edges into the first block decide the branch, each with the number of the successor that it takes.
pub(super) struct Plan {
    /// The header of the loop of the first block.
    pub(super) header: Block,
    pub(super) path: Path,
    pub(super) threaded: Vec<(Edge, usize)>,
    /// The successor that all edges decide on, if no edge is threaded and the path is one block: then the block jumps there, and so do its copies.
    pub(super) rest: Option<usize>,
}

/// By what an edge decides a branch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// By its block arguments.
    Passed,
    /// Also by what is known there of values that were computed before.
    All,
}

/// A loop that is looked at.
pub(super) struct Look<'a> {
    pub(super) ctx: &'a Context,
    pub(super) forest: &'a LoopForest,
    pub(super) lp: Loop,
}

impl Path {
    /// The block that branches.
    pub(super) fn last(&self) -> Block {
        *self.blocks.last().expect("a path has a block")
    }

    fn insts<'f>(&self, func: &'f Function) -> impl Iterator<Item = Inst> + use<'f, '_> {
        self.blocks.iter().flat_map(|&block| func.layout.block_insts(block)).filter(|&inst| !is_constant(func, inst))
    }

    /// Finds what the branch is computed from, and whether an edge may decide that.
    fn find_needed(&mut self, func: &Function) {
        let mut waiting: SmallVec<[Value; 8]> = func.dfg.inst_args(self.branch).into();
        while let Some(value) = waiting.pop() {
            let Some(place) = self.place(func, value) else {
                self.is_open |= !is_constant_value(func, value);
                continue;
            };
            if self.needed.contains(&value) {
                continue;
            }
            self.needed.push(value);
            match func.dfg.value_def(value).inst() {
                Some(inst) if Effects::of(func, inst).is_pure() => waiting.extend_from_slice(func.dfg.inst_args(inst)),
                Some(_) => {}
                None => {
                    self.is_open |= place == 0;
                    let before = place.checked_sub(1).and_then(|before| edges_from(func, self.blocks[before]).next());
                    waiting.extend(before.and_then(|edge| edge.passed_for(func, value)));
                }
            }
        }
        self.is_open |= self.needed.is_empty();
    }

    /// The place in the path of the block that defines `value`.
    fn place(&self, func: &Function, value: Value) -> Option<usize> {
        let home = def_block(func, value)?;
        self.blocks.iter().position(|&block| block == home)
    }

    /// The edges along the path, if its first block is entered by `edge`.
    fn edges(&self, func: &Function, edge: Edge) -> SmallVec<[Edge; MAX_PATH]> {
        let jumps = self.blocks[..self.blocks.len() - 1].iter().filter_map(|&block| edges_from(func, block).next());
        std::iter::once(edge).chain(jumps).collect()
    }
}

impl Look<'_> {
    /// What is done about the edges into `block`, nothing if they decide nothing.
    pub(super) fn prove(&self, block: Block, max: usize) -> Result<Option<Plan>, Decline> {
        let Self { ctx, forest, lp } = *self;
        let func = &ctx.func;
        let edges = forest.edges_into(func, &ctx.cfg, block);
        if edges.len() < 2 || edges.len() > MAX_EDGES {
            return Ok(None);
        }
        let Some(path) = self.path(block, max) else { return Ok(None) };
        let mut evaluator = Evaluator::new(func, &ctx.cfg, forest, MAX_VALUES);
        let mut decided = |by| {
            let threaded =
                edges.iter().filter_map(|&edge| Some((edge, self.successor(edge, &path, by, &mut evaluator)?)));
            threaded.collect::<Vec<_>>()
        };
        let mut threaded = decided(By::All);
        if threaded.is_empty() {
            return Ok(None);
        }
        if self.is_made_in_each_iteration(&path) {
            threaded = decided(By::Passed);
        }
        if threaded.is_empty() {
            return Err(Decline::EachIteration(path.last()));
        }
        if let Some(inst) = path.insts(func).find(|&inst| !forest.is_duplicable(func, inst)) {
            return Err(Decline::NotDuplicable(func.dfg.insts[inst].opcode()));
        }
        let insts = path.insts(func).count() - path.blocks.len();
        if insts > max {
            return Err(Decline::TooLarge { block: path.last(), insts, max });
        }
        let is_all = threaded.len() == edges.len() && path.blocks.len() == 1;
        let (stay, threaded): (Vec<_>, Vec<_>) =
            threaded.into_iter().partition(|&(_, slot)| self.enters_loop(&path, slot));
        let first = stay.first().map(|&(_, slot)| slot);
        // Not beside edges that are threaded: a copy of what such an edge comes from keeps that edge, until the next round.
        let rest = first.filter(|&first| is_all && threaded.is_empty() && stay.iter().all(|&(_, slot)| slot == first));
        if threaded.is_empty() && rest.is_none() {
            return Err(Decline::EntersLoop(path.last()));
        }
        Ok(Some(Plan { header: forest.data(lp).header, path, threaded, rest }))
    }

    /// The path from `block` on, if it is not much too long, and edges may decide its branch.
    fn path(&self, block: Block, max: usize) -> Option<Path> {
        let func = &self.ctx.func;
        let (mut blocks, mut insts) = (SmallVec::new(), 0);
        // Twice, as what only the branch needs is deleted with it.
        let most = max.saturating_mul(2).saturating_add(MAX_PATH);
        let mut next = block;
        loop {
            let branch = func.layout.last_inst(next)?;
            blocks.push(next);
            insts += func
                .layout
                .block_insts(next)
                .filter(|&inst| !is_constant(func, inst))
                .take(most.saturating_add(1))
                .count();
            if func.layout.is_cold(next) || insts > most {
                return None;
            }
            match func.dfg.insts[branch].opcode() {
                Opcode::Brif | Opcode::BrTable => {
                    let mut path = Path { blocks, branch, needed: SmallVec::new(), is_open: false };
                    path.find_needed(func);
                    return Some(path).filter(|path| path.is_open);
                }
                Opcode::Jump if blocks.len() < MAX_PATH && !self.is_header(next) => {
                    next = jump_target(func, next)?;
                }
                _ => return None,
            }
        }
    }

    /// Whether a back edge enters `block`.
    fn is_header(&self, block: Block) -> bool {
        let Context { func, cfg, domtree, .. } = self.ctx;
        let mut sources = self.forest.edges_into(func, cfg, block).iter().map(|edge| edge.source(func));
        sources.any(|source| domtree.block_dominates(block, source))
    }

    /// Whether each iteration reaches the branch, which may end the loop.
    fn is_made_in_each_iteration(&self, path: &Path) -> bool {
        let Self { ctx, forest, .. } = *self;
        let (func, block) = (&ctx.func, path.last());
        let Some(lp) = forest.innermost(block) else { return false };
        edges_of(func, path.branch).any(|edge| !forest.contains(lp, edge.target(func)))
            && forest.is_in_each_iteration(func, &ctx.domtree, lp, block)
    }

    /// Which edge the branch takes if the path is entered by `edge`, which is not cold. `evaluator` is one that may have been used.
    fn successor(&self, edge: Edge, path: &Path, by: By, evaluator: &mut Evaluator<'_>) -> Option<usize> {
        let Self { ctx, forest, .. } = *self;
        let (func, cfg) = (&ctx.func, &ctx.cfg);
        if func.layout.is_cold(edge.source(func)) {
            return None;
        }
        let edge = if fault!(FirstEdgeThreads) { forest.edges_into(func, cfg, path.blocks[0])[0] } else { edge };
        let edges = path.edges(func, edge);
        if let Some(successor) = self.tested_successor(&edges, path, by) {
            return Some(successor);
        }
        evaluator.reset(MAX_VALUES);
        let is_needed = |value: &Value| path.needed.contains(value);
        for (place, (&block, along)) in path.blocks.iter().zip(&edges).enumerate() {
            let passed = func.dfg.block_params(block).iter().zip(along.args(func));
            for (&param, arg) in passed.filter(|(param, _)| is_needed(param)) {
                let number = arg.as_value().and_then(|arg| match path.place(func, arg) {
                    Some(home) if home < place => evaluator.value(arg),
                    // What is further on in the path has run before this edge.
                    _ => self.number_on(edge, arg),
                });
                evaluator.assume(param, number);
            }
            for inst in func.layout.block_insts(block) {
                let results = func.dfg.inst_results(inst);
                if inst != path.branch && !results.iter().any(is_needed) {
                    continue;
                }
                if inst != path.branch && !Effects::of(func, inst).is_pure() {
                    results.iter().for_each(|&result| evaluator.assume(result, None));
                    continue;
                }
                let args = func.dfg.inst_args(inst);
                for &arg in args.iter().filter(|&&arg| path.place(func, arg).is_none()) {
                    let number = if by == By::All { self.number_on(edge, arg) } else { known(func, cfg, arg) };
                    evaluator.assume(arg, number);
                }
                if args.iter().any(|&arg| path.place(func, arg).is_some_and(|home| home > place)) {
                    results.iter().for_each(|&result| evaluator.assume(result, None));
                }
            }
        }
        evaluator.taken(path.branch)
    }

    /// The same by what is tested alone: a number that is known not to be zero need not be known.
    fn tested_successor(&self, edges: &[Edge], path: &Path, by: By) -> Option<usize> {
        let Context { func, cfg, .. } = self.ctx;
        if func.dfg.insts[path.branch].opcode() != Opcode::Brif {
            return None;
        }
        let Tested { number, inverted } = Tested::of(func, func.dfg.inst_args(path.branch)[0]);
        // From the last edge to the first one, which is the one that the path is entered by.
        let (mut value, mut is_passed) = (number, false);
        for (&along, &block) in edges.iter().zip(&path.blocks).rev() {
            match along.passed_for(func, value) {
                Some(passed) => (value, is_passed) = (passed, true),
                None if def_block(func, value) == Some(block) => return None,
                None => {}
            }
        }
        let is = is_true_on(func, cfg, edges[0], value).filter(|_| is_passed || by == By::All)?;
        Some(usize::from(is == inverted))
    }

    fn number_on(&self, edge: Edge, value: Value) -> Option<u128> {
        let Context { func, cfg, .. } = self.ctx;
        func.dfg.value_type(value).is_int().then(|| number_on(func, cfg, edge, value))?
    }

    /// Whether an edge to this successor of the branch could enter a loop elsewhere than at its header: the last block is a header, and the successor is in
    /// its loop.
    fn enters_loop(&self, path: &Path, slot: usize) -> bool {
        let Self { ctx, forest, .. } = *self;
        let target = Edge { branch: path.branch, slot }.target(&ctx.func);
        let leaves = || forest.loop_of_header(path.last()).is_some_and(|lp| !forest.contains(lp, target));
        self.is_header(path.last()) && !leaves()
    }
}
