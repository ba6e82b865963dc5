//! Replace uses of values, in operands and in the arguments of edges.

pub(crate) use crate::analysis::edges::each_use;
use cranelift_codegen::entity::{SecondaryMap, packed_option::PackedOption};
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, Value};

/// Replaces each value that `inst` uses by what `rename` says.
pub(crate) fn rename_uses(func: &mut Function, inst: Inst, rename: impl FnMut(Value) -> Value) {
    func.dfg.map_inst_values(inst, rename);
}

/// The block in which `value` is defined. Values whose instruction is in no block have none.
pub(crate) fn def_block(func: &Function, value: Value) -> Option<Block> {
    use cranelift_codegen::ir::ValueDef;
    match func.dfg.value_def(value) {
        ValueDef::Param(block, _) => Some(block),
        ValueDef::Result(inst, _) => func.layout.inst_block(inst),
        ValueDef::Union(..) => None,
    }
}

/// Replaces each value that the edges of `branch` pass by what `rename` says.
pub(crate) fn rename_edge_args(func: &mut Function, branch: Inst, mut rename: impl FnMut(Value) -> Value) {
    let dfg = &mut func.dfg;
    let calls = dfg.insts[branch].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
    for call in calls {
        call.update_args(&mut dfg.value_lists, |arg| match arg {
            BlockArg::Value(value) => BlockArg::Value(rename(value)),
            BlockArg::TryCallRet(_) | BlockArg::TryCallExn(_) => arg,
        });
    }
}

/// What stands for which value.
#[derive(Default)]
pub(crate) struct Renames(SecondaryMap<Value, PackedOption<Value>>);

impl Renames {
    /// Lets `new` stand for `old`.
    pub(crate) fn insert(&mut self, old: Value, new: Value) {
        self.0[old] = new.into();
    }

    /// Whether nothing was inserted.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces the values in all blocks but those that define them.
    pub(crate) fn apply_elsewhere(&self, func: &mut Function) {
        let homes = self.homes(func);
        self.apply_where(func, |value, block| homes[value].expand() != Some(block));
    }

    /// The same, in these instructions only.
    pub(crate) fn apply_elsewhere_in(&self, func: &mut Function, users: &[Inst]) {
        let homes = self.homes(func);
        for &user in users {
            let block = func.layout.inst_block(user);
            rename_uses(func, user, |value| match self.0[value].expand() {
                Some(renamed) if homes[value].expand() != block => renamed,
                _ => value,
            });
        }
    }

    /// The block of each value that is replaced.
    fn homes(&self, func: &Function) -> SecondaryMap<Value, PackedOption<Block>> {
        let mut homes = SecondaryMap::<Value, PackedOption<Block>>::new();
        for (value, _) in self.0.iter().filter(|(_, new)| new.is_some()) {
            homes[value] = def_block(func, value).into();
        }
        homes
    }

    /// Replaces the values in the blocks for which `applies` says so.
    pub(crate) fn apply_where(&self, func: &mut Function, applies: impl Fn(Value, Block) -> bool) {
        let mut blocks = func.layout.entry_block();
        while let Some(block) = blocks {
            let mut insts = func.layout.first_inst(block);
            while let Some(inst) = insts {
                rename_uses(func, inst, |value| match self.0[value].expand() {
                    Some(renamed) if applies(value, block) => renamed,
                    _ => value,
                });
                insts = func.layout.next_inst(inst);
            }
            blocks = func.layout.next_block(block);
        }
    }
}
