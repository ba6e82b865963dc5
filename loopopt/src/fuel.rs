//! Fuel: one unit for each optional rewrite, so that the one that breaks a program can be found by bisection.

/// The rewrites that may still be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fuel {
    left: Option<u64>,
}

impl Fuel {
    /// So many rewrites, or any number.
    pub(crate) fn new(left: Option<u64>) -> Self {
        Self { left }
    }

    /// Takes a unit. A rewrite that gets none must not happen. Repairs do not ask.
    pub(crate) fn take(&mut self) -> bool {
        match &mut self.left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}
