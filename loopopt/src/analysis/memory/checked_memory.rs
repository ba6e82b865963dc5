//! Memories of which a function guards each access, and by what: what is needed to guard them again.
//!
//! ```text
//! v2 = load.i64 notrap v0+64            the length
//! v3 = load.i64 notrap v0+56            the base
//! v4 = isub v2, 24
//! v5 = icmp ugt v1, v4                  outside?
//! v6 = iadd v3, v1
//! v7 = iadd v6, 16
//! v8 = select_spectre_guard v5, 0, v7
//! v9 = load.i64 heap v8                 8 bytes that end within the length
//! ```
//!
//! A guard that compares an index with a length says where the memory ends: an index of at most `length - below`, added to the base and `start`,
//! with an access of `size` bytes ends `start + size - below` after the length, or before it.
//!
//! # Which memories
//!
//! A memory is the alias regions that are accessed through guards of one base and one length. It is known only if *each* access of the
//! function to these regions is one of a plain load or store
//!
//! * at the result of such a guard, which the embedder says is [checked](crate::Embedder::is_checked), or
//! * at a constant distance from the base, within the least length,
//!
//! and if nothing but an access uses what a guard of that base and length gives, or one of which is not known what it is of, and if the length does not get smaller.
//! Guards of other memories stay, and so do not matter: those of objects of a garbage collector, of which fields are accessed after the address that was guarded.
//!
//! A length is loaded at one time, an access that a guard has let through is made later, and a new guard may load it later still. So a length that is
//! loaded is one that is constant in the function, or of which the embedder says that it [never shrinks](crate::Embedder::never_shrinks). That
//! an access is made with the base as it is at that time is what the embedder says with [`SpectreGuards::Consolidate`].
//!
//! Then each access that executes lies within the memory, whatever passes make of its address, as they make no accesses but copies of
//! those. Base and length are constants, parameters of the function, or what is loaded from a constant distance to such a one: so they can be had
//! anywhere. Neither `length - below` nor `index + start` wraps: the length is known to be at least `below`, and that is at least `start`.

use crate::analysis::cfg::edges::{Edge, each_use, edges_into};
use crate::analysis::facts::condition::{Part, parts};
use crate::analysis::memory::alias::{Access, LoopStores};
use crate::analysis::memory::spectre_guard::Guard;
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::embedder::{SpectreGuards, Writers};
use crate::ir::all_insts;
use crate::options::Options;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{
    AliasRegion, Block, Function, Inst, InstructionData, MemFlags, MemFlagsData, Opcode, Value, ValueDef, types,
};
use cranelift_codegen::{Context, FxHashSet};
use smallvec::SmallVec;
use std::cell::OnceCell;

/// Where roots are looked for.
#[derive(Clone, Copy)]
pub struct Roots<'a> {
    /// The function.
    pub func: &'a Function,
    /// Its control-flow graph.
    pub cfg: &'a ControlFlowGraph,
    /// What is known of its memory.
    pub options: &'a Options,
}

impl<'a> Roots<'a> {
    /// Those of a function.
    pub fn new(ctx: &'a Context, options: &'a Options) -> Self {
        Self { func: &ctx.func, cfg: &ctx.cfg, options }
    }

    /// Whether `value` is what a guard gives, passed as a block argument or not. One that gives its address whatever happens does not count.
    pub fn is_guarded(self, value: Value) -> bool {
        self.stays_guarded(value, &|_| false)
    }

    /// The same once guards are removed.
    fn stays_guarded(self, value: Value, is_gone: &dyn Fn(Inst) -> bool) -> bool {
        let Self { func, cfg, .. } = self;
        let (mut open, mut seen) = (vec![value], FxHashSet::default());
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            match func.dfg.value_def(value) {
                ValueDef::Result(inst, _)
                    if Guard::of(func, inst).is_some_and(|guard| guard.asks(func)) && !is_gone(inst) => {}
                ValueDef::Param(block, _) if func.layout.entry_block() != Some(block) && seen.len() <= MAX_PASSED => {
                    for edge in edges_into(func, cfg, block) {
                        let Some(passed) = edge.passed_for(func, value) else { return false };
                        open.push(passed);
                    }
                }
                _ => return false,
            }
        }
        true
    }
}

/// Parameters of blocks that are followed to a guard: one for each loop that it leaves and each join on the path, and a bound on time.
const MAX_PASSED: usize = 16;

