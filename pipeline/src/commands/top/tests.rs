//! Screens of a made-up pipeline, and the effects of keys.

use std::path::Path;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use serde_json::{Value, json};

use super::client::{News, Subject, Trouble, Wish};
use super::keys::{Action, KEYS};
use super::model::{Link, Mode, Model, Pane};
use super::plain::line;
use super::screen::draw;
use crate::endpoint::live::snapshot::{Candle, Candles, Risk, Signal, Snapshot};
use crate::printable::printable_line;

/// Text with control sequences and with characters that have no width, are wide, or read backwards.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}31m\r\n\t\u{202e}\u{200d}e\u{301}株式🚀\u{feff}\0";

/// Returns a state with contents for every part of the screen.
fn state() -> Snapshot {
    let wave = |seconds: u32, least: f64| f64::from(seconds % 13) * 40.0 + least;
    let series = |least| (0..120).map(|second| wave(second, least)).collect::<Vec<f64>>();
    let lag = |records: i64, seconds: f64| json!({"records": records, "seconds": seconds});
    let lane = |lane: i32, state: &str, busy: f64| {
        json!({
            "lane": lane, "device": format!("cpu:{lane}"), "state": state, "busy_percent": busy,
            "rows_per_s": 52_000.0 + f64::from(lane), "in_flight_rows": 700, "waiting_rows": 40,
            "groups": ["0:1", "3:7"], "symbols": ["SYNTH:AAAA", "SYNTH:AAAB"],
        })
    };
    let partition = |partition: i32, lag: Value| {
        json!({
            "partition": partition, "is_restoring": false, "is_paused": partition == 1,
            "watermark": "2026-11-24T06:00:00.000000Z", "symbols": 25, "waiting_rows": 12, "lag": lag,
        })
    };
    let signal = |place: &str, kind: &str, value: f64| {
        json!({
            "place": place, "symbol": "SYNTH:AAAA", "kind": kind, "bar": "1m",
            "end": "2026-11-24T06:00:00.000000Z", "value": value,
        })
    };
    let entry = |sequence: i64, reasons: &[&str]| {
        json!({
            "place": format!("0:{sequence}"), "at": "2026-11-24T06:00:01.005000Z", "input": "BatchCompleted",
            "words": "Completed: lane 0 (cpu:0) finished batch 3 after 2.500 ms", "reasons": reasons,
        })
    };
    let dispatch = "Dispatch: batch 4 of 700 rows of 2 groups to lane 0: enough rows for a full batch wait; the oldest \
                    row arrived 1.000 ms ago";
    serde_json::from_value(json!({
        "at": "2026-11-24T06:00:01.250000Z",
        "process": {"node": "warptape-0", "group": "warptape", "ordinal": 0, "version": "0.1.0"},
        "state": {"level": "ok", "words": "caught up", "components": [
            {"name": "log", "level": "ok", "reason": "it answers"},
        ]},
        "totals": {
            "ticks": 2_000_000, "signals": 120_850, "decisions": 1_047, "commits": 15, "late": 1_015,
            "dead_letters": 0, "risk_requests": 3, "symbols": 100, "waiting_rows": 34, "in_flight_rows": 1_400,
        },
        "history": {
            "ticks_per_s": series(200_000.0), "signals_per_s": series(90.0), "commits_per_s": series(2.0),
            "lag_s": (0..120).map(|second| (second > 100).then(|| wave(second, 0.0) / 1e3)).collect::<Vec<_>>(),
            "waiting_rows": (0..120).map(|second| second % 7).collect::<Vec<u64>>(),
        },
        "latency": {"p50_ms": 3.25, "p99_ms": 77.5, "p999_ms": 1_250.0},
        "lag": lag(34, 0.012),
        "partitions": [partition(0, lag(30, 0.012)), partition(1, lag(4, 0.5)), partition(2, Value::Null)],
        "lanes": [lane(0, "working", 83.0), lane(1, "idle", 0.0), lane(2, "lost", 0.0), lane(3, "held", 4.0)],
        "devices": [{
            "device": "cuda:0", "healthy": false, "reasons": ["hot"], "temperature_celsius": 91,
            "power_watts": null, "utilization_percent": 40,
        }],
        "signals": [signal("3:17", "EMA_CROSS_UP", 101.25), signal("3:16", "BAR", 100.5)],
        "signals_by_kind": {"BAR": 120_000, "EMA_CROSS_UP": 850},
        "decisions": [
            entry(1_046, &[dispatch, "Seal: records 0 to 16 of partition 0: the commit interval is over"]),
            entry(1_045, &["Place: group 3 of partition 1 on lane 1: rendezvous"]),
        ],
        "risk": [{"id": "desk-7", "outcome": "asked", "kind": "greeks", "fields": {"spot": 100.0}}],
        "stores": {
            "log": "sqlite:market.db", "lost": null, "disk_free_bytes": 40u64 << 30, "disk_size_bytes": 80u64 << 30,
            "hot_state": "redis at localhost, 12 ms behind",
        },
        "verified": {"sequence": 1_040, "newest": 1_047, "outputs": 120_000, "difference": null, "share_percent": 10},
        "symbols": [
            {"symbol": "SYNTH:AAAA", "bars": ["1m", "5m"], "signals": 1_200},
            {"symbol": "SYNTH:AAAB", "bars": ["5m"], "signals": 900},
            {"symbol": "BINANCE:BTCUSDT", "bars": ["1m"], "signals": 800},
        ],
        "symbols_left_out": 97, "records_skipped": 12,
    }))
    .expect("it is a state")
}

