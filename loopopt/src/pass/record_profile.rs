//! Recording: a loop counts what it does, for a [`profile`](crate::profile).
//!
//! ```text
//!     jump block1(v1)                          … v8 is counted in its table …
//! block1(v2: i64):                             jump block1(v1, 0)
//!     …                                    block1(v2: i64, v10: i64):
//!     brif v3, block1(v4), block2    ──►       …
//! block2:                                      v11 = iadd v10, 1
//!     …                                        brif v3, block1(v4, v11), block2(v10)
//!                                          block2(v12: i64):
//!                                              … the class of v12 is counted, and v12 is added up …
//! ```
//!
//! # Needs
//!
//! Canonical form. It does nothing but for [`Profiling::Record`].
//!
//! # Legal when
//!
//! Always. What it adds reads and writes memory that nobody else knows, at addresses of its own, and traps nowhere.
//!
//! # Pays when
//!
//! Always: it is asked for. A counter that is carried in a register costs an addition for each iteration; a block that not each iteration executes adds to memory.
//!
//! # Changes
//!
//! Instructions, parameters and arguments, but no block and no edge: the form stays.
//!
//! # References
//!
//! GCC's histograms of loop iterations and of values (`tree-profile.c`, `value-prof.c`).

use crate::analysis::cfg::edges::{Edge, edges_into};
use crate::analysis::cfg::loops::{LoopData, LoopForest};
use crate::analysis::profiled::sites;
use crate::change::Change;
use crate::edit::cfg::split_edges::append_arg;
use crate::pass::apply_profile::{Unrecorded, decline_large};
use crate::pass::{Form, Pass, PassCx};
use crate::profile::{Counters, Emitter, LoopSites, Profiling};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Function, InstBuilder, Type, Value, types};
use cranelift_codegen::{CodegenResult, Context};
use std::collections::BTreeSet;

/// The name of this pass.
pub(crate) const NAME: &str = "record_profile";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Unrecorded::REASONS],
    is_mandatory: true,
    needs: Form::Canonical,
    keeps: Form::Canonical,
    ..Pass::OPTIONAL
};

/// Does it in all loops, once. Linear in the size of the function.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let Profiling::Record(recorder) = &cx.options.profiling else { return Ok(Change::Nothing) };
    if std::mem::replace(&mut cx.is_profiled, true) {
        return Ok(Change::Nothing);
    }
    let forest = cx.forest(ctx);
    let all = sites(ctx, &forest);
    decline_large(ctx, cx, &all, NAME);
    let mut counters = recorder.add(ctx.func.name.to_string(), &all);
    for sites in &all {
        let what = format!("counts its iterations, {} blocks and {} values", sites.blocks.len(), sites.values.len());
        cx.look_again(ctx, sites.header);
        cx.fired(&ctx.func, &PASS, sites.header, what);
        count(ctx, &forest, sites, (&mut counters, cx.isa.pointer_type()));
    }
    Ok(if all.is_empty() { Change::Nothing } else { Change::Insts })
}

/// Lets a loop count.
fn count(ctx: &mut Context, forest: &LoopForest, sites: &LoopSites, (counters, pointer): (&mut Counters, Type)) {
    let Context { func, cfg, .. } = ctx;
    let lp = forest.loop_of_header(sites.header).expect("the header of a loop");
    let data = forest.data(lp);
    let (back_edges, classes) = counters.take_exits();
    // Each exit block is entered by edges of this loop, or of inner loops, alone.
    let exits: BTreeSet<Block> = data.exits.iter().map(|edge| edge.target(func)).collect();
    let taken = carry(func, data);
    for block in exits {
        let param = func.dfg.append_block_param(block, types::I64);
        let edges: Vec<Edge> = edges_into(func, cfg, block).collect();
        edges.into_iter().for_each(|edge| append_arg(func, edge, taken));
        let cursor = FuncCursor::new(func).at_first_insertion_point(block);
        let mut emitter = Emitter { cursor, pointer };
        emitter.add(back_edges, param);
        emitter.add_class(classes, param);
    }
    for &block in &sites.blocks {
        let cursor = FuncCursor::new(func).at_first_insertion_point(block);
        Emitter { cursor, pointer }.add_one(counters.take(1));
    }
    let entry = data.entries[0].branch;
    for site in &sites.values {
        let cursor = FuncCursor::new(func).at_inst(entry);
        Emitter { cursor, pointer }.add_value(counters.take_value(), site.value);
    }
}

/// Gives the header a parameter for how often the back edge was taken.
fn carry(func: &mut Function, data: &LoopData) -> Value {
    let taken = func.dfg.append_block_param(data.header, types::I64);
    let (entry, back_edge) = (data.entries[0], data.back_edges[0]);
    let zero = FuncCursor::new(func).at_inst(entry.branch).ins().iconst(types::I64, 0);
    append_arg(func, entry, zero);
    let next = FuncCursor::new(func).at_inst(back_edge.branch).ins().iadd_imm_s(taken, 1);
    append_arg(func, back_edge, next);
    taken
}
