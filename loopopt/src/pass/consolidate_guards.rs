//! Guards anew what lost its Spectre guard: one guard for all accesses to one address and near it, instead of one for each.
//!
//! ```text
//!     v8 = iadd v6, v7                            v8 = iadd v6, v7
//!     v9 = load.f64 notrap heap v8                v20 = isub v8, base
//!     v10 = load.f64 notrap heap v8+8     ──►     v21 = icmp uge v20, length - 15
//!     v11 = fadd v9, v10                          v22 = select_spectre_guard v21, 0, v8
//!                                                 v9 = load.f64 notrap heap v22
//!                                                 v10 = load.f64 notrap heap v22+8
//!                                                 v11 = fadd v9, v10
//! ```
//!
//! `version`, `elide_checks` and the rest take the guards of checks that are proved, if this pass can put others in their place
//! ([`CheckedMemories`]): so addresses are sums that all passes understand, loads move, cells live in registers, iterations are unrolled. What is
//! left then is guarded here by what the address itself is, compared with the memory. Where the original has a guard for each of five accesses
//! of a stencil, or for each iteration, there is one for a row of it, or for an unrolled group.
//!
//! # What a wrong path may touch
//!
//! The processor may run ahead of any branch: the test in front of a fast loop, the test that ends it, one inside, all at once, and in any
//! order. What it computes from registers there is what the instructions say. Before, each access of the memory is at the result of a
//! guard, which is the address 0, or one at which the access lies within the base and the length that the registers hold.
//!
//! Afterwards too, for each access by itself, whatever way led to it: (S1) it is at the result of a guard of its own, as it came in; or
//! (S2) it is at the result of a guard of a group, plus less than [`MAX_SPAN`] bytes: the guard gives an address from which all of the span
//! lies within base and length, or 0, and at 0 and the [`MAX_SPAN`] bytes behind it there is nothing; or (S3) it is at a constant distance from
//! the base, within the least length. In (S2) the comparison and the choice depend on the address by data, not by a branch: `select_spectre_guard` is a
//! conditional move. No proof of a pass is a part of this argument, so no branch that a proof rests on can be mispredicted to its harm.
//! [`check`] asks (S1) to (S3) of the function that comes out, wherever functions are verified.
//!
//! Index masking in WebKit and V8 and speculative load hardening in LLVM (C. Carruth, 2018) rest on the same: what is made safe is the address, by data
//! that the path itself has computed. They guard each access, or carry along whether the path is wrong.
//!
//! # Needs
//!
//! Canonical form.
//!
//! # Legal when
//!
//! (L1) The guard never gives 0 where an access of the group executes: each lies within the memory, and all of a group execute if the first one does. So a
//! group is accesses to one memory and of one block, or of blocks that each iteration of a loop runs through, with nothing between them that may trap, not return, leave
//! the loop or go round inside; or such that a guard before them, which has passed, covers.
//! A guard may stand anywhere: what it gives is used by the accesses only. (L2) The length is that at the accesses: it is loaded right there, or in front of a loop in
//! which nothing is called and nothing is stored to where base and length are loaded from. What the program has asked, it may have asked before a call,
//! with the length as it was then: so a length that is loaded never gets smaller ([`CheckedMemories`]), and no access is made at a base from before
//! what has moved the memory, as the embedder says with [`SpectreGuards::Consolidate`](crate::SpectreGuards::Consolidate). (L3) Base and length are loaded where the
//! program may load them: right at an access, which was made with both; or where their flags allow that, or the embedder of a length; or where the
//! program has loaded them before, through the same pointers: one that is loaded itself is `readonly`. A pointer that they are loaded from may be null where
//! nothing is accessed.
//!
//! # Pays when
//!
//! It is no choice: what was taken has to be given back.
//!
//! # Changes
//!
//! Instructions.
//!
//! # References
//!
//! P. Kocher et al., "Spectre Attacks", 2019; C. Carruth, "Speculative Load Hardening", LLVM 2018; F. Pizlo, "What Spectre and Meltdown mean for WebKit", 2018.

mod groups;

