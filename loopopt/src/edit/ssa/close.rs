//! Loop-closed form: a value that is defined in a loop and used after it leaves the loop as a parameter of an exit block.
//!
//! ```text
//! block2(v2: i64):                    block2(v2: i64):
//!     ...                                 ...
//!     brif v4, block2(v3), block3         brif v4, block2(v3), block3(v3)
//! block3:                     ──►     block3(v5: i64):
//!     return v3                           return v5
//! ```
//!
//! A pass that copies a loop, or a part of it, then has to care for the arguments of the exit edges alone. (GCC and LLVM
//! call it LCSSA.)
//!
//! A scalar constant needs no parameter either: it moves to the entry block, which is in no loop. As a parameter it would be
//! unknown to whatever asks what a value is; and it costs no register, as it is rematerialized beside its uses in the end
//! ([`crate::edit::materialize::constants`]).
//!
//! Needs dedicated exits: all edges into an exit block come from its loop. An exit block that the definition does not
//! dominate needs no parameter: if a use could be reached from there without passing the definition again, the
//! definition would not dominate the use.

use crate::analysis::cfg::loops::{Loop, LoopForest, def_block};
use crate::analysis::inst::effects::is_rematerialized;
use crate::edit::cfg::split_edges::append_arg;
use crate::edit::inst::labels::copy_labels;
use crate::edit::inst::rename::each_use;
use crate::edit::ssa::frontier::Levels;
use crate::edit::ssa::repair::{NewUse, Repair, live_until};
use crate::edit::{MAX_PARAMS, TooManyParams};
use crate::fault::fault;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::{EntitySet, SecondaryMap, packed_option::PackedOption};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use std::collections::BTreeMap;

/// Values with the instructions that use them outside the innermost loop of the definition.
type Escapes = BTreeMap<Value, Vec<Inst>>;

/// Blocks that are looked at for values that leave loops by several exits, for each block of the function. 128: each value is followed by itself, from its
/// uses back to the exits. 3,000 loops of which each has such a value took 5.9 s without a limit, where the rest of compilation took 0.2 s.
const MAX_LOOKS_PER_BLOCK: usize = 128;

/// Brings all loops into closed form with at most `budget` new arguments. Returns whether anything had to be done. Fails if that takes too many of them, or
/// too long.
pub(crate) fn close_loops(
    func: &mut Function,
    cfg: &ControlFlowGraph,
    domtree: &DominatorTree,
    forest: &LoopForest,
    budget: usize,
) -> Result<bool, TooManyParams> {
    let looks = func.dfg.num_blocks().saturating_mul(MAX_LOOKS_PER_BLOCK);
    let (exits, levels) = (FxHashMap::default(), Levels::default());
    let mut closer = Closer { func, cfg, domtree, forest, exits, looks, levels };
    let mut made = 0;
    let mut escapes = escapes(closer.func, domtree, forest);
    let changed = !escapes.is_empty();
    escapes.retain(|&value, _| !move_constant(closer.func, value));
    // What leaves an inner loop may be defined in, and escape from, the outer loop. Each step goes outwards.
    while let Some((value, users)) = escapes.pop_first() {
        let uses = closer.close(value, &users)?;
        made += uses.len();
        if made > budget {
            return Err(TooManyParams);
        }
        for new in uses {
            if closer.loop_left(new.value, new.user).is_some() {
                let users = escapes.entry(new.value).or_default();
                if users.last() != Some(&new.user) {
                    users.push(new.user);
                }
            }
        }
    }
    Ok(changed)
}

/// Moves what computes `value` to the entry block if it is a scalar constant. Returns whether it is.
fn move_constant(func: &mut Function, value: Value) -> bool {
    let def = func.dfg.value_def(value).inst().filter(|&def| is_rematerialized(func, def));
    let first = func.layout.entry_block().and_then(|entry| func.layout.first_inst(entry));
    let Some((def, first)) = def.zip(first) else { return false };
    func.layout.remove_inst(def);
    func.layout.insert_inst(def, first);
    true
}

