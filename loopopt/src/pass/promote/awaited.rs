//! Whether a loop waits for what a cell holds, and whether what it stores there itself advances.

use super::Here;
use super::memory::Memory;
use super::neighbours::Located;
use super::why::Decline;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::number::constant_of;
use crate::analysis::memory::exit_polls::{settles, subtracts};
use crate::fault::fault;
use cranelift_codegen::ir::{Inst, Opcode, Value, ValueDef};
use std::rc::Rc;

/// What a value may be made of, and what was found of that.
struct Origin<'a> {
    place: (&'a LoopForest, Loop),
    is_begin: &'a dyn Fn(Value) -> bool,
    /// Whether a parameter of the header is another number in each iteration, if what is asked for is one for another number there.
    carries: &'a dyn Fn(Value, bool) -> bool,
    /// How many values may still be looked at.
    looks: usize,
}

impl<'a> Origin<'a> {
    fn new(
        place: (&'a LoopForest, Loop),
        is_begin: &'a dyn Fn(Value) -> bool,
        carries: &'a dyn Fn(Value, bool) -> bool,
    ) -> Self {
        Self { place, is_begin, carries, looks: MAX_LOOKS }
    }
}

/// Values that are looked at to see whether what is stored advances: more than a flag is set by. What is made of more does not.
const MAX_LOOKS: usize = 48;

impl Here<'_> {
    /// (L2): that no load waits for what somebody else stores.
    pub(super) fn prove_unawaited(&mut self, accesses: &[Rc<Located>]) -> Result<(), Decline> {
        for load in accesses.iter().filter(|access| access.stored.is_none()) {
            self.prove_no_poll(load.inst, |here, place| {
                here.is_overwritten(accesses, load.inst, place) || here.hands_on(accesses, place)
            })?;
        }
        Ok(())
    }

    /// (L6): that nobody else is waited for, in this loop or an inner one, while the stores of a cell are not done.
    pub(super) fn prove_no_wait(&mut self, memory: &Memory, accesses: &[Rc<Located>]) -> Option<Decline> {
        let store = accesses.iter().find(|access| access.stored.is_some())?.inst;
        if self.has_no_polls || fault!(StoredAfterTheWait) {
            return None;
        }
        let flow = (self.cfg, self.domtree);
        let forest = self.forest.whole(self.func, flow);
        let own = forest.loop_of_header(self.forest.data(self.lp).header)?;
        let mut loops = forest.loops().filter(|&lp| forest.contains(own, forest.data(lp).header));
        let mut has_no_polls = true;
        let waits = loops.find_map(|lp| {
            let polls = self.polls.of(self.func, flow, (forest, lp)).to_vec();
            has_no_polls &= polls.is_empty();
            let is_awaited = |&load: &Inst| {
                let place = memory.accesses.iter().find(|access| access.inst == load).map(|access| access.place);
                let of_cell = memory.accesses.iter().filter(|access| Some(access.place) == place);
                !self.is_overwritten(&of_cell.cloned().collect::<Vec<_>>(), load, (forest, lp))
            };
            polls.into_iter().find(is_awaited).map(|load| Decline::Waits { store, load })
        });
        self.has_no_polls = has_no_polls;
        waits
    }

    /// That no loop that encloses `load` waits for its value, be it outside this loop, or one that no pass looks at; but for those that satisfy `is_free`.
    pub(super) fn prove_no_poll(
        &mut self,
        load: Inst,
        is_free: impl Fn(&Self, (&LoopForest, Loop)) -> bool,
    ) -> Result<(), Decline> {
        let flow = (self.cfg, self.domtree);
        let home = self.func.layout.inst_block(load).expect("an access is in the layout");
        let forest = self.forest.whole(self.func, flow);
        if forest.may_be_in_irreducible(home) {
            return Err(Decline::Poll { load });
        }
        let mut around = forest.innermost(home);
        while let Some(lp) = around {
            if self.polls.contains(self.func, flow, (forest, lp), load) && !is_free(self, (forest, lp)) {
                return Err(Decline::Poll { load });
            }
            around = forest.data(lp).parent;
        }
        Ok(())
    }

    /// Whether each iteration of a loop overwrites what others may write for `load`, before it or after it: with something that it advances.
    fn is_overwritten(&self, accesses: &[Rc<Located>], load: Inst, (forest, lp): (&LoopForest, Loop)) -> bool {
        let Self { func, domtree, .. } = self;
        accesses.iter().any(|access| {
            let home = func.layout.inst_block(access.inst).filter(|&home| forest.contains(lp, home));
            access.stored.zip(home).is_some_and(|(stored, home)| {
                let is_certain = || {
                    domtree.dominates(access.inst, load, &func.layout)
                        || forest.is_in_each_iteration(func, domtree, lp, home)
                };
                is_certain() && self.moves_on(stored, accesses, (forest, lp))
            })
        })
    }

