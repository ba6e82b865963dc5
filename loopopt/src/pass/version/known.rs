//! What the checks of a function require, and what of it is known before each loop. It is found out once for all loops.

use super::check::Check;
use super::extension::Extensions;
use super::lengths::Lengths;
use super::overlap::{Cell, Cells};
use super::plan::MAX_UNSIMPLIFIED;
use super::why::Decline;
use crate::analysis::cfg::loops::Loop;
use crate::analysis::facts::known::{Conditions, Place};
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::predication::Predication;
use crate::analysis::scev::predication::unwrapped::unwrapped;
use crate::analysis::scev::requirement::Requirement;
use crate::analysis::scev::view::View;
use crate::options::Options;
use crate::pass::{GuardPolicy, PassCx};
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, types};
use cranelift_codegen::{Context, FxHashMap, FxHashSet};
use std::ops::Range;
use std::rc::Rc;

/// What is known before loops.
pub(super) struct Known<'a> {
    pub(super) view: View<'a>,
    max_requirements: usize,
    lengths: &'a Lengths,
    pub(super) ahead: Predication<'a>,
    conditions: Conditions<'a>,
    guards: GuardPolicy<'a>,
    /// The headers of the outer loops that rare parts of inner loops have left for.
    around_fast: FxHashSet<Block>,
    /// The headers of loops of strips.
    around_strips: FxHashSet<Block>,
    extensions: Extensions<'a>,
    cells: Cells<'a>,
    /// What has been asked of the places before loops.
    answers: FxHashMap<(Loop, Requirement), bool>,
    /// The checks of the blocks that have been looked at.
    pub(super) checks: Vec<Followed>,
    /// Which of them are those of a block.
    places: FxHashMap<Block, Range<usize>>,
    /// Which of them prove accesses of an innermost loop disjoint.
    disjoint: FxHashMap<Loop, Range<usize>>,
}

/// A check, and what it requires before its enclosing loops.
pub(super) struct Followed {
    pub(super) check: Check,
    /// From the innermost loop outwards, as far as anybody has asked.
    levels: Vec<Result<Vec<Requirement>, Decline>>,
}

impl Followed {
    /// What it requires inside of the loop that encloses the innermost one at `above` levels.
    pub(super) fn inside(&self, above: usize) -> &[Requirement] {
        match above.checked_sub(1).map(|inner| &self.levels[inner]) {
            None => &self.check.requires,
            Some(level) => level.as_deref().unwrap_or(&[]),
        }
    }
}

impl<'a> Known<'a> {
    /// For the loops of this function, of which nothing has been asked.
    pub(super) fn new(view: View<'a>, cx: &PassCx<'a>, lengths: &'a Lengths) -> Self {
        let Context { func, cfg, domtree, .. } = view.ctx;
        let conditions = Conditions::new(func, cfg, domtree).with_options(cx.options);
        Self {
            view,
            max_requirements: cx.options.version_max_requirements,
            lengths,
            ahead: Predication::new(view),
            conditions,
            guards: cx.guard_policy(),
            around_fast: cx.marks.around_fast(),
            around_strips: cx.marks.around_strips(),
            extensions: Extensions::new(view, cx.guard_policy()),
            cells: Cells::new(view, cx.options, cx.disjoint.clone()),
            answers: FxHashMap::default(),
            checks: Vec::new(),
            places: FxHashMap::default(),
            disjoint: FxHashMap::default(),
        }
    }

