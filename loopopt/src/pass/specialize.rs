//! Specialization: a loop gets a version for the values that were nearly always there when a [`profile`](crate::profile) was recorded.
//!
//! ```text
//! preheader                     preheader: v1 == 8 ?
//!     │                          yes /       \ no
//!     ▼                             ▼         ▼
//!   loop ◄┐             ──►       loop ◄┐   copy ◄┐
//!  udiv v2, v1                 udiv v2, 8   udiv v2, v1
//!     └───┘                         └───┘     └───┘
//!     │                             \         /
//!     ▼                              ▼       ▼
//!    exit                              exit
//! ```
//!
//! The first version knows the values, and all that is computed from them alone before the loop: a division becomes a shift, an inner loop is unrolled, a
//! table has one target. The second is the loop as it was. Both are optimized like any other loop from there on, so checks that can be tested before the
//! loop give each of them a fast and a slow version ([`super::version`]): a test of a recorded value fails more often than those do, and if it fails, the
//! second version still has its own fast loop.
//!
//! # Needs
//!
//! Canonical form, and rebuilds it. It looks at what [`super::apply_profile`] has found.
//!
//! # Legal when
//!
//! (L1) Each instruction may be copied. (L2) There is no Spectre guard in the function, unless these may be dropped: where the processor has
//! mispredicted the test, a guard has to see the number. The values are defined before the loop, so they are loop-invariant, and what is computed from them
//! alone is recomputed from constants. (L3) An access at such a constant, or at an address that is computed from one, stays where it is
//! ([`pin_all`], [`pin_accesses_at`]).
//!
//! # Pays when
//!
//! (P1) The loop ran, (P2) the values were these in enough of its entries, all at once, (P3) something of what is made of them is faster with a constant
//! ([`gain`]), for as much of the time that is spent in the loop as is worth a copy, and (P4) the loop is not too large. An inner loop of one that has got two
//! versions gets none.
//!
//! # Changes
//!
//! Blocks and edges. Wants `cleanup`.
//!
//! # Not done
//!
//! Callees. A direct call is no faster where an indirect one is predicted, and nothing is inlined.
//!
//! # References
//!
//! Eclipse OMR's `LoopSpecializer`: invariant expressions whose most frequent value has a share of more than 0.75, in a version of its own beside those for
//! checks.

mod constants;
mod gain;

use crate::analysis::cfg::edges::{Edge, edges_of};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::cfg::must_execute::Order;
use crate::analysis::memory::alias::address_operand;
use crate::analysis::pressure::used_from_outside;
use crate::analysis::scev::const_eval::{signed, truncate};
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::copy::duplicate_loop::duplicate_loop;
use crate::edit::inst::clone::Copies;
use crate::edit::inst::rename::{each_use, rename_args, rename_in};
use crate::edit::materialize::assertion::assert_equal;
use crate::edit::materialize::pin::{pin_accesses_at, pin_all};
use crate::fault::fault;
use crate::options::Options;
use crate::pass::apply_profile::Recorded;
use crate::pass::copying::Denied;
use crate::pass::{Form, Pass, PassCx, canon};
use crate::profile::{LoopProfile, LoopSites};
use crate::refusal::refusals;
use constants::Constants;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Function, InstBuilder, Opcode, Type, Value};
use cranelift_codegen::{CodegenResult, Context};
use gain::{Work, gain};

/// The name of this pass.
pub(crate) const NAME: &str = "specialize";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS, Denied::REASONS],
    claims: &[Claim::ConditionKnown],
    copies: true,
    needs: Form::Canonical,
    keeps: Form::Canonical,
    ..Pass::OPTIONAL
};

/// Does it in all loops of which something was recorded, once. Linear in the size of the function.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let Some(recorded) = cx.recorded.take() else { return Ok(Change::Nothing) };
    let plans = plan(ctx, cx, &recorded);
    if plans.is_empty() {
        return Ok(Change::Nothing);
    }
    let (order, forest) = (Order::of(&ctx.func, &ctx.domtree), cx.forest(ctx));
    let mut changed = Vec::new();
    for plan in &plans {
        cx.look_again(ctx, plan.header);
        cx.fired(&ctx.func, &PASS, plan.header, plan.describe());
        let copies = duplicate_of(&mut ctx.func, plan, &order);
        for &header in &plan.headers {
            cx.marks.add_version(header);
            cx.marks.header_moved(header, copies.block(header));
        }
        changed.extend(plan.fold(ctx, &forest, &copies));
    }
    pin_accesses_at(&mut ctx.func, changed);
    cx.wants_cleanup = true;
    cx.invalidate(ctx, Change::Cfg);
    cx.keep_form(Form::Closed);
    canon::restore(ctx, cx)?;
    Ok(Change::Nothing)
}

