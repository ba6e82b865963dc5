//! What is known at a place: the branches and checks that have been passed on every path there.
//!
//! ```text
//! block1:
//!     v3 = icmp ult v1, v2
//!     brif v3, block2, block9
//! block2:                         entered from block1 alone: v1 < v2
//!     trapz v4                    from here on, v4 is not 0
//!     v5 = udiv v0, v6            and v6 is not 0
//!     brif v7, block3, block4
//! block3:                         all of that, and v7 is not 0
//! ```
//!
//! A fact belongs to an edge, or to what follows an instruction. It holds in each block that the edge or the instruction
//! dominates: the values that it speaks of are the same there. A header is not dominated by what its loop tests; what holds for
//! a header's parameters follows from what holds on all edges into it, which is for `prover` to find.
//!
//! # References
//!
//! R. Bodik, R. Gupta, V. Sarkar, "ABCD: eliminating array bounds checks on demand", PLDI 2000. Go's `prove` pass.

mod fact;
mod spot;

use crate::analysis::cfg::edges::{Edge, edges_into};
use crate::analysis::cfg::loops::def_block;
use crate::analysis::facts::condition::{Condition, MAX_NESTING, is_truth};
use crate::analysis::facts::prover::{Prover, Scratch};
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::value_range::{Number, Numbers, Root, Term, limits};
use crate::options::Options;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value, ValueDef};
pub(in crate::analysis) use fact::{Fact, Order, order};
use smallvec::SmallVec;
pub(in crate::analysis) use spot::Spot;
use spot::{BlockFacts, SpotData, SpotKey};

/// Where in a function a question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Right before this instruction.
    Before(Inst),
    /// On this edge.
    On(Edge),
}

impl Place {
    /// Before the last instruction of `block`.
    pub fn end(func: &Function, block: Block) -> Self {
        Self::Before(func.layout.last_inst(block).expect("a block ends in a branch or a return"))
    }

    /// The block that this is in, or the source of the edge.
    fn block(self, func: &Function) -> Block {
        match self {
            Self::Before(inst) => func.layout.inst_block(inst).expect("a question is about a place in the function"),
            Self::On(edge) => edge.source(func),
        }
    }
}

/// What a value is, read without sign and with it.
#[derive(Clone, Copy, Debug)]
pub(in crate::analysis) struct Sides([Number; 2]);

impl Sides {
    /// A number that is the same in both readings.
    fn constant(number: i128) -> Self {
        Self([Number { term: None, offset: number }; 2])
    }

    /// Read with sign or without.
    pub(in crate::analysis) fn read(self, signed: bool) -> Number {
        self.0[usize::from(signed)]
    }
}

/// The lowest block that defines one of several values that are all defined on one path down the dominator tree.
#[derive(Clone, Copy, Debug)]
pub(in crate::analysis) enum Home {
    /// There are no values.
    Nowhere,
    /// The block, and whether all values defined there are its parameters.
    At { block: Block, params: bool },
    /// One of them is defined in no block.
    Unknown,
}

impl Home {
    /// The home of the values of both.
    pub(in crate::analysis) fn lower(self, other: Self, domtree: &DominatorTree) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (home, Self::Nowhere) | (Self::Nowhere, home) => home,
            (Self::At { block, params }, Self::At { block: at, params: also }) => {
                if block == at {
                    Self::At { block, params: params && also }
                } else if domtree.block_dominates(at, block) {
                    self
                } else {
                    other
                }
            }
        }
    }
}

/// Edges into a block above which its parameters are not followed.
const MAX_EDGES: usize = 4;

/// Edges into a block.
pub(in crate::analysis) type Entering = SmallVec<[Edge; MAX_EDGES]>;

/// What is known where in a function. Asked for block by block, and kept.
pub struct Conditions<'a> {
    pub(in crate::analysis) func: &'a Function,
    pub(in crate::analysis) cfg: &'a ControlFlowGraph,
    pub(in crate::analysis) domtree: &'a DominatorTree,
    pub(in crate::analysis) numbers: Numbers<'a>,
    /// The facts of each block that was asked for, one after the other.
    own: Vec<Fact>,
    blocks: Vec<BlockFacts>,
    /// For each block one more than its number in `blocks`.
    numbers_of_blocks: SecondaryMap<Block, u32>,
    /// The facts at the ends of blocks, one after the other.
    ends: Vec<Fact>,
    spots: Vec<SpotData>,
    ids: FxHashMap<SpotKey, Spot>,
    /// The facts of each spot, one after the other.
    facts: Vec<Fact>,
    /// The homes of roots that were asked for.
    homes: Vec<Option<Home>>,
    /// What [`entering`](Self::entering) found.
    edges: FxHashMap<Block, Entering>,
    pub(in crate::analysis) sources: Vec<Inst>,
    pub(in crate::analysis) scratch: Scratch,
    /// Whether a question is worth more than a look.
    pub(in crate::analysis) thorough: bool,
    /// Thorough questions that have used all of their budget.
    pub(in crate::analysis) exhausted: usize,
}

