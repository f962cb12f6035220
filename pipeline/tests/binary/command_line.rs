//! Commands that end by themselves: what they print, where they print it, and their exit codes.

use std::path::Path;
use std::process::{Command, Stdio};

use warptape_eventlog::{Durability, EventLog, NewRecord, SqliteLog, TopicSpec};

use super::processes::{Running, ends, folder, run_until_drained, texts, warptape, warptape_with};

#[test]
fn help_has_an_example_for_every_command() {
    let folder = folder();
    let mut commands = vec![Vec::new()];
    let mut checked = 0;
    while let Some(command) = commands.pop() {
        let arguments: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let (help, _) = texts(&warptape(folder.path(), &arguments), 0);
        assert!(help.contains("Example: warptape "), "{command:?}: {help}");
        commands.extend(subcommands(&help).map(|name| [command.clone(), vec![name.to_owned()]].concat()));
        checked += 1;
    }
    assert!(checked > 40, "{checked} commands");
}

/// Returns the commands listed in a help text. Continuation lines of a description are indented more, so they are
/// skipped.
fn subcommands(help: &str) -> impl Iterator<Item = &str> {
    let listed = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let lines = listed.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help")
}

#[test]
fn wrong_usage_is_exit_2_on_standard_error() {
    let folder = folder();
    for arguments in
        [&[][..], &["nonsense"], &["tail"], &["topics", "--nonsense"], &["tail", "ticks", "-o", "xml"]]
    {
        let (out, error) = texts(&warptape(folder.path(), arguments), 2);
        assert!(out.is_empty() && error.contains("--help"), "{arguments:?}: {error}");
    }
}

#[test]
fn config_check_says_ok_or_lists_everything() {
    let folder = folder();
    let file = folder.path().join("w.toml");
    std::fs::write(&file, "[engine]\nnode = \"a\"\n").unwrap();
    let (out, _) = texts(&warptape(folder.path(), &["config", "check", "-c", "w.toml"]), 0);
    assert_eq!(out, "w.toml: ok\n");

    std::fs::write(&file, "[engine]\nnod = \"a\"\n[topics]\npartitions = 0\n").unwrap();
    let (out, _) = texts(&warptape(folder.path(), &["config", "check", "-c", "w.toml"]), 1);
    assert_eq!(
        out,
        "2 mistakes in the configuration:\n  \
         engine.nod (w.toml:2): found an unknown key; allowed: engine.node (the most similar key)\n  \
         topics.partitions (w.toml:4): found 0; allowed: a whole number from 1 to 1024\n"
    );

    std::fs::write(&file, "[engine\n").unwrap();
    let (out, _) = texts(&warptape(folder.path(), &["config", "check", "-c", "w.toml"]), 1);
    assert!(out.contains("w.toml is not valid TOML") && out.contains("line 1"), "{out}");

    let (_, error) = texts(&warptape(folder.path(), &["config", "check", "-c", "none.toml"]), 2);
    assert!(error.contains("none.toml"), "{error}");
}

#[test]
fn config_check_says_where_the_brokers_decide_how_long_a_failover_takes() {
    let folder = folder();
    let check = |log: &str, session_ms: &str| {
        let environment = [("WARPTAPE__KAFKA__SESSION_TIMEOUT_MS", session_ms)];
        let (out, error) =
            texts(&warptape_with(folder.path(), &["config", "check", "--log", log], &environment), 0);
        assert_eq!(out, "ok (no file given)\n");
        error
    };
    let note = check("kafka:localhost:9", "6000");
    assert!(note.starts_with("kafka.session_timeout_ms = 6000: "), "{note}");
    assert!(note.contains("cleanup.interval.ms = 8000 on the brokers"), "{note}");
    assert!(check("kafka:localhost:9", "9999").contains("cleanup.interval.ms = 9999 on the brokers"));
    assert_eq!(check("kafka:localhost:9", "10000"), "");
    assert_eq!(check("sqlite:w.db", "6000"), "");
}

#[test]
fn other_commands_refuse_a_wrong_configuration() {
    let folder = folder();
    let (out, error) =
        texts(&warptape_with(folder.path(), &["devices"], &[("WARPTAPE__ENGINE__DEVICES", "cuda:0")]), 2);
    assert!(out.is_empty());
    assert!(error.contains("engine.devices (environment WARPTAPE__ENGINE__DEVICES)"), "{error}");
}

