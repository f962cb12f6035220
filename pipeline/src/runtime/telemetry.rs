//! A thread that samples the state of devices.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, never};
use warptape_kernels::device::{Devices, Sample};

use super::worker::Worker;

/// Samples the state of devices.
pub(super) struct Telemetry {
    /// Name and sample of a device.
    pub(super) samples: Receiver<(String, Sample)>,
    /// The thread, which ends when its sender is dropped; `None` if there are no devices.
    thread: Option<(Sender<()>, Worker)>,
}

impl Telemetry {
    /// Starts to sample the named devices at intervals.
    pub(super) fn start(devices: Arc<dyn Devices>, names: Vec<String>, interval: Duration) -> Self {
        if names.is_empty() {
            return Self { samples: never(), thread: None };
        }
        let (stop, stopped) = bounded::<()>(0);
        let (sender, samples) = bounded(names.len());
        let ask = move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                for name in &names {
                    // If the engine has not taken the last samples yet, a new one is dropped. A sample with an error
                    // waits for the engine.
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
