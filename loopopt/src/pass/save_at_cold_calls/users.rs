//! Which blocks use a value, while values are put in the place of others.

use crate::analysis::cfg::edges::each_use;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::{Block, Function, Inst, Value};

/// The blocks that use each value.
pub(super) struct Users(FxHashMap<Value, Vec<Block>>);

impl Users {
    pub(super) fn of(func: &Function) -> Self {
        let mut users = Self(FxHashMap::default());
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                each_use(func, inst, |value| users.add(value, block));
            }
        }
        users
    }

    pub(super) fn add(&mut self, value: Value, block: Block) {
        let blocks = self.0.entry(value).or_default();
        if blocks.last() != Some(&block) {
            blocks.push(block);
        }
    }

    pub(super) fn blocks(&self, value: Value) -> &[Block] {
        self.0.get(&value).map_or(&[], |blocks| blocks)
    }

    /// Takes out what uses `value`.
    pub(super) fn take(&mut self, func: &Function, value: Value) -> Vec<Inst> {
        let mut blocks = self.0.remove(&value).unwrap_or_default();
        blocks.sort_unstable();
        blocks.dedup();
        let mut insts: Vec<_> = blocks.into_iter().flat_map(|block| func.layout.block_insts(block)).collect();
        insts.retain(|&inst| {
            let mut uses = false;
            each_use(func, inst, |used| uses |= used == value);
            uses
        });
        insts
    }

    /// The blocks that are `chosen` use `new`, which nothing uses yet, in the place of `old`.
    pub(super) fn replace(&mut self, old: Value, new: Value, chosen: impl Fn(Block) -> bool) {
        let Some(blocks) = self.0.get_mut(&old) else { return };
        let (moved, rest) = blocks.iter().partition(|&&block| chosen(block));
        *blocks = rest;
        self.0.insert(new, moved);
    }
}