#[test]
fn config_show_tells_where_values_come_from_and_reads_back() {
    let folder = folder();
    std::fs::write(folder.path().join("w.toml"), "[engine]\nnode = \"file\"\ngroup = \"file\"\n").unwrap();
    let arguments = ["config", "show", "-c", "w.toml", "--log", "sqlite:flag.db"];
    let environment = [("WARPTAPE__ENGINE__NODE", "env")];
    let (shown, _) = texts(&warptape_with(folder.path(), &arguments, &environment), 0);
    let line = |key: &str| {
        let found = shown.lines().find(|line| line.starts_with(&format!("{key} = ")));
        found.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(line("url").as_deref(), Some("url = \"sqlite:flag.db\" # flag --log"));
    assert_eq!(line("node").as_deref(), Some("node = \"env\" # environment WARPTAPE__ENGINE__NODE"));
    assert_eq!(line("group").as_deref(), Some("group = \"file\" # w.toml:3"));
    assert_eq!(line("partitions").as_deref(), Some("partitions = 4 # default"));

    std::fs::write(folder.path().join("shown.toml"), &shown).unwrap();
    let (again, _) = texts(&warptape(folder.path(), &["config", "show", "-c", "shown.toml"]), 0);
    let values = |text: &str| {
        let value = |line: &str| line.split("  #").next().unwrap_or_default().trim_end().to_owned();
        text.lines().map(value).collect::<Vec<_>>()
    };
    assert_eq!(values(&again), values(&shown));
}

#[test]
fn secrets_are_not_printed() {
    const HIDDEN: &str = "hunter2-must-not-be-seen";
    let folder = folder();
    std::fs::write(folder.path().join("secret"), HIDDEN).unwrap();
    let environment = [
        ("WARPTAPE__KAFKA__PROPERTIES__SASL__PASSWORD", HIDDEN),
        ("WARPTAPE__SCHEMA_REGISTRY__USERNAME", "me"),
        ("WARPTAPE__SCHEMA_REGISTRY__PASSWORD_FILE", "secret"),
    ];
    let (shown, error) = texts(&warptape_with(folder.path(), &["config", "show", "-vvv"], &environment), 0);
    assert!(shown.contains("# \"sasl.password\" is set, and not shown"), "{shown}");
    assert!(shown.contains("# password is set, and not shown"), "{shown}");
    assert!(!shown.contains(HIDDEN) && !error.contains(HIDDEN), "{shown}{error}");

    let file = format!("[kafka.properties]\n\"sasl.password\" = \"{HIDDEN}\"\n");
    std::fs::write(folder.path().join("w.toml"), file).unwrap();
    for (command, code) in
        [(&["config", "check", "-c", "w.toml"][..], 1), (&["run", "-c", "w.toml", "-vvv"], 2)]
    {
        let (out, error) = texts(&warptape(folder.path(), command), code);
        let said = out + &error;
        assert!(said.contains("WARPTAPE__KAFKA__PROPERTIES__SASL__PASSWORD_FILE"), "{said}");
        assert!(!said.contains(HIDDEN), "{said}");
    }
}

#[test]
fn a_bad_log_filter_is_refused() {
    let folder = folder();
    let output = warptape_with(folder.path(), &["devices"], &[("WARPTAPE_LOG", "warptape=loud")]);
    let (_, error) = texts(&output, 2);
    assert!(error.contains("WARPTAPE_LOG") && error.contains("loud"), "{error}");
}

#[test]
fn devices_lists_the_configured_lanes() {
    let folder = folder();
    let (out, _) =
        texts(&warptape_with(folder.path(), &["devices"], &[("WARPTAPE__ENGINE__DEVICES", "cpu:3")]), 0);
    assert!(out.contains("Lanes (3):") && out.contains("lane 2: cpu:2"), "{out}");
    let gpus = out.lines().filter(|line| line.starts_with("no GPU") || line.starts_with("cuda:")).count();
    assert!(gpus > 0, "{out}");
}

#[test]
fn a_gpu_that_is_not_there_is_refused() {
    let folder = folder();
    let output = warptape_with(folder.path(), &["devices"], &[("WARPTAPE__ENGINE__DEVICES", "cuda:63")]);
    let (_, error) = texts(&output, 2);
    assert!(error.contains("engine.devices") && error.contains("cuda:63 is missing"), "{error}");
}

/// Creates a log with a topic of two partitions; the first one has foreign records, the second is empty.
fn log_with_garbage(folder: &Path, records: usize) {
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a new log");
    log.create_topics(&[TopicSpec { name: "ticks".to_owned(), partitions: 2, ..TopicSpec::default() }])
        .unwrap();
    let mut producer = log.producer("test").unwrap();
    producer.begin().unwrap();
    for _ in 0..records {
        let record = NewRecord { topic: "ticks".into(), value: b"garbage".into(), ..NewRecord::default() };
        producer.send(record).unwrap();
    }
    producer.commit().unwrap();
}

#[test]
fn topics_lists_offsets() {
    let folder = folder();
    log_with_garbage(folder.path(), 3);
    let (out, _) = texts(&warptape(folder.path(), &["topics", "--log", "sqlite:w.db"]), 0);
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        lines,
        [
            vec!["TOPIC", "PARTITION", "FIRST", "NEXT", "OFFSETS"],
            vec!["ticks", "0", "0", "3", "3"],
            vec!["1", "0", "0", "0"]
        ]
    );
}

