//! Ticks of a workload: the rows that arrive for each group of symbols in each interval.
//!
//! The symbols' shares of the ticks follow Zipf's law. The symbol's name determines its partition and group, as in
//! production. A tick's symbol is drawn from the tick's number, so all policies get the same rows.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::draws::Draws;
use crate::workload::Diurnal;

const NS_PER_S: f64 = 1e9;
/// Seed of the hash that determines a symbol's partition. It makes the partition independent of the group.
const PARTITION_SEED: u64 = 1;
/// Number of binary digits of an exponent's fraction that are used.
const FRACTION_BITS: u32 = 32;

/// Speed of a lane at ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TickSpeed {
    /// Rows per second.
    pub rows_per_s: f64,
    /// Time that a batch takes in addition to its rows, in nanoseconds.
    pub batch_overhead_ns: i64,
}

impl TickSpeed {
    /// Returns the time of a batch of `rows` rows, in nanoseconds.
    pub fn batch_ns(self, rows: i64) -> i64 {
        self.batch_overhead_ns + ((rows as f64 / self.rows_per_s * NS_PER_S) as i64).max(1)
    }
}

/// Bursts of ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surges {
    /// Share of the time that belongs to bursts; below 1.
    pub share: f64,
    /// Rate in a burst, relative to the mean rate. The product with `share` is at most 1.
    pub factor: f64,
    /// Mean length of a burst, exponentially distributed, in seconds.
    pub mean_s: f64,
}

/// How the rate of ticks varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// The rate is constant.
    Constant,
    /// Bursts come at random.
    Bursty(Surges),
    /// The rate is above the mean in the first half of a period, and below it in the second.
    Diurnal(Diurnal),
}

/// Ticks that arrive beside tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Ticks {
    /// Mean number of ticks per second.
    pub rate: f64,
    /// How the rate changes.
    pub pace: Pace,
    /// Number of symbols.
    pub symbols: usize,
    /// Exponent s of Zipf's law: the `n`th symbol's share is proportional to `n` to the power of −s; 0: all shares are
    /// equal.
    pub skew: f64,
    /// Number of partitions of the source.
    pub partitions: usize,
    /// Number of groups of each partition.
    pub groups: usize,
    /// Interval between polls of the source, in nanoseconds; the ticks of an interval arrive together.
    pub interval_ns: i64,
}

impl Ticks {
    /// Returns the share of each group in the ticks; the groups of one partition are adjacent.
    pub fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.partitions * self.groups];
        for symbol in 1..=self.symbols {
            let name = format!("S{symbol}");
            let partition = xxh3_64_with_seed(name.as_bytes(), PARTITION_SEED) % self.partitions as u64;
            let group = xxh3_64(name.as_bytes()) % self.groups as u64;
            shares[partition as usize * self.groups + group as usize] +=
                1.0 / power(symbol as f64, self.skew);
        }
        let all: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= all);
        shares
    }
}

/// Returns a power. It uses only products and square roots, which give the same bits on every machine.
fn power(base: f64, exponent: f64) -> f64 {
    let whole = exponent.floor();
    let mut product = (0..whole as u32).fold(1.0, |product, _| product * base);
    let (mut root, mut rest) = (base, exponent - whole);
    for _ in 0..FRACTION_BITS {
        (root, rest) = (root.sqrt(), rest * 2.0);
        if rest >= 1.0 {
            (product, rest) = (product * root, rest - 1.0);
        }
    }
    product
}

/// The source of ticks of a run.
#[derive(Clone, Debug)]
pub(crate) struct Source<'a> {
    ticks: &'a Ticks,
    /// Cumulative shares of the groups.
    shares: Vec<f64>,
    symbols: Draws,
    lengths: Draws,
    /// Number of ticks drawn.
    drawn: u64,
    /// Fraction of the next tick that is already due.
    due: f64,
    /// Number of the current span; the next field is its end. Bursts have odd numbers, and the spans between them even
    /// ones.
    span: u64,
    span_end_s: f64,
}

impl<'a> Source<'a> {
    pub(crate) fn new(ticks: &'a Ticks, seed: u64) -> Self {
        let mut before = 0.0;
        let with_those_before = |share: &f64| {
            before += share;
            before
        };
        let mut source = Self {
            ticks,
            shares: ticks.shares().iter().map(with_those_before).collect(),
            symbols: Draws::new(seed, "symbols of ticks"),
            lengths: Draws::new(seed, "bursts of ticks"),
            drawn: 0,
            due: 0.0,
            span: 0,
            span_end_s: 0.0,
        };
        source.span_end_s = source.span_s();
        source
    }

    /// Returns the rows of each group in the interval that begins at `from_ns`; the groups of one partition are
    /// adjacent. Calls must be for consecutive intervals.
    pub(crate) fn next(&mut self, from_ns: i64) -> Vec<i64> {
        let rate = self.ticks.rate * self.pace(from_ns as f64 / NS_PER_S);
        self.due += rate * self.ticks.interval_ns as f64 / NS_PER_S;
        let come = self.due.floor();
        self.due -= come;
        let mut rows = vec![0; self.shares.len()];
        for _ in 0..come as u64 {
            let draw = self.symbols.uniform(self.drawn);
            self.drawn += 1;
            let group = self.shares.partition_point(|share| *share <= draw);
            // Rounding may leave the last cumulative share slightly below 1.
            rows[group.min(self.shares.len() - 1)] += 1;
        }
        rows
    }

