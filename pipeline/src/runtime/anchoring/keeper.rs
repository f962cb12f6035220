//! The thread that stores anchors in second places. It writes the newest anchor, at most one per interval, and retries
//! after a failure.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use warptape_replay::anchor::Anchor;

use super::locked;
use super::place::AnchorPlace;
use crate::runtime::worker::Worker;

/// Pause after a place refused an anchor.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Handle of the keeper's thread.
pub(super) struct Keeper {
    newest: Arc<Mutex<Option<Anchor>>>,
    running: Mutex<Option<(Sender<()>, Worker)>>,
}

impl Keeper {
    /// Starts the thread.
    pub(super) fn start(places: Vec<AnchorPlace>, interval: Duration) -> Self {
        let newest = Arc::new(Mutex::new(None));
        let (wake, wakes) = bounded(1);
        let of_thread = newest.clone();
        let worker = Worker::start("anchors", move || keep(places, interval, &of_thread, &wakes));
        Self { newest, running: Mutex::new(Some((wake, worker))) }
    }

    /// Requests that an anchor is written soon, unless a newer one replaces it first.
    pub(super) fn keep(&self, anchor: Anchor) {
        *locked(&self.newest) = Some(anchor);
        if let Some((wake, _)) = &*locked(&self.running) {
            // A thread that is already awake writes the newest anchor anyway.
            _ = wake.try_send(());
        }
    }

    /// Waits until the newest anchor is written, or one more attempt has failed.
    pub(super) fn stop(&self) {
        if let Some((wake, worker)) = locked(&self.running).take() {
            drop(wake);
            worker.join();
        }
    }
}

fn keep(
    mut places: Vec<AnchorPlace>,
    interval: Duration,
    newest: &Mutex<Option<Anchor>>,
    wakes: &Receiver<()>,
) {
    let mut written: Option<Instant> = None;
    let mut is_told = false;
    while let Ok(()) = wakes.recv() {
        let mut due = written.map_or_else(Instant::now, |written| written + interval);
        loop {
            let is_ending = waits_until(due, wakes);
            let failures = write_all(&mut places, newest);
            let now = Instant::now();
            written = Some(now);
            if failures.is_empty() {
                is_told = false;
                break;
            }
            // An outage is reported once, because the next anchor covers the missing ones.
            if !is_told {
                for (place, error) in failures {
                    tracing::error!(place, error, "the anchor of the journal was not written; it is retried");
                }
                is_told = true;
            }
            if is_ending {
                return;
            }
            due = now + RETRY_PAUSE;
        }
    }
    write_all(&mut places, newest);
}

/// Waits until a time. Returns true early if the process ends.
fn waits_until(due: Instant, wakes: &Receiver<()>) -> bool {
    loop {
        match wakes.recv_deadline(due) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => return true,
        }
    }
}

/// Writes the newest anchor to each place. Returns the places that failed, with their errors; the anchor is retried
/// there unless a newer one has come.
fn write_all(places: &mut [AnchorPlace], newest: &Mutex<Option<Anchor>>) -> Vec<(String, String)> {
    let Some(anchor) = locked(newest).take() else { return Vec::new() };
    let write = |place: &mut AnchorPlace| {
        let error = place.write(&anchor).err()?;
        Some((place.to_string(), error))
    };
    let failures: Vec<(String, String)> = places.iter_mut().filter_map(write).collect();
    if !failures.is_empty() {
        locked(newest).get_or_insert(anchor);
    }
    failures
}
