//! The HTTP endpoint of a running pipeline, as clients see it: metrics compared with the log, access rules, and hostile
//! clients.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use warptape_engine::Tally;
use warptape_eventlog::{Durability, EventLog, NewRecord, SqliteLog, TopicSpec};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::{Decision, Input, JournalEntry};

use super::broker::shared;
use super::kafka_market::Market;
use super::outputs::records;
use super::processes::{DEADLINE, Running, ends, folder, run_until_drained, texts, warptape, warptape_with};

/// Text before the endpoint's address on standard error.
const SAYS: &str = "metrics and health: ";

/// Waits until the endpoint listens, and returns its URL.
pub fn url_of(run: &mut Running) -> String {
    run.await_saying(SAYS);
    let said = run.said();
    let url = said.lines().find_map(|line| line.strip_prefix(SAYS)).expect("it was just there");
    url.to_owned()
}

/// Returns the status and the text of an answer.
pub fn get(url: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    get_trusting(None, url, path, headers)
}

fn get_trusting(certificate: Option<&str>, url: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let roots = certificate.map_or(RootCerts::PlatformVerifier, |pem| {
        let certificate = Certificate::from_pem(pem.as_bytes()).expect("a certificate");
        RootCerts::Specific(Arc::new(vec![certificate]))
    });
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(roots)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(DEADLINE))
        .http_status_as_error(false)
        .tls_config(tls)
        .build()
        .new_agent();
    let request = headers
        .iter()
        .fold(agent.get(format!("{url}{path}")), |request, (name, value)| request.header(*name, *value));
    let mut answer = request.call().unwrap_or_else(|error| panic!("{url}{path}: {error}"));
    (answer.status().as_u16(), answer.body_mut().read_to_string().expect("a text"))
}

