//! Machine code as text, with labels in the place of addresses and the loops marked.

use crate::machine::{EmittedLoop, Flow, is_jump};
use iced_x86::{Formatter as _, Instruction, IntelFormatter, OpKind};
use std::collections::BTreeMap;

/// A line of a listing.
pub struct Line {
    /// The offset of the instruction, if the line is one and no label or remark.
    pub offset: Option<u64>,
    /// What it holds.
    pub text: String,
}

/// Machine code as text. Innermost loops have a bar at their left and a line that says how long they are, and where in the
/// function they start, since the place within a cache line makes a difference.
pub fn listing(code: &[u8]) -> String {
    lines(code).into_iter().flat_map(|line| [line.text, "\n".to_owned()]).collect()
}

/// The lines of [`listing`].
pub fn lines(code: &[u8]) -> Vec<Line> {
    let flow = Flow::new(code);
    let loops = flow.loops();
    let labels: BTreeMap<u64, String> =
        flow.targets().into_iter().enumerate().map(|(number, offset)| (offset, format!("L{number}"))).collect();
    let mut formatter = formatter();
    let mut lines = Vec::new();
    for (&offset, inst) in &flow.insts {
        for lp in loops.iter().filter(|lp| lp.head == offset && lp.is_innermost) {
            lines.push(Line { offset: None, text: format!("; at {offset:#x}: {}", summary(lp)) });
        }
        if let Some(label) = labels.get(&offset) {
            lines.push(Line { offset: None, text: format!("{label}:") });
        }
        let inner = loops.iter().any(|lp| lp.is_innermost && lp.offsets.contains(&offset));
        let margin = if inner { "  | " } else { "    " };
        let text = format!("{margin}{}", instruction(&mut formatter, inst, &labels));
        lines.push(Line { offset: Some(offset), text });
    }
    lines
}

/// A loop in one line.
pub fn summary(lp: &EmittedLoop) -> String {
    let mut text = format!("loop of {}", count(lp.insts, "instruction"));
    let mut parts = vec![(lp.jumps, "jump"), (lp.loads, "load"), (lp.stores, "store")];
    parts.push((lp.stack_accesses, "stack access"));
    for (number, what) in parts.into_iter().filter(|(number, _)| *number > 0) {
        text.push_str(&format!(", {}", count(number, what)));
    }
    if !lp.is_contiguous {
        text.push_str(", with other code between");
    }
    text
}

/// A number and a word, in the plural if need be.
pub fn count(number: usize, what: &str) -> String {
    match what {
        _ if number == 1 => format!("1 {what}"),
        _ if what.ends_with('s') => format!("{number} {what}es"),
        _ => format!("{number} {what}s"),
    }
}

fn formatter() -> IntelFormatter {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_space_after_operand_separator(true);
    options.set_rip_relative_addresses(true);
    formatter
}

fn instruction(formatter: &mut IntelFormatter, inst: &Instruction, labels: &BTreeMap<u64, String>) -> String {
    let mut text = String::new();
    let label = labels.get(&inst.near_branch_target());
    match label.filter(|_| is_jump(inst) && inst.op0_kind() == OpKind::NearBranch64) {
        Some(label) => {
            formatter.format_mnemonic(inst, &mut text);
            text.push(' ');
            text.push_str(label);
        }
        None => formatter.format(inst, &mut text),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_have_labels_and_loops_are_marked() {
        // xor eax, eax; L0: add rax, [rdi]; jne L0; ret
        let text = listing(&[0x31, 0xC0, 0x48, 0x03, 0x07, 0x75, 0xFB, 0xC3]);
        let expected = "    xor eax, eax\n; at 0x2: loop of 2 instructions, 1 jump, 1 load\nL0:\n  | add rax, [rdi]\n  | jne L0\n    ret\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn counts_are_spelled() {
        assert_eq!(count(1, "jump"), "1 jump");
        assert_eq!(count(2, "stack access"), "2 stack accesses");
    }
}
