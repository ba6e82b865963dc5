//! The host as a target, the way an embedder sets it up for production: optimizing, and without the verifier.

use anyhow::{Result, anyhow};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable as _};

/// The host with `opt_level=speed` and `enable_verifier=false`, and with the flags that the oracle needs for any
/// signature.
pub fn host() -> Result<OwnedTargetIsa> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    flags.set("enable_verifier", "false")?;
    flags.set("is_pic", "false")?;
    flags.set("enable_llvm_abi_extensions", "true")?;
    flags.set("enable_multi_ret_implicit_sret", "true")?;
    let builder = cranelift_native::builder().map_err(|error| anyhow!("no code for this host: {error}"))?;
    Ok(builder.finish(settings::Flags::new(flags))?)
}

/// The model name of the processor, if the system tells.
pub fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    model.and_then(|line| line.split_once(':')).map_or("unknown", |(_, name)| name.trim()).to_owned()
}
