//! Arguments of `replay what-if`.

use std::path::PathBuf;

use clap::Args;
use warptape_replay::history::{Bound, Window};
use warptape_what_if::{Changes, LossTime};

use super::chain::{forwards, parse_bound, parse_time};
use crate::cli::ListFormat;
use crate::usage_error::UsageError;

/// Allowed factors for the time of a slowed lane's work.
const SLOW: std::ops::RangeInclusive<f64> = 0.01..=1_000.0;

/// Arguments of `warptape replay what-if`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
External inputs (rows, tasks, partitions, losses of lanes, commands) arrive as recorded. The scheduler decides anew in virtual time, and a model
fitted to the same journal predicts when lanes finish. The recorded configuration is modelled too: its error against the measurements is the
noise floor, and smaller differences are not claimed. --set takes field names as `replay diff` prints them, such as scheduler.row_deadline_ns or
risk.slice_ns, or those of the configuration, such as row_deadline_us and slice_us.
LANE is a number or a device; TIME is a time such as 2026-11-24T03:00:00Z, or +SECONDS after the window begins; a BOUND is a time, `offset:N` or
`sequence:N` of a journal entry. See docs/scheduling.md.

Example: warptape replay what-if --log sqlite:market.db --policy lp-price --slow cpu:1=2x")]
pub struct WhatIfArgs {
    /// Other policy of tasks or of placement; a network as dqn:FILE, or as dqn:HASH if the recorded run has it
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Other devices for the lanes, in the form of engine.devices: cpu:4, or cuda:0,cuda:1
    #[arg(long, value_name = "DEVICE", value_delimiter = ',')]
    pub devices: Vec<String>,
    /// Other value for a field of the scheduler's configuration
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    pub set: Vec<(String, String)>,
    /// Other weight for a lane
    #[arg(long, value_name = "LANE=N", value_parser = parse_weight)]
    pub weight: Vec<(String, i32)>,
    /// Factor for the time of a lane's work
    #[arg(long, value_name = "LANE=FACTORx", value_parser = parse_slow)]
    pub slow: Vec<(String, i64)>,
    /// Lane to lose at a time, without coming back
    #[arg(long, value_name = "LANE@TIME", value_parser = parse_lose)]
    pub lose: Vec<(String, LossTime)>,
    /// Runs of each configuration, each with its own seed of the residuals
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..=1_000))]
    pub seeds: u64,
    /// First entry that is counted (default: the first one in the log)
    #[arg(long, value_name = "BOUND", value_parser = parse_bound)]
    pub since: Option<Bound>,
    /// First entry after the window (default: none, all entries to the end)
    #[arg(long, value_name = "BOUND", value_parser = parse_bound)]
    pub until: Option<Bound>,
    /// Ordinal of the process, which is the partition of the journal
    #[arg(long, value_name = "ORDINAL", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..))]
    pub partition: i32,
    /// File to create for the modelled run of the first seed: a log with a journal, one side of `replay diff`; it must
    /// not exist yet
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
    /// Format of the output; JSON is one object, and CSV has the table of figures
    #[arg(short, long, value_enum, default_value_t = ListFormat::Table)]
    pub output: ListFormat,
    /// All columns, uncut, whatever the width of the terminal
    #[arg(long)]
    pub wide: bool,
}

impl WhatIfArgs {
    /// Returns the changes to the recorded run, without the network of a policy `dqn:FILE`, which is not read here.
    pub fn changes(&self) -> Changes {
        Changes {
            policy: self.policy.clone(),
            network: None,
            set: self.set.clone(),
            devices: self.devices.clone(),
            weights: self.weight.clone(),
            slow: self.slow.clone(),
            lose: self.lose.clone(),
        }
    }

    /// Returns the window for the replay; an error if it ends before it begins.
    pub fn window(&self) -> Result<Window, UsageError> {
        forwards(Window { from: self.since, to: self.until })
    }
}

fn parse_set(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("give KEY=VALUE, such as risk.slice_ns=250000")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn parse_weight(text: &str) -> Result<(String, i32), String> {
    let (lane, weight) = text.rsplit_once('=').ok_or("give LANE=N, such as cpu:1=2")?;
    let weight = weight.parse().map_err(|_| format!("{weight:?} is no weight; give a number such as 2"))?;
    Ok((lane.to_owned(), weight))
}

fn parse_slow(text: &str) -> Result<(String, i64), String> {
    let (lane, factor) = text.rsplit_once('=').ok_or("give LANE=FACTORx, such as cpu:1=2x")?;
    let number = factor.strip_suffix('x').unwrap_or(factor).parse::<f64>();
    let number = number.ok().filter(|number| SLOW.contains(number));
    let number = number.ok_or_else(|| format!("{factor:?} is no factor; give one from 0.01x to 1000x"))?;
    Ok((lane.to_owned(), (number * 1_000.0).round() as i64))
}

fn parse_lose(text: &str) -> Result<(String, LossTime), String> {
    let (lane, at) = text.rsplit_once('@').ok_or("give LANE@TIME, such as cpu:1@+5")?;
    let time = match at.strip_prefix('+') {
        None => LossTime::At(parse_time(at)?),
        Some(seconds) => {
            let seconds = seconds.strip_suffix('s').unwrap_or(seconds).parse::<f64>().ok();
            let seconds = seconds.filter(|seconds| (0.0..1e9).contains(seconds));
            let seconds = seconds.ok_or_else(|| {
                format!(
                    "{at:?} is no number of seconds; give one such as +5 \
                                                         or +0.25"
                )
            })?;
            LossTime::After((seconds * 1e9) as i64)
        }
    };
    Ok((lane.to_owned(), time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read() {
        assert_eq!(parse_set("risk.slice_ns=5"), Ok(("risk.slice_ns".to_owned(), "5".to_owned())));
        assert!(parse_set("risk.slice_ns").unwrap_err().contains("KEY=VALUE"));
        assert_eq!(parse_weight("cpu:1=2"), Ok(("cpu:1".to_owned(), 2)));
        for wrong in ["1", "1=x", "1=2.5", "1=99999999999"] {
            assert!(parse_weight(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_slow("cpu:1=2.5x"), Ok(("cpu:1".to_owned(), 2_500)));
        assert_eq!(parse_slow("1=2"), Ok(("1".to_owned(), 2_000)));
        for wrong in ["1", "1=0x", "1=x", "1=-2x", "1=2000x", "1=NaN"] {
            assert!(parse_slow(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_lose("1@+1.5"), Ok(("1".to_owned(), LossTime::After(1_500_000_000))));
        assert_eq!(
            parse_lose("cpu:1@1970-01-01T00:00:02Z"),
            Ok(("cpu:1".to_owned(), LossTime::At(2_000_000_000)))
        );
        for wrong in ["1", "1@", "1@+x", "1@+-1", "1@yesterday"] {
            assert!(parse_lose(wrong).is_err(), "{wrong}");
        }
    }
}
