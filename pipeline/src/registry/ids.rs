//! What the ids met so far stand for, shared by whoever reads a log and whoever decodes its records.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use warptape_schemas::SchemaSource;
use warptape_schemas::avro_fingerprint;

use super::{RegistryClient, RegistryError, RegistryProblem, Subject};

/// Ids without a schema that are remembered; then all of them are asked for again.
const UNKNOWN_MAX: usize = 65_536;
/// First wait before an unreachable registry is asked again; each further one is twice as long, up to the greatest.
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// Longest wait between two attempts.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(5);

/// Schemas by id, and ids by schema. A registry never changes what an id stands for, so nothing here grows old.
#[derive(Debug)]
pub struct SchemaIds {
    client: RegistryClient,
    /// How long an unreachable registry is asked again.
    retry: Duration,
    known: RwLock<HashMap<u32, Known>>,
    unknown: Mutex<HashSet<u32>>,
    /// Ids of what we write, by topic and fingerprint.
    registered: RwLock<HashMap<(String, u64), u32>>,
}

#[derive(Clone, Debug)]
struct Known {
    text: Arc<str>,
    /// `None` for what is no Avro schema.
    fingerprint: Option<u64>,
}

impl SchemaIds {
    /// Knows nothing yet and asks nothing.
    pub fn new(client: RegistryClient, retry: Duration) -> Self {
        Self {
            client,
            retry,
            known: RwLock::default(),
            unknown: Mutex::default(),
            registered: RwLock::default(),
        }
    }

    /// Registers what will be written. A registry that cannot be reached is not asked again: whoever starts the process
    /// is there to see it.
    pub fn register(&self, subjects: &[Subject]) -> Result<(), RegistryError> {
        for Subject { topic, schema, name, compatibility } in subjects {
            self.client.set_compatibility(name, compatibility)?;
            let id = self.client.register(name, schema.text)?;
            tracing::info!(subject = name, id, "schema registered");
            let known = Known { text: Arc::from(schema.text), fingerprint: Some(schema.fingerprint) };
            write(&self.known).insert(id, known);
            write(&self.registered).insert((topic.clone(), schema.fingerprint), id);
        }
        Ok(())
    }

    /// The id under which a topic's records of a schema are written; `None` if it was not registered.
    pub fn id_of(&self, topic: &str, fingerprint: u64) -> Option<u32> {
        read(&self.registered).get(&(topic.to_owned(), fingerprint)).copied()
    }

    /// The fingerprint of the schema with this id, if that was asked for and is an Avro schema.
    pub fn fingerprint_of(&self, id: u32) -> Option<u64> {
        read(&self.known).get(&id)?.fingerprint
    }

    /// Asks the registry for an id that was not asked for before; again and again for a while where it does not answer.
    pub fn ensure(&self, id: u32) -> Result<(), RegistryError> {
        if read(&self.known).contains_key(&id) || self.unknown().contains(&id) {
            return Ok(());
        }
        let Some(text) = self.ask(id)? else {
            tracing::warn!(id, url = self.client.url(), "the schema registry has no schema of this id");
            let mut unknown = self.unknown();
            if unknown.len() >= UNKNOWN_MAX {
                unknown.clear();
            }
            unknown.insert(id);
            return Ok(());
        };
        let known = Known { fingerprint: avro_fingerprint(&text), text: Arc::from(text) };
        write(&self.known).insert(id, known);
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "a registry that is away tells nobody when it is back")]
    fn ask(&self, id: u32) -> Result<Option<String>, RegistryError> {
        let until = Instant::now() + self.retry;
        let mut wait = RETRY_FIRST;
        loop {
            match self.client.schema(id) {
                Err(error)
                    if error.problem == RegistryProblem::Unreachable && Instant::now() + wait <= until =>
                {
                    tracing::warn!(id, %error, wait_ms = wait.as_millis(), "asking again");
                    sleep(wait);
                    wait = (wait * 2).min(RETRY_WAIT_MAX);
                }
                answer => return answer,
            }
        }
    }

    fn unknown(&self) -> std::sync::MutexGuard<'_, HashSet<u32>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SchemaSource for SchemaIds {
    fn schema(&self, id: u32) -> Option<Arc<str>> {
        read(&self.known).get(&id).map(|known| known.text.clone())
    }
}

// Maps of whole entries are sound whoever panicked beside them.

fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
