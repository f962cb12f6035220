//! The value of one field of an event, whatever its JSON type.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::time_unit::{TimeUnit, binance_time_ns};
use crate::{FieldProblem, Scaled, parse_prices, parse_sizes};

/// A JSON value, reduced to the types that occur in ticks.
#[derive(Clone, Default)]
pub(crate) enum Scalar<'a> {
    #[default]
    Absent,
    /// A text, borrowed from the line if no character is escaped.
    Text(Cow<'a, str>),
    Integer(i64),
    Boolean(bool),
    /// An array, an object, null, or a fraction, none of which a tick contains.
    Other,
}

impl<'a> Scalar<'a> {
    /// Returns the text; `None` for a value of another type.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Scalar::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn ticker(self) -> Result<Cow<'a, str>, FieldProblem> {
        match self {
            Scalar::Text(text) if !text.is_empty() => Ok(text),
            other => Err(other.problem("s", "a ticker such as BTCUSDT")),
        }
    }

    pub(crate) fn integer(&self, column: &str) -> Result<i64, FieldProblem> {
        match self {
            Scalar::Integer(value) => Ok(*value),
            other => Err(other.problem(column, "an integer")),
        }
    }

    pub(crate) fn boolean(&self, column: &str) -> Result<bool, FieldProblem> {
        match self {
            Scalar::Boolean(value) => Ok(*value),
            other => Err(other.problem(column, "true or false")),
        }
    }

    pub(crate) fn time_ns(&self, column: &str) -> Result<i64, FieldProblem> {
        let time_ns = match self {
            Scalar::Integer(time) => binance_time_ns(*time),
            _ => None,
        };
        time_ns.ok_or_else(|| self.problem(column, TimeUnit::Binance.expected()))
    }

    pub(crate) fn optional_time_ns(&self, column: &str) -> Result<Option<i64>, FieldProblem> {
        match self {
            Scalar::Absent => Ok(None),
            present => present.time_ns(column).map(Some),
        }
    }

    /// Parses the time in a text such as `2014-11-07T08:19:27.028459Z`.
    pub(crate) fn rfc3339_ns(&self, column: &str) -> Result<i64, FieldProblem> {
        let time_ns = self.text().and_then(|text| TimeUnit::Rfc3339.parse_ns(text.as_bytes()));
        time_ns.ok_or_else(|| self.problem(column, TimeUnit::Rfc3339.expected()))
    }

    pub(crate) fn problem(&self, column: &str, expected: &str) -> FieldProblem {
        let found = match self {
            Scalar::Absent => "nothing".to_owned(),
            Scalar::Text(text) => text.to_string(),
            Scalar::Integer(value) => value.to_string(),
            Scalar::Boolean(value) => value.to_string(),
            Scalar::Other => "another kind of value".to_owned(),
        };
        FieldProblem::new(column, found, expected)
    }
}

/// Parses prices, given as texts, to one common scale.
pub(crate) fn prices<const N: usize>(fields: [(&str, &Scalar); N]) -> Result<Scaled<N>, FieldProblem> {
    let texts = decimals(&fields)?;
    parse_prices(texts, false)
        .map_err(|(number, error)| FieldProblem::of_number(fields[number].0, texts[number], error))
}

/// Parses sizes, given as texts, to one common scale.
pub(crate) fn sizes<const N: usize>(fields: [(&str, &Scalar); N]) -> Result<Scaled<N>, FieldProblem> {
    let texts = decimals(&fields)?;
    parse_sizes(texts)
        .map_err(|(number, error)| FieldProblem::of_number(fields[number].0, texts[number], error))
}

fn decimals<'a, const N: usize>(fields: &[(&str, &'a Scalar); N]) -> Result<[&'a [u8]; N], FieldProblem> {
    let mut texts = [&b""[..]; N];
    for (text, (column, field)) in texts.iter_mut().zip(fields) {
        *text = match field {
            Scalar::Text(found) => found.as_bytes(),
            other => return Err(other.problem(column, "a decimal number as text, such as \"61837.63\"")),
        };
    }
    Ok(texts)
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    // A text with escapes, which differs from its characters in the line.
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Scalar::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(value).map_or(Scalar::Other, Scalar::Integer))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Scalar::Other)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Scalar::Boolean(value))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Scalar::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
}