/// A number that can be had anywhere in the function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    /// A constant.
    Constant(u64),
    /// A parameter of the function.
    Param(Value),
    /// What a load of 64 bits gives.
    Load {
        /// Its flags. It does not trap.
        flags: MemFlags,
        /// How far after the address.
        offset: Offset32,
        /// The address.
        address: Box<Self>,
    },
}

/// Loads and parameters of blocks that lead to a root: one load for what a function is given a pointer to, two if that is the pointer to something
/// shared; and a parameter of each loop that it leaves.
const MAX_STEPS: usize = 5;

/// Edges into a block with such a parameter. An exit block has one or two.
const MAX_EDGES: usize = 4;

impl Root {
    /// What `value` is, if it can be had anywhere.
    pub fn of(roots: Roots<'_>, value: Value) -> Option<Self> {
        match Self::with_constant(roots, value, MAX_STEPS)? {
            (Self::Constant(_), constant) => Some(Self::Constant(constant.cast_unsigned())),
            (root, 0) => Some(root),
            _ => None,
        }
    }

    /// The root and the constant that `value` is the sum of. A constant alone is the sum of zero and itself.
    fn with_constant(roots: Roots<'_>, value: Value, steps: usize) -> Option<(Self, i64)> {
        let func = roots.func;
        if func.dfg.value_type(value) != types::I64 {
            return None;
        }
        let sum = Sum::of(func, value);
        let constant = sum.constant_part().cast_signed();
        let leaf = match sum.terms() {
            [] => return Some((Self::Constant(0), constant)),
            &[(Term::Value(leaf), 1)] => leaf,
            _ => return None,
        };
        let (root, added) = match func.dfg.value_def(leaf) {
            ValueDef::Param(block, _) if func.layout.entry_block() == Some(block) => (Self::Param(leaf), 0),
            ValueDef::Param(block, _) if steps > 0 => Self::passed_by_all(roots, (block, leaf), steps - 1)?,
            ValueDef::Result(inst, _) if steps > 0 => (Self::loaded(roots, inst, steps - 1)?, 0),
            ValueDef::Param(..) | ValueDef::Result(..) | ValueDef::Union(..) => return None,
        };
        Some((root, added.checked_add(constant)?))
    }

    /// The block argument of all edges into `block` for its parameter, if that is the same.
    fn passed_by_all(roots: Roots<'_>, (block, param): (Block, Value), steps: usize) -> Option<(Self, i64)> {
        let Roots { func, cfg, .. } = roots;
        let edges: SmallVec<[Edge; MAX_EDGES]> = edges_into(func, cfg, block).take(MAX_EDGES + 1).collect();
        if edges.len() > MAX_EDGES {
            return None;
        }
        let mut all = None;
        for edge in edges {
            let passed = edge.passed_for(func, param)?;
            if passed != param {
                let one = Self::with_constant(roots, passed, steps)?;
                if *all.get_or_insert_with(|| one.clone()) != one {
                    return None;
                }
            }
        }
        all
    }

    /// What a load gives that may be done anywhere.
    fn loaded(roots: Roots<'_>, inst: Inst, steps: usize) -> Option<Self> {
        let Roots { func, options, .. } = roots;
        let InstructionData::Load { opcode: Opcode::Load, arg, flags, offset } = func.dfg.insts[inst] else {
            return None;
        };
        let data = func.dfg.mem_flags[flags];
        let region = data.alias_region().map(|region| &func.dfg.alias_regions[region]);
        let is_quiet = region.is_none_or(|region| options.embedder.writers(region) != Writers::Others);
        let (address, 0) = Self::with_constant(roots, arg, steps)? else { return None };
        (is_quiet && data.notrap()).then_some(Self::Load { flags, offset, address: Box::new(address) })
    }

