//! What is known of each function: its loops, what was said of them, and what became of them in machine code.

use super::emitted::{self, Emitted};
use super::json::FunctionRecord;
use super::origin::{self, Origins};
use super::{Printer, Shown};
use crate::error::guard;
use crate::input::{Input, Lines, cannot_compile, plain_name};
use anyhow::{Result, anyhow};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Block, Function};
use cranelift_codegen::isa::TargetIsa;
use loopopt::analysis::cfg::loops::{Loop, LoopForest};
use loopopt::analysis::inst::num_insts;
use loopopt::{LoopOptimizer, Options, Remark, Report};
use std::collections::{HashMap, HashSet};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};

/// The most instructions of a function whose machine code is looked at. 20,000: they take a second, and Cranelift's register allocator takes time
/// that grows with the square of the size of functions without branches in their loops.
pub(super) const MAX_LOWERED: usize = 20_000;

/// The functions that a thread compiles before what is said of them is printed. 16: nobody waits long for the first ones.
const FUNCTIONS_AT_A_TIME: usize = 16;

/// What is looked at of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// What is said of its loops.
    Remarks,
    /// And what becomes of them in machine code, which is that of this host.
    MachineCode,
}

/// Functions of a file, and the machine that they are compiled for.
pub(super) struct Unit<'a> {
    pub(super) file: &'a str,
    pub(super) lines: &'a Lines<'a>,
    pub(super) functions: Vec<&'a Function>,
    pub(super) isa: &'a dyn TargetIsa,
}

impl<'a> Unit<'a> {
    /// The functions of these names.
    pub(super) fn of(input: &'a Input, names: &[String], lines: &'a Lines<'a>, isa: &'a dyn TargetIsa) -> Self {
        let names: HashSet<&String> = names.iter().collect();
        let functions = input.program.functions().iter().filter(|function| names.contains(&plain_name(function)));
        Self { file: &input.name, lines, functions: functions.collect(), isa }
    }

    /// What is said of them, with all refusals.
    pub(super) fn records(&self, how: (&Options, Depth), shown: Shown<'_>) -> Result<Vec<FunctionRecord>> {
        let mut records = Vec::new();
        let record = |name: &str, lines: &Lines<'_>, explained: &Explained| {
            Ok(Printer { shown, name, lines, colours: false, explained }.record())
        };
        self.each_function(how, record, |record| {
            records.push(record);
            Ok(())
        })?;
        Ok(records)
    }

    /// Compiles them, several at a time, and takes what is made of each in their order.
    pub(super) fn each_function<T: Send>(
        &self,
        (options, depth): (&Options, Depth),
        make: impl Fn(&str, &Lines<'_>, &Explained) -> Result<T> + Sync,
        mut take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let one = |function: &&Function| {
            let name = plain_name(function);
            let is_known = |entity: &str| self.lines.of(&name, entity).is_some();
            let explained = guard(|| Explained::new(function, self.isa, (options, depth), &is_known))
                .map_err(|error| cannot_compile(&format!("{}: %{name}", self.file), &error))?;
            make(&name, self.lines, &explained)
        };
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        for group in self.functions.chunks(threads * FUNCTIONS_AT_A_TIME) {
            let size = group.len().div_ceil(threads);
            let made: Vec<T> = thread::scope(|scope| {
                let one = &one;
                let spawn = group
                    .chunks(size)
                    .map(|part| scope.spawn(move || part.iter().map(one).collect::<Result<Vec<T>>>()));
                let parts: Vec<_> = spawn.collect();
                let join = |part: ScopedJoinHandle<'_, Result<Vec<T>>>| {
                    part.join().unwrap_or_else(|panic| resume_unwind(panic))
                };
                let made = parts.into_iter().map(join).collect::<Result<Vec<_>>>();
                made.map(|parts| parts.into_iter().flatten().collect())
            })?;
            made.into_iter().try_for_each(&mut take)?;
        }
        Ok(())
    }
}

/// What is said of a loop.
pub(super) struct Said {
    pub(super) remark: Remark,
    /// How often: of a loop and its copies the same can be said.
    pub(super) times: usize,
}

