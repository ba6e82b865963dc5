//! Instructions that compute: integers, floats, vectors, comparisons, constants.

use super::features::{Feature, Shape};
use super::fill::Fill;
use super::induction::condition;
use super::interface::{value_type, vector_type};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Opcode, Type, Value, types};

/// On all integers.
const BINARY: [Opcode; 9] = [
    Opcode::Iadd,
    Opcode::Isub,
    Opcode::Imul,
    Opcode::Band,
    Opcode::Bor,
    Opcode::Bxor,
    Opcode::Ishl,
    Opcode::Ushr,
    Opcode::Sshr,
];
/// On integers of up to 64 bits.
const NARROW_BINARY: [Opcode; 8] =
    [Opcode::Smin, Opcode::Smax, Opcode::Umin, Opcode::Umax, Opcode::Rotl, Opcode::Rotr, Opcode::Iadd, Opcode::Isub];
const UNARY: [Opcode; 7] =
    [Opcode::Bnot, Opcode::Ineg, Opcode::Popcnt, Opcode::Clz, Opcode::Ctz, Opcode::Bitrev, Opcode::Iabs];
const WITH_OVERFLOW: [Opcode; 5] =
    [Opcode::UaddOverflow, Opcode::SaddOverflow, Opcode::UsubOverflow, Opcode::SsubOverflow, Opcode::UmulOverflow];
const FLOAT_BINARY: [Opcode; 6] = [Opcode::Fadd, Opcode::Fsub, Opcode::Fmul, Opcode::Fdiv, Opcode::Fmin, Opcode::Fmax];
const FLOAT_UNARY: [Opcode; 7] =
    [Opcode::Fneg, Opcode::Fabs, Opcode::Sqrt, Opcode::Ceil, Opcode::Floor, Opcode::Trunc, Opcode::Nearest];
const VECTOR_BINARY: [Opcode; 5] = [Opcode::Iadd, Opcode::Isub, Opcode::Band, Opcode::Bor, Opcode::Bxor];
/// Not on lanes of 64 bits.
const SMALL_LANES: [Opcode; 5] = [Opcode::Smin, Opcode::Umax, Opcode::Smax, Opcode::Umin, Opcode::Imul];
const VECTOR_SHIFTS: [Opcode; 3] = [Opcode::Ishl, Opcode::Ushr, Opcode::Sshr];

