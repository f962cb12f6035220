//! Functions of series: the part of a formula with a memory.

use std::sync::OnceLock;

use super::is_name;

/// A constant behind the series of a call, such as the 50 of `zscore(spread, 50)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant {
    /// Name in messages.
    pub name: &'static str,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
    /// True if it has to be a whole number.
    pub is_whole: bool,
}

impl Constant {
    /// A number of bars: 1 to 1000.
    pub const BARS: Self = Self { name: "bars", min: 1.0, max: 1_000.0, is_whole: true };
}

/// A function of formulas. It computes one number at each closed bar from its series and its own state.
///
/// Results must depend on the arguments alone: no clock, no randomness, no global state. Then replays give the same bits.
pub trait Function: Sync {
    /// Name in formulas: lower case letters, digits and `_`.
    fn name(&self) -> &'static str;

    /// Version of the results. Raise it with each change of them: journals record it, and replays ask for it.
    fn version(&self) -> u32;

    /// Number of series, the first arguments of a call.
    fn series(&self) -> usize;

    /// Constants, the last arguments of a call.
    fn constants(&self) -> &'static [Constant] {
        &[]
    }

    /// Numbers of state that one symbol needs under one specification of bars.
    fn state_len(&self, constants: &[f64]) -> usize;

    /// Returns the value at a closed bar. The state is 0 everywhere before the first bar. NaN stands for null, in series
    /// and as the value.
    fn next(&self, constants: &[f64], state: &mut [f64], series: &[f64]) -> f64;
}

/// A function that [`register`] accepts.
pub type Registered = &'static dyn Function;

static REGISTERED: OnceLock<Vec<Registered>> = OnceLock::new();

/// Registers a program's own functions, once, before it reads a configuration. They hide functions of every program with
/// the same names.
///
/// # Errors
/// If a name is not allowed or given twice, or functions were registered before.
pub fn register(functions: &[Registered]) -> Result<(), String> {
    for (index, function) in functions.iter().enumerate() {
        let name = function.name();
        if !is_name(name) {
            return Err(format!("function {name:?}: a name has lower case letters, digits and _"));
        }
        if functions[..index].iter().any(|other| other.name() == name) {
            return Err(format!("function {name} is given twice: give each one a name of its own"));
        }
    }
    REGISTERED
        .set(functions.to_vec())
        .map_err(|_| "functions were registered before: call it once".to_owned())
}

/// The registered function of this name; `None` if there is none.
pub(super) fn registered(name: &str) -> Option<Registered> {
    REGISTERED.get()?.iter().copied().find(|function| function.name() == name)
}

/// The newest values of a series, at most as many as the state has room for. A null empties it.
///
/// Its state has two numbers besides the values: how many there are, and where the next one goes.
pub struct Window<'a> {
    head: &'a mut [f64],
    values: &'a mut [f64],
}

impl<'a> Window<'a> {
    /// Numbers of state for a window of so many values.
    pub const fn state_len(values: usize) -> usize {
        values + 2
    }

    /// The window in this state.
    pub fn of(state: &'a mut [f64]) -> Self {
        let (head, values) = state.split_at_mut(2);
        Self { head, values }
    }

    /// Adds a value, in place of the oldest one if the window is full.
    pub fn push(&mut self, value: f64) {
        if value.is_nan() {
            self.head.fill(0.0);
            return;
        }
        let place = self.head[1] as usize % self.values.len();
        self.values[place] = value;
        self.head[0] = (self.head[0] + 1.0).min(self.values.len() as f64);
        self.head[1] = ((place + 1) % self.values.len()) as f64;
    }

    /// True if the window has all of its values.
    pub fn is_full(&self) -> bool {
        self.head[0] as usize == self.values.len()
    }

    /// The values, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        let room = self.values.len();
        let (count, next) = ((self.head[0] as usize).min(room), self.head[1] as usize % room);
        let (newer, older) = self.values.split_at(next);
        older.iter().chain(newer).skip(room - count).copied()
    }
}
