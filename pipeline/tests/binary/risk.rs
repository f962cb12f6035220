//! `warptape risk` beside a running pipeline: every example is answered, errors are printed, and no command waits
//! forever.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use serde_json::Value;
use warptape_eventlog::{Durability, EventLog, SqliteLog, TopicSpec};
use warptape_schemas::journal::Decision;
use warptape_schemas::registry_id_of;

use super::outputs::records;
use super::processes::{Running, WARPTAPE, ends, folder, run_until_drained, texts, warptape};
use super::registry_stub::RegistryStub;

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
const OPTION: [&str; 7] = ["price", "--kind", "call", "--strike", "100", "--expiry-days", "30"];
const GIVEN: [&str; 4] = ["--spot", "100", "--volatility", "0.2"];

/// Arguments with a long timeout, because a busy machine needs time.
const PATIENCE: [&str; 2] = ["--timeout-s", "120"];

fn risk<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let patience = if arguments.contains(&PATIENCE[0]) { &[][..] } else { &PATIENCE };
    [&["risk"], arguments, patience, &LOG].concat()
}

#[track_caller]
fn ask(folder: &Path, arguments: &[&str], code: i32) -> (String, String) {
    texts(&warptape(folder, &risk(arguments)), code)
}

#[track_caller]
fn ask_json(folder: &Path, arguments: &[&str], code: i32) -> Value {
    let (out, error) = ask(folder, &[arguments, &["-o", "json"]].concat(), code);
    serde_json::from_str(&out).unwrap_or_else(|problem| panic!("{problem}: {out}{error}"))
}

/// Creates a log with a market, and a pipeline that has read all of it.
fn market(folder: &Path) -> (SqliteLog, Running) {
    let feed = [&["feed", "synth", "--symbols", "5", "--ticks", "80000"][..], &LOG].concat();
    texts(&warptape(folder, &feed), 0);
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log");
    let mut run = Running::start(folder, &[&["run"][..], &LOG].concat());
    run_until_drained(&mut run, &log, "warptape");
    (log, run)
}

/// Creates a log with all topics but without records.
fn silent(folder: &Path) -> SqliteLog {
    texts(&warptape(folder, &[&["topics", "create"][..], &LOG].concat()), 0);
    SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log")
}

fn examples() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/risk");
    let files = std::fs::read_dir(folder).expect("examples").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect();
    files.sort();
    files
}

#[test]
fn every_example_is_answered() {
    let folder = folder();
    let (_log, run) = market(folder.path());
    let files = examples();
    assert!(!files.is_empty());
    for path in &files {
        // A file's name begins with the name of its command.
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name in UTF-8");
        let command = name.split('_').next().expect("a first word");
        let path = path.to_str().expect("a path in UTF-8");
        let result = ask_json(folder.path(), &[command, path], 0);
        assert!(!result["devices"].as_array().expect("devices").is_empty(), "{name}: {result}");
        let (table, _) = ask(folder.path(), &[command, path], 0);
        assert!(table.contains("\nseed ") && table.contains("\ndecision "), "{name}: {table}");
    }
    run.stop("TERM");
    // The replay computes each answer again.
    let (told, _) =
        texts(&warptape(folder.path(), &[&["replay", "verify", "--outputs"][..], &LOG].concat()), 0);
    assert!(told.contains(&format!(" {} risk results: identical", 2 * files.len())), "{told}");
}

