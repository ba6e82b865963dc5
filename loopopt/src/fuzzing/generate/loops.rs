//! Loops: their blocks and edges, and where they test what counts their iterations.

use super::choices::Choices;
use super::features::Feature;
use super::outline::{Draft, End, Frame, On, Successor};
use super::plan::{Bound, Control, Fuel, Next, Plan, Shape};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, MemFlagsData, Type, Value, types};

impl Draft<'_, '_, '_> {
    /// A loop that is entered from `at`. Gives the block after it.
    pub(super) fn looping(&mut self, at: Block) -> Option<Block> {
        let trips = u64::min(self.random.pick(&[3, 1, 2, 4, 5, 8, 0, 16, 33, 64, 7, 9, 11, 17]), self.work);
        let work = self.work;
        self.work /= trips + 1;
        let was_quiet = self.is_quiet;
        self.is_quiet |= self.may_call_rarely() && self.random.chance(25);
        let after = self.repeat(at, trips);
        self.is_quiet = was_quiet;
        self.work = work;
        after
    }

    fn repeat(&mut self, at: Block, trips: u64) -> Option<Block> {
        let mut plan = self.plan(at, trips);
        let header = self.block();
        self.outline.depths.insert(header, self.depth() + 1);
        self.outline.headers.insert(header);
        let front = if self.random.chance(30) { 1 + self.random.below(2) } else { 0 };
        for _ in 0..front {
            let ty = self.value_type();
            self.pos.func.dfg.append_block_param(header, ty);
        }
        for (control, &start) in plan.controls.iter_mut().zip(&plan.starts) {
            let ty = self.pos.func.dfg.value_type(start);
            control.param = self.pos.func.dfg.append_block_param(header, ty);
            if let Some(&stride) = self.outline.walkers.get(&start) {
                self.outline.walkers.insert(control.param, stride);
            }
            if let Some(&progress) = self.outline.counters.get(&start) {
                self.outline.counters.insert(control.param, progress);
            }
            if !matches!(control.next, Next::Step(_)) {
                self.outline.flags.insert(control.param);
            }
        }
        let walk = self.walk_over(at, &plan);
        let leaves = !self.frames.is_empty() && self.random.chance(10);
        let exit = if leaves { None } else { Some(self.block()) };
        let starts = plan.starts.iter().map(|&start| Some(BlockArg::Value(start)));
        let enter = Successor { block: header, args: vec![None; front].into_iter().chain(starts).collect() };
        let end = match exit {
            Some(exit) if self.random.chance(15) => End::Branch(On::Data, [enter, Successor::to(exit)]),
            _ => End::Jump(enter),
        };
        self.finish(at, end);
        self.frames.push(Frame { again: None, exit, front, controls: plan.controls.clone(), is_loop: true, walk });
        match plan.shape {
            Shape::Top => self.test_at_top(header, header, &plan),
            Shape::Middle => {
                if let Some(middle) = self.region(header, 2) {
                    self.test_at_top(header, middle, &plan);
                }
            }
            Shape::Bottom => self.test_at_bottom(header, &plan),
        }
        self.frames.pop();
        exit
    }

    /// Tests in `at`, goes on with the body and back to the header.
    fn test_at_top(&mut self, header: Block, at: Block, plan: &Plan) {
        let values: Vec<Value> = plan.controls.iter().map(|control| control.param).collect();
        let (at, stay) = self.test(at, plan, &values);
        let body = self.block();
        let out = self.exit(at);
        self.branch(at, stay, Successor::to(body), out);
        self.frame().again = Some((header, true));
        if let Some(latch) = self.region(body, 3) {
            let frame = self.frame().clone();
            let back = Successor { block: header, args: self.next_args(latch, &frame) };
            let end = if self.random.chance(5) { End::Branch(On::Data, [back.clone(), back]) } else { End::Jump(back) };
            self.finish(latch, end);
        }
    }

    /// The body, then the test and the back edge.
    fn test_at_bottom(&mut self, header: Block, plan: &Plan) {
        let bottom = if self.random.chance(30) { Some(self.block()) } else { None };
        self.frame().again = bottom.map(|block| (block, false));
        let end = self.region(header, 3);
        let latch = match (bottom, end) {
            (Some(bottom), Some(end)) => {
                self.finish(end, End::Jump(Successor::to(bottom)));
                bottom
            }
            (Some(block), None) | (None, Some(block)) => block,
            (None, None) => return,
        };
        let frame = self.frame().clone();
        let back = Successor { block: header, args: self.next_args(latch, &frame) };
        let nexts: Vec<Value> = back.args[frame.front..]
            .iter()
            .map(|arg| arg.as_ref().and_then(BlockArg::as_value).expect("controls have next values"))
            .collect();
        let (latch, stay) = self.test(latch, plan, &nexts);
        let out = self.exit(latch);
        self.branch(latch, stay, back, out);
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("inside of a loop")
    }

    /// The edge that a failed test takes.
    fn exit(&mut self, at: Block) -> Successor {
        match self.frame().exit {
            Some(exit) => Successor::to(exit),
            None => {
                let frame = self.frames.pop().expect("inside of a loop");
                let successor = self.leave(at);
                self.frames.push(frame);
                successor
            }
        }
    }

    /// Ends a block with a test: `stay` if the value is not zero.
    fn branch(&mut self, at: Block, value: Option<Value>, stay: Successor, out: Successor) {
        let Some(value) = value else {
            self.outline.endless = true;
            return self.finish(at, End::Branch(On::Data, [stay, out]));
        };
        self.pos.goto_bottom(at);
        let end = match self.random.below(8) {
            0..=2 => End::Branch(On::Just(value), [stay, out]),
            3 => End::Branch(On::And(value), [stay, out]),
            4 if self.features().has(Feature::Tables) => {
                let index = self.pos.ins().uextend(types::I32, value);
                End::Table(Some(index), vec![stay.clone(), out, stay])
            }
            5 => {
                let inverse = self.pos.ins().icmp_imm_u(IntCC::Equal, value, 0);
                End::Branch(On::Or(inverse), [out, stay])
            }
            _ => {
                let inverse = self.pos.ins().icmp_imm_u(IntCC::Equal, value, 0);
                End::Branch(On::Just(inverse), [out, stay])
            }
        };
        self.finish(at, end);
    }

    /// The values for the next iteration, computed in `at`.
    pub(super) fn next_args(&mut self, at: Block, frame: &Frame) -> Vec<Option<BlockArg>> {
        let mut args = vec![None; frame.front];
        for control in &frame.controls {
            let next = match control.next {
                Next::Step(by) => self.step(at, control, by),
                Next::Constant(number) => {
                    let ty = self.pos.func.dfg.value_type(control.param);
                    control.outside.unwrap_or_else(|| self.constant(at, ty, number))
                }
                Next::Same => control.param,
                Next::Take(index) => frame.controls[index].param,
            };
            args.push(Some(BlockArg::Value(next)));
        }
        args
    }

    fn step(&mut self, at: Block, control: &Control, by: i128) -> Value {
        let ty = self.pos.func.dfg.value_type(control.param);
        let by = control.outside.unwrap_or_else(|| self.constant(at, ty, by));
        self.pos.goto_bottom(at);
        let next = self.pos.ins().iadd(control.param, by);
        if let Some(&stride) = self.outline.walkers.get(&control.param) {
            self.outline.walkers.insert(next, stride);
        }
        next
    }

    /// Whether these values of the controls say that the loop goes on, and the block that knows. None if nothing says so.
    fn test(&mut self, at: Block, plan: &Plan, values: &[Value]) -> (Block, Option<Value>) {
        let mut at = at;
        let fuel = self.test_fuel(at, plan.test.fuel, values);
        let Some((index, condition, bound)) = plan.test.counter else { return (at, fuel) };
        let mut fuel = fuel;
        if let (Some(left), true) = (fuel, self.random.chance(30)) {
            let next = self.block();
            let out = if self.random.chance(50) { self.exit(at) } else { self.leave_early(at) };
            self.finish(at, End::Branch(On::Just(left), [Successor::to(next), out]));
            (at, fuel) = (next, None);
        }
        let bound = match bound {
            Bound::Constant(ty, value) => self.constant(at, ty, value),
            Bound::Value(value) => value,
        };
        self.pos.goto_bottom(at);
        let natural = self.pos.ins().icmp(condition, values[index], bound);
        let stay = match fuel {
            Some(fuel) => self.pos.ins().band(natural, fuel),
            None => natural,
        };
        (at, Some(stay))
    }

    /// An edge out of the loop that does not lead to its next iteration.
    fn leave_early(&mut self, at: Block) -> Successor {
        let frame = self.frames.pop().expect("inside of a loop");
        let successor = self.leave(at);
        self.frames.push(frame);
        successor
    }

    fn test_fuel(&mut self, at: Block, fuel: Fuel, values: &[Value]) -> Option<Value> {
        self.pos.goto_bottom(at);
        match fuel {
            Fuel::None => None,
            Fuel::Param(index) => Some(self.pos.ins().icmp_imm_u(IntCC::NotEqual, values[index], 0)),
            Fuel::Slot(slot) => {
                let address = self.pos.ins().stack_addr(types::I64, slot, 0);
                self.outline.private.push(address);
                let flags = MemFlagsData::trusted();
                let left = self.pos.ins().load(types::I32, flags, address, 0);
                let one = self.constant(at, types::I32, 1);
                let left = self.pos.ins().isub(left, one);
                self.pos.ins().store(flags, left, address, 0);
                Some(self.pos.ins().icmp_imm_u(IntCC::NotEqual, left, 0))
            }
        }
    }

    fn value_type(&mut self) -> Type {
        super::interface::value_type(self.random, self.interface.features)
    }
}

/// How often a cycle that is no loop may be repeated.
pub(super) fn few(random: &mut Choices<'_, '_>, work: u64) -> i128 {
    i128::from(u64::min(random.pick(&[2, 1, 3, 5]), work) + 1)
}
