//! What a rule tells of a decision: what it chose among, what it measured, and what would have had it decide otherwise.

use serde::Serialize;
use warptape_events::journal::{ExclusionReason, LaneId, TaskId};

/// One of the things that were chosen among.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// What it is.
    pub subject: Subject,
    /// Whether it was chosen.
    pub is_chosen: bool,
    /// Its score, where the rule has one: the highest wins. Of a lane that is excluded the one that it would have had.
    pub score: Option<i64>,
    /// Why it could not be chosen, if it could not.
    pub excluded: Option<ExclusionReason>,
    /// What the rule saw of it.
    pub terms: Vec<Term>,
}

/// What is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Subject {
    /// A lane.
    Lane(LaneId),
    /// A task.
    Task(TaskId),
}

/// A figure that a rule goes by, or that says how it came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Term {
    /// Its name, which ends with its unit where it has one.
    pub name: &'static str,
    /// The figure.
    pub value: i64,
}

/// What would have changed a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Otherwise {
    /// Without the one that was chosen it would have been this one, whose score is less by so much, where there are scores.
    Next(Subject, Option<i64>),
    /// It would have been this lane if it had not been excluded for this reason.
    Unless(LaneId, ExclusionReason),
    /// A batch would have left at this time at the latest, in nanoseconds since the epoch, if the lane had been busy and no more rows had come.
    AtLatest(i64),
    /// A batch would have been full with so many rows more.
    FullWith(i64),
    /// A measure would have changed it, all else being as it was.
    With(Condition),
}

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