/// Writes a table of text as Parquet. If all cells of a column are numbers or truth values, the column gets that type.
fn write_parquet(text: &str, path: &Path) {
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let (header, rows) = lines.split_first().expect("a header");
    let column = |(place, name): (usize, &&str)| -> (String, ArrayRef) {
        let cells = rows.iter().map(|row| Some(row[place]).filter(|cell| !cell.is_empty()));
        let is_of = |kind: fn(&str) -> bool| cells.clone().flatten().all(kind);
        let array: ArrayRef = if is_of(|cell| cell.parse::<f64>().is_ok()) {
            Arc::new(cells.map(|cell| cell.and_then(|cell| cell.parse().ok())).collect::<Float64Array>())
        } else if is_of(|cell| cell == "yes") {
            Arc::new(cells.map(|cell| Some(cell.is_some())).collect::<BooleanArray>())
        } else {
            Arc::new(cells.collect::<StringArray>())
        };
        ((*name).to_owned(), array)
    };
    let batch = RecordBatch::try_from_iter(header.iter().enumerate().map(column)).expect("columns");
    let file = std::fs::File::create(path).expect("a file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a writer");
    writer.write(&batch).expect("written");
    writer.close().expect("closed");
}

#[test]
fn rows_of_csv_and_of_parquet_are_answered_alike() {
    let folder = folder();
    let _log = silent(folder.path());
    let run = Running::start(folder.path(), &[&["run"][..], &LOG].concat());
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/risk");
    let example = |name: &str| examples.join(name).to_str().expect("a path in UTF-8").to_owned();
    let as_parquet = |name: &str| {
        let text = std::fs::read_to_string(example(&format!("rows/{name}.csv"))).expect("an example");
        let path = folder.path().join(format!("{name}.parquet"));
        write_parquet(&text, &path);
        path.to_str().expect("a path in UTF-8").to_owned()
    };
    let (contracts, book) = (as_parquet("contracts"), as_parquet("book"));
    let (of_contracts, of_book) = (example("rows/contracts.csv"), example("rows/book.csv"));
    let var = example("var_americans.json");
    for (csv, parquet, rows, count) in [
        (vec!["greeks", &of_contracts], vec!["greeks", &contracts], "values", 5),
        (vec!["price", &of_contracts], vec!["price", &contracts], "values", 5),
        (vec!["var", &var, "--positions", &of_book], vec!["var", &var, "--positions", &book], "positions", 4),
    ] {
        let [csv, parquet] =
            [csv, parquet].map(|command| ask_json(folder.path(), &command, 0)["outcome"].take());
        assert_eq!(csv, parquet);
        let rows = parquet[rows].as_array().expect("rows");
        assert_eq!(rows.len(), count, "{parquet}");
        assert!(rows.iter().all(|row| row["error"] == ""), "{parquet}");
    }
    // An error names the row.
    let bad = folder.path().join("bad.parquet");
    write_parquet(
        "id,kind,strike,expiry_days,spot,volatility\na,call,100,10,100,0.2\nb,call,NaN,10,100,0.2\n",
        &bad,
    );
    let (_, error) = ask(folder.path(), &["price", bad.to_str().expect("a path in UTF-8")], 2);
    assert!(error.contains("bad.parquet: row 2, column `strike`: `NaN` is not a number"), "{error}");
    run.stop("TERM");
    let (told, _) =
        texts(&warptape(folder.path(), &[&["replay", "verify", "--outputs"][..], &LOG].concat()), 0);
    assert!(told.contains(" 6 risk results: identical"), "{told}");
}

