//! What has to hold for instructions that cannot be compared by what a program does: polls of what other threads write, and addresses of
//! exception handlers. Each is marked by a source location, which copies keep, and looked for in the output.

use super::generate::TestCase;
use super::generate::{Shape, polled_region};
use super::statistics::Statistics;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::Effects;
use crate::ir::all_insts;
use crate::{Embedder, LoopOptimizer, Options, Writers};
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    AbiParam, AliasRegionData, Block, ExtFuncData, ExternalName, Function, Inst, InstBuilder, InstructionData, Opcode,
    Signature, SourceLoc, types,
};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One region is written by other threads.
#[derive(Debug)]
struct Shared;

impl Embedder for Shared {
    fn writers(&self, region: &AliasRegionData) -> Writers {
        if region.user_id == polled_region() { Writers::Others } else { Writers::Any }
    }

    /// A poll that may come late need not be in each loop.
    fn poll_latency(&self) -> u32 {
        0
    }
}

fn options() -> Options {
    Options { select_max_insts_per_call: 0, verify_each_pass: true, embedder: Arc::new(Shared), ..Options::default() }
}

/// Every loop that looks at something in each iteration that other threads may write does so in the output: each loop there
/// that holds a store or a branch of its own body holds such a load as well. A loop with code of an outer loop in it stands for the outer loop: the inner
/// one has been unrolled there, and its iterations may leave before they look.
pub(super) fn check_polls(case: &TestCase, isa: &OwnedTargetIsa, statistics: &mut Statistics) -> Result<()> {
    for func in case.program.functions() {
        let mut context = Context::for_function(func.clone());
        context.optimize(&**isa, &mut ControlPlane::default()).map_err(|error| anyhow!("{error:?}"))?;
        let polling = mark_polls(&mut context);
        if polling.is_empty() {
            continue;
        }
        statistics.note(Shape::PollingLoop);
        run(&mut context, isa, options())?;
        let forest = LoopForest::new(&context.func, &context.cfg, &context.domtree);
        for lp in forest.loops() {
            // Pure code may have come from an enclosing loop.
            let own = marks(&context, forest.own_blocks(lp), |effects| effects.writes || effects.terminates);
            let all = marks(&context, forest.blocks(lp).iter().copied(), |effects| effects.reads);
            let outermost = own.iter().map(|mark| mark - mark % 2).min();
            let lost = outermost.filter(|mark| polling.contains(mark) && !all.contains(&(mark + 1)));
            let header = forest.data(lp).header;
            ensure!(lost.is_none(), "the loop at {header} polls no more:\n{}", context.func.display());
        }
    }
    Ok(())
}

/// Marks the instructions of each loop with an even number, a smaller one than those of the inner loops, and its polls with the next one. Gives the
/// numbers of the loops that poll.
fn mark_polls(context: &mut Context) -> BTreeSet<u32> {
    context.compute_cfg();
    context.compute_domtree();
    let forest = LoopForest::new(&context.func, &context.cfg, &context.domtree);
    let mut locations = BTreeMap::new();
    let mut polling = BTreeSet::new();
    for (lp, number) in forest.loops().zip(1..) {
        let polls = polls_of(context, &forest, lp);
        let mark = 2 * number;
        // An inner cycle that can be entered at two blocks may become a loop of its own, which is not the one that polls.
        let is_irreducible = forest.irreducible_in(lp).is_some();
        if !polls.is_empty() && !is_irreducible {
            polling.insert(mark);
        }
        for inst in forest.own_blocks(lp).flat_map(|block| context.func.layout.block_insts(block)) {
            locations.insert(inst, mark + u32::from(polls.contains(&inst)));
        }
    }
    let insts = all_insts(&context.func);
    for inst in insts.collect::<Vec<_>>() {
        let location = locations.get(&inst).map_or_else(SourceLoc::default, |&mark| SourceLoc::new(mark));
        context.func.set_srcloc(inst, location);
    }
    polling
}

/// The loads of what others write that each iteration of a loop runs.
fn polls_of(context: &Context, forest: &LoopForest, lp: Loop) -> Vec<Inst> {
    let Context { func, domtree, .. } = context;
    let always = |block: &Block| forest.is_in_each_iteration(func, domtree, lp, *block);
    let blocks = forest.own_blocks(lp).filter(always);
    blocks
        .flat_map(|block| context.func.layout.block_insts(block))
        .filter(|&inst| {
            let InstructionData::Load { flags, .. } = context.func.dfg.insts[inst] else { return false };
            let region = context.func.dfg.mem_flags[flags].alias_region();
            region.is_some_and(|region| context.func.dfg.alias_regions[region].user_id == polled_region())
        })
        .collect()
}

