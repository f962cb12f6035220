//! Event time at the end of the log. `run` treats rows far behind it as late, and rows far ahead of it as wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use warptape_eventlog::{Consumer, EventLog, Fetched, LogError, OffsetRange, TopicPartition};
use warptape_replay::utc;
use warptape_schemas::{SetEventTime, SymbolTable, TickColumns, TickDecoder};
use warptape_sources::csv::{OrderLimits, length_text};
use warptape_sources::{EarliestTicks, JUMP_ROWS, partition_of};
use warptape_stages::StageConfig;

use crate::cli::Interrupt;
use crate::feed_ledger::FeedInput;

/// Number of a partition's last offsets that the first attempt reads.
const TAIL_OFFSETS: i64 = 16;
/// Greatest number of records and bytes of one read.
const READ_RECORDS_MAX: usize = 64;
const READ_BYTES_MAX: usize = 4 << 20;
/// Wait before the reader checks again whether it reached the end.
const READ_WAIT: Duration = Duration::from_millis(100);

/// Returns the greatest allowed distances of a tick from earlier ones.
pub fn limits_of(stages: &StageConfig) -> OrderLimits {
    OrderLimits {
        lateness_ns: stages.allowed_lateness_ns,
        lateness_by_venue_ns: stages.lateness_by_venue_ns.clone(),
        ahead_ns_max: stages.future_max_ns,
    }
}

/// Event time at the ends of the log's partitions, as `run` computes it.
pub struct LogTimes {
    limits: OrderLimits,
    ticks: String,
    /// Event time in ns, by partition; a partition without ticks is missing.
    event_time_ns: BTreeMap<i32, i64>,
    partitions: i32,
}

/// A row far from the event time of its partition.
#[derive(Debug, PartialEq, Eq)]
pub struct Far {
    input: usize,
    line: u64,
    /// Text such as `30 days later than event time in partition 2 of `ticks`, 2024-08-08T…`.
    what: String,
    fate: Fate,
}

/// Treatment of a far row by `run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Late,
    /// The row and the next ones become dead letters, until event time jumps to them.
    FirstOfMany,
    /// The row is one of a few in its partition, which all become dead letters.
    OneOfFew,
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
        let places = (0..partitions).map(|partition| TopicPartition { topic: ticks.to_owned(), partition });
        let mut wanted = places
            .map(|place| Ok((log.offsets(&place)?, place)))
            .collect::<Result<Vec<(OffsetRange, TopicPartition)>, LogError>>()?;
        let (mut event_time_ns, mut offsets) = (BTreeMap::new(), TAIL_OFFSETS);
        loop {
            wanted.retain(|(range, _)| range.first < range.next);
            if wanted.is_empty() || interrupt.is_set() {
                break;
            }
            for (partition, mut time) in tail_times(log, &wanted, offsets, limits.ahead_ns_max, interrupt)? {
                event_time_ns.extend(time.end().map(|time_ns| (partition, time_ns)));
            }
            // A partition without a tick in this tail may have one further back.
            wanted.retain(|(range, place)| {
                range.next - range.first > offsets && !event_time_ns.contains_key(&place.partition)
            });
            offsets = offsets.saturating_mul(8);
        }
        Ok(LogTimes { limits, ticks: ticks.to_owned(), event_time_ns, partitions })
    }

    /// Returns rows of new files that are far from event time in their partitions. These are the first late row of each
    /// symbol, and the first row of each partition that is far ahead. `before` is the number of ticks of each file in
    /// the log; files that have any are skipped.
    pub fn far(&self, earliest: &EarliestTicks, before: &[u64]) -> Vec<Far> {
        let mut far = Vec::new();
        let mut firsts: BTreeMap<i32, (i64, usize, u64, u64)> = BTreeMap::new();
        for (input, symbol, tick) in earliest.iter().filter(|(input, ..)| before[*input] == 0) {
            let partition = partition_of(symbol, self.partitions);
            let Some(at_ns) = self.event_time_ns.get(&partition) else { continue };
            let venue = symbol.split_once(':').map_or(symbol, |(venue, _)| venue);
            let lateness_ns = self.limits.lateness_by_venue_ns.get(venue).unwrap_or(&self.limits.lateness_ns);
            if tick.time_ns < at_ns.saturating_sub(*lateness_ns) {
                let what = self.distance(partition, tick.time_ns, *at_ns);
                far.push(Far { input, line: tick.line, what, fate: Fate::Late });
            }
            let first = firsts.entry(partition).or_insert((i64::MAX, 0, 0, 0));
            let ticks = first.3 + tick.ticks;
            *first = (*first).min((tick.time_ns, input, tick.line, 0));
            first.3 = ticks;
        }
        // A partly fed file may have earlier ticks than the new files, so far rows are only judged if all files are
        // new.
        let is_new = before.iter().all(|ticks| *ticks == 0);
        for (partition, (time_ns, input, line, ticks)) in firsts.into_iter().filter(|_| is_new) {
            let at_ns = self.event_time_ns[&partition];
            if time_ns > at_ns.saturating_add(self.limits.ahead_ns_max) {
                let fate = if ticks < JUMP_ROWS as u64 { Fate::OneOfFew } else { Fate::FirstOfMany };
                far.push(Far { input, line, what: self.distance(partition, time_ns, at_ns), fate });
            }
        }
        far.sort_by_key(|far| (far.input, far.line));
        far
    }

    fn distance(&self, partition: i32, time_ns: i64, at_ns: i64) -> String {
        let length = length_text(time_ns.abs_diff(at_ns).min(i64::MAX as u64) as i64);
        let word = if time_ns < at_ns { "earlier" } else { "later" };
        let (ticks, at) = (&self.ticks, utc(at_ns));
        format!("{length} {word} than event time in partition {partition} of `{ticks}`, {at}")
    }
}

