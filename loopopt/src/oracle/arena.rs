//! The memory that programs work on.
//!
//! Each thread has one arena, so that a memory image is at the same address for all arms that the thread compares, and
//! pointers into it compare equal. The image ends where the arena ends, rounded up to 64 bytes, and an access beyond that
//! traps. So does an access before the page in which the image begins, of which at least [`GUARD`] bytes on either side
//! are inaccessible.

use super::native::{Access, Mapping, PAGE};
use anyhow::{Result, ensure};
use std::cell::RefCell;
use std::ops::Range;

/// The largest memory image, in bytes. Only addresses are reserved for it.
const CAPACITY: usize = 4 << 30;
/// Inaccessible bytes on both sides.
const GUARD: usize = 1 << 20;
/// Alignment of the image: a cache line.
const ALIGN: usize = 64;

thread_local! {
    static ARENA: RefCell<Option<Arena>> = const { RefCell::new(None) };
}

/// Gives `f` the arena of this thread.
pub(super) fn with<T>(f: impl FnOnce(&mut Arena) -> Result<T>) -> Result<T> {
    ARENA.with_borrow_mut(|arena| match arena {
        Some(arena) => f(arena),
        None => f(arena.insert(Arena::new()?)),
    })
}

/// A place for a memory image.
#[derive(Debug)]
pub(super) struct Arena {
    mapping: Mapping,
    /// Accessible bytes, which end at `GUARD + CAPACITY`.
    open: usize,
}

impl Arena {
    fn new() -> Result<Self> {
        Ok(Self { mapping: Mapping::reserve(GUARD + CAPACITY + GUARD)?, open: 0 })
    }

    /// Puts an image into the arena, zeroes around it, and gives its address.
    pub(super) fn load(&mut self, image: &[u8]) -> Result<usize> {
        ensure!(image.len() <= CAPACITY, "a memory image may have at most {CAPACITY} bytes");
        self.open(image.len().next_multiple_of(PAGE))?;
        let end = GUARD + CAPACITY;
        let bytes = place(image.len());
        self.mapping.data(end - self.open..bytes.start).fill(0);
        self.mapping.data(bytes.clone()).copy_from_slice(image);
        self.mapping.data(bytes.end..end).fill(0);
        Ok(self.mapping.address() + bytes.start)
    }

    /// The image as it is now, if it has this size.
    pub(super) fn image(&mut self, len: usize) -> &[u8] {
        self.mapping.data(place(len))
    }

    fn open(&mut self, len: usize) -> Result<()> {
        let end = GUARD + CAPACITY;
        if len > self.open {
            self.mapping.protect(end - len..end, Access::Data)?;
        } else if len < self.open {
            self.mapping.protect(end - self.open..end - len, Access::None)?;
        }
        self.open = len;
        Ok(())
    }
}

/// Where an image of this size is.
fn place(len: usize) -> Range<usize> {
    let start = GUARD + CAPACITY - len.next_multiple_of(ALIGN);
    start..start + len
}
