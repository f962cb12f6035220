//! Fuzz targets, one for each reader of external bytes. A reader must answer whatever bytes it gets, and never panic.
//! As tests, the targets use the inputs of their corpus; `tests/fuzz` searches for more. The whole crate is the test
//! program, because coverage-instrumented code does not link without the fuzzer.
#![cfg(test)]

use std::path::PathBuf;

use bolero::check;
use warptape_eventlog::{Durability, EventLog, SqliteLog, TopicPartition};
use warptape_replay::debugger::Predicate;
use warptape_scheduler::Scheduler;
use warptape_schemas as schemas;
use warptape_sources::binance_capture::BinanceCapture;
use warptape_sources::coinbase::CoinbaseCapture;
use warptape_sources::csv::{BadLines, CsvConfig, CsvSource, FeedOrder};
use warptape_sources::dbn::DbnSource;
use warptape_sources::live::{LiveSession, LiveVenue, Outcome, line_of};
use warptape_stages::{GroupStage, Isa, PartitionIntake, StageConfig};

/// A file with given bytes, for code that reads files.
struct InFile {
    _folder: tempfile::TempDir,
    /// Path of the file.
    path: PathBuf,
}

impl InFile {
    /// Creates a file with this name and these bytes.
    fn new(name: &str, bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("the folder takes a file");
        Self { _folder: folder, path }
    }
}

/// Number of random inputs per target under `tests/run --all`. Otherwise only the corpus is used, so that two runs give
/// the same result.
const RANDOM_INPUTS: usize = 1_000;

macro_rules! target {
    () => {
        check!().with_iterations(if std::env::var_os("WARPTAPE_TEST_ALL").is_some() {
            RANDOM_INPUTS
        } else {
            0
        })
    };
}

/// Greatest number of ticks read from one input.
const TICKS_MAX: usize = 10_000;

/// Decodes ticks, one by one and in batches.
#[test]
fn ticks() {
    target!().for_each(|bytes: &[u8]| {
        let (mut decoder, mut names) =
            (schemas::TickDecoder::new().by_rows(true), schemas::SymbolTable::default());
        let mut columns = schemas::TickColumns::default();
        if decoder.decode(bytes, &mut names, &mut columns).is_ok() {
            let is_in_time = |row: usize| columns.event_time_ns[row] > 0;
            assert!(columns.good_rows().all(is_in_time), "a check lets no such time pass");
        }
    });
}

/// Decodes the records of all other topics. A decoded record that is encoded and decoded again must be the same.
#[test]
fn records() {
    target!().for_each(|bytes: &[u8]| {
        macro_rules! again {
            ($($decode:ident $encode:ident),*) => {
                $(if let Ok(read) = schemas::$decode(bytes) {
                    let mut written = Vec::new();
                    schemas::$encode(&read, &mut written);
                    let again = schemas::$decode(&written).expect("what was written is read");
                    // The comparison uses text, because NaN differs from itself.
                    assert_eq!(format!("{again:?}"), format!("{read:?}"));
                })*
            };
        }
        again!(
            decode_control encode_control,
            decode_control_result encode_control_result,
            decode_feed encode_feed,
            decode_lifecycle encode_lifecycle,
            decode_risk_request encode_risk_request,
            decode_risk_result encode_risk_result
        );
        drop(schemas::decode_dead_letter(bytes));
        drop(schemas::decode_journal_entry(bytes));
        drop(schemas::decode_late_tick(bytes));
        drop(schemas::decode_signal(bytes));
        drop(schemas::decode_snapshot(bytes));
        drop(schemas::SetEventTime::of(bytes));
    });
}