impl Far {
    /// True if the feed must be refused because of the row. A few rows far ahead only become dead letters.
    pub fn is_refused(&self, follows_gaps: bool) -> bool {
        match self.fate {
            Fate::Late => true,
            Fate::FirstOfMany => !follows_gaps,
            Fate::OneOfFew => false,
        }
    }

    /// True if `run` moves event time to the row, so that nothing is lost.
    pub fn is_followed(&self, follows_gaps: bool) -> bool {
        follows_gaps && self.fate == Fate::FirstOfMany
    }

    /// Returns the error of a feed that is refused because of the row.
    pub fn refused(&self, inputs: &[FeedInput]) -> String {
        let todo = match self.fate {
            Fate::Late => {
                "Name files with overlapping times in one command, with a new log (--log), to merge them. \
                 Feed older files into a new log too. --keep-order feeds the rows in file order"
            }
            Fate::FirstOfMany | Fate::OneOfFew => {
                "With --follow-gaps, `run` follows the gap, and ticks of other feeds that lie further behind \
                 become late. With --keep-order, rows are fed in file order, and `dlq replay` sends the \
                 rejected ones again"
            }
        };
        format!("{}. So nothing is published. {todo}", self.says(inputs, "line"))
    }

    /// Describes the row, its distance from event time, and what `run` does with it.
    pub fn says(&self, inputs: &[FeedInput], place_word: &str) -> String {
        let path = inputs[self.input].path.as_ref();
        let path = path.map_or_else(|| "the market".to_owned(), |path| path.display().to_string());
        let becomes = match self.fate {
            Fate::Late => "late for `run` (`stages.allowed_lateness_ms`)",
            Fate::FirstOfMany => {
                "too far ahead for `run`, as are the first ticks after it (`stages.future_max_ms`)"
            }
            Fate::OneOfFew => {
                "too far ahead for `run`, as are the few other ticks of its partition (`stages.future_max_ms`)"
            }
        };
        format!("{path}: {place_word} {} is {}, and {becomes}", self.line, self.what)
    }
}

/// Computes event time from the ticks and `SetEventTime` records after some offset of a partition. `run` computes the
/// same, unless the first ticks are wrong.
#[derive(Debug)]
struct EventTime {
    ahead_ns_max: i64,
    at_ns: Option<i64>,
    /// Times of consecutive ticks that are too far ahead; before event time is known, of all ticks.
    waiting_ns: Vec<i64>,
}