#[test]
fn tail_goes_on_after_what_it_cannot_decode() {
    let folder = folder();
    log_with_garbage(folder.path(), 2);
    let arguments = ["tail", "ticks", "--log", "sqlite:w.db", "--from-beginning", "--exit-at-end"];
    let (out, _) = texts(&warptape(folder.path(), &arguments), 0);
    assert_eq!(out.lines().count(), 2, "{out}");
    assert!(out.lines().all(|line| line.contains("cannot be decoded: ")), "{out}");

    let json: Vec<_> = arguments.iter().copied().chain(["-o", "json"]).collect();
    let (out, _) = texts(&warptape(folder.path(), &json), 0);
    for (offset, line) in out.lines().enumerate() {
        let value: serde_json::Value = serde_json::from_str(line).expect("a line is one JSON value");
        assert_eq!((value["offset"].as_u64(), value["topic"].as_str()), (Some(offset as u64), Some("ticks")));
        assert!(value["error"].is_string(), "{line}");
    }
}

#[test]
fn tail_without_from_beginning_ends_at_once_where_asked() {
    let folder = folder();
    log_with_garbage(folder.path(), 2);
    let (out, _) =
        texts(&warptape(folder.path(), &["tail", "ticks", "--log", "sqlite:w.db", "--exit-at-end"]), 0);
    assert_eq!(out, "");
}

#[test]
fn tail_names_the_topics_there_are() {
    let folder = folder();
    log_with_garbage(folder.path(), 1);
    let (_, error) = texts(&warptape(folder.path(), &["tail", "tics", "--log", "sqlite:w.db"]), 2);
    assert!(error.contains("\"tics\"") && error.contains("ticks"), "{error}");
}

#[test]
fn tail_finds_topics_with_the_configured_prefix() {
    let folder = folder();
    let log = SqliteLog::open(folder.path().join("w.db"), Durability::Process).unwrap();
    let topic = |name: &str| TopicSpec { name: name.to_owned(), partitions: 1, ..TopicSpec::default() };
    log.create_topics(&[topic("a.ticks"), topic("signals")]).unwrap();
    let tail = |name: &str, prefix: &str, code: i32| {
        let arguments = ["tail", name, "--log", "sqlite:w.db", "--from-beginning", "--exit-at-end"];
        let output = warptape_with(folder.path(), &arguments, &[("WARPTAPE__TOPICS__PREFIX", prefix)]);
        texts(&output, code).1
    };
    tail("ticks", "a.", 0);
    tail("a.ticks", "a.", 0);
    tail("a.ticks", "", 0);
    assert!(tail("ticks", "", 2).contains("\"ticks\""));
    // Topics with another prefix, or without one, belong to another pipeline.
    for (name, prefix, full) in [
        ("signals", "a.", "\"a.signals\""),
        ("a.ticks", "b.", "\"b.a.ticks\""),
        ("a.late", "a.", "\"a.late\""),
    ] {
        let error = tail(name, prefix, 2);
        assert!(error.contains(full) && error.contains("topics.prefix"), "{error}");
    }
}

