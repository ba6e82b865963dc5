//! Polls: loads that an exit of a loop depends on, where it depends on nothing else that varies. The loop may be waiting for someone to write there.
//!
//! ```text
//! header:
//!     v1 = load.i32 v0       a poll
//!     v2 = icmp eq v1, v3
//!     brif v2, header, exit
//! ```
//!
//! CLIF does not say so: a plain load may be taken for one that gives the same each time, and then the loop never ends. A
//! program that waits like that should use atomics, but programs do, and an engine stops its guests by a flag that is a
//! plain load to Cranelift (wasmtime's epochs). No loop is worth much in which such a condition is free.
//!
//! # Which loads
//!
//! A value is *steady* if it would be the same in each iteration, from some iteration on, as long as nobody writes to memory: if it comes from
//! outside the loop, is made of steady values by an instruction that neither writes nor calls, is loaded from a steady address, or is a parameter for
//! which each edge passes a steady value. A counter is not: it is made of itself by an addition. What is made of itself by anything but that, or a quotient, comes
//! to rest or alternates ([`settles`]): a flag that an iteration passes to the next once it has been seen.
//!
//! Polls are, first, the loads that the steady condition of an exit is made of; where any of several conditions is enough, each is an exit. A steady branch that
//! decides whether an iteration reaches such an exit belongs to its condition, and so do the steady conditions that choose what a parameter or a `select` among these values
//! gets.
//!
//! Second, if no exit is sure (`standing`), those that any exit is made of, or what decides in an iteration without being different in the next one:
//! a loop counts only once a flag is set, a consumer waits for the producer to be another number than its own. So it is, too, for exits that not each iteration
//! reaches.
//!
//! Third, if a poll may load what the loop itself stores, all of it or a part, those that decide what is stored, where, and whether.
//!
//! What traps is an exit, too, of a loop that nothing else surely ends: conditional traps, divisions by what may be zero, sums that may overflow. So is what
//! leaves all loops for a trap or for cold code, as a check of a tag or a length does: in a loop that counts to its end, that is no wait. Only accesses
//! are not: nobody waits for an address to become one that faults, and nearly every loop would.
//!
//! In a loop with a cycle that can be entered at several blocks, each load may be one: nothing says what that cycle waits for.
//!
//! What the loop itself writes to is not left out: whether a load of that may become what the loop has stored there, as with a counter in memory, is for
//! `promote` to say.
//!
//! # What may be done with them
//!
//! A poll may be copied with its iteration, into a guard, a peeled or an unrolled iteration: each copy is done when the original was. It may
//! be what another load of the same iteration has just read, as if both had been done at once. It may not be what the loop has stored, though the
//! store is in the same iteration: where a loop was rotated, that is the previous iteration. It may not leave the loop, nor become what was known before the
//! iteration began: a loop that polls keeps polling.
//!
//! A loop that counts to an end does not wait, whatever it loads meanwhile. A plain load may leave it, and what is written in the meantime is seen
//! after it: CLIF promises no more of a plain load, and the end of the loop bounds how late that is.
//!
//! Regions that others write ([`Writers::Others`](crate::Writers)) are stricter: each load there stays what it is.

mod asked;
mod passed;
mod standing;

use crate::analysis::cfg::edges::{Edge, edges_and_targets};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::Effects;
use crate::fault::fault;
pub use asked::asked_by;
use asked::{alternatives, condition, conjuncts};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef};
use cranelift_codegen::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use standing::{Decider, Parts};
use std::rc::Rc;

