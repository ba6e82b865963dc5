//! What can be seen of a run, and what differs between two of them.

use std::fmt;

/// What can be seen of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// How it ended.
    pub outcome: Outcome,
    /// What was written to the standard output.
    pub stdout: Vec<u8>,
    /// What was written to the standard error.
    pub stderr: Vec<u8>,
    /// All memories of the store.
    pub memories: Vec<Digest>,
    /// All globals of the store.
    pub globals: Vec<String>,
    /// Fuel that was left, if fuel was counted.
    pub fuel: Option<u64>,
    /// What the second call gave, if there is one.
    pub then: Option<Outcome>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The function returned these values.
    Returned(Vec<String>),
    /// The program ended itself with this exit code.
    Exited(i32),
    /// It trapped.
    Trapped {
        /// Why: Wasmtime's name of the trap, in small letters.
        code: String,
        /// Where: the functions that were active, the innermost first, and offsets in the module.
        frames: Vec<(u32, Option<usize>)>,
    },
    /// The stack was used up. How deep a program gets depends on the frames of its functions, and what it did on its way there
    /// can't be compared.
    StackExhausted,
    /// Something else came up: an exception that nobody catches, an error of the host.
    Failed(String),
}

/// Size and hash of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Bytes.
    pub size: usize,
    /// The hash of all of them.
    pub hash: u64,
}

impl Observation {
    /// What differs from `other`, in one line. `self` is without loopopt, `other` with it.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.outcome == Outcome::StackExhausted || other.outcome == Outcome::StackExhausted {
            return None;
        }
        if !self.outcome.is_like(&other.outcome) {
            return Some(format!("it {} without loopopt, and {} with it", self.outcome, other.outcome));
        }
        let streams =
            [("standard output", &self.stdout, &other.stdout), ("standard error", &self.stderr, &other.stderr)];
        if let Some((name, a, b)) = streams.into_iter().find(|(_, a, b)| a != b) {
            let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
            return Some(format!("its {name} differs from byte {same} on"));
        }
        if self.memories != other.memories {
            let at = self.memories.iter().zip(&other.memories).position(|(a, b)| a != b).unwrap_or_default();
            return Some(format!("memory {at} is another with loopopt"));
        }
        if self.globals != other.globals {
            let at = self.globals.iter().zip(&other.globals).position(|(a, b)| a != b).unwrap_or_default();
            let [a, b] = [self, other].map(|seen| seen.globals.get(at).map_or("absent", String::as_str));
            return Some(format!("global {at} is {a} without loopopt, and {b} with it"));
        }
        if let (Some(a), Some(b)) = (&self.then, &other.then)
            && !a.is_like(b)
        {
            return Some(format!("the second call {a} without loopopt, and {b} with it"));
        }
        (self.fuel != other.fuel)
            .then(|| format!("fuel left is {} without loopopt, and {} with it", show(self.fuel), show(other.fuel)))
    }
}

/// Traps of accesses. Lowering can make a load a part of the instruction that uses its value, if both are in one block, and the
/// place of its trap is the other instruction's then. loopopt merges blocks, and the same can happen in stock Cranelift.
const OF_ACCESSES: [&str; 2] = ["memory-out-of-bounds", "null-reference"];

impl Outcome {
    /// Whether two runs ended in the same way: the same but for the offset of an access that trapped, in the innermost frame.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Trapped { code, frames }, Self::Trapped { code: other_code, frames: others })
                if OF_ACCESSES.contains(&code.as_str()) && code == other_code =>
            {
                let innermost = |frames: &[(u32, Option<usize>)]| frames.first().map(|(function, _)| *function);
                innermost(frames) == innermost(others) && frames.get(1..) == others.get(1..)
            }
            _ => self == other,
        }
    }
}

fn show(fuel: Option<u64>) -> String {
    fuel.map_or("not counted".to_owned(), |fuel| fuel.to_string())
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Returned(values) if values.is_empty() => f.write_str("returned"),
            Self::Returned(values) => write!(f, "returned {}", values.join(", ")),
            Self::Exited(code) => write!(f, "exited with {code}"),
            Self::Trapped { code, frames } => {
                write!(f, "trapped: {code}")?;
                match frames.first() {
                    Some((function, Some(offset))) => write!(f, " in function {function} at {offset:#x}"),
                    Some((function, None)) => write!(f, " in function {function}"),
                    None => Ok(()),
                }
            }
            Self::StackExhausted => f.write_str("used up the stack"),
            Self::Failed(what) => write!(f, "failed: {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returned(value: &str) -> Observation {
        Observation {
            outcome: Outcome::Returned(vec![value.to_owned()]),
            stdout: b"abc".to_vec(),
            stderr: Vec::new(),
            memories: vec![Digest { size: 1, hash: 2 }],
            globals: vec!["7".to_owned()],
            fuel: Some(10),
            then: None,
        }
    }

    #[test]
    fn each_part_counts() {
        let seen = returned("1");
        assert_eq!(seen.difference(&seen.clone()), None);
        let other = |change: fn(&mut Observation)| {
            let mut other = returned("1");
            change(&mut other);
            seen.difference(&other).expect("it differs")
        };
        assert_eq!(
            seen.difference(&returned("2")).expect("it differs"),
            "it returned 1 without loopopt, and returned 2 with it"
        );
        assert_eq!(other(|seen| seen.stdout[1] = 0), "its standard output differs from byte 1 on");
        assert_eq!(other(|seen| seen.stderr.push(0)), "its standard error differs from byte 0 on");
        assert_eq!(other(|seen| seen.memories[0].hash = 0), "memory 0 is another with loopopt");
        assert_eq!(other(|seen| seen.globals[0].push('0')), "global 0 is 7 without loopopt, and 70 with it");
        assert_eq!(other(|seen| seen.fuel = Some(9)), "fuel left is 10 without loopopt, and 9 with it");
    }

    #[test]
    fn traps_differ_by_place() {
        let trap = |code: &str, offset| Observation {
            outcome: Outcome::Trapped { code: code.to_owned(), frames: vec![(3, Some(offset)), (1, Some(99))] },
            ..returned("1")
        };
        let difference = trap("unreachable", 16).difference(&trap("unreachable", 32)).expect("it differs");
        assert!(difference.contains("trapped: unreachable in function 3 at 0x20 with it"), "{difference}");
        let access = |offset| trap("memory-out-of-bounds", offset);
        assert_eq!(access(16).difference(&access(32)), None);
        let mut elsewhere = access(16);
        elsewhere.outcome =
            Outcome::Trapped { code: "memory-out-of-bounds".to_owned(), frames: vec![(3, Some(16)), (1, Some(98))] };
        assert!(access(16).difference(&elsewhere).is_some());
    }
}
