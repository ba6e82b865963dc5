//! Reassociation of reductions: the values that an iteration adds are combined first, and then added to the sum in one operation.
//!
//! ```text
//! header(v1):                         header(v1):
//!     v2 = imul v1, v10
//!     v3 = imul v2, v11                   v6 = imul v10, v11
//!     v4 = imul v3, v12      ──►          v7 = imul v6, v12
//!     v5 = imul v4, v13                   v8 = imul v7, v13
//!                                         v5 = imul v1, v8
//!     brif …, header(v5), exit            brif …, header(v5), exit
//! ```
//!
//! An iteration waits for the one before in one operation, and not in each of them. What is put together first does not wait for
//! anything, so that the processor computes it for several iterations at once. An unrolled loop gains as with an accumulator for each copy,
//! with one register more in place of one for each, and with nothing to combine at the exits.
//!
//! # Needs
//!
//! Nothing. It runs after `partial_unroll`, which makes most of these chains.
//!
//! # Legal when
//!
//! (L1) The operations are `iadd` and `isub`, or all the same of `imul`, `band`, `bor`, `bxor`, `smin`, `smax`, `umin` and `umax`, of integers or
//! vectors of them. Modulo two to its bits each of these is associative and commutative, in each lane. Subtractions are sums too:
//! `s - a + b - c = s - (a - b + c)`, where the first sign is taken out, and what has the same one is added. Floats are not associative.
//! (L2) Nothing but the next operation uses an intermediate result, so no exit, no store and no trap sees that it is another value. All are
//! pure, so that it does not matter when they run. (L3) Each is placed where it was, so that its operands are available; the last one
//! gives the value that the chain gave. (L4) Constants that are added to a value one after the other, `(v + a) + b`, are added at once if nothing
//! but what is rewritten uses the inner sum: modulo two to its bits it is the same ([`constants`]). (L5) A constant that is added to the index of an address becomes
//! an offset, if nothing but such addresses uses the sum: the address is the same, modulo two to 64 ([`offsets`](crate::edit::materialize::offsets)).
//!
//! # Pays when
//!
//! (P1) the chain takes more cycles than the processor takes to start all instructions of an iteration: then it is what the loop waits
//! for. (P2) A register is free for what is put together. (P3) The loop is not cold. Of (L4) and (L5) there is
//! one operation fewer, and a register less or as many. An index that has other uses, such as the next value of a counter, would only be live in addition to
//! what it is computed from.
//!
//! # Changes
//!
//! Instructions.
//!
//! # Not done
//!
//! Chains through parameters of blocks inside of the loop, and those in which the carried value is the subtrahend.
//! Sums with a factor, such as a hash: what would be put together first needs powers of the factor.
//!
//! # References
//!
//! GCC's `tree-ssa-reassoc` ranks what a loop carries so that it is added last (`PHI_LOOP_BIAS`). LLVM `LoopUnroll` makes several
//! accumulators (`-unroll-add-parallel-reductions`).

mod constants;

use crate::analysis::cfg::edges::count_uses;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::counts_as_code;
use crate::analysis::pressure::Pressure;
use crate::change::Change;
use crate::claim::{Claim, is_marked};
use crate::edit::at;
use crate::edit::inst::clone::repeat_before;
use crate::edit::inst::trap_location::locate_at_load;
use crate::edit::materialize::assertion::assert_equal;
use crate::edit::materialize::dce::remove_unused;
use crate::edit::materialize::local_cse::reuse;
use crate::edit::materialize::offsets::Offsets;
use crate::fault::fault;
use crate::options::Options;
use crate::pass::{Pass, PassCx};
use crate::refusal::refusals;
use constants::Sums;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, Opcode, Type, Value, types};
use cranelift_codegen::{CodegenResult, Context, FxHashMap};

/// The name of this pass.
pub(crate) const NAME: &str = "reassociate";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS],
    claims: &[Claim::SameResult, Claim::SamePlace],
    ..Pass::OPTIONAL
};

/// Does it in all loops. Linear in the size of the function.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let forest = cx.forest(ctx);
    let mut open = Vec::new();
    let mut change = add_at_once(ctx, cx, &forest).max(fold_offsets(ctx, cx, &forest));
    for lp in forest.loops() {
        let header = forest.data(lp).header;
        if cx.marks.is_left_alone(header) {
            continue;
        }
        match carried(&ctx.func, &forest, lp) {
            carried if carried.is_empty() && cx.has_fired(NAME, header) => {}
            carried if carried.is_empty() => cx.declined(&ctx.func, NAME, header, &Decline::NothingCombined),
            carried => open.push((lp, carried)),
        }
    }
    if open.is_empty() {
        return Ok(change);
    }
    let uses = count_uses(&ctx.func);
    for (lp, carried) in open {
        let header = forest.data(lp).header;
        let chains =
            prove(&ctx.func, (&forest, lp), &carried, &uses).and_then(|chains| judge(ctx, cx, (&forest, lp), chains));
        match chains {
            Ok(chains) if cx.fuel.take() => {
                cx.retract(NAME, header);
                cx.fired(&ctx.func, &PASS, header, describe(&chains));
                chains.iter().for_each(|chain| chain.apply(&mut ctx.func));
                change = Change::Insts;
            }
            // The remainder of an unrolled loop has nothing to combine.
            _ if cx.has_fired(NAME, header) => {}
            Ok(_) => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
            Err(why) => cx.declined(&ctx.func, NAME, header, &why),
        }
    }
    Ok(change)
}