impl<'a> Conditions<'a> {
    /// `cfg` and `domtree` must be those of `func`. Looks at nothing yet.
    pub fn new(func: &'a Function, cfg: &'a ControlFlowGraph, domtree: &'a DominatorTree) -> Self {
        Self {
            func,
            cfg,
            domtree,
            numbers: Numbers::new(func),
            own: Vec::new(),
            blocks: Vec::new(),
            numbers_of_blocks: SecondaryMap::new(),
            ends: Vec::new(),
            spots: Vec::new(),
            ids: FxHashMap::default(),
            facts: Vec::new(),
            homes: Vec::new(),
            edges: FxHashMap::default(),
            sources: Vec::new(),
            scratch: Scratch::default(),
            thorough: true,
            exhausted: 0,
        }
    }

    /// The same with what the embedder knows of what is loaded.
    pub fn with_options(mut self, options: &'a Options) -> Self {
        self.numbers.set_options(options);
        self
    }

    /// From now on, looks only at what branches and checks state directly, or at all that follows from it.
    pub fn set_thorough(&mut self, thorough: bool) {
        self.thorough = thorough;
    }

    /// Whether the comparison of these two, of which all values have to be defined at `place`, holds there: always, never, or
    /// nothing if that is not known.
    pub fn implies(&mut self, place: Place, cond: IntCC, sides: [&Sum; 2]) -> Option<bool> {
        [true, false].into_iter().find(|&truth| self.holds(place, if truth { cond } else { cond.complement() }, sides))
    }

    /// Whether the comparison always holds at `place`.
    pub fn holds(&mut self, place: Place, cond: IntCC, sides: [&Sum; 2]) -> bool {
        self.sources.clear();
        let spot = self.spot(place);
        let sides = sides.map(|sum| Sides(self.numbers.of_sum(sum.clone())));
        self.compare(spot, cond, sides)
    }

    /// Whether `value`, an integer, is never zero at `place`, or always if that is asked for.
    pub fn is(&mut self, place: Place, (value, truth): (Value, bool)) -> bool {
        self.sources.clear();
        let spot = self.spot(place);
        self.is_within(spot, (value, truth), MAX_NESTING)
    }

    /// Whether this instruction, an addition or subtraction that tells or traps if it overflows, or a multiplication that tells,
    /// never does.
    pub fn never_overflows(&mut self, inst: Inst) -> bool {
        self.sources.clear();
        let func = self.func;
        let [a, b] = *func.dfg.inst_args(inst) else { return false };
        let (Some(left), Some(right)) = (self.sides(a), self.sides(b)) else { return false };
        let spot = self.spot(Place::Before(inst));
        let bits = func.dfg.value_type(a).bits();
        let range = |sides: Sides, signed: bool| self.numbers.bounds_of(sides.read(signed));
        let ((left_range, right_range), right_signed) = ((range(left, false), range(right, false)), range(right, true));
        let most = limits(bits, false).1;
        match func.dfg.insts[inst].opcode() {
            Opcode::UaddOverflow | Opcode::UaddOverflowTrap => {
                let cond = IntCC::UnsignedLessThanOrEqual;
                self.compare(spot, cond, [left, Sides::constant(most - right_range.1)])
                    || self.compare(spot, cond, [right, Sides::constant(most - left_range.1)])
            }
            Opcode::UsubOverflow => self.compare(spot, IntCC::UnsignedLessThanOrEqual, [right, left]),
            Opcode::UmulOverflow => left_range.1.checked_mul(right_range.1).is_some_and(|product| product <= most),
            opcode @ (Opcode::SaddOverflow | Opcode::SsubOverflow) => {
                let ((least, largest), (low, high)) = (limits(bits, true), right_signed);
                let (low, high) = if opcode == Opcode::SaddOverflow { (low, high) } else { (-high, -low) };
                let cond = IntCC::SignedLessThanOrEqual;
                (high <= 0 || self.compare(spot, cond, [left, Sides::constant(largest - high)]))
                    && (low >= 0 || self.compare(spot, cond, [Sides::constant(least - low), left]))
            }
            _ => false,
        }
    }

    /// The branches and checks that the last answer follows from.
    pub fn sources(&mut self) -> &[Inst] {
        self.sources.sort_unstable();
        self.sources.dedup();
        &self.sources
    }

