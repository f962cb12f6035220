//! The live page of a running pipeline, as clients see it. The tests cover its data compared with the log and the
//! metrics, access rules, and streams that nobody reads.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;
use socket2::SockRef;

use super::endpoint::{begin_of, get, scrape, url_of};
use super::processes::{Running, folder, texts, warptape};

const LOG: &str = "sqlite:page.db";
/// Greatest number of requests for a snapshot; each may wait for seconds.
const TRIES: u32 = 20;
/// Streams that nobody reads, and bytes that a client's system takes for each.
const SILENT: usize = 50;
const TAKEN_BYTES: usize = 4_096;
/// Time in which a stream that takes more gets more: there are two snapshots a second for all.
const STILL: Duration = Duration::from_secs(4);

/// Returns a snapshot of the page. It may take some time on a busy machine.
fn snapshot(url: &str) -> Value {
    for _ in 0..TRIES {
        let (status, text) = get(url, "/live.json", &[]);
        if status != 429 {
            assert_eq!(status, 200, "{text}");
            return serde_json::from_str(&text).expect("JSON");
        }
    }
    panic!("{url} makes no snapshot")
}

/// Starts a pipeline, and returns it once it has read a whole log with a synthetic market.
fn running(folder: &std::path::Path) -> (Running, String) {
    let feed = ["feed", "synth", "--symbols", "20", "--ticks", "60000", "--log", LOG];
    texts(&warptape(folder, &feed), 0);
    let mut run = Running::start(folder, &["run", "--log", LOG, "--listen", "127.0.0.1:0"]);
    let url = url_of(&mut run);
    run.run_until("the page says that the pipeline has caught up", || {
        (snapshot(&url)["state"]["words"] == "caught up").then_some(())
    });
    (run, url)
}

#[test]
fn the_page_shows_what_the_metrics_and_the_log_say() {
    let folder = folder();
    let (run, url) = running(folder.path());
    let (samples, shown) = (scrape(&url), snapshot(&url));
    let total = |name: &str| shown["totals"][name].as_f64().expect("a count");
    assert_eq!(total("ticks"), 60_000.0);
    assert_eq!(total("ticks"), samples["warptape_ticks_total"]);
    assert_eq!(total("signals"), samples["warptape_signals_total"]);
    assert_eq!(shown["lag"]["records"], 0);
    assert_eq!(shown["stores"]["lost"], Value::Null);
    assert_eq!(shown["verified"], Value::Null, "no verification was asked for");
    let lanes = shown["lanes"].as_array().expect("lanes");
    assert!(lanes.iter().all(|lane| lane["state"] == "idle"), "{lanes:?}");
    let homes: Vec<&Value> =
        lanes.iter().flat_map(|lane| lane["symbols"].as_array().expect("symbols")).collect();
    assert_eq!(homes.len(), 20, "each symbol lives on one lane: {homes:?}");

    // The newest candle of a symbol must equal its newest bar in the log.
    let symbol = shown["symbols"][0]["symbol"].as_str().expect("a symbol");
    let bar = shown["symbols"][0]["bars"][0].as_str().expect("a bar");
    let (status, candles) =
        get(&url, &format!("/candles.json?symbol={}&bar={bar}", symbol.replace(':', "%3A")), &[]);
    assert_eq!(status, 200, "{candles}");
    let candles: Value = serde_json::from_str(&candles).expect("JSON");
    let newest = candles["candles"].as_array().and_then(|candles| candles.last()).expect("a candle");
    let tail = [
        "tail",
        "signals",
        "--symbol",
        symbol,
        "--from-beginning",
        "--exit-at-end",
        "-o",
        "json",
        "--log",
        LOG,
    ];
    let (lines, _) = texts(&warptape(folder.path(), &tail), 0);
    let records = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut bars = records.map(|line| line["record"].clone());
    let last = bars.rfind(|record| record["kind"] == "BAR" && record["bar_spec"] == bar).expect("a bar");
    for (shown, recorded) in [
        ("start", "bar_start"),
        ("end", "bar_end"),
        ("open", "open"),
        ("high", "high"),
        ("low", "low"),
        ("close", "close"),
        ("volume", "volume"),
        ("trades", "trades"),
    ] {
        assert_eq!(newest[shown], last[recorded], "{shown}");
    }
    assert_eq!(newest["indicators"]["ema_fast"], last["ema_fast"]);

    // The page must explain a decision and a signal in the same way as the command.
    let entry = shown["decisions"][0]["place"].as_str().expect("an entry");
    let (status, why) = get(&url, &format!("/why.txt?entry={entry}"), &[]);
    assert_eq!(status, 200, "{why}");
    let sequence = entry.strip_prefix("0:").expect("the journal of the only process");
    let (explained, _) = texts(&warptape(folder.path(), &["replay", "why", sequence, "--log", LOG]), 0);
    assert_eq!(why, explained);
    let signal = shown["signals"][0]["place"].as_str().expect("a signal");
    let (status, why) = get(&url, &format!("/why.txt?signal={signal}"), &[]);
    assert_eq!(status, 200, "{why}");
    let (explained, _) =
        texts(&warptape(folder.path(), &["replay", "why", &format!("signal:{signal}"), "--log", LOG]), 0);
    assert_eq!(why, explained);

    for (path, status) in [
        ("/why.txt", 400),
        ("/why.txt?entry=0:99999999", 404),
        ("/why.txt?request=nobody", 404),
        ("/candles.json?symbol=A", 400),
        ("/candles.json?symbol=%3Cimg%3E&bar=1s", 404),
    ] {
        assert_eq!(get(&url, path, &[]).0, status, "{path}");
    }
    run.stop("TERM");
}

