//! SSA construction: a variable that is written and read in any block, in memory until now, becomes values.
//!
//! ```text
//! block1:                          block1:
//!     store v1, slot                   jump block3(v1)
//!     jump block3                  block2:
//! block2:                    ──►       jump block3(v2)
//!     store v2, slot               block3(v4: i64):
//!     jump block3                      return v4
//! block3:
//!     v3 = load.i64 slot
//!     return v3
//! ```
//!
//! A block gets a parameter where definitions meet ([`crate::edit::ssa::frontier`]) and the variable is read before it is written
//! again. Edges of all kinds pass arguments, also those of a `try_call` to its handlers: what the call itself gives does not
//! matter, the variable is as it was before the call.
//!
//! Where a variable is read before it was written at all, it is zero: the program may not rely on anything there, and zero
//! tells nobody what was on the stack before.

use crate::analysis::cfg::edges::edges_into;
use crate::edit::TooManyParams;
use crate::edit::cfg::split_edges::append_arg;
use crate::edit::ssa::frontier::Frontier;
use crate::fault::fault;
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::entity::packed_option::PackedOption;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64};
use cranelift_codegen::ir::{Block, Function, InstBuilder, Type, Value, types};
use std::collections::{BTreeMap, BTreeSet};

/// Where a variable needs parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meets {
    /// The blocks that get one.
    pub(crate) blocks: BTreeSet<Block>,
    /// At the starts of how many blocks it is live, plus the arguments that edges get.
    pub(crate) cost: usize,
}

/// Finds out where variables need parameters, one after the other. The time for each is linear in the blocks in which it is
/// live.
pub(crate) struct Placer<'a> {
    func: &'a Function,
    cfg: &'a ControlFlowGraph,
    frontier: Frontier,
    predecessors: SecondaryMap<Block, Vec<Block>>,
    /// For each block, the last variable, by number, that is live at its start, and the last one that is written in it.
    live: SecondaryMap<Block, u32>,
    written: SecondaryMap<Block, u32>,
    variable: u32,
}

impl<'a> Placer<'a> {
    /// For the variables of one function. Fails if the frontiers of its blocks have more than `max` blocks in all.
    pub(crate) fn new(ctx: &'a Context, max: usize) -> Result<Self, TooManyParams> {
        let Context { func, cfg, domtree, .. } = ctx;
        let frontier = Frontier::new(cfg, domtree, domtree.cfg_rpo().copied(), max)?;
        let mut predecessors = SecondaryMap::<_, Vec<_>>::new();
        for &block in domtree.cfg_rpo() {
            predecessors[block].extend(cfg.pred_iter(block).map(|pred| pred.block));
        }
        let (live, written) = (SecondaryMap::new(), SecondaryMap::new());
        Ok(Self { func, cfg, frontier, predecessors, live, written, variable: 0 })
    }

    /// Where a variable needs parameters that is written in the blocks `written`, and read before any write in the blocks
    /// `read`.
    pub(crate) fn place(&mut self, written: &[Block], read: &[Block]) -> Meets {
        self.variable += 1;
        for &block in written {
            self.written[block] = self.variable;
        }
        let mut cost = 0;
        let mut work = read.to_vec();
        while let Some(block) = work.pop() {
            if std::mem::replace(&mut self.live[block], self.variable) == self.variable {
                continue;
            }
            cost += 1;
            let before = &self.predecessors[block];
            work.extend(before.iter().filter(|&&block| self.written[block] != self.variable));
        }
        let blocks = self.frontier.meets(written.iter().copied(), |block| self.live[block] == self.variable);
        cost += blocks.iter().map(|&block| edges_into(self.func, self.cfg, block).count()).sum::<usize>();
        Meets { blocks, cost }
    }
}

/// What a variable is at the ends of blocks. One for all variables, one after the other.
#[derive(Debug, Default)]
pub(crate) struct EndValues {
    values: SecondaryMap<Block, PackedOption<Value>>,
    /// Where there is one.
    blocks: Vec<Block>,
}

