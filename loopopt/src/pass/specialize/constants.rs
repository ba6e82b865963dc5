//! What is computed from constants before a loop.

use crate::analysis::cfg::loops::LoopForest;
use crate::analysis::profiled::{MAX_CHAIN, only_operand};
use crate::analysis::scev::const_eval::Evaluator;
use crate::edit::inst::clone::repeat_before;
use crate::edit::inst::rename::rename_uses;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, Value};
use cranelift_codegen::{Context, FxHashMap};

/// The constants that stand for values where some values are constants.
pub(super) struct Constants {
    /// For each value what stands for it.
    known: FxHashMap<Value, Value>,
    /// What was recomputed, none before its operand.
    computed: Vec<Value>,
    /// Those that are given and not made yet.
    given: FxHashMap<Value, u64>,
    before: Inst,
}

impl Constants {
    /// Where these values are these numbers. What is made is placed before `before`.
    pub(super) fn new(given: &[(Value, u64)], before: Inst) -> Self {
        let given = given.iter().copied().collect();
        Self { known: FxHashMap::default(), computed: Vec::new(), given, before }
    }

    /// Finds out whether `value` is one of them, or is computed from one alone. Then it is recomputed.
    pub(super) fn find(&mut self, func: &mut Function, value: Value) {
        let mut chain = Vec::new();
        let mut at = value;
        while !self.is_known(func, at) {
            match only_operand(func, at).filter(|_| chain.len() < MAX_CHAIN) {
                Some(operand) => chain.push((std::mem::replace(&mut at, operand), operand)),
                None => return,
            }
        }
        // From what is known to `value`.
        for (result, operand) in chain.into_iter().rev() {
            let inst = func.dfg.value_def(result).inst().expect("it has an operand");
            let again = repeat_before(func, inst, self.before);
            let new = self.known[&operand];
            let copy = func.dfg.value_def(again).inst().expect("a copy of an instruction");
            rename_uses(func, copy, |value| if value == operand { new } else { value });
            self.known.insert(result, again);
            self.computed.push(again);
        }
    }

    /// Whether something stands for `value`. Makes it if it is given.
    fn is_known(&mut self, func: &mut Function, value: Value) -> bool {
        if let Some(number) = self.given.remove(&value) {
            let ty = func.dfg.value_type(value);
            let constant = FuncCursor::new(func).at_inst(self.before).ins().iconst(ty, number.cast_signed());
            self.known.insert(value, constant);
        }
        self.known.contains_key(&value)
    }

    /// Lets what was recomputed be constants, as far as it folds, and returns what stands for what.
    pub(super) fn finish(self, ctx: &mut Context, forest: &LoopForest) -> FxHashMap<Value, Value> {
        for value in self.computed {
            let number = Evaluator::new(&ctx.func, &ctx.cfg, forest, 2 * MAX_CHAIN).value(value);
            let ty = ctx.func.dfg.value_type(value);
            let inst = ctx.func.dfg.value_def(value).inst().expect("it was computed");
            if let Some(number) = number.filter(|_| ty.bits() <= 64) {
                ctx.func.replace(inst).iconst(ty, (number as u64).cast_signed());
            }
        }
        self.known
    }
}
