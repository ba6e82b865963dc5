//! Functions that grow in one direction: to see in which of them compile time grows faster than the function.

use std::fmt::{self, Display, Write};

/// One direction.
pub struct Direction {
    /// Its name, for `--filter`.
    pub name: &'static str,
    /// How many there are in each function. Each number is twice the one before.
    pub sizes: [usize; 4],
    write: fn(&mut Writer, usize) -> Val,
}

/// All of them.
pub const DIRECTIONS: &[Direction] = &[
    Direction { name: "conditions per loop", sizes: [32, 64, 128, 256], write: conditions },
    Direction { name: "conditions per nest", sizes: [32, 64, 128, 256], write: parser },
    Direction { name: "exits per loop", sizes: [64, 128, 256, 512], write: exits },
    Direction { name: "checks per loop", sizes: [64, 128, 256, 512], write: checks },
    Direction { name: "loads and stores per loop", sizes: [64, 128, 256, 512], write: accesses },
    Direction { name: "loops per nest", sizes: [16, 32, 64, 128], write: siblings },
    Direction { name: "depth", sizes: [8, 16, 32, 64], write: depth },
    Direction { name: "targets of one br_table", sizes: [128, 256, 512, 1024], write: targets },
    Direction { name: "parameters", sizes: [50, 100, 200, 400], write: parameters },
    Direction { name: "parameters and latches", sizes: [50, 100, 200, 400], write: latches },
    Direction { name: "values of outer loops", sizes: [125, 250, 500, 1000], write: outer_values },
    Direction { name: "joins", sizes: [25, 50, 100, 200], write: |writer, count| joins(writer, count, 32) },
    Direction {
        name: "parameters of joins",
        sizes: [16, 32, 64, 128],
        write: |writer, count| joins(writer, 50, count),
    },
    Direction { name: "sums per loop", sizes: [50, 100, 200, 400], write: sums },
    Direction { name: "lengths per loop", sizes: [32, 64, 128, 256], write: lengths },
    Direction { name: "rare calls per loop", sizes: [16, 32, 64, 128], write: rare_calls },
    Direction { name: "short loops in a row", sizes: [25, 50, 100, 200], write: short_loops },
    Direction { name: "loops with a division", sizes: [250, 500, 1000, 2000], write: divisions },
];

impl Direction {
    /// A function `(pointer, length, flags) -> i64` with so many of them, as CLIF.
    pub fn function(&self, size: usize) -> String {
        let mut writer = Writer { text: String::new(), values: 0, blocks: 0 };
        writer.text.push_str("function %grown(i64, i64, i64) -> i64 system_v {\n");
        writer.text.push_str("    fn0 = %host_log(i64) -> i64\n");
        let entry = writer.block();
        writer.start(entry, 3);
        let result = (self.write)(&mut writer, size);
        writer.end(format_args!("return {result}"));
        writer.text.push_str("}\n");
        writer.text
    }
}

const POINTER: Val = Val(0);
const LENGTH: Val = Val(1);
const FLAGS: Val = Val(2);

/// A value, as CLIF names it. The first three are the parameters of the function.
#[derive(Clone, Copy)]
struct Val(usize);

/// A block, as CLIF names it.
#[derive(Clone, Copy)]
struct Label(usize);

impl Display for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

impl Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block{}", self.0)
    }
}

/// A function that is being written, from its first block to its last.
struct Writer {
    text: String,
    values: usize,
    blocks: usize,
}

impl Writer {
    /// A block that is not written yet.
    fn block(&mut self) -> Label {
        self.blocks += 1;
        Label(self.blocks - 1)
    }

    /// Starts a block with so many parameters.
    fn start(&mut self, block: Label, params: usize) -> Vec<Val> {
        let values: Vec<Val> = (self.values..self.values + params).map(Val).collect();
        self.values += params;
        let list: Vec<String> = values.iter().map(|value| format!("{value}: i64")).collect();
        match &list[..] {
            [] => self.line(format_args!("{block}:")),
            list => self.line(format_args!("{block}({}):", list.join(", "))),
        }
        values
    }

    /// An instruction with a result.
    fn value(&mut self, inst: impl Display) -> Val {
        let value = Val(self.values);
        self.values += 1;
        self.line(format_args!("    {value} = {inst}"));
        value
    }

    /// An instruction without a result.
    fn end(&mut self, inst: impl Display) {
        self.line(format_args!("    {inst}"));
    }