#[test]
fn a_result_names_its_market_and_its_decision() {
    let folder = folder();
    let (_log, run) = market(folder.path());
    let flags = [&OPTION[..], &["--symbol", "SYNTH:AAAA", "--request-id", "mine"]].concat();
    let (table, _) = ask(folder.path(), &flags, 0);
    assert!(table.starts_with("KIND  "), "{table}");
    let line = |name: &str| {
        let found = table.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{name} is missing in:\n{table}")).trim().to_owned()
    };
    let as_of = line("as of ");
    assert!(as_of.starts_with("SYNTH:AAAA, spot ") && as_of.contains(", volatility 0."), "{as_of}");
    assert!(line("time ").starts_with("queued "), "{table}");
    assert!(line("devices ").starts_with("cpu:"), "{table}");

    // The command named in the output shows the decision.
    let decision = line("decision ");
    let (sequence, command) = decision.split_once(": ").expect("a command");
    let path = Path::new(WARPTAPE).parent().expect("a folder").to_str().expect("UTF-8").to_owned();
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder.path())
        .env("PATH", format!("{path}:{}", std::env::var("PATH").expect("a path")))
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let entry: Value = serde_json::from_str(&texts(&output, 0).0).expect("one line of JSON");
    assert_eq!(format!("sequence {}", entry["record"]["sequence"]), sequence);
    assert_eq!(entry["record"]["input"]["TaskArrived"]["request_id"], "mine", "{entry}");

    // The same numbers, given as arguments, give the same price, to the bit. A repeated request is not answered twice.
    let first = ask_json(folder.path(), &flags, 1);
    assert_eq!(
        (&first["outcome"]["code"], &first["outcome"]["field"]),
        (&"DUPLICATE".into(), &"request_id".into())
    );
    let market = ask_json(folder.path(), &[&OPTION[..], &["--symbol", "SYNTH:AAAA"]].concat(), 0);
    let taken = |field: &str| market["as_of"][0][field].to_string();
    let (spot, volatility) = (taken("spot"), taken("volatility"));
    let given = [&OPTION[..], &["--spot", &spot, "--volatility", &volatility]].concat();
    let given = ask_json(folder.path(), &given, 0);
    assert_eq!(market["outcome"], given["outcome"]);
    assert_eq!(given["as_of"], Value::Array(Vec::new()));
    run.stop("TERM");
}

#[test]
fn a_sweep_takes_recorded_bars() {
    let folder = folder();
    let (_log, run) = market(folder.path());
    let rules = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/risk/rules/grid.json");
    let rules = rules.to_str().expect("UTF-8");
    let flags = ["sweep", "--symbols", "SYNTH:AAAA,SYNTH:AAAB", "--bars", "1s", "--rules", rules];
    let result = ask_json(folder.path(), &flags, 0);
    // There are 3 × 2 crosses, and 2 cells of each other kind.
    assert_eq!(result["outcome"]["cells"].as_array().map(Vec::len), Some(12), "{result}");
    let unknown = ["sweep", "--symbols", "SYNTH:ZZZZ", "--bars", "1s", "--rules", rules];
    let (_, error) = ask(folder.path(), &unknown, 2);
    assert!(error.contains("signals has no closed 1s bar of SYNTH:ZZZZ"), "{error}");
    run.stop("TERM");
}

#[test]
fn an_error_result_is_told_and_is_exit_1() {
    let folder = folder();
    let (_log, run) = market(folder.path());
    let unknown = [&OPTION[..], &["--symbol", "SYNTH:ZZZZ"]].concat();
    let (out, error) = ask(folder.path(), &unknown, 1);
    assert!(out.is_empty(), "{out}");
    assert!(
        error.starts_with("error: UNKNOWN_SYMBOL problem.assets[0].symbol: no tick of SYNTH:ZZZZ"),
        "{error}"
    );
    let bad = [&OPTION[..], &["--spot", "100", "--volatility", "1000"]].concat();
    let (_, error) = ask(folder.path(), &bad, 1);
    assert!(error.starts_with("error: BAD_PARAMETER problem.assets[0].volatility"), "{error}");
    run.stop("TERM");
}