#[test]
fn a_closed_pipe_ends_tail_quietly() {
    let folder = folder();
    // The records exceed the capacity of a pipe, so `tail` must notice that the reader has closed it.
    log_with_garbage(folder.path(), 20_000);
    let mut child = Command::new(env!("CARGO_BIN_EXE_warptape"))
        .args(["tail", "ticks", "--log", "sqlite:w.db", "--from-beginning"])
        .current_dir(folder.path())
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the binary ends");
    let (_, error) = texts(&output, 0);
    assert_eq!(error, "");
}

#[test]
fn a_fed_market_is_listed_and_read_back() {
    let folder = folder();
    let feed = ["feed", "synth", "--symbols", "5", "--ticks", "1e3", "--batch", "10", "--log", "sqlite:w.db"];
    let (out, error) = texts(&warptape(folder.path(), &feed), 0);
    assert!(out.starts_with("published 1,000 ticks in 1"), "{out}");
    assert_eq!(error, "sqlite:w.db is a new, empty log\n");

    let tail = ["tail", "ticks", "--from-beginning", "--exit-at-end", "--log", "sqlite:w.db"];
    let (table, _) = texts(&warptape(folder.path(), &tail), 0);
    assert_eq!(table.lines().count(), 1 + 1000, "a header and the ticks");
    let json: Vec<_> = tail.iter().copied().chain(["-o", "json", "--symbol", "SYNTH:AAAB"]).collect();
    let (lines, _) = texts(&warptape(folder.path(), &json), 0);
    let expected = table.lines().filter(|line| line.contains(" SYNTH:AAAB ")).count();
    assert!((1..1000).contains(&expected), "{expected}");
    assert_eq!(lines.lines().count(), expected);
    for line in lines.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("a line is one JSON value");
        assert_eq!(value["record"]["symbol"], "SYNTH:AAAB");
        assert!(value["timestamp_ns"].as_i64().is_some_and(|at_ns| at_ns > 0), "{line}");
    }

    let unknown: Vec<_> = tail.iter().copied().chain(["--symbol", "SYNTH:AAAX"]).collect();
    let (out, error) = texts(&warptape(folder.path(), &unknown), 0);
    assert!(
        out.is_empty() && error.contains("has no record of \"SYNTH:AAAX\" so far; did you mean SYNTH:AAA"),
        "{error}"
    );
}

#[test]
fn csv_lines_that_do_not_parse_end_the_feed_or_go_aside() {
    let folder = folder();
    let bad = "2,abc,1,1,1723075200001,true,true";
    let lines =
        format!("1,100.5,2,201,1723075200000,true,true\n{bad}\n3,100.5,2,201,1723075200002,true,true\n");
    std::fs::write(folder.path().join("BTCUSDT-trades-2024-08-08.csv"), lines).unwrap();
    let feed = ["feed", "csv", "BTCUSDT-trades-2024-08-08.csv", "--log", "sqlite:w.db"];
    let (_, error) = texts(&warptape(folder.path(), &feed), 2);
    assert!(error.contains("BTCUSDT-trades-2024-08-08.csv:2: column `price`: found `abc`"), "{error}");

    let skip: Vec<_> = feed.iter().copied().chain(["--skip-bad"]).collect();
    let (out, _) = texts(&warptape(folder.path(), &skip), 0);
    assert!(out.starts_with("published 2 ticks") && out.contains("skipped 1 bad lines"), "{out}");
    let aside = std::fs::read_to_string(folder.path().join("BTCUSDT-trades-2024-08-08.csv.bad")).unwrap();
    assert_eq!(aside.trim_end(), bad);
}

#[test]
fn feed_refuses_what_it_cannot_read() {
    let folder = folder();
    std::fs::write(folder.path().join("other.csv"), "a,b\n1,2\n").unwrap();
    for (arguments, expected) in [
        (&["feed", "csv", "none.csv", "--map", "symbol='A:B',time=1:ms,price=2,size=3"][..], "none.csv"),
        (&["feed", "csv", "other.csv"], "--map"),
        (&["feed", "csv", "other.csv", "--map", "symbol=zzz"], "--map"),
        (&["feed", "dbn", "none.dbn"], "none.dbn"),
        (&["feed", "binance-capture", "none.gz"], "--venue"),
        (&["feed", "binance-capture", "BINANCE=none.gz"], "none.gz"),
        (&["feed", "synth", "--batch", "0"], "--batch"),
        (&["feed", "synth", "--symbols", "0"], "--symbols"),
    ] {
        let (out, error) = texts(&warptape(folder.path(), arguments), 2);
        assert!(out.is_empty() && error.contains(expected), "{arguments:?}: {error}");
        assert!(!folder.path().join("warptape.db").exists(), "{arguments:?}: a log was made");
    }
}