    /// The flags of the loads that lead to it.
    pub fn loads(&self) -> impl Iterator<Item = MemFlags> {
        fn next<'a>(root: &&'a Root) -> Option<&'a Root> {
            match root {
                Root::Load { address, .. } => Some(address),
                _ => None,
            }
        }
        std::iter::successors(Some(self), next).filter_map(|root| match root {
            Self::Load { flags, .. } => Some(*flags),
            _ => None,
        })
    }

    /// Whether it may be less than it was before. `stores` are those of the function, once they are needed.
    fn may_shrink(&self, Roots { func, options, .. }: Roots<'_>, stores: &OnceCell<LoopStores>) -> bool {
        let all = || LoopStores::of(func, &func.layout.blocks().collect::<Vec<_>>());
        let may_change = |flags: MemFlagsData| {
            let stores = stores.get_or_init(all);
            !flags.readonly() && (stores.fence.is_some() || stores.not_kept_apart(func, flags).is_some())
        };
        let is_length = |flags: MemFlagsData| options.never_shrinks(func, flags);
        // The address of a length that never shrinks is that of one memory.
        let mut loads = self.loads().map(|flags| func.dfg.mem_flags[flags]);
        loads.next().is_some_and(|flags| !is_length(flags) && may_change(flags)) || loads.any(may_change)
    }

    /// The least and the largest number that it can be.
    fn bounds(&self, func: &Function, options: &Options) -> (u64, u64) {
        match self {
            Self::Constant(number) => (*number, *number),
            Self::Param(_) => (0, u64::MAX),
            Self::Load { flags, .. } => options.bounds(func, func.dfg.mem_flags[*flags]),
        }
    }
}

/// A memory of which each access is guarded.
#[derive(Clone, Debug)]
pub struct CheckedMemory {
    /// Where it starts.
    pub base: Root,
    /// Its length.
    pub length: Root,
    /// How far after the length the last byte of a guarded access may be. Of constant lengths, the length is 0, and this is all.
    pub excess: i64,
    /// The least that the length can be.
    pub least: u64,
    regions: SmallVec<[AliasRegion; 2]>,
    /// The first access.
    first: Inst,
}

impl CheckedMemory {
    /// Whether the number of addresses at which a byte is within the memory may be more than 64 bits hold: then no guard could compare with it.
    fn may_wrap(&self, Roots { func, options, .. }: Roots<'_>) -> bool {
        let (_, most) = self.length.bounds(func, options);
        u64::try_from(self.excess).is_ok_and(|excess| most.checked_add(excess).is_none())
    }

    /// Whether an access of `size` bytes at this constant distance from the base is within the memory whatever its length is.
    fn always_holds(&self, distance: u64, size: u32) -> bool {
        let end = distance.checked_add(size.into()).and_then(|end| i64::try_from(end).ok());
        let least = i64::try_from(self.least).unwrap_or(i64::MAX);
        end.is_some_and(|end| end <= least.saturating_add(self.excess))
    }
}

/// What a guard says of the memory that it is of.
struct Shape {
    base: Root,
    length: Root,
    /// How far after the length an access at its address ends that has no bytes.
    excess: i64,
}

/// The largest constant in a guard that is looked at: far from where anything wraps.
const MAX_CONSTANT: u64 = 1 << 48;

impl Shape {
    fn of(roots: Roots<'_>, guard: Inst) -> Option<Self> {
        let Roots { func, options, .. } = roots;
        let Guard { condition, holds, gives } = Guard::of(func, guard)?;
        let [Part::Compares(cond, [left, right])] = parts(func, (condition, holds), true)[..] else { return None };
        let (index, limit, strict) = match cond {
            IntCC::UnsignedLessThanOrEqual => (left, right, 0),
            IntCC::UnsignedLessThan => (left, right, 1),
            IntCC::UnsignedGreaterThanOrEqual => (right, left, 0),
            IntCC::UnsignedGreaterThan => (right, left, 1),
            _ => return None,
        };
        if func.dfg.value_type(index) != types::I64 || func.dfg.value_type(gives) != types::I64 {
            return None;
        }
        let distance = Sum::of(func, gives).minus(&Sum::of(func, index))?;
        let &[(Term::Value(base), 1)] = distance.terms() else { return None };
        let base = Root::of(roots, base)?;
        let small = |number: u64| Some(number.cast_signed()).filter(|number| number.unsigned_abs() <= MAX_CONSTANT);
        let start = small(distance.constant_part()).filter(|start| *start >= 0)?;
        let (length, constant) = Root::with_constant(roots, limit, MAX_STEPS)?;
        small(constant.cast_unsigned())?;
        let below = -constant;
        let is_sound = match length {
            Root::Constant(_) => constant >= strict,
            _ => below >= start && length.bounds(func, options).0 >= below.cast_unsigned(),
        };
        if !is_sound {
            return None;
        }
        Some(Self { base, length, excess: start + constant - strict })
    }
}

