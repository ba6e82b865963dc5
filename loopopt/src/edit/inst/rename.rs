//! Replace uses of values, in operands and in the arguments of edges.

pub(crate) use crate::analysis::cfg::edges::each_use;
use crate::analysis::cfg::edges::{Edge, edges_of};
use crate::analysis::cfg::loops::def_block;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::entity::{SecondaryMap, packed_option::PackedOption};
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, Value};

/// Replaces each value that `inst` uses by what `rename` says.
pub(crate) fn rename_uses(func: &mut Function, inst: Inst, rename: impl FnMut(Value) -> Value) {
    func.dfg.map_inst_values(inst, rename);
}

/// Replaces each value that the edges of `branch` pass by what `rename` says.
pub(crate) fn rename_edge_args(func: &mut Function, branch: Inst, mut rename: impl FnMut(Value) -> Value) {
    for edge in edges_of(func, branch) {
        rename_args(func, edge, &mut rename);
    }
}

/// Replaces each value that `edge` passes by what `rename` says.
pub(crate) fn rename_args(func: &mut Function, edge: Edge, mut rename: impl FnMut(Value) -> Value) {
    let dfg = &mut func.dfg;
    let calls = dfg.insts[edge.branch].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
    calls[edge.slot].update_args(&mut dfg.value_lists, |arg| match arg {
        BlockArg::Value(value) => BlockArg::Value(rename(value)),
        BlockArg::TryCallRet(_) | BlockArg::TryCallExn(_) => arg,
    });
}

/// Replaces the values that `new` has something for, in all instructions of `blocks`.
pub(crate) fn rename_in(func: &mut Function, blocks: impl IntoIterator<Item = Block>, new: &FxHashMap<Value, Value>) {
    for block in blocks {
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            rename_uses(func, inst, |value| new.get(&value).copied().unwrap_or(value));
            next = func.layout.next_inst(inst);
        }
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

    /// What stands for `old`, if something does.
    pub(crate) fn get(&self, old: Value) -> Option<Value> {
        self.0[old].expand()
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
        let mut foreign = Vec::new();
        for &user in users {
            let block = func.layout.inst_block(user);
            foreign.clear();
            each_use(func, user, |value| {
                if let Some(renamed) = self.0[value].expand().filter(|_| def_block(func, value) != block) {
                    foreign.push((value, renamed));
                }
            });
            if !foreign.is_empty() {
                foreign.sort_unstable();
                rename_uses(func, user, |value| {
                    let place = foreign.binary_search_by_key(&value, |&(old, _)| old);
                    place.map_or(value, |place| foreign[place].1)
                });
            }
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
                if uses_any(func, inst, &self.0) {
                    rename_uses(func, inst, |value| match self.0[value].expand() {
                        Some(renamed) if applies(value, block) => renamed,
                        _ => value,
                    });
                }
                insts = func.layout.next_inst(inst);
            }
            blocks = func.layout.next_block(block);
        }
    }
}

/// Whether `inst` uses a value for which another one stands.
fn uses_any(func: &Function, inst: Inst, instead: &SecondaryMap<Value, PackedOption<Value>>) -> bool {
    let mut any = false;
    each_use(func, inst, |value| any |= instead[value].is_some());
    any
}

/// Values that were removed, and what stands for them everywhere: as aliases do, but only instructions that are in a block are looked
/// at, and those that use none of them stay untouched.
#[derive(Default)]
pub(crate) struct Replaced(SecondaryMap<Value, PackedOption<Value>>);

impl Replaced {
    /// Lets `new` stand for `old`, which does not stand for `new`.
    pub(crate) fn insert(&mut self, old: Value, new: Value) {
        let new = self.resolve(new);
        self.0[old] = new.into();
    }

    /// What stands for `value`, itself if it was not removed.
    pub(crate) fn resolve(&self, value: Value) -> Value {
        let mut resolved = value;
        while let Some(next) = self.0[resolved].expand() {
            resolved = next;
        }
        resolved
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What was removed, each with what stands for it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Value, Value)> {
        self.0.iter().filter_map(|(old, new)| Some((old, new.expand()?)))
    }

    /// Replaces the values, if there are any.
    pub(crate) fn apply(mut self, func: &mut Function) {
        if self.is_empty() {
            return;
        }
        self.shorten();
        let mut blocks = func.layout.entry_block();
        while let Some(block) = blocks {
            self.apply_in(func, block);
            blocks = func.layout.next_block(block);
        }
    }

    /// Replaces the values in `block`, once they are [shortened](Self::shorten).
    pub(crate) fn apply_in(&self, func: &mut Function, block: Block) {
        let mut insts = func.layout.first_inst(block);
        while let Some(inst) = insts {
            if uses_any(func, inst, &self.0) {
                rename_uses(func, inst, |value| self.0[value].expand().unwrap_or(value));
            }
            insts = func.layout.next_inst(inst);
        }
    }

    /// Lets each value's last one stand for it, so that time is linear.
    pub(crate) fn shorten(&mut self) {
        for value in self.0.keys() {
            let last = self.resolve(value);
            let mut value = value;
            while let Some(next) = self.0[value].expand().filter(|&next| next != last) {
                self.0[value] = last.into();
                value = next;
            }
        }
    }
}
