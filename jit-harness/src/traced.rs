//! A function before and after loopopt, with each line of CLIF and of machine code traced to the instruction that it is from.
//!
//! The instructions of the function before loopopt are numbered, and the number is the source location. Copies of an instruction keep it,
//! and so does machine code.

use crate::listing;
use crate::lowered::Lowered;
use anyhow::{Result, anyhow};
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, SourceLoc};
use cranelift_codegen::isa::TargetIsa;
use loopopt::analysis::cfg::loops::{Loop, LoopForest};
use loopopt::{LoopOptimizer, Options};
use std::collections::{BTreeMap, BTreeSet};

/// A line of CLIF or of machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The number of the instruction before loopopt that it is from, if there is one.
    pub from: Option<u32>,
    /// What it holds.
    pub text: String,
    /// Whether it is in a cold block of CLIF.
    pub is_cold: bool,
}

/// A function at one time.
pub struct State {
    /// The function.
    pub func: Function,
    /// Its loops.
    pub forest: LoopForest,
    /// The loop that most of its own instructions are from, of the function before, by its place among the loops there.
    pub origins: BTreeMap<Loop, usize>,
    /// Its lines.
    pub clif: Vec<Line>,
    /// The lines of its machine code.
    pub code: Vec<Line>,
    /// The size of its machine code.
    pub bytes: usize,
    /// Blocks of loops with a check that is in the loop before and not after.
    pub relieved: BTreeSet<Block>,
}

/// A function before and after loopopt.
pub struct Traced(pub [State; 2]);

impl Traced {
    /// Compiles a function without and with loopopt.
    pub fn new(function: &Function, isa: &dyn TargetIsa, options: &Options) -> Result<Self> {
        let plane = &mut ControlPlane::default();
        let mut ctx = Context::for_function(function.clone());
        ctx.optimize(isa, plane).map_err(|error| anyhow!("{}: {error}", function.name))?;
        number_insts(&mut ctx.func);
        let mut before = State::new(&ctx, isa)?;
        LoopOptimizer::new(options.clone())
            .run(&mut ctx, isa, plane)
            .map_err(|error| anyhow!("{}: loopopt fails: {error}", function.name))?;
        let mut after = State::new(&ctx, isa)?;
        let kept: BTreeSet<u32> = after.checks().into_keys().collect();
        before.relieved =
            before.checks().into_iter().filter(|(check, _)| !kept.contains(check)).map(|(_, at)| at).collect();
        after.relieved = after.made_of(&before);
        let loops = before.loops_of_insts();
        for state in [&mut before, &mut after] {
            state.origins = state.forest.loops().filter_map(|lp| Some((lp, state.origin(lp, &loops)?))).collect();
        }
        Ok(Self([before, after]))
    }
}

impl State {
    fn new(ctx: &Context, isa: &dyn TargetIsa) -> Result<Self> {
        let func = ctx.func.clone();
        let cfg = ControlFlowGraph::with_function(&func);
        let forest = LoopForest::new(&func, &cfg, &DominatorTree::with_function(&func, &cfg));
        let lowered = Lowered::new(ctx, isa)?;
        let line = |line: listing::Line| Line {
            from: line.offset.and_then(|offset| lowered.place_of(offset)),
            text: line.text,
            is_cold: false,
        };
        let code = listing::lines(&lowered.code).into_iter().map(line).collect();
        let mut clif: Vec<Line> = func.display().to_string().lines().filter_map(clif_line).collect();
        mark_cold(&mut clif);
        Ok(Self {
            func,
            forest,
            clif,
            code,
            bytes: lowered.code.len(),
            origins: BTreeMap::new(),
            relieved: BTreeSet::new(),
        })
    }

    /// The checks that are done in loops that are not cold, by their numbers, with the block that each is in.
    fn checks(&self) -> BTreeMap<u32, Block> {
        let returning = returning(&self.func);
        let blocks = self.func.layout.blocks().filter(|&block| self.is_hot(block));
        let insts = blocks.flat_map(|block| self.func.layout.block_insts(block).map(move |inst| (inst, block)));
        let checks = insts.filter(|&(inst, _)| is_check(&self.func, inst, &returning));
        checks.filter_map(|(inst, block)| Some((number(&self.func, inst)?, block))).collect()
    }

