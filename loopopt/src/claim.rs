//! Claims: the facts on which a rewrite rests, checked while the program runs.
//!
//! A pass proves that a check holds, that a sum does not wrap, that two accesses do not overlap, and changes the code. The oracle sees a
//! wrong proof only if a result differs, which needs an input that makes it differ. With
//! [`Options::assert_claims`](crate::Options::assert_claims) the proof itself is checked: beside the changed code is an assertion, a
//! `trapz` or `trapnz` with a trap code of its own. One that fails is a bug, whatever the results are.
//!
//! ```text
//!     trapz v1, user1                        trapz v1, user250     v1 was proved: CheckHolds
//!     v2 = uextend.i64 v3                    v6 = iadd v4, v5
//!     v7 = load v2                 ──►       v8 = icmp eq v2, v6
//!                                            trapz v8, user247     the sum does not wrap: NoWrap
//!                                            v7 = load v6
//! ```
//!
//! An assertion changes nothing else: it has no effect that anybody sees ([`Effects::asserts`](crate::analysis::inst::effects::Effects::asserts)),
//! so passes move loads and stores past it, and no pass takes it for a check or for a fact, so what they prove they prove without. It
//! stays in its block, and is copied with it.
//!
//! A function that is being asserted carries a mark while passes run, a global value, so that a trap of the program with such
//! a code is never taken for an assertion in a function that is not.
//!
//! # What is not said at run time
//!
//! | claim | why not | held by |
//! |---|---|---|
//! | nothing observable comes before a check or load that moves | it is about what has not happened | the oracle: code, place and memory of traps |
//! | a pure instruction is the same in each iteration | its operands are, by dominance | the verifier |
//! | copies of blocks, their order, their exits | they are the blocks of the program | the oracle, the check of canonical form |
//! | a poll stays in its loop | another thread would have to write | the fuzz body `polls` |
//! | a poll is late by no more than the embedder allows | it is about instructions, not values; that a strip ends is asserted | tests that stop endless loops |
//! | a variable that was a stack slot has this value | its memory is removed with the slot | the oracle |
//! | a cell at an index of a stack slot holds this value, if only a load that may move says that the index is one | the load may run where the program does not reach it, at an index beyond the slot | the oracle: the value is not used there |
//! | a load that may move is in the region that it says, and so not where accesses of other regions are; or in the slot that its address is an index of | it may run where the program does not reach it, and where something else is | the oracle: the value is not used there |
//! | a stack slot is not seen from outside | it is about what others do with an address that they do not have | the oracle |
//! | numbers lie in a range, one thing implies another | the check that they are used for is asserted; alone they change nothing | the lemmas |

use cranelift_codegen::ir::{ExternalName, Function, GlobalValueData, Inst, InstructionData, TrapCode};

/// Declares the claims, their trap codes and the list of them all.
macro_rules! claims {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal, $code:literal;)*) => {
        /// Something that a rewrite rests on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Claim { $($(#[doc = $doc])* $name,)* }

        impl Claim {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The claim in words.
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The trap code of its assertions.
            pub fn trap_code(self) -> TrapCode {
                TrapCode::unwrap_user(match self { $(Self::$name => $code,)* })
            }

            /// The claim whose assertions have this trap code.
            pub fn of_trap_code(code: TrapCode) -> Option<Self> {
                match code.as_raw().get() { $($code => Some(Self::$name),)* _ => None }
            }
        }
    };
}

