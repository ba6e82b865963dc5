//! Values that live across a cold call are saved at the call, and stay in registers everywhere else.
//!
//! ```text
//! header(v1):  ◄────────────┐           header(v1, v8):  ◄───────────┐
//!     brif v2, rare, next   │               brif v2, rare, next(v1, v8)
//! rare cold:                │           rare cold:                   │
//!     call f()              │    ──►        v10 = bitcast.f64 v1     │
//!     jump next             │               v11 = bitcast.f64 v8     │
//! next:                     │               call f()                 │
//!     v4 = load v3          │               v12 = bitcast.i64 v10    │
//!     v5 = iadd v1, v4      │               v13 = bitcast.i64 v11    │
//!     jump header(v5) ──────┘               jump next(v12, v13)      │
//!                                       next(v6, v7):                │
//!                                           v4 = load v7             │
//!                                           v5 = iadd v6, v4         │
//!                                           jump header(v5, v7) ─────┘
//! ```
//!
//! What lives across a call and gets no preserved register is on the stack there. Cranelift's allocator (regalloc2 0.15) gives one
//! place to all values that are passed to each other as block arguments, as far as it can, and if one of them is alive at the call it splits that at its
//! uses: then the hot code loads and stores values though the call never runs. Here another value is what is alive at
//! the call, of another class of registers, so that it cannot be given the place of the first one. That one has no call in its
//! live range.
//!
//! # Needs
//!
//! Nothing. Comes late: a parameter that is always the same value, and a value that is cast and cast back, would be removed by passes that look for
//! such.
//!
//! # Legal when
//!
//! Always: a parameter is the value that it is for. (L1) A use gets the parameter if each path to it passes the end of the rare code. If other paths lead there as
//! well, it gets one that is either ([`crate::edit::ssa::repair`]).
//!
//! # Pays when
//!
//! A value from outside of the loop that only the cold code uses needs no register in the loop and gets no parameter: it may be on the stack.
//!
//! (P1) All calls of the loop are in cold code. If one edge of a branch leads there, and it comes back to where the other edge goes, values are restored there. That branch
//! may be in a cold inner loop: the loop as it was, where `strip_mine` or `transfer` has made one without calls. Of other cold code, such as the rare part of a loop that
//! `transfer` has made, the block is split after its last call, and values are restored there ([`elsewhere`]). (P2) Something lives across. (P3) There are registers for what lives through the loop. (P4) There are few of them, and few values across all of them: each takes code, and
//! time to lower it. A call at which nothing is saved would be one across which everything lives, so that it is all of them or none.
//!
//! What only an outermost loop uses, and lives across a call before it, enters the loop by the other class of registers, if there are more such values than
//! calls preserve: it was on the stack.
//!
//! # Cost
//!
//! The uses in the function are counted once. Each cold call looks at what is defined in the loop.
//!
//! # Changes
//!
//! Parameters, arguments, and instructions in cold code, of which blocks are split.
//!
//! # Not done
//!
//! Integers of 128 bits: they are in registers for floats on some targets.
//!
//! # References
//!
//! Placement of spill code in what is cold: Lupo and Wilken, "Post register allocation spill code optimization" (CGO 2006).

mod elsewhere;
mod rare;
mod users;

