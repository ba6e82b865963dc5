//! Pointers of 32 bits that an iteration loads for the next one: they are loaded extended, and stay so.
//!
//! ```text
//! block1(v2: i32):                             block1(v7: i64):
//!     v3 = uextend.i64 v2
//!     v4 = iadd v0, v3                             v4 = iadd v0, v7
//!     v5 = load.i32 v4+8             ──►           v8 = uload32 v4+8
//!                                                  v5 = ireduce.i32 v8
//!     brif v5, block1(v5), block2                  brif v5, block1(v8), block2
//! ```
//!
//! So are lists, trees and chains of hash tables walked in a memory of 32 bits. Lowering makes an extension of a parameter a `mov` of its own, on the path from
//! one load to the next, and a loop that waits for its loads waits for it too. A load that extends is the same instruction as one that does not.
//!
//! # Legal when
//!
//! What takes the place of a number is that number, extended, wherever it comes from: an entry of the loop extends it, a constant is another constant, a parameter
//! gets nothing but these, and a load gives the same bytes, extended, in the place of the load that was there, with its flags and its trap. The number itself is
//! the low half of that, which is what all its other uses read.
//!
//! # Pays when
//!
//! An extension is removed: nothing else is added but one at each entry.
//!
//! # Not done
//!
//! Numbers that a `select` chooses, or that are computed from what was loaded: these would have to be computed in 64 bits.