/// The polls of `lp`, sorted. Linear in the size of the loop.
pub fn polls(
    func: &Function,
    (cfg, domtree): (&ControlFlowGraph, &DominatorTree),
    forest: &LoopForest,
    lp: Loop,
) -> Vec<Inst> {
    if fault!(PollsForgotten) {
        return Vec::new();
    }
    if forest.irreducible_in(lp).is_some() {
        return loads_of(func, forest.blocks(lp));
    }
    let exits = &forest.data(lp).exits[..];
    let new = || Search::new(func, (cfg, domtree), forest, lp);
    let mut search = new();
    let (mut conditions, waits) = search.conditions(&search.exit_conditions(exits));
    if waits {
        conditions.extend(search.conditions(&search.traps()).0);
    }
    let polls = search.awaited_by(conditions);
    if polls.is_empty() {
        return polls;
    }
    // A loop that surely ends does not wait for a check to fail.
    let ends: Vec<_> = exits.iter().copied().filter(|exit| !forest.fails_at(func, exit.target(func))).collect();
    if ends.is_empty() || ends.len() == exits.len() {
        return polls;
    }
    let mut search = new();
    let (conditions, waits) = search.conditions(&search.exit_conditions(&ends));
    if waits { polls } else { search.awaited_by(conditions) }
}

/// All plain loads in these blocks, sorted.
fn loads_of(func: &Function, blocks: &[Block]) -> Vec<Inst> {
    let is_load = |inst: &Inst| matches!(func.dfg.insts[*inst], InstructionData::Load { .. });
    let mut loads: Vec<_> = blocks.iter().flat_map(|&block| func.layout.block_insts(block)).filter(is_load).collect();
    loads.sort_unstable();
    loads
}

/// What is known of a value during the search through what a condition is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Not known yet: the open value of this number.
    Open {
        number: usize,
    },
    Steady,
    Changing,
}

/// A value on the stack of the search.
struct OnStack {
    number: usize,
    /// The lowest number of an open value that it is made of.
    lowest: usize,
    /// What it is made of, not looked at yet.
    operands: Operands,
}

/// Lets the last value on the stack be made of the open value of this number.
fn reach(stack: &mut [OnStack], number: usize) {
    if let Some(last) = stack.last_mut() {
        last.lowest = last.lowest.min(number);
    }
}

struct Search<'a> {
    func: &'a Function,
    cfg: &'a ControlFlowGraph,
    domtree: &'a DominatorTree,
    forest: &'a LoopForest,
    lp: Loop,
    seen: FxHashMap<Value, Seen>,
    /// Conditions that choose what the values seen get, not looked at yet.
    deciding: Vec<Value>,
    /// Blocks of which the conditions have been among these.
    decided: EntitySet<Block>,
    /// Blocks with parameters that were seen, and the block arguments of each: by each edge, for each parameter.
    passed: FxHashMap<Block, Vec<Option<Value>>>,
    /// Whether values are made of a load, as far as that was asked.
    loaded: FxHashMap<Value, bool>,
    /// The loads that none of the exits can do without, of those that are not steady.
    awaited: Vec<Inst>,
    /// What decides what an iteration does, once that was asked for.
    deciders: Option<Vec<Decider>>,
    /// Whether values that are not steady [progress](Self::progresses), as far as that is known.
    progressing: FxHashMap<(Value, bool), bool>,
    /// What values are made of in one iteration, as far as that was asked.
    parts: FxHashMap<Value, Rc<Parts>>,
    /// How many steps walks up through an iteration may still take.
    steps: usize,
}

/// An exit of the loop: a block, and what is asked there. It is taken only if each of these is as it has to be.
type ExitCondition = (Block, Operands);

/// The branches before exits.
#[derive(Default)]
struct Guards {
    /// Their conditions, which are steady.
    conditions: Vec<Value>,
    /// Whether there is such a branch before a block, as far as that is known.
    known: FxHashMap<Block, bool>,
}

/// What a value is made of.
pub type Operands = SmallVec<[Value; 4]>;

impl<'a> Search<'a> {
    fn new(
        func: &'a Function,
        (cfg, domtree): (&'a ControlFlowGraph, &'a DominatorTree),
        forest: &'a LoopForest,
        lp: Loop,
    ) -> Self {
        Self {
            func,
            cfg,
            domtree,
            forest,
            lp,
            // Room for a small loop.
            seen: FxHashMap::with_capacity_and_hasher(56, Default::default()),
            deciding: Vec::new(),
            decided: EntitySet::new(),
            passed: FxHashMap::default(),
            loaded: FxHashMap::default(),
            awaited: Vec::new(),
            deciders: None,
            progressing: FxHashMap::default(),
            parts: FxHashMap::default(),
            steps: passed::MAX_STEPS,
        }
    }