    fn line(&mut self, line: impl Display) {
        writeln!(self.text, "{line}").expect("a string takes everything");
    }

    fn constant(&mut self, number: usize) -> Val {
        self.value(format_args!("iconst.i64 {number}"))
    }

    /// `value + number`
    fn plus(&mut self, value: Val, number: usize) -> Val {
        let number = self.constant(number);
        self.value(format_args!("iadd {value}, {number}"))
    }

    /// Goes on in a new block if `condition` holds, and to `other` with `args` if not.
    fn unless(&mut self, condition: Val, other: Label, args: &[Val]) {
        let next = self.block();
        self.end(format_args!("brif {condition}, {next}, {other}{}", list(args)));
        self.start(next, 0);
    }

    /// `sum = if condition { sum + number } else { sum }`
    fn diamond(&mut self, condition: Val, sum: Val, number: usize) -> Val {
        let join = self.block();
        self.unless(condition, join, &[sum]);
        let more = self.plus(sum, number);
        self.end(format_args!("jump {join}({more})"));
        self.start(join, 1)[0]
    }

    /// `for i in 0..length { carried = body(i, carried) }`
    fn for_loop(&mut self, carried: &[Val], body: impl FnOnce(&mut Self, Val, &[Val]) -> Vec<Val>) -> Vec<Val> {
        self.for_loop_to(LENGTH, carried, body)
    }

    /// `for i in 0..end { carried = body(i, carried) }`
    fn for_loop_to(
        &mut self,
        end: Val,
        carried: &[Val],
        body: impl FnOnce(&mut Self, Val, &[Val]) -> Vec<Val>,
    ) -> Vec<Val> {
        let [header, exit] = [(); 2].map(|()| self.block());
        let zero = self.constant(0);
        self.end(format_args!("jump {header}{}", list(&[&[zero], carried].concat())));
        let params = self.start(header, 1 + carried.len());
        let i = params[0];
        let more = self.value(format_args!("icmp ult {i}, {end}"));
        self.unless(more, exit, &[]);
        let next = body(self, i, &params[1..]);
        let counter = self.plus(i, 1);
        self.end(format_args!("jump {header}{}", list(&[&[counter], &next[..]].concat())));
        self.start(exit, 0);
        params[1..].to_vec()
    }

    /// The same with one sum that starts at zero.
    fn summing(&mut self, body: impl FnOnce(&mut Self, Val, Val) -> Val) -> Val {
        let zero = self.constant(0);
        self.for_loop(&[zero], |writer, i, carried| vec![body(writer, i, carried[0])])[0]
    }

    /// `flags == number`
    fn flag(&mut self, number: usize) -> Val {
        let number = self.constant(number);
        self.value(format_args!("icmp eq {FLAGS}, {number}"))
    }

    fn sum(&mut self, values: &[Val]) -> Val {
        let add = |sum, &value| self.value(format_args!("iadd {sum}, {value}"));
        values[1..].iter().fold(values[0], add)
    }
}

/// What a branch passes.
fn list(values: &[Val]) -> String {
    let values: Vec<String> = values.iter().map(Val::to_string).collect();
    if values.is_empty() { String::new() } else { format!("({})", values.join(", ")) }
}

/// A loop with so many branches that take the same edge in each iteration.
fn conditions(writer: &mut Writer, count: usize) -> Val {
    writer.summing(|writer, i, sum| {
        let conditions = (0..count).fold(sum, |sum, number| {
            let flag = writer.flag(number);
            writer.diamond(flag, sum, number + 3)
        });
        writer.value(format_args!("bxor {conditions}, {i}"))
    })
}

/// What a parser is: a loop that decides by what it reads, with inner loops, and loop-invariant options all over it.
fn parser(writer: &mut Writer, count: usize) -> Val {
    writer.summing(|writer, i, sum| {
        let place = writer.value(format_args!("iadd {POINTER}, {i}"));
        let byte = writer.value(format_args!("uload8.i64 {place}"));
        let kind = writer.value(format_args!("icmp ugt {byte}, {FLAGS}"));
        let sum = writer.diamond(kind, sum, 7);
        let options = (0..count / 2).fold(sum, |sum, number| {
            let flag = writer.flag(number);
            let sum = writer.diamond(flag, sum, number + 3);
            let found = writer.value(format_args!("icmp eq {byte}, {sum}"));
            writer.diamond(found, sum, number + 5)
        });
        let zero = writer.constant(0);
        let inner = |writer: &mut Writer, j: Val, carried: &[Val]| {
            let sum = writer.value(format_args!("bxor {}, {j}", carried[0]));
            vec![(count / 2..count).fold(sum, |sum, number| {
                let flag = writer.flag(number);
                writer.diamond(flag, sum, number + 3)
            })]
        };
        let inner = writer.for_loop(&[zero], inner)[0];
        writer.value(format_args!("iadd {options}, {inner}"))
    })
}

