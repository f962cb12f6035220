//! Compares the whole pipeline through the embedded log with the stages alone, fed from memory.
//!
//! Both process the same synthetic ticks, 256 per record, with the same configuration, and must emit the same signals.
//! The stages alone keep their signals in memory: they have no log, scheduler or transactions. They get the same
//! records from memory, encoded or decoded, on one thread and on two. The pipeline has two CPU lanes.
//!
//! `cargo bench -p warptape-tests --bench end_to_end` measures all of them with criterion. `cargo bench -p
//! warptape-tests --bench end_to_end -- memory` runs 20 million ticks and prints the resident memory.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput};
use crossbeam_channel::{RecvTimeoutError, bounded};
use warptape_allocator::Allocator;
use warptape_eventlog::{Durability, EventLog, Record, SqliteLog};
use warptape_kernels::Isa;
use warptape_pipeline::runtime::{Progress, Stop, run};
use warptape_schemas::tick::TickColumns;
use warptape_schemas::{SymbolTable, TickDecoder};
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_stages::{GroupOutput, GroupQueue, GroupStage, PartitionIntake, SignalMerge};
use warptape_tests::engine_run::{engine_config, feed, read_partition, run_to_end, stage_config, topic_ends};

/// The allocator of the `warptape` binary.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const TICKS: u64 = 12_000_000;
const MEMORY_TICKS: u64 = 20_000_000;
const SYMBOLS: u32 = 1_000;
const PARTITIONS: i32 = 4;
const RECORD_TICKS: usize = 256;
/// Number of records that the stages alone take at once, equal to the engine's fetches.
const FETCH_RECORDS: usize = 256;
const LANES: i32 = 2;
const SAMPLES: usize = 10;
const BARS: [&str; 3] = ["1s", "1m", "5m"];

fn main() {
    warptape_allocator::set_up();
    if std::env::args().any(|argument| argument == "memory") {
        memory();
    } else {
        speed();
    }
}

fn synth(ticks: u64) -> SynthSource {
    let config = SynthConfig { symbols: SYMBOLS, ticks: Some(ticks), ..SynthConfig::default() };
    SynthSource::new(config).expect("the configuration is valid")
}

fn speed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("ticks.db");
    let log: Arc<dyn EventLog> = Arc::new(SqliteLog::open(&path, Durability::Process).expect("a new log"));
    feed(&log, PARTITIONS, RECORD_TICKS, synth(TICKS));
    let mut partitions: Vec<Decoded> =
        (0..PARTITIONS).map(|partition| decode(log.as_ref(), partition)).collect();
    drop(log);

    let alone = [(From::Columns, 1), (From::Columns, 2), (From::Records, 1), (From::Records, 2)];
    let (_, expected) = pipeline(&path, true);
    for (from, threads) in alone {
        assert_eq!(stages_alone(&mut partitions, from, threads), expected, "all sides emit the same signals");
    }
    let count: usize = expected.iter().map(Vec::len).sum();
    println!("{TICKS} ticks, {SYMBOLS} symbols, {count} signals, equal on all sides");
    drop(expected);

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("end_to_end");
    group.sampling_mode(SamplingMode::Flat).sample_size(SAMPLES).throughput(Throughput::Elements(TICKS));
    group.bench_function(format!("pipeline/{LANES} lanes"), |bencher| {
        bencher.iter_custom(|runs| (0..runs).map(|_| pipeline(&path, false).0).sum());
    });
    for (from, threads) in alone {
        group.bench_function(format!("stages alone/{from:?}, {threads} threads"), |bencher| {
            bencher.iter_with_large_drop(|| stages_alone(&mut partitions, from, threads));
        });
    }
    group.finish();
    criterion.final_summary();
}

/// Returns the time from the first record read to the last commit, on a copy of the log at `path`. Also returns the
/// signals if `read` is set.
fn pipeline(path: &Path, read: bool) -> (Duration, Vec<Vec<Vec<u8>>>) {
    let copy = path.with_extension("copy");
    copy_log(path, &copy);
    let log: Arc<dyn EventLog> =
        Arc::new(SqliteLog::open(&copy, Durability::Process).expect("the copy is a log"));
    let summary = run_to_end(&log, engine_config(stage_config(&BARS), LANES));
    let values = |partition| {
        read_partition(log.as_ref(), "signals", partition).into_iter().map(|record| record.value).collect()
    };
    let signals = if read { (0..PARTITIONS).map(values).collect() } else { Vec::new() };
    drop(log);
    // The files are removed for the next run.
    for path in [copy.clone(), path.with_extension("copy-head")] {
        std::fs::remove_file(path).expect("the file is ours");
    }
    drop(std::fs::remove_dir_all(path.with_extension("copy-segments")));
    (Duration::from_nanos(summary.active_ns as u64), signals)
}

/// Copies a closed log: its file and its segments. The copies are synced; the disk would still write them while the
/// pipeline runs.
fn copy_log(from: &Path, to: &Path) {
    let copy = |from: &Path, to: &Path| {
        std::fs::copy(from, to).expect("the disk has room");
        File::open(to).and_then(|file| file.sync_all()).expect("the copy can be synced");
    };
    copy(from, to);
    let [from, to] = [from, to].map(|path| {
        let mut name = path.as_os_str().to_owned();
        name.push("-segments");
        std::path::PathBuf::from(name)
    });
    let Ok(segments) = std::fs::read_dir(from) else { return };
    std::fs::create_dir(&to).expect("the folder is new");
    for segment in segments {
        let segment = segment.expect("a segment");
        copy(&segment.path(), &to.join(segment.file_name()));
    }
}

