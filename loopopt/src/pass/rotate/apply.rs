//! The header becomes a guard before the loop and a test at its end.

use super::Rotation;
use super::stepped::fold;
use crate::analysis::cfg::edges::{Edge, edges_of};
use crate::analysis::cfg::loops::{def_block, defined_in};
use crate::analysis::inst::effects::Effects;
use crate::claim::Claim;
use crate::edit::cfg::merge::join;
use crate::edit::cfg::split_edges::{append_arg, copy_edge, funnel, retarget};
use crate::edit::copy::copy_iterations::settle;
use crate::edit::inst::clone::{Copies, clone_blocks};
use crate::edit::inst::labels::copy_labels;
use crate::edit::inst::rename::{Renames, Replaced, each_use, rename_edge_args};
use crate::edit::materialize::assertion::assert_takes;
use crate::edit::materialize::dce::remove_unused;
use crate::fault::fault;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, Value};

/// Does all rotations. Returns the new headers.
pub(super) fn apply(func: &mut Function, plans: &[Rotation]) -> Vec<Block> {
    let Needed { values, mut users } = Needed::by_others(func, plans);
    let mut renames = Renames::default();
    let (mut entries, mut sums) = (Vec::new(), Vec::new());
    for plan in plans {
        let copies = clone_blocks(func, &[plan.header]);
        let entry = Entry::make(func, plan, &copies);
        break_copy(func, plan, &copies);
        // With the same value on the edges of the header and of its copy, no parameter is needed for it.
        let copied = |value| if plan.invariant.contains(&value) { copies.value(value) } else { value };
        rename_edge_args(func, plan.into_body.branch, copied);
        let first = values.partition_point(|&(header, _)| header < plan.header);
        let of_header = values[first..].iter().take_while(|&&(header, _)| header == plan.header);
        let of_header: Vec<_> = of_header.map(|&(_, value)| value).collect();
        let mut computed = Vec::new();
        for &value in &of_header {
            let stepped = plan.stepped.iter().find(|one| one.value == value && of_header.contains(&one.counter));
            if let Some(stepped) = stepped {
                computed.push(stepped);
                continue;
            }
            let renamed =
                if plan.invariant.contains(&value) { copies.value(value) } else { entry.carry(func, value, &copies) };
            renames.insert(value, renamed);
        }
        for stepped in computed {
            let counter = renames.get(stepped.counter).expect("a parameter that is carried");
            renames.insert(stepped.value, stepped.compute(func, entry.header, counter));
        }
        sums.extend(plan.stepped.iter().flat_map(|one| [one.value, copies.value(one.value)]));
        // What a header uses of another one, its copy does too.
        users.extend(func.layout.block_insts(copies.block(plan.header)));
        entries.push(entry);
    }
    if fault!(RenamedInHeader) {
        renames.apply_where(func, |_, block| plans.iter().any(|plan| plan.header == block));
    }
    renames.apply_elsewhere_in(func, &users);
    for (plan, entry) in plans.iter().zip(&entries) {
        for (exit, from_loop) in &plan.exits {
            let from_guard: Vec<_> =
                edges_of(func, entry.from_guard.branch).filter(|edge| edge.target(func) == *exit).collect();
            funnel(func, &from_guard, *exit);
            funnel(func, from_loop, *exit);
        }
        funnel(func, &[entry.from_guard], entry.header);
    }
    join_chains(func, plans, &entries);
    sums.into_iter().for_each(|sum| fold(func, sum));
    settle_guards(func, plans, &entries);
    entries.into_iter().map(|entry| entry.header).collect()
}

/// Makes jumps of the guards that are known to take one edge.
fn settle_guards(func: &mut Function, plans: &[Rotation], entries: &[Entry]) {
    let mut unused = Vec::new();
    for (plan, entry) in plans.iter().zip(entries) {
        if let Some(slot) = plan.guard {
            let branch = entry.from_guard.branch;
            unused.extend_from_slice(func.dfg.inst_args(branch));
            assert_takes(func, branch, Claim::BranchTaken, slot);
            settle(func, branch, slot);
        }
    }
    if !unused.is_empty() {
        remove_unused(func, unused);
    }
}