impl EventTime {
    fn new(ahead_ns_max: i64) -> Self {
        Self { ahead_ns_max, at_ns: None, waiting_ns: Vec::new() }
    }

    fn add(&mut self, time_ns: i64) {
        match self.at_ns {
            Some(at_ns) if time_ns <= at_ns.saturating_add(self.ahead_ns_max) => {
                self.at_ns = Some(at_ns.max(time_ns));
                self.waiting_ns.clear();
            }
            _ => {
                self.waiting_ns.push(time_ns);
                if self.waiting_ns.len() >= JUMP_ROWS {
                    self.follow();
                }
            }
        }
    }

    fn set(&mut self, set: &SetEventTime) {
        let word_ns = set.event_time_max_ns;
        let at_ns = self.end().filter(|_| set.only_forward);
        self.at_ns = Some(at_ns.map_or(word_ns, |at_ns| at_ns.max(word_ns)));
    }

    /// Returns event time after all ticks; `None` if there was no tick.
    fn end(&mut self) -> Option<i64> {
        if self.at_ns.is_none() {
            self.follow();
        }
        self.at_ns
    }

    /// Moves event time to the earliest waiting tick, and on to the latest one that is not far ahead of it.
    fn follow(&mut self) {
        let mut waiting_ns = std::mem::take(&mut self.waiting_ns);
        waiting_ns.sort_unstable();
        let Some(&first_ns) = waiting_ns.first() else { return };
        let near = |time_ns: &&i64| **time_ns <= first_ns.saturating_add(self.ahead_ns_max);
        let newest_ns = waiting_ns.iter().rfind(near).copied();
        self.at_ns = self.at_ns.max(newest_ns);
    }
}