/// The records of a partition as columns, one entry per record, and their symbols.
struct Decoded {
    symbols: SymbolTable,
    columns: Vec<TickColumns>,
    records: Vec<Record>,
}

/// Form of the records that the stages alone get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Columns,
    Records,
}

fn decode(log: &dyn EventLog, partition: i32) -> Decoded {
    let mut decoder = TickDecoder::new();
    let mut symbols = SymbolTable::default();
    let records = read_partition(log, "ticks", partition);
    let columns = records.iter().map(|record| {
        let mut columns = TickColumns::default();
        decoder.decode(&record.value, &mut symbols, &mut columns).expect("the records are good");
        columns
    });
    Decoded { columns: columns.collect(), symbols, records }
}

/// Returns the signals by partition, computed from records in memory. The partitions are distributed over the threads.
fn stages_alone(partitions: &mut [Decoded], from: From, threads: usize) -> Vec<Vec<Vec<u8>>> {
    let mut signals = vec![Vec::new(); partitions.len()];
    let mut shares: Vec<Vec<(usize, &mut Decoded)>> = (0..threads).map(|_| Vec::new()).collect();
    for (index, decoded) in partitions.iter_mut().enumerate() {
        shares[index % threads].push((index, decoded));
    }
    thread::scope(|scope| {
        let worker = |share: Vec<_>| {
            let work = move || {
                share
                    .into_iter()
                    .map(|(index, decoded)| (index, partition_alone(decoded, from)))
                    .collect::<Vec<_>>()
            };
            thread::Builder::new()
                .name("alone".to_owned())
                .spawn_scoped(scope, work)
                .expect("a thread starts")
        };
        let workers: Vec<_> = shares.into_iter().map(worker).collect();
        for worker in workers {
            for (index, found) in worker.join().expect("the stages work") {
                signals[index] = found;
            }
        }
    });
    signals
}

fn partition_alone(decoded: &mut Decoded, from: From) -> Vec<Vec<u8>> {
    let config = stage_config(&BARS);
    let mut intake = PartitionIntake::new(&config);
    if from == From::Columns {
        for name in decoded.symbols.iter() {
            intake.symbols_mut().intern(name);
        }
    }
    let (mut decoder, mut row_columns) = (TickDecoder::new(), TickColumns::default());
    let groups = config.groups_per_partition;
    let mut queues: Vec<_> = (0..groups).map(|_| GroupQueue::default()).collect();
    let mut stages: Vec<_> = (0..groups).map(|_| GroupStage::new(&config, Isa::detect())).collect();
    let (mut late, mut signals) = (Vec::new(), Vec::new());
    for first in (0..decoded.records.len()).step_by(FETCH_RECORDS) {
        for index in first..decoded.records.len().min(first + FETCH_RECORDS) {
            let columns = match from {
                From::Columns => &mut decoded.columns[index],
                From::Records => {
                    row_columns.clear();
                    let value = &decoded.records[index].value;
                    decoder
                        .decode(value, intake.symbols_mut(), &mut row_columns)
                        .expect("the records are good");
                    &mut row_columns
                }
            };
            intake.accept(index as i64, 0, columns, 0, &mut queues, &mut late);
        }
        let mut merge = SignalMerge::default();
        for (queue, stage) in queues.iter_mut().zip(&mut stages) {
            let mut output = GroupOutput::default();
            stage.run(queue.take(queue.rows.len()), &mut output);
            merge.push(output.signals);
        }
        signals.extend(merge.take_before(i64::MAX).iter().map(|signal| signal.bytes.to_vec()));
    }
    signals
}

/// Feeds and processes ticks at the same time, and prints the resident memory ten times meanwhile.
fn memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
    let log: Arc<dyn EventLog> = Arc::new(log);
    feed(&log, PARTITIONS, RECORD_TICKS, std::iter::empty());
    let config = engine_config(stage_config(&BARS), LANES);
    let progress = Arc::new(Progress::new(config.core.lanes.len()));
    let (stop, stopped) = bounded(1);
    let engine = {
        let (log, progress) = (log.clone(), progress.clone());
        thread::spawn(move || run(log, config, progress, stopped))
    };
    let (fed, feeder_gone) = bounded::<()>(0);
    let feeder = {
        let log = log.clone();
        thread::spawn(move || {
            feed(&log, PARTITIONS, RECORD_TICKS, synth(MEMORY_TICKS));
            drop(fed);
        })
    };
    let mut next = 0;
    loop {
        let ticks = progress.ticks.load(Ordering::Relaxed);
        if ticks >= next {
            println!("{:>6.1} M ticks  {:>6.0} MiB resident", ticks as f64 / 1e6, resident_mib());
            next = ticks / (MEMORY_TICKS / 10) * (MEMORY_TICKS / 10) + MEMORY_TICKS / 10;
        }
        if ticks >= MEMORY_TICKS {
            break;
        }
        // The feeder ends before the pipeline; from then on, the loop only yields.
        match feeder_gone.recv_timeout(Duration::from_millis(20)) {
            Err(RecvTimeoutError::Timeout) | Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => thread::yield_now(),
        }
    }
    feeder.join().expect("the market is published");
    stop.send(Stop::At { ticks: topic_ends(log.as_ref(), "ticks"), requests: Vec::new() })
        .expect("the engine runs");
    let summary = engine.join().expect("the engine does not panic").expect("the engine works");
    println!(
        "{} ticks, {} signals in {:.1} s",
        summary.ticks,
        summary.signals,
        summary.active_ns as f64 / 1e9
    );
}

/// Returns the resident memory of this process in MiB, from the kernel's statistics.
fn resident_mib() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: f64 =
        statm.split(' ').nth(1).expect("the second field is resident").parse().expect("a number");
    pages * 4096.0 / 1048576.0
}
