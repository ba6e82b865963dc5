//! What memory holds, as far as it is known from earlier accesses.
//!
//! ```text
//! block1:
//!     v1 = load.i64 v0       available: v1 is at v0
//!     v2 = load.i64 v3       not any more after the store, which may be to it
//!     store v4, v3           available: v4 is at v3
//!     brif v5, block2, block9
//! block2:                    entered from block1 alone
//!     v6 = load.i64 v3       is v4
//! ```
//!
//! An access is *available* at a place if each path from the entry to there executes it, and nothing after it may have written what it read
//! or wrote. Its value is then what is in memory, and dominates the place.
//!
//! * At the start of a block, what is available at the end of all blocks before it is.
//! * At the header of a loop, what is available on each entry edge is, unless the loop may write it: nothing is carried from one iteration to the
//!   next. Each path to the header enters the loop from outside, where the access was executed, and then stays inside the loop.
//! * At a block that any other cycle enters, nothing is.
//! * A store ends what it [may overlap](Access::may_alias), a fence or an atomic all but what nobody else can write, a call all but that
//!   as well ([`Writers`]).
//!
//! A load is the same as an available access if both are of one type, byte order and region, at the same address: two equal
//! [sums](crate::analysis::scev::linear_expr::Sum) are equal addresses. It cannot trap either, as the access did not.
//!
//! Regions that others write are left out on both sides. A [poll](crate::analysis::memory::exit_polls) is not what was known outside of its loop, what an
//! earlier iteration in a group of them has read, or what its loop has stored.

use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::Effects;
use crate::analysis::memory::alias::{Access, LoopStores, PrivateSlots, written_region};
use crate::analysis::memory::disjoint::Disjoint;
use crate::analysis::memory::loop_polls::LoopPolls;
use crate::analysis::scev::linear_expr::Sum;
use crate::embedder::Writers;
use crate::fault::fault;
use crate::options::Options;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value};
use cranelift_codegen::{Context, FxHashMap};
use std::rc::Rc;

/// Instructions that are looked at. A guard and the code before it that computes what it compares have fewer.
const MAX_INSTS: usize = 64;

/// The loads that are available at the end of `preheader`, that of `lp`, which the guard of a rotated loop has often done for the loop: found walking up as long as each
/// block has one predecessor. None of another loop, which would have to leave that through an exit parameter.
pub fn available_loads(
    func: &Function,
    cfg: &ControlFlowGraph,
    (forest, lp): (&LoopForest, Loop),
    preheader: Block,
    private: &PrivateSlots,
) -> Vec<Inst> {
    let (mut loads, mut stores) = (Vec::new(), Vec::<Access>::new());
    let mut seen = 0;
    let mut here = Some(preheader);
    while let Some(block) = here {
        let is_around = forest.innermost(block).is_none_or(|home| forest.encloses(home, lp));
        for inst in func.layout.block_insts(block).rev() {
            seen += 1;
            if seen > MAX_INSTS || Effects::of(func, inst).fences {
                return loads;
            }
            match Access::of(func, inst) {
                Some(store) if store.stored.is_some() => stores.push(store),
                Some(load) if is_around && !stores.iter().any(|store| store.may_alias(&load, private)) => {
                    loads.push(inst)
                }
                _ => {}
            }
        }
        let mut preds = cfg.pred_iter(block);
        here = match (preds.next(), preds.next()) {
            (Some(pred), None) => Some(pred.block),
            _ => None,
        };
    }
    loads
}

/// Accesses that are remembered at one place, the last ones. 32: as many as an unrolled iteration of a stencil has, and more than there are
/// registers for. It bounds the time that a store takes.
const MAX_AVAILABLE: usize = 32;

/// Levels of inner loops of a loop with which something stays available in it. Each loop is looked at once for each level inside it.
const MAX_HEIGHT: usize = 16;

/// The loads of a function of which the value is known.
pub struct KnownLoads<'a> {
    ctx: &'a Context,
    forest: &'a LoopForest,
    options: &'a Options,
    private: &'a PrivateSlots,
    disjoint: Rc<Disjoint>,
    heights: SecondaryMap<Loop, usize>,
    /// All accesses that are or were available.
    known: FxHashMap<Inst, Known>,
    /// For the blocks visited.
    at_end: SecondaryMap<Block, Option<Available>>,
    /// Of the loops of which a load may be one.
    polls: LoopPolls,
    /// What the results of the loads found are.
    same: FxHashMap<Value, Value>,
    scope: Scope,
    found: Vec<(Inst, Value)>,
}