/// Only the preheader enters the copy of the header now, only the latch the header, and often only the new header the body: they
/// become one block each, inner loops first. `merge` joins longer chains.
fn join_chains(func: &mut Function, plans: &[Rotation], entries: &[Entry]) {
    let mut replaced = Replaced::default();
    let mut everywhere = false;
    for (plan, entry) in plans.iter().zip(entries).rev() {
        let guard = entry.from_guard.source(func);
        join(func, plan.preheader, guard, &mut replaced);
        join(func, plan.latch, plan.header, &mut replaced);
        if plan.body_is_lonely {
            everywhere |= func.dfg.num_block_params(plan.body) > 0;
            join(func, entry.header, plan.body, &mut replaced);
        }
    }
    if everywhere {
        replaced.apply(func);
        return;
    }
    // What else used a parameter of a header uses one of the new header by now.
    replaced.shorten();
    for entry in entries {
        replaced.apply_in(func, entry.from_guard.source(func));
        replaced.apply_in(func, entry.back_edge.source(func));
    }
}

/// The faults of this pass that are about copies.
fn break_copy(func: &mut Function, plan: &Rotation, copies: &Copies) {
    let guard = copies.block(plan.header);
    let branch = func.layout.last_inst(guard).expect("a copy of a terminator");
    if fault!(NoGuard) {
        let into_body = Edge { branch, slot: plan.into_body.slot };
        for edge in edges_of(func, branch) {
            copy_edge(func, into_body, edge);
        }
    }
    if fault!(ForgottenEffect) {
        let writes = func
            .layout
            .block_insts(guard)
            .find(|&inst| Effects::of(func, inst).writes && func.dfg.inst_results(inst).is_empty() && inst != branch);
        if let Some(inst) = writes {
            func.layout.remove_inst(inst);
        }
    }
    if fault!(ExitValueOfCopy) {
        rename_edge_args(func, plan.into_body.branch, |value| copies.value(value));
    }
}

/// What other blocks need of the headers. Closed form keeps all of these uses inside the loop.
struct Needed {
    /// The values of each header, in the order of their numbers.
    pub(super) values: Vec<(Block, Value)>,
    /// The instructions that use them.
    users: Vec<Inst>,
}

impl Needed {
    fn by_others(func: &Function, plans: &[Rotation]) -> Self {
        let mut of_headers = EntitySet::with_capacity(func.dfg.num_values());
        for plan in plans {
            of_headers.extend(defined_in(func, plan.header));
        }
        let mut needed = Self { values: Vec::with_capacity(16), users: Vec::with_capacity(16) };
        for block in &func.layout {
            for inst in func.layout.block_insts(block) {
                each_use(func, inst, |value| {
                    if of_headers.contains(value)
                        && let Some(home) = def_block(func, value).filter(|&home| home != block)
                    {
                        needed.values.push((home, value));
                        needed.users.push(inst);
                    }
                });
            }
        }
        needed.users.dedup();
        needed.values.sort_unstable();
        needed.values.dedup();
        needed
    }
}

/// The new header and the edges that enter it.
struct Entry {
    pub(super) header: Block,
    /// The edge from the copy of the old header.
    from_guard: Edge,
    /// The edge from the old header.
    back_edge: Edge,
}

impl Entry {
    /// Lets the preheader enter the copy of the header, and puts a new header on the edges into the body.
    fn make(func: &mut Function, plan: &Rotation, copies: &Copies) -> Self {
        let guard = copies.block(plan.header);
        let into_loop = func.layout.last_inst(plan.preheader).expect("a preheader ends in a jump");
        retarget(func, Edge { branch: into_loop, slot: 0 }, guard);

        let guard_branch = func.layout.last_inst(guard).expect("a copy of a terminator");
        let from_guard = Edge { branch: guard_branch, slot: plan.into_body.slot };
        let body = plan.into_body.target(func);
        let header = funnel(func, &[from_guard, plan.into_body], body);
        Self { header, from_guard, back_edge: plan.into_body }
    }

    /// Gives the new header a parameter for `value` of the old one, and returns it.
    fn carry(&self, func: &mut Function, value: Value, copies: &Copies) -> Value {
        let ty = func.dfg.value_type(value);
        let param = func.dfg.append_block_param(self.header, ty);
        copy_labels(func, value, param);
        append_arg(func, self.from_guard, copies.value(value));
        append_arg(func, self.back_edge, if fault!(StaleBackEdge) { copies.value(value) } else { value });
        param
    }
}
