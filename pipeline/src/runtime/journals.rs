//! Reads the ends of all journals of the group backwards, for their positions and their group.

use std::sync::Arc;
use std::time::Duration;

use warptape_engine::JournalPositions;
use warptape_eventlog::{Consumer, EventLog, Fetched, LogError, Record, TopicPartition};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::Input;

use super::EngineError;

/// Number of a journal's last offsets that are read first; normally they include an entry with positions.
const LOOK_BACK: i64 = 4_096;
/// Greatest number of records and bytes of one read.
const READ_RECORDS_MAX: usize = 1_024;
const READ_BYTES_MAX: usize = 16 << 20;
/// Wait before the reader checks again whether it reached the end.
const READ_WAIT: Duration = Duration::from_millis(100);

/// Positions in the journals of a group, as far as the journals were read.
pub(super) struct Journals {
    log: Arc<dyn EventLog>,
    sources: Vec<TopicPartition>,
    positions: Vec<JournalPositions>,
    /// Offset in each journal up to which the positions include its entries; `None` if the journal was not read.
    next: Vec<Option<i64>>,
}

/// A range of a journal's entries to read.
struct Window {
    journal: usize,
    /// First offset to read; the positions before it are known.
    first: i64,
    before: JournalPositions,
    from: i64,
    end: i64,
    positions: JournalPositions,
    /// True once an entry with positions was read, which replaces all earlier entries.
    is_anchored: bool,
    /// True if the positions account for all entries.
    is_known: bool,
}

impl Journals {
    pub(super) fn new(log: Arc<dyn EventLog>, topic: &str) -> Result<Self, LogError> {
        let count = log.partitions(topic)?;
        let source = |partition| TopicPartition { topic: topic.to_owned(), partition };
        let sources: Vec<TopicPartition> = (0..count).map(source).collect();
        let positions = vec![JournalPositions::unknown(); sources.len()];
        let next = vec![None; sources.len()];
        Ok(Self { log, sources, positions, next })
    }

    /// Reads the entries committed since the last call.
    pub(super) fn look(&mut self) -> Result<&[JournalPositions], LogError> {
        if self.sources.is_empty() {
            return Ok(&self.positions);
        }
        let mut reader = self.log.reader(&self.sources)?;
        let mut windows = Vec::new();
        for (journal, source) in self.sources.iter().enumerate() {
            let range = reader.offsets(source)?;
            let (first, before) = match self.next[journal] {
                Some(next) => (next, self.positions[journal].clone()),
                None if range.first == 0 => (0, JournalPositions::beginning()),
                None => (range.first, JournalPositions::unknown()),
            };
            windows.push(Window::new(journal, first, before, range.next));
        }
        let mut back = LOOK_BACK;
        while windows.iter().any(|window| !window.is_known) {
            self.read(reader.as_mut(), &mut windows, back)?;
            back = back.saturating_mul(16);
        }
        for Window { journal, positions, end, .. } in windows {
            self.positions[journal] = positions;
            self.next[journal] = Some(end);
        }
        Ok(&self.positions)
    }

    /// Reads the last offsets of all journals with unknown positions at once.
    fn read(&self, reader: &mut dyn Consumer, windows: &mut [Window], back: i64) -> Result<(), LogError> {
        for window in &mut *windows {
            let source = &self.sources[window.journal];
            match window.is_known {
                true => reader.pause(std::slice::from_ref(source))?,
                false => reader.seek(source, window.begin(back))?,
            }
        }
        while !self.are_read(reader, windows)? {
            if let Fetched::Records { source, records } =
                reader.poll(READ_WAIT, READ_RECORDS_MAX, READ_BYTES_MAX)?
            {
                let window = windows.iter_mut().find(|window| self.sources[window.journal] == source);
                let window = window.expect("it is one of those that are read");
                records.iter().for_each(|record| window.add(record));
            }
        }
        windows
            .iter_mut()
            .for_each(|window| window.is_known |= window.from == window.first || window.is_anchored);
        Ok(())
    }

