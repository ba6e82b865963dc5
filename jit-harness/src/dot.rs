//! The flow graph of a function as text for Graphviz, before and after: loops are boxes around their blocks, back edges are thick, and
//! cold blocks are grey.

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function};
use loopopt::analysis::cfg::loops::{Loop, LoopForest};
use std::collections::{BTreeSet, HashMap};

/// The graph of the function before and after.
pub fn graph(name: &str, [before, after]: [&Function; 2]) -> String {
    let mut text = format!("digraph {} {{\n  node [shape=box, fontname=monospace]\n", quoted(name));
    for (when, func) in [("before", before), ("after", after)] {
        text.push_str(&format!(
            "  subgraph cluster_{when} {{\n    label={}\n",
            quoted(&format!("%{name} {when} loopopt"))
        ));
        let mut graph = Graph::new(func, when);
        graph.push_blocks(None, "    ");
        graph.push_edges("    ");
        text.push_str(&graph.text);
        text.push_str("  }\n");
    }
    text + "}\n"
}

/// The graph of a function, while it is written.
struct Graph<'a> {
    func: &'a Function,
    forest: LoopForest,
    /// The loops in each loop, and in none.
    inner: HashMap<Option<Loop>, Vec<Loop>>,
    /// What distinguishes the blocks of one function from those of the other.
    when: &'a str,
    text: String,
}

impl<'a> Graph<'a> {
    fn new(func: &'a Function, when: &'a str) -> Self {
        let cfg = ControlFlowGraph::with_function(func);
        let forest = LoopForest::new(func, &cfg, &DominatorTree::with_function(func, &cfg));
        let mut inner: HashMap<Option<Loop>, Vec<Loop>> = HashMap::new();
        for lp in forest.loops() {
            inner.entry(forest.data(lp).parent).or_default().push(lp);
        }
        Self { func, forest, inner, when, text: String::new() }
    }

    /// The blocks of a loop, or of none, with the inner loops.
    fn push_blocks(&mut self, lp: Option<Loop>, indent: &str) {
        let own: Vec<Block> = match lp {
            Some(lp) => self.forest.own_blocks(lp).collect(),
            None => self.func.layout.blocks().filter(|&block| self.forest.innermost(block).is_none()).collect(),
        };
        for block in own {
            let cold = if self.func.layout.is_cold(block) { ", style=filled, fillcolor=lightgrey" } else { "" };
            let node = format!("{indent}{} [label={}{cold}]\n", self.id(block), quoted(&self.listing(block)));
            self.text.push_str(&node);
        }
        for inner in self.inner.remove(&lp).unwrap_or_default() {
            let header = self.forest.data(inner).header;
            let start =
                format!("{indent}subgraph cluster_{} {{\n{indent}  label=\"loop at {header}\"\n", self.id(header));
            self.text.push_str(&start);
            self.push_blocks(Some(inner), &format!("{indent}  "));
            self.text.push_str(&format!("{indent}}}\n"));
        }
    }

    /// One arrow for all edges from one block to another.
    fn push_edges(&mut self, indent: &str) {
        for block in self.func.layout.blocks() {
            let targets: BTreeSet<Block> = self.func.block_successors(block).collect();
            for target in targets {
                let is_back_edge = self.forest.loop_of_header(target).is_some_and(|lp| self.forest.contains(lp, block));
                let style = if is_back_edge { " [penwidth=3]" } else { "" };
                self.text.push_str(&format!("{indent}{} -> {}{style}\n", self.id(block), self.id(target)));
            }
        }
    }

    fn id(&self, block: Block) -> String {
        format!("{}_{block}", self.when)
    }

    /// A block with its parameters and instructions.
    fn listing(&self, block: Block) -> String {
        let dfg = &self.func.dfg;
        let params: Vec<String> =
            dfg.block_params(block).iter().map(|&param| format!("{param}: {}", dfg.value_type(param))).collect();
        let insts = self.func.layout.block_insts(block).map(|inst| format!("  {}\n", dfg.display_inst(inst)));
        format!("{block}({}):\n{}", params.join(", "), insts.collect::<String>())
    }
}

/// The text as a string of Graphviz, with lines that begin at the left.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\l"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted() {
        assert_eq!(quoted("a \"b\"\\\nc"), r#""a \"b\"\\\lc""#);
    }

    #[test]
    fn loops_are_boxes_and_cold_blocks_are_grey() {
        let text = "function %f(i64) {\nblock0(v0: i64):\n    jump block1\nblock1:\n    jump block2\nblock2:\n    brif v0, block2, block3\nblock3:\n    brif v0, block1, block4\nblock4 cold:\n    return\n}\n";
        let functions = cranelift_reader::parse_functions(text).expect("it is CLIF");
        let graph = graph("f", [&functions[0]; 2]);
        let nest = "    subgraph cluster_before_block1 {\n      label=\"loop at block1\"\n";
        let inner =
            "      subgraph cluster_before_block2 {\n        label=\"loop at block2\"\n        before_block2 [label=";
        for part in [nest, inner, "after_block4 [label=\"block4():\\l  return\\l\", style=filled, fillcolor=lightgrey]"]
        {
            assert!(graph.contains(part), "{part}: {graph}");
        }
        for edge in ["before_block2 -> before_block2 [penwidth=3]\n", "before_block3 -> before_block1 [penwidth=3]\n"] {
            assert!(graph.contains(edge), "{edge}: {graph}");
        }
        assert_eq!(graph.matches("penwidth").count(), 4, "{graph}");
        assert_eq!(graph.matches('{').count(), graph.matches('}').count());
    }
}