/// Stage configuration of a run with default settings, as its journal records it.
const STAGES: &str = r#"{"bars":["1s","1m","5m"],"allowed_lateness_ns":2000000000,"groups_per_partition":16,"indicators":{"sma":20,"ema_fast":38,
    "ema_slow":100,"bollinger":20,"bollinger_width":2.0,"rsi":14,"macd_fast":12,"macd_slow":26,"macd_signal":9,"atr":14,"vwap":20,"momentum":10,
    "roc":10,"zscore":20,"realised_volatility":20},"signals":{"rsi_upper":70.0,"rsi_lower":30.0,"zscore_threshold":3.0},"quotes":"event_time",
    "numbers":"exact","times":"nanoseconds","future_max_ns":345600000000000,"clock_skew_max_ns":60000000000,"rejects":"rows",
    "symbols_max":65536,"rules":2}"#;

/// Checks formulas as a journal may have them. Those without mistakes must make a stage.
#[test]
fn formulas() {
    let config: StageConfig = serde_json::from_str(STAGES).expect("a journal's configuration");
    target!().for_each(|bytes: &[u8]| {
        let Ok(text) = str::from_utf8(bytes) else { return };
        let (name, text) = text.split_once('=').unwrap_or(("own", text));
        let formulas = [(name.to_owned(), text.to_owned())].into();
        let config = StageConfig { formulas, ..config.clone() };
        if config.check().is_empty() {
            drop(GroupStage::new(&config, Isa::detect()));
        }
    });
}

/// Decodes the states of groups and intakes. A decoded state must encode to the same bytes.
#[test]
fn states() {
    let mut config: StageConfig = serde_json::from_str(STAGES).expect("a journal's configuration");
    config.formulas = [("own".to_owned(), "zscore(close, 3)".to_owned())].into();
    let [mut group, mut intake] = [Vec::new(), Vec::new()];
    GroupStage::new(&config, Isa::detect()).write(&mut group);
    PartitionIntake::new(&config).write(&mut intake);
    // The version and the configuration come first; other bytes there would be refused at once.
    let heads = [&group, &intake].map(|state| state[..12].to_vec());
    let check = |bytes: &[u8]| {
        let [group, intake] = [0, 1].map(|head| [&heads[head], bytes].concat());
        let mut written = Vec::new();
        if let Ok(read) = GroupStage::read(&config, Isa::detect(), &group) {
            read.write(&mut written);
            assert_eq!(written, group);
        }
        written.clear();
        if let Ok(read) = PartitionIntake::read(&config, &intake) {
            read.write(&mut written);
            assert_eq!(written, intake);
        }
    };
    [group, intake].iter().for_each(|state| check(&state[12..]));
    target!().for_each(check);
}

/// Decodes the scheduler's state in a checkpoint.
#[test]
fn checkpoints() {
    let check = |bytes: &[u8]| {
        let Ok(scheduler) = Scheduler::from_checkpoint(bytes) else { return false };
        let again = Scheduler::from_checkpoint(&scheduler.checkpoint()).expect("what was written is read");
        assert_eq!(again.state_hash(), scheduler.state_hash());
        true
    };
    assert!(check(&Scheduler::new().checkpoint()), "a sound one is read");
    target!().for_each(|bytes: &[u8]| {
        check(bytes);
    });
}

/// Opens a damaged file of the embedded log. Opening it or reading its offsets may fail, but must not panic.
#[test]
fn embedded_logs() {
    let sound = InFile::new("sound.db", b"");
    std::fs::remove_file(&sound.path).expect("it is there");
    drop(SqliteLog::open(&sound.path, Durability::Process).expect("a new log"));
    let sound = std::fs::read(&sound.path).expect("it is there");
    target!().for_each(|bytes: &[u8]| {
        // The input damages some bytes of a valid log.
        let mut damaged = sound.clone();
        for place in bytes.chunks_exact(4) {
            let at = usize::from(u16::from_le_bytes([place[0], place[1]])) * 8 % damaged.len();
            damaged[at] ^= place[2];
            let end = damaged.len() - 1;
            damaged[(at + 1).min(end)] ^= place[3];
        }
        let file = InFile::new("damaged.db", &damaged);
        let Ok(log) = SqliteLog::open_existing(&file.path) else { return };
        for topic in log.topics().unwrap_or_default() {
            for partition in 0..topic.offsets.len() as i32 {
                drop(log.offsets(&TopicPartition { topic: topic.spec.name.clone(), partition }));
            }
        }
    });
}

