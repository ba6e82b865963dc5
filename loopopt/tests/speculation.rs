//! What a processor may touch that runs ahead of branches: with consolidated guards no more than with the guards of the program.
//!
//! The optimized function is run as a processor would that mispredicts: each branch takes either edge, as random bits have it, and no check
//! ends it. So a test before a fast loop is passed although it fails, the loop continues after its end, and branches in it are taken that are not.
//! Of each access it is asked whether its address is one of the memory or a null pointer, and it is not made.

use anyhow::{Result, ensure};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AliasRegionData, Function, Inst, InstBuilder, InstructionData, Opcode, StackSlot, StackSlotData, StackSlotKind,
    TrapCode, Value, types,
};
use loopopt::fault::{self, Fault};
use loopopt::oracle::{Compiled, Outcome, Program, Settings};
use loopopt::{Embedder, LoopOptimizer, Options, SpectreGuards};
use std::sync::Arc;

/// The trap of an access outside.
const OUTSIDE: u8 = 99;
/// The trap that ends a run: it was long enough.
const ENOUGH: u8 = 98;
/// Branches of a run.
const BRANCHES: i64 = 4000;
/// Runs of each program.
const RUNS: u64 = 40;

#[derive(Debug)]
struct Guarding(SpectreGuards);

impl Embedder for Guarding {
    fn is_checked(&self, region: &AliasRegionData, code: TrapCode) -> bool {
        region.description == "heap" && code == TrapCode::HEAP_OUT_OF_BOUNDS
    }

    fn spectre_guards(&self) -> SpectreGuards {
        self.0
    }
}

/// Three neighbours in each iteration, as far as the second argument says, in a memory of a constant length.
const STENCIL: &str = "function %f(i64, i64) -> i64 {
    region0 = 0 \"heap\"
block0(v0: i64, v1: i64):
    v2 = iconst.i64 0
    v3 = iconst.i64 8
    v4 = iconst.i64 4088
    jump block1(v3, v2)
block1(v5: i64, v6: i64):
    v7 = icmp ult v5, v1
    brif v7, block2, block3
block2:
    v8 = isub v5, v3
    v9 = icmp ugt v8, v4
    v10 = iadd v0, v8
    v11 = select_spectre_guard v9, v2, v10
    v12 = load.i64 region0 v11
    v13 = icmp ugt v5, v4
    v14 = iadd v0, v5
    v15 = select_spectre_guard v13, v2, v14
    v16 = load.i64 region0 v15
    v17 = iadd v5, v3
    v18 = icmp ugt v17, v4
    v19 = iadd v0, v17
    v20 = select_spectre_guard v18, v2, v19
    v21 = load.i64 region0 v20
    v22 = iadd v12, v16
    v23 = iadd v22, v21
    v24 = iadd v6, v23
    jump block1(v17, v24)
block3:
    return v6
}";

/// A row of bytes that is doubled where it is odd, from the end down, in a memory whose length is the second argument.
const DOWNWARD: &str = "function %f(i64, i64) -> i64 {
    region0 = 0 \"heap\"
block0(v0: i64, v1: i64):
    v2 = iconst.i64 0
    v3 = iconst.i64 1
    jump block1(v1)
block1(v4: i64):
    v5 = icmp eq v4, v2
    brif v5, block4, block2
block2:
    v6 = isub v4, v3
    v7 = icmp uge v6, v1
    v8 = iadd v0, v6
    v9 = select_spectre_guard v7, v2, v8
    v10 = uload8.i64 region0 v9
    v11 = band v10, v3
    brif v11, block3, block1(v6)
block3:
    v12 = iadd v10, v10
    istore8 region0 v12, v9
    jump block1(v6)
block4:
    return v4
}";

/// Rows of a table with a length of their own each, of 32-bit numbers.
const NEST: &str = "function %f(i64, i64) -> i64 {
    region0 = 0 \"heap\"
block0(v0: i64, v1: i64):
    v2 = iconst.i64 0
    v3 = iconst.i64 1
    v4 = iconst.i64 2
    v5 = iconst.i64 6
    v6 = iconst.i64 4092
    jump block1(v2, v2)
