//! `mcp`: the tools answer like the commands, hostile arguments have no effect, and nothing is written without the
//! flag.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::endpoint::{get, url_of};
use super::files_of_logs::copy_log;
use super::mcp_client::Client;
use super::processes::{DEADLINE, Running, folder, texts, warptape, warptape_with};

const READING: [&str; 9] =
    ["report", "verify", "slowest", "why", "why_not", "diff", "what_if", "topics", "tail"];
const DEVICES: (&str, &str) = ("WARPTAPE__ENGINE__DEVICES", "cpu:2");
const SEED: (&str, &str) = ("WARPTAPE__SCHEDULER__PLACEMENT_SEED", "99");

/// Returns a folder with two runs over the same ticks, `a.db` and `b.db`, which place groups differently.
fn two_runs() -> TempDir {
    let folder = folder();
    let path = folder.path();
    let feed = ["feed", "synth", "--symbols", "40", "--ticks", "30000", "--log", "sqlite:a.db"];
    texts(&warptape(path, &feed), 0);
    copy_log(&path.join("a.db"), &path.join("b.db"));
    for (log, settings) in [("sqlite:a.db", &[DEVICES][..]), ("sqlite:b.db", &[DEVICES, SEED])] {
        let run = ["run", "--until-caught-up", "--close", "--log", log];
        texts(&warptape_with(path, &run, settings), 0);
    }
    folder
}

/// Returns the contents of all files, except segments of logs. SQLite's own files beside a log are omitted as well,
/// because readers create and remove them.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry"));
    let named = entries.map(|entry| (entry.file_name().into_string().expect("UTF-8"), entry.path()));
    let lasting =
        named.filter(|(name, path)| path.is_file() && !name.ends_with("-wal") && !name.ends_with("-shm"));
    lasting.map(|(name, path)| (name, fs::read(path).expect("a file"))).collect()
}

/// Runs a command on `a.db`, and returns its output.
#[track_caller]
fn printed(folder: &Path, command: &[&str], code: i32) -> String {
    texts(&warptape(folder, &[command, &["--log", "sqlite:a.db"]].concat()), code).0
}

#[track_caller]
fn json_of(folder: &Path, command: &[&str], code: i32) -> Value {
    serde_json::from_str(&printed(folder, &[command, &["-o", "json"]].concat(), code)).expect("JSON")
}