use crate::analysis::cfg::loops::{Loop, LoopForest, def_block};
use crate::analysis::memory::alias::{Access, LoopStores};
use crate::analysis::memory::available::KnownLoads;
use crate::analysis::memory::checked_memory::{CheckedMemories, CheckedMemory, NULL_PAGE, Root, Roots};
use crate::analysis::memory::spectre_guard::Guard;
use crate::analysis::scev::linear_expr::Term;
use crate::analysis::scev::view::View;
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::at;
use crate::edit::materialize::assertion::assert_truth;
use crate::edit::materialize::emit::emit;
use crate::edit::materialize::known_loads::replace_loads;
use crate::edit::materialize::offsets::set_address;
use crate::fault::fault;
use crate::ir::all_insts;
use crate::options::Options;
use crate::pass::{Form, Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Inst, InstBuilder, InstructionData, MemFlags, Opcode, Value, types};
use cranelift_codegen::{CodegenError, CodegenResult, Context, FxHashMap};
pub(crate) use groups::{Finder, Group, is_barrier, is_quiet};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The name of this pass.
pub(crate) const NAME: &str = "consolidate_guards";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS],
    claims: &[Claim::CheckHolds, Claim::CellHolds],
    is_mandatory: true,
    needs: Form::Canonical,
    ..Pass::OPTIONAL
};

/// Bytes that the accesses of a group span: what is sure to trap at address 0.
pub(crate) const MAX_SPAN: i64 = NULL_PAGE as i64;

/// Guards all that needs it.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    if let Some(obstacle) = cx.memories.obstacle {
        decline(ctx, cx, obstacle);
    }
    if cx.memories.is_empty() {
        return Ok(Change::Nothing);
    }
    let change = if fault!(GuardsForgotten) { Change::Nothing } else { guard_all(ctx, cx) };
    if cx.options.verify_each_pass {
        check(ctx, &cx.memories, cx.options).map_err(|what| CodegenError::Unsupported(format!("{NAME}: {what}")))?;
    }
    Ok(change)
}

fn guard_all(ctx: &mut Context, cx: &mut PassCx<'_>) -> Change {
    let forest = cx.forest(ctx);
    let memories = cx.memories.clone();
    let groups = all_groups(ctx, &forest, &memories, cx.options);
    remark(ctx, cx, &forest, &groups);
    let mut guarding = Guarding {
        ctx,
        forest: &forest,
        options: cx.options,
        known: FxHashMap::default(),
        zeros: FxHashMap::default(),
        stores: FxHashMap::default(),
        loads: None,
        made: EntitySet::new(),
    };
    groups.iter().for_each(|group| guarding.apply(group));
    let made = guarding.made;
    reuse_loads(ctx, cx, &forest, &made);
    if groups.is_empty() { Change::Nothing } else { Change::Insts }
}

fn all_groups<'a>(
    ctx: &Context,
    forest: &LoopForest,
    memories: &'a CheckedMemories,
    options: &Options,
) -> Vec<Group<'a>> {
    let func = &ctx.func;
    let finder = Finder {
        ctx,
        forest,
        unguarded: &mut |inst| memories.unguarded(Roots::new(ctx, options), inst),
        is_barrier: &|inst| is_barrier(func, inst),
    };
    finder.find(ctx.domtree.cfg_rpo().copied())
}

/// Lets the loads that were `made` be what the program has loaded, where that is known and lives in the same loop or one around it.
fn reuse_loads(ctx: &mut Context, cx: &PassCx<'_>, forest: &LoopForest, made: &EntitySet<Inst>) {
    if made.is_empty() {
        return;
    }
    let private = cx.private_slots(ctx);
    let mut known = KnownLoads::new(ctx, forest, cx.options, &private).everywhere();
    known.retain(|&(load, value)| {
        let (home, block) = (def_block(&ctx.func, value), ctx.func.layout.inst_block(load));
        let lives = |home, block| forest.innermost(home).is_none_or(|lp| forest.contains(lp, block));
        made.contains(load) && home.zip(block).is_some_and(|(home, block)| lives(home, block))
    });
    replace_loads(&mut ctx.func, known);
}

/// Says of each loop with a guard, of which nothing may go, why that is.
fn decline(ctx: &Context, cx: &mut PassCx<'_>, obstacle: Inst) {
    let (func, forest) = (&ctx.func, cx.forest(ctx));
    for lp in forest.loops() {
        let mut insts = forest.own_blocks(lp).flat_map(|block| func.layout.block_insts(block));
        if insts.any(|inst| Guard::of(func, inst).is_some() && !cx.guard_policy().may_drop(ctx, inst)) {
            cx.declined(func, NAME, forest.data(lp).header, &Decline::UnknownMemory { obstacle });
        }
    }
}

fn remark(ctx: &Context, cx: &mut PassCx<'_>, forest: &LoopForest, groups: &[Group<'_>]) {
    let mut fired = BTreeMap::<Loop, [usize; 2]>::new();
    for group in groups {
        if let Some(lp) = forest.innermost(group.block) {
            let [guards, accesses] = fired.entry(lp).or_default();
            (*guards, *accesses) = (*guards + 1, *accesses + group.accesses.len());
        }
    }
    for (lp, [guards, accesses]) in fired {
        let (guard, access) =
            (if guards == 1 { "guard" } else { "guards" }, if accesses == 1 { "access" } else { "accesses" });
        cx.fired(&ctx.func, &PASS, forest.data(lp).header, format!("{guards} {guard} for {accesses} {access}"));
    }
}

