//! Screens of a small journal, and the effects of keys.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use tempfile::TempDir;
use warptape_eventlog::{Durability, EventLog, NewRecord, SqliteLog, TopicSpec};
use warptape_replay::debugger::{Found, Stepper};
use warptape_replay::history::Bound;
use warptape_scheduler::{RULES, Scheduler};
use warptape_schemas::JournalWriter;
use warptape_schemas::journal::{
    Arrived, Completed, GroupArrival, Input, LaneLost, LaneSpec, PartitionAssigned, RiskConfig,
    SchedulerConfig, Started,
};

use super::app::{Action, App, Mode};
use super::screen::draw;
use super::view::View;

const SOURCE: &str = "journal/0";

/// A journal in its own log.
struct Recorded {
    log: SqliteLog,
    _folder: TempDir,
}

/// Records two lanes and two partitions; the last batch is falsified. Texts contain terminal escapes.
fn recorded() -> Recorded {
    let folder = tempfile::tempdir().expect("a folder");
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a log");
    let spec = TopicSpec { name: "journal".to_owned(), partitions: 1, ..TopicSpec::default() };
    log.create_topics(&[spec]).expect("a topic");
    let mut producer = log.producer("test").expect("a producer");
    producer.begin().expect("a transaction");
    let (mut scheduler, mut writer) = (Scheduler::new(), JournalWriter::new());
    let inputs = inputs();
    let last = inputs.len() - 1;
    for (number, input) in inputs.into_iter().enumerate() {
        let at_ns = 1_795_500_000_000_000_000 + 1_000_000 * number as i64;
        let state_hash = scheduler.state_hash();
        let (mut decisions, mut bytes) = (Vec::new(), Vec::new());
        scheduler.step(at_ns, &input, &mut decisions).expect("it is taken");
        if number == last {
            decisions.clear();
        }
        writer.append(at_ns, &input, &decisions, state_hash, &mut bytes);
        let record = NewRecord { topic: "journal".into(), value: bytes.into(), ..NewRecord::default() };
        producer.send(record).expect("it is sent");
    }
    producer.commit().expect("a commit");
    Recorded { log, _folder: folder }
}

fn inputs() -> Vec<Input> {
    let config = SchedulerConfig {
        placement_policy: "rendezvous".to_owned(),
        placement_seed: 7,
        load_factor_percent: 125,
        lane_credit_rows: 2_000,
        lane_credit_bytes: 1_000_000,
        lane_batches_max: 2,
        batch_rows_max: 700,
        row_deadline_ns: 1_000_000,
        high_water_rows: 2_000,
        low_water_rows: 1_000,
        route_interval_ns: 0,
        balance_interval_ns: 0,
        risk: RiskConfig::default(),
        breakers: None,
    };
    let lane = |lane: i32| LaneSpec::new(lane, format!("cpu:{lane}"), 1);
    let (node, software, stage_config) = ("no\u{1b}[2Jde".to_owned(), "test".to_owned(), "{}".to_owned());
    let started = Started {
        node,
        software,
        stage_config,
        scheduler: config,
        lanes: vec![lane(0), lane(1)],
        autoscale: None,
        shadow: None,
        rules: RULES,
    };
    let assigned = |partition: i32| {
        let (committed_offset, snapshot_offset) = (0, 0);
        Input::PartitionAssigned(PartitionAssigned {
            partition,
            groups: 3,
            committed_offset,
            snapshot_offset,
            ..PartitionAssigned::default()
        })
    };
    let arrived = |partition: i32, next_offset: i64, rows: i64| {
        let groups = (0..3).map(|group| GroupArrival { group, rows, bytes: 40 * rows }).collect();
        Input::Arrived(Arrived { partition, next_offset, groups })
    };
    let done = |lane: i32, batch: i64| {
        Input::Completed(Completed { lane, batch, service_ns: 2_500_000, sample: None })
    };
    vec![
        Input::Started(Box::new(started)),
        assigned(0),
        assigned(1),
        arrived(0, 10, 400),
        arrived(1, 12, 1_200),
        done(0, 0),
        done(1, 1),
        Input::LaneLost(LaneLost { lane: 1, reason: "it \u{1b}[31mbroke\u{202e}".to_owned(), kept: true }),
        done(0, 2),
    ]
}

