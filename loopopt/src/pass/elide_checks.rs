//! Facts: a check that the loop's own test, or a branch or check before it, implies is removed in place.
//!
//! ```text
//!   guard: 0 < n                     guard: 0 < n
//!     │                                │
//!     ▼                                ▼
//!   block1(i): ◄──────┐              block1(i): ◄──────┐
//!     trapz i < n     │                load a[i]       │
//!     load a[i]       │     ──►        j = i + 1       │
//!     j = i + 1       │                brif j < n ─────┘
//!     brif j < n ─────┘                │
//!     │                                ▼
//!     ▼
//! ```
//!
//! No copy is made, and nothing is assumed that the program does not test itself. What is known, and how a proof goes through
//! the parameters of a header, is described in [`crate::analysis::facts::known`] and `prover`.
//!
//! | instruction | becomes |
//! |---|---|
//! | `trapz`, `trapnz` | nothing |
//! | `brif` | a jump |
//! | `select` | what it chooses |
//! | `select_spectre_guard` | the same, if the embedder allows |
//! | `uadd_overflow_trap` | `iadd` |
//! | `uadd_overflow`, `usub_overflow`, `umul_overflow`, `sadd_overflow`, `ssub_overflow` | the plain operation, and 0 |
//!
//! # Needs
//!
//! Nothing. With rotated loops more is known: the guard says of the first iteration what the test says of the others.
//!
//! # Legal when
//!
//! The check cannot fail. All that a proof rests on happened before the check, other checks included: so a check may be removed
//! because of one before it, and that because of one before it, in this iteration or an earlier one. (L1) A Spectre guard is for
//! what the processor does, not for what the program does, and stays unless the embedder says otherwise; and so does a choice, or the flag of an
//! operation, that its condition is computed from. A value that a choice or a trapping sum confines is confined only after it: an access at such an address stays
//! there, too ([`pin_chosen`](crate::edit::materialize::pin::pin_chosen)).
//!
//! # Pays when
//!
//! Always.
//!
//! # Changes
//!
//! Instructions; blocks and edges if a branch is decided. Wants `cleanup` if a choice or an overflow is decided.
//!
//! # Not done
//!
//! A check that stays is looked at again in a later round only where another pass says that more is known. Checks outside of loops. Branches by table. A test of the latch is not looked at: if it were decided, the loop would run
//! once or forever, which is for `full_unroll` to find.
//!
//! # References
//!
//! R. Bodik, R. Gupta, V. Sarkar, "ABCD", PLDI 2000. Go's `prove` and `loopbce`; golang/go#40367 (a fact of the body in the
//! header), golang/go#53600 (steps and limits near the ends of the type), OMR 92e8f4535 (no overflow with sign, but compared
//! without).

use crate::analysis::cfg::edges::{destinations, edges_of};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::facts::known::{Conditions, Place};
use crate::analysis::memory::spectre_guard::asked_by_guards;
use crate::change::Change;
use crate::claim::{Claim, asserted};
use crate::edit::copy::copy_iterations::settle;
use crate::edit::inst::plain::make_plain;
use crate::edit::inst::stand_for::stand_for;
use crate::edit::materialize::assertion::{assert_chooses, assert_fits, assert_takes, assert_truth};
use crate::edit::materialize::dce::remove_unused;
use crate::edit::materialize::drop_trap_flags::GoneGuards;
use crate::edit::ssa::params::remove_redundant_params;
use crate::fault::fault;
use crate::pass::{Pass, PassCx};
use crate::refusal::{Said, Shown, refusals};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, InstructionData, Opcode, Value, types};
use cranelift_codegen::{CodegenResult, Context, FxHashMap, FxHashSet};
use std::cell::LazyCell;
use std::fmt;

/// The name of this pass.
pub(crate) const NAME: &str = "elide_checks";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS],
    claims: &[Claim::CheckHolds, Claim::BranchTaken, Claim::ConditionKnown, Claim::NoWrap],
    ..Pass::OPTIONAL
};

/// The pass, as it runs where another one has let checks be looked at again ([`PassCx::reopen_checks`]).
pub(crate) const AGAIN: Pass = Pass { run: run_again, ..PASS };

