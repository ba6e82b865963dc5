//! What counts the iterations of a loop.
//!
//! Every loop ends. Either a counter with constant bounds was seen to reach its bound, or the loop has fuel: a second
//! counter, in a parameter or on the stack, that starts at a small number and is counted down to zero.

use super::features::{Feature, Shape as Found};
use super::induction::{Counter, condition};
use super::outline::Draft;
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Type, Value, types,
};

/// A parameter of a header that varies in the same way in each iteration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    pub(super) param: Value,
    pub(super) next: Next,
    /// The constant of `next`, if it is outside of the loop.
    pub(super) outside: Option<Value>,
}

/// What a control is in the next iteration.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// More by this number.
    Step(i128),
    /// This number.
    Constant(i128),
    /// What it is now.
    Same,
    /// What this control is now.
    Take(usize),
}

/// The values of a counter: `start`, `start + step` and so on, at most so many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) start: i128,
    pub(super) step: i128,
    pub(super) count: u64,
}

/// What says whether a loop goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    /// Which control is compared how with what.
    pub(super) counter: Option<(usize, IntCC, Bound)>,
    pub(super) fuel: Fuel,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    Constant(Type, i128),
    Value(Value),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Fuel {
    None,
    /// This control.
    Param(usize),
    Slot(StackSlot),
}

/// Where a loop tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// In the header.
    Top,
    /// In the latch, on the next values or on the present ones.
    Bottom,
    /// After a part of the body.
    Middle,
}

/// A loop before it has blocks.
pub(super) struct Plan {
    pub(super) shape: Shape,
    /// In the order of the controls.
    pub(super) starts: Vec<Value>,
    pub(super) controls: Vec<Control>,
    pub(super) test: Test,
    /// What the loop counts to or from, if that is not a constant.
    pub(super) unknown: Option<Unknown>,
    trips: u64,
}

/// A counter that goes up to a value, or down from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unknown {
    pub(super) control: usize,
    /// What has to be taken from the counter for the index 0.
    pub(super) first: i128,
    pub(super) bound: Value,
    /// How much before the bound the counter ends.
    pub(super) lag: i128,
    /// Whether the bound is one of the first numbers, and the counter goes one by one between 0 and it.
    pub(super) is_small: bool,
}

