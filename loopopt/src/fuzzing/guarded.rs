//! Programs whose accesses are guarded: each of those to a region is at what a Spectre guard gives, as Wasmtime's front end lets them for memories
//! without guard pages.
//!
//! The memory is what an argument points to. It has a constant length, which may be less than the program uses, so that some accesses trap, or one
//! that is an argument of the calls too, or there are two memories with one of these each, by the region of an access, that begin at one place.

use super::generate::{Shape, TestCase, guarded_code};
use crate::analysis::memory::alias::Access;
use crate::analysis::scev::linear_expr::Term;
use crate::edit::materialize::offsets::set_address;
use crate::oracle::Arg;
use crate::{Embedder, SpectreGuards};
use anyhow::Result;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{AliasRegionData, Function, Inst, InstBuilder, TrapCode, Value, types};

/// An embedder who knows of the guards, and says what may become of them.
#[derive(Debug)]
pub(super) struct Guarding(pub(super) SpectreGuards);

impl Embedder for Guarding {
    fn is_checked(&self, _region: &AliasRegionData, code: TrapCode) -> bool {
        code == guarded_code()
    }

    fn spectre_guards(&self) -> SpectreGuards {
        self.0
    }
}

/// Lengths that the memory may have: all of the image, all but some elements, half of it.
const LENGTHS: [i64; 4] = [512, 512, 480, 256];

/// Bytes of most memory images. Where there are more, memories have them too.
const USUAL: usize = 512;

/// Guards the accesses of a program. How is up to `seed`.
pub(super) fn guard_program(case: &TestCase) -> Result<TestCase> {
    let mut functions = case.program.functions().to_vec();
    let (mut cases, mut shapes) = (case.cases.clone(), case.shapes.clone());
    for (number, func) in functions.iter_mut().enumerate() {
        // Only of calls from outside is it known that they pass a length.
        let length = if number == 0 { length_param(func, case) } else { None };
        let more = case.cases.first().map_or(0, |case| case.memory.len().saturating_sub(USUAL)) as i64;
        let twins = case.shapes.contains(&Shape::TwoMemories);
        let mut guards = Guards { length: None, more, may_be_null: None, twins, seed: case.seed };
        let Some(entry) = func.layout.entry_block() else { continue };
        if number == 0 && last_is_address(case) {
            guards.may_be_null = func.dfg.block_params(entry).last().copied();
        }
        if let Some(index) = length {
            guards.length = Some(func.dfg.block_params(entry)[index]);
            for called in &mut cases {
                if bound(&mut called.call.args[index], case) {
                    shapes.insert(Shape::LongMemory);
                }
            }
        }
        guards.guard_all(func);
    }
    Ok(TestCase { program: case.program.with_functions(functions)?, cases, shapes, ..case.clone() })
}

/// Whether the last argument is an address, or null.
fn last_is_address(case: &TestCase) -> bool {
    case.shapes.contains(&Shape::ChosenLoad) || case.shapes.contains(&Shape::Stencil)
}

/// The index of the parameter that is the length of the memory, if one is to be: the last number of 64 bits.
fn length_param(func: &Function, case: &TestCase) -> Option<usize> {
    let share = match case.stays_in_memory {
        _ if case.shapes.contains(&Shape::TwoMemories) => 1,
        true => 3,
        false => 12,
    };
    let entry = func.layout.entry_block().filter(|_| case.seed.is_multiple_of(share))?;
    if last_is_address(case) {
        return None;
    }
    let params = func.dfg.block_params(entry);
    let index = params.iter().rposition(|&param| func.dfg.value_type(param) == types::I64)?;
    (index > 0).then_some(index)
}

/// Makes a length of an argument: not much more than the memory has, or, where no access leaves it, the largest there are. Says whether it is one
/// of those.
fn bound(arg: &mut Arg, case: &TestCase) -> bool {
    let Arg::Value(DataValue::I64(number)) = arg else { return false };
    let is_long = case.stays_in_memory && *number & 3 == 0;
    *number = match case.stays_in_memory {
        true if is_long => !(*number >> 2 & 0xf),
        true => *number >> 2 & 0x3f,
        false => *number & 0x3ff,
    };
    is_long
}

