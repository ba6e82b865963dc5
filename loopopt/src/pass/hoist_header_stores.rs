//! Stores at the top of a loop move to the edges into it, so that an iteration starts with its poll.
//!
//! ```text
//!     jump header(v1)                         store v1, v0
//!                                             jump header(v1)
//! header(v2):  ◄─────────────┐            header(v2):  ◄─────────────┐
//!     store v2, v0           │                v3 = load.i64 v9       │
//!     v3 = load.i64 v9       │     ──►        brif v3, rare, body    │
//!     brif v3, rare, body    │            body:                      │
//! body:                      │                …                      │
//!     …                      │                store v4, v0           │
//!     jump header(v4) ───────┘                jump header(v4) ───────┘
//! ```
//!
//! A front end that keeps references where a garbage collector finds them stores each one where it is defined, as `cranelift-frontend` does for
//! stack maps: one that a loop carries at the top of its header, before the poll whose call may collect. What an iteration has not changed is
//! loaded and stored again at its end then, in one place, and [`promote`](crate::pass::promote) takes it out of the loop.
//!
//! # Needs
//!
//! Canonical form.
//!
//! # Legal when
//!
//! (L1) Before the stores, the header does nothing but compute: so nothing happens between such an edge and them, and they keep their order.
//! (L2) What they store, and where, is known on each such edge: it is from outside of the loop, or a parameter of the header. What the header computes
//! from values of outside is computed before the loop.
//!
//! # Pays when
//!
//! (P1) An iteration starts with a poll then, which [`strip_mine`](crate::pass::strip_mine) takes out of it.
//!
//! # Changes
//!
//! Instructions. A back edge that a branch decides gets a block of its own.
//!
//! # Not done
//!
//! Stores after loads: what they read may be what is stored.
//!
//! # References
//!
//! Code hoisting of LLVM's `GVNHoist`, in the other direction of time: from one block to all before it.

use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::Effects;
use crate::analysis::memory::polls::Polls;
use crate::change::Change;
use crate::edit::cfg::split_edges::split;
use crate::edit::inst::clone::copy_before;
use crate::fault::fault;
use crate::pass::{Form, Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Value, ValueDef};
use cranelift_codegen::{CodegenResult, Context};
use smallvec::SmallVec;

/// The name of this pass.
pub(crate) const NAME: &str = "hoist_header_stores";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS],
    claims: &[],
    pays_alone: false,
    needs: Form::Canonical,
    keeps: Form::Canonical,
    ..Pass::OPTIONAL
};

/// Moves the stores of all loops that poll after them. Linear in the size of the function.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let forest = cx.forest(ctx);
    let mut plans = Vec::new();
    for lp in forest.loops() {
        let header = forest.data(lp).header;
        if cx.marks.is_left_alone(header) {
            continue;
        }
        match Plan::judge(ctx, &forest, lp, cx) {
            Err(_) if cx.has_fired(NAME, header) => {}
            Err(why) => cx.declined(&ctx.func, NAME, header, &why),
            Ok(_) if !cx.fuel.take() => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
            Ok(plan) => {
                cx.retract(NAME, header);
                cx.fired(&ctx.func, &PASS, header, plan.describe());
                plans.push(plan);
            }
        }
    }
    Ok(plans.iter().map(|plan| plan.apply(&mut ctx.func)).max().unwrap_or(Change::Nothing))
}

/// What moves where.
struct Plan {
    /// What the stores need that is the same in each iteration.
    invariant: Vec<Inst>,
    stores: Vec<Inst>,
    edges: [Edge; 2],
}