#[test]
fn tools_answer_as_the_commands_do() {
    let folder = two_runs();
    let path = folder.path();
    let before = contents(path);
    let arguments = ["--log", "sqlite:a.db", "--other-log", "b.db", "--other-log", "sqlite:missing.db"];
    let (mut client, hello) = Client::start(path, &arguments, &[]);
    assert_eq!(hello["serverInfo"]["name"], "warptape");
    assert!(
        hello["instructions"].as_str().is_some_and(|text| text.contains("Start with `report`")),
        "{hello}"
    );
    let tools = client.tools();
    assert_eq!(tools.keys().map(String::as_str).collect::<Vec<_>>(), {
        let mut expected = READING.to_vec();
        expected.sort_unstable();
        expected
    });
    for (name, tool) in &tools {
        assert_eq!(
            (&tool["annotations"]["readOnlyHint"], &tool["annotations"]["destructiveHint"]),
            (&json!(true), &json!(false)),
            "{name}"
        );
        let schema = &tool["inputSchema"];
        assert_eq!(
            (&schema["type"], &schema["additionalProperties"]),
            (&json!("object"), &json!(false)),
            "{name}"
        );
        assert_eq!(
            schema["properties"]["log"]["enum"],
            json!(["sqlite:a.db", "sqlite:b.db", "sqlite:missing.db"])
        );
        for (parameter, property) in schema["properties"].as_object().expect("properties") {
            assert!(
                property["description"].as_str().is_some_and(|text| !text.is_empty()),
                "{name}: {parameter}"
            );
        }
    }
    assert_eq!(tools["why"]["inputSchema"]["required"], json!(["subject"]));

    let verified = json_of(path, &["replay", "verify", "--outputs"], 0);
    assert_eq!(client.facts("verify", json!({"outputs": true})), verified);
    let slowest = json_of(path, &["replay", "slowest", "3", "--since", "sequence:0"], 0);
    assert_eq!(slowest["signals"].as_array().map(Vec::len), Some(3));
    let window = json!({"count": 3, "since": "sequence:0"});
    assert_eq!(client.facts("slowest", window), slowest);
    let report = client.facts("report", json!({"outputs": true, "slowest": 3, "since": "sequence:0"}));
    assert_eq!(report, json!({"verified": verified, "slowest": slowest}));

    let signal = &slowest["signals"][0]["chain"]["signal"];
    let signal = format!("signal:{}:{}", signal["partition"], signal["offset"]);
    for subject in [signal.as_str(), "2", "batch:1", "SYNTH:AAAA"] {
        let facts = client.facts("why", json!({"subject": subject}));
        assert_eq!(facts, json_of(path, &["replay", "why", subject], 0), "{subject}");
        let words = client.text("why", json!({"subject": subject, "form": "text", "partition": 0}));
        assert_eq!(words, printed(path, &["replay", "why", subject], 0), "{subject}");
    }
    let facts = client.facts("why_not", json!({"lane": "cpu:1", "at": "5"}));
    assert_eq!(facts, json_of(path, &["replay", "why-not", "cpu:1", "--at", "5"], 0));
    // A difference between the two logs is an answer, not an error.
    let facts = client.facts("diff", json!({"with": "sqlite:a.db", "log": "sqlite:b.db"}));
    assert_eq!(facts, json_of(path, &["replay", "diff", "a.db", "b.db"], 1));
    let facts =
        client.facts("what_if", json!({"slow": ["cpu:1=3x"], "set": ["row_deadline_us=20000"], "seeds": 2}));
    let what_if =
        ["replay", "what-if", "--slow", "cpu:1=3x", "--set", "row_deadline_us=20000", "--seeds", "2"];
    assert_eq!(facts, json_of(path, &what_if, 0));
    assert_eq!(client.text("topics", json!({})), printed(path, &["topics"], 0));
    tails(path, &mut client);

    // Errors are the command's own, without its hint at `--help`.
    for (tool, arguments, command) in [
        ("slowest", json!({"since": "yesterday"}), &["replay", "slowest", "--since", "yesterday"][..]),
        ("why", json!({"subject": "SYNTH:NONE"}), &["replay", "why", "SYNTH:NONE"]),
        ("what_if", json!({"set": ["nothing=1"]}), &["replay", "what-if", "--set", "nothing=1"]),
    ] {
        let refusal = client.refusal(tool, arguments);
        let (_, said) = texts(&warptape(path, &[command, &["--log", "sqlite:a.db"]].concat()), 2);
        assert!(said.contains(&refusal) && !refusal.contains("--help"), "{refusal}\n{said}");
    }
    assert!(
        client.refusal("verify", json!({"log": "sqlite:missing.db"})).contains("missing.db: no such file")
    );
    assert!(
        client.refusal("report", json!({"log": "sqlite:missing.db"})).contains("missing.db: no such file")
    );
    assert_eq!(client.end(), Some(0));
    assert!(contents(path) == before, "a tool has changed a file");
}

/// The tool returns the same records as the command, from either end.
fn tails(path: &Path, client: &mut Client) {
    let all = printed(path, &["tail", "signals", "--from-beginning", "--exit-at-end", "-o", "json"], 0);
    let all: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let by_place = |records: &[Value]| {
        let place = |record: &Value| (record["partition"].as_i64(), record["offset"].as_i64());
        records.iter().map(|record| (place(record), record.clone())).collect::<BTreeMap<_, _>>()
    };
    let known = by_place(&all);
    for from in ["oldest", "newest"] {
        let facts = client.facts("tail", json!({"topic": "signals", "count": 7, "from": from}));
        let records = facts["records"].as_array().expect("a list");
        assert_eq!((records.len(), &facts["has_more"]), (7, &json!(true)), "{from}");
        for (place, record) in by_place(records) {
            assert_eq!(known.get(&place), Some(&record), "{from}");
        }
    }
    let facts = client.facts("tail", json!({"topic": "signals", "count": 500, "symbol": "SYNTH:AAAA"}));
    let expected: Vec<Value> =
        all.iter().filter(|record| record["record"]["symbol"] == "SYNTH:AAAA").cloned().collect();
    assert!(!expected.is_empty() && expected.len() < 500, "{}", expected.len());
    assert_eq!(by_place(facts["records"].as_array().expect("a list")), by_place(&expected));
    assert_eq!(facts["has_more"], false);
    let facts = client.facts("tail", json!({"topic": "dead-letter"}));
    assert_eq!(facts, json!({"records": [], "has_more": false}));
    // A notice of the command is part of the answer.
    let result = client.call("tail", json!({"topic": "signals", "symbol": "SYNTH:NONE"}));
    let notice = result["content"][1]["text"].as_str().expect("a notice");
    assert!(notice.contains("has no record of \"SYNTH:NONE\""), "{notice}");
}

