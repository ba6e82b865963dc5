//! The two ISAs: one for the mid-end, one that only lowers.

use cranelift_codegen::isa::{self, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable, OptLevel, SettingKind, Value};
use cranelift_codegen::{CodegenError, CodegenResult};
use std::fmt;
use std::hash::{Hash, Hasher};

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
    with_flags(isa, &[("opt_level", "none"), ("enable_nan_canonicalization", "false")])
}

/// A copy of `isa`, which lowers, for the mid-end at this level. If the module makes NaNs canonical, it does so for what it is given.
pub(crate) fn optimizing_isa(isa: &dyn TargetIsa, level: OptLevel) -> CodegenResult<OwnedTargetIsa> {
    with_flags(isa, &[("opt_level", &level.to_string()), ("enable_nan_canonicalization", "false")])
}

/// A copy of `isa` with other values for these flags.
fn with_flags(isa: &dyn TargetIsa, changed: &[(&str, &str)]) -> CodegenResult<OwnedTargetIsa> {
    let unsupported = |error: &dyn fmt::Display| CodegenError::Unsupported(error.to_string());
    let mut flags = settings::builder();
    copy_flags(isa.flags().iter(), &mut flags)?;
    for (name, value) in changed {
        flags.set(name, value).map_err(|error| unsupported(&error))?;
    }
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

/// The ISA that lowers for the one that was asked for last, so that functions that are compiled one after the other share one.
#[derive(Clone, Default)]
pub(crate) struct LoweringIsa {
    /// All that makes the ISA what it is, as its parts are hashed.
    key: Vec<u8>,
    isa: Option<OwnedTargetIsa>,
}

impl LoweringIsa {
    /// The ISA that lowers for `isa`, without the verifier: it would look at what was verified last.
    pub(crate) fn of(&mut self, isa: &dyn TargetIsa) -> CodegenResult<OwnedTargetIsa> {
        let mut key = HashedBytes::default();
        (isa.triple(), isa.flags(), isa.isa_flags_hash_key()).hash(&mut key);
        if let Some(known) = self.isa.as_ref().filter(|_| self.key == key.0) {
            return Ok(known.clone());
        }
        let unverified = ("enable_verifier", "false");
        let made = with_flags(isa, &[("opt_level", "none"), ("enable_nan_canonicalization", "false"), unverified])?;
        *self = Self { key: key.0, isa: Some(made.clone()) };
        Ok(made)
    }
}

impl fmt::Debug for LoweringIsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LoweringIsa").field(&self.isa.as_ref().map(|isa| isa.triple())).finish()
    }
}

/// What is hashed, as it is: two things are equal if these are.
#[derive(Default)]
struct HashedBytes(Vec<u8>);

impl Hasher for HashedBytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        self.0.len() as u64
    }
}

/// Whether code that was optimized for `optimizing` may be lowered by `lowering`; if not, the reason.
pub(crate) fn check_pair(optimizing: &dyn TargetIsa, lowering: &dyn TargetIsa) -> Result<(), String> {
    if lowering.flags().opt_level() != OptLevel::None {
        return Err(
            "the module would optimize again what loopopt has made: its ISA must have opt_level=none, which is \
                    the default, or be made with loopopt::lowering_isa"
                .into(),
        );
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
