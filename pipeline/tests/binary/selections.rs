//! `tail` skips blocks of records without the wanted symbol and times. It prints what a filter of all lines leaves.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::processes::{folder, texts, warptape};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
/// Selections of each topic.
const SELECTIONS: usize = 12;

/// Random numbers of a fixed sequence.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Lines of each partition, whose order in it is fixed; partitions take turns in any way.
type Lines = BTreeMap<i64, Vec<String>>;

/// Prints a topic, and returns its lines and standard error.
fn tail(path: &Path, log: &[&str], topic: &str, filters: &[String]) -> (Lines, String) {
    let filters = filters.iter().map(String::as_str);
    let fixed = ["tail", topic, "--from-beginning", "--exit-at-end", "-o", "json"];
    let arguments: Vec<&str> = fixed.into_iter().chain(log.iter().copied()).chain(filters).collect();
    let (out, error) = texts(&warptape(path, &arguments), 0);
    let mut lines = Lines::new();
    for line in out.lines() {
        let partition = json(line)["partition"].as_i64().expect("a partition");
        lines.entry(partition).or_default().push(line.to_owned());
    }
    (lines, error)
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).expect("a line is one JSON value")
}

/// Returns the lines that a symbol and a range of times leave.
fn filtered(all: &Lines, time: &str, wanted: &Wanted) -> Lines {
    let is_wanted = |line: &&String| {
        let line = json(line);
        let at_ns = line["record"][time].as_i64().expect("a time");
        wanted.symbol.as_ref().is_none_or(|symbol| line["record"]["symbol"] == symbol.as_str())
            && wanted.since_ns.is_none_or(|since_ns| at_ns >= since_ns)
            && wanted.until_ns.is_none_or(|until_ns| at_ns < until_ns)
    };
    let partition = |(partition, lines): (&i64, &Vec<String>)| {
        (*partition, lines.iter().filter(is_wanted).cloned().collect::<Vec<_>>())
    };
    all.iter().map(partition).filter(|(_, lines)| !lines.is_empty()).collect()
}

#[derive(Debug)]
struct Wanted {
    symbol: Option<String>,
    since_ns: Option<i64>,
    until_ns: Option<i64>,
}

impl Wanted {
    /// Returns a selection among symbols and times that exist.
    fn new(random: &mut Random, symbols: &[String], times: &[i64]) -> Self {
        let symbol = (random.below(3) > 0).then(|| symbols[random.below(symbols.len())].clone());
        let since_ns = (random.below(3) > 0).then(|| times[random.below(times.len())]);
        let until_ns = (random.below(2) > 0).then(|| times[random.below(times.len())] + 1);
        let until_ns = until_ns.filter(|until_ns| since_ns.is_none_or(|since_ns| *until_ns > since_ns));
        Self { symbol, since_ns, until_ns }
    }

    fn filters(&self) -> Vec<String> {
        let Self { symbol, since_ns, until_ns } = self;
        let symbol = symbol.iter().flat_map(|symbol| ["--symbol".to_owned(), symbol.clone()]);
        let since = since_ns.iter().flat_map(|ns| ["--since".to_owned(), ns.to_string()]);
        let until = until_ns.iter().flat_map(|ns| ["--until".to_owned(), ns.to_string()]);
        symbol.chain(since).chain(until).collect()
    }
}

#[test]
fn filters_print_what_a_filter_of_all_lines_leaves() {
    let folder = folder();
    let path = folder.path();
    for seed in ["1", "2"] {
        let feed = ["feed", "synth", "--ticks", "15000", "--symbols", "60", "--batch", "64", "--seed", seed];
        texts(&warptape(path, &[&feed[..], &LOG].concat()), 0);
        texts(&warptape(path, &[&["run", "--until-caught-up"][..], &LOG].concat()), 0);
    }
    texts(&warptape(path, &["log", "backup", "copy.db", "--log", "sqlite:w.db"]), 0);
    let mut random = Random(7);
    for (topic, time) in [("ticks", "event_time_ns"), ("signals", "bar_end_ns"), ("late", "event_time_ns")] {
        let (all, _) = tail(path, &LOG, topic, &[]);
        let values: Vec<Value> = all.values().flatten().map(|line| json(line)).collect();
        let symbol = |value: &Value| value["record"]["symbol"].as_str().expect("a symbol").to_owned();
        let symbols: Vec<String> = values.iter().map(symbol).collect();
        let times: Vec<i64> = values.iter().filter_map(|value| value["record"][time].as_i64()).collect();
        assert!(times.len() == values.len() && times.len() > 200, "{topic}: {} lines", times.len());
        for number in 0..SELECTIONS {
            let wanted = Wanted::new(&mut random, &symbols, &times);
            let log = if number % 2 == 0 { LOG } else { ["--log", "sqlite:copy.db"] };
            let (found, error) = tail(path, &log, topic, &wanted.filters());
            assert_eq!(found, filtered(&all, time, &wanted), "{topic} {wanted:?}");
            assert!(!error.contains("no record of"), "{topic} {wanted:?}: {error}");
        }
        // The symbol exists, though not at this time.
        let late = [i64::MAX.to_string(), symbols[0].clone()];
        let filters = ["--since".to_owned(), late[0].clone(), "--symbol".to_owned(), late[1].clone()];
        let (found, error) = tail(path, &LOG, topic, &filters);
        assert!(found.is_empty() && !error.contains("no record of"), "{topic}: {error}");
        let unknown = ["--symbol".to_owned(), "SYNTH:AAZZ".to_owned()];
        let (found, error) = tail(path, &LOG, topic, &unknown);
        assert!(found.is_empty() && error.contains("did you mean SYNTH:AA"), "{topic}: {error}");
    }
}
