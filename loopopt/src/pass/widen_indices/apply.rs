//! Rewrites the addresses, and the counters that they need.

use super::gain::is_scale;
use super::plan::{Group, Plan, Terms, Wide, home};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::facts::nowrap::{Counter, Leaf};
use crate::analysis::inst::effects::{Effects, is_constant};
use crate::analysis::inst::number::{self, constant_of};
use crate::analysis::memory::alias::address_operand;
use crate::analysis::scev::view::View;
use crate::edit::at;
use crate::edit::cfg::split_edges::append_arg;
use crate::edit::inst::clone::repeat_before;
use crate::edit::inst::labels::copy_labels;
use crate::edit::inst::rename::rename_uses;
use crate::edit::materialize::dce::remove_unused;
use crate::edit::materialize::emit::emit_multiple;
use crate::edit::materialize::offsets::set_address;
use crate::edit::materialize::pin::pin_all;
use crate::edit::ssa::replace::{Replacement, replace_params};
use crate::fault::fault;
use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, Type, Value, ValueDef, types};
use cranelift_codegen::{Context, FxHashMap};
use std::collections::{BTreeMap, BTreeSet};

/// Does what the plans say. Keeps edges and loops.
pub(super) fn apply(ctx: &mut Context, forest: &LoopForest, plans: &[Plan]) {
    let homes: Vec<Vec<Block>> = {
        let view = View { ctx, forest };
        let home_of = |plan: &Plan, group: &Group| home(view, plan.lp, &group.fixed);
        plans.iter().map(|plan| plan.groups.iter().map(|group| home_of(plan, group)).collect()).collect()
    };
    let counters: BTreeMap<Leaf, Counter> = plans.iter().flat_map(|plan| plan.counters.iter().copied()).collect();
    let Context { func, domtree, .. } = ctx;
    let (counted, made) = (FxHashMap::default(), FxHashMap::default());
    let mut rewriting = Rewriting { func, domtree, counted, unused: Vec::new(), made };
    for (leaf, counter) in &counters {
        let header = forest.data(counter.lp).header;
        let param = rewriting.func.dfg.append_block_param(header, types::I64);
        rewriting.counted.insert(*leaf, param);
    }
    for (plan, homes) in plans.iter().zip(homes) {
        rewriting.rewrite(&plan.groups, &homes);
    }
    for (leaf, counter) in &counters {
        rewriting.count(forest, *leaf, counter);
    }
    for lp in counters.values().map(|counter| counter.lp).collect::<BTreeSet<_>>() {
        rewriting.replace(forest, lp, &counters);
    }
    let Rewriting { mut unused, .. } = rewriting;
    unused.iter_mut().for_each(|value| *value = ctx.func.dfg.resolve_aliases(*value));
    ctx.func.dfg.resolve_all_aliases();
    remove_unused(&mut ctx.func, unused);
}

struct Rewriting<'f> {
    func: &'f mut Function,
    domtree: &'f DominatorTree,
    /// The new counters.
    counted: FxHashMap<Leaf, Value>,
    /// Values that may be computed for nothing.
    unused: Vec<Value>,
    /// What was computed for addresses, by the block. It dominates all that ask for it there: outer loops come first, and what inner loops put into their blocks is
    /// asked for in these only.
    made: FxHashMap<(Block, Made), Value>,
}

/// A part of an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Made {
    Scaled(Wide, u64),
    Sum(Value, Value),
}

