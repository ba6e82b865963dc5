//! Value labels, by which a debugger knows which value holds a variable.

use cranelift_codegen::ir::{Function, Value, ValueLabelAssignments};

/// Lets `to` carry the labels of `from`: for a value that holds the same variable in another place.
pub(crate) fn copy_labels(func: &mut Function, from: Value, to: Value) {
    let Some(labels) = &mut func.dfg.values_labels else {
        return;
    };
    match labels.get(&from).cloned() {
        Some(ValueLabelAssignments::Starts(starts)) => {
            labels.insert(to, ValueLabelAssignments::Starts(starts));
        }
        Some(ValueLabelAssignments::Alias { from: start, value }) => {
            labels.insert(to, ValueLabelAssignments::Alias { from: start, value });
        }
        None => {}
    }
}

/// Lets `to` carry the labels of `from`, and none of those that it has: it holds what `from` did.
pub(crate) fn replace_labels(func: &mut Function, from: Value, to: Value) {
    if let Some(labels) = &mut func.dfg.values_labels {
        labels.remove(&to);
    }
    copy_labels(func, from, to);
}

/// Lets `to` carry the labels of `from`, which is removed, unless it has labels of its own.
pub(crate) fn leave_labels(func: &mut Function, from: Value, to: Value) {
    let is_free = func.dfg.values_labels.as_ref().is_some_and(|labels| !labels.contains_key(&to));
    if is_free {
        copy_labels(func, from, to);
    }
}