/// Draws the screen at a sequence, after some keys.
fn screen(log: &SqliteLog, sequence: i64, keys: &str, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut stepper = Stepper::open(log, "journal", 0).expect("a journal");
    stepper.go_to(Bound::Sequence(sequence), &mut |_| true).expect("the log is read");
    let mut view = View::of(&stepper, SOURCE);
    let mut app = App::new(None);
    app.arrive(view.decisions.len());
    for character in keys.chars() {
        app.key(key(match character {
            '↓' => KeyCode::Down,
            '↑' => KeyCode::Up,
            '\n' => KeyCode::Enter,
            character => KeyCode::Char(character),
        }));
    }
    if app.explains {
        view.explain(&mut stepper, app.cursor).expect("the log is read");
    }
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
    terminal.draw(|frame| draw(frame, &app, &view, None)).expect("it is drawn");
    terminal
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

/// Returns the screen as text, without blanks at the ends of lines.
fn text(terminal: &Terminal<TestBackend>) -> String {
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

#[test]
fn a_step_is_shown_on_a_small_screen() {
    let recorded = recorded();
    let shown = text(&screen(&recorded.log, 4, "", 80, 24));
    shows(
        &shown,
        &[
            "journal/0  sequence 4  2026-11-24T",
            "as recorded",
            "Arrived: 3600 rows in 3 groups of partition 1, from records before offset 12",
            "Dispatch: batch ",
            "lane     state  breaker",
            "0 cpu:0  ready  closed",
            "partition  phase     groups  waiting rows",
            "Pause: partition 1 is paused",
            "risk: 0 tasks known",
            "? lists the keys",
        ],
    );
    let explained = text(&screen(&recorded.log, 1, "e", 80, 24));
    shows(&explained, &[" why ", "choice", "  *  lane ", "without it: lane"]);
    assert!(!explained.contains("breaker"), "the explanation stands in the place of the lanes:\n{explained}");
    // A table wider than the screen is marked as such, and scrolls to its last column; each row still names its lane.
    let shown = |keys: &str| text(&screen(&recorded.log, 1, keys, 60, 24));
    let (narrow, scrolled) = (shown("e"), shown("e>>>>>>>>>"));
    shows(&narrow, &["choice", "  *  lane ", "…"]);
    assert!(!narrow.contains("excluded") && scrolled.contains("excluded"), "{narrow}\n{scrolled}");
    shows(&scrolled, &["  *  lane ", "…", "groups_max"]);
    assert_eq!(shown("e>>>>>>>>><<<<<<<<<"), narrow);
}

#[test]
fn a_wide_screen_shows_all_at_once() {
    let recorded = recorded();
    let shown = text(&screen(&recorded.log, 1, "e↓", 140, 45));
    shows(
        &shown,
        &[
            " decision 2 of 3 ",
            "> Place: group 1 of partition 0 goes to lane",
            "0 cpu:0  ready  closed",
            "partition  phase",
            " why ",
            "choice",
            "groups_max",
            "without it: lane",
        ],
    );
    assert_eq!(shown, text(&screen(&recorded.log, 1, "e↓↓↑", 140, 45)), "the cursor goes up again");
}

#[test]
fn the_condition_in_force_is_shown() {
    let recorded = recorded();
    let shown = text(&screen(&recorded.log, 1, "blane=1 && queue>9\n", 80, 24));
    shows(&shown, &["c searches for: lane=1 && queue>9"]);
    assert!(!text(&screen(&recorded.log, 1, "", 80, 24)).contains("c searches for"));
}

#[test]
fn tables_beside_decisions_are_whole() {
    let row = format!("{:<71}3130.110 ms", "1 cuda:1  hot: 25 %");
    let view = View { lanes: vec!["lane".to_owned(), row.clone()], ..View::default() };
    let mut terminal = Terminal::new(TestBackend::new(130, 20)).expect("a screen");
    terminal.draw(|frame| draw(frame, &App::new(None), &view, None)).expect("it is drawn");
    shows(&text(&terminal), &[&row]);
}

#[test]
fn what_differs_is_red_and_has_its_field() {
    let recorded = recorded();
    let terminal = screen(&recorded.log, 8, "", 100, 28);
    let shown = text(&terminal);
    shows(&shown, &["DIFFERS", "differs in decisions.length: expected ", "found 0", "no decisions"]);
    let buffer = terminal.backend().buffer();
    let row = shown.lines().position(|line| line.contains("differs in")).expect("a line");
    assert_eq!(buffer[(0, row as u16)].fg, Color::Red);
    assert!(!text(&screen(&recorded.log, 7, "", 100, 28)).contains("DIFFERS"));
}

#[test]
fn what_a_terminal_obeys_is_shown_as_its_escape() {
    let recorded = recorded();
    for (sequence, expected) in [(0, "no\\u{1b}[2Jde"), (7, "\\u001b[31mbroke\\u202e")] {
        let shown = text(&screen(&recorded.log, sequence, "", 140, 45));
        shows(&shown, &[expected]);
        assert!(!shown.contains(['\u{1b}', '\u{202e}']));
    }
}

#[test]
fn no_screen_is_too_small() {
    let recorded = recorded();
    for (width, height) in [(10, 3), (1, 1), (0, 0), (2, 40), (200, 2), (120, 5), (119, 7)] {
        for keys in ["", "e", "?", "b", "blane=x", "gx\n"] {
            for sequence in [0, 1, 4, 8] {
                screen(&recorded.log, sequence, keys, width, height);
            }
        }
    }
}

#[test]
fn keys_become_actions() {
    let mut app = App::new(None);
    app.arrive(3);
    let mut press = |code: KeyCode| app.key(key(code));
    assert_eq!(press(KeyCode::Char('n')), Action::Next);
    assert_eq!(press(KeyCode::Left), Action::Back);
    assert_eq!(press(KeyCode::PageUp), Action::Page(-100));
    assert_eq!(press(KeyCode::End), Action::Last);
    assert_eq!(press(KeyCode::Char('c')), Action::Redraw, "a condition is asked for first");
    for character in "lane=9 &&".chars() {
        press(KeyCode::Char(character));
    }
    assert_eq!(press(KeyCode::Enter), Action::Redraw);
    assert!(matches!(&app.mode, Mode::Condition(typed) if typed == "lane=9 &&"), "it can be mended");
    assert!(app.message.1 && app.message.0.contains("character 10: expected a field"), "{:?}", app.message);
    let mut press = |code: KeyCode| app.key(key(code));
    for _ in 0..3 {
        press(KeyCode::Backspace);
    }
    press(KeyCode::Enter);
    assert_eq!(app.condition.as_ref().map(ToString::to_string).as_deref(), Some("lane=9"));
    assert_eq!(app.key(key(KeyCode::Char('C'))), Action::ContinueBack);
    app.key(key(KeyCode::Char('g')));
    app.key(key(KeyCode::Char('4')));
    assert_eq!(app.key(key(KeyCode::Enter)), Action::GoTo(Bound::Sequence(4)));
    app.key(key(KeyCode::Char('g')));
    app.key(key(KeyCode::Char('q')));
    assert_eq!(app.key(key(KeyCode::Esc)), Action::Redraw);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!((app.key(interrupt), app.key(key(KeyCode::Char('q')))), (Action::Quit, Action::Quit));
}

/// The documentation shows exactly the screen that the command draws.
#[test]
fn the_screen_in_the_documentation_is_this_one() {
    let recorded = recorded();
    let shown = text(&screen(&recorded.log, 5, "", 100, 24));
    let page = include_str!("../../../../../docs/debugger.md");
    assert!(page.contains(&format!("```text\n{shown}```\n")), "docs/debugger.md is to have\n{shown}");
}

#[test]
fn the_journal_of_these_tests_is_stepped_to_its_end() {
    let recorded = recorded();
    let mut stepper = Stepper::open(&recorded.log, "journal", 0).expect("a journal");
    let mut differing = Vec::new();
    while stepper.forward().expect("the log is read") == Found::Here {
        differing.extend(stepper.step().differs().then_some(stepper.step().offset));
    }
    assert_eq!((stepper.step().offset, differing), (8, vec![8]));
}
