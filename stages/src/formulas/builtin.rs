//! The functions that every program has. Journals do not record their versions: other results need new
//! [`Rules`](crate::Rules).

use warptape_kernels::math::{exp, ln};

use super::function::{Constant, Function, Window};

/// A function that every program has, with the words of its definition.
pub struct Builtin {
    name: &'static str,
    series: usize,
    constants: &'static [Constant],
    /// The definition, for the book.
    pub about: &'static str,
    state_len: fn(usize) -> usize,
    next: fn(usize, &mut [f64], &[f64]) -> f64,
}

impl Function for Builtin {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn series(&self) -> usize {
        self.series
    }

    fn constants(&self) -> &'static [Constant] {
        self.constants
    }

    fn state_len(&self, constants: &[f64]) -> usize {
        (self.state_len)(bars(constants))
    }

    fn next(&self, constants: &[f64], state: &mut [f64], series: &[f64]) -> f64 {
        (self.next)(bars(constants), state, series)
    }
}

/// The number of bars of a call; 0 if its function has none.
fn bars(constants: &[f64]) -> usize {
    constants.first().map_or(0, |bars| *bars as usize)
}

const NONE: &[Constant] = &[];
const BARS: &[Constant] = &[Constant::BARS];

macro_rules! builtin {
    ($($name:literal($series:literal, $constants:ident) $about:literal, $state_len:expr, $next:expr;)+) => {
        /// All of them, in the order of the book.
        pub const BUILTIN: &[Builtin] = &[$(Builtin {
            name: $name,
            series: $series,
            constants: $constants,
            about: $about,
            state_len: $state_len,
            next: $next,
        },)+];
    };
}

builtin! {
    "abs"(1, NONE) "`x` without its sign", |_| 0, |_, _, x| x[0].abs();
    "sqrt"(1, NONE) "root of `x`; null below 0", |_| 0, |_, _, x| x[0].sqrt();
    "ln"(1, NONE) "natural logarithm of `x`; null at 0 and below", |_| 0, |_, _, x| if x[0] > 0.0 { ln(x[0]) } else { f64::NAN };
    "exp"(1, NONE) "e to the power of `x`", |_| 0, |_, _, x| if x[0].is_nan() { f64::NAN } else { exp(x[0]) };
    "min"(2, NONE) "the lesser of `x` and `y`", |_| 0, |_, _, x| either(x, x[0] <= x[1]);
    "max"(2, NONE) "the greater of `x` and `y`", |_| 0, |_, _, x| either(x, x[0] >= x[1]);
    "if"(3, NONE) "`y` if `x` is not 0, else `z`", |_| 0, |_, _, x| choose(x);
    "coalesce"(2, NONE) "`x`; `y` if `x` is null", |_| 0, |_, _, x| if x[0].is_nan() { x[1] } else { x[0] };
    "lag"(1, BARS) "`x` of the bar that is `bars` bars earlier; needs `bars + 1` values in a row", |n| Window::state_len(n + 1), |_, state, x| lag(state, x[0]);
    "change"(1, BARS) "`x - lag(x, bars)`", |n| Window::state_len(n + 1), |_, state, x| x[0] - lag(state, x[0]);
    "sum"(1, BARS) "sum of the last values, from the oldest to the newest", Window::state_len, |_, state, x| full(state, x[0], sum);
    "mean"(1, BARS) "`sum(x, bars) / bars`", Window::state_len, |_, state, x| full(state, x[0], mean);
    "std"(1, BARS) "standard deviation of the last values: root of the mean squared distance from `mean`; 0 if all are equal", Window::state_len, |_, state, x| full(state, x[0], deviation);
    "zscore"(1, BARS) "`(x - mean) / std` of the last values, `x` among them; 0 if all are equal", Window::state_len, |_, state, x| zscore(state, x[0]);
    "highest"(1, BARS) "greatest of the last values", Window::state_len, |_, state, x| full(state, x[0], |window| farthest(window, |value, most| value > most));
    "lowest"(1, BARS) "least of the last values", Window::state_len, |_, state, x| full(state, x[0], |window| farthest(window, |value, least| value < least));
    "ema"(1, BARS) "`e + (x - e) * (2 / (bars + 1))`, where the first `e` is the mean of the first `bars` values. If `x` is null, the result is null and `e` stays", |_| 2, ema;
    "correlation"(2, BARS) "Pearson's correlation of the last values of `x` and `y`; null if one of them never changes", |n| 2 * Window::state_len(n), |n, state, x| correlation(n, state, x);
    "bars_since"(1, NONE) "number of bars since `x` was last not 0; null if it never was", |_| 1, |_, state, x| bars_since(state, x[0]);
    "crosses_above"(2, NONE) "1 if `x > y`, and `x <= y` at the bar before; else 0; null unless both bars have `x` and `y`", |_| 2, |_, state, x| crosses(state, x[0], x[1]);
    "crosses_below"(2, NONE) "1 if `x < y`, and `x >= y` at the bar before; else 0; null unless both bars have `x` and `y`", |_| 2, |_, state, x| crosses(state, x[1], x[0]);
}

