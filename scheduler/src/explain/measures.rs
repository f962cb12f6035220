//! Figures that rules held against others, and what would have had them decide otherwise.

use serde::Serialize;

use super::{Choice, Otherwise};

/// A figure that a rule held against another one, or that says how one came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Measure {
    /// Its name, which ends with its unit where it has one.
    pub name: &'static str,
    /// The figure.
    pub value: i64,
    /// What the rule held it against; none where it only says how others came about.
    pub threshold: Option<i64>,
}

/// A measure that would have changed a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// The measure's name.
    pub name: &'static str,
    /// On which side of the value it would have been.
    pub is: Comparison,
    /// The value.
    pub value: i64,
    /// What would have been decided.
    pub instead: Instead,
}

/// A side of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Comparison {
    /// Less than it.
    Below,
    /// It, or less.
    AtMost,
    /// It, or more.
    AtLeast,
    /// More than it.
    Above,
}

/// What would have been decided instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Instead {
    /// Nothing: all would have stayed as it was.
    Nothing,
    /// So many lanes would have been wanted.
    Lanes(i32),
    /// A lane would have counted with so many percent of its weight.
    WeightPercent(i32),
}

/// What is told of a decision.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) choices: Vec<Choice>,
    pub(crate) measures: Vec<Measure>,
    pub(crate) otherwise: Vec<Otherwise>,
}

impl Account {
    /// A figure that says how others came about.
    pub(crate) fn figure(&mut self, name: &'static str, value: i64) {
        self.measures.push(Measure { name, value, threshold: None });
    }

    /// A figure, if it is known, and what it was held against.
    pub(crate) fn held(&mut self, name: &'static str, value: impl Into<Option<i64>>, threshold: i64) {
        let measure = |value| Measure { name, value, threshold: Some(threshold) };
        self.measures.extend(value.into().map(measure));
    }

    /// A figure that had to reach a threshold for the decision to be made.
    pub(crate) fn at_least(&mut self, name: &'static str, value: i64, threshold: i64) {
        self.held(name, value, threshold);
        self.with(name, Comparison::Below, threshold, Instead::Nothing);
    }

    /// A figure that had to stay below a threshold for the decision to be made.
    pub(crate) fn below(&mut self, name: &'static str, value: i64, threshold: i64) {
        self.held(name, value, threshold);
        self.with(name, Comparison::AtLeast, threshold, Instead::Nothing);
    }

    /// What would have changed the decision.
    pub(crate) fn with(&mut self, name: &'static str, is: Comparison, value: i64, instead: Instead) {
        self.otherwise.push(Otherwise::With(Condition { name, is, value, instead }));
    }
}
