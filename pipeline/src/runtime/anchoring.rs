//! Anchors of the journal while it is written. The head of each commit is signed; once the commit has succeeded, the
//! anchor is also stored in a second place.
//!
//! ```text
//!  commit thread:  entries ──► sign ──► header of the last journal record ──► committed ──► newest ──┐
//!  lifecycle thread: record written ──► told ──┘                                                   ▼
//!                                                              anchors thread: file, topic of another log
//! ```
//!
//! The second place gets an anchor after the commit, so it is never ahead of the log. It may be behind by the interval,
//! and by anchors that a killed process had not written yet. A head covers all earlier ones, so the next anchor
//! replaces the missing ones.

mod keeper;
mod place;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use warptape_engine::CommitRequest;
use warptape_eventlog::{EventLog, NewRecord};
use warptape_replay::anchor::{Anchor, HEADER, LIFE_HEADER, SigningKey, Statement, Told};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::JournalEntry;

use self::keeper::Keeper;
use self::place::AnchorPlace;
use super::journal_tail::entry_at;
use super::{EngineConfig, EngineError};

/// Configuration of a process's anchors.
#[derive(Clone)]
pub struct Anchoring {
    /// Key that signs the anchors.
    pub key: Arc<SigningKey>,
    /// File to append anchors to; `None` for no file.
    pub file: Option<PathBuf>,
    /// Another log and the topic in it; `None` for no log.
    pub log: Option<(Arc<dyn EventLog>, String)>,
    /// Least time between two anchors in the file and in the other log.
    pub interval: Duration,
}

/// The anchors of a running process.
pub(super) struct Anchors {
    key: Arc<SigningKey>,
    topic: String,
    ordinal: i32,
    told: SharedTold,
    /// The newest signed anchor; `committed` is the newest anchor whose commit has succeeded.
    signed: Mutex<Option<Anchor>>,
    committed: Mutex<Option<Anchor>>,
    keeper: Option<Keeper>,
}

/// The lifecycle records of this process life so far. The lifecycle thread counts them, and the commit thread signs the
/// count.
#[derive(Clone)]
pub(super) struct SharedTold(Arc<Mutex<Told>>);

impl SharedTold {
    /// Counts a record with this value, after it was written to the topic.
    pub(super) fn add(&self, value: &[u8]) {
        let mut told = locked(&self.0);
        *told = told.with(value);
    }

    /// Returns the header that marks a record of this life.
    pub(super) fn header(&self, ordinal: i32) -> (String, Vec<u8>) {
        let life = locked(&self.0).life;
        (LIFE_HEADER.to_owned(), format!("{ordinal}/{life}").into_bytes())
    }
}

impl Anchors {
    /// Begins a life now; `last` is the newest journal entry so far. Returns `None` if the journal is not anchored.
    /// Fails if the journal contradicts its stored anchors.
    pub(super) fn start(
        log: &dyn EventLog,
        config: &EngineConfig,
        last: Option<&JournalEntry>,
        now_ns: i64,
    ) -> Result<Option<Arc<Self>>, EngineError> {
        let Some(anchoring) = &config.anchoring else { return Ok(None) };
        let (topic, ordinal) = (config.core.topics.journal.clone(), config.ordinal);
        let mut places = Vec::new();
        places.extend(anchoring.file.clone().map(AnchorPlace::file));
        if let Some((log, topic)) = &anchoring.log {
            let transactional_id = format!("{}-anchors", config.transactional_id());
            places.push(AnchorPlace::topic(log.clone(), topic.clone(), transactional_id)?);
        }
        for place in &places {
            if let Some(anchor) = place.newest(&topic, ordinal)? {
                check_kept(log, &place.to_string(), &anchor.statement, last)?;
            }
        }
        let keeper = (!places.is_empty()).then(|| Keeper::start(places, anchoring.interval));
        Ok(Some(Arc::new(Self {
            key: anchoring.key.clone(),
            topic,
            ordinal,
            told: SharedTold(Arc::new(Mutex::new(Told::new(now_ns)))),
            signed: Mutex::default(),
            committed: Mutex::default(),
            keeper,
        })))
    }

    /// Returns the count of this life's lifecycle records.
    pub(super) fn told(&self) -> SharedTold {
        self.told.clone()
    }

    /// Signs the head of a commit, and returns the header for its last journal record.
    pub(super) fn sign(&self, request: &CommitRequest) -> Option<(String, Vec<u8>)> {
        let entry = decode_journal_entry(request.last_entry()?).expect("the engine's own entry");
        let anchor = self.anchor(&entry, request.sealed_at_ns);
        let header = (HEADER.to_owned(), anchor.to_string().into_bytes());
        *locked(&self.signed) = Some(anchor);
        Some(header)
    }

    /// Records that the last signed commit is durable and visible.
    pub(super) fn on_committed(&self) {
        let Some(anchor) = locked(&self.signed).take() else { return };
        *locked(&self.committed) = Some(anchor.clone());
        if let Some(keeper) = &self.keeper {
            keeper.keep(anchor);
        }
    }

    /// Stores a last anchor with the count of all lifecycle records, and waits until it is written.
    pub(super) fn stop(&self, at_ns: i64) {
        let Some(keeper) = &self.keeper else { return };
        if let Some(anchor) = locked(&self.committed).take() {
            let told = *locked(&self.told.0);
            let statement = Statement { at_ns, told, ..anchor.statement };
            keeper.keep(statement.sign(&self.key));
        }
        keeper.stop();
    }

    fn anchor(&self, entry: &JournalEntry, at_ns: i64) -> Anchor {
        let &JournalEntry { sequence, hash, .. } = entry;
        let (topic, partition) = (self.topic.clone(), self.ordinal);
        let told = *locked(&self.told.0);
        Statement { topic, partition, sequence, hash, at_ns, told }.sign(&self.key)
    }
}

/// A panic while the lock is held leaves the value consistent.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the header with the anchor to the last journal record of a commit.
pub(super) fn with_anchor<'a>(
    records: impl Iterator<Item = NewRecord<'a>>,
    journal: &str,
    mut entries: usize,
    mut header: Option<(String, Vec<u8>)>,
) -> impl Iterator<Item = NewRecord<'a>> {
    records.map(move |record| {
        if record.topic != journal {
            return record;
        }
        entries -= 1;
        match header.take_if(|_| entries == 0) {
            Some(header) => NewRecord { headers: vec![header].into(), ..record },
            None => record,
        }
    })
}

/// Refuses a journal that contradicts its stored anchor, or has lost its end since.
fn check_kept(
    log: &dyn EventLog,
    place: &str,
    kept: &Statement,
    last: Option<&JournalEntry>,
) -> Result<(), EngineError> {
    let Statement { topic, partition, sequence, hash, .. } = kept;
    let (place, topic, ordinal) = (place.to_owned(), topic.clone(), *partition);
    let next_sequence = last.map_or(0, |last| last.sequence + 1);
    if *sequence >= next_sequence {
        let anchored_sequence = *sequence;
        return Err(EngineError::RolledBack { place, topic, ordinal, anchored_sequence, next_sequence });
    }
    // Entries before the journal's first one may have been removed.
    match entry_at(log, &topic, ordinal, *sequence)? {
        Some(entry) if entry.sequence == *sequence && entry.hash != *hash => {
            Err(EngineError::Rewritten { place, topic, ordinal, sequence: *sequence })
        }
        _ => Ok(()),
    }
}