#[test]
fn hostile_arguments_do_nothing() {
    let folder = two_runs();
    let path = folder.path();
    fs::write(path.join("net"), "a file").expect("a file");
    let before = contents(path);
    let mut client = Client::of_a(path);
    for (tool, arguments, expected) in [
        ("slowest", json!({"since": "--to=x.html"}), "since: \"--to=x.html\": it begins with `-`"),
        ("slowest", json!({"since": "-cnet"}), "it begins with `-`"),
        ("why", json!({"subject": "--config=net"}), "subject: \"--config=net\": it begins with `-`"),
        ("why", json!({"subject": "-h"}), "it begins with `-`"),
        (
            "why",
            json!({"subject": "42\n--log=b.db"}),
            "subject: \"42\\n--log=b.db\": it has control characters",
        ),
        ("why", json!({"subject": "42\u{0}"}), "it has control characters"),
        ("why", json!({"subject": ""}), "subject: \"\": it is empty"),
        ("why", json!({"subject": "x".repeat(2_000)}), "it is too long"),
        ("why", json!({"subject": "/etc/passwd"}), "give a sequence such as 42"),
        ("why", json!({"subject": "$(touch x)"}), "give a sequence such as 42"),
        ("why", json!({"subject": 42}), "subject: invalid type"),
        ("why", json!({}), "subject"),
        ("report", json!({"to": "x.html"}), "\"to\": no such argument; the arguments are: "),
        ("report", json!({"name": "x"}), "\"name\": no such argument"),
        ("what_if", json!({"to": "x.db"}), "\"to\": no such argument"),
        ("what_if", json!({"policy": "dqn:net"}), "policy: a file of a network cannot be read here"),
        ("what_if", json!({"policy": "dqn:/etc/passwd"}), "policy: a file of a network cannot be read here"),
        ("what_if", json!({"slow": ["cpu:1=2x", "--to=x.db"]}), "slow: \"--to=x.db\": it begins with `-`"),
        ("what_if", json!({"set": vec!["a=b"; 65]}), "set: 65 values; give at most 64"),
        ("what_if", json!({"seeds": 1_000_000}), "seeds: 1000000 is not in 2..=100"),
        ("slowest", json!({"count": 0}), "count: 0 is not in 1..=100"),
        ("slowest", json!({"partition": -1}), "partition: -1 is less than 0"),
        ("slowest", json!({"form": "yaml"}), "form: \"yaml\" is no form; give json or text"),
        ("verify", json!({"log": "sqlite:b.db"}), "log: \"sqlite:b.db\" is not a log that may be read here"),
        ("verify", json!({"log": "kafka:elsewhere:9092"}), "the logs are: sqlite:a.db"),
        ("verify", json!({"log": 7}), "log: 7 is no text"),
        ("diff", json!({"with": "b.db"}), "with: \"b.db\" is not a log that may be read here"),
        ("tail", json!({"topic": "../signals"}), "topic: unknown variant"),
        ("tail", json!({"topic": "signals", "count": 501}), "count: 501 is not in 1..=500"),
        ("why_not", json!({"lane": "-1", "at": "5"}), "lane: \"-1\": it begins with `-`"),
    ] {
        let refusal = client.refusal(tool, arguments.clone());
        assert!(refusal.contains(expected), "{tool} {arguments}: {refusal}");
    }
    // Tools that write or need an endpoint are not offered, and calling one is a protocol error.
    for tool in ["write_report", "write_timeline", "write_model", "metrics", "run", "../verify"] {
        let answer = client.ask("tools/call", &json!({"name": tool, "arguments": {"name": "x"}}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    // The server has survived all these calls.
    assert_eq!(client.facts("verify", json!({}))["divergence"], Value::Null);
    assert_eq!(client.end(), Some(0));
    assert!(contents(path) == before, "a hostile argument has changed a file");
}

#[test]
fn files_are_written_only_into_the_folder_of_the_flag() {
    let folder = two_runs();
    let path = folder.path();
    fs::create_dir(path.join("out")).expect("a folder");
    let arguments = ["--log", "sqlite:a.db", "--allow-writes", "out"];
    let (mut client, _) = Client::start(path, &arguments, &[]);
    let tools = client.tools();
    for (name, tool) in &tools {
        let writes = name.starts_with("write_");
        assert_eq!(tool["annotations"]["readOnlyHint"], !writes, "{name}");
        assert_eq!(tool["inputSchema"]["properties"].get("name").is_some(), writes, "{name}");
    }
    assert_eq!(tools.len(), READING.len() + 3);

    for (tool, more, file) in [
        ("write_report", json!({"name": "night", "slowest": 2}), "night.html"),
        ("write_timeline", json!({"name": "night"}), "night.pftrace"),
        ("write_model", json!({"name": "slow", "slow": ["cpu:1=30x"], "seeds": 2}), "slow.db"),
    ] {
        let result = client.call(tool, more.clone());
        let written = path.join("out").join(file).canonicalize().expect("the file is there");
        assert_eq!(result["structuredContent"]["path"].as_str(), written.to_str(), "{result}");
        // Existing files are not changed.
        let bytes = fs::read(&written).expect("a file");
        let refusal = client.refusal(tool, more);
        assert!(refusal.contains(file), "{refusal}");
        assert!(fs::read(&written).expect("a file") == bytes, "{file} was overwritten");
    }
    // The modelled run can now be used as a log, but only in this server.
    let model = format!("sqlite:{}", path.join("out/slow.db").canonicalize().expect("a file").display());
    assert_eq!(
        client.tools()["diff"]["inputSchema"]["properties"]["with"]["enum"],
        json!(["sqlite:a.db", &model])
    );
    let facts = client.facts("diff", json!({"with": "sqlite:a.db", "log": model}));
    assert_eq!(facts["sides"][1]["modelled_from"], "sqlite:a.db");

    let outside = contents(path);
    for name in ["../x", "/tmp/x", "a/b", "..", ".x", "-x", "a b", "x\n", ""] {
        let refusal = client.refusal("write_report", json!({"name": name}));
        assert!(refusal.starts_with("name: "), "{name}: {refusal}");
    }
    assert!(client.refusal("write_timeline", json!({})).contains("name: give the name of the file"));
    assert_eq!(client.end(), Some(0));
    assert!(contents(path) == outside, "a file was written beside the folder");
    let (_, error) = texts(&warptape(path, &["mcp", "--log", "a.db", "--allow-writes", "nowhere"]), 2);
    assert!(error.contains("--allow-writes nowhere: no such folder"), "{error}");
}

#[test]
fn calls_end_with_their_time_their_client_or_their_server() {
    let folder = two_runs();
    let path = folder.path();
    let config = path.join("w.toml").display().to_string();
    let servers = |more: &[&str]| {
        // A pipe left by the previous server would also block this one.
        drop(fs::remove_file(&config));
        fs::write(&config, "").expect("a file");
        let arguments = [&["--log", "sqlite:a.db", "-c", &config], more].concat();
        let client = Client::start(path, &arguments, &[]).0;
        (client, endless(Path::new(&config)))
    };
    let call = json!({"name": "topics", "arguments": {}});

    let (mut client, held) = servers(&["--timeout-s", "5"]);
    let began = Instant::now();
    let refusal = client.refusal("topics", json!({}));
    let one = began.elapsed();
    assert!(refusal.contains("took longer than 5 s and was ended"), "{refusal}");
    client.await_children(0);
    // The commands of one call share its time.
    let began = Instant::now();
    let refusal = client.refusal("report", json!({}));
    let took = began.elapsed();
    assert!(refusal.contains("took longer than 5 s"), "{refusal}");
    assert!(took < one + one * 3 / 4, "one after the other: {took:?}, and one alone took {one:?}");
    client.await_children(0);
    // The next call is as good as the first.
    drop(held);
    fs::remove_file(&config).expect("a pipe");
    fs::write(&config, "").expect("a file");
    assert!(client.text("topics", json!({})).contains("journal"));

    let (mut client, _held) = servers(&[]);
    let id = client.request("tools/call", &call);
    client.await_children(1);
    let cancelled = json!({"requestId": id, "reason": "enough"});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    client.await_children(0);
    // Two commands run at a time, while other requests are answered.
    for _ in 0..3 {
        client.request("tools/call", &call);
    }
    client.await_children(2);
    let tools = client.request("tools/list", &json!({}));
    assert_eq!(client.message()["id"], tools);
    assert_eq!(client.children(), 2);
    let signalled = Command::new("kill").args(["-TERM", &client.id().to_string()]).status();
    assert!(signalled.expect("kill runs").success());
    assert_eq!(client.end(), Some(0));
    await_no_command(&config);

    let (mut client, _held) = servers(&[]);
    client.request("tools/call", &call);
    client.await_children(1);
    assert_eq!(client.end(), Some(0));
    await_no_command(&config);

    let (_, error) = texts(&warptape(path, &["mcp", "--log", "sqlite:a.db"]), 2);
    assert!(error.contains("let an assistant's client start this command"), "{error}");
}

/// Replaces a configuration by a pipe that stays open while it is held. Commands that read it do not end.
fn endless(config: &Path) -> fs::File {
    fs::remove_file(config).expect("a file");
    assert!(Command::new("mkfifo").arg(config).status().expect("mkfifo").success());
    // Linux opens both ends at once, without waiting.
    fs::File::options().read(true).write(true).open(config).expect("a pipe")
}

/// Waits until no command runs with this configuration.
#[track_caller]
fn await_no_command(config: &str) {
    let argument = format!("--config={config}");
    let runs = || {
        let processes = fs::read_dir("/proc").expect("Linux").filter_map(Result::ok);
        let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        lines.any(|line| String::from_utf8_lossy(&line).contains(&argument))
    };
    let until = Instant::now() + DEADLINE;
    while runs() {
        assert!(Instant::now() < until, "a command has outlived its server");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn metrics_are_those_of_the_endpoint() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("token"), "correct-horse\n").expect("a file");
    let token = ("WARPTAPE__ENDPOINT__TOKEN_FILE", "token");
    texts(
        &warptape(path, &["feed", "synth", "--symbols", "5", "--ticks", "1000", "--log", "sqlite:a.db"]),
        0,
    );
    let run = ["run", "--log", "sqlite:a.db", "--listen", "127.0.0.1:0"];
    let mut run = Running::start_with(path, &run, &[token, DEVICES]);
    let url = url_of(&mut run);
    let (mut client, _) = Client::start(path, &["--log", "sqlite:a.db", "--endpoint", &url], &[token]);
    assert_eq!(client.tools()["metrics"]["annotations"]["readOnlyHint"], true);

    run.run_until("it is ready", || (get(&url, "/readyz", &[]).0 == 200).then_some(()));
    let header = [("Authorization", "Bearer correct-horse")];
    let keys = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    for (page, at) in [
        ("performance-metrics", "/performance-metrics"),
        ("health", "/health"),
        ("gpu-memory", "/gpu-memory"),
    ] {
        let facts = client.facts("metrics", json!({"page": page}));
        let (status, body) = get(&url, at, &header);
        assert_eq!(facts["status"], status, "{page}");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(keys(&facts["body"]), keys(&body), "{page}");
    }
    let names = |text: &str| {
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        types.map(str::to_owned).collect::<Vec<_>>()
    };
    let all = client.text("metrics", json!({"page": "metrics"}));
    assert_eq!(names(&all), names(&get(&url, "/metrics", &header).1));
    let some = client.text("metrics", json!({"page": "metrics", "containing": "warptape_lane_"}));
    assert!(
        !names(&some).is_empty() && names(&some).iter().all(|name| name.contains("warptape_lane_")),
        "{some}"
    );
    assert!(client.refusal("metrics", json!({"page": "control"})).contains("page: unknown variant"));
    assert!(client.refusal("metrics", json!({"log": "sqlite:a.db"})).contains("no such argument"));

    let (mut stranger, _) = Client::start(path, &["--log", "sqlite:a.db", "--endpoint", &url], &[]);
    assert!(stranger.refusal("metrics", json!({})).contains("answered with status 401: a token is required"));
    run.stop("TERM");
    assert!(client.refusal("metrics", json!({})).contains("does not answer"));
    assert_eq!(client.end(), Some(0));
}