#[test]
fn tail_follows_another_process_until_interrupted() {
    let folder = folder();
    log_of_ticks(folder.path());
    let arguments = ["tail", "ticks", "--log", "sqlite:w.db", "--from-beginning", "-o", "json"];
    let mut tail = Running::start(folder.path(), &arguments);
    texts(&warptape(folder.path(), &["feed", "synth", "--ticks", "3", "--log", "sqlite:w.db"]), 0);
    for _ in 0..3 {
        let line = tail.line();
        assert!(line.contains("SYNTH:"), "{line}");
    }
    assert_eq!(tail.stop("INT"), "");
}

#[test]
fn feed_that_is_interrupted_publishes_what_it_took() {
    for signal in ["TERM", "HUP"] {
        if signal == "HUP" && is_hangup_ignored() {
            println!("passed over: SIGHUP is ignored here, as under nohup, and processes inherit that");
            continue;
        }
        let folder = folder();
        let log = log_of_ticks(folder.path());
        // The feed is so slow that it cannot end by itself within the test.
        let arguments = ["feed", "synth", "--ticks", "1000000", "--rate", "20", "--log", "sqlite:w.db"];
        let mut feed = Running::start(folder.path(), &arguments);
        feed.run_until("something is published", || (ends(&log, "ticks") != [0]).then_some(()));
        let out = feed.stop(signal);
        assert!(out.starts_with("published ") && out.ends_with(", interrupted\n"), "{signal}: {out}");
    }
}

/// True if this process ignores SIGHUP. The signal is the lowest bit of the mask that Linux reports.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Creates a log with a topic of ticks that has one partition.
fn log_of_ticks(folder: &Path) -> SqliteLog {
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a new log");
    let ticks = TopicSpec { name: "ticks".to_owned(), partitions: 1, ..TopicSpec::default() };
    log.create_topics(&[ticks]).expect("a new topic");
    log
}

#[test]
fn a_log_that_is_missing_or_no_log_is_exit_2() {
    let folder = folder();
    let (_, error) = texts(&warptape(folder.path(), &["topics", "--log", "sqlite:none.db"]), 2);
    assert!(error.contains("none.db"), "{error}");
    assert!(!folder.path().join("none.db").exists(), "looking at a log does not make one");

    std::fs::write(
        folder.path().join("text.db"),
        "this is no database, but long enough to look at".repeat(100),
    )
    .unwrap();
    let (_, error) = texts(&warptape(folder.path(), &["topics", "--log", "sqlite:text.db"]), 2);
    assert!(error.contains("text.db") && error.contains("name a log that warptape created"), "{error}");
    assert!(!error.contains("does not exist yet"), "who reads is not told to make one: {error}");
    // The path of a file, without `sqlite:`, also names its log.
    assert_eq!(texts(&warptape(folder.path(), &["topics", "--log", "text.db"]), 2).1, error);
    let feed = ["feed", "synth", "--ticks", "1", "--log", "text.db"];
    let (_, error) = texts(&warptape(folder.path(), &feed), 2);
    assert!(error.contains("or a file that does not exist yet"), "{error}");

    let (_, error) = texts(&warptape(folder.path(), &["topics", "--log", "postgres:x"]), 2);
    assert!(error.contains("log.url (flag --log)") && error.contains("sqlite:PATH"), "{error}");
}

