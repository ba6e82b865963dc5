//! Statements: what a draft is made of, loops aside.

use super::features::{Feature, Shape};
use super::loops::few;
use super::memory::{HIGH, IMAGE};
use super::outline::{Draft, End, Frame, On, Successor};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, MemFlagsData, Opcode, Value, types};

#[derive(Clone, Copy, Debug)]
enum Statement {
    Nothing,
    Loop,
    If,
    Switch,
    Jump,
    MayLeave,
    Labelled,
    TryCall,
    Irreducible,
    Checked,
    Unreachable,
    Poll,
    Arithmetic,
    RareCall,
}

const STATEMENTS: [(usize, Statement); 12] = [
    (2, Statement::Nothing),
    (6, Statement::Loop),
    (4, Statement::If),
    (2, Statement::Switch),
    (1, Statement::Jump),
    (4, Statement::MayLeave),
    (1, Statement::Labelled),
    (1, Statement::TryCall),
    (1, Statement::Irreducible),
    (1, Statement::Checked),
    (1, Statement::Unreachable),
    (2, Statement::Poll),
];

/// For programs with checks.
const CHECKED_STATEMENTS: [(usize, Statement); 14] = [
    (2, Statement::Nothing),
    (6, Statement::Loop),
    (4, Statement::If),
    (2, Statement::Switch),
    (1, Statement::Jump),
    (3, Statement::MayLeave),
    (1, Statement::Labelled),
    (1, Statement::TryCall),
    (1, Statement::Irreducible),
    (15, Statement::Checked),
    (1, Statement::Unreachable),
    (4, Statement::Poll),
    (3, Statement::Arithmetic),
    (3, Statement::RareCall),
];

const SPECIAL_STATEMENTS: [(usize, Feature); 6] = [
    (2, Feature::Ranges),
    (2, Feature::Disguises),
    (2, Feature::Entries),
    (2, Feature::Pointers),
    (2, Feature::SlotNests),
    (1, Feature::Doomed),
];