    /// True if all windows with unknown positions are read to their ends.
    fn are_read(&self, reader: &mut dyn Consumer, windows: &[Window]) -> Result<bool, LogError> {
        for window in windows.iter().filter(|window| !window.is_known) {
            if reader.position(&self.sources[window.journal])? < window.end {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the written end of each journal, including uncommitted records.
    pub(super) fn written(&self) -> Result<Vec<i64>, LogError> {
        Ok(self.log.ends(&self.sources)?.into_iter().map(|end| end.written).collect())
    }

    /// True if the last call of `look` reached these offsets.
    pub(super) fn has_come_to(&self, ends: &[i64]) -> bool {
        self.next.iter().zip(ends).all(|(next, end)| *next >= Some(*end))
    }

    /// Returns the positions found by the last call of `look`.
    pub(super) fn positions(&self) -> &[JournalPositions] {
        &self.positions
    }

    /// Refuses journals of another group.
    pub(super) fn check_group(&self, group: &str) -> Result<(), EngineError> {
        for (source, positions) in self.sources.iter().zip(&self.positions) {
            if let Some(other) = positions.group().filter(|other| *other != group) {
                let (topic, ordinal) = (source.topic.clone(), source.partition);
                let (other, group) = (other.to_owned(), group.to_owned());
                return Err(EngineError::OtherGroup { topic, ordinal, other, group });
            }
        }
        Ok(())
    }
}

impl Window {
    fn new(journal: usize, first: i64, before: JournalPositions, end: i64) -> Self {
        let (is_known, positions) = (first >= end, before.clone());
        Self { journal, first, before, from: end, end, positions, is_anchored: false, is_known }
    }

    /// Moves the beginning to `back` offsets before the end, and returns it.
    fn begin(&mut self, back: i64) -> i64 {
        self.from = self.end.saturating_sub(back).max(self.first);
        let is_first = self.from == self.first;
        self.positions = if is_first { self.before.clone() } else { JournalPositions::unknown() };
        self.is_anchored = false;
        self.from
    }

    fn add(&mut self, record: &Record) {
        if self.is_known || !(self.from..self.end).contains(&record.offset) {
            return;
        }
        let Ok(entry) = decode_journal_entry(&record.value) else {
            self.positions.lose_track();
            return;
        };
        self.is_anchored |= matches!(entry.input, Input::Positions(_));
        self.positions.add(&entry.input);
    }
}

#[cfg(test)]
mod tests {
    use warptape_eventlog::{Durability, NewRecord, SqliteLog, TopicSpec};
    use warptape_schemas::JournalWriter;
    use warptape_schemas::journal::{Sealed, SealedPartition, Woke};

    use super::*;

    const TOPIC: &str = "journal";

    /// A log with journals, and their writer.
    struct Written {
        log: Arc<dyn EventLog>,
        writers: [JournalWriter; 2],
        told: [JournalPositions; 2],
        _folder: tempfile::TempDir,
    }

    impl Written {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let log = SqliteLog::open(folder.path().join("w.db"), Durability::Process).expect("a log");
            let spec = TopicSpec { name: TOPIC.to_owned(), partitions: 2, ..TopicSpec::default() };
            log.create_topics(&[spec]).expect("a new topic");
            let writers = [JournalWriter::new(), JournalWriter::new()];
            let told = [JournalPositions::beginning(), JournalPositions::beginning()];
            Self { log: Arc::new(log), writers, told, _folder: folder }
        }

        fn write(&mut self, journal: i32, inputs: impl IntoIterator<Item = Input>) {
            let (writer, told) = (&mut self.writers[journal as usize], &mut self.told[journal as usize]);
            let mut producer = self.log.producer("test").expect("a producer");
            producer.begin().expect("a transaction");
            for input in inputs {
                let mut bytes = Vec::new();
                writer.append(1, &input, &[], 0, &mut bytes);
                told.add(&input);
                let (topic, value) = (TOPIC.into(), bytes.into());
                let record = NewRecord { topic, partition: journal, value, ..NewRecord::default() };
                producer.send(record).expect("it is taken");
            }
            producer.commit().expect("it is committed");
        }

        #[track_caller]
        fn check(&self, journals: &mut Journals) {
            assert_eq!(journals.look().expect("the log can be read"), self.told);
        }
    }

    fn sealed(partition: i32, first_offset: i64, next_offset: i64) -> Input {
        let account = SealedPartition { partition, first_offset, next_offset, ..SealedPartition::default() };
        Input::Sealed(Sealed { partitions: vec![account] })
    }

    fn woken(count: i64) -> impl Iterator<Item = Input> {
        (0..count).map(|_| Input::Woke(Woke {}))
    }

    #[test]
    fn journals_are_read_from_behind_up_to_the_entry_that_stands_for_those_before() {
        let mut written = Written::new();
        let begin = |written: &Written| Journals::new(written.log.clone(), TOPIC).expect("a log");
        let mut followed = begin(&written);
        written.check(&mut followed);
        // Here, only the whole journal yields the positions.
        written.write(0, [sealed(3, 0, 7), sealed(4, 0, 9)].into_iter().chain(woken(LOOK_BACK * 2)));
        written.write(1, [sealed(5, 0, 2)]);
        written.check(&mut followed);
        written.check(&mut begin(&written));
        // One of these entries contains the positions.
        let positions = Input::Positions(written.told[0].entry("g"));
        written.write(0, [positions, sealed(3, 7, 8)].into_iter().chain(woken(LOOK_BACK - 10)));
        written.write(1, [sealed(5, 2, 4)]);
        written.check(&mut followed);
        let mut fresh = begin(&written);
        written.check(&mut fresh);
        assert!(fresh.check_group("g").is_ok());
        let error = fresh.check_group("other").expect_err("it is of another group").to_string();
        assert!(error.contains("\"g\"") && error.contains("\"other\""), "{error}");
        written.write(0, woken(LOOK_BACK * 3));
        written.check(&mut followed);
        written.check(&mut begin(&written));
        assert!(followed.has_come_to(&followed.written().expect("the log can be read")));
    }
}