/// The loops that are not cold, with their headers.
fn warm_loops(ctx: &Context, cx: &PassCx<'_>, forest: &LoopForest) -> impl Iterator<Item = (Loop, Block)> {
    let loops = forest.loops().map(|lp| (lp, forest.data(lp).header));
    loops.filter(|&(_, header)| !cx.marks.is_left_alone(header) && !ctx.func.is_effectively_cold(header))
}

/// (L4) in all loops that are not cold.
fn add_at_once(ctx: &mut Context, cx: &mut PassCx<'_>, forest: &LoopForest) -> Change {
    let loops = warm_loops(ctx, cx, forest);
    let found: Vec<_> = loops.filter_map(|(lp, header)| Some((header, Sums::of(&ctx.func, forest, lp)?))).collect();
    if found.is_empty() {
        return Change::Nothing;
    }
    let uses = count_uses(&ctx.func);
    let mut unused = Vec::new();
    for (header, sums) in found {
        if let Some(sums) = sums.only_used_here(&ctx.func, &uses)
            && cx.fuel.take()
        {
            cx.retract(NAME, header);
            cx.fired(&ctx.func, &PASS, header, format!("constants that are added with others: {}", sums.saved()));
            unused.extend(sums.apply(&mut ctx.func));
        }
    }
    if unused.is_empty() {
        return Change::Nothing;
    }
    remove_unused(&mut ctx.func, unused);
    Change::Insts
}

/// (L5) in all loops that are not cold.
fn fold_offsets(ctx: &mut Context, cx: &mut PassCx<'_>, forest: &LoopForest) -> Change {
    let loops = warm_loops(ctx, cx, forest);
    let found = loops.map(|(lp, header)| (header, Offsets::of(&ctx.func, forest.own_blocks(lp))));
    let found: Vec<_> = found.filter(|(_, offsets)| offsets.len() > 0).collect();
    if found.is_empty() {
        return Change::Nothing;
    }
    let uses = count_uses(&ctx.func);
    let (mut unused, mut blocks) = (Vec::new(), Vec::new());
    for (header, offsets) in found {
        let offsets = offsets.only_unshared(&uses);
        if offsets.len() > 0 && cx.fuel.take() {
            cx.retract(NAME, header);
            cx.fired(&ctx.func, &PASS, header, format!("constants of indices that are offsets: {}", offsets.len()));
            blocks.extend(offsets.blocks(&ctx.func));
            unused.extend(offsets.fold(&mut ctx.func));
        }
    }
    if blocks.is_empty() {
        return Change::Nothing;
    }
    reuse(&mut ctx.func, &ctx.domtree, blocks);
    remove_unused(&mut ctx.func, unused);
    Change::Insts
}

fn describe(chains: &[Chain]) -> String {
    let starts = chains.iter().map(|chain| format!("{} in one operation of {}", chain.start, chain.links.len()));
    format!("an iteration waits for {}", starts.collect::<Vec<_>>().join(", "))
}

/// Operations of which any order gives the same.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Sums and differences.
    Sum,
    /// Operations of this opcode.
    Only(Opcode),
}

impl Kind {
    fn of(func: &Function, inst: Inst) -> Option<Self> {
        match func.dfg.insts[inst].opcode() {
            Opcode::Iadd | Opcode::Isub => Some(Self::Sum),
            Opcode::Bxor if fault!(MixedOperations) => Some(Self::Sum),
            opcode @ (Opcode::Imul
            | Opcode::Band
            | Opcode::Bor
            | Opcode::Bxor
            | Opcode::Smin
            | Opcode::Smax
            | Opcode::Umin
            | Opcode::Umax) => Some(Self::Only(opcode)),
            _ => None,
        }
    }
}

/// One operation of a chain.
#[derive(Clone, Copy)]
struct Link {
    inst: Inst,
    /// What it adds to what the chain has.
    operand: Value,
    /// Whether it subtracts it.
    subtracts: bool,
}

