//! Holds the engines to runs of loops.

use super::Tally;
use super::answers::{Memory, answers};
use super::dice::Dice;
use super::machine::Machine;
use super::meaning::holds;
use super::shapes::{Shape, Widths};
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::scev::exit_count::{TripCount, bound, trip_count};
use crate::analysis::scev::predication::Predication;
use crate::analysis::scev::requirement::{Requirement, simplified};
use crate::analysis::scev::view::View;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Block, Inst, InstructionData, Opcode};
use std::time::Instant;

/// Instructions that a run takes at most. Enough for three turns around the circle of a narrow counter.
const MAX_RUN: usize = 8_000;

/// Numbers for the parameters: `count` of them, those at the edges first.
pub(super) fn inputs(bits: u32, narrow: u32, count: usize) -> Vec<u64> {
    let (half, all) = (1_u64 << (narrow - 1), 1_u64 << narrow);
    let ones = u64::MAX >> (64 - bits);
    let mut numbers = vec![0, 1, 5, 10, half, all - 1, 100, half - 1, all - 4, 3, half + 50, 2, half + 1, all - 2, 7];
    if bits > narrow {
        let wide = [all, ones, all + half, ones / 2 + 1, 3 * all - 1, ones - 5, all + 1, ones / 2];
        numbers = numbers.chunks(2).zip(wide).flat_map(|(narrow, wide)| narrow.iter().copied().chain([wide])).collect();
    }
    numbers.extend((0..all).map(|number| (number * 37 + 11) % all));
    let mut distinct = Vec::new();
    for number in numbers.into_iter().map(|number| number & ones) {
        if !distinct.contains(&number) && distinct.len() < count {
            distinct.push(number);
        }
    }
    distinct
}

/// A shape, ready to be asked about.
struct Subject {
    ctx: Context,
    forest: LoopForest,
    lp: Loop,
    entry: Inst,
    shape: Shape,
}

impl Subject {
    fn new(shape: Shape) -> Self {
        let mut functions = cranelift_reader::parse_functions(&shape.text).expect("shapes are CLIF");
        let mut ctx = Context::for_function(functions.remove(0));
        ctx.flowgraph();
        let forest = LoopForest::new(&ctx.func, &ctx.cfg, &ctx.domtree);
        let lp = forest.loop_of_header(Block::from_u32(1)).expect("a loop of block1");
        let entry = forest.data(lp).entries[0].branch;
        Self { ctx, forest, lp, entry, shape }
    }

    fn view(&self) -> View<'_> {
        View { ctx: &self.ctx, forest: &self.forest }
    }

    /// The check of the loop, the block that it is in, and what it requires.
    fn check(&self) -> Option<(Inst, Block, Requirement)> {
        let func = &self.ctx.func;
        let insts = |block| func.layout.block_insts(block).map(move |inst| (inst, block));
        let mut all = func.layout.blocks().flat_map(insts);
        let (check, block) = all.find(|(inst, _)| func.dfg.insts[*inst].opcode() == Opcode::Trapz)?;
        let test = func.dfg.value_def(func.dfg.inst_args(check)[0]).inst()?;
        let InstructionData::IntCompare { args: [left, right], cond, .. } = func.dfg.insts[test] else { return None };
        let [left, right] = [left, right].map(|value| self.view().sum(value));
        Some((check, block, Requirement::new(cond, left?, right?)))
    }

    /// Calls back for each combination of so many numbers for each parameter.
    fn each_input(&self, widths: Widths, counts: [usize; 3], mut visit: impl FnMut([u64; 3])) {
        let [first, second, third] =
            [0, 1, 2].map(|index| inputs(self.shape.params[index], widths.narrow, counts[index]));
        for &a in &first {
            for &b in &second {
                third.iter().for_each(|&c| visit([a, b, c]));
            }
        }
    }
}

/// What [`Predication`] asks for before a loop is enough for the check, in each iteration.
pub(super) fn enough_is_enough(number: u64, widths: Widths, counts: [usize; 3], tally: &mut Tally) {
    let subject = Subject::new(Shape::new(number, widths, true));
    let start = Instant::now();
    tally.asked += 1;
    let Some((check, block, required)) = subject.check() else { return };
    let Ok(enough) = Predication::new(subject.view()).before(&required, subject.lp, (check, block)) else { return };
    let fewer = simplified(enough.clone());
    tally.answered += 1;
    let header = subject.ctx.func.layout.first_inst(Block::from_u32(1));
    let mut machine =
        Machine::new(&subject.ctx.func, |inst| inst == check || inst == subject.entry || Some(inst) == header);
    let mut failure = None;
    let mut held = 0;
    subject.each_input(widths, counts, |params| {
        if failure.is_some() {
            return;
        }
        machine.run(&params, MAX_RUN, |now| {
            if now.inst == subject.entry {
                let all_hold = |required: &[Requirement]| required.iter().all(|one| holds(one, now.values));
                for one in &enough {
                    let is = holds(one, now.values);
                    if one.known().is_some_and(|known| known != is) {
                        failure = Some((params, format!("{one} is not always {}", !is)));
                    }
                }
                return all_hold(&enough) || all_hold(&fewer);
            }
            if now.inst == check {
                held += 1;
                if !holds(&required, now.values) {
                    failure = Some((params, format!("{required} does not hold")));
                }
            }
            failure.is_none()
        });
        tally.cases += 1;
    });
    tally.held += held;
    tally.time += start.elapsed();
    if let Some((params, what)) = failure {
        let list = |required: &[Requirement]| required.iter().map(ToString::to_string).collect::<Vec<_>>().join(";  ");
        let why = format!("{what} with {params:?}, though: {}\n; or: {}", list(&enough), list(&fewer));
        tally.fails(number, &why, &subject.shape.text);
    }
}

