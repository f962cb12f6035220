//! Helpers of the sources' tests: a default tick, and files to read.

use std::path::PathBuf;

use warptape_events::tick::{Scales, Side, Tick, TickKind};

/// Returns a trade, whose fields tests override by struct update.
pub(super) fn tick() -> Tick {
    Tick {
        symbol: "TEST:AAAA".to_owned(),
        kind: TickKind::Trade,
        event_time_ns: 1_723_161_255_000_000_000,
        receive_time_ns: 1_723_161_255_000_100_000,
        trade_id: 1,
        side: Side::Buy,
        price_e9: 1_000_000_000,
        size_e9: 1_000_000_000,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    }
}

/// Writes a file to the test's own folder, and returns its path.
pub(super) fn write_file(folder: &tempfile::TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("the test's own folder can be written to");
    path
}

/// Returns the bytes as a gzip file.
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("writing to memory cannot fail");
    encoder.finish().expect("writing to memory cannot fail")
}
