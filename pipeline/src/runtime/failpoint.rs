//! Faults that a test asks for by the environment. Builds without debug assertions have none.
//!
//! - `WARPTAPE_FAILPOINT=NAME:N` kills the process when it comes to the place for the N-th time; `LaneHangs:N` stops the lane that gets the
//!   N-th batch of all, and nothing else.
//! - `WARPTAPE_DEVICE_FAULTS=cuda:0=launch:40,cuda:1=hang:500:4000` makes devices fail: an error at a launch, a hang of some
//!   milliseconds, no memory (`memory:N` allocations work), a device that is gone (`gone:N` downloads work, or `upload:BYTES`).
//!   `cuda:0/background` is the stream of that device for slices of risk tasks.

/// A place to die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failpoint {
    /// All records of a transaction are sent.
    AfterProduce,
    /// Its offsets are sent as well.
    AfterSendOffsets,
    /// It is being committed.
    DuringCommit,
    /// A part of a snapshot is sent.
    DuringSnapshot,
    /// A snapshot is read and not installed yet.
    DuringRestore,
    /// A lane has a batch.
    LaneHangs,
}

#[cfg(not(debug_assertions))]
mod armed {
    use std::sync::Arc;

    use warptape_kernels::device::Devices;

    pub(in super::super) fn reach(_: super::Failpoint) {}
    pub(in super::super) fn reach_soon(_: super::Failpoint) {}
    pub(in super::super) fn hang(_: super::Failpoint) {}
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

    use super::Failpoint;

    /// Between the beginning of a commit and the death during it.
    const SOON: Duration = Duration::from_micros(500);

    struct Armed {
        name: String,
        left: AtomicU64,
    }

    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();

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

    /// Devices with the faults that are asked for.
    pub(crate) fn faulty(devices: Arc<dyn Devices>) -> Arc<dyn Devices> {
        match std::env::var("WARPTAPE_DEVICE_FAULTS") {
            Ok(text) => Arc::new(
                FaultyDevices::parse(devices, &text)
                    .unwrap_or_else(|error| panic!("WARPTAPE_DEVICE_FAULTS: {error}")),
            ),
            Err(_) => devices,
        }
    }

    /// Dies here, if it is time.
    pub(in super::super) fn reach(failpoint: Failpoint) {
        if is_due(failpoint) {
            std::process::abort();
        }
    }

    /// Comes back no more, if it is time.
    pub(in super::super) fn hang(failpoint: Failpoint) {
        if is_due(failpoint) {
            // One that is woken by chance goes on hanging.
            loop {
                std::thread::park();
            }
        }
    }

    /// Dies in a moment, while the caller goes on.
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
pub(super) use armed::{hang, reach, reach_soon};
