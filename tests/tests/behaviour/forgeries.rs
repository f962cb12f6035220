//! Forged journals: one field of one entry is changed, or an entry is removed. All later decisions, state hashes,
//! states and the chain are recomputed, as anybody with this software can do. `journal_fields` lists all fields, and
//! which of their forgeries are found. It also has inputs that a single process on processors lacks (of devices,
//! networks, routes and rebalances); these are not forged here.
//! (of devices, networks, routes and rebalances); they are not forged here.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use warptape_eventlog::{Durability, EventLog, NewRecord, Record, SqliteLog};
use warptape_kernels::Isa;
use warptape_pipeline::runtime::{EngineConfig, Topics};
use warptape_replay::{VerifyOptions, verify};
use warptape_scheduler::Scheduler;
use warptape_schemas::control::{Control, ControlCommand, DrainLane, UndrainLane, WeighLane, WeighTenant};
use warptape_schemas::journal::{Input, JournalEntry};
use warptape_schemas::risk::RiskRequest;
use warptape_schemas::{JournalWriter, decode_journal_entry, encode_control, encode_risk_request};
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_tests::engine_run::{engine_config, feed, read_partition, run_to_end, stage_config};
use warptape_tests::injected::InjectedLanes;
use warptape_tests::journal_fields::{FIELDS, Known, REMOVED, known};

use crate::tampered::Tampered;

/// Number of entries in which each field is changed; `WARPTAPE_TEST_FORGERIES` overrides it.
const ENTRIES: usize = 2;
const PARTITIONS: i32 = 2;
/// Number of verifications that panicked.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn config() -> EngineConfig {
    let mut config = engine_config(stage_config(&["1s", "tick:5"]), 3);
    config.core.scheduler.risk.slice_ns = 50_000;
    config.core.scheduler.risk.price_interval_ns = 1_000_000;
    config.core.stages.groups_per_partition = 4;
    config.core.stages.market.sample_interval_ns = 100_000_000;
    config.core.times.checkpoint_interval_ns = 5_000_000;
    config.core.times.commit_interval_ns = 2_000_000;
    config.core.limits.snapshot_interval_records = 8;
    config.poll_records_max = 4;
    config
}

fn send(log: &Arc<dyn EventLog>, topic: &str, partition: i32, values: Vec<Vec<u8>>) {
    let mut producer = log.producer("asks").expect("a producer");
    producer.begin().expect("a transaction");
    for value in values {
        let (topic, value) = (topic.into(), value.into());
        producer.send(NewRecord { topic, partition, value, ..NewRecord::default() }).expect("it is taken");
    }
    producer.commit().expect("it is committed");
}

/// Returns an encoded request with values from the market.
fn live_request(log: &Arc<dyn EventLog>) -> Vec<u8> {
    let signal = read_partition(log.as_ref(), "signals", 1).pop().expect("a signal");
    let symbol = String::from_utf8(signal.key.expect("the symbol")).expect("UTF-8");
    let asset = json!({"symbol": symbol, "spot": {"from": "market"}, "volatility": 0.2});
    let option = json!({"asset": 0, "kind": "put", "strike": 90.0, "expiry_years": 0.5});
    let problem = json!({"type": "options", "assets": [asset], "options": [option]});
    encoded(json!({"request_id": "live", "tenant": "desk", "seed": 5, "problem": problem}))
}

fn encoded(request: Value) -> Vec<u8> {
    let request: RiskRequest = serde_json::from_value(request).expect("a request");
    let mut value = Vec::new();
    encode_risk_request(&request, &mut value);
    value
}

fn requests() -> Vec<Vec<u8>> {
    let given = json!({"symbol": "given", "spot": 100.0, "volatility": 0.25});
    let option = json!({"asset": 0, "kind": "put", "strike": 90.0, "expiry_years": 0.5});
    let options = json!({"type": "options", "assets": [given], "options": vec![option; 40]});
    let simulation = json!({"type": "simulation", "assets": [given], "expiry_years": 1.0, "steps": 8,
                            "contract": {"type": "asian", "kind": "call", "strike": 105.0}, "paths_max": 40_000,
                            "standard_error": 0.02});
    let request = |(number, problem): (usize, Value)| {
        let request = json!({"request_id": format!("r-{number}"), "tenant": "desk", "seed": 5, "problem": problem,
                             "gang": number == 2, "deadline_ns": (number == 1).then_some(4_000_000_000_000_000_000_i64)});
        encoded(request)
    };
    [options.clone(), options, simulation].into_iter().enumerate().map(request).collect()
}

