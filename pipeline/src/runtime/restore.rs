//! Restores partitions on a separate thread, one after the other, so that ticks of other partitions do not wait. It
//! reads a partition's snapshots, and uses the newest valid one.
//!
//! ```text
//!  engine's thread            restore thread
//!  ───────────────            ──────────────
//!  Command::Restore ────────► reads the topic of snapshots, builds the stages
//!  Event::Restored ◄───────── one state at a time: the next is read once this one is taken
//!  Command::LetGo ──────────► a restore that nobody awaits any more is broken off
//!  Command::ReadPages ──────► reads pages of symbols that left memory
//!  Event::PagesRead ◄────────
//!  Command::FindPages ──────► looks for pages that were committed a moment ago
//!  Event::PagesFound ◄───────
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use warptape_engine::{Command, Event, PageId, Restored, SnapshotPlace, restore_from};
use warptape_eventlog::{EventLog, Fetched, LogError, TopicPartition};
use warptape_schemas::{Snapshot, decode_snapshot};

use super::failpoint::{self, Failpoint};
use super::pages::PageReader;
use super::worker::Worker;
use super::{EngineConfig, EngineError, process_log};

/// Greatest number of records and bytes of one read. A snapshot record has at most half a megabyte.
const READ_RECORDS_MAX: usize = 64;
const READ_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Wait before the reader checks again whether it reached the end.
const READ_WAIT: Duration = Duration::from_millis(100);

/// A partition to restore.
pub(super) struct Restore {
    pub(super) number: u64,
    pub(super) partition: i32,
    pub(super) sealed_offset: i64,
}

/// Jobs of the thread.
enum Job {
    /// A restore, valid while the token exists.
    Restore(Restore, Weak<()>),
    ReadPages {
        number: u64,
        partition: i32,
        pages: Vec<PageId>,
    },
    FindPages {
        partition: i32,
        pages: Vec<PageId>,
    },
}

/// An event for the core, or the error of a job.
pub(super) type RestoreEvent = Result<Event, LogError>;

/// Handle of the thread.
pub(super) struct Restoring {
    /// The core asks for one state of each partition at a time, so the number of partitions limits the waiting jobs.
    jobs: Sender<Job>,
    done: Receiver<RestoreEvent>,
    /// Token of each partition's job. The thread stops a job whose token was dropped.
    awaited: BTreeMap<i32, Arc<()>>,
    worker: Worker,
}

impl Restoring {
    pub(super) fn start(log: Arc<dyn EventLog>, config: EngineConfig) -> Self {
        let (jobs, received) = unbounded();
        let (sent, done) = bounded(1);
        let pages = PageReader::new(log.clone(), config.core.topics.snapshots.clone());
        let mut restorer = Restorer { log, config, pages };
        let worker = Worker::start("restore", move || {
            for job in received {
                let Some(event) = restorer.run(job).transpose() else { continue };
                // An ended engine reads no events.
                if sent.send(event).is_err() {
                    return;
                }
            }
        });
        Self { jobs, done, awaited: BTreeMap::new(), worker }
    }

    /// Requests the restore of a partition.
    pub(super) fn run(&mut self, restore: Restore) -> Result<(), EngineError> {
        let token = Arc::new(());
        let job_lives_by = Arc::downgrade(&token);
        self.awaited.insert(restore.partition, token);
        self.jobs.send(Job::Restore(restore, job_lives_by)).map_err(|_| self.gone())
    }

    /// Requests that pages are read.
    pub(super) fn read_pages(
        &self,
        number: u64,
        partition: i32,
        pages: Vec<PageId>,
    ) -> Result<(), EngineError> {
        self.jobs.send(Job::ReadPages { number, partition, pages }).map_err(|_| self.gone())
    }

    /// Requests a search for pages.
    pub(super) fn find_pages(&self, partition: i32, pages: Vec<PageId>) -> Result<(), EngineError> {
        self.jobs.send(Job::FindPages { partition, pages }).map_err(|_| self.gone())
    }

    /// Abandons the restore of a partition.
    pub(super) fn abandon(&mut self, partition: i32) {
        self.awaited.remove(&partition);
    }

    /// Returns the events of finished jobs, in the order of the jobs.
    pub(super) fn done(&self) -> &Receiver<RestoreEvent> {
        &self.done
    }

    /// Returns the error for an ended thread; the thread never ends by itself.
    pub(super) fn gone(&self) -> EngineError {
        EngineError::ThreadGone { thread: "restore" }
    }