use super::apply::extend;
use super::why::Decline;
use super::{NAME, PASS};
use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::{Loop, LoopForest, def_block};
use crate::analysis::facts::nowrap::Leaf;
use crate::analysis::inst::effects::is_constant;
use crate::claim::{Claim, is_marked};
use crate::edit::at;
use crate::edit::cfg::split_edges::append_arg;
use crate::edit::inst::clone::repeat_before;
use crate::edit::inst::extending_load::{extend_load, extended_by, extending};
use crate::edit::inst::labels::copy_labels;
use crate::edit::inst::stand_for::stand_for;
use crate::edit::materialize::assertion::assert_equal;
use crate::edit::materialize::dce::remove_unused;
use crate::edit::ssa::replace::{Replacement, replace_params};
use crate::pass::PassCx;
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, Opcode, Value, ValueDef, types};
use cranelift_codegen::{Context, FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The most parameters and loads that are followed from one number. 32: a tree with a parent has three loads.
const MAX_FOLLOWED: usize = 32;

/// Widens what these loops load for their next iteration; of the others, in which nothing else is extended, it is said why not. Whether there is something to do.
pub(super) fn run(ctx: &mut Context, cx: &mut PassCx<'_>, forest: &LoopForest, loops: &[(Loop, bool)]) -> bool {
    let mut unused = Vec::new();
    let mut has_fired = false;
    for &(lp, is_quiet) in loops {
        let header = forest.data(lp).header;
        for param in candidates(&ctx.func, forest, lp) {
            match Web::find(ctx, forest, (lp, param)) {
                Ok(None) => {}
                Ok(Some(web)) if cx.fuel.take() => {
                    cx.retract(NAME, header);
                    cx.fired(&ctx.func, &PASS, header, web.describe());
                    web.apply(ctx, forest, &mut unused);
                    has_fired = true;
                }
                Ok(Some(_)) => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
                Err(why) if is_quiet && !cx.has_fired(NAME, header) => cx.declined(&ctx.func, NAME, header, &why),
                Err(_) => {}
            }
        }
    }
    if has_fired {
        unused.iter_mut().for_each(|value| *value = ctx.func.dfg.resolve_aliases(*value));
        ctx.func.dfg.resolve_all_aliases();
        remove_unused(&mut ctx.func, unused);
    }
    has_fired
}

/// The parameters of the header of `lp` that the loop extends, and whether by the sign.
fn candidates(func: &Function, forest: &LoopForest, lp: Loop) -> Vec<(Value, bool)> {
    let mut extended = FxHashSet::default();
    for inst in forest.own_blocks(lp).flat_map(|block| func.layout.block_insts(block)) {
        extended.extend(extension_to_64(func, inst));
    }
    let params = func.dfg.block_params(forest.data(lp).header).iter();
    params
        .filter_map(|&param| [false, true].map(|signed| (param, signed)).into_iter().find(|one| extended.contains(one)))
        .collect()
}

/// What `inst` extends to 64 bits, and whether by the sign.
fn extension_to_64(func: &Function, inst: Inst) -> Option<(Value, bool)> {
    extended_by(func, inst).filter(|_| func.dfg.value_type(func.dfg.first_result(inst)) == types::I64)
}

/// A number that is passed from one iteration to the next, and all that it is there.
struct Web {
    lp: Loop,
    signed: bool,
    /// The parameters that are it, by their blocks.
    params: BTreeMap<Block, Vec<Value>>,
    /// The loads that give it, with the opcodes that extend.
    loads: Vec<(Inst, Opcode)>,
    /// What extends one of these.
    extensions: Vec<Inst>,
}

impl Web {
    /// All that `param` of the header of `lp` is, if it is loaded.
    fn find(
        ctx: &Context,
        forest: &LoopForest,
        (lp, (param, signed)): (Loop, (Value, bool)),
    ) -> Result<Option<Self>, Decline> {
        let func = &ctx.func;
        let mut web = Self { lp, signed, params: BTreeMap::new(), loads: Vec::new(), extensions: Vec::new() };
        let (mut seen, mut stack) = (FxHashSet::default(), vec![param]);
        let mut obstacle = None;
        while let Some(value) = stack.pop() {
            if !seen.insert(value) {
                continue;
            }
            match web.sources(ctx, forest, value) {
                _ if seen.len() > MAX_FOLLOWED => drop(obstacle.get_or_insert(value)),
                Some(sources) => stack.extend(sources),
                None => drop(obstacle.get_or_insert(value)),
            }
        }
        match obstacle {
            _ if web.loads.is_empty() => return Ok(None),
            Some(value) => return Err(Decline::ComesOtherwise { param, value }),
            None => {}
        }
        let loaded = web.loads.iter().map(|&(load, _)| func.dfg.first_result(load));
        let known: FxHashSet<_> = web.params.values().flatten().copied().chain(loaded).collect();
        let insts = forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block));
        let extends = |inst: &Inst| {
            extension_to_64(func, *inst).is_some_and(|(value, by)| by == signed && known.contains(&value))
        };
        web.extensions = insts.filter(extends).collect();
        Ok(Some(web))
    }

    /// Adds `value`, and gives what it may be besides. None if it is something that is not known extended.
    fn sources(&mut self, ctx: &Context, forest: &LoopForest, value: Value) -> Option<Vec<Value>> {
        let func = &ctx.func;
        match func.dfg.value_def(value) {
            ValueDef::Result(inst, _) if is_constant(func, inst) => Some(Vec::new()),
            ValueDef::Result(load, _) => {
                let opcode = extending(func, load, self.signed)?;
                let block = def_block(func, value)?;
                forest.contains(self.lp, block).then(|| self.loads.push((load, opcode)))?;
                Some(Vec::new())
            }
            ValueDef::Param(block, _) if forest.contains(self.lp, block) && !forest.is_named(block) => {
                self.params.entry(block).or_default().push(value);
                let data = forest.data(self.lp);
                let edges = forest.edges_into(func, &ctx.cfg, block).iter();
                let passed = edges.map(|edge| Some((edge.passed_for(func, value)?, data.entries.contains(edge))));
                let passed: Option<Vec<_>> = passed.collect();
                // What enters the loop is extended there.
                Some(passed?.into_iter().filter_map(|(value, enters)| (!enters).then_some(value)).collect())
            }
            _ => None,
        }
    }

    fn describe(&self) -> String {
        let params: Vec<_> = self.params.values().flatten().map(Value::to_string).collect();
        format!("{} in 64 bits, as loaded; extensions removed: {}", params.join(", "), self.extensions.len())
    }

    fn apply(&self, ctx: &mut Context, forest: &LoopForest, unused: &mut Vec<Value>) {
        let Context { func, cfg, .. } = ctx;
        let mut wide = FxHashMap::default();
        for &(load, opcode) in &self.loads {
            let narrow = func.dfg.first_result(load);
            wide.insert(narrow, extend_load(func, load, (opcode, types::I64), None));
            unused.push(narrow);
        }
        for (&block, params) in &self.params {
            for &param in params {
                wide.insert(param, func.dfg.append_block_param(block, types::I64));
            }
        }
        for (&block, params) in &self.params {
            let edges = forest.edges_into(func, cfg, block);
            for &edge in edges {
                for &param in params {
                    let passed = edge.passed_for(func, param).expect("an edge of the web");
                    let leaf = Leaf { value: passed, signed: self.signed };
                    let arg = wide.get(&passed).copied();
                    let arg = arg.unwrap_or_else(|| extend(&mut at(func, edge.branch), leaf));
                    append_arg(func, edge, arg);
                }
            }
        }
        self.remove_extensions(func, &wide);
        for (&block, params) in &self.params {
            let edges = forest.edges_into(func, cfg, block).to_vec();
            replace(func, block, &edges, (params, &wide), unused);
        }
    }

    /// Lets what is extended already take the place of extensions.
    fn remove_extensions(&self, func: &mut Function, wide: &FxHashMap<Value, Value>) {
        for &inst in &self.extensions {
            let by = wide[&func.dfg.inst_args(inst)[0]];
            if is_marked(func) {
                let narrow = repeat_before(func, inst, inst);
                assert_equal(func, inst, Claim::SamePlace, [narrow, by]);
            }
            stand_for(func, inst, by);
        }
    }
}

/// Lets the low halves of what `wide` says take the place of `params`, of this block, into which these edges lead.
fn replace(
    func: &mut Function,
    block: Block,
    edges: &[Edge],
    (params, wide): (&[Value], &FxHashMap<Value, Value>),
    unused: &mut Vec<Value>,
) {
    let first = func.layout.first_inst(block).expect("a block ends in a branch");
    let all = func.dfg.block_params(block).to_vec();
    let by = all.into_iter().map(|param| {
        if !params.contains(&param) {
            return Replacement::Keep;
        }
        let ty = func.dfg.value_type(param);
        let low = at(func, first).ins().ireduce(ty, wide[&param]);
        copy_labels(func, param, low);
        unused.push(low);
        Replacement::By(low)
    });
    let by: Vec<_> = by.collect();
    replace_params(func, block, edges, &by);
}
