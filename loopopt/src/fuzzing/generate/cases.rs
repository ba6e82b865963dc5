//! Calls of a program: arguments and memory images.
//!
//! Beside calls with any arguments there are calls at edges. Of loops that are known as data ([`Counting`]) it is known when they end and
//! by what: of many arguments those are taken for which something else ends them, and of their neighbours those for which that
//! is not the same any more. In all other programs, arguments are the numbers of the program, a little more or less, and sums and
//! differences of them.

use super::choices::{Choices, wrap};
use super::effects::main_name;
use super::features::{Feature, Shape};
use super::interface::Interface;
use super::memory::{IMAGE, POINTERS, STAGE};
use super::ranges::{Counting, Ending};
use crate::ir::all_insts;
use crate::oracle::{Arg, Call, Case};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{Function, InstructionData, Opcode, Type, types};

/// How many arguments are tried to find some that end a loop in different ways.
const TRIES: usize = 40;
/// The most calls at edges of one program.
const MOST: usize = 8;

/// A few calls of the program's first function.
pub(super) fn draw(random: &mut Choices<'_, '_>, interface: &Interface) -> Vec<Case> {
    (0..2 + random.below(3)).map(|_| case(random, interface)).collect()
}

fn case(random: &mut Choices<'_, '_>, interface: &Interface) -> Case {
    let has_memory = interface.features.has(Feature::Memory);
    let mut args = Vec::new();
    let last = interface.functions[0].params.len() - 1;
    for (index, param) in interface.functions[0].params.iter().enumerate() {
        args.push(match index {
            0 if has_memory => Arg::Memory(0),
            _ if index == last && interface.features.has(Feature::Chosen) => address_or_null(random),
            _ if index == last && interface.features.ends_in_address() => Arg::Memory(4 * random.below(16)),
            _ => Arg::Value(value(random, param.value_type)),
        });
    }
    let memory = if has_memory { image(random, interface) } else { Vec::new() };
    Case { call: Call { function: main_name(), args }, memory }
}

/// The last argument of programs with chosen addresses.
fn address_or_null(random: &mut Choices<'_, '_>) -> Arg {
    if random.chance(50) { Arg::Memory(0) } else { Arg::Value(DataValue::I64(0)) }
}

fn value(random: &mut Choices<'_, '_>, ty: Type) -> DataValue {
    if ty.is_vector() {
        let (low, high) = (random.integer(64) as u64, random.word());
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&low.to_le_bytes());
        bytes[8..].copy_from_slice(&high.to_le_bytes());
        return DataValue::V128(bytes);
    }
    match ty {
        types::F32 => DataValue::F32(Ieee32::with_float(random.pick(&[0.0, 1.0, -2.5, 1e20, f32::NAN]))),
        types::F64 => DataValue::F64(Ieee64::with_float(random.pick(&[0.0, 1.0, -2.5, 1e200, f64::NAN]))),
        _ => DataValue::from_integer(random.integer(ty.bits()), ty).expect("integer types up to i128 are known"),
    }
}

/// Zeros, or small numbers, or anything.
fn image(random: &mut Choices<'_, '_>, interface: &Interface) -> Vec<u8> {
    let mask = random.pick(&[0, 0xff, 3, 0xff]);
    let mut state = random.word() | 1;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8 & mask
    };
    let features = interface.features;
    let pointers = if features.has(Feature::Pointers) { POINTERS } else { 0 };
    let behind = if features.scene().is_some() { STAGE } else { pointers };
    (0..IMAGE + behind).map(|_| next()).collect()
}

/// Calls at edges.
pub(super) struct Edges<'c> {
    pub(super) cases: Vec<Case>,
    /// Whether there are arguments for which all loops end.
    pub(super) end: bool,
    pub(super) shape: Option<Shape>,
    countings: &'c [Counting],
}

impl Edges<'_> {
    /// Whether all loops end soon in this call, unless there is none in which they do.
    pub(super) fn ends(&self, case: &Case) -> bool {
        !self.end || endings(self.countings, &numbers_of(case)).is_some()
    }
}

