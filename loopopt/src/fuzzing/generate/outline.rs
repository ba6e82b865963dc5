//! The first half of a program: blocks, and the values that say how often they run.
//!
//! A function is drafted statement by statement, as a program of a structured language would be, except that every
//! statement may also leave for any enclosing loop. What decides how often a loop runs is written down at once;
//! everything else is left open ([`On::Data`], the arguments that are `None`) and filled in when all blocks are known,
//! and with them which values can be used where.

use super::choices::Choices;
use super::features::{Feature, Features, Shape};
use super::interface::Interface;
use super::memory::{Regions, draw_regions};
use super::plan::{Control, Progress};
use super::ranges::Counting;
use super::walks::Walk;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, BlockArg, Function, InstBuilder, Type, Value, types};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What a branch depends on.
#[derive(Clone, Copy, Debug)]
pub(super) enum On {
    /// Any value.
    Data,
    /// This value.
    Just(Value),
    /// This value, and any value.
    And(Value),
    /// This value, or any value.
    Or(Value),
    /// A loop-invariant value.
    Invariant,
    /// A flag in memory.
    Poll,
    /// Something loop-invariant in memory, and a counter.
    Rare,
}

/// An edge to be.
#[derive(Clone, Debug)]
pub(super) struct Successor {
    pub(super) block: Block,
    /// Arguments for the first parameters; `None`, and those that are missing, can be any value.
    pub(super) args: Vec<Option<BlockArg>>,
}

impl Successor {
    /// An edge that says nothing about its arguments.
    pub(super) fn to(block: Block) -> Self {
        Self { block, args: Vec::new() }
    }
}

/// How a block ends.
#[derive(Clone, Debug)]
pub(super) enum End {
    Jump(Successor),
    Branch(On, [Successor; 2]),
    /// A `br_table` on this value or any other. The first target is the default.
    Table(Option<Value>, Vec<Successor>),
    /// A `try_call` of this host function. The first target is the normal return.
    TryCall(usize, Vec<Successor>),
    Return,
    Trap,
}

impl End {
    /// All edges.
    pub(super) fn successors(&self) -> &[Successor] {
        match self {
            Self::Jump(successor) => std::slice::from_ref(successor),
            Self::Branch(_, successors) => successors,
            Self::Table(_, successors) | Self::TryCall(_, successors) => successors,
            Self::Return | Self::Trap => &[],
        }
    }
}

/// A function whose blocks are known.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) ends: BTreeMap<Block, End>,
    /// Addresses that step through the memory image and may leave it, with the size of their steps.
    pub(super) walkers: HashMap<Value, i64>,
    /// Values that no one else may use: addresses on the stack.
    pub(super) private: Vec<Value>,
    /// Parameters of headers that count, and what they can be.
    pub(super) counters: HashMap<Value, Progress>,
    /// Parameters of headers that stay the same after the first iterations.
    pub(super) flags: HashSet<Value>,
    /// How many loops a block is in.
    pub(super) depths: HashMap<Block, usize>,
    /// Headers of loops.
    pub(super) headers: HashSet<Block>,
    /// Blocks that call a host function.
    pub(super) calling: HashSet<Block>,
    /// Blocks that have no effect: a rare call is all that a loop of them does to others.
    pub(super) quiet: HashSet<Block>,
    /// Blocks with what is drafted, and nothing else: many a pass looks at small loops only.
    pub(super) bare: HashSet<Block>,
    /// How many scenes have said in memory which accesses run.
    pub(super) tags: usize,
    /// Whether there is a loop that need not end.
    pub(super) endless: bool,
    pub(super) regions: Regions,
    pub(super) shapes: BTreeSet<Shape>,
    /// Loops that end for some arguments only.
    pub(super) countings: Vec<Counting>,
    /// Parameters of blocks that are addresses of places with several names.
    pub(super) pointers: HashSet<Value>,
}

/// Something that a statement can leave for.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// Where a loop goes on with its next iteration, and whether the next values of its controls are passed there.
    pub(super) again: Option<(Block, bool)>,
    /// What comes after it.
    pub(super) exit: Option<Block>,
    /// Parameters of the header before those of the controls.
    pub(super) front: usize,
    pub(super) controls: Vec<Control>,
    pub(super) is_loop: bool,
    /// The array that a loop walks over.
    pub(super) walk: Option<Walk>,
}

/// A function in the making.
pub(super) struct Draft<'a, 'u, 'd> {
    pub(super) pos: FuncCursor<'a>,
    pub(super) random: &'a mut Choices<'u, 'd>,
    pub(super) interface: &'a Interface,
    pub(super) outline: Outline,
    /// The innermost last.
    pub(super) frames: Vec<Frame>,
    /// How many blocks there may still be, roughly.
    pub(super) room: usize,
    /// Whether what is being drafted has no effect.
    pub(super) is_quiet: bool,
    /// Whether what is being drafted has no other instructions.
    pub(super) is_bare: bool,
    /// How often the block that is being drafted may still be repeated.
    pub(super) work: u64,
    /// Integers that are known everywhere.
    pub(super) params: Vec<Value>,
}

