//! Memory for machine code, with a say in where functions begin.

#![allow(unsafe_code, reason = "a trait of the JIT has an unsafe method")]

use super::native::{Access, Mapping, PAGE};
use anyhow::{Result, ensure};
use cranelift_jit::{BranchProtection, JITMemoryKind, JITMemoryProvider};
use cranelift_module::{ModuleError, ModuleResult};
use std::io;

/// The most code of one program, in bytes. Only addresses are reserved for it.
const CAPACITY: usize = 64 << 20;
/// Memory is made accessible in steps of this many bytes.
const STEP: usize = 16 * PAGE;
/// Size of a cache line.
const LINE: usize = 64;

/// Memory for the code of one program. It is given back on drop.
#[derive(Debug)]
pub(super) struct CodeMemory {
    mapping: Mapping,
    /// Bytes in use, from the start.
    used: usize,
    /// Bytes that can be written, from the start.
    open: usize,
    /// Where in a cache line functions begin.
    offset: usize,
}

impl CodeMemory {
    /// Empty memory, in which functions begin `offset` bytes after the start of a cache line.
    pub(super) fn new(offset: usize) -> Result<Self> {
        assert!(offset < LINE, "the offset is within a cache line");
        Ok(Self { mapping: Mapping::reserve(CAPACITY)?, used: 0, open: 0, offset })
    }

    /// A page or more with this code at its start, and the address. The code must not depend on its address.
    pub(super) fn page(code: &[u8]) -> Result<(Mapping, usize)> {
        let size = code.len().next_multiple_of(PAGE);
        let mut page = Mapping::reserve(size)?;
        page.protect(0..size, Access::Data)?;
        page.data(0..code.len()).copy_from_slice(code);
        page.protect(0..size, Access::Code)?;
        let address = page.address();
        Ok((page, address))
    }

    fn take(&mut self, size: usize, align: usize) -> Result<usize> {
        // Constants after the code may ask for more alignment than the offset has.
        let start = (self.used.next_multiple_of(LINE) + self.offset).next_multiple_of(align);
        let end = start + size;
        ensure!(end <= CAPACITY, "a program may have at most {CAPACITY} bytes of code");
        if end > self.open {
            let open = end.next_multiple_of(STEP);
            self.mapping.protect(self.open..open, Access::Data)?;
            self.open = open;
        }
        self.used = end;
        Ok(start)
    }
}

impl JITMemoryProvider for CodeMemory {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> io::Result<*mut u8> {
        match kind {
            JITMemoryKind::Executable => {}
            _ => return Err(io::Error::other("programs have no data")),
        }
        let align = usize::try_from(align).map_err(io::Error::other)?;
        let start = self.take(size, align).map_err(io::Error::other)?;
        Ok(self.mapping.data(start..start + size).as_mut_ptr())
    }

    /// Does nothing: the memory is freed when this value is dropped.
    unsafe fn free_memory(&mut self) {}

    fn finalize(&mut self, _: BranchProtection) -> ModuleResult<()> {
        self.mapping.protect(0..self.open, Access::Code).map_err(ModuleError::Backend)
    }
}
