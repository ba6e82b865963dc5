//! Lemmas as bit-vector formulas in SMT-LIB, for a solver to show at the widths that are too large to try.
//!
//! What can be is taken from the engines: [`arc`] is asked for its arc of an unknown bound, [`simplified`] for what is enough for a list
//! of requirements, and the formula says of their answers, at 8 to 64 bits, what their docs promise. A formula is given as what is
//! known and what follows; the solver is asked for numbers for which it does not.

use super::dice::Dice;
use super::logic::{Logic, compare, constant, extended};
use super::shapes::Widths;
use crate::analysis::facts::known::{Order, order};
use crate::analysis::inst::number::mask;
use crate::analysis::scev::linear_expr::{Sum, Term};
use crate::analysis::scev::predication::unwrapped::unwrapped;
use crate::analysis::scev::requirement::{Requirement, simplified};
use crate::analysis::scev::wrap_arc::{arc, is_signed};
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use std::collections::BTreeMap;
use std::fmt;

/// The widths of types.
const WIDTHS: [u32; 4] = [8, 16, 32, 64];

/// Widths that are mixed.
const MIXED: [Widths; 4] = [
    Widths { narrow: 8, wide: 16 },
    Widths { narrow: 8, wide: 64 },
    Widths { narrow: 16, wide: 32 },
    Widths { narrow: 32, wide: 64 },
];

/// Lists of requirements that are made simpler, for each pair of widths.
const LISTS: u64 = 16;

/// Sums that are taken apart, for each pair of widths.
const SUMS: u64 = 20;

/// Something that follows from something, whatever the numbers are.
#[derive(Clone, Debug)]
pub struct Formula {
    /// What it says.
    pub name: String,
    /// The largest width in it.
    pub bits: u32,
    /// Whether it is true. A few are not, to see that the solver notices.
    pub is_true: bool,
    pub(super) variables: BTreeMap<String, u32>,
    pub(super) given: Vec<String>,
    pub(super) follows: String,
}

impl fmt::Display for Formula {
    /// A script of its own: `unsat` if the formula is true.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "(reset)")?;
        writeln!(f, "(set-logic QF_BV)")?;
        writeln!(f, "(echo \"{}|{}|{}\")", self.name, self.bits, if self.is_true { "unsat" } else { "sat" })?;
        for (name, bits) in &self.variables {
            writeln!(f, "(declare-const {name} (_ BitVec {bits}))")?;
        }
        for given in &self.given {
            writeln!(f, "(assert {given})")?;
        }
        writeln!(f, "(assert (not {}))", self.follows)?;
        writeln!(f, "(check-sat)")
    }
}

/// Values below this are narrow, the others wide.
pub(super) const NARROW: usize = 4;

/// A value alone.
pub(super) fn value(number: u32, widths: Widths) -> Sum {
    let bits = if (number as usize) < NARROW { widths.narrow } else { widths.wide };
    Sum::of_term(Term::Value(Value::from_u32(number)), 1, bits)
}

/// All formulas.
pub fn formulas() -> Vec<Formula> {
    let mut all = Vec::new();
    for bits in WIDTHS {
        let widths = Widths { narrow: bits, wide: bits };
        for &cond in IntCC::all() {
            arcs(cond, widths, &mut all);
            conditions(cond, widths, &mut all);
        }
        multiples(widths, &mut all);
        [true, false].into_iter().for_each(|up| counts(widths, up, &mut all));
    }
    for widths in MIXED {
        extensions(widths, &mut all);
        for seed in 0..LISTS {
            lists(widths, seed, &mut all);
        }
        for seed in 0..SUMS {
            sums(widths, seed, &mut all);
        }
    }
    wrong(&mut all);
    all
}

