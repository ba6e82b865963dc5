//! Sample loops for loopopt: each of one idea, deterministic, with a checked result.
//!
//! A [`Program`] is one function in CLIF, either built with cranelift-frontend the way a simple compiler would emit it
//! or written as text, together with a small and a large [`Input`] and a Rust implementation that says what must come
//! out. Nothing here compiles or runs anything: the harness does.

mod build;
mod by_hand;
mod limits;
mod memory;
mod programs;

pub use by_hand::by_hand;
pub use limits::{Limit, Place};

use cranelift_codegen::ir::Function;

use programs::{
    arrays, bytes, cells, checked, control, grids, guards, indexed, joined, known, nests, objects, parts, places,
    profiled, rare, reductions, scalar, search, sums, widened,
};

/// A sample loop.
pub struct Program {
    /// Short, kebab-case, unique.
    pub name: &'static str,
    /// The one idea that the program is about, in one sentence.
    pub about: &'static str,
    /// What kind of code it is, for filters and for tables: `checked` (explicit checks of bounds, null, overflow or
    /// divisors), `memory` (loads or stores that a loop pass could move), `slots` (locals in stack slots), `float`, `call`,
    /// `switch`, `profile` (faster if it is known what its caller nearly always gives), `dispatch` (one of its while loops is an interpreter, whose test stays at the top), `nest`.
    pub tags: &'static [&'static str],
    /// How many of its loops test at the top: all of its while loops. They have to be rotated, except for the one of a `dispatch`.
    pub while_loops: usize,
    /// Where the CLIF comes from.
    pub source: Source,
    /// A few iterations: for checking.
    pub small: fn() -> Input,
    /// Enough work for one call to take 50 to 500 microseconds: for timing.
    pub large: fn() -> Input,
    /// What a call must give: changes `memory` as the program would and returns its result.
    pub reference: fn(input: &Input, memory: &mut [u8]) -> Option<Value>,
    /// The same kernel in C: one function with the program's name (`-` as `_`) and signature, for the native reference
    /// column.
    pub c: Option<&'static str>,
}

/// Where the CLIF of a program comes from.
pub enum Source {
    /// Built with cranelift-frontend.
    Built(fn() -> Function),
    /// The same, for a program with explicit checks, which can be built without them as well.
    Checked {
        /// Builds it.
        build: fn(Checks) -> Function,
        /// What decides whether it traps; nothing if its checks cannot fail.
        limits: &'static [Limit],
    },
    /// A file of `kernels/`.
    Clif(&'static str),
}

/// Whether a program is built with its checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Checks {
    On,
    Off,
}

/// One call: arguments and the memory that they point into.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The arguments, in the order of the signature.
    pub args: Vec<Arg>,
    /// The memory before the call; 64-byte aligned wherever it is placed.
    pub memory: Vec<u8>,
}

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// A number.
    Value(Value),
    /// A pointer to this byte of the memory.
    Pointer(usize),
}

/// A number that goes in or comes out.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Value {
    I32(i32),
    I64(i64),
    F64(f64),
}

/// All programs, in the order in which they are reported.
pub fn all() -> &'static [Program] {
    ALL
}

