//! Stack slots become values.
//!
//! ```text
//!     ss0 = explicit_slot 8
//! block0(v0: i64):                     block0(v0: i64):
//!     v1 = stack_addr.i64 ss0              jump block1(v0)
//!     store v0, v1
//!     jump block1                ──►
//! block1:                              block1(v5: i64):
//!     v2 = load.i64 v1                     v3 = iadd v5, v4
//!     v3 = iadd v2, v4
//!     store v3, v1
//!     …                                    …
//! ```
//!
//! Front ends keep variables in stack slots, and Cranelift leaves them there: each use is a load, and each iteration waits
//! for the store of the one before. A slot whose address stays inside the function is as good as a variable. A slot that
//! holds several of them is split: each range of bytes that is only accessed as a whole is a variable of its own.
//!
//! This is for the whole function, with loops or without.
//!
//! # Needs
//!
//! Nothing.
//!
//! # Legal when
//!
//! (L1) The address of the slot is used for loads and stores alone, so that nobody else can reach it: see
//! [`crate::analysis::memory::slots`]. (L2) No debugger or collector looks at it. (L3) All accesses are inside of it, and (L4) of
//! kinds that can be done without memory. (L5) All accesses to the bytes of a variable are to all of them. (L6) Bits can be
//! taken from one type to another, if accesses are of several.
//!
//! Traps observe all memory, but not this: nobody can tell what a slot holds that no pointer leads to. Nor can an access
//! trap: all of a slot is there as long as the function runs, whatever the flags say.
//!
//! # Pays when
//!
//! Always, within limits (P1): a register allocator that has too few registers puts a value back on the stack, where it was.
//!
//! # Changes
//!
//! Loads and stores become values and parameters of blocks. A slot that nothing accesses any more has no size. There may be
//! much to fold then, and [`crate::pass::cleanup`] folds it.
//!
//! # Not done
//!
//! Variables that are accessed as a whole and in pieces, slots that an index selects bytes of, and slots whose address a
//! block parameter may hold.
//!
//! # References
//!
//! LLVM `SROA.cpp` and `PromoteMemoryToRegister.cpp`; rustc `ssa.rs` and `sroa.rs`. Classic mistakes: overlapping parts
//! (llvm#64897), and types that do not keep all bits (GCC, 2026-05-11).

mod rewrite;

use crate::analysis::memory::slots::{Access, Obstacle, Part, SlotUse, SlotUses};
use crate::change::Change;
use crate::edit::cfg::unreachable::forget_removed_insts;
use crate::edit::ssa::construct::{EndValues, Meets, Placer};
use crate::edit::ssa::params::remove_redundant_params;
use crate::edit::{MAX_PARAMS, TooManyParams};
use crate::fault::fault;
use crate::pass::{Form, Pass, PassCx};
use crate::refusal::{Refusal, refusals};
use cranelift_codegen::ir::{Block, Function, Inst, StackSlot, Type, types};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The name of this pass.
pub(crate) const NAME: &str = "mem2reg";

/// The pass.
pub(crate) const PASS: Pass = Pass { name: NAME, run, reasons: &[Why::REASONS], claims: &[], ..Pass::OPTIONAL };

/// The most times that a run looks at all slots. Another look is for slots whose address another slot held, which is removed
/// now: this bounds the time for chains of them that are made to be slow.
const MAX_ROUNDS: usize = 8;

/// Whether there is a slot to look at.
pub(crate) fn has_slots(func: &Function) -> bool {
    func.sized_stack_slots.values().any(|slot| slot.size > 0)
}

/// Makes values of all slots that allow it.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let Some(entry) = ctx.func.layout.entry_block().filter(|_| has_slots(&ctx.func)) else {
        return Ok(Change::Nothing);
    };
    // An address passed through such a parameter can be followed.
    remove_redundant_params(ctx);
    // Neither the parameters that are removed here nor those that are made keep to closed form.
    cx.keep_form(Form::Any);
    let mut ends = EndValues::default();
    for _ in 0..MAX_ROUNDS {
        let uses = SlotUses::new(&ctx.func, &ctx.domtree, cx.isa.endianness());
        let plans = plan(ctx, cx, &uses, entry);
        if plans.is_empty() {
            break;
        }
        for plan in &plans {
            for variable in &plan.variables {
                rewrite::rewrite(ctx, &mut ends, variable, cx.isa.endianness());
            }
            plan.free(&mut ctx.func, &uses);
        }
        forget_removed_insts(&mut ctx.func);
        ctx.func.dfg.resolve_all_aliases();
        cx.wants_cleanup = true;
    }
    Ok(Change::Insts)
}

