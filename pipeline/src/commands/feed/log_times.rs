//! Times that the log has ticks up to: rows far behind them are late for `run`, and rows far ahead of them wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use warptape_eventlog::{Consumer, EventLog, Fetched, LogError, OffsetRange, TopicPartition};
use warptape_replay::utc;
use warptape_schemas::{SymbolTable, TickColumns, TickDecoder};
use warptape_sources::csv::{OrderLimits, length_text};
use warptape_sources::{EarliestTicks, partition_of};
use warptape_stages::StageConfig;

use crate::cli::Interrupt;
use crate::feed_ledger::FeedInput;

/// Offsets at the end of a partition that are looked at first.
const TAIL_OFFSETS: i64 = 16;
/// Records and bytes of one read.
const READ_RECORDS_MAX: usize = 64;
const READ_BYTES_MAX: usize = 4 << 20;
/// Wait between two looks whether the end is reached.
const READ_WAIT: Duration = Duration::from_millis(100);

/// How far a tick may lie from those before it.
pub fn limits_of(stages: &StageConfig) -> OrderLimits {
    OrderLimits {
        lateness_ns: stages.allowed_lateness_ns,
        lateness_by_venue_ns: stages.lateness_by_venue_ns.clone(),
        ahead_ns_max: stages.future_max_ns,
    }
}

/// Times of the newest ticks in the log.
pub struct LogTimes {
    limits: OrderLimits,
    ticks: String,
    /// By partition that has ticks.
    newest_ns: BTreeMap<i32, i64>,
    partitions: i32,
}

/// The first row that lies far from what its partition has.
#[derive(Debug, PartialEq, Eq)]
pub struct Far {
    pub input: usize,
    pub line: u64,
    /// `30 days later than the newest tick in partition 2 of `ticks`, of 2024-08-08T…`
    pub what: String,
    pub is_late: bool,
}

impl LogTimes {
    /// Reads the ends of all partitions of ticks.
    pub fn read(
        log: &dyn EventLog,
        ticks: &str,
        partitions: i32,
        limits: OrderLimits,
        interrupt: &Interrupt,
    ) -> Result<LogTimes, LogError> {
        let mut newest_ns = BTreeMap::new();
        let places = (0..partitions).map(|partition| TopicPartition { topic: ticks.to_owned(), partition });
        let mut wanted = places
            .map(|place| Ok((log.offsets(&place)?, place)))
            .collect::<Result<Vec<(OffsetRange, TopicPartition)>, LogError>>()?;
        let mut offsets = TAIL_OFFSETS;
        loop {
            wanted.retain(|(range, _)| range.first < range.next);
            if wanted.is_empty() || interrupt.is_set() {
                break;
            }
            let times_ns = tail_times(log, &wanted, offsets, interrupt)?;
            for (partition, times_ns) in times_ns {
                newest_ns.extend(newest(times_ns, limits.ahead_ns_max).map(|newest| (partition, newest)));
            }
            // Where no tick was, one may stand further back.
            wanted.retain(|(range, place)| {
                range.next - range.first > offsets && !newest_ns.contains_key(&place.partition)
            });
            offsets = offsets.saturating_mul(8);
        }
        Ok(LogTimes { limits, ticks: ticks.to_owned(), newest_ns, partitions })
    }

    /// Rows that are far from what the log has in their partitions, the first of each file and partition; of files of which nothing is in
    /// the log (`before`).
    pub fn far(&self, earliest: &EarliestTicks, before: &[u64]) -> Vec<Far> {
        let mut firsts: BTreeMap<(usize, i32), (i64, u64, &str)> = BTreeMap::new();
        for (input, symbol, time_ns, line) in earliest.iter() {
            let key = (input, partition_of(symbol, self.partitions));
            let first = firsts.entry(key).or_insert((time_ns, line, symbol));
            *first = (*first).min((time_ns, line, symbol));
        }
        let new = firsts.into_iter().filter(|((input, _), _)| before[*input] == 0);
        let far = new.filter_map(|((input, partition), (time_ns, line, symbol))| {
            let (is_late, what) = self.distance(partition, symbol, time_ns)?;
            Some(Far { input, line, what, is_late })
        });
        let mut far: Vec<Far> = far.collect();
        far.sort_by_key(|far| (far.input, far.line));
        far
    }

    fn distance(&self, partition: i32, symbol: &str, time_ns: i64) -> Option<(bool, String)> {
        let newest_ns = *self.newest_ns.get(&partition)?;
        let venue = symbol.split_once(':').map_or(symbol, |(venue, _)| venue);
        let lateness_ns = self.limits.lateness_by_venue_ns.get(venue).unwrap_or(&self.limits.lateness_ns);
        let is_late = time_ns < newest_ns.saturating_sub(*lateness_ns);
        let is_ahead =
            self.limits.ahead_ns_max.is_some_and(|max_ns| time_ns > newest_ns.saturating_add(max_ns));
        if !is_late && !is_ahead {
            return None;
        }
        let length = length_text(time_ns.abs_diff(newest_ns).min(i64::MAX as u64) as i64);
        let word = if is_late { "earlier" } else { "later" };
        let (ticks, newest) = (&self.ticks, utc(newest_ns));
        Some((
            is_late,
            format!(
                "{length} {word} than the newest tick in partition {partition} of `{ticks}`, of {newest}"
            ),
        ))
    }
}

impl Far {
    /// The error of a feed that publishes nothing for it.
    pub fn refused(&self, inputs: &[FeedInput]) -> String {
        let todo = match self.is_late {
            true => {
                "files whose times overlap are merged by one command that names them all, and older ones have a log of their own (--log);                  --keep-order feeds the rows as they stand"
            }
            false => {
                "--follow-gaps has `run` follow, which makes ticks of other feeds late that are further behind; --keep-order feeds the rows                  as they stand"
            }
        };
        format!("{}, so that nothing is published: {todo}", self.says(inputs, "line"))
    }