/// What fulfils a condition is an arc, and what moves inside of it fulfils the condition.
fn arcs(cond: IntCC, widths: Widths, all: &mut Vec<Formula>) {
    let bits = widths.wide;
    let bound = value(0, widths);
    let (from, to) = arc(cond, &bound);
    let start = |logic: &mut Logic| {
        let texts = [&from, &to, &bound].map(|sum| logic.sum(sum));
        let [number, moved, room] = ["number", "moved", "room"].map(|name| logic.any(name, bits));
        (texts, number, moved, room)
    };
    let mut logic = Logic::new(widths);
    let ([first, last, right], number, moved, _) = start(&mut logic);
    let is_inside = format!("(bvule (bvsub {number} {first}) (bvsub {last} {first}))");
    let follows = format!("(= {} {is_inside})", compare(cond, &number, &right));
    let given = vec![compare(cond, &moved, &right)];
    all.push(logic.formula(format!("what is {cond} than a bound is an arc"), given, follows));

    for (name, step, up) in [("up", "bvadd", true), ("down", "bvsub", false)] {
        let mut logic = Logic::new(widths);
        let ([first, last, right], number, moved, room) = start(&mut logic);
        let left = if up { format!("(bvsub {last} {number})") } else { format!("(bvsub {number} {first})") };
        let given =
            vec![compare(cond, &number, &right), format!("(bvule {room} {left})"), format!("(bvule {moved} {room})")];
        let follows = compare(cond, &format!("({step} {number} {moved})"), &right);
        let name = format!("what is {cond} than a bound and moves {name} by no more than is left stays so");
        all.push(logic.formula(name, given, follows));
    }
}

/// The opposite, the same with sides exchanged, and what a comparison says of integers.
fn conditions(cond: IntCC, widths: Widths, all: &mut Vec<Formula>) {
    let (a, b) = (value(0, widths), value(1, widths));
    let mut add = |name: &str, write: &dyn Fn(&mut Logic) -> String| {
        let mut logic = Logic::new(widths);
        let [left, right] = [&a, &b].map(|sum| logic.sum(sum));
        let follows = format!("(= {} {})", compare(cond, &left, &right), write(&mut logic));
        all.push(logic.formula(format!("{cond} {name}"), Vec::new(), follows));
    };
    add("and its opposite", &|logic| {
        let [left, right] = [&a, &b].map(|sum| logic.sum(sum));
        format!("(not {})", compare(cond.complement(), &left, &right))
    });
    add("with its sides exchanged", &|logic| {
        let [left, right] = [&a, &b].map(|sum| logic.sum(sum));
        compare(cond.swap_args(), &right, &left)
    });
    add("as a requirement", &|logic| logic.requirement(&Requirement::new(cond, a.clone(), b.clone())));
    let integers = |logic: &mut Logic, with_sign, most: i128, swaps: bool| {
        let [left, right] = [&a, &b].map(|sum| extended(&logic.sum(sum), 2, with_sign));
        let (left, right) = if swaps { (right, left) } else { (left, right) };
        let bits = widths.wide + 2;
        let most = if most < 0 { format!("(bvneg (_ bv{} {bits}))", -most) } else { format!("(_ bv{most} {bits})") };
        format!("(bvsle (bvsub {left} {right}) {most})")
    };
    add("as a distance of integers", &|logic| match order(cond) {
        Order::Equal => format!("(and {} {})", integers(logic, false, 0, false), integers(logic, false, 0, true)),
        Order::NotEqual => format!("(or {} {})", integers(logic, true, -1, false), integers(logic, true, -1, true)),
        Order::Less { with_sign, most } => integers(logic, with_sign, most, false),
        Order::Greater { with_sign, most } => integers(logic, with_sign, most, true),
    });
}

/// A number in an arc has left it after the first step for which there is no room, if a step does not lead across what is not in the
/// arc. The arc is `0 ..= last`, as circles have no start; with less than a step left, there are `rest` numbers up to its end.
fn counts(widths: Widths, up: bool, all: &mut Vec<Formula>) {
    let mut logic = Logic::new(widths);
    let [last, rest, step] = ["last", "rest", "step"].map(|name| logic.any(name, widths.wide));
    let (direction, next) = match up {
        true => ("up", format!("(bvadd (bvsub {last} {rest}) {step})")),
        false => ("down", format!("(bvsub {rest} {step})")),
    };
    let given = vec![
        format!("(bvule {rest} {last})"),
        format!("(bvult {rest} {step})"),
        // The numbers that are not in the arc.
        format!("(bvule {step} (bvnot {last}))"),
    ];
    let name = format!("a number that steps {direction} and has no room for a step leaves its arc");
    all.push(logic.formula(name, given, format!("(bvugt {next} {last})")));
}