fn run_again(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    if cx.has_reopened { run(ctx, cx) } else { Ok(Change::Nothing) }
}

/// Removes all checks in loops that can be.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    cx.has_reopened = false;
    let forest = cx.forest(ctx);
    let checks = checks(ctx, cx, &forest);
    let mut decisions = Decisions::default();
    decisions.find(ctx, cx, &checks);
    decisions.remark(ctx, cx, &forest);
    if decisions.found.is_empty() {
        return Ok(Change::Nothing);
    }
    let is_branch = |found: &Found| matches!(found.rewrite, Rewrite::Take(_));
    let has_branch = decisions.found.iter().any(is_branch);
    cx.wants_cleanup |=
        decisions.found.iter().any(|found| matches!(found.rewrite, Rewrite::Choose(_) | Rewrite::Plain));
    let (mut unused, mut guards) = (Vec::new(), GoneGuards::default());
    for found in &decisions.found {
        let inst = found.check.inst;
        unused.extend_from_slice(ctx.func.dfg.inst_args(inst));
        if let (Rewrite::Choose(slot), Opcode::SelectSpectreGuard) = (found.rewrite, ctx.func.dfg.insts[inst].opcode())
        {
            guards.add(&ctx.func, inst, ctx.func.dfg.inst_args(inst)[1 + slot]);
        }
        found.apply(&mut ctx.func);
    }
    guards.trust(&mut ctx.func, cx.options);
    unused.iter_mut().for_each(|value| *value = ctx.func.dfg.resolve_aliases(*value));
    ctx.func.dfg.resolve_all_aliases();
    remove_unused(&mut ctx.func, unused);
    if !has_branch {
        return Ok(Change::Insts);
    }
    cx.invalidate_and_prune(ctx)?;
    remove_redundant_params(ctx);
    Ok(Change::Insts)
}

/// An instruction that may do less than it says.
#[derive(Clone, Copy)]
struct Check {
    inst: Inst,
    lp: Loop,
    /// What it is there for.
    worth: Worth,
}

/// What an instruction is there for, and so how much is done to find out what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worth {
    /// For the case that something is wrong: a trap.
    Check,
    /// The same: a branch that goes to a rare block by this edge.
    Branch { rare: usize },
    /// It may overflow.
    Operation,
    /// A branch of the remainder loop of a loop that was split at a branch.
    OfRest,
    /// Anything else.
    Little,
}

impl Worth {
    fn is_check(self) -> bool {
        matches!(self, Self::Check | Self::Branch { .. })
    }

    /// Whether it is worth a search that edge `slot` of a branch, or operand `slot` of a choice, is the one that is taken.
    fn is_thorough(self, slot: usize) -> bool {
        match self {
            Self::Check | Self::Operation | Self::OfRest => true,
            Self::Branch { rare } => slot != rare,
            Self::Little => false,
        }
    }
}

/// All instructions in loops that are looked at, in the order of the loops.
fn checks(ctx: &Context, cx: &PassCx<'_>, forest: &LoopForest) -> Vec<Check> {
    let func = &ctx.func;
    let mut checks = Vec::new();
    for lp in forest.loops().filter(|&lp| cx.marks.has_full_effort_inside(forest, lp)) {
        let own = forest.own_blocks(lp);
        for inst in own.flat_map(|block| func.layout.block_insts(block)) {
            let worth = match func.dfg.insts[inst].opcode() {
                Opcode::Trapz | Opcode::Trapnz if asserted(func, inst).is_some() => continue,
                Opcode::Trapz | Opcode::Trapnz | Opcode::UaddOverflowTrap | Opcode::SelectSpectreGuard => Worth::Check,
                Opcode::Brif if is_latch_test(ctx, inst) => continue,
                Opcode::Brif => match rare_arm(func, inst) {
                    Some(rare) => Worth::Branch { rare },
                    None if cx.marks.is_rest(forest.data(lp).header) => Worth::OfRest,
                    None => Worth::Little,
                },
                Opcode::Select => Worth::Little,
                Opcode::UaddOverflow
                | Opcode::UsubOverflow
                | Opcode::UmulOverflow
                | Opcode::SaddOverflow
                | Opcode::SsubOverflow => Worth::Operation,
                _ => continue,
            };
            checks.push(Check { inst, lp, worth });
        }
    }
    checks
}

