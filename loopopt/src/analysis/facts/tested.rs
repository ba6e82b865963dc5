//! What the branches that lead to an edge have found out of a value there.
//!
//! ```text
//!     v3 = icmp eq v1, 7
//!     brif v3, block2, block1      on the edge to block2, v3 is 1 and v1 is 7; on the other one, v3 is 0
//! block2:
//!     …
//!     jump block4                  here as well: nothing else leads to block2
//! ```
//!
//! A value is defined before a branch that tests it. From there to the edge, each block is entered only from the one before, so that the value is not computed
//! again in between.

use crate::analysis::cfg::edges::{Edge, only_edge_into};
use crate::analysis::inst::effects;
use crate::analysis::scev::comparison::Comparison;
use crate::analysis::scev::linear_expr::known;
use crate::fault::fault;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Opcode, Value};

/// Branches before an edge that are asked, its own included. 4: a path from one test to the next that has more of them on it is seldom one that nothing else
/// enters.
const MAX_BRANCHES: usize = 4;

/// A number that is tested to be zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tested {
    pub(crate) number: Value,
    /// Whether the value is true where the number is zero.
    pub(crate) inverted: bool,
}

impl Tested {
    /// What `value` says: of another number if it compares that with zero, else of itself.
    pub(crate) fn of(func: &Function, value: Value) -> Self {
        match Comparison::of(func, value, true) {
            Comparison { cond: cond @ (IntCC::Equal | IntCC::NotEqual), left: number, right: None } => {
                Self { number, inverted: cond == IntCC::Equal }
            }
            _ => Self { number: value, inverted: false },
        }
    }
}

/// Whether `value` is not zero on `edge`, if the branch there says.
pub(crate) fn said_by(func: &Function, edge: Edge, value: Value) -> Option<bool> {
    let condition = Tested::of(func, condition_of(func, edge)?);
    let asked = Tested::of(func, value);
    let is = (edge.slot == 0) ^ condition.inverted ^ asked.inverted ^ fault!(OtherEdge);
    (condition.number == asked.number).then_some(is)
}

/// Whether `value` is not zero on `edge`, if it is a constant, or a branch on the path there says.
pub(crate) fn is_true_on(func: &Function, cfg: &ControlFlowGraph, edge: Edge, value: Value) -> Option<bool> {
    let number = known(func, cfg, value).map(|number| number != 0);
    number.or_else(|| before(func, cfg, (edge, value)).find_map(|(edge, value)| said_by(func, edge, value)))
}

/// The number that `value` is on `edge`, if it is a constant, or a branch on the path there says.
pub(crate) fn number_on(func: &Function, cfg: &ControlFlowGraph, edge: Edge, value: Value) -> Option<u128> {
    let is_told = |(edge, value)| equals(func, cfg, edge, value);
    known(func, cfg, value).or_else(|| before(func, cfg, (edge, value)).find_map(is_told))
}

/// The number that `value` is on `edge`, if the branch there says.
fn equals(func: &Function, cfg: &ControlFlowGraph, edge: Edge, value: Value) -> Option<u128> {
    if is_comparison(func, value) {
        return said_by(func, edge, value).map(u128::from);
    }
    let comparison = Comparison::of(func, condition_of(func, edge)?, (edge.slot == 0) ^ fault!(OtherEdge));
    let is_equal = |side: &Comparison| side.cond == IntCC::Equal && side.left == value;
    comparison.sides().filter(is_equal).find_map(|side| match side.right {
        None => Some(0),
        Some(right) => known(func, cfg, right),
    })
}

/// `edge` and a value there, and the edges before it by which alone it is reached, with the block arguments for the value.
fn before<'a>(
    func: &'a Function,
    cfg: &'a ControlFlowGraph,
    at: (Edge, Value),
) -> impl Iterator<Item = (Edge, Value)> + use<'a> {
    let step = |&(edge, value): &(Edge, Value)| {
        let above = only_edge_into(func, cfg, edge.source(func))?;
        Some((above, above.passed_for(func, value).unwrap_or(value)))
    };
    std::iter::successors(Some(at), step).take(MAX_BRANCHES)
}

/// What the branch of `edge` tests, if it has two successors.
fn condition_of(func: &Function, edge: Edge) -> Option<Value> {
    let is_brif = func.dfg.insts[edge.branch].opcode() == Opcode::Brif;
    is_brif.then(|| func.dfg.inst_args(edge.branch)[0])
}

/// Whether `value` is 0 or 1 because it compares something.
pub(crate) fn is_comparison(func: &Function, value: Value) -> bool {
    func.dfg.value_def(value).inst().is_some_and(|inst| effects::is_comparison(func, inst))
}
