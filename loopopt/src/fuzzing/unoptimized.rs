//! Runs on functions that Cranelift's own optimizations have not been through.

use crate::{LoopOptimizer, Report};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CodegenResult, Context};

/// Runs loopopt on `original`, and puts what it changes there in the place of what Cranelift's own optimizations have made of it.
pub(super) fn rewrite_unoptimized(
    loops: &mut LoopOptimizer,
    original: &Function,
    context: &mut Context,
    isa: &dyn TargetIsa,
) -> CodegenResult<Report> {
    let mut own = Context::for_function(original.clone());
    let report = loops.run(&mut own, isa, &mut ControlPlane::default())?;
    if report.changed {
        context.func = own.func;
        context.compute_cfg();
        context.compute_domtree();
    }
    Ok(report)
}