/// Whether an edge of `branch` is a back edge.
fn is_latch_test(ctx: &Context, branch: Inst) -> bool {
    let source = ctx.func.layout.inst_block(branch).expect("a branch of a loop");
    edges_of(&ctx.func, branch).any(|edge| ctx.domtree.block_dominates(edge.target(&ctx.func), source))
}

/// The edge of `branch` that enters a block that is cold, traps or calls, if there is one.
fn rare_arm(func: &Function, branch: Inst) -> Option<usize> {
    /// Instructions in which a block has to trap or call.
    const LOOKED_AT: usize = 8;
    destinations(func, branch).iter().position(|call| {
        let block = call.block(&func.dfg.value_lists);
        let mut opcodes = func.layout.block_insts(block).take(LOOKED_AT).map(|inst| func.dfg.insts[inst].opcode());
        func.layout.is_cold(block) || opcodes.any(|opcode| opcode == Opcode::Trap || opcode.is_call())
    })
}

/// What an instruction becomes.
#[derive(Clone, Copy)]
enum Rewrite {
    /// A check that never fails.
    Remove,
    /// A branch that takes one edge only.
    Take(usize),
    /// A choice of this one of the two values.
    Choose(usize),
    /// An addition that never traps.
    Add,
    /// An operation of which the second result is 0.
    Plain,
}

/// A check that is to be rewritten.
struct Found {
    check: Check,
    rewrite: Rewrite,
    why: String,
}

impl Found {
    fn apply(&self, func: &mut Function) {
        let inst = self.check.inst;
        match self.rewrite {
            Rewrite::Remove => {
                let holds = func.dfg.insts[inst].opcode() == Opcode::Trapz;
                assert_truth(func, inst, Claim::CheckHolds, (func.dfg.inst_args(inst)[0], holds));
                func.layout.remove_inst(inst);
            }
            Rewrite::Take(slot) => {
                assert_takes(func, inst, Claim::BranchTaken, slot);
                settle(func, inst, slot);
            }
            Rewrite::Choose(slot) => {
                assert_chooses(func, inst, slot);
                let value = func.dfg.inst_args(inst)[1 + slot];
                stand_for(func, inst, value);
            }
            Rewrite::Add => {
                let [a, b] = *func.dfg.inst_args(inst) else { unreachable!("an addition of two values") };
                assert_fits(func, inst, Opcode::UaddOverflow, [a, b]);
                func.replace(inst).iadd(a, b);
            }
            Rewrite::Plain => replace_by_plain(func, inst),
        }
    }
}

/// Makes an operation that never overflows one without an overflow flag, and that flag 0.
fn replace_by_plain(func: &mut Function, inst: Inst) {
    let [a, b] = *func.dfg.inst_args(inst) else { unreachable!("an operation on two values") };
    let srcloc = func.srcloc(inst);
    assert_fits(func, inst, func.dfg.insts[inst].opcode(), [a, b]);
    let flag = make_plain(func, inst).expect("an operation that tells");
    let zero = FuncCursor::new(func).at_inst(inst).with_srcloc(srcloc).ins().iconst(types::I8, 0);
    func.dfg.change_to_alias(flag, zero);
}

/// What becomes of the checks.
#[derive(Default)]
struct Decisions {
    found: Vec<Found>,
    /// For each loop, the first check that stays.
    stays: FxHashMap<Loop, Said>,
    /// Loops with checks that were looked at in an earlier round, and have their remark.
    asked: FxHashSet<Loop>,
}

