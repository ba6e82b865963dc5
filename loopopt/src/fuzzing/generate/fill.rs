//! The second half of a program: what its blocks compute.
//!
//! Blocks are filled in reverse postorder, so that the values of all blocks that dominate one are known when its turn
//! comes: parameters of headers and what was computed in a loop are used after it, through as many levels as there are.

use super::choices::Choices;
use super::dominance::Dominance;
use super::features::{Feature, Features, Shape};
use super::interface::{Interface, value_type};
use super::known::{Known, Outer};
use super::memory::{Pointer, Regions};
use super::outline::{End, On, Outline, Successor};
use super::plan::Progress;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, ExceptionTableData, ExceptionTableItem, ExceptionTag, Function, Inst, InstBuilder,
    JumpTableData, Opcode, RelSourceLoc, SourceLoc, StackSlot, StackSlotData, StackSlotKind, TrapCode, Type, Value,
    ValueLabel, ValueLabelAssignments, ValueLabelStart, types,
};
use std::collections::{BTreeSet, HashMap, HashSet};

/// A function that is being filled.
pub(super) struct Fill<'a, 'u, 'd> {
    pub(super) pos: FuncCursor<'a>,
    pub(super) random: &'a mut Choices<'u, 'd>,
    pub(super) interface: &'a Interface,
    /// Which of the interface's functions this is.
    pub(super) index: usize,
    pub(super) known: Known,
    /// Slots for data, all of [`SLOT`](super::memory::SLOT) bytes.
    pub(super) slots: Vec<StackSlot>,
    /// Holds an address of a place with several names.
    pub(super) variable: Option<StackSlot>,
    pub(super) regions: Regions,
    outline: &'a Outline,
    private: HashSet<Value>,
    /// Next values of parameters, computed in the block that is being filled.
    nexts: HashMap<Value, Value>,
    marks: u32,
    /// Whether the operands of the instruction that is being made are from before the loop.
    pub(super) is_invariant: bool,
    is_cold: bool,
    /// Whether the block has no effect.
    is_quiet: bool,
    /// Whether the block has what is drafted, and nothing else.
    is_bare: bool,
    shapes: &'a mut BTreeSet<Shape>,
}