/// What makes the next value of a header parameter from it.
struct Chain {
    /// The parameter.
    start: Value,
    kind: Kind,
    /// Two or more, in the order in which they are done.
    links: Vec<Link>,
}

/// The header parameters of `lp` and their next values, if these are computed in the loop by an operation that has others of its kind before it.
fn carried(func: &Function, forest: &LoopForest, lp: Loop) -> Vec<(Value, Value)> {
    let data = forest.data(lp);
    let [back_edge] = data.back_edges[..] else { return Vec::new() };
    let params = func.dfg.block_params(data.header).iter().copied();
    let may_be_chain = |&(param, next): &(Value, Value)| {
        let Some((root, kind)) = operation(func, (forest, lp), next) else { return false };
        let args = continued(func, root);
        let is_same = |&arg: &Value| operation(func, (forest, lp), arg).is_some_and(|(_, other)| other == kind);
        !args.contains(&param) && args.iter().any(is_same)
    };
    let next = |arg| match arg {
        BlockArg::Value(next) => Some(next),
        _ => None,
    };
    let pairs = params.zip(back_edge.args(func)).filter_map(|(param, arg)| Some((param, next(arg)?)));
    pairs.filter(may_be_chain).collect()
}

/// The instruction in `lp`, but not in an inner loop, that computes `value`, if it can be part of a chain.
fn operation(func: &Function, (forest, lp): (&LoopForest, Loop), value: Value) -> Option<(Inst, Kind)> {
    let inst = func.dfg.value_def(value).inst()?;
    let kind = Kind::of(func, inst)?;
    let is_here = |block: Block| forest.innermost(block) == Some(lp);
    func.layout.inst_block(inst).is_some_and(is_here).then_some((inst, kind))
}

/// The operands of an operation that can be the value of the chain: of a difference, only the minuend.
fn continued(func: &Function, inst: Inst) -> &[Value] {
    let args = func.dfg.inst_args(inst);
    if func.dfg.insts[inst].opcode() == Opcode::Isub { &args[..1] } else { args }
}

/// The chains that make next values of parameters.
fn prove(
    func: &Function,
    place: (&LoopForest, Loop),
    carried: &[(Value, Value)],
    uses: &SecondaryMap<Value, u32>,
) -> Result<Vec<Chain>, Decline> {
    let mut chains = Vec::new();
    let mut seen = Vec::new();
    for &(start, next) in carried {
        // Two parameters with one next value are two chains with one end.
        if uses[start] == 1
            && !seen.contains(&next)
            && let Some(chain) = Chain::find(func, place, (start, next), uses)
        {
            seen.push(next);
            chains.push(chain);
        }
    }
    if chains.is_empty() { Err(Decline::UsedBetween(carried[0].0)) } else { Ok(chains) }
}

impl Chain {
    /// The chain from `start` to `next`, looked for backwards. The values between have one use each, so all that is looked at is a tree, and no
    /// other chain has any of it.
    fn find(
        func: &Function,
        place: (&LoopForest, Loop),
        (start, next): (Value, Value),
        uses: &SecondaryMap<Value, u32>,
    ) -> Option<Self> {
        let (root, kind) = operation(func, place, next)?;
        // For each operation that was found, the one that uses it.
        let mut users = FxHashMap::<Inst, Option<Inst>>::from_iter([(root, None)]);
        let mut open = vec![root];
        while let Some(inst) = open.pop() {
            for &arg in continued(func, inst) {
                if arg == start {
                    return Some(Self { start, kind, links: links(func, &users, (start, inst)) });
                }
                let inner = operation(func, place, arg).filter(|&(_, other)| other == kind && uses[arg] == 1);
                if let Some((inner, _)) = inner {
                    users.insert(inner, Some(inst));
                    open.push(inner);
                }
            }
        }
        None
    }

    /// Cycles from the one end to the other.
    fn latency(&self, func: &Function) -> usize {
        self.links.len() * latency(self.kind, func.dfg.value_type(self.start))
    }

    /// Puts the operands together first.
    fn apply(&self, func: &mut Function) {
        let [first, rest @ ..] = &self.links[..] else { return };
        let [.., last] = rest else { return };
        let asserted = is_marked(func);
        let mut all = first.operand;
        for link in rest {
            all = self.combine(func, link.inst, [all, link.operand], link.subtracts == first.subtracts);
            let combined = func.dfg.value_def(all).unwrap_inst();
            locate_at_load(func, combined);
        }
        let counted = asserted.then(|| repeat_before(func, last.inst, last.inst));
        let before = func.layout.next_inst(last.inst).expect("a block ends in a branch");
        let result = func.dfg.first_result(last.inst);
        match self.kind {
            Kind::Sum if first.subtracts && !fault!(SubtractionAdded) => {
                _ = func.replace(last.inst).isub(self.start, all)
            }
            Kind::Sum => _ = func.replace(last.inst).iadd(self.start, all),
            Kind::Only(_) => func.dfg.inst_args_mut(last.inst).copy_from_slice(&[self.start, all]),
        }
        match counted {
            Some(counted) => assert_equal(func, before, Claim::SameResult, [counted, result]),
            None => self.links[..self.links.len() - 1].iter().for_each(|link| {
                func.layout.remove_inst(link.inst);
            }),
        }
    }