    /// Whether a block is in a loop, and not cold.
    pub fn is_hot(&self, block: Block) -> bool {
        self.forest.innermost(block).is_some() && !self.func.layout.is_cold(block)
    }

    /// For each instruction that is in a loop, by its number, the place of the loop among all.
    fn loops_of_insts(&self) -> BTreeMap<u32, usize> {
        let of_loop = |(place, lp)| self.numbers(lp).into_iter().map(move |number| (number, place)).collect::<Vec<_>>();
        self.forest.loops().enumerate().flat_map(of_loop).collect()
    }

    /// The loop that most of the instructions are from that are in this loop and in no inner one.
    fn origin(&self, lp: Loop, loops: &BTreeMap<u32, usize>) -> Option<usize> {
        let mut counts = BTreeMap::<usize, usize>::new();
        for place in self.numbers(lp).iter().filter_map(|number| loops.get(number)) {
            *counts.entry(*place).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(place, _)| place)
    }

    /// The numbers of the instructions of a loop, without those of the inner loops.
    fn numbers(&self, lp: Loop) -> Vec<u32> {
        let insts = self.forest.own_blocks(lp).flat_map(|block| self.func.layout.block_insts(block));
        insts.filter_map(|inst| number(&self.func, inst)).collect()
    }

    /// The blocks of loops with an instruction from a block that was relieved of a check.
    fn made_of(&self, before: &Self) -> BTreeSet<Block> {
        let of_block = |block: &Block| before.func.layout.block_insts(*block).collect::<Vec<Inst>>();
        let insts = before.relieved.iter().flat_map(of_block);
        let relieved: BTreeSet<u32> = insts.filter_map(|inst| number(&before.func, inst)).collect();
        let is_from = |inst| number(&self.func, inst).is_some_and(|number| relieved.contains(&number));
        let blocks = self.func.layout.blocks().filter(|&block| self.is_hot(block));
        blocks.filter(|&block| self.func.layout.block_insts(block).any(is_from)).collect()
    }
}

/// Gives each instruction a number as its source location. The first is 1.
fn number_insts(func: &mut Function) {
    let blocks: Vec<Block> = func.layout.blocks().collect();
    let insts: Vec<Inst> =
        blocks.iter().flat_map(|&block| func.layout.block_insts(block).collect::<Vec<_>>()).collect();
    for (number, inst) in (1..).zip(insts) {
        func.set_srcloc(inst, SourceLoc::new(number));
    }
}

fn number(func: &Function, inst: Inst) -> Option<u32> {
    let place = func.srcloc(inst);
    (!place.is_default()).then(|| place.bits())
}

/// The blocks from which a return can be reached. From the others, there are only traps.
fn returning(func: &Function) -> BTreeSet<Block> {
    let cfg = ControlFlowGraph::with_function(func);
    let returns = |block: &Block| {
        let last = func.layout.last_inst(*block);
        last.is_some_and(|inst| func.dfg.insts[inst].opcode().is_return())
    };
    let mut todo: Vec<Block> = func.layout.blocks().filter(returns).collect();
    let mut found = BTreeSet::new();
    while let Some(block) = todo.pop() {
        if found.insert(block) {
            todo.extend(cfg.pred_iter(block).map(|pred| pred.block));
        }
    }
    found
}

/// Whether an instruction traps if a condition does not hold, or branches to where there are only traps.
fn is_check(func: &Function, inst: Inst, returning: &BTreeSet<Block>) -> bool {
    let dfg = &func.dfg;
    match dfg.insts[inst].opcode() {
        Opcode::Trapz | Opcode::Trapnz => true,
        _ => {
            let targets = dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
            let returns =
                |target: &cranelift_codegen::ir::BlockCall| returning.contains(&target.block(&dfg.value_lists));
            targets.iter().any(returns) && !targets.iter().all(returns)
        }
    }
}

/// A line as Cranelift prints it, `@0007    v3 = iadd v1, v2`, without the constants after it that are operands.
fn clif_line(text: &str) -> Option<Line> {
    let (from, text) = without_place(text);
    let text = text.split("  ; ").next().unwrap_or_default();
    (!text.is_empty()).then(|| Line { from, text: indented(text), is_cold: false })
}

