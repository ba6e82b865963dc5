//! Numbers of the header that are a counter plus a constant.
//!
//! ```text
//! header(v1):                            header(v1):  ◄──────────────┐
//!     v2 = iadd v1, 2                        v9 = iadd v1, 2         │
//!     v3 = icmp slt v2, v0          ──►      v4 = load v9            │
//!     brif v3, body, exit                    v5 = iadd v1, 3         │
//! body:                                      v2 = iadd v1, 5         │
//!     v4 = load v2                           v3 = icmp slt v2, v0    │
//!     v5 = iadd v1, 3                        brif v3, header(v5) ────┘
//!     jump header(v5)
//! ```
//!
//! The new header computes them. If it got them as parameters, each would be a number of its own, of which nothing says that it is the counter plus a
//! constant: no check would know its range, and no address take the constant as an offset. And what the header computes at the end of an iteration becomes one
//! step from what the iteration began with. Both are the same sums as before.

use crate::analysis::cfg::loops::Loop;
use crate::analysis::inst::number::mask;
use crate::analysis::scev::linear_expr::offset;
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::view::View;
use crate::edit::at;
use crate::edit::inst::labels::copy_labels;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Function, InstBuilder, Opcode, Value};

/// A number of the header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stepped {
    pub(super) value: Value,
    /// The parameter of the header that steps by a constant.
    pub(super) counter: Value,
    /// What is added to it.
    added: u64,
}

/// Those of the header of `lp`, in the order of the instructions.
pub(super) fn stepped(view: View<'_>, lp: Loop) -> Vec<Stepped> {
    let func = view.func();
    let header = view.forest.data(lp).header;
    let params = func.dfg.block_params(header);
    let results = func.layout.block_insts(header).filter_map(|inst| {
        let is_sum = matches!(func.dfg.insts[inst].opcode(), Opcode::Iadd | Opcode::Isub);
        let value = func.dfg.inst_results(inst).first().copied().filter(|_| is_sum)?;
        let ty = func.dfg.value_type(value);
        let (counter, added) = offset(func, None, value);
        let is_number = ty.is_int() && ty.bits() <= 64 && params.contains(&counter);
        is_number.then_some(Stepped { value, counter, added: added as u64 })
    });
    let mut found: Vec<_> = results.collect();
    if !found.is_empty() {
        let recurrences = Recurrences::with_constant_steps(view, lp);
        found.retain(|one| recurrences.get(one.counter).is_some());
    }
    found
}

impl Stepped {
    /// Computes it in the new header, which ends in a jump, from the parameter there that stands for the counter.
    pub(super) fn compute(self, func: &mut Function, header: Block, counter: Value) -> Value {
        let jump = func.layout.last_inst(header).expect("a funnel ends in a jump");
        let srcloc = func.srcloc(func.dfg.value_def(self.value).unwrap_inst());
        let ty = func.dfg.value_type(counter);
        let mut cursor = FuncCursor::new(func).at_inst(jump).with_srcloc(srcloc);
        let constant = cursor.ins().iconst(ty, (self.added & mask(ty.bits())).cast_signed());
        let computed = cursor.ins().iadd(counter, constant);
        copy_labels(func, self.value, computed);
        computed
    }
}

/// Lets `value`, a sum, be that of one number and one constant, whatever it was made of.
pub(super) fn fold(func: &mut Function, value: Value) {
    let Some(inst) = func.dfg.value_def(value).inst().filter(|&inst| func.layout.inst_block(inst).is_some()) else {
        return;
    };
    let (base, added) = offset(func, None, value);
    let ty = func.dfg.value_type(value);
    if base == value || func.dfg.inst_args(inst).contains(&base) {
        return;
    }
    let constant = (added as u64 & mask(ty.bits())).cast_signed();
    let constant = at(func, inst).ins().iconst(ty, constant);
    func.replace(inst).iadd(base, constant);
}
