//! Equality propagation: a condition that a branch has decided is a constant where that is known.
//!
//! ```text
//!     v2 = icmp eq v1, 0                        v2 = icmp eq v1, 0
//!     brif v2, block2(v2), block1(v2)   ──►     brif v2, block2(1), block1(0)
//! block1(v3: i8):                           block1(v3: i8):
//!     v4 = uextend.i32 v2                       v4 = 0
//! ```
//!
//! A number that a branch has found equal to a constant is that constant in the loops that the edge dominates: a division by it becomes a shift, and a loop
//! that runs so often can be unrolled.
//!
//! ```text
//!     v2 = icmp eq v1, 8                        v2 = icmp eq v1, 8
//!     brif v2, block1, block9                   brif v2, block1, block9
//! block1:                           ──►     block1:
//!     …                                         …
//!     v7 = udiv v6, v1                          v7 = udiv v6, 8
//! ```
//!
//! # Needs
//!
//! Nothing. It runs after `canon`: in closed form, what leaves a loop is an argument of the edge that decides it. What is outside of loops is not
//! looked at.
//!
//! # Legal when
//!
//! A comparison that a branch tests is 1 on the one edge, and 0 on the other. If a branch tests a number, the same holds of a comparison
//! of that number with zero. It holds for what the edge passes, and for all that the edge dominates. (L1) Conditions of other branches,
//! traps and guards stay: those are for the passes that say what they do with them. So does what the condition of a guard is computed from
//! ([`asked_by_guards`]), unless guards may be dropped.
//!
//! A number is the constant where it was found equal to it, and in all that the edge dominates: a definition that runs again is followed by the
//! test again before that place is reached. (L2) Not in a function with Spectre guards, unless these may be dropped: where the processor has
//! mispredicted the test, a guard has to see the number.
//!
//! (L3) An access at an address that is computed from such a constant stays where it is ([`pin_accesses_at`]), whatever its flags say: elsewhere that is
//! another address.
//!
//! # Pays when
//!
//! If another pass changes the function too: for its own sake it is not worth the edges that canonical form splits. The code of `esbuild` in
//! Wasmtime, which has functions of 100,000 instructions in which nothing else fires, would be 4 % larger, and take 8 % more time to be
//! lowered. A front end that returns a flag from the middle of a loop keeps the comparison as a value, beside the flags of the processor
//! that the branch reads. On x86-64 that takes a `setcc` in each iteration, which writes a part of its register: an iteration then waits for whatever was in the rest of it. On
//! `red-black-tree-o1` in Wasmtime, whose lookups otherwise overlap, the whole program took 1.13 of the time with the value carried
//! through its loop.
//!
//! A number pays for its own sake, if it is invariant in a loop that uses it.
//!
//! # Changes
//!
//! Operands, and arguments of edges. No block and no edge.
//!
//! # References
//!
//! `propagateEquality` of LLVM's GVN.

mod numbers;

use crate::analysis::cfg::edges::{Edge, destinations, each_use, edge_dominates, edges_of};
use crate::analysis::facts::tested::{Tested, is_comparison, said_by};
use crate::analysis::memory::alias::address_operand;
use crate::analysis::memory::spectre_guard::asked_by_guards;
use crate::change::Change;
use crate::claim::Claim;
use crate::edit::inst::rename::{rename_args, rename_uses};
use crate::edit::materialize::assertion::{assert_equal, assert_truth};
use crate::edit::materialize::pin::{pin_accesses_at, pin_all};
use crate::options::Options;
use crate::pass::{Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, Opcode, Type, Value, types};
use cranelift_codegen::{CodegenResult, Context, FxHashMap};
use smallvec::SmallVec;
use std::cell::OnceCell;

/// The name of this pass.
pub(crate) const NAME: &str = "propagate_equality";

/// The pass.
pub(crate) const PASS: Pass = Pass {
    name: NAME,
    run,
    reasons: &[Decline::REASONS],
    claims: &[Claim::ConditionKnown],
    pays_alone: false,
    ..Pass::OPTIONAL
};

/// The same, if a number is a constant in a loop.
const PASS_FOR_NUMBERS: Pass = Pass { pays_alone: true, ..PASS };

