//! Take a rare part of a loop out of it: an iteration that reaches it is finished in a copy, and then the loop is entered again.
//!
//! ```text
//! preheader                     preheader
//!     │                             │
//!     ▼                             ▼
//!   header ◄──┐                   outer ◄──────┐
//!     │       │                     │          │
//!    / \      │                     ▼          │
//! rare  │     │      ──►          header ◄──┐  │
//!    \ /      │                     │       │  │
//!   latch ────┘                    ...──┐   │  │
//!     │                             │   │   │  │
//!     ▼                           latch─┼───┘  │
//!    exit                           │   ▼      │
//!                                   │  rare'   │
//!                                   │   │      │
//!                                   │ latch' ──┘
//!                                   ▼   │
//!                                  exit◄┘
//! ```
//!
//! The copy is no loop: it is left for `outer`, from where the loop starts with the values of the next iteration. So the loop
//! can be entered at its header only, as before, and what is hoisted from it is recomputed after each cold_path.
//!
//! # Inner loops
//!
//! If the rare part is in an inner loop of the one that it is taken out of, then that one runs in the copy as well, and must
//! not be entered in the middle. Its copy gets a header of its own:
//!
//! ```text
//!  from the loop: number of the edge      back edge of the copy: 0
//!                           \            /
//!                            ▼          ▼
//!                      head(values, number): br_table number, header', [header', rare1', rare2', …]
//! ```
//!
//! and if several such loops enclose the rare part, the heads pass the number, from the outermost to the innermost.
//!
//! # Values
//!
//! What is defined before the rare part and used in the copy is that of the loop, or of the copy if it was executed there:
//! [`crate::edit::ssa::construct`] finds out, and makes parameters where both meet. On paths that are never taken the values are zero.

use crate::analysis::cfg::edges::{Edge, edges_from};
use crate::analysis::cfg::loops::def_block;
use crate::analysis::cfg::must_execute::Order;
use crate::edit::TooManyParams;
use crate::edit::cfg::split_edges::{append_arg, copy_edge, funnel, retarget, set_edge};
use crate::edit::inst::clone::{Copies, clone_blocks};
use crate::edit::inst::rename::{each_use, rename_uses};
use crate::edit::ssa::construct::{Construction, EndValues, Meets, Placer, zero};
use crate::fault::fault;
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, BlockArg, BlockCall, Function, Inst, InstBuilder, JumpTableData, Value, types};
use std::collections::BTreeMap;

/// An edge into the rare part.
#[derive(Clone, Debug)]
pub(crate) struct RareEdge {
    /// An edge of a branch that passes values only.
    pub(crate) edge: Edge,
    /// The headers of the inner loops that hold both ends of it, from the outside in.
    pub(crate) around: Vec<Block>,
}

/// What is taken out of a loop.
pub(crate) struct ColdPath<'a> {
    pub(crate) header: Block,
    /// The only edge into the loop.
    pub(crate) entry: Edge,
    /// What can run between one of the edges and the next iteration, in reverse postorder.
    pub(crate) rest: &'a [Block],
    pub(crate) edges: &'a [RareEdge],
}

/// What has become of it.
pub(crate) struct Rerouted {
    pub(crate) copies: Copies,
    /// The header of the loop that encloses the fast one and the copy.
    pub(crate) outer: Block,
    /// The heads of copied loops, each with the header that it was.
    pub(crate) heads: Vec<(Block, Block)>,
    /// Copied blocks.
    blocks: Vec<Block>,
}

/// The head of a copied loop.
struct Head {
    block: Block,
    number: Value,
    /// Its target for each number, if that is not the header.
    paths: BTreeMap<usize, Block>,
}

