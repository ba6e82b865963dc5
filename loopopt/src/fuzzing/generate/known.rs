//! What can be used in a block: values, addresses and places that its dominators made known.

use super::cells::Cell;
use super::locals::Local;
use super::memory::Pointer;
use super::series::Series;
use cranelift_codegen::ir::Value;

/// What is known in a block, the youngest last.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) values: Vec<Value>,
    pub(super) pointers: Vec<Pointer>,
    pub(super) cells: Vec<Cell>,
    pub(super) locals: Vec<Local>,
    pub(super) series: Vec<Series>,
    /// Parameters of headers with known values.
    pub(super) counters: Vec<Value>,
    /// Parameters of headers that stay the same after the first iterations.
    pub(super) flags: Vec<Value>,
    /// Values for after the loops that they are computed in, with the depth of those.
    late: Vec<(usize, Value)>,
    /// What was known before each enclosing loop, the outermost first.
    outer: Vec<Outer>,
}

/// How much was known before a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outer {
    pub(super) values: usize,
    pub(super) pointers: usize,
    pub(super) cells: usize,
}

impl Known {
    /// Starts with a block in so many loops.
    pub(super) fn enter(&mut self, depth: usize) {
        self.outer.truncate(depth);
        let here = Outer { values: self.values.len(), pointers: self.pointers.len(), cells: self.cells.len() };
        self.outer.resize(depth, here);
    }

    /// How many loops enclose the block.
    pub(super) fn depth(&self) -> usize {
        self.outer.len()
    }

    /// What was known before the loop that so many loops enclose.
    pub(super) fn outside(&self, depth: usize) -> Outer {
        self.outer[depth]
    }

    /// Keeps a value for after the innermost loop.
    pub(super) fn keep_for_later(&mut self, value: Value) {
        self.late.push((self.depth(), value));
    }

    /// Takes the values that were kept for here.
    pub(super) fn take_late(&mut self) -> Vec<Value> {
        let depth = self.depth();
        let (here, still_late) = self.late.drain(..).partition(|&(at, _)| at > depth);
        self.late = still_late;
        here.into_iter().map(|(_, value): (usize, Value)| value).collect()
    }
}
