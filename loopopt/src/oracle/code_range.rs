//! What is known of the code of one function, and what is said if there is none.

use super::host::CallSite;
use anyhow::{Error, anyhow};
use cranelift_codegen::ir::{SourceLoc, TrapCode};
use cranelift_codegen::{CodegenError, CompiledCode};

/// Where the code of a function is, and where it may trap.
#[derive(Debug)]
pub(super) struct CodeRange {
    pub(super) name: String,
    pub(super) address: usize,
    pub(super) size: usize,
    /// Sorted by offset.
    pub(super) traps: Vec<(usize, TrapCode, SourceLoc)>,
    /// The calls, by where they return to.
    pub(super) calls: Vec<(usize, CallSite)>,
}

impl CodeRange {
    /// Code that has no address yet.
    pub(super) fn new(name: &str, code: &CompiledCode) -> Self {
        let srclocs = code.buffer.get_srclocs_sorted();
        let srcloc = |offset: u32| {
            let end = srclocs.partition_point(|range| range.start <= offset);
            srclocs[..end].last().filter(|range| offset < range.end).map_or_else(SourceLoc::default, |range| range.loc)
        };
        let mut traps: Vec<_> =
            code.buffer.traps().iter().map(|trap| (trap.offset as usize, trap.code, srcloc(trap.offset))).collect();
        traps.sort_by_key(|(offset, ..)| *offset);
        let calls = code.buffer.call_sites().map(|site| CallSite::new(&site)).collect();
        Self { name: name.to_owned(), address: 0, size: code.code_buffer().len(), traps, calls }
    }

    /// The trap at this offset.
    pub(super) fn trap(&self, offset: usize) -> Option<(TrapCode, SourceLoc)> {
        let index = self.traps.binary_search_by_key(&offset, |(offset, ..)| *offset).ok()?;
        Some((self.traps[index].1, self.traps[index].2))
    }
}

/// The error, with the first finding of the verifier if it is from there.
pub(super) fn codegen_error(error: &CodegenError) -> Error {
    match error {
        CodegenError::Verifier(findings) => match findings.0.first() {
            Some(first) => anyhow!("the verifier finds: {first}"),
            None => anyhow!("the verifier fails"),
        },
        other => anyhow!("{other}"),
    }
}