block1(v7: i64, v8: i64):
    v9 = icmp ult v7, v1
    brif v9, block2(v2, v8), block4
block2(v10: i64, v11: i64):
    v12 = ishl v7, v5
    v13 = ishl v10, v4
    v14 = iadd v12, v13
    v15 = icmp ugt v14, v6
    v16 = iadd v0, v14
    v17 = select_spectre_guard v15, v2, v16
    v18 = uload32.i64 region0 v17
    v19 = iadd v11, v18
    v20 = iadd v10, v3
    v21 = icmp ult v20, v7
    brif v21, block2(v20, v19), block3
block3:
    v22 = iadd v7, v3
    jump block1(v22, v19)
block4:
    return v8
}";

/// One of two bytes, far from each other: which one is chosen by an invariant number, and so is what the guard asks.
const CHOSEN: &str = "function %f(i64, i64) -> i64 {
block0(v0: i64, v1: i64):
    v2 = iconst.i64 0
    v3 = iconst.i64 1
    v4 = iconst.i64 8
    v5 = iconst.i64 1000000
    v6 = band v1, v4
    v7 = icmp eq v6, v2
    v8 = uextend.i64 v7
    v9 = imul v8, v5
    jump block1(v2, v2)
block1(v10: i64, v11: i64):
    v12 = iadd v10, v9
    v13 = iadd v10, v5
    v14 = icmp uge v10, v1
    v15 = icmp uge v13, v1
    v16 = select v6, v14, v15
    v17 = iadd v0, v12
    v18 = select_spectre_guard v16, v2, v17
    v19 = uload8.i64 v18
    v20 = iadd v11, v19
    v21 = iadd v10, v3
    v22 = icmp ult v21, v1
    brif v22, block1(v21, v20), block2
block2:
    return v20
}";

/// A condition, and what is the opposite of it by another instruction: the guard asks of a place made of the one, and gives one made of the other.
const OPPOSITE: &str = "function %f(i64, i64) -> i64 {
    region0 = 0 \"heap\"
block0(v0: i64, v1: i64):
    v2 = iconst.i64 0
    v3 = iconst.i64 3
    v4 = iconst.i64 1000000
    v5 = iconst.i64 1
    jump block1(v2, v2)
block1(v10: i64, v11: i64):
    v12 = urem v10, v3
    v13 = icmp eq v12, v2
    v14 = uextend.i64 v13
    v15 = isub v5, v14
    v16 = imul v15, v4
    v17 = iadd v16, v10
    v18 = icmp uge v17, v1
    v19 = icmp ne v12, v2
    brif v19, block2, block3(v11)
block2:
    v20 = uextend.i64 v19
    v21 = imul v20, v4
    v22 = iadd v21, v10
    v23 = iadd v0, v22
    v24 = select_spectre_guard v18, v2, v23
    v25 = uload8.i64 region0 v24
    v26 = iadd v11, v25
    jump block3(v26)
block3(v27: i64):
    v28 = iadd v10, v5
    v29 = icmp ult v28, v1
    brif v29, block1(v28, v27), block4
block4:
    return v27
}";

/// A counter and a pointer that advances with it: after the loop, the guard asks of the one and gives the other.
const IN_LOCKSTEP: &str = "function %f(i64, i64) -> i64 {
    region0 = 0 \"heap\"
    region1 = 1 \"log\"
block0(v0: i64, v1: i64):
    v2 = iconst.i64 0
    v3 = iconst.i64 1
    v4 = iconst.i64 64
    v6 = iconst.i64 10
    v8 = band v1, v4
    jump block1(v8, v0)
block1(v10: i64, v11: i64):
    v12 = icmp ult v10, v6
    brif v12, block2, block3
block2:
    store notrap region1 v10, v2
    v13 = iadd v10, v3
    v14 = iadd v11, v3
    jump block1(v13, v14)
block3:
    v15 = icmp uge v10, v1
    v16 = select_spectre_guard v15, v2, v11
    v17 = uload8.i64 region0 v16
    return v17
}";