/// What is looked at as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The function.
    Function,
    /// One iteration of a loop.
    Iteration,
    /// An iteration that is several of the loop as it came in. Each of these still polls for itself.
    Group,
}

/// An access with what it read or wrote.
struct Known {
    access: Access,
    block: Block,
    writers: Writers,
    value: Value,
}

/// Available accesses, the last ones last.
type Available = Vec<Inst>;

impl<'a> KnownLoads<'a> {
    /// For this function, of which nothing has been looked at.
    pub fn new(ctx: &'a Context, forest: &'a LoopForest, options: &'a Options, private: &'a PrivateSlots) -> Self {
        Self {
            ctx,
            forest,
            options,
            private,
            disjoint: private.disjoint(),
            heights: SecondaryMap::new(),
            known: FxHashMap::default(),
            at_end: SecondaryMap::new(),
            polls: LoopPolls::default(),
            same: FxHashMap::default(),
            scope: Scope::Function,
            found: Vec::new(),
        }
    }

    /// Those of the whole function, each with its value, in dominance order: the value of one may be the result of an earlier one, which
    /// has a value itself. Linear in the size of the function.
    pub fn everywhere(mut self) -> Vec<(Inst, Value)> {
        self.heights = self.forest.heights();
        self.pass_blocks(self.ctx.domtree.cfg_rpo())
    }

    /// Those that an iteration of a loop, or a group of them, knows of itself. `blocks` are those of an innermost loop in reverse postorder. Linear in
    /// their size.
    pub fn inside(&mut self, scope: Scope, blocks: &[Block]) -> Vec<(Inst, Value)> {
        self.scope = scope;
        self.pass_blocks(blocks)
    }