/// All values that are used outside their loop.
pub(crate) fn escapes(func: &Function, domtree: &DominatorTree, forest: &LoopForest) -> Escapes {
    // The innermost loop of each value that is defined in one. In reverse postorder, definitions come before their uses.
    let mut homes = SecondaryMap::<Value, PackedOption<Loop>>::new();
    homes.resize(func.dfg.num_values());
    let mut escapes = Escapes::new();
    // A definition in a loop dominates its uses, so that they are in blocks that are in a loop or below one in the dominator tree.
    let mut below = EntitySet::with_capacity(func.dfg.num_blocks());
    for &block in domtree.cfg_rpo() {
        let around = PackedOption::from(forest.innermost(block));
        if around.is_none() && !domtree.idom(block).is_some_and(|above| below.contains(above)) {
            continue;
        }
        below.insert(block);
        if around.is_some() {
            func.dfg.block_params(block).iter().for_each(|&param| homes[param] = around);
        }
        for inst in func.layout.block_insts(block) {
            each_use(func, inst, |value| {
                let home = homes[value];
                if home != around && home.expand().is_some_and(|home| !forest.contains(home, block)) {
                    let users = escapes.entry(value).or_default();
                    if users.last() != Some(&inst) {
                        users.push(inst);
                    }
                }
            });
            if around.is_some() {
                func.dfg.inst_results(inst).iter().for_each(|&result| homes[result] = around);
            }
        }
    }
    escapes
}

/// The innermost loop of the definition of `value`, if a use in `block` is outside it.
fn loop_left(func: &Function, forest: &LoopForest, value: Value, block: Block) -> Option<Loop> {
    let lp = forest.innermost(def_block(func, value)?)?;
    (!forest.contains(lp, block)).then_some(lp)
}

struct Closer<'a> {
    func: &'a mut Function,
    cfg: &'a ControlFlowGraph,
    domtree: &'a DominatorTree,
    forest: &'a LoopForest,
    /// The exit blocks of the loops that were looked at.
    exits: FxHashMap<Loop, Vec<Block>>,
    /// Blocks that may still be looked at.
    looks: usize,
    levels: Levels,
}

impl Closer<'_> {
    fn loop_left(&self, value: Value, user: Inst) -> Option<Loop> {
        loop_left(self.func, self.forest, value, self.func.layout.inst_block(user)?)
    }

    /// Lets `value` leave its innermost loop through exit parameters, which `users` use instead. Returns the uses made.
    fn close(&mut self, value: Value, users: &[Inst]) -> Result<Vec<NewUse>, TooManyParams> {
        let def = def_block(self.func, value).expect("an escaping value has a definition");
        let lp = self.forest.innermost(def).expect("an escaping value is defined in a loop");
        let all = self.exits.entry(lp).or_insert_with(|| {
            let mut exits: Vec<_> = self.forest.data(lp).exits.iter().map(|edge| edge.target(self.func)).collect();
            exits.sort_unstable();
            exits.dedup();
            exits
        });
        let below = all.iter().copied().filter(|&exit| self.domtree.block_dominates(def, exit));
        let mut exits: Vec<_> = below.collect();
        // Only the exits that lead to a use: a parameter that nobody reads would still cost a move. A single one does.
        if exits.len() > 1 {
            let blocks: Vec<_> = users.iter().filter_map(|&user| self.func.layout.inst_block(user)).collect();
            let walk = live_until(self.cfg, &blocks, |block| exits.binary_search(&block).is_ok());
            exits.retain(|exit| walk.reached.contains(exit));
            self.looks = self.looks.checked_sub(walk.live.len()).ok_or(TooManyParams)?;
        }
        if fault!(ForgottenExitValue) && exits.len() > 1 {
            exits.truncate(1);
        }
        if exits.iter().any(|&exit| self.func.dfg.num_block_params(exit) >= MAX_PARAMS) {
            return Err(TooManyParams);
        }
        let (defs, mut uses) = self.add_exit_params(value, &exits);
        let flow = (self.cfg, self.domtree);
        uses.extend(Repair::new(self.func, flow, &mut self.levels, value, defs).run(users)?);
        Ok(uses)
    }

    fn add_exit_params(&mut self, value: Value, exits: &[Block]) -> (Vec<(Block, Value)>, Vec<NewUse>) {
        let ty = self.func.dfg.value_type(value);
        let (mut defs, mut uses) = (Vec::new(), Vec::new());
        for &exit in exits {
            let param = self.func.dfg.append_block_param(exit, ty);
            copy_labels(self.func, value, param);
            defs.push((exit, param));
            for &edge in self.forest.edges_into(self.func, self.cfg, exit) {
                append_arg(self.func, edge, value);
                uses.push(NewUse { value, user: edge.branch });
            }
        }
        (defs, uses)
    }
}

