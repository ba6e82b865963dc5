//! Loop-invariant code motion: what is the same in each iteration is computed once, in the preheader.
//!
//! ```text
//! preheader:                          preheader:
//!     jump header                         v1 = load.i64 v0
//! header:                                 trapz v1, user1
//!     v1 = load.i64 v0        ──►         v2 = imul v1, v1
//!     trapz v1, user1                     jump header
//!     v2 = imul v1, v1                header:
//!     v5 = iadd v4, v2                    v5 = iadd v4, v2
//! ```
//!
//! Cranelift's egraph pass hoists pure instructions with one result already, but not out of a loop whose exit block it
//! visits before the body, as with most loops that test at the top; and never loads, checks, divisions or instructions
//! with several results.
//!
//! # Needs
//!
//! Preheaders. An instruction is hoisted out of one loop at a time, the inner loops first, and so out of the outermost that lets it go.
//!
//! # Legal when
//!
//! All operands come from outside, or from instructions that can be hoisted with it, and
//!
//! * (L1) a pure instruction: always. A division is one if the bits of its operands say that it does not trap
//!   ([`KnownBits`](crate::analysis::inst::known_bits::KnownBits)): then it may be done where its condition has not been asked;
//! * (L2) a load: nothing in the loop may write what it reads, no call is in the loop, and no fence and no atomic, unless the
//!   embedder says that they are nothing to its region, and others do not write it
//!   ([`Writers`](crate::Writers)), and it is no [poll](crate::analysis::memory::exit_polls) of the loop or of an inner one. Besides:
//!
//!   | the load | when it may move |
//!   |---|---|
//!   | is `notrap` and `can_move` | always |
//!   | is `notrap` only | if it runs on every entry of the loop |
//!   | may trap | if (L3) holds |
//!   | is the same as one that has been hoisted | always: it becomes that one |
//!
//! * (L3) an instruction that may trap: it runs on every entry of the loop and nothing that can be observed comes before it,
//!   so that its trap is the first thing that anyone notices, as it was
//!   ([`FirstIteration`](crate::analysis::cfg::must_execute::FirstIteration));
//! * (L4) a division of which the branches and checks before the loop say that it does not trap there: always, as if it were pure.
//!
//! In later iterations it would do the same again: it has trapped in the first, or never does.
//!
//! # Pays when
//!
//! (P1) it is not in a cold block; (P2) it is no part of an addressing mode, an immediate or the comparison of a
//! branch, which cost nothing where they are (what a check compares is not one of them); (P3) a register is left for the result, or it takes many instructions
//! ([`Pressure`](crate::analysis::pressure::Pressure)). What is not worth it is hoisted, too, if something that is worth it needs it.
//!
//! # Changes
//!
//! Instructions only. Closed form still holds: a value that is defined further out needs no exit parameter.
//!
//! # Not done
//!
//! Stores are `promote`'s. Block parameters that are the same in each iteration do not move with the branch that decides them.
//! Nests of more than [`MAX_HEIGHT`] loops are not looked at from there outwards, so that time is linear.
//!
//! # References
//!
//! WebKit's `B3HoistLoopInvariantValues.cpp` for the first-trap rule; GCC's `tree-ssa-loop-im.cc` for coldness; wasmtime#10340,
//! dotnet#54118 for what goes wrong.

mod division;
mod judge;
mod why;

use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::cfg::must_execute::{FirstIteration, Order};
use crate::analysis::inst::effects::{Effects, is_constant};
use crate::analysis::memory::alias::{Access, LoopStores, PrivateSlots};
use crate::analysis::memory::available::available_loads;
use crate::analysis::memory::loop_polls::LoopPolls;
use crate::analysis::pressure::Pressure;
use crate::change::Change;
use crate::claim::{Claim, is_marked};
use crate::edit::materialize::assertion::{assert_disjoint, assert_loads};
use crate::pass::{Pass, PassCx};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::{SecondaryMap, packed_option::PackedOption};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, MemFlagsData, Opcode, Value, ValueDef};
use cranelift_codegen::{CodegenResult, Context};
use division::Divisions;
pub(crate) use judge::MAX_HEIGHT;
use why::Decline;

/// The name of this pass.
pub(crate) const NAME: &str = "licm";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS],
    claims: &[Claim::NoOverlap, Claim::CellHolds],
    ..Pass::OPTIONAL
};