#[test]
fn who_waits_in_vain_is_told_what_to_do_and_where_the_answer_will_be() {
    let folder = folder();
    let log = silent(folder.path());
    let flags = [&OPTION[..], &GIVEN, &["--request-id", "early", "--timeout-s", "1"]].concat();
    let (out, error) = ask(folder.path(), &flags, 1);
    assert!(out.is_empty(), "{out}");
    for part in [
        "no pipeline runs on sqlite:w.db; waiting for one for at most 1 s: start it with `warptape run --log sqlite:w.db`\n",
        "no result of early within 1 s",
        "the request was cancelled, unless it was answered meanwhile",
        "`warptape tail risk.results --from-beginning --log sqlite:w.db`",
    ] {
        assert!(error.contains(part), "{part:?} is missing in: {error}");
    }

    // A pipeline does not compute abandoned requests.
    let mut run = Running::start(folder.path(), &[&["run"][..], &LOG].concat());
    let count = |topic: &str| ends(&log, topic).iter().sum::<i64>();
    run.run_until("both results", || (count("risk.results") > 1).then_some(()));
    run.stop("TERM");
    let tail = |topic: &str| {
        let arguments = [&["tail", topic, "--from-beginning", "--exit-at-end"][..], &LOG].concat();
        texts(&warptape(folder.path(), &arguments), 0).0
    };
    let requests = tail("risk.requests");
    assert!(requests.contains(" early ") && requests.contains(" OptionValues\n"), "{requests}");
    let results = tail("risk.results");
    assert!(results.contains(" early ") && results.contains(" cancelled by request "), "{results}");
    assert!(results.contains(" OptionResult: 0 options\n"), "{results}");
    let lifecycle = tail("lifecycle");
    assert!(
        lifecycle.contains("2 requests had no answer when the partition came: [\"early\""),
        "{lifecycle}"
    );
}

#[test]
fn others_are_answered_beside_the_largest_request_and_it_is_cancelled() {
    let folder = folder();
    let log = silent(folder.path());
    let run = Running::start(folder.path(), &[&["run"][..], &LOG].concat());
    // The request takes minutes of one core.
    let long = ["--contract", "asian", "--steps", "1000", "--paths", "30000000", "--class", "critical"];
    let long = [&OPTION[..], &GIVEN, &long, &["--request-id", "long", "--timeout-s", "1000"]].concat();
    let mut asking = Running::start(folder.path(), &risk(&long));
    let begun = || {
        let partitions = 0..ends(&log, "journal").len() as i32;
        let mut all = partitions.flat_map(|partition| records(&log, "journal", partition));
        let is_slice = |record: &warptape_eventlog::Record| {
            let entry = warptape_schemas::decode_journal_entry(&record.value).expect("an entry");
            entry.decisions.iter().any(|decision| matches!(decision, Decision::RunSlice(_)))
        };
        all.any(|record| is_slice(&record)).then_some(())
    };
    asking.run_until("a slice of the long request", begun);
    for class in ["critical", "interactive", "batch"] {
        let beside = [&OPTION[..], &GIVEN, &["--class", class]].concat();
        let answer = ask_json(folder.path(), &beside, 0);
        assert_eq!(answer["outcome"]["type"], "options", "{answer}");
    }
    let (cancelled, _) = ask(folder.path(), &["cancel", "long"], 0);
    assert!(cancelled.starts_with("long is cancelled\n"), "{cancelled}");
    let (status, out, error) = asking.finish();
    assert_eq!((status.code(), out.as_str()), (Some(1), ""), "{error}");
    assert!(error.contains("error: EXPIRED: cancelled by request "), "{error}");
    let (_, error) = ask(folder.path(), &["cancel", "long"], 1);
    assert!(error.contains("no request long waits for an answer"), "{error}");
    run.stop("TERM");
    let (report, _) =
        texts(&warptape(folder.path(), &[&["replay", "verify", "--outputs"][..], &LOG].concat()), 0);
    assert!(report.contains("risk results: identical"), "{report}");
}

#[test]
fn a_standard_error_that_is_missed_is_exit_3_and_a_request_of_hours_is_refused() {
    let folder = folder();
    let _log = silent(folder.path());
    let run = Running::start(folder.path(), &[&["run"][..], &LOG].concat());
    let simulation = |paths: &'static str, steps: &'static str| {
        let flags = ["--contract", "asian", "--steps", steps, "--paths", paths, "--standard-error", "1e-9"];
        [&OPTION[..], &GIVEN, &flags].concat()
    };
    let (out, error) = ask(folder.path(), &simulation("512", "2"), 3);
    assert!(out.contains("missed     the standard error is greater"), "{out}");
    assert!(error.contains("after 512 samples, but 1e-9 was requested: raise paths_max"), "{error}");
    let (_, error) = ask(folder.path(), &simulation("200000000", "65536"), 1);
    assert!(error.contains("error: BAD_PARAMETER problem: estimated to take 131072"), "{error}");
    run.stop("TERM");
}