    /// Returns the rate at a time, relative to the mean rate.
    fn pace(&mut self, at_s: f64) -> f64 {
        match self.ticks.pace {
            Pace::Constant => 1.0,
            Pace::Diurnal(Diurnal { period_s, swing }) => {
                let is_first_half = at_s - (at_s / period_s).floor() * period_s < period_s / 2.0;
                if is_first_half { 1.0 + swing } else { 1.0 - swing }
            }
            Pace::Bursty(Surges { share, factor, .. }) => {
                while at_s >= self.span_end_s {
                    self.span += 1;
                    self.span_end_s += self.span_s();
                }
                match self.span % 2 == 1 {
                    true => factor,
                    false => (1.0 - share * factor) / (1.0 - share),
                }
            }
        }
    }

    /// Returns the length of the current span, in seconds.
    fn span_s(&self) -> f64 {
        let Pace::Bursty(Surges { share, mean_s, .. }) = self.ticks.pace else { return 0.0 };
        let mean_s = if self.span % 2 == 1 { mean_s } else { mean_s * (1.0 - share) / share };
        self.lengths.exponential(self.span) * mean_s
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn ticks() -> Ticks {
        Ticks {
            rate: 20_000.0,
            pace: Pace::Constant,
            symbols: 200,
            skew: 1.0,
            partitions: 2,
            groups: 8,
            interval_ns: 1_000_000,
        }
    }

    /// Returns the rows of each group, and the ticks of each interval, over `seconds`.
    fn come(ticks: &Ticks, seconds: i64) -> (Vec<i64>, Vec<i64>) {
        let (mut source, mut groups, mut intervals) =
            (Source::new(ticks, 3), vec![0; ticks.partitions * ticks.groups], Vec::new());
        for number in 0..seconds * 1_000_000_000 / ticks.interval_ns {
            let rows = source.next(number * ticks.interval_ns);
            groups.iter_mut().zip(&rows).for_each(|(all, rows)| *all += rows);
            intervals.push(rows.iter().sum());
        }
        (groups, intervals)
    }

    #[test]
    fn powers_are_powers() {
        for (base, exponent, expected) in
            [(9.0, 0.5, 3.0), (2.0, 3.0, 8.0), (7.0, 0.0, 1.0), (5.0, 1.2, 6.898_648_307_306_074)]
        {
            let found = power(base, exponent);
            assert!((found / expected - 1.0).abs() < 1e-8, "{base} to {exponent}: {found}");
        }
    }

    #[test]
    fn groups_get_ticks_by_the_shares_of_their_symbols() {
        let ticks = ticks();
        let (groups, intervals) = come(&ticks, 10);
        assert_eq!(intervals.iter().sum::<i64>(), 200_000);
        assert!(intervals.iter().all(|rows| *rows == 20));
        for (rows, share) in groups.iter().zip(ticks.shares()) {
            // The bound is five standard deviations of a binomial distribution.
            let (expected, bound) = (200_000.0 * share, 5.0 * (200_000.0 * share).sqrt() + 1.0);
            assert!((*rows as f64 - expected).abs() < bound, "{rows} rows, expected {expected}");
        }
        let spread = |skew: f64| {
            let shares = Ticks { skew, ..ticks.clone() }.shares();
            shares.iter().copied().fold(0.0, f64::max)
        };
        // By Zipf's law, the first of 200 symbols has a share of 1 ÷ 5.88.
        assert!(spread(0.0) < 0.12 && spread(1.0) > 0.17, "{} {}", spread(0.0), spread(1.0));
    }

    #[test]
    fn rates_change_and_keep_their_mean() {
        let diurnal = Pace::Diurnal(Diurnal { period_s: 2.0, swing: 0.5 });
        let (_, intervals) = come(&Ticks { pace: diurnal, ..ticks() }, 4);
        assert_eq!((intervals[0], intervals[1_000], intervals.iter().sum::<i64>()), (30, 10, 80_000));
        let surges = Surges { share: 0.1, factor: 5.0, mean_s: 0.05 };
        let (_, intervals) = come(&Ticks { pace: Pace::Bursty(surges), ..ticks() }, 200);
        let in_bursts = intervals.iter().filter(|rows| **rows == 100).count() as f64 / 200_000.0;
        let mean = intervals.iter().sum::<i64>() as f64 / 200_000.0;
        // There are about 400 bursts, and as many spans between them; the share is within five standard deviations.
        assert!((in_bursts - 0.1).abs() < 0.035, "{in_bursts} of the time");
        assert!((mean / 20.0 - 1.0).abs() < 0.15, "{mean} ticks in an interval");
    }
}
