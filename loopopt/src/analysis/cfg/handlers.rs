//! Blocks that instructions name.
//!
//! ```text
//! block1:
//!     v1 = get_exception_handler_address.i64 block2, 0     where to resume if the call that ends block2 is unwound
//!     store v1, v0
//!     ...
//! block2:
//!     try_call fn0(v2), sig0, block3, [ tag0: block4(exn0) ]
//! ```
//!
//! A runtime that finds the address in memory resumes there, as long as the call is on the stack. When that is, nobody can tell from the
//! function: the address may have been stored in any block before, and in an earlier iteration. So the call has to be where the
//! name says: a block that is named is not merged into another one, and not copied, for each copy would resume at the
//! handler of the first. The instruction itself is a constant, and may be copied and moved like any other. What the edges of the call lead to may
//! change: the address is that of the edge.
//!
//! What cannot be reached may be removed, named or not: the call is never on the stack then (`edit/cfg/unreachable.rs`).

use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData};
use std::rc::Rc;

/// The blocks of a function that instructions name. No edit names another one, so that they are found once for all passes. A copy is cheap.
#[derive(Clone, Debug, Default)]
pub struct NamedBlocks(Rc<EntitySet<Block>>);

impl NamedBlocks {
    /// Those that any instruction has named, even one that was removed since. Linear in the instructions of a function that has
    /// handlers.
    pub fn of(func: &Function) -> Self {
        let mut named = EntitySet::new();
        if !func.dfg.exception_tables.is_empty() {
            named.extend(all_insts(func).filter_map(|inst| named_by(&func.dfg.insts[inst])));
        }
        Self(Rc::new(named))
    }

    /// Whether an instruction names `block`.
    pub fn contains(&self, block: Block) -> bool {
        self.0.contains(block)
    }
}

/// The block that an instruction names.
pub fn named_by(data: &InstructionData) -> Option<Block> {
    match data {
        InstructionData::ExceptionHandlerAddress { block, .. } => Some(*block),
        _ => None,
    }
}

/// All instructions, in the layout or not.
pub(crate) fn all_insts(func: &Function) -> impl Iterator<Item = Inst> + use<> {
    let count = u32::try_from(func.dfg.num_insts()).expect("instructions are numbered with 32 bits");
    (0..count).map(Inst::from_u32)
}
