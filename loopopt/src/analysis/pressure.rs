//! How many registers a loop needs for what lives through it: an estimate.
//!
//! # Model
//!
//! Each value that comes from outside and is used inside, and each parameter of the header, takes a register of its class for
//! the whole loop. Constants take none: Cranelift rematerializes them where they are used. Available is what the register
//! allocator has, less three for values that live and die inside; in a loop with a call that is not cold, only what
//! calls preserve. Vectors and floats are of one class.
//!
//! A call that is cold, such as that of a poll, takes no registers of this model. But Cranelift's allocator counts it as any other: what lives
//! across it and gets no preserved register is split there, and then often loaded and stored again in each iteration, though it is
//! loop-invariant. [`Pressure::across_calls`] is for those who have little to gain.
//!
//! What does not fit is spilled, and Cranelift's allocator reloads it in the loop.

use crate::analysis::cfg::edges::each_use;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::is_constant_value;
use crate::refusal::Shown;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Inst, Type, Value, ValueDef};
use cranelift_codegen::isa::TargetIsa;
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use target_lexicon::Architecture;

/// Registers left for values that live and die in one iteration: two operands and a result.
const SPARE: usize = 3;

/// Registers by class: integers, then floats and vectors.
pub type ByClass = [usize; 2];

impl Shown for ByClass {
    fn shown<'a>(&'a self, _: &'a Function) -> impl fmt::Display + 'a {
        fmt::from_fn(|f| write!(f, "{} for integers and {} for floats", self[0], self[1]))
    }
}

/// How often values are used in a loop: a table that one loop leaves to the next.
#[derive(Debug, Default)]
pub struct UseCounts {
    counts: SecondaryMap<Value, usize>,
    /// The values that were counted, each once.
    values: Vec<Value>,
}

impl UseCounts {
    fn add(&mut self, value: Value) {
        let count = &mut self.counts[value];
        if *count == 0 {
            self.values.push(value);
        }
        *count += 1;
    }

    fn clear(&mut self) {
        for value in self.values.drain(..) {
            self.counts[value] = 0;
        }
    }
}

/// What lives through one loop.
pub struct Pressure {
    /// How often each value is used in the loop.
    uses: UseCounts,
    /// Where these come from and go back to.
    table: Rc<Cell<UseCounts>>,
    live: ByClass,
    available: ByClass,
    /// What there is if cold calls count as well.
    available_across_calls: ByClass,
}

impl Pressure {
    /// Counts what lives through `lp`. Linear in the size of the loop.
    pub fn of(
        func: &Function,
        forest: &LoopForest,
        lp: Loop,
        isa: &dyn TargetIsa,
        table: &Rc<Cell<UseCounts>>,
    ) -> Self {
        let mut uses = table.take();
        let (mut calls, mut cold_calls) = (false, false);
        for &block in forest.blocks(lp) {
            for inst in func.layout.block_insts(block) {
                each_use(func, inst, |value| uses.add(value));
                let is_call = func.dfg.insts[inst].opcode().is_call();
                calls |= is_call && !func.layout.is_cold(block);
                cold_calls |= is_call;
            }
        }
        let mut live = [0; 2];
        for &value in uses.values.iter().filter(|&&value| !is_constant_value(func, value)) {
            let lives_through = match func.dfg.value_def(value) {
                ValueDef::Param(block, _) => block == forest.data(lp).header || !forest.contains(lp, block),
                ValueDef::Result(inst, _) => {
                    func.layout.inst_block(inst).is_none_or(|block| !forest.contains(lp, block))
                }
                ValueDef::Union(..) => true,
            };
            live[class(func, value)] += usize::from(lives_through);
        }
        let (available, available_across_calls) = (available(isa, calls), available(isa, cold_calls));
        Self { uses, table: table.clone(), live, available, available_across_calls }
    }

    /// Whether there are registers enough once `insts` are before the loop, but for so many values that are spilled, or no more are needed than now.
    pub fn allows(&self, func: &Function, insts: &[Inst], spilled: usize) -> bool {
        let after = self.after(func, insts);
        (0..2).all(|class| after[class] <= self.available[class].max(self.live[class]) + spilled)
    }

