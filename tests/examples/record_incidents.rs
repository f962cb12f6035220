//! Records the incidents of `tests/fixtures/incidents` with runs of the real engine on real lanes, in the form of
//! `replay export`. Each incident has a fault that an engineer has to find.
//!
//! ```text
//! cargo run -p warptape-tests --example record_incidents
//! WRITE_GOLDEN=1 cargo test -p warptape-pipeline --test binary incidents
//! ```
//!
//! Times are measured, so each recording differs. The second command stores the output of `replay why` for the new
//! recording.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use warptape_eventlog::{Durability, EventLog, SqliteLog};
use warptape_kernels::device::{Device, DeviceError, Devices, Sample};
use warptape_pipeline::runtime::{EngineConfig, Topics};
use warptape_replay::{ExportOptions, VerifyOptions, Window, export, fixture};
use warptape_schemas::journal::{BreakerConfig, LaneId};
use warptape_schemas::tick::Tick;
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_tests::devices::EMULATOR;
use warptape_tests::engine_run::{engine_config, stage_config};
use warptape_tests::injected::{InjectedDelay, InjectedLanes};
use warptape_tests::live_run::{Feed, run_live};

const PARTITIONS: i32 = 2;
/// Least time of a healthy lane per row, in nanoseconds. It makes lanes the bottleneck, so that few ticks are a high
/// load.
const ROW_NS: u64 = 2_000_000;
/// Time at which the fault begins. The next constant is the time at which the run ends.
const TURN: Duration = Duration::from_secs(2);
const END: Duration = Duration::from_secs(4);

fn main() {
    // Compiling the device's kernels takes seconds, during which the market would go on.
    drop(EMULATOR.open("cuda:0").expect("it can be emulated"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/incidents");
    hot_symbol(&folder);
    throttled_device(&folder);
    bad_weights(&folder);
}

/// Returns a configuration, and the delays of its lanes.
fn config(devices: &[&str]) -> (EngineConfig, BTreeMap<LaneId, InjectedDelay>) {
    let mut stages = stage_config(&["1s", "tick:5"]);
    stages.groups_per_partition = 8;
    let mut config = engine_config(stages, devices.len() as i32);
    for (spec, device) in config.core.lanes.iter_mut().zip(devices) {
        spec.device = (*device).to_owned();
    }
    config.core.scheduler.batch_rows_max = 64;
    config.core.times.commit_interval_ns = 20_000_000;
    // Compiling the emulator's kernels takes seconds.
    config.core.times.device_open_deadline_ns = 300_000_000_000;
    let delay = |lane| (lane, InjectedDelay::of_row_ns(ROW_NS));
    let delays: BTreeMap<_, _> = (0..devices.len() as i32).map(delay).collect();
    config.lanes = Arc::new(InjectedLanes { delays: delays.clone(), ..InjectedLanes::default() });
    (config, delays)
}

fn market() -> SynthSource {
    // All symbols are equally active, so that only the incident makes lanes differ.
    let config = SynthConfig {
        symbols: 48,
        zipf_exponent: 0.0,
        trade_percent: 100.0,
        late_percent: 0.0,
        events_per_second: 600.0,
        ..SynthConfig::default()
    };
    SynthSource::new(config).expect("the configuration is valid")
}

/// Incident: one symbol gets more ticks than its lane can process beside its other symbols.
fn hot_symbol(folder: &Path) {
    let is_hot = AtomicBool::new(false);
    let mut market = market().enumerate().map(|(number, mut tick)| {
        if is_hot.load(Ordering::Relaxed) && number % 10 < 4 {
            tick.symbol = "SYNTH:AAAA".to_owned();
        }
        tick
    });
    let begin = || is_hot.store(true, Ordering::Relaxed);
    let (config, _) = config(&["cpu:0", "cpu:1", "cpu:2", "cpu:3"]);
    record(folder, "hot-symbol", config, (&mut market, 1_000), &begin);
}

/// Incident: a device becomes hot and slow.
fn throttled_device(folder: &Path) {
    let is_hot = Arc::new(AtomicBool::new(false));
    let (mut config, delays) = config(&["cuda:0", "cuda:1", "cuda:2"]);
    config.devices = Arc::new(Warm { is_hot: is_hot.clone() });
    config.device_sample_interval = Duration::from_millis(250);
    const S: i64 = 1_000_000_000;
    config.core.scheduler.breakers = Some(BreakerConfig {
        losses_max: 3,
        window_ns: 60 * S,
        slow_percent: 400,
        slow_ns: S / 4,
        probe_ns: 60 * S,
        probe_ns_max: 300 * S,
        probes: 8,
        headroom_c: 5,
        memory_free_percent: 5,
    });
    let begin = || {
        is_hot.store(true, Ordering::Relaxed);
        delays[&1].set_row_ns(8 * ROW_NS);
    };
    record(folder, "throttled-device", config, (&mut market(), 500), &begin);
}

/// Incident: the lane with the largest weight is the slowest.
fn bad_weights(folder: &Path) {
    let (mut config, delays) = config(&["cpu:0", "cpu:1", "cpu:2"]);
    config.core.lanes[2].weight = 8;
    delays[&2].set_row_ns(2 * ROW_NS);
    record(folder, "bad-weights", config, (&mut market(), 500), &|| ());
}

fn record(
    folder: &Path,
    name: &str,
    config: EngineConfig,
    (market, ticks_per_s): (&mut dyn Iterator<Item = Tick>, usize),
    begin: &dyn Fn(),
) {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let log = SqliteLog::open(temporary.path().join("log.db"), Durability::Process).expect("a new log");
    let log: Arc<dyn EventLog> = Arc::new(log);
    run_live(
        &log,
        config,
        Feed { market, ticks_per_s, partitions: PARTITIONS },
        &[(TURN, begin), (END, &|| ())],
    );
    let options = ExportOptions {
        journal: "journal".to_owned(),
        sources: VerifyOptions::new(&Topics::new(""), "warptape").sources,
        others: Vec::new(),
        window: Window::default(),
        with_ticks: true,
        by: json!({ "incident": name }),
    };
    let path = folder.join(format!("{name}.db"));
    drop(std::fs::remove_file(&path));
    let exported = export(log.as_ref(), &path, &options, &mut |_| {}).expect("the log can be exported");
    fixture::assert_verified(&path);
    let bytes = std::fs::metadata(&path).expect("it was written").len();
    println!("{}: {} records, {bytes} bytes", path.display(), exported.records());
}

/// Emulated devices, the second of which becomes hot.
struct Warm {
    is_hot: Arc<AtomicBool>,
}

impl Devices for Warm {
    fn open(&self, name: &str) -> Result<Box<dyn Device>, DeviceError> {
        EMULATOR.open(name)
    }

    fn sample(&self, name: &str) -> Option<Sample> {
        let is_hot = name == "cuda:1" && self.is_hot.load(Ordering::Relaxed);
        // NVML sets this bit if the hardware slows down because of heat.
        let (temperature_c, throttle_bits) = if is_hot { (89, 0x40) } else { (61, 0) };
        Some(Sample {
            temperature_c: Some(temperature_c),
            slowdown_c: Some(90),
            throttle_bits: Some(throttle_bits),
            sm_clock_mhz: Some(if is_hot { 210 } else { 1_755 }),
            ..Sample::default()
        })
    }
}
