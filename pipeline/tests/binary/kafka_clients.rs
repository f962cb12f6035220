//! The pipeline on a real Kafka: with foreign clients, with passwords, and with dead letters.
//!
//! Each test has its own topics and consumer group on the shared broker.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use warptape_eventlog::{EventLog, Fetched, KafkaLog, KafkaOptions, NewRecord, TopicPartition, TopicSpec};
use warptape_pipeline::runtime::{TopicPlan, Topics, topic_specs};

use super::kafka_market::TickReader;
use super::log_files::check_limited;
use super::processes::{Running, folder, texts, warptape, warptape_with};

const PARTITIONS: i32 = 4;
const TICKS: &str = "3000";
/// Wait between two checks whether the end of a partition is reached.
const READ_WAIT: Duration = Duration::from_millis(100);

/// Returns an environment variable that `tests/run` sets.
#[track_caller]
pub fn given(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run this by `tests/run`, or by `tests/services run` for the variables of services")
    })
}

/// A folder with a configuration, and the topics and group of one test.
pub struct Setup {
    folder: TempDir,
    prefix: String,
    brokers: String,
    pub log: KafkaLog,
}

impl Setup {
    pub fn new(name: &str) -> Setup {
        let brokers = given("WARPTAPE_TEST_KAFKA");
        // A broker that is not started by the tests may have topics of earlier runs.
        let prefix = format!("{name}-{}.", warptape_pipeline::clock::wall_clock_ns());
        let folder = folder();
        let text = format!(
            "log.url = \"kafka:{brokers}\"\ntopics = {{ prefix = \"{prefix}\", partitions = {PARTITIONS} }}\n\
             engine.group = \"{prefix}group\"\nstages.bars = [\"tick:5\", \"1s\"]\n"
        );
        std::fs::write(folder.path().join("w.toml"), text).expect("a file");
        texts(&warptape(folder.path(), &["topics", "create", "-c", "w.toml"]), 0);
        let log = KafkaLog::open(KafkaOptions::new(&*brokers)).expect("a cluster");
        Setup { folder, prefix, brokers, log }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn topic(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub fn run(&self) -> Running {
        Running::start(self.path(), &["run", "-c", "w.toml"])
    }

    /// Waits until `ticks` ticks and `others` other records are in the log and processed, then stops the pipeline.
    /// Returns the summary.
    #[track_caller]
    pub fn drain(&self, mut run: Running, ticks: u64, others: u64) -> String {
        self.catch_up(&mut run, ticks, others);
        run.stop("TERM")
    }

    /// Waits like [`Setup::drain`], but does not stop the pipeline.
    #[track_caller]
    fn catch_up(&self, run: &mut Running, ticks: u64, others: u64) {
        TickReader::new(&self.log, &self.topic("ticks"), PARTITIONS).await_all(ticks, others);
        let sources: Vec<TopicPartition> = (0..PARTITIONS)
            .map(|partition| TopicPartition { topic: self.topic("ticks"), partition })
            .collect();
        let ends: Vec<i64> = sources.iter().map(|source| self.after_last_record(source)).collect();
        let committed = |source| {
            self.log.committed(&self.topic("group"), source).expect("the cluster answers").unwrap_or(0)
        };
        run.run_while_moving("all ticks are processed", || {
            let done: Vec<i64> = sources.iter().map(committed).collect();
            if done.iter().zip(&ends).all(|(done, end)| done >= end) { Ok(()) } else { Err(done) }
        });
    }

    /// Returns the offset after the last record. The end of the partition may lie after a transaction's marker.
    fn after_last_record(&self, source: &TopicPartition) -> i64 {
        let mut reader = self.log.reader(std::slice::from_ref(source)).expect("a partition of the cluster");
        let end = reader.offsets(source).expect("the cluster answers").next;
        let mut next = 0;
        while reader.position(source).expect("a position") < end {
            if let Fetched::Records { records, .. } =
                reader.poll(READ_WAIT, 4096, 16 << 20).expect("the cluster answers")
            {
                next = records.last().map_or(next, |record| record.offset + 1);
            }
        }
        next
    }

    /// Runs a script of `examples/python` to its end.
    fn example(&self, script: &str, arguments: &[&str]) -> Output {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/python").join(script);
        Command::new(given("WARPTAPE_TEST_PYTHON"))
            .arg(path)
            .args(["--brokers", &self.brokers])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("Python starts")
    }
}

/// Returns the number that follows a name at the start of a line of the summary.
#[track_caller]
fn figure(summary: &str, name: &str) -> usize {
    let line = summary.lines().find(|line| line.split_whitespace().next() == Some(name));
    let word =
        line.and_then(|line| line.split_whitespace().nth(1)).unwrap_or_else(|| panic!("{name}: {summary}"));
    word.replace(',', "").parse().expect("a number")
}

#[test]
fn the_examples_in_python_publish_ticks_and_read_signals() {
    let setup = Setup::new("python");
    let run = setup.run();
    let (ticks, signals) = (setup.topic("ticks"), setup.topic("signals"));
    let published =
        setup.example("produce_ticks.py", &["--topic", &ticks, "--ticks", TICKS, "--symbols", "9"]);
    assert_eq!(texts(&published, 0).0, format!("published {TICKS} ticks to {ticks}\n"));

    // One group reads while the pipeline runs; another one reads all signals at the end.
    let read = |group: &str, end: &[&str]| {
        let arguments = [&["--topic", &*signals, "--group", group], end].concat();
        texts(&setup.example("consume_signals.py", &arguments), 0).0
    };
    assert_eq!(read(&setup.topic("first"), &["--signals", "100"]).lines().count(), 100);
    let summary = setup.drain(run, TICKS.parse().expect("a number"), 0);
    assert_eq!(figure(&summary, "ticks").to_string(), TICKS);
    let all = read(&setup.topic("second"), &["--exit-at-end"]);
    assert_eq!(all.lines().count(), figure(&summary, "signals"));
    for line in all.lines() {
        let signal: serde_json::Value = serde_json::from_str(line).expect("a line is one JSON value");
        let symbol = signal["symbol"].as_str().expect("a symbol");
        assert!(symbol.starts_with("PYTHON:SYM") && signal["bar_end_ns"].as_i64() > Some(0), "{line}");
    }
    // A group that returns continues after the records that it has printed.
    assert_eq!(read(&setup.topic("second"), &["--exit-at-end"]), "");

    let (verified, _) = texts(&warptape(setup.path(), &["replay", "verify", "--outputs", "-c", "w.toml"]), 0);
    assert!(verified.ends_with(" signals: identical\n"), "{verified}");
}

#[test]
fn the_example_in_python_and_the_command_ask_about_risk() {
    let setup = Setup::new("risk");
    let run = setup.run();
    let ticks = setup.topic("ticks");
    let published =
        setup.example("produce_ticks.py", &["--topic", &ticks, "--ticks", "40000", "--symbols", "9"]);
    texts(&published, 0);
    let (requests, results) = (setup.topic("risk.requests"), setup.topic("risk.results"));
    let topics = ["--requests", &*requests, "--results", &*results, "--timeout-s", "100"];
    let python = |symbol: &str, more: &[&str], code: i32| -> serde_json::Value {
        let option = ["--symbol", symbol, "--strike", "100", "--expiry-days", "30"];
        let output = setup.example("risk_request.py", &[&topics[..], &option, more].concat());
        serde_json::from_str(&texts(&output, code).0).expect("a line is one JSON value")
    };
    let command = |more: &[&str], code: i32| -> serde_json::Value {
        let option = [
            "risk",
            "price",
            "--kind",
            "call",
            "--strike",
            "100",
            "--expiry-days",
            "30",
            "--timeout-s",
            "100",
        ];
        let rest = ["-o", "json", "-c", "w.toml"];
        let output = warptape(setup.path(), &[&option[..], more, &rest].concat());
        serde_json::from_str(&texts(&output, code).0).expect("one JSON value")
    };
    // If all numbers are given, Python gets the same bits as the command.
    let given = ["--spot", "101.5", "--volatility", "0.2"];
    let [theirs, ours] = [python("ANY:THING", &given, 0), command(&given, 0)];
    assert!(theirs["outcome"]["values"][0]["price"].as_f64() > Some(0.0), "{theirs}");
    assert_eq!(theirs["outcome"]["values"], ours["outcome"]["values"]);
    // If the market provides the numbers, the request goes to the partition of its ticks, which are processed first.
    let summary = setup.drain(run, 40000, 0);
    assert_eq!(figure(&summary, "ticks"), 40000);
    let run = setup.run();
    for symbol in ["PYTHON:SYM0", "PYTHON:SYM8"] {
        let theirs = python(symbol, &[], 0);
        let ours = command(&["--symbol", symbol], 0);
        let taken = &theirs["as_of"][0];
        assert!(taken["spot"].as_f64() > Some(0.0) && taken["volatility"].as_f64() > Some(0.0), "{theirs}");
        assert_eq!(taken["partition"], theirs["partition"], "{theirs}");
        assert_eq!((taken, &theirs["outcome"]["values"]), (&ours["as_of"][0], &ours["outcome"]["values"]));
    }
    let unknown = python("PYTHON:NONE", &[], 1);
    assert_eq!(unknown["outcome"]["code"], "UNKNOWN_SYMBOL", "{unknown}");
    run.stop("TERM");
}

/// Each line in the examples' README works in a log without ticks, and works again the second time.
#[test]
fn the_readme_of_the_examples_in_python_works_to_its_last_line_twice() {
    let setup = Setup::new("readme");
    let mut run = setup.run();
    let [ticks, signals, group, requests, results] =
        ["ticks", "signals", "example", "risk.requests", "risk.results"].map(|name| setup.topic(name));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/python/README.md");
    let readme = std::fs::read_to_string(path).expect("a README");
    let lines: Vec<Vec<&str>> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("python examples/python/"))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let scripts = ["produce_ticks.py", "consume_signals.py", "risk_request.py"];
    assert_eq!(lines.iter().map(|line| line[0]).collect::<Vec<_>>(), scripts);
    let mut published = 0;
    for round in 1..=2 {
        for line in &lines {
            let [script, "--brokers", "localhost:9092", arguments @ ..] = &line[..] else {
                panic!("{line:?}")
            };
            let topics: &[&str] = match *script {
                "produce_ticks.py" => &["--topic", &ticks],
                "consume_signals.py" => &["--topic", &signals, "--group", &group],
                _ => &["--requests", &requests, "--results", &results],
            };
            let (out, _) = texts(&setup.example(script, &[arguments, topics].concat()), 0);
            match *script {
                "produce_ticks.py" => {
                    published += 10_000;
                    setup.catch_up(&mut run, published, 0);
                }
                "consume_signals.py" => assert_eq!(out.lines().count(), 5, "{out}"),
                _ => {
                    let answer: serde_json::Value = serde_json::from_str(&out).expect("one JSON value");
                    assert!(
                        answer["outcome"]["values"][0]["price"].as_f64() > Some(0.0),
                        "round {round}: {out}"
                    );
                }
            }
        }
    }
    let summary = run.stop("TERM");
    assert_eq!(figure(&summary, "ticks"), 20_000, "{summary}");
    assert!(!summary.contains("repeat"), "{summary}");
    assert!(summary.contains(", 0 late"), "the second run begins behind the first: {summary}");
}

#[test]
fn dead_letters_are_replayed_once_on_kafka_too() {
    let setup = Setup::new("dlq");
    let run = setup.run();
    let mut producer = setup.log.producer(&setup.topic("test")).expect("a producer");
    producer.begin().expect("a transaction");
    for partition in 0..PARTITIONS {
        let topic = setup.topic("ticks").into();
        let record = NewRecord { topic, partition, value: b"junk".into(), ..NewRecord::default() };
        producer.send(record).expect("a record of the transaction");
    }
    producer.commit().expect("a commit");
    let letters = PARTITIONS as u64;
    assert_eq!(figure(&setup.drain(run, 0, letters), "dead"), PARTITIONS as usize);

    let dlq = |command: &str| texts(&warptape(setup.path(), &["dlq", command, "-c", "w.toml"]), 0).0;
    assert_eq!(dlq("list").matches("NOT_FRAMED").count(), PARTITIONS as usize);
    assert_eq!(figure(&dlq("replay"), "replayed"), PARTITIONS as usize);
    assert_eq!(figure(&dlq("replay"), "replayed"), 0);
    assert_eq!(figure(&setup.drain(setup.run(), 0, 2 * letters), "dead"), PARTITIONS as usize);
}

#[test]
fn too_little_of_anything_is_an_error_that_says_so_on_kafka_too() {
    let setup = Setup::new("limited");
    let feed = ["feed", "synth", "--symbols", "20", "--ticks", "2000", "--again", "-c", "w.toml"];
    let run = ["run", "-c", "w.toml"];
    let mut failed = 0;
    // The limits of descriptors, and of address space in KiB, go from far too little to enough.
    let limits = [
        "-n 10",
        "-n 16",
        "-n 24",
        "-n 48",
        "-n 100",
        "-v 80000",
        "-v 120000",
        "-v 200000",
        "-v 300000",
        "-v 1600000",
    ];
    for limit in limits {
        for (command, told_after_s) in [(&feed[..], None), (&run, Some(10))] {
            failed += u32::from(!check_limited(setup.path(), limit, told_after_s, command));
        }
    }
    assert!(failed > 5, "{failed} were too little");
    // Other processes are not affected.
    let (out, _) = texts(&warptape(setup.path(), &feed), 0);
    assert!(out.contains("2,000") || out.contains("2000"), "{out}");
}

#[test]
fn a_partition_that_other_topics_lack_is_named_and_waited_for() {
    let setup = Setup::new("lacking");
    let prefix = format!("{}lacking.", setup.prefix);
    let specs = topic_specs(&Topics::new(&prefix), &TopicPlan::new(PARTITIONS));
    let fewer = |spec: TopicSpec| match spec.name.ends_with("signals") {
        true => TopicSpec { partitions: PARTITIONS - 1, ..spec },
        false => spec,
    };
    setup.log.create_topics(&specs.into_iter().map(fewer).collect::<Vec<_>>()).expect("new topics");
    let prefix_variable = [("WARPTAPE__TOPICS__PREFIX", &*prefix)];
    let mut run = Running::start_with(setup.path(), &["run", "-c", "w.toml"], &prefix_variable);
    run.await_saying(&format!("{prefix}ticks/{} is not read yet", PARTITIONS - 1));
    assert!(run.said().contains(&format!("{prefix}signals. Give them")), "{}", run.said());

    // The remaining records are read.
    let mut producer = setup.log.producer(&prefix).expect("a producer");
    producer.begin().expect("a transaction");
    let topic = format!("{prefix}ticks");
    let record = NewRecord { topic: topic.as_str().into(), value: b"junk".into(), ..NewRecord::default() };
    producer.send(record).expect("a record of the transaction");
    producer.commit().expect("a commit");
    let first = TopicPartition { topic, partition: 0 };
    run.run_until("the first partition is processed", || {
        setup.log.committed(&setup.topic("group"), &first).expect("the cluster answers")
    });
    run.stop("TERM");
}

#[test]
fn a_password_from_a_file_opens_the_cluster_and_a_wrong_one_is_not_repeated() {
    let folder = folder();
    let folder = folder.path();
    let text = format!(
        "log.url = \"kafka:{}\"\n[kafka.properties]\nsecurity.protocol = \"SASL_SSL\"\n\
         sasl.mechanism = \"SCRAM-SHA-256\"\nsasl.username = \"{}\"\nssl.ca.location = \"{}\"\n",
        given("WARPTAPE_TEST_KAFKA_SASL"),
        given("WARPTAPE_TEST_KAFKA_SASL_USER"),
        given("WARPTAPE_TEST_KAFKA_SASL_CA"),
    );
    std::fs::write(folder.join("w.toml"), text).expect("a file");
    std::fs::write(folder.join("right"), given("WARPTAPE_TEST_KAFKA_SASL_PASSWORD") + "\n").expect("a file");
    let topics = ["topics", "-c", "w.toml"];
    let file = [("WARPTAPE__KAFKA__PROPERTIES__SASL__PASSWORD_FILE", "right")];
    texts(&warptape_with(folder, &topics, &file), 0);

    const WRONG: &str = "hunter2-must-not-be-seen";
    let wrong = [("WARPTAPE__KAFKA__PROPERTIES__SASL__PASSWORD", WRONG)];
    let output = warptape_with(folder, &[&topics[..], &["-vvv"]].concat(), &wrong);
    let (out, error) = texts(&output, 1);
    assert!(out.is_empty() && error.contains("uthentication") && !error.contains(WRONG), "{error}");
}