    /// Whether anything at all is known of `value` at `place`, besides its type. Parameters of blocks other than the first are
    /// followed, and count as known.
    pub fn knows(&mut self, place: Place, value: Value) -> bool {
        let terms = [false, true].map(|signed| self.numbers.of(value, signed).and_then(|number| number.term));
        let roots = terms.map(|term| term.map(|term| term.root));
        let entry = self.func.layout.entry_block();
        let is_followed = |root| {
            let value = self.numbers.value(root);
            value.is_some_and(|value| match self.func.dfg.value_def(value) {
                ValueDef::Param(block, _) => Some(block) != entry,
                _ => false,
            })
        };
        if roots.iter().any(|root| root.is_none_or(is_followed)) {
            return true;
        }
        let names = |term: Option<Term>| term.is_some_and(|term| roots.contains(&Some(term.root)));
        let spot = self.spot(place);
        let facts = [self.ordered(spot), self.differing(spot)];
        facts.into_iter().flatten().any(|fact| names(fact.left) || names(fact.right))
    }

    /// Whether the comparison always holds.
    fn compare(&mut self, spot: Spot, cond: IntCC, sides: [Sides; 2]) -> bool {
        let mut prover = Prover::new(self);
        let holds = prover.holds(spot, cond, sides);
        prover.finish();
        holds
    }

    /// What a value is, if it is an integer of at most 64 bits.
    fn sides(&mut self, value: Value) -> Option<Sides> {
        Some(Sides([self.numbers.of(value, false)?, self.numbers.of(value, true)?]))
    }

    fn is_within(&mut self, spot: Spot, (value, truth): (Value, bool), depth: usize) -> bool {
        let condition = if depth > 0 { Condition::of(self.func, value) } else { Condition::Number };
        match condition {
            Condition::Is(inner, same) => self.is_within(spot, (inner, truth == same), depth - 1),
            Condition::Compares(cond, args) => {
                let [Some(left), Some(right)] = args.map(|arg| self.sides(arg)) else { return false };
                self.compare(spot, if truth { cond } else { cond.complement() }, [left, right])
            }
            Condition::And(args) if !truth || args.iter().all(|&arg| is_truth(self.func, arg)) => {
                self.are_within(spot, args, (truth, truth), depth)
            }
            Condition::Or(args) => self.are_within(spot, args, (truth, !truth), depth),
            Condition::And(_) | Condition::Number => {
                let Some(sides) = self.sides(value) else { return false };
                let cond = if truth { IntCC::NotEqual } else { IntCC::Equal };
                self.compare(spot, cond, [sides, Sides::constant(0)])
            }
        }
    }

    /// Whether both of two values are not zero, or are, or only one of them if not `both`.
    fn are_within(&mut self, spot: Spot, values: [Value; 2], (truth, both): (bool, bool), depth: usize) -> bool {
        let mut is = |value| self.is_within(spot, (value, truth), depth - 1);
        if both { is(values[0]) && is(values[1]) } else { is(values[0]) || is(values[1]) }
    }

    /// The edges into a block, those from outside of its loop first; none if they are too many.
    pub(in crate::analysis) fn entering(&mut self, block: Block) -> Entering {
        let Self { func, cfg, domtree, .. } = *self;
        let find = || {
            let mut edges: SmallVec<[Edge; MAX_EDGES + 1]> = edges_into(func, cfg, block).take(MAX_EDGES + 1).collect();
            if edges.len() > MAX_EDGES {
                edges.clear();
            }
            edges.sort_by_key(|edge| domtree.block_dominates(block, edge.source(func)));
            Entering::from_slice(&edges)
        };
        self.edges.entry(block).or_insert_with(find).clone()
    }

    /// Where the values of a root are defined.
    pub(in crate::analysis) fn home(&mut self, root: Root) -> Home {
        if let Some(Some(home)) = self.homes.get(root.index()) {
            return *home;
        }
        let Self { func, domtree, numbers, .. } = &*self;
        let mut home = Home::Nowhere;
        numbers.sum(root).each_value(&mut |value| {
            let params = matches!(func.dfg.value_def(value), ValueDef::Param(..));
            let own = def_block(func, value).map_or(Home::Unknown, |block| Home::At { block, params });
            home = home.lower(own, domtree);
        });
        if self.homes.len() <= root.index() {
            self.homes.resize(root.index() + 1, None);
        }
        self.homes[root.index()] = Some(home);
        home
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, context};
    use cranelift_codegen::Context;

    /// Asks whether `cond` holds between two values at the end of a block.
    fn ask(ctx: &Context, at: u32, cond: IntCC, [left, right]: [u32; 2]) -> Option<bool> {
        let mut conditions = Conditions::new(&ctx.func, &ctx.cfg, &ctx.domtree);
        let sums = [left, right].map(|number| Sum::of(&ctx.func, Value::from_u32(number)));
        conditions.implies(Place::end(&ctx.func, block(at)), cond, [&sums[0], &sums[1]])
    }

