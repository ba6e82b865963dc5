//! The second ISA of the two-ISA recipe.

use cranelift_codegen::isa::{self, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable, OptLevel, SettingKind, Value};
use cranelift_codegen::{CodegenError, CodegenResult};

/// Flags in which the ISA that optimizes and the ISA that lowers may differ. NaN canonicalization is done by
/// `Context::optimize`, so by the first of them only, or it would be done twice.
const MAY_DIFFER: [&str; 3] = ["opt_level", "enable_nan_canonicalization", "enable_verifier"];

/// A copy of `isa` that only lowers: the same target and flags, but `opt_level=none` and no NaN canonicalization.
///
/// `Context::compile` and `Module::define_function` run the mid-end that their ISA asks for, on code that loopopt has
/// rewritten too: at `opt_level=speed` that would put instructions elsewhere again. Lowering itself is the same at all
/// levels. So: [`LoopOptimizer::run`](crate::LoopOptimizer::run) with the ISA that you have, then
/// `define_function` of a module that was made with this one. [`LoopOptModule`](crate::LoopOptModule) does both.
///
/// # Errors
///
/// If Cranelift does not support the target or a flag of `isa`, which can only be if `isa` comes from elsewhere.
///
/// # Examples
///
/// ```
/// use cranelift_codegen::settings::{self, Configurable, OptLevel};
///
/// let mut flags = settings::builder();
/// flags.set("opt_level", "speed")?;
/// let isa = cranelift_native::builder()?.finish(settings::Flags::new(flags))?;
/// let lowering = loopopt::lowering_isa(&*isa)?;
/// assert_eq!(lowering.flags().opt_level(), OptLevel::None);
/// assert_eq!(lowering.triple(), isa.triple());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn lowering_isa(isa: &dyn TargetIsa) -> CodegenResult<OwnedTargetIsa> {
    let unsupported = |error: &dyn std::fmt::Display| CodegenError::Unsupported(error.to_string());
    let mut flags = settings::builder();
    copy_flags(isa.flags().iter(), &mut flags)?;
    flags.set("opt_level", "none").map_err(|error| unsupported(&error))?;
    flags.set("enable_nan_canonicalization", "false").map_err(|error| unsupported(&error))?;
    let mut builder = isa::lookup(isa.triple().clone()).map_err(|error| unsupported(&error))?;
    copy_flags(isa.isa_flags().into_iter(), &mut builder)?;
    builder.finish(settings::Flags::new(flags))
}

fn copy_flags(flags: impl Iterator<Item = Value>, to: &mut dyn Configurable) -> CodegenResult<()> {
    for flag in flags.filter(|flag| flag.kind() != SettingKind::Preset) {
        to.set(flag.name, &flag.value_string())
            .map_err(|error| CodegenError::Unsupported(format!("flag {}: {error}", flag.name)))?;
    }
    Ok(())
}

/// Whether code that was optimized for `optimizing` may be lowered by `lowering`; if not, the reason.
pub(crate) fn check_pair(optimizing: &dyn TargetIsa, lowering: &dyn TargetIsa) -> Result<(), String> {
    if lowering.flags().opt_level() != OptLevel::None {
        return Err("the module's ISA must have opt_level=none: make it with loopopt::lowering_isa".into());
    }
    if optimizing.triple() != lowering.triple() {
        return Err(format!("the module is for {}, the ISA for {}", lowering.triple(), optimizing.triple()));
    }
    let differs = |ours: Value, theirs: Vec<Value>| {
        let name = ours.name;
        let same = |other: &Value| other.name == name && other.value_string() == ours.value_string();
        (!MAY_DIFFER.contains(&name) && !theirs.iter().any(same)).then_some(name)
    };
    let shared = optimizing.flags().iter().find_map(|flag| differs(flag, lowering.flags().iter().collect()));
    let of_isa = || optimizing.isa_flags().into_iter().find_map(|flag| differs(flag, lowering.isa_flags()));
    match shared.or_else(of_isa) {
        Some(flag) => Err(format!("the module's ISA and the other differ in the flag {flag}")),
        None => Ok(()),
    }
}
