//! How much memory is in use. Allocations are counted while that is asked and at no other time: what counts slows down
//! what is measured, and more so where many small pieces are allocated.

#![allow(unsafe_code, reason = "an allocator is unsafe to implement; this one hands all on to the system's")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

/// The system's allocator, which can be told to count.
struct Counting;

#[global_allocator]
static HEAP: Counting = Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
/// Bytes more than when counting began.
static IN_USE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

fn count(more: usize, less: usize) {
    if COUNTS.load(Relaxed) {
        let [more, less] = [more, less].map(|bytes| isize::try_from(bytes).expect("allocations fit in half of memory"));
        let in_use = IN_USE.fetch_add(more - less, Relaxed) + more - less;
        PEAK.fetch_max(in_use, Relaxed);
    }
}

// SAFETY: everything is what the system's allocator does and returns.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller promises what the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// Runs `f`, and says how many bytes more than at its start were in use at any time. One at a time.
pub fn peak<T>(f: impl FnOnce() -> T) -> (T, usize) {
    IN_USE.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    COUNTS.store(true, Relaxed);
    let result = f();
    COUNTS.store(false, Relaxed);
    (result, usize::try_from(PEAK.load(Relaxed)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_counts_what_is_given_back() {
        let ((), peak) = peak(|| drop(std::hint::black_box(vec![0u8; 64 << 20])));
        // Other tests give memory back meanwhile.
        assert!(peak >= 32 << 20);
    }
}
