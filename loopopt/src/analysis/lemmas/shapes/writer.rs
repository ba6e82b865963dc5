//! Writes the instructions of a shape: constants, what is loop-invariant, and what is computed from counters.

use super::Widths;
use crate::analysis::lemmas::dice::Dice;
use std::fmt::Write;

/// What is done to a counter before it is compared.
#[derive(Clone, Copy)]
enum Part {
    /// It is reduced, if it is wide.
    Narrow,
    /// It is extended, if it is narrow.
    Wide,
    /// The same by its sign.
    Signed,
    /// A constant is added.
    Plus,
    /// Something loop-invariant is added.
    Other,
    /// It is shifted: by a few bits, or by as many that only one or none of the narrow type remains.
    Shift,
    /// It is shifted to the right, with or without its sign.
    Divide,
    Times,
    Mask,
}

/// Indices and addresses as front ends make them.
const RECIPES: &[&[Part]] = {
    use Part::{Divide, Mask, Narrow, Other, Plus, Shift, Signed, Times, Wide};
    &[
        &[],
        &[Plus],
        &[Wide],
        &[Wide, Other],
        &[Wide, Shift],
        &[Wide, Shift, Other],
        &[Wide, Plus],
        &[Wide, Times],
        &[Narrow],
        &[Narrow, Other],
        &[Narrow, Wide],
        &[Narrow, Wide],
        &[Narrow, Wide, Plus],
        &[Narrow, Wide, Other],
        &[Narrow, Wide, Shift],
        &[Narrow, Signed],
        &[Narrow, Signed, Plus],
        &[Narrow, Plus, Wide],
        &[Narrow, Shift, Wide],
        &[Narrow, Shift, Wide, Plus],
        &[Narrow, Times, Plus, Wide, Other],
        &[Narrow, Mask, Wide],
        &[Mask, Shift, Plus],
        &[Divide],
        &[Times, Divide, Plus],
        &[Plus, Divide, Wide],
        &[Wide, Divide, Other],
        &[Narrow, Divide, Wide],
        &[Narrow, Divide, Signed, Plus],
        &[Narrow, Times, Divide, Wide, Times, Other],
    ]
};

/// A value and its bits.
#[derive(Clone, Copy)]
pub(super) struct Number {
    pub(super) value: u32,
    pub(super) bits: u32,
}

/// Writes a shape.
pub(super) struct Writer {
    pub(super) dice: Dice,
    pub(super) widths: Widths,
    pub(super) text: String,
    pub(super) next: u32,
    /// Constants of the shape are far from each other, or not.
    pub(super) has_large: bool,
    /// Starts and ends are mostly constants.
    pub(super) prefers_constants: bool,
}

impl Writer {
    pub(super) fn line(&mut self, line: &str) {
        writeln!(self.text, "    {line}").expect("text");
    }

    pub(super) fn new_value(&mut self, bits: u32) -> Number {
        self.next += 1;
        Number { value: self.next - 1, bits }
    }

    /// `opcode.type` of some values.
    pub(super) fn op(&mut self, opcode: &str, bits: u32, args: &[Number]) -> Number {
        let result = self.new_value(bits);
        let args: Vec<String> = args.iter().map(|arg| format!("v{}", arg.value)).collect();
        let ty = match opcode {
            "uextend" | "sextend" | "ireduce" => format!(".i{bits}"),
            _ => String::new(),
        };
        self.line(&format!("v{} = {opcode}{ty} {}", result.value, args.join(", ")));
        result
    }

    pub(super) fn constant(&mut self, number: i64, bits: u32) -> Number {
        let result = self.new_value(bits);
        let unused = 64 - bits;
        let number = (number << unused) >> unused;
        self.line(&format!("v{} = iconst.i{bits} {number}", result.value));
        result
    }

    pub(super) fn compare(&mut self, cond: &str, [left, right]: [Number; 2]) -> Number {
        let result = self.new_value(8);
        self.line(&format!("v{} = icmp {cond} v{}, v{}", result.value, left.value, right.value));
        result
    }

    /// `number` in so many bits.
    pub(super) fn convert(&mut self, number: Number, bits: u32) -> Number {
        match number.bits.cmp(&bits) {
            std::cmp::Ordering::Equal => number,
            std::cmp::Ordering::Less => {
                let opcode = self.dice.pick(&["uextend", "uextend", "uextend", "sextend"]);
                self.op(opcode, bits, &[number])
            }
            std::cmp::Ordering::Greater => self.op("ireduce", bits, &[number]),
        }
    }

    /// A constant: small, or at an edge of a type.
    pub(super) fn any_constant(&mut self, bits: u32) -> Number {
        let half = 1_i64 << (self.widths.narrow - 1);
        let number = match self.has_large && self.dice.one_in(2) {
            true => self.dice.pick(&[half, half - 1, 2 * half, 2 * half - 1, -3, -1, half + half / 2, -half]),
            false => self.dice.throw(12) as i64,
        };
        self.constant(number, bits)
    }