/// Does it in all loops. Linear in the size of the function.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let forest = cx.forest(ctx);
    let mut numbers = numbers::known(ctx, cx, &forest);
    let conditions = Conditions::new(ctx, cx.options);
    let mut granted = Vec::new();
    for lp in forest.loops() {
        let header = forest.data(lp).header;
        let mut known = Vec::new();
        for block in forest.own_blocks(lp) {
            for inst in ctx.func.layout.block_insts(block).filter(|&inst| conditions.are_used_by(inst)) {
                conditions.each_known((block, inst), |found| known.push(found));
            }
        }
        let numbers = numbers.remove(&lp).unwrap_or_default();
        let has_numbers = !numbers.is_empty();
        known.extend(numbers);
        if known.is_empty() {
            if !cx.has_fired(NAME, header) {
                cx.declined(&ctx.func, NAME, header, &Decline::NothingKnown);
            }
        } else if !cx.fuel.take() {
            cx.declined(&ctx.func, NAME, header, &Decline::Withheld);
        } else {
            cx.retract(NAME, header);
            let message = format!("uses of what branches have decided: {}", known.len());
            cx.fired(&ctx.func, if has_numbers { &PASS_FOR_NUMBERS } else { &PASS }, header, message);
            cx.wants_cleanup |= has_numbers;
            granted.extend(known);
        }
    }
    if granted.is_empty() {
        return Ok(Change::Nothing);
    }
    let changed: Vec<_> = granted.iter().flat_map(|known| known.changes(&ctx.func)).collect();
    pin_accesses_at(&mut ctx.func, changed);
    let mut constants = Constants::default();
    granted.iter().for_each(|known| known.apply(&mut ctx.func, &mut constants));
    Ok(Change::Insts)
}

/// Whether the result of `inst` could be a constant that is one instruction.
fn is_one_constant(func: &Function, inst: Inst) -> bool {
    func.dfg.value_type(func.dfg.first_result(inst)).bits() <= 64
}

/// What a value is known to be.
#[derive(Clone, Copy)]
enum Is {
    /// A condition holds or not.
    Condition(bool),
    /// A number is this one.
    Number(u64),
}

/// Calls `visit` with each operand of `inst` that `is_asked` names, and with each such argument of its edges, of which `is_known` knows something:
/// there, or on that edge.
fn each_known_use<T>(
    func: &Function,
    inst: Inst,
    is_asked: impl Fn(Value) -> bool,
    is_known: impl Fn(Value, Option<Edge>) -> Option<T>,
    mut visit: impl FnMut(Option<usize>, Value, T),
) {
    let mut used = SmallVec::<[Value; 4]>::new();
    each_use(func, inst, |value| {
        if is_asked(value) && !used.contains(&value) {
            used.push(value);
        }
    });
    for value in used {
        if !func.dfg.insts[inst].opcode().is_branch() {
            if let Some(known) = is_known(value, None) {
                visit(None, value, known);
            }
            continue;
        }
        for edge in edges_of(func, inst) {
            if edge.args(func).any(|arg| arg == BlockArg::Value(value))
                && let Some(known) = is_known(value, Some(edge))
            {
                visit(Some(edge.slot), value, known);
            }
        }
    }
}

/// A use of a value where it is known: an operand of an instruction, or an argument of an edge.
struct Known {
    inst: Inst,
    slot: Option<usize>,
    value: Value,
    is: Is,
}

impl Known {
    /// What is computed from it directly.
    fn changes(&self, func: &Function) -> Vec<Value> {
        let Some(slot) = self.slot else { return func.dfg.inst_results(self.inst).to_vec() };
        let edge = Edge { branch: self.inst, slot };
        let params = func.dfg.block_params(edge.target(func)).iter().copied().zip(edge.args(func));
        params.filter(|(_, arg)| *arg == BlockArg::Value(self.value)).map(|(param, _)| param).collect()
    }

    fn apply(&self, func: &mut Function, constants: &mut Constants) {
        let Self { inst, slot, value, is } = *self;
        let number = match is {
            Is::Condition(holds) => u64::from(holds),
            Is::Number(number) => number,
        };
        let constant = constants.get(func, (func.dfg.value_type(value), number));
        let rename = |used| if used == value { constant } else { used };
        let Some(slot) = slot else {
            match is {
                Is::Condition(holds) => assert_truth(func, inst, Claim::ConditionKnown, (value, holds)),
                Is::Number(_) => assert_equal(func, inst, Claim::ConditionKnown, [value, constant]),
            }
            if func.dfg.insts[inst].opcode() == Opcode::Uextend && is_one_constant(func, inst) {
                let ty = func.dfg.value_type(func.dfg.first_result(inst));
                func.replace(inst).iconst(ty, number.cast_signed());
            } else {
                if address_operand(func, inst) == Some(value) {
                    pin_all(func, [inst]);
                }
                rename_uses(func, inst, rename);
            }
            return;
        };
        rename_args(func, Edge { branch: inst, slot }, rename);
    }
}

/// The conditions of branches: where which number is tested.
struct Conditions<'a> {
    ctx: &'a Context,
    options: &'a Options,
    /// Found when the first comparison is used by something else than a branch: most are not.
    branches: OnceCell<FxHashMap<Value, SmallVec<[Inst; 2]>>>,
    /// What guards ask, once it matters.
    asked: OnceCell<EntitySet<Value>>,
}

