//! The real engine with lanes on devices: neither the devices nor their faults may affect the outputs.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use warptape_cuda::CudaDevices;
use warptape_eventlog::{Durability, EventLog, Fetched, SqliteLog, TopicPartition};
use warptape_kernels::device::{
    Device, DeviceError, Devices, Fault, FaultyDevice, FaultyDevices, NoDevices, Sample,
};
use warptape_pipeline::runtime::EngineConfig;
use warptape_schemas::journal::{
    Decision, Exclusion, ExclusionReason, Input, JournalEntry, LaneKind, LaneSpec,
};
use warptape_schemas::tick::Tick;
use warptape_schemas::{Lifecycle, LifecycleEvent, decode_journal_entry, decode_lifecycle};
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_stages::StageConfig;
use warptape_tests::devices::EMULATOR;
use warptape_tests::engine_run::{self, engine_config, feed, read_partition, run_to_end};

use super::recordings::recorded_ticks;

const PARTITIONS: i32 = 4;
const RECORD_TICKS: usize = 64;
/// Time limit that exceeds any step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);
/// Deadline for a hanging device. The next constant is the time for which it hangs.
const DEADLINE: Duration = Duration::from_secs(1);
const HANG: Duration = PATIENCE;
/// A fault that makes a device slow at first. Other lanes get ahead, but the device is not given up.
const SLOW_START: Fault = Fault::Hang(0, Duration::from_secs(3));
/// Number of synthetic ticks for the emulator. The next constant is the number for a GPU, unless
/// WARPTAPE_TEST_GPU_TICKS is set.
const TICKS: u64 = 100_000;
const GPU_TICKS: u64 = 50_000_000;

/// Returns a stage configuration with all kinds of bars.
fn stage_config() -> StageConfig {
    engine_run::stage_config(&["1s", "1m", "tick:100", "volume:5"])
}

/// Returns a configuration with these lanes, given by device and weight.
fn config(devices: &Arc<dyn Devices>, lanes: &[(&str, i32)]) -> EngineConfig {
    let mut config = engine_config(stage_config(), 0);
    let spec = |(lane, (device, weight)): (i32, &(&str, i32))| LaneSpec::new(lane, *device, *weight);
    config.core.lanes = (0..).zip(lanes).map(spec).collect();
    config.devices = devices.clone();
    config.core.times.device_deadline_ns = PATIENCE.as_nanos() as i64;
    config.core.times.device_open_deadline_ns = PATIENCE.as_nanos() as i64;
    config.core.limits.snapshot_interval_records = 100;
    config
}

fn synthetic_ticks(count: u64) -> impl Iterator<Item = Tick> {
    let config = SynthConfig { symbols: 100, ticks: Some(count), ..SynthConfig::default() };
    SynthSource::new(config).expect("the configuration is valid").take(count as usize)
}

/// A log of ticks, which is copied for each run.
struct Market {
    folder: TempDir,
    ticks: u64,
}

impl Market {
    fn new(ticks: impl Iterator<Item = Tick>) -> Market {
        let mut market = Market { folder: tempfile::tempdir().expect("a temporary folder"), ticks: 0 };
        let log = open(market.folder.path().join("ticks.db"));
        feed(&log, PARTITIONS, RECORD_TICKS, ticks.inspect(|_| market.ticks += 1));
        market
    }

    fn run(&self, config: EngineConfig) -> Run {
        let path = self.folder.path().join("run.db");
        let ticks = SqliteLog::open_existing(self.folder.path().join("ticks.db")).expect("a log");
        ticks.backup(&path, &mut |_| {}).expect("there is room for a copy");
        let log = open(path.clone());
        let summary = run_to_end(&log, config);
        assert_eq!((summary.ticks, summary.dead_letters), (self.ticks, 0));
        let values = |topic| read_partition(log.as_ref(), topic, 0).into_iter().map(|record| record.value);
        let run = Run {
            signals: (0..PARTITIONS).map(|partition| signals(log.as_ref(), partition)).collect(),
            lifecycle: values("lifecycle")
                .map(|value| decode_lifecycle(&value).expect("it is whole"))
                .collect(),
            journal: values("journal")
                .map(|value| decode_journal_entry(&value).expect("it is whole"))
                .collect(),
        };
        drop(log);
        for name in ["run.db", "run.db-head"] {
            std::fs::remove_file(self.folder.path().join(name)).expect("it was there");
        }
        // A log with few records has no segments.
        drop(std::fs::remove_dir_all(self.folder.path().join("run.db-segments")));
        run
    }
}

