//! Slices on a separate stream, beside the batches of a lane on a device. The two do not wait for each other, and a
//! fault of either one is a fault of the lane.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use warptape_emulator::Emulator;
use warptape_eventlog::EventLog;
use warptape_kernels::device::{Devices, Fault, FaultyDevices};
use warptape_pipeline::runtime::{EngineConfig, Progress, Stop, run};
use warptape_schemas::journal::{Decision, Input, JournalEntry, LaneSpec, SplitPolicy};
use warptape_schemas::risk::RiskRequest;
use warptape_schemas::{LifecycleEvent, decode_journal_entry, decode_lifecycle};
use warptape_tests::devices::{EMULATOR, GatedDevices};
use warptape_tests::engine_run::{publisher, read_partition, run_to_end, topic_ends};

use super::risk::{PARTITIONS, TICKS, ask, config, feed_ticks, good, new_log, outcomes, request, results};

/// Time limit that exceeds any step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);
/// Deadline for a hanging device.
const DEADLINE: Duration = Duration::from_secs(5);

/// Returns a configuration with a lane on a device, and standby lanes on the processor.
fn with_device(devices: &Arc<dyn Devices>, standing_by: i32) -> EngineConfig {
    let mut config = config(0);
    let lane = |lane: i32| LaneSpec::new(lane, format!("cpu:{lane}"), 0);
    config.core.lanes = vec![LaneSpec { width: Emulator::WIDTH, ..LaneSpec::new(0, "cuda:0", 1) }];
    config.core.lanes.extend((1..=standing_by).map(lane));
    config.devices = devices.clone();
    config.core.times.device_deadline_ns = PATIENCE.as_nanos() as i64;
    config.core.times.device_open_deadline_ns = PATIENCE.as_nanos() as i64;
    // Standby lanes get no work while the device is ready.
    config.core.scheduler.risk.split = SplitPolicy::Equal;
    config
}

/// Returns requests of all kinds.
fn requests() -> Vec<RiskRequest> {
    good().into_iter().map(|(id, problem)| request(id, problem)).collect()
}

/// Returns the values of each partition's signals.
fn signals(log: &dyn EventLog) -> Vec<Vec<Vec<u8>>> {
    let values = |partition| read_partition(log, "signals", partition).into_iter().map(|record| record.value);
    (0..PARTITIONS).map(|partition| values(partition).collect()).collect()
}

#[test]
fn ticks_go_on_while_a_slice_is_done() {
    let option = || vec![request("options", good().swap_remove(0).1)];
    let (_folder, expected) = new_log();
    feed_ticks(&expected);
    ask(&expected, 0, &option());
    run_to_end(&expected, config(1));
    let expected = (signals(expected.as_ref()), outcomes(&expected, 0));
    assert!(expected.0.iter().all(|signals| !signals.is_empty()) && expected.1.len() == 1);

    let (_folder, log) = new_log();
    // The topics are created before the ticks are fed.
    drop(publisher(&log, PARTITIONS, 64));
    let devices = GatedDevices::default();
    let engine = with_device(&(Arc::new(devices.clone()) as Arc<dyn Devices>), 0);
    let (stop, stopped) = bounded(1);
    let progress = Arc::new(Progress::new(engine.core.lanes.len()));
    let (of_engine, of_progress) = (log.clone(), progress.clone());
    let running = thread::spawn(move || run(of_engine, engine, of_progress, stopped));
    ask(&log, 0, &option());
    devices.wait_for_launch(PATIENCE);
    // From here on, the only lane has a slice and all batches of the ticks.
    feed_ticks(&log);
    let deadline = Instant::now() + PATIENCE;
    while signals(log.as_ref()) != expected.0 {
        assert!(Instant::now() < deadline && !running.is_finished(), "the ticks wait for the slice");
        thread::yield_now();
    }
    assert!(results(&log, 0).is_empty(), "the slice is under way");
    devices.open_gate();
    let ends = |topic| topic_ends(log.as_ref(), topic);
    stop.send(Stop::At { ticks: ends("ticks"), requests: ends("risk.requests") }).expect("it runs");
    let summary = running.join().expect("the engine does not panic").expect("the engine works");
    assert_eq!(summary.ticks, TICKS);
    assert_eq!((signals(log.as_ref()), outcomes(&log, 0)), expected);
}

/// Checks that no unit is finished twice. A unit may begin twice only if its slice was running when the lane was lost.
fn check_units(journal: &[JournalEntry]) {
    let mut begun = BTreeMap::new();
    let mut done = BTreeSet::new();
    for entry in journal {
        if let Input::SliceDone(slice) = &entry.input {
            let (task, units): (_, Range<i64>) = begun.remove(&slice.slice).expect("a slice is done once");
            for unit in units {
                assert!(done.insert((task, unit)), "unit {unit} of {task} is done twice");
            }
        }
        for decision in &entry.decisions {
            if let Decision::RunSlice(run) = decision {
                begun.insert(run.slice, (run.task, run.from..run.to));
            }
        }
    }
    assert_eq!(begun.len(), 1, "one slice was under way: {begun:?}");
    assert!(begun.into_values().all(|(task, mut units)| units.all(|unit| done.contains(&(task, unit)))));
}

#[test]
fn faults_of_slices_do_not_show() {
    let emulator: Arc<dyn Devices> = EMULATOR.clone();
    let run = |config: EngineConfig| {
        let (folder, log) = new_log();
        feed_ticks(&log);
        ask(&log, 0, &requests());
        run_to_end(&log, config);
        ((signals(log.as_ref()), outcomes(&log, 0)), log, folder)
    };
    let (expected, ..) = run(config(1));
    assert_eq!(expected.1.len(), requests().len());
    for fault in [
        Fault::Launch(0),
        Fault::Launch(3),
        Fault::Gone(1),
        Fault::OutOfMemory(0),
        Fault::GoneAfterBytes(1_000),
        Fault::Hang(1, PATIENCE),
    ] {
        let faults = vec![("cuda:0/background".to_owned(), fault)];
        let devices: Arc<dyn Devices> = Arc::new(FaultyDevices::new(emulator.clone(), faults));
        let mut config = with_device(&devices, 2);
        if matches!(fault, Fault::Hang(..)) {
            config.core.times.device_open_deadline_ns = DEADLINE.as_nanos() as i64;
        }
        let (found, log, _folder) = run(config);
        assert!(found == expected, "{fault:?} shows");
        let lifecycle = read_partition(log.as_ref(), "lifecycle", 0).into_iter();
        let lost: Vec<String> = lifecycle
            .map(|record| decode_lifecycle(&record.value).expect("it is whole"))
            .filter(|event| event.event == LifecycleEvent::LaneLost)
            .map(|event| event.detail)
            .collect();
        let reason = match fault {
            Fault::Hang(..) => "no answer in time",
            Fault::OutOfMemory(_) => "no memory left",
            // The stream that fails first reports the fault.
            _ => "a fault that was asked for",
        };
        assert!(lost.len() == 1 && lost[0].contains(reason), "{fault:?}: {lost:?}");
        let journal = read_partition(log.as_ref(), "journal", 0).into_iter();
        let entries = journal.map(|record| decode_journal_entry(&record.value).expect("it is whole"));
        check_units(&entries.collect::<Vec<_>>());
    }
}