/// Says which access the processor could run ahead with, if any: for `Options::verify_each_pass`.
fn check(ctx: &Context, memories: &CheckedMemories, options: &Options) -> Result<(), String> {
    if memories.is_empty() {
        return Ok(());
    }
    let func = &ctx.func;
    for inst in all_insts(func) {
        let Some(access) = Access::of(func, inst).filter(|access| memories.is_of(access)) else { continue };
        let offset = func.dfg.insts[inst].load_store_offset().map_or(0, i64::from);
        let roots = Roots::new(ctx, options);
        if memories.unguarded(roots, inst).is_some() {
            return Err(format!("{inst} is not guarded"));
        }
        if roots.is_guarded(access.operand) && !(0..=MAX_SPAN - i64::from(access.size)).contains(&offset) {
            return Err(format!("{inst} is far from what its guard gives"));
        }
    }
    Ok(())
}

/// Makes the guards.
struct Guarding<'a> {
    ctx: &'a mut Context,
    forest: &'a LoopForest,
    options: &'a Options,
    /// What was computed before instructions.
    known: FxHashMap<(Inst, Made), Value>,
    zeros: FxHashMap<Block, Value>,
    stores: FxHashMap<Loop, LoopStores>,
    /// The loads of the program that give a root, once one is needed.
    loads: Option<FxHashMap<Root, SmallVec<[Inst; 1]>>>,
    /// The loads that were made.
    made: EntitySet<Inst>,
}

/// What is computed once before a place.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Made {
    Root(Root),
    /// The length less a constant.
    Limit(Root, i64),
    /// How far behind a base a value is, and a constant.
    Distance {
        base: Value,
        value: Value,
        plus: i64,
    },
}

/// Before which instructions a guard and what it compares with are computed.
struct Places {
    guard: Inst,
    limit: Inst,
}