fn open(path: PathBuf) -> Arc<dyn EventLog> {
    Arc::new(SqliteLog::open(path, Durability::Process).expect("a log"))
}

/// Results of a run: the number and hash of each partition's signals, the lifecycle, and the journal.
struct Run {
    signals: Vec<(u64, u64)>,
    lifecycle: Vec<Lifecycle>,
    journal: Vec<JournalEntry>,
}

/// Returns the number and the hash of a partition's signals.
fn signals(log: &dyn EventLog, partition: i32) -> (u64, u64) {
    let partition = TopicPartition { topic: "signals".to_owned(), partition };
    let mut reader = log.reader(std::slice::from_ref(&partition)).expect("the topic exists");
    let end = reader.offsets(&partition).expect("the log is readable").next;
    let (mut count, mut hasher) = (0, DefaultHasher::new());
    while reader.position(&partition).expect("the log is readable") < end {
        let fetched = reader.poll(Duration::from_millis(100), 4_096, 16 << 20).expect("the log is readable");
        if let Fetched::Records { records, .. } = fetched {
            count += records.len() as u64;
            records.iter().for_each(|record| (record.offset, &record.key, &record.value).hash(&mut hasher));
        }
    }
    (count, hasher.finish())
}

/// Configurations of lanes: one on a device, several on it, and lanes on the device and the processor.
const PLACEMENTS: [&[(&str, i32)]; 3] = [
    &[("cuda:0", 1), ("cpu:1", 0)],
    &[("cuda:0#0", 1), ("cuda:0#1", 1), ("cuda:0#2", 1), ("cuda:0#3", 1)],
    &[("cuda:0", 2), ("cpu:1", 1)],
];

/// Checks that runs on the processor, and with lanes on devices, give the same signals.
fn check_placements(devices: &Arc<dyn Devices>, market: &Market, placements: &[&[(&str, i32)]]) {
    let signals = |lanes: &[(&str, i32)]| {
        let Run { signals, lifecycle, journal } = market.run(config(devices, lanes));
        let lost = lifecycle.iter().find(|event| event.event == LifecycleEvent::LaneLost);
        assert!(lost.is_none(), "{}", lost.map_or("", |event| &event.detail));
        check_service(&journal);
        signals
    };
    let expected = signals(&[("cpu:0", 1), ("cpu:1", 1)]);
    assert!(expected.iter().map(|(count, _)| count).sum::<u64>() > 1_000, "there is something to compare");
    for lanes in placements {
        assert_eq!(expected, signals(lanes), "{lanes:?}");
    }
}

/// Checks that no lane's service time exceeds the elapsed time, although its batches overlap.
fn check_service(journal: &[JournalEntry]) {
    let mut service_ns = BTreeMap::new();
    for entry in journal {
        if let Input::Completed(completed) = &entry.input {
            *service_ns.entry(completed.lane).or_insert(0) += completed.service_ns;
        }
    }
    let took_ns = journal.last().map_or(0, |last| last.at_ns) - journal[0].at_ns;
    println!("service of lanes in {took_ns} ns: {service_ns:?}");
    assert!(service_ns.values().all(|&service_ns| 0 < service_ns && service_ns <= took_ns));
}

/// Returns devices, the first of which has a fault.
fn faulty(devices: &Arc<dyn Devices>, fault: Fault) -> Arc<dyn Devices> {
    Arc::new(FaultyDevices::new(devices.clone(), vec![("cuda:0".to_owned(), fault)]))
}