/// Candles that rise and fall.
fn candles() -> Candles {
    let candle = |minute: u32| {
        let price = |cents: u32| format!("{}.{:02}", 100 + cents / 100, cents % 100);
        let (open, close) = (minute * 37 % 190, minute * 53 % 210);
        Candle {
            start: format!("2026-11-24T05:{:02}:00.000000Z", minute % 60),
            end: format!("2026-11-24T05:{:02}:00.000000Z", (minute + 1) % 60),
            open: price(open),
            high: price(open.max(close) + 20),
            low: price(open.min(close)),
            close: price(close),
            volume: (minute % 9 * 100).to_string(),
            trades: 10,
            ..Candle::default()
        }
    };
    let alert = Signal { end: candle(55).end, kind: "EMA_CROSS_UP".to_owned(), ..Signal::default() };
    Candles {
        symbol: "SYNTH:AAAA".to_owned(),
        bar: "1m".to_owned(),
        candles: (0..59).map(candle).collect(),
        signals: vec![alert],
    }
}

fn wish(symbol: &str, bar: &str) -> Wish {
    Wish { symbol: symbol.to_owned(), bar: bar.to_owned() }
}

/// Returns a model that has received its answers.
fn model() -> Model {
    let mut model = Model::new("http://127.0.0.1:9464", false);
    answer(&mut model, 1_000, Ok(state()));
    model.take(News::Candles(wish("SYNTH:AAAA", "1m"), Ok(candles())));
    model
}

/// Gives the model an answer about the state at this time.
fn answer(model: &mut Model, at_ms: u64, state: Result<Snapshot, Trouble>) {
    model.now = Duration::from_millis(at_ms);
    model.take(News::State(Box::new(state)));
}

