//! Reduces the bytes of a failing program.

/// The smallest bytes found for which `fails` still holds, by leaving out and zeroing ever shorter parts. It must hold for
/// `bytes`. Zeros are the first choice everywhere, which ends what a program does.
pub fn reduce(bytes: &[u8], mut fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut best = bytes.to_vec();
    loop {
        let before = best.clone();
        let mut part = best.len().next_power_of_two();
        while part > 0 {
            let mut at = 0;
            while at < best.len() {
                let end = (at + part).min(best.len());
                let without = [&best[..at], &best[end..]].concat();
                let mut zeroed = best.clone();
                zeroed[at..end].fill(0);
                if fails(&without) {
                    best = without;
                } else {
                    if zeroed != best && fails(&zeroed) {
                        best = zeroed;
                    }
                    at = end;
                }
            }
            part /= 2;
        }
        if best == before {
            return best;
        }
    }
}
