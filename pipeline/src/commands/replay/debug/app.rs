//! Meanings of keys, and the screen's state apart from the current step. Uses no terminal and no journal.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use warptape_replay::debugger::Predicate;
use warptape_replay::history::Bound;

use crate::cli::{parse_bound, parse_condition};
use crate::commands::full_screen::{edit, is_interrupt};

/// Entries by which a page key steps.
pub const PAGE: i64 = 100;
/// Characters by which a key scrolls an explanation sideways.
pub const SHIFT: usize = 16;
/// Greatest number of typed characters.
const TYPED_MAX: usize = 1_000;

/// The keys, in the order of the help.
pub const KEYS: [(&str, &str); 13] = [
    ("n, right", "next entry"),
    ("p, left", "previous entry"),
    ("PageDown, PageUp", "100 entries forward, back"),
    ("Home, End", "first and last entry"),
    ("g", "go to a sequence, a time or offset:N"),
    ("b, /", "set the condition to stop on"),
    ("c, C", "search for the condition, forward, back"),
    ("up, down", "select a decision"),
    ("e", "explain it"),
    ("{, }", "scroll the explanation"),
    ("<, >", "scroll it left and right"),
    ("?", "this help"),
    ("q, Ctrl-C", "quit"),
];

/// Actions that keys ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Draw again.
    Redraw,
    /// Draw the whole screen again, even unchanged parts.
    Repaint,
    /// Quit.
    Quit,
    /// Go to the next entry.
    Next,
    /// Go to the previous entry.
    Back,
    /// Go forward by this many entries, or back if negative.
    Page(i64),
    /// Go to an entry.
    GoTo(Bound),
    /// Go to the last entry.
    Last,
    /// Go forward to the next entry that meets the condition.
    Continue,
    /// Go back to the previous entry that meets the condition.
    ContinueBack,
}

/// Input modes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Keys step through entries.
    Stepping,
    /// The user types a place.
    Place(String),
    /// The user types a condition.
    Condition(String),
    /// Help is shown until the next key.
    Help,
}

/// State of the screen apart from the current step.
pub struct App {
    /// Input mode, which decides the meaning of keys.
    pub mode: Mode,
    /// Index of the chosen decision.
    pub cursor: usize,
    /// Number of decisions of the step.
    pub decisions: usize,
    /// True if the explanation of the chosen decision is shown.
    pub explains: bool,
    /// First visible line of the explanation.
    pub scroll: usize,
    /// Columns of the explanation's tables that are scrolled out on the left.
    pub shift: usize,
    /// Message at the bottom; true if it reports a mistake.
    pub message: (String, bool),
    /// Condition to stop on; `None` if there is none.
    pub condition: Option<Predicate>,
}

impl App {
    /// Returns the state before the first key.
    pub fn new(condition: Option<Predicate>) -> Self {
        let message = ("? lists the keys".to_owned(), false);
        Self {
            mode: Mode::Stepping,
            cursor: 0,
            decisions: 0,
            explains: false,
            scroll: 0,
            shift: 0,
            message,
            condition,
        }
    }

    /// Resets the state for another step with this number of decisions.
    pub fn arrive(&mut self, decisions: usize) {
        (self.cursor, self.scroll, self.shift, self.decisions) = (0, 0, 0, decisions);
    }

    /// Shows a message at the bottom.
    pub fn say(&mut self, message: impl Into<String>) {
        self.message = (message.into(), false);
    }

    /// Handles a key and returns the action that it asks for.
    pub fn key(&mut self, key: KeyEvent) -> Action {
        if is_interrupt(key) {
            return Action::Quit;
        }
        match std::mem::replace(&mut self.mode, Mode::Stepping) {
            Mode::Help => Action::Redraw,
            Mode::Stepping => self.command(key),
            Mode::Place(typed) => self.typed(key, typed, Mode::Place, Self::place),
            Mode::Condition(typed) => self.typed(key, typed, Mode::Condition, Self::set_condition),
        }
    }

    fn command(&mut self, key: KeyEvent) -> Action {
        self.say("");
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('l') { Action::Repaint } else { Action::Redraw };
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('n') | KeyCode::Right => return Action::Next,
            KeyCode::Char('p') | KeyCode::Left => return Action::Back,
            KeyCode::PageDown => return Action::Page(PAGE),
            KeyCode::PageUp => return Action::Page(-PAGE),
            KeyCode::Home => return Action::GoTo(Bound::Sequence(0)),
            KeyCode::End => return Action::Last,
            KeyCode::Char('c') => return self.go_on(Action::Continue),
            KeyCode::Char('C') => return self.go_on(Action::ContinueBack),
            KeyCode::Char('g') => self.mode = Mode::Place(String::new()),
            KeyCode::Char('b' | '/') => self.ask_condition(),
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Char('e') => self.explains = !self.explains,
            KeyCode::Up => self.choose(self.cursor.saturating_sub(1)),
            KeyCode::Down => self.choose(self.cursor + 1),
            KeyCode::Char('{') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Char('}') => self.scroll += 1,
            KeyCode::Char('<') => self.shift = self.shift.saturating_sub(SHIFT),
            KeyCode::Char('>') => self.shift += SHIFT,
            _ => {}
        }
        Action::Redraw
    }

    fn choose(&mut self, decision: usize) {
        self.cursor = decision.min(self.decisions.saturating_sub(1));
        (self.scroll, self.shift) = (0, 0);
    }

    fn ask_condition(&mut self) {
        self.mode = Mode::Condition(self.condition.as_ref().map(ToString::to_string).unwrap_or_default());
    }

    fn go_on(&mut self, action: Action) -> Action {
        if self.condition.is_some() {
            return action;
        }
        self.ask_condition();
        self.say("no condition is set yet: type one");
        Action::Redraw
    }

    /// Handles a key while the user types.
    fn typed(
        &mut self,
        key: KeyEvent,
        mut typed: String,
        mode: fn(String) -> Mode,
        done: fn(&mut Self, &str) -> Result<Action, String>,
    ) -> Action {
        match key.code {
            KeyCode::Esc => {
                self.say("");
                return Action::Redraw;
            }
            KeyCode::Enter => {
                self.say("");
                match done(self, typed.trim()) {
                    Ok(action) => return action,
                    // The typed text stays, so that the user can correct it.
                    Err(mistake) => {
                        self.message = (mistake.lines().next().unwrap_or_default().to_owned(), true);
                    }
                }
            }
            _ => {
                edit(&mut typed, key, TYPED_MAX);
            }
        }
        self.mode = mode(typed);
        Action::Redraw
    }

    fn place(&mut self, typed: &str) -> Result<Action, String> {
        if typed.is_empty() {
            return Ok(Action::Redraw);
        }
        parse_bound(typed).map(Action::GoTo)
    }

    fn set_condition(&mut self, typed: &str) -> Result<Action, String> {
        self.condition = if typed.is_empty() { None } else { Some(parse_condition(typed)?) };
        self.say(match &self.condition {
            Some(_) => "c searches for it".to_owned(),
            None => "the condition was removed".to_owned(),
        });
        Ok(Action::Redraw)
    }
}
