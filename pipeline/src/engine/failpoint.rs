//! Places where a test makes the process die: `WARPTAPE_FAILPOINT=NAME:N` kills it when it comes to the place for the
//! N-th time. Builds without debug assertions have none.

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
}

#[cfg(not(debug_assertions))]
mod armed {
    pub(in super::super) fn reach(_: super::Failpoint) {}
    pub(in super::super) fn reach_soon(_: super::Failpoint) {}
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

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

    /// Dies here, if it is time.
    pub(in super::super) fn reach(failpoint: Failpoint) {
        if is_due(failpoint) {
            std::process::abort();
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

pub(super) use armed::{reach, reach_soon};
