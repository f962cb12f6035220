//! Schemas of the ids seen so far, shared by readers of a log and decoders of its records.
//!
//! A registry that does not answer is asked again, with growing waits. If the registry answers for other names but
//! never for one, then that name belongs to a stray record, and there is no outage. After `schema_registry.retry_ms`
//! the name counts as unknown.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use warptape_schemas::SchemaSource;
use warptape_schemas::avro_fingerprint;

use super::{RegistryClient, RegistryError, RegistryProblem, Subject};

/// Greatest number of remembered names without a schema; beyond it, all are forgotten and looked up again.
const UNKNOWN_MAX: usize = 65_536;
/// First wait before an unreachable registry is asked again; each further wait is twice as long, up to
/// [`RETRY_WAIT_MAX`].
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// Longest wait between two attempts.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(5);

/// Name of the writer's schema in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemaName {
    /// An id in the registry.
    Id(u32),
    /// A schema's guid, which is the same in every context and registry.
    Guid([u8; 16]),
}

/// Schemas by id, and ids by schema. A registry never changes the schema of an id, so entries stay valid.
#[derive(Debug)]
pub struct SchemaIds {
    client: RegistryClient,
    /// Time for which a name without an answer is asked for again, before a check whether the registry answers for
    /// others.
    retry: Duration,
    known: RwLock<HashMap<u32, Known>>,
    guids: RwLock<HashMap<[u8; 16], u32>>,
    unknown: Mutex<HashSet<SchemaName>>,
    /// Names for which a thread is asking.
    asked: Mutex<HashSet<SchemaName>>,
    /// Ids of the schemas that we write, by topic and fingerprint.
    registered: RwLock<HashMap<(String, u64), u32>>,
}

#[derive(Clone, Debug)]
struct Known {
    text: Arc<str>,
    /// Fingerprint; `None` if the text is not an Avro schema.
    fingerprint: Option<u64>,
}

impl Known {
    fn new(text: String) -> Self {
        Self { fingerprint: avro_fingerprint(&text), text: Arc::from(text) }
    }
}

impl SchemaIds {
    /// Creates an empty set, without a request to the registry.
    pub fn new(client: RegistryClient, retry: Duration) -> Self {
        Self {
            client,
            retry,
            known: RwLock::default(),
            guids: RwLock::default(),
            unknown: Mutex::default(),
            asked: Mutex::default(),
            registered: RwLock::default(),
        }
    }

    /// Registers the schemas that will be written. Does not retry, because the user who starts the process sees the
    /// error. Refuses a registry that does not return a registered schema under its id: records with such an id would
    /// be unreadable.
    pub fn register(&self, subjects: &[Subject]) -> Result<(), RegistryError> {
        for Subject { topic, schema, name, compatibility } in subjects {
            self.client.set_compatibility(name, compatibility)?;
            let id = self.client.register(name, schema.text)?;
            let kept = self.client.schema(id)?;
            if kept.as_deref().and_then(avro_fingerprint) != Some(schema.fingerprint) {
                return Err(self.client.not_kept(name, id, kept.is_some()));
            }
            tracing::info!(subject = name, id, "schema registered");
            let known = Known { text: Arc::from(schema.text), fingerprint: Some(schema.fingerprint) };
            write(&self.known).insert(id, known);
            write(&self.registered).insert((topic.clone(), schema.fingerprint), id);
        }
        Ok(())
    }

    /// Returns the id of a schema for records of a topic; `None` if it was not registered.
    pub fn id_of(&self, topic: &str, fingerprint: u64) -> Option<u32> {
        read(&self.registered).get(&(topic.to_owned(), fingerprint)).copied()
    }

    /// Returns the fingerprint of the schema with this id; `None` if the id was not looked up, or its schema is not
    /// Avro.
    pub fn fingerprint_of(&self, id: u32) -> Option<u64> {
        read(&self.known).get(&id)?.fingerprint
    }

    /// Returns a name's id; `Some(None)` if it has no schema, and `None` if the answer is not known yet.
    pub fn settled(&self, name: SchemaName) -> Option<Option<u32>> {
        let found = match name {
            SchemaName::Id(id) => read(&self.known).contains_key(&id).then_some(id),
            SchemaName::Guid(guid) => read(&self.guids).get(&guid).copied(),
        };
        match found {
            Some(id) => Some(Some(id)),
            None => lock(&self.unknown).contains(&name).then_some(None),
        }
    }

