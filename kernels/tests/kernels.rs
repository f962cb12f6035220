//! Behaviour of the kernels, compared with simple references, with TA-Lib, and with themselves under other
//! instructions, other cuts and other ways to the same state.

use std::io::Read;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

#[path = "kernels/bars.rs"]
mod bars;
#[path = "kernels/chain.rs"]
mod chain;
#[path = "kernels/device/mod.rs"]
mod device;
#[path = "kernels/extremes.rs"]
mod extremes;
#[path = "kernels/indicator_reference.rs"]
mod indicator_reference;
#[path = "kernels/indicators.rs"]
mod indicators;
#[path = "kernels/invariance.rs"]
mod invariance;
#[path = "kernels/market.rs"]
mod market;
#[path = "kernels/portfolio/mod.rs"]
mod portfolio;
#[path = "kernels/pricing/mod.rs"]
mod pricing;
#[path = "kernels/reference.rs"]
mod reference;
#[path = "kernels/signals.rs"]
mod signals;
#[path = "kernels/sweep.rs"]
mod sweep;

/// True under `tests/run --all`, where tests run all of their cases.
fn is_long() -> bool {
    std::env::var_os("WARPTAPE_TEST_ALL").is_some()
}

/// The text of a fixture. Fixtures are part of the binary, because a machine with a GPU may have no other files.
fn text_of(compressed: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(compressed).read_to_string(&mut text).expect("it is text");
    text
}

/// Checks all faults, with one thread per processor: each fault needs its own compilation and search.
fn beside_each_other<T: Sync>(faults: &[T], check: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let checks = || {
        while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
            check(fault);
        }
    };
    // If a check fails, its thread ends, and with it the test.
    std::thread::scope(|scope| {
        (0..std::thread::available_parallelism().map_or(1, NonZero::get)).for_each(|_| {
            scope.spawn(checks);
        });
    });
}
