//! What a loop is, as a number that edits elsewhere do not change.

use crate::analysis::cfg::loops::{Loop, LoopForest};
use cranelift_codegen::FxHashMap;
use cranelift_codegen::ir::Function;

/// A hash of the instructions of a loop and of its inner loops, as their text is, with blocks, values and whatever else has a number renumbered as they come up.
pub(super) fn hash(func: &Function, forest: &LoopForest, lp: Loop) -> u64 {
    let mut words = Words::default();
    for &block in forest.blocks(lp) {
        words.add("block");
        words.add_entity("block", block.as_u32());
        for &param in func.dfg.block_params(block) {
            words.add_entity("v", param.as_u32());
            words.add(&func.dfg.value_type(param).to_string());
        }
        for inst in func.layout.block_insts(block) {
            for &result in func.dfg.inst_results(inst) {
                words.add_entity("v", result.as_u32());
            }
            words.add_text(&func.dfg.display_inst(inst).to_string());
        }
    }
    words.hash.0
}

/// Words that are hashed as they come.
#[derive(Default)]
struct Words {
    hash: Fnv,
    /// The numbers of the kinds of entities that have come up, in the order in which they did.
    numbers: FxHashMap<(&'static str, u32), u64>,
    counts: FxHashMap<&'static str, u64>,
}

impl Words {
    fn add(&mut self, word: &str) {
        self.hash.add(word.as_bytes());
        self.hash.add(&[0]);
    }

    fn add_entity(&mut self, kind: &'static str, number: u32) {
        let count = self.counts.entry(kind).or_default();
        let own = *self.numbers.entry((kind, number)).or_insert_with(|| {
            *count += 1;
            *count
        });
        self.add(kind);
        self.hash.add(&own.to_le_bytes());
    }

    /// Adds the text of an instruction, word for word.
    fn add_text(&mut self, text: &str) {
        for word in text.split_inclusive(|char: char| !char.is_ascii_alphanumeric()) {
            let (name, end) = match word.char_indices().last() {
                Some((at, last)) if !last.is_ascii_alphanumeric() => word.split_at(at),
                _ => (word, ""),
            };
            match entity(name) {
                Some((kind, number)) => self.add_entity(kind, number),
                None => self.add(name),
            }
            self.add(end);
        }
    }
}

/// The entity that a word of CLIF names, if it names one.
fn entity(word: &str) -> Option<(&'static str, u32)> {
    const KINDS: [&str; 11] = ["v", "block", "fn", "sig", "ss", "dss", "gv", "const", "region", "jt", "extable"];
    let digits = word.trim_start_matches(|char: char| char.is_ascii_alphabetic());
    let kind = KINDS.into_iter().find(|&kind| kind == &word[..word.len() - digits.len()])?;
    Some((kind, digits.parse().ok()?))
}

/// The hash FNV-1a of 64 bits (Fowler, Noll and Vo): the same in all versions and on all machines, as a file demands.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::context;

    fn keys(text: &str) -> Vec<u64> {
        let ctx = context(text);
        let forest = LoopForest::new(&ctx.func, &ctx.cfg, &ctx.domtree);
        forest.loops().map(|lp| hash(&ctx.func, &forest, lp)).collect()
    }

    const LOOP: &str = "function %f(i64) {
        block0(v0: i64):
            v1 = iconst.i64 0
            jump block1(v1)
        block1(v2: i64):
            v3 = iadd v2, v0
            v4 = icmp ult v3, v0
            brif v4, block1(v3), block2
        block2:
            return
        }";

    #[test]
    fn edits_elsewhere_do_not_matter() {
        let edited = "function %g(i32, i64) {
            block0(v10: i32, v0: i64):
                v11 = iconst.i64 0
                v12 = iconst.i64 5
                v14 = isub v0, v12
                jump block7(v11)
            block7(v22: i64):
                v31 = iadd v22, v14
                v4 = icmp ult v31, v14
                brif v4, block7(v31), block8
            block8:
                return
            }";
        assert_eq!(keys(LOOP), keys(edited));
    }

    #[test]
    fn edits_inside_matter() {
        for (old, new) in [("ult", "ule"), ("iadd", "isub"), ("ult v3, v0", "ult v0, v3"), ("block1(v3)", "block1(v2)")]
        {
            assert_ne!(keys(LOOP), keys(&LOOP.replace(old, new)), "{new}");
        }
    }
}
