//! Loop optimization passes for compilers that use Cranelift.

pub mod analysis;
mod change;
mod edit;
mod fuel;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod isa;
mod module;
mod optimizer;
mod options;
#[cfg(feature = "oracle")]
pub mod oracle;
mod pass;
mod pipeline;
mod remark;
#[cfg(test)]
mod testing;

pub use isa::lowering_isa;
pub use module::LoopOptModule;
pub use optimizer::{LoopOptimizer, Report};
pub use options::Options;
pub use remark::{Remark, Remarks, Verdict};

/// The names of the passes, in the order in which they run.
pub fn pass_names() -> impl Iterator<Item = &'static str> {
    pipeline::passes().map(|pass| pass.name)
}

/// All reasons for which a pass leaves a loop alone, as `(pass, reason)`: the reasons of [`Verdict::Declined`].
pub fn decline_reasons() -> impl Iterator<Item = (&'static str, &'static str)> {
    pipeline::passes().flat_map(|pass| pass.reasons.iter().map(|&reason| (pass.name, reason)))
}