/// Reads rows of CSV with all kinds of columns.
#[test]
fn csv() {
    let map = "symbol=s,time=t:ms,price=p,size=q,side=d,trade_id=i";
    let mapping = map.parse().expect("a mapping");
    let config = CsvConfig {
        mappings: vec![mapping],
        venue: Some("V".to_owned()),
        bad_lines: BadLines::Aside { folder: None },
        order: FeedOrder::Kept,
        ..CsvConfig::default()
    };
    target!().for_each(|bytes: &[u8]| {
        let file = InFile::new("rows.csv", &[b"s,t,p,q,d,i\n", bytes].concat());
        let Ok(source) = CsvSource::open(std::slice::from_ref(&file.path), &config) else { return };
        source.take(TICKS_MAX).for_each(drop);
    });
}

/// Reads messages of live feeds. Each tick can be published, and a recording of the messages gives the same ticks.
#[test]
fn messages() {
    target!().for_each(|bytes: &[u8]| {
        for (venue, ticker) in [(LiveVenue::Binance, "BTCUSDT"), (LiveVenue::Coinbase, "BTC-USD")] {
            let mut session = LiveSession::new(venue, "V", &[ticker.to_owned()]);
            let (mut recording, mut ticks) = (Vec::new(), Vec::new());
            for (number, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
                let line = line_of(number, &String::from_utf8_lossy(text));
                match session.receive(number, &line).outcome {
                    Outcome::Tick(tick) => {
                        let encoded =
                            schemas::encode_scaled_tick_batch(std::slice::from_ref(&tick), &mut Vec::new());
                        encoded.expect("a tick can be published");
                        ticks.push(tick);
                    }
                    Outcome::Nothing | Outcome::Unfit(_) => {}
                    Outcome::Bad(_) | Outcome::Repeated | Outcome::Refused(_) => continue,
                }
                recording.extend([&line[..], b"\n"].concat());
                if number % 8 == 0 {
                    session.cut(number, String::new());
                }
            }
            let file = InFile::new("recording.jsonl", &recording);
            let files = [("V".to_owned(), file.path.clone())];
            let again: Vec<_> = match venue {
                LiveVenue::Binance => BinanceCapture::open(&files).expect("a file").collect(),
                LiveVenue::Coinbase => CoinbaseCapture::open(&files).expect("a file").collect(),
            };
            let again: Vec<_> = again.into_iter().map(|tick| tick.expect("a good line")).collect();
            assert_eq!(again, ticks);
        }
    });
}

/// Reads files of Databento.
#[test]
fn dbn() {
    target!().for_each(|bytes: &[u8]| {
        let file = InFile::new("ticks.dbn", bytes);
        let Ok(source) = DbnSource::open(std::slice::from_ref(&file.path), None, true) else { return };
        source.take(TICKS_MAX).for_each(drop);
    });
}

/// Parses conditions of the debugger. Each error must have a message.
#[test]
fn predicates() {
    target!().for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        if let Err(error) = Predicate::parse(&text, &|_| None) {
            assert!(!error.to_string().is_empty());
        }
    });
}

/// Parses commands that clients post to the endpoint, and risk requests in JSON.
#[test]
fn bodies() {
    target!().for_each(|bytes: &[u8]| {
        drop(serde_json::from_slice::<schemas::control::ControlCommand>(bytes));
        if let Ok(request) = serde_json::from_slice::<schemas::risk::RiskRequest>(bytes) {
            let mut written = Vec::new();
            schemas::encode_risk_request(&request, &mut written);
            let again = schemas::decode_risk_request(&written).expect("what was written is read");
            assert_eq!(format!("{again:?}"), format!("{request:?}"));
        }
    });
}