impl Draft<'_, '_, '_> {
    /// Up to so many statements, the first of them in `at`. Gives the block after them, if one of them goes on.
    pub(super) fn region(&mut self, at: Block, most: usize) -> Option<Block> {
        let mut at = at;
        if self.is_quiet && self.depth() > 0 && self.room > 0 && self.random.chance(50) {
            at = self.rare_path(at, On::Rare);
        }
        for _ in 0..self.random.below(most + 1) {
            if self.room == 0 {
                break;
            }
            at = self.statement(at)?;
        }
        Some(at)
    }

    fn statement(&mut self, at: Block) -> Option<Block> {
        let features = self.features();
        let has_checks = features.has(Feature::Checks);
        if features.is_special() && self.random.chance(40) {
            return self.special(at);
        }
        match self.random.weighted(if has_checks { &CHECKED_STATEMENTS[..] } else { &STATEMENTS }) {
            Statement::Loop if self.frames.len() < 5 => self.looping(at),
            Statement::If => self.branching(at),
            Statement::Switch if features.has(Feature::Tables) => self.switch(at),
            Statement::Jump => {
                let next = self.block();
                self.finish(at, End::Jump(Successor::to(next)));
                Some(next)
            }
            Statement::MayLeave => self.may_leave(at),
            Statement::Labelled => self.labelled(at),
            Statement::TryCall if features.has(Feature::TryCalls) => Some(self.try_call(at)),
            Statement::Irreducible if features.has(Feature::Irreducible) => Some(self.irreducible(at)),
            Statement::Checked if has_checks => Some(self.walked(at).unwrap_or(at)),
            Statement::Arithmetic => {
                self.arithmetic_check(at);
                Some(at)
            }
            Statement::RareCall if features.has(Feature::Hosts) && self.depth() > 0 => Some(self.rare_call(at)),
            Statement::Checked if features.has(Feature::Memory) => Some(self.checked(at)),
            Statement::Unreachable if features.has(Feature::Unreachable) => Some(self.unreachable(at)),
            Statement::Poll if self.may_poll() => Some(self.poll(at)),
            _ => Some(at),
        }
    }

    /// A statement that only special programs have.
    pub(super) fn special(&mut self, at: Block) -> Option<Block> {
        let features = self.features();
        if let Some(scene) = features.scene()
            && self.random.chance(80)
        {
            return self.scene(at, scene);
        }
        let may_count = self.countings_fit();
        match self.random.weighted(&SPECIAL_STATEMENTS) {
            Feature::Ranges if features.has(Feature::Ranges) && may_count => Some(self.ranges(at)),
            Feature::Disguises if features.has(Feature::Disguises) => self.meeting(at),
            Feature::Entries if features.has(Feature::Entries) => Some(self.entries(at)),
            Feature::Pointers if features.has(Feature::Pointers) => self.pointer_cell(at),
            Feature::SlotNests if features.has(Feature::SlotNests) => Some(self.slot_nest(at)),
            Feature::Doomed if features.has(Feature::Doomed) || features.has(Feature::Disguises) => {
                Some(self.doomed(at))
            }
            _ if features.has(Feature::Ranges) && may_count => Some(self.ranges(at)),
            _ if self.frames.len() < 5 => self.looping(at),
            _ => Some(at),
        }
    }

    /// Whether there may be another loop that ends for some arguments only. What calls are made with is known of the first
    /// function alone.
    fn countings_fit(&self) -> bool {
        let is_first = self.pos.func.name.to_string() == format!("%{}", super::effects::main_name());
        is_first && self.outline.countings.len() < 2 && self.depth() < 2 && self.work > 4
    }

    /// What a branch depends on that says nothing else.
    fn on_data(&mut self) -> On {
        let features = self.features();
        let may_be = features.has(Feature::Invariants) || features.has(Feature::Checks);
        let share = if features.has(Feature::Checks) { 35 } else { 25 };
        let invariant = may_be && self.depth() > 0 && self.random.chance(share);
        if invariant { On::Invariant } else { On::Data }
    }

    /// A new block with statements, the arm of a branch. It ends with a jump to `join`, or now and then with one that leaves the loop.
    fn arm(&mut self, join: Block) -> Successor {
        let block = self.block();
        if let Some(end) = self.region(block, 2) {
            let successor = if self.random.chance(15) { self.leave(end) } else { Successor::to(join) };
            self.finish(end, End::Jump(successor));
        }
        Successor::to(block)
    }

    fn branching(&mut self, at: Block) -> Option<Block> {
        let join = self.block();
        let first = self.arm(join);
        let second = if self.random.chance(50) { self.arm(join) } else { Successor::to(join) };
        let successors = if self.random.chance(50) { [first, second] } else { [second, first] };
        let on = self.on_data();
        self.finish(at, End::Branch(on, successors));
        Some(join)
    }

    fn switch(&mut self, at: Block) -> Option<Block> {
        let join = self.block();
        let mut successors = Vec::<Successor>::new();
        for _ in 0..2 + self.random.below(4) {
            let successor = match self.random.below(6) {
                0 => Successor::to(join),
                1 => self.leave(at),
                2 if !successors.is_empty() => successors[self.random.below(successors.len())].clone(),
                _ => self.arm(join),
            };
            successors.push(successor);
        }
        let index = self.invariant_index(at);
        self.finish(at, End::Table(index, successors));
        Some(join)
    }

    /// What a jump table depends on, if that is to be loop-invariant.
    fn invariant_index(&mut self, at: Block) -> Option<Value> {
        if !self.features().has(Feature::Checks) || self.depth() == 0 || !self.random.chance(70) {
            return None;
        }
        self.note(Shape::InvariantTable);
        let param = self.random.pick(&self.params);
        let index = self.resized(at, param, types::I32);
        Some(self.pos.ins().band_imm_u(index, 3))
    }

    fn may_leave(&mut self, at: Block) -> Option<Block> {
        let out = self.leave(at);
        let next = self.block();
        let successors = if self.random.chance(50) { [out, Successor::to(next)] } else { [Successor::to(next), out] };
        let on = self.on_data();
        self.finish(at, End::Branch(on, successors));
        Some(next)
    }

    /// Statements with a block after them that all of them can leave for.
    fn labelled(&mut self, at: Block) -> Option<Block> {
        let exit = self.block();
        self.frames.push(Frame {
            again: None,
            exit: Some(exit),
            front: 0,
            controls: Vec::new(),
            is_loop: false,
            walk: None,
        });
        let end = self.region(at, 3);
        self.frames.pop();
        if let Some(end) = end {
            self.finish(end, End::Jump(Successor::to(exit)));
        }
        Some(exit)
    }

    fn try_call(&mut self, at: Block) -> Block {
        let hosts = self.interface.hosts.len();
        // The last one throws.
        let host = if self.random.chance(60) { hosts - 1 } else { self.random.below(hosts) };
        let next = self.block();
        let mut normal = Successor::to(next);
        for (index, ret) in (0..).zip(&self.interface.hosts[host].returns) {
            self.pos.func.dfg.append_block_param(next, ret.value_type);
            normal.args.push(Some(BlockArg::TryCallRet(index)));
        }
        let mut successors = vec![normal];
        for _ in 0..self.random.below(3) {
            let successor = if self.random.chance(40) {
                self.leave(at)
            } else {
                let handler = self.block();
                self.pos.func.dfg.append_block_param(handler, types::I64);
                let out = if self.random.chance(50) { Successor::to(next) } else { self.leave(handler) };
                self.finish(handler, End::Jump(out));
                Successor { block: handler, args: vec![Some(BlockArg::TryCallExn(0))] }
            };
            successors.push(successor);
        }
        self.finish(at, End::TryCall(host, successors));
        next
    }

    fn may_poll(&self) -> bool {
        self.may_call_rarely() && self.depth() > 0
    }

    /// Whether loops may call host functions in rare blocks.
    pub(super) fn may_call_rarely(&self) -> bool {
        self.features().has(Feature::Polls) && self.features().has(Feature::Memory)
    }

    /// A flag in memory, or something that varies, is looked at. If it is set, which is rare, a host function is called.
    fn poll(&mut self, at: Block) -> Block {
        let on = if self.random.chance(50) { On::Poll } else { On::Rare };
        self.rare_path(at, on)
    }

    fn rare_path(&mut self, at: Block, on: On) -> Block {
        let (rare, next) = (self.block(), self.block());
        self.pos.func.layout.set_cold(rare);
        self.outline.calling.insert(rare);
        self.outline.quiet.remove(&rare);
        let out = if self.random.chance(25) { self.leave(rare) } else { Successor::to(next) };
        self.finish(rare, End::Jump(out));
        self.finish(at, End::Branch(on, [Successor::to(rare), Successor::to(next)]));
        next
    }

    /// Two blocks that jump to each other, both of which can be entered from outside.
    fn irreducible(&mut self, at: Block) -> Block {
        let amount = few(self.random, self.work);
        let work = self.work;
        self.work /= amount as u64;
        let amount = self.constant(at, types::I32, amount);
        let blocks = [self.block(), self.block()];
        let fuel = blocks.map(|block| self.pos.func.dfg.append_block_param(block, types::I32));
        let to =
            |index: usize, fuel: Value| Successor { block: blocks[index], args: vec![Some(BlockArg::Value(fuel))] };
        self.finish(at, End::Branch(On::Data, [to(0, amount), to(1, amount)]));

        let exit = self.block();
        self.frames.push(Frame {
            again: None,
            exit: Some(exit),
            front: 0,
            controls: Vec::new(),
            is_loop: false,
            walk: None,
        });
        if let Some(end) = self.region(blocks[0], 1) {
            let out = self.leave(end);
            let next = to(1, fuel[0]);
            let always = self.random.chance(50);
            self.finish(end, if always { End::Jump(next) } else { End::Branch(On::Data, [next, out]) });
        }
        if let Some(end) = self.region(blocks[1], 1) {
            let one = self.constant(end, types::I32, -1);
            let left = self.pos.ins().iadd(fuel[1], one);
            let stay = self.pos.ins().icmp_imm_u(IntCC::NotEqual, left, 0);
            self.finish(end, End::Branch(On::And(stay), [to(0, left), Successor::to(exit)]));
        }
        self.frames.pop();
        self.work = work;
        exit
    }

    /// A load after an explicit check of its index, which is a counter of an enclosing loop.
    fn checked(&mut self, at: Block) -> Block {
        let Some(index) = self.counter_as_index(at) else { return at };
        let entry = self.pos.func.layout.entry_block().expect("there is a block");
        let memory = self.pos.func.dfg.block_params(entry)[0];
        let size = i128::from(IMAGE as u32 - HIGH.start - 8);
        let size = self.random.pick(&[size, 4, 16, 1]);
        let size = self.constant(at, types::I64, size);
        let inside = self.pos.ins().icmp(IntCC::UnsignedLessThan, index, size);
        let (block, out) = (self.block(), self.leave(at));
        self.finish(at, End::Branch(On::Just(inside), [Successor::to(block), out]));

        self.pos.goto_bottom(block);
        let address = self.pos.ins().iadd(memory, index);
        self.outline.private.push(address);
        let ty = self.random.narrow_int();
        let offset = HIGH.start as i32;
        let flags = MemFlagsData::new().with_notrap().with_alias_region(self.outline.regions[HIGH.index]);
        self.pos.ins().load(ty, flags, address, offset);
        block
    }

    fn counter_as_index(&mut self, at: Block) -> Option<Value> {
        let counters: Vec<Value> =
            self.frames.iter().flat_map(|frame| &frame.controls).map(|control| control.param).collect();
        let counters: Vec<Value> =
            counters.into_iter().filter(|counter| !self.outline.walkers.contains_key(counter)).collect();
        let counter = *counters.last()?;
        self.pos.goto_bottom(at);
        match self.pos.func.dfg.value_type(counter) {
            types::I64 => Some(counter),
            types::I128 => Some(self.pos.ins().ireduce(types::I64, counter)),
            _ => {
                let opcode = self.random.pick(&[Opcode::Uextend, Opcode::Sextend]);
                let (inst, dfg) = self.pos.ins().Unary(opcode, types::I64, counter);
                Some(dfg.first_result(inst))
            }
        }
    }

    /// A block that nothing branches to, but that branches to others.
    fn unreachable(&mut self, at: Block) -> Block {
        let (block, next) = (self.block(), self.block());
        self.finish(at, End::Jump(Successor::to(next)));
        self.finish(block, End::Jump(Successor::to(next)));
        next
    }
}