impl EndValues {
    fn set(&mut self, block: Block, value: Value) {
        self.values[block] = value.into();
        self.blocks.push(block);
    }

    /// What the variable is at the end of `block`, if it was written: the nearest value above in the dominator tree.
    fn get(&mut self, domtree: &DominatorTree, block: Block) -> Option<Value> {
        let mut next = Some(block);
        let mut passed = 0;
        let value = loop {
            let here = next?;
            if let Some(value) = self.values[here].expand() {
                break value;
            }
            passed += 1;
            next = domtree.idom(here);
        };
        // Each block is visited once only.
        next = Some(block);
        for _ in 0..passed {
            let here = next.expect("it was passed");
            self.set(here, value);
            next = domtree.idom(here);
        }
        Some(value)
    }

    fn clear(&mut self) {
        for block in self.blocks.drain(..) {
            self.values[block] = None.into();
        }
    }
}

/// A variable that is becoming values. Blocks must be worked on in an order in which dominating ones come first.
pub(crate) struct Construction<'a> {
    pub(crate) func: &'a mut Function,
    cfg: &'a ControlFlowGraph,
    domtree: &'a DominatorTree,
    ty: Type,
    params: BTreeMap<Block, Value>,
    ends: &'a mut EndValues,
    /// What it is where it was never written, once that is needed.
    unwritten: Option<Value>,
}

impl<'a> Construction<'a> {
    /// Gives the blocks `meets` a parameter each.
    pub(crate) fn new(ctx: &'a mut Context, ends: &'a mut EndValues, ty: Type, meets: &BTreeSet<Block>) -> Self {
        let func = &mut ctx.func;
        let params: BTreeMap<_, _> =
            meets.iter().map(|&block| (block, func.dfg.append_block_param(block, ty))).collect();
        ends.clear();
        for (&block, &param) in &params {
            ends.set(block, param);
        }
        Self { func, cfg: &ctx.cfg, domtree: &ctx.domtree, ty, params, ends, unwritten: None }
    }

    /// The variable is `value` at the end of `block`.
    pub(crate) fn write(&mut self, block: Block, value: Value) {
        if fault!(StaleAtEnd) && self.params.contains_key(&block) {
            return;
        }
        self.ends.set(block, value);
    }

    /// What the variable is at the start of `block`.
    pub(crate) fn read(&mut self, block: Block) -> Value {
        let above = |ends: &mut EndValues| ends.get(self.domtree, self.domtree.idom(block)?);
        let value = self.params.get(&block).copied().or_else(|| above(self.ends));
        value.unwrap_or_else(|| self.unwritten())
    }

    /// Passes the values along the edges, when all is read and written.
    pub(crate) fn finish(mut self) {
        for block in std::mem::take(&mut self.params).into_keys() {
            let edges: Vec<_> = edges_into(self.func, self.cfg, block).collect();
            for edge in edges {
                let value = self.ends.get(self.domtree, edge.source(self.func)).unwrap_or_else(|| self.unwritten());
                append_arg(self.func, edge, value);
            }
        }
    }

    /// What the variable is where it was never written: in the first block, which has no values from above, and in those
    /// below it.
    fn unwritten(&mut self) -> Value {
        let entry = self.func.layout.entry_block().expect("a function with accesses has a block");
        let value = match self.unwritten {
            Some(value) => value,
            None => zero(self.func, entry, self.ty),
        };
        self.unwritten = Some(value);
        if self.ends.values[entry].is_none() {
            self.ends.set(entry, value);
        }
        value
    }
}