/// Returns the status and the JSON of the answer to a command.
fn post(url: &str, token: Option<&str>, command: &str) -> (u16, Value) {
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(DEADLINE))
        .http_status_as_error(false)
        .build()
        .new_agent();
    let request = agent.post(format!("{url}/control"));
    let request = token
        .into_iter()
        .fold(request, |request, token| request.header("Authorization", format!("Bearer {token}")));
    let mut answer = request.send(command).expect("an answer");
    let text = answer.body_mut().read_to_string().expect("a text");
    (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// Returns the status of a stream, and its text up to the first event.
pub fn begin_of(url: &str, path: &str) -> (u16, String) {
    let address = url.strip_prefix("http://").expect("an address without TLS");
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("a request");
    let (mut text, mut part) = (String::new(), [0; 4_096]);
    while !text.contains("\n\n") && !text.ends_with("0\r\n\r\n") {
        match stream.read(&mut part).expect("a part in time") {
            0 => break,
            length => text.push_str(&String::from_utf8_lossy(&part[..length])),
        }
    }
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no status: {text}")), text)
}

/// Asserts that the endpoint answers at each path as its OpenAPI document states, and lists the same paths.
fn check_openapi(url: &str) {
    let (status, document) = get(url, "/openapi.json", &[]);
    assert_eq!(status, 200, "{document}");
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let (_, list) = get(url, "/", &[]);
    let paths = document["paths"].as_object().expect("paths");
    assert_eq!(paths.len(), list.lines().count(), "{list}");
    for (path, methods) in paths {
        assert!(list.contains(path), "{path}: {list}");
        let Some(responses) = methods["get"]["responses"].as_object() else {
            assert_eq!(get(url, path, &[]).0, 405, "{path}");
            continue;
        };
        let is_stream = responses["200"]["content"].get("text/event-stream").is_some();
        let (status, told) = if is_stream { begin_of(url, path) } else { get(url, path, &[]) };
        assert!(responses.contains_key(&status.to_string()), "{path}: {status} {told}");
    }
}

#[test]
fn commands_over_http_go_through_the_log() {
    let folder = folder();
    texts(&warptape(folder.path(), &["topics", "create", "--log", "sqlite:w.db"]), 0);
    let arguments = ["run", "--log", "sqlite:w.db", "--listen", "127.0.0.1:0"];
    let mut open = Running::start(folder.path(), &arguments);
    let drain = r#"{"command": {"DrainLane": {"lane": 1}}, "by": "an operator"}"#;
    let url = url_of(&mut open);
    check_openapi(&url);
    let (status, told) = post(&url, None, drain);
    assert_eq!(status, 403, "{told}");
    assert!(told.to_string().contains("endpoint.token"), "{told}");
    open.stop("TERM");

    let mut run =
        Running::start_with(folder.path(), &arguments, &[("WARPTAPE__ENDPOINT__TOKEN", "correct-horse")]);
    let url = url_of(&mut run);
    for wrong in [None, Some("wrong")] {
        assert_eq!(post(&url, wrong, drain).0, 401);
    }
    let command = |text: &str| post(&url, Some("correct-horse"), text);
    let (status, told) = command("{\"command\": \"drain\"}");
    assert_eq!(status, 400);
    assert!(told["error"].as_str().is_some_and(|error| error.contains("an example: ")), "{told}");
    assert_eq!(command(r#"{"command": {"DrainLane": {"lane": 1}}, "timeout_s": 0}"#).0, 400);
    assert_eq!(command(&" ".repeat(100_000)).0, 413);

    let (status, told) = command(drain);
    assert_eq!((status, &told["outcome"]), (200, &"DONE".into()), "{told}");
    let (status, told) = command(r#"{"command": {"DrainLane": {"lane": 7}}}"#);
    assert_eq!((status, &told["outcome"]), (409, &"REFUSED".into()), "{told}");
    run.run_until("the metrics have it", || {
        let samples = scrape_with(&url, "correct-horse");
        (samples["warptape_lane_in_service{lane=\"1\",device=\"cpu:1\"}"] == 0.0).then_some(())
    });
    run.stop("TERM");
    let tail = ["tail", "control", "--log", "sqlite:w.db", "--from-beginning", "--exit-at-end", "-o", "json"];
    let (told, _) = texts(&warptape(folder.path(), &tail), 0);
    assert!(told.lines().next().is_some_and(|line| line.contains("an operator")), "{told}");
}

/// Returns the samples of a scrape, by their names and labels as written there.
pub fn scrape(url: &str) -> BTreeMap<String, f64> {
    scrape_with(url, "")
}

fn scrape_with(url: &str, token: &str) -> BTreeMap<String, f64> {
    let (status, text) = get(url, "/metrics", &[("Authorization", &format!("Bearer {token}"))]);
    assert_eq!(status, 200, "{text}");
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a sample");
            (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line}")))
        })
        .collect()
}

/// Creates a log of four partitions with ticks, ten of which come too late, and three records that are not ticks.
fn fed(folder: &Path) -> SqliteLog {
    let log = SqliteLog::open(folder.join("market.db"), Durability::Process).expect("a new log");
    let ticks = TopicSpec { name: "ticks".to_owned(), partitions: 4, ..TopicSpec::default() };
    log.create_topics(&[ticks]).expect("a new topic");
    let feed = ["feed", "synth", "--ticks", "40000", "--symbols", "20", "--log", "sqlite:market.db"];
    texts(&warptape(folder, &feed), 0);
    let mut producer = log.producer("test").expect("a producer");
    producer.begin().expect("a transaction");
    for partition in 0..3 {
        let (topic, value) = ("ticks".into(), b"no tick".into());
        producer.send(NewRecord { topic, partition, value, ..NewRecord::default() }).expect("a record");
    }
    producer.commit().expect("a commit");
    log
}

/// True if a task arrives and a lane gets its first units in the same step.
fn begins_at_once(entry: &JournalEntry) -> bool {
    let Input::TaskArrived(arrived) = &entry.input else { return false };
    let is_first = |decision: &Decision| matches!(decision, Decision::RunSlice(run) if (run.task, run.from) == (arrived.task, arrived.first_unit));
    entry.decisions.iter().any(is_first)
}

#[test]
fn metrics_are_what_the_log_has() {
    let folder = folder();
    let log = fed(folder.path());
    let mut run =
        Running::start(folder.path(), &["run", "--log", "sqlite:market.db", "--listen", "127.0.0.1:0"]);
    let url = url_of(&mut run);
    run_until_drained(&mut run, &log, "warptape");
    let price = ["risk", "price", "--log", "sqlite:market.db", "--spot", "100", "--volatility", "0.2"];
    let price = [&price[..], &["--strike", "100", "--expiry-days", "365", "--kind", "call"]].concat();
    texts(&warptape(folder.path(), &price), 0);

    let topics = ["signals", "late", "dead-letter", "snapshots", "risk.results", "journal"];
    let written = |topic: &str| ends(&log, topic).iter().sum::<i64>() as f64;
    let told = |samples: &BTreeMap<String, f64>, topic: &str| {
        samples[&format!("warptape_written_records_total{{topic=\"{topic}\"}}")]
    };
    let samples = run.run_while_moving("the metrics are as the log", || {
        let samples = scrape(&url);
        let differences: Vec<String> = topics
            .iter()
            .filter(|topic| told(&samples, topic) != written(topic))
            .map(|topic| format!("{topic}: {} told, {} written", told(&samples, topic), written(topic)))
            .collect();
        if differences.is_empty() { Ok(samples) } else { Err(differences) }
    });
    let sample = |name: &str| *samples.get(name).unwrap_or_else(|| panic!("{name} in {samples:?}"));
    assert_eq!(sample("warptape_ticks_total"), 40_000.0);
    assert_eq!(sample("warptape_signals_total"), written("signals"));
    assert_eq!(sample("warptape_late_ticks_total"), written("late"));
    assert_eq!(sample("warptape_dead_letters_total"), 3.0);
    assert_eq!(sample("warptape_read_records_total"), ends(&log, "ticks").iter().sum::<i64>() as f64);
    let bytes: usize =
        (0..4).flat_map(|partition| records(&log, "ticks", partition)).map(|record| record.value.len()).sum();
    assert_eq!(sample("warptape_read_bytes_total"), bytes as f64);
    assert_eq!(sample("warptape_tick_to_signal_seconds_count"), written("signals"));
    assert_eq!(sample("warptape_risk_requests_total"), 1.0);
    assert_eq!(sample("warptape_risk_results_total{class=\"interactive\",outcome=\"done\"}"), 1.0);
    assert_eq!(sample("warptape_ready"), 1.0);

    // The expected totals are computed from the journal with the counting rule of the process.
    let (mut tally, mut commits, mut begun_at_once) = (Tally::default(), 0, 0);
    for record in records(&log, "journal", 0) {
        let entry = decode_journal_entry(&record.value).expect("an entry");
        tally.add(entry.at_ns, &entry.input, &entry.decisions);
        commits += u32::from(matches!(entry.input, Input::CommitEnded(_)));
        begun_at_once += u32::from(begins_at_once(&entry));
    }
    assert!(begun_at_once > 0, "the lanes were idle when the task came");
    assert_eq!(sample("warptape_risk_enqueue_seconds_count"), f64::from(begun_at_once));
    for (metric, label, counts) in [
        ("decisions", "kind", &tally.decisions),
        ("batches", "reason", &tally.batches),
        ("group_moves", "cause", &tally.moves),
        ("risk_tasks_admitted", "class", &tally.admitted),
    ] {
        for (value, count) in counts.iter() {
            let name = format!("warptape_{metric}_total{{{label}=\"{value}\"}}");
            assert_eq!(sample(&name), count as f64, "{name}");
        }
    }
    assert!(tally.decisions.iter().map(|(_, count)| count).sum::<u64>() > 20);
    assert_eq!(sample("warptape_batch_service_seconds_count"), tally.batch_service.count() as f64);
    assert_eq!(
        sample("warptape_batch_prediction_error_seconds_count"),
        tally.prediction_errors.count() as f64
    );
    // The next transaction records the outcome of the previous one.
    assert_eq!(sample("warptape_transactions_total{outcome=\"committed\"}"), f64::from(commits + 1));
    run.run_until("nothing is behind", || {
        let samples = scrape(&url);
        (0..4)
            .all(|partition| {
                samples.get(&format!("warptape_partition_lag_records{{partition=\"{partition}\"}}"))
                    == Some(&0.0)
            })
            .then_some(())
    });

    let ready = texts(&warptape(folder.path(), &["ready", &format!("{url}/readyz")]), 0);
    assert_eq!(ready.0, "ready\n");
    run.stop("TERM");
    let (out, error) = texts(&warptape(folder.path(), &["ready", &format!("{url}/readyz")]), 1);
    assert_eq!(out, "");
    assert!(error.contains("does not answer"), "{error}");
}

#[test]
fn pages_of_others_read_nothing_by_a_name_of_theirs() {
    let folder = folder();
    texts(&warptape(folder.path(), &["topics", "create", "--log", "sqlite:w.db"]), 0);
    let arguments = ["run", "--log", "sqlite:w.db", "--listen", "127.0.0.1:0"];
    let start = |environment: &[(&str, &str)]| {
        let mut run = Running::start_with(folder.path(), &arguments, environment);
        let url = url_of(&mut run);
        (run, url)
    };
    let (run, url) = start(&[("WARPTAPE__ENDPOINT__HOSTS", "Tape.example.com,other.example.com")]);
    for path in ["/metrics", "/health", "/gpu-health", "/gpu-memory", "/performance-metrics"] {
        let (status, told) = get(&url, path, &[("Host", "evil.example:9464")]);
        assert_eq!(status, 421, "{path}: {told}");
        assert!(told.contains("\"evil.example\"") && told.contains("endpoint.hosts"), "{told}");
        for host in
            ["localhost:9464", "10.0.0.7:9464", "[::1]:9464", "tape.example.com", "TAPE.example.com:443"]
        {
            assert!([200, 503].contains(&get(&url, path, &[("Host", host)]).0), "{path} {host}");
        }
    }
    // Probes are answered for any host name, but their answers contain nothing else.
    assert_eq!(get(&url, "/livez", &[("Host", "evil.example")]), (200, "live\n".to_owned()));
    assert!(!run.said().contains("endpoint.token"), "only this machine reaches it");
    run.stop("TERM");
    // A client with the token may use any host name.
    let (run, url) = start(&[("WARPTAPE__ENDPOINT__TOKEN", "correct-horse")]);
    let named = ("Host", "tape.behind.a.proxy.example");
    assert_eq!(get(&url, "/metrics", &[named]).0, 401);
    assert_eq!(get(&url, "/metrics", &[named, ("Authorization", "Bearer correct-horse")]).0, 200);
    run.stop("TERM");
    // The container image uses this setting.
    let (run, url) = start(&[("WARPTAPE__ENDPOINT__UNGUARDED", "probes")]);
    let (status, told) = get(&url, "/metrics", &[]);
    assert!(status == 403 && told.contains("endpoint.token"), "{status} {told}");
    assert_eq!(get(&url, "/livez", &[]).0, 200);
    run.stop("TERM");
}

#[test]
fn an_endpoint_that_others_reach_without_a_token_is_told_of() {
    let folder = folder();
    texts(&warptape(folder.path(), &["topics", "create", "--log", "sqlite:w.db"]), 0);
    let arguments = ["run", "--log", "sqlite:w.db", "--listen", "0.0.0.0:0"];
    let told = |environment: &[(&str, &str)]| {
        let mut run = Running::start_with(folder.path(), &arguments, environment);
        url_of(&mut run);
        let said = run.said();
        run.stop("TERM");
        said.contains("the endpoint has no token (endpoint.token)")
    };
    assert!(told(&[]));
    assert!(!told(&[("WARPTAPE__ENDPOINT__TOKEN", "correct-horse")]));
    assert!(!told(&[("WARPTAPE__ENDPOINT__UNGUARDED", "probes")]));
}

#[test]
fn tokens_and_tls_keep_others_out() {
    let folder = folder();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(folder.path().join("cert.pem"), certified.cert.pem()).expect("a file");
    std::fs::write(folder.path().join("key.pem"), certified.signing_key.serialize_pem()).expect("a file");
    std::fs::write(folder.path().join("token"), "correct-horse\n").expect("a file");
    std::fs::write(
        folder.path().join("w.toml"),
        "endpoint.listen = \"127.0.0.1:0\"\nendpoint.tls_certificate = \"cert.pem\"\nendpoint.tls_key = \"key.pem\"\n",
    )
    .expect("a file");
    let token = [("WARPTAPE__ENDPOINT__TOKEN_FILE", "token")];
    texts(&warptape(folder.path(), &["topics", "create", "--log", "sqlite:w.db"]), 0);
    let arguments = ["run", "-c", "w.toml", "--log", "sqlite:w.db"];
    let mut run = Running::start_with(folder.path(), &arguments, &token);
    let said = url_of(&mut run);
    let url = said.replace("127.0.0.1", "localhost");
    assert!(url.starts_with("https://"), "{url}");
    let pem = certified.cert.pem();
    let ask = |path: &str, headers: &[(&str, &str)]| get_trusting(Some(&pem), &url, path, headers);

    run.run_until("it is ready", || (ask("/readyz", &[]) == (200, "ready\n".to_owned())).then_some(()));
    assert_eq!(ask("/livez", &[]), (200, "live\n".to_owned()));
    let needs = "a token is required, in the header Authorization: Bearer TOKEN\n";
    for path in ["/metrics", "/health", "/gpu-health", "/gpu-memory", "/performance-metrics"] {
        assert_eq!(ask(path, &[]), (401, needs.to_owned()), "{path}");
        for wrong in
            ["Bearer wrong", "Bearer", "Bearer correct-horse-", "Basic correct-horse", "correct-horse"]
        {
            assert_eq!(ask(path, &[("Authorization", wrong)]), (401, needs.to_owned()), "{path} {wrong}");
        }
        assert_eq!(ask(path, &[("Authorization", "Bearer correct-horse")]).0, 200, "{path}");
    }
    // Clients without TLS get no answer.
    let mut plain = TcpStream::connect(said.trim_start_matches("https://")).expect("a connection");
    plain.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    plain.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").expect("it takes bytes");
    let mut answer = Vec::new();
    drop(plain.read_to_end(&mut answer));
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    assert!(!run.said().contains("correct-horse"));
    run.stop("TERM");

    // Invalid settings are reported before anything starts.
    std::fs::write(folder.path().join("key.pem"), "no key").expect("a file");
    let (_, error) = texts(&warptape_with(folder.path(), &arguments, &token), 1);
    assert!(error.contains("endpoint.tls_key: key.pem: "), "{error}");
    std::fs::write(folder.path().join("w.toml"), "endpoint.tls_key = \"key.pem\"\n").expect("a file");
    let (error, _) = texts(&warptape(folder.path(), &["config", "check", "-c", "w.toml"]), 1);
    assert!(
        error.contains("endpoint.tls_key") && error.contains("a private key and its certificate"),
        "{error}"
    );
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let (_, error) =
        texts(&warptape(folder.path(), &["run", "--log", "sqlite:w.db", "--listen", &address]), 1);
    assert!(error.contains(&format!("cannot listen on {address}")) && error.contains("--listen"), "{error}");
    let (_, error) = texts(&warptape(folder.path(), &["run", "--log", "sqlite:w.db", "--listen", "here"]), 2);
    assert!(error.contains("endpoint.listen") && error.contains("an address and a port"), "{error}");
}

/// Returns the resident memory of a process, in MiB.
fn resident_mib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux has it");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

#[test]
fn slow_and_hostile_clients_keep_nobody_from_reading() {
    let folder = folder();
    texts(&warptape(folder.path(), &["topics", "create", "--log", "sqlite:w.db"]), 0);
    let arguments = ["run", "--log", "sqlite:w.db", "--listen", "127.0.0.1:0"];
    let mut run = Running::start(folder.path(), &arguments);
    let url = url_of(&mut run);
    let address = url.trim_start_matches("http://").to_owned();
    run.run_until("it is ready", || (get(&url, "/readyz", &[]).0 == 200).then_some(()));
    let connect = || {
        let stream = TcpStream::connect(&address).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_write_timeout(Some(Duration::from_secs(1))).expect("a timeout");
        stream
    };
    let before = resident_mib(run.id());

    // These clients send nothing, never end the head of their request, or never read the answer.
    let mut clients = Vec::new();
    for number in 0..300 {
        let mut stream = connect();
        match number % 3 {
            0 => {}
            1 => stream.write_all(b"GET /metrics HTTP/1.1\r\nX-Slow: ").expect("it takes bytes"),
            // A client sends some hundred requests at once. They are answered in order, as far as it reads the answers.
            _ => drop(stream.write_all("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".repeat(200).as_bytes())),
        }
        clients.push(stream);
    }
    assert_eq!(get(&url, "/readyz", &[]).0, 200);
    assert!(scrape(&url).contains_key("warptape_ready"));

    // A client with an endless head, or with an unwanted body, gets an error or a closed connection.
    let mut endless = connect();
    endless.write_all(b"GET /metrics HTTP/1.1\r\n").expect("it takes bytes");
    let line = [&b"X-Long: "[..], &[b'x'; 1_000], b"\r\n"].concat();
    let refused = (0..100_000).any(|_| endless.write_all(&line).is_err());
    assert!(refused, "a head of 100 MB was taken");
    let mut large = connect();
    large
        .write_all(b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n")
        .expect("it takes bytes");
    let mut answer = [0; 32];
    let read = large.read(&mut answer).expect("an answer");
    assert!(answer[..read].starts_with(b"HTTP/1.1 405"), "{:?}", String::from_utf8_lossy(&answer[..read]));
    let mut garbage = connect();
    garbage.write_all(b"\x16\x03\x01\x02\x00 no HTTP at all \r\n\r\n").expect("it takes bytes");
    let mut answer = Vec::new();
    garbage.read_to_end(&mut answer).expect("an end");
    assert!(
        answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"),
        "{:?}",
        String::from_utf8_lossy(&answer)
    );

    assert_eq!(get(&url, "/../../etc/passwd", &[]).0, 404);
    assert_eq!(get(&url, "/health", &[]).0, 200);
    let after = resident_mib(run.id());
    assert!(after < before + 64, "{before} MiB before, {after} MiB with 300 clients");

    // More connections are open than allowed, but probes are still answered.
    clients.extend((0..300).map(|_| connect()));
    assert_eq!(get(&url, "/readyz", &[]).0, 200);

    // Silent clients are disconnected even if no new clients come.
    let mut silent = clients.swap_remove(0);
    let ended = silent.read(&mut [0; 1]);
    assert!(
        matches!(&ended, Ok(0))
            || ended.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset),
        "{ended:?}"
    );
    run.stop("TERM");
}

#[test]
fn clients_of_kafka_tell_their_figures() {
    let market = Market::new("figures", shared());
    let mut run = market.start_run_with(&["--listen", "127.0.0.1:0"], &[]);
    let url = url_of(&mut run);
    let arguments = market.arguments(&["feed", "synth", "--ticks", "5000"], &market.url);
    texts(&warptape(market.path(), &arguments), 0);
    let samples = run.run_until("both clients have told", || {
        let samples = scrape(&url);
        let of = |name: &str, client: &str| {
            samples.get(&format!("warptape_kafka_client_{name}{{client=\"{client}\"}}")).copied()
        };
        let told = ["consumer", "producer"].map(|client| {
            let counted =
                ["requests_total", "sent_bytes_total", "received_bytes_total"].map(|name| of(name, client));
            counted.iter().all(|count| count.is_some_and(|count| count > 0.0))
                && of("brokers_connected", client) == Some(1.0)
        });
        (told == [true; 2] && samples["warptape_ticks_total"] == 5_000.0).then_some(samples)
    });
    let received = samples["warptape_kafka_client_received_bytes_total{client=\"consumer\"}"];
    assert!(received >= samples["warptape_read_bytes_total"] / 10.0, "{received}");
    assert_eq!(samples["warptape_log_lost_seconds"], 0.0);
    run.stop("TERM");
}
