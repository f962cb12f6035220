//! Programs: expressions as a list of steps, each on results of steps before it. They are made in `compile`.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use warptape_kernels::SignalKind;

use super::function::Registered;
use super::parse::{Binary, Unary};

/// The formulas and alerts of a configuration, ready to run.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(super) steps: Vec<Step>,
    /// Formulas by name, with the steps of their values.
    pub(super) formulas: Vec<(String, usize)>,
    pub(super) alerts: Vec<Alert>,
    /// Numbers of state.
    pub(super) state_len: usize,
}

/// An alert of a program.
#[derive(Debug)]
pub(super) struct Alert {
    pub(super) name: String,
    pub(super) condition: usize,
    /// Steps of the two sides of a comparison or crossing; `None` for other conditions.
    pub(super) sides: Option<[usize; 2]>,
    pub(super) is_crossing: bool,
    /// State: 0 after a null, 1 outside the condition, 2 within it.
    pub(super) state: usize,
}

/// A step of a program.
#[derive(Debug)]
pub(super) enum Step {
    Number(f64),
    /// The result of a step; null once the number of state is 1.
    Unless(usize, usize),
    Input(usize),
    Unary(Unary, usize),
    Binary(Binary, [usize; 2]),
    Call(Call),
}

/// A call of a function.
pub(super) struct Call {
    pub(super) function: Registered,
    pub(super) series: Vec<usize>,
    pub(super) constants: Vec<f64>,
    pub(super) state: Range<usize>,
    /// For a registered function: the number of state that is 1 after a panic, and the formula or alert with the call.
    pub(super) failed: Option<(usize, String)>,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}({:?}, {:?})", self.function.name(), self.series, self.constants)
    }
}

/// An alert or a fault at a closed bar: a signal without a bar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Occurred {
    /// The closed bar.
    pub(crate) row: u32,
    /// Number among those of the bar.
    pub(crate) number: u16,
    /// `ALERT` if a condition began to hold. `FAULT` if a registered function panicked: its formula or alert is null from
    /// here on.
    pub(crate) kind: SignalKind,
    /// Name of the formula or alert.
    pub(crate) name: String,
    /// Left and right side of the condition.
    pub(crate) sides: [f64; 2],
}

/// Values and occurrences of the bars that closed, with room for the steps of one.
#[derive(Debug, Default)]
pub(crate) struct Computed {
    steps: Vec<f64>,
    /// Room for the series of a call.
    series: Vec<f64>,
    /// Values of the formulas, bar by bar.
    pub(crate) values: Vec<f64>,
    /// Alerts and faults, bar by bar.
    pub(crate) occurred: Vec<Occurred>,
}

impl Computed {
    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.occurred.clear();
    }

    fn push(&mut self, row: u32, kind: SignalKind, name: &str, sides: [f64; 2]) {
        let number = self.occurred.iter().rev().take_while(|other| other.row == row).count() as u16;
        self.occurred.push(Occurred { row, number, kind, name: name.to_owned(), sides });
    }
}

impl Program {
    /// True if there is nothing to compute.
    pub(crate) fn is_empty(&self) -> bool {
        self.formulas.is_empty() && self.alerts.is_empty()
    }

    /// Numbers of state of one symbol under one specification.
    pub(crate) fn state_len(&self) -> usize {
        self.state_len
    }

    /// Number of formulas.
    pub(crate) fn formula_count(&self) -> usize {
        self.formulas.len()
    }

    /// Names of the formulas, in the order of their values.
    pub(crate) fn formula_names(&self) -> impl Iterator<Item = &str> {
        self.formulas.iter().map(|(name, _)| name.as_str())
    }

    /// Computes a closed bar and appends its values and occurrences.
    pub(crate) fn run(&self, row: u32, inputs: &[f64], state: &mut [f64], computed: &mut Computed) {
        computed.steps.clear();
        for step in &self.steps {
            let (results, series) = (&computed.steps, &mut computed.series);
            let value = match step {
                Step::Number(number) => *number,
                Step::Unless(failed, of) if state[*failed] == 0.0 => results[*of],
                Step::Unless(..) => f64::NAN,
                Step::Input(place) => inputs[*place],
                Step::Unary(operator, of) => unary(*operator, results[*of]),
                Step::Binary(operator, [left, right]) => binary(*operator, results[*left], results[*right]),
                Step::Call(call) => call.run(results, state, series).unwrap_or_else(|name| {
                    computed.push(row, SignalKind::Fault, name, [0.0; 2]);
                    f64::NAN
                }),
            };
            // One pattern of null and one 0 on all processors, and no infinity.
            computed.steps.push(if value.is_finite() { value + 0.0 } else { f64::NAN });
        }
        computed.values.extend(self.formulas.iter().map(|(_, step)| computed.steps[*step]));
        for alert in &self.alerts {
            if let Some(sides) = alert.enters(&computed.steps, &mut state[alert.state]) {
                computed.push(row, SignalKind::Alert, &alert.name, sides);
            }
        }
    }
}

impl Alert {
    /// Both sides if the condition began to hold. The bar before must have had one that did not.
    fn enters(&self, results: &[f64], state: &mut f64) -> Option<[f64; 2]> {
        let condition = results[self.condition];
        let was_outside = *state == 1.0;
        *state = if condition.is_nan() {
            0.0
        } else if condition == 0.0 {
            1.0
        } else {
            2.0
        };
        // A crossing looks at the bar before by itself.
        let enters = (was_outside || self.is_crossing) && *state == 2.0;
        enters.then(|| self.sides.map_or([condition, 0.0], |sides| sides.map(|side| results[side])))
    }
}

impl Call {
    /// Returns the value.
    ///
    /// # Errors
    /// The formula or alert with the call, if a registered function panics.
    fn run(&self, results: &[f64], state: &mut [f64], series: &mut Vec<f64>) -> Result<f64, &str> {
        series.clear();
        series.extend(self.series.iter().map(|step| results[*step]));
        let Some((failed, name)) = &self.failed else {
            return Ok(self.function.next(&self.constants, &mut state[self.state.clone()], series));
        };
        if state[*failed] != 0.0 {
            return Ok(f64::NAN);
        }
        let own = &mut state[self.state.clone()];
        let next = catch_unwind(AssertUnwindSafe(|| self.function.next(&self.constants, own, series)));
        next.map_err(|_| {
            // A half-done state must not reach a snapshot.
            state[self.state.clone()].fill(0.0);
            state[*failed] = 1.0;
            name.as_str()
        })
    }
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn unary(operator: Unary, value: f64) -> f64 {
    match operator {
        Unary::Minus => -value,
        Unary::Not if value.is_nan() => f64::NAN,
        Unary::Not => truth(value == 0.0),
    }
}

fn binary(operator: Binary, left: f64, right: f64) -> f64 {
    if left.is_nan() || right.is_nan() {
        return f64::NAN;
    }
    match operator {
        Binary::Or => truth(left != 0.0 || right != 0.0),
        Binary::And => truth(left != 0.0 && right != 0.0),
        Binary::Greater => truth(left > right),
        Binary::GreaterOrEqual => truth(left >= right),
        Binary::Less => truth(left < right),
        Binary::LessOrEqual => truth(left <= right),
        Binary::Equal => truth(left == right),
        Binary::Unequal => truth(left != right),
        Binary::Plus => left + right,
        Binary::Minus => left - right,
        Binary::Times => left * right,
        Binary::Over => left / right,
    }
}
