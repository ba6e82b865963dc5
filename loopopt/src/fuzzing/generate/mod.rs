//! The generator: from bytes to programs with loops.
//!
//! Every sequence of bytes gives a valid program: nothing is thrown away, so that a fuzzer's every byte counts. A program
//! is drafted as blocks first ([`outline`]) and filled with instructions then ([`fill`]). Calls of it end, because every
//! loop counts down something; except, rarely, for programs that say that they need not ([`TestCase::endless`]).
//!
//! What a program does is the same for everyone who follows the CLIF rules: slots are written before they are read,
//! addresses of the stack and of code stay where they are, NaNs do not get into memory or integers, and memory flags
//! promise nothing that does not hold.

mod beyond;
mod cases;
mod cells;
mod choices;
mod chosen;
mod countdowns;
mod disguises;
mod dominance;
mod effects;
mod entries;
mod exchanges;
mod expr;
mod features;
mod fill;
mod induction;
mod instructions;
mod interface;
mod known;
mod links;
mod locals;
mod loops;
mod memory;
mod mid_exits;
mod objects;
mod outline;
mod plan;
mod pointers;
mod ranges;
mod reductions;
mod scenes;
mod series;
mod short_ifs;
mod statements;
mod stencils;
mod sums;
mod twins;
mod variants;
mod walks;

use crate::oracle::{Case, Program};
use arbitrary::{Arbitrary, Unstructured};
use choices::Choices;
use cranelift_codegen::ir::{Function, TrapCode, UserFuncName};
use features::Feature;
use fill::Fill;
use interface::Interface;
use outline::Draft;
use std::collections::BTreeSet;
use std::fmt;

pub use features::Shape;

/// How often a block of the first function is run in one call, at most and roughly.
const WORK: u64 = 512;
/// The same for the other functions, which are called in loops.
const WORK_OF_CALLEES: u64 = 16;

/// How many words of random numbers there are for calls at edges.
const EDGE_WORDS: usize = 2048;

/// The trap of accesses that a guard checks, and of no others.
pub(super) fn guarded_code() -> TrapCode {
    TrapCode::unwrap_user(9)
}

/// The number of the region that is written by other threads, for bodies that say so.
pub(super) fn polled_region() -> u32 {
    memory::LOW.index as u32
}

/// A program, and calls to compare it by.
#[derive(Clone, Debug)]
pub struct TestCase {
    /// The program.
    pub program: Program,
    /// The calls.
    pub cases: Vec<Case>,
    /// Whether the calls need not end.
    pub endless: bool,
    /// What it has that a pass may look for.
    pub shapes: BTreeSet<Shape>,
    /// Whether it is one of the programs, about one in four, that are made around what proofs went wrong with, and have little else.
    pub is_special: bool,
    /// Whether no access is outside of the memory image, wherever its address is computed.
    pub stays_in_memory: bool,
    /// For choices of who runs it, for example of rewrites to be done.
    pub seed: u64,
}

/// Makes a test case from bytes. The same bytes give the same test case, and any bytes give one.
pub fn generate(bytes: &mut Unstructured<'_>) -> arbitrary::Result<TestCase> {
    let random = &mut Choices::new(bytes);
    let interface = Interface::draw(random);
    let mut cases = cases::draw(random, &interface);
    let mut functions = Vec::new();
    let mut endless = false;
    let mut shapes = BTreeSet::new();
    let mut countings = Vec::new();
    for index in 0..interface.functions.len() {
        let name = UserFuncName::testcase(Interface::function_name(index));
        let mut func = Function::with_name_signature(name, interface.functions[index].clone());
        let work = if index == 0 { WORK } else { WORK_OF_CALLEES };
        let outline = Draft::run(&mut func, random, &interface, work);
        shapes.extend(&outline.shapes);
        Fill::run(&mut func, random, (&interface, index), (&outline, &mut shapes));
        endless |= outline.endless;
        countings.extend(outline.countings);
        functions.push(func);
    }
    if interface.features.has(Feature::Escapes) {
        functions.push(locals::poke_function(random));
    }
    let seed = random.word();
    let bytes = &pseudorandom(seed, EDGE_WORDS);
    let calls = cases::edges(&mut Choices::new(&mut Unstructured::new(bytes)), &interface, &functions[0], &countings);
    endless |= !calls.end;
    cases.retain(|case| calls.ends(case));
    cases.extend(calls.cases);
    shapes.extend(calls.shape);
    let program =
        Program::new(functions).unwrap_or_else(|error| panic!("the generator makes valid programs: {error:#}"));
    let features = interface.features;
    let (is_special, stays_in_memory) = (features.is_special(), features.scene().is_some());
    Ok(TestCase { program, cases, endless, shapes, is_special, stays_in_memory, seed })
}

/// Random bytes, always the same for a seed.
pub(super) fn pseudorandom(seed: u64, words: usize) -> Vec<u8> {
    (0..words).zip(random_words(seed)).flat_map(|(_, word)| word.to_le_bytes()).collect()
}

/// SplitMix64, by Sebastiano Vigna.
pub(super) fn random_words(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

impl<'d> Arbitrary<'d> for TestCase {
    fn arbitrary(bytes: &mut Unstructured<'d>) -> arbitrary::Result<Self> {
        generate(bytes)
    }
}

/// CLIF with the calls after it, as file tests have them.
impl fmt::Display for TestCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for function in self.program.functions() {
            writeln!(f, "{}", function.display())?;
        }
        self.cases.iter().try_for_each(|case| writeln!(f, "; call: {}", case.call))
    }
}
