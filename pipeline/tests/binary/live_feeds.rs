//! Live feeds from a local server that replays recorded messages and cuts connections.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response};
use tungstenite::{Message, WebSocket};
use warptape_eventlog::SqliteLog;

use super::outputs::{Outputs, count, first_difference, outputs};
use super::processes::{Running, folder, texts, warptape, warptape_with};
use super::registry_stub::tls_server;

/// A simulated venue. Each connection gets its own messages and is then cut; only the last connection stays.
struct Venue {
    url: String,
    /// Path of each connection, or else the first message that its client sent.
    asked: Arc<Mutex<Vec<String>>>,
}

trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

impl Venue {
    fn start(connections: Vec<Vec<Message>>) -> Self {
        Self::listen(connections, None)
    }

    fn listen(connections: Vec<Vec<Message>>, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let url =
            if tls.is_some() { format!("wss://localhost:{port}") } else { format!("ws://127.0.0.1:{port}") };
        let asked = Arc::new(Mutex::new(Vec::new()));
        let of_venue = asked.clone();
        thread::spawn(move || {
            let last = connections.len() - 1;
            for (number, messages) in connections.into_iter().enumerate() {
                let Ok((tcp, _)) = listener.accept() else { return };
                let cut = tcp.try_clone().expect("a socket");
                let stream: Box<dyn Stream> = match &tls {
                    None => Box::new(tcp),
                    Some(config) => {
                        let session = ServerConnection::new(config.clone()).expect("a good configuration");
                        Box::new(StreamOwned::new(session, tcp))
                    }
                };
                // A client that does not trust the server closes the connection.
                let Some(mut socket) = accepted(stream, &of_venue) else { continue };
                for message in messages {
                    // The client may close the connection once it has enough.
                    if socket.send(message).is_err() {
                        return;
                    }
                }
                if number < last {
                    cut.shutdown(Shutdown::Write).expect("a socket");
                }
                while socket.read().is_ok() {}
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("nobody panics while holding it").clone()
    }
}

/// Stores the path of a request.
struct Look<'a>(&'a mut String);

impl Callback for Look<'_> {
    fn on_request(self, request: &Request, response: Response) -> Result<Response, ErrorResponse> {
        *self.0 = request.uri().to_string();
        Ok(response)
    }
}

fn accepted(stream: Box<dyn Stream>, asked: &Mutex<Vec<String>>) -> Option<WebSocket<Box<dyn Stream>>> {
    let mut path = String::new();
    let mut socket = tungstenite::accept_hdr(stream, Look(&mut path)).ok()?;
    if path == "/" {
        path = socket.read().ok()?.into_text().ok()?.as_str().to_owned();
    }
    asked.lock().expect("nobody panics while holding it").push(path);
    Some(socket)
}

/// Returns a trade of a Binance symbol, `at_ms` milliseconds after the start of the test's market.
fn trade(ticker: &str, id: u64, at_ms: u64) -> String {
    let stream = ticker.to_lowercase();
    let (time, cents) = (1_723_161_255_000 + at_ms, 100 + id * 7 % 50);
    format!(
        r#"{{"stream":"{stream}@trade","data":{{"e":"trade","E":{time},"s":"{ticker}","t":{id},"p":"61837.{cents}","q":"0.0200{id:04}","T":{time},"m":{},"M":true}}}}"#,
        id.is_multiple_of(3)
    )
}

/// Returns a book ticker of the spot market, which has no time.
fn book(ticker: &str, cents: u64) -> String {
    let stream = ticker.to_lowercase();
    format!(
        r#"{{"stream":"{stream}@bookTicker","data":{{"u":7,"s":"{ticker}","b":"61837.{cents}","B":"3.78826000","a":"61838.{cents}","A":"1.5"}}}}"#
    )
}

/// Returns trades and quotes of two symbols over some minutes.
fn market() -> Vec<String> {
    let of = |number: u64| {
        let at_ms = number * 100;
        [
            trade("BTCUSDT", 1_000 + number, at_ms),
            book("BTCUSDT", 10 + number % 80),
            trade("ETHUSDT", 5 + number, at_ms),
        ]
    };
    (0..2_000).flat_map(of).collect()
}

fn messages(texts: &[String]) -> Vec<Message> {
    texts.iter().map(Message::text).collect()
}

fn write_recording(folder: &Path, name: &str, texts: &[String]) {
    let lines =
        (0_i64..).zip(texts).map(|(number, text)| format!("{} {text}\n", 1_723_161_255_100_000_000 + number));
    std::fs::write(folder.join(name), lines.collect::<String>()).expect("the folder can be written");
}

/// Feeds from a venue into `live.db`, and records the messages in `live.jsonl`.
fn feed(folder: &Path, source: &str, symbols: &str, venue: &Venue, arguments: &[&str]) -> Output {
    warptape(folder, &feed_arguments(source, symbols, venue, arguments))
}

fn feed_arguments<'a>(source: &'a str, symbols: &'a str, venue: &'a Venue, more: &[&'a str]) -> Vec<&'a str> {
    let first = ["feed", source, "--symbols", symbols, "--url", &venue.url, "--record", "live.jsonl"];
    [&first[..], &["--batch", "1", "--log", "sqlite:live.db"], more].concat()
}

fn feed_file(folder: &Path, source: &str, file: &str, log: &str) {
    texts(&warptape(folder, &["feed", source, file, "--batch", "1", "--log", &format!("sqlite:{log}")]), 0);
}

/// Runs the pipeline on a log, and returns all its outputs.
fn outputs_of(folder: &Path, log: &str) -> Outputs {
    let url = format!("sqlite:{log}");
    texts(&warptape(folder, &["run", "--until-caught-up", "--close", "--log", &url]), 0);
    texts(&warptape(folder, &["replay", "verify", "--outputs", "--log", &url]), 0);
    outputs(&SqliteLog::open_existing(folder.join(log)).expect("a log"), "")
}

/// Asserts that the live feed, its recording and a file give the same outputs.
#[track_caller]
fn check_same(folder: &Path, source: &str, name: &str, file: &str) {
    feed_file(folder, source, &format!("{name}={file}"), "file.db");
    feed_file(folder, source, &format!("{name}=live.jsonl"), "again.db");
    let live = outputs_of(folder, "live.db");
    assert!(count(&live, "signals") > 10, "{} signals", count(&live, "signals"));
    assert_eq!(first_difference(&live, &outputs_of(folder, "file.db")), None);
    assert_eq!(first_difference(&live, &outputs_of(folder, "again.db")), None);
}

#[test]
fn signals_are_those_of_the_file_although_the_connection_is_cut() {
    let folder = folder();
    let folder = folder.path();
    let all = market();
    write_recording(folder, "market.jsonl", &all);
    let (first, second) = all.split_at(2_345);
    let venue = Venue::start([first, second].map(messages).into());
    let ticks = all.len().to_string();
    let fed = feed(folder, "binance-live", "btcusdt,ETHUSDT", &venue, &["--until-ticks", &ticks]);
    let (told, warned) = texts(&fed, 0);
    assert!(told.starts_with("published 6,000 ticks in 6,000 records to sqlite:live.db"), "{told}");
    assert!(told.contains("\nreceived 6,000 messages over 2 connections\n"), "{told}");
    assert!(told.contains("\nconnection cut at 20") && told.contains(": no trade is missing\n"), "{told}");
    assert!(told.contains("recorded 6,000 messages in live.jsonl"), "{told}");
    // The times of the test's market are from another year.
    assert!(warned.contains("times of receipt and of the venue's events are far apart"), "{warned}");
    let path = "/stream?streams=btcusdt@trade/btcusdt@bookTicker/ethusdt@trade/ethusdt@bookTicker";
    assert_eq!(venue.asked(), [path, path]);
    assert!(!folder.join("live.jsonl.bad").exists());
    check_same(folder, "binance-capture", "BINANCE", "market.jsonl");
}

/// Feeds recorded messages of the real venue.
#[test]
fn a_recording_of_the_venue_gives_the_same_signals_live() {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/data/binance-2024-08/spot-btcusdt_20240808.jsonl.gz");
    if !recording.is_file() {
        println!("not run: the recordings are absent ({})", recording.display());
        return;
    }
    let folder = folder();
    let folder = folder.path();
    let packed = std::fs::File::open(&recording).expect("the recording");
    let unpacked = std::process::Command::new("gzip").args(["-dc"]).stdin(packed).output().expect("gzip");
    let lines = unpacked.stdout.as_slice().lines().map(|line| line.expect("UTF-8"));
    let all: Vec<Message> =
        lines.map(|line| Message::text(line.split_once(' ').expect("a time").1)).collect();
    let venue = Venue::start(all.chunks(all.len() / 3 + 1).map(<[Message]>::to_vec).collect());
    // The numbers of trades and book tickers are from the recordings' README.
    let ticks = (9_757 + 28_040).to_string();
    let (told, _) = texts(&feed(folder, "binance-live", "BTCUSDT", &venue, &["--until-ticks", &ticks]), 0);
    assert_eq!(told.matches(": no trade is missing\n").count(), 2, "{told}");
    let file = recording.to_str().expect("UTF-8");
    check_same(folder, "binance-capture", "BINANCE", file);
}

#[test]
fn missing_trades_are_named_and_repeated_ones_are_published_once() {
    let folder = folder();
    let folder = folder.path();
    let first = vec![trade("BTCUSDT", 100, 0), trade("ETHUSDT", 7, 1), trade("BTCUSDT", 101, 2)];
    let second = vec![
        trade("BTCUSDT", 101, 2),
        trade("BTCUSDT", 105, 3),
        trade("ETHUSDT", 8, 4),
        trade("BTCUSDT", 103, 3),
        trade("BTCUSDT", 107, 5),
    ];
    let venue = Venue::start(vec![messages(&first), messages(&second)]);
    let arguments = ["--until-ticks", "7", "-v"];
    let (told, warned) = texts(&feed(folder, "binance-live", "BTCUSDT,ETHUSDT", &venue, &arguments), 0);
    let gap = "BINANCE:BTCUSDT: 3 trades are missing, ids 102 to 104: last trade before at 2024-08-08T23:54:15.002000Z, found at ";
    let other = "BINANCE:BTCUSDT: 1 trade is missing, id 106: ";
    for text in [&told, &warned] {
        assert!(text.contains(gap) && text.contains("; the connection was cut\n"), "{text}");
        assert!(text.contains(other) && text.contains("; the connection was not cut\n"), "{text}");
    }
    // Trade 103 comes after all.
    assert!(warned.contains(": 3 trades are missing\n"), "the cut when it is checked: {warned}");
    assert!(told.contains(": 2 trades are missing\n"), "the cut at the end: {told}");
    assert!(told.contains("\n2 gaps in all, with 3 missing trades, without 1 that came later\n"), "{told}");
    let counted = ", 1 repeated and left out, 1 trade out of order, 1 of them counted as missing before\n";
    assert!(told.contains(counted), "{told}");
    assert!(told.starts_with("published 7 ticks "), "{told}");
    let bad = std::fs::read_to_string(folder.join("live.jsonl.bad")).expect("the repeated trade");
    assert!(bad.lines().count() == 1 && bad.contains("\"t\":101,"), "{bad}");
    feed_file(folder, "binance-capture", "BINANCE=live.jsonl", "again.db");
    assert_eq!(first_difference(&outputs_of(folder, "live.db"), &outputs_of(folder, "again.db")), None);
}

#[test]
fn hostile_messages_are_counted_and_the_feed_goes_on() {
    let folder = folder();
    let folder = folder.path();
    let text = |text: &str| Message::text(text);
    let good = trade("BTCUSDT", 1, 0);
    let mut first = vec![
        text("garbage"),
        text(""),
        text("{\"data\":"),
        text(&"[".repeat(60_000)),
        text(&good.replace("\"61837.", "\"-61837.")),
        text(&good.replace("\"t\":1,", "\"t\":\"1\",")),
        text(&good.replace("\"t\":1,", "\"t\":99999999999999999999,")),
        text(&good.replace("\"T\":1723161255000", "\"T\":9223372036854775807")),
        text(&good.replace("BTCUSDT", "XRPUSDT")),
        Message::binary(vec![0; 100]),
        text("\u{1b}[31m\u{0}"),
        text(&good.replace(',', "\n,\r\n")),
    ];
    let bad = first.len() - 1;
    first.push(text(&"x".repeat(100_000)));
    let venue = Venue::start(vec![first, messages(&[trade("BTCUSDT", 2, 1)])]);
    let (told, warned) = texts(&feed(folder, "binance-live", "BTCUSDT", &venue, &["--until-ticks", "2"]), 0);
    assert!(told.starts_with("published 2 ticks "), "{told}");
    assert!(told.contains(&format!(", {bad} bad or of other symbols and left out\n")), "{told}");
    assert!(
        told.contains(": a message is too large (") && told.contains(": no trade is missing\n"),
        "{told}"
    );
    for named in ["garbage", "column `p`", "column `t`", "column `T`", "BINANCE:XRPUSDT", "100 bytes"] {
        assert!(warned.contains(named), "{named}: {warned}");
    }
    assert!(warned.contains("further ones are counted only"), "{warned}");
    // The recording has only the good messages, one per line.
    feed_file(folder, "binance-capture", "BINANCE=live.jsonl", "again.db");
    assert_eq!(first_difference(&outputs_of(folder, "live.db"), &outputs_of(folder, "again.db")), None);
}

/// Returns a trade of a Coinbase product.
fn coinbase_match(kind: &str, id: u64, at_ms: u64) -> String {
    let (second, fraction) = (at_ms / 1_000, at_ms % 1_000);
    format!(
        r#"{{"type":"{kind}","trade_id":{id},"sequence":{id},"maker_order_id":"ac928c66-ca53-498f-9c13-a110027a60e8","taker_order_id":"132fb6ae-456b-4654-b4e0-d681ac05cea1","time":"2024-11-07T08:{:02}:{:02}.{fraction:03}459Z","product_id":"BTC-USD","size":"5.23512","price":"400.{:02}","side":"sell"}}"#,
        second / 60,
        second % 60,
        id * 7 % 50
    )
}

fn coinbase_ticker(at_ms: u64) -> String {
    let (second, fraction) = (at_ms / 1_000, at_ms % 1_000);
    format!(
        r#"{{"type":"ticker","sequence":1,"product_id":"BTC-USD","price":"400.1","best_bid":"400.05","best_bid_size":"0.46688654","best_ask":"400.60","best_ask_size":"1.5","side":"buy","time":"2024-11-07T08:{:02}:{:02}.{fraction:03}459Z","trade_id":1,"last_size":"1"}}"#,
        second / 60,
        second % 60
    )
}

#[test]
fn coinbase_is_subscribed_to_and_gives_the_signals_of_the_file() {
    let folder = folder();
    let folder = folder.path();
    let subscriptions =
        r#"{"type":"subscriptions","channels":[{"name":"matches","product_ids":["BTC-USD"]}]}"#;
    let head = |last: u64| vec![subscriptions.to_owned(), coinbase_match("last_match", last, 0)];
    let of =
        |number: u64| [coinbase_match("match", 500 + number, number * 200), coinbase_ticker(number * 200)];
    let first = [head(499), (0..400).flat_map(of).collect()].concat();
    // Two trades happen while the connection is cut.
    let second = [head(901), (402..800).flat_map(of).collect()].concat();
    let all = [first.clone(), second.clone()].concat();
    write_recording(folder, "market.jsonl", &all);
    let venue = Venue::start(vec![messages(&first), messages(&second)]);
    let fed = feed(folder, "coinbase-live", "btc-usd", &venue, &["--until-ticks", "1596"]);
    let (told, _) = texts(&fed, 0);
    assert!(told.starts_with("published 1,596 ticks "), "{told}");
    assert!(told.contains("COINBASE:BTC-USD: 2 trades are missing, ids 900 to 901: "), "{told}");
    assert!(told.contains("ignored 2×last_match, 2×subscriptions"), "{told}");
    for asked in venue.asked() {
        let asked: serde_json::Value = serde_json::from_str(&asked).expect("JSON");
        assert_eq!(asked["type"], "subscribe");
        assert_eq!(asked["product_ids"], serde_json::json!(["BTC-USD"]));
        assert_eq!(asked["channels"], serde_json::json!(["matches", "ticker", "heartbeat"]));
    }
    check_same(folder, "coinbase-capture", "COINBASE", "market.jsonl");
}

#[test]
fn a_refused_subscription_ends_the_feed_with_its_reason() {
    let folder = folder();
    let error = r#"{"type":"error","message":"Failed to subscribe","reason":"X-Y is not a valid product"}"#;
    let venue = Venue::start(vec![vec![Message::text(error)]]);
    let (_, said) = texts(&feed(folder.path(), "coinbase-live", "X-Y", &venue, &[]), 1);
    assert!(said.contains("X-Y is not a valid product") && said.contains("--symbols"), "{said}");
}

#[test]
fn a_signal_ends_the_feed_and_a_second_feed_of_a_symbol_is_refused() {
    let folder = folder();
    let folder = folder.path();
    let venue = Venue::start(vec![messages(&[trade("BTCUSDT", 1, 0)])]);
    let mut live = Running::start(folder, &feed_arguments("binance-live", "BTCUSDT,ETHUSDT", &venue, &[]));
    let log = folder.join("live.db");
    live.run_until("the tick is published without further ones", || {
        let log = SqliteLog::open_existing(&log).ok()?;
        (super::processes::ends(&log, "ticks").iter().sum::<i64>() == 1).then_some(())
    });
    let second =
        ["feed", "binance-live", "--symbols", "ETHUSDT", "--url", &venue.url, "--log", "sqlite:live.db"];
    let (_, error) = texts(&warptape(folder, &second), 1);
    assert!(error.contains("feed-"), "{error}");
    let told = live.stop("TERM");
    assert!(told.starts_with("published 1 ticks ") && told.contains(", interrupted\n"), "{told}");
}

#[test]
fn a_feed_ends_after_its_time_although_nothing_comes() {
    let folder = folder();
    let venue = Venue::start(vec![Vec::new()]);
    let (told, _) = texts(&feed(folder.path(), "binance-live", "BTCUSDT", &venue, &["--seconds", "1"]), 0);
    assert!(told.starts_with("published 0 ticks "), "{told}");
    assert!(told.contains("received 0 messages over 1 connection\n"), "{told}");
}

#[test]
fn wrong_arguments_and_absent_servers_are_named() {
    let folder = folder();
    let folder = folder.path();
    let absent = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("an address");
    let (absent, plain) = (format!("ws://{absent}"), plain_server());
    for (arguments, code, expected) in [
        (&["--symbols", "BTC/USDT"][..], 2, "--symbols: found `BTC/USDT`"),
        (&["--symbols", "BTCUSDT", "--url", "https://example.com"], 2, "--url"),
        (&["--symbols", "BTCUSDT", "--url", &absent], 1, "cannot connect"),
        (&["--symbols", "BTCUSDT", "--url", &plain], 1, "the server refuses: HTTP error: 404"),
    ] {
        let feed = [&["feed", "binance-live", "--log", "sqlite:none.db"][..], arguments].concat();
        let (out, error) = texts(&warptape(folder, &feed), code);
        assert!(out.is_empty() && error.contains(expected), "{arguments:?}: {error}");
    }
    std::fs::write(folder.join("kept.jsonl"), "1 {}\n").expect("the folder can be written");
    let feed = ["feed", "binance-live", "--symbols", "BTCUSDT", "--url", &absent, "--record", "kept.jsonl"];
    let (_, error) = texts(&warptape(folder, &feed), 2);
    assert!(error.contains("kept.jsonl exists"), "{error}");
}

/// Returns the address of a server that does not support WebSockets.
fn plain_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("ws://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            read_head(&client);
            drop(client.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"));
        }
    });
    url
}

fn read_head(client: &TcpStream) {
    let mut lines = BufReader::new(client).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.is_empty()), "the end of the request's head");
}

#[test]
fn a_venue_behind_tls_must_be_one_that_the_system_trusts() {
    let folder = folder();
    let folder = folder.path();
    let (config, certificate) = tls_server();
    std::fs::write(folder.join("authorities.pem"), certificate).expect("a file");
    let trades = [1, 2, 3].map(|id| trade("BTCUSDT", id, id));
    let venue = Venue::listen(vec![Vec::new(), messages(&trades)], Some(config));
    let arguments = feed_arguments("binance-live", "BTCUSDT", &venue, &["--until-ticks", "3"]);
    let (_, error) = texts(&warptape(folder, &arguments), 1);
    assert!(error.contains("certificate"), "{error}");
    let trusted = warptape_with(folder, &arguments, &[("SSL_CERT_FILE", "authorities.pem")]);
    assert!(texts(&trusted, 0).0.starts_with("published 3 ticks "));
}