fn commands() -> Vec<Vec<u8>> {
    let commands = [
        ControlCommand::DrainLane(DrainLane { lane: 1 }),
        ControlCommand::UndrainLane(UndrainLane { lane: 1 }),
        ControlCommand::WeighLane(WeighLane { lane: 0, weight: 3 }),
        ControlCommand::WeighTenant(WeighTenant { tenant: "desk".to_owned(), weight: 2 }),
    ];
    let control = |(number, command)| {
        let (id, by) = (format!("c-{number}"), "somebody".to_owned());
        let mut value = Vec::new();
        encode_control(&Control { id, at_ns: 1, by, deadline_ns: i64::MAX, command }, &mut value);
        value
    };
    (0..).zip(commands).map(control).collect()
}

/// Records two process lives with all events that occur on processors.
fn record(folder: &TempDir) -> Arc<dyn EventLog> {
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
    let log: Arc<dyn EventLog> = Arc::new(log);
    for life in 0..2 {
        let market =
            SynthSource::new(SynthConfig { symbols: 6, ..SynthConfig::default() }).expect("a market");
        feed(&log, PARTITIONS, 8, market.skip(life * 400).take(400));
        send(&log, "risk.requests", 1, if life == 0 { requests() } else { vec![live_request(&log)] });
        send(&log, "control", 0, if life == 0 { commands() } else { Vec::new() });
        let mut config = config();
        if life == 0 {
            config.lanes = InjectedLanes::failing(2, 3);
        }
        run_to_end(&log, config);
    }
    log
}

/// True if a verification finds the log identical. The verification may fail because the log is unreadable, but must
/// not panic.
fn is_identical(log: &dyn EventLog) -> bool {
    let mut options = VerifyOptions::new(&Topics::new(""), &config().core.group);
    (options.outputs, options.sources.isa) = (true, Isa::Baseline);
    verify(log, &options, &mut |_| {}).is_ok_and(|report| report.is_identical())
}

/// Returns the entries as a forger would write them. Steps, states and hashes are recomputed, except for the state in
/// the entry `kept`; `None` if the scheduler rejects an input.
fn rewritten(records: &[Record], entries: &[JournalEntry], kept: usize) -> Option<Vec<Record>> {
    let (mut scheduler, mut writer) = (Scheduler::new(), JournalWriter::new());
    let mut state: Vec<u8> = Vec::new();
    let mut forged = Vec::with_capacity(entries.len());
    for (index, (entry, record)) in entries.iter().zip(records).enumerate() {
        let mut input = entry.input.clone();
        match &mut input {
            Input::Started(_) => scheduler = Scheduler::new(),
            Input::Checkpoint(part) if part.part == 0 => state = scheduler.checkpoint(),
            Input::Checkpoint(part) if index != kept => {
                part.state.0 = state.drain(..part.state.0.len().min(state.len())).collect();
            }
            _ => {}
        }
        let (state_hash, mut decisions) = (scheduler.state_hash(), Vec::new());
        scheduler.step(entry.at_ns, &input, &mut decisions).ok()?;
        let mut value = Vec::new();
        writer.append(entry.at_ns, &input, &decisions, state_hash, &mut value);
        forged.push(Record { value, ..record.clone() });
    }
    Some(forged)
}

/// The schema of the journal's inputs, and all named schemas by their names.
struct Schema {
    named: BTreeMap<String, Value>,
    input: Value,
}

impl Schema {
    fn read() -> Self {
        let text = include_str!("../../../schemas/avro/journal_entry.avsc");
        let schema: Value = serde_json::from_str(text).expect("a schema is JSON");
        let mut named = BTreeMap::new();
        collect(&schema, &mut named);
        let fields = schema["fields"].as_array().expect("a record has fields");
        let input = fields.iter().find(|field| field["name"] == "input").expect("an entry has an input");
        Self { input: input["type"].clone(), named }
    }