impl Draft<'_, '_, '_> {
    /// Decides on the controls of a loop, and computes their first values in `at`.
    pub(super) fn plan(&mut self, at: Block, trips: u64) -> Plan {
        let shape = match self.random.below(10) {
            0..=4 => Shape::Top,
            5 | 6 => Shape::Bottom,
            7 | 8 => Shape::Middle,
            _ => Shape::Bottom,
        };
        let test = Test { counter: None, fuel: Fuel::None };
        let mut plan = Plan { shape, starts: Vec::new(), controls: Vec::new(), test, unknown: None, trips };
        let ends = self.random.chance(90) && self.count(at, &mut plan);
        if !ends {
            self.fuel(at, &mut plan);
        }
        if !ends && matches!(plan.test.fuel, Fuel::None) {
            // There is no end to what they can be.
            self.outline.counters.retain(|counter, _| !plan.starts.contains(counter));
        }
        let features = self.features();
        let keeps_more = features.has(Feature::Pointers) || features.scene().is_some();
        let may_walk = features.has(Feature::Memory) && !keeps_more;
        let walks = may_walk && self.random.chance(30);
        if walks && (ends || !matches!(plan.test.fuel, Fuel::None)) {
            self.walk(at, &mut plan);
        }
        let indexes = self.features().has(Feature::Series) && self.random.chance(60);
        if indexes && (ends || !matches!(plan.test.fuel, Fuel::None)) {
            self.index(at, &mut plan);
        }
        if self.features().has(Feature::Flags) && self.random.chance(50) {
            self.flags(at, &mut plan);
        }
        plan
    }

    fn control(&mut self, at: Block, plan: &mut Plan, start: Value, next: Next) -> usize {
        let ty = self.pos.func.dfg.value_type(start);
        let outside = match next {
            Next::Step(number) | Next::Constant(number) if self.random.chance(30) => {
                Some(self.constant(at, ty, number))
            }
            _ => None,
        };
        plan.starts.push(start);
        plan.controls.push(Control { param: start, next, outside });
        plan.controls.len() - 1
    }

    /// Notes the values of a control that starts at a constant, once for each time that the header can be entered.
    fn note_progress(&mut self, plan: &Plan, start: Value, first: i128, step: i128) {
        let progress = Progress { start: first, step, count: plan.trips + 4 };
        self.outline.counters.insert(start, progress);
    }

    /// A counter that has nothing to do with the test, and serves as an index.
    fn index(&mut self, at: Block, plan: &mut Plan) {
        let ty = self.random.pick(&[types::I64, types::I32]);
        let first = self.random.pick(&[0, 0, 1, 5, 100, -7]);
        let first = if self.random.chance(15) { self.random.integer(ty.bits()) } else { first };
        let step = i128::from(self.random.pick(&[1_i8, 1, 1, -1, 2, -2, 3, 4]));
        let start = self.constant(at, ty, first);
        self.note_progress(plan, start, first, step);
        self.control(at, plan, start, Next::Step(step));
    }

    /// Parameters that stay the same after the first iterations.
    fn flags(&mut self, at: Block, plan: &mut Plan) {
        let ty = self.random.narrow_int();
        let (first, later) = self.random.pick(&[(1, 0), (0, 1), (0, -1), (5, 7)]);
        let start = self.constant(at, ty, first);
        let mut last = if self.random.chance(75) {
            self.control(at, plan, start, Next::Constant(later))
        } else {
            let start = self.random.pick(&self.params);
            self.control(at, plan, start, Next::Same)
        };
        for _ in 0..self.random.below(3) {
            let ty = self.pos.func.dfg.value_type(plan.starts[last]);
            let start = self.random.integer(ty.bits());
            let start = self.constant(at, ty, start);
            last = self.control(at, plan, start, Next::Take(last));
        }
    }

    /// Gives the loop a counter. Says whether it ends the loop.
    fn count(&mut self, at: Block, plan: &mut Plan) -> bool {
        let counter = Counter::draw(self.random, self.features().has(Feature::Wide), plan.trips);
        let share = if self.features().has(Feature::Checks) { 55 } else { 35 };
        if self.random.chance(share) && counter.ty != types::I128 {
            return self.count_to_unknown(at, plan, counter);
        }
        // Few iterations would be unrolled.
        let start = match plan.trips {
            ..9 => self.amount(at, counter.ty, counter.start),
            _ => self.first_number(at, counter.ty, counter.start),
        };
        self.note_progress(plan, start, counter.start, counter.step);
        let index = self.control(at, plan, start, Next::Step(counter.step));
        let bound = if self.random.chance(50) {
            Bound::Constant(counter.ty, counter.bound)
        } else {
            Bound::Value(self.constant(at, counter.ty, counter.bound))
        };
        plan.test.counter = Some((index, counter.condition, bound));
        let seen = if plan.shape == Shape::Bottom { counter.stepped() } else { counter };
        seen.trips(plan.trips + 2).is_some()
    }

    /// A counter whose start or bound is a parameter of the function, or a few of its bits.
    fn count_to_unknown(&mut self, at: Block, plan: &mut Plan, counter: Counter) -> bool {
        let ty = counter.ty;
        let param = self.unknown_number();
        let param = self.resized(at, param, ty);
        let few = self.random.pick(&[7, 3, 1, 15]);
        let masked = few <= plan.trips;
        let bound = if masked {
            let mask = self.constant(at, ty, i128::from(few));
            self.pos.ins().band(param, mask)
        } else {
            param
        };
        let is_up = self.random.chance(50);
        let (start, step, test, conditions) = if is_up {
            let start = self.first_number(at, ty, if masked { 0 } else { counter.start });
            (start, if masked { 1 } else { counter.step }, bound, [IntCC::SignedLessThan, IntCC::UnsignedLessThan])
        } else {
            let zero = self.constant(at, ty, 0);
            // What is known of the counter of an enclosing loop does not hold for one that starts there.
            let is_counter = self.outline.counters.contains_key(&bound);
            let start = if is_counter { self.pos.ins().iadd(bound, zero) } else { bound };
            (
                start,
                if masked { -1 } else { counter.step },
                zero,
                [IntCC::SignedGreaterThan, IntCC::UnsignedGreaterThan],
            )
        };
        let index = self.control(at, plan, start, Next::Step(step));
        let condition = match (masked, self.random.below(3)) {
            (false, _) => condition(self.random),
            (true, 0) => IntCC::NotEqual,
            (true, choice) => conditions[choice - 1],
        };
        let (condition, end, lag) =
            if masked && is_up { self.lagging(at, condition, test) } else { (condition, test, 0) };
        let first = if masked { i128::from(!is_up) } else { counter.start };
        plan.unknown = Some(Unknown { control: index, first, bound, lag, is_small: masked });
        plan.test.counter = Some((index, condition, Bound::Value(end)));
        masked && plan.shape != Shape::Bottom
    }

    /// Where a counter starts: at a number that everyone sees, or at one that looks like a value.
    fn first_number(&mut self, at: Block, ty: Type, value: i128) -> Value {
        if self.features().has(Feature::Checks) && self.random.chance(70) {
            return self.constant(at, ty, value);
        }
        self.amount(at, ty, value)
    }

    /// A bound that is a little less than this one, which can be below 0, and the test for that.
    fn lagging(&mut self, at: Block, condition: IntCC, bound: Value) -> (IntCC, Value, i128) {
        if !self.features().has(Feature::Checks) || !self.random.chance(60) {
            return (condition, bound, 0);
        }
        let lag = 1 + self.random.below(3) as i128;
        self.pos.goto_bottom(at);
        (IntCC::SignedLessThan, self.pos.ins().iadd_imm_s(bound, -lag as i64), lag)
    }

    /// A parameter of the function, or a counter of an enclosing loop.
    fn unknown_number(&mut self) -> Value {
        if self.features().has(Feature::Checks) && self.random.chance(50) {
            let controls = self.frames.iter().flat_map(|frame| &frame.controls).map(|control| control.param);
            let counting = |value: &Value| self.outline.counters.contains_key(value);
            let counters: Vec<Value> = controls.filter(counting).collect();
            let fits = |value: &Value| self.pos.func.dfg.value_type(*value) != types::I128;
            if let Some(&counter) = counters.last().filter(|counter| fits(counter)) {
                self.note(Found::OuterBound);
                return counter;
            }
        }
        self.random.pick(&self.params)
    }

    /// A value in another integer type.
    pub(super) fn resized(&mut self, at: Block, value: Value, ty: Type) -> Value {
        let from = self.pos.func.dfg.value_type(value);
        self.pos.goto_bottom(at);
        match from.bits().cmp(&ty.bits()) {
            std::cmp::Ordering::Less if self.random.chance(50) => self.pos.ins().sextend(ty, value),
            std::cmp::Ordering::Less => self.pos.ins().uextend(ty, value),
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Greater => self.pos.ins().ireduce(ty, value),
        }
    }

    /// A constant that mostly does not look like one, or most loops would be unrolled and nothing else.
    pub(super) fn amount(&mut self, at: Block, ty: Type, value: i128) -> Value {
        let constant = self.constant(at, ty, value);
        if self.random.chance(30) {
            return constant;
        }
        // No value of 64 bits has 128 ones.
        let entry = self.pos.func.layout.entry_block().expect("there is a block");
        let memory = self.pos.func.dfg.block_params(entry)[0];
        let ones = self.pos.ins().popcnt(memory);
        let zero = self.pos.ins().ushr_imm_u(ones, 7);
        let zero = if ty == types::I128 { self.pos.ins().uextend(ty, zero) } else { self.resized(at, zero, ty) };
        self.pos.ins().iadd(constant, zero)
    }

    /// Makes sure that the loop ends.
    fn fuel(&mut self, at: Block, plan: &mut Plan) {
        if self.features().has(Feature::Endless) && self.random.chance(50) {
            self.outline.endless = true;
            return;
        }
        let amount = i128::from(plan.trips) + 1;
        if self.features().has(Feature::Slots) && self.random.chance(15) {
            let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, 4, 2);
            let slot = self.pos.func.create_sized_stack_slot(slot);
            let amount = self.amount(at, types::I32, amount);
            let address = self.pos.ins().stack_addr(types::I64, slot, 0);
            self.outline.private.push(address);
            self.pos.ins().store(MemFlagsData::trusted(), amount, address, 0);
            plan.test.fuel = Fuel::Slot(slot);
        } else {
            let ty = self.random.narrow_int();
            let amount = self.amount(at, ty, amount);
            plan.test.fuel = Fuel::Param(self.control(at, plan, amount, Next::Step(-1)));
        }
    }

    /// A pointer that steps through the memory image, out of it in some iteration if it may.
    fn walk(&mut self, at: Block, plan: &mut Plan) {
        let entry = self.pos.func.layout.entry_block().expect("there is a block");
        let memory = self.pos.func.dfg.block_params(entry)[0];
        let strides =
            if self.outline.regions == [None; 4] { &[4, 8, 1, 16, 2, 128, -4, -8][..] } else { &[4, 8, 1, 16] };
        let stride: i64 = self.random.pick(strides);
        let from = self.first_step(stride, plan.trips);
        let from = self.constant(at, types::I64, i128::from(from));
        let start = self.pos.ins().iadd(memory, from);
        self.outline.walkers.insert(start, stride);
        self.control(at, plan, start, Next::Step(i128::from(stride)));
    }

    fn first_step(&mut self, stride: i64, trips: u64) -> i64 {
        use super::memory::{HIGH, IMAGE};
        let steps = self.random.below(trips as usize + 2) as i64;
        let last = if stride > 0 { IMAGE as i64 } else { 0 };
        (last - steps * stride).clamp(HIGH.start.into(), IMAGE as i64 - 16) & !15
    }
}
