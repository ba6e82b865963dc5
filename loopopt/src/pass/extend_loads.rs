//! A load and the extension of its value become one extending load.
//!
//! ```text
//!     v1 = load.i8 v0                        v4 = uload8.i64 v0
//!                                            v1 = ireduce.i8 v4
//!     v2 = uextend.i64 v1            ──►
//!     v3 = icmp ult v2, v5                   v3 = icmp ult v4, v5
//! ```
//!
//! A load that extends is the same instruction as one that does not, and what it gave is the low part, which costs nothing. Lowering puts the two together itself
//! only if the load has one use, nothing that is computed from it has several, and no other load or store is in between: not if a check asks for the number as well, or if
//! it was extended from 8 to 32 bits, and then from 32 to 64 to be an index.
//!
//! # Needs
//!
//! Nothing.
//!
//! # Legal when
//!
//! Always: the same bytes are loaded by the same flags, in the same place.
//!
//! # Pays when
//!
//! (P1) An extension is removed. Where lowering would have put the two together, it is the same instruction.
//!
//! In a histogram of bytes with a check (the sample `histogram`), a byte takes four instructions, and six without it.
//!
//! # Changes
//!
//! Instructions. No block and no edge. The low part of what is loaded may be unused; lowering leaves it out.
//!
//! # Not done
//!
//! Extensions of a load extended both with a sign and without: those of one kind stay. Extensions to 128 bits, which are two registers. What is in no loop.

use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::change::Change;
use crate::edit::inst::extending_load::{extend_load, extended_by, extending};
use crate::edit::inst::stand_for::stand_for;
use crate::pass::{Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, Opcode, Value};
use cranelift_codegen::{CodegenResult, Context, FxHashMap};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The name of this pass.
pub(crate) const NAME: &str = "extend_loads";

/// The pass.
pub(crate) const PASS: Pass = Pass { name: NAME, run, reasons: &[Decline::REASONS], ..Pass::OPTIONAL };

/// Extends what is loaded in loops. Linear in the size of the function.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let forest = cx.forest(ctx);
    let extensions = extensions(&ctx.func, &forest);
    let found = loads(&ctx.func, &forest, &extensions);
    let (mut change, mut aliases) = (Change::Nothing, false);
    for lp in forest.loops() {
        let header = forest.data(lp).header;
        match found.get(&lp) {
            None => cx.declined(&ctx.func, NAME, header, &Decline::NothingExtended),
            Some(_) if !cx.fuel.take() => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
            Some(loads) => {
                let gone: usize = loads.iter().map(|load| load.extensions.len()).sum();
                cx.fired(
                    &ctx.func,
                    &PASS,
                    header,
                    format!("loads that extend: {}; extensions removed: {gone}", loads.len()),
                );
                loads.iter().for_each(|load| aliases |= load.apply(&mut ctx.func));
                change = Change::Insts;
            }
        }
    }
    if aliases {
        ctx.func.dfg.resolve_all_aliases();
    }
    Ok(change)
}

/// A value is seldom extended more than twice.
type Insts = SmallVec<[Inst; 2]>;

/// What is loaded and is extended in loops, and by what, without a sign and with one.
type Extensions = FxHashMap<Value, [Insts; 2]>;

fn extensions(func: &Function, forest: &LoopForest) -> Extensions {
    let mut found = Extensions::default();
    for block in func.layout.blocks().filter(|&block| forest.innermost(block).is_some()) {
        for inst in func.layout.block_insts(block) {
            let is_loaded = |(value, _): &(Value, bool)| {
                func.dfg.value_def(*value).inst().is_some_and(|inst| func.dfg.insts[inst].opcode().can_load())
            };
            if let Some((value, signed)) = extended_by(func, inst).filter(is_loaded) {
                found.entry(value).or_default()[usize::from(signed)].push(inst);
            }
        }
    }
    found
}

/// A load, and what extends it.
struct Extended {
    load: Inst,
    /// That of a load that extends.
    opcode: Opcode,
    extensions: Insts,
}

/// (P1) The loads that are to extend, by their innermost loops.
fn loads(func: &Function, forest: &LoopForest, extensions: &Extensions) -> BTreeMap<Loop, Vec<Extended>> {
    let mut found = BTreeMap::<Loop, Vec<Extended>>::new();
    let load = |(&value, by): (&Value, &[Insts; 2])| {
        let load = func.dfg.value_def(value).inst()?;
        let lp = forest.innermost(func.layout.inst_block(load)?)?;
        let signed = by[1].len() > by[0].len();
        let opcode = extending(func, load, signed)?;
        Some((lp, Extended { load, opcode, extensions: by[usize::from(signed)].clone() }))
    };
    let mut loads: Vec<_> = extensions.iter().filter_map(load).collect();
    loads.sort_unstable_by_key(|(_, extended)| extended.load);
    for (lp, extended) in loads {
        found.entry(lp).or_default().push(extended);
    }
    found
}

impl Extended {
    /// Returns whether a value became an alias.
    fn apply(&self, func: &mut Function) -> bool {
        let result = |func: &Function, inst: Inst| func.dfg.first_result(inst);
        let size = |&inst: &Inst| func.dfg.value_type(result(func, inst)).bits();
        let widest = *self.extensions.iter().max_by_key(|inst| size(inst)).expect("something extends it");
        let all = result(func, widest);
        let ty = func.dfg.value_type(all);
        func.dfg.detach_inst_results(widest);
        func.layout.remove_inst(widest);
        extend_load(func, self.load, (self.opcode, ty), Some(all));
        let mut aliases = false;
        for &inst in self.extensions.iter().filter(|&&inst| inst != widest) {
            let value_ty = func.dfg.value_type(result(func, inst));
            if value_ty == ty {
                aliases = true;
                stand_for(func, inst, all);
            } else {
                func.replace(inst).ireduce(value_ty, all);
            }
        }
        aliases
    }
}

refusals! {
    /// Why no load of a loop extends.
    enum Decline {
        /// (P1) No load is extended.
        NothingExtended => "nothing-extended", "no loaded value is extended";
    }
    shared { Withheld }
}
