//! A verifier that follows a running pipeline as a process of its own.

use std::fs;
use std::path::Path;

use serde_json::Value;
use warptape_eventlog::{Durability, EventLog, NewRecord, SqliteLog};
use warptape_schemas::decode_signal;

use super::outputs::records;
use super::processes::{Running, ends, folder, run_until_drained, texts, warptape};
use super::prometheus::{Prometheus, component, endpoint_of, get};

/// A verifier with an endpoint.
pub struct Verifier {
    pub run: Running,
    pub endpoint: String,
}

impl Verifier {
    /// Starts a verifier of outputs. Further arguments name the log and the start of the verification.
    pub fn start(folder: &Path, arguments: &[&str]) -> Verifier {
        let verify = ["replay", "verify", "--follow", "--outputs", "--listen", "127.0.0.1:0"];
        let environment = [("WARPTAPE__ENGINE__NODE", "verifier")];
        let mut run = Running::start_with(folder, &[&verify[..], arguments].concat(), &environment);
        let endpoint = endpoint_of(&mut run);
        Verifier { run, endpoint }
    }

    /// Returns the value of a series in a scrape; `None` if it is missing.
    pub fn metric(&self, series: &str) -> Option<f64> {
        let (_, page) = get(&format!("{}/metrics", self.endpoint), &[])?;
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("{series} ")))?;
        Some(line.parse().expect("a number"))
    }

    /// Waits until the verifier has checked the whole ended run, and ends it. It must have found no difference.
    #[track_caller]
    pub fn finish(mut self, folder: &Path, log: &[&str]) {
        let verify = [&["replay", "verify", "--outputs", "-o", "json"][..], log].concat();
        let (whole, _) = texts(&warptape(folder, &verify), 0);
        let whole: Value = serde_json::from_str(&whole).expect("JSON");
        let expected = [
            ("warptape_verifier_entries_total", &whole["entries"]),
            ("warptape_verifier_decisions_total", &whole["decisions"]),
            ("warptape_verifier_outputs_total{topic=\"signals\"}", &whole["outputs"]["signals"]),
            ("warptape_verifier_outputs_total{topic=\"late\"}", &whole["outputs"]["late"]),
        ];
        let Verifier { run, endpoint } = &mut self;
        run.run_while_moving("the verifier has all", || {
            let (_, page) = get(&format!("{endpoint}/metrics"), &[]).expect("it answers");
            let value = |series: &str| {
                let line = page.lines().find_map(|line| line.strip_prefix(&format!("{series} ")));
                line.and_then(|line| line.parse::<f64>().ok())
            };
            let found: Vec<_> = expected.iter().map(|(series, _)| value(series)).collect();
            let has_all = found.iter().zip(&expected).all(|(found, (_, count))| *found == count.as_f64());
            let is_at_end = value("warptape_verifier_behind_records") == Some(0.0);
            let health = || get(&format!("{endpoint}/health"), &[]);
            assert_eq!(value("warptape_verifier_difference"), Some(0.0), "{:?}", health());
            if has_all && is_at_end { Ok(()) } else { Err(found) }
        });
        let said = self.run.stop("TERM");
        assert!(said.ends_with(": identical\n"), "{said}");
    }
}

const LOG: [&str; 4] = ["-c", "w.toml", "--log", "sqlite:w.db"];

/// Starts a market, and a pipeline that processes it.
fn start(folder: &Path) -> (Running, Running) {
    let settings =
        "engine.devices = [\"cpu:2\"]\nstages.bars = [\"1s\", \"tick:5\"]\ntopics.partitions = 2\n";
    fs::write(folder.join("w.toml"), settings).expect("a file");
    let feed =
        ["feed", "synth", "--ticks", "1000000000", "--batch", "16", "--symbols", "30", "--rate", "2000"];
    let feed = Running::start(folder, &[&feed[..], &LOG].concat());
    let run = Running::start(folder, &[&["run"][..], &LOG].concat());
    (feed, run)
}

