//! The rules by which values come about, by number.

use serde::{Deserialize, Serialize};

/// The rules of bars, indicators and alerts. Each number stays what it is, so that former logs are rerun to the bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Rules {
    /// Journals that name no rules were written under these, which are used only to run them again.
    #[default]
    First = 1,
    /// Closes that lie on a line are found by whole numbers ([`crate::indicators`]). Logarithms of returns have the exact difference of two
    /// prices. Bars have the sides of trades and the sizes of quotes; a side without a size is absent.
    Second = 2,
}

impl Rules {
    /// The newest rules.
    pub const NEWEST: Self = Self::Second;

    /// True of the first rules.
    pub fn are_first(&self) -> bool {
        *self == Self::First
    }
}

impl TryFrom<u8> for Rules {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        match number {
            1 => Ok(Self::First),
            2 => Ok(Self::Second),
            _ => Err(format!(
                "rules {number} are not known, {} are the newest: use a newer version",
                Self::NEWEST as u8
            )),
        }
    }
}

impl From<Rules> for u8 {
    fn from(rules: Rules) -> u8 {
        rules as u8
    }
}
