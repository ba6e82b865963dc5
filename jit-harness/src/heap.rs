//! How much memory is in use: every allocation of this process is counted.

use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Runs `f`, and says how many bytes more than at its start were in use at any time.
pub fn peak<T>(f: impl FnOnce() -> T) -> (T, usize) {
    HEAP.reset_peak_usage();
    let start = HEAP.current_usage();
    let result = f();
    (result, HEAP.peak_usage().saturating_sub(start))
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