use crate::analysis::cfg::edges::each_use;
use crate::analysis::cfg::loops::{Loop, LoopForest, def_block};
use crate::analysis::inst::effects::calls;
use crate::analysis::pressure::{Pressure, used_from_outside};
use crate::change::Change;
use crate::edit::inst::labels::copy_labels;
use crate::edit::inst::rename::rename_uses;
use crate::edit::materialize::other_class::{Saved, can_save};
use crate::edit::ssa::frontier::Levels;
use crate::edit::ssa::own_values::give_own_values;
use crate::edit::{TooManyParams, at};
use crate::options::Options;
use crate::pass::{Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::ir::{Block, Function, Value};
use cranelift_codegen::{CodegenResult, Context, FxHashSet};
use rare::{Rare, find_rare, is_worth_saving};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use users::Users;

/// The name of this pass.
pub(crate) const NAME: &str = "save_at_cold_calls";

/// The pass.
pub(crate) const PASS: Pass = Pass { name: NAME, run, reasons: &[Decline::REASONS], claims: &[], ..Pass::OPTIONAL };

/// Saves what lives across the cold calls of all loops where it pays.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let split = split_after_calls(ctx, cx);
    cx.invalidate(ctx, split);
    let mut change = Change::Nothing;
    let forest = cx.forest(ctx);
    let mut users = None;
    let mut room = Room::new(cx.options);
    for lp in order(&ctx.func, &forest, room.calls) {
        let header = forest.data(lp).header;
        match Plan::judge(ctx, &forest, lp, cx).and_then(|plan| plan.map(|plan| plan.within(&mut room)).transpose()) {
            Ok(None) => {}
            Ok(Some(plan)) if cx.fuel.take() => {
                match plan.apply(ctx, (&forest, lp), users.get_or_insert_with(|| Users::of(&ctx.func))) {
                    Ok(0) if plan.invariant.is_empty() => {
                        cx.declined(&ctx.func, NAME, header, &Decline::NothingLives);
                    }
                    Err(TooManyParams) => {
                        cx.gave_up = true;
                        return Ok(Change::Insts);
                    }
                    Ok(saved) => {
                        room.saved = room.saved.saturating_sub(saved);
                        cx.fired(&ctx.func, &PASS, header, format!("values that cold calls save: {saved}"));
                        change = Change::Insts;
                    }
                }
            }
            Ok(Some(_)) => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
            Err(why) => cx.declined(&ctx.func, NAME, header, &why),
        }
    }
    Ok(change)
}

/// What a function has room for.
struct Room {
    /// Cold calls.
    calls: usize,
    /// Values that are saved at one of them.
    saved: usize,
}

impl Room {
    fn new(options: &Options) -> Self {
        Self {
            calls: options.save_at_cold_calls_max_calls.saturating_mul(2),
            saved: options.save_at_cold_calls_max_saved,
        }
    }
}

/// Lets the cold blocks of loops that call and come back elsewhere end after their calls.
fn split_after_calls(ctx: &mut Context, cx: &mut PassCx<'_>) -> Change {
    let forest = cx.forest(ctx);
    let calling = |lp| Calls::of(ctx, &forest, lp).ok().flatten();
    // A call of an inner loop is a call of the enclosing loops, too.
    let found: BTreeSet<Block> = forest.loops().filter_map(calling).flat_map(|calls| calls.elsewhere).collect();
    let before = ctx.func.dfg.num_blocks();
    for block in found {
        if elsewhere::Behind::of(ctx, block).is_none() {
            elsewhere::Behind::split(&mut ctx.func, block);
        }
    }
    if ctx.func.dfg.num_blocks() == before { Change::Nothing } else { Change::Cfg }
}

/// The loops, in the order in which they are looked at: those that run most first, if there is too little room for all.
fn order(func: &Function, forest: &LoopForest, room: usize) -> Vec<Loop> {
    let mut loops: Vec<_> = forest.loops().collect();
    let is_rare =
        |&block: &Block| func.layout.is_cold(block) && forest.innermost(block).is_some() && calls(func, block);
    // A rare part is cold, and calls.
    if func.layout.blocks().filter(is_rare).count() > room {
        loops.sort_by_key(|&lp| Reverse(forest.data(lp).depth));
    }
    loops
}

/// The cold calls of a loop.
struct Calls {
    rare: Vec<Rare>,
    /// The blocks of calls that come back elsewhere.
    elsewhere: Vec<Block>,
}

impl Calls {
    /// Those of a loop. Nothing if it does not call.
    fn of(ctx: &Context, forest: &LoopForest, lp: Loop) -> Result<Option<Self>, Decline> {
        let func = &ctx.func;
        let blocks = forest.blocks(lp);
        let calls: Vec<Block> = blocks.iter().copied().filter(|&block| calls(func, block)).collect();
        if calls.is_empty() {
            return Ok(None);
        }
        if func.is_effectively_cold(forest.data(lp).header) {
            return Err(Decline::ColdLoop);
        }
        if calls.iter().any(|&block| !func.layout.is_cold(block)) {
            return Err(Decline::Calls);
        }
        let rare: Vec<_> = blocks.iter().filter_map(|&block| find_rare(ctx, forest, lp, block)).collect();
        let is_covered = |call: &Block| rare.iter().any(|rare| rare.region.contains(call));
        let elsewhere: Vec<_> = calls.into_iter().filter(|call| !is_covered(call)).collect();
        if !elsewhere.is_empty() && blocks.len() > elsewhere::MAX_BLOCKS {
            return Err(Decline::ComesBackElsewhere);
        }
        Ok(Some(Self { rare, elsewhere }))
    }
}

