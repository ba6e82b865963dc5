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
//! A block gets a parameter where definitions meet ([`crate::edit::frontier`]) and the variable is read before it is written
//! again. Edges of all kinds pass arguments, also those of a `try_call` to its handlers: what the call itself gives does not
//! matter, the variable is as it was before the call.
//!
//! Where a variable is read before it was written at all, it is zero: the program may not rely on anything there, and zero
//! tells nobody what was on the stack before.

use crate::analysis::edges::edges_into;
use crate::edit::frontier::Frontier;
use crate::edit::funnel::append_arg;
use crate::edit::reaching::Reaching;
use crate::edit::ssa::live_until;
use crate::fault::fault;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64};
use cranelift_codegen::ir::{Block, Function, InstBuilder, Type, Value, types};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Where a variable needs parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meets {
    /// The blocks that get one.
    pub(crate) blocks: BTreeSet<Block>,
    /// At the starts of how many blocks it is live, plus the arguments that edges get.
    pub(crate) cost: usize,
}

/// Finds out where a variable needs parameters that is written in the blocks `written`, and read before any write in the
/// blocks `read`.
pub(crate) fn find_meets(
    func: &Function,
    cfg: &ControlFlowGraph,
    frontier: &Frontier,
    written: &HashSet<Block>,
    read: &[Block],
) -> Meets {
    let before: Vec<_> = read.iter().flat_map(|&block| cfg.pred_iter(block)).map(|pred| pred.block).collect();
    let mut live = live_until(cfg, &before, |block| written.contains(&block)).live;
    live.extend(read);
    let blocks = frontier.meets(written.iter().copied(), |block| live.contains(&block));
    let args: usize = blocks.iter().map(|&block| edges_into(func, cfg, block).count()).sum();
    Meets { blocks, cost: live.len() + args }
}

/// A variable that is becoming values. Blocks must be worked on in an order in which dominating ones come first.
pub(crate) struct Construction<'a> {
    pub(crate) func: &'a mut Function,
    cfg: &'a ControlFlowGraph,
    ty: Type,
    params: BTreeMap<Block, Value>,
    reaching: Reaching<'a>,
    /// What it is where it was never written, once that is needed.
    unwritten: Option<Value>,
}

impl<'a> Construction<'a> {
    /// Gives the blocks `meets` a parameter each.
    pub(crate) fn new(
        func: &'a mut Function,
        cfg: &'a ControlFlowGraph,
        domtree: &'a DominatorTree,
        ty: Type,
        meets: &BTreeSet<Block>,
    ) -> Self {
        let params: BTreeMap<_, _> =
            meets.iter().map(|&block| (block, func.dfg.append_block_param(block, ty))).collect();
        let reaching = Reaching::new(domtree, params.iter().map(|(&block, &param)| (block, param)));
        Self { func, cfg, ty, params, reaching, unwritten: None }
    }

    /// The variable is `value` at the end of `block`.
    pub(crate) fn write(&mut self, block: Block, value: Value) {
        if fault!(StaleAtEnd) && self.params.contains_key(&block) {
            return;
        }
        self.reaching.define(block, value);
    }

    /// What the variable is at the start of `block`.
    pub(crate) fn read(&mut self, block: Block) -> Value {
        let value = self.params.get(&block).copied().or_else(|| self.reaching.at_start(block));
        value.unwrap_or_else(|| self.unwritten())
    }

    /// Passes the values along the edges, when all is read and written.
    pub(crate) fn finish(mut self) {
        for block in std::mem::take(&mut self.params).into_keys() {
            let edges: Vec<_> = edges_into(self.func, self.cfg, block).collect();
            for edge in edges {
                let value = self.reaching.at_end(edge.source(self.func)).unwrap_or_else(|| self.unwritten());
                append_arg(self.func, edge, value);
            }
        }
    }

    fn unwritten(&mut self) -> Value {
        let (func, ty) = (&mut *self.func, self.ty);
        *self.unwritten.get_or_insert_with(|| zero(func, ty))
    }
}

/// Makes a zero at the start of the function.
fn zero(func: &mut Function, ty: Type) -> Value {
    let entry = func.layout.entry_block().expect("a function with accesses has a block");
    let bytes = vec![0; ty.bytes() as usize];
    let mut pos = FuncCursor::new(func).at_first_insertion_point(entry);
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
    use cranelift_codegen::Context;

    /// Makes a variable of type `ty` that is written in the blocks `written` and returned by the blocks `read`.
    fn construct(ctx: &mut Context, ty: Type, written: &[(u32, u32)], read: &[u32]) -> Vec<u32> {
        let (func, cfg, domtree) = (&mut ctx.func, &ctx.cfg, &ctx.domtree);
        let frontier = Frontier::new(cfg, domtree, domtree.cfg_rpo().copied(), usize::MAX).expect("no limit");
        let defs: HashSet<_> = written.iter().map(|&(number, _)| block(number)).collect();
        let uses: Vec<_> = read.iter().copied().map(block).collect();
        let meets = find_meets(func, cfg, &frontier, &defs, &uses).blocks;
        let order: Vec<_> = domtree.cfg_rpo().copied().collect();
        let mut variable = Construction::new(func, cfg, domtree, ty, &meets);
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