    /// What a counter starts at, or what it is compared with: mostly `param`, or made of it.
    pub(super) fn invariant(&mut self, param: Number, bits: u32) -> Number {
        match self.dice.throw(8) {
            0 | 1 => self.any_constant(bits),
            2..6 if self.prefers_constants => self.any_constant(bits),
            2 => {
                let by = self.constant(2, param.bits);
                let shifted = self.op("ishl", param.bits, &[param, by]);
                let one = self.constant(1, param.bits);
                let sum = self.op("iadd", param.bits, &[shifted, one]);
                self.convert(sum, bits)
            }
            3 => {
                let number = self.convert(param, bits);
                let added = self.any_constant(bits);
                self.op("iadd", bits, &[number, added])
            }
            _ => self.convert(param, bits),
        }
    }

    /// What is computed from `counter`, and `other`, which is loop-invariant: mostly as programs do, or anything.
    pub(super) fn computed(&mut self, counter: Number, other: Number) -> Number {
        if self.dice.one_in(4) {
            return (0..1 + self.dice.throw(3)).fold(counter, |number, _| self.anything(number, other));
        }
        // A wide counter is mostly the narrow one of a front end.
        let is_narrowed = counter.bits == self.widths.wide && self.dice.one_in(2);
        let recipe = if is_narrowed { &[Part::Narrow, Part::Wide] } else { self.dice.pick(RECIPES) };
        recipe.iter().fold(counter, |number, part| self.part(*part, number, other))
    }

    fn part(&mut self, part: Part, number: Number, other: Number) -> Number {
        let Widths { narrow, wide } = self.widths;
        let bits = number.bits;
        match part {
            Part::Narrow => {
                if bits == wide {
                    self.op("ireduce", narrow, &[number])
                } else {
                    number
                }
            }
            Part::Wide => {
                if bits == narrow {
                    self.op("uextend", wide, &[number])
                } else {
                    number
                }
            }
            Part::Signed => {
                if bits == narrow {
                    self.op("sextend", wide, &[number])
                } else {
                    number
                }
            }
            Part::Plus => {
                let added = self.any_constant(bits);
                let opcode = self.dice.pick(&["iadd", "iadd", "isub"]);
                self.op(opcode, bits, &[number, added])
            }
            Part::Other => {
                let other = self.convert(other, bits);
                let opcode = self.dice.pick(&["iadd", "iadd", "isub"]);
                self.op(opcode, bits, &[number, other])
            }
            Part::Shift => {
                let by = self.dice.pick(&[1, 2, 3, i64::from(narrow) - 2, i64::from(narrow)]);
                let by = self.constant(by, bits);
                self.op("ishl", bits, &[number, by])
            }
            Part::Divide => {
                let by = self.dice.pick(&[1, 2, 3, i64::from(narrow) - 2]);
                let by = self.constant(by, bits);
                let opcode = self.dice.pick(&["ushr", "ushr", "sshr"]);
                self.op(opcode, bits, &[number, by])
            }
            Part::Times => {
                let times = self.dice.pick(&[3, 4, 10, -1, -2]);
                let times = self.constant(times, bits);
                self.op("imul", bits, &[number, times])
            }
            Part::Mask => {
                let mask = self.dice.pick(&[1, 7, 15, -2, -4]);
                let mask = self.constant(mask, bits);
                self.op("band", bits, &[number, mask])
            }
        }
    }

    /// What one instruction makes of `number`.
    fn anything(&mut self, number: Number, other: Number) -> Number {
        use Part::{Divide, Mask, Narrow, Other, Plus, Shift, Signed, Times, Wide};
        const PARTS: [Part; 9] = [Narrow, Wide, Signed, Plus, Other, Shift, Divide, Times, Mask];
        if self.dice.one_in(6) {
            return self.partway(number, other);
        }
        if !self.dice.one_in(3) {
            let part = self.dice.pick(&PARTS);
            return self.part(part, number, other);
        }
        let bits = number.bits;
        let opcode = self.dice.pick(&["ushr", "udiv", "urem", "umin", "umax", "smin", "smax", "bor", "bxor"]);
        let by = match opcode {
            "ushr" => self.constant(1, bits),
            "udiv" | "urem" => self.constant(5, bits),
            _ => self.convert(other, bits),
        };
        self.op(opcode, bits, &[number, by])
    }

    /// Some steps from `number` on to `other`, and no further: as if `other` were ahead.
    fn partway(&mut self, number: Number, other: Number) -> Number {
        let bits = number.bits;
        let other = self.convert(other, bits);
        let distance = self.op("isub", bits, &[other, number]);
        let steps = self.dice.pick(&[1, 3, 8]);
        let steps = self.constant(steps, bits);
        let steps = self.op("umin", bits, &[distance, steps]);
        self.op("iadd", bits, &[number, steps])
    }

    pub(super) fn steps(&mut self, counter: Number, by: i64) -> Number {
        let by = self.constant(by, counter.bits);
        self.op("iadd", counter.bits, &[counter, by])
    }
}
