//! Whether a loop or a nest can run in strips, and what its strips are.

use super::nest::{Asked, Nest};
use super::why::Decline;
use super::{MAX_WHOLE, Plan, Shared, Strip};
use crate::analysis::cfg::edges::{each_use, edges_from};
use crate::analysis::cfg::jumps::leads_to_failure;
use crate::analysis::cfg::loops::{Loop, LoopForest, def_block};
use crate::analysis::cfg::must_execute::Order;
use crate::analysis::inst::effects::{calls, counts_as_code, is_constant};
use crate::analysis::memory::alias::{Access, LoopStores, PrivateSlots};
use crate::analysis::memory::enough::Enough;
use crate::analysis::memory::exit_polls;
use crate::analysis::memory::fuel::{Fuel, Inside};
use crate::analysis::memory::polls::Polls;
use crate::options::Options;
use crate::pass::PassCx;
use cranelift_codegen::ir::{Block, Function, Inst, MemFlagsData, Value, ValueDef};
use cranelift_codegen::{Context, FxHashSet};

/// A loop, and what decides about it.
pub(super) struct Look<'a> {
    pub(super) ctx: &'a Context,
    pub(super) forest: &'a LoopForest,
    pub(super) lp: Loop,
    pub(super) shared: &'a mut Shared,
}