/// Calls of a function for which something just holds, and others for which it just fails.
pub(super) fn edges<'c>(
    random: &mut Choices<'_, '_>,
    interface: &Interface,
    func: &Function,
    countings: &'c [Counting],
) -> Edges<'c> {
    let mut pool = constants(func);
    countings.iter().for_each(|counting| pool.extend(counting.constants()));
    if countings.is_empty() {
        let cases = (0..2).map(|_| edge_case(random, interface, &pool)).collect();
        return Edges { cases, end: true, shape: None, countings };
    }
    let mut found = Vec::<(Case, Vec<Ending>)>::new();
    for _ in 0..TRIES {
        let case = edge_case(random, interface, &pool);
        if let Some(endings) = endings(countings, &numbers_of(&case))
            && !found.iter().any(|(_, known)| is_alike(known, &endings))
        {
            found.push((case, endings));
        }
    }
    // Late endings first: what goes wrong needs some iterations.
    found.sort_by_key(|(_, endings)| std::cmp::Reverse(endings.iter().map(|(iteration, _)| *iteration).max()));
    found.truncate(MOST * 2 / 3);
    let mut pairs = Vec::new();
    for (case, known) in &found {
        let other = neighbours(case).into_iter().find(|other| {
            let endings = endings(countings, &numbers_of(other));
            endings.is_some_and(|endings| !(endings.iter().map(|end| end.1)).eq(known.iter().map(|end| end.1)))
        });
        pairs.extend(other);
    }
    pairs.truncate(MOST - found.len());
    let shape = (!pairs.is_empty()).then_some(Shape::EdgeCall);
    let end = !found.is_empty();
    let cases = found.into_iter().map(|(case, _)| case).chain(pairs).collect();
    Edges { cases, end, shape, countings }
}

/// How all loops end, if they do.
fn endings(countings: &[Counting], numbers: &[i128]) -> Option<Vec<Ending>> {
    countings.iter().map(|counting| counting.ending(numbers)).collect()
}

/// Whether the same tests end the loops, and in the same of the first iterations.
fn is_alike(a: &[Ending], b: &[Ending]) -> bool {
    a.iter().zip(b).all(|(a, b)| (a.0.min(3), a.1) == (b.0.min(3), b.1))
}

/// The arguments as numbers; 0 for those that are none.
fn numbers_of(case: &Case) -> Vec<i128> {
    case.call.args.iter().map(number_of).map(Option::unwrap_or_default).collect()
}

fn number_of(arg: &Arg) -> Option<i128> {
    match arg {
        Arg::Value(DataValue::I8(value)) => Some((*value).into()),
        Arg::Value(DataValue::I16(value)) => Some((*value).into()),
        Arg::Value(DataValue::I32(value)) => Some((*value).into()),
        Arg::Value(DataValue::I64(value)) => Some((*value).into()),
        _ => None,
    }
}

fn in_type(number: i128, ty: Type) -> DataValue {
    DataValue::from_integer(wrap(number, ty.bits()), ty).expect("integer types up to i128 are known")
}

/// Calls that are the same but for one number, which is one more or one less.
fn neighbours(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    for (index, arg) in case.call.args.iter().enumerate() {
        let (Some(number), Arg::Value(value)) = (number_of(arg), arg) else { continue };
        for other in [number + 1, number - 1] {
            let mut case = case.clone();
            case.call.args[index] = Arg::Value(in_type(other, value.ty()));
            all.push(case);
        }
    }
    all
}

/// Arguments that have something to do with the numbers of a program, or with each other.
fn edge_case(random: &mut Choices<'_, '_>, interface: &Interface, pool: &[i128]) -> Case {
    let mut case = case(random, interface);
    let mut last = 0_i128;
    let count = case.call.args.len();
    for (index, arg) in case.call.args.iter_mut().enumerate() {
        let Arg::Value(value) = arg else { continue };
        if index + 1 == count && interface.features.ends_in_address() {
            continue;
        }
        let ty = value.ty();
        if !ty.is_int() || ty.bits() > 64 {
            continue;
        }
        let some = if pool.is_empty() { 0 } else { random.pick(pool) };
        let near = i128::from(random.pick(&[0_i8, 1, -1, 2, -2, 4]));
        let number = match random.below(10) {
            0..=2 => i128::from(random.pick(&[0_u8, 1, 2, 3, 5, 8, 10, 16, 50, 100, 127, 200])),
            3 | 4 => last + near + random.below(12) as i128 - 6,
            5 => last.wrapping_add(random.pick(&[100, 16, 64, -100, 40])),
            6 => some.wrapping_add(near),
            7 => near.wrapping_sub(some),
            8 => last.wrapping_sub(some).wrapping_add(near),
            _ => random.integer(ty.bits()),
        };
        *arg = Arg::Value(in_type(number, ty));
        last = wrap(number, ty.bits());
    }
    case
}

/// All integer constants of a function.
fn constants(func: &Function) -> Vec<i128> {
    let insts = all_insts(func);
    let mut all: Vec<i128> = (insts.filter_map(|inst| match func.dfg.insts[inst] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => Some(imm.bits().into()),
        _ => None,
    }))
    .collect();
    all.sort_unstable();
    all.dedup();
    all
}