/// A loop that is left at so many places, each with a result of its own.
fn exits(writer: &mut Writer, count: usize) -> Val {
    writer.summing(|writer, i, sum| {
        (0..count).fold(sum, |sum, number| {
            let place = writer.value(format_args!("iadd {POINTER}, {i}"));
            let byte = writer.value(format_args!("uload8.i64 {place}+{number}"));
            let goes_on = writer.value(format_args!("icmp ne {byte}, {sum}"));
            let [exit, next] = [(); 2].map(|()| writer.block());
            writer.end(format_args!("brif {goes_on}, {next}, {exit}"));
            writer.start(exit, 0);
            let result = writer.plus(sum, number);
            writer.end(format_args!("return {result}"));
            writer.start(next, 0);
            writer.value(format_args!("iadd {sum}, {byte}"))
        })
    })
}

/// A loop with so many accesses to an array, each with a check of its index.
fn checks(writer: &mut Writer, count: usize) -> Val {
    writer.summing(|writer, i, sum| {
        (0..count).fold(sum, |sum, number| {
            let index = writer.plus(i, number);
            let outside = writer.value(format_args!("icmp uge {index}, {FLAGS}"));
            writer.end(format_args!("trapnz {outside}, heap_oob"));
            let place = writer.value(format_args!("iadd {POINTER}, {index}"));
            let byte = writer.value(format_args!("uload8.i64 notrap {place}"));
            writer.value(format_args!("iadd {sum}, {byte}"))
        })
    })
}

/// A loop with so many loads, and as many stores that may or may not be to the same places.
fn accesses(writer: &mut Writer, count: usize) -> Val {
    writer.summing(|writer, i, sum| {
        let three = writer.constant(3);
        let offset = writer.value(format_args!("ishl {i}, {three}"));
        let [from, to] = [POINTER, FLAGS].map(|base| writer.value(format_args!("iadd {base}, {offset}")));
        (0..count).fold(sum, |sum, number| {
            let loaded = writer.value(format_args!("load.i64 {from}+{}", 8 * number));
            let sum = writer.value(format_args!("iadd {sum}, {loaded}"));
            writer.end(format_args!("store {sum}, {to}+{}", 16 * number));
            sum
        })
    })
}

/// So many loops in a row, each with a division by a loop-invariant value.
fn divisions(writer: &mut Writer, count: usize) -> Val {
    let one = writer.constant(1);
    (0..count).fold(one, |sum, number| {
        let divisor = writer.plus(POINTER, number);
        let inner = |writer: &mut Writer, j: Val, carried: &[Val]| {
            let quotient = writer.value(format_args!("udiv {FLAGS}, {divisor}"));
            let sum = writer.value(format_args!("iadd {}, {quotient}", carried[0]));
            vec![writer.value(format_args!("bxor {sum}, {j}"))]
        };
        writer.for_loop(&[sum], inner)[0]
    })
}

/// A loop with so many inner loops, one after the other.
fn siblings(writer: &mut Writer, count: usize) -> Val {
    writer.summing(|writer, _, sum| {
        (0..count).fold(sum, |sum, number| {
            let inner = |writer: &mut Writer, j: Val, carried: &[Val]| {
                let place = writer.value(format_args!("iadd {POINTER}, {j}"));
                let byte = writer.value(format_args!("uload8.i64 {place}+{number}"));
                vec![writer.value(format_args!("iadd {}, {byte}", carried[0]))]
            };
            writer.for_loop(&[sum], inner)[0]
        })
    })
}

