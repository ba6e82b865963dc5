//! SSA repair: one variable with several definitions, and uses that must see the right one.
//!
//! Parameters are put where definitions meet ([`crate::edit::ssa::frontier`]), but only on blocks from which a use can still be
//! reached without meeting another definition.
//!
//! Cost is linear in the blocks between the definitions and the uses.

use crate::analysis::cfg::edges::edges_into;
use crate::edit::cfg::split_edges::append_arg;
use crate::edit::inst::labels::copy_labels;
use crate::edit::inst::rename::rename_uses;
use crate::edit::ssa::frontier::{Levels, meets_of_one};
use crate::edit::{MAX_PARAMS, TooManyParams};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use cranelift_codegen::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// A use of a repaired variable: this instruction now uses this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewUse {
    pub(crate) value: Value,
    pub(crate) user: Inst,
}

/// What a walk from uses backwards to definitions met.
pub(crate) struct Walk {
    /// Blocks at whose start the variable is live and not redefined.
    pub(crate) live: FxHashSet<Block>,
    /// Blocks with a definition that a use can see.
    pub(crate) reached: FxHashSet<Block>,
}

/// Walks from `uses` backwards to the blocks at whose start the variable is defined.
pub(crate) fn live_until(cfg: &ControlFlowGraph, uses: &[Block], is_def: impl Fn(Block) -> bool) -> Walk {
    let mut walk = Walk { live: FxHashSet::default(), reached: FxHashSet::default() };
    let mut stack = uses.to_vec();
    while let Some(block) = stack.pop() {
        if is_def(block) {
            walk.reached.insert(block);
        } else if walk.live.insert(block) {
            stack.extend(cfg.pred_iter(block).map(|pred| pred.block));
        }
    }
    walk
}

/// One variable under repair.
pub(crate) struct Repair<'a> {
    func: &'a mut Function,
    cfg: &'a ControlFlowGraph,
    domtree: &'a DominatorTree,
    levels: &'a mut Levels,
    /// The value whose uses are repaired.
    old: Value,
    /// The definitions.
    defs: Vec<(Block, Value)>,
    /// What the variable is at the start of a block: definitions given and parameters made.
    at_start: FxHashMap<Block, Value>,
}

impl<'a> Repair<'a> {
    /// Starts a repair of `old`, which is redefined at the start of each block of `defs` by the value beside it. The `levels` are those of `domtree`, kept from
    /// one repair to the next.
    pub(crate) fn new(
        func: &'a mut Function,
        (cfg, domtree): (&'a ControlFlowGraph, &'a DominatorTree),
        levels: &'a mut Levels,
        old: Value,
        defs: impl IntoIterator<Item = (Block, Value)>,
    ) -> Self {
        let defs = defs.into_iter().collect();
        Self { func, cfg, domtree, levels, old, defs, at_start: FxHashMap::default() }
    }

    /// Lets `users`, none of them above a definition in its block, use what reaches them. A definition has to reach each of them.
    /// Returns all uses that were made, those by edges to new parameters included.
    pub(crate) fn run(mut self, users: &[Inst]) -> Result<Vec<NewUse>, TooManyParams> {
        // A definition that dominates all users meets no other one on the paths to them.
        if let [(def, value)] = self.defs[..]
            && users.iter().all(|&user| self.domtree.block_dominates(def, self.block_of(user)))
        {
            return Ok(users.iter().map(|&user| self.use_instead(user, value)).collect());
        }
        self.at_start.extend(self.defs.iter().copied());
        let blocks: Vec<_> = users.iter().map(|&user| self.block_of(user)).collect();
        let live = live_until(self.cfg, &blocks, |block| self.at_start.contains_key(&block)).live;
        let made = self.add_params(&live)?;
        let mut uses: Vec<_> = users
            .iter()
            .map(|&user| {
                let value = self.reaching(self.block_of(user));
                self.use_instead(user, value)
            })
            .collect();
        for block in made {
            let edges: Vec<_> = edges_into(self.func, self.cfg, block).collect();
            for edge in edges {
                let source = edge.source(self.func);
                // Of a block that cannot be reached, nothing is asked until it is removed.
                let value = if self.domtree.is_reachable(source) { self.reaching(source) } else { self.old };
                append_arg(self.func, edge, value);
                uses.push(NewUse { value, user: edge.branch });
            }
        }
        Ok(uses)
    }

    fn use_instead(&mut self, user: Inst, value: Value) -> NewUse {
        let old = self.old;
        rename_uses(self.func, user, |used| if used == old { value } else { used });
        NewUse { value, user }
    }

    fn block_of(&self, inst: Inst) -> Block {
        self.func.layout.inst_block(inst).expect("a user is in the layout")
    }

    /// Adds a parameter to each live block where definitions meet. Returns these blocks, in a fixed order.
    fn add_params(&mut self, live: &FxHashSet<Block>) -> Result<BTreeSet<Block>, TooManyParams> {
        let made = meets_of_one((self.cfg, self.domtree), self.levels, self.at_start.keys().copied(), live);
        let ty = self.func.dfg.value_type(self.old);
        for &block in &made {
            if self.func.dfg.num_block_params(block) >= MAX_PARAMS {
                return Err(TooManyParams);
            }
            let param = self.func.dfg.append_block_param(block, ty);
            copy_labels(self.func, self.old, param);
            self.at_start.insert(block, param);
        }
        Ok(made)
    }

    /// What the variable is at the end of `block`: the nearest definition above in the dominator tree.
    fn reaching(&mut self, block: Block) -> Value {
        let mut passed = Vec::new();
        let mut here = block;
        let value = loop {
            match self.at_start.get(&here) {
                Some(&value) => break value,
                None => passed.push(here),
            }
            here = self.domtree.idom(here).expect("a definition reaches every use");
        };
        self.at_start.extend(passed.into_iter().map(|block| (block, value)));
        value
    }
}