    fn resolve<'a>(&'a self, kind: &'a Value) -> &'a Value {
        kind.as_str().and_then(|name| self.named.get(name)).unwrap_or(kind)
    }

    /// Returns the names of all records that an input may contain, with their fields.
    fn records(&self) -> BTreeMap<String, Vec<String>> {
        let (mut found, mut open) = (BTreeMap::new(), vec![self.input.clone()]);
        while let Some(kind) = open.pop() {
            let kind = self.resolve(&kind).clone();
            match (&kind, kind["type"].as_str()) {
                (Value::Array(branches), _) => open.extend(branches.iter().cloned()),
                (_, Some("array")) => open.push(kind["items"].clone()),
                (_, Some("record")) => {
                    let name = kind["name"].as_str().expect("a record has a name").to_owned();
                    let fields = kind["fields"].as_array().expect("a record has fields");
                    let names = fields.iter().map(|field| field["name"].as_str().expect("a name").to_owned());
                    if found.insert(name, names.collect()).is_none() {
                        open.extend(fields.iter().map(|field| field["type"].clone()));
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Collects each leaf value (neither a record nor a list) within this value: its path, its record and field, and
    /// its schema.
    fn leaves(
        &self,
        kind: &Value,
        value: &Value,
        place: &(String, String),
        path: &str,
        found: &mut Vec<Leaf>,
    ) {
        let kind = self.resolve(kind);
        match (kind, kind["type"].as_str(), value) {
            // A union is either an option, or several records with the branch named in the value.
            (Value::Array(branches), _, _) if branches.iter().any(|branch| branch == "null") => {
                let branch = branches.iter().find(|branch| *branch != "null").expect("an option has a type");
                match value {
                    Value::Null => found.push(Leaf::new(place, path, branch)),
                    value => self.leaves(branch, value, place, path, found),
                }
            }
            (Value::Array(_), _, Value::Object(object)) => {
                let (name, inner) = object.iter().next().expect("a variant has a name");
                let branch = Value::String(name.clone());
                self.leaves(&branch, inner, place, &format!("{path}/{name}"), found);
            }
            (_, Some("record"), _) => {
                let record = kind["name"].as_str().expect("a record has a name").to_owned();
                for field in kind["fields"].as_array().expect("a record has fields") {
                    let name = field["name"].as_str().expect("a field has a name");
                    let place = (record.clone(), name.to_owned());
                    self.leaves(&field["type"], &value[name], &place, &format!("{path}/{name}"), found);
                }
            }
            (_, Some("array"), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.leaves(&kind["items"], item, place, &format!("{path}/{index}"), found);
                }
            }
            _ => found.push(Leaf::new(place, path, kind)),
        }
    }
}

fn collect(kind: &Value, named: &mut BTreeMap<String, Value>) {
    if let Some(name) = kind["name"].as_str().filter(|_| kind["type"].is_string())
        && (kind["fields"].is_array() || kind["symbols"].is_array())
    {
        named.insert(name.to_owned(), kind.clone());
    }
    match kind {
        Value::Array(items) => items.iter().for_each(|item| collect(item, named)),
        Value::Object(object) => object.values().for_each(|value| collect(value, named)),
        _ => {}
    }
}

/// A value within an input that has no parts.
#[derive(Clone, Debug)]
struct Leaf {
    place: (String, String),
    path: String,
    kind: Value,
}

impl Leaf {
    fn new(place: &(String, String), path: &str, kind: &Value) -> Self {
        Self { place: place.clone(), path: path.to_owned(), kind: kind.clone() }
    }

    /// Returns other values for the leaf's place.
    fn others(&self, value: &Value) -> Vec<Value> {
        if let Some(symbols) = self.kind["symbols"].as_array() {
            return symbols.iter().filter(|symbol| *symbol != value).cloned().collect();
        }
        match value {
            Value::Bool(value) => vec![json!(!value)],
            Value::Number(number) => {
                let number = number.as_i64().unwrap_or(0);
                [number.wrapping_add(1), number.wrapping_sub(1), number / 2, i32::MAX.into(), i64::MAX]
                    .into_iter()
                    .filter(|other| *other != number)
                    .map(|other| json!(other))
                    .collect()
            }
            Value::String(text) => vec![json!(format!("{text}x")), json!(text.get(1..).unwrap_or("y"))],
            _ => vec![json!(1), json!("x"), json!(true)],
        }
    }
}

/// Numbers of forgeries that were found, and of those that were not.
#[derive(Debug, Default)]
struct Outcome {
    found: usize,
    unnoticed: usize,
}

fn entries_max() -> usize {
    std::env::var("WARPTAPE_TEST_FORGERIES").ok().and_then(|text| text.parse().ok()).unwrap_or(ENTRIES)
}

/// Returns about `count` items, spread evenly over a list.
fn some_of<T>(all: &[T], count: usize) -> impl Iterator<Item = &T> {
    let step = all.len().div_ceil(count).max(1);
    all.iter().step_by(step)
}

#[test]
fn every_field_of_the_journal_is_in_the_table() {
    let records = Schema::read().records();
    let mut named = BTreeSet::new();
    for (record, fields) in &records {
        for field in fields {
            assert!(known(record, field).is_some(), "{record}.{field} is in no row of journal_fields");
            named.insert((record.as_str(), field.as_str()));
        }
    }
    for row in FIELDS {
        let is_there = |field: &&str| **field == *"*" || named.contains(&(row.record, *field));
        assert!(records.contains_key(row.record) && row.fields.iter().all(is_there), "{:?}", row.fields);
    }
    let schema = Schema::read();
    let inputs = schema.input.as_array().expect("an input is one of several");
    let of_input = |input: &Value| schema.resolve(input)["name"].as_str().expect("a record").to_owned();
    let inputs: BTreeSet<String> = inputs.iter().map(of_input).collect();
    assert_eq!(inputs, REMOVED.iter().map(|(name, _)| (*name).to_owned()).collect());
}

#[test]
fn forgeries_are_found_unless_nobody_can_know() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = record(&folder);
    let records = read_partition(log.as_ref(), "journal", 0);
    let decode = |record: &Record| decode_journal_entry(&record.value).expect("an entry");
    let entries: Vec<JournalEntry> = records.iter().map(decode).collect();
    assert!(
        rewritten(&records, &entries, usize::MAX).is_some_and(|same| same == records),
        "nothing is changed"
    );
    assert!(is_identical(log.as_ref()), "the log is whole");
    let schema = Schema::read();
    let mut places: BTreeMap<(String, String), Vec<(usize, Leaf)>> = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let value = serde_json::to_value(&entry.input).expect("an input is numbers and texts");
        let mut leaves = Vec::new();
        schema.leaves(&schema.input, &value, &Default::default(), "", &mut leaves);
        for leaf in leaves {
            places.entry(leaf.place.clone()).or_default().push((index, leaf));
        }
    }
    let mut outcomes: BTreeMap<(String, String), Outcome> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (place, all) in &places {
        for (index, leaf) in some_of(all, entries_max()) {
            let value = serde_json::to_value(&entries[*index].input).expect("an input is numbers and texts");
            let there = value.pointer(&leaf.path).expect("the leaf is of this input").clone();
            for other in leaf.others(&there) {
                let mut value = value.clone();
                *value.pointer_mut(&leaf.path).expect("it was there") = other.clone();
                let Ok(input) = serde_json::from_value::<Input>(value) else { continue };
                if input == entries[*index].input {
                    continue;
                }
                let mut forged = entries.clone();
                forged[*index].input = input;
                let is_found = is_found(log.as_ref(), &records, &forged, *index);
                let outcome = outcomes.entry(place.clone()).or_default();
                outcome.found += usize::from(is_found);
                outcome.unnoticed += usize::from(!is_found);
                if !is_found && known(&place.0, &place.1).is_some_and(Known::is_checked) {
                    wrong.push(format!("{}: {there} to {other} in entry {index}", leaf.path));
                }
            }
        }
    }
    let mut removed: BTreeMap<&str, Outcome> = BTreeMap::new();
    for (name, known) in REMOVED {
        let is_it = |(index, entry): (usize, &JournalEntry)| {
            let value = serde_json::to_value(&entry.input).expect("an input is numbers and texts");
            value.get(name).map(|_| index)
        };
        let all: Vec<usize> = entries.iter().enumerate().filter_map(is_it).collect();
        for index in some_of(&all, entries_max()) {
            let mut forged = entries.clone();
            forged.remove(*index);
            let is_found = is_found(log.as_ref(), &records, &forged, usize::MAX);
            let outcome = removed.entry(name).or_default();
            outcome.found += usize::from(is_found);
            outcome.unnoticed += usize::from(!is_found);
            if !is_found && known.is_checked() {
                wrong.push(format!("{name} of entry {index} was removed"));
            }
        }
    }
    let sum = |outcomes: &mut dyn Iterator<Item = &Outcome>| {
        outcomes.fold((0, 0), |(found, unnoticed), outcome| {
            (found + outcome.found, unnoticed + outcome.unnoticed)
        })
    };
    let (found, unnoticed) = sum(&mut outcomes.values().chain(removed.values()));
    eprintln!("{found} forgeries were found, {unnoticed} are of what nobody can know");
    for ((record, field), Outcome { found, unnoticed }) in &outcomes {
        eprintln!("{record}.{field}: {found} found, {unnoticed} not");
    }
    for (name, Outcome { found, unnoticed }) in &removed {
        eprintln!("without {name}: {found} found, {unnoticed} not");
    }
    assert!(wrong.is_empty(), "unnoticed: {wrong:#?}");
    assert_eq!(PANICS.load(Ordering::Relaxed), 0, "what is forged is told, and is no fault of the program");
    assert!(found > 200, "{found}");
}

/// Checks the table in `docs/anchors.md`. `WARPTAPE_UPDATE_DOCS=1 cargo test -p warptape-tests --test behaviour
/// documented` rewrites it.
#[test]
fn what_nobody_can_know_is_documented() {
    let (path, begin) = (concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/anchors.md"), "<!-- fields -->\n");
    let text = std::fs::read_to_string(path).expect("the page is there");
    let at = text.find(begin).expect("the table has a mark before it") + begin.len();
    let table = table();
    if std::env::var_os("WARPTAPE_UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{}{table}", &text[..at])).expect("the page is ours");
    } else {
        assert_eq!(&text[at..], table, "run with WARPTAPE_UPDATE_DOCS=1 to write it anew");
    }
}

fn table() -> String {
    let mut rows: Vec<(String, Known)> = Vec::new();
    for row in FIELDS {
        let names = row.fields.iter().map(|field| match *field {
            "*" => format!("`{}`", row.record),
            field => format!("`{}.{field}`", row.record),
        });
        rows.push((names.collect::<Vec<_>>().join(", "), row.known));
    }
    rows.extend(REMOVED.iter().map(|(name, known)| (format!("a removed entry `{name}`"), *known)));
    let of = |is_checked: bool| {
        let rows = rows.iter().filter(|(_, known)| known.is_checked() == is_checked);
        rows.map(|(names, known)| format!("| {names} | {} |\n", known.words())).collect::<String>()
    };
    let head = |second: &str| format!("| field | {second} |\n| --- | --- |\n");
    format!(
        "\n### Checked\n\n{}{}\n### Not checked\n\n{}{}",
        head("compared with"),
        of(true),
        head("why it cannot be checked"),
        of(false)
    )
}

fn is_found(log: &dyn EventLog, records: &[Record], forged: &[JournalEntry], kept: usize) -> bool {
    let Some(forged) = rewritten(records, forged, kept) else { return true };
    // A forger can also change the group's offset of the journal.
    let end = forged.len() as i64;
    let log = Tampered::new(log, "journal", 0, forged).with_committed(end);
    // If this panicked, every command that reads such a journal would panic.
    let found = catch_unwind(AssertUnwindSafe(|| !is_identical(&log)));
    found.unwrap_or_else(|_| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        false
    })
}