#[test]
fn what_only_reads_makes_no_log() {
    let folder = folder();
    for command in [
        &["tail", "ticks"][..],
        &["topics"],
        &["hot", "get", "A:X"],
        &["hot", "result", "r"],
        &["replay", "verify"],
        &["replay", "verify", "--outputs"],
        &["risk", "price", "--kind", "call", "--strike", "1", "--expiry-days", "1", "--symbol", "A:X"],
    ] {
        let arguments = [command, &["--log", "sqlite:mistyped.db"]].concat();
        let (_, error) = texts(&warptape(folder.path(), &arguments), 2);
        assert!(error.contains("mistyped.db"), "{command:?}: {error}");
        let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
        assert!(left.is_empty(), "{command:?} makes {left:?}");
    }
}

#[test]
fn a_run_that_has_ended_tells_its_reasons_and_that_its_lanes_stopped() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("w.toml"), "stages.bars = [\"tick:1\"]\n").expect("a file");
    let log = ["--log", "sqlite:w.db"];
    let feed = [&["feed", "synth", "--symbols", "5", "--ticks", "1e3"][..], &log].concat();
    texts(&warptape(folder, &feed), 0);
    let mut run = Running::start(folder, &[&["run", "-c", "w.toml"][..], &log].concat());
    let events = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log");
    run_until_drained(&mut run, &events, "warptape");
    let summary = run.stop("TERM");
    for from in ["publication", "read"] {
        assert!(
            summary.contains(&format!("from the {from} of a tick to the commit of its signal")),
            "{summary}"
        );
    }

    let tail = [&["tail", "journal", "--from-beginning", "--exit-at-end"][..], &log].concat();
    let (journal, _) = texts(&warptape(folder, &tail), 0);
    for part in [
        "  Started: process \"",
        "  Arrived: ",
        "\n    Place: group ",
        "rendezvous 1, which draws lanes by their weights, ranks lane ",
        "\n    Dispatch: batch 0 of ",
        ") finished batch 0 after ",
    ] {
        assert!(journal.contains(part), "{part:?} is missing in:\n{journal}");
    }
    let (state, _) = texts(&warptape(folder, &[&["hot", "get", "SYNTH:AAAA"][..], &log].concat()), 0);
    assert!(state.contains(" stopped with its process, as of "), "{state}");
}

#[test]
fn a_recording_without_ticks_is_refused_and_kinds_are_counted() {
    let folder = folder();
    let folder = folder.path();
    let kline = "5 {\"e\":\"kline\",\"E\":1723161255343,\"s\":\"B\"}\n";
    let trade = "6 {\"e\":\"aggTrade\",\"E\":1723161255343,\"s\":\"B\",\"a\":1,\"p\":\"1.5\",\"q\":\"2\",\
                 \"T\":1723161255342,\"m\":true}\n";
    std::fs::write(folder.join("none.jsonl"), kline.repeat(3)).expect("a file");
    std::fs::write(folder.join("raw.jsonl"), kline.repeat(3) + trade).expect("a file");
    let feed = |file: &str, code: i32| {
        let feed = ["feed", "binance-capture", file, "--venue", "V", "--log", "sqlite:w.db"];
        texts(&warptape(folder, &feed), code)
    };
    let (_, error) = feed("none.jsonl", 2);
    assert!(error.contains("the input has no ticks: ignored 3×kline"), "{error}");
    let (out, _) = feed("raw.jsonl", 0);
    assert!(out.starts_with("published 1 ticks in 1 records") && out.contains("ignored 3×kline"), "{out}");
}

#[test]
fn what_is_left_out_is_said() {
    let folder = folder();
    let folder = folder.path();
    let log = ["--log", "sqlite:w.db"];
    texts(&warptape(folder, &[&["feed", "synth", "--ticks", "1e3"][..], &log].concat()), 0);
    std::fs::write(folder.join("warptape.toml"), "engine.commit_interval_ms = 50\n").expect("a file");
    let run = ["run", "--until-caught-up"];
    let (_, said) = texts(&warptape(folder, &[&run[..], &log].concat()), 0);
    assert!(said.contains("warptape.toml is not read: name it with -c warptape.toml"), "{said}");
    let (_, said) = texts(&warptape(folder, &[&run[..], &["-c", "warptape.toml"], &log].concat()), 0);
    assert!(!said.contains("is not read"), "{said}");
    let (printed, said) =
        texts(&warptape(folder, &[&["tail", "ticks", "--exit-at-end"][..], &log].concat()), 0);
    assert!(
        printed.is_empty() && said.contains("--from-beginning or --since prints those of ticks"),
        "{said}"
    );
}