/// Checks that the groups of a device continue elsewhere after each kind of fault.
fn check_faults(devices: &Arc<dyn Devices>, market: &Market) {
    let expected = market.run(config(devices, &[("cpu:0", 1)])).signals;
    let faults = [
        Fault::Launch(0),
        Fault::Launch(40),
        Fault::Launch(1_000),
        Fault::Hang(500, HANG),
        Fault::OutOfMemory(3),
        Fault::OutOfMemory(31),
        Fault::Gone(10),
        Fault::Gone(90),
    ];
    for fault in faults {
        let faulty = faulty(devices, fault);
        let mut config = config(&faulty, &[("cuda:0", 1), ("cpu:1", 0), ("cpu:2", 0)]);
        config.core.scheduler.batch_rows_max = 4_000;
        if matches!(fault, Fault::Hang(..)) {
            config.core.times.device_deadline_ns = DEADLINE.as_nanos() as i64;
        }
        let Run { signals, lifecycle, journal } = market.run(config);
        assert_eq!(signals, expected, "{fault:?} shows");
        let lost: Vec<&Lifecycle> =
            lifecycle.iter().filter(|event| event.event == LifecycleEvent::LaneLost).collect();
        let [lost] = lost[..] else { panic!("{fault:?}: the lane is lost once: {lost:?}") };
        assert!(lost.detail.contains("used again after a restart of this process"), "{}", lost.detail);
        let [first, last] = recovery_us(&journal);
        println!("{fault:?}: {}; next batch done after {first} us, all current after {last} us", lost.detail);
    }
}

/// Returns two times from a lane's loss, in microseconds. The first ends when any lane that took its groups finishes a
/// batch, the second when the last such lane does. By then all groups are up to date.
fn recovery_us(journal: &[JournalEntry]) -> [i64; 2] {
    let lost = journal.iter().position(|entry| matches!(entry.input, Input::LaneLost(_)));
    let (lost, behind) = journal[lost.expect("a lane was lost")..].split_first().expect("that entry");
    assert!(matches!(&lost.input, Input::LaneLost(lost) if lost.kept), "no partition is restored");
    let mut done_us = BTreeMap::new();
    for entry in behind {
        if let Input::Completed(completed) = &entry.input {
            done_us.entry(completed.lane).or_insert((entry.at_ns - lost.at_ns) / 1_000);
        }
    }
    [done_us.values().min(), done_us.values().max()].map(|us| us.copied().unwrap_or(0))
}

/// Approximate number of rows after the last snapshot when the device is lost. The device is lost after an upload of
/// `TAIL_BYTES`.
const TAIL_ROWS: u64 = 200_000;
const TAIL_BYTES: u64 = 36 * TAIL_ROWS;

/// Checks the loss of a device that has many rows after its last snapshot.
fn check_failover(devices: &Arc<dyn Devices>) {
    let market = Market::new(synthetic_ticks(TAIL_ROWS + TAIL_ROWS / 2));
    let expected = market.run(config(devices, &[("cpu:0", 1)])).signals;
    let fault = Fault::GoneAfterBytes(TAIL_BYTES);
    let faulty = faulty(devices, fault);
    let mut config = config(&faulty, &[("cuda:0", 1), ("cpu:1", 0), ("cpu:2", 0)]);
    config.core.scheduler.batch_rows_max = 4_000;
    config.core.limits.snapshot_interval_records = i64::MAX;
    let Run { signals, journal, .. } = market.run(config);
    assert_eq!(signals, expected, "the loss shows");
    let rows = |entry: &JournalEntry| match &entry.input {
        Input::Completed(completed) => Some(completed.batch),
        _ => None,
    };
    let lost = journal.iter().position(|entry| matches!(entry.input, Input::LaneLost(_)));
    let done: BTreeSet<i64> = journal[..lost.expect("it was lost")].iter().filter_map(rows).collect();
    let dispatched =
        journal.iter().flat_map(|entry| &entry.decisions).filter_map(|decision| match decision {
            Decision::Dispatch(dispatch) if done.contains(&dispatch.batch) => Some(dispatch.rows),
            _ => None,
        });
    let tail: i64 = dispatched.sum();
    assert!(tail as u64 > TAIL_ROWS / 2, "{tail} rows are no long tail");
    let [first, last] = recovery_us(&journal);
    println!("figure failover_tail {tail} rows");
    println!("figure failover_next_batch {first} us");
    println!("figure failover_all_current {last} us");
}

fn check_recordings(devices: &Arc<dyn Devices>) {
    if let Some(ticks) = recorded_ticks() {
        check_placements(devices, &Market::new(ticks.into_iter()), &PLACEMENTS);
    }
}

#[test]
fn devices_do_not_show() {
    let devices: Arc<dyn Devices> = EMULATOR.clone();
    check_placements(&devices, &Market::new(synthetic_ticks(TICKS)), &PLACEMENTS);
    check_recordings(&devices);
}

