//! The real engine with lanes on devices: they do not show, and neither do their faults.

use std::sync::Arc;
use std::time::Duration;

use warptape_emulator::{Fault, FaultyDevice};
use warptape_eventlog::{Durability, EventLog, SqliteLog};
use warptape_kernels::device::{Device, DeviceError, Devices};
use warptape_pipeline::engine::EngineConfig;
use warptape_pipeline::sources::synth::{SynthConfig, SynthSource};
use warptape_schemas::journal::LaneSpec;
use warptape_schemas::tick::Tick;
use warptape_schemas::{Lifecycle, LifecycleEvent, decode_lifecycle};
use warptape_stages::StageConfig;
use warptape_tests::devices::EMULATOR;
use warptape_tests::engine_run::{self, engine_config, feed, read_partition, run_to_end};

use super::recordings::recorded_ticks;

const PARTITIONS: i32 = 4;
const RECORD_TICKS: usize = 64;
/// Longer than any batch takes, shorter than a hang.
const DEADLINE: Duration = Duration::from_secs(1);
const HANG: Duration = Duration::from_secs(4);

/// All kinds of bars.
fn stage_config() -> StageConfig {
    engine_run::stage_config(&["1s", "1m", "tick:100", "volume:5"])
}

/// Lanes by device, each with its weight.
fn config(devices: Arc<dyn Devices>, lanes: &[(&str, i32)]) -> EngineConfig {
    let mut config = engine_config(stage_config(), 0);
    let spec = |(lane, (device, weight)): (i32, &(&str, i32))| LaneSpec {
        lane,
        device: (*device).to_owned(),
        weight: *weight,
    };
    config.lanes = (0..).zip(lanes).map(spec).collect();
    config.devices = devices;
    config.device_deadline = DEADLINE;
    config.scheduler.batch_rows_max = 4_000;
    config.snapshot_interval_records = 100;
    config
}

fn synthetic_ticks(count: u64) -> Vec<Tick> {
    let config = SynthConfig { symbols: 100, ticks: Some(count), ..SynthConfig::default() };
    SynthSource::new(config).expect("the configuration is valid").take(count as usize).collect()
}

/// What a run leaves: the signals of each partition, and what is in its lifecycle.
struct Run {
    signals: Vec<Vec<Vec<u8>>>,
    lifecycle: Vec<Lifecycle>,
}

fn run(ticks: &[Tick], config: EngineConfig) -> Run {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
    let log: Arc<dyn EventLog> = Arc::new(log);
    feed(&log, PARTITIONS, RECORD_TICKS, ticks.iter().cloned());
    let summary = run_to_end(&log, config);
    assert_eq!((summary.ticks, summary.dead_letters), (ticks.len() as u64, 0));
    let values =
        |partition| read_partition(log.as_ref(), "signals", partition).into_iter().map(|record| record.value);
    let lifecycle = read_partition(log.as_ref(), "lifecycle", 0).into_iter();
    Run {
        signals: (0..PARTITIONS).map(|partition| values(partition).collect()).collect(),
        lifecycle: lifecycle.map(|record| decode_lifecycle(&record.value).expect("it is whole")).collect(),
    }
}

/// The signals of runs on the processor, on one device, on several lanes of it, and on both are the same.
fn check_placements(devices: &Arc<dyn Devices>, ticks: &[Tick]) {
    let signals = |lanes: &[(&str, i32)]| run(ticks, config(devices.clone(), lanes)).signals;
    let expected = signals(&[("cpu:0", 1), ("cpu:1", 1)]);
    assert!(expected.iter().flatten().count() > 1_000, "there is something to compare");
    assert!(expected == signals(&[("cuda:0", 1), ("cpu:1", 0)]), "one lane");
    let four = [("cuda:0#0", 1), ("cuda:0#1", 1), ("cuda:0#2", 1), ("cuda:0#3", 1)];
    assert!(expected == signals(&four), "four lanes of one device");
    assert!(expected == signals(&[("cuda:0", 2), ("cpu:1", 1)]), "a device and the processor");
}

/// Devices with a fault.
struct FaultyDevices {
    devices: Arc<dyn Devices>,
    fault: Fault,
}

impl Devices for FaultyDevices {
    fn open(&self, name: &str) -> Result<Box<dyn Device>, DeviceError> {
        Ok(Box::new(FaultyDevice::new(self.devices.open(name)?, self.fault)))
    }
}

/// Whatever becomes of a device, its groups go on elsewhere.
fn check_faults(devices: &Arc<dyn Devices>, ticks: &[Tick]) {
    let expected = run(ticks, config(devices.clone(), &[("cpu:0", 1)])).signals;
    let faults = [
        Fault::Launch(0),
        Fault::Launch(40),
        Fault::Launch(2_000),
        Fault::Hang(500, HANG),
        Fault::OutOfMemory(3),
        Fault::OutOfMemory(31),
        Fault::Gone(10),
        Fault::Gone(150),
    ];
    for fault in faults {
        let faulty = Arc::new(FaultyDevices { devices: devices.clone(), fault });
        let Run { signals, lifecycle } = run(ticks, config(faulty, &[("cuda:0", 1), ("cpu:1", 0)]));
        assert!(signals == expected, "{fault:?} shows");
        let lost: Vec<&Lifecycle> =
            lifecycle.iter().filter(|event| event.event == LifecycleEvent::LaneLost).collect();
        let [lost] = lost[..] else { panic!("{fault:?}: the lane is lost once: {lost:?}") };
        assert!(lost.detail.contains("used again after a restart of this process"), "{}", lost.detail);
        let restored = lifecycle
            .iter()
            .filter(|event| event.event == LifecycleEvent::Restored && event.at_ns >= lost.at_ns)
            .map(|event| event.at_ns)
            .max();
        let took_ms = restored.map_or(0, |at_ns| (at_ns - lost.at_ns) / 1_000_000);
        println!("{fault:?}: {}; partitions restored {took_ms} ms later", lost.detail);
    }
}

#[test]
fn devices_do_not_show() {
    let devices: Arc<dyn Devices> = EMULATOR.clone();
    check_placements(&devices, &synthetic_ticks(100_000));
    if let Some(ticks) = recorded_ticks() {
        check_placements(&devices, &ticks);
    }
}

#[test]
fn faults_of_devices_do_not_show() {
    let devices: Arc<dyn Devices> = EMULATOR.clone();
    check_faults(&devices, &synthetic_ticks(100_000));
}
