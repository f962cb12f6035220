//! The embedded log: one SQLite file in WAL mode and segments of large blocks, shared by any number of processes.
//!
//! ```text
//!  SqliteLog ── LogFile ── path, write turn, wakes
//!     │            │
//!     │            ├── SqliteProducer   own connection and segments; buffers, writes at commit, reports to the checkpointer
//!     │            ├── SqliteConsumer   own connection; short reads, waits on its wake
//!     │            └── Checkpointer     own connection and threads; keeps the write-ahead log short
//!     └── first connection: topics, checks
//! ```
//!
//! Offsets are dense from 0. Commits always survive process death, and with [`Durability::Full`] also power loss. Every
//! commit is visible to every reader at once and as a whole.
//!
//! `file`, `opening`, `format`, `schema`, `catalogue` and `ends` depend on each other, because opening the file
//! includes all checks, and each check reads the file.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    Consumer, EventLog, LogError, OffsetRange, Producer, RecordClock, TopicInfo, TopicPartition, TopicSpec,
};

mod beside;
mod block;
mod bounded;
mod catalogue;
mod check;
mod checkpoint;
mod checksum;
mod consumer;
mod copy;
mod disk;
mod ends;
mod failure;
mod file;
mod format;
mod head;
mod headers;
mod in_place;
mod limits;
mod member;
mod opening;
mod placing;
mod polled;
mod portable;
mod producer;
mod recover;
mod reference;
mod scan;
mod schema;
mod segment;
mod segment_files;
mod segment_rows;
mod segments;
mod statistics;
mod table;
mod trim;
mod wake;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(not(target_os = "linux"))]
#[path = "no_watch.rs"]
mod watch;
mod yielding;

pub use check::{Checked, GIVEN_UP_MAX, LogProgress};
pub use limits::{
    LOCK_WAIT_MAX, RECORD_BYTES_MAX, SEGMENT_BYTES, TRANSACTION_BYTES_MAX, WAL_BYTES_DUE, WAL_BYTES_MAX,
};
pub use member::GROUP_NAME_BYTES_MAX;
pub use portable::PortableFile;
pub use recover::{Loss, Recovered};
pub use trim::{Keep, Trimmed, Trimmer};

use bounded::Bounded;
use catalogue::Catalogue;
use checkpoint::{Checkpointer, WalLimits};
use consumer::SqliteConsumer;
use file::LogFile;
use limits::Access;
use producer::SqliteProducer;
use segments::Hold;

/// Failures that a commit survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The death of all processes, but not the loss of power. The log detects the records that it lost.
    #[default]
    Process,
    /// Also the loss of power: each commit waits for the disk.
    Full,
}

impl Durability {
    fn synchronous(self) -> &'static str {
        match self {
            Self::Process => "NORMAL",
            Self::Full => "FULL",
        }
    }
}

/// A log in an SQLite file and its segments. Clones share it.
#[derive(Clone)]
pub struct SqliteLog {
    file: Arc<LogFile>,
    /// Connection for operations other than consuming and producing.
    connection: Arc<Mutex<Bounded>>,
    /// Checkpointer of the file; `None` if the log was opened for reading.
    checkpointer: Option<Arc<Checkpointer>>,
}

impl SqliteLog {
    /// Opens a log for reading and writing; creates a missing file in an existing directory.
    pub fn open(path: impl AsRef<Path>, durability: Durability) -> Result<Self, LogError> {
        Self::open_at(path.as_ref(), Access::Write(durability))
    }

    /// Opens an existing log for reading only. Other processes may write it meanwhile. If its directory is read-only
    /// and it has no write-ahead log, no process can write the file, and it is read without locks.
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Self, LogError> {
        let path = path.as_ref();
        match Self::open_at(path, Access::Read) {
            // Reading needs an index file next to the log, which a read-only directory does not allow.
            Err(LogError::Denied { .. } | LogError::ReadOnly { .. })
                if path.is_file() && !format::has_wal(path) =>
            {
                Self::open_at(path, Access::ReadFrozen)
            }
            result => result,
        }
    }

    fn open_at(path: &Path, access: Access) -> Result<Self, LogError> {
        Self::open_with(path, access, WalLimits::default())
    }

    fn open_with(path: &Path, access: Access, limits: WalLimits) -> Result<Self, LogError> {
        let url = format!("sqlite:{}", path.display());
        let must_exist = !matches!(access, Access::Write(_));
        let path = format::locate(&url, path, must_exist)?;
        let file = Arc::new(LogFile::new(path, url, access));
        let connection = Arc::new(Mutex::new(format::open(&file)?));
        let checkpointer = match access {
            Access::Write(_) => Some(Arc::new(Checkpointer::start(Arc::clone(&file), limits)?)),
            Access::Read | Access::ReadFrozen => None,
        };
        Ok(Self { file, connection, checkpointer })
    }