impl Plan {
    fn judge(ctx: &Context, forest: &LoopForest, lp: Loop, cx: &PassCx<'_>) -> Result<Self, Decline> {
        let (func, data) = (&ctx.func, forest.data(lp));
        let (invariant, stores) = leading_stores(func, forest, lp);
        if stores.is_empty() {
            return Err(Decline::NothingStored);
        }
        let (&[entry], &[back_edge]) = (&data.entries[..], &data.back_edges[..]) else { return Err(Decline::NoPoll) };
        let mut moved = EntitySet::new();
        moved.extend(stores.iter().copied());
        let is_asynchronous = |load: Inst| cx.options.is_asynchronous_load(func, load);
        if Polls::without(ctx, (forest, lp), &moved, &is_asynchronous).is_none() {
            return Err(Decline::NoPoll);
        }
        Ok(Self { invariant, stores, edges: [entry, back_edge] })
    }

    fn describe(&self) -> String {
        let what = if self.stores.len() == 1 { "a store".into() } else { format!("{} stores", self.stores.len()) };
        format!("{what} before the poll: done where the loop is entered, and at the end of each iteration")
    }

    fn apply(&self, func: &mut Function) -> Change {
        let mut change = Change::Insts;
        for &inst in &self.invariant {
            func.layout.remove_inst(inst);
            func.layout.insert_inst(inst, self.edges[0].branch);
        }
        let edges = if fault!(StoredAtEntryOnly) { &self.edges[..1] } else { &self.edges[..] };
        for &(mut edge) in edges {
            if func.dfg.insts[edge.branch].opcode() != Opcode::Jump {
                let block = split(func, edge);
                edge = Edge { branch: func.layout.last_inst(block).expect("a block that jumps"), slot: 0 };
                change = Change::Cfg;
            }
            for &store in &self.stores {
                // Each block argument of these edges is a value: the entry is a jump, and no edge of a poll passes the result of a `try_call`.
                let passed = |&value: &Value| edge.passed_for(func, value).unwrap_or(value);
                let args: SmallVec<[Value; 2]> = func.dfg.inst_args(store).iter().map(passed).collect();
                let copy = copy_before(func, store, edge.branch);
                func.dfg.inst_args_mut(copy).copy_from_slice(&args);
            }
        }
        self.stores.iter().for_each(|&store| func.layout.remove_inst(store));
        change
    }
}

/// The stores of the header before which it only computes, of what is known before it, and what it computes for them that is the same in each iteration.
fn leading_stores(func: &Function, forest: &LoopForest, lp: Loop) -> (Vec<Inst>, Vec<Inst>) {
    let header = forest.data(lp).header;
    let (mut invariant, mut stores) = (Vec::new(), Vec::new());
    let mut computed = EntitySet::new();
    for inst in func.layout.block_insts(header) {
        let is_same = |value: &Value| forest.is_from_outside(func, lp, *value) || computed.contains(*value);
        let is_known = |value: &Value| {
            matches!(func.dfg.value_def(*value), ValueDef::Param(home, _) if home == header) || is_same(value)
        };
        let is_store = matches!(func.dfg.insts[inst], InstructionData::Store { .. });
        if is_store && func.dfg.inst_args(inst).iter().all(is_known) {
            stores.push(inst);
        } else if !Effects::of(func, inst).is_pure() {
            break;
        } else if func.dfg.inst_args(inst).iter().all(is_same) {
            invariant.push(inst);
            computed.extend(func.dfg.inst_results(inst).iter().copied());
        }
    }
    // What no store needs stays.
    let mut needed = EntitySet::new();
    needed.extend(stores.iter().flat_map(|&store| func.dfg.inst_args(store)).copied());
    let mut moved = Vec::new();
    for inst in invariant.into_iter().rev() {
        if func.dfg.inst_results(inst).iter().any(|&result| needed.contains(result)) {
            needed.extend(func.dfg.inst_args(inst).iter().copied());
            moved.push(inst);
        }
    }
    moved.reverse();
    (moved, stores)
}

refusals! {
    /// Why the stores of a header stay there.
    enum Decline {
        /// (L1) There is none that only computations come before.
        NothingStored => "nothing-stored", "the header does not start with a store of a value that is known before it";
        /// (P1) No poll comes after.
        NoPoll => "no-poll", "no poll comes after the stores at the start of an iteration";
    }
    shared { Withheld }
}