#[test]
fn a_long_tail_is_made_up_for() {
    let devices: Arc<dyn Devices> = EMULATOR.clone();
    check_failover(&devices);
}

/// Devices whose opening fails, after some time.
struct ClosedDevices {
    takes: Duration,
}

impl Devices for ClosedDevices {
    #[expect(clippy::disallowed_methods, reason = "a device that hangs makes its lane wait")]
    fn open(&self, name: &str) -> Result<Box<dyn Device>, DeviceError> {
        std::thread::sleep(self.takes);
        Err(DeviceError::Unavailable { device: name.to_owned(), reason: "it is closed".to_owned() })
    }
}

#[test]
fn a_device_that_does_not_open_does_not_show() {
    let market = Market::new(synthetic_ticks(TICKS));
    let run = |takes: Duration, device_open_deadline: Duration| {
        let devices: Arc<dyn Devices> = Arc::new(ClosedDevices { takes });
        let config = config(&devices, &[("cuda:0", 1), ("cpu:1", 0)]);
        market.run({
            let mut config = config;
            config.core.times.device_open_deadline_ns = device_open_deadline.as_nanos() as i64;
            config
        })
    };
    let (refused, hanging) = (run(Duration::ZERO, PATIENCE), run(HANG, DEADLINE));
    let nothing: Arc<dyn Devices> = Arc::new(NoDevices);
    let expected = market.run(config(&nothing, &[("cpu:0", 1)])).signals;
    for (run, reason) in [(refused, "cuda:0 cannot be used: it is closed"), (hanging, "no answer in time")] {
        assert_eq!(run.signals, expected);
        let lost = run.lifecycle.iter().find(|event| event.event == LifecycleEvent::LaneLost);
        let detail = &lost.expect("the lane is lost").detail;
        assert!(detail.contains(reason), "{detail}");
    }
}

/// Devices that are slow at first and report samples; one sample has an error.
struct WatchedDevices {
    asked: AtomicU32,
    fails_at: u32,
}

impl Devices for WatchedDevices {
    fn open(&self, name: &str) -> Result<Box<dyn Device>, DeviceError> {
        Ok(Box::new(FaultyDevice::new(name, EMULATOR.open(name)?, SLOW_START)))
    }

    fn sample(&self, name: &str) -> Option<Sample> {
        assert_eq!(name, "cuda:0", "lanes of a device have it in common");
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let xid = (asked == self.fails_at).then_some(79);
        Some(Sample { power_mw: Some(300_000 + asked), xid, ..Sample::default() })
    }
}

#[test]
fn how_devices_fare_is_recorded_and_an_error_fences_their_lanes() {
    let market = Market::new(synthetic_ticks(TICKS));
    let run = |fails_at: u32, lanes: &[(&str, i32)]| {
        let devices: Arc<dyn Devices> = Arc::new(WatchedDevices { asked: AtomicU32::new(0), fails_at });
        let config = {
            let mut config = config(&devices, lanes);
            config.device_sample_interval = Duration::from_millis(5);
            config
        };
        market.run(config)
    };
    let lanes = [("cuda:0#0", 1), ("cuda:0#1", 1), ("cpu:2", 0)];
    let sound = run(u32::MAX, &lanes);
    let samples = sound.journal.iter().filter_map(|entry| match &entry.input {
        Input::Sampled(sampled) => Some((sampled.lane, &sampled.sample)),
        Input::Completed(completed) => {
            assert_eq!(completed.sample, None, "samples come by themselves");
            None
        }
        _ => None,
    });
    let samples: Vec<_> = samples.collect();
    let has_slots = |lane| samples.iter().any(|(of, sample)| *of == lane && sample.slots_bytes > 0);
    assert!(has_slots(0) && has_slots(1), "{samples:?}");
    assert!(samples.iter().all(|(lane, sample)| *lane < 2 && sample.power_mw >= Some(300_000)));

    let failing = run(3, &lanes);
    assert_eq!(failing.signals, sound.signals);
    let lost: Vec<&str> = failing
        .lifecycle
        .iter()
        .filter(|event| event.event == LifecycleEvent::LaneLost)
        .map(|event| event.detail.as_str())
        .collect();
    let is_named = |detail: &&str| detail.contains("cuda:0 has met Xid error 79");
    assert!(lost.len() == 2 && lost.iter().all(is_named), "{lost:?}");
}