fn press(model: &mut Model, keys: &str) -> Action {
    let mut action = Action::Redraw;
    for character in keys.chars() {
        action = model.key(key(match character {
            '↓' => KeyCode::Down,
            '↑' => KeyCode::Up,
            '→' => KeyCode::Right,
            '←' => KeyCode::Left,
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '⎋' => KeyCode::Esc,
            '⌫' => KeyCode::Backspace,
            '⇟' => KeyCode::PageDown,
            '⇥' => KeyCode::End,
            character => KeyCode::Char(character),
        }));
    }
    action
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn screen(model: &Model, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
    terminal.draw(|frame| draw(frame, model)).expect("it is drawn");
    terminal
}

/// Returns the screen as text, without blanks at the ends of lines.
fn text(model: &Model, width: u16, height: u16) -> String {
    let terminal = screen(model, width, height);
    let buffer = terminal.backend().buffer();
    let line = |row: u16| {
        let cells = (0..buffer.area.width).map(|column| buffer[(column, row)].symbol());
        cells.collect::<String>().trim_end().to_owned() + "\n"
    };
    (0..buffer.area.height).map(line).collect()
}

#[track_caller]
fn shows(text: &str, expected: &[&str]) {
    for expected in expected {
        assert!(text.contains(expected), "{expected:?} is missing in\n{text}");
    }
}

/// True if the test writes the expected screens instead of comparing them.
fn writes() -> bool {
    std::env::var_os("WRITE_GOLDEN").is_some()
}

/// Compares screens with those in `golden`. WRITE_GOLDEN=1 writes them.
#[test]
fn screens_are_those_of_the_golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/top/golden");
    for (width, height) in [(60, 20), (80, 24), (120, 40), (240, 60)] {
        let shown = text(&model(), width, height);
        let path = folder.join(format!("{width}x{height}.txt"));
        if writes() {
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(&path, &shown).expect("it is written");
        }
        let golden = std::fs::read_to_string(&path).expect("a golden file: write it with WRITE_GOLDEN=1");
        assert!(shown == golden, "{} is to have\n{shown}", path.display());
    }
}

/// The documentation shows exactly the screen that the command draws. WRITE_GOLDEN=1 writes it there.
#[test]
fn the_screen_in_the_documentation_is_this_one() {
    const FENCE: &str = "```text\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/top.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(FENCE).expect("a screen");
    let (documented, after) = rest.split_once("```\n").expect("the end of the screen");
    let shown = text(&model(), 112, 32);
    if writes() {
        std::fs::write(&path, format!("{before}{FENCE}{shown}```\n{after}")).expect("it is written");
    } else {
        assert!(documented == shown, "docs/top.md is to have\n{shown}");
    }
    for (keys, meaning) in KEYS {
        assert!(page.contains(&format!("| {keys} | {meaning} |")), "{keys:?} in docs/top.md");
    }
}

#[test]
fn no_screen_is_too_small_or_too_large() {
    let why = |keys: &str| {
        let mut model = model();
        if let Action::Explain(subject) = press(&mut model, "\n") {
            model.take(News::Why(subject, Ok("why\n".repeat(90))));
        }
        press(&mut model, keys);
        model
    };
    let keys = ["", "?", "s", "sAAA", "\t", "\t\t\t", "⇥", " "];
    let mut models: Vec<Model> = keys
        .iter()
        .map(|keys| {
            let mut model = model();
            press(&mut model, keys);
            model
        })
        .collect();
    models.extend([why(""), why("⇟→→→→"), Model::new("http://127.0.0.1:9464", true)]);
    for model in &models {
        for width in [1, 2, 5, 10, 30, 60, 80, 109, 110, 120, 160, 180, 240] {
            for height in [1, 2, 3, 4, 5, 8, 10, 11, 12, 20, 24, 40, 60] {
                assert_eq!(text(model, width, height).lines().count(), usize::from(height));
            }
        }
    }
}

/// Replaces every text of a JSON value.
fn replace_texts(value: &mut Value, with: &str) {
    match value {
        Value::String(text) => *text = with.to_owned(),
        Value::Array(values) => values.iter_mut().for_each(|value| replace_texts(value, with)),
        Value::Object(fields) => {
            let old = std::mem::take(fields);
            for (name, mut value) in old {
                replace_texts(&mut value, with);
                // Names of indicators and kinds are foreign texts too; field names are not.
                let is_kind = name.chars().any(char::is_uppercase);
                fields.insert(if is_kind { format!("{with}{name}") } else { name }, value);
            }
        }
        _ => {}
    }
}