impl Decisions {
    fn find(&mut self, ctx: &Context, cx: &mut PassCx<'_>, checks: &[Check]) {
        let mut conditions = Conditions::new(&ctx.func, &ctx.cfg, &ctx.domtree).with_options(cx.options);
        let options = cx.options;
        let asked = LazyCell::new(|| asked_by_guards(ctx, options));
        for &check in checks {
            if cx.open_checks.contains(&check.inst) {
                self.asked.insert(check.lp);
                continue;
            }
            let opcode = ctx.func.dfg.insts[check.inst].opcode();
            let rewrite = rewrite_of(&ctx.func, &mut conditions, check);
            let is_guard = opcode == Opcode::SelectSpectreGuard;
            // What is chosen, or whether it has overflowed.
            let decided = ctx.func.dfg.inst_results(check.inst).last();
            let is_asked = || decided.is_some_and(|&decided| asked.contains(decided));
            let why = match rewrite {
                Some(_) if is_guard && !cx.guard_policy().may_drop(ctx, check.inst) => {
                    Decline::GuardStays(Tested(check.inst))
                }
                Some(Rewrite::Choose(_) | Rewrite::Plain) if !is_guard && is_asked() => {
                    Decline::GuardStays(Tested(check.inst))
                }
                Some(rewrite) if cx.fuel.take() => {
                    let why = describe(&ctx.func, check.inst, conditions.sources());
                    self.found.push(Found { check, rewrite, why });
                    continue;
                }
                Some(_) => Decline::Withheld,
                None if !cx.open_checks.insert(check.inst) => continue,
                None if !check.worth.is_check() && opcode != Opcode::SelectSpectreGuard
                    || self.stays.contains_key(&check.lp) =>
                {
                    continue;
                }
                None => missing(&ctx.func, &mut conditions, check.inst),
            };
            self.stays.entry(check.lp).or_insert_with(|| Said::new(&ctx.func, &why));
        }
    }

    fn remark(&mut self, ctx: &Context, cx: &mut PassCx<'_>, forest: &LoopForest) {
        let func = &ctx.func;
        let mut gone = FxHashMap::<Loop, Vec<&Found>>::default();
        self.found.iter().for_each(|found| gone.entry(found.check.lp).or_default().push(found));
        for lp in forest.loops() {
            if !cx.marks.has_full_effort_inside(forest, lp) {
                continue;
            }
            let header = forest.data(lp).header;
            if let Some(gone) = gone.get(&lp) {
                cx.fired(func, &PASS, header, list(gone));
            }
            match self.stays.get(&lp) {
                _ if self.asked.contains(&lp) => {}
                Some(why) => cx.declined(func, NAME, header, why),
                None if cx.has_fired(NAME, header) => cx.retract(NAME, header),
                None => cx.declined(func, NAME, header, &Decline::NothingChecked),
            }
        }
    }
}

/// What `inst` can become.
fn rewrite_of(func: &Function, conditions: &mut Conditions<'_>, check: Check) -> Option<Rewrite> {
    let Check { inst, worth, .. } = check;
    let args = func.dfg.inst_args(inst);
    conditions.set_thorough(true);
    let place = match fault!(FactsOfTheBody) {
        true => Place::end(func, func.layout.inst_block(inst)?),
        false => Place::Before(inst),
    };
    let mut takes = |slot: usize| {
        conditions.set_thorough(worth.is_thorough(slot));
        conditions.is(place, (args[0], slot == 0))
    };
    match func.dfg.insts[inst].opcode() {
        Opcode::Trapz => takes(0).then_some(Rewrite::Remove),
        Opcode::Trapnz => takes(1).then_some(Rewrite::Remove),
        Opcode::Brif => [0, 1].into_iter().find(|&slot| takes(slot)).map(Rewrite::Take),
        Opcode::Select | Opcode::SelectSpectreGuard => {
            [0, 1].into_iter().find(|&slot| takes(slot)).map(Rewrite::Choose)
        }
        Opcode::UaddOverflowTrap => conditions.never_overflows(inst).then_some(Rewrite::Add),
        _ => conditions.never_overflows(inst).then_some(Rewrite::Plain),
    }
}