/// Groups begin on the device, because the processor is on standby, and must move to the faster side. An emulated
/// device is slower.
#[test]
fn groups_go_where_they_are_done_faster() {
    let market = Market::new(synthetic_ticks(TICKS));
    let devices: Arc<dyn Devices> = EMULATOR.clone();
    let expected = market.run(config(&devices, &[("cpu:0", 1)])).signals;
    // The delay lets the processor be measured before the device starts.
    let slow = faulty(&devices, SLOW_START);
    let mut config = config(&slow, &[("cuda:0", 1), ("cpu:1", 0)]);
    config.core.scheduler.route_interval_ns = 1_000_000;
    // The lanes are measured before the log is read to its end. The limit equals the largest measured batch, so that
    // the time of a single batch does not count as typical.
    config.core.scheduler.batch_rows_max = 2_048;
    (config.core.scheduler.high_water_rows, config.core.scheduler.low_water_rows) = (4_000, 1_000);
    let Run { signals, journal, .. } = market.run(config);
    assert_eq!(signals, expected, "moves show");

    let measured = |lane| {
        let of_lane = |entry: &&JournalEntry| matches!(&entry.input, Input::Measured(of) if of.lane == lane);
        journal.iter().filter(of_lane).count()
    };
    assert_eq!([measured(0), measured(1)], [1, 1], "each lane is measured once");
    let decisions = || journal.iter().flat_map(|entry| &entry.decisions);
    // On a busy machine the processor may seem slower for a while, and groups then move back.
    let mut released = BTreeMap::new();
    let mut to_host = 0;
    for decision in decisions() {
        if let Decision::Release(release) = decision {
            let route = release.route.expect("nothing else moves groups");
            to_host += usize::from(route.kind == LaneKind::Host);
            let (from, is_reason) = match route.kind {
                LaneKind::Host => (0, route.host_ns < route.device_ns),
                LaneKind::Device => (1, route.device_ns < route.host_ns),
            };
            assert!(release.lane == from && is_reason, "the reason is none: {release:?}");
            released.insert((release.partition, release.group), route.kind);
        }
    }
    assert!(to_host > 1, "groups move: {released:?}");
    for (&(partition, group), &kind) in &released {
        let (to, from) = if kind == LaneKind::Host { (1, 0) } else { (0, 1) };
        let of_group = |decision: &&Decision| matches!(decision, Decision::Place(place) if (place.partition, place.group) == (partition, group));
        let Some(Decision::Place(place)) = decisions().rfind(of_group) else { panic!("it was placed") };
        assert_eq!((place.lane, place.route.map(|route| route.kind)), (to, Some(kind)));
        assert!(place.excluded.contains(&Exclusion { lane: from, reason: ExclusionReason::Slower }));
    }
}

#[test]
fn faults_of_devices_do_not_show() {
    let devices: Arc<dyn Devices> = EMULATOR.clone();
    check_faults(&devices, &Market::new(synthetic_ticks(TICKS)));
}

fn gpu() -> Arc<dyn Devices> {
    Arc::new(CudaDevices::new(None))
}

/// Checks one placement with many ticks. Each GPU test is so small that it ends within minutes.
fn check_gpu(placement: usize) {
    let given = std::env::var("WARPTAPE_TEST_GPU_TICKS");
    let ticks = given.map_or(GPU_TICKS, |ticks| ticks.parse().expect("a number of ticks"));
    check_placements(&gpu(), &Market::new(synthetic_ticks(ticks)), &PLACEMENTS[placement..=placement]);
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn a_gpu_does_not_show() {
    check_gpu(0);
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn lanes_of_a_gpu_do_not_show() {
    check_gpu(1);
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn a_gpu_beside_the_processor_does_not_show() {
    check_gpu(2);
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn a_gpu_does_not_show_on_recordings() {
    check_recordings(&gpu());
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn faults_of_a_gpu_do_not_show() {
    check_faults(&gpu(), &Market::new(synthetic_ticks(TICKS)));
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn a_long_tail_of_a_gpu_is_made_up_for() {
    check_failover(&gpu());
}