impl<'a, 'u, 'd> Fill<'a, 'u, 'd> {
    /// Fills the blocks of the function of this index.
    pub(super) fn run(
        func: &'a mut Function,
        random: &'a mut Choices<'u, 'd>,
        (interface, index): (&'a Interface, usize),
        (outline, shapes): (&'a Outline, &'a mut BTreeSet<Shape>),
    ) {
        let entry = func.layout.entry_block().expect("there is a block");
        let dominance = Dominance::of(outline, entry);
        let private = outline.private.iter().copied().chain(outline.walkers.keys().copied()).collect();
        let mut fill = Self {
            pos: FuncCursor::new(func),
            random,
            interface,
            index,
            known: Known::default(),
            slots: Vec::new(),
            variable: None,
            regions: outline.regions,
            outline,
            private,
            nexts: HashMap::new(),
            marks: 0,
            is_invariant: false,
            is_cold: false,
            is_quiet: false,
            is_bare: false,
            shapes,
        };
        fill.declare();
        fill.add_params(entry);
        let mut known = HashMap::<Block, Known>::new();
        for &block in &dominance.order {
            fill.known = dominance.parents.get(&block).map(|parent| known[parent].clone()).unwrap_or_default();
            fill.block(block, block == entry);
            known.insert(block, std::mem::take(&mut fill.known));
        }
    }

    pub(super) fn features(&self) -> Features {
        self.interface.features
    }

    fn declare(&mut self) {
        if self.features().has(Feature::Marks) && self.random.chance(50) {
            self.pos.func.dfg.collect_debug_info();
        }
        if self.features().has(Feature::Slots) {
            for _ in 0..1 + self.random.below(2) {
                let data = StackSlotData::new(StackSlotKind::ExplicitSlot, super::memory::SLOT, 4);
                self.slots.push(self.pos.func.create_sized_stack_slot(data));
            }
        }
    }

    /// Gives blocks parameters for data.
    fn add_params(&mut self, entry: Block) {
        let mut entries = HashMap::<Block, usize>::new();
        for successor in self.outline.ends.values().flat_map(End::successors) {
            *entries.entry(successor.block).or_default() += 1;
        }
        for &block in self.outline.ends.keys().filter(|&&block| block != entry) {
            let most = if entries.get(&block).is_some_and(|&count| count > 1) { 4 } else { 2 };
            for _ in 0..self.random.below(most) {
                let ty = value_type(self.random, self.interface.features);
                self.pos.func.dfg.append_block_param(block, ty);
            }
        }
    }

    fn block(&mut self, block: Block, is_entry: bool) {
        self.known.enter(self.outline.depths.get(&block).copied().unwrap_or(0));
        self.is_quiet = self.outline.quiet.contains(&block);
        self.is_bare = self.outline.bare.contains(&block);
        self.is_cold = self.pos.func.layout.is_cold(block);
        for param in self.pos.func.dfg.block_params(block).to_vec() {
            self.learn(param);
        }
        let drafted: Vec<Inst> = self.pos.func.layout.block_insts(block).collect();
        if is_entry {
            if self.features().has(Feature::Memory) {
                // The first parameter is the address of the memory image.
                self.known.values.retain(|&value| value.as_u32() != 0);
            }
            self.pos.goto_first_insertion_point(block);
            self.initialize_slots();
            self.new_variable();
            if self.features().has(Feature::Locals) {
                self.new_local();
            }
            if self.features().has(Feature::Cells) && self.random.chance(60) {
                self.new_cells();
            }
        }
        if self.has_series() && self.outline.headers.contains(&block) && self.random.chance(60) {
            self.new_series();
        }
        for inst in drafted {
            self.pos.goto_inst(inst);
            if self.features().has(Feature::Checks) && self.features().has(Feature::Marks) {
                self.marks += 1;
                self.pos.func.set_srcloc(inst, SourceLoc::new(self.marks));
            }
            if !is_entry {
                self.instructions(2);
            }
            for result in self.pos.func.dfg.inst_results(inst).to_vec() {
                self.learn(result);
            }
        }
        self.pos.goto_bottom(block);
        if self.outline.calling.contains(&block) {
            self.call_host();
        }
        self.use_late();
        self.instructions(if is_entry { 6 } else { 5 });
        self.recur(block);
        self.instructions(if is_entry { 2 } else { 6 });
        self.end(block);
        self.nexts.clear();
    }

    /// Computes next values for parameters of the header, if the block ends with a back edge. What comes after them still reads the
    /// parameters.
    fn recur(&mut self, block: Block) {
        let outline = self.outline;
        for successor in outline.ends[&block].successors() {
            for (index, param) in self.pos.func.dfg.block_params(successor.block).to_vec().into_iter().enumerate() {
                let is_open = successor.args.get(index).is_none_or(Option::is_none);
                if is_open && self.known.values.contains(&param) && self.random.chance(30) {
                    let next = self.next(param);
                    self.nexts.insert(param, next);
                }
            }
        }
    }

    /// Makes a value known, if it is not a secret of the draft.
    fn learn(&mut self, value: Value) {
        if let Some(&stride) = self.outline.walkers.get(&value) {
            self.known.pointers.push(Pointer::walker(value, stride));
        } else if self.outline.pointers.contains(&value) {
            self.known.pointers.push(Pointer::place(value));
        } else if !self.private.contains(&value) {
            self.known.values.push(value);
        }
        if self.outline.counters.contains_key(&value) {
            self.known.counters.push(value);
        }
        if self.outline.flags.contains(&value) {
            self.known.flags.push(value);
        }
    }

    /// What a counter that is known can be.
    pub(super) fn progress(&self, counter: Value) -> Progress {
        self.outline.counters[&counter]
    }

    /// Notes that the program has something to look for.
    pub(super) fn note(&mut self, shape: Shape) {
        self.shapes.insert(shape);
    }

    /// How many of the known values and addresses are invariant in the loop, or in an enclosing one.
    pub(super) fn outside(&mut self) -> Option<Outer> {
        let depth = self.known.depth();
        if !self.is_invariant || depth == 0 {
            return None;
        }
        let level = if self.random.chance(70) { depth - 1 } else { self.random.below(depth) };
        Some(self.known.outside(level))
    }

    fn instructions(&mut self, most: usize) {
        if self.is_bare {
            return;
        }
        let most = if self.features().has(Feature::Sparse) { most.div_ceil(2) } else { most };
        for _ in 0..self.random.below(most) {
            let may_be = self.features().has(Feature::Invariants) && self.known.depth() > 0;
            self.is_invariant = may_be && self.random.chance(30);
            if self.is_quiet {
                self.integer()
            } else {
                self.instruction()
            }
            if self.is_invariant && self.is_cold {
                self.note(Shape::Rare);
            }
            self.is_invariant = false;
        }
    }

    /// Uses values of earlier loops for the first time.
    fn use_late(&mut self) {
        for value in self.known.take_late() {
            let ty = self.pos.func.dfg.value_type(value);
            if !self.is_quiet && self.random.chance(40) {
                self.store(ty, value);
            }
            self.known.values.push(value);
            self.note(Shape::Late);
        }
    }

    /// Makes the results of an instruction known, and puts a source location on it.
    pub(super) fn keep(&mut self, inst: Inst) {
        if self.features().has(Feature::Marks) {
            self.marks += 1;
            self.pos.func.set_srcloc(inst, SourceLoc::new(self.marks));
        }
        let results = self.pos.func.dfg.inst_results(inst);
        self.known.values.extend(results);
        if let (Some(first), Some(labels)) = (results.first().copied(), &mut self.pos.func.dfg.values_labels) {
            let start =
                ValueLabelStart { from: RelSourceLoc::new(self.marks), label: ValueLabel::new(inst.index() % 8) };
            labels.insert(first, ValueLabelAssignments::Starts(vec![start]));
        }
    }

    /// Like [`Self::keep`], for the instruction that makes this value.
    pub(super) fn keep_value(&mut self, value: Value) -> Value {
        let inst = self.pos.func.dfg.value_def(value).inst().expect("it is the result of an instruction");
        self.keep(inst);
        value
    }

    /// A value of this type.
    pub(super) fn any(&mut self, ty: Type) -> Value {
        let outer = self.outside();
        let dfg = &self.pos.func.dfg;
        let known = &self.known.values[..outer.map_or(self.known.values.len(), |outer| outer.values)];
        let fitting: Vec<Value> = known.iter().copied().filter(|&value| dfg.value_type(value) == ty).collect();
        if fitting.is_empty() || self.random.chance(8) {
            let value = self.constant(ty);
            return self.keep_value(value);
        }
        let young = if self.random.chance(60) { fitting.len().min(4) } else { fitting.len() };
        fitting[fitting.len() - 1 - self.random.below(young)]
    }

    /// An argument for this parameter: often another parameter of the same block.
    fn argument(&mut self, param: Value, block: Block) -> Value {
        let ty = self.pos.func.dfg.value_type(param);
        if let Some(&next) = self.nexts.get(&param) {
            return next;
        }
        if self.random.chance(25) {
            let params = self.pos.func.dfg.block_params(block);
            let fitting =
                |value: &&Value| self.pos.func.dfg.value_type(**value) == ty && self.known.values.contains(value);
            let params: Vec<Value> = params.iter().filter(fitting).copied().collect();
            if !params.is_empty() {
                return self.random.pick(&params);
            }
        }
        self.any(ty)
    }

    fn call(&mut self, successor: &Successor) -> BlockCall {
        let params = self.pos.func.dfg.block_params(successor.block).to_vec();
        let mut args = Vec::with_capacity(params.len());
        for (index, param) in params.into_iter().enumerate() {
            let arg = match successor.args.get(index) {
                Some(&Some(arg)) => arg,
                _ => BlockArg::Value(self.argument(param, successor.block)),
            };
            args.push(arg);
        }
        BlockCall::new(successor.block, args, &mut self.pos.func.dfg.value_lists)
    }

    fn end(&mut self, block: Block) {
        match &self.outline.ends[&block] {
            End::Jump(successor) => {
                let call = self.call(successor);
                let inst = self.pos.ins().Jump(Opcode::Jump, types::INVALID, call).0;
                self.keep(inst);
            }
            End::Branch(on, successors) => self.branch(*on, successors),
            End::Table(on, successors) => self.table(*on, successors),
            End::TryCall(host, successors) => self.try_call(*host, successors),
            End::Return => {
                let types: Vec<Type> = self.pos.func.signature.returns.iter().map(|ret| ret.value_type).collect();
                let values: Vec<Value> = types.into_iter().map(|ty| self.any(ty)).collect();
                let inst = self.pos.ins().return_(&values);
                self.keep(inst);
            }
            End::Trap => {
                let code = self.trap_code();
                self.pos.ins().trap(code);
            }
        }
    }

    fn branch(&mut self, on: On, successors: &[Successor; 2]) {
        let condition = match on {
            On::Data => self.condition(),
            On::Just(value) => value,
            On::And(value) => {
                let other = self.bit();
                self.pos.ins().band(value, other)
            }
            On::Or(value) => {
                let other = self.bit();
                self.pos.ins().bor(value, other)
            }
            On::Invariant => self.invariant_condition(),
            On::Poll => self.poll(),
            On::Rare => self.rare(),
        };
        let [first, second] = successors.each_ref().map(|successor| self.call(successor));
        let ty = self.pos.func.dfg.value_type(condition);
        let inst = self.pos.ins().Brif(Opcode::Brif, ty, first, second, condition).0;
        // A branch to a block that only traps is lowered as one trap, at the place of the branch. So these places are the
        // same in programs with such blocks, whatever becomes of the blocks.
        if !self.features().has(Feature::Traps) && !self.features().has(Feature::Checks) {
            self.keep(inst);
        }
    }

    fn table(&mut self, on: Option<Value>, successors: &[Successor]) {
        let index = on.unwrap_or_else(|| {
            let index = self.any(types::I32);
            if self.random.chance(70) { self.pos.ins().band_imm_u(index, 7) } else { index }
        });
        let calls: Vec<BlockCall> = successors.iter().map(|successor| self.call(successor)).collect();
        let table = self.pos.func.create_jump_table(JumpTableData::new(calls[0], &calls[1..]));
        let inst = self.pos.ins().br_table(index, table);
        self.keep(inst);
    }

    fn try_call(&mut self, host: usize, successors: &[Successor]) {
        let callee = self.interface.import_host(self.pos.func, host);
        let signature = self.pos.func.dfg.ext_funcs[callee].signature;
        let args = self.call_args(&self.interface.hosts[host].params.clone());
        let calls: Vec<BlockCall> = successors.iter().map(|successor| self.call(successor)).collect();
        let items = (0..).zip(&calls[1..]).map(|(tag, &call)| match tag {
            1 => ExceptionTableItem::Default(call),
            _ => ExceptionTableItem::Tag(ExceptionTag::from_u32(tag), call),
        });
        // What a handler is found by, which nothing else may need.
        let context = self.random.chance(40).then(|| ExceptionTableItem::Context(self.any(types::I64)));
        let table = ExceptionTableData::new(signature, calls[0], context.into_iter().chain(items));
        let table = self.pos.func.dfg.exception_tables.push(table);
        let inst = self.pos.ins().try_call(callee, &args, table);
        self.keep(inst);
        self.mark_call(inst);
    }

    pub(super) fn trap_code(&mut self) -> TrapCode {
        TrapCode::unwrap_user(1 + self.random.below(4) as u8)
    }
}