/// What would have to be known of a check that stays.
fn missing(func: &Function, conditions: &mut Conditions<'_>, inst: Inst) -> Decline {
    let place = Place::Before(inst);
    let mut operands = func.dfg.inst_args(inst).to_vec();
    if let Some(compared) = compared(func, inst) {
        operands = func.dfg.inst_args(compared).to_vec();
    }
    let unknown = operands.iter().rev().find(|&&value| !conditions.knows(place, value));
    match unknown {
        Some(&value) => Decline::NothingKnown(Tested(inst), value),
        None if conditions.is_impatient() => Decline::NotSoonImplied(Tested(inst)),
        None => Decline::NotImplied(Tested(inst)),
    }
}

/// The comparison that a check is about, if it is about one.
fn compared(func: &Function, check: Inst) -> Option<Inst> {
    let &condition = func.dfg.inst_args(check).first()?;
    let inst = func.dfg.value_def(condition).inst()?;
    matches!(func.dfg.insts[inst], InstructionData::IntCompare { .. }).then_some(inst)
}

/// A check, shown as what it compares.
struct Tested(Inst);

impl Shown for Tested {
    fn shown<'a>(&'a self, func: &'a Function) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| {
            let opcode = func.dfg.insts[self.0].opcode();
            match compared(func, self.0).map(|inst| func.dfg.insts[inst]) {
                Some(InstructionData::IntCompare { cond, args: [a, b], .. }) => {
                    write!(f, "`{opcode}` of `{a} {cond} {b}`")
                }
                _ => match func.dfg.inst_args(self.0) {
                    [a, ..] if opcode == Opcode::Brif || opcode == Opcode::Select => write!(f, "`{opcode} {a}`"),
                    args => {
                        let args: Vec<_> = args.iter().map(Value::to_string).collect();
                        write!(f, "`{opcode} {}`", args.join(", "))
                    }
                },
            }
        })
    }
}

/// What is removed and why, in words.
fn describe(func: &Function, check: Inst, sources: &[Inst]) -> String {
    /// Sources that are named.
    const NAMED: usize = 3;
    let place = |inst: Inst| func.layout.inst_block(inst).map_or_else(String::new, |block: Block| block.to_string());
    let name = |&inst: &Inst| match func.dfg.insts[inst].opcode().is_branch() {
        true => format!("the branch of {}", place(inst)),
        false => format!("`{}` in {}", func.dfg.insts[inst].opcode(), place(inst)),
    };
    let mut names: Vec<_> = sources.iter().take(NAMED).map(name).collect();
    match sources.len() {
        0 => names.push("what its operands can be".into()),
        count if count > NAMED => names.push(format!("{} more", count - NAMED)),
        _ => {}
    }
    format!("{} in {}, implied by {}", Tested(check).shown(func), place(check), names.join(", "))
}

/// What is removed from one loop, in words.
fn list(gone: &[&Found]) -> String {
    /// Checks that are named.
    const NAMED: usize = 4;
    let mut names: Vec<_> = gone.iter().take(NAMED).map(|found| found.why.clone()).collect();
    if gone.len() > NAMED {
        names.push(format!("{} more", gone.len() - NAMED));
    }
    format!("decided: {}", names.join("; "))
}

refusals! {
    /// Why a check stays.
    enum Decline {
        /// There is nothing that could be decided.
        NothingChecked => "nothing-checked", "there is no check in it";
        /// Of one side, nothing is known where the check is.
        NothingKnown(check: Tested, value: Value) => "nothing-known", "{check} stays: nothing is known of {value}",
            help "test the same condition before the check; the test that ends the loop is enough if it compares with the same value";
        /// What is known does not imply it.
        NotImplied(check: Tested) => "not-implied", "{check} stays: what is known does not imply it",
            help "it can be proved for a counter that starts at a constant, steps by one, and is tested against the same value";
        /// Nothing that was looked at implies it, which was less than for the checks before.
        NotSoonImplied(check: Tested) => "not-soon-implied",
            "{check} stays: what is known does not imply it, as far as was looked after many checks that are not implied",
            help "put the loop into a function of its own, or test before it what its checks ask";
        /// (L1) A guard against speculation that is proved.
        GuardStays(check: Tested) => "guard-stays", "{check} is proved, and stays",
            help "say in `Embedder::spectre_guards` if guards may be consolidated, or need not hold in speculation";
    }
    shared { Withheld }
}