/// A back edge is taken as often as is said of it.
pub(super) fn counts_are_right(number: u64, widths: Widths, counts: [usize; 3], tally: &mut Tally) {
    let subject = Subject::new(Shape::new(number, widths, false));
    let start = Instant::now();
    tally.asked += 1;
    let by_formula = bound(&subject.ctx, &subject.forest, subject.lp);
    let tried_out = trip_count(&subject.ctx, &subject.forest, subject.lp, 16);
    if tried_out == TripCount::Unknown && by_formula == TripCount::Unknown {
        return;
    }
    tally.answered += 1;
    let header = subject.ctx.func.layout.first_inst(Block::from_u32(1)).expect("an instruction");
    let back = subject.forest.data(subject.lp).back_edges[0];
    let mut machine = Machine::new(&subject.ctx.func, |inst| inst == header || inst == back.branch);
    let mut failure = None;
    subject.each_input(widths, counts, |params| {
        let (mut entered, mut around, mut ended) = (false, 0_u128, true);
        machine.run(&params, MAX_RUN, |now| {
            entered |= now.inst == header;
            around += u128::from(now.inst == back.branch && now.slot == Some(back.slot));
            ended = around < (MAX_RUN / 16) as u128;
            ended
        });
        if !entered {
            return;
        }
        tally.cases += 1;
        let is_right = |count| match count {
            TripCount::Exactly(count) => count == around || (!ended && count >= around),
            TripCount::AtMost(count) => around <= count,
            TripCount::Unknown => true,
        };
        if !is_right(by_formula) || !is_right(tried_out) {
            failure =
                Some(format!("{by_formula:?}, {tried_out:?}: its back edge is taken {around} times with {params:?}"));
        } else {
            tally.held += 1;
        }
    });
    tally.time += start.elapsed();
    if let Some(why) = failure {
        tally.fails(number, &why, &subject.shape.text);
    }
}

/// What is said of values and comparisons in a loop is so, each time. One tally for each kind of answer.
pub(super) fn answers_hold(number: u64, widths: Widths, counts: [usize; 3], tallies: &mut Vec<Tally>) {
    let subject = Subject::new(Shape::new(number, widths, true));
    let start = Instant::now();
    let all = answers(subject.view(), subject.lp, &mut Dice::new(number));
    let latch = subject.forest.data(subject.lp).back_edges[0];
    let mut machine = Machine::new(&subject.ctx.func, |inst| {
        inst == subject.entry || inst == latch.branch || all.iter().any(|placed| placed.inst == inst)
    });
    let mut memory = Memory::default();
    let mut held = vec![0; all.len()];
    let mut failures: Vec<Option<[u64; 3]>> = vec![None; all.len()];
    subject.each_input(widths, counts, |params| {
        machine.run(&params, MAX_RUN, |now| {
            if now.inst == subject.entry {
                memory.start(all.len(), now.values);
            }
            for (index, placed) in all.iter().enumerate() {
                if placed.inst == now.inst && placed.slot.is_none_or(|slot| now.slot == Some(slot)) {
                    held[index] += 1;
                    if !placed.is_true(index, now.values, &mut memory) {
                        failures[index].get_or_insert(params);
                    }
                }
            }
            memory.iteration += u64::from((now.inst, now.slot) == (latch.branch, Some(latch.slot)));
            true
        });
    });
    let time = start.elapsed() / u32::try_from(all.len().max(1)).expect("few");
    for ((placed, held), failure) in all.iter().zip(held).zip(failures) {
        let tally = Tally::of(tallies, placed.answer.engine(), widths);
        tally.asked += 1;
        tally.answered += 1;
        tally.cases += held;
        tally.held += held;
        tally.time += time;
        if let Some(params) = failure {
            let why = format!("not so with {params:?} at {} {:?}: {:?}", placed.inst, placed.slot, placed.answer);
            tally.fails(number, &why, &subject.shape.text);
        }
    }
}