    /// Which Spectre guards may be removed.
    pub(super) fn guards(&self) -> &GuardPolicy<'a> {
        &self.guards
    }

    /// The checks of a loop and of its inner loops that are expected to run and to do nothing.
    pub(super) fn checks(&mut self, lp: Loop) -> Vec<usize> {
        let (func, forest) = (self.view.func(), self.view.forest);
        let is_cold = func.layout.is_cold(forest.data(lp).header);
        let mut found = Vec::new();
        for &block in forest.blocks(lp).iter().filter(|&&block| is_cold || !func.layout.is_cold(block)) {
            let Self { view, lengths, guards, around_fast, extensions, checks, places, .. } = self;
            let range = places.entry(block).or_insert_with(|| {
                let start = checks.len();
                let all = Check::all(*view, block, (guards, around_fast), extensions);
                checks.extend(all.map(|mut check| {
                    check.requires = check.requires.into_iter().flat_map(|one| lengths.preheader_loads(one)).collect();
                    Followed { check, levels: Vec::new() }
                }));
                start..checks.len()
            });
            found.extend(range.clone());
        }
        found
    }

    /// Why there is nothing to test before a loop.
    pub(super) fn nothing_found(&self, lp: Loop, options: &Options) -> Decline {
        match self.extensions.too_few(lp) {
            Some((insts, sums)) => Decline::FewSums { insts, sums, max: options.version_max_insts_per_extension },
            None => Decline::NoCheck,
        }
    }

    /// What the cells of the innermost loops in a loop are to be proved disjoint from, those of one cell together.
    pub(super) fn overlaps(&mut self, lp: Loop) -> Vec<usize> {
        let forest = self.view.forest;
        let mut found = Vec::new();
        for inner in forest.blocks(lp).iter().filter_map(|&block| forest.loop_of_header(block)) {
            let Self { cells, checks, disjoint, .. } = self;
            let range = disjoint.entry(inner).or_insert_with(|| {
                let start = checks.len();
                let all = cells.of(inner).into_iter().flatten();
                checks.extend(all.map(|check| Followed { check, levels: Vec::new() }));
                start..checks.len()
            });
            found.extend(range.clone());
        }
        found
    }

    /// Assumes that these loads of `lp`, of which nothing has been asked, give the same in each iteration. What proves their cells disjoint from all stores is all that is
    /// proved disjoint there: so many checks. None if that cannot be said.
    pub(super) fn assume(&mut self, lp: Loop, loads: &[Inst]) -> Option<usize> {
        let start = self.checks.len();
        let all = self.cells.of_loads(lp, loads)?.into_iter();
        self.checks.extend(all.map(|check| Followed { check, levels: Vec::new() }));
        self.disjoint.insert(lp, start..self.checks.len());
        Some(self.checks.len() - start)
    }

    /// Whether comparisons of its own are worth that the extension of this number is a sum in 64 bits, or that the access of this number does not overlap its cell.
    pub(super) fn is_worth_a_test(&mut self, number: usize) -> bool {
        match self.cell(number) {
            Some(cell) => cell.is_worth_a_test,
            None => self.extensions.is_worth_a_test(self.checks[number].check.inst),
        }
    }

    /// The cell that the check of this number proves disjoint, if it does.
    pub(super) fn cell(&self, number: usize) -> Option<&Rc<Cell>> {
        self.checks[number].check.cell()
    }

    /// What has to hold before `lp` for the check of this number, which is `above` loops inside of it, and is not known to hold
    /// there.
    pub(super) fn before(&mut self, number: usize, lp: Loop, above: usize) -> Result<&[Requirement], Decline> {
        if self.checks[number].levels.len() <= above {
            let level = self.level(number, lp, above);
            self.checks[number].levels.push(level);
        }
        match &self.checks[number].levels[above] {
            Ok(required) => Ok(required),
            Err(why) => Err(why.clone()),
        }
    }

    fn level(&mut self, number: usize, lp: Loop, above: usize) -> Result<Vec<Requirement>, Decline> {
        let Check { inst, block, .. } = self.checks[number].check;
        let place = match self.cell(number) {
            Some(_) if above > 0 => self.start_inside(lp, block),
            _ => (inst, block),
        };
        let mut all = Vec::new();
        for index in 0..self.checks[number].inside(above).len() {
            let before = self.ahead.before(&self.checks[number].inside(above)[index], lp, place);
            for requirement in before.map_err(|why| Decline::of_obstacle(why, inst))? {
                let requirement = unwrapped(requirement, &mut |least| self.is_known(least, lp) == Some(true));
                match self.is_known(&requirement, lp) {
                    Some(true) => {}
                    Some(false) => return Err(Decline::NeverHolds { check: inst, requirement: Box::new(requirement) }),
                    None if all.contains(&requirement) => {}
                    None => all.push(requirement),
                }
            }
            // Too many for all checks together are too many for one.
            let requirements = all.len();
            if requirements > self.max_requirements.saturating_mul(MAX_UNSIMPLIFIED) {
                return Err(Decline::TooManyTests { requirements, max: self.max_requirements });
            }
        }
        Ok(all)
    }

    /// The start of the next inner loop of `lp` that holds `block`: a cell has to be disjoint from an access whenever that loop is entered, not only where
    /// the access is executed, for both may be moved to where it is not ([`crate::analysis::memory::disjoint`]).
    fn start_inside(&self, lp: Loop, block: Block) -> (Inst, Block) {
        let View { forest, .. } = self.view;
        let around = std::iter::successors(forest.innermost(block), |&inner| forest.data(inner).parent);
        let inside = around.take_while(|&inner| inner != lp).last().expect("the access is in an inner loop");
        let header = forest.data(inside).header;
        (self.view.func().layout.first_inst(header).expect("a block has a branch"), header)
    }

    /// Whether `requirement` holds before the loop, if that is known.
    fn is_known(&mut self, requirement: &Requirement, lp: Loop) -> Option<bool> {
        let entries = &self.view.forest.data(lp).entries[..];
        let (Requirement::Compare { cond, left, right }, [entry]) = (requirement, entries) else {
            return requirement.known();
        };
        requirement.known().or_else(|| {
            // Where a strip begins is an argument of its outer loop.
            let around = self.view.forest.data(lp).parent.map(|around| self.view.forest.data(around).header);
            self.conditions.set_thorough(around.is_some_and(|around| self.around_strips.contains(&around)));
            let ask = || self.conditions.holds(Place::Before(entry.branch), *cond, [left, right]);
            self.answers.entry((lp, requirement.clone())).or_insert_with(ask).then_some(true)
        })
    }
}

/// What the embedder says of what is loaded that these requirements are of: [`Embedder::bounds`](crate::Embedder::bounds).
pub(super) fn told_of_loads(func: &Function, required: &[Requirement], options: &Options) -> Vec<Requirement> {
    let mut loaded = Vec::new();
    required.iter().for_each(|requirement| requirement.each_value(&mut |value| loaded.push(value)));
    loaded.sort_unstable();
    loaded.dedup();
    let bounds = |value: Value| {
        let InstructionData::Load { opcode: Opcode::Load, flags, .. } =
            func.dfg.insts[func.dfg.value_def(value).inst()?]
        else {
            return None;
        };
        let is_word = func.dfg.value_type(value) == types::I64;
        is_word.then(|| (value, options.bounds(func, func.dfg.mem_flags[flags])))
    };
    let told = loaded.into_iter().filter_map(bounds).flat_map(|(value, (least, largest))| {
        let [number, least, largest] =
            [Sum::of_term(Term::Value(value), 1, 64), Sum::constant(least, 64), Sum::constant(largest, 64)];
        [Requirement::at_most(least, number.clone()), Requirement::at_most(number, largest)]
    });
    told.filter(|one| one.known().is_none()).collect()
}
