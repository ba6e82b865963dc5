//! Runs functions of integers, one instruction after the other: what an engine says of a loop is held to this.
//!
//! Written from CLIF's documentation, and shares nothing with the engines.

use super::meaning::{compare, low, with_sign};
use crate::analysis::cfg::edges::edges_from;
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, ValueDef};

/// A function made ready to be run often.
pub(super) struct Machine {
    params: Vec<usize>,
    blocks: Vec<Vec<Step>>,
    /// What each value is.
    values: Vec<u64>,
    passed: Vec<u64>,
}

/// One instruction.
struct Step {
    inst: Inst,
    opcode: Opcode,
    cond: Option<IntCC>,
    args: Vec<usize>,
    result: usize,
    /// The bits of the operands, and of the result.
    bits: (u32, u32),
    constant: u64,
    is_watched: bool,
    /// The target of each edge, its parameters, and what they become.
    edges: Vec<(usize, Vec<usize>, Vec<usize>)>,
}

/// Where a run is: before an instruction, and which edge that takes if it is a branch.
#[derive(Clone, Copy)]
pub(super) struct Now<'a> {
    pub(super) inst: Inst,
    pub(super) slot: Option<usize>,
    /// All values, earlier ones if they have not been computed again.
    pub(super) values: &'a [u64],
}

impl Machine {
    /// For a function whose instructions are those that [`super::shapes`] writes. Calls back where `watched` says so.
    pub(super) fn new(func: &Function, watched: impl Fn(Inst) -> bool) -> Self {
        let entry = func.layout.entry_block().expect("a function has a block");
        let numbers = |block| func.dfg.block_params(block).iter().map(|value| value.index()).collect::<Vec<_>>();
        let mut blocks: Vec<Vec<Step>> = (0..func.dfg.num_blocks()).map(|_| Vec::new()).collect();
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                let mut step = Step::new(func, inst, watched(inst));
                if opcode_ends(step.opcode) {
                    step.edges = edges_from(func, block)
                        .map(|edge| {
                            let passed = edge.args(func).map(|arg| arg.as_value().expect("a value").index()).collect();
                            (edge.target(func).index(), numbers(edge.target(func)), passed)
                        })
                        .collect();
                }
                blocks[block.index()].push(step);
            }
        }
        Self { params: numbers(entry), blocks, values: vec![0; func.dfg.num_values()], passed: Vec::new() }
    }

    /// Runs the function, at most so many instructions of it, until it ends, traps, or `visit` says that it is enough.
    pub(super) fn run(&mut self, params: &[u64], most: usize, mut visit: impl FnMut(Now<'_>) -> bool) {
        let Self { blocks, values, passed, .. } = self;
        for (&number, &param) in self.params.iter().zip(params) {
            values[number] = param;
        }
        let mut left = most;
        let mut block = 0;
        'blocks: loop {
            for step in &blocks[block] {
                let slot = step.slot(values);
                if step.is_watched && !visit(Now { inst: step.inst, slot, values }) {
                    return;
                }
                left -= 1;
                if left == 0 {
                    return;
                }
                if let Some(slot) = slot {
                    let (target, params, args) = &step.edges[slot];
                    passed.clear();
                    passed.extend(args.iter().map(|&arg| values[arg]));
                    for (&param, &number) in params.iter().zip(passed.iter()) {
                        values[param] = number;
                    }
                    block = *target;
                    continue 'blocks;
                }
                match step.opcode {
                    Opcode::Return => return,
                    Opcode::Trapz if values[step.args[0]] == 0 => return,
                    Opcode::Trapnz if values[step.args[0]] != 0 => return,
                    Opcode::Trapz | Opcode::Trapnz => {}
                    _ => values[step.result] = step.compute(values),
                }
            }
        }
    }
}

fn opcode_ends(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Jump | Opcode::Brif)
}

impl Step {
    fn new(func: &Function, inst: Inst, is_watched: bool) -> Self {
        let data = func.dfg.insts[inst];
        let args = func.dfg.inst_args(inst);
        let result = func.dfg.inst_results(inst).first().copied();
        let bits_of = |value| func.dfg.value_type(value).bits();
        let cond = if let InstructionData::IntCompare { cond, .. } = data { Some(cond) } else { None };
        let constant = if let InstructionData::UnaryImm { imm, .. } = data { imm.bits() as u64 } else { 0 };
        debug_assert!(args.iter().all(|&arg| !matches!(func.dfg.value_def(arg), ValueDef::Union(..))));
        Self {
            inst,
            opcode: data.opcode(),
            cond,
            args: args.iter().map(|arg| arg.index()).collect(),
            result: result.map_or(0, EntityRef::index),
            bits: (args.first().map_or(0, |&arg| bits_of(arg)), result.map_or(0, bits_of)),
            constant,
            is_watched,
            edges: Vec::new(),
        }
    }

    /// Which edge a branch takes.
    fn slot(&self, values: &[u64]) -> Option<usize> {
        match self.opcode {
            Opcode::Jump => Some(0),
            Opcode::Brif => Some(usize::from(values[self.args[0]] == 0)),
            _ => None,
        }
    }

    fn compute(&self, values: &[u64]) -> u64 {
        let arg = |index: usize| values[self.args[index]];
        let (from, to) = self.bits;
        let signed = |index: usize| with_sign(arg(index), from);
        let by = || arg(1) & u64::from(from - 1);
        let result = match self.opcode {
            Opcode::Iconst => self.constant,
            Opcode::Uextend | Opcode::Ireduce => arg(0),
            Opcode::Sextend => signed(0) as u64,
            Opcode::Iadd => arg(0).wrapping_add(arg(1)),
            Opcode::Isub => arg(0).wrapping_sub(arg(1)),
            Opcode::Imul => arg(0).wrapping_mul(arg(1)),
            Opcode::Ishl => arg(0) << by(),
            Opcode::Ushr => arg(0) >> by(),
            Opcode::Sshr => (signed(0) >> by()) as u64,
            Opcode::Band => arg(0) & arg(1),
            Opcode::Bor => arg(0) | arg(1),
            Opcode::Bxor => arg(0) ^ arg(1),
            Opcode::Umin => arg(0).min(arg(1)),
            Opcode::Umax => arg(0).max(arg(1)),
            Opcode::Smin => signed(0).min(signed(1)) as u64,
            Opcode::Smax => signed(0).max(signed(1)) as u64,
            Opcode::Select => arg(if arg(0) != 0 { 1 } else { 2 }),
            // What is divided by zero traps; no shape divides by anything but constants.
            Opcode::Udiv => arg(0) / arg(1),
            Opcode::Urem => arg(0) % arg(1),
            Opcode::Icmp => u64::from(compare(self.cond.expect("of a comparison"), [arg(0), arg(1)], from)),
            opcode => unreachable!("no shape has {opcode}"),
        };
        low(result, to)
    }
}
