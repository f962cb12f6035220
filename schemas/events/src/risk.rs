//! Questions about risk and their answers. No arithmetic: what the numbers mean is said here, what comes of them is computed by
//! `stages`.

mod request;
mod result;
mod wire;

pub use crate::journal::TaskClass;
pub use request::*;
pub use result::*;

impl Default for Quantity {
    /// None: a number that no parameter may be.
    fn default() -> Self {
        Self::Given(0.0)
    }
}

impl Default for Matrix {
    /// Empty.
    fn default() -> Self {
        Self::Given(Vec::new())
    }
}