impl Fill<'_, '_, '_> {
    /// One instruction, or the few that belong together.
    pub(super) fn instruction(&mut self) {
        let features = self.features();
        if features.has(Feature::Disguises) && self.random.chance(35) {
            return self.touch();
        }
        let least = if features.has(Feature::Sparse) && self.random.chance(50) { 21 } else { 0 };
        match least + self.random.below(50 - least) {
            0 => {
                let ty = value_type(self.random, features);
                let value = self.constant(ty);
                self.keep_value(value);
            }
            1 | 2 => self.select(),
            3 => {
                self.bit();
            }
            4 | 5 => self.convert(),
            6..=8 if features.has(Feature::Floats) => self.float(),
            9 | 10 if features.has(Feature::Vectors) => self.vector(),
            11 => self.multiple(),
            12 if features.has(Feature::Aliases) => self.alias(),
            13..=20 => self.access(),
            21..=23 => self.effect(),
            24..=28 if features.has(Feature::Cells) => self.cell(),
            29..=32 if features.has(Feature::Locals) => self.local(),
            33..=36 if self.has_series() => self.series(),
            37 | 38 if self.known.depth() > 0 && features.has(Feature::Late) => self.late(),
            39 if self.is_invariant && features.has(Feature::Memory) => self.chain(),
            39..=41 if self.is_invariant => self.effect(),
            _ => self.integer(),
        }
    }

    /// Computes something for after the loop.
    fn late(&mut self) {
        let loaded = if self.random.chance(40) { self.load_some_cell() } else { None };
        let mut value = match loaded {
            Some(value) => value,
            None => {
                let ty = value_type(self.random, self.features());
                self.any(ty)
            }
        };
        let ty = self.pos.func.dfg.value_type(value);
        if ty.is_int() && ty.bits() <= 64 && self.features().has(Feature::Partial) && self.random.chance(60) {
            let by = self.any(ty);
            let by = if self.random.chance(50) { self.pos.ins().bor_imm_u(by, 1) } else { by };
            value = self.pos.ins().udiv(value, by);
        }
        for _ in 0..1 + self.random.below(3) {
            let other = self.any(ty);
            let opcode = if ty.is_float() {
                self.random.pick(&FLOAT_BINARY)
            } else if ty.is_vector() {
                self.random.pick(&VECTOR_BINARY)
            } else {
                self.random.pick(&BINARY)
            };
            let (inst, dfg) = self.pos.ins().Binary(opcode, ty, value, other);
            value = dfg.first_result(inst);
        }
        self.known.keep_for_later(value);
    }

    fn select(&mut self) {
        let condition = self.bit();
        let ty = value_type(self.random, self.features());
        // Cranelift makes minima and maxima of comparisons and selections, and cannot lower those of `i128`.
        let ty = if ty == types::I128 { types::I64 } else { ty };
        let (a, b) = (self.any(ty), self.any(ty));
        let value = self.pos.ins().select(condition, a, b);
        self.keep_value(value);
    }

    /// Any constant.
    pub(super) fn constant(&mut self, ty: Type) -> Value {
        if ty.is_vector() {
            let lane = ty.lane_type();
            let value = self.constant(lane);
            return self.pos.ins().splat(ty, value);
        }
        match ty {
            types::F32 => {
                let value = self.random.pick(&[0.0, 1.0, -1.0, 0.5, 3.0, f32::NAN, f32::INFINITY, -0.0, 1e10]);
                self.pos.ins().f32const(Ieee32::with_float(value))
            }
            types::F64 => {
                let value = self.random.pick(&[0.0, 1.0, -1.0, 0.5, 3.0, f64::NAN, f64::INFINITY, -0.0, 1e300]);
                self.pos.ins().f64const(Ieee64::with_float(value))
            }
            types::I128 => {
                let (low, high) = (self.constant(types::I64), self.constant(types::I64));
                self.pos.ins().iconcat(low, high)
            }
            _ => {
                let bits = self.random.integer(ty.bits()) & (i128::MAX >> (127 - ty.bits()));
                self.pos.ins().iconst(ty, bits as i64)
            }
        }
    }

    /// An integer type, any or one of up to 64 bits.
    fn int_type(&mut self) -> Type {
        if self.features().has(Feature::Wide) && self.random.chance(12) {
            types::I128
        } else {
            self.random.narrow_int()
        }
    }

    pub(super) fn integer(&mut self) {
        let ty = self.int_type();
        let (a, b) = (self.any(ty), self.any(ty));
        let narrow = ty != types::I128;
        let inst = match self.random.below(8) {
            0 if narrow => {
                let opcode = self.random.pick(&UNARY);
                self.pos.ins().Unary(opcode, ty, a).0
            }
            1 | 2 if narrow => {
                let opcode = self.random.pick(&NARROW_BINARY);
                self.pos.ins().Binary(opcode, ty, a, b).0
            }
            3 | 4 => {
                let value = self.constant(ty);
                let by = self.keep_value(value);
                let opcode = self.random.pick(&BINARY);
                self.pos.ins().Binary(opcode, ty, a, by).0
            }
            _ => {
                let opcode = self.random.pick(&BINARY);
                self.pos.ins().Binary(opcode, ty, a, b).0
            }
        };
        self.keep(inst);
    }

    /// A value computed from a parameter of a header, and often something that reads the parameter after that.
    pub(super) fn next(&mut self, param: Value) -> Value {
        let ty = self.pos.func.dfg.value_type(param);
        if self.features().has(Feature::Reductions) && ty.is_int() && self.random.chance(40) {
            return self.reduction(param);
        }
        if self.features().has(Feature::Sums) && ty.is_int() && self.random.chance(60) {
            return self.sum(param);
        }
        let choice = self.random.below(4);
        if choice == 0
            && let Some(value) = self.exchange(param)
        {
            return value;
        }
        if !ty.is_int() {
            return self.any(ty);
        }
        let other = self.any(ty);
        let (a, b) = if self.random.chance(50) { (param, other) } else { (other, param) };
        let divides = choice == 1 && ty.bits() <= 64 && self.features().has(Feature::Partial);
        let opcode = if divides { Opcode::Udiv } else { self.random.pick(&BINARY) };
        let inst = self.pos.ins().Binary(opcode, ty, a, b).0;
        self.keep(inst);
        let next = self.pos.func.dfg.first_result(inst);
        if self.random.chance(50) {
            self.store(ty, param);
        }
        next
    }

    /// A truth value of type `i8`, 0 or 1.
    pub(super) fn bit(&mut self) -> Value {
        let value = match self.random.below(10) {
            0 if self.features().has(Feature::Floats) => {
                let ty = self.random.pick(&[types::F64, types::F32]);
                let (a, b) = (self.any(ty), self.any(ty));
                let condition = self.random.pick(FloatCC::all());
                self.pos.ins().fcmp(condition, a, b)
            }
            1 if self.features().has(Feature::Vectors) => {
                let ty = vector_type(self.random);
                let a = self.any(ty);
                if self.random.chance(50) { self.pos.ins().vany_true(a) } else { self.pos.ins().vall_true(a) }
            }
            _ => {
                let ty = self.int_type();
                let a = self.any(ty);
                let b = if self.random.chance(40) {
                    let value = self.constant(ty);
                    self.keep_value(value)
                } else {
                    self.any(ty)
                };
                let condition = condition(self.random);
                self.pos.ins().icmp(condition, a, b)
            }
        };
        self.keep_value(value)
    }

    /// What a branch can depend on.
    pub(super) fn condition(&mut self) -> Value {
        if !self.known.flags.is_empty() && self.random.chance(30) {
            self.note(Shape::Flag);
            return self.random.pick(&self.known.flags);
        }
        let share = if self.features().has(Feature::Checks) { 35 } else { 15 };
        if self.random.chance(share)
            && let Some((counter, number)) = self.at_iteration()
        {
            self.note(Shape::BranchAtIteration);
            let condition = condition(self.random);
            let bit = self.pos.ins().icmp(condition, counter, number);
            return self.keep_value(bit);
        }
        match self.random.below(10) {
            0 | 1 => {
                let ty = self.int_type();
                self.any(ty)
            }
            2 | 3 if self.features().has(Feature::Floats) => self.float_condition(),
            _ => self.bit(),
        }
    }

    /// A comparison of floats, one of which is often no number.
    fn float_condition(&mut self) -> Value {
        let ty = self.random.pick(&[types::F64, types::F32]);
        let (mut a, b) = (self.any(ty), self.any(ty));
        if self.random.chance(50) {
            let is_nan = self.bit();
            let nan =
                if ty == types::F32 { self.pos.ins().f32const(f32::NAN) } else { self.pos.ins().f64const(f64::NAN) };
            a = self.pos.ins().select(is_nan, nan, a);
        }
        let condition = self.random.pick(FloatCC::all());
        let bit = self.pos.ins().fcmp(condition, a, b);
        self.keep_value(bit)
    }

    /// The same, of loop-invariant values.
    pub(super) fn invariant_condition(&mut self) -> Value {
        self.note(Shape::InvariantBranch);
        self.is_invariant = true;
        let loads = self.features().has(Feature::Checks) && self.features().has(Feature::Memory);
        let loaded = if loads && self.random.chance(50) { self.loaded_condition() } else { None };
        let bit = loaded.unwrap_or_else(|| self.bit());
        self.is_invariant = false;
        bit
    }

    /// A comparison of what is loaded.
    fn loaded_condition(&mut self) -> Option<Value> {
        let ty = self.random.narrow_int();
        let loaded = self.load_of(ty)?;
        self.note(Shape::LoadedBranch);
        let number = self.constant(ty);
        let condition = condition(self.random);
        let bit = self.pos.ins().icmp(condition, loaded, number);
        Some(self.keep_value(bit))
    }

    fn convert(&mut self) {
        let to = self.int_type();
        let from = self.int_type();
        let value = self.any(from);
        let opcode = match from.bits().cmp(&to.bits()) {
            std::cmp::Ordering::Less => self.random.pick(&[Opcode::Uextend, Opcode::Sextend]),
            std::cmp::Ordering::Greater => Opcode::Ireduce,
            std::cmp::Ordering::Equal => Opcode::Bnot,
        };
        let inst = self.pos.ins().Unary(opcode, to, value).0;
        self.keep(inst);
    }

    fn float(&mut self) {
        let ty = self.random.pick(&[types::F64, types::F32]);
        let other = if ty == types::F64 { types::F32 } else { types::F64 };
        let (a, b) = (self.any(ty), self.any(ty));
        let inst = match self.random.below(10) {
            0 => {
                let int = self.random.pick(&[types::I32, types::I64]);
                let value = self.any(int);
                self.pos.ins().Unary(Opcode::FcvtFromSint, ty, value).0
            }
            1 => {
                let int = self.random.pick(&[types::I32, types::I64]);
                self.pos.ins().Unary(Opcode::FcvtToSintSat, int, a).0
            }
            2 => {
                let opcode = if ty == types::F32 { Opcode::Fdemote } else { Opcode::Fpromote };
                let value = self.any(other);
                self.pos.ins().Unary(opcode, ty, value).0
            }
            3 => {
                let c = self.any(ty);
                self.pos.ins().Ternary(Opcode::Fma, ty, a, b, c).0
            }
            4 => {
                let bits = self.plain_bits(a);
                return self.known.values.push(bits);
            }
            5 | 6 => {
                let opcode = self.random.pick(&FLOAT_UNARY);
                self.pos.ins().Unary(opcode, ty, a).0
            }
            _ => {
                let opcode = self.random.pick(&FLOAT_BINARY);
                self.pos.ins().Binary(opcode, ty, a, b).0
            }
        };
        self.keep(inst);
    }

    /// A float that is the same to the bit in all arms: NaNs, of which that cannot be said, become zero.
    pub(super) fn without_nan(&mut self, value: Value) -> Value {
        let ty = self.pos.func.dfg.value_type(value);
        let is_number = self.pos.ins().fcmp(FloatCC::Ordered, value, value);
        let zero = if ty == types::F32 { self.pos.ins().f32const(0.0) } else { self.pos.ins().f64const(0.0) };
        self.pos.ins().select(is_number, value, zero)
    }

    fn plain_bits(&mut self, value: Value) -> Value {
        let value = self.without_nan(value);
        let ty = self.pos.func.dfg.value_type(value).as_int();
        self.pos.ins().bitcast(ty, MemFlagsData::new(), value)
    }

    fn vector(&mut self) {
        let ty = vector_type(self.random);
        let lane = ty.lane_type();
        let (a, b) = (self.any(ty), self.any(ty));
        let inst = match self.random.below(9) {
            0 => {
                let value = self.any(lane);
                self.pos.ins().Unary(Opcode::Splat, ty, value).0
            }
            1 => {
                let index = self.random.below(ty.lane_count() as usize) as u8;
                self.pos.ins().BinaryImm8(Opcode::Extractlane, ty, index, a).0
            }
            2 => {
                let index = self.random.below(ty.lane_count() as usize) as u8;
                let value = self.any(lane);
                self.pos.ins().TernaryImm8(Opcode::Insertlane, ty, index, a, value).0
            }
            3 => {
                let condition = condition(self.random);
                self.pos.ins().IntCompare(Opcode::Icmp, ty, condition, a, b).0
            }
            4 => {
                let amount = self.any(types::I32);
                let opcode = self.random.pick(&VECTOR_SHIFTS);
                self.pos.ins().Binary(opcode, ty, a, amount).0
            }
            5 => {
                let c = self.any(ty);
                self.pos.ins().Ternary(Opcode::Bitselect, ty, c, a, b).0
            }
            6 if lane.bits() == 16 || lane.bits() == 32 => {
                let opcode = self.random.pick(&SMALL_LANES);
                self.pos.ins().Binary(opcode, ty, a, b).0
            }
            _ => {
                let opcode = self.random.pick(&VECTOR_BINARY);
                self.pos.ins().Binary(opcode, ty, a, b).0
            }
        };
        self.keep(inst);
    }

    /// An instruction with two results.
    fn multiple(&mut self) {
        if self.is_invariant {
            self.note(Shape::InvariantPair);
        }
        if self.features().has(Feature::Wide) && self.random.chance(50) {
            let value = self.any(types::I128);
            let inst = self.pos.ins().Unary(Opcode::Isplit, types::I128, value).0;
            return self.keep(inst);
        }
        let ty = self.random.narrow_int();
        let (a, b) = (self.any(ty), self.any(ty));
        let opcode = self.random.pick(&WITH_OVERFLOW);
        let inst = self.pos.ins().Binary(opcode, ty, a, b).0;
        self.keep(inst);
    }

    /// A second name for a value.
    fn alias(&mut self) {
        let ty = self.int_type();
        let value = self.any(ty);
        let alias = self.pos.ins().bnot(value);
        let func = &mut *self.pos.func;
        let inst = func.dfg.value_def(alias).inst().expect("it is the result of an instruction");
        func.layout.remove_inst(inst);
        func.dfg.clear_results(inst);
        func.dfg.change_to_alias(alias, value);
        self.known.values.push(alias);
    }
}