struct Plan {
    rare: Vec<Rare>,
    elsewhere: Vec<elsewhere::Behind>,
    /// What the loop uses from outside, and not only in rare code.
    invariant: Vec<Value>,
    /// The most values that can live across one of its calls.
    values: usize,
    /// Whether more numbers live through the loop than calls preserve.
    is_spilled: bool,
}

impl Plan {
    /// What is to be done. Nothing if the loop does not call.
    fn judge(ctx: &Context, forest: &LoopForest, lp: Loop, cx: &PassCx<'_>) -> Result<Option<Self>, Decline> {
        let func = &ctx.func;
        let Some(Calls { rare, elsewhere }) = Calls::of(ctx, forest, lp)? else { return Ok(None) };
        let (number, max) = (rare.len() + elsewhere.len(), cx.options.save_at_cold_calls_max_calls);
        if number > max {
            return Err(Decline::ManyCalls { calls: number, max });
        }
        let elsewhere = elsewhere.into_iter().map(|block| elsewhere::Behind::of(ctx, block));
        let elsewhere: Option<Vec<_>> = elsewhere.collect();
        let elsewhere = elsewhere.ok_or(Decline::ComesBackElsewhere)?;
        let pressure_of = |lp: Loop| Pressure::of(func, forest, lp, cx.isa, &cx.use_counts);
        let is_full = |pressure: &Pressure| {
            let (needed, available) = pressure.needed();
            (0..2).any(|class| needed[class] > available[class])
        };
        let pressure = pressure_of(lp);
        let is_full_inside = || inner_loops_that_call(func, forest, lp).any(|inner| is_full(&pressure_of(inner)));
        if !cx.options.ignore_cost && (is_full(&pressure) || !elsewhere.is_empty() && is_full_inside()) {
            return Err(Decline::Pressure);
        }
        let is_spilled = pressure.needed().0[0] > pressure.across_calls()[0];
        let hot = used_beside(func, forest, forest.blocks(lp), &rare);
        let mut invariant = used_from_outside(func, forest, (lp, lp));
        invariant.retain(|value| hot.contains(value) && can_save(func.dfg.value_type(*value)));
        let values = invariant.len() + used_in_other_blocks(func, forest, lp);
        Ok(Some(Self { rare, elsewhere, invariant, values, is_spilled }))
    }

    /// (P4) The same, if the function has room for it, of which there is less then.
    fn within(self, room: &mut Room) -> Result<Self, Decline> {
        let calls = self.rare.len() + self.elsewhere.len();
        if self.values.saturating_mul(calls) > room.saved {
            return Err(Decline::ManyValues { values: self.values, calls, left: room.saved });
        }
        match room.calls.checked_sub(calls) {
            Some(left) => room.calls = left,
            None => return Err(Decline::ManyCallsBefore { calls, left: room.calls }),
        }
        Ok(self)
    }

    /// Returns how many values are saved.
    fn apply(
        &self,
        ctx: &mut Context,
        place @ (forest, lp): (&LoopForest, Loop),
        users: &mut Users,
    ) -> Result<usize, TooManyParams> {
        let data = forest.data(lp);
        let edges = [&data.entries[..], &data.back_edges[..]];
        let own = give_own_values(&mut ctx.func, (data.header, forest.blocks(lp)), edges, &self.invariant);
        for (&value, &param) in self.invariant.iter().zip(&own) {
            users.replace(value, param, |block| forest.contains(lp, block));
            data.entries.iter().for_each(|edge| users.add(value, edge.source(&ctx.func)));
            data.back_edges.iter().for_each(|edge| users.add(param, edge.source(&ctx.func)));
        }
        self.enter_by_other_class(ctx, place, users);
        let mut levels = Levels::default();
        let mut saved = 0;
        for rare in &self.rare {
            saved += rare.save(ctx, place, users, &mut levels)?;
        }
        for behind in &self.elsewhere {
            saved += behind.save(ctx, place, users, &mut levels)?;
        }
        Ok(saved)
    }

