//! Help for unit tests: contexts from CLIF text.

use crate::analysis::cfg::loops::LoopForest;
use cranelift_codegen::ir::Block;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{Context, verify_function};

/// The ISA of this machine at `opt_level=speed`.
pub(crate) fn isa() -> OwnedTargetIsa {
    isa_with(&[])
}

fn isa_with(enabled: &[&str]) -> OwnedTargetIsa {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed").expect("a known flag");
    enabled.iter().for_each(|flag| flags.enable(flag).expect("a known flag"));
    let builder = cranelift_native::builder().expect("a machine that Cranelift supports");
    builder.finish(settings::Flags::new(flags)).expect("a valid ISA")
}

/// A context of the only function in `text`, with its flow graph.
pub(crate) fn context(text: &str) -> Context {
    let mut functions = cranelift_reader::parse_functions(text).expect("valid CLIF");
    let mut ctx = Context::for_function(functions.remove(0));
    ctx.flowgraph();
    verify(&ctx);
    ctx
}

/// Panics unless the function is valid.
pub(crate) fn verify(ctx: &Context) {
    if let Err(errors) = verify_function(&ctx.func, &*isa_with(&["enable_pinned_reg"])) {
        panic!("{errors}\n{}", ctx.func);
    }
}

/// The loops of the function.
pub(crate) fn forest(ctx: &Context) -> LoopForest {
    LoopForest::new(&ctx.func, &ctx.cfg, &ctx.domtree)
}

/// `block<number>`.
pub(crate) fn block(number: u32) -> Block {
    Block::from_u32(number)
}