/// Makes a zero at the start of `block`.
pub(crate) fn zero(func: &mut Function, block: Block, ty: Type) -> Value {
    let bytes = vec![0; ty.bytes() as usize];
    let mut pos = FuncCursor::new(func).at_first_insertion_point(block);
    match ty {
        types::F16 => pos.ins().f16const(Ieee16::with_bits(0)),
        types::F32 => pos.ins().f32const(Ieee32::with_bits(0)),
        types::F64 => pos.ins().f64const(Ieee64::with_bits(0)),
        types::I128 => {
            let low = pos.ins().iconst(types::I64, 0);
            pos.ins().uextend(types::I128, low)
        }
        _ if ty.is_int() => pos.ins().iconst(ty, 0),
        _ => {
            let constant = pos.func.dfg.constants.insert(bytes.into());
            if ty == types::F128 { pos.ins().f128const(constant) } else { pos.ins().vconst(ty, constant) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, context, verify};

    /// Makes a variable of type `ty` that is written in the blocks `written` and returned by the blocks `read`.
    fn construct(ctx: &mut Context, ty: Type, written: &[(u32, u32)], read: &[u32]) -> Vec<u32> {
        let defs: Vec<_> = written.iter().map(|&(number, _)| block(number)).collect();
        let uses: Vec<_> = read.iter().copied().map(block).collect();
        let meets = Placer::new(ctx, usize::MAX).expect("no limit").place(&defs, &uses).blocks;
        let order: Vec<_> = ctx.domtree.cfg_rpo().copied().collect();
        let mut ends = EndValues::default();
        let mut variable = Construction::new(ctx, &mut ends, ty, &meets);
        for here in order {
            if uses.contains(&here) {
                let value = variable.read(here);
                let last = variable.func.layout.last_inst(here).expect("a return");
                variable.func.dfg.inst_args_mut(last)[0] = value;
            }
            if let Some(&(_, value)) = written.iter().find(|&&(number, _)| block(number) == here) {
                variable.write(here, Value::from_u32(value));
            }
        }
        variable.finish();
        verify(ctx);
        meets.into_iter().map(|meet| meet.as_u32()).collect()
    }

    #[test]
    fn handlers_see_what_was_written_before_the_call() {
        let mut ctx = context(
            "function %f(i64, i64) -> i64 system_v {
                sig0 = (i64) -> i64 system_v
                fn0 = %g(i64) -> i64 system_v
            block0(v0: i64, v1: i64):
                brif v0, block1, block2
            block1:
                try_call fn0(v1), sig0, block3, [ default: block4(exn0) ]
            block2:
                try_call fn0(v0), sig0, block3, [ default: block4(exn0) ]
            block3:
                return v0
            block4(v2: i64):
                return v2
            }",
        );
        let meets = construct(&mut ctx, types::I64, &[(0, 0), (1, 1)], &[3, 4]);
        assert_eq!(meets, [3, 4]);
        let text = ctx.func.to_string();
        assert!(text.contains("sig0, block3(v1), [ default: block4(exn0, v1) ]"), "{text}");
        assert!(text.contains("sig0, block3(v0), [ default: block4(exn0, v0) ]"), "{text}");
    }

    #[test]
    fn what_was_never_written_is_zero() {
        let all = [types::I8, types::I128, types::F16, types::F32, types::F64, types::F128, types::I8X16, types::F64X2];
        for ty in all {
            let mut ctx = context(&format!(
                "function %f(i64, {ty}) -> {ty} {{
                block0(v0: i64, v1: {ty}):
                    jump block1
                block1:
                    brif v0, block2, block3
                block2:
                    jump block1
                block3:
                    return v1
                }}"
            ));
            assert_eq!(construct(&mut ctx, ty, &[(2, 1)], &[3]), [1]);
        }
    }

    #[test]
    fn no_parameter_where_nobody_reads() {
        let mut ctx = context(
            "function %f(i64, i64) -> i64 {
            block0(v0: i64, v1: i64):
                brif v0, block1, block2
            block1:
                jump block2
            block2:
                brif v1, block3, block4
            block3:
                jump block4
            block4:
                return v0
            }",
        );
        assert_eq!(construct(&mut ctx, types::I64, &[(0, 0), (1, 1), (3, 1), (4, 1)], &[]), [0; 0]);
    }
}
