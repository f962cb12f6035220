//! Detects whether an idle consumer really has nothing to read.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::context::Trouble;
use crate::{LogError, OffsetRange, TopicPartition};

/// Checks after half of the allowed time without records. Fails if the second check finds the same records unread.
pub(super) struct Watchdog {
    stall_timeout: Duration,
    quiet_since: Instant,
    looked_at: Instant,
    /// Partitions with unread records at the last check, and their reading positions.
    behind: BTreeMap<TopicPartition, i64>,
}

impl Watchdog {
    pub(super) fn new(stall_timeout: Duration) -> Self {
        let now = Instant::now();
        Self { stall_timeout, quiet_since: now, looked_at: now, behind: BTreeMap::new() }
    }

    /// Notes that a record arrived.
    pub(super) fn progress(&mut self) {
        self.quiet_since = Instant::now();
        self.looked_at = self.quiet_since;
        self.behind.clear();
    }

    /// Returns true if a check is due.
    pub(super) fn is_due(&self) -> bool {
        self.looked_at.elapsed() >= self.stall_timeout / 2
    }

    /// Checks the ends of the partitions that should deliver records.
    pub(super) fn look<'a>(
        &mut self,
        url: &str,
        positions: impl Iterator<Item = (&'a TopicPartition, i64)>,
        trouble: Option<Trouble>,
        offsets: impl Fn(&TopicPartition) -> Result<OffsetRange, LogError>,
    ) -> Result<(), LogError> {
        self.looked_at = Instant::now();
        let behind_before = std::mem::take(&mut self.behind);
        for (source, position) in positions {
            let next = match offsets(source) {
                Ok(range) => range.next,
                // An unreachable cluster is a separate error; once it answers, the consumer gets its full time again.
                Err(error) => {
                    self.quiet_since = Instant::now();
                    return Err(error);
                }
            };
            if position >= next {
                continue;
            }
            if behind_before.get(source) == Some(&position)
                && self.quiet_since.elapsed() >= self.stall_timeout
            {
                return Err(LogError::Stalled {
                    url: url.to_owned(),
                    what: format!("{}/{} at offset {position} of {next}", source.topic, source.partition),
                    waited_ms: self.quiet_since.elapsed().as_millis() as u64,
                    cause: trouble.map_or_else(|| "nothing was reported".to_owned(), |trouble| trouble.text),
                });
            }
            self.behind.insert(source.clone(), position);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stall_timeout: Duration, next: i64, expected: &str) {
        let source = TopicPartition { topic: "t".to_owned(), partition: 3 };
        let mut watchdog = Watchdog::new(stall_timeout);
        let mut look = || {
            let found = OffsetRange { first: 0, next };
            watchdog.look("kafka:a:1", [(&source, 7)].into_iter(), None, |_| Ok(found))
        };
        look().unwrap();
        let second = look();
        assert_eq!(second.is_err(), !expected.is_empty());
        if let Err(error) = second {
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn the_time_begins_anew_after_an_outage() {
        let source = TopicPartition { topic: "t".to_owned(), partition: 3 };
        let mut watchdog = Watchdog::new(Duration::from_secs(30));
        watchdog.quiet_since =
            Instant::now().checked_sub(Duration::from_secs(60)).expect("it took a minute to get here");
        let mut look = |found: Result<OffsetRange, LogError>| {
            let found = std::cell::RefCell::new(Some(found));
            let offsets = |_: &TopicPartition| found.take().expect("one partition is asked for once");
            watchdog.look("kafka:a:1", [(&source, 7)].into_iter(), None, offsets)
        };
        let (url, doing, cause) = (String::new(), String::new(), String::new());
        let outage = LogError::Unreachable { url, doing, cause };
        look(Err(outage)).expect_err("nobody answers");
        let unread = || Ok(OffsetRange { first: 0, next: 9 });
        look(unread()).expect("seen once");
        look(unread()).expect("the outage is no stall");
    }

    #[test]
    fn unread_records_are_a_stall_when_seen_twice() {
        check(Duration::ZERO, 9, "t/3 at offset 7 of 9");
        check(Duration::ZERO, 7, "");
        check(Duration::from_secs(3600), 9, "");
    }
}