#[test]
fn a_mistake_in_a_file_is_told_with_its_path() {
    let folder = folder();
    let check = |problem: Value, expected: &str| {
        let text = serde_json::json!({"problem": problem}).to_string();
        std::fs::write(folder.path().join("request.json"), text).expect("a file");
        let (_, error) = ask(folder.path(), &["var", "request.json"], 2);
        assert!(error.contains(expected), "{expected} is missing in: {error}");
    };
    let asset = serde_json::json!({"symbol": "A", "spot": 1.0, "volatility": 0.1});
    let position = |quantity: Value, asset: Value| {
        serde_json::json!({"type": "portfolio", "assets": [asset], "books": [{"name": "all"}],
            "positions": [{"name": "p", "book": 0, "quantity": quantity,
                           "instrument": {"type": "forward", "asset": 0, "strike": 1.0}}],
            "measure": {"type": "historical", "confidence": "high", "returns": [0.1]}})
    };
    check(serde_json::json!({"assets": []}), "not a risk request: problem: missing field `type`");
    check(position(1.into(), asset.clone()), "problem.measure.confidence: invalid type: string \"high\"");
    let mut wrong = position("ten".into(), asset.clone());
    wrong["measure"]["confidence"] = 0.9.into();
    check(wrong.clone(), "problem.positions[0].instrument: missing field `expiry_years`");
    wrong["positions"][0]["instrument"]["expiry_years"] = 1.into();
    check(wrong.clone(), "problem.positions[0].quantity: invalid type: string \"ten\"");
    wrong["assets"][0]["spot"] = "1".into();
    wrong["positions"][0]["quantity"] = 1.into();
    check(wrong, "problem.assets[0].spot: a number, or {\"from\": \"market\"}");
    check(serde_json::json!({"type": "guess"}), "problem.type: unknown variant `guess`");
}

#[test]
fn an_interrupt_ends_the_wait() {
    let folder = folder();
    let log = silent(folder.path());
    let arguments = risk(&[&OPTION[..], &GIVEN, &["--timeout-s", "1000"]].concat());
    let mut asking = Running::start(folder.path(), &arguments);
    let sent = || ends(&log, "risk.requests").iter().any(|&end| end > 0).then_some(());
    asking.run_until("the request is sent", sent);
    asking.signal("INT");
    let (status, out, error) = asking.finish();
    assert_eq!((status.code(), out.as_str()), (Some(1), ""), "{error}");
    assert!(error.contains("interrupted before there was a result"), "{error}");
}

#[test]
fn what_cannot_be_asked_is_exit_2_and_makes_no_log() {
    let folder = folder();
    let (_, error) = ask(folder.path(), &[&OPTION[..], &GIVEN].concat(), 2);
    assert!(error.contains("w.db"), "{error}");
    let (_, error) = ask(folder.path(), &["price"], 2);
    assert!(error.contains("give FILE, or an option by flags"), "{error}");
    let stress = examples().into_iter().find(|path| path.ends_with("stress.json")).expect("an example");
    let (_, error) = ask(folder.path(), &["var", stress.to_str().expect("UTF-8")], 2);
    assert!(error.contains("use `warptape risk stress`"), "{error}");
    assert!(!folder.path().join("w.db").exists());

    let log = SqliteLog::open(folder.path().join("w.db"), Durability::Process).expect("a log");
    let (_, error) = ask(folder.path(), &[&OPTION[..], &GIVEN].concat(), 2);
    assert!(
        error.contains("no topic risk.requests")
            && error.contains("`warptape topics create --log sqlite:w.db`")
    );
    let topic =
        |name: &str, partitions: i32| TopicSpec { name: name.to_owned(), partitions, ..TopicSpec::default() };
    log.create_topics(&[topic("risk.requests", 2), topic("risk.results", 3)]).expect("new topics");
    let (_, error) = ask(folder.path(), &[&OPTION[..], &GIVEN].concat(), 2);
    assert!(error.contains("risk.requests 2 and risk.results 3: the numbers must be equal"), "{error}");
}