static ALL: &[Program] = &[
    scalar::COUNTED,
    scalar::DOWNWARD,
    scalar::NARROW,
    scalar::INVARIANT_DIVISION,
    scalar::COLLATZ,
    scalar::GCD,
    scalar::POPCOUNT,
    scalar::POLYNOMIAL,
    scalar::MANDELBROT,
    arrays::SUM,
    reductions::PRODUCT,
    reductions::EXTREMES,
    reductions::NUMBERED,
    known::KNOWN_DIVISOR,
    known::KNOWN_COUNT,
    parts::TWO_PARTS,
    parts::CLAMPED_NEIGHBOURS,
    parts::BOTH_CONDITIONS,
    parts::GUARDED_DIVISION,
    parts::FEW_EACH,
    parts::LATE_CHECK,
    joined::MERGE_SUM,
    joined::STOP_FLAG,
    joined::MIDDLE_EXIT,
    arrays::DIFFERENCES,
    arrays::EARLY_EXIT,
    arrays::SKIP_ZEROS,
    arrays::ARGMAX,
    arrays::SCALE_RELOAD,
    checked::SUM_CHECKED,
    checked::DOT,
    checked::SAXPY,
    checked::PREFIX_SUM,
    checked::REVERSE_COPY,
    checked::INVARIANT_ELEMENT,
    checked::STENCIL3,
    checked::HISTOGRAM,
    indexed::LAGGED,
    indexed::PAIRS,
    indexed::QUADS,
    indexed::DOWNWARD_SLICE,
    indexed::POINTER_WALK,
    indexed::SLICE_BEFORE,
    indexed::SLICE_INSIDE,
    guards::RUNTIME_CHECK,
    guards::NULL_CHECK,
    guards::COUNTED_OVERFLOW,
    guards::CHECKED_DIVISION,
    widened::WASM_SUM,
    widened::WASM_AXPY,
    widened::WASM_GUARDED,
    bytes::FNV_HASH,
    bytes::CRC32,
    bytes::CRC32_BITWISE,
    bytes::CRC32_BRANCHES,
    bytes::ATOI,
    bytes::STRING_LENGTH,
    bytes::STRING_COPY,
    bytes::SWITCH_EXIT,
    control::SWITCH_LOOP,
    control::RARE_CALL,
    rare::RARE_CELLS,
    rare::RARE_NEST,
    control::INVARIANT_BRANCH,
    control::MODE_SWITCH,
    control::CLAMP_SUM,
    reductions::CLAMPED_DISTANCE,
    control::FIRST_ITERATION,
    places::EXIT_VALUE,
    places::INVARIANT_PAIR,
    places::EPOCH_POLL,
    places::SAFEPOINT_POLL,
    places::GAS_METERED,
    places::RARE_BLOCK,
    objects::MEMORY_ACCUMULATOR,
    objects::SLOTS,
    cells::RECURRENCE,
    cells::RECURRENCE_WASM32,
    cells::BYTE_SUMS,
    grids::TRANSPOSE_WASM32,
    cells::OVERWRITTEN_STORE,
    cells::CONDITIONAL_CELL,
    cells::RUNNING_TOTAL,
    cells::ROW_SUMS,
    cells::FIELD_SLOTS,
    objects::STRUCT_FIELDS,
    objects::TAGGED_ARRAYS,
    objects::OBJECT_ARRAYS,
    objects::BOXED_LOOKUP,
    sums::BOXED_SUM,
    sums::SCALED_SUM,
    sums::RESAMPLED_SUM,
    sums::SLOT_SUM,
    sums::WEIGHTED_INDEX,
    sums::CHECKSUM_OF_PLACES,
    objects::LINKED_LIST,
    objects::LINKED_LIST_32,
    search::BINARY_SEARCH,
    search::INSERTION_SORT,
    search::SIEVE,
    nests::NEST3,
    nests::MATMUL,
    nests::MATMUL_MEMORY,
    nests::MATMUL_REGIONS,
    nests::FLOYD_WARSHALL,
    nests::COLUMN_SUMS,
    nests::SHORT_INNER,
    nests::DEAD_LOOP,
    indexed::STENCIL2D,
    grids::EDIT_DISTANCE,
    grids::GAME_OF_LIFE,
    profiled::STRIDED_SUM,
    profiled::QUOTIENTS,
    profiled::BUCKETS,
    profiled::DIGIT_SUMS,
    profiled::POWERS,
    profiled::CHANNELS,
    profiled::NEAREST,
    profiled::POLYNOMIALS,
    profiled::FILTER,
    profiled::SMALL_MATRICES,
];
