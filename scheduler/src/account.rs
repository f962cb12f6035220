//! A rule's account of a decision: its alternatives, its measures, and what would have led to another decision.

use serde::Serialize;
use warptape_events::journal::{ExclusionReason, LaneId, TaskId};

/// One of the alternatives of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The lane or the task.
    pub subject: Subject,
    /// True if it was chosen.
    pub is_chosen: bool,
    /// Its score; the highest wins. An excluded lane has the score that it would have had. `None` if the rule has no
    /// scores.
    pub score: Option<i64>,
    /// Why it could not be chosen; `None` if it could.
    pub excluded: Option<ExclusionReason>,
    /// Figures of it that the rule saw.
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
    /// Its name, which ends with its unit if it has one.
    pub name: &'static str,
    /// The figure.
    pub value: i64,
}

/// A difference that would have led to another decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Otherwise {
    /// The next best subject, if the chosen one had been missing; and by how much less its score is, if there are
    /// scores.
    Next(Subject, Option<i64>),
    /// This lane would have been chosen if this reason had not excluded it.
    Unless(LaneId, ExclusionReason),
    /// Latest time at which a batch would have left for a busy lane if no more rows had come, in nanoseconds since the
    /// epoch.
    AtLatest(i64),
    /// A batch would have been full with this number of further rows.
    FullWith(i64),
    /// This condition would have changed the decision, all else being equal.
    With(Condition),
}

/// A figure that a rule compared with a threshold, or that explains another figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Measure {
    /// Its name, which ends with its unit if it has one.
    pub name: &'static str,
    /// The figure.
    pub value: i64,
    /// The threshold; `None` if the figure only explains others.
    pub threshold: Option<i64>,
}

/// A condition on a measure that would have changed a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// The measure's name.
    pub name: &'static str,
    /// Side of the value on which the measure would have been.
    pub is: Comparison,
    /// The value.
    pub value: i64,
    /// The other decision.
    pub instead: Instead,
}

/// A side of a value.
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
    /// None: all would have stayed as it was.
    Nothing,
    /// This number of wanted lanes.
    Lanes(i32),
    /// This percentage of its weight for a lane.
    WeightPercent(i32),
}

/// A rule's account of a decision, as it is gathered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) choices: Vec<Choice>,
    pub(crate) measures: Vec<Measure>,
    pub(crate) otherwise: Vec<Otherwise>,
}

impl Account {
    /// Adds a figure that explains others.
    pub(crate) fn figure(&mut self, name: &'static str, value: i64) {
        self.measures.push(Measure { name, value, threshold: None });
    }

    /// Adds a figure, if it is known, and the threshold that it was compared with.
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
