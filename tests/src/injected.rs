//! Lanes of the real engine, with delays and faults injected around the lane's own work.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use warptape_engine::LaneCommand;
use warptape_kernels::device::DeviceError;
use warptape_pipeline::runtime::{
    ConfiguredLanes, DeviceSlices, EngineConfig, LaneResult, LaneWork, OpenLanes,
};
use warptape_schemas::journal::LaneId;

/// Extra time of a lane per row of a batch, which also applies while the lane is measured. It may change while the lane
/// works.
#[derive(Clone, Debug, Default)]
pub struct InjectedDelay(Arc<AtomicU64>);

impl InjectedDelay {
    /// Creates a delay of `row_ns` nanoseconds per row.
    pub fn of_row_ns(row_ns: u64) -> Self {
        Self(Arc::new(row_ns.into()))
    }

    /// Sets the delay to `row_ns` nanoseconds per row from now on.
    pub fn set_row_ns(&self, row_ns: u64) {
        self.0.store(row_ns, Ordering::Relaxed);
    }

    /// Sleeps for the delay of these rows.
    #[expect(clippy::disallowed_methods, reason = "a lane that is slow waits for nothing")]
    fn sleep(&self, rows: usize) {
        let row_ns = self.0.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_nanos(row_ns.saturating_mul(rows as u64)));
    }
}

/// Opens lanes as configured, and adds delays and faults to them.
#[derive(Clone, Debug, Default)]
pub struct InjectedLanes {
    /// Delays, by lane.
    pub delays: BTreeMap<LaneId, InjectedDelay>,
    /// Number of batches that a lane completes in its first life before it fails, by lane.
    pub batches_before_fault: BTreeMap<LaneId, u64>,
}

impl InjectedLanes {
    /// Makes one lane fail once, after `after_batches` batches.
    pub fn failing(lane: LaneId, after_batches: u64) -> Arc<Self> {
        Arc::new(Self { batches_before_fault: [(lane, after_batches)].into(), ..Self::default() })
    }
}

impl OpenLanes for InjectedLanes {
    fn open(&self, config: &EngineConfig, lane: LaneId, life: u32) -> Result<Box<dyn LaneWork>, DeviceError> {
        let work = ConfiguredLanes.open(config, lane, life)?;
        let delay = self.delays.get(&lane).cloned().unwrap_or_default();
        let batches_left = self.batches_before_fault.get(&lane).copied().filter(|_| life == 0);
        Ok(Box::new(Injected { work, delay, batches_left }))
    }
}

struct Injected {
    work: Box<dyn LaneWork>,
    delay: InjectedDelay,
    /// Number of batches left until the fault; `None` without a fault.
    batches_left: Option<u64>,
}

impl LaneWork for Injected {
    fn take_background(&mut self) -> Option<DeviceSlices> {
        self.work.take_background()
    }

    fn memory_bytes(&self) -> Option<[usize; 3]> {
        self.work.memory_bytes()
    }

    fn is_running(&self) -> bool {
        self.work.is_running()
    }

    fn may_overlap(&self, command: &LaneCommand) -> bool {
        self.work.may_overlap(command)
    }

    fn obey(&mut self, command: LaneCommand) -> Result<Option<LaneResult>, DeviceError> {
        if let LaneCommand::Run(batch) = &command {
            // Batches that measure a lane have a negative number.
            if let Some(left) = self.batches_left.as_mut().filter(|_| batch.batch >= 0) {
                assert!(*left > 0, "an injected fault");
                *left -= 1;
            }
            self.delay.sleep(batch.parts.iter().map(|part| part.input.rows.len()).sum());
        }
        self.work.obey(command)
    }

    fn finish(&mut self) -> Result<Option<LaneResult>, DeviceError> {
        self.work.finish()
    }
}