    /// What `run` makes of the row.
    pub fn says(&self, inputs: &[FeedInput], place_word: &str) -> String {
        let path = inputs[self.input].path.as_ref();
        let path = path.map_or_else(|| "the market".to_owned(), |path| path.display().to_string());
        let becomes = match self.is_late {
            true => "late for `run` (`stages.allowed_lateness_ms`)",
            false => "wrong for `run`, as are the first ticks behind it (`stages.future_max_ms`)",
        };
        format!("{path}: {place_word} {} is {}, and {becomes}", self.line, self.what)
    }
}

/// The newest of the last ticks, without those that `run` takes for wrong.
fn newest(mut times_ns: Vec<i64>, ahead_ns_max: Option<i64>) -> Option<i64> {
    times_ns.sort_unstable();
    let median_ns = *times_ns.get(times_ns.len() / 2)?;
    let most_ns = ahead_ns_max.map_or(i64::MAX, |max_ns| median_ns.saturating_add(max_ns));
    times_ns.into_iter().rfind(|time_ns| *time_ns <= most_ns)
}

/// Times of the ticks among so many last offsets, by partition.
fn tail_times(
    log: &dyn EventLog,
    wanted: &[(OffsetRange, TopicPartition)],
    offsets: i64,
    interrupt: &Interrupt,
) -> Result<BTreeMap<i32, Vec<i64>>, LogError> {
    let places: Vec<TopicPartition> = wanted.iter().map(|(_, place)| place.clone()).collect();
    let mut reader = log.reader(&places)?;
    for (range, place) in wanted {
        reader.seek(place, range.next.saturating_sub(offsets).max(range.first))?;
    }
    let (mut decoder, mut names) = (TickDecoder::new(), SymbolTable::default());
    let (mut columns, mut times_ns) = (TickColumns::default(), BTreeMap::<i32, Vec<i64>>::new());
    while !interrupt.is_set() && is_unread(&mut *reader, wanted)? {
        let fetched = reader.poll(READ_WAIT, READ_RECORDS_MAX, READ_BYTES_MAX)?;
        let Fetched::Records { source, records } = fetched else { continue };
        for record in records {
            columns.clear();
            // A record that cannot be read is a dead letter for `run`.
            if decoder.decode(&record.value, &mut names, &mut columns).is_ok() {
                times_ns.entry(source.partition).or_default().extend_from_slice(&columns.event_time_ns);
            }
        }
    }
    Ok(times_ns)
}

fn is_unread(reader: &mut dyn Consumer, wanted: &[(OffsetRange, TopicPartition)]) -> Result<bool, LogError> {
    for (range, place) in wanted {
        if reader.position(place)? < range.next {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use warptape_sources::TickPlace;

    use super::*;

    #[test]
    fn the_newest_tick_is_none_that_is_taken_for_wrong() {
        assert_eq!(newest(vec![], Some(10)), None);
        assert_eq!(newest(vec![5], Some(10)), Some(5));
        assert_eq!(newest(vec![3, 1, 9_000, 2, 8_000], Some(10)), Some(3));
        assert_eq!(newest(vec![3, 1, 9, 2], None), Some(9));
    }

    #[test]
    fn rows_are_held_against_their_partition_and_the_lateness_of_their_venue() {
        const SECOND: i64 = 1_000_000_000;
        let of = |symbol: &str| partition_of(symbol, 4);
        let limits = OrderLimits {
            lateness_ns: 5 * SECOND,
            lateness_by_venue_ns: BTreeMap::from([("SLOW".to_owned(), 100 * SECOND)]),
            ahead_ns_max: Some(1_000 * SECOND),
        };
        let newest_ns = BTreeMap::from([(of("V:A"), 5_000 * SECOND), (of("SLOW:A"), 5_000 * SECOND)]);
        let log = LogTimes { limits, ticks: "ticks".to_owned(), newest_ns, partitions: 4 };
        let far = |symbol: &str, seconds: &[i64], before: u64| {
            let mut earliest = EarliestTicks::default();
            for (row, second) in seconds.iter().enumerate() {
                earliest.add(TickPlace { input: 0, line: row as u64 + 2 }, symbol, second * SECOND);
            }
            log.far(&earliest, &[before]).into_iter().map(|far| (far.line, far.is_late, far.what)).next()
        };
        assert_eq!(far("V:A", &[4_995, 6_000], 0), None);
        let late = far("V:A", &[4_996, 4_994, 6_000], 0).expect("it is late");
        let partition = of("V:A");
        let expected = format!(
            "6 s earlier than the newest tick in partition {partition} of `ticks`, of 1970-01-01T01:23:20.000000Z"
        );
        assert_eq!(late, (3, true, expected));
        assert_eq!(far("V:A", &[4_994], 1), None, "the first rows are in the log");
        assert_eq!(far("SLOW:A", &[4_901], 0), None);
        assert_eq!(far("SLOW:A", &[4_899], 0).map(|far| far.1), Some(true));
        let ahead = far("V:A", &[6_001, 6_002], 0).expect("it is ahead");
        assert!(
            (ahead.0, ahead.1) == (2, false) && ahead.2.starts_with("16.683 min later than"),
            "{ahead:?}"
        );
        let elsewhere = (0..)
            .map(|number| format!("V:{number}"))
            .find(|name| ![of("V:A"), of("SLOW:A")].contains(&of(name)));
        assert_eq!(far(&elsewhere.expect("one"), &[1], 0), None, "its partition has no ticks");
    }
}