    /// Whether an enclosing loop still sees what others write: before this loop the cell is loaded still, and all that this loop makes of it is
    /// another number for another one that was there.
    fn hands_on(&self, accesses: &[Rc<Located>], (forest, lp): (&LoopForest, Loop)) -> bool {
        let header = self.forest.data(self.lp).header;
        let Some(own) = forest.loop_of_header(header).filter(|&own| own != lp && forest.contains(lp, header)) else {
            return false;
        };
        let is_load = |value| self.is_load_of(accesses, value);
        let is_moved =
            |stored| self.is_moved_from(&mut Origin::new((forest, own), &is_load, &|_, _| false), stored, false);
        accesses.iter().filter_map(|access| access.stored).all(is_moved)
    }

    /// Whether `value` is what one of these accesses has loaded.
    fn is_load_of(&self, accesses: &[Rc<Located>], value: Value) -> bool {
        let inst = self.func.dfg.value_def(value).inst();
        accesses.iter().any(|access| Some(access.inst) == inst && access.stored.is_none())
    }

    /// Whether iterations that store `stored` to the cell of `accesses` are known not to come to store the same: it is made of what the cell holds, or of
    /// what the iteration before has made of it, by an instruction that does not settle.
    fn moves_on(&self, stored: Value, accesses: &[Rc<Located>], (forest, lp): (&LoopForest, Loop)) -> bool {
        let is_load = |value| self.is_load_of(accesses, value);
        let none = |_, _| false;
        let carries = |param: Value, is_moved: bool| {
            let is_begin = |value| value == param || is_load(value);
            let is_next = |value| {
                self.is_moved_from(&mut Origin::new((forest, lp), &is_begin, &none), value, false)
                    // What the iteration before has loaded is what the one before that has stored.
                    || is_moved && self.is_moved_from(&mut Origin::new((forest, lp), &is_load, &none), value, true)
            };
            let mut passed = forest.data(lp).back_edges.iter().filter_map(|edge| edge.passed_for(self.func, param));
            passed.all(is_next)
        };
        self.is_moved_from(&mut Origin::new((forest, lp), &is_load, &carries), stored, false)
    }

    /// Whether `value` is made of one that `origin` begins with, by an instruction that does not settle, whatever is chosen; or of a parameter of the header that
    /// is another number in each iteration.
    fn is_moved_from(&self, origin: &mut Origin<'_>, value: Value, is_moved: bool) -> bool {
        let (Self { func, cfg, .. }, (forest, lp)) = (self, origin.place);
        if (origin.is_begin)(value) {
            return is_moved;
        }
        let Some(looks) = origin.looks.checked_sub(1) else { return false };
        origin.looks = looks;
        match func.dfg.value_def(value) {
            ValueDef::Result(inst, _) if forest.defines(func, lp, value) => {
                match (func.dfg.insts[inst].opcode(), func.dfg.inst_args(inst)) {
                    (Opcode::Bitcast | Opcode::Ireduce | Opcode::Sextend | Opcode::Uextend, &[arg]) => {
                        self.is_moved_from(origin, arg, is_moved)
                    }
                    (Opcode::Select, &[_, a, b]) => {
                        self.is_moved_from(origin, a, is_moved) && self.is_moved_from(origin, b, is_moved)
                    }
                    // What settles and is not the number itself, like a comparison, comes to be the same, however the number moves.
                    (opcode, _) if settles(opcode) => false,
                    // What is subtracted alternates.
                    (opcode, &[from, ref amounts @ ..]) if subtracts(opcode) => {
                        !amounts.iter().all(|&amount| self.may_be_none(origin.place, amount))
                            && self.is_moved_from(origin, from, true)
                    }
                    (_, &[a, b]) => {
                        !self.may_be_none(origin.place, b) && self.is_moved_from(origin, a, true)
                            || !self.may_be_none(origin.place, a) && self.is_moved_from(origin, b, true)
                    }
                    (_, args) => args.iter().any(|&arg| self.is_moved_from(origin, arg, true)),
                }
            }
            ValueDef::Param(block, _) if block == forest.data(lp).header => (origin.carries)(value, is_moved),
            ValueDef::Param(block, _) if forest.contains(lp, block) => {
                let mut edges = forest.edges_into(func, cfg, block).iter();
                edges.all(|edge| {
                    edge.passed_for(func, value).is_some_and(|passed| self.is_moved_from(origin, passed, is_moved))
                })
            }
            _ => false,
        }
    }

    /// Whether what is added may be zero in all iterations: a constant that is, or what comes to rest.
    fn may_be_none(&self, (forest, lp): (&LoopForest, Loop), amount: Value) -> bool {
        let func = &*self.func;
        if let Some(constant) = constant_of(func, amount) {
            return constant == 0;
        }
        let inst = func.dfg.value_def(amount).inst().filter(|_| forest.defines(func, lp, amount));
        inst.is_some_and(|inst| settles(func.dfg.insts[inst].opcode()))
    }
}