#[cfg(test)]
mod tests {
    use crate::Options;
    use crate::fuel::Fuel;
    use crate::pass::{Form, PassCx, canon};
    use crate::testing::{context, forest, isa, verify};
    use cranelift_codegen::Context;
    use cranelift_codegen::control::ControlPlane;

    /// Runs `canon`, checks what it promises, and returns the context.
    fn canonical(text: &str) -> Context {
        let mut ctx = context(text);
        let (isa, options, mut ctrl_plane) = (isa(), Options::default(), ControlPlane::default());
        canon::run(&mut ctx, &mut PassCx::new(&options, &mut Fuel::default(), &*isa, &mut ctrl_plane))
            .expect("canon does not fail");
        verify(&ctx);
        let forest = forest(&ctx);
        canon::check(&ctx, &forest, Form::Canonical).unwrap_or_else(|what| panic!("{what}\n{}", ctx.func));
        ctx
    }

    #[test]
    fn value_leaves_two_loops_at_once_and_one_by_one() {
        let ctx = canonical(
            "function %f(i64, i64) -> i64 {
            block0(v0: i64, v1: i64):
                jump block1
            block1:
                jump block2
            block2:
                v2 = iadd v0, v1
                brif v1, block3, block9
            block3:
                brif v2, block2, block4
            block4:
                brif v0, block1, block9
            block9:
                return v2
            }",
        );
        assert!(!ctx.func.to_string().contains("return v2"));
    }

    #[test]
    fn constant_leaves_for_the_entry_block() {
        let ctx = canonical(
            "function %f(i64) -> i64 {
            block0(v0: i64):
                jump block1
            block1:
                v1 = iconst.i64 8
                brif v0, block1, block2
            block2:
                v2 = iadd v0, v1
                return v2
            }",
        );
        let entry = ctx.func.layout.entry_block().expect("a block");
        assert_eq!(ctx.func.layout.block_insts(entry).count(), 2);
        assert!(ctx.func.layout.blocks().all(|block| block == entry || ctx.func.dfg.block_params(block).is_empty()));
    }

    #[test]
    fn exit_that_the_definition_does_not_dominate() {
        canonical(
            "function %f(i64, i64) -> i64 {
            block0(v0: i64, v1: i64):
                jump block1
            block1:
                brif v0, block2, block5
            block2:
                v2 = iadd v0, v1
                brif v2, block1, block3
            block3:
                return v2
            block5:
                return v0
            }",
        );
    }

    #[test]
    fn several_exits_meet_before_the_use() {
        canonical(
            "function %f(i64, i64) -> i64 {
            block0(v0: i64, v1: i64):
                jump block1
            block1:
                v2 = iadd v0, v1
                brif v0, block2, block4
            block2:
                brif v1, block3, block5
            block3:
                brif v2, block1, block6
            block4:
                jump block7
            block5:
                jump block7
            block6:
                jump block7
            block7:
                return v2
            }",
        );
    }

    #[test]
    fn use_in_an_outer_loop_that_comes_back() {
        canonical(
            "function %f(i64, i64) -> i64 {
            block0(v0: i64, v1: i64):
                jump block1(v0)
            block1(v9: i64):
                jump block2(v9)
            block2(v3: i64):
                v2 = iadd v3, v1
                brif v0, block2(v2), block3
            block3:
                brif v1, block1(v2), block4
            block4:
                v5 = iadd v2, v3
                return v5
            }",
        );
    }

    #[test]
    fn latch_and_exit_by_br_table() {
        canonical(
            "function %f(i32, i64) -> i64 {
            block0(v0: i32, v1: i64):
                jump block1(v1)
            block1(v2: i64):
                v3 = iadd v2, v1
                br_table v0, block2, [block1(v3), block2, block1(v2), block3]
            block2:
                return v3
            block3:
                return v2
            }",
        );
    }
}