/// The function of this name; `None` if there is none.
pub(super) fn find(name: &str) -> Option<&'static Builtin> {
    BUILTIN.iter().find(|function| function.name == name)
}

fn either(x: &[f64], is_first: bool) -> f64 {
    match (x[0].is_nan() || x[1].is_nan(), is_first) {
        (true, _) => f64::NAN,
        (false, true) => x[0],
        (false, false) => x[1],
    }
}

fn choose(x: &[f64]) -> f64 {
    if x[0].is_nan() {
        f64::NAN
    } else if x[0] != 0.0 {
        x[1]
    } else {
        x[2]
    }
}

/// Adds a value to the window; null until the window is full.
fn full(state: &mut [f64], x: f64, of: impl FnOnce(&Window<'_>) -> f64) -> f64 {
    let mut window = Window::of(state);
    window.push(x);
    if window.is_full() { of(&window) } else { f64::NAN }
}

fn lag(state: &mut [f64], x: f64) -> f64 {
    full(state, x, |window| window.iter().next().unwrap_or(f64::NAN))
}

fn sum(window: &Window<'_>) -> f64 {
    window.iter().fold(0.0, |sum, value| sum + value)
}

fn mean(window: &Window<'_>) -> f64 {
    sum(window) / window.iter().count() as f64
}

/// The first value beyond which no other lies. `f64::max` would leave the sign of 0 to the processor.
fn farthest(window: &Window<'_>, is_beyond: impl Fn(f64, f64) -> bool) -> f64 {
    let further = |farthest, value| if is_beyond(value, farthest) { value } else { farthest };
    window.iter().reduce(further).unwrap_or(f64::NAN)
}

fn is_constant(window: &Window<'_>) -> bool {
    let mut values = window.iter();
    let first = values.next();
    values.all(|value| Some(value) == first)
}

fn deviation(window: &Window<'_>) -> f64 {
    if is_constant(window) {
        return 0.0;
    }
    let mean = mean(window);
    let squares = window.iter().fold(0.0, |sum, value| sum + (value - mean) * (value - mean));
    (squares / window.iter().count() as f64).sqrt()
}

fn zscore(state: &mut [f64], x: f64) -> f64 {
    full(state, x, |window| if is_constant(window) { 0.0 } else { (x - mean(window)) / deviation(window) })
}

/// State: number of values seen up to the seed, and the average, which is their sum before it is seeded.
fn ema(bars: usize, state: &mut [f64], x: &[f64]) -> f64 {
    let (x, bars) = (x[0], bars as f64);
    if x.is_nan() {
        return f64::NAN;
    }
    if state[0] < bars {
        state[0] += 1.0;
        state[1] += x;
        if state[0] < bars {
            return f64::NAN;
        }
        state[1] /= bars;
    } else {
        state[1] += (x - state[1]) * (2.0 / (bars + 1.0));
    }
    state[1]
}

fn correlation(bars: usize, state: &mut [f64], series: &[f64]) -> f64 {
    let (x, y) = state.split_at_mut(Window::state_len(bars));
    let (mut x, mut y) = (Window::of(x), Window::of(y));
    // A null of one series leaves no pair.
    let has_null = series[0].is_nan() || series[1].is_nan();
    x.push(if has_null { f64::NAN } else { series[0] });
    y.push(if has_null { f64::NAN } else { series[1] });
    if !x.is_full() || is_constant(&x) || is_constant(&y) {
        return f64::NAN;
    }
    let (mean_x, mean_y) = (mean(&x), mean(&y));
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in x.iter().zip(y.iter()) {
        let (x, y) = (x - mean_x, y - mean_y);
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    (xy / (xx.sqrt() * yy.sqrt())).clamp(-1.0, 1.0)
}

/// State: bars since the last one plus 1; 0 if there was none.
fn bars_since(state: &mut [f64], x: f64) -> f64 {
    if !x.is_nan() && x != 0.0 {
        state[0] = 1.0;
    } else if state[0] > 0.0 {
        state[0] += 1.0;
    }
    if state[0] > 0.0 { state[0] - 1.0 } else { f64::NAN }
}

/// State: 1 if the bar before had both values, and 1 if `x` was above `y` there.
fn crosses(state: &mut [f64], x: f64, y: f64) -> f64 {
    let (had_values, was_above) = (state[0] == 1.0, state[1] == 1.0);
    let has_values = !x.is_nan() && !y.is_nan();
    state[0] = f64::from(u8::from(has_values));
    state[1] = f64::from(u8::from(x > y));
    if has_values && had_values { f64::from(u8::from(x > y && !was_above)) } else { f64::NAN }
}