impl<'a, 'u, 'd> Draft<'a, 'u, 'd> {
    /// Drafts a function that has a signature and nothing else. It runs a block at most `work` times, roughly.
    pub(super) fn run(
        func: &'a mut Function,
        random: &'a mut Choices<'u, 'd>,
        interface: &'a Interface,
        work: u64,
    ) -> Outline {
        let regions = draw_regions(func, random, interface.features);
        let room =
            random.pick(if interface.features.is_special() { &[4, 6, 8, 12, 16] } else { &[4, 12, 24, 8, 40, 16] });
        let mut draft = Self {
            pos: FuncCursor::new(func),
            random,
            interface,
            outline: Outline { regions, ..Outline::default() },
            frames: Vec::new(),
            room,
            is_quiet: false,
            is_bare: false,
            work,
            params: Vec::new(),
        };
        let entry = draft.entry();
        let first = if draft.features().is_special() { draft.special(entry) } else { draft.looping(entry) };
        let end = first.and_then(|at| draft.region(at, 3));
        if let Some(end) = end {
            draft.finish(end, End::Return);
        }
        draft.outline
    }

    pub(super) fn features(&self) -> Features {
        self.interface.features
    }

    fn entry(&mut self) -> Block {
        let entry = self.block();
        let has_memory = self.features().has(Feature::Memory);
        let last = self.pos.func.signature.params.len() - 1;
        let types: Vec<Type> = self.pos.func.signature.params.iter().map(|param| param.value_type).collect();
        for (index, ty) in types.into_iter().enumerate() {
            let param = self.pos.func.dfg.append_block_param(entry, ty);
            if index == last && self.features().ends_in_address() {
                self.outline.private.push(param);
            } else if ty.is_int() && ty != types::I128 && !(has_memory && index == 0) {
                self.params.push(param);
            }
        }
        entry
    }

    /// A new block.
    pub(super) fn block(&mut self) -> Block {
        self.room = self.room.saturating_sub(1);
        let func = &mut *self.pos.func;
        let block = func.dfg.make_block();
        let count = func.layout.blocks().count();
        if count > 0 && self.interface.features.has(Feature::Shuffled) {
            let before = func.layout.blocks().nth(self.random.below(count)).expect("there are so many blocks");
            func.layout.insert_block_after(block, before);
        } else {
            func.layout.append_block(block);
        }
        if count > 0 && self.interface.features.has(Feature::Cold) && self.random.chance(8) {
            func.layout.set_cold(block);
        }
        self.outline.depths.insert(block, self.depth());
        if self.is_quiet {
            self.outline.quiet.insert(block);
        }
        if self.is_bare {
            self.outline.bare.insert(block);
        }
        block
    }

    /// How many loops are open.
    pub(super) fn depth(&self) -> usize {
        self.frames.iter().filter(|frame| frame.is_loop).count()
    }

    /// Ends a block.
    pub(super) fn finish(&mut self, block: Block, end: End) {
        let before = self.outline.ends.insert(block, end);
        assert!(before.is_none(), "a block ends once");
    }

    /// An integer constant at the end of a block.
    pub(super) fn constant(&mut self, at: Block, ty: Type, value: i128) -> Value {
        self.pos.goto_bottom(at);
        if ty == types::I128 {
            let low = self.pos.ins().iconst(types::I64, value as i64);
            let high = self.pos.ins().iconst(types::I64, (value >> 64) as i64);
            return self.pos.ins().iconcat(low, high);
        }
        let bits = value & (i128::MAX >> (127 - ty.bits()));
        self.pos.ins().iconst(ty, bits as i64)
    }

    /// An edge out of what `at` is in: to the next iteration of a loop, to after a loop, or out of the function.
    pub(super) fn leave(&mut self, at: Block) -> Successor {
        let frames = self.frames.len();
        if frames > 0 && self.random.below(8) > 0 {
            let frame = self.frames[frames - 1 - self.random.below(frames.min(3))].clone();
            match (frame.again, frame.exit) {
                (Some((block, passes)), exit) if exit.is_none() || self.random.chance(40) => {
                    let args = if passes { self.next_args(at, &frame) } else { Vec::new() };
                    return Successor { block, args };
                }
                (_, Some(exit)) => return Successor::to(exit),
                _ => {}
            }
        }
        let block = self.block();
        self.outline.depths.insert(block, 0);
        let traps = self.features().has(Feature::Traps) && self.random.chance(40);
        self.finish(block, if traps { End::Trap } else { End::Return });
        Successor::to(block)
    }
}
