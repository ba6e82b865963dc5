//! Where values could be computed instead, and which values are used there.

use crate::analysis::cfg::edges::{Edge, count_uses, edges_into};
use crate::analysis::cfg::loops::def_block;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::is_constant_value;
use crate::edit::inst::rename::each_use;
use crate::fault::fault;
use crate::pass::PassCx;
use cranelift_codegen::Context;
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{Block, BlockArg, Function, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What kind of places these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Exit blocks, for values of the loop that they are the exits of.
    Exits,
    /// Cold blocks in loops, for values of blocks that are not cold.
    Cold,
}

impl Kind {
    /// Where that is, for a remark.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Exits => "after the loop",
            Self::Cold => "in rare blocks",
        }
    }
}

/// A place.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) block: Block,
    /// Where an exit block is entered from.
    pub(super) sources: Vec<Block>,
    /// The values that live up to here, and would not if nothing here used them.
    pub(super) needs: BTreeSet<Value>,
}

/// A parameter that nothing uses, and for which a value is the block argument.
pub(super) type DeadParam = (Block, usize);

/// How often each value is used.
pub(super) type Uses = SecondaryMap<Value, u32>;

/// All places of a kind.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) kind: Kind,
    pub(super) list: Vec<Place>,
    /// How often each value is used.
    pub(super) uses: Rc<Uses>,
    /// How often each value is used in a way that ends if it is computed at the places instead, and at which.
    pub(super) used_at: BTreeMap<Value, (u32, BTreeSet<usize>)>,
    /// Uses by edges that pass another value for the same parameter elsewhere.
    pub(super) mixed: BTreeMap<Value, u32>,
    /// Parameters of exit blocks that are one value, and which.
    pub(super) params: Vec<(usize, usize, Value)>,
    /// Parameters that are removed with the value.
    pub(super) dead: BTreeMap<Value, Vec<DeadParam>>,
    /// The innermost loop with a use of the value in a block that is not cold.
    hot: SecondaryMap<Value, Option<Loop>>,
}

impl Places {
    fn new(kind: Kind, func: &Function, uses: &mut Option<Rc<Uses>>) -> Self {
        Self {
            kind,
            list: Vec::new(),
            uses: uses.get_or_insert_with(|| Rc::new(count_uses(func))).clone(),
            used_at: BTreeMap::new(),
            mixed: BTreeMap::new(),
            params: Vec::new(),
            dead: BTreeMap::new(),
            hot: SecondaryMap::new(),
        }
    }

    /// The exit blocks of all loops.
    pub(super) fn exits(ctx: &Context, cx: &mut PassCx<'_>, uses: &mut Option<Rc<Uses>>) -> Option<Self> {
        let forest = cx.forest(ctx);
        let mut places = Self::new(Kind::Exits, &ctx.func, uses);
        let mut seen = EntitySet::<Block>::with_capacity(ctx.func.dfg.num_blocks());
        for lp in forest.loops() {
            let data = forest.data(lp);
            for exit in data.exits.iter().filter(|exit| forest.innermost(exit.source(&ctx.func)) == Some(lp)) {
                let block = exit.target(&ctx.func);
                if forest.loop_of_header(block).is_none() && seen.insert(block) {
                    let edges: Vec<_> = edges_into(&ctx.func, &ctx.cfg, block).collect();
                    places.add_exit(&ctx.func, &forest, block, &edges);
                }
            }
            places.add_dead_params(&ctx.func, data.header, &data.back_edges);
        }
        let has_any = !places.used_at.is_empty() || !places.mixed.is_empty();
        has_any.then_some(places)
    }

    fn add_exit(&mut self, func: &Function, forest: &LoopForest, block: Block, edges: &[Edge]) {
        let number = self.list.len();
        let args: Vec<Vec<_>> = edges.iter().map(|edge| edge.args(func).collect()).collect();
        let mut needs = BTreeSet::new();
        for (index, &param) in func.dfg.block_params(block).iter().enumerate() {
            let values = || args.iter().filter_map(|args| args[index].as_value());
            needs.extend(values().filter(|&value| leaves(func, forest, value, block)));
            let Some(first) = args[0][index].as_value() else { continue };
            let is_same = |args: &Vec<BlockArg>| args[index].as_value() == Some(first);
            if self.uses[param] == 0 {
                continue;
            }
            if args.iter().all(is_same) || fault!(FirstExitEdgeDecides) {
                let entry = self.used_at.entry(first).or_default();
                entry.0 += values().filter(|&value| value == first).map(|_| 1).sum::<u32>();
                entry.1.insert(number);
                self.params.push((number, index, first));
            } else {
                values().for_each(|value| *self.mixed.entry(value).or_default() += 1);
            }
        }
        let sources = edges.iter().map(|edge| edge.source(func)).collect();
        self.list.push(Place { block, sources, needs });
        self.add_dead_params(func, block, edges);
    }