    /// Counts `insts` as before the loop.
    pub fn hoist(&mut self, func: &Function, insts: &[Inst]) {
        self.live = self.after(func, insts);
        for value in insts.iter().flat_map(|&inst| func.dfg.inst_values(inst)) {
            // A value that stands for others has more uses than were counted.
            if self.uses.counts[value] > 0 {
                self.uses.counts[value] -= 1;
            }
        }
    }

    /// Whether there is a register for one more value of type `ty`.
    pub fn has_room(&self, ty: Type) -> bool {
        let class = class_of(ty);
        self.live[class] < self.available[class]
    }

    /// Takes that register, if there is one.
    pub fn take(&mut self, ty: Type) -> bool {
        let has_room = self.has_room(ty);
        self.live[class_of(ty)] += usize::from(has_room);
        has_room
    }

    /// What lives through the loop once `insts` are before it.
    fn after(&self, func: &Function, insts: &[Inst]) -> ByClass {
        let mut gone = FxHashMap::<Value, usize>::default();
        for value in insts.iter().flat_map(|&inst| func.dfg.inst_values(inst)) {
            *gone.entry(value).or_default() += 1;
        }
        let results: Vec<_> = insts.iter().flat_map(|&inst| func.dfg.inst_results(inst)).copied().collect();
        let mut live = self.live;
        for (&value, &count) in gone.iter().filter(|(value, _)| !results.contains(value)) {
            if self.uses.counts[value] == count && !is_constant_value(func, value) {
                let live = &mut live[class(func, value)];
                *live = live.saturating_sub(1);
            }
        }
        for &result in results.iter().filter(|&&result| !is_constant_value(func, result)) {
            if self.uses.counts[result] > gone.get(&result).copied().unwrap_or(0) {
                live[class(func, result)] += 1;
            }
        }
        live
    }

    /// Registers needed for what lives through the loop, and those that there are for it.
    pub fn needed(&self) -> (ByClass, ByClass) {
        (self.live, self.available)
    }

    /// Registers for what lives through the loop, if a cold call takes as many as one that is not.
    pub fn across_calls(&self) -> ByClass {
        self.available_across_calls
    }
}

impl Drop for Pressure {
    fn drop(&mut self) {
        self.uses.clear();
        self.table.set(std::mem::take(&mut self.uses));
    }
}

/// What `lp` uses of what is defined outside of `around`, itself or an enclosing loop, in order. Constants are not among it: they are rematerialized
/// where they are used.
pub fn used_from_outside(func: &Function, forest: &LoopForest, (lp, around): (Loop, Loop)) -> Vec<Value> {
    let mut values = Vec::new();
    for inst in forest.blocks(lp).iter().flat_map(|&block| func.layout.block_insts(block)) {
        each_use(func, inst, |value| values.push(value));
    }
    values.sort_unstable();
    values.dedup();
    values.retain(|&value| forest.is_from_outside(func, around, value) && !is_constant_value(func, value));
    values
}

fn class(func: &Function, value: Value) -> usize {
    class_of(func.dfg.value_type(value))
}

fn class_of(ty: Type) -> usize {
    usize::from(!ty.is_int())
}

/// The registers for what lives through a loop, by what Cranelift 0.135 gives its allocator: all but the stack and frame
/// pointers and what the ABI or the back end keeps for itself. Preserved over calls are those of the System V ABIs.
fn available(isa: &dyn TargetIsa, calls: bool) -> ByClass {
    let [all, preserved]: [ByClass; 2] = match isa.triple().architecture {
        Architecture::X86_64 => [[14, 16], [5, 0]],
        Architecture::Aarch64(_) => [[27, 32], [10, 8]],
        Architecture::Riscv64(_) => [[26, 32], [11, 12]],
        Architecture::S390x => [[13, 16], [8, 8]],
        _ => [[12, 16], [4, 0]],
    };
    let pinned = usize::from(isa.flags().enable_pinned_reg());
    let [ints, floats] = if calls { preserved } else { all };
    [ints.saturating_sub(pinned), floats].map(|registers| if calls { registers } else { registers - SPARE })
}
