//! The allocator of the `warptape` binary, and of the benchmarks that measure like it.
//!
//! Batches of rows and records are allocated and freed by the megabyte. The system's allocator returns each one to the
//! kernel, which clears the same pages again for the next batch. This takes two thirds of the engine thread's time.
//! mimalloc also returns memory, but later; see [`set_up`].
//!
//! mimalloc also replaces C's `malloc`, which only a whole program may do. So the pipeline's library does not contain
//! it, and a Python extension keeps the allocator of its process.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long, c_void};
use std::io::Write;
use std::ptr;

pub use mimalloc::MiMalloc as Allocator;

/// Value of `mi_option_purge_delay` in mimalloc's `mimalloc.h`, for which libmimalloc-sys has no name.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
/// Delay before free memory returns to the system, in milliseconds. By default mimalloc returns memory that happens to
/// be free once a second. But the next batches need that memory, and so does librdkafka for its next fetch. A delay of
/// a minute, compared with ten seconds, saved 13 and 15 % of processor time with records of 256 ticks (two alternating
/// comparisons). An idle process still returns its memory.
const PURGE_DELAY_MS: c_long = 60_000;

/// Error number of mimalloc for "out of memory", equal to the system's.
const ENOMEM: c_int = 12;

/// Sets the allocator's options, unless the environment (`MIMALLOC_PURGE_DELAY`) sets them, and the reaction to a lack
/// of memory. Must be the first call in `main`.
pub fn set_up() {
    // SAFETY: the calls only require a valid option; the function is static, and gets no argument.
    unsafe {
        libmimalloc_sys::mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MS);
        libmimalloc_sys::mi_register_error(Some(fail), ptr::null_mut());
    }
}

unsafe extern "C" {
    /// Ends the process at once. It skips exit handlers, because they may allocate memory.
    fn _exit(code: c_int) -> !;
}

/// Ends a process that has no memory left, with a message and exit status 1. Rust and C libraries would end it with a
/// signal. Committed data is not lost, as in any end of a process.
unsafe extern "C" fn fail(code: c_int, _: *mut c_void) {
    if code != ENOMEM {
        return;
    }
    // Standard error has no buffer. If writing fails, the message is lost.
    let _ = std::io::stderr().write_all(
        b"error: out of memory: raise the limit of this process (ulimit -v), or free some memory; nothing committed is lost\n",
    );
    // SAFETY: the function accepts any code, and does not return.
    unsafe { _exit(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No compiler checks the option's number.
    #[test]
    fn the_option_is_the_purge_delay() {
        const DEFAULT_MS: c_long = 1_000;
        // SAFETY: as above.
        let get = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(get(), DEFAULT_MS, "mimalloc numbers its options differently, or has another default");
        set_up();
        assert_eq!(get(), PURGE_DELAY_MS);
    }
}
