//! Second places for anchors, besides the journal.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use warptape_eventlog::{EventLog, LogError, NewRecord, Producer, TopicPartition, TopicSpec};
use warptape_replay::PartitionReader;
use warptape_replay::anchor::{Anchor, Anchored};

use crate::runtime::EngineError;

/// A second place for anchors.
pub(super) enum AnchorPlace {
    /// A file with one anchor per line.
    File(PathBuf),
    /// A topic of another log, with one anchor per record.
    Topic(Box<AnchorTopic>),
}

/// A topic of another log.
pub(super) struct AnchorTopic {
    log: Arc<dyn EventLog>,
    topic: String,
    transactional_id: String,
    /// Producer; `None` after a failed write, and the next write creates another.
    producer: Option<Box<dyn Producer>>,
}

impl AnchorPlace {
    pub(super) fn file(path: PathBuf) -> Self {
        Self::File(path)
    }

    /// Opens the topic, and creates it if it is missing.
    pub(super) fn topic(
        log: Arc<dyn EventLog>,
        topic: String,
        transactional_id: String,
    ) -> Result<Self, LogError> {
        if !log.topics()?.iter().any(|known| known.spec.name == topic) {
            let spec = TopicSpec { name: topic.clone(), partitions: 1, ..TopicSpec::default() };
            log.create_topics(&[spec])?;
        }
        Ok(Self::Topic(Box::new(AnchorTopic { log, topic, transactional_id, producer: None })))
    }

    /// Returns the newest anchor of a journal partition; `None` if there is none.
    pub(super) fn newest(&self, journal: &str, ordinal: i32) -> Result<Option<Anchor>, EngineError> {
        match self {
            Self::File(path) => Anchored::newest(path, journal, ordinal)
                .map_err(|source| EngineError::AnchorFile { path: path.clone(), source }),
            Self::Topic(topic) => Ok(topic.newest(journal, ordinal)?),
        }
    }

    /// Writes an anchor. The anchor is durable when this returns.
    pub(super) fn write(&mut self, anchor: &Anchor) -> Result<(), String> {
        match self {
            Self::File(path) => append(path, anchor).map_err(|error| error.to_string()),
            Self::Topic(topic) => topic.write(anchor).map_err(|error| error.to_string()),
        }
    }
}

impl fmt::Display for AnchorPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(formatter, "{}", path.display()),
            Self::Topic(topic) => write!(formatter, "{}", topic.log.url()),
        }
    }
}

/// Appends a line in one write, because several processes may share the file. Opens the file each time, because it may
/// have been moved.
fn append(path: &PathBuf, anchor: &Anchor) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
    // A killed process may have left an incomplete last line.
    let begin = if ends_within_a_line(&mut file)? { "\n" } else { "" };
    file.write_all(format!("{begin}{anchor}\n").as_bytes())?;
    file.sync_data()
}

fn ends_within_a_line(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

impl AnchorTopic {
    fn newest(&self, journal: &str, ordinal: i32) -> Result<Option<Anchor>, LogError> {
        let source = TopicPartition { topic: self.topic.clone(), partition: 0 };
        let known = self.log.topics()?.into_iter().find(|known| known.spec.name == self.topic);
        let Some(&range) = known.as_ref().and_then(|known| known.offsets.first()) else { return Ok(None) };
        let mut reader = PartitionReader::open(self.log.as_ref(), source, range)?;
        let mut newest = None;
        while let Some(record) = reader.next()? {
            let anchor = std::str::from_utf8(&record.value).ok().and_then(|line| line.parse::<Anchor>().ok());
            newest = anchor
                .filter(|anchor| {
                    (anchor.statement.topic.as_str(), anchor.statement.partition) == (journal, ordinal)
                })
                .or(newest);
        }
        Ok(newest)
    }

    fn write(&mut self, anchor: &Anchor) -> Result<(), LogError> {
        let written = self.try_write(anchor);
        if written.is_err() {
            self.producer = None;
        }
        written
    }

    fn try_write(&mut self, anchor: &Anchor) -> Result<(), LogError> {
        let producer = match &mut self.producer {
            Some(producer) => producer,
            none => none.insert(self.log.producer(&self.transactional_id)?),
        };
        producer.begin()?;
        producer.send(NewRecord {
            topic: self.topic.as_str().into(),
            key: Some(
                format!("{}/{}", anchor.statement.topic, anchor.statement.partition).into_bytes().into(),
            ),
            timestamp_ns: anchor.statement.at_ns,
            value: anchor.to_string().into_bytes().into(),
            ..NewRecord::default()
        })?;
        producer.commit()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use warptape_eventlog::{Durability, SqliteLog};
    use warptape_replay::anchor::{SigningKey, Statement, Told};
    use warptape_schemas::GENESIS_HASH;

    use super::*;

    fn anchor(partition: i32, sequence: i64) -> Anchor {
        let (topic, told) = ("journal".to_owned(), Told::new(0));
        let statement = Statement { topic, partition, sequence, hash: GENESIS_HASH, at_ns: 7, told };
        statement.sign(&SigningKey::from_seed([1; 32]))
    }

    fn check(place: &mut AnchorPlace) {
        assert_eq!(place.newest("journal", 0).expect("it can be read"), None);
        for (partition, sequence) in [(0, 3), (1, 9), (0, 5)] {
            place.write(&anchor(partition, sequence)).expect("it can be written");
        }
        let newest = |journal: &str, ordinal| place.newest(journal, ordinal).expect("it can be read");
        assert_eq!(newest("journal", 0), Some(anchor(0, 5)));
        assert_eq!(newest("journal", 1), Some(anchor(1, 9)));
        assert_eq!(newest("other", 0), None);
    }

    #[test]
    fn anchors_of_several_processes_share_a_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("anchors");
        check(&mut AnchorPlace::file(path.clone()));
        // Simulates a process that was killed during a write.
        let whole = fs::read_to_string(&path).expect("it is text");
        fs::write(&path, &whole[..whole.len() - 9]).expect("it is ours");
        let mut place = AnchorPlace::file(path.clone());
        assert_eq!(place.newest("journal", 0).expect("it can be read"), Some(anchor(0, 3)));
        place.write(&anchor(0, 6)).expect("it can be written");
        assert_eq!(place.newest("journal", 0).expect("it can be read"), Some(anchor(0, 6)));
        assert_eq!(fs::read_to_string(&path).expect("it is text").lines().count(), 4);
    }

    #[test]
    fn anchors_are_records_of_another_log() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = SqliteLog::open(folder.path().join("other.db"), Durability::Process).expect("a new log");
        let place = AnchorPlace::topic(Arc::new(log), "anchors".to_owned(), "group-0-anchors".to_owned());
        check(&mut place.expect("the topic is made"));
    }
}