/// The programs, and the length of the memory if that is not the second argument.
const PROGRAMS: [(&str, Option<i64>); 3] = [(STENCIL, Some(4096)), (DOWNWARD, None), (NEST, Some(4096))];

#[test]
fn consolidated_guards_stay_within_the_memory() -> Result<()> {
    for (text, length) in PROGRAMS {
        let fired = all_runs(text, length, SpectreGuards::Consolidate)?;
        ensure!(fired, "no guard was consolidated in {text}");
    }
    Ok(())
}

#[test]
fn the_guards_of_the_program_do() -> Result<()> {
    let programs = PROGRAMS.into_iter().chain([CHOSEN, OPPOSITE, IN_LOCKSTEP].map(|text| (text, None)));
    programs.into_iter().try_for_each(|(text, length)| all_runs(text, length, SpectreGuards::Keep).map(drop))
}

#[test]
fn a_guard_that_asks_of_one_address_and_gives_another_is_seen() {
    for text in [OPPOSITE, IN_LOCKSTEP] {
        let result = fault::with(Fault::OnlyConditionsAsked, || all_runs(text, None, SpectreGuards::Keep));
        assert!(result.is_err(), "nothing leaves the memory in {text}");
    }
}

#[test]
fn without_guards_a_wrong_path_leaves_the_memory() {
    for (text, length) in PROGRAMS {
        assert!(all_runs(text, length, SpectreGuards::Drop).is_err(), "nothing leaves the memory in {text}");
    }
}

/// Makes all runs of a program. Says whether guards were consolidated, fails if an access is outside.
fn all_runs(text: &str, length: Option<i64>, guards: SpectreGuards) -> Result<bool> {
    let program = Program::parse(text)?;
    let mut options = Options::default();
    options.embedder = Arc::new(Guarding(guards));
    // For the small choices of `CHOSEN`.
    options.ignore_cost = text == CHOSEN;
    let mut loops = LoopOptimizer::new(options);
    let mut fired = false;
    for seed in 0..RUNS {
        let mut compiled = Compiled::with_rewrite(&program, Settings::default(), &mut |context, isa| {
            let report = loops.run(context, isa, &mut Default::default())?;
            fired |= report.remarks.iter().any(|remark| remark.pass == "consolidate_guards");
            Wild::new(&mut context.func, length, seed).run();
            context.flowgraph();
            Ok(report)
        })?;
        for length in [0, 1, 8, 100, 4096] {
            let call = program.parse_call(&format!("f(mem, {length})"))?;
            let outcome = compiled.observe(&call, &[0; 64])?.outcome;
            let is_outside = matches!(outcome, Outcome::Trapped { code, .. } if code == TrapCode::unwrap_user(OUTSIDE));
            ensure!(!is_outside, "an access is outside with a memory of {length} bytes, run {seed}");
        }
    }
    Ok(fired)
}

/// A function that becomes one whose branches go anywhere.
struct Wild<'a> {
    func: &'a mut Function,
    /// Random bits, and how many branches are still to come.
    state: StackSlot,
    base: Value,
    length: Option<i64>,
    seed: u64,
    /// The bits that decide: the more, the more often a branch takes the edge that it prefers.
    bias: i64,
}

/// A number that depends on the run and on the branch.
fn seed_of(seed: u64, branch: Inst) -> u64 {
    (seed << 32 | u64::from(branch.as_u32())).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
}