    /// Notes the block arguments of `edges` for parameters of `block` that nothing uses.
    fn add_dead_params(&mut self, func: &Function, block: Block, edges: &[Edge]) {
        let params = func.dfg.block_params(block);
        let dead: Vec<_> = (0..params.len()).filter(|&index| self.uses[params[index]] == 0).collect();
        if dead.is_empty() {
            return;
        }
        for edge in edges {
            let args: Vec<_> = edge.args(func).collect();
            for &index in &dead {
                if let Some(value) = args[index].as_value() {
                    self.used_at.entry(value).or_default().0 += 1;
                    self.dead.entry(value).or_default().push((block, index));
                }
            }
        }
    }

    /// The cold blocks in loops, and the others too: what they use need not be computed elsewhere either.
    pub(super) fn cold_blocks(ctx: &Context, cx: &mut PassCx<'_>, uses: &mut Option<Rc<Uses>>) -> Option<Self> {
        let func = &ctx.func;
        let forest = cx.forest(ctx);
        let is_in_loop = |block| func.is_effectively_cold(block) && forest.innermost(block).is_some();
        if !func.layout.blocks().any(is_in_loop) {
            return None;
        }
        let mut places = Self::new(Kind::Cold, func, uses);
        places.hot.resize(func.dfg.num_values());
        places.find_hot_uses(func, &forest);
        for block in func.layout.blocks().filter(|&block| func.is_effectively_cold(block)) {
            places.add_cold(func, &forest, block);
        }
        Some(places)
    }

    fn find_hot_uses(&mut self, func: &Function, forest: &LoopForest) {
        let depth = |lp: Option<Loop>| lp.map_or(0, |lp| forest.data(lp).depth);
        for block in func.layout.blocks().filter(|&block| !func.is_effectively_cold(block)) {
            let lp = forest.innermost(block);
            for inst in func.layout.block_insts(block) {
                each_use(func, inst, |value| {
                    if depth(lp) > depth(self.hot[value]) {
                        self.hot[value] = lp;
                    }
                });
            }
        }
    }

    fn add_cold(&mut self, func: &Function, forest: &LoopForest, block: Block) {
        let number = self.list.len();
        self.list.push(Place { block, sources: Vec::new(), needs: BTreeSet::new() });
        for inst in func.layout.block_insts(block) {
            each_use(func, inst, |value| {
                if self.is_need(func, forest, value, block) {
                    self.list[number].needs.insert(value);
                }
                if def_block(func, value).is_some_and(|home| !func.is_effectively_cold(home)) {
                    let entry = self.used_at.entry(value).or_default();
                    entry.0 += 1;
                    entry.1.insert(number);
                }
            });
        }
    }

    /// Whether `value` takes a register up to the place `block` because that uses it.
    pub(super) fn is_need(&self, func: &Function, forest: &LoopForest, value: Value, block: Block) -> bool {
        match self.kind {
            Kind::Exits => leaves(func, forest, value, block),
            Kind::Cold => {
                let is_elsewhere = def_block(func, value) != Some(block) && !is_constant_value(func, value);
                is_elsewhere && !self.is_held(forest, value, block)
            }
        }
    }

    /// Whether the loop of a cold block needs the value in any case.
    fn is_held(&self, forest: &LoopForest, value: Value, block: Block) -> bool {
        let (around, user) = (forest.innermost(block), self.hot[value]);
        around.zip(user).is_some_and(|(around, user)| forest.encloses(around, user))
    }
}

/// Whether `value` is from a loop that `block` is not in, and no constant.
fn leaves(func: &Function, forest: &LoopForest, value: Value, block: Block) -> bool {
    let home = def_block(func, value).and_then(|home| forest.innermost(home));
    home.is_some_and(|home| !forest.contains(home, block)) && !is_constant_value(func, value)
}
