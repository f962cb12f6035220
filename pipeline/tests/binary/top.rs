//! `top` for users in a terminal, provided by tmux, and for scripts. Its endpoint answers whatever the test sets.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::endpoint::{begin_of, url_of};
use super::processes::{Running, folder, texts, warptape};
use super::tmux::Tmux;

/// Greatest time until the screen shows a problem.
const SHOWN_WITHIN: Duration = Duration::from_secs(5);

/// An endpoint that reports a pipeline in the state that the test sets.
struct Endpoint {
    address: SocketAddr,
    said: Arc<Mutex<Said>>,
    server: Option<JoinHandle<()>>,
}

/// Answers of the endpoint.
struct Said {
    state: Value,
    token: Option<&'static str>,
    ends: bool,
    /// Requests so far, as `PATH?QUERY`.
    requests: Vec<String>,
}

impl Endpoint {
    fn start(address: &str, token: Option<&'static str>) -> Self {
        let listener = TcpListener::bind(address).expect("an address");
        let address = listener.local_addr().expect("an address");
        let said = Said { state: caught_up(), token, ends: false, requests: Vec::new() };
        let said = Arc::new(Mutex::new(said));
        let of_server = said.clone();
        let server = std::thread::spawn(move || {
            for client in listener.incoming() {
                let mut said = of_server.lock().expect("nobody panics while holding it");
                if said.ends {
                    return;
                }
                // A client may close the connection at any time.
                drop(client.and_then(|client| said.answer(client)));
            }
        });
        Self { address, said, server: Some(server) }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn set_state(&self, level: &str, words: &str) {
        let mut said = self.said.lock().expect("nobody panics while holding it");
        said.state["state"] = json!({"level": level, "words": words, "components": []});
    }

    fn was_asked(&self, request: &str) -> bool {
        self.said.lock().expect("nobody panics while holding it").requests.iter().any(|one| one == request)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Ok(mut said) = self.said.lock() {
            said.ends = true;
        }
        drop(TcpStream::connect(self.address));
        drop(self.server.take().map(JoinHandle::join));
    }
}

impl Said {
    fn answer(&mut self, mut client: TcpStream) -> std::io::Result<()> {
        client.set_read_timeout(Some(Duration::from_secs(1)))?;
        let mut head = Vec::new();
        for line in BufReader::new(&client).lines() {
            match line? {
                empty if empty.is_empty() => break,
                line => head.push(line),
            }
        }
        let request = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().to_owned();
        let has_token = self.token.is_none_or(|token| {
            let expected = format!("authorization: bearer {token}");
            head.iter().any(|line| line.to_lowercase() == expected)
        });
        let (status, body) = match request.split('?').next() {
            _ if !has_token => (401, String::new()),
            Some("/live.json") => (200, self.state.to_string()),
            Some("/candles.json") => (200, candles().to_string()),
            Some("/why.txt") => (200, "caused by tick 0 \u{1b}[2J\nwait_ms  until\n".to_owned()),
            _ => (404, "no such page".to_owned()),
        };
        self.requests.push(request);
        let length = body.len();
        write!(client, "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
    }
}

fn caught_up() -> Value {
    let series: Vec<f64> = (0..120).map(f64::from).collect();
    json!({
        "at": "2026-11-24T06:00:01.250000Z",
        "process": {"node": "warptape-0", "group": "warptape", "ordinal": 0, "version": "0.1.0"},
        "state": {"level": "ok", "words": "caught up", "components": []},
        "totals": {
            "ticks": 2_000_000, "signals": 120_850, "decisions": 1_047, "commits": 15, "late": 0, "dead_letters": 0,
            "risk_requests": 0, "symbols": 100, "waiting_rows": 0, "in_flight_rows": 0,
        },
        "history": {
            "ticks_per_s": series, "signals_per_s": series, "commits_per_s": series, "lag_s": [null],
            "waiting_rows": [0],
        },
        "latency": null, "lag": null, "partitions": [],
        "lanes": [{
            "lane": 0, "device": "cpu:0", "state": "working", "busy_percent": 50.0, "rows_per_s": 1_000.0,
            "in_flight_rows": 1, "waiting_rows": 2, "groups": [], "symbols": [],
        }],
        "devices": [], "signals": [], "signals_by_kind": {"BAR": 7},
        "decisions": [{
            "place": "0:7", "at": "2026-11-24T06:00:01Z", "input": "Arrived", "words": "Arrived: 7 rows",
            "reasons": ["Dispatch: batch 4 to lane 0: the oldest row is due"],
        }],
        "risk": [],
        "stores": {
            "log": "sqlite:w.db", "lost": null, "disk_free_bytes": null, "disk_size_bytes": null, "hot_state": null,
        },
        "verified": null,
        "symbols": [
            {"symbol": "SYNTH:AAAA", "bars": ["1m"], "signals": 9},
            {"symbol": "A&B C:株", "bars": ["5m"], "signals": 1},
        ],
        "symbols_left_out": 0, "records_skipped": 0,
    })
}

fn candles() -> Value {
    let candle = json!({
        "start": "2026-11-24T05:59:00Z", "end": "2026-11-24T06:00:00Z", "open": "100.0", "high": "102.0", "low": "99.0",
        "close": "101.5", "volume": "1200", "trades": 9, "indicators": {},
    });
    json!({"symbol": "SYNTH:AAAA", "bar": "1m", "candles": [candle], "signals": []})
}

#[test]
fn a_pipeline_is_watched_in_a_terminal() {
    let folder = folder();
    let endpoint = Endpoint::start("127.0.0.1:0", None);
    let tmux = Tmux::start(folder.path());
    tmux.start_command(&format!("\"$WARPTAPE\" top --endpoint {}", endpoint.url()));
    tmux.await_screen(&["● caught up", "SYNTH:AAAA 1m ▲ 101.5", "0 cpu:0  working", "? keys"]);
    assert!(tmux.is_on_other_screen());
    assert!(endpoint.was_asked("/candles.json?symbol=SYNTH%3AAAAA&bar=1m"), "the first symbol's candles");
    for (columns, lines) in [(60, 20), (240, 60), (20, 5), (120, 40)] {
        tmux.resize(columns, lines);
        tmux.await_screen(&["● caught up"]);
    }
    tmux.press(&["s"]);
    tmux.write("b c");
    tmux.await_screen(&["symbol, 1 found", "A&B C:株"]);
    tmux.press(&["Enter"]);
    tmux.await_screen(&["A&B C:株 5m"]);
    tmux.press(&["Left", "Left", "Tab", "Tab", "Tab", "Tab", "Tab", "Enter"]);
    tmux.await_screen(&["why: entry 0:7", "caused by tick 0 \\u001b[2J"]);
    assert!(endpoint.was_asked("/why.txt?entry=0%3A7"));
    tmux.press(&["q", "?"]);
    tmux.await_screen(&["Shift-Tab, left"]);
    // The first `q` closes the help; the second ends the command.
    tmux.press(&["q", "q"]);
    tmux.await_end(0);
}

#[test]
fn a_trouble_is_on_the_screen_within_seconds() {
    let folder = folder();
    let endpoint = Endpoint::start("127.0.0.1:0", None);
    let tmux = Tmux::start(folder.path());
    tmux.start_command(&format!("\"$WARPTAPE\" top --endpoint {}", endpoint.url()));
    tmux.await_screen(&["● caught up"]);
    let shown_soon = |words: &str| {
        let since = Instant::now();
        tmux.await_screen(&[words]);
        assert!(since.elapsed() < SHOWN_WITHIN, "{words}: {:?}", since.elapsed());
    };
    endpoint.set_state("down", "broker lost since 12 s");
    shown_soon("✖ broker lost since 12 s");
    let address = endpoint.address.to_string();
    drop(endpoint);
    shown_soon("✖ no answer since ");
    let _again = Endpoint::start(&address, None);
    shown_soon("● caught up");
    tmux.signal("TERM");
    tmux.await_end(0);
}

/// Asks for the selected decision of the log `w.db`. The explanation is the one of the command.
fn explain_as_the_command(tmux: &Tmux<'_>, folder: &Path) {
    tmux.press(&["Enter"]);
    let screen = tmux.await_screen(&["why: entry 0:"]);
    let place = screen.split_once("why: entry 0:").expect("a title").1;
    let sequence = place.split(' ').next().expect("a sequence");
    let why = ["replay", "why", sequence, "--log", "sqlite:w.db"];
    let (explained, _) = texts(&warptape(folder, &why), 0);
    let first: String = explained.lines().next().expect("a line").chars().take(100).collect();
    tmux.await_screen(&[first.as_str()]);
}

/// The real endpoint of a pipeline, which dies.
#[test]
fn a_running_pipeline_is_shown_until_it_dies() {
    let folder = folder();
    let log = ["--log", "sqlite:w.db"];
    let feed = ["feed", "synth", "--symbols", "20", "--ticks", "60000"];
    texts(&warptape(folder.path(), &[&feed[..], &log].concat()), 0);
    let mut run = Running::start(folder.path(), &[&["run", "--listen", "127.0.0.1:0"][..], &log].concat());
    let url = url_of(&mut run);
    let tmux = Tmux::start(folder.path());
    tmux.start_command(&format!("\"$WARPTAPE\" top --endpoint {url}"));
    let screen =
        tmux.await_screen(&["● caught up", "60,000 ticks", "SYNTH:", " vol ", "cpu", "BAR ", "sqlite:w.db"]);
    assert!(!screen.contains("asking"), "{screen}");
    explain_as_the_command(&tmux, folder.path());
    tmux.press(&["q"]);
    let since = Instant::now();
    run.kill();
    tmux.await_screen(&["✖ no answer since ", "sqlite:w.db"]);
    assert!(since.elapsed() < SHOWN_WITHIN, "{:?}", since.elapsed());
    tmux.press(&["q"]);
    tmux.await_end(0);
}

/// Text of a lane's planted panic, before the lane.
const PLANTED: &str = "a planted fault of lane ";

/// A real lane that fails until its restarts are used up, beside one that works on.
#[test]
fn a_lost_lane_is_on_page_and_screen_within_seconds() {
    let folder = folder();
    let log = ["--log", "sqlite:w.db"];
    let feed =
        ["feed", "synth", "--ticks", "1000000000", "--batch", "16", "--symbols", "30", "--rate", "2000"];
    let feed = Running::start(folder.path(), &[&feed[..], &log].concat());
    let run = [&["run", "--listen", "127.0.0.1:0"][..], &log].concat();
    let fault = [("WARPTAPE_FAILPOINT", "LaneFails:300"), ("WARPTAPE__ENGINE__DEVICES", "cpu:2")];
    let mut run = Running::start_with(folder.path(), &run, &fault);
    let url = url_of(&mut run);
    let tmux = Tmux::start(folder.path());
    tmux.start_command(&format!("\"$WARPTAPE\" top --endpoint {url}"));
    tmux.await_screen(&["● ", "0 cpu:0", "1 cpu:1"]);
    run.await_saying(PLANTED);
    let since = Instant::now();
    let said = run.said();
    let lane =
        said.split_once(PLANTED).and_then(|(_, rest)| rest.chars().next()).expect("the lane that fails");
    tmux.await_screen(&[
        "▲ ",
        &format!("{lane} cpu:{lane}  lost"),
        &format!("lane {lane} (cpu:{lane}) is lost"),
    ]);
    let on_screen = since.elapsed();
    let (status, streamed) = begin_of(&url, "/live");
    let on_page = since.elapsed();
    assert_eq!(status, 200, "{streamed}");
    assert!(
        streamed.contains("\"state\":\"lost\"") && streamed.contains("is lost or not open yet"),
        "{streamed}"
    );
    assert!(on_page < SHOWN_WITHIN, "{on_screen:?} on the screen, {on_page:?} on the page");
    println!("a lost lane is on the screen after {on_screen:?}, on the page after at most {on_page:?}");
    tmux.close();
    drop(feed);
    run.stop("TERM");
}

/// A run with its own view, behind a token that the view does not need.
#[test]
fn a_run_shows_itself_until_q() {
    let folder = folder();
    let log = ["--log", "sqlite:w.db"];
    let feed = ["feed", "synth", "--symbols", "20", "--ticks", "60000"];
    texts(&warptape(folder.path(), &[&feed[..], &log].concat()), 0);
    let tmux = Tmux::start(folder.path());
    let run = "\"$WARPTAPE\" run --top --log sqlite:w.db --listen 127.0.0.1:0";
    tmux.start_command(&format!("WARPTAPE__ENDPOINT__TOKEN=secret {run}"));
    tmux.await_screen(&["● caught up", "60,000 ticks", "SYNTH:", " vol ", "BAR ", "sqlite:w.db", "? keys"]);
    assert!(tmux.is_on_other_screen());
    explain_as_the_command(&tmux, folder.path());
    // The first one closes the explanation.
    tmux.press(&["q", "q"]);
    let screen = tmux.await_screen(&["decisions  ", "ended with 0"]);
    assert!(screen.contains("ticks            60,000") && screen.contains("live page: "), "{screen}");
    tmux.await_end(0);
    for end in ["C-c", "TERM"] {
        tmux.start_command(run);
        tmux.await_screen(&["● caught up", "? keys"]);
        match end {
            "TERM" => tmux.signal(end),
            keys => tmux.press(&[keys]),
        }
        tmux.await_screen(&["decisions  "]);
        tmux.await_end(0);
    }
    // Messages wait for the end of the screen.
    tmux.start_command(&format!("{run} --until-caught-up"));
    let screen = tmux.await_screen(&["caught up: all ticks", "decisions  "]);
    assert_eq!(screen.matches("caught up: all ticks").count(), 1, "{screen}");
    tmux.await_end(0);
}

#[test]
fn a_demo_shows_itself_until_its_end() {
    let folder = folder();
    let tmux = Tmux::start(folder.path());
    let demo = "\"$WARPTAPE\" demo --top --symbols 20 --data";
    tmux.start_command(&format!("{demo} one"));
    tmux.await_screen(&["SYNTH:", " vol ", "cpu:3", "sqlite:one/demo.db", "? keys"]);
    assert!(tmux.is_on_other_screen());
    tmux.press(&["q"]);
    tmux.await_screen(&["log        sqlite:one/demo.db"]);
    tmux.await_end(0);
    tmux.start_command(&format!("{demo} two --ticks 300000"));
    tmux.await_screen(&["log        sqlite:two/demo.db", "ticks           300,000"]);
    tmux.await_end(0);
}

#[test]
fn a_view_needs_an_endpoint_and_a_terminal() {
    let folder = folder();
    let log = ["--log", "sqlite:w.db"];
    let (out, error) = texts(&warptape(folder.path(), &[&["run", "--top"][..], &log].concat()), 2);
    assert!(out.is_empty() && error.contains("endpoint.listen is empty"), "{out}{error}");
    assert!(!folder.path().join("w.db").exists(), "it is refused before anything else");
    texts(&warptape(folder.path(), &[&["feed", "synth", "--ticks", "1000"][..], &log].concat()), 0);
    let run = ["run", "--top", "--until-caught-up", "--listen", "127.0.0.1:0"];
    let (out, error) = texts(&warptape(folder.path(), &[&run[..], &log].concat()), 0);
    assert!(out.starts_with("ticks ") && error.contains("caught up: all ticks"), "{out}{error}");
    assert!(!out.contains('\u{1b}') && !error.contains('\u{1b}'), "{out:?}{error:?}");
}

#[test]
fn a_token_is_asked_for_and_presented() {
    let folder = folder();
    let endpoint = Endpoint::start("127.0.0.1:0", Some("secret"));
    let tmux = Tmux::start(folder.path());
    tmux.start_command(&format!("\"$WARPTAPE\" top --endpoint {}", endpoint.url()));
    tmux.await_screen(&["✖ it wants a token: set endpoint.token"]);
    tmux.press(&["C-c"]);
    tmux.await_end(0);
    let listen = endpoint.address;
    tmux.start_command(&format!(
        "WARPTAPE__ENDPOINT__TOKEN=secret WARPTAPE__ENDPOINT__LISTEN={listen} \"$WARPTAPE\" top"
    ));
    tmux.await_screen(&["● caught up"]);
    tmux.press(&["q"]);
    tmux.await_end(0);
}

#[test]
fn colours_can_be_turned_off() {
    let folder = folder();
    let endpoint = Endpoint::start("127.0.0.1:0", None);
    let tmux = Tmux::start(folder.path());
    for (variable, is_coloured) in [("NO_COLOR=", true), ("NO_COLOR=1", false)] {
        tmux.start_command(&format!("{variable} \"$WARPTAPE\" top --endpoint {}", endpoint.url()));
        tmux.await_screen(&["● caught up", "SYNTH:AAAA 1m ▲ 101.5"]);
        let screen = tmux.run(&["capture-pane", "-p", "-e"]);
        let colours = screen.split('\u{1b}').filter(|part| {
            let numbers = part.trim_start_matches('[').split('m').next().unwrap_or_default();
            numbers.split(';').any(|number| matches!(number.parse(), Ok(30..=38 | 90..=97)))
        });
        assert_eq!(colours.count() > 0, is_coloured, "{variable}: {screen:?}");
        tmux.press(&["q"]);
        tmux.await_end(0);
    }
}

#[test]
fn a_pipe_gets_lines() {
    let folder = folder();
    let endpoint = Endpoint::start("127.0.0.1:0", None);
    let mut top = Running::start(folder.path(), &["top", "--endpoint", &endpoint.url()]);
    let line = top.line();
    let (time, words) = line.split_once(' ').expect("a time");
    assert!(time.starts_with("20") && time.ends_with('Z'), "{line}");
    assert_eq!(words, "ok, caught up · ticks/s 119 · lag unknown · latency unknown · signals/s 119");
    // A change is shown at once.
    endpoint.set_state("degraded", "lane 1 lost");
    let since = Instant::now();
    assert!(top.line().contains(" degraded, lane 1 lost · "));
    drop(endpoint);
    let line = top.line();
    assert!(line.contains(" no answer since ") && line.contains("efused"), "{line}");
    assert!(since.elapsed() < 2 * SHOWN_WITHIN, "{:?}", since.elapsed());
    assert!(top.stop("TERM").lines().all(|line| line.contains(" no answer since ")));
}

#[test]
fn an_endpoint_is_a_url() {
    let folder = folder();
    let (_, error) = texts(&warptape(folder.path(), &["top", "--endpoint", "localhost:9464"]), 2);
    assert!(error.contains("give the URL of an endpoint without a path"), "{error}");
}