/// The marks of all instructions in some blocks that have such effects.
fn marks(context: &Context, blocks: impl Iterator<Item = Block>, has: impl Fn(Effects) -> bool) -> BTreeSet<u32> {
    let insts = blocks.flat_map(|block| context.func.layout.block_insts(block));
    let insts = insts.filter(|&inst| has(Effects::of(&context.func, inst)));
    let locations = insts.map(|inst| context.func.srcloc(inst));
    locations.filter(|location| !location.is_default()).map(SourceLoc::bits).collect()
}

fn run(context: &mut Context, isa: &OwnedTargetIsa, options: Options) -> Result<()> {
    let report = LoopOptimizer::new(options).run(context, &**isa, &mut ControlPlane::default());
    report.map_err(|error| anyhow!("{error:?}")).context("loopopt fails")?;
    Ok(())
}

/// A `try_call` whose handler's address someone has taken is still the only one of its kind, in the block that is named.
pub(super) fn check_handlers(case: &TestCase, isa: &OwnedTargetIsa, statistics: &mut Statistics) -> Result<()> {
    for func in case.program.functions() {
        let mut func = func.clone();
        if take_addresses(&mut func, case.seed) == 0 {
            continue;
        }
        statistics.note(Shape::HandlerAddress);
        let mut context = Context::for_function(func);
        match context.optimize(&**isa, &mut ControlPlane::default()).map_err(|error| format!("{error:?}")) {
            Ok(()) => {}
            // Cranelift's own mid-end leaves the address of a handler whose block it removes (`docs/upstream.md`).
            Err(error) if error.contains("invalid block reference") => continue,
            Err(error) => bail!("{error}"),
        }
        let before = addresses(&context.func);
        run(&mut context, isa, options())?;
        let calls = try_calls(&context.func);
        for (address, block, index) in addresses(&context.func) {
            let place =
                format!("{} names {block}:\n{}", context.func.dfg.display_inst(address), context.func.display());
            let last = context.func.layout.is_block_inserted(block).then(|| context.func.layout.last_inst(block));
            let last = last.flatten().with_context(|| format!("there is no such block: {place}"))?;
            let location = context.func.srcloc(last);
            let named = before.iter().any(|&(_, _, known)| known == index) && calls.contains_key(&last);
            ensure!(named, "no such handler: {place}");
            let alike = calls.values().filter(|&&other| other == location).count();
            ensure!(alike == 1, "the call is there {alike} times: {place}");
        }
    }
    Ok(())
}

/// Takes addresses of handlers in blocks that are run before, and passes them to a function. Each call has a location of its own.
fn take_addresses(func: &mut Function, seed: u64) -> u32 {
    let blocks: Vec<Block> = func.layout.blocks().collect();
    let insts: Vec<Inst> = blocks.iter().flat_map(|&block| func.layout.block_insts(block)).collect();
    for (inst, number) in insts.into_iter().zip(1..) {
        func.set_srcloc(inst, SourceLoc::new(number));
    }
    let with_handlers: Vec<Block> = (blocks.iter().copied())
        .filter(|&block| {
            func.layout.last_inst(block).and_then(|last| handlers(func, last)).is_some_and(|count| count > 0)
        })
        .collect();
    if with_handlers.is_empty() {
        return 0;
    }
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.push(AbiParam::new(types::I64));
    let signature = func.import_signature(signature);
    let name = ExternalName::testcase("keep");
    let keep = func.import_function(ExtFuncData { name, signature, colocated: false, patchable: false });
    for (&block, number) in with_handlers.iter().zip(0..) {
        let at = if seed >> number & 1 == 0 { block } else { blocks[(seed >> 8) as usize % blocks.len()] };
        let mut pos = FuncCursor::new(func);
        pos.goto_first_insertion_point(at);
        let address = pos.ins().get_exception_handler_address(types::I64, block, 0);
        pos.ins().call(keep, &[address]);
    }
    with_handlers.len() as u32
}

fn handlers(func: &Function, inst: Inst) -> Option<usize> {
    match func.dfg.insts[inst] {
        InstructionData::TryCall { exception, .. } | InstructionData::TryCallIndirect { exception, .. } => {
            // All targets but the normal return.
            Some(func.dfg.exception_tables[exception].all_branches().len() - 1)
        }
        _ => None,
    }
}

/// All addresses of handlers, with the block and the handler that they name.
fn addresses(func: &Function) -> Vec<(Inst, Block, i64)> {
    let insts = all_insts(func);
    insts
        .filter_map(|inst| match func.dfg.insts[inst] {
            InstructionData::ExceptionHandlerAddress { opcode: Opcode::GetExceptionHandlerAddress, block, imm } => {
                Some((inst, block, imm.bits()))
            }
            _ => None,
        })
        .collect()
}

/// All calls with handlers, and their locations.
fn try_calls(func: &Function) -> BTreeMap<Inst, SourceLoc> {
    let insts = func.layout.blocks().filter_map(|block| func.layout.last_inst(block));
    insts.filter(|&inst| handlers(func, inst).is_some()).map(|inst| (inst, func.srcloc(inst))).collect()
}
