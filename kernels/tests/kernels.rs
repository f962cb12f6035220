//! Behaviour of the kernels: against plain references, against TA-Lib, and against themselves under other instructions,
//! other cuts and other paths to the same state.

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

/// True under `tests/run --all`, where tests take all of their cases.
fn is_long() -> bool {
    std::env::var_os("WARPTAPE_TEST_ALL").is_some()
}

/// The text of a fixture. Fixtures are within the binary, because a machine with a GPU may have nothing else.
fn text_of(compressed: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(compressed).read_to_string(&mut text).expect("it is text");
    text
}

/// Checks each fault, with one thread per processor: each fault is compiled and searched for by itself.
fn beside_each_other<T: Sync>(faults: &[T], check: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let checks = || {
        while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
            check(fault);
        }
    };
    // A check that fails ends its thread, and with it the test.
    std::thread::scope(|scope| {
        (0..std::thread::available_parallelism().map_or(1, NonZero::get)).for_each(|_| {
            scope.spawn(checks);
        });
    });
}