    fn pass_blocks<'b>(&mut self, blocks: impl IntoIterator<Item = &'b Block>) -> Vec<(Inst, Value)> {
        for &block in blocks {
            let mut available = self.at_start(block);
            for inst in self.ctx.func.layout.block_insts(block) {
                self.pass(block, inst, &mut available);
            }
            self.at_end[block] = Some(available);
        }
        std::mem::take(&mut self.found)
    }

    /// What is available at the start of `block`.
    fn at_start(&self, block: Block) -> Available {
        let lp = self.forest.loop_of_header(block);
        let mut goes_around = false;
        let mut available: Option<Available> = None;
        for pred in self.ctx.cfg.pred_iter(block) {
            let Some(at_end) = &self.at_end[pred.block] else {
                if lp.is_some_and(|lp| self.forest.contains(lp, pred.block)) {
                    goes_around = true;
                    continue;
                }
                return Available::new();
            };
            match &mut available {
                None => available = Some(at_end.clone()),
                Some(_) if fault!(AvailableOnOneWay) => {}
                Some(available) => available.retain(|inst| at_end.contains(inst)),
            }
        }
        let mut available = available.unwrap_or_default();
        if let Some(lp) = lp.filter(|_| goes_around && !available.is_empty() && !fault!(AvailableAroundLoops)) {
            self.enter(lp, &mut available);
        }
        available
    }

    /// Forgets what `lp` may write.
    fn enter(&self, lp: Loop, available: &mut Available) {
        if self.heights[lp] > MAX_HEIGHT {
            available.clear();
            return;
        }
        let stores = LoopStores::of(&self.ctx.func, self.forest.blocks(lp));
        available.retain(|inst| {
            let Known { access, writers, .. } = &self.known[inst];
            let fence = stores.fence_for((access.operand, access.flags), *writers, self.private);
            fence.is_none() && stores.clobbering_store(&self.ctx.func, access, *writers, self.private).is_none()
        });
    }

    /// What `inst`, the next instruction of `block`, makes of what is available.
    fn pass(&mut self, block: Block, inst: Inst, available: &mut Available) {
        let func = &self.ctx.func;
        let effects = Effects::of(func, inst);
        if effects.fences {
            available.retain(|known| self.survives_fence(&self.known[known], inst, effects.diverges));
            return;
        }
        if effects.asserts || !func.dfg.insts[inst].opcode().can_load() && !func.dfg.insts[inst].opcode().can_store() {
            return;
        }
        let Some(access) = self.access(inst) else {
            available.clear();
            return;
        };
        let writers = self.options.writers(func, access.flags);
        let value = match access.stored {
            Some(stored) => {
                available.retain(|inst| !self.is_written(&self.known[inst], &access));
                stored
            }
            None => match self.find(block, &access, available) {
                Some(value) => return self.add_found(inst, value),
                None => func.dfg.first_result(inst),
            },
        };
        if writers == Writers::Others {
            return;
        }
        if available.len() == MAX_AVAILABLE {
            available.remove(0);
        }
        available.push(inst);
        self.known.insert(inst, Known { access, block, writers, value: self.resolve(value) });
    }

    fn add_found(&mut self, load: Inst, value: Value) {
        self.same.insert(self.ctx.func.dfg.first_result(load), value);
        self.found.push((load, value));
    }

    /// The access that `inst` is, with an address in which loads that are known are what they give.
    fn access(&self, inst: Inst) -> Option<Access> {
        let func = &self.ctx.func;
        let mut access = Access::of(func, inst)?;
        if !self.same.is_empty() {
            let mut leaf =
                |leaf| Some(self.same.get(&leaf).map_or(Sum::of_leaf(func, leaf), |&same| Sum::of(func, same)));
            let offset = func.dfg.insts[inst].load_store_offset()?;
            if let Some(address) = Sum::with_leaves(func, access.operand, &mut leaf) {
                access.address = address.offset(offset.into());
            }
        }
        Some(access)
    }

    fn resolve(&self, value: Value) -> Value {
        self.same.get(&value).copied().unwrap_or(value)
    }

    fn survives_fence(&self, known: &Known, fence: Inst, is_call: bool) -> bool {
        let is_own = self.private.slot_of(&known.access).is_some();
        let region = known.access.flags.alias_region();
        let is_written = || is_call || written_region(&self.ctx.func, fence) == Some(region);
        is_own || known.access.flags.readonly() || (known.writers == Writers::Calls && !is_written())
    }

    /// Whether `store` may write what is known.
    fn is_written(&self, known: &Known, store: &Access) -> bool {
        if fault!(AvailableAfterStore) {
            return false;
        }
        let is_writer =
            known.writers != Writers::Calls || store.flags.alias_region() == known.access.flags.alias_region();
        let is_far = || self.scope != Scope::Function && self.disjoint.are_far(known.access.inst, store.inst);
        is_writer && !is_far() && store.may_alias(&known.access, self.private)
    }

    /// What `load`, in `block`, gives.
    fn find(&mut self, block: Block, load: &Access, available: &Available) -> Option<Value> {
        if self.options.writers(&self.ctx.func, load.flags) == Writers::Others {
            return None;
        }
        let source = available.iter().rev().copied().find(|source| self.is_same(&self.known[source], load))?;
        (!self.stops_polling(load.inst, block, source)).then(|| self.known[&source].value)
    }

    /// Whether `load` reads what is known.
    fn is_same(&self, known: &Known, load: &Access) -> bool {
        let func = &self.ctx.func;
        let opcode = |access: &Access| func.dfg.insts[access.inst].opcode();
        let is_whole = |access: &Access| matches!(opcode(access), Opcode::Load | Opcode::Store);
        let flags = |access: &Access| {
            let flags = access.flags;
            (flags.alias_region(), flags.explicit_endianness(), flags.readonly())
        };
        known.access.address == load.address
            && flags(&known.access) == flags(load)
            && (opcode(&known.access) == opcode(load) || (is_whole(&known.access) && is_whole(load)))
            && func.dfg.value_type(known.value) == func.dfg.value_type(func.dfg.first_result(load.inst))
    }

    /// Whether `load`, in `block`, would no longer poll for a loop if it became what is known from `source`: that is from before the loop, or from an
    /// earlier iteration in a group. Or the loop has stored it itself, and would never see what somebody else stores. Loops that no pass looks at poll as others do,
    /// and cycles that are no loops may.
    fn stops_polling(&mut self, load: Inst, block: Block, source: Inst) -> bool {
        let Context { func, cfg, domtree, .. } = self.ctx;
        let Known { access, block: home, .. } = &self.known[&source];
        let (is_own, home) = (access.stored.is_some() || self.scope == Scope::Group, *home);
        let forest = self.forest.whole(func, (cfg, domtree));
        if is_own && forest.may_be_in_irreducible(block) {
            return true;
        }
        let mut around = forest.innermost(block);
        while let Some(lp) = around.filter(|&lp| is_own || !forest.contains(lp, home)) {
            if self.polls.contains(func, (cfg, domtree), (forest, lp), load) {
                return true;
            }
            around = forest.data(lp).parent;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedder::Embedder;
    use crate::testing::{context, forest};
    use cranelift_codegen::ir::AliasRegionData;
    use std::sync::Arc;

    /// The loads that are known, in order, as `v<result> is v<value>`.
    fn known(body: &str) -> Vec<String> {
        known_with(body, &Options::default())
    }

    fn known_with(body: &str, options: &Options) -> Vec<String> {
        let ctx = context(&format!(
            "function %f(i64, i64, i64) -> i64 {{
                region0 = 0 \"flag\"
                region1 = 1 \"rest\"
                ss0 = explicit_slot 16
                fn0 = %g()
            block0(v0: i64, v1: i64, v2: i64):
                {body}
                return v0
            }}"
        ));
        let private = PrivateSlots::of(&ctx.func, &ctx.domtree);
        let found = KnownLoads::new(&ctx, &forest(&ctx), options, &private).everywhere();
        let name = |(load, value)| format!("{} is {value}", ctx.func.dfg.first_result(load));
        found.into_iter().map(name).collect()
    }

    #[test]
    fn in_one_block() {
        assert_eq!(known("v3 = load.i64 v0\nv4 = load.i64 v0"), ["v4 is v3"]);
        assert_eq!(known("store v1, v0+8\nv3 = iconst.i64 8\nv4 = iadd v0, v3\nv5 = load.i64 v4"), ["v5 is v1"]);
        assert!(known("v3 = load.i64 v0\nstore v2, v1\nv4 = load.i64 v0").is_empty(), "the store may be to it");
        assert_eq!(known("v3 = load.i64 v0\nstore v2, v0+8\nv4 = load.i64 v0"), ["v4 is v3"]);
        assert_eq!(known("v3 = load.i64 region0 v0\nstore region1 v2, v1\nv4 = load.i64 region0 v0"), ["v4 is v3"]);
        assert!(known("v3 = load.i64 region0 v0\nv4 = load.i64 v0").is_empty(), "a store between them could be to one");
        assert!(known("v3 = load.i64 v0\ncall fn0()\nv4 = load.i64 v0").is_empty());
        assert!(known("v3 = load.i64 v0\nfence\nv4 = load.i64 v0").is_empty());
        assert!(known("v3 = load.i64 v0\nv4 = atomic_load.i64 v1\nv5 = load.i64 v0").is_empty());
        assert_eq!(known("v3 = stack_addr.i64 ss0\nstore v1, v3\ncall fn0()\nv4 = load.i64 v3"), ["v4 is v1"]);
    }

    #[test]
    fn of_another_kind() {
        assert!(known("v3 = load.i32 v0\nv4 = load.i64 v0").is_empty());
        assert!(known("v3 = load.f64 v0\nv4 = load.i64 v0").is_empty());
        assert!(known("v3 = uload8.i64 v0\nv4 = sload8.i64 v0").is_empty());
        assert!(known("v3 = load.i64 little v0\nv4 = load.i64 big v0").is_empty());
        assert!(known("istore8 v1, v0\nv3 = uload8.i64 v0").is_empty());
        assert!(known("istore8 v1, v0\nv3 = load.i64 v0").is_empty());
        assert_eq!(known("v3 = uload8.i64 v0\nv4 = uload8.i64 v0"), ["v4 is v3"]);
    }

    #[test]
    fn through_what_is_known() {
        let chain = "v3 = load.i64 v0
            v4 = load.i64 v3+8
            v5 = load.i64 v0
            v6 = load.i64 v5+8
            store v6, v1
            v7 = load.i64 v1";
        assert_eq!(known(chain), ["v5 is v3", "v6 is v4", "v7 is v4"]);
    }

    #[test]
    fn where_paths_meet() {
        let diamond = |first: &str, second: &str| {
            known(&format!(
                "v3 = load.i64 v0
                brif v1, block1, block2
                block1:
                {first}
                jump block3
                block2:
                {second}
                jump block3
                block3:
                v4 = load.i64 v0"
            ))
        };
        assert_eq!(diamond("", ""), ["v4 is v3"]);
        assert!(diamond("", "store v2, v2").is_empty());
        assert!(diamond("store v2, v0", "store v2, v0").is_empty(), "two stores of one value are not looked for");
        assert_eq!(diamond("v5 = load.i64 v0+8", ""), ["v4 is v3"]);
    }

    const LOOP: &str = "v3 = load.i64 region0 v0
        jump block1(v1)
        block1(v5: i64):
        v4 = load.i64 region0 v0";

    #[test]
    fn around_loops() {
        let ends = "v6 = iadd v5, v4\nv7 = icmp ult v6, v2\nbrif v7, block1(v6), block2\nblock2:";
        assert_eq!(known(&format!("{LOOP}\n{ends}")), ["v4 is v3"]);
        assert_eq!(known(&format!("{LOOP}\nstore region1 v5, v1\n{ends}")), ["v4 is v3"]);
        assert!(known(&format!("{LOOP}\nstore region0 v5, v1\n{ends}")).is_empty(), "the next iteration reads it");
        assert!(known(&format!("{LOOP}\ncall fn0()\n{ends}")).is_empty());
        let carried = "jump block1(v1)
            block1(v5: i64):
            v3 = load.i64 v0
            store v5, v0
            v4 = load.i64 v0";
        assert_eq!(
            known(&format!("{carried}\n{ends}")),
            ["v4 is v5"],
            "and v3 is not what the iteration before stored"
        );
    }

    #[test]
    fn where_a_cycle_is_entered_twice() {
        let cycle = "v3 = load.i64 v0
            brif v1, block1, block2
            block1:
            v4 = load.i64 v0
            jump block2
            block2:
            v5 = load.i64 v0
            brif v2, block1, block3
            block3:
            v6 = load.i64 v0";
        assert_eq!(known(cycle).last().map(String::as_str), Some("v6 is v5"));
        assert_eq!(known(cycle).len(), 1, "{:?}", known(cycle));
    }

    #[test]
    fn polls_stay_in_their_loop() {
        let waits = "v6 = load.i64 region0 v0+8
            brif v4, block2, block1(v6)
            block2:
            v8 = load.i64 region0 v0";
        assert_eq!(known(&format!("{LOOP}\n{waits}")), ["v8 is v4"], "behind the loop nobody waits");
        let twice = "v9 = load.i64 region0 v0\nbrif v9, block2, block1(v5)\nblock2:";
        assert_eq!(known(&format!("{LOOP}\n{twice}")), ["v4 is v3"], "v9 alone is the poll");
    }

    /// Others write to `flag`; only calls to `rest`.
    #[derive(Debug)]
    struct Shared;

    impl Embedder for Shared {
        fn writers(&self, region: &AliasRegionData) -> Writers {
            match region.description.as_ref() {
                "flag" => Writers::Others,
                _ => Writers::Calls,
            }
        }
    }

    #[test]
    fn regions_that_others_write() {
        let options = Options { embedder: Arc::new(Shared), ..Options::default() };
        let known = |body: &str| known_with(body, &options);
        assert!(known("v3 = load.i64 region0 v0\nv4 = load.i64 region0 v0").is_empty());
        assert!(known("store region0 v1, v0\nv4 = load.i64 region0 v0").is_empty());
        assert_eq!(known("v3 = load.i64 region1 v0\nfence\nstore v1, v2\nv4 = load.i64 region1 v0"), ["v4 is v3"]);
        assert!(known("v3 = load.i64 region1 v0\ncall fn0()\nv4 = load.i64 region1 v0").is_empty());
        assert!(known("v3 = load.i64 region1 v0\nstore region1 v1, v2\nv4 = load.i64 region1 v0").is_empty());
    }
}
