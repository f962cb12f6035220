//! Questions about risk and their answers. No arithmetic: what the numbers mean is said here, what comes of them is computed by
//! `stages`.

mod request;
mod result;
mod wire;

use serde::{Deserialize, Serialize};

pub use request::*;
pub use result::*;

/// How urgent a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskClass {
    /// Before all others.
    #[serde(alias = "critical")]
    Critical,
    /// Somebody waits for it.
    #[default]
    #[serde(alias = "interactive")]
    Interactive,
    /// When there is time.
    #[serde(alias = "batch")]
    Batch,
}

crate::wire::wire_enum!(TaskClass { 0 => Critical, 1 => Interactive, 2 => Batch });

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