#[test]
fn hostile_text_does_not_reach_the_terminal() {
    let replaced = |value: Value| {
        let mut value = value;
        replace_texts(&mut value, HOSTILE);
        value
    };
    let hostile: Snapshot = serde_json::from_value(replaced(json!(state()))).expect("a state");
    let mut candles: Candles = serde_json::from_value(replaced(json!(candles()))).expect("candles");
    let mut model = Model::new("http://127.0.0.1:9464", true);
    answer(&mut model, 1_000, Ok(hostile));
    // Drawn prices are numbers, but the printed price is foreign text.
    candles.candles.insert(0, self::candles().candles[0].clone());
    model.take(News::Candles(wish(HOSTILE, HOSTILE), Ok(candles)));
    let refused = Trouble::Refused { path: "/live.json".to_owned(), status: 500, text: HOSTILE.to_owned() };
    let mut models = vec![model.clone()];
    for keys in ["s", "sé\u{202e}\u{1b}株", "\n", "\t\t\t\t\t", "\t"] {
        let mut one = model.clone();
        if let Action::Explain(subject) = press(&mut one, keys) {
            one.take(News::Why(subject, Ok(HOSTILE.repeat(3))));
        }
        models.push(one);
    }
    for trouble in [refused, Trouble::Silent(HOSTILE.to_owned())] {
        let mut one = model.clone();
        answer(&mut one, 9_000, Err(trouble));
        models.push(one);
    }
    for model in &models {
        for (width, height) in [(1, 1), (7, 9), (60, 20), (110, 30), (160, 50), (240, 60)] {
            let terminal = screen(model, width, height);
            for cell in terminal.backend().buffer().content() {
                let symbol = cell.symbol();
                assert_eq!(printable_line(symbol), symbol, "{width} x {height}");
            }
        }
    }
    shows(&text(&models[0], 240, 60), &["\\u001b[2J"]);
}

#[test]
fn the_state_is_told_in_words_and_by_a_sign() {
    let mut model = Model::new("http://127.0.0.1:9464", true);
    shows(&text(&model, 80, 24), &["? asking http://127.0.0.1:9464", "unknown"]);
    answer(&mut model, 1_000, Ok(state()));
    shows(&text(&model, 80, 24), &["● caught up", "warptape-0  06:00:01", "2,000,000 ticks"]);

    let mut lost = state();
    lost.state.level = "down".to_owned();
    lost.state.words = "broker lost since 12 s".to_owned();
    lost.state.components[0].level = "down".to_owned();
    lost.state.components[0].reason = "no broker answers".to_owned();
    answer(&mut model, 1_500, Ok(lost));
    let shown = screen(&model, 80, 24);
    shows(&text(&model, 80, 24), &["✖ broker lost since 12 s", "✖ log: no broker answers"]);
    assert_eq!(shown.backend().buffer()[(0, 0)].fg, Color::Red);
}

#[test]
fn a_silent_endpoint_is_told_within_seconds() {
    let mut model = model();
    model.now = Duration::from_millis(2_900);
    assert_eq!(model.link(), Link::Answers, "one question may take long");
    model.now = Duration::from_millis(3_000);
    assert_eq!(model.link(), Link::Silent(Duration::from_secs(2)));
    answer(&mut model, 8_000, Err(Trouble::Silent("connection refused".to_owned())));
    let shown = text(&model, 80, 24);
    shows(&shown, &["✖ no answer since 7 s", "http://127.0.0.1:9464: connection refused; asking again"]);
    assert_eq!(line(&model), "no answer since 7 s (connection refused)");
    answer(&mut model, 9_000, Ok(state()));
    shows(&text(&model, 80, 24), &["● caught up"]);

    answer(&mut model, 9_500, Err(Trouble::Token));
    shows(&text(&model, 90, 24), &["✖ it wants a token: set endpoint.token"]);
}

