//! Rare code that comes back to the target of the other edge of its branch: what lives across it is saved there.

use super::users::Users;
use crate::analysis::cfg::edges::{Edge, edges_from};
use crate::analysis::cfg::loops::{Loop, LoopForest, defined_in};
use crate::analysis::inst::effects::{calls, is_constant_value};
use crate::analysis::memory::polls::rare_region;
use crate::edit::cfg::split_edges::append_arg;
use crate::edit::inst::labels::copy_labels;
use crate::edit::inst::rename::rename_in;
use crate::edit::materialize::other_class::{Saved, can_save};
use crate::edit::ssa::frontier::Levels;
use crate::edit::ssa::repair::{Repair, live_until};
use crate::edit::{TooManyParams, at};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Function, Opcode, Value};
use cranelift_codegen::{Context, FxHashMap};

/// Rare code that comes back.
pub(super) struct Rare {
    /// The edge that leads there.
    pub(super) edge: Edge,
    /// The other edge of that branch, which goes where the rare code comes back to.
    pub(super) usual: Edge,
    pub(super) region: Vec<Block>,
}

/// Whether `value` can be saved, and is not recomputed where it is used.
pub(super) fn is_worth_saving(func: &Function, value: Value) -> bool {
    !is_constant_value(func, value) && can_save(func.dfg.value_type(value))
}

/// The rare code that calls and that the branch at the end of `block` leads to, which is in `lp` or in a cold inner loop.
pub(super) fn find_rare(ctx: &Context, forest: &LoopForest, lp: Loop, block: Block) -> Option<Rare> {
    let func = &ctx.func;
    let branch = func.layout.last_inst(block)?;
    let inner = forest.innermost(block)?;
    let header = forest.data(inner).header;
    let is_looked_at = if inner == lp { !func.layout.is_cold(block) } else { func.layout.is_cold(header) };
    if func.dfg.insts[branch].opcode() != Opcode::Brif || !is_looked_at {
        return None;
    }
    [0, 1].into_iter().find_map(|slot| {
        let (edge, usual) = (Edge { branch, slot }, Edge { branch, slot: 1 - slot });
        let body = usual.target(func);
        if !func.layout.is_cold(edge.target(func)) || !forest.contains(inner, body) || body == header {
            return None;
        }
        let region = rare_region(ctx, forest, inner, (edge, body))?;
        let mut back = region
            .iter()
            .flat_map(|&block| edges_from(func, block))
            .filter(|edge| edge.target(func) == body)
            .peekable();
        // What is computed for the edge of a `try_call` comes before the call.
        let comes_back = back.peek().is_some() && back.all(|edge| !func.dfg.insts[edge.branch].opcode().is_call());
        let calls = region.iter().any(|&block| calls(func, block));
        (comes_back && calls).then_some(Rare { edge, usual, region })
    })
}

/// A value that lives across rare code.
struct Living {
    value: Value,
    /// Where it is defined.
    home: Block,
    /// Whether each path to its uses after the branch passes the end of the rare code.
    comes_from_rare: bool,
}

impl Rare {
    /// Saves what lives across. Returns how many values that is.
    pub(super) fn save(
        &self,
        ctx: &mut Context,
        place: (&LoopForest, Loop),
        users: &mut Users,
        levels: &mut Levels,
    ) -> Result<usize, TooManyParams> {
        let living = self.living(ctx, place, users);
        let Context { func, cfg, domtree, .. } = ctx;
        let (body, source) = (self.usual.target(func), self.usual.source(func));
        let (mut new, mut renamed) = (FxHashMap::default(), Vec::new());
        for &Living { value, home, comes_from_rare } in &living {
            let ty = func.dfg.value_type(value);
            let param = func.dfg.append_block_param(body, ty);
            copy_labels(func, value, param);
            if comes_from_rare {
                new.insert(value, param);
                users.replace(value, param, |block| domtree.block_dominates(body, block));
                renamed.extend_from_slice(users.blocks(param));
            }
            users.add(value, source);
            self.save_one(func, value, body, users);
            if !comes_from_rare {
                let insts = users.take(func, value);
                let defs = [(home, value), (body, param)];
                for made in Repair::new(func, (cfg, domtree), levels, value, defs).run(&insts)? {
                    users.add(made.value, func.layout.inst_block(made.user).expect("a user is in the layout"));
                }
            }
        }
        renamed.sort_unstable();
        renamed.dedup();
        rename_in(func, renamed, &new);
        Ok(living.len())
    }

    /// What lives across, and can be saved.
    fn living(&self, ctx: &Context, (forest, lp): (&LoopForest, Loop), users: &Users) -> Vec<Living> {
        let Context { func, domtree, .. } = ctx;
        let (body, source) = (self.usual.target(func), self.usual.source(func));
        let mut living = Vec::new();
        let homes = forest.blocks(lp).iter().copied().filter(|&block| domtree.block_dominates(block, source));
        for home in homes.filter(|&home| home != body) {
            for value in defined_in(func, home) {
                if !is_worth_saving(func, value) {
                    continue;
                }
                if let Some(comes_from_rare) = self.lives_across(ctx, forest, (value, home), users) {
                    living.push(Living { value, home, comes_from_rare });
                }
            }
        }
        living.sort_unstable_by_key(|living| living.value);
        living
    }

    /// Whether each path to the uses of a value after the branch passes the end of the rare code. None if the value does not live across.
    fn lives_across(
        &self,
        ctx: &Context,
        forest: &LoopForest,
        (value, home): (Value, Block),
        users: &Users,
    ) -> Option<bool> {
        let Context { func, cfg, domtree, .. } = ctx;
        let (body, source) = (self.usual.target(func), self.usual.source(func));
        // In an inner loop, what comes before the branch comes after it as well.
        let inner = forest.innermost(source).filter(|&inner| !forest.contains(inner, home));
        let comes_after = |block: Block| {
            let comes_again = inner.is_some_and(|inner| forest.contains(inner, block));
            !self.region.contains(&block) && (comes_again || !domtree.block_dominates(block, source))
        };
        let after: Vec<_> = users.blocks(value).iter().copied().filter(|&block| comes_after(block)).collect();
        if after.is_empty() {
            return None;
        }
        if inner.is_none() && after.iter().all(|&block| domtree.block_dominates(body, block)) {
            return Some(true);
        }
        let live = live_until(cfg, &after, |block| block == home).live;
        live.contains(&body).then_some(false)
    }

    /// Passes `value` to `body`, from the rare code as the restored value.
    fn save_one(&self, func: &mut Function, value: Value, body: Block, users: &mut Users) {
        append_arg(func, self.usual, value);
        let entered = self.edge.target(func);
        users.add(value, entered);
        let srcloc = func.srcloc(self.edge.branch);
        let saved = Saved::new(&mut FuncCursor::new(func).at_first_insertion_point(entered).with_srcloc(srcloc), value);
        for &block in &self.region {
            let edges: Vec<_> = edges_from(func, block).filter(|edge| edge.target(func) == body).collect();
            for edge in edges {
                let back = saved.back(&mut at(func, edge.branch));
                append_arg(func, edge, back);
                saved.parts.iter().for_each(|&part| users.add(part, block));
                users.add(back, block);
            }
        }
    }
}
