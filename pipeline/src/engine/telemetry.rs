//! How devices fare: a thread that asks them, and what the journal is told of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, never};
use warptape_kernels::device::{Devices, Sample};
use warptape_schemas::journal::{DeviceSample, LaneId};

use super::worker::Worker;

/// Asks devices how they fare.
pub(super) struct Telemetry {
    /// A device's name with its sample.
    pub(super) samples: Receiver<(String, Sample)>,
    /// The thread, which ends when its sender is dropped; none where there are no devices.
    thread: Option<(Sender<()>, Worker)>,
    /// The newest sample of each device, and the lanes that have recorded it.
    newest: BTreeMap<String, (Sample, Vec<LaneId>)>,
}

impl Telemetry {
    /// Begins to ask devices, given by name, in intervals.
    pub(super) fn start(devices: Arc<dyn Devices>, names: Vec<String>, interval: Duration) -> Self {
        if names.is_empty() {
            return Self { samples: never(), thread: None, newest: BTreeMap::new() };
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
        Self { samples, thread: Some((stop, thread)), newest: BTreeMap::new() }
    }

    /// Keeps a sample until lanes record it.
    pub(super) fn keep(&mut self, device: String, sample: Sample) {
        self.newest.insert(device, (sample, Vec::new()));
    }

    /// What a lane is to record: the newest sample of its device, once, with its own memory.
    pub(super) fn record(
        &mut self,
        lane: LaneId,
        device: &str,
        memory_bytes: [usize; 3],
    ) -> Option<DeviceSample> {
        let (sample, recorded) = self.newest.get_mut(device)?;
        if recorded.contains(&lane) {
            return None;
        }
        recorded.push(lane);
        let [slots_bytes, staging_bytes, work_bytes] = memory_bytes.map(|bytes| bytes as i64);
        let wide = |value: Option<u32>| value.map(i64::from);
        let long = |value: Option<u64>| value.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        Some(DeviceSample {
            slots_bytes,
            staging_bytes,
            work_bytes,
            memory_used_bytes: long(sample.memory_used_bytes),
            memory_free_bytes: long(sample.memory_free_bytes),
            utilization_percent: wide(sample.utilization_percent),
            temperature_c: wide(sample.temperature_c),
            power_mw: wide(sample.power_mw),
            sm_clock_mhz: wide(sample.sm_clock_mhz),
            memory_clock_mhz: wide(sample.memory_clock_mhz),
            throttle_bits: long(sample.throttle_bits),
            ecc_errors_uncorrected: long(sample.ecc_errors_uncorrected),
        })
    }

    /// Ends the thread.
    pub(super) fn stop(self) {
        let Self { samples, thread, .. } = self;
        drop(samples);
        if let Some((stop, thread)) = thread {
            drop(stop);
            thread.join();
        }
    }
}
