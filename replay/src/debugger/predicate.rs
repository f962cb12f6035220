//! Conditions on which stepping stops: `lane=cuda:1 && queue>1000`, `decision=Dispatch && reason=DEADLINE`.
//!
//! ```text
//!   condition   = all { "||" all }
//!   all         = one { "&&" one }
//!   one         = "!" one | "(" condition ")" | comparison
//!   comparison  = FIELD ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) VALUE
//! ```
//!
//! A value with blanks or operators is in double quotes, with `\"` and `
//! ` for a quote and a backslash. This module owns the language; it does not know how entries are read.

mod evaluate;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

use warptape_schemas::journal::{Decision, Input};

pub use parse::PredicateError;

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    expression: Expression,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Expression {
    Compare(Comparison),
    Not(Box<Expression>),
    /// Two or more expressions, all of which must hold.
    All(Vec<Expression>),
    /// Two or more expressions, at least one of which must hold.
    Any(Vec<Expression>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Comparison {
    field: Field,
    operator: Operator,
    /// The value as written, for printing the condition.
    text: String,
    value: Value,
}

/// The value that a field is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Number(i64),
    /// A text; letter case is ignored.
    Text(String),
    Flag(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// Operators, the longest first, so that `<=` is not read as `<`.
const OPERATORS: [(&str, Operator); 7] = [
    ("!=", Operator::Unequal),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("==", Operator::Equal),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

/// A field of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The entry's sequence.
    Sequence,
    /// Time of the entry.
    At,
    /// Kind of the entry's input.
    Input,
    /// Kind of a decision.
    Decision,
    /// Reason of a decision, or of a reported loss.
    Reason,
    /// Number of a batch.
    Batch,
    /// A symbol group.
    Group,
    /// A risk task.
    Task,
    /// A lane, by index or by device.
    Lane,
    /// Rows that wait for a lane, or for all lanes.
    Queue,
    /// Rows in flight on a lane, or on all lanes.
    InFlight,
    /// State of a lane's breaker.
    Breaker,
    /// True if a lane is working.
    Ready,
    /// A partition.
    Partition,
    /// Waiting rows of a partition, or of all partitions.
    Waiting,
    /// True if a partition is paused.
    Paused,
    /// Number of risk tasks that the scheduler knows.
    Tasks,
    /// True if the entry differs from this software's decisions.
    Differs,
}

/// Type of a field's values, which determines how they are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldKind {
    Number,
    /// A time in words, or nanoseconds since the epoch.
    Time,
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    Flag,
    /// A lane's index, or the name of a device.
    Lane,
}

/// The fields with their names and meanings, in the order in which help lists them.
pub const FIELDS: [(Field, &str, &str); 18] = [
    (Field::Sequence, "sequence", "sequence of the entry"),
    (Field::At, "at", "time of the entry, such as 2026-11-24T03:00:00Z, or in ns since the epoch"),
    (Field::Input, "input", "kind of the input of the entry, such as Arrived or LaneLost"),
    (Field::Decision, "decision", "kind of a decision, such as Dispatch or Place"),
    (Field::Reason, "reason", "reason of a decision, such as DEADLINE, or the reported cause of a lost lane"),
    (Field::Batch, "batch", "number of a dispatched or completed batch"),
    (Field::Group, "group", "symbol group of the input or decision"),
    (Field::Task, "task", "risk task of the input or decision"),
    (Field::Lane, "lane", "lane, by index or device: lane=1, lane=cuda:1"),
    (Field::Queue, "queue", "rows that wait for the lane; without a lane in the condition, all waiting rows"),
    (
        Field::InFlight,
        "in_flight",
        "rows in flight on the lane; without a lane in the condition, on all lanes",
    ),
    (Field::Breaker, "breaker", "state of the lane's breaker: CLOSED, OPEN or HALF_OPEN"),
    (Field::Ready, "ready", "true if the lane is ready for work"),
    (Field::Partition, "partition", "partition of the ticks"),
    (
        Field::Waiting,
        "waiting",
        "waiting rows of the partition; without a partition in the condition, of all \
                                 partitions",
    ),
    (Field::Paused, "paused", "true if the partition is paused"),
    (Field::Tasks, "tasks", "number of known risk tasks"),
    (Field::Differs, "differs", "true if this software decides differently than the entry"),
];

const BREAKERS: [&str; 3] = ["CLOSED", "OPEN", "HALF_OPEN"];

impl Field {
    fn named(name: &str) -> Option<Self> {
        FIELDS.iter().find(|(_, known, _)| *known == name).map(|(field, ..)| *field)
    }

    /// Returns the field's name in a condition.
    pub fn name(self) -> &'static str {
        FIELDS.iter().find(|(field, ..)| *field == self).map_or("", |(_, name, _)| name)
    }

    fn kind(self) -> FieldKind {
        match self {
            Self::Sequence | Self::Batch | Self::Group | Self::Task | Self::Queue | Self::InFlight => {
                FieldKind::Number
            }
            Self::Partition | Self::Waiting | Self::Tasks => FieldKind::Number,
            Self::At => FieldKind::Time,
            Self::Input => FieldKind::Word(Input::NAMES),
            Self::Decision => FieldKind::Word(Decision::NAMES),
            Self::Breaker => FieldKind::Word(&BREAKERS),
            Self::Reason => FieldKind::Text,
            Self::Ready | Self::Paused | Self::Differs => FieldKind::Flag,
            Self::Lane => FieldKind::Lane,
        }
    }
}

impl Comparison {
    fn holds_of_number(&self, found: i64) -> bool {
        let Value::Number(wanted) = self.value else { return self.operator == Operator::Unequal };
        match self.operator {
            Operator::Equal => found == wanted,
            Operator::Unequal => found != wanted,
            Operator::Less => found < wanted,
            Operator::AtMost => found <= wanted,
            Operator::Greater => found > wanted,
            Operator::AtLeast => found >= wanted,
        }
    }

    fn holds_of_text(&self, found: &str) -> bool {
        let Value::Text(wanted) = &self.value else { return self.operator == Operator::Unequal };
        found.eq_ignore_ascii_case(wanted) == (self.operator == Operator::Equal)
    }

    fn holds_of_flag(&self, found: bool) -> bool {
        (self.value == Value::Flag(found)) == (self.operator == Operator::Equal)
    }
}

impl Predicate {
    /// True if the condition contains a field.
    fn names(&self, field: Field) -> bool {
        self.expression.names(field)
    }
}

impl Expression {
    fn names(&self, field: Field) -> bool {
        match self {
            Self::Compare(comparison) => comparison.field == field,
            Self::Not(inner) => inner.names(field),
            Self::All(parts) | Self::Any(parts) => parts.iter().any(|part| part.names(field)),
        }
    }

    fn holds(&self, compare: &dyn Fn(&Comparison) -> bool) -> bool {
        match self {
            Self::Compare(comparison) => compare(comparison),
            Self::Not(inner) => !inner.holds(compare),
            Self::All(parts) => parts.iter().all(|part| part.holds(compare)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(compare)),
        }
    }

    /// Prints a member of a list. A member that is itself a list gets parentheses.
    fn print_part(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(_) | Self::Any(_) => write!(f, "({self})"),
            Self::Compare(_) | Self::Not(_) => write!(f, "{self}"),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, between) = match self {
            Self::Compare(comparison) => return comparison.fmt(f),
            Self::Not(inner) => {
                f.write_str("!")?;
                return inner.print_part(f);
            }
            Self::All(parts) => (parts, " && "),
            Self::Any(parts) => (parts, " || "),
        };
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                f.write_str(between)?;
            }
            part.print_part(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = OPERATORS.iter().rfind(|(_, operator)| *operator == self.operator);
        write!(f, "{}{}", self.field.name(), sign.map_or("", |(sign, _)| sign))?;
        if !self.text.is_empty() && self.text.chars().all(parse::is_word) {
            return f.write_str(&self.text);
        }
        write!(f, "\"{}\"", self.text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expression.fmt(f)
    }
}