/// Makes the copy and leads the edges there. Values in the copy are to be [repaired](repair) afterwards.
pub(crate) fn reroute(func: &mut Function, cold_path: &ColdPath<'_>) -> Rerouted {
    let mut landings = BTreeMap::<Block, Vec<Block>>::new();
    let mut own = Vec::new();
    for rare in cold_path.edges {
        let target = rare.edge.target(func);
        let landing = land(func, rare.edge);
        landings.entry(target).or_default().push(landing);
        own.push(landing);
    }
    let mut blocks = Vec::new();
    for block in cold_path.rest {
        blocks.extend(landings.remove(block).into_iter().flatten());
        blocks.push(*block);
    }
    let copies = clone_blocks(func, &blocks);
    let copied: Vec<_> = blocks.iter().map(|&block| copies.block(block)).collect();
    copied.iter().for_each(|&copy| func.layout.set_cold(copy));
    let mut heads = BTreeMap::new();
    for &header in cold_path.edges.iter().flat_map(|rare| &rare.around) {
        heads.entry(header).or_insert_with(|| make_head(func, copies.block(header), &copied));
    }
    for (index, rare) in cold_path.edges.iter().enumerate() {
        let landing = if fault!(WrongLanding) { own[(index + 1) % own.len()] } else { own[index] };
        lead(func, rare, (index + 1, copies.block(landing)), &mut heads);
        if fault!(ForgottenRareSide) {
            copy_edge(func, Edge { slot: 1 - rare.edge.slot.min(1), ..rare.edge }, rare.edge);
        }
    }
    for (&header, head) in &heads {
        finish_head(func, head, copies.block(header), cold_path.edges.len());
    }
    let mut around: Vec<_> = edges_to(func, &copied, cold_path.header);
    around.push(cold_path.entry);
    let outer = funnel(func, &around, cold_path.header);
    let heads = heads.into_iter().map(|(header, head)| (header, head.block)).collect();
    Rerouted { copies, outer, heads, blocks }
}

/// Puts a cold block on `edge` that passes what the edge did.
fn land(func: &mut Function, edge: Edge) -> Block {
    let target = edge.target(func);
    let args: Vec<BlockArg> = edge.args(func).collect();
    let landing = func.dfg.make_block();
    func.layout.insert_block(landing, target);
    func.layout.set_cold(landing);
    let srcloc = func.srcloc(edge.branch);
    let mut pos = FuncCursor::new(func).at_bottom(landing);
    pos.set_srcloc(srcloc);
    pos.ins().jump(target, &args);
    set_edge(func, edge, landing, &[]);
    landing
}

/// The edges from `blocks` to `target`.
fn edges_to(func: &Function, blocks: &[Block], target: Block) -> Vec<Edge> {
    let edges = blocks.iter().flat_map(|&block| edges_from(func, block));
    edges.filter(|edge| edge.target(func) == target).collect()
}

/// Makes the head of the copied loop of `header`, without an end.
fn make_head(func: &mut Function, header: Block, copied: &[Block]) -> Head {
    let block = func.dfg.make_block();
    func.layout.insert_block(block, header);
    func.layout.set_cold(block);
    for param in func.dfg.block_params(header).to_vec() {
        let ty = func.dfg.value_type(param);
        func.dfg.append_block_param(block, ty);
    }
    let number = func.dfg.append_block_param(block, types::I32);
    for edge in edges_to(func, copied, header) {
        let none = FuncCursor::new(func).at_inst(edge.branch).ins().iconst(types::I32, 0);
        retarget(func, edge, block);
        append_arg(func, edge, none);
    }
    Head { block, number, paths: BTreeMap::new() }
}

/// Lets an edge, or the heads on its path, lead to `landing`.
fn lead(func: &mut Function, rare: &RareEdge, (number, landing): (usize, Block), heads: &mut BTreeMap<Block, Head>) {
    let mut path = landing;
    for (depth, header) in rare.around.iter().enumerate().rev() {
        let head = heads.get_mut(header).expect("it was made");
        head.paths.insert(number, path);
        let to = head.block;
        let passed = depth.checked_sub(1).map(|outer| heads[&rare.around[outer]].number);
        path = step(func, to, (number, passed));
    }
    retarget(func, rare.edge, path);
}

/// A block that jumps to a head with a number, the one that was passed to it if it has got one, and with nothing else.
fn step(func: &mut Function, head: Block, (number, passed): (usize, Option<Value>)) -> Block {
    let block = func.dfg.make_block();
    func.layout.insert_block(block, head);
    func.layout.set_cold(block);
    let number = i64::try_from(number).expect("edges are numbered with 32 bits");
    let number = match passed {
        Some(passed) => passed,
        None => FuncCursor::new(func).at_bottom(block).ins().iconst(types::I32, number),
    };
    let params = func.dfg.block_params(head);
    let types: Vec<_> = params[..params.len() - 1].iter().map(|&param| func.dfg.value_type(param)).collect();
    let mut args: Vec<_> = types.into_iter().map(|ty| BlockArg::Value(zero(func, block, ty))).collect();
    args.push(BlockArg::Value(number));
    FuncCursor::new(func).at_bottom(block).ins().jump(head, &args);
    block
}