/// A nest of so many loops.
fn depth(writer: &mut Writer, count: usize) -> Val {
    fn nest(writer: &mut Writer, sum: Val, count: usize) -> Val {
        let inner = |writer: &mut Writer, i: Val, carried: &[Val]| {
            let place = writer.value(format_args!("iadd {POINTER}, {i}"));
            let byte = writer.value(format_args!("uload8.i64 {place}+{count}"));
            let sum = writer.value(format_args!("iadd {}, {byte}", carried[0]));
            vec![if count > 1 { nest(writer, sum, count - 1) } else { sum }]
        };
        writer.for_loop(&[sum], inner)[0]
    }
    let zero = writer.constant(0);
    nest(writer, zero, count)
}

/// An interpreter's loop: a `br_table` with so many targets, each of which goes back to it.
fn targets(writer: &mut Writer, count: usize) -> Val {
    writer.summing(|writer, i, sum| {
        let place = writer.value(format_args!("iadd {POINTER}, {i}"));
        let opcode = writer.value(format_args!("uload32 {place}"));
        let index = writer.value(format_args!("ireduce.i32 {opcode}"));
        let join = writer.block();
        let cases: Vec<Label> = (0..count).map(|_| writer.block()).collect();
        let calls: Vec<String> = cases.iter().map(Label::to_string).collect();
        writer.end(format_args!("br_table {index}, {join}({sum}), [{}]", calls.join(", ")));
        for (number, case) in cases.into_iter().enumerate() {
            writer.start(case, 0);
            let next = writer.plus(sum, number);
            writer.end(format_args!("jump {join}({next})"));
        }
        writer.start(join, 1)[0]
    })
}

/// What `count` parameters start with.
fn starts(writer: &mut Writer, count: usize) -> Vec<Val> {
    (0..count).map(|number| writer.plus(FLAGS, number)).collect()
}

/// A loop that carries so many values from one iteration to the next.
fn parameters(writer: &mut Writer, count: usize) -> Val {
    let starts = starts(writer, count);
    let body = |writer: &mut Writer, i: Val, carried: &[Val]| {
        let next = |&value: &Val| writer.value(format_args!("bxor {value}, {i}"));
        carried.iter().map(next).collect()
    };
    let ends = writer.for_loop(&starts, body);
    writer.sum(&ends)
}

/// The same with several paths through the iteration.
fn latches(writer: &mut Writer, count: usize) -> Val {
    let starts = starts(writer, count);
    let body = |writer: &mut Writer, i: Val, carried: &[Val]| {
        let join = writer.block();
        for kind in 0..4 {
            let place = writer.value(format_args!("iadd {POINTER}, {i}"));
            let byte = writer.value(format_args!("uload8.i64 {place}+{kind}"));
            let [side, next] = [(); 2].map(|()| writer.block());
            writer.end(format_args!("brif {byte}, {side}, {next}"));
            writer.start(side, 0);
            let own: Vec<Val> =
                carried.iter().map(|value| writer.value(format_args!("bxor {value}, {byte}"))).collect();
            writer.end(format_args!("jump {join}{}", list(&own)));
            writer.start(next, 0);
        }
        writer.end(format_args!("jump {join}{}", list(carried)));
        writer.start(join, carried.len())
    };
    let ends = writer.for_loop(&starts, body);
    writer.sum(&ends)
}

/// An inner loop that uses so many values of the outer one.
fn outer_values(writer: &mut Writer, count: usize) -> Val {
    writer.summing(|writer, i, sum| {
        let place = writer.value(format_args!("iadd {POINTER}, {i}"));
        let values: Vec<Val> =
            (0..count).map(|number| writer.value(format_args!("load.i64 {place}+{}", 8 * number))).collect();
        let inner = |writer: &mut Writer, j: Val, carried: &[Val]| {
            let mixed = |sum, &value| {
                let sum = writer.value(format_args!("iadd {sum}, {value}"));
                writer.value(format_args!("bxor {sum}, {j}"))
            };
            vec![values.iter().fold(carried[0], mixed)]
        };
        writer.for_loop(&[sum], inner)[0]
    })
}

/// A loop with so many joins, in each of which so many values change their places, or not.
fn joins(writer: &mut Writer, count: usize, params: usize) -> Val {
    let starts = starts(writer, params);
    let ends = writer.for_loop(&starts, |writer, i, carried| {
        let mut values = carried.to_vec();
        let loaded = writer.value(format_args!("load.i64 {POINTER}"));
        values[0] = writer.value(format_args!("iadd {loaded}, {i}"));
        for number in 0..count {
            let limit = writer.constant(number);
            let is_more = writer.value(format_args!("icmp ugt {}, {limit}", values[number % params]));
            let join = writer.block();
            writer.unless(is_more, join, &values);
            values.rotate_left(1);
            writer.end(format_args!("jump {join}{}", list(&values)));
            values = writer.start(join, params);
        }
        values
    });
    writer.sum(&ends)
}