#[test]
fn unknown_values_are_not_zero() {
    let mut state = state();
    (state.lag, state.latency, state.history) = (None, None, Default::default());
    (state.stores.disk_free_bytes, state.stores.disk_size_bytes) = (None, None);
    let mut model = Model::new("http://127.0.0.1:9464", false);
    answer(&mut model, 1_000, Ok(state));
    let shown = text(&model, 160, 60);
    for name in ["ticks/s", "signals/s", "lag", "latency", "commits/s", "behind", "disk"] {
        let row = shown.lines().flat_map(|line| line.split("  ")).collect::<Vec<_>>().join(" ");
        let after = row.split_once(&format!("{name} ")).map(|(_, after)| after.trim_start().to_owned());
        assert!(after.is_some_and(|after| after.starts_with("unknown")), "{name} in\n{shown}");
    }
    assert_eq!(
        line(&model),
        "ok, caught up · ticks/s unknown · lag unknown · latency unknown · signals/s unknown"
    );
}

#[test]
fn a_line_has_what_a_screen_says_first() {
    assert_eq!(
        line(&model()),
        "ok, caught up · ticks/s 200,080 · lag 0.012 s (34 records) · latency p50 3.25 ms p99 77.5 ms · signals/s 170"
    );
}

#[test]
fn without_colours_there_are_none() {
    let mut model = model();
    model.paused = Some(Duration::ZERO);
    let colours = |model: &Model| {
        let terminal = screen(model, 160, 50);
        let cells = terminal.backend().buffer().content();
        cells.iter().filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    };
    assert_eq!(colours(&model), 0);
    model.is_coloured = true;
    assert!(colours(&model) > 100);
}

#[test]
fn keys_move_through_panes_and_rows() {
    let mut model = model();
    assert_eq!((model.focus, model.selected(Pane::Decisions)), (Pane::Decisions, 0));
    assert_eq!(press(&mut model, "↓\n"), Action::Explain(Subject::Entry("0:1045".to_owned())));
    assert!(matches!(&model.mode, Mode::Why(why) if why.lines.is_none()));
    shows(&text(&model, 80, 24), &["why: entry 0:1045", "asking since 0 s"]);
    model.take(News::Why(Subject::Entry("0:1".to_owned()), Ok("another".to_owned())));
    let lines = (0..50).map(|number| format!("line {number} {}\n", "x".repeat(90))).collect::<String>();
    model.take(News::Why(Subject::Entry("0:1045".to_owned()), Ok(lines)));
    shows(&text(&model, 80, 24), &["line 0 x", "line 5 x"]);
    press(&mut model, "⇟↓");
    let shown = text(&model, 80, 24);
    assert!(shown.contains("line 11 x") && !shown.contains("line 10 "), "{shown}");
    press(&mut model, "→");
    assert!(!text(&model, 80, 24).contains("line 11 x"), "its beginning is scrolled out on the left");
    assert_eq!(press(&mut model, "q"), Action::Redraw, "it closes the explanation alone");
    assert_eq!(model.mode, Mode::Watching);

    // The same row stays selected as newer ones come.
    let mut next = state();
    next.decisions.insert(0, next.decisions[0].clone());
    next.decisions[0].place = "0:1047".to_owned();
    answer(&mut model, 1_500, Ok(next));
    assert_eq!(model.subject(), Some(Subject::Entry("0:1045".to_owned())));
    assert_eq!(model.selected(Pane::Decisions), 2);
    press(&mut model, "←");
    assert_eq!((model.focus, model.subject()), (Pane::Signals, Some(Subject::Signal("3:17".to_owned()))));
    press(&mut model, "→→→");
    assert_eq!((model.focus, model.subject()), (Pane::Risk, Some(Subject::Request("desk-7".to_owned()))));
    press(&mut model, "\t\t");
    assert_eq!((model.focus, press(&mut model, "\n")), (Pane::Rates, Action::Redraw));
    assert_eq!(press(&mut model, "q"), Action::Quit);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    press(&mut model, "s");
    assert_eq!(model.key(interrupt), Action::Quit, "in every mode");
}

