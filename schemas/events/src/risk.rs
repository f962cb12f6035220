//! Questions about risk and their answers. The module defines what the numbers mean; `stages` computes them.

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
    /// Stands for no value: 0, which no parameter may be.
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