impl<'a> Wild<'a> {
    fn new(func: &'a mut Function, length: Option<i64>, seed: u64) -> Self {
        let state = func.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 16, 3));
        let entry = func.layout.entry_block().expect("a function has blocks");
        let base = func.dfg.block_params(entry)[0];
        let bias = [1 << 9, 3 << 9, 0x3ff << 9, 0xffff << 9][seed as usize % 4];
        Self { func, state, base, length, seed, bias }
    }

    fn run(&mut self) {
        let insts: Vec<Inst> = self
            .func
            .layout
            .blocks()
            .flat_map(|block| self.func.layout.block_insts(block).collect::<Vec<_>>())
            .collect();
        for inst in insts {
            match self.func.dfg.insts[inst] {
                InstructionData::Brif { .. } => self.mispredict(inst),
                InstructionData::CondTrap { .. } => {
                    self.func.layout.remove_inst(inst);
                }
                InstructionData::Load { arg, offset, .. } | InstructionData::Store { args: [_, arg], offset, .. } => {
                    self.ask(inst, arg, offset.into());
                }
                _ => {}
            }
        }
        let entry = self.func.layout.entry_block().expect("a function has blocks");
        let mut pos = FuncCursor::new(self.func).at_first_insertion_point(entry);
        let bits = pos.ins().iconst(types::I64, (self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1).cast_signed());
        pos.ins().stack_store(types::I64, bits, self.state, 0);
        let count = pos.ins().iconst(types::I64, BRANCHES);
        pos.ins().stack_store(types::I64, count, self.state, 8);
    }

    /// Lets a branch go where the next random bit says.
    fn mispredict(&mut self, branch: Inst) {
        let state = self.state;
        let mut pos = FuncCursor::new(self.func).at_inst(branch);
        let count = pos.ins().stack_load(types::I64, types::I64, state, 8);
        pos.ins().trapz(count, TrapCode::unwrap_user(ENOUGH));
        let count = pos.ins().iadd_imm_s(count, -1);
        pos.ins().stack_store(types::I64, count, state, 8);
        let mut bits = pos.ins().stack_load(types::I64, types::I64, state, 0);
        // Marsaglia's xorshift.
        for (left, by) in [(true, 13), (false, 7), (true, 17)] {
            let moved = if left { pos.ins().ishl_imm_u(bits, by) } else { pos.ins().ushr_imm_u(bits, by) };
            bits = pos.ins().bxor(bits, moved);
        }
        pos.ins().stack_store(types::I64, bits, state, 0);
        // Most runs prefer one edge of each branch, so that loops go on for long.
        let drawn = pos.ins().band_imm_u(bits, self.bias);
        let cond = if (seed_of(self.seed, branch) & 1) == 0 { IntCC::NotEqual } else { IntCC::Equal };
        let drawn_cond = pos.ins().icmp_imm_u(cond, drawn, 0);
        self.func.dfg.inst_args_mut(branch)[0] = drawn_cond;
    }

    /// Asks in the place of an access whether it is within the memory, or at a null pointer.
    fn ask(&mut self, inst: Inst, address: Value, offset: i64) {
        let size = match self.func.dfg.insts[inst].opcode() {
            Opcode::Uload8 | Opcode::Istore8 => 1,
            Opcode::Uload32 => 4,
            Opcode::Load | Opcode::Store => 8,
            opcode => panic!("no program has {opcode}"),
        };
        let entry = self.func.layout.entry_block().expect("a function has blocks");
        let argument = self.func.dfg.block_params(entry)[1];
        let mut pos = FuncCursor::new(self.func).at_inst(inst);
        let address = pos.ins().iadd_imm_s(address, offset);
        let distance = pos.ins().isub(address, self.base);
        let end = pos.ins().iadd_imm_s(distance, size);
        let length = self.length.map_or(argument, |length| pos.ins().iconst(types::I64, length));
        let starts = pos.ins().icmp(IntCC::UnsignedLessThan, distance, length);
        let ends = pos.ins().icmp(IntCC::UnsignedLessThanOrEqual, end, length);
        let within = pos.ins().band(starts, ends);
        let null = pos.ins().icmp_imm_u(IntCC::UnsignedLessThan, address, 4096);
        let allowed = pos.ins().bor(within, null);
        pos.ins().trapz(allowed, TrapCode::unwrap_user(OUTSIDE));
        match self.func.dfg.inst_results(inst) {
            [] => {
                self.func.layout.remove_inst(inst);
            }
            &[result] => {
                let ty = self.func.dfg.value_type(result);
                self.func.replace(inst).iconst(ty, 3);
            }
            _ => unreachable!("an access has one result"),
        }
    }
}