/// Finds out what is to be done with which slot, and says so.
fn plan(ctx: &Context, cx: &mut PassCx<'_>, uses: &SlotUses, entry: Block) -> Vec<Plan> {
    let max = max_values(ctx, cx);
    let mut prover = Prover { ctx, isa: cx.isa, max, total: 0, placer: None };
    let slots = ctx.func.sized_stack_slots.keys();
    let candidates: Vec<_> = slots.map(|slot| prover.prove(slot, uses.of(slot))).collect();
    let fits = prover.fits(&candidates);
    let mut plans = Vec::new();
    for mut plan in candidates {
        if !fits {
            plan.keep_local(max);
        }
        if !plan.variables.is_empty() {
            if cx.fuel.take() {
                // What was said of it in an earlier round no longer counts.
                cx.remarks.retract(NAME, entry, plan.slot.as_u32());
                cx.fired(&ctx.func, &PASS, entry, plan.to_string());
            } else {
                plan.variables.clear();
                plan.refuse(Why::Withheld);
            }
        }
        if let Some(why) = &plan.refusal {
            cx.declined(&ctx.func, NAME, entry, &OfSlot { slot: plan.slot, why });
        }
        plans.push(plan);
    }
    plans.retain(|plan| !plan.variables.is_empty());
    plans
}

/// How much may be live in all.
fn max_values(ctx: &Context, cx: &PassCx<'_>) -> usize {
    /// A smaller function takes little time, whatever is done to it.
    const MIN_BLOCKS: usize = 200;
    cx.options.mem2reg_max_live.saturating_mul(ctx.func.dfg.num_blocks().max(MIN_BLOCKS))
}

/// A range of bytes that becomes a variable.
struct Variable {
    /// Its type: that of most accesses.
    ty: Type,
    /// The loads and stores, in reverse postorder.
    accesses: Vec<Access>,
    /// Where it needs parameters.
    meets: Meets,
}

/// What is to be done with a slot.
struct Plan {
    slot: StackSlot,
    variables: Vec<Variable>,
    /// Why a part of the slot, or all of it, stays.
    refusal: Option<Why>,
}

impl Plan {
    fn refuse(&mut self, why: Why) {
        self.refusal.get_or_insert(why);
    }

    /// Keeps only the variables that no block needs to know the value of another block for.
    fn keep_local(&mut self, max: usize) {
        let all = self.variables.len();
        self.variables.retain(|variable| variable.meets.cost == 0);
        if self.variables.len() < all {
            self.refuse(Why::TooManyValues(max));
        }
    }

    /// Makes the slot one without a size if nothing accesses it any more.
    fn free(&self, func: &mut Function, uses: &SlotUses) {
        if self.refusal.is_none() && !fault!(IgnoredEscape) {
            for &inst in &uses.of(self.slot).addresses {
                func.layout.remove_inst(inst);
            }
            let data = &mut func.sized_stack_slots[self.slot];
            (data.size, data.align_shift) = (0, 0);
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accesses: usize = self.variables.iter().map(|variable| variable.accesses.len()).sum();
        let params: usize = self.variables.iter().map(|variable| variable.meets.blocks.len()).sum();
        let parts = self.variables.len();
        let which = if self.refusal.is_none() { "all" } else { "a part" };
        write!(
            f,
            "{which} of {} becomes values: {parts} variables, {accesses} accesses, {params} parameters",
            self.slot
        )
    }
}

/// Decides what can be done.
struct Prover<'a> {
    ctx: &'a Context,
    isa: &'a dyn TargetIsa,
    /// The most that all variables together may cost, and what they cost so far.
    max: usize,
    total: usize,
    /// Places parameters, unless the function is too entangled, once that is needed.
    placer: Option<Result<Placer<'a>, TooManyParams>>,
}

impl Prover<'_> {
    fn prove(&mut self, slot: StackSlot, found: &SlotUse) -> Plan {
        let mut plan = Plan { slot, variables: Vec::new(), refusal: None };
        if let Some(obstacle) = found.obstacle {
            plan.refuse(Why::of(&self.ctx.func, obstacle));
            return plan;
        }
        for part in found.parts() {
            match self.variable(part) {
                Ok(variable) => plan.variables.push(variable),
                Err(why) => plan.refuse(why),
            }
        }
        plan
    }

    fn variable(&mut self, part: Part) -> Result<Variable, Why> {
        let func = &self.ctx.func;
        if let Some([one, other]) = part.clash {
            return Err(Why::Overlap(text_of(func, one), text_of(func, other)));
        }
        let mut ty = part.accesses[0].ty;
        let mut meets = Meets::default();
        // If nobody loads it, there is nothing to know about what was stored.
        if part.accesses.iter().any(|access| is_load(func, access.inst)) {
            ty = common_type(self.isa, &part.accesses)?;
            meets = self.meets(&part.accesses)?;
        }
        Ok(Variable { ty, accesses: part.accesses, meets })
    }

    /// Where the variable with these accesses needs parameters.
    fn meets(&mut self, accesses: &[Access]) -> Result<Meets, Why> {
        let func = &self.ctx.func;
        let (mut written, mut read) = (Vec::new(), Vec::new());
        for access in accesses {
            let block = func.layout.inst_block(access.inst).expect("an access is in the layout");
            // Accesses in one block follow each other.
            if written.last() == Some(&block) {
                continue;
            }
            let blocks = if is_load(func, access.inst) { &mut read } else { &mut written };
            if blocks.last() != Some(&block) {
                blocks.push(block);
            }
        }
        if read.is_empty() {
            return Ok(Meets::default());
        }
        let placer = self.placer.get_or_insert_with(|| Placer::new(self.ctx, self.max));
        match placer {
            // Beyond the limit all variables like this one stay, so there is no need to know more.
            Ok(placer) if self.total <= self.max => {
                let meets = placer.place(&written, &read);
                self.total += meets.cost;
                Ok(meets)
            }
            _ => Err(Why::TooManyValues(self.max)),
        }
    }

    /// Whether all of it together is within the limits.
    fn fits(&self, plans: &[Plan]) -> bool {
        let mut params = BTreeMap::<Block, usize>::new();
        for variable in plans.iter().flat_map(|plan| &plan.variables) {
            for &block in &variable.meets.blocks {
                *params.entry(block).or_insert_with(|| self.ctx.func.dfg.num_block_params(block)) += 1;
            }
        }
        self.total <= self.max && params.values().all(|&count| count <= MAX_PARAMS)
    }
}