/// A multiple of what is small enough does not overflow, and how often a number goes into another is not more than that.
fn multiples(widths: Widths, all: &mut Vec<Formula>) {
    let bits = widths.wide;
    for factor in [3, 10, 64] {
        let mut logic = Logic::new(widths);
        let number = logic.any("number", bits);
        let given = vec![format!("(bvule {number} {})", constant(mask(bits) / factor, bits))];
        let wide = |text: &str| extended(text, bits, false);
        let product = format!("(bvmul {number} {})", constant(factor, bits));
        let exact = format!("(bvmul {} {})", wide(&number), wide(&constant(factor, bits)));
        let name = format!("a distance that is small enough, {factor} times, does not overflow");
        all.push(logic.formula(name, given, format!("(= {} {exact})", wide(&product))));
    }
}

/// What is extended.
fn extensions(widths: Widths, all: &mut Vec<Formula>) {
    let Widths { narrow, wide } = widths;
    let more = wide - narrow;
    let limit = constant(mask(narrow), wide);
    let mut add = |name: &str, write: &dyn Fn(&mut Logic) -> (Vec<String>, String)| {
        let mut logic = Logic::new(widths);
        let (given, follows) = write(&mut logic);
        all.push(logic.formula(name, given, follows));
    };
    add(
        "what starts at a narrow number and moves by no more than a narrow bound has room for has not wrapped",
        &|logic| {
            let least = logic.any("least", narrow);
            let [distance, moved, right] = ["distance", "moved", "right"].map(|name| logic.any(name, wide));
            let start = extended(&least, more, false);
            let end = format!("(bvadd {start} {distance})");
            let given = vec![
                format!("(bvuge {end} {distance})"),
                format!("(bvule {end} {right})"),
                format!("(bvule {right} {limit})"),
                format!("(bvule {moved} {distance})"),
            ];
            let number = format!("(bvadd {least} ((_ extract {} 0) {moved}))", narrow - 1);
            let number = extended(&number, more, false);
            (given, format!("(and (= {number} (bvadd {start} {moved})) (bvule {number} {right}))"))
        },
    );
    add("the distance of two extended numbers is narrow if the first is not the larger one", &|logic| {
        let [first, last] = ["first", "last"].map(|name| logic.any(name, narrow));
        let [wide_first, wide_last] = [&first, &last].map(|name| extended(name, more, false));
        (Vec::new(), format!("(= (bvule (bvsub {wide_last} {wide_first}) {limit}) (bvule {first} {last}))"))
    });
    for signed in [false, true] {
        comparisons_of_extended(widths, signed, all);
        let factors = [[1, 1], [8, -1], [-3, 4]];
        factors.into_iter().for_each(|factors| sums_of_extended(widths, (signed, factors), all));
    }
}

/// A comparison of an extended number, with what the narrow type can tell.
fn comparisons_of_extended(widths: Widths, signed: bool, all: &mut Vec<Formula>) {
    let Widths { narrow, wide } = widths;
    let mut logic = Logic::new(widths);
    let (number, bound) = (logic.any("number", narrow), logic.any("bound", wide));
    let reduced = format!("((_ extract {} 0) {bound})", narrow - 1);
    let is_same = |cond: IntCC| {
        let wide = compare(cond, &extended(&number, wide - narrow, signed), &bound);
        format!("(= {wide} {})", compare(cond, &number, &reduced))
    };
    let is_unsigned = |cond: IntCC| !is_signed(cond);
    let is_either = |cond: IntCC| matches!(cond, IntCC::Equal | IntCC::NotEqual);
    let own = IntCC::all().iter().copied().filter(|&cond| is_either(cond) || is_unsigned(cond) != signed);
    let all_same: Vec<String> = own.map(is_same).collect();
    let least = constant(if signed { 1 << (narrow - 1) } else { 0 }, wide);
    let given = vec![format!("(bvule (bvadd {bound} {least}) {})", constant(mask(narrow), wide))];
    let name = format!("a comparison of an extended number with what is narrow is one of the number, signed: {signed}");
    all.push(logic.formula(name, given, format!("(and {})", all_same.join(" "))));
}