claims! {
    /// The condition of a check that was removed holds where it was.
    CheckHolds = "the check holds", 250;
    /// A branch that became a jump would have taken that edge.
    BranchTaken = "the branch takes this edge", 249;
    /// A condition that was replaced by a constant is that constant.
    ConditionKnown = "the condition is known", 248;
    /// An operation that told whether it overflows does not.
    NoWrap = "the operation does not wrap", 247;
    /// The loop goes on, or ends, after so many iterations.
    TripCount = "the loop has this trip count", 246;
    /// A number is what it was some iterations before, and so many steps.
    Recurrence = "the value is a recurrence with this step", 245;
    /// A value is the same as in the iteration before.
    Invariant = "the value is the same in each iteration", 244;
    /// An access whose address is computed in another way is at the same place.
    SamePlace = "the new address equals the old one", 240;
    /// Two accesses have no byte in common.
    NoOverlap = "the accesses do not overlap", 243;
    /// Memory holds the value that was used in the place of a load.
    CellHolds = "the memory holds the value that replaces a load", 242;
    /// The address of a load that an assertion repeats can be read.
    Readable = "the address can be read", 241;
    /// A value that is computed by the same operations in another order is the same.
    SameResult = "the operations in another order give the same result", 239;
    /// A value that leaves a loop is what a formula of its count says.
    FinalValue = "the value after the loop is what the formula says", 238;
}

/// The name of the mark: no linker symbol, so no front end has it.
const MARK: &[u8] = b"loopopt: claims are asserted";

/// Lets claims about `func` be asserted from here on.
pub(crate) fn mark(func: &mut Function) {
    let name = ExternalName::testcase(MARK);
    func.global_values.push(GlobalValueData::Symbol { name, offset: 0.into(), colocated: false, tls: false });
}

/// Takes the mark away. Assertions are plain traps then.
pub(crate) fn unmark(func: &mut Function) {
    if is_marked(func) {
        let mut values: Vec<_> = func.global_values.values().cloned().collect();
        values.pop();
        func.global_values.clear();
        values.into_iter().for_each(|value| {
            func.global_values.push(value);
        });
    }
}

/// Whether claims about `func` are asserted.
pub(crate) fn is_marked(func: &Function) -> bool {
    let last = func.global_values.last().map(|(_, data)| data);
    matches!(last, Some(GlobalValueData::Symbol { name: ExternalName::TestCase(name), .. }) if name.raw() == MARK)
}

/// The claim that `inst` asserts, or that a load for an assertion makes, while `func` is marked.
pub(crate) fn asserted(func: &Function, inst: Inst) -> Option<Claim> {
    if is_marked(func) { asserts_by_code(func, inst) } else { None }
}

/// The claim that has the trap code of `inst`: for functions whose program has none of these codes.
pub fn asserts_by_code(func: &Function, inst: Inst) -> Option<Claim> {
    let code = match func.dfg.insts[inst] {
        InstructionData::CondTrap { code, .. } => Some(code),
        InstructionData::Load { flags, .. } => func.dfg.mem_flags[flags].trap_code(),
        _ => None,
    };
    code.and_then(Claim::of_trap_code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::context;

    #[test]
    fn each_claim_has_its_code() {
        for (index, claim) in Claim::ALL.iter().enumerate() {
            assert_eq!(Claim::of_trap_code(claim.trap_code()), Some(*claim));
            assert!(Claim::ALL[..index].iter().all(|other| other.trap_code() != claim.trap_code()));
        }
        assert_eq!(Claim::of_trap_code(TrapCode::unwrap_user(1)), None);
        assert_eq!(Claim::of_trap_code(TrapCode::HEAP_OUT_OF_BOUNDS), None);
    }

    #[test]
    fn a_mark_leaves_nothing_behind() {
        let mut ctx = context(
            "function %f(i64) {
                gv0 = symbol %data
            block0(v0: i64):
                trapz v0, user250
                return
            }",
        );
        let before = ctx.func.to_string();
        let trap = ctx.func.layout.first_inst(crate::testing::block(0)).expect("an instruction");
        assert_eq!(asserted(&ctx.func, trap), None, "it is a trap of the program");
        mark(&mut ctx.func);
        assert_eq!(asserted(&ctx.func, trap), Some(Claim::CheckHolds));
        unmark(&mut ctx.func);
        unmark(&mut ctx.func);
        assert_eq!(ctx.func.to_string(), before);
    }
}