/// `pointer[i + number]`
fn byte(writer: &mut Writer, i: Val, number: usize) -> Val {
    let place = writer.value(format_args!("iadd {POINTER}, {i}"));
    writer.value(format_args!("uload8.i64 {place}+{number}"))
}

/// A loop with so many sums of what it loads.
fn sums(writer: &mut Writer, count: usize) -> Val {
    let starts = starts(writer, count);
    let ends = writer.for_loop(&starts, |writer, i, carried| {
        let next = carried.iter().enumerate().map(|(number, sum)| {
            let byte = byte(writer, i, number);
            writer.value(format_args!("iadd {sum}, {byte}"))
        });
        next.collect()
    });
    writer.sum(&ends)
}

/// A loop that compares its counter with so many lengths.
fn lengths(writer: &mut Writer, count: usize) -> Val {
    let lengths: Vec<Val> =
        (0..count).map(|number| writer.value(format_args!("load.i64 {POINTER}+{}", 8 * number))).collect();
    writer.summing(|writer, i, sum| {
        lengths.iter().fold(sum, |sum, length| {
            let outside = writer.value(format_args!("icmp uge {i}, {length}"));
            writer.end(format_args!("trapnz {outside}, heap_oob"));
            let byte = byte(writer, i, 0);
            writer.value(format_args!("iadd {sum}, {byte}"))
        })
    })
}

/// A loop that calls at so many places, at each of them seldom.
fn rare_calls(writer: &mut Writer, count: usize) -> Val {
    writer.summing(|writer, i, sum| {
        (0..count).fold(sum, |sum, number| {
            let byte = byte(writer, i, number);
            let limit = writer.constant(250);
            let is_rare = writer.value(format_args!("icmp ugt {byte}, {limit}"));
            let [rare, join] = [(); 2].map(|()| writer.block());
            writer.end(format_args!("brif {is_rare}, {rare}, {join}({sum})"));
            writer.line(format_args!("{rare} cold:"));
            let result = writer.value(format_args!("call fn0({byte})"));
            writer.end(format_args!("jump {join}({result})"));
            writer.start(join, 1)[0]
        })
    })
}

/// So many loops of eight iterations, one after the other.
fn short_loops(writer: &mut Writer, count: usize) -> Val {
    let zero = writer.constant(0);
    (0..count).fold(zero, |sum, number| {
        let eight = writer.constant(8);
        let body = |writer: &mut Writer, i: Val, carried: &[Val]| {
            let byte = byte(writer, i, number);
            vec![writer.value(format_args!("iadd {}, {byte}", carried[0]))]
        };
        writer.for_loop_to(eight, &[sum], body)[0]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopopt::oracle::{Case, Program, check};

    #[test]
    fn functions_are_right_and_stay_the_same() {
        for direction in DIRECTIONS {
            let text = direction.function(6);
            let program = Program::parse(&text).unwrap_or_else(|error| panic!("{}: {error:#}\n{text}", direction.name));
            let call = |text| program.parse_call(text).expect("the call is right");
            let calls = ["grown(mem, 0, mem+4096)", "grown(mem, 2, mem+4096)", "grown(mem, 40, mem+4096)"].map(call);
            let cases = calls.map(|call| Case { call, memory: (0..=255).cycle().take(8192).collect() });
            let agreement = check(&program, &cases, &loopopt::Options::default())
                .unwrap_or_else(|error| panic!("{}: {error:#}", direction.name));
            assert!(agreement.compared > 1, "{}", direction.name);
        }
    }

    #[test]
    fn sizes_double_and_functions_grow_with_them() {
        for direction in DIRECTIONS {
            assert!(direction.sizes.windows(2).all(|pair| pair[1] == 2 * pair[0]), "{}", direction.name);
            let length = |size| direction.function(size).len() as f64;
            let growth = length(2 * direction.sizes[0]) / length(direction.sizes[0]);
            assert!((1.5..2.3).contains(&growth), "{}: {growth}", direction.name);
        }
    }
}