/// Hoists out of all loops.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let forest = cx.forest(ctx);
    let private = cx.private_slots(ctx);
    let divisions = Divisions::of(ctx, &forest, cx.options);
    let order = Order::of(&ctx.func, &ctx.domtree);
    let (mut changed, mut has_aliases) = (false, false);
    let mut ready = SecondaryMap::new();
    ready.resize(ctx.func.dfg.num_insts());
    let (heights, mut polls) = (forest.heights(), LoopPolls::default());
    for lp in forest.loops().rev() {
        let header = forest.data(lp).header;
        if cx.marks.is_left_alone(header) {
            continue;
        }
        if heights[lp] > MAX_HEIGHT {
            cx.declined(&ctx.func, NAME, header, &Decline::TooDeep(MAX_HEIGHT));
            continue;
        }
        // Between passes, an exit of an inner loop can be an entry of the next one. Canonical form has been rebuilt before
        // this pass runs last.
        let Some(preheader) = forest.preheader(&ctx.func, lp) else { continue };
        let blocks = order.sorted(forest.blocks(lp));
        let flow = (&ctx.cfg, &ctx.domtree);
        let place = Place { forest: &forest, flow, private: &private, divisions: &divisions, lp, preheader };
        let mut motion = Motion::new(&mut ctx.func, cx, place, (Ready { loops: &mut ready, lp }, &mut polls));
        motion.walk(&blocks);
        let Motion { moved, why, reused, .. } = motion;
        assert_no_overlap(&mut ctx.func, &blocks, &moved);
        if reused > 0 || !moved.is_empty() {
            changed = true;
            has_aliases |= reused > 0;
            cx.fired(&ctx.func, &PASS, header, describe(&ctx.func, &moved, reused));
        }
        match why {
            Some(why) => cx.declined(&ctx.func, NAME, header, &why),
            None => cx.retract(NAME, header),
        }
    }
    if has_aliases {
        ctx.func.dfg.resolve_all_aliases();
    }
    Ok(if changed { Change::Insts } else { Change::Nothing })
}

/// Asserts that no store in `blocks` touches what a load reads that was hoisted. Not of stack slots, of which an address that is
/// compared is one that others could have.
fn assert_no_overlap(func: &mut Function, blocks: &[Block], moved: &[Inst]) {
    /// Loads, and stores, that are compared with each other: enough for tests, and an end for the time that it takes.
    const MAX_COMPARED: usize = 8;
    if !is_marked(func) {
        return;
    }
    let is_plain = |access: &Access| access.address.slot().is_none();
    let insts = blocks.iter().flat_map(|&block| func.layout.block_insts(block));
    let stores = insts.filter_map(|inst| Access::of(func, inst)).filter(|access| access.stored.is_some());
    let stores: Vec<_> = stores.filter(is_plain).take(MAX_COMPARED).collect();
    let loads = moved.iter().filter_map(|&inst| Access::of(func, inst)).filter(|access| access.stored.is_none());
    let loads: Vec<_> = loads.filter(is_plain).take(MAX_COMPARED).collect();
    for store in &stores {
        loads.iter().for_each(|load| assert_disjoint(func, store.inst, [store, load]));
    }
}

/// What was hoisted, in words. `reused` is how many more instructions it replaces.
fn describe(func: &Function, moved: &[Inst], reused: usize) -> String {
    /// Instructions that are named; of more, the number says enough.
    const NAMED: usize = 6;
    let worth = || moved.iter().filter(|&&inst| !is_constant(func, inst));
    let name = |&inst: &Inst| match func.dfg.inst_results(inst) {
        [] => func.dfg.insts[inst].opcode().to_string(),
        results => format!("{} = {}", results[0], func.dfg.insts[inst].opcode()),
    };
    let mut names: Vec<_> = worth().take(NAMED).map(name).collect();
    match worth().count().saturating_sub(NAMED) {
        0 => {}
        more => names.push(format!("{more} more")),
    }
    if reused > 0 {
        names.push(format!("{reused} that were there already"));
    }
    format!("computed once, before the loop: {}", names.join(", "))
}

/// A loop, and where its invariants go.
#[derive(Clone, Copy)]
struct Place<'a> {
    forest: &'a LoopForest,
    flow: (&'a ControlFlowGraph, &'a DominatorTree),
    private: &'a PrivateSlots,
    divisions: &'a Divisions,
    lp: Loop,
    preheader: Block,
}

/// A set of instructions of one loop.
struct Ready<'a> {
    /// For each instruction of which that was said last, the loop of the set: one table for all loops.
    loops: &'a mut SecondaryMap<Inst, PackedOption<Loop>>,
    lp: Loop,
}

impl Ready<'_> {
    fn insert(&mut self, inst: Inst) {
        self.loops[inst] = self.lp.into();
    }

    fn contains(&self, inst: Inst) -> bool {
        self.loops[inst] == self.lp.into()
    }

    fn remove(&mut self, inst: Inst) {
        self.loops[inst] = None.into();
    }
}

