//! Threads that yield to those that ticks go through.

/// Of a priority, on Linux' scale from -20 to 19: a thread of ten less has a tenth of the time where two want the same core, and is
/// put aside at once where the other one wakes up.
#[cfg(target_os = "linux")]
const LESS: i32 = 10;

/// Has the calling thread yield the processor to all others of the process, where the system can do that for a thread alone.
pub(super) fn yield_to_ticks() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(LESS) {
        tracing::debug!(%error, "a thread beside the engine's has the priority of all others");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::thread;

    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn one_thread_yields_and_no_other() {
        let priority = || getpriority_process(None).expect("it has one");
        let before = priority();
        let of_thread = move || {
            yield_to_ticks();
            priority()
        };
        assert_eq!(thread::spawn(of_thread).join().expect("it does not panic"), (before + LESS).min(19));
        assert_eq!(priority(), before);
    }
}