/// What is found in a function.
struct Found<'a> {
    roots: Roots<'a>,
    /// What guards give.
    given: EntitySet<Value>,
    memories: Vec<CheckedMemory>,
    /// Instructions with a region of which no guard is known.
    others: Vec<(Inst, AliasRegion)>,
    /// Instructions that make something else of what a guard gives than a plain access, with what that guard is of. If that is not known now, it may be later, and
    /// then it may be any memory.
    derived: Vec<(Inst, Option<Shape>)>,
}

impl Found<'_> {
    /// Looks at an instruction.
    fn add(&mut self, inst: Inst) {
        let Roots { func, options, .. } = self.roots;
        let mut guards = SmallVec::<[Value; 2]>::new();
        each_use(func, inst, |value| guards.extend(self.given.contains(value).then_some(value)));
        let region = func.dfg.insts[inst].memflags().and_then(|flags| func.dfg.mem_flags[flags].alias_region());
        let guarded = region.filter(|_| !guards.is_empty());
        let access = guarded.and_then(|region| Some((region, Access::of(func, inst)?)));
        if let Some((region, access)) = access.filter(|(_, access)| guards.contains(&access.operand)) {
            let place = guards.iter().position(|&value| value == access.operand).expect("it is one of them");
            let guard = func.dfg.value_def(guards.swap_remove(place)).inst();
            let is_whole =
                func.dfg.insts[inst].load_store_offset() == Some(0) && options.is_checked(func, access.flags);
            match guard.filter(|_| is_whole).and_then(|guard| Shape::of(self.roots, guard)) {
                Some(shape) => self.add_guarded(shape, &access, region),
                None => self.others.push((inst, region)),
            }
        } else {
            self.others.extend(region.map(|region| (inst, region)));
        }
        // What else is made of one would not be guarded again.
        let shape = |value| func.dfg.value_def(value).inst().and_then(|guard| Shape::of(self.roots, guard));
        self.derived.extend(guards.into_iter().map(|value| (inst, shape(value))));
    }

    /// An access for which nothing is known of `memory`: one without a guard, or one of a region that is another memory's, too.
    fn obstacle(&self, memory: &CheckedMemory) -> Option<Inst> {
        let is_own = |region: &AliasRegion| memory.regions.contains(region);
        let holds = |access: &Access| {
            distance(self.roots, access, memory).is_some_and(|distance| memory.always_holds(distance, access.size))
        };
        let mut others = self.others.iter().filter(|(_, region)| is_own(region)).map(|&(inst, _)| inst);
        let is_unguarded = |&inst: &Inst| Access::of(self.roots.func, inst).is_some_and(|access| !holds(&access));
        let shared = || {
            let is_other = |other: &&CheckedMemory| !std::ptr::eq(*other, memory);
            self.memories
                .iter()
                .filter(is_other)
                .find(|other| other.regions.iter().any(is_own))
                .map(|other| other.first)
        };
        let is_own_shape = |shape: &Shape| shape.base == memory.base && shape.length == memory.length;
        let is_derived = |(_, shape): &&(Inst, Option<Shape>)| shape.as_ref().is_none_or(is_own_shape);
        let derived = || self.derived.iter().find(is_derived).map(|&(inst, _)| inst);
        others.find(is_unguarded).or_else(shared).or_else(derived)
    }

    fn add_guarded(&mut self, shape: Shape, access: &Access, region: AliasRegion) {
        let excess = shape.excess + i64::from(access.size);
        let same = |memory: &&mut CheckedMemory| memory.base == shape.base && memory.length == shape.length;
        let Some(memory) = self.memories.iter_mut().find(same) else {
            let (least, _) = shape.length.bounds(self.roots.func, self.roots.options);
            let (Shape { base, length, .. }, regions) = (shape, SmallVec::from_slice(&[region]));
            self.memories.push(CheckedMemory { base, length, excess, least, regions, first: access.inst });
            return;
        };
        memory.excess = memory.excess.max(excess);
        if !memory.regions.contains(&region) {
            memory.regions.push(region);
        }
    }
}

/// The memories of a function.
#[derive(Clone, Debug, Default)]
pub struct CheckedMemories {
    known: Vec<CheckedMemory>,
    /// An instruction for which guards of the function stay, if there is one.
    pub obstacle: Option<Inst>,
}