/// Hoisting out of one loop.
struct Motion<'a, 'b> {
    func: &'a mut Function,
    cx: &'a mut PassCx<'b>,
    place: Place<'a>,
    first: FirstIteration<'a>,
    /// Made when the first candidate asks.
    stores: Option<LoopStores>,
    pressure: Option<Pressure>,
    /// Candidates for which there was no register.
    short: usize,
    /// For all loops: what moves leaves no loop that it polls for.
    polls: &'a mut LoopPolls,
    /// Loads that need not be done again in the preheader.
    available: Option<Vec<Inst>>,
    /// Invariant instructions of the loop that can be hoisted with others, and are not worth it alone.
    ready: Ready<'a>,
    moved: Vec<Inst>,
    /// Instructions that are replaced by what is before the loop.
    reused: usize,
    why: Option<Decline>,
}

impl<'a, 'b> Motion<'a, 'b> {
    fn new(
        func: &'a mut Function,
        cx: &'a mut PassCx<'b>,
        place: Place<'a>,
        (ready, polls): (Ready<'a>, &'a mut LoopPolls),
    ) -> Self {
        Self {
            first: FirstIteration::new(func, place.forest, place.flow.1, place.lp),
            func,
            cx,
            place,
            stores: None,
            pressure: None,
            short: 0,
            polls,
            available: None,
            ready,
            moved: Vec::new(),
            reused: 0,
            why: None,
        }
    }

    /// Looks at each instruction of the loop in the order in which they run.
    fn walk(&mut self, blocks: &[Block]) {
        for &block in blocks {
            self.first.enter(block);
            let mut next = self.func.layout.first_inst(block);
            while let Some(inst) = next {
                next = self.func.layout.next_inst(inst);
                let effects = Effects::of(self.func, inst);
                if !self.consider(block, inst, effects) {
                    self.first.pass_effects(inst, effects);
                }
            }
        }
        let header = self.place.forest.data(self.place.lp).header;
        if self.moved.is_empty() && self.reused == 0 && self.why.is_none() && !self.cx.has_fired(NAME, header) {
            self.why = Some(Decline::NothingInvariant);
        }
    }

    /// Hoists `inst` if that is legal and pays. Returns whether it has left the loop.
    fn consider(&mut self, block: Block, inst: Inst, effects: Effects) -> bool {
        if self.reused > 0 {
            let dfg = &mut self.func.dfg;
            let operands: Vec<_> = dfg.inst_values(inst).map(|value| dfg.resolve_aliases(value)).collect();
            dfg.overwrite_inst_values(inst, operands.into_iter());
        }
        if effects.terminates || !self.has_invariant_operands(inst) {
            return false;
        }
        if is_constant(self.func, inst) {
            // Alone, it would be a register for nothing.
            self.ready.insert(inst);
            return false;
        }
        let Some(proof) = self.prove(block, inst, effects) else { return false };
        let outcome = proof.and_then(|()| self.judge(block, inst)).and_then(|chain| match self.cx.fuel.take() {
            true => Ok(chain),
            false => Err(Decline::Withheld),
        });
        match outcome {
            Ok(chain) => {
                self.hoist(&chain);
                true
            }
            Err(why) => {
                if effects.is_pure() {
                    self.ready.insert(inst);
                }
                self.note(why);
                false
            }
        }
    }

    /// Keeps the reason that says most.
    fn note(&mut self, why: Decline) {
        if self.why.as_ref().is_none_or(|known| why.rank() > known.rank()) {
            self.why = Some(why);
        }
    }

    /// Whether the operands of `inst`, which does not end its block, are invariant or can be hoisted with it.
    fn has_invariant_operands(&self, inst: Inst) -> bool {
        let func = &*self.func;
        let is_outside = |block| !self.place.forest.contains(self.place.lp, block);
        func.dfg.inst_args(inst).iter().all(|&value| match func.dfg.value_def(value) {
            ValueDef::Result(def, _) => self.ready.contains(def) || func.layout.inst_block(def).is_some_and(is_outside),
            ValueDef::Param(block, _) => is_outside(block),
            ValueDef::Union(..) => false,
        })
    }

    /// Whether `inst`, whose operands are invariant, may be hoisted. Nothing if it is none of what this pass moves.
    fn prove(&mut self, block: Block, inst: Inst, effects: Effects) -> Option<Result<(), Decline>> {
        if effects.is_pure() {
            return (!self.func.dfg.inst_results(inst).is_empty()).then_some(Ok(()));
        }
        if effects.writes || effects.fences || effects.diverges || effects.asserts {
            return None;
        }
        if effects.reads {
            let InstructionData::Load { arg, flags, .. } = self.func.dfg.insts[inst] else { return None };
            return Some(self.prove_load(block, inst, (arg, self.func.dfg.mem_flags[flags])));
        }
        Some(self.prove_first(block, inst))
    }