impl<'a> Conditions<'a> {
    fn new(ctx: &'a Context, options: &'a Options) -> Self {
        Self { ctx, options, branches: OnceCell::new(), asked: OnceCell::new() }
    }

    /// The branches that test each number.
    fn branches(&self) -> &FxHashMap<Value, SmallVec<[Inst; 2]>> {
        /// Branches on one number that are looked at for each use, so that time is linear.
        const MAX_BRANCHES: usize = 8;
        let func = &self.ctx.func;
        self.branches.get_or_init(|| {
            let mut branches = FxHashMap::<_, SmallVec<[Inst; 2]>>::default();
            for branch in func.layout.blocks().filter_map(|block| func.layout.last_inst(block)) {
                if func.dfg.insts[branch].opcode() == Opcode::Brif {
                    let Tested { number, .. } = Tested::of(func, func.dfg.inst_args(branch)[0]);
                    let known = branches.entry(number).or_default();
                    if known.len() < MAX_BRANCHES {
                        known.push(branch);
                    }
                }
            }
            branches
        })
    }

    /// Whether the condition of a guard is computed from `value`.
    fn is_asked(&self, value: Value) -> bool {
        self.asked.get_or_init(|| asked_by_guards(self.ctx, self.options)).contains(value)
    }

    /// Whether `value` is the condition of a branch and a comparison, or compares the number that a branch tests with zero.
    fn has(&self, func: &Function, value: Value) -> bool {
        func.dfg.value_type(value) == types::I8
            && is_comparison(func, value)
            && self.branches().contains_key(&Tested::of(func, value).number)
    }

    /// Whether such a value is used by `inst`, or is passed by it if it is a branch.
    fn are_used_by(&self, inst: Inst) -> bool {
        let func = &self.ctx.func;
        let is_one = |value: Value| self.has(func, value);
        match func.dfg.insts[inst].opcode().is_branch() {
            true => destinations(func, inst).iter().any(|call| {
                let mut args = call.args(&func.dfg.value_lists);
                args.any(|arg| arg.as_value().is_some_and(is_one))
            }),
            false => func.dfg.inst_args(inst).iter().copied().any(is_one),
        }
    }

    /// Calls `visit` with each use of a condition in `inst` that is known there.
    fn each_known(&self, (block, inst): (Block, Inst), mut visit: impl FnMut(Known)) {
        let (ctx, func) = (self.ctx, &self.ctx.func);
        let opcode = func.dfg.insts[inst].opcode();
        let is_asked = |&value: &Value| self.is_asked(value);
        let is_check = opcode.can_trap()
            || opcode == Opcode::SelectSpectreGuard
            || func.dfg.inst_results(inst).iter().any(is_asked);
        let is_known = |value, edge: Option<Edge>| match edge {
            Some(edge) if func.dfg.block_params(edge.target(func)).iter().any(is_asked) => None,
            Some(edge) => said_by(func, edge, value).or_else(|| self.known_in(ctx, block, value)),
            None => self.known_in(ctx, block, value).filter(|_| !is_check),
        };
        each_known_use(
            func,
            inst,
            |value| self.has(func, value),
            is_known,
            |slot, value, is| {
                visit(Known { inst, slot, value, is: Is::Condition(is) });
            },
        );
    }

    /// What `value` is in `block`.
    fn known_in(&self, ctx: &Context, block: Block, value: Value) -> Option<bool> {
        let Tested { number, .. } = Tested::of(&ctx.func, value);
        let branches = self.branches().get(&number)?;
        branches.iter().flat_map(|&branch| edges_of(&ctx.func, branch)).find_map(|edge| {
            let is = said_by(&ctx.func, edge, value)?;
            edge_dominates(ctx, edge, block).then_some(is)
        })
    }
}

/// The constants that were made, at the top of the function.
#[derive(Default)]
struct Constants(FxHashMap<(Type, u64), Value>);

impl Constants {
    fn get(&mut self, func: &mut Function, (ty, number): (Type, u64)) -> Value {
        *self.0.entry((ty, number)).or_insert_with(|| {
            let entry = func.layout.entry_block().expect("a function with a branch");
            FuncCursor::new(func).at_first_insertion_point(entry).ins().iconst(ty, number.cast_signed())
        })
    }
}

refusals! {
    /// Why the conditions and numbers of a loop stay.
    enum Decline {
        /// No branch has decided a condition or a number that is used.
        NothingKnown => "nothing-known", "no condition or number is used where a branch has decided it";
    }
    shared { Withheld }
}