/// A sum that is an integer of the narrow type is the same in more bits.
fn sums_of_extended(widths: Widths, (signed, factors): (bool, [i64; 2]), all: &mut Vec<Formula>) {
    let narrow = widths.narrow;
    let mut logic = Logic::new(widths);
    let [a, b, c] = ["a", "b", "c"].map(|name| logic.any(name, narrow));
    // Eight bits more than the wide type has hold all sums.
    let bits = widths.wide + 8;
    let exact = |text: &str| extended(text, bits - narrow, signed);
    let times = |bits: u32, number: &str, factor: i64| {
        let product = format!("(bvmul {number} {})", constant(factor.unsigned_abs(), bits));
        if factor < 0 { format!("(bvneg {product})") } else { product }
    };
    let sum = |bits: u32, [a, b, c]: [&str; 3]| {
        format!("(bvadd {c} {} {})", times(bits, a, factors[0]), times(bits, b, factors[1]))
    };
    let integer = sum(bits, [&exact(&a), &exact(&b), &exact(&c)]);
    let (least, largest) = match signed {
        true => (format!("(bvneg (_ bv{} {bits}))", 1_u64 << (narrow - 1)), mask(narrow - 1)),
        false => (constant(0, bits), mask(narrow)),
    };
    let given = vec![format!("(bvsle {least} {integer})"), format!("(bvsle {integer} (_ bv{largest} {bits}))")];
    let follows = format!("(= {} {integer})", exact(&sum(narrow, [&a, &b, &c])));
    let name = format!("a sum of numbers times {factors:?} that fits is the same extended, signed: {signed}");
    all.push(logic.formula(name, given, follows));
}

/// A bound as checks have it: a number that is extended, a multiple of it, and a constant.
fn any_sum(widths: Widths, dice: &mut Dice) -> Sum {
    let Widths { wide, .. } = widths;
    let mut sum = Sum::constant(dice.throw(20) as u64, wide);
    for _ in 0..1 + dice.throw(2) {
        let narrow = value(dice.throw(2) as u32, widths).offset(dice.throw(10) as i64 - 4);
        let extended = narrow.extended(wide, dice.one_in(8));
        sum.add(&extended, dice.pick(&[1, 1, 2, 8])).expect("few terms");
    }
    sum
}

/// What is enough for a list of requirements.
fn lists(widths: Widths, seed: u64, all: &mut Vec<Formula>) {
    let mut dice = Dice::new(seed);
    let limit = value(NARROW as u32 + dice.throw(2) as u32, widths);
    let mut required = Vec::new();
    for _ in 0..3 + dice.throw(5) {
        let cond =
            dice.pick(&[IntCC::UnsignedLessThanOrEqual, IntCC::UnsignedLessThanOrEqual, IntCC::UnsignedLessThan]);
        let right = limit.clone().offset(-(dice.throw(9) as i64));
        required.push(match dice.throw(6) {
            0 => Requirement::at_most(right, Sum::constant(mask(widths.narrow), widths.wide)),
            1 => Requirement::new(
                IntCC::UnsignedLessThan,
                Sum::constant(dice.throw(9) as u64, widths.wide),
                limit.clone(),
            ),
            _ => Requirement::new(cond, any_sum(widths, &mut dice), right),
        });
    }
    let fewer = simplified(required.clone());
    if fewer != required {
        let mut logic = Logic::new(widths);
        let given = vec![logic.all(&fewer)];
        let follows = logic.all(&required);
        all.push(logic.formula(
            format!("what is left of a list of requirements is enough, list {seed}"),
            given,
            follows,
        ));
    }
    for one in &required {
        let mut known = Vec::new();
        let taken = unwrapped(one.clone(), &mut |least| {
            known.push(least.clone());
            true
        });
        if taken != *one {
            let mut logic = Logic::new(widths);
            let given = vec![logic.all(&known), logic.requirement(&taken)];
            let follows = logic.requirement(one);
            all.push(logic.formula(format!("a constant comes out of an extension, list {seed}"), given, follows));
        }
        if let Some(is) = one.known() {
            let mut logic = Logic::new(widths);
            let follows = format!("(= {} {is})", logic.requirement(one));
            all.push(logic.formula(
                format!("a requirement is known to hold, or not to, list {seed}"),
                Vec::new(),
                follows,
            ));
        }
    }
}