/// Returns event time by partition, computed from the last `offsets` offsets of each.
fn tail_times(
    log: &dyn EventLog,
    wanted: &[(OffsetRange, TopicPartition)],
    offsets: i64,
    ahead_ns_max: i64,
    interrupt: &Interrupt,
) -> Result<BTreeMap<i32, EventTime>, LogError> {
    let places: Vec<TopicPartition> = wanted.iter().map(|(_, place)| place.clone()).collect();
    let mut reader = log.reader(&places)?;
    for (range, place) in wanted {
        reader.seek(place, range.next.saturating_sub(offsets).max(range.first))?;
    }
    let (mut decoder, mut names) = (TickDecoder::new().by_rows(true), SymbolTable::default());
    let (mut columns, mut times) = (TickColumns::default(), BTreeMap::new());
    while !interrupt.is_set() && is_unread(&mut *reader, wanted)? {
        let fetched = reader.poll(READ_WAIT, READ_RECORDS_MAX, READ_BYTES_MAX)?;
        let Fetched::Records { source, records } = fetched else { continue };
        let time = times.entry(source.partition).or_insert_with(|| EventTime::new(ahead_ns_max));
        for record in records {
            columns.clear();
            if let Some(Ok(set)) = SetEventTime::of(&record.value) {
                time.set(&set);
            } else if decoder.decode(&record.value, &mut names, &mut columns).is_ok() {
                // `run` turns unreadable records and bad rows into dead letters, so they do not count here.
                columns.good_rows().for_each(|row| time.add(columns.event_time_ns[row]));
            }
        }
    }
    Ok(times)
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
    fn event_time_is_that_of_run() {
        let of = |times_ns: &[i64], words: &[(i64, bool)]| {
            let mut time = EventTime::new(10);
            times_ns.iter().for_each(|time_ns| time.add(*time_ns));
            for (event_time_max_ns, only_forward) in words {
                let (id, by) = (String::new(), String::new());
                let (event_time_max_ns, only_forward) = (*event_time_max_ns, *only_forward);
                time.set(&SetEventTime { id, by, event_time_max_ns, cuts_bars: false, only_forward });
            }
            time.end()
        };
        assert_eq!(of(&[], &[]), None);
        assert_eq!(of(&[5], &[]), Some(5));
        assert_eq!(of(&[3, 1, 9_000, 2, 8_000], &[]), Some(3), "a few that are wrong");
        let jump = [&[1, 2, 3, 4, 5, 6, 7, 8][..], &[900; 8], &[905]].concat();
        assert_eq!(of(&jump[..15], &[]), Some(8));
        assert_eq!(of(&jump, &[]), Some(905));
        assert_eq!(of(&[7], &[(90, true), (80, true)]), Some(90));
        assert_eq!(of(&[7], &[(90, true), (6, false)]), Some(6));
    }

    const SECOND: i64 = 1_000_000_000;

    /// Returns a log of four partitions: event time is 5,000 s in three, and the last one has no ticks.
    fn log() -> LogTimes {
        let limits = OrderLimits {
            lateness_ns: 5 * SECOND,
            lateness_by_venue_ns: BTreeMap::from([("SLOW".to_owned(), 100 * SECOND)]),
            ahead_ns_max: 1_000 * SECOND,
        };
        let event_time_ns = (0..3).map(|partition| (partition, 5_000 * SECOND)).collect();
        LogTimes { limits, ticks: "ticks".to_owned(), event_time_ns, partitions: 4 }
    }

    /// Returns a symbol of a venue that is hashed to a partition.
    fn symbol(venue: &str, partition: i32) -> String {
        let mut names = (0..).map(|number| format!("{venue}:{number}"));
        names.find(|name| partition_of(name, 4) == partition).expect("one")
    }

    /// Returns the far rows among these symbols and seconds, by input.
    fn far(rows: &[(usize, &str, i64)], before: &[u64]) -> Vec<(usize, u64, Fate)> {
        let mut earliest = EarliestTicks::default();
        for (row, (input, symbol, second)) in rows.iter().enumerate() {
            earliest.add(TickPlace { input: *input, line: row as u64 + 2 }, symbol, second * SECOND);
        }
        log().far(&earliest, before).into_iter().map(|far| (far.input, far.line, far.fate)).collect()
    }

    #[test]
    fn rows_are_late_by_the_lateness_of_their_venue() {
        let (fast, slow) = (&symbol("V", 1), &symbol("SLOW", 1));
        assert_eq!(far(&[(0, fast, 4_995), (0, fast, 5_900)], &[0]), []);
        assert_eq!(far(&[(0, fast, 4_996), (0, fast, 4_994)], &[0]), [(0, 3, Fate::Late)]);
        assert_eq!(far(&[(0, slow, 4_901), (0, fast, 4_990)], &[0]), [(0, 3, Fate::Late)]);
        assert_eq!(far(&[(0, slow, 4_899)], &[0]), [(0, 2, Fate::Late)]);
        assert_eq!(far(&[(0, fast, 4_994)], &[1]), [], "the first rows are in the log");
        assert_eq!(far(&[(0, &symbol("V", 3), 1)], &[0]), [], "the partition has no ticks");
        let what = log().distance(1, 4_994 * SECOND, 5_000 * SECOND);
        assert_eq!(
            what,
            "6 s earlier than event time in partition 1 of `ticks`, 1970-01-01T01:23:20.000000Z"
        );
    }

    #[test]
    fn rows_are_ahead_if_their_partition_has_none_before_them() {
        let symbol = &symbol("V", 1);
        let days: Vec<_> = (0..10).map(|row| (usize::from(row > 4), &**symbol, 6_500 + 10 * row)).collect();
        assert_eq!(far(&days, &[0, 0]), [(0, 2, Fate::FirstOfMany)]);
        assert_eq!(far(&days[..7], &[0, 0]), [(0, 2, Fate::OneOfFew)]);
        // The first file bridges the gap to the second one.
        let led = [&[(0, &**symbol, 5_900)], &days[..]].concat();
        assert_eq!(far(&led, &[0, 0]), []);
        assert_eq!(far(&days, &[1, 0]), [], "the first file may do so");
    }
}