#[test]
fn a_request_and_its_answer_are_rows_of_their_own() {
    let mut state = state();
    let request = state.risk[0].clone();
    state.risk.insert(0, Risk { outcome: "OptionResult".to_owned(), ..request.clone() });
    state.risk.push(request.clone());
    state.risk.push(Risk { id: "desk-8".to_owned(), ..request });
    let mut model = model();
    answer(&mut model, 1_500, Ok(state));
    model.focus = Pane::Risk;
    for (row, id) in [(1, "desk-7"), (2, "desk-7"), (3, "desk-8")] {
        press(&mut model, "↓");
        assert_eq!(model.selected(Pane::Risk), row);
        assert_eq!(model.subject(), Some(Subject::Request(id.to_owned())));
    }
}

#[test]
fn a_symbol_is_found_by_a_part_of_its_name() {
    let mut model = model();
    assert_eq!(model.wish, Some(wish("SYNTH:AAAA", "1m")), "the first one at first");
    press(&mut model, "sbtcx");
    shows(&text(&model, 80, 24), &["symbol, 0 found", "> btcx_", "97 more by their whole names"]);
    press(&mut model, "⌫");
    shows(&text(&model, 80, 24), &["symbol, 1 found", "BINANCE:BTCUSDT"]);
    press(&mut model, "\n");
    assert_eq!((model.focus, model.wish.clone()), (Pane::Candles, Some(wish("BINANCE:BTCUSDT", "1m"))));
    shows(&text(&model, 80, 24), &["BINANCE:BTCUSDT 1m", "asking for its candles"]);
    model.take(News::Candles(wish("SYNTH:AAAA", "1m"), Ok(candles())));
    assert_eq!(model.candles, None, "the answer of another question");
    model.take(News::Candles(wish("BINANCE:BTCUSDT", "1m"), Ok(Candles::default())));
    shows(&text(&model, 80, 24), &["no closed bar yet"]);

    press(&mut model, "sAAA↓\n");
    assert_eq!(model.wish, Some(wish("SYNTH:AAAB", "5m")), "the bar is one of its own");
    press(&mut model, "↑b");
    assert_eq!(model.wish, Some(wish("SYNTH:AAAA", "1m")), "b goes round");
    press(&mut model, "sOTHER:X\n");
    assert_eq!(model.wish, Some(wish("OTHER:X", "1m")), "a whole name outside the list");
    press(&mut model, "sAAA⎋");
    assert_eq!(model.wish, Some(wish("OTHER:X", "1m")), "Esc changes nothing");
}

#[test]
fn a_screen_that_stands_still_tells_troubles() {
    let mut model = model();
    press(&mut model, " ");
    let mut next = state();
    next.totals.ticks = 3_000_000;
    answer(&mut model, 4_000, Ok(next.clone()));
    shows(&text(&model, 100, 24), &["caught up  stands still since 3 s", "2,000,000 ticks"]);
    let mut degraded = next.clone();
    (degraded.state.level, degraded.state.words) = ("degraded".to_owned(), "lane 1 lost".to_owned());
    answer(&mut model, 4_000, Ok(degraded));
    shows(&text(&model, 100, 24), &["▲ lane 1 lost  stands still since 3 s", "2,000,000 ticks"]);
    answer(&mut model, 7_000, Err(Trouble::Silent("gone".to_owned())));
    shows(&text(&model, 100, 24), &["no answer since 3 s  stands still since 6 s"]);
    press(&mut model, " ");
    answer(&mut model, 8_000, Ok(next));
    shows(&text(&model, 100, 24), &["3,000,000 ticks"]);
}
