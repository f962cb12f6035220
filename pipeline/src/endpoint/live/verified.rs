//! Verifies the transactions of this process beside the pipeline, at a bounded share of a core.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use warptape_eventlog::EventLog;
use warptape_replay::{Followed, Follower, VerifyOptions};

use super::snapshot::Verified;

/// Pause before the next read of a log that was verified to its end, or could not be read.
const LOOK_PAUSE: Duration = Duration::from_millis(500);
/// Transactions of a partition that are compared without a pause. Without this limit, the rounds of a verifier that
/// falls behind would grow longer and longer.
const CHAIN_MAX: usize = 16;
/// Longest wait for the thread's end.
const END_MAX: Duration = Duration::from_secs(1);

/// The verifier's thread, which ends when this is dropped.
pub(super) struct Verifying {
    followed: Arc<Mutex<Followed>>,
    share_percent: u32,
    stop: Option<Sender<()>>,
    ended: Receiver<()>,
}

impl Verifying {
    /// Starts the thread, for the transactions of the process with this ordinal. It may use `share_percent` of a core,
    /// from 1 to 100.
    pub(super) fn start(
        log: Arc<dyn EventLog>,
        options: VerifyOptions,
        ordinal: i32,
        share_percent: u32,
    ) -> std::io::Result<Self> {
        let followed = Arc::<Mutex<Followed>>::default();
        let ((stop, stopped), (ends, ended)) = (bounded(0), bounded::<()>(0));
        let of_thread = followed.clone();
        let run = move || {
            let _ends = ends;
            let follower = Follower::new(&*log, options, false).with_chain_max(CHAIN_MAX);
            follow(follower.comparing_only(ordinal), share_percent, &of_thread, &stopped);
            drop(log);
        };
        std::thread::Builder::new().name("verifier".to_owned()).spawn(run)?;
        Ok(Self { followed, share_percent, stop: Some(stop), ended })
    }

    /// Returns the verifier's progress in this process's partition of the journal.
    pub(super) fn progress(&self, journal: i32, newest: Option<i64>) -> Verified {
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let outputs = followed.report.outputs.unwrap_or_default();
        Verified {
            sequence: followed.sequences.get(&journal).copied().unwrap_or(0),
            newest,
            outputs: outputs.signals + outputs.late + outputs.dead_letters + outputs.risk_results,
            difference: followed.report.divergence.as_ref().map(ToString::to_string),
            share_percent: self.share_percent,
        }
    }
}

impl Drop for Verifying {
    /// Waits for the thread's end, but at most for [`END_MAX`]: a round in progress may take longer.
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.ended.recv_timeout(END_MAX) == Err(RecvTimeoutError::Timeout) {
            tracing::debug!("the verifier of the page is still comparing: it ends after this round");
        }
    }
}

fn follow(
    mut follower: Follower<'_>,
    share_percent: u32,
    followed: &Mutex<Followed>,
    stopped: &Receiver<()>,
) {
    loop {
        let began = Instant::now();
        let is_at_end = follower.round().unwrap_or_else(|error| {
            tracing::debug!(%error, "the verifier of the page tries again");
            true
        });
        *followed.lock().unwrap_or_else(PoisonError::into_inner) = follower.followed().clone();
        if let Some(divergence) = &follower.followed().report.divergence {
            return tracing::error!("the log differs from its replay: {divergence}");
        }
        let rest = rest(began.elapsed(), share_percent);
        let pause = if is_at_end { rest.max(LOOK_PAUSE) } else { rest };
        if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Returns the pause after `worked` that keeps the thread within its share of a core.
fn rest(worked: Duration, share_percent: u32) -> Duration {
    let share = share_percent.clamp(1, 100);
    worked * (100 - share) / share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_the_share_of_work_and_rest() {
        let worked = Duration::from_millis(10);
        assert_eq!(rest(worked, 10), Duration::from_millis(90));
        assert_eq!(rest(worked, 100), Duration::ZERO);
        assert_eq!(rest(worked, 0), rest(worked, 1));
    }
}