    /// These exits: one for each condition, where any of several is enough.
    fn exit_conditions(&self, exits: &[Edge]) -> Vec<ExitCondition> {
        let func = self.func;
        exits
            .iter()
            .flat_map(|exit| alternatives(func, *exit).into_iter().map(|asked| (exit.source(func), asked)))
            .collect()
    }

    /// What these exits ask and the steady conditions that guard them, and whether none of them is sure to be taken.
    fn conditions(&mut self, exit_conditions: &[ExitCondition]) -> (Vec<Value>, bool) {
        let mut conditions = exit_conditions.iter().flat_map(|(_, asked)| asked.clone()).collect();
        let waits = self.add_guards(exit_conditions, &mut conditions);
        (conditions, waits)
    }

    /// The loads that these conditions are made of, as far as they are steady, and what else was found to be awaited, sorted.
    fn awaited_by(mut self, mut conditions: Vec<Value>) -> Vec<Inst> {
        let mut steady = Vec::new();
        while let Some(condition) = conditions.pop() {
            if self.is_steady(condition) {
                steady.push(condition);
            }
            conditions.append(&mut self.deciding);
        }
        let mut loads = self.source_loads(steady, &mut FxHashSet::default());
        loads.append(&mut self.awaited);
        loads.sort_unstable();
        loads.dedup();
        self.with_stored(loads)
    }

    /// What traps and neither calls nor accesses memory: conditional traps, divisions by what may be zero, sums that may overflow.
    fn traps(&self) -> Vec<ExitCondition> {
        use Opcode::{Sdiv, Srem, Udiv, Urem};
        let func = self.func;
        let traps_in = |block| {
            func.layout.block_insts(block).filter_map(move |inst| {
                let effects = Effects::of(func, inst);
                if !effects.traps || effects.reads || effects.writes || effects.diverges || effects.terminates {
                    return None;
                }
                let args = func.dfg.inst_args(inst);
                let asked = match (func.dfg.insts[inst], func.dfg.insts[inst].opcode()) {
                    (InstructionData::CondTrap { .. }, opcode) => conjuncts(func, args[0], opcode == Opcode::Trapnz),
                    (_, Sdiv | Srem | Udiv | Urem) => SmallVec::from_slice(&args[1..]),
                    _ => SmallVec::from_slice(args),
                };
                Some((block, asked))
            })
        };
        self.forest.blocks(self.lp).iter().flat_map(|&block| traps_in(block)).collect()
    }

    /// Adds the steady conditions of the branches before the exits: of exits with a condition that varies only if none of these is
    /// [sure](Self::is_sure), and then what they wait for as well. Returns whether that is so: perhaps none is taken if what is loaded stays the same.
    fn add_guards(&mut self, exit_conditions: &[ExitCondition], guards: &mut Vec<Value>) -> bool {
        let (mut of_steady, mut of_changing) = (Guards::default(), Guards::default());
        let (steady, changing): (Vec<&ExitCondition>, Vec<&ExitCondition>) =
            exit_conditions.iter().partition(|(_, asked)| self.are_steady(asked));
        for (block, _) in &steady {
            self.is_guarded(*block, &mut of_steady);
        }
        guards.append(&mut of_steady.conditions);
        if steady.iter().any(|(block, _)| !self.is_in_each_iteration(*block)) {
            let decide = self.blocking();
            self.wait_for(decide);
        }
        // In a block that each iteration reaches anyway, an earlier branch is the exit of an inner loop, or decides nothing.
        let mut is_guarded = |block| !self.is_in_each_iteration(block) && self.is_guarded(block, &mut of_changing);
        let guarded: Vec<_> = changing.iter().map(|(block, _)| is_guarded(*block)).collect();
        // What the sure exits are made of decides nothing.
        let deciding = self.deciding.len();
        let sure: Vec<_> = changing.iter().map(|exit_condition| self.is_sure(exit_condition)).collect();
        if sure.is_empty() || sure.contains(&true) {
            self.deciding.truncate(deciding);
        } else {
            let asked = changing.iter().flat_map(|(_, asked)| asked.clone());
            let decide = asked.chain(self.blocking()).collect();
            self.wait_for(decide);
        }
        let waits = guarded.into_iter().zip(sure).all(|(is_guarded, is_sure)| is_guarded || !is_sure);
        if waits {
            guards.append(&mut of_changing.conditions);
        }
        waits
    }