/// Ends a head: `header` for all numbers up to `last` but those that it knows.
fn finish_head(func: &mut Function, head: &Head, header: Block, last: usize) {
    let params = func.dfg.block_params(head.block);
    let args: Vec<_> = params[..params.len() - 1].iter().map(|&param| BlockArg::Value(param)).collect();
    let lists = &mut func.dfg.value_lists;
    let mut calls = Vec::new();
    for number in 0..=last {
        calls.push(match head.paths.get(&number) {
            Some(&path) => BlockCall::new(path, [], lists),
            None => BlockCall::new(header, args.iter().copied(), lists),
        });
    }
    let default = calls[0].deep_clone(lists);
    let table = func.create_jump_table(JumpTableData::new(default, &calls));
    FuncCursor::new(func).at_bottom(head.block).ins().br_table(head.number, table);
}

/// A value of the copy that has to meet the one that it is a copy of.
struct Variable {
    old: Value,
    new: Value,
    /// Where they are defined, as far as that can be reached.
    defs: Vec<(Block, Value)>,
    users: BTreeMap<Block, Vec<Inst>>,
    meets: Meets,
}

/// Lets each use in the copies have the right value. `ctx.cfg` and `ctx.domtree` are valid; the frontiers of all blocks have at most `max` blocks.
pub(crate) fn repair(ctx: &mut Context, all: &[Rerouted], max: usize) -> Result<(), TooManyParams> {
    let mut variables: Vec<_> = all.iter().flat_map(|rerouted| find_variables(ctx, rerouted)).collect();
    if variables.is_empty() {
        return Ok(());
    }
    let mut placer = Placer::new(ctx, max)?;
    for variable in &mut variables {
        let written: Vec<_> = variable.defs.iter().map(|&(block, _)| block).collect();
        let read: Vec<_> = variable.users.keys().copied().collect();
        variable.meets = placer.place(&written, &read);
    }
    let order = Order::of(&ctx.func, &ctx.domtree);
    let mut ends = EndValues::default();
    for variable in &variables {
        variable.construct(ctx, &order, &mut ends);
    }
    Ok(())
}

/// The values of the copies that do not dominate a use.
fn find_variables(ctx: &Context, rerouted: &Rerouted) -> Vec<Variable> {
    let func = &ctx.func;
    let reachable = |block: &Block| ctx.domtree.is_reachable(*block);
    let home = |value| def_block(func, value).filter(reachable);
    let olds: BTreeMap<_, _> = rerouted.copies.values().map(|(old, new)| (new, old)).collect();
    let mut variables = BTreeMap::<Value, Variable>::new();
    for block in rerouted.blocks.iter().map(|&block| rerouted.copies.block(block)).filter(reachable) {
        for inst in func.layout.block_insts(block) {
            each_use(func, inst, |new| {
                let Some(&old) = olds.get(&new) else { return };
                if home(new).is_some_and(|home| home == block || ctx.domtree.block_dominates(home, block)) {
                    return;
                }
                let variable = variables.entry(new).or_insert_with(|| {
                    let defs = [old, new].into_iter().filter_map(|value| Some((home(value)?, value))).collect();
                    Variable { old, new, defs, users: BTreeMap::new(), meets: Meets::default() }
                });
                let users = variable.users.entry(block).or_default();
                if users.last() != Some(&inst) {
                    users.push(inst);
                }
            });
        }
    }
    variables.into_values().collect()
}

impl Variable {
    fn construct(&self, ctx: &mut Context, order: &Order, ends: &mut EndValues) {
        let ty = ctx.func.dfg.value_type(self.old);
        let mut blocks: Vec<_> = self.users.keys().copied().collect();
        blocks.extend(self.defs.iter().map(|&(block, _)| block));
        let mut blocks = order.sorted(&blocks);
        blocks.dedup();
        let mut construction = Construction::new(ctx, ends, ty, &self.meets.blocks);
        for block in blocks {
            if let Some(users) = self.users.get(&block) {
                let value = construction.read(block);
                for &user in users {
                    rename_uses(construction.func, user, |used| if used == self.new { value } else { used });
                }
            }
            for &(_, value) in self.defs.iter().filter(|&&(home, _)| home == block) {
                if !(fault!(StaleInColdPath) && value == self.new && self.defs.len() > 1) {
                    construction.write(block, value);
                }
            }
        }
        construction.finish();
    }
}