impl Guarding<'_> {
    fn apply(&mut self, group: &Group<'_>) {
        let first = group.accesses[0].inst;
        let places = self.places(group, first);
        let limit = self.limit(places.limit, group);
        let (start, distance) = self.addresses(group, &places);
        let zero = self.zero(places.guard);
        let mut cursor = at(&mut self.ctx.func, places.guard);
        let fails = cursor.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, distance, limit);
        let address = cursor.ins().select_spectre_guard(fails, zero, start);
        let func = &mut self.ctx.func;
        for access in &group.accesses {
            let constant = access.address.constant_part().cast_signed();
            let offset = constant.wrapping_sub(group.origin) - group.start;
            let offset = i32::try_from(offset).expect("no more than the span");
            assert_truth(func, access.inst, Claim::CheckHolds, (fails, false));
            set_address(func, access.inst, (address, offset.into()));
        }
    }

    /// Where the span of a group starts, and how far behind the base that is, computed from each other so that they take as few instructions
    /// as a front end needs for one access.
    fn addresses(&mut self, group: &Group<'_>, places: &Places) -> (Value, Value) {
        if let Some(index) = self.index(group) {
            let start = self.behind(places.guard, group.address, group.start);
            return (start, self.behind(places.guard, index, group.start));
        }
        let base = self.base_within(group).unwrap_or_else(|| self.root(places.limit, &group.memory.base));
        let Some((jump, fixed, moving)) = self.parts(group.address, base, places.guard) else {
            let start = self.behind(places.guard, group.address, group.start);
            return (start, at(&mut self.ctx.func, places.guard).ins().isub(start, base));
        };
        // The part of the distance that does not change in the loop takes the place of that of the address.
        let made = Made::Distance { base, value: fixed, plus: group.start };
        let fixed = self.once(jump, made, |guarding| {
            let distance = guarding.distance(jump, fixed, base);
            guarding.behind(jump, distance, group.start)
        });
        let mut cursor = at(&mut self.ctx.func, places.guard);
        let distance = cursor.ins().iadd(fixed, moving);
        (cursor.ins().iadd(base, distance), distance)
    }

    /// How far `value` is behind `base`, computed before `place`: what is added to the base, if that is what it is.
    fn distance(&mut self, place: Inst, value: Value, base: Value) -> Value {
        let view = View { ctx: self.ctx, forest: self.forest };
        let known = view.sum(value).zip(view.sum(base)).and_then(|(value, base)| {
            let distance = value.minus(&base)?;
            (distance.operations() < value.operations()).then_some(distance)
        });
        let func = &mut self.ctx.func;
        let summands = func.dfg.value_def(value).inst().map(|inst| func.dfg.insts[inst]);
        match (summands, known) {
            (Some(InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] }), _) if a == base => b,
            (Some(InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] }), _) if b == base => a,
            (_, Some(distance)) => emit(func, place, &distance),
            (_, None) => at(func, place).ins().isub(value, base),
        }
    }

    /// An address as a sum of what the innermost loop around its guard does not change, as it does not change the base, and of what it does; and
    /// the end of the preheader.
    fn parts(&self, address: Value, base: Value, guard: Inst) -> Option<(Inst, Value, Value)> {
        let func = &self.ctx.func;
        let lp = self.forest.innermost(func.layout.inst_block(guard)?)?;
        let jump = func.layout.last_inst(self.forest.preheader(func, lp)?)?;
        let inst = func.dfg.value_def(address).inst()?;
        let InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } = func.dfg.insts[inst] else { return None };
        let moves = |value| self.forest.defines(func, lp, value);
        match (moves(a), moves(b)) {
            _ if moves(base) => None,
            (false, true) => Some((jump, a, b)),
            (true, false) => Some((jump, b, a)),
            _ => None,
        }
    }

    /// The null address. One for all guards of a block, which are made in the order in which they stand there.
    fn zero(&mut self, place: Inst) -> Value {
        let func = &mut self.ctx.func;
        let block = func.layout.inst_block(place).expect("a place in the function");
        *self.zeros.entry(block).or_insert_with(|| at(func, place).ins().iconst(types::I64, 0))
    }

    /// `value` and a constant, computed before `place`.
    fn behind(&mut self, place: Inst, value: Value, constant: i64) -> Value {
        match constant {
            0 => value,
            _ => at(&mut self.ctx.func, place).ins().iadd_imm_s(value, constant),
        }
    }

    /// Where the guard of a group goes, and what it compares with: in front of as many loops as do not change it.
    fn places(&mut self, group: &Group<'_>, first: Inst) -> Places {
        let mut places = Places { guard: first, limit: first };
        let mut around = self.forest.innermost(group.block);
        let mut is_fixed = true;
        while let Some(lp) = around.filter(|&lp| self.is_quiet(lp, group.memory)) {
            let func = &self.ctx.func;
            let Some(jump) = self.forest.preheader(func, lp).and_then(|block| func.layout.last_inst(block)) else {
                break;
            };
            if [&group.memory.base, &group.memory.length].into_iter().any(|root| !self.may_load(root, jump)) {
                break;
            }
            let func = &self.ctx.func;
            is_fixed &= !self.forest.defines(func, lp, group.address);
            places.limit = jump;
            if is_fixed {
                places.guard = jump;
            }
            around = self.forest.data(lp).parent;
        }
        places
    }

    /// (L2) Whether base and length of a memory are the same all through a loop.
    fn is_quiet(&mut self, lp: Loop, memory: &CheckedMemory) -> bool {
        let func = &self.ctx.func;
        let stores = self.stores.entry(lp).or_insert_with(|| LoopStores::of(func, self.forest.blocks(lp)));
        is_quiet(func, stores, memory)
    }

    /// (L3) Whether `root` may be loaded before `place`.
    fn may_load(&mut self, root: &Root, place: Inst) -> bool {
        let Root::Load { flags, address, .. } = root else { return true };
        self.is_allowed(*flags, root, place) && self.is_same_address(address, place)
    }

    /// Whether the flags allow a load of `root` before `place`, or the program has done one before.
    fn is_allowed(&mut self, flags: MemFlags, root: &Root, place: Inst) -> bool {
        let Context { func, domtree, .. } = &*self.ctx;
        let loads = self.loads.get_or_insert_with(|| loads_of_roots(self.ctx, self.options));
        let mut before = loads.get(root).into_iter().flatten();
        func.dfg.mem_flags[flags].can_move() || before.any(|&load| domtree.dominates(load, place, &func.layout))
    }

    /// Whether what `root` gives, which is an address, is the same wherever it is loaded, and may be loaded before `place`: a pointer that is stored to in
    /// between leads elsewhere.
    fn is_same_address(&mut self, root: &Root, place: Inst) -> bool {
        let Root::Load { flags, address, .. } = root else { return true };
        self.ctx.func.dfg.mem_flags[*flags].readonly()
            && self.is_allowed(*flags, root, place)
            && self.is_same_address(address, place)
    }

    /// What is added to the base, if the address of the group is the sum of both.
    fn index(&self, group: &Group<'_>) -> Option<Value> {
        let func = &self.ctx.func;
        let inst = func.dfg.value_def(group.address).inst()?;
        let InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } = func.dfg.insts[inst] else { return None };
        let is_base = |value| self.is_base(value, group);
        match (is_base(a), is_base(b)) {
            (true, _) => Some(b),
            (_, true) => Some(a),
            _ => None,
        }
    }

    /// The base, if the address of the group is made of it.
    fn base_within(&self, group: &Group<'_>) -> Option<Value> {
        let terms = group.accesses[0].address.terms().iter();
        let mut values = terms.filter_map(|term| match term {
            (Term::Value(value), 1) => Some(*value),
            _ => None,
        });
        values.find(|&value| self.is_base(value, group))
    }

    fn is_base(&self, value: Value, group: &Group<'_>) -> bool {
        Root::of(Roots::new(self.ctx, self.options), value).is_some_and(|root| root == group.memory.base)
    }

    /// How many addresses there are at which the span of a group lies within its memory.
    fn limit(&mut self, place: Inst, group: &Group<'_>) -> Value {
        let CheckedMemory { length, excess, least, .. } = group.memory;
        // The first distance that is too far is the length less this.
        let less = group.end - group.start - excess - 1;
        self.once(place, Made::Limit(length.clone(), less), |guarding| {
            if *length == Root::Constant(0) {
                return at(&mut guarding.ctx.func, place).ins().iconst(types::I64, (-less).max(0));
            }
            let length = guarding.root(place, length);
            if less == 0 {
                return length;
            }
            let mut cursor = at(&mut guarding.ctx.func, place);
            let limit = cursor.ins().iadd_imm_s(length, -less);
            if less <= 0 || *least >= less.cast_unsigned() {
                return limit;
            }
            let is_short = cursor.ins().icmp_imm_u(IntCC::UnsignedLessThan, length, less);
            let zero = cursor.ins().iconst(types::I64, 0);
            cursor.ins().select_spectre_guard(is_short, zero, limit)
        })
    }

    fn root(&mut self, place: Inst, root: &Root) -> Value {
        self.once(place, Made::Root(root.clone()), |guarding| match root {
            Root::Constant(number) => at(&mut guarding.ctx.func, place).ins().iconst(types::I64, number.cast_signed()),
            Root::Param(value) => *value,
            Root::Load { flags, offset, address } => {
                let address = guarding.root(place, address);
                let func = &mut guarding.ctx.func;
                let flags = func.dfg.mem_flags[*flags];
                let length = at(func, place).ins().load(types::I64, flags, address, *offset);
                guarding.made.insert(func.dfg.value_def(length).unwrap_inst());
                length
            }
        })
    }

    /// What was computed before `place`, or is now.
    fn once(&mut self, place: Inst, what: Made, make: impl FnOnce(&mut Self) -> Value) -> Value {
        if let Some(&made) = self.known.get(&(place, what.clone())) {
            return made;
        }
        let value = make(self);
        self.known.insert((place, what), value);
        value
    }
}