    /// Whether each iteration that stays in the loop executes `block`.
    fn is_in_each_iteration(&self, block: Block) -> bool {
        self.forest.is_in_each_iteration(self.func, self.domtree, self.lp, block)
    }

    fn are_steady(&mut self, values: &[Value]) -> bool {
        values.iter().all(|&value| self.is_steady(value))
    }

    /// Whether `value` is steady, and loaded.
    fn is_loaded(&mut self, value: Value) -> bool {
        self.is_steady(value) && self.has_load(value)
    }

    /// Whether a load of the loop is among what `value` is made of.
    fn has_load(&mut self, value: Value) -> bool {
        if let Some(&known) = self.loaded.get(&value) {
            return known;
        }
        let (mut open, mut seen) = (Operands::from_slice(&[value]), FxHashSet::default());
        let mut found = false;
        while let Some(value) = open.pop().filter(|_| !found) {
            found = self.load_of(value).is_some();
            if seen.insert(value) {
                open.extend(self.operands(value).unwrap_or_default());
            }
        }
        self.loaded.insert(value, found);
        found
    }

    /// The load in the loop that gives `value`.
    fn load_of(&self, value: Value) -> Option<Inst> {
        let Self { func, forest, lp, .. } = *self;
        let inst = func.dfg.value_def(value).inst()?;
        let is_inside = func.layout.inst_block(inst).is_some_and(|block| forest.contains(lp, block));
        (is_inside && matches!(func.dfg.insts[inst], InstructionData::Load { .. })).then_some(inst)
    }

    /// Whether one edge alone of a branch with a steady condition leads to `block`, and another one stays in the loop. Adds the conditions of all such branches.
    fn is_guarded(&mut self, block: Block, guards: &mut Guards) -> bool {
        let header = self.forest.data(self.lp).header;
        let mut stack = Vec::new();
        let mut next = Some(block);
        let mut is_guarded = false;
        while let Some(block) = next {
            if let Some(&known) = guards.known.get(&block) {
                is_guarded = known;
                break;
            }
            stack.push(block);
            next = self.domtree.idom(block).filter(|_| block != header);
        }
        for &block in stack.iter().rev() {
            if let [edge] = self.forest.edges_into(self.func, self.cfg, block)
                && block != header
                && let Some(condition) = condition(self.func, edge.branch)
                && self.has_several_successors(edge.source(self.func))
                && self.is_steady(condition)
            {
                guards.conditions.push(condition);
                is_guarded = true;
            }
            guards.known.insert(block, is_guarded);
        }
        is_guarded
    }

    /// Whether more than one edge from `block` stays in the loop.
    fn has_several_successors(&self, block: Block) -> bool {
        edges_and_targets(self.func, block)
            .filter(|&(_, target)| self.forest.contains(self.lp, target))
            .nth(1)
            .is_some()
    }

    /// Whether `condition` is steady. What is made of each other is so together or not at all: Tarjan, "Depth-first search and linear graph algorithms", 1972.
    fn is_steady(&mut self, condition: Value) -> bool {
        let (mut stack, mut open) = (Vec::<OnStack>::new(), Vec::new());
        let mut next = Some(condition);
        loop {
            match next.map(|value| (value, self.seen.get(&value))) {
                Some((_, Some(Seen::Steady))) => {}
                Some((_, Some(Seen::Changing))) => break,
                Some((_, Some(&Seen::Open { number }))) => reach(&mut stack, number),
                Some((value, None)) => {
                    let number = open.len();
                    open.push(value);
                    let Some(operands) = self.operands(value) else { break };
                    self.seen.insert(value, Seen::Open { number });
                    stack.push(OnStack { number, lowest: number, operands });
                }
                None => {
                    let Some(OnStack { number, lowest, .. }) = stack.pop() else { return true };
                    if lowest < number {
                        reach(&mut stack, lowest);
                    } else if self.moves(&open[number..]) {
                        break;
                    } else {
                        self.seen.extend(open.drain(number..).map(|value| (value, Seen::Steady)));
                    }
                }
            }
            let Some(last) = stack.last_mut() else { return true };
            next = last.operands.pop();
        }
        // All that is open is made of what varies.
        self.seen.extend(open.into_iter().map(|value| (value, Seen::Changing)));
        false
    }