fn is_load(func: &Function, inst: Inst) -> bool {
    func.dfg.insts[inst].opcode().can_load()
}

/// The type of most of `accesses`, the first of them if there are several such types.
fn common_type(isa: &dyn TargetIsa, accesses: &[Access]) -> Result<Type, Why> {
    let mut counts = Vec::<(Type, usize)>::new();
    for access in accesses {
        match counts.iter_mut().find(|(ty, _)| *ty == access.ty) {
            Some((_, count)) => *count += 1,
            None => counts.push((access.ty, 1)),
        }
    }
    let most = counts.iter().map(|&(_, count)| count).max().unwrap_or(0);
    let (ty, _) = *counts.iter().find(|&&(_, count)| count == most).expect("a part has an access");
    let other = counts.iter().map(|&(other, _)| other).find(|&other| other != ty);
    match other {
        Some(other) if !counts.iter().all(|&(ty, _)| has_bitcast(isa, ty)) => Err(Why::MixedTypes(ty, other)),
        _ => Ok(ty),
    }
}

/// Whether the ISA can lower `bitcast` from and to this type. Floats of 16 and 128 bits are new in Cranelift, and not all
/// ISAs have pairs of registers for what else has 128 bits.
fn has_bitcast(isa: &dyn TargetIsa, ty: Type) -> bool {
    match ty {
        types::F16 | types::F128 => false,
        _ => ty.bits() < 128 || matches!(isa.name(), "x64" | "aarch64"),
    }
}

/// The instruction as text. Branches can be as long as a function, so only their place is named.
fn text_of(func: &Function, inst: Inst) -> String {
    let opcode = func.dfg.insts[inst].opcode();
    match func.layout.inst_block(inst) {
        Some(block) if opcode.is_branch() => format!("the {opcode} of {block}"),
        _ => func.dfg.display_inst(inst).to_string(),
    }
}

refusals! {
    /// Why a slot, or a part of it, stays in memory.
    enum Why {
        /// (L1) This instruction may keep the address.
        Escapes(user: String) => "escapes", "its address is used by {user}, which may keep it",
            help "use the slot for loads and stores at constant offsets, and another for the rest";
        /// (L2) A debugger or a collector may look at it.
        Observed => "observed", "a debugger or a collector may look at it";
        /// (L3) This access goes beyond the slot.
        OutOfBounds(access: String) => "out-of-bounds", "{access} goes beyond its end",
            help "make the slot as large as what is accessed";
        /// (L4) This access is of a kind that is not followed.
        UnsupportedAccess(access: String) => "unsupported-access", "it is accessed by {access}, which is not followed",
            help "use loads and stores of integers, floats and 128-bit vectors in native byte order";
        /// (L5) These accesses overlap, and are not of the same bytes.
        Overlap(one: String, other: String) => "overlap", "{one} and {other} overlap, but are not of the same bytes",
            help "access each field as a whole";
        /// (L6) One variable is accessed by these types.
        MixedTypes(one: Type, other: Type) => "mixed-types", "it holds {one} and {other} in one place",
            help "access each field by one type";
        /// (P1) It would take too many parameters, or too long.
        TooManyValues(max: usize) => "too-many-values", "it and the others would make more than {max} values",
            help "raise Options::mem2reg_max_live";
    }
    shared { Withheld }
}

impl Why {
    fn of(func: &Function, obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Escapes(inst) => Self::Escapes(text_of(func, inst)),
            Obstacle::Observed => Self::Observed,
            Obstacle::OutOfBounds(inst) => Self::OutOfBounds(text_of(func, inst)),
            Obstacle::Unsupported(inst) => Self::UnsupportedAccess(text_of(func, inst)),
        }
    }
}

/// That a slot, or a part of it, stays what it is.
struct OfSlot<'a> {
    slot: StackSlot,
    why: &'a Why,
}

impl Refusal for OfSlot<'_> {
    fn slug(&self) -> &'static str {
        self.why.slug()
    }

    fn message(&self, func: &Function) -> Cow<'static, str> {
        format!("{}: {}", self.slot, self.why.message(func)).into()
    }

    fn help(&self) -> &'static str {
        self.why.help()
    }

    fn subject(&self) -> u32 {
        self.slot.as_u32()
    }
}
