//! Programs whose accesses are guarded: each of those to a region is at what a Spectre guard gives, as Wasmtime's front end lets them for memories
//! without guard pages.
//!
//! The memory is what an argument points to. It has a constant length, which may be less than the program uses, so that some accesses trap, or one
//! that is an argument of the calls too, or there are two memories with one of these each, by the region of an access, that begin at one place.

use super::generate::{TestCase, guarded_code};
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

/// Guards the accesses of a program. How is up to `seed`.
pub(super) fn guard_program(case: &TestCase) -> Result<TestCase> {
    let mut functions = case.program.functions().to_vec();
    let mut cases = case.cases.clone();
    for (number, func) in functions.iter_mut().enumerate() {
        // Only of calls from outside is it known that they pass a length.
        let length = if number == 0 { length_param(func, case.seed) } else { None };
        if let (Some(index), Some(entry)) = (length, func.layout.entry_block()) {
            let param = func.dfg.block_params(entry)[index];
            cases.iter_mut().for_each(|case| bound(&mut case.call.args[index]));
            guard_all(func, Some(param), case.seed);
        } else {
            guard_all(func, None, case.seed);
        }
    }
    Ok(TestCase { program: case.program.with_functions(functions)?, cases, ..case.clone() })
}

/// The index of the parameter that is the length of the memory, if one is to be: the last number of 64 bits.
fn length_param(func: &Function, seed: u64) -> Option<usize> {
    let entry = func.layout.entry_block().filter(|_| seed.is_multiple_of(12))?;
    let params = func.dfg.block_params(entry);
    let index = params.iter().rposition(|&param| func.dfg.value_type(param) == types::I64)?;
    (index > 0).then_some(index)
}

/// Makes a length of an argument: not much more than the memory has.
fn bound(arg: &mut Arg) {
    if let Arg::Value(DataValue::I64(number)) = arg {
        *number &= 0x3ff;
    }
}

/// Guards each access of `func` to a region.
fn guard_all(func: &mut Function, length: Option<Value>, seed: u64) {
    let Some(entry) = func.layout.entry_block() else { return };
    let params: Vec<Value> = func.dfg.block_params(entry).to_vec();
    let wide: Vec<_> = params.into_iter().filter(|&param| func.dfg.value_type(param) == types::I64).collect();
    let blocks: Vec<_> = func.layout.blocks().collect();
    let insts: Vec<_> =
        blocks.into_iter().flat_map(|block| func.layout.block_insts(block).collect::<Vec<_>>()).collect();
    // One guard for one place in a block: a load and a store there may become one instruction.
    let mut guards = FxHashMap::default();
    for inst in insts {
        let Some(access) = Access::of(func, inst).filter(|access| access.flags.alias_region().is_some()) else {
            continue;
        };
        let is_term = |param: &&Value| access.address.terms().contains(&(Term::Value(**param), 1));
        if let Some(&base) = wide.iter().find(is_term) {
            let place = (func.layout.inst_block(inst), access.address.clone(), access.size);
            // Half of the memories that have a length of their own begin where one of a constant length does, which is another memory.
            let is_other = access.flags.alias_region().is_some_and(|region| region.as_u32() % 2 == 1);
            let length = length.filter(|&length| length != base && !(is_other && (seed >> 40).is_multiple_of(2)));
            let guard = *guards.entry(place).or_insert_with(|| guard(func, &access, base, length, seed));
            move_to(func, inst, guard);
        }
    }
}

fn guard(func: &mut Function, access: &Access, base: Value, length: Option<Value>, seed: u64) -> Value {
    let Access { inst, operand, size, .. } = *access;
    let offset = func.dfg.insts[inst].load_store_offset().unwrap_or(0);
    let mut pos = FuncCursor::new(func).at_inst(inst);
    let address = pos.ins().iadd_imm_s(operand, i64::from(offset));
    let index = pos.ins().isub(address, base);
    let (cond, limit) = match length {
        // The last access may end behind the length.
        Some(length) => (IntCC::UnsignedGreaterThanOrEqual, length),
        None => {
            let last = LENGTHS[(seed >> 8) as usize % LENGTHS.len()] - i64::from(size);
            (IntCC::UnsignedGreaterThan, pos.ins().iconst(types::I64, last))
        }
    };
    let zero = pos.ins().iconst(types::I64, 0);
    match (seed >> 16) % 3 {
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

/// Lets an access be at `address`, where it traps if that is null.
fn move_to(func: &mut Function, inst: Inst, address: Value) {
    let Some(flags) = func.dfg.insts[inst].memflags() else { return };
    let flags = func.dfg.mem_flags[flags].with_trap_code(Some(guarded_code()));
    let Ok(flags) = func.dfg.mem_flags.insert(flags) else { return };
    *func.dfg.insts[inst].memflags_mut().expect("an access has flags") = flags;
    set_address(func, inst, (address, Offset32::new(0)));
}