#[test]
fn with_a_registry_requests_and_results_are_in_its_frame() {
    let stub = RegistryStub::start(None);
    let folder = folder();
    let text = format!("[schema_registry]\nurl = \"{}\"\n", stub.url());
    std::fs::write(folder.path().join("w.toml"), text).expect("a file");
    let log = silent(folder.path());
    let run = Running::start(folder.path(), &[&["run", "-c", "w.toml"][..], &LOG].concat());
    let result = ask_json(folder.path(), &[&OPTION[..], &GIVEN, &["-c", "w.toml"]].concat(), 0);
    assert_eq!(result["outcome"]["type"], "options", "{result}");
    run.stop("TERM");
    for topic in ["risk.requests", "risk.results"] {
        let partitions = 0..ends(&log, topic).len() as i32;
        let all: Vec<_> = partitions.flat_map(|partition| records(&log, topic, partition)).collect();
        let ids: Vec<_> = all.iter().map(|record| registry_id_of(&record.value)).collect();
        assert!(ids.len() == 1 && ids[0].is_some(), "{topic}: {ids:?}");
    }
}

/// Requests from before a pipeline's start are answered while it catches up. A request with a symbol that has no ticks
/// yet waits until all existing ticks are read. Then the symbol has a bad row in it.
#[test]
fn answers_of_a_catch_up_verify_and_symbols_not_read_yet_are_waited_for() {
    let folder = folder();
    let feed = [&["feed", "synth", "--symbols", "5", "--ticks", "400000"][..], &LOG].concat();
    texts(&warptape(folder.path(), &feed), 0);
    let log = SqliteLog::open(folder.path().join("w.db"), Durability::Process).expect("a log");
    let request = |symbols: &[&str]| {
        let asset = |symbol: &&str| serde_json::json!({"symbol": symbol, "spot": {"from": "market"}, "volatility": 0.2});
        let option = |asset: usize| serde_json::json!({"asset": asset, "kind": "put", "strike": 60.0, "expiry_years": 0.5});
        let assets: Vec<Value> = symbols.iter().map(asset).collect();
        let options: Vec<Value> = (0..symbols.len()).map(option).collect();
        serde_json::json!({"problem": {"type": "options", "assets": assets, "options": options}}).to_string()
    };
    let files = [("one.json", &["SYNTH:AAAA"][..]), ("two.json", &["SYNTH:AAAA", "X:NONE"])];
    let asking = files.map(|(name, symbols)| {
        std::fs::write(folder.path().join(name), request(symbols)).expect("a writable folder");
        Running::start(folder.path(), &[&risk(&["greeks", name])[..], &["-o", "json"]].concat())
    });
    let mut run = Running::start(folder.path(), &[&["run"][..], &LOG].concat());
    let [one, two] = asking.map(|asking| {
        let (status, out, error) = asking.finish();
        assert!(status.success(), "{out}{error}");
        serde_json::from_str::<Value>(&out).expect("a result")
    });
    let as_of = |result: &Value| {
        assert_eq!(result["as_of"].as_array().map(Vec::len), Some(1), "{result}");
        let number = |name: &str| result["as_of"][0][name].as_i64().expect("a number");
        (number("partition"), number("next_offset"))
    };
    let (partition, next_offset) = as_of(&two);
    assert_eq!(next_offset, ends(&log, "ticks")[partition as usize], "{two}");
    assert!(as_of(&one).1 <= next_offset, "{one}");
    let error = two["outcome"]["values"][1]["error"].as_str().expect("a bad row");
    assert!(error.starts_with("problem.assets[1].symbol: no tick of X:NONE"), "{error}");
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
    let verify = [&["replay", "verify", "--outputs"][..], &LOG].concat();
    let (told, _) = texts(&warptape(folder.path(), &verify), 0);
    assert!(told.contains(" 2 risk results: identical"), "{told}");
}