/// How the accesses of a function are guarded.
struct Guards {
    length: Option<Value>,
    /// Bytes that the memory has beyond the usual ones.
    more: i64,
    /// A parameter that is no memory.
    may_be_null: Option<Value>,
    /// Whether there are two memories for sure.
    twins: bool,
    seed: u64,
}

impl Guards {
    /// Guards each access of `func` to a region.
    fn guard_all(&self, func: &mut Function) {
        let Some(entry) = func.layout.entry_block() else { return };
        let params: Vec<Value> = func.dfg.block_params(entry).to_vec();
        let is_base = |param: &Value| func.dfg.value_type(*param) == types::I64 && Some(*param) != self.may_be_null;
        let wide: Vec<_> = params.into_iter().filter(is_base).collect();
        let blocks: Vec<_> = func.layout.blocks().collect();
        let insts: Vec<_> =
            blocks.into_iter().flat_map(|block| func.layout.block_insts(block).collect::<Vec<_>>()).collect();
        // One guard for one place in a block: a load and a store there may become one instruction.
        let mut guards = FxHashMap::default();
        for inst in insts {
            let Some(access) = Access::of(func, inst).filter(|access| access.flags.alias_region().is_some()) else {
                continue;
            };
            // An access whose address is a parameter alone may lie beyond the length of each of the two memories.
            if self.twins && access.address.terms().len() == 1 {
                continue;
            }
            let is_term = |param: &&Value| access.address.terms().contains(&(Term::Value(**param), 1));
            if let Some(&base) = wide.iter().find(is_term) {
                // An odd region is often a memory of its own, whose length is a constant, though it has the same base.
                let is_other = access.flags.alias_region().is_some_and(|region| region.as_u32() % 2 == 1);
                let is_disjoint = is_other && (self.twins || (self.seed >> 40).is_multiple_of(2));
                let place = (func.layout.inst_block(inst), access.address.clone(), access.size, is_disjoint);
                let length = self.length.filter(|&length| length != base && !is_disjoint);
                let guard = *guards.entry(place).or_insert_with(|| self.guard(func, &access, base, length));
                move_to(func, inst, guard);
            }
        }
    }

    fn guard(&self, func: &mut Function, access: &Access, base: Value, length: Option<Value>) -> Value {
        let Access { inst, operand, size, .. } = *access;
        let offset = func.dfg.insts[inst].load_store_offset().unwrap_or(0);
        let mut pos = FuncCursor::new(func).at_inst(inst);
        let address = pos.ins().iadd_imm_s(operand, i64::from(offset));
        let index = pos.ins().isub(address, base);
        let (cond, limit) = match length {
            // The last access may end beyond the length.
            Some(length) => (IntCC::UnsignedGreaterThanOrEqual, length),
            None => {
                let length = LENGTHS[(self.seed >> 8) as usize % LENGTHS.len()] + self.more;
                (IntCC::UnsignedGreaterThan, pos.ins().iconst(types::I64, length - i64::from(size)))
            }
        };
        let zero = pos.ins().iconst(types::I64, 0);
        match (self.seed >> 16) % 3 {
            0 => {
                let inside = pos.ins().icmp(cond.complement(), index, limit);
                pos.ins().select_spectre_guard(inside, address, zero)
            }
            1 => {
                let outside = pos.ins().icmp(cond.swap_args(), limit, index);
                pos.ins().select_spectre_guard(outside, zero, address)
            }
            _ => {
                let outside = pos.ins().icmp(cond, index, limit);
                pos.ins().select_spectre_guard(outside, zero, address)
            }
        }
    }
}

/// Lets an access be at `address`, where it traps if that is null.
fn move_to(func: &mut Function, inst: Inst, address: Value) {
    let Some(flags) = func.dfg.insts[inst].memflags() else { return };
    let flags = func.dfg.mem_flags[flags].with_trap_code(Some(guarded_code()));
    let Ok(flags) = func.dfg.mem_flags.insert(flags) else { return };
    *func.dfg.insts[inst].memflags_mut().expect("an access has flags") = flags;
    set_address(func, inst, (address, Offset32::new(0)));
}
