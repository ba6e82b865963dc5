//! Use what memory is known to hold in the place of loads.

use crate::edit::inst::rename::Replaced;
use crate::edit::materialize::assertion::assert_loads;
use cranelift_codegen::ir::{Function, Inst, Value};

/// Lets each load be the value with it, which dominates it. The value of one may be the result of another.
pub(crate) fn replace_loads(func: &mut Function, known: Vec<(Inst, Value)>) {
    let mut replaced = Replaced::default();
    for (load, value) in known {
        assert_loads(func, load, load, value);
        replaced.insert(func.dfg.first_result(load), value);
        func.layout.remove_inst(load);
    }
    replaced.apply(func);
}
