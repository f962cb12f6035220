//! The allocator of the `warptape` binary, and of the benchmarks that stand for it.
//!
//! Batches of rows and records come and go by the megabyte. The system's allocator returns each to the kernel, which
//! clears the same pages again for the next batch. This takes two thirds of the engine thread's time. mimalloc returns
//! memory too, but later; see [`set_up`].
//!
//! It replaces `malloc` of C as well, which only a whole program may do. So the library of the pipeline does not have
//! it, and a Python extension keeps the allocator of its process.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long, c_void};
use std::io::Write;
use std::ptr;

pub use mimalloc::MiMalloc as Allocator;

/// `mi_option_purge_delay` of mimalloc's `mimalloc.h`, which libmimalloc-sys does not name.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
/// By default mimalloc returns memory that happens to be free once a second. With batches in flight, the next batches
/// need that memory, and so does librdkafka for its next fetch. With a minute, records of 256 ticks cost the process 13
/// and 15 % less processor time than with ten seconds (two comparisons in turn). An idle process still returns its
/// memory.
const PURGE_DELAY_MS: c_long = 60_000;

/// Error number of mimalloc for "out of memory", equal to the system's.
const ENOMEM: c_int = 12;

/// Sets the allocator's options where the environment (`MIMALLOC_PURGE_DELAY`) does not set them, and the reaction to a
/// lack of memory. Must be called first in `main`.
pub fn set_up() {
    // SAFETY: the calls have no preconditions but a valid option; the function stays, and takes no argument.
    unsafe {
        libmimalloc_sys::mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MS);
        libmimalloc_sys::mi_register_error(Some(fail), ptr::null_mut());
    }
}

unsafe extern "C" {
    /// Ends the process at once, without exit handlers, because these may allocate memory.
    fn _exit(code: c_int) -> !;
}

/// Ends a process without memory with a message and exit status 1; Rust and C libraries would end it with a signal.
/// Nothing committed is lost by it, as by any death of a process.
unsafe extern "C" fn fail(code: c_int, _: *mut c_void) {
    if code != ENOMEM {
        return;
    }
    // Standard error has no buffer. A message that cannot be written there is lost.
    let _ = std::io::stderr().write_all(
        b"error: out of memory: raise the limit of this process (ulimit -v), or free some memory; nothing committed is lost\n",
    );
    // SAFETY: it takes any code, and does not return.
    unsafe { _exit(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The option's number is not checked by any compiler.
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
