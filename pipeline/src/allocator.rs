//! The allocator of the `warptape` binary, and of the benchmarks that stand for it.
//!
//! Batches of rows and records come and go by the megabyte. The system's allocator gives each back to the kernel, which
//! then clears the same pages again for the next: two thirds of the engine thread's time. mimalloc does so too, but
//! later; see [`set_up`].
#![allow(unsafe_code)]

use std::ffi::c_long;

pub use mimalloc::MiMalloc as Allocator;

/// `mi_option_purge_delay` of mimalloc's `mimalloc.h`, which libmimalloc-sys does not name.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
/// By default mimalloc gives back once a second what happens to be free. With batches in flight that is what the next
/// ones need, and what librdkafka will read the next fetch into: with a minute, records of 256 ticks cost the process 13
/// and 15 % less of its processors' time than with ten seconds (two comparisons in turn). An idle process shall still
/// give its memory back.
const PURGE_DELAY_MS: c_long = 60_000;

/// Sets the allocator's options, where the environment (`MIMALLOC_PURGE_DELAY`) does not. To be called first in `main`.
pub fn set_up() {
    // SAFETY: the call has no preconditions but a valid option.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MS) };
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
