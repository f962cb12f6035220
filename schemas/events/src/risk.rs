//! Questions about risk and their answers. No arithmetic: what the numbers mean is said here, what comes of them is computed by
//! `stages`.

mod portfolio;
mod request;
mod result;
mod simulation;
mod sweep;

pub use crate::journal::TaskClass;
pub use portfolio::*;
pub use request::*;
pub use result::*;
pub use simulation::*;
pub use sweep::*;
pub use warptape_terms::{BarrierKind, DigitalPayout, OptionKind, Precision};

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