    /// Asks the registry for a new name, and retries for a while if the registry does not answer. Returns the id;
    /// `None` if there is no such schema.
    pub fn ensure(&self, name: SchemaName) -> Result<Option<u32>, RegistryError> {
        let since = Instant::now();
        let mut wait = RETRY_FIRST;
        loop {
            if let Some(settled) = self.settled(name) {
                return Ok(settled);
            }
            let Err(error) = self.ask(name) else { continue };
            match since.elapsed() + wait > self.retry || error.problem == RegistryProblem::Refused {
                true if self.answers_for_others() => self.give_up(name, &error),
                true => return Err(error),
                false => pause(name, &error, &mut wait),
            }
        }
    }

    /// Makes a thread ask for a name until it is resolved, however long the registry is away.
    pub fn ask_on(self: &Arc<Self>, name: SchemaName) {
        if !lock(&self.asked).insert(name) {
            return;
        }
        let ids = Arc::downgrade(self);
        let ask = move || {
            let since = Instant::now();
            let mut wait = RETRY_FIRST;
            while let Some(ids) = ids.upgrade() {
                match ids.ask(name) {
                    Ok(()) => {}
                    Err(error) if since.elapsed() >= ids.retry && ids.answers_for_others() => {
                        ids.give_up(name, &error);
                    }
                    Err(error) => {
                        // The ids are not held during the wait, so that the thread ends with the log.
                        drop(ids);
                        pause(name, &error, &mut wait);
                        continue;
                    }
                }
                lock(&ids.asked).remove(&name);
                return;
            }
        };
        if let Err(error) = thread::Builder::new().name("registry".to_owned()).spawn(ask) {
            tracing::warn!(%name, %error, "cannot start a thread to ask the schema registry; it is retried");
            lock(&self.asked).remove(&name);
        }
    }

    /// Asks the registry once, and stores the answer.
    fn ask(&self, name: SchemaName) -> Result<(), RegistryError> {
        let id = match name {
            SchemaName::Id(id) => Some(id),
            SchemaName::Guid(guid) => self.client.id_of_guid(guid)?,
        };
        let text = id.map(|id| self.client.schema(id)).transpose()?.flatten();
        let (Some(id), Some(text)) = (id, text) else {
            tracing::warn!(%name, url = self.client.url(), "the schema registry has no such schema");
            self.remember_unknown(name);
            return Ok(());
        };
        write(&self.known).insert(id, Known::new(text));
        if let SchemaName::Guid(guid) = name {
            write(&self.guids).insert(guid, id);
        }
        Ok(())
    }

    /// True if the registry returns a schema that it is known to have. A missing answer then concerns only its own
    /// name.
    fn answers_for_others(&self) -> bool {
        let known = read(&self.known).keys().next().copied();
        match known {
            Some(id) => self.client.schema(id).is_ok_and(|text| text.is_some()),
            None => self.client.answers(),
        }
    }

    fn give_up(&self, name: SchemaName, error: &RegistryError) {
        tracing::warn!(%name, %error, "the schema registry answers for other ids but not for this one, which counts as unknown");
        self.remember_unknown(name);
    }

    fn remember_unknown(&self, name: SchemaName) {
        let mut unknown = lock(&self.unknown);
        if unknown.len() >= UNKNOWN_MAX {
            unknown.clear();
        }
        unknown.insert(name);
    }
}

#[expect(clippy::disallowed_methods, reason = "a registry that is away tells nobody when it is back")]
fn pause(name: SchemaName, error: &RegistryError, wait: &mut Duration) {
    tracing::warn!(%name, %error, wait_ms = wait.as_millis(), "asking again");
    sleep(*wait);
    *wait = (*wait * 2).min(RETRY_WAIT_MAX);
}

impl fmt::Display for SchemaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "id {id}"),
            Self::Guid(guid) => write!(f, "guid {}", guid_text(*guid)),
        }
    }
}

/// Formats a guid in the form of registries.
pub(super) fn guid_text(guid: [u8; 16]) -> String {
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let parts = [&guid[..4], &guid[4..6], &guid[6..8], &guid[8..10], &guid[10..]];
    parts.map(digits).join("-")
}

impl SchemaSource for SchemaIds {
    fn schema(&self, id: u32) -> Option<Arc<str>> {
        read(&self.known).get(&id).map(|known| known.text.clone())
    }
}

// Entries are inserted whole, so the maps are valid even if a holder of the lock panicked.

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