    /// Lets what only an outermost loop uses enter it by the other class of registers, if a call comes before, across which it is on the stack.
    fn enter_by_other_class(&self, ctx: &mut Context, (forest, lp): (&LoopForest, Loop), users: &mut Users) {
        let Context { func, domtree, .. } = ctx;
        let data = forest.data(lp);
        if !self.is_spilled || data.parent.is_some() {
            return;
        }
        let comes_before = |&block: &Block| calls(func, block) && !domtree.block_dominates(data.header, block);
        let calling: Vec<Block> = func.layout.blocks().filter(comes_before).collect();
        let sources: Vec<Block> = data.entries.iter().map(|edge| edge.source(func)).collect();
        for &value in &self.invariant {
            let home = def_block(func, value);
            let crosses = |&call: &Block| home.is_some_and(|home| home != call && domtree.block_dominates(home, call));
            let is_used_elsewhere = users.blocks(value).iter().any(|block| !sources.contains(block));
            if is_used_elsewhere || !calling.iter().any(crosses) {
                continue;
            }
            for edge in &data.entries {
                let saved = Saved::new(&mut at(func, edge.branch), value);
                let back = saved.back(&mut at(func, edge.branch));
                rename_uses(func, edge.branch, |used| if used == value { back } else { used });
                copy_labels(func, value, back);
                saved.parts.iter().chain([&back]).for_each(|&made| users.add(made, edge.source(func)));
            }
        }
    }
}

/// The inner loops that call and are not cold.
fn inner_loops_that_call(func: &Function, forest: &LoopForest, lp: Loop) -> impl Iterator<Item = Loop> {
    let headers = forest.blocks(lp).iter().filter(|&&block| !func.is_effectively_cold(block));
    let inner = headers.filter_map(|&block| forest.loop_of_header(block)).filter(move |&inner| inner != lp);
    inner.filter(|&inner| forest.blocks(inner).iter().any(|&block| calls(func, block)))
}

/// What `blocks` use, apart from the rare ones and those of cold loops.
fn used_beside(func: &Function, forest: &LoopForest, blocks: &[Block], rare: &[Rare]) -> FxHashSet<Value> {
    let mut used = FxHashSet::default();
    let is_cold = |block| forest.innermost(block).is_some_and(|lp| func.layout.is_cold(forest.data(lp).header));
    let is_rare = |block: &Block| is_cold(*block) || rare.iter().any(|rare| rare.region.contains(block));
    for inst in blocks.iter().filter(|block| !is_rare(block)).flat_map(|&block| func.layout.block_insts(block)) {
        each_use(func, inst, |value| _ = used.insert(value));
    }
    used
}

/// How many values of `lp` that could be saved are used in another block than the one that defines them.
fn used_in_other_blocks(func: &Function, forest: &LoopForest, lp: Loop) -> usize {
    let mut found = FxHashSet::default();
    for &block in forest.blocks(lp) {
        for inst in func.layout.block_insts(block) {
            each_use(func, inst, |value| {
                let comes_from = def_block(func, value).filter(|&home| home != block && forest.contains(lp, home));
                if comes_from.is_some() && is_worth_saving(func, value) {
                    found.insert(value);
                }
            });
        }
    }
    found.len()
}

refusals! {
    /// Why values live across the cold calls of a loop.
    enum Decline {
        /// (P1) A call is not cold.
        Calls => "calls", "it calls where it is not cold";
        /// (P1) The cold code does not come back at once, and does not go on in the block of the call, or there are too many blocks to look at.
        ComesBackElsewhere
            => "comes-back-elsewhere",
            "the cold code of a call does not come back to where the other edge of its branch goes, and is a `try_call` or in a long loop";
        /// (P2) Nothing lives across.
        NothingLives => "nothing-lives", "nothing lives across its cold calls that could be saved";
        /// (P3) There are not enough registers.
        Pressure => "pressure", "more lives through the loop than there are registers";
        /// (P4) There are many.
        ManyCalls { calls: usize, max: usize } => "many-calls",
            "{calls} rare parts of the loop call and come back; there may be {max}",
            help "raise Options::save_at_cold_calls_max_calls if one of them is seldom taken and the loop is hot";
        /// (P4) There are many in loops handled before it.
        ManyCallsBefore { calls: usize, left: usize } => "many-calls",
            "{calls} rare parts of the loop call and come back; other loops that run as often have so many that {left} more are allowed",
            help "raise Options::save_at_cold_calls_max_calls if the loop is hot";
        /// (P4) There are few, across which very much may live.
        ManyValues { values: usize, calls: usize, left: usize } => "many-values",
            "{values} values may live across {calls} cold calls, and {left} may be saved",
            help "raise Options::save_at_cold_calls_max_saved if the loop is hot, or make fewer of its calls in each iteration";
    }
    shared { ColdLoop, Withheld }
}