impl CheckedMemories {
    /// Those of `func`, none if the embedder does not want guards [consolidated](SpectreGuards::Consolidate). Linear in the size of the function.
    pub fn of(roots: Roots<'_>) -> Self {
        let Roots { func, options, .. } = roots;
        if options.embedder.spectre_guards() != SpectreGuards::Consolidate {
            return Self::default();
        }
        let insts = || all_insts(func);
        let guards = insts().filter(|&inst| Guard::of(func, inst).is_some());
        let mut given = EntitySet::new();
        given.extend(guards.map(|guard| func.dfg.first_result(guard)));
        if given.is_empty() {
            return Self::default();
        }
        let mut found = Found { roots, given, memories: Vec::new(), others: Vec::new(), derived: Vec::new() };
        insts().for_each(|inst| found.add(inst));
        let (mut known, mut obstacle) = (Vec::new(), None);
        let stores = OnceCell::new();
        for memory in &found.memories {
            let is_unfit = || memory.may_wrap(roots) || memory.length.may_shrink(roots, &stores);
            match found.obstacle(memory).or_else(|| is_unfit().then_some(memory.first)) {
                None => known.push(memory.clone()),
                Some(inst) => _ = obstacle.get_or_insert(inst),
            }
        }
        Self { known, obstacle }
    }

    /// Whether an access is one of these.
    pub fn is_of(&self, access: &Access) -> bool {
        let is_of = |region| self.known.iter().any(|memory| memory.regions.contains(&region));
        access.flags.alias_region().is_some_and(is_of)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether accesses of this region are to one of them.
    pub fn hold(&self, region: AliasRegion) -> bool {
        self.memory_of(region).is_some()
    }

    /// The memory to which accesses of this region are.
    fn memory_of(&self, region: AliasRegion) -> Option<&CheckedMemory> {
        self.known.iter().find(|memory| memory.regions.contains(&region))
    }

    /// Whether what `guard` guards can be guarded again.
    pub fn covers(&self, roots: Roots<'_>, guard: Inst) -> bool {
        !self.is_empty()
            && Shape::of(roots, guard).is_some_and(|shape| {
                self.known.iter().any(|memory| memory.base == shape.base && memory.length == shape.length)
            })
    }

    /// The memory that `inst`, a plain load or store, accesses without a guard, if it needs one.
    pub fn unguarded(&self, roots: Roots<'_>, inst: Inst) -> Option<(Access, &CheckedMemory)> {
        self.unguarded_without(roots, inst, &|_| None)
    }

    /// The same once guards are removed, in the place of which is what `gone` says.
    pub fn unguarded_without(
        &self,
        roots: Roots<'_>,
        inst: Inst,
        gone: &dyn Fn(Inst) -> Option<Value>,
    ) -> Option<(Access, &CheckedMemory)> {
        let func = roots.func;
        let region = func.dfg.mem_flags[func.dfg.insts[inst].memflags()?].alias_region()?;
        let memory = self.memory_of(region)?;
        let mut access = Access::of(func, inst)?;
        if let Some(gives) = func.dfg.value_def(access.operand).inst().and_then(gone) {
            let offset = func.dfg.insts[inst].load_store_offset().map_or(0, i64::from);
            (access.operand, access.address) = (gives, Sum::of(func, gives).offset(offset));
        }
        let is_near = |distance| memory.always_holds(distance, access.size);
        let is_fixed = || distance(roots, &access, memory).is_some_and(is_near);
        // What a guard gives that is known to fail.
        let end = |address: u64| address.saturating_add(access.size.into());
        let is_null = access.address.as_constant().is_some_and(|address| end(address) <= NULL_PAGE);
        let is_guarded = || roots.stays_guarded(access.operand, &|guard| gone(guard).is_some());
        (!is_null && !is_fixed() && !is_guarded()).then_some((access, memory))
    }
}

/// Bytes at address 0 at which nothing is: the least page of x86-64, AArch64, s390x and riscv64.
pub const NULL_PAGE: u64 = 4096;

/// How far after the base of `memory` an access is, if that is a constant.
fn distance(roots: Roots<'_>, access: &Access, memory: &CheckedMemory) -> Option<u64> {
    let &[(Term::Value(base), 1)] = access.address.terms() else { return None };
    (Root::of(roots, base)? == memory.base).then_some(access.address.constant_part())
}
