//! The memory that a symbol takes. This is a test program of its own, because it measures its process.

use std::process::Command;

use warptape_kernels::Isa;
use warptape_schemas::tick::{Scales, Side, Tick, TickColumns, TickKind};
use warptape_stages::{GroupOutput, GroupQueue, GroupStage, PartitionIntake, SignalMerge, StageConfig};

const SYMBOLS: i64 = 40_000;
/// Ticks of a record, and so of a second of event time.
const BATCH: i64 = 200;
const GROUPS: u32 = 16;
/// Seconds after which all bars of five minutes have long been closed.
const REST: i64 = 620;
/// Greatest memory of an idle symbol, in bytes.
const BYTES_MAX: f64 = 2_000.0;
/// Greatest memory of an evicted symbol, in bytes: its name, last prices and samples, and its newest trade ids stay.
const EVICTED_BYTES_MAX: f64 = 700.0;

/// Settings by which glibc returns freed memory, as the allocator of the pipeline does; they are read when a process
/// starts.
const GIVES_BACK: [(&str, &str); 2] = [("MALLOC_MMAP_THRESHOLD_", "16384"), ("MALLOC_TRIM_THRESHOLD_", "0")];

/// Memory of this process, in bytes.
fn resident() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split(' ').nth(1)?.parse::<f64>().ok().map(|pages| pages * 4096.0)
}

fn config() -> StageConfig {
    let bars = ["1s", "1m", "5m"].map(|text| text.parse().unwrap()).to_vec();
    StageConfig {
        future_max_ns: 345_600_000_000_000,
        clock_skew_max_ns: 60_000_000_000,
        ..StageConfig::unlimited(bars, 2_000_000_000, GROUPS)
    }
}

fn tick(number: i64) -> Tick {
    Tick {
        symbol: format!("STRANGER:{number:08}"),
        kind: TickKind::Trade,
        event_time_ns: 1_723_075_200_000_000_000 + number / BATCH * 1_000_000_000,
        receive_time_ns: 0,
        trade_id: number,
        side: Side::None,
        price_e9: 100_000_000_000 + number,
        size_e9: 1_000_000_000,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the allocator is told by the environment, so the test runs itself"
)]
fn an_idle_symbol_takes_two_kilobytes_at_most() {
    if std::env::var_os(GIVES_BACK[0].0).is_none() {
        let this = std::env::current_exe().expect("the test program");
        let measured = Command::new(this).arg("--nocapture").envs(GIVES_BACK).output().expect("it runs");
        let told = String::from_utf8_lossy(&measured.stdout);
        assert!(measured.status.success(), "{told}{}", String::from_utf8_lossy(&measured.stderr));
        println!("{told}");
        return;
    }
    let Some(before) = resident() else {
        println!("passed over: there is no /proc/self/statm here");
        return;
    };
    let config = config();
    let mut intake = PartitionIntake::new(&config);
    let mut queues: Vec<_> = (0..GROUPS).map(|_| GroupQueue::default()).collect();
    let mut stages: Vec<_> = (0..GROUPS).map(|_| GroupStage::new(&config, Isa::detect())).collect();
    let mut merge = SignalMerge::default();
    let mut bars = 0;
    for record in 0..SYMBOLS / BATCH + REST {
        let mut columns = TickColumns::default();
        // After the names, one symbol alone moves the watermark, until all bars of the others are closed and samples
        // are full.
        for row in 0..if record < SYMBOLS / BATCH { BATCH } else { 1 } {
            let tick = tick(record * BATCH + row);
            let symbol =
                if record < SYMBOLS / BATCH { tick.symbol.clone() } else { "STRANGER:00000000".to_owned() };
            columns.push(&Tick { symbol, ..tick }, intake.symbols_mut());
        }
        intake.accept(record, 0, &mut columns, 0, &mut queues, &mut Vec::new());
        for (queue, stage) in queues.iter_mut().zip(&mut stages) {
            let mut output = GroupOutput::default();
            stage.run(queue.take(queue.rows.len()), &mut output);
            merge.push(output.signals);
        }
        bars += merge.take_before(i64::MAX).len();
    }
    assert!(bars as i64 >= 3 * SYMBOLS, "every symbol has a bar of each kind: {bars}");
    let bytes = (resident().expect("it was there before") - before) / SYMBOLS as f64;
    println!("{bytes:.0} bytes a symbol");
    assert!(bytes <= BYTES_MAX, "{bytes:.0} bytes a symbol");

    // All symbols but the one with ticks leave.
    let offset = SYMBOLS / BATCH + REST;
    intake.evict(Some(0), offset, 0, &mut queues);
    intake.barrier(offset, offset, &mut queues);
    let mut pages = 0;
    for (queue, stage) in queues.iter_mut().zip(&mut stages) {
        let mut output = GroupOutput::default();
        stage.run(queue.take(queue.rows.len()), &mut output);
        pages += output.pages.len();
    }
    assert_eq!(intake.evicted().symbols() as i64, SYMBOLS - 1);
    let bytes = (resident().expect("it was there before") - before) / SYMBOLS as f64;
    println!("{bytes:.0} bytes a symbol that has left, {pages} pages");
    assert!(bytes <= EVICTED_BYTES_MAX, "{bytes:.0} bytes a symbol that has left");
}
