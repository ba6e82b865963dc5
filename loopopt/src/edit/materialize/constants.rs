//! Rematerialize constants in each block that uses them.
//!
//! Cranelift's egraph pass leaves functions like that (`remat.isle`): a constant costs nothing as an immediate and next to
//! nothing in a register, but a register that holds one across a loop is lost to the loop. Edits that move arguments from
//! one block to another would undo it.

use crate::analysis::cfg::handlers::all_insts;
use crate::analysis::inst::effects::is_rematerialized;
use crate::edit::inst::clone::repeat_before;
use crate::edit::inst::rename::{Replaced, each_use, rename_uses};
use crate::fault::fault;
use cranelift_codegen::entity::{SecondaryMap, packed_option::PackedOption};
use cranelift_codegen::ir::{Block, Function, Inst, Value};

/// Gives each block its own copies of the scalar constants that it uses from other blocks, right before the first use, once all
/// values are `replaced`. Returns whether there was any.
pub(crate) fn replace_and_localize(func: &mut Function, mut replaced: Replaced) -> bool {
    replaced.shorten();
    let mut homes = homes_of_constants(func);
    for (old, _) in replaced.iter() {
        homes[old] = nowhere().into();
    }
    let mut any = false;
    let mut blocks = func.layout.entry_block();
    let mut local = Local::default();
    while let Some(block) = blocks {
        local.clear();
        let mut insts = func.layout.first_inst(block);
        while let Some(inst) = insts {
            localize_operands(func, (block, &homes, &replaced), inst, &mut local);
            insts = func.layout.next_inst(inst);
        }
        any |= !local.made.is_empty();
        blocks = func.layout.next_block(block);
    }
    any
}

/// The blocks of scalar constants. Of values that are replaced, [`nowhere`].
type Homes = SecondaryMap<Value, PackedOption<Block>>;

/// No block of any function.
fn nowhere() -> Block {
    Block::from_u32(u32::MAX - 1)
}

fn homes_of_constants(func: &Function) -> Homes {
    let mut homes = Homes::new();
    homes.resize(func.dfg.num_values());
    for inst in all_insts(func).filter(|&inst| is_rematerialized(func, inst)) {
        if let Some(block) = func.layout.inst_block(inst) {
            homes[func.dfg.first_result(inst)] = block.into();
        }
    }
    homes
}

/// Lets `inst`, an instruction of `block`, use constants of its own block. `local` holds those made so far.
fn localize_operands(
    func: &mut Function,
    (block, homes, replaced): (Block, &Homes, &Replaced),
    inst: Inst,
    local: &mut Local,
) {
    let is_foreign = |value| homes[value].expand().is_some_and(|home| home != block);
    let mut any = false;
    each_use(func, inst, |value| any |= is_foreign(value));
    if !any {
        return;
    }
    rename_uses(func, inst, |value| replaced.resolve(value));
    let values: Vec<_> = func.dfg.inst_values(inst).collect();
    for &value in values.iter().filter(|&&value| is_foreign(value)) {
        if local.find(func, value).is_none() {
            let def = func.dfg.value_def(value).unwrap_inst();
            let new = repeat_before(func, def, inst);
            local.insert(value, new);
        }
    }
    let values = values.into_iter().map(|value| match is_foreign(value) {
        true => local.find(func, value).unwrap_or(value),
        false => value,
    });
    let values: Vec<_> = values.collect();
    func.dfg.overwrite_inst_values(inst, values.into_iter());
}

/// The constants that were made for one block.
#[derive(Default)]
struct Local {
    /// What stands for which constant.
    new: SecondaryMap<Value, PackedOption<Value>>,
    /// The constants for which something does.
    made: Vec<Value>,
}

impl Local {
    fn insert(&mut self, old: Value, new: Value) {
        self.new[old] = new.into();
        self.made.push(old);
    }

    /// What stands for `value`.
    fn find(&self, func: &Function, value: Value) -> Option<Value> {
        let same_type = |&&old: &&Value| func.dfg.value_type(old) == func.dfg.value_type(value);
        let old = if fault!(AnyConstant) { self.made.iter().find(same_type).copied().unwrap_or(value) } else { value };
        self.new[old].expand()
    }

    fn clear(&mut self) {
        for old in self.made.drain(..) {
            self.new[old] = None.into();
        }
    }
}
