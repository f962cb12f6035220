//! Bars and averages, shared by both rivals: what they compute is the same, and how ticks reach it differs.

use serde::{Deserialize, Serialize};

const FAST: u32 = 38;
const SLOW: u32 = 100;

/// A trade or a quote; times in ns since the epoch, prices and sizes in units of 1e-9.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Tick {
    pub time_ns: i64,
    pub symbol: u32,
    pub is_trade: bool,
    pub price: i64,
    pub size: i64,
}

impl Tick {
    pub fn of(bytes: &[u8; 32]) -> Self {
        let wide = |at: usize| i64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let narrow = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        Self {
            time_ns: wide(0),
            symbol: narrow(8),
            is_trade: narrow(12) == 1,
            price: wide(16),
            size: wide(24),
        }
    }
}

pub struct Task {
    pub lengths_ns: Vec<i64>,
    pub emas: bool,
    pub crossings: bool,
}

/// A bar of trades; without trades before the first `fold`.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub struct Bar {
    pub symbol: u32,
    pub length_ns: i64,
    pub start_ns: i64,
    pub open: i64,
    pub high: i64,
    pub low: i64,
    pub close: i64,
    pub volume: i64,
    pub trades: u64,
}

impl Bar {
    pub fn fold(&mut self, tick: &Tick, length_ns: i64) {
        if self.trades == 0 {
            *self = Self {
                symbol: tick.symbol,
                length_ns,
                start_ns: tick.time_ns.div_euclid(length_ns) * length_ns,
                open: tick.price,
                high: tick.price,
                low: tick.price,
                ..Self::default()
            };
        }
        self.high = self.high.max(tick.price);
        self.low = self.low.min(tick.price);
        self.close = tick.price;
        self.volume += tick.size;
        self.trades += 1;
    }
}

/// A closed bar with the averages after it. `crossing` is 1 if the fast one rose above the slow one, -1 if it fell below, else 0.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Row {
    pub bar: Bar,
    pub fast: Option<f64>,
    pub slow: Option<f64>,
    pub crossing: i8,
}

/// An exponential average whose first value is the mean of its first window.
#[derive(Clone, Copy)]
struct Average {
    window: u32,
    values: u32,
    sum_or_average: f64,
}

impl Average {
    const fn new(window: u32) -> Self {
        Self { window, values: 0, sum_or_average: 0.0 }
    }

    fn push(&mut self, value: f64) -> Option<f64> {
        if self.values >= self.window {
            self.sum_or_average += (value - self.sum_or_average) * (2.0 / f64::from(self.window + 1));
            return Some(self.sum_or_average);
        }
        self.values += 1;
        self.sum_or_average += value;
        if self.values < self.window {
            return None;
        }
        self.sum_or_average /= f64::from(self.window);
        Some(self.sum_or_average)
    }
}

/// Both averages of a symbol, and their values after the bar before.
#[derive(Clone, Copy)]
pub struct Averages {
    fast: Average,
    slow: Average,
    before: Option<(f64, f64)>,
}

impl Averages {
    pub const fn new() -> Self {
        Self { fast: Average::new(FAST), slow: Average::new(SLOW), before: None }
    }

    pub fn push(&mut self, bar: Bar, crossings: bool) -> Row {
        let close = bar.close as f64 / 1e9;
        let (fast, slow) = (self.fast.push(close), self.slow.push(close));
        let both = fast.zip(slow);
        let crossing = match (self.before, both) {
            (Some((fast_before, slow_before)), Some((fast, slow))) if crossings => {
                i8::from(fast > slow && fast_before <= slow_before)
                    - i8::from(fast < slow && fast_before >= slow_before)
            }
            _ => 0,
        };
        self.before = both;
        Row { bar, fast, slow, crossing }
    }
}

/// The bar alone, for tasks without averages.
pub const fn plain_row(bar: Bar) -> Row {
    Row { bar, fast: None, slow: None, crossing: 0 }
}
