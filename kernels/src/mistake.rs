//! What is wrong with a parameter.

use std::fmt;

/// A parameter that cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterMistake {
    /// The parameter as it is called in its struct, with dots where it is within another one.
    pub field: String,
    /// What it says.
    pub found: String,
    /// What is allowed.
    pub allowed: String,
    /// Another parameter of the same struct that this is held against.
    pub against: Option<&'static str>,
}

impl ParameterMistake {
    /// One that is wrong by itself.
    pub fn new(field: impl Into<String>, found: impl fmt::Display, allowed: impl Into<String>) -> Self {
        Self { field: field.into(), found: found.to_string(), allowed: allowed.into(), against: None }
    }

    /// One that is not below another one.
    pub fn not_below(
        field: &'static str,
        found: impl fmt::Display,
        against: &'static str,
        limit: impl fmt::Display,
    ) -> Self {
        let allowed = format!("must be below {against}, which is {limit}");
        Self { against: Some(against), ..Self::new(field, found, allowed) }
    }

    /// The same, of a struct that is a field of another one.
    pub fn within(self, field: &str) -> Self {
        Self { field: format!("{field}.{}", self.field), ..self }
    }
}

impl fmt::Display for ParameterMistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}, {}", self.field, self.found, self.allowed)
    }
}
