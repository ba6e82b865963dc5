//! The names that the file has for what passes have made.
//!
//! Passes number what they make, and no reader finds such a number in the file. Value labels, which are there for debuggers, stay with
//! all copies of a value, and source locations stay with all copies of an instruction: so each value of the file is labelled with its own number.
//! What has no label is called by what computes it.

use super::emitted::block_of;
use cranelift_codegen::ir::{
    Block, Function, Inst, Opcode, RelSourceLoc, Value, ValueDef, ValueLabel, ValueLabelAssignments, ValueLabelStart,
};
use loopopt::Remark;
use std::collections::BTreeMap;

/// How many operations deep a value is described that is not in the file.
const DEPTH: usize = 2;

/// What cannot be described: what a memory cell holds in a register, or what is removed by now.
const NEW_VALUE: &str = "a new value";

/// Gives each of these values a label, its own number.
pub(super) fn label(func: &mut Function, is_known: impl Fn(Value) -> bool) {
    let values: Vec<Value> = func.dfg.values().filter(|&value| is_known(value)).collect();
    let start =
        |value: Value| ValueLabelStart { from: RelSourceLoc::default(), label: ValueLabel::from_u32(value.as_u32()) };
    let labels = values.into_iter().map(|value| (value, ValueLabelAssignments::Starts(vec![start(value)])));
    func.dfg.values_labels = Some(labels.collect());
}

/// Finds the names of the file.
pub(super) struct Origins<'a> {
    func: &'a Function,
    is_known: &'a dyn Fn(&str) -> bool,
    /// The blocks whose instructions are in a block now.
    blocks: BTreeMap<Block, Block>,
}

impl<'a> Origins<'a> {
    /// Of the function as passes have left it. What the file has is known.
    pub(super) fn new(func: &'a Function, is_known: &'a dyn Fn(&str) -> bool) -> Self {
        let origin = |block| func.layout.block_insts(block).find_map(|inst| block_of(func.srcloc(inst)));
        let blocks = func.layout.blocks().filter_map(|block| Some((block, origin(block)?))).collect();
        Self { func, is_known, blocks }
    }

    /// The remark with the names of the file.
    pub(super) fn renamed(&self, remark: &Remark) -> Remark {
        let mut renamed = remark.clone();
        renamed.message = self.rename(&remark.message).into();
        renamed.header = self.header(remark.header);
        renamed
    }

    /// What is said of a block that the file has not is said of what it is a copy of, or of the function as a whole.
    fn header(&self, block: Block) -> Block {
        let is_known = |block: &Block| (self.is_known)(&block.to_string());
        let origin = self.blocks.get(&block).copied().filter(is_known);
        Some(block).filter(is_known).or(origin).or(self.func.layout.entry_block()).unwrap_or(block)
    }

    fn rename(&self, message: &str) -> String {
        let renamed = replace_names(&without_constants(message), |name| match number(name)? {
            _ if (self.is_known)(name) => None,
            ("v", number) => Some(self.value(Value::from_u32(number), DEPTH)),
            (_, number) => Some(self.block(Block::from_u32(number))),
        });
        // An instruction without the result that nobody knows.
        renamed.replace(&format!("\"{NEW_VALUE} = "), "\"")
    }

    fn block(&self, block: Block) -> String {
        let origin = self.blocks.get(&block).filter(|origin| (self.is_known)(&origin.to_string()));
        origin.map_or_else(|| self.edge(block).unwrap_or_else(|| "a new block".to_owned()), Block::to_string)
    }

    /// A block that only jumps to another one is called by that, if the file has it.
    fn edge(&self, block: Block) -> Option<String> {
        let (layout, dfg) = (&self.func.layout, &self.func.dfg);
        let only = layout.is_block_inserted(block).then(|| layout.first_inst(block))??;
        let [next] = dfg.insts[only].branch_destination(&dfg.jump_tables, &dfg.exception_tables) else { return None };
        let next = next.block(&dfg.value_lists);
        let next = self.blocks.get(&next).copied().unwrap_or(next).to_string();
        (self.is_known)(&next).then(|| format!("the edge to {next}"))
    }