    /// Whether values that are made of each other are so from one iteration to the next, and not only by what [`settles`]. Through a cycle of parameters alone,
    /// a value stays what it is, and a cycle of an inner loop starts again in each iteration. What is subtracted from something else alternates: `x = c - x`.
    fn moves(&self, values: &[Value]) -> bool {
        let header = self.forest.data(self.lp).header;
        let def = |value: &Value| self.func.dfg.value_def(*value);
        let is_of_header = |value: &Value| matches!(def(value), ValueDef::Param(block, _) if block == header);
        let is_moved =
            |value: &Value| def(value).inst().is_some_and(|inst| !settles(self.func.dfg.insts[inst].opcode()));
        let alternates = |value: &Value| {
            let Some(inst) = def(value).inst().filter(|&inst| subtracts(self.func.dfg.insts[inst].opcode())) else {
                return false;
            };
            let [minuend, subtrahends @ ..] = self.func.dfg.inst_args(inst) else { return false };
            !values.contains(minuend) && subtrahends.iter().any(|value| values.contains(value))
        };
        let may_move = values.len() > 1 && values.iter().any(is_of_header) && values.iter().any(is_moved);
        may_move && !values.iter().any(alternates)
    }

    /// What `value` is made of in the loop, nothing if it is outside. `None` if it varies.
    fn operands(&mut self, value: Value) -> Option<Operands> {
        let func = self.func;
        if !self.forest.defines(func, self.lp, value) {
            return Some(Operands::new());
        }
        match func.dfg.value_def(value) {
            ValueDef::Result(inst, _) => {
                self.deciding.extend(self.chosen_by(value));
                is_deterministic(func, inst).then(|| Operands::from_slice(func.dfg.inst_args(inst)))
            }
            ValueDef::Param(block, index) => {
                if !self.passed.contains_key(&block) {
                    self.enter(block);
                }
                self.passed[&block].iter().skip(index).step_by(func.dfg.num_block_params(block)).copied().collect()
            }
            ValueDef::Union(..) => None,
        }
    }

    /// The condition of a choice.
    fn chosen_by(&self, value: Value) -> Option<Value> {
        let inst = self.func.dfg.value_def(value).inst()?;
        is_select(self.func.dfg.insts[inst].opcode()).then(|| self.func.dfg.inst_args(inst)[0])
    }

    /// Takes note of the block arguments for `block`, and, if it is not the header, of the conditions in the loop that decide which edge to it is
    /// taken.
    fn enter(&mut self, block: Block) {
        let edges = self.forest.edges_into(self.func, self.cfg, block).iter();
        let passed = edges.flat_map(|edge| edge.args(self.func)).map(|arg| arg.as_value()).collect();
        self.passed.insert(block, passed);
        if block == self.forest.data(self.lp).header {
            return;
        }
        for pred in self.cfg.pred_iter(block) {
            let mut above = Some(pred.block);
            while let Some(source) = above.filter(|&source| self.forest.contains(self.lp, source)) {
                if !self.decided.insert(source) {
                    break;
                }
                let branch = self.func.layout.last_inst(source);
                self.deciding.extend(branch.and_then(|branch| condition(self.func, branch)));
                above = self.domtree.idom(source);
            }
        }
    }

    /// The loads that the steady `values` are made of, but for what is made of those in `done`.
    fn source_loads(&mut self, mut values: Vec<Value>, done: &mut FxHashSet<Value>) -> Vec<Inst> {
        let mut loads = Vec::new();
        while let Some(value) = values.pop() {
            if !done.insert(value) {
                continue;
            }
            let Some(operands) = self.operands(value) else { continue };
            loads.extend(self.load_of(value));
            values.extend(operands);
        }
        loads.sort_unstable();
        loads.dedup();
        loads
    }
}