/// The loops that get a version, none inside another.
fn plan(ctx: &Context, cx: &mut PassCx<'_>, recorded: &Recorded) -> Vec<Plan> {
    let forest = cx.forest(ctx);
    let work = Work::new(ctx, &forest, recorded);
    let mut plans: Vec<Plan> = Vec::new();
    let mut room = cx.room(&ctx.func);
    for (sites, profile) in &recorded.loops {
        let lp = forest.loop_of_header(sites.header).expect("no edge has changed");
        let is_inside = |plan: &Plan| forest.loop_of_header(plan.header).is_some_and(|done| forest.encloses(done, lp));
        if plans.iter().any(is_inside) {
            cx.declined(&ctx.func, NAME, sites.header, &Decline::Inside);
            continue;
        }
        let found = Plan::prove(ctx, cx, &forest, lp).and_then(|plan| plan.judge(&work, (sites, profile), cx.options));
        match found {
            Err(why) => cx.declined(&ctx.func, NAME, sites.header, &why),
            Ok(plan) if plan.copied > room => {
                let why = Denied::FunctionTooLarge(plan.copied, cx.options.max_function_insts);
                cx.declined(&ctx.func, NAME, sites.header, &why);
            }
            Ok(_) if !cx.fuel.take() => cx.declined(&ctx.func, NAME, sites.header, &Denied::Withheld),
            Ok(plan) => {
                room -= plan.copied;
                plans.push(plan);
            }
        }
    }
    plans
}

/// A version that is legal.
struct Plan {
    header: Block,
    /// The jump of the preheader.
    entry: Edge,
    blocks: Vec<Block>,
    /// The header, and those of the inner loops.
    headers: Vec<Block>,
    /// Instructions in the copy.
    copied: usize,
    /// The values that it is for.
    values: Vec<(Value, u64)>,
    /// In how many of 100 entries they were these, at least.
    share: u64,
}

impl Plan {
    fn prove(ctx: &Context, cx: &PassCx<'_>, forest: &LoopForest, lp: Loop) -> Result<Self, Decline> {
        if cx.keeps_guards() {
            return Err(Decline::Guarded);
        }
        let func = &ctx.func;
        let blocks = forest.blocks(lp).to_vec();
        let mut insts = blocks.iter().flat_map(|&block| func.layout.block_insts(block));
        if let Some(inst) = insts.find(|&inst| !forest.is_duplicable(func, inst)) {
            return Err(Decline::NotDuplicable(func.dfg.insts[inst].opcode()));
        }
        let headers = blocks.iter().copied().filter(|&block| forest.loop_of_header(block).is_some()).collect();
        let copied = blocks.iter().map(|&block| func.layout.block_insts(block).count()).sum();
        let data = forest.data(lp);
        Ok(Self {
            header: data.header,
            entry: data.entries[0],
            blocks,
            headers,
            copied,
            values: Vec::new(),
            share: 100,
        })
    }

    fn judge(
        self,
        work: &Work<'_>,
        (sites, profile): (&LoopSites, &LoopProfile),
        options: &Options,
    ) -> Result<Self, Decline> {
        if profile.entries() == 0 {
            return Err(Decline::NeverRan);
        }
        if sites.values.is_empty() {
            return Err(Decline::NothingAsked);
        }
        let (least, is_free) = (options.specialize_min_share, options.ignore_cost);
        let mut candidates = Vec::new();
        let mut most = 0;
        for (site, seen) in sites.values.iter().zip(&profile.values) {
            let Some((value, count)) = seen.dominant() else { continue };
            let value = truncate(u128::from(value), work.type_of(site.value)) as u64;
            let share = seen.share(count);
            most = most.max(share);
            let gain = if is_immediate(value, work.type_of(site.value)) { gain(work, site, value) } else { 0 };
            if share >= least && (gain > 0 || is_free) {
                candidates.push((gain, share, (site.value, value)));
            }
        }
        if candidates.is_empty() && most < least {
            return Err(Decline::Varies { most, least });
        }
        candidates.sort_by_key(|&(gain, share, _)| std::cmp::Reverse((gain, share)));
        let mut plan = self;
        let mut gained = 0_u64;
        for (gain, share, value) in candidates {
            // That all are there at once is known of so many entries at least.
            let both = (plan.share + share).saturating_sub(100);
            if both >= least && plan.values.len() < options.specialize_max_values {
                plan.share = both;
                gained = gained.saturating_add(gain);
                plan.values.push(value);
            }
        }
        let entries = profile.entries();
        plan.pays(work, (gained, entries), options)
    }

    fn pays(self, work: &Work<'_>, (gain, entries): (u64, u64), options: &Options) -> Result<Self, Decline> {
        let max = if options.ignore_cost { options.version_max_copied } else { options.specialize_max_insts };
        if self.copied > max {
            return Err(Decline::TooLarge { insts: self.copied, max });
        }
        let spent = work.of(&self.blocks);
        let least = (spent / options.specialize_max_insts_per_gain.max(1))
            .max(entries.saturating_mul(options.specialize_min_gain));
        if self.values.is_empty() || (gain < least && !options.ignore_cost) {
            let per_entry = |number: u64| number / entries.max(1);
            return Err(Decline::LittleGain { gain: per_entry(gain), insts: per_entry(spent) });
        }
        Ok(self)
    }