/// The lines of a block are cold if its first one, `block3(v1: i64) cold:`, says so.
fn mark_cold(clif: &mut [Line]) {
    let mut is_cold = false;
    for line in clif {
        if line.text.starts_with("block") {
            is_cold = line.text.ends_with(" cold:");
        }
        line.is_cold = is_cold;
    }
}

/// The source location at the start of a line of CLIF, and the rest of the line without white space around.
pub fn without_place(line: &str) -> (Option<u32>, &str) {
    let line = line.trim();
    let place = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
    let number = place.and_then(|(number, _)| u32::from_str_radix(number, 16).ok());
    (number, place.filter(|_| number.is_some()).map_or(line, |(_, rest)| rest.trim_start()))
}

/// A line of CLIF as far to the right as it is in files.
pub fn indented(line: &str) -> String {
    let is_margin = ["function ", "block", "}"].iter().any(|start| line.starts_with(start)) || line.is_empty();
    format!("{}{line}", if is_margin { "" } else { "    " })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target;

    /// A loop with a check that the loop's own test implies, and one that nothing implies.
    const CHECKED: &str = "function %f(i64, i64, i64) -> i64 {
block0(v0: i64, v1: i64, v2: i64):
    v3 = iconst.i64 0
    v12 = iconst.i64 8
    jump block1(v3, v3)
block1(v4: i64, v5: i64):
    v6 = icmp ult v4, v1
    brif v6, block2, block5
block2:
    v7 = icmp ult v4, v1
    v8 = iadd v0, v4
    v9 = load.i64 v8
    brif v7, block3, block6
block3:
    trapz v9, user2
    v10 = iadd v5, v9
    v11 = iadd v4, v12
    jump block1(v11, v10)
block5:
    return v5
block6:
    trap user1
}
";

    fn traced() -> Traced {
        let functions = cranelift_reader::parse_functions(CHECKED).expect("it is CLIF");
        let isa = target::host().expect("this is a host");
        Traced::new(&functions[0], &*isa, &Options::default()).expect("it compiles")
    }

    #[test]
    fn lines_have_no_source_locations_and_no_constants() {
        let line = clif_line("@001f                               v3 = iadd v1, v2  ; v2 = 8").expect("it has text");
        assert_eq!(line, Line { from: Some(31), text: "    v3 = iadd v1, v2".to_owned(), is_cold: false });
        let line = clif_line("                                block3(v1: i64):").expect("it has text");
        assert_eq!(line, Line { from: None, text: "block3(v1: i64):".to_owned(), is_cold: false });
        assert_eq!(clif_line("  "), None);
    }

    #[test]
    fn blocks_are_cold() {
        let lines = ["block1:", "  jump block2", "block2(v1: i8) cold:", "  jump block3", "block3:"];
        let mut lines: Vec<Line> = lines.into_iter().filter_map(clif_line).collect();
        mark_cold(&mut lines);
        assert_eq!(lines.iter().map(|line| line.is_cold).collect::<Vec<_>>(), [false, false, true, true, false]);
    }

    #[test]
    fn lines_are_from_the_instructions_before() {
        let Traced([before, after]) = traced();
        let numbers: Vec<u32> = before.clif.iter().filter_map(|line| line.from).collect();
        assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>());
        let opcode = |text: &str| text.contains("load.i64");
        let load = before.clif.iter().find(|line| opcode(&line.text)).expect("there is a load").from;
        assert!(after.clif.iter().any(|line| opcode(&line.text) && line.from == load));
        for state in [&before, &after] {
            assert!(state.origins.len() == state.forest.len() && state.origins.values().all(|&place| place == 0));
        }
        for state in [&before, &after] {
            assert!(state.code.iter().any(|line| line.from == load && line.text.contains("mov")), "{:?}", state.code);
        }
    }

    #[test]
    fn only_a_check_that_is_gone_is_gone() {
        let Traced([before, after]) = traced();
        let block = |number| Block::from_u32(number);
        assert!(before.checks().values().any(|&at| at == block(3)), "the trap that nothing implies is a check");
        assert_eq!(before.relieved, BTreeSet::from([block(2)]), "{}", before.func.display());
        assert!(!after.relieved.is_empty(), "{}", after.func.display());
    }
}
