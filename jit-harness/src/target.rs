//! The host as a target, the way an embedder sets it up for production, optimizing and without the verifier; and other machines, to look
//! at their code.

use anyhow::{Result, anyhow};
use cranelift_codegen::isa::{self, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable as _};
use target_lexicon::Triple;

/// The host with `opt_level=speed` and `enable_verifier=false`, and with the flags that the oracle needs for any
/// signature.
pub fn host() -> Result<OwnedTargetIsa> {
    let mut flags = flags()?;
    flags.set("enable_verifier", "false")?;
    let builder = cranelift_native::builder().map_err(|error| anyhow!("no code for this host: {error}"))?;
    Ok(builder.finish(settings::Flags::new(flags))?)
}

/// Another machine, by its architecture (`aarch64`) or triple, with the same flags and the verifier on.
pub fn named(name: &str) -> Result<OwnedTargetIsa> {
    const KNOWN: &str =
        "Cranelift makes code for x86_64, aarch64, riscv64, s390x, pulley32 and pulley64, or for a triple of these";
    let name = if name == "riscv64" { "riscv64gc" } else { name };
    let triple = name.parse::<Triple>().map_err(|error| anyhow!("target {name}: {error}; {KNOWN}"))?;
    let builder = isa::lookup(triple).map_err(|error| anyhow!("target {name}: {error}; {KNOWN}"))?;
    builder.finish(settings::Flags::new(flags()?)).map_err(|error| anyhow!("target {name}: {error}; {KNOWN}"))
}

fn flags() -> Result<settings::Builder> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed")?;
    flags.set("is_pic", "false")?;
    flags.set("enable_llvm_abi_extensions", "true")?;
    flags.set("enable_multi_ret_implicit_sret", "true")?;
    Ok(flags)
}

/// The model name of the processor, if the system tells.
pub fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    model.and_then(|line| line.split_once(':')).map_or("unknown", |(_, name)| name.trim()).to_owned()
}
