//! The versions of a loop: which checks are removed, and what is required for that.

use super::check::Check;
use super::known::{Known, told_of_loads};
use super::overlap::Cell;
use super::why::Decline;
use super::{NAME, PASS};
use crate::analysis::cfg::edges::Edge;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::cfg::must_execute::Order;
use crate::analysis::memory::disjoint::Disjoint;
use crate::analysis::scev::linear_expr::Sum;
use crate::analysis::scev::predication::Predication;
use crate::analysis::scev::predication::plain::plain;
use crate::analysis::scev::requirement::{Requirement, needed_beside, simplified};
use crate::analysis::scev::view::View;
use crate::edit::copy::duplicate_loop::duplicate_loop;
use crate::edit::materialize::emit::emit_all;
use crate::options::Options;
use crate::pass::PassCx;
use cranelift_codegen::ir::{Block, Function, Inst};
use cranelift_codegen::{Context, FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::rc::Rc;

/// What an iteration of an inner loop counts for, compared with one of its outer loop.
pub(super) const INNER_WEIGHT: u64 = 8;

/// How many comparisons may have to become one for a test to be short enough. 8: they are compared with each other, which takes time that grows with the
/// square of their number, for each loop of a nest. No test of a sample loop has more than 11 before that, which become 8.
pub(super) const MAX_UNSIMPLIFIED: usize = 8;

/// Comparisons that one check may cost, where more than [`Options::version_max_requirements`] are needed, up to twice as many. 3: a comparison takes 3
/// instructions where a check takes 2 in each iteration, so that five iterations make up for it. Of a step of Conway's game of life with a check for each of 9 neighbours, 27
/// comparisons replace 10 checks: with indices of 32 bits it takes 0.6 of Cranelift's time, and 0.8 without.
const REQUIREMENTS_PER_CHECK: usize = 3;

/// Two versions that are legal.
pub(super) struct Plan {
    pub(super) lp: Loop,
    pub(super) header: Block,
    pub(super) entry: Edge,
    pub(super) blocks: Vec<Block>,
    /// The headers of the loop and of its inner loops.
    pub(super) headers: Vec<Block>,
    /// The checks that are removed.
    pub(super) checks: Vec<Check>,
    /// How many exits of the loops of the nest are removed with them.
    pub(super) gone_exits: FxHashMap<Loop, usize>,
    /// For each of them that is an exit of its loop, the checks by which the loop is counted in its proof.
    pub(super) counted_by: FxHashMap<Inst, SmallVec<[Inst; 1]>>,
    /// What they require before the loop.
    pub(super) requires: Vec<Requirement>,
    /// How much is checked in the nest, by any of its loops, and how much of that is removed.
    pub(super) weight: u64,
    pub(super) gone: u64,
    /// How much of that is not the same test in each iteration of this loop.
    pub(super) nearer: u64,
    /// Instructions of the nest.
    pub(super) copied: usize,
}

impl Plan {
    pub(super) fn prove(view: View<'_>, lp: Loop, known: &mut Known<'_>, options: &Options) -> Result<Self, Decline> {
        let (func, forest) = (view.func(), view.forest);
        let data = forest.data(lp);
        let blocks = forest.blocks(lp);
        if blocks.len() > options.version_max_copied {
            return Err(Decline::TooLarge { insts: blocks.len(), max: options.version_max_copied });
        }
        let found = known.checks(lp);
        let overlaps = known.overlaps(lp);
        if found.is_empty() && overlaps.is_empty() {
            return Err(known.nothing_found(lp, options));
        }
        let is_extension = |&number: &usize| known.checks[number].check.extension().is_some();
        let (extensions, checks): (Vec<_>, Vec<_>) = found.into_iter().partition(is_extension);
        let [entry] = data.entries[..] else { return Err(Decline::SeveralEntries) };
        let insts = || blocks.iter().flat_map(|&block| func.layout.block_insts(block));
        let copied = insts().count();
        if copied > options.version_max_copied {
            return Err(Decline::TooLarge { insts: copied, max: options.version_max_copied });
        }
        if let Some(inst) = insts().find(|&inst| !forest.is_duplicable(func, inst)) {
            return Err(Decline::NotDuplicable(func.dfg.insts[inst].opcode()));
        }
        let mut plan = Self {
            lp,
            header: data.header,
            entry,
            blocks: blocks.to_vec(),
            headers: blocks.iter().copied().filter(|&block| forest.loop_of_header(block).is_some()).collect(),
            checks: Vec::new(),
            gone_exits: FxHashMap::default(),
            counted_by: FxHashMap::default(),
            requires: Vec::new(),
            weight: 0,
            gone: 0,
            nearer: 0,
            copied,
        };
        let mut obstacle = None;
        let ruled_out = plan.ruled_out(func, options);
        for check in checks {
            match (plan.add(forest, known, check), &ruled_out) {
                (Ok(()), Some(why)) if !plan.requires.is_empty() => return Err(why.clone()),
                (Ok(()), _) => {}
                (Err(why), _) => drop(obstacle.get_or_insert(why)),
            }
        }
        if ruled_out.is_none() {
            plan.add_extensions(forest, known, &extensions, options);
            let why = plan.add_overlaps(forest, known, &overlaps, options);
            obstacle = obstacle.or(why);
        }
        plan.simplify(func, obstacle, options)
    }

    /// The most comparisons that pay for the checks that are removed.
    pub(super) fn max_requirements(&self, options: &Options) -> usize {
        let checks = self.checks.iter().filter(|check| check.extension().is_none() && check.cell().is_none()).count();
        let max = options.version_max_requirements;
        checks.saturating_mul(REQUIREMENTS_PER_CHECK).clamp(max, max.saturating_mul(2))
    }

    /// Makes the test as short as it can be. `obstacle` is why some check stays.
    fn simplify(mut self, func: &Function, obstacle: Option<Decline>, options: &Options) -> Result<Self, Decline> {
        let (requirements, max) = (self.requires.len(), options.version_max_requirements);
        if !options.ignore_cost && requirements > max.saturating_mul(MAX_UNSIMPLIFIED) {
            return Err(Decline::TooManyTests { requirements, max });
        }
        self.requires = simplified(self.requires);
        let given = told_of_loads(func, &self.requires, options);
        self.requires = needed_beside(self.requires, given);
        let never = |requirement: &&Requirement| requirement.known() == Some(false);
        if let (Some(check), Some(requirement)) = (self.checks.first(), self.requires.iter().find(never)) {
            return Err(Decline::NeverHolds { check: check.inst, requirement: Box::new(requirement.clone()) });
        }
        self.requires = self.requires.into_iter().map(plain).collect();
        match obstacle {
            _ if !self.checks.is_empty() => Ok(self),
            Some(why) => Err(why),
            None => Err(Decline::NoCheck),
        }
    }

    /// Adds the extensions of these numbers, as far as the test does not become too long, or no longer at all where the loop is long. Where there are checks,
    /// only these count.
    fn add_extensions(&mut self, forest: &LoopForest, known: &mut Known<'_>, extensions: &[usize], options: &Options) {
        let Self { weight, gone, nearer, .. } = *self;
        let has_checks = !self.checks.is_empty();
        let max = options.version_max_requirements;
        for &number in extensions {
            let before = self.requires.len();
            let is_free = !known.is_worth_a_test(number);
            if is_free && !has_checks || self.add(forest, known, number).is_err() {
                continue;
            }
            if self.requires.len() == before {
                if known.checks[number].check.is_as_it_was(known.view) {
                    self.checks.pop();
                }
                continue;
            }
            let length = |requires: &[Requirement]| simplified(requires.to_vec()).len();
            let is_too_long = match is_free {
                true => self.requires.len() > max || length(&self.requires) > length(&self.requires[..before]),
                false => self.requires.len() > max && length(&self.requires) > max,
            };
            if is_too_long {
                self.requires.truncate(before);
                self.checks.pop();
            }
        }
        if has_checks {
            (self.weight, self.gone, self.nearer) = (weight, gone, nearer);
        }
    }

    /// (P10) Adds what proves cells disjoint, all of a cell or nothing, as far as the test does not become too long. Where there are checks, only
    /// these count. Gives a reason why there is no test for a cell, if so.
    fn add_overlaps(
        &mut self,
        forest: &LoopForest,
        known: &mut Known<'_>,
        overlaps: &[usize],
        options: &Options,
    ) -> Option<Decline> {
        let before = (self.weight, self.gone, self.nearer);
        let (has_checks, max) = (!self.checks.is_empty(), options.version_max_requirements);
        let mut obstacle = None;
        let is_same = |a: &usize, b: &usize| known.cell(*a).zip(known.cell(*b)).is_some_and(|(a, b)| Rc::ptr_eq(a, b));
        let cells: Vec<_> = overlaps.chunk_by(is_same).collect();
        for cell in cells {
            let (checks, requirements) = (self.checks.len(), self.requires.len());
            let added = cell.iter().try_for_each(|&number| self.add(forest, known, number));
            let is_too_long = || self.requires.len() > max && simplified(self.requires.clone()).len() > max;
            let is_worth_a_test = known.is_worth_a_test(cell[0]);
            let why = match added {
                Err(why) => Some(why),
                Ok(()) if !is_worth_a_test && self.requires.len() > requirements => Some(Decline::NoCheck),
                Ok(()) if is_too_long() => Some(Decline::TooManyTests { requirements: self.requires.len(), max }),
                Ok(()) => None,
            };
            if why.is_some() {
                self.checks.truncate(checks);
                self.requires.truncate(requirements);
                obstacle = obstacle.or(why);
            }
        }
        if has_checks {
            (self.weight, self.gone, self.nearer) = before;
        }
        obstacle
    }

    /// (L2) The loops that `check` ends if it fails, if each of them has another exit. How often they run is found from what their other exits test: if all were
    /// removed, what is required would be that none is ever taken.
    fn ends(&self, view: View<'_>, check: &Check) -> Result<Vec<Loop>, Decline> {
        let forest = view.forest;
        let Some(target) = check.exit(view.func()) else { return Ok(Vec::new()) };
        let all = std::iter::successors(forest.innermost(check.block), |&lp| forest.data(lp).parent);
        let ended: Vec<_> =
            all.take_while(|&lp| forest.encloses(self.lp, lp) && !forest.contains(lp, target)).collect();
        let has_other = |&lp: &Loop| self.gone_exits.get(&lp).copied().unwrap_or(0) + 1 < forest.data(lp).exits.len();
        match ended.iter().all(has_other) {
            true => Ok(ended),
            false => Err(Decline::LastExit { check: check.inst }),
        }
    }

    /// (L2) The checks by which `check`, which ends these loops if it fails, is counted. Each may be removed unless it is counted by `check` in turn, directly
    /// or through others: what would be required then is that each fails before the other one does.
    fn counting_checks(
        &self,
        ahead: &mut Predication<'_>,
        check: &Check,
        ended: &[Loop],
    ) -> Result<SmallVec<[Inst; 1]>, Decline> {
        let counting: SmallVec<[Inst; 1]> =
            ended.iter().filter_map(|&lp| ahead.counting_check(lp, (check.inst, check.block))).collect();
        let (mut open, mut seen) = (counting.clone(), FxHashSet::default());
        while let Some(inst) = open.pop() {
            if inst == check.inst {
                return Err(Decline::LastExit { check: check.inst });
            }
            if seen.insert(inst) {
                open.extend(self.counted_by.get(&inst).into_iter().flatten().copied());
            }
        }
        Ok(counting)
    }

    /// Adds the check of this number, if there is something before the loop that is enough for it.
    fn add(&mut self, forest: &LoopForest, known: &mut Known<'_>, number: usize) -> Result<(), Decline> {
        let block = known.checks[number].check.block;
        let ended = self.ends(known.view, &known.checks[number].check)?;
        let counting = self.counting_checks(&mut known.ahead, &known.checks[number].check, &ended)?;
        let innermost = forest.innermost(block);
        let depth = innermost.map_or(0, |level| forest.data(level).depth - forest.data(self.lp).depth);
        let weight = INNER_WEIGHT.saturating_pow(depth);
        let (mut level, mut above) = (innermost, 0);
        while let Some(lp) = level {
            known.before(number, lp, above)?;
            if above == 0 {
                self.weight = self.weight.saturating_add(weight);
            }
            if lp == self.lp {
                break;
            }
            level = forest.data(lp).parent;
            above += 1;
        }
        let required = known.before(number, self.lp, above)?.to_vec();
        let stays = depth > 0 && required == known.checks[number].inside(above);
        self.nearer = self.nearer.saturating_add(if stays { 0 } else { weight });
        self.gone = self.gone.saturating_add(weight);
        for requirement in required {
            if !self.requires.contains(&requirement) {
                self.requires.push(requirement);
            }
        }
        if !ended.is_empty() {
            self.counted_by.insert(known.checks[number].check.inst, counting);
        }
        ended.into_iter().for_each(|lp| *self.gone_exits.entry(lp).or_default() += 1);
        self.checks.push(known.checks[number].check.clone());
        Ok(())
    }

    /// What is proved disjoint in the fast loop.
    pub(super) fn overlaps(&self) -> impl Iterator<Item = (&Check, &Cell)> {
        self.checks.iter().filter_map(|check| Some((check, &**check.cell()?)))
    }

    /// Remembers what is proved disjoint.
    pub(super) fn note_disjoint(&self, disjoint: &mut Disjoint) {
        for (check, cell) in self.overlaps() {
            cell.accesses.iter().for_each(|&access| match cell.reach {
                None => disjoint.add(access, check.inst),
                Some(reach) => disjoint.add_far(access, check.inst, reach),
            });
        }
    }

    /// The extensions that are removed, with what they become.
    pub(super) fn extensions(&self) -> impl Iterator<Item = (&Check, &Sum)> {
        self.checks.iter().filter_map(|check| Some((check, check.extension()?)))
    }

    /// Says what is done, and makes the slow version.
    pub(super) fn make(
        &self,
        ctx: &mut Context,
        cx: &mut PassCx<'_>,
        order: &Order,
        (what, once_more): (String, bool),
    ) {
        cx.look_again(ctx, self.header);
        cx.retract(NAME, self.header);
        cx.fired(&ctx.func, &PASS, self.header, what);
        self.copy(&mut ctx.func, cx, (&order.sorted(&self.blocks), once_more));
    }

    /// Makes the slow version, if there is a test to be made. `blocks` are those of the loop in dominance order. `once_more` says whether the fast one may get versions again.
    fn copy(&self, func: &mut Function, cx: &mut PassCx<'_>, (blocks, once_more): (&[Block], bool)) {
        if self.requires.is_empty() {
            return;
        }
        let fast = emit_all(func, self.entry.branch, &self.requires);
        let slow = duplicate_loop(func, blocks, self.entry, fast);
        for &block in blocks {
            func.layout.set_cold(slow.block(block));
        }
        cx.marks.add_versions(self.header, once_more);
        for &header in &self.headers {
            cx.marks.add_slow(slow.block(header));
        }
    }
}