impl Look<'_> {
    pub(super) fn prove(&mut self, cx: &mut PassCx<'_>) -> Result<Plan, Decline> {
        let Self { ctx, forest, lp, .. } = *self;
        let options = cx.options;
        let asynchronous = |load: Inst| options.is_asynchronous_load(&ctx.func, load);
        let polls = Polls::of(ctx, forest, lp, &asynchronous).ok_or_else(|| self.why_no_poll())?;
        self.prove_form()?;
        let asks_flags = polls.ask_flags();
        match self.prove_with(polls, cx) {
            // A check that looks like fuel, after polls for flags.
            Err(why) if asks_flags && why.is_of_fuel() => match Polls::of_flags(ctx, (forest, lp), &asynchronous) {
                Some(polls) => self.prove_with(polls, cx),
                None => Err(why),
            },
            proved => proved,
        }
    }

    fn prove_with(&mut self, polls: Polls, cx: &mut PassCx<'_>) -> Result<Plan, Decline> {
        let blocks = self.forest.blocks(self.lp).iter().copied();
        let body: Vec<_> = blocks.filter(|&block| !polls.holds(block)).collect();
        let used = self.used(&polls, &body)?;
        let strip = self.strip((&polls, &used), &body, cx)?;
        Ok(self.plan((polls, Vec::new()), body, used, strip))
    }

    fn why_no_poll(&self) -> Decline {
        let func = &self.ctx.func;
        let is_rare_call = |block: Block| func.layout.is_cold(block) && calls(func, block);
        let mut edges = edges_from(func, self.forest.data(self.lp).header);
        let rare = edges.find(|edge| is_rare_call(edge.target(func)));
        rare.map_or(Decline::NoPoll, |edge| Decline::UnknownPoll(edge.branch))
    }

    /// (L4) and (L5) The same if inner loops poll as well. None if none does, or if too little is known of what they add to fuel.
    pub(super) fn prove_nest(&mut self, cx: &mut PassCx<'_>) -> Option<Result<Plan, Decline>> {
        let Self { ctx, forest, lp, .. } = *self;
        let options = cx.options;
        let asynchronous = |load: Inst| options.is_asynchronous_load(&ctx.func, load);
        // Most loops ask nothing, and what cannot be copied need not be looked at.
        let mut exits = edges_from(&ctx.func, forest.data(lp).header);
        if !exits.any(|edge| may_be_rare(&ctx.func, edge.target(&ctx.func))) || !self.may_copy(cx) {
            return None;
        }
        let nest = Nest::of(ctx, forest, lp, &asynchronous)?;
        let fuel = match nest.asked() {
            Asked::Nothing => None,
            Asked::Fuel(number, enough) => Some(self.fuel_of_nest(&nest, (number, enough), cx)?),
            Asked::Several => return None,
        };
        Some(self.prove_nest_of(nest, fuel, cx))
    }

    /// (L5) What an iteration takes, if that is little.
    fn fuel_of_nest(&self, nest: &Nest, number: (Value, Enough), cx: &mut PassCx<'_>) -> Option<Fuel> {
        let Self { ctx, forest, lp, .. } = *self;
        let mut inside = Inside { rare: nest.rare().clone(), asked: nest.asked_inside(), ..Inside::default() };
        for header in forest.blocks(lp).iter().copied().skip(1) {
            let bound = forest.loop_of_header(header).and_then(|inner| cx.bound(ctx, inner).most_iterations());
            inside.most_iterations.extend(bound.and_then(|most| Some((header, u64::try_from(most).ok()?))));
        }
        let fuel = Fuel::of(ctx, (forest, lp), &nest.polls, (number, &inside))?;
        (fuel.most <= cx.options.strip_mine_max_nest_fuel as u64).then_some(fuel)
    }

    fn prove_nest_of(&mut self, nest: Nest, fuel: Option<Fuel>, cx: &mut PassCx<'_>) -> Result<Plan, Decline> {
        let Self { ctx, forest, lp, .. } = *self;
        self.prove_form()?;
        nest.prove_same(ctx, forest, lp)?;
        let body = nest.executed(forest.blocks(lp));
        if let Some(fuel) = fuel.filter(|_| !cx.options.ignore_cost) {
            self.judge_fuel(fuel, &nest.body(&body))?;
        }
        let used = self.used(&nest.polls, &body)?;
        let bound = self.most_iterations(cx);
        let strip = match fuel {
            Some(fuel) if !nest.polls.ask_flags() && !self.waits(cx.options) => {
                let max = cx.options.strip_mine_max_nest_fuel as u64;
                let whole = bound.filter(|bound| bound.checked_mul(fuel.most).is_some_and(|all| all <= max));
                let fuel = Some(fuel);
                whole.map_or(Strip::Counted { most: None, fuel }, |most| Strip::Whole { most, fuel })
            }
            _ => {
                self.prove_unwritten(&nest.polls, &nest.body(&body))?;
                self.strip_of_flags((&nest.polls, &used), &body, (bound, fuel), cx)?
            }
        };
        Ok(self.plan((nest.polls, nest.inner), body, used, strip))
    }

    /// The loop may be strip-mined, as far as blocks and edges say.
    fn prove_form(&self) -> Result<(), Decline> {
        let Self { ctx, forest, lp, .. } = *self;
        if ctx.func.is_effectively_cold(forest.data(lp).header) {
            return Err(Decline::ColdLoop);
        }
        if forest.irreducible_in(lp).is_some() {
            return Err(Decline::Irreducible);
        }
        Ok(())
    }

    fn plan(
        &mut self,
        (polls, inner): (Polls, Vec<Polls>),
        body: Vec<Block>,
        used: FxHashSet<Value>,
        strip: Strip,
    ) -> Plan {
        let Self { ctx, forest, lp, .. } = *self;
        let copied = match strip {
            Strip::Counted { .. } if inner.is_empty() => Vec::new(),
            _ => {
                let order = self.shared.order.get_or_insert_with(|| Order::of(&ctx.func, &ctx.domtree));
                order.sorted(forest.blocks(lp))
            }
        };
        let is_header = |block: &Block| forest.loop_of_header(*block).is_some();
        let headers = copied.iter().copied().filter(is_header).collect();
        Plan { polls, inner, back_edge: forest.data(lp).back_edges[0], copied, headers, body, used, strip }
    }

    /// The most iterations of the loop, if that is known.
    fn most_iterations(&self, cx: &mut PassCx<'_>) -> Option<u64> {
        cx.bound(self.ctx, self.lp).most_iterations().and_then(|bound| u64::try_from(bound).ok())
    }

    /// (L3)
    fn used(&self, polls: &Polls, body: &[Block]) -> Result<FxHashSet<Value>, Decline> {
        let func = &self.ctx.func;
        let is_of_polls =
            |value| def_block(func, value).is_some_and(|home| polls.all.iter().any(|poll| poll.block == home));
        let mut used = FxHashSet::default();
        let mut waiting = Vec::new();
        for inst in body.iter().flat_map(|&block| func.layout.block_insts(block)) {
            each_use(func, inst, |value| waiting.push(value));
        }
        while let Some(value) = waiting.pop() {
            if !(is_of_polls(value) || def_block(func, value) == Some(polls.body)) || !used.insert(value) {
                continue;
            }
            let ValueDef::Result(inst, _) = func.dfg.value_def(value) else { continue };
            if polls.loads.contains(&inst) {
                return Err(Decline::LoadUsed(inst));
            }
            if is_of_polls(value) {
                waiting.extend(func.dfg.inst_args(inst));
            }
        }
        // What the usual edges pass has to be known at the end of the iteration before.
        for poll in &polls.all {
            for value in poll.usual.args(func).filter_map(|arg| arg.as_value()) {
                let resolved = polls.resolve(func, value);
                let is_known = match func.dfg.value_def(resolved) {
                    ValueDef::Result(inst, _) => is_constant(func, inst) || !is_of_polls(resolved),
                    _ => true,
                };
                if !is_known {
                    return Err(Decline::NoPoll);
                }
            }
        }
        Ok(used)
    }

    /// (L2) What an iteration takes of the number that the polls ask for, if one does. Of several, a strip would need the least of their counts.
    fn fuel(&self, polls: &Polls) -> Result<Option<Fuel>, Decline> {
        let Some(asked) = polls.fuel().map_err(Decline::SeveralFuels)? else { return Ok(None) };
        let fuel = Fuel::of(self.ctx, (self.forest, self.lp), polls, (asked, &Inside::default()));
        fuel.ok_or(Decline::FuelUnknown(asked.0)).map(Some)
    }

    pub(super) fn strip(
        &mut self,
        (polls, used): (&Polls, &FxHashSet<Value>),
        body: &[Block],
        cx: &mut PassCx<'_>,
    ) -> Result<Strip, Decline> {
        let fuel = self.fuel(polls)?;
        if let Some(fuel) = fuel.filter(|_| !cx.options.ignore_cost) {
            self.judge_fuel(fuel, body)?;
        }
        let bound = self.most_iterations(cx);
        if fuel.is_some() && !cx.options.ignore_cost {
            self.judge_count(bound, cx.options)?;
        }
        let bound = bound.filter(|&bound| bound <= MAX_WHOLE && self.may_copy(cx));
        let asks_flags = polls.ask_flags();
        if !asks_flags && !self.waits(cx.options) {
            return Ok(bound.map_or(Strip::Counted { most: None, fuel }, |most| Strip::Whole { most, fuel }));
        }
        if asks_flags {
            self.prove_unwritten(polls, body)?;
        }
        if fuel.is_none() && bound.is_none() && !cx.options.ignore_cost {
            self.judge(polls)?;
        }
        self.strip_of_flags((polls, used), body, (bound, fuel), cx)
    }

    /// Whether the loop itself, or an inner one, may wait for somebody to write. Its strips end by a count, so that it asks once in each then, and none may
    /// be as long as fuel lasts.
    fn waits(&self, options: &Options) -> bool {
        let Self { ctx, forest, lp, .. } = *self;
        let awaited = exit_polls::polls(&ctx.func, (&ctx.cfg, &ctx.domtree), forest, lp);
        awaited.into_iter().any(|load| !options.is_asynchronous_load(&ctx.func, load))
    }

    /// (L1) How many iterations a strip may have: all of a loop of no more than `bound`, if it may be copied, or as many as the delay allows.
    fn strip_of_flags(
        &self,
        (polls, used): (&Polls, &FxHashSet<Value>),
        body: &[Block],
        (bound, fuel): (Option<u64>, Option<Fuel>),
        cx: &mut PassCx<'_>,
    ) -> Result<Strip, Decline> {
        let latency = u64::from(cx.options.embedder.poll_latency());
        let insts = self.insts(body, cx)?.saturating_add(self.repeated(polls, used));
        let most = latency / insts;
        if most < 2 {
            return Err(Decline::LongIteration {
                insts: insts.try_into().unwrap_or(usize::MAX),
                max: latency as usize / 2,
            });
        }
        match bound.filter(|&bound| bound <= most) {
            Some(most) => Ok(Strip::Whole { most, fuel }),
            None => Ok(Strip::Counted { most: Some(most.min(1 << 30) as u32), fuel }),
        }
    }

    /// Whether there may be a second version of the loop.
    fn may_copy(&mut self, cx: &PassCx<'_>) -> bool {
        let Self { ctx, forest, lp, .. } = *self;
        let blocks = forest.blocks(lp);
        let insts = || blocks.iter().flat_map(|&block| ctx.func.layout.block_insts(block));
        let max = cx.options.version_max_insts;
        let count = insts().take(max.saturating_add(1)).count();
        count <= max
            && count <= *self.shared.room.get_or_insert_with(|| cx.room(&ctx.func))
            && !blocks.iter().any(|&block| forest.is_named(block))
            && insts().all(|inst| forest.is_duplicable(&ctx.func, inst))
    }

    /// (L1): nothing in an iteration writes to what the polls load.
    fn prove_unwritten(&mut self, polls: &Polls, body: &[Block]) -> Result<(), Decline> {
        let Context { func, domtree, .. } = self.ctx;
        let stores = LoopStores::of(func, body);
        if let Some(fence) = stores.fence {
            return Err(Decline::Fenced(fence));
        }
        let private = self.shared.private.get_or_insert_with(|| PrivateSlots::of(func, domtree));
        let writer = polls.loads.iter().find_map(|&load| match Access::of(func, load) {
            Some(access) => stores.clobber(func, &access, private),
            // An atomic load.
            None => {
                let flags =
                    func.dfg.insts[load].memflags().map_or(MemFlagsData::new(), |flags| func.dfg.mem_flags[flags]);
                stores.not_kept_apart(func, flags)
            }
        });
        writer.map_or(Ok(()), |store| Err(Decline::WritesPolled(store)))
    }

    /// How many instructions each iteration of a strip gets: what it uses of what the polls compute (L3), and the counter with its test.
    fn repeated(&self, polls: &Polls, used: &FxHashSet<Value>) -> u64 {
        let func = &self.ctx.func;
        let insts = polls.all.iter().flat_map(|poll| func.layout.block_insts(poll.block));
        let is_used = |inst: &Inst| func.dfg.inst_results(*inst).iter().any(|result| used.contains(result));
        2 + insts.filter(|inst| is_used(inst) && !is_constant(func, *inst)).count() as u64
    }

    /// The most instructions that one iteration of the loop as it is executes after the polls.
    fn insts(&self, body: &[Block], cx: &mut PassCx<'_>) -> Result<u64, Decline> {
        let func = &self.ctx.func;
        let mut insts = 0_u64;
        for &block in body {
            let counted = func.layout.block_insts(block).filter(|&inst| counts_as_code(func, inst));
            let mut own = counted.count() as u64;
            let mut inner = self.forest.innermost(block);
            while let Some(lp) = inner.filter(|&lp| lp != self.lp) {
                let most = cx.bound(self.ctx, lp).most_iterations().and_then(|most| u64::try_from(most).ok());
                let most = most.ok_or(Decline::EndlessInnerLoop(self.forest.data(lp).header))?;
                own = own.saturating_mul(most);
                inner = self.forest.data(lp).parent;
            }
            insts = insts.saturating_add(own);
        }
        Ok(insts)
    }
}

/// Whether `block` looks like what a poll leads to when it finds something.
pub(super) fn may_be_rare(func: &Function, block: Block) -> bool {
    leads_to_failure(func, block) || calls(func, block)
}
