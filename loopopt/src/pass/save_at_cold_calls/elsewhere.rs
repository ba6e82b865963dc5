//! Cold calls that come back elsewhere: a rare part that finishes the iteration, and enters the loop again or leaves it.
//!
//! ```text
//! rare cold:                                rare cold:
//!     call f()                                  v10 = bitcast.f64 v1
//!     … the rest of the iteration …             call f()
//!     brif v5, header(v1), exit       ──►       jump rest
//!                                           rest cold:
//!                                               v12 = bitcast.i64 v10
//!                                               …
//!                                               brif v5, header(v12), exit
//! ```
//!
//! Each value that lives across is a new one after the call. Where both meet, there is a parameter ([`crate::edit::ssa::repair`]).

use super::rare::is_worth_saving;
use super::users::Users;
use crate::analysis::cfg::loops::{Loop, LoopForest, defined_in};
use crate::edit::inst::labels::copy_labels;
use crate::edit::materialize::other_class::Saved;
use crate::edit::ssa::frontier::Levels;
use crate::edit::ssa::repair::{Repair, live_until};
use crate::edit::{TooManyParams, at};
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, Opcode, Value};

/// Blocks of a loop in which what lives is looked for, for each cold call by itself. 300: it bounds the time for loops made to be slow.
pub(super) const MAX_BLOCKS: usize = 300;

/// A block that ends after a cold call, and the one after it.
#[derive(Clone, Copy)]
pub(super) struct Behind {
    calls: Block,
    rest: Block,
}

impl Behind {
    /// What `calls` is, if it ends after its last call.
    pub(super) fn of(Context { func, cfg, .. }: &Context, calls: Block) -> Option<Self> {
        let end = func.layout.last_inst(calls)?;
        let last = func.layout.prev_inst(end)?;
        let is_jump = func.dfg.insts[end].opcode() == Opcode::Jump;
        let [rest] = func.dfg.insts[end].branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables) else {
            return None;
        };
        let rest = rest.block(&func.dfg.value_lists);
        let is_alone = cfg.pred_iter(rest).count() == 1 && func.dfg.num_block_params(rest) == 0;
        (is_jump && is_call(func, last) && is_alone).then_some(Self { calls, rest })
    }

    /// Lets `block` end after its last call, if that is not what it ends in.
    pub(super) fn split(func: &mut Function, block: Block) {
        let end = func.layout.last_inst(block);
        let call = func.layout.block_insts(block).rev().find(|&inst| is_call(func, inst));
        let Some(call) = call.filter(|&call| Some(call) != end) else { return };
        let first = func.layout.next_inst(call).expect("it is not the last one");
        let rest = func.dfg.make_block();
        func.layout.split_block(rest, first);
        func.layout.set_cold(rest);
        let srcloc = func.srcloc(call);
        FuncCursor::new(func).at_bottom(block).with_srcloc(srcloc).ins().jump(rest, &[]);
    }

    /// Saves what lives across. Returns how many values that is.
    pub(super) fn save(
        self,
        ctx: &mut Context,
        (forest, lp): (&LoopForest, Loop),
        users: &mut Users,
        levels: &mut Levels,
    ) -> Result<usize, TooManyParams> {
        let living = self.living(ctx, (forest, lp), users);
        let Context { func, cfg, domtree, .. } = ctx;
        let first = func.layout.block_insts(self.calls).find(|&inst| is_call(func, inst)).expect("it calls");
        for &(home, value) in &living {
            let saved = Saved::new(&mut at(func, first), value);
            let behind = func.layout.first_inst(self.rest).expect("a block ends in a branch");
            let back = saved.back(&mut at(func, behind));
            copy_labels(func, value, back);
            saved.parts.iter().for_each(|&part| users.add(part, self.rest));
            users.add(value, self.calls);
            let insts = users.take(func, value);
            let defs = [(home, value), (self.rest, back)];
            for made in Repair::new(func, (cfg, domtree), levels, value, defs).run(&insts)? {
                users.add(made.value, func.layout.inst_block(made.user).expect("a user is in the layout"));
            }
        }
        Ok(living.len())
    }

    /// What lives across, and can be saved, with where it is defined.
    fn living(self, ctx: &Context, (forest, lp): (&LoopForest, Loop), users: &Users) -> Vec<(Block, Value)> {
        let Context { func, cfg, domtree, .. } = ctx;
        let insts = func.layout.block_insts(self.calls);
        let before: Vec<Inst> = insts.take_while(|&inst| !is_call(func, inst)).collect();
        let comes_before = |home: Block, value: Value| {
            let def = func.dfg.value_def(value).inst();
            home != self.calls || def.is_none_or(|def| before.contains(&def))
        };
        let homes = forest.blocks(lp).iter().copied();
        let homes = homes.filter(|&home| domtree.block_dominates(home, self.calls));
        let values = homes.flat_map(|home| defined_in(func, home).map(move |value| (home, value)));
        let can_live = |&(home, value): &(Block, Value)| is_worth_saving(func, value) && comes_before(home, value);
        let mut living: Vec<_> = values.filter(can_live).collect();
        living.retain(|&(home, value)| {
            let blocks = users.blocks(value);
            !blocks.is_empty() && live_until(cfg, blocks, |block| block == home).live.contains(&self.rest)
        });
        living.sort_unstable_by_key(|&(_, value)| value);
        living
    }
}

fn is_call(func: &Function, inst: Inst) -> bool {
    func.dfg.insts[inst].opcode().is_call()
}
