//! The ticks section of a workload file.

use serde::Deserialize;

use warptape_scheduler::{GROUPS_PER_PARTITION_MAX, GROUPS_TOTAL_MAX};

use super::{FileError, is_positive, number};
use crate::fleet::Fleet;
use crate::ticks::{Pace, Surges, Ticks};
use crate::workload::{Diurnal, Workload};

/// Greatest number of ticks per second. It is limited because each tick is drawn.
const RATE_MAX: f64 = 1e7;
const SYMBOLS_MAX: usize = 1_000_000;
const PARTITIONS_MAX: usize = 64;
const SKEW_MAX: f64 = 4.0;

/// The ticks of a workload as written in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TicksFile {
    /// Mean number of ticks per second.
    pub rate: f64,
    /// `constant`, `bursty` or `diurnal`.
    #[serde(default = "constant")]
    pub arrivals: String,
    /// For `bursty`: share of the time that belongs to bursts.
    pub burst_share: Option<f64>,
    /// For `bursty`: rate in a burst, relative to the mean rate.
    pub burst_factor: Option<f64>,
    /// For `bursty`: mean length of a burst, in seconds.
    pub burst_s: Option<f64>,
    /// For `diurnal`: the period, in seconds.
    pub period_s: Option<f64>,
    /// For `diurnal`: deviation of the rate from the mean, as a share of the mean.
    pub swing: Option<f64>,
    /// Number of symbols.
    pub symbols: usize,
    /// Exponent of Zipf's law for the symbols' shares of ticks.
    #[serde(default)]
    pub skew: f64,
    /// Number of partitions of the source.
    #[serde(default = "one")]
    pub partitions: usize,
    /// Number of symbol groups of each partition.
    #[serde(default = "groups")]
    pub groups: usize,
    /// Interval between polls of the source, in microseconds.
    #[serde(default = "interval_us")]
    pub interval_us: f64,
}

fn constant() -> String {
    "constant".to_owned()
}

fn one() -> usize {
    1
}

/// Returns the production default.
fn groups() -> usize {
    16
}

fn interval_us() -> f64 {
    1_000.0
}

impl TicksFile {
    pub(super) fn ticks(&self) -> Result<Ticks, FileError> {
        let of = |name: &str, found: f64, is_allowed: bool, allowed| {
            number(format!("{name} of [ticks]"), found, is_allowed, allowed)
        };
        let count = |name: &str, found: usize, most: usize, allowed| {
            of(name, found as f64, (1..=most).contains(&found), allowed)
        };
        let &Self { rate, symbols, skew, partitions, groups, interval_us, .. } = self;
        of("rate", rate, (1e-3..=RATE_MAX).contains(&rate), "from 0.001 to 10,000,000 ticks a second")?;
        count("symbols", symbols, SYMBOLS_MAX, "from 1 to 1,000,000")?;
        of("skew", skew, (0.0..=SKEW_MAX).contains(&skew), "from 0 to 4")?;
        count("partitions", partitions, PARTITIONS_MAX, "from 1 to 64")?;
        count("groups", groups, GROUPS_PER_PARTITION_MAX as usize, "from 1 to 4096")?;
        let most = GROUPS_TOTAL_MAX as usize;
        count("partitions times groups", partitions * groups, most, "up to 65,536")?;
        let is_interval = (1.0..=1e6).contains(&interval_us);
        of("interval_us", interval_us, is_interval, "from 1 to 1,000,000")?;
        let interval_ns = (interval_us * 1e3) as i64;
        let pace = self.pace(interval_us / 1e6)?;
        Ok(Ticks { rate, pace, symbols, skew, partitions, groups, interval_ns })
    }

    /// Returns the pace. It is evaluated once in each interval, so changes within an interval would not show, and are
    /// refused.
    fn pace(&self, interval_s: f64) -> Result<Pace, FileError> {
        let of = |name: &str, value: Option<f64>, is_allowed: &dyn Fn(f64) -> bool, allowed| {
            let value = value.unwrap_or(f64::NAN);
            number(format!("{name} of [ticks]"), value, is_allowed(value), allowed).map(|()| value)
        };
        match self.arrivals.as_str() {
            "constant" => Ok(Pace::Constant),
            "bursty" => {
                let is_share = |share: f64| share > 0.0 && share < 1.0;
                let share = of("burst_share", self.burst_share, &is_share, "above 0, below 1")?;
                let is_factor = |factor: f64| factor >= 1.0 && factor * share <= 1.0;
                let allowed = "1 or more, and times burst_share at most 1";
                Ok(Pace::Bursty(Surges {
                    share,
                    factor: of("burst_factor", self.burst_factor, &is_factor, allowed)?,
                    mean_s: of(
                        "burst_s",
                        self.burst_s,
                        &|burst_s| is_positive(burst_s) && burst_s >= interval_s,
                        "interval_us or more, up to 86,400",
                    )?,
                }))
            }
            "diurnal" => {
                let is_share = |share: f64| (0.0..1.0).contains(&share);
                Ok(Pace::Diurnal(Diurnal {
                    period_s: of(
                        "period_s",
                        self.period_s,
                        &|period_s| is_positive(period_s) && period_s >= 10.0 * interval_s,
                        "ten times interval_us or more, up to 86,400",
                    )?,
                    swing: of("swing", self.swing, &is_share, "from 0, below 1")?,
                }))
            }
            other => Err(FileError::Word {
                field: "arrivals of [ticks]".to_owned(),
                found: other.to_owned(),
                allowed: "constant, bursty, diurnal",
            }),
        }
    }
}

/// Checks that a fleet can process the ticks of a workload, if it has ticks.
pub fn check_ticks(fleet: &Fleet, workload: &Workload) -> Result<(), FileError> {
    if workload.ticks.is_none() {
        return Ok(());
    }
    if fleet.autoscale.is_some() {
        return Err(FileError::TicksAutoscaled);
    }
    match fleet.classes.iter().find(|class| class.ticks.is_none()) {
        Some(class) => Err(FileError::TickSpeed { class: class.name.clone() }),
        None => Ok(()),
    }
}
