//! Fuel: one unit for each optional rewrite, so that the one that breaks a program can be found by bisection.

/// The rewrites that were done and that may still be done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fuel {
    limit: Option<u64>,
    used: u64,
}

impl Fuel {
    /// So many rewrites, or any number.
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self { limit, used: 0 }
    }

    /// Units taken so far.
    pub(crate) fn used(self) -> u64 {
        self.used
    }

    /// Takes a unit. A rewrite that gets none must not happen. Repairs do not ask.
    pub(crate) fn take(&mut self) -> bool {
        let granted = self.limit.is_none_or(|limit| self.used < limit);
        self.used += u64::from(granted);
        granted
    }
}
