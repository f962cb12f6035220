//! Risk requests and results. The module defines the meaning of the numbers; `stages` computes them.

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
    /// The placeholder for a missing value: 0, which no parameter may be.
    fn default() -> Self {
        Self::Given(0.0)
    }
}

impl Default for Matrix {
    /// An empty matrix.
    fn default() -> Self {
        Self::Given(Vec::new())
    }
}
