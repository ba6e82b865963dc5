//! What a loop computes for nothing, or for its exits alone.

use crate::analysis::cfg::edges::{Edge, edges_from, own_uses};
use crate::analysis::cfg::loops::{Loop, def_block};
use crate::analysis::memory::effects::{Effects, is_constant};
use crate::analysis::scev::view::View;
use crate::edit::ssa::params::keep_params;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, Value, ValueDef};

/// What is not needed in a loop: parameters of its blocks, and pure instructions.
pub(super) struct Dead {
    /// Blocks that lose parameters, with the edges into them and which stay.
    params: Vec<(Block, Vec<Edge>, Vec<bool>)>,
    insts: Vec<Inst>,
    /// Those that are no constants.
    operations: usize,
}

impl Dead {
    /// What is not needed in `lp`, which is in closed form, if no exit passes a value that `is_gone`. Linear in the size of the loop.
    pub(super) fn without(view: View<'_>, lp: Loop, is_gone: impl Fn(Value) -> bool) -> Self {
        let (func, forest) = (view.func(), view.forest);
        let needed = Needed::of(view, lp, is_gone);
        let is_dead = |&value: &Value| !needed.values.contains(value);
        let mut dead = Self { params: Vec::new(), insts: Vec::new(), operations: 0 };
        for &block in forest.blocks(lp) {
            let params = func.dfg.block_params(block);
            if params.iter().any(is_dead) {
                let edges = forest.edges_into(func, &view.ctx.cfg, block).to_vec();
                dead.params.push((block, edges, params.iter().map(|param| !is_dead(param)).collect()));
            }
            for inst in func.layout.block_insts(block) {
                if Effects::of(func, inst).is_pure() && func.dfg.inst_results(inst).iter().all(is_dead) {
                    dead.operations += usize::from(!is_constant(func, inst));
                    dead.insts.push(inst);
                }
            }
        }
        dead
    }

    /// How many instructions are not needed, constants not counted.
    pub(super) fn operations(&self) -> usize {
        self.operations
    }

    /// Removes all of it.
    pub(super) fn remove(self, func: &mut Function) {
        for (block, edges, keeps) in &self.params {
            keep_params(func, (*block, edges), keeps);
        }
        for inst in self.insts {
            func.layout.remove_inst(inst);
        }
    }
}

/// The values of a loop that something needs.
struct Needed<'a> {
    view: View<'a>,
    lp: Loop,
    values: EntitySet<Value>,
    open: Vec<Value>,
}

impl<'a> Needed<'a> {
    fn of(view: View<'a>, lp: Loop, is_gone: impl Fn(Value) -> bool) -> Self {
        let (func, forest) = (view.func(), view.forest);
        let mut needed = Self { view, lp, values: EntitySet::new(), open: Vec::new() };
        for &block in forest.blocks(lp) {
            for inst in func.layout.block_insts(block) {
                if !Effects::of(func, inst).is_pure() {
                    own_uses(func, inst).for_each(|value| needed.add(value));
                }
            }
            // What a call passes to where it returns is no value of ours.
            for edge in edges_from(func, block) {
                let params = func.dfg.block_params(edge.target(func)).iter().zip(edge.args(func));
                params.filter(|(_, arg)| arg.as_value().is_none()).for_each(|(&param, _)| needed.add(param));
            }
        }
        for &exit in &forest.data(lp).exits {
            let values = exit.args(func).filter_map(|arg| arg.as_value());
            values.filter(|&value| !is_gone(value)).for_each(|value| needed.add(value));
        }
        while let Some(value) = needed.open.pop() {
            needed.follow(value);
        }
        needed
    }

    fn add(&mut self, value: Value) {
        let is_inside =
            def_block(self.view.func(), value).is_some_and(|block| self.view.forest.contains(self.lp, block));
        if is_inside && self.values.insert(value) {
            self.open.push(value);
        }
    }

    /// Adds what `value` is computed from.
    fn follow(&mut self, value: Value) {
        let View { ctx, forest } = self.view;
        let func = &ctx.func;
        match func.dfg.value_def(value) {
            ValueDef::Result(inst, _) => func.dfg.inst_args(inst).iter().for_each(|&arg| self.add(arg)),
            ValueDef::Param(block, index) => {
                for edge in forest.edges_into(func, &ctx.cfg, block) {
                    edge.args(func).nth(index).and_then(|arg| arg.as_value()).into_iter().for_each(|arg| self.add(arg));
                }
            }
            ValueDef::Union(..) => {}
        }
    }
}