/// Loads of one root that are remembered, none of which dominates another. 8: one in front of each of the loops that need it.
const MAX_LOADS: usize = 8;

/// The loads of a function that give roots. Linear in its size.
fn loads_of_roots(ctx: &Context, options: &Options) -> FxHashMap<Root, SmallVec<[Inst; 1]>> {
    let Context { func, domtree, .. } = ctx;
    let mut loads = FxHashMap::<_, SmallVec<[Inst; 1]>>::default();
    for inst in domtree.cfg_rpo().flat_map(|&block| func.layout.block_insts(block)) {
        if func.dfg.insts[inst].opcode() != Opcode::Load {
            continue;
        }
        if let Some(root @ Root::Load { .. }) = Root::of(Roots::new(ctx, options), func.dfg.first_result(inst)) {
            let known = loads.entry(root).or_default();
            if known.len() < MAX_LOADS && !known.iter().any(|&load| domtree.dominates(load, inst, &func.layout)) {
                known.push(inst);
            }
        }
    }
    loads
}

refusals! {
    /// Why Spectre guards stay as they are.
    enum Decline {
        /// Not each access of a memory is guarded, or something else is made of a guard, or the length may get smaller.
        UnknownMemory { obstacle: Inst }
            => "unknown-memory", "guards stay: {obstacle} touches a memory that is not guarded by one base and one length alone, which only grows",
            help "guard each access to a region, by its distance from one base and one length, and use what the guard gives for it only; and say of a \
                length that is loaded in `Embedder::never_shrinks` if calls let it grow only";
    }
}