    #[test]
    fn facts_of_one_edge() {
        let ctx = context(
            "function %f(i32, i32, i32) {
            block0(v0: i32, v1: i32, v2: i32):
                v3 = icmp ult v0, v1
                v4 = icmp ule v1, v2
                v5 = band v3, v4
                brif v5, block1, block2
            block1:
                v6 = iconst.i32 1
                v7 = iadd v0, v6
                jump block3
            block2:
                jump block3
            block3:
                return
            }",
        );
        assert_eq!(ask(&ctx, 1, IntCC::UnsignedLessThan, [0, 2]), Some(true), "through v1");
        assert_eq!(ask(&ctx, 1, IntCC::UnsignedGreaterThanOrEqual, [0, 2]), Some(false));
        assert_eq!(ask(&ctx, 1, IntCC::UnsignedLessThanOrEqual, [7, 2]), Some(true), "it cannot wrap");
        assert_eq!(ask(&ctx, 1, IntCC::UnsignedLessThan, [7, 2]), None);
        assert_eq!(ask(&ctx, 1, IntCC::SignedLessThan, [0, 2]), None);
        assert_eq!(ask(&ctx, 1, IntCC::NotEqual, [0, 1]), Some(true));
        assert_eq!(ask(&ctx, 2, IntCC::UnsignedLessThan, [0, 2]), None);
        assert_eq!(ask(&ctx, 3, IntCC::UnsignedLessThan, [0, 2]), None);
    }

    #[test]
    fn what_is_rounded_down() {
        let ctx = context(
            "function %f(i32) {
            block0(v0: i32):
                v1 = iconst.i32 -4
                v2 = iconst.i32 4
                v3 = iconst.i32 5
                v4 = band v0, v1
                v5 = icmp ult v0, v2
                brif v5, block1, block2
            block1:
                return
            block2:
                return
            }",
        );
        assert_eq!(ask(&ctx, 2, IntCC::UnsignedLessThanOrEqual, [2, 4]), Some(true));
        assert_eq!(ask(&ctx, 2, IntCC::UnsignedLessThanOrEqual, [3, 4]), None, "it would have to be 8");
        assert_eq!(ask(&ctx, 1, IntCC::UnsignedLessThanOrEqual, [2, 4]), Some(false));
        assert_eq!(ask(&ctx, 0, IntCC::UnsignedLessThanOrEqual, [4, 0]), Some(true));
    }

    #[test]
    fn a_sum_that_stops_on_its_way() {
        let ctx = context(
            "function %f(i32, i32, i32, i32) {
            block0(v0: i32, v1: i32, v2: i32, v3: i32):
                v4 = isub v1, v0
                v5 = umin v4, v2
                v6 = iadd v0, v5
                v7 = icmp sle v0, v1
                brif v7, block1, block2
            block1:
                v8 = icmp slt v3, v0
                brif v8, block3, block2
            block2:
                return
            block3:
                return
            }",
        );
        assert_eq!(ask(&ctx, 1, IntCC::SignedLessThanOrEqual, [6, 1]), Some(true), "it does not pass v1");
        assert_eq!(ask(&ctx, 1, IntCC::SignedGreaterThanOrEqual, [6, 0]), Some(true), "it begins at v0");
        assert_eq!(ask(&ctx, 1, IntCC::SignedLessThan, [6, 1]), None, "it may get there");
        assert_eq!(ask(&ctx, 1, IntCC::UnsignedLessThanOrEqual, [6, 1]), None, "with sign, v0 is less");
        assert_eq!(ask(&ctx, 3, IntCC::SignedLessThan, [3, 6]), Some(true));
        assert_eq!(ask(&ctx, 0, IntCC::SignedLessThanOrEqual, [6, 1]), None, "v1 may be less than v0");
    }

    #[test]
    fn counters_and_the_header() {
        let ctx = context(
            "function %f(i32) {
            block0(v0: i32):
                v1 = iconst.i32 0
                jump block1(v1)
            block1(v2: i32):
                v3 = icmp slt v2, v0
                brif v3, block2, block3
            block2:
                v4 = iconst.i32 1
                v5 = iadd v2, v4
                jump block1(v5)
            block3:
                return
            }",
        );
        assert_eq!(ask(&ctx, 1, IntCC::SignedGreaterThanOrEqual, [2, 1]), Some(true), "it counts up");
        assert_eq!(ask(&ctx, 1, IntCC::UnsignedLessThan, [2, 0]), None, "not before the test");
        assert_eq!(ask(&ctx, 2, IntCC::UnsignedLessThan, [2, 0]), Some(true));
        assert_eq!(ask(&ctx, 2, IntCC::UnsignedLessThanOrEqual, [5, 0]), Some(true));
        assert_eq!(ask(&ctx, 3, IntCC::SignedGreaterThanOrEqual, [2, 0]), Some(true));
    }
}
