//! Which definition of a variable reaches the end of a block.
//!
//! Once parameters stand wherever definitions meet, it is the nearest one above in the dominator tree.

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::ir::{Block, Value};
use std::collections::HashMap;

/// The definitions of one variable, by the blocks at whose ends they are in force.
pub(crate) struct Reaching<'a> {
    domtree: &'a DominatorTree,
    at_end: HashMap<Block, Value>,
}

impl<'a> Reaching<'a> {
    /// With these definitions.
    pub(crate) fn new(domtree: &'a DominatorTree, defs: impl IntoIterator<Item = (Block, Value)>) -> Self {
        Self { domtree, at_end: defs.into_iter().collect() }
    }

    /// Adds a definition. It must come before the first question about a block that `block` dominates.
    pub(crate) fn define(&mut self, block: Block, value: Value) {
        self.at_end.insert(block, value);
    }

    /// Whether the end of `block` is known without a look at other blocks.
    pub(crate) fn is_defined(&self, block: Block) -> bool {
        self.at_end.contains_key(&block)
    }

    /// The blocks of the definitions.
    pub(crate) fn defs(&self) -> impl Iterator<Item = Block> {
        self.at_end.keys().copied()
    }

    /// What the variable is at the start of `block`, if that is not a parameter of `block`. None if there is no definition.
    pub(crate) fn at_start(&mut self, block: Block) -> Option<Value> {
        self.at_end(self.domtree.idom(block)?)
    }

    /// What the variable is at the end of `block`, if it is defined. Each block is passed once only.
    pub(crate) fn at_end(&mut self, block: Block) -> Option<Value> {
        let mut passed = Vec::new();
        let mut here = block;
        let value = loop {
            match self.at_end.get(&here) {
                Some(&value) => break value,
                None => passed.push(here),
            }
            here = self.domtree.idom(here)?;
        };
        self.at_end.extend(passed.into_iter().map(|block| (block, value)));
        Some(value)
    }
}