/// What is done with sums is done with numbers.
fn sums(widths: Widths, seed: u64, all: &mut Vec<Formula>) {
    let Widths { narrow, wide } = widths;
    let mut dice = Dice::new(seed ^ 0xffff);
    let [a, b] = [any_sum(widths, &mut dice), any_sum(widths, &mut dice)];
    let mut equal = |name: &str, write: &dyn Fn(&mut Logic) -> [String; 2]| {
        let mut logic = Logic::new(widths);
        let [left, right] = write(&mut logic);
        all.push(logic.formula(format!("{name}, sum {seed}"), Vec::new(), format!("(= {left} {right})")));
    };
    if let Some(difference) = a.minus(&b) {
        equal("a difference of sums", &|logic| {
            [logic.sum(&difference), format!("(bvsub {} {})", logic.sum(&a), logic.sum(&b))]
        });
    }
    if let Some(reduced) = a.reduced(narrow) {
        equal("a sum in fewer bits", &|logic| {
            [logic.sum(&reduced), format!("((_ extract {} 0) {})", narrow - 1, logic.sum(&a))]
        });
        let again = reduced.clone().extended(wide, true);
        equal("a sum in more bits", &|logic| [logic.sum(&again), extended(&logic.sum(&reduced), wide - narrow, true)]);
    }
    let multiple = a.times(12);
    equal("a multiple of a sum", &|logic| {
        [logic.sum(&multiple), format!("(bvmul {} {})", logic.sum(&a), constant(12, wide))]
    });
    let mut logic = Logic::new(widths);
    let follows = format!("(bvule {} {})", logic.sum(&a), constant(a.most(), wide));
    all.push(logic.formula(format!("a sum is at most what it says, sum {seed}"), Vec::new(), follows));
    let mut logic = Logic::new(widths);
    let follows = format!("(bvuge {} {})", logic.sum(&a), constant(a.least(), wide));
    all.push(logic.formula(format!("a sum is at least what it says, sum {seed}"), Vec::new(), follows));
    if a.never_wraps() {
        let mut logic = Logic::new(widths);
        let follows = format!("(= {} {})", extended(&logic.sum(&a), 16, false), logic.integer(&a, 16));
        all.push(logic.formula(format!("a sum does not wrap, sum {seed}"), Vec::new(), follows));
    }
    if let Some(differences) = a.differences(&b) {
        let mut logic = Logic::new(widths);
        let apart = format!("(bvsub {} {})", logic.sum(&a), logic.sum(&b));
        let each: Vec<String> = differences.iter().map(|one| format!("(= {apart} {})", constant(*one, wide))).collect();
        let follows = format!("(or false {})", each.join(" "));
        all.push(logic.formula(format!("all distances of two sums, sum {seed}"), Vec::new(), follows));
    }
}

/// Mistakes, each of which the solver has to find.
fn wrong(all: &mut Vec<Formula>) {
    let widths = Widths { narrow: 32, wide: 64 };
    let mut add = |name: &str, write: &dyn Fn(&mut Logic) -> (Vec<String>, String)| {
        let mut logic = Logic::new(widths);
        let (given, follows) = write(&mut logic);
        all.push(Formula { is_true: false, ..logic.formula(name, given, follows) });
    };
    let range = |logic: &mut Logic| ["first", "last"].map(|name| logic.any(name, 32));
    add("wrong: what ends when it is equal does not end below its start", &|logic| {
        let [first, last] = range(logic);
        let [wide_first, wide_last] = [&first, &last].map(|name| extended(name, 32, false));
        (
            vec![format!("(distinct (bvsub {wide_first} {}) {wide_last})", constant(1, 64))],
            format!("(bvule {first} {last})"),
        )
    });
    add("wrong: a sum of constants is small if it is so in its type", &|logic| {
        let distance = logic.any("distance", 64);
        let end = format!("(bvadd {distance} {})", constant(10, 64));
        (vec![format!("(bvult {end} {})", constant(100, 64))], format!("(bvult {distance} {})", constant(100, 64)))
    });
    add("wrong: a factor does not make a distance vanish", &|logic| {
        let distance = logic.any("distance", 64);
        let far = format!("(bvshl {distance} {})", constant(32, 64));
        (vec![format!("(bvult {far} {})", constant(100, 64))], format!("(bvult {distance} {})", constant(100, 64)))
    });
}