    fn value(&self, value: Value, depth: usize) -> String {
        let dfg = &self.func.dfg;
        if !dfg.value_is_valid_for_parser(value) {
            return NEW_VALUE.to_owned();
        }
        let resolved = dfg.resolve_aliases(value);
        let label = |value| Some(Value::from_u32(label_of(self.func, value)?).to_string());
        let own = |value: Value| Some(value.to_string()).filter(|name| (self.is_known)(name));
        let name = own(value).or_else(|| label(value)).or_else(|| own(resolved)).or_else(|| label(resolved));
        name.unwrap_or_else(|| match dfg.value_def(resolved) {
            ValueDef::Result(inst, 0) if dfg.insts[inst].opcode() != Opcode::Nop => self.operation(inst, depth),
            _ => NEW_VALUE.to_owned(),
        })
    }

    /// What an instruction computes: a number, or the operation with its operands.
    fn operation(&self, inst: Inst, depth: usize) -> String {
        let text = self.func.dfg.display_inst(inst).to_string();
        let text = without_constants(&text);
        let computed = text.split_once(" = ").map_or(&text[..], |(_, computed)| computed);
        let (opcode, operands) = computed.split_once(' ').unwrap_or((computed, ""));
        if opcode.starts_with("iconst.") {
            return operands.to_owned();
        }
        if depth == 0 {
            return format!("a result of `{opcode}`");
        }
        let operands = replace_names(operands, |name| match number(name)? {
            _ if (self.is_known)(name) => None,
            ("v", number) => Some(self.value(Value::from_u32(number), depth - 1)),
            _ => None,
        });
        let opcode = opcode.split('.').next().unwrap_or_default();
        format!("({opcode} {operands})")
    }
}

fn label_of(func: &Function, value: Value) -> Option<u32> {
    match func.dfg.values_labels.as_ref()?.get(&value)? {
        ValueLabelAssignments::Starts(starts) => starts.first().map(|start| start.label.as_u32()),
        ValueLabelAssignments::Alias { value, .. } => Some(value.as_u32()),
    }
}

/// The kind and the number of `v7` and `block7`.
fn number(name: &str) -> Option<(&str, u32)> {
    let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let kind = &name[..name.len() - digits.len()];
    (kind == "v" || kind == "block").then(|| Some((kind, digits.parse().ok()?)))?
}

/// The instructions that a text names by opcode and block, as in "`trapnz` in block5" and "`trapnz` of `v1 uge v2` in block5".
pub(super) fn instructions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices(" in block").filter_map(|(at, _)| {
        let block = &text[at + " in ".len()..];
        let block = &block[..block.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(block.len())];
        let mut quoted = text[..at].strip_suffix('`')?.rsplit('`');
        let last = quoted.next()?;
        let named = if quoted.next()? == " of " { quoted.next()? } else { last };
        Some((named.split([' ', '.']).next()?, block))
    })
}

/// The names of values and blocks in a text.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| number(word).is_some())
}

/// The text with other words in the place of some.
fn replace_names(text: &str, name: impl Fn(&str) -> Option<String>) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_word(c)).unwrap_or(from.len()));
        result.push_str(before);
        result.push_str(name(word).as_deref().unwrap_or(word));
        rest = after;
    }
    result + rest
}

/// The text without the constants that Cranelift prints after an instruction, as in `v3 = iadd v1, v2  ; v2 = 8`.
fn without_constants(text: &str) -> String {
    let mut parts = text.split("  ; ");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result.push_str(part.find('"').map_or("", |end| &part[end..]));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_words() {
        let text = "v1 of block22, v1x, xv1, ss0 and \"load.i64 v305+8\"";
        assert_eq!(names(text).collect::<Vec<_>>(), ["v1", "block22", "v305"]);
        let replaced = replace_names(text, |name| (name == "v1").then(|| "v7".to_owned()));
        assert_eq!(replaced, text.replacen("v1", "v7", 1));
    }

    #[test]
    fn instructions_have_an_opcode_and_a_block() {
        let text = "`trapnz` of `v8 uge v1` in block5, implied by the branch of block4, `trapz` in block2; `brif v7` in block10";
        let found: Vec<_> = instructions(text).collect();
        assert_eq!(found, [("trapnz", "block5"), ("trapz", "block2"), ("brif", "block10")]);
    }

    #[test]
    fn constants_behind_instructions_go() {
        let text = "\"v3 = iadd v1, v2  ; v2 = 8\" and \"v5 = iadd v1, v4  ; v4 = 1\"";
        assert_eq!(without_constants(text), "\"v3 = iadd v1, v2\" and \"v5 = iadd v1, v4\"");
        assert_eq!(without_constants("v3 = iadd v1, v2  ; v2 = 8"), "v3 = iadd v1, v2");
    }
}
