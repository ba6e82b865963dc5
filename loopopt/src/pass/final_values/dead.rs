//! What a loop computes for nothing, or for its exits alone.

use crate::analysis::cfg::edges::{Edge, edges_from, own_uses};
use crate::analysis::cfg::loops::Loop;
use crate::analysis::inst::effects::{Effects, is_constant};
use crate::analysis::scev::view::View;
use crate::edit::ssa::params::keep_params;
use cranelift_codegen::ir::{Block, Function, Inst, Value, ValueDef};
use cranelift_codegen::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// What is not needed in a loop: parameters of its blocks, and pure instructions.
pub(super) struct Dead {
    /// Blocks that lose parameters, with the edges into them and which stay.
    params: Vec<(Block, Vec<Edge>, Vec<bool>)>,
    insts: Vec<Inst>,
    /// Those that are no constants.
    operations: usize,
}

impl Dead {
    /// What is not needed in the loop if no exit passes a value that `is_gone`. Linear in the size of the loop.
    pub(super) fn without(flow: &Flow<'_>, is_gone: impl Fn(Value) -> bool) -> Self {
        let (view, lp) = (flow.view, flow.lp);
        let (func, forest) = (view.func(), view.forest);
        let needed = Needed::of(flow, is_gone);
        let is_dead = |value: &Value| !needed.values.contains(value);
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

    /// The values that are computed from an operation that is not needed. Linear in the size of the loop.
    pub(super) fn what_needs_it(&self, flow: &Flow<'_>) -> FxHashSet<Value> {
        let func = flow.view.func();
        let params = self.params.iter().flat_map(|(block, _, stays)| func.dfg.block_params(*block).iter().zip(stays));
        let params = params.filter(|&(_, stays)| !stays).map(|(&param, _)| param);
        let results = self.insts.iter().flat_map(|&inst| func.dfg.inst_results(inst)).copied();
        let mut users = FxHashMap::<Value, Vec<Value>>::default();
        for user in params.chain(results) {
            flow.each_source(user, |source| users.entry(source).or_default().push(user));
        }
        let operations = self.insts.iter().filter(|&&inst| !is_constant(func, inst));
        let mut open: Vec<Value> = operations.flat_map(|&inst| func.dfg.inst_results(inst)).copied().collect();
        let mut found: FxHashSet<Value> = open.iter().copied().collect();
        while let Some(value) = open.pop() {
            for &user in users.get(&value).into_iter().flatten() {
                if found.insert(user) {
                    open.push(user);
                }
            }
        }
        found
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

/// What the values of a loop in closed form are computed from.
pub(super) struct Flow<'a> {
    view: View<'a>,
    lp: Loop,
    /// The block arguments for each parameter.
    passed: FxHashMap<Value, SmallVec<[Value; 2]>>,
}

impl<'a> Flow<'a> {
    /// Linear in the size of the loop.
    pub(super) fn of(view: View<'a>, lp: Loop) -> Self {
        let View { ctx, forest } = view;
        let func = &ctx.func;
        let mut passed = FxHashMap::<Value, SmallVec<[Value; 2]>>::default();
        for &block in forest.blocks(lp) {
            let params = func.dfg.block_params(block);
            // To ask for one argument takes a look at all before it.
            for edge in forest.edges_into(func, &ctx.cfg, block).iter().filter(|_| !params.is_empty()) {
                for (&param, arg) in params.iter().zip(edge.args(func)) {
                    passed.entry(param).or_default().extend(arg.as_value());
                }
            }
        }
        Self { view, lp, passed }
    }

    /// What `value`, which is defined in the loop, is computed from directly.
    fn each_source(&self, value: Value, visit: impl FnMut(Value)) {
        let func = self.view.func();
        match func.dfg.value_def(value) {
            ValueDef::Result(inst, _) => func.dfg.inst_args(inst).iter().copied().for_each(visit),
            ValueDef::Param(..) => self.passed.get(&value).into_iter().flatten().copied().for_each(visit),
            ValueDef::Union(..) => {}
        }
    }
}

/// The values of a loop that something needs.
struct Needed<'a> {
    flow: &'a Flow<'a>,
    values: FxHashSet<Value>,
    open: Vec<Value>,
}

impl<'a> Needed<'a> {
    fn of(flow: &'a Flow<'a>, is_gone: impl Fn(Value) -> bool) -> Self {
        let (func, forest) = (flow.view.func(), flow.view.forest);
        let mut needed = Self { flow, values: FxHashSet::default(), open: Vec::new() };
        for &block in forest.blocks(flow.lp) {
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
        for &exit in &forest.data(flow.lp).exits {
            let values = exit.args(func).filter_map(|arg| arg.as_value());
            values.filter(|&value| !is_gone(value)).for_each(|value| needed.add(value));
        }
        while let Some(value) = needed.open.pop() {
            flow.each_source(value, |source| needed.add(source));
        }
        needed
    }

    fn add(&mut self, value: Value) {
        let View { ctx, forest } = self.flow.view;
        let is_inside = forest.defines(&ctx.func, self.flow.lp, value);
        if is_inside && self.values.insert(value) {
            self.open.push(value);
        }
    }
}
