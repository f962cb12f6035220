//! How devices fare: a thread that asks them.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, never};
use warptape_kernels::device::{Devices, Sample};

use super::worker::Worker;

/// Asks devices how they fare.
pub(super) struct Telemetry {
    /// A device's name with its sample.
    pub(super) samples: Receiver<(String, Sample)>,
    /// The thread, which ends when its sender is dropped; none where there are no devices.
    thread: Option<(Sender<()>, Worker)>,
}

impl Telemetry {
    /// Begins to ask devices, given by name, in intervals.
    pub(super) fn start(devices: Arc<dyn Devices>, names: Vec<String>, interval: Duration) -> Self {
        if names.is_empty() {
            return Self { samples: never(), thread: None };
        }
        let (stop, stopped) = bounded::<()>(0);
        let (sender, samples) = bounded(names.len());
        let ask = move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                for name in &names {
                    // An engine that has not taken the last ones yet misses nothing but figures; an error it must see.
                    match devices.sample(name) {
                        Some(sample) if sample.xid.is_some() => drop(sender.send((name.clone(), sample))),
                        Some(sample) => drop(sender.try_send((name.clone(), sample))),
                        None => {}
                    }
                }
            }
        };
        let thread = Worker::start("telemetry", ask);
        Self { samples, thread: Some((stop, thread)) }
    }

    /// Ends the thread.
    pub(super) fn stop(self) {
        let Self { samples, thread } = self;
        drop(samples);
        if let Some((stop, thread)) = thread {
            drop(stop);
            thread.join();
        }
    }
}