/// A function with its loops as they were, and what became of them.
pub(super) struct Explained {
    pub(super) before: LoopForest,
    /// The block with the function's arguments.
    pub(super) entry: Option<Block>,
    pub(super) report: Report,
    /// For each loop, and for what is of none, the remarks.
    remarks: HashMap<Option<Loop>, Vec<Said>>,
    /// For each loop, the loops of machine code that it was and that it has become.
    pub(super) emitted: HashMap<Loop, [Vec<Emitted>; 2]>,
    /// Whether machine code was looked at.
    pub(super) is_lowered: bool,
    /// Accesses to the stack frame in innermost loops, without and with loopopt.
    pub(super) stack_accesses: [usize; 2],
}

impl Explained {
    /// Compiles the function. `is_known` says which blocks and values the file has.
    fn new(
        function: &Function,
        isa: &dyn TargetIsa,
        (options, depth): (&Options, Depth),
        is_known: &dyn Fn(&str) -> bool,
    ) -> Result<Self> {
        let plane = &mut ControlPlane::default();
        let mut ctx = Context::for_function(function.clone());
        ctx.optimize(isa, plane).map_err(|error| anyhow!("{}: {error}", function.name))?;
        let before = LoopForest::new(&ctx.func, &ctx.cfg, &ctx.domtree);
        let is_lowered = depth == Depth::MachineCode && num_insts(&ctx.func) <= MAX_LOWERED;
        // Copies of an instruction keep its source location, and nothing depends on it.
        emitted::number_blocks(&mut ctx.func);
        let emit = |ctx: &mut Context| match is_lowered {
            true => emitted::innermost(ctx, &before, isa),
            false => Ok(Vec::new()),
        };
        let emitted_before = emit(&mut ctx)?;
        origin::label(&mut ctx.func, |value| is_known(&value.to_string()));
        let report = LoopOptimizer::new(options.clone())
            .run(&mut ctx, isa, plane)
            .map_err(|error| anyhow!("{}: loopopt fails: {error}", function.name))?;
        let origins = Origins::new(&ctx.func, is_known);
        let remarks = report.remarks.iter().map(|remark| origins.renamed(remark)).collect();
        ctx.func.dfg.values_labels = None;
        let emitted = [emitted_before, emit(&mut ctx)?];
        let stack_accesses = emitted.each_ref().map(|all| all.iter().map(|lp| lp.stack_accesses).sum());
        let entry = ctx.func.layout.entry_block();
        let mut explained = Self {
            before,
            entry,
            report,
            is_lowered,
            stack_accesses,
            remarks: HashMap::new(),
            emitted: HashMap::new(),
        };
        explained.assign(remarks, emitted);
        Ok(explained)
    }

    /// Finds the loop that each remark and each loop of machine code belongs to.
    fn assign(&mut self, remarks: Vec<Remark>, emitted: [Vec<Emitted>; 2]) {
        let mut places = HashMap::new();
        for remark in remarks {
            let is_cycle = self.before.irreducible().contains(&remark.header);
            let owner = if is_cycle { None } else { self.before.innermost(remark.header) };
            let known = self.remarks.entry(owner).or_default();
            let place =
                *places.entry((owner, remark.pass, remark.fired(), remark.message.clone())).or_insert(known.len());
            match known.get_mut(place) {
                Some(said) => said.times += 1,
                None => known.push(Said { remark, times: 1 }),
            }
        }
        for (when, loops) in emitted.into_iter().enumerate() {
            for lp in loops {
                if let Some(origin) = lp.origin {
                    self.emitted.entry(origin).or_default()[when].push(lp);
                }
            }
        }
    }

    /// The remarks of a loop, or of none.
    pub(super) fn remarks(&self, lp: Option<Loop>) -> impl Iterator<Item = &Said> {
        self.remarks.get(&lp).into_iter().flatten()
    }

    /// How many iterations at a time the fast loop of `lp` does, if that is one number. `partial_unroll` says it first.
    pub(super) fn unrolled(&self, lp: Loop) -> Option<usize> {
        let is_unrolled = |said: &&Said| said.remark.pass == "partial_unroll" && said.remark.fired();
        let mut fired = self.remarks(Some(lp)).filter(is_unrolled);
        let Said { remark, times } = fired.next()?;
        let number = remark.message.split(' ').next()?.parse().ok();
        number.filter(|_| *times == 1 && fired.next().is_none())
    }
}
