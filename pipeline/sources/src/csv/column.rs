//! A column of a file, and the words that it may contain.

use warptape_events::tick::{Side, TickKind};

use super::fields::FieldSplitter;
use crate::{DecimalError, FieldProblem};

/// A column of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Index of the column, from 0.
    pub(super) index: usize,
    /// Name of the column in the header, or its number from 1; for messages.
    pub(super) name: String,
    /// The text of a constant, which replaces the column in all lines; `None` for a real column.
    pub(super) constant: Option<String>,
}

/// A column of numbers, in units of 10^-`unit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NumberColumn {
    pub(super) column: Column,
    pub(super) unit: u8,
}

/// The mapping's words for sides; empty for the usual words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SideWords {
    pub(super) buy: Vec<String>,
    pub(super) sell: Vec<String>,
}

impl Column {
    /// Creates a column by its index from 0.
    pub(super) fn new(index: usize, name: impl Into<String>) -> Column {
        Column { index, name: name.into(), constant: None }
    }

    pub(super) fn field<'a>(&'a self, fields: &'a FieldSplitter) -> Result<&'a [u8], FieldProblem> {
        if let Some(constant) = &self.constant {
            return Ok(constant.as_bytes());
        }
        let missing = || self.problem("nothing", &format!("a line of at least {} columns", self.index + 1));
        fields.get(self.index).map(<[u8]>::trim_ascii).ok_or_else(missing)
    }

    pub(super) fn problem(&self, found: impl AsRef<[u8]>, expected: &str) -> FieldProblem {
        FieldProblem::new(&self.name, found, expected)
    }

    pub(super) fn number_problem(&self, found: &[u8], error: DecimalError) -> FieldProblem {
        FieldProblem::of_number(&self.name, found, error)
    }

    pub(super) fn boolean(&self, fields: &FieldSplitter) -> Result<bool, FieldProblem> {
        let found = self.field(fields)?;
        match found.to_ascii_lowercase().as_slice() {
            b"true" | b"t" | b"1" => Ok(true),
            b"false" | b"f" | b"0" => Ok(false),
            _ => Err(self.problem(found, "true or false")),
        }
    }

    pub(super) fn side(&self, fields: &FieldSplitter, words: &SideWords) -> Result<Side, FieldProblem> {
        let found = self.field(fields)?;
        let is_any = |words: &[String]| words.iter().any(|word| word.as_bytes() == found);
        if is_any(&words.buy) {
            return Ok(Side::Buy);
        }
        if is_any(&words.sell) {
            return Ok(Side::Sell);
        }
        let names_own = !words.buy.is_empty() || !words.sell.is_empty();
        match found.to_ascii_lowercase().as_slice() {
            b"" | b"none" | b"n" | b"unknown" => Ok(Side::None),
            _ if names_own => {
                let named = [&*words.buy, &*words.sell].concat().join(", ");
                Err(self.problem(found, &format!("{named}, as in the mapping, or an empty field")))
            }
            b"buy" | b"b" | b"bid" => Ok(Side::Buy),
            b"sell" | b"s" | b"ask" | b"a" => Ok(Side::Sell),
            _ => Err(self.problem(
                found,
                "the aggressor: buy, b or bid; sell, s, ask or a; none, n, unknown or an empty field; or \
                 other words given in the mapping, as in buy='1',sell='-1'",
            )),
        }
    }

    pub(super) fn kind(&self, fields: &FieldSplitter) -> Result<TickKind, FieldProblem> {
        let found = self.field(fields)?;
        match found.to_ascii_lowercase().as_slice() {
            b"trade" | b"t" => Ok(TickKind::Trade),
            b"quote" | b"q" | b"bookticker" | b"bbo" => Ok(TickKind::Quote),
            _ => Err(self.problem(found, "trade or t; quote, q, bbo or bookTicker")),
        }
    }
}
