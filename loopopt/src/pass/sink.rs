//! Compute a value where it is used: after the loop, or in the rare block.
//!
//! ```text
//! header(v1):                        header(v1):
//!     v2 = imul v1, v1                   brif v3, header(v4), exit
//!     brif v3, header(v4), exit(v2)  exit:
//! exit(v5):                     ──►      v2 = imul v1, v1
//!     return v5                          return v2
//!
//! preheader:                         preheader:
//!     v6 = imul v0, v0                   jump header
//!     jump header                    header:
//! header:                                brif v3, rare, block4
//!     brif v3, rare, block4     ──►  rare cold:
//! rare cold:                             v6 = imul v0, v0
//!     call fn0(v6)                       call fn0(v6)
//! ```
//!
//! Cranelift's egraph pass places a pure value before the outermost loop in which it is invariant, whether the
//! loop uses it once in a thousand iterations or in each (wasmtime#8197); and a value that only the end of a loop needs
//! is computed in each iteration. Either takes time and a register. (The egraph pass takes itself to be outside of a
//! loop once it has been to a block after it, so what is in a block that it visits later is not hoisted.)
//!
//! # Needs
//!
//! Closed form, which shows all values that leave a loop in the arguments of its exit edges; single back edges and
//! dedicated exits. Where it does not hold, less is found. Closed form does not hold afterwards: a value that is
//! computed after a loop takes its operands from inside.
//!
//! # Legal when
//!
//! * (L1) The instruction is pure, or loads what never changes from where a load is always possible. After a loop, it may load without a trap from memory
//!   that nothing in this loop writes, if nobody else does: it has been executed on the path there, in the same iteration ([`loads`]).
//! * (L2) All its uses are arguments of edges that leave its loop, or all are in cold blocks, or belong to instructions
//!   that move to the same places. Operands dominate these places, because the value does.
//! * (L3) The parameter that it leaves the loop by is the same value on each edge into the exit block.
//!
//! # Pays when
//!
//! The new place runs more rarely than the old one: an exit block at most once for each entry of a loop that the
//! instruction is in; a cold block of a loop that is not cold itself. (P1) There are few such places: each gets a copy.
//! (P2) The operands that leave the loop, or live through it, instead of the value are few, or not more than before.
//!
//! # Changes
//!
//! Instructions and parameters; no edge. Ends closed form: what is sunk uses values of the loop outside.
//!
//! # Not done
//!
//! Values that reach an exit through a parameter of a block in the loop; instructions with several results; places below the
//! exit block that are not always reached from there; the operands of a value that has to stay.
//!
//! # References
//!
//! LLVM `LICM.cpp` (`sinkRegion`) and `LoopSink.cpp`; GCC `tree-ssa-sink.cc`; Knoop, Rüthing, Steffen: "Partial dead
//! code elimination", 1994.

mod apply;
mod engine;
mod loads;
mod places;

use crate::change::Change;
use crate::edit::materialize::neighbours::needs_neighbours;
use crate::fault::fault;
use crate::pass::{Form, Pass, PassCx};
use crate::refusal::refusals;
use apply::apply;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode};
use cranelift_codegen::{CodegenResult, Context};
use engine::{Engine, Limits};
use loads::Loads;
use places::Places;
use std::collections::BTreeMap;

use crate::analysis::inst::effects::{Effects, is_constant};

/// The name of this pass.
pub(crate) const NAME: &str = "sink";

/// The pass.
pub(crate) const PASS: Pass =
    Pass { name: NAME, run, reasons: &[Decline::REASONS], claims: &[], needs: Form::Canonical, ..Pass::OPTIONAL };

/// How often the function is gone through for values that leave several loops, one after the other. A bound on time: a
/// nest of so many loops is no program that anybody has written.
const MAX_ROUNDS: usize = 16;

/// Sinks what can be sunk.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let mut change = Change::Nothing;
    let mut uses = None;
    for find in [Places::exits, Places::cold_blocks] {
        for _ in 0..MAX_ROUNDS {
            let Some(places) = find(ctx, cx, &mut uses) else { break };
            let done = sink(ctx, cx, &places);
            if done == Change::Nothing {
                break;
            }
            change = done;
            uses = None;
        }
    }
    if change != Change::Nothing {
        cx.keep_form(Form::Any);
    }
    Ok(change)
}

/// Sinks to these places.
fn sink(ctx: &mut Context, cx: &mut PassCx<'_>, places: &Places) -> Change {
    let forest = cx.forest(ctx);
    let limits = Limits::of(cx.options);
    let loads = Loads::new(&ctx.func, &forest, (places.kind, cx.options));
    let mut engine = Engine::new(&ctx.func, &forest, places, (limits, &loads));
    let moves = engine.run(&mut || cx.fuel.take());
    let mut fired = BTreeMap::<Block, usize>::new();
    for step in &moves {
        *fired.entry(step.header).or_default() += 1;
    }
    for (header, why) in engine.declined() {
        cx.declined(&ctx.func, NAME, header, &why);
    }
    for (header, count) in fired {
        let values = if count == 1 { "value is" } else { "values are" };
        cx.fired(&ctx.func, &PASS, header, format!("{count} {values} computed {} instead", places.kind.words()));
    }
    let change = if moves.is_empty() { Change::Nothing } else { Change::Insts };
    if change != Change::Nothing {
        apply(ctx, places, &moves);
    }
    change
}

/// Whether nobody can tell when `inst` runs, and it is worth moving.
fn is_movable(func: &Function, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let effects = Effects::of(func, inst);
    let is_lasting = || {
        let flags = data.memflags().map(|flags| func.dfg.mem_flags[flags]);
        data.opcode() == Opcode::Load
            && flags.is_some_and(|flags| flags.readonly() && flags.notrap() && flags.can_move())
    };
    let is_pure = effects.is_pure()
        || is_lasting()
        || (fault!(SunkLoad) && data.opcode() == Opcode::Load && !effects.traps)
        || (fault!(SunkTrap) && data.opcode().can_trap());
    is_pure && func.dfg.inst_results(inst).len() == 1 && !is_constant(func, inst) && !needs_neighbours(func, inst)
}

refusals! {
    /// Why a value is not sunk.
    enum Decline {
        /// (L1) The instruction does more than compute it.
        HasEffects(opcode: Opcode)
            => "has-effects", "only the exits use the result of {opcode}, but it does more than compute";
        /// (L3) An exit block gets it on some edges only.
        SeveralValues => "several-values", "a value that only exits use shares an exit with another value";
        /// (P1) It would be computed in too many places.
        TooManyPlaces { places: usize, max: usize }
            => "too-many-places", "a value would have to be computed in {places} places, more than {max}",
            help "raise Options::sink_max_places if the loop is hot";
        /// (P2) Its operands would take more registers than it does.
        TooManyValues { values: usize, max: usize }
            => "too-many-values", "the operands of what could move are {values} values, more than {max}",
            help "raise Options::sink_max_values if registers are free";
    }
    shared { Withheld }
}
