//! The guard of a group: what it asks, what it gives, and where base, length and distance are computed.

use super::groups::{Group, is_quiet};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::memory::alias::LoopStores;
use crate::analysis::memory::checked_memory::{CheckedMemory, Root, Roots};
use crate::analysis::scev::linear_expr::Term;
use crate::analysis::scev::view::View;
use crate::claim::Claim;
use crate::edit::at;
use crate::edit::materialize::assertion::assert_truth;
use crate::edit::materialize::emit::emit;
use crate::edit::materialize::offsets::set_address;
use crate::options::Options;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Inst, InstBuilder, InstructionData, MemFlags, Opcode, Value, types};
use cranelift_codegen::{Context, FxHashMap};
use smallvec::SmallVec;

/// What guards are made of.
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
    /// A value less a base, plus a constant.
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

/// Makes the guards of these groups. Gives the loads that were made for them.
pub(super) fn guard(
    ctx: &mut Context,
    forest: &LoopForest,
    options: &Options,
    groups: &[Group<'_>],
) -> EntitySet<Inst> {
    let mut guarding = Guarding {
        ctx,
        forest,
        options,
        known: FxHashMap::default(),
        zeros: FxHashMap::default(),
        stores: FxHashMap::default(),
        loads: None,
        made: EntitySet::new(),
    };
    groups.iter().for_each(|group| guarding.apply(group));
    guarding.made
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

    /// Where the span of a group starts, and how far from the base that is, computed from each other so that they take as few instructions
    /// as a front end needs for one access.
    fn addresses(&mut self, group: &Group<'_>, places: &Places) -> (Value, Value) {
        if let Some(index) = self.index(group) {
            let start = self.plus(places.guard, group.address, group.start);
            return (start, self.plus(places.guard, index, group.start));
        }
        let base = self.base_within(group).unwrap_or_else(|| self.root(places.limit, &group.memory.base));
        let Some((jump, fixed, moving)) = self.parts(group.address, base, places.guard) else {
            let start = self.plus(places.guard, group.address, group.start);
            return (start, at(&mut self.ctx.func, places.guard).ins().isub(start, base));
        };
        // The part of the distance that is loop-invariant takes the place of that of the address.
        let made = Made::Distance { base, value: fixed, plus: group.start };
        let fixed = self.once(jump, made, |guarding| {
            let distance = guarding.distance(jump, fixed, base);
            guarding.plus(jump, distance, group.start)
        });
        let mut cursor = at(&mut self.ctx.func, places.guard);
        let distance = cursor.ins().iadd(fixed, moving);
        (cursor.ins().iadd(base, distance), distance)
    }

    /// How far `value` is from `base`, computed before `place`: what is added to the base, if that is what it is.
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

    /// An address as a sum of what is invariant in the innermost loop that encloses its guard, as the base is, and of what varies there; and
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

    /// The null address. One for all guards of a block, which are made in the order in which they are placed there.
    fn zero(&mut self, place: Inst) -> Value {
        let func = &mut self.ctx.func;
        let block = func.layout.inst_block(place).expect("a place in the function");
        *self.zeros.entry(block).or_insert_with(|| at(func, place).ins().iconst(types::I64, 0))
    }

    /// `value` and a constant, computed before `place`.
    fn plus(&mut self, place: Inst, value: Value, constant: i64) -> Value {
        match constant {
            0 => value,
            _ => at(&mut self.ctx.func, place).ins().iadd_imm_s(value, constant),
        }
    }

    /// Where the guard of a group is placed, and what it compares with: before as many loops as it is invariant in.
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

/// Loads of one root that are remembered, none of which dominates another. 8: one before each of the loops that need it.
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