    /// Combines two operands before the instruction `before`.
    fn combine(&self, func: &mut Function, before: Inst, operands @ [a, b]: [Value; 2], adds: bool) -> Value {
        match self.kind {
            Kind::Sum if adds => at(func, before).ins().iadd(a, b),
            Kind::Sum => at(func, before).ins().isub(a, b),
            Kind::Only(_) => {
                let combined = repeat_before(func, before, before);
                let inst = func.dfg.value_def(combined).unwrap_inst();
                func.dfg.inst_args_mut(inst).copy_from_slice(&operands);
                combined
            }
        }
    }
}

/// The links of the chain that `start` enters at `inst`.
fn links(func: &Function, users: &FxHashMap<Inst, Option<Inst>>, (start, inst): (Value, Inst)) -> Vec<Link> {
    let (mut links, mut value, mut next) = (Vec::new(), start, Some(inst));
    while let Some(inst) = next {
        let args = func.dfg.inst_args(inst);
        let operand = if args[0] == value { args[1] } else { args[0] };
        links.push(Link { inst, operand, subtracts: func.dfg.insts[inst].opcode() == Opcode::Isub });
        value = func.dfg.first_result(inst);
        next = users[&inst];
    }
    links
}

/// Cycles that an operation takes, on x86-64 processors of the last ten years.
fn latency(kind: Kind, ty: Type) -> usize {
    match kind {
        Kind::Only(Opcode::Imul) if ty.is_vector() => 4,
        Kind::Only(Opcode::Imul) => 3,
        Kind::Only(Opcode::Smin | Opcode::Smax | Opcode::Umin | Opcode::Umax) if !ty.is_vector() => 2,
        _ if ty == types::I128 => 2,
        _ => 1,
    }
}

/// The chains that an iteration of the loop waits for.
fn judge(
    ctx: &Context,
    cx: &PassCx<'_>,
    (forest, lp): (&LoopForest, Loop),
    mut chains: Vec<Chain>,
) -> Result<Vec<Chain>, Decline> {
    let func = &ctx.func;
    if cx.options.ignore_cost {
        return Ok(chains);
    }
    if func.is_effectively_cold(forest.data(lp).header) {
        return Err(Decline::ColdLoop);
    }
    let longest = chains.iter().map(|chain| chain.latency(func)).max().unwrap_or(0);
    let started = starts(func, (forest, lp), cx.options);
    chains.retain(|chain| chain.latency(func) > started);
    if chains.is_empty() {
        return Err(Decline::NotWaitedFor { cycles: longest, started });
    }
    let mut pressure = Pressure::of(func, forest, lp, cx.isa, &cx.use_counts);
    chains.retain(|chain| pressure.take(func.dfg.value_type(chain.start)));
    if chains.is_empty() { Err(Decline::NoRegister) } else { Ok(chains) }
}

/// Cycles in which the processor starts the instructions of an iteration: several in each, but one multiplication.
fn starts(func: &Function, (forest, lp): (&LoopForest, Loop), options: &Options) -> usize {
    let blocks = forest.blocks(lp).iter().filter(|&&block| !func.layout.is_cold(block));
    let (mut insts, mut products) = (0, 0);
    for inst in blocks.flat_map(|&block| func.layout.block_insts(block)) {
        let opcode = func.dfg.insts[inst].opcode();
        insts += usize::from(counts_as_code(func, inst));
        products += usize::from(opcode == Opcode::Imul);
    }
    products.max(insts / options.reassociate_insts_per_cycle.max(1))
}

refusals! {
    /// Why no reduction of a loop is reassociated.
    enum Decline {
        /// (L1) No carried value is computed by several operations of one kind.
        NothingCombined => "nothing-combined",
            "no value is carried from one iteration to the next by several operations whose order can be changed";
        /// (L2) An intermediate result is used elsewhere.
        UsedBetween(value: Value) => "used-between",
            "{value}, or what it is before its next value, is used by something else than the next operation",
            help "use such a value after the loop only";
        /// (P1) The loop does not wait for it.
        NotWaitedFor { cycles: usize, started: usize } => "not-waited-for",
            "the operations take {cycles} cycles, and starting the instructions of an iteration takes {started}";
        /// (P2) There is no register left.
        NoRegister => "no-register", "no register is free for what would be put together first";
    }
    shared { ColdLoop, Withheld }
}
