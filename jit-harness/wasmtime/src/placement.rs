//! Where the code of a function lies within the lines of the instruction cache.
//!
//! A loop of a few instructions can be 20 % slower than the same loop 16 bytes farther on, for it takes up one line of the
//! cache more, or one entry more of what keeps decoded instructions. What a change of the code before a loop does to that is
//! chance, and says nothing of the change. So functions with loops are compiled at several places of a line, in both arms.
//!
//! Wasmtime puts each function at a multiple of 32 bytes. What shifts the rest of it is a block after the entry that
//! never runs: its bytes are there, and the function pays for a test and a jump each time that it is called, in all arms.

use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, TrapCode, types};

/// The distances by which code is shifted, in bytes.
pub const SHIFTS: [usize; 4] = [0, 16, 32, 48];

/// Bytes of `mov r64, [r64 + disp8]`.
const LOAD_BYTES: usize = 4;
/// The offset that such a load names. The block never runs, so that nothing has to be there.
const OFFSET: i32 = 8;

/// Shifts what follows the entry of a function by a number of bytes, and a few more that are the same for all numbers.
pub fn shift(ctx: &mut Context, bytes: usize) {
    let entry = ctx.func.layout.entry_block();
    let first = entry.and_then(|entry| ctx.func.layout.first_inst(entry));
    let Some((entry, first)) = entry.zip(first) else { return };
    let params = ctx.func.dfg.block_params(entry);
    let Some(&pointer) = params.iter().find(|&&param| ctx.func.dfg.value_type(param) == types::I64) else { return };

    let [never, rest] = [(); 2].map(|()| ctx.func.dfg.make_block());
    ctx.func.layout.split_block(rest, first);
    ctx.func.layout.insert_block(never, rest);
    let mut pos = FuncCursor::new(&mut ctx.func);
    pos.goto_bottom(entry);
    pos.ins().brif(pointer, rest, &[], never, &[]);
    pos.goto_bottom(never);
    for _ in 0..bytes / LOAD_BYTES {
        pos.ins().load(types::I64, MemFlagsData::new(), pointer, OFFSET);
    }
    pos.ins().trap(TrapCode::unwrap_user(1));
    ctx.compute_cfg();
    ctx.compute_domtree();
    ctx.compute_loop_analysis();
}
