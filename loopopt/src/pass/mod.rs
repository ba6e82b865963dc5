//! The passes. Each proves that a rewrite is legal, judges whether it pays, and applies it.

pub(crate) mod canon;
pub(crate) mod cleanup;
pub(crate) mod layout;
pub(crate) mod rotate;
pub(crate) mod schedule;
pub(crate) mod tidy;

use crate::analysis::loops::LoopForest;
use crate::change::Change;
use crate::fuel::Fuel;
use crate::options::Options;
use crate::remark::Remarks;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Block;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context};
use std::collections::HashSet;

/// A pass: a name, which is also its module, its option and its remarks' name, and what it does.
///
/// `ctx.cfg` and `ctx.domtree` are valid when it runs, no block is unreachable and no value is an alias. The pipeline
/// brings that about again after it, as the change that it reports demands.
pub(crate) struct Pass {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&mut Context, &mut PassCx<'_>) -> CodegenResult<Change>,
}

/// What passes share in one run.
pub(crate) struct PassCx<'a> {
    pub(crate) options: &'a Options,
    pub(crate) isa: &'a dyn TargetIsa,
    pub(crate) ctrl_plane: &'a mut ControlPlane,
    pub(crate) remarks: Remarks,
    pub(crate) fuel: Fuel,
    /// Headers of loops that `rotate` made: it has nothing to say about those.
    pub(crate) rotated: HashSet<Block>,
    forest: Option<LoopForest>,
}

impl<'a> PassCx<'a> {
    pub(crate) fn new(options: &'a Options, isa: &'a dyn TargetIsa, ctrl_plane: &'a mut ControlPlane) -> Self {
        Self {
            options,
            isa,
            ctrl_plane,
            remarks: Remarks::default(),
            fuel: Fuel::new(options.fuel),
            rotated: HashSet::new(),
            forest: None,
        }
    }

    /// The loops of the function as it is now.
    pub(crate) fn forest(&mut self, ctx: &Context) -> &LoopForest {
        self.forest.get_or_insert_with(|| LoopForest::new(&ctx.func, &ctx.cfg, &ctx.domtree))
    }

    /// Brings `ctx` and the loops up to date after `change`.
    pub(crate) fn invalidate(&mut self, ctx: &mut Context, change: Change) {
        if change == Change::Cfg {
            ctx.flowgraph();
            self.forest = None;
        }
    }
}