    /// Ends the thread, and waits for it.
    pub(super) fn stop(self) {
        let Self { jobs, done, awaited, worker } = self;
        drop((jobs, done, awaited));
        worker.join();
    }
}

/// Data that the restore thread uses.
struct Restorer {
    log: Arc<dyn EventLog>,
    config: EngineConfig,
    pages: PageReader,
}

impl Restorer {
    fn run(&mut self, job: Job) -> Result<Option<Event>, LogError> {
        Ok(match job {
            Job::Restore(restore, awaited) => {
                let restored = self.restore(&restore, &awaited)?;
                restored
                    .map(|restored| Event::Restored { number: restore.number, restored: Box::new(restored) })
            }
            Job::ReadPages { number, partition, pages } => {
                Some(Event::PagesRead { number, pages: self.pages.read(partition, &pages)? })
            }
            Job::FindPages { partition, pages } => {
                // While the log does not answer, no page counts as found, and the pages stay in memory.
                let found = self.pages.find(partition, &pages).unwrap_or_else(|error| {
                    tracing::debug!(partition, %error, "cannot look for pages");
                    Vec::new()
                });
                Some(Event::PagesFound { partition, sought: pages, found })
            }
        })
    }

    /// Restores a partition from the newest snapshot at or before an offset; `None` if the job was abandoned.
    fn restore(&self, restore: &Restore, awaited: &Weak<()>) -> Result<Option<Restored>, LogError> {
        let &Restore { partition, sealed_offset, .. } = restore;
        let _span = tracing::debug_span!("restore", partition, sealed_offset).entered();
        let began = Instant::now();
        let snapshots = TopicPartition { topic: self.config.core.topics.snapshots.clone(), partition };
        let is_awaited = || awaited.strong_count() > 0;
        let Some(parts) = read_parts(self.log.as_ref(), &snapshots, is_awaited)? else { return Ok(None) };
        let mut restored = restore_from(parts, sealed_offset, &self.config.core.stages, self.config.isa);
        let ticks = TopicPartition { topic: self.config.core.topics.ticks.clone(), partition };
        restored.first = self.log.offsets(&ticks)?.first;
        // Pages are read again once their symbols have ticks.
        restored.pages.clear();
        process_log::restored(partition, sealed_offset, &restored, began.elapsed());
        failpoint::reach(Failpoint::DuringRestore);
        Ok(Some(restored))
    }
}

/// Reports that the log has removed records that a partition's state lacks, or that were never processed.
pub(super) fn tell_removed(removed: &Command, topic: &str) {
    let &Command::TicksRemoved { partition, first, snapshot_offset, is_emptied, lost_from } = removed else {
        return;
    };
    if let Some(from) = lost_from.filter(|from| *from < first) {
        tracing::warn!(
            "{topic}/{partition}: records {from} to {} were removed before they were processed, so no output contains them",
            first - 1
        );
    }
    if is_emptied {
        tracing::warn!(
            "{topic}/{partition} begins at offset {first}, and no snapshot covers the removed records. The \
             state is computed from the remaining ones: the first bar of each symbol may lack trades, \
             indicators start over, and symbol numbers and late ticks may differ from before"
        );
    } else {
        tracing::warn!(
            "{topic}/{partition} continues at offset {first} with the state of offset {snapshot_offset}"
        );
    }
}

/// Reads the snapshots of a partition. Skips a damaged one with a warning, because the log can replace it. Returns
/// `None` if the job was abandoned.
fn read_parts(
    log: &dyn EventLog,
    snapshots: &TopicPartition,
    is_awaited: impl Fn() -> bool,
) -> Result<Option<Vec<(SnapshotPlace, Snapshot)>>, LogError> {
    let mut parts = Vec::new();
    let mut reader = log.reader(std::slice::from_ref(snapshots))?;
    let range = reader.offsets(snapshots)?;
    while reader.position(snapshots)? < range.next {
        if !is_awaited() {
            return Ok(None);
        }
        let Fetched::Records { records, .. } = reader.poll(READ_WAIT, READ_RECORDS_MAX, READ_BYTES_MAX)?
        else {
            continue;
        };
        for record in records {
            match decode_snapshot(&record.value) {
                Ok(part) => {
                    parts.push((SnapshotPlace::of_key(record.key.as_deref().unwrap_or_default()), part))
                }
                Err(error) => {
                    tracing::warn!(offset = record.offset, %error, "snapshot record cannot be read and is skipped")
                }
            }
        }
    }
    Ok(Some(parts))
}
