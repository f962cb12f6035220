//! Faults that a test requests through the environment. Builds without debug assertions have none.
//!
//! - `WARPTAPE_FAILPOINT=NAME:N` kills the process when it reaches the named place for the N-th time. `LaneHangs:N`
//!   only stops the lane that gets the N-th batch overall. `LaneFails:N` makes that lane panic at each batch from then
//!   on, until its restarts are used up.
//! - `WARPTAPE_DEVICE_FAULTS=cuda:0=launch:40,cuda:1=hang:500:4000` makes devices fail. The faults are an error at a
//!   launch, a hang of some milliseconds, no memory, and a lost device. The fault comes after N allocations
//!   (`memory:N`), after N downloads (`gone:N`), or after uploads of BYTES bytes (`upload:BYTES`).
//!   `cuda:0/background` is that device's stream for slices of risk tasks.

/// Places where a process may be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failpoint {
    /// All records of a transaction are sent.
    AfterProduce,
    /// The transaction's offsets are sent, too.
    AfterSendOffsets,
    /// The transaction is being committed.
    DuringCommit,
    /// A part of a snapshot is sent.
    DuringSnapshot,
    /// A snapshot is read, but not installed yet.
    DuringRestore,
    /// A lane got a batch, and hangs.
    LaneHangs,
    /// A lane got a batch, and panics.
    LaneFails,
}

#[cfg(not(debug_assertions))]
mod armed {
    use std::sync::Arc;

    use warptape_kernels::device::Devices;

    pub(in super::super) fn reach(_: super::Failpoint) {}
    pub(in super::super) fn reach_soon(_: super::Failpoint) {}
    pub(in super::super) fn hang(_: super::Failpoint) {}
    pub(in super::super) fn fail(_: super::Failpoint, _: warptape_schemas::journal::LaneId) {}
    pub(crate) fn faulty(devices: Arc<dyn Devices>) -> Arc<dyn Devices> {
        devices
    }
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, OnceLock};
    use std::time::Duration;

    use warptape_kernels::device::{Devices, FaultyDevices};
    use warptape_schemas::journal::LaneId;

    use super::Failpoint;

    /// Time from the start of a commit until the process is killed.
    const SOON: Duration = Duration::from_micros(500);

    struct Armed {
        name: String,
        left: AtomicU64,
    }

    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
    /// The lane that fails.
    static FAILING: OnceLock<LaneId> = OnceLock::new();

    fn is_due(failpoint: Failpoint) -> bool {
        let armed = ARMED.get_or_init(|| {
            let text = std::env::var("WARPTAPE_FAILPOINT").ok()?;
            let (name, count) = text.split_once(':').expect("WARPTAPE_FAILPOINT is NAME:N");
            let left = AtomicU64::new(count.parse().expect("WARPTAPE_FAILPOINT is NAME:N"));
            Some(Armed { name: name.to_owned(), left })
        });
        let Some(armed) = armed else { return false };
        armed.name == format!("{failpoint:?}") && armed.left.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// Wraps devices with the requested faults.
    pub(crate) fn faulty(devices: Arc<dyn Devices>) -> Arc<dyn Devices> {
        match std::env::var("WARPTAPE_DEVICE_FAULTS") {
            Ok(text) => Arc::new(
                FaultyDevices::parse(devices, &text)
                    .unwrap_or_else(|error| panic!("WARPTAPE_DEVICE_FAULTS: {error}")),
            ),
            Err(_) => devices,
        }
    }

    /// Kills the process if this place is due.
    pub(in super::super) fn reach(failpoint: Failpoint) {
        if is_due(failpoint) {
            std::process::abort();
        }
    }

    /// Hangs forever if this place is due.
    pub(in super::super) fn hang(failpoint: Failpoint) {
        if is_due(failpoint) {
            // `park` may return spuriously.
            loop {
                std::thread::park();
            }
        }
    }

    /// Panics if this place is due, and whenever the same lane reaches it again.
    pub(in super::super) fn fail(failpoint: Failpoint, lane: LaneId) {
        if is_due(failpoint) {
            FAILING.get_or_init(|| lane);
        }
        assert!(FAILING.get() != Some(&lane), "a planted fault of lane {lane}");
    }

    /// Kills the process after a moment, while the caller goes on.
    pub(in super::super) fn reach_soon(failpoint: Failpoint) {
        if is_due(failpoint) {
            std::thread::spawn(|| {
                std::thread::park_timeout(SOON);
                std::process::abort();
            });
        }
    }
}

pub(crate) use armed::faulty;
pub(super) use armed::{fail, hang, reach, reach_soon};