/// Whether a value that is made of itself by such an instruction, and of others that stay the same, is the same from some iteration on, or alternates.
/// What is not known to advance does. A difference advances if the value is its first operand, and a quotient is taken for a number of which the
/// digits are written: it ends at zero, as is asked there.
pub fn settles(opcode: Opcode) -> bool {
    use Opcode::{Fadd, Fdiv, Fma, Iadd, SaddOverflow, SaddOverflowCin, Sdiv, UaddOverflow, UaddOverflowCin};
    use Opcode::{UaddOverflowTrap, Udiv};
    let adds = matches!(opcode, Fadd | Fma | Iadd | SaddOverflow | SaddOverflowCin | UaddOverflow | UaddOverflowCin)
        || opcode == UaddOverflowTrap;
    !(adds || subtracts(opcode) || matches!(opcode, Fdiv | Sdiv | Udiv) || opcode.can_load() || opcode.is_call())
}

/// Whether an instruction gives its first operand less the others.
pub fn subtracts(opcode: Opcode) -> bool {
    use Opcode::{Fsub, Isub, SsubOverflow, SsubOverflowBin, UsubOverflow, UsubOverflowBin};
    matches!(opcode, Fsub | Isub | SsubOverflow | SsubOverflowBin | UsubOverflow | UsubOverflowBin)
}

/// Whether the first operand chooses between the others.
fn is_select(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Bitselect | Opcode::Select | Opcode::SelectSpectreGuard)
}