    fn describe(&self) -> String {
        let values: Vec<_> = self.values.iter().map(|(value, number)| format!("{value} == {number}")).collect();
        let values = values.join(", ");
        format!(
            "a version for {values}, as in at least {} % of its entries ({} instructions in the copy)",
            self.share, self.copied
        )
    }

    /// Puts constants in the place of what they decide, in the loop and where the dispatch enters it. Returns what is directly computed from them.
    fn fold(&self, ctx: &mut Context, forest: &LoopForest, copies: &Copies) -> Vec<Value> {
        let func = &mut ctx.func;
        let mut constants = Constants::new(&self.values, self.entry.branch);
        let lp = forest.loop_of_header(self.header).expect("the copy has another header");
        let mut outside = used_from_outside(func, forest, (lp, lp));
        outside.extend(self.entry.args(func).filter_map(|arg| arg.as_value()));
        for value in outside {
            constants.find(func, value);
        }
        let wrong = fault!(SpecializedElsewhere);
        let blocks: Vec<Block> =
            self.blocks.iter().map(|&block| if wrong { copies.block(block) } else { block }).collect();
        let known = constants.finish(ctx, forest);
        let func = &mut ctx.func;
        let (mut changed, mut accesses) = (Vec::new(), Vec::new());
        for &block in &blocks {
            for inst in func.layout.block_insts(block) {
                if address_operand(func, inst).is_some_and(|address| known.contains_key(&address)) {
                    accesses.push(inst);
                }
                let mut is_changed = false;
                each_use(func, inst, |value| is_changed |= known.contains_key(&value));
                if is_changed {
                    changed.extend_from_slice(func.dfg.inst_results(inst));
                    let targets = edges_of(func, inst).map(|edge| edge.target(func));
                    targets.for_each(|target| changed.extend_from_slice(func.dfg.block_params(target)));
                }
            }
        }
        changed.extend_from_slice(func.dfg.block_params(self.header));
        pin_all(func, accesses);
        rename_in(func, blocks.iter().copied(), &known);
        let edge = Edge { branch: self.entry.branch, slot: usize::from(wrong) };
        rename_args(func, edge, |value| known.get(&value).copied().unwrap_or(value));
        for (value, _) in &self.values {
            let first = func.layout.first_inst(self.header).expect("a block has a last instruction");
            if let Some(&constant) = known.get(value) {
                assert_equal(func, first, Claim::ConditionKnown, [*value, constant]);
            }
        }
        changed
    }
}

/// Whether a constant is an immediate operand, of 32 bits with a sign. Others, of which most are addresses, take an instruction each.
fn is_immediate(value: u64, ty: Type) -> bool {
    i32::try_from(signed(u128::from(value), ty)).is_ok()
}

/// Copies the loop, and enters it if the values are those of the plan, and the copy otherwise.
fn duplicate_of(func: &mut Function, plan: &Plan, order: &Order) -> Copies {
    let mut pos = FuncCursor::new(func).at_inst(plan.entry.branch);
    let mut all = None;
    for &(value, number) in &plan.values {
        let ty = pos.func.dfg.value_type(value);
        let number = pos.ins().iconst(ty, number.cast_signed());
        let is_it = pos.ins().icmp(IntCC::Equal, value, number);
        all = Some(match all {
            None => is_it,
            Some(others) if fault!(AnyValueFits) => pos.ins().bor(others, is_it),
            Some(others) => pos.ins().band(others, is_it),
        });
    }
    let all = all.expect("a plan has values");
    duplicate_loop(func, &order.sorted(&plan.blocks), plan.entry, all)
}

refusals! {
    /// Why there is no version of a loop for values that were recorded.
    enum Decline {
        /// (L2) What a branch proves is not known where the processor speculates past it.
        Guarded => "guarded", "the function has Spectre guards, which have to see the values themselves";
        /// (P1) The loop was not run to its end.
        NeverRan => "never-ran", "the loop was never left when the profile was recorded";
        /// (P3) No value would make anything faster.
        NothingAsked => "nothing-asked", "no number that stays the same is divided by, multiplied with, or asked for";
        /// (P2) Other values are there too often.
        Varies { most: u64, least: u64 } => "varies", "no value was the same in more than {most} % of the entries, less than {least} %";
        /// (P3) It would save little.
        LittleGain { gain: u64, insts: u64 } => "little-gain",
            "the values would save {gain} of {insts} instructions for each time that the loop is entered";
        /// (P4) An enclosing loop has two versions now.
        Inside => "inside-of-version", "an enclosing loop has got a version, and versions of versions are too many";
        /// (P4) There is too much to copy.
        TooLarge { insts: usize, max: usize } => "too-large", "the loop has {insts} instructions, more than {max}",
            help "raise Options::specialize_max_insts if the loop is hot";
    }
    shared { NotDuplicable(opcode: Opcode) }
}