#[test]
fn a_pipeline_is_verified_while_it_runs_and_started_again() {
    let folder = folder();
    let folder = folder.path();
    let (feed, mut run) = start(folder);
    let log = run.run_until("there is a log", || SqliteLog::open_existing(folder.join("w.db")).ok());
    run.run_until("signals", || ends(&log, "signals").first().is_some_and(|end| *end > 0).then_some(()));
    let mut verifier = Verifier::start(folder, &[&["--from-beginning"][..], &LOG].concat());
    let entries = "warptape_verifier_entries_total";
    let Verifier { run: following, .. } = &mut verifier;
    following.run_for(std::time::Duration::ZERO);
    // Commits made during the verification are also verified.
    let before = verifier.metric(entries).unwrap_or_default();
    run.run_until("more entries are verified", || {
        (verifier.metric(entries)? > before.max(1.0)).then_some(())
    });
    assert_eq!(get(&format!("{}/readyz", verifier.endpoint), &[]), Some((200, "ready\n".to_owned())));
    assert_eq!(component(&verifier.endpoint, "log").expect("a component").0, "ok");
    assert_eq!(get(&format!("{}/gpu-memory", verifier.endpoint), &[]).expect("an answer").0, 404);
    // A killed process stops at any point.
    run.kill();
    let mut run = Running::start(folder, &[&["run"][..], &LOG].concat());
    let before = verifier.metric(entries).expect("a count");
    run.run_until("entries of the next process are verified", || {
        (verifier.metric(entries)? > before).then_some(())
    });
    feed.stop("TERM");
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
    verifier.finish(folder, &LOG);
}

#[test]
#[ignore = "long: see tests/run --all"]
fn a_difference_has_its_alert_and_the_verifier_stays_to_tell_of_it() {
    let folder = folder();
    let folder = folder.path();
    let (feed, mut run) = start(folder);
    let log = run.run_until("there is a log", || SqliteLog::open_existing(folder.join("w.db")).ok());
    run.run_until("signals", || ends(&log, "signals").get(1).is_some_and(|end| *end > 0).then_some(()));
    let with_endpoint = Verifier::start(folder, &LOG);
    let follow = [&["replay", "verify", "--follow", "--outputs", "-o", "json"][..], &LOG].concat();
    let alone = Running::start(folder, &follow);
    let prometheus = Prometheus::start(&[("verifier", &with_endpoint.endpoint)], true);
    let entries = "warptape_verifier_entries_total";
    prometheus.run_until("it is scraped", || (prometheus.number(entries)? > 0.0).then_some(()));
    assert!(prometheus.firing("verifier").is_empty());

    // A forged signal without a cause is written: a copy of the last one.
    let forged = records(&log, "signals", 1).pop().expect("a signal");
    let writer = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("the log");
    let mut producer = writer.producer("forger").expect("a producer");
    producer.begin().expect("a transaction");
    let (key, value) = (forged.key.map(Into::into), forged.value.clone().into());
    let record = NewRecord { topic: "signals".into(), partition: 1, key, value, ..NewRecord::default() };
    producer.send(record).expect("a record");
    producer.commit().expect("a commit");
    drop(producer);

    let after_s =
        prometheus.await_alert("WarptapeVerifierDifference", "verifier", "warptape_verifier_difference == 1");
    println!("WarptapeVerifierDifference fires {after_s:.1} s after the difference was seen in the metrics");
    assert_eq!(prometheus.fired("verifier").into_iter().collect::<Vec<_>>(), ["WarptapeVerifierDifference"]);
    let (state, reason) = component(&with_endpoint.endpoint, "verification").expect("a component");
    let sequence = prometheus.number("warptape_verifier_difference_sequence").expect("a sequence");
    assert!(
        state == "down" && reason.contains(&format!("at sequence {sequence}: signals partition 1")),
        "{reason}"
    );
    let (status, word) = get(&format!("{}/readyz", with_endpoint.endpoint), &[]).expect("an answer");
    assert!(status == 503 && word.starts_with("not ready: a difference at sequence"), "{word}");
    // Without an endpoint, the verifier ends.
    let (status, out, error) = alone.finish();
    assert_eq!(status.code(), Some(1), "{error}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    // The forged signal is in the place of the expected signal, which follows it.
    let surplus = &report["divergence"]["output"]["problem"]["surplus"];
    let symbol = decode_signal(&forged.value).expect("a signal").symbol.to_string();
    assert_eq!(
        (&surplus["count"], &surplus["first"]["symbol"]),
        (&1.into(), &symbol.as_str().into()),
        "{report}"
    );
    with_endpoint.run.signal("TERM");
    let (status, out, _) = with_endpoint.run.finish();
    assert_eq!(status.code(), Some(1));
    println!("{out}");
    assert!(
        out.contains("signals partition 1 offset") && out.contains("1 too many") && out.contains(&symbol),
        "{out}"
    );
    // The pipeline is not affected.
    assert!(run.is_running());
    feed.stop("TERM");
    run.stop("TERM");
}
