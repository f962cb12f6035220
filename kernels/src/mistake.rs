//! Mistakes in parameters, as data for messages.

use std::fmt;

/// A parameter that cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterMistake {
    /// Name of the parameter in its struct, with dots if it is within another one.
    pub field: String,
    /// Value of the parameter.
    pub found: String,
    /// The allowed values, in words.
    pub allowed: String,
    /// Another parameter of the same struct, with which this one is compared; `None` if there is none.
    pub against: Option<&'static str>,
}

impl ParameterMistake {
    /// A mistake about one parameter by itself.
    pub fn new(field: impl Into<String>, found: impl fmt::Display, allowed: impl Into<String>) -> Self {
        Self { field: field.into(), found: found.to_string(), allowed: allowed.into(), against: None }
    }

    /// A parameter that must be below another one, and is not.
    pub fn not_below(
        field: &'static str,
        found: impl fmt::Display,
        against: &'static str,
        limit: impl fmt::Display,
    ) -> Self {
        let allowed = format!("must be below {against}, which is {limit}");
        Self { against: Some(against), ..Self::new(field, found, allowed) }
    }

    /// The same mistake, with the field's name as seen from an outer struct.
    pub fn within(self, field: &str) -> Self {
        Self { field: format!("{field}.{}", self.field), ..self }
    }
}

impl fmt::Display for ParameterMistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}, {}", self.field, self.found, self.allowed)
    }
}