/// Returns the bytes that connections to a port of this machine have not taken, of those that have any to take.
fn untaken(port: u16) -> Vec<u64> {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux");
    let of = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
        let (to_send, _) = fields.get(4)?.split_once(':')?;
        let is_of = u16::from_str_radix(local_port, 16).ok()? == port;
        u64::from_str_radix(to_send, 16).ok().filter(|bytes| is_of && *bytes > 0)
    };
    let mut untaken: Vec<u64> = table.lines().filter_map(of).collect();
    untaken.sort_unstable();
    untaken
}

/// Returns the time of the first snapshot of a new stream.
#[track_caller]
fn streamed_at(url: &str) -> String {
    let (status, text) = begin_of(url, "/live");
    assert_eq!(status, 200, "{text}");
    let at = text.split_once("event: state\ndata: {\"at\":\"").and_then(|(_, rest)| rest.split('"').next());
    at.unwrap_or_else(|| panic!("no snapshot: {text}")).to_owned()
}

#[test]
fn streams_go_on_beside_readers_that_stop() {
    let folder = folder();
    let (mut run, url) = running(folder.path());
    let address = url.strip_prefix("http://").expect("an address");
    let port = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let silent: Vec<TcpStream> = (0..SILENT)
        .map(|_| {
            let mut stream = TcpStream::connect(address).expect("a connection");
            SockRef::from(&stream).set_recv_buffer_size(TAKEN_BYTES).expect("a small buffer");
            write!(stream, "GET /live HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("a request");
            stream
        })
        .collect();
    // Until then a writer that waits for its reader would not show.
    let (mut last, mut since) = (Vec::new(), Instant::now());
    run.run_until("every silent stream is full", || {
        let now = untaken(port);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        (last.len() >= SILENT && since.elapsed() >= STILL).then_some(())
    });
    let full_at = streamed_at(&url);
    run.run_until("snapshots are made and sent beside full streams", || {
        (streamed_at(&url) > full_at && snapshot(&url)["at"].as_str() > Some(&*full_at)).then_some(())
    });
    assert_eq!(get(&url, "/readyz", &[]).0, 200);
    assert!(untaken(port).len() >= SILENT, "the silent streams were full until now");
    drop(silent);
    run.stop("TERM");
}

#[test]
fn the_page_is_for_browsers_and_its_data_for_those_who_may_read() {
    let folder = folder();
    texts(&warptape(folder.path(), &["topics", "create", "--log", LOG]), 0);
    let arguments = ["run", "--log", LOG, "--listen", "127.0.0.1:0"];
    let mut run =
        Running::start_with(folder.path(), &arguments, &[("WARPTAPE__ENDPOINT__TOKEN", "correct-horse")]);
    let url = url_of(&mut run);
    let browser = ("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
    let (status, page) = get(&url, "/", &[browser]);
    assert_eq!(status, 200);
    assert!(page.contains("<!doctype html>") || page.contains("<!DOCTYPE html>"), "{page}");
    assert!(!page.contains("http://") && !page.contains("https://"), "the page asks nobody else: {page}");
    assert!(get(&url, "/", &[]).1.contains("/metrics"), "others get the list of pages");
    for path in ["/page.js", "/page.css", "/text.js", "/uplot.js", "/uplot.css", "/UPLOT-LICENSE"] {
        assert_eq!(get(&url, path, &[]).0, 200, "{path}");
    }
    for path in ["/live", "/live.json", "/candles.json?symbol=A:B&bar=1s", "/why.txt?entry=0:1"] {
        assert_eq!(get(&url, path, &[]).0, 401, "{path}");
    }
    let token = ("Authorization", "Bearer correct-horse");
    let foreign = ("Sec-Fetch-Site", "cross-site");
    assert_eq!(get(&url, "/live.json", &[token, foreign]).0, 403);
    assert_eq!(get(&url, "/live.json", &[token]).0, 200);
    run.stop("TERM");
}

#[test]
fn the_log_is_verified_beside_the_pipeline() {
    let folder = folder();
    texts(
        &warptape(folder.path(), &["feed", "synth", "--symbols", "20", "--ticks", "60000", "--log", LOG]),
        0,
    );
    let arguments = ["run", "--log", LOG, "--listen", "127.0.0.1:0"];
    let mut run =
        Running::start_with(folder.path(), &arguments, &[("WARPTAPE__ENDPOINT__VERIFY_PERCENT", "50")]);
    let url = url_of(&mut run);
    let verified = run.run_until("signals are verified", || {
        let shown = snapshot(&url);
        let (verified, signals) = (&shown["verified"], &shown["totals"]["signals"]);
        (verified["outputs"].as_u64() >= signals.as_u64() && signals.as_u64() > Some(0))
            .then(|| verified.clone())
    });
    assert_eq!((&verified["difference"], &verified["share_percent"]), (&Value::Null, &Value::from(50)));
    assert!(verified["sequence"].as_i64() > Some(0), "{verified}");
    run.stop("TERM");
}
