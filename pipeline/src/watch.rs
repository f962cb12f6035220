//! Checks whether the log answers, independently of the threads that use it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use warptape_eventlog::{EventLog, LogError};

/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// Pause between two checks.
const PAUSE: Duration = Duration::from_secs(1);

/// An outage of the log.
#[derive(Clone, Debug)]
pub struct Lost {
    /// Time of the first check without an answer.
    pub since: Instant,
    /// Last error.
    pub cause: String,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broker lost {} s ago", self.since.elapsed().as_secs())
    }
}

/// A thread that checks the log at intervals, until this is dropped.
pub struct LogWatch {
    /// The current outage, written by the thread; `None` while the log answers.
    lost: Arc<Mutex<Option<Lost>>>,
    /// Dropping it ends the thread.
    _stop: Sender<()>,
}

impl LogWatch {
    /// Starts to check the log by asking for a topic.
    pub fn start(log: Arc<dyn EventLog>, topic: String) -> Self {
        let lost = Arc::new(Mutex::new(None));
        let of_thread = lost.clone();
        let (stop, stopped) = bounded(0);
        thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watch(|| log.reach(&topic, ANSWER_MAX), PAUSE, &of_thread, &stopped))
            .expect("the system can start a thread");
        Self { lost, _stop: stop }
    }

    /// Returns the current outage; `None` while the log answers.
    pub fn lost(&self) -> Option<Lost> {
        lock(&self.lost).clone()
    }
}

fn watch(
    ask: impl Fn() -> Result<(), LogError>,
    pause: Duration,
    lost: &Mutex<Option<Lost>>,
    stopped: &Receiver<()>,
) {
    loop {
        let since = Instant::now();
        let answer = ask();
        let mut lost = lock(lost);
        *lost = match (answer, lost.take()) {
            (Ok(()), before) => {
                if let Some(lost) = before {
                    tracing::info!(lost_s = lost.since.elapsed().as_secs(), "the log answers again");
                }
                None
            }
            (Err(error), before) => {
                if before.is_none() {
                    tracing::info!(%error, "the log does not answer");
                }
                let since = before.map_or(since, |before| before.since);
                Some(Lost { since, cause: error.to_string() })
            }
        };
        drop(lost);
        if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

fn lock(lost: &Mutex<Option<Lost>>) -> MutexGuard<'_, Option<Lost>> {
    lost.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_lasts_from_the_first_question_without_an_answer() {
        let lost = Mutex::new(None);
        let (stop, stopped) = bounded(0);
        let stop = Mutex::new(Some(stop));
        let times = Mutex::new(Vec::new());
        let unreachable = || LogError::Unreachable {
            url: "kafka:a:1".to_owned(),
            doing: "asking".to_owned(),
            cause: "nobody there".to_owned(),
        };
        // The log answers, is lost twice, and answers again.
        let ask = || {
            let mut times = times.lock().expect("nobody panics");
            times.push(lock(&lost).as_ref().map(|lost: &Lost| (lost.since, lost.cause.clone())));
            match times.len() {
                1 | 4 => Ok(()),
                2 | 3 => Err(unreachable()),
                _ => {
                    *stop.lock().expect("nobody panics") = None;
                    Ok(())
                }
            }
        };
        watch(ask, Duration::ZERO, &lost, &stopped);
        let found = times.into_inner().expect("nobody panics");
        assert!(found[0].is_none() && found[1].is_none() && found[4].is_none(), "{found:?}");
        let (first, second) = (found[2].clone().expect("lost"), found[3].clone().expect("lost"));
        assert_eq!(first.0, second.0);
        assert!(first.1.contains("nobody there"), "{first:?}");
    }
}