    /// Returns the connection, prepared for a new operation.
    fn connection(&self) -> Result<MutexGuard<'_, Bounded>, LogError> {
        // A panic elsewhere leaves the connection outside any transaction: dropping a transaction ends it.
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        self.file.begin(&connection)?;
        Ok(connection)
    }

    /// Reads the whole file; the first damage is an error.
    pub fn check(&self) -> Result<(), LogError> {
        match self.check_all(&mut |_| {})?.damage.into_iter().next() {
            None => Ok(()),
            Some(found) => Err(self.file.damaged(found)),
        }
    }

    /// Reads the whole file and reports all damage.
    pub fn check_all(&self, progress: &mut dyn FnMut(LogProgress)) -> Result<Checked, LogError> {
        let (_hold, connection) = self.connect_to_read_all()?;
        check::check(&self.file, &connection, progress)
    }

    /// Creates a full copy of the current state, while others read and write. The file must not exist yet.
    pub fn backup(
        &self,
        to: impl AsRef<Path>,
        progress: &mut dyn FnMut(LogProgress),
    ) -> Result<(), LogError> {
        let (_hold, connection) = self.connect_to_read_all()?;
        let reading =
            connection.unchecked_transaction().map_err(|error| self.file.failure("copying", error))?;
        let transactions = ends::Own::read(&self.file, &reading)?.transactions;
        let source = copy::CopiedLog { file: &self.file, connection: &reading, transactions };
        copy::copy(&source, to.as_ref(), copy::Damage::Refuse, progress)
    }

    /// Recovers a log that is damaged or has lost records: its undamaged parts become the log, and the original is kept
    /// beside it. No process may write the log meanwhile.
    pub fn recover(
        path: impl AsRef<Path>,
        progress: &mut dyn FnMut(LogProgress),
    ) -> Result<Recovered, LogError> {
        recover::recover(path.as_ref(), progress)
    }

    /// Returns a value that removes the oldest records of a topic. The topic must not be compacted.
    pub fn trimmer(&self, topic: &str) -> Result<Trimmer, LogError> {
        if self.checkpointer.is_none() {
            return Err(self.read_only("removing old records"));
        }
        Trimmer::new(Arc::clone(&self.file), topic)
    }

    /// Returns a connection that reads the whole log, and the lock that keeps its segments meanwhile.
    fn connect_to_read_all(&self) -> Result<(Option<Hold>, Bounded), LogError> {
        let hold = self.file.segments.hold(&|| self.file.pause())?;
        let connection = self.file.connect()?;
        self.file.begin_reading_all(&connection)?;
        Ok((hold, connection))
    }

    fn read_only(&self, doing: &str) -> LogError {
        LogError::ReadOnly { url: self.url(), doing: doing.to_owned() }
    }
}

impl EventLog for SqliteLog {
    fn create_topics(&self, topics: &[TopicSpec]) -> Result<(), LogError> {
        let connection = self.connection()?;
        self.file
            .write(&connection, "creating topics", |writing| catalogue::create(&self.file, writing, topics))
    }

    fn topics(&self) -> Result<Vec<TopicInfo>, LogError> {
        let connection = self.connection()?;
        Catalogue::load(&self.file, &connection)?.describe(&self.file, &connection)
    }

    fn subscribe(&self, group: &str, topics: &[&str]) -> Result<Box<dyn Consumer>, LogError> {
        if self.checkpointer.is_none() {
            return Err(self.read_only("joining a consumer group"));
        }
        drop(self.connection()?);
        let membership = member::join(&self.file.url, &self.file.path, group)?;
        Ok(Box::new(SqliteConsumer::member(Arc::clone(&self.file), group, membership, topics)?))
    }

    fn reader(&self, partitions: &[TopicPartition]) -> Result<Box<dyn Consumer>, LogError> {
        drop(self.connection()?);
        Ok(Box::new(SqliteConsumer::reader(Arc::clone(&self.file), partitions)?))
    }

    fn producer(&self, transactional_id: &str) -> Result<Box<dyn Producer>, LogError> {
        drop(self.connection()?);
        let checkpointer = self.checkpointer.as_ref().ok_or_else(|| self.read_only("starting a producer"))?;
        Ok(Box::new(SqliteProducer::new(Arc::clone(&self.file), Arc::clone(checkpointer), transactional_id)?))
    }

    fn committed(&self, group: &str, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        let connection = self.connection()?;
        let catalogue = Catalogue::load(&self.file, &connection)?;
        let topic_id = catalogue.topic_of(&self.file, &partition.topic, partition.partition)?.topic_id;
        catalogue::committed(&self.file, &connection, group, topic_id, partition)
    }

    fn offsets(&self, partition: &TopicPartition) -> Result<OffsetRange, LogError> {
        let connection = self.connection()?;
        let catalogue = Catalogue::load(&self.file, &connection)?;
        let topic = catalogue.topic_of(&self.file, &partition.topic, partition.partition)?;
        let table = topic.table(partition.partition);
        catalogue::offsets(&self.file, &connection, &partition.topic, &table)
    }

    /// Returns the readable end: readers of this log see only complete transactions, so both ends are equal.
    fn written_end(&self, partition: &TopicPartition) -> Result<i64, LogError> {
        Ok(self.offsets(partition)?.next)
    }

    fn record_bytes_max(&self, topics: &[&str]) -> Result<Vec<usize>, LogError> {
        Ok(vec![RECORD_BYTES_MAX; topics.len()])
    }

    fn record_clock(&self, topic: &str) -> Result<Option<RecordClock>, LogError> {
        let connection = self.connection()?;
        let catalogue = Catalogue::load(&self.file, &connection)?;
        match catalogue.topics().find(|found| found.spec.name == topic) {
            Some(found) => ends::clock(&self.file, &connection, found.topic_id),
            None => Ok(None),
        }
    }

    fn claim(&self, name: &str) -> Result<Box<dyn Send>, LogError> {
        if self.checkpointer.is_none() {
            return Err(self.read_only("claiming a name"));
        }
        Ok(Box::new(member::join(&self.file.url, &self.file.path, name)?))
    }

    fn has_member(&self, group: &str) -> Result<bool, LogError> {
        member::is_joined(&self.file.url, &self.file.path, group)
    }

    fn url(&self) -> String {
        self.file.url.clone()
    }
}
