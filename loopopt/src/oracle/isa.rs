//! Targets: the host, as it is or with the settings that a file asks for. Each is made once for each use, as looking up the
//! host's features takes time.

use anyhow::{Context as _, Result, anyhow};
use cranelift_codegen::isa::{OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable, Value};
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

/// For what a target is used. Both have the same flags otherwise, so that what one of them optimized the other can lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// `opt_level=speed`: for `Context::optimize` and the loop passes.
    Optimize,
    /// `opt_level=none`: for lowering, which leaves CLIF as it is.
    Lower,
}

/// Settings that the oracle decides, whatever a file says, besides `opt_level` and `enable_verifier`: without them, code cannot
/// be called, or not be stopped.
const OURS: [(&str, &str); 8] = [
    ("is_pic", "false"),
    ("use_colocated_libcalls", "false"),
    // Signatures of any size and with i128.
    ("enable_llvm_abi_extensions", "true"),
    ("enable_multi_ret_implicit_sret", "true"),
    // So that a large frame cannot skip the guard of the stack.
    ("enable_probestack", "true"),
    ("probestack_strategy", "inline"),
    ("probestack_size_log2", "12"),
    ("log2_min_function_alignment", "2"),
];

/// The host with all that it can do.
static HOST: LazyLock<Target> = LazyLock::new(|| Target::new(Vec::new(), None, String::new()));

/// What machine code is made for.
#[derive(Clone)]
pub(super) struct Target(Arc<Inner>);

/// A setting and its value.
type Setting = (&'static str, String);

struct Inner {
    /// Settings that are not as they are by default.
    flags: Vec<Setting>,
    /// What of the processor may be used, `None` for all that the host has.
    features: Option<Vec<Setting>>,
    lines: String,
    /// By use and verifier.
    isas: [OnceLock<OwnedTargetIsa>; 4],
}

impl Target {
    /// The host with all that it can do.
    pub(super) fn host() -> Self {
        HOST.clone()
    }

    fn new(flags: Vec<Setting>, features: Option<Vec<Setting>>, lines: String) -> Self {
        Self(Arc::new(Inner { flags, features, lines, isas: Default::default() }))
    }

    /// The host with these settings. `lines` are those of a file that ask for it.
    pub(super) fn with_flags(flags: Vec<Setting>, lines: String) -> Self {
        if flags.is_empty() { Self::host() } else { Self::new(flags, None, lines) }
    }

    /// What `isa` asks for. `Err` says why this machine cannot run its code.
    pub(super) fn of_isa(isa: &dyn TargetIsa, flags: Vec<Setting>, lines: String) -> Result<Result<Self, String>> {
        let host = Self::host().isa(Use::Lower, true)?;
        if host.triple().architecture != isa.triple().architecture {
            return Ok(Err(Self::not_this_machine()?));
        }
        let own = host.isa_flags();
        let has = |name| own.iter().any(|value| value.name == name && value.as_bool() == Some(true));
        let asked = isa.isa_flags();
        let missing: Vec<_> = asked.iter().filter(|value| value.as_bool() == Some(true) && !has(value.name)).collect();
        if !missing.is_empty() {
            let names: Vec<_> = missing.iter().map(|value| value.name).collect();
            return Ok(Err(format!("this machine lacks {}", names.join(", "))));
        }
        Ok(Ok(Self::new(flags, Some(asked.iter().map(setting).collect()), lines)))
    }

    /// Why code for another architecture cannot run.
    pub(super) fn not_this_machine() -> Result<String> {
        let host = Self::host().isa(Use::Lower, true)?;
        Ok(format!("this machine is {}", host.triple().architecture))
    }

    /// The lines of a file that ask for it.
    pub(super) fn lines(&self) -> &str {
        &self.0.lines
    }

    pub(super) fn isa(&self, purpose: Use, verifier: bool) -> Result<OwnedTargetIsa> {
        let slot = &self.0.isas[usize::from(purpose == Use::Lower) * 2 + usize::from(verifier)];
        if let Some(isa) = slot.get() {
            return Ok(isa.clone());
        }
        let isa = self.build(purpose, verifier)?;
        Ok(slot.get_or_init(|| isa).clone())
    }

    fn build(&self, purpose: Use, verifier: bool) -> Result<OwnedTargetIsa> {
        let opt_level = match purpose {
            Use::Optimize => "speed",
            Use::Lower => "none",
        };
        let verifier = if verifier { "true" } else { "false" };
        let asked = self.0.flags.iter().map(|(name, value)| (*name, &value[..]));
        let mut flags = settings::builder();
        for (name, value) in asked.chain(OURS).chain([("opt_level", opt_level), ("enable_verifier", verifier)]) {
            flags.set(name, value).with_context(|| format!("cannot set {name}={value}"))?;
        }
        let features = self.0.features.as_ref();
        let mut builder = cranelift_native::builder_with_options(features.is_none())
            .map_err(|error| anyhow!("no code for this host: {error}"))?;
        for (name, value) in features.into_iter().flatten() {
            builder.set(name, value).with_context(|| format!("cannot set {name}={value}"))?;
        }
        Ok(builder.finish(settings::Flags::new(flags))?)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.0.lines).finish()
    }
}

/// A setting as it is.
pub(super) fn setting(value: &Value) -> Setting {
    (value.name, value.value_string())
}