/// Whether `inst` gives the same for the same operands and the same memory.
fn is_deterministic(func: &Function, inst: Inst) -> bool {
    let effects = Effects::of(func, inst);
    match func.dfg.insts[inst].opcode() {
        Opcode::AtomicLoad => true,
        _ => !effects.writes && !effects.fences && !effects.diverges,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, forest};

    /// The results of the polls of the outermost loop.
    fn polled(body: &str) -> Vec<String> {
        let ctx = context(&format!(
            "function %f(i64, i64) -> i64 {{
                fn0 = %g() -> i64
            block0(v0: i64, v1: i64):
                v2 = iconst.i64 0
                {body}
            block9:
                return v1
            }}"
        ));
        let forest = forest(&ctx);
        let lp = forest.loops().next().expect("a loop");
        let found = polls(&ctx.func, (&ctx.cfg, &ctx.domtree), &forest, lp);
        found.into_iter().map(|load| ctx.func.dfg.first_result(load).to_string()).collect()
    }

    #[test]
    fn of_one_block() {
        let test = |condition: &str| {
            polled(&format!(
                "jump block1(v2)
                block1(v3: i64):
                    v4 = load.i64 notrap v0
                    v5 = load.i64 notrap v4+8
                    v6 = iadd v3, v1
                    {condition}
                    brif v7, block1(v6), block9"
            ))
        };
        assert_eq!(test("v7 = icmp ult v4, v1"), ["v4"]);
        assert_eq!(test("v7 = udiv v5, v1"), ["v4", "v5"], "the address is loaded, too");
        assert!(test("v7 = icmp ult v4, v3").is_empty(), "the counter changes");
        assert!(test("v7 = icmp ult v3, v1").is_empty());
        assert!(test("v8 = call fn0()\nv7 = bxor v8, v4").is_empty(), "a call may give anything");
        assert_eq!(test("v8 = call fn0()\nv7 = band v8, v4"), ["v4"], "one of two is enough");
        assert_eq!(test("v8 = atomic_load.i64 v0\nv7 = band v8, v4"), ["v4"]);
        assert_eq!(test("v8 = get_pinned_reg.i64\nv7 = icmp ne v8, v4"), ["v4"], "until the lock is handed over");
    }

    #[test]
    fn through_parameters() {
        let late = "jump block1(v2, v2)
            block1(v3: i64, v9: i64):
                v4 = load.i64 notrap v0
                brif v9, block9, block1(v3, v4)";
        assert_eq!(polled(late), ["v4"], "tested in the next iteration");
        let kept = |op: &str| {
            polled(&format!(
                "jump block1(v2)
                block1(v3: i64):
                    v4 = load.i64 notrap v0
                    v5 = {op} v3, v4
                    brif v5, block9, block1(v5)"
            ))
        };
        assert_eq!(kept("bor"), ["v4"], "once it is set, it stays set");
        assert_eq!(kept("umax"), ["v4"]);
        assert!(kept("iadd").is_empty());
        let normalized = "jump block1(v2)
            block1(v3: i64):
                v4 = load.i64 notrap v0
                v5 = icmp ne v3, v2
                v6 = icmp ne v4, v2
                v7 = bor v5, v6
                v8 = uextend.i64 v7
                brif v7, block9, block1(v8)";
        assert_eq!(polled(normalized), ["v4"], "a flag that stays set, made into 0 or 1 again");
        for chosen in ["select v4, v3, v5", "select v4, v5, v3"] {
            let counter = format!(
                "jump block1(v2)
                block1(v3: i64):
                    v4 = load.i64 notrap v0
                    v5 = iadd v3, v1
                    v6 = {chosen}
                    v7 = icmp ult v6, v1
                    brif v7, block1(v6), block9"
            );
            assert_eq!(polled(&counter), ["v4"], "it counts only if the flag is set, or is not: {chosen}");
        }
        let chosen = "jump block1
            block1:
                v4 = load.i64 notrap v0
                v5 = load.i64 notrap v0+8
                v6 = load.i64 notrap v0+16
                brif v4, block2(v5), block2(v2)
            block2(v7: i64):
                brif v7, block9, block1";
        assert_eq!(polled(chosen), ["v4", "v5"], "what is chosen, and what chooses");
        let inner = "jump block1
            block1:
                jump block2(v2)
            block2(v3: i64):
                v4 = load.i64 notrap v0
                v5 = iadd v3, v4
                v6 = icmp ult v5, v1
                brif v6, block2(v5), block3(v4)
            block3(v7: i64):
                brif v7, block9, block1";
        assert_eq!(polled(inner), ["v4"], "it leaves the inner loop through a parameter");
    }

    #[test]
    fn before_the_exits() {
        let guarded = |ends: &str| {
            polled(&format!(
                "jump block1(v2)
                block1(v3: i64):
                    v4 = load.i64 notrap v0
                    v6 = iadd v3, v1
                    brif v4, block2, block3
                block2:
                    brif v3, block3, block9
                block3:
                    {ends}"
            ))
        };
        assert_eq!(guarded("jump block1(v6)"), ["v4"], "it counts only once the flag is set");
        assert!(guarded("brif v6, block1(v6), block9").is_empty(), "it ends in any case");
        let diamonds: String = (0..20)
            .map(|at| {
                let [this, then, next] = [100 + 2 * at, 101 + 2 * at, 102 + 2 * at];
                format!("block{this}:\n brif v3, block{then}, block{next}\nblock{then}:\n jump block{next}\n")
            })
            .collect();
        let above = polled(&format!(
            "jump block1(v2)
            block1(v3: i64):
                v4 = load.i64 notrap v0
                v6 = iadd v3, v1
                brif v4, block100, block1(v6)
            {diamonds}
            block140:
                brif v3, block1(v6), block9"
        ));
        assert_eq!(above, ["v4"], "however far above");
    }

    #[test]
    fn of_a_loop_that_only_a_trap_ends() {
        let trap = "jump block1(v2)
            block1(v3: i64):
                v4 = load.i64 notrap v0
                trapz v4, user1
                v5 = iadd v3, v1
                jump block1(v5)";
        assert_eq!(polled(trap), ["v4"]);
        let beside = |condition: &str| {
            polled(&format!(
                "jump block1(v2)
                block1(v3: i64):
                    v4 = load.i64 notrap v0
                    v6 = load.i64 notrap v0+64
                    trapz v4, user1
                    v5 = iadd v3, v1
                    brif {condition}, block1(v5), block9"
            ))
        };
        assert_eq!(beside("v1"), ["v4"], "the exit is taken at once or never");
        assert_eq!(beside("v6"), ["v4", "v6"], "either may be what it waits for");
        assert!(beside("v5").is_empty(), "it ends in any case");
    }
}