impl Rewriting<'_> {
    /// Computes the bases of the groups before the loop, each at the end of its home, and the addresses where they are needed.
    fn rewrite(&mut self, groups: &[Group], homes: &[Block]) {
        let bases: Vec<_> = groups.iter().zip(homes).map(|(group, &home)| self.base(group, home)).collect();
        let all = groups.iter().zip(bases).flat_map(|(group, base)| {
            let moving = &group.moving;
            group.accesses.iter().map(move |&(inst, offset)| (inst, offset, base, moving))
        });
        let mut all: Vec<_> = all.collect();
        let layout = &self.func.layout;
        // In each block from the top, so that what is computed for one access is there for the next one.
        all.sort_by(|(a, ..), (b, ..)| match (layout.inst_block(*a), layout.inst_block(*b)) {
            (block, other) if block == other => layout.pp_cmp(*a, *b),
            (block, other) => block.cmp(&other),
        });
        let mut changed = Vec::with_capacity(all.len());
        for (inst, offset, base, moving) in all {
            let address = self.sum(inst, base, moving);
            let address = address.unwrap_or_else(|| at(self.func, inst).ins().iconst(types::I64, 0));
            self.unused.extend(address_operand(self.func, inst));
            set_address(self.func, inst, (address, offset));
            changed.push(inst);
        }
        pin_all(self.func, changed);
    }

    /// The base of a group, computed at the end of `home`.
    fn base(&mut self, group: &Group, home: Block) -> Option<Value> {
        if !group.makes_base() {
            return group.plain_base();
        }
        let jump = self.func.layout.last_inst(home).expect("a preheader ends in a jump");
        let sum = self.sum(jump, None, &group.fixed);
        let mut cursor = at(self.func, jump);
        match (sum, group.far) {
            (sum, 0) => sum,
            (None, far) => Some(cursor.ins().iconst(types::I64, far)),
            (Some(sum), far) => {
                let far = cursor.ins().iconst(types::I64, far);
                Some(cursor.ins().iadd(sum, far))
            }
        }
    }

    /// Adds up `terms` and `base` before `inst`, last what an addressing mode multiplies.
    fn sum(&mut self, inst: Inst, base: Option<Value>, terms: &Terms) -> Option<Value> {
        let block = self.func.layout.inst_block(inst).expect("a place in the function");
        let mut terms = terms.clone();
        terms.sort_by_key(|&(_, factor)| is_scale(factor).then_some(factor));
        let mut total = base;
        for (wide, factor) in terms {
            let scaled = self.once((block, Made::Scaled(wide, factor)), |rewriting| {
                let value = rewriting.once((block, Made::Scaled(wide, 1)), |rewriting| rewriting.term(inst, wide));
                emit_multiple(&mut at(rewriting.func, inst), value, factor)
            });
            let Some(sum) = total else {
                total = Some(scaled);
                continue;
            };
            let added = (block, Made::Sum(sum, scaled));
            total = Some(self.once(added, |rewriting| at(rewriting.func, inst).ins().iadd(sum, scaled)));
        }
        total
    }

    /// What was computed in a block before, or is now.
    fn once(&mut self, key: (Block, Made), make: impl FnOnce(&mut Self) -> Value) -> Value {
        if let Some(&made) = self.made.get(&key) {
            return made;
        }
        let value = make(self);
        self.made.insert(key, value);
        value
    }

    /// One number in 64 bits, computed before `inst`.
    fn term(&mut self, inst: Inst, wide: Wide) -> Value {
        match wide {
            Wide::Value(value) => self.here(inst, value),
            Wide::Slot(slot) => at(self.func, inst).ins().stack_addr(types::I64, slot, 0),
            Wide::Extended(leaf) => {
                let value = self.here(inst, leaf.value);
                extend(&mut at(self.func, inst), Leaf { value, ..leaf })
            }
            Wide::Counted(leaf) => self.counted[&leaf],
        }
    }

    /// `value`, computed again before `inst` if it is not there: by a few instructions of what is.
    fn here(&mut self, inst: Inst, value: Value) -> Value {
        let ValueDef::Result(def, _) = self.func.dfg.value_def(value) else { return value };
        let (home, block) = (self.func.layout.inst_block(def), self.func.layout.inst_block(inst));
        let (Some(home), Some(block)) = (home, block) else { return value };
        if self.domtree.block_dominates(home, block) {
            return value;
        }
        let operands = self.func.dfg.inst_args(def).to_vec();
        let repeated: Vec<_> = operands.into_iter().map(|operand| (operand, self.operand(inst, operand))).collect();
        let again = repeat_before(self.func, def, inst);
        let copy = self.func.dfg.value_def(again).unwrap_inst();
        rename_uses(self.func, copy, |value| {
            repeated.iter().find(|(operand, _)| *operand == value).map_or(value, |(_, again)| *again)
        });
        again
    }

    /// The same for what it is made of: a constant is beside it.
    fn operand(&mut self, inst: Inst, operand: Value) -> Value {
        match self.func.dfg.value_def(operand).inst().filter(|&def| is_constant(self.func, def)) {
            Some(constant) => repeat_before(self.func, constant, inst),
            None => self.here(inst, operand),
        }
    }

    /// Lets the new counter of `leaf` start and step as the old one.
    fn count(&mut self, forest: &LoopForest, leaf: Leaf, counter: &Counter) {
        let data = forest.data(counter.lp);
        let (entry, back_edge) = (data.entries[0], data.back_edges[0]);
        let ty = self.func.dfg.value_type(leaf.value);
        let start = Leaf { value: counter.start, ..leaf };
        let start = extend(&mut at(self.func, entry.branch), start);
        append_arg(self.func, entry, start);
        let step = counter.step;
        let step = if fault!(StepsUpOnly) { step.abs() } else { step };
        let wide = self.counted[&leaf];
        let next = back_edge.passed_for(self.func, leaf.value);
        let is_plain =
            |def: &Inst| self.func.dfg.inst_results(*def).len() == 1 && Effects::of(self.func, *def).is_pure();
        let def = next.and_then(|next| self.func.dfg.value_def(next).inst()).filter(is_plain);
        let mut cursor = at(self.func, def.unwrap_or(back_edge.branch));
        let step = cursor.ins().iconst(types::I64, step);
        let counted = cursor.ins().iadd(wide, step);
        append_arg(self.func, back_edge, counted);
        if let Some(def) = def {
            // The old sum is the low half of the new one.
            self.unused.extend_from_slice(self.func.dfg.inst_args(def));
            self.func.replace(def).ireduce(ty, counted);
            self.unused.push(self.func.dfg.first_result(def));
        }
    }

    /// Lets the low halves of the new counters of a loop take the place of the old ones.
    fn replace(&mut self, forest: &LoopForest, lp: Loop, counters: &BTreeMap<Leaf, Counter>) {
        let data = forest.data(lp);
        let params = self.func.dfg.block_params(data.header).to_vec();
        let first = self.func.layout.first_inst(data.header).expect("a block ends in a branch");
        let by: Vec<_> = params
            .iter()
            .map(|&param| {
                let leaf = counters.keys().find(|leaf| leaf.value == param);
                leaf.map_or(Replacement::Keep, |leaf| {
                    let ty: Type = self.func.dfg.value_type(param);
                    let low = at(self.func, first).ins().ireduce(ty, self.counted[leaf]);
                    copy_labels(self.func, param, low);
                    self.unused.push(low);
                    Replacement::By(low)
                })
            })
            .collect();
        let edges = [data.entries[0], data.back_edges[0]];
        replace_params(self.func, data.header, &edges, &by);
    }
}

/// Extends a value to 64 bits.
pub(super) fn extend(cursor: &mut FuncCursor<'_>, Leaf { value, signed }: Leaf) -> Value {
    let constant = match cursor.func.dfg.value_def(value) {
        ValueDef::Result(..) => constant_of(cursor.func, value),
        _ => None,
    };
    let bits = cursor.func.dfg.value_type(value).bits();
    match (constant, signed) {
        (Some(constant), false) => cursor.ins().iconst(types::I64, constant.cast_signed()),
        (Some(constant), true) => cursor.ins().iconst(types::I64, number::signed(constant, bits)),
        (None, false) => cursor.ins().uextend(types::I64, value),
        (None, true) => cursor.ins().sextend(types::I64, value),
    }
}
