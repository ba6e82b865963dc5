//! The host as a target: made once for each use, as looking up its features takes time.

use anyhow::{Context as _, Result, anyhow};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use std::sync::OnceLock;

/// For what a target is used. Both have the same flags otherwise, so that what one of them optimized the other can lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// `opt_level=speed`: for `Context::optimize` and the loop passes.
    Optimize,
    /// `opt_level=none`: for lowering, which leaves CLIF as it is.
    Lower,
}

/// The host's target.
pub(super) fn host(purpose: Use, verifier: bool) -> Result<OwnedTargetIsa> {
    static ISAS: [OnceLock<OwnedTargetIsa>; 4] = [const { OnceLock::new() }; 4];
    let slot = &ISAS[usize::from(purpose == Use::Lower) * 2 + usize::from(verifier)];
    if let Some(isa) = slot.get() {
        return Ok(isa.clone());
    }
    let isa = build(purpose, verifier)?;
    Ok(slot.get_or_init(|| isa).clone())
}

fn build(purpose: Use, verifier: bool) -> Result<OwnedTargetIsa> {
    let opt_level = match purpose {
        Use::Optimize => "speed",
        Use::Lower => "none",
    };
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", opt_level),
        ("enable_verifier", if verifier { "true" } else { "false" }),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        // Signatures of any size and with i128.
        ("enable_llvm_abi_extensions", "true"),
        ("enable_multi_ret_implicit_sret", "true"),
        // So that a large frame cannot skip the guard of the stack.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
        ("log2_min_function_alignment", "2"),
    ] {
        flags.set(name, value).with_context(|| format!("cannot set {name}={value}"))?;
    }
    let builder = cranelift_native::builder().map_err(|error| anyhow!("no code for this host: {error}"))?;
    Ok(builder.finish(settings::Flags::new(flags))?)
}
