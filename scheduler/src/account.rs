//! A rule's account of a decision: its alternatives, its measures, and the changes that would have led to another
//! decision.

use serde::Serialize;
use warptape_events::journal::{ExclusionReason, LaneId, TaskId};

/// An alternative of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The lane or the task.
    pub subject: Subject,
    /// True if it was chosen.
    pub is_chosen: bool,
    /// Its score; the highest wins. An excluded lane has the score that it would have as a candidate. `None` if the
    /// rule has no scores.
    pub score: Option<i64>,
    /// The reason that excluded it; `None` if it was a candidate.
    pub excluded: Option<ExclusionReason>,
    /// Figures of this alternative that the rule used.
    pub terms: Vec<Term>,
}

/// The thing that a rule chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Subject {
    /// A lane.
    Lane(LaneId),
    /// A task.
    Task(TaskId),
}

/// A figure that a rule uses, or that explains another figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Term {
    /// Name of the figure, with its unit at the end if it has one.
    pub name: &'static str,
    /// The figure.
    pub value: i64,
}

/// A change that would have led to another decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Otherwise {
    /// The next best subject, chosen if the best one had been missing, and the difference of their scores; `None` if
    /// there are no scores.
    Next(Subject, Option<i64>),
    /// The lane that would have been chosen if this reason had not excluded it.
    Unless(LaneId, ExclusionReason),
    /// Latest time at which a batch would have left for a busy lane if no more rows had arrived, in nanoseconds since
    /// the epoch.
    AtLatest(i64),
    /// Number of further rows that would have filled the batch.
    FullWith(i64),
    /// The condition that would have changed the decision, all else being equal.
    With(Condition),
}

/// A figure that a rule compared with a threshold, or that explains another figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Measure {
    /// Name of the figure, with its unit at the end if it has one.
    pub name: &'static str,
    /// The figure.
    pub value: i64,
    /// The threshold; `None` if the figure only explains other figures.
    pub threshold: Option<i64>,
}

/// A condition on a measure that would have changed a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// Name of the measure.
    pub name: &'static str,
    /// The range of the measure, relative to the value.
    pub is: Comparison,
    /// The value.
    pub value: i64,
    /// The other decision.
    pub instead: Instead,
}

/// A range of numbers, relative to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Comparison {
    /// Less than the value.
    Below,
    /// The value, or less.
    AtMost,
    /// The value, or more.
    AtLeast,
    /// More than the value.
    Above,
}

/// The decision that would have been made instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Instead {
    /// No decision: the state would have stayed the same.
    Nothing,
    /// This number of wanted lanes.
    Lanes(i32),
    /// The lane would have had this percentage of its weight.
    WeightPercent(i32),
}

/// A rule's account of a decision, while it is being built.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) choices: Vec<Choice>,
    pub(crate) measures: Vec<Measure>,
    pub(crate) otherwise: Vec<Otherwise>,
}

impl Account {
    /// Adds a figure that explains other figures.
    pub(crate) fn figure(&mut self, name: &'static str, value: i64) {
        self.measures.push(Measure { name, value, threshold: None });
    }

    /// Adds a figure, unless it is `None`, and the threshold that it was compared with.
    pub(crate) fn held(&mut self, name: &'static str, value: impl Into<Option<i64>>, threshold: i64) {
        let measure = |value| Measure { name, value, threshold: Some(threshold) };
        self.measures.extend(value.into().map(measure));
    }

    /// Adds a figure that had to reach a threshold for the decision to be made.
    pub(crate) fn at_least(&mut self, name: &'static str, value: i64, threshold: i64) {
        self.held(name, value, threshold);
        self.with(name, Comparison::Below, threshold, Instead::Nothing);
    }

    /// Adds a figure that had to stay below a threshold for the decision to be made.
    pub(crate) fn below(&mut self, name: &'static str, value: i64, threshold: i64) {
        self.held(name, value, threshold);
        self.with(name, Comparison::AtLeast, threshold, Instead::Nothing);
    }

    /// Adds a condition that would have changed the decision.
    pub(crate) fn with(&mut self, name: &'static str, is: Comparison, value: i64, instead: Instead) {
        self.otherwise.push(Otherwise::With(Condition { name, is, value, instead }));
    }
}