    /// (L2)
    fn prove_load(&mut self, block: Block, inst: Inst, (address, flags): (Value, MemFlagsData)) -> Result<(), Decline> {
        if self.cx.options.is_asynchronous(self.func, flags) {
            return Err(Decline::Asynchronous { load: inst });
        }
        let Place { forest, flow, lp, .. } = self.place;
        let blocks = forest.blocks(lp);
        let stores = self.stores.get_or_insert_with(|| LoopStores::of(self.func, blocks));
        let writers = self.cx.options.writers(self.func, flags);
        if let Some(fence) = stores.fence_for((address, flags), writers, self.place.private) {
            return Err(Decline::Fenced { load: inst, fence });
        }
        let clobber = Access::of(self.func, inst)
            .and_then(|load| stores.clobbering_store(self.func, &load, writers, self.place.private));
        if let Some(store) = clobber {
            return Err(Decline::Aliased { load: inst, store });
        }
        let is_certain = self.prove_certain(block, inst, flags);
        if is_certain.is_err() && self.find_done(inst).is_none() {
            return is_certain;
        }
        // To find the polls takes longest, and is not worth it for what stays anyway.
        let mut around = forest.innermost(block);
        while let Some(inner) = around {
            if self.polls.contains(self.func, flow, (forest, inner), inst) {
                return Err(Decline::Polls { load: inst });
            }
            around = forest.data(inner).parent.filter(|_| inner != lp);
        }
        Ok(())
    }

    /// (L2) That a load may be done on each entry of the loop, before all else, if it has not been done already.
    fn prove_certain(&self, block: Block, inst: Inst, flags: MemFlagsData) -> Result<(), Decline> {
        if !flags.notrap() {
            return self.prove_first(block, inst);
        }
        match self.first.interruption() {
            _ if flags.can_move() => Ok(()),
            _ if !self.first.reaches(block) => Err(Decline::NotCertain { inst }),
            Some(interruption) => Err(Decline::MayBeSkipped { inst, interruption }),
            None => Ok(()),
        }
    }

    /// (L3) (L4)
    fn prove_first(&self, block: Block, inst: Inst) -> Result<(), Decline> {
        if self.place.divisions.divides_well(self.place.lp, inst) {
            return Ok(());
        }
        if !self.first.reaches(block) {
            return Err(Decline::not_certain(self.func, inst));
        }
        if let Some(before) = self.first.observable() {
            return Err(Decline::NotFirst { inst, before });
        }
        match self.first.interruption() {
            Some(interruption) => Err(Decline::MayBeSkipped { inst, interruption }),
            None => Ok(()),
        }
    }

    fn hoist(&mut self, chain: &[Inst]) {
        if let Some(pressure) = &mut self.pressure {
            pressure.hoist(self.func, chain);
        }
        for &inst in chain {
            self.ready.remove(inst);
            let next = self.func.layout.next_inst(inst).expect("a block ends in a terminator");
            self.func.layout.remove_inst(inst);
            if self.reuse(next, inst) {
                continue;
            }
            if let Some(&loaded) = self.func.dfg.inst_results(inst).first() {
                assert_loads(self.func, next, inst, loaded);
            }
            let jump = self.func.layout.last_inst(self.place.preheader).expect("a preheader ends in a jump");
            self.func.layout.insert_inst(inst, jump);
            self.moved.push(inst);
        }
    }

    /// What is before the loop already and gives what `inst` would.
    fn find_done(&mut self, inst: Inst) -> Option<Inst> {
        /// Instructions that are compared with. More invariants than that do not fit into registers.
        const LOOK_BACK: usize = 16;
        let (func, place) = (&*self.func, self.place);
        let is_load = matches!(func.dfg.insts[inst], InstructionData::Load { .. });
        let before: &[Inst] = match is_load {
            true => {
                let Place { forest, flow: (cfg, _), lp, preheader, private, .. } = place;
                self.available.get_or_insert_with(|| available_loads(func, cfg, (forest, lp), preheader, private))
            }
            false => &[],
        };
        let dfg = &func.dfg;
        let types = |inst| dfg.inst_results(inst).iter().map(|&result| dfg.value_type(result));
        let is_same = |&other: &Inst| dfg.insts[other] == dfg.insts[inst] && types(other).eq(types(inst));
        self.moved.iter().rev().take(LOOK_BACK).chain(before).copied().find(is_same)
    }

    /// Uses what was hoisted already in the place of `inst`, which was before `next`, if it is the same.
    fn reuse(&mut self, next: Inst, inst: Inst) -> bool {
        let Some(other) = self.find_done(inst) else { return false };
        if let Some(&value) = self.func.dfg.inst_results(other).first() {
            assert_loads(self.func, next, inst, value);
        }
        let dfg = &mut self.func.dfg;
        dfg.replace_with_aliases(inst, other);
        dfg.insts[inst] = InstructionData::NullAry { opcode: Opcode::Nop };
        self.reused += 1;
        true
    }
}
