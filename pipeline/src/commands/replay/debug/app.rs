//! What keys mean, and what the screen shows besides the step. There is no terminal and no journal here.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use warptape_replay::debugger::Predicate;
use warptape_replay::history::Bound;

use crate::cli::{parse_bound, parse_condition};

/// Entries of a page.
pub const PAGE: i64 = 100;
/// Characters that a key scrolls an explanation sideways.
pub const SHIFT: usize = 16;
/// Characters of what is typed.
const TYPED_MAX: usize = 1_000;

/// The keys, as help lists them.
pub const KEYS: [(&str, &str); 13] = [
    ("n, right", "next entry"),
    ("p, left", "the entry before"),
    ("PageDown, PageUp", "100 entries forwards, backwards"),
    ("Home, End", "first and last entry"),
    ("g", "go to a sequence, a time or offset:N"),
    ("b, /", "set the condition to stop on"),
    ("c, C", "continue to where it holds, forwards, backwards"),
    ("up, down", "choose a decision"),
    ("e", "explain it"),
    ("{, }", "scroll the explanation"),
    ("<, >", "scroll it to the left and the right"),
    ("?", "this help"),
    ("q, Ctrl-C", "quit"),
];

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Draw again.
    Redraw,
    /// Draw all of the screen again, whatever is on it.
    Repaint,
    /// Quit.
    Quit,
    /// Go to the next entry.
    Next,
    /// Go to the entry before.
    Back,
    /// Go so many entries on, or back.
    Page(i64),
    /// Go to an entry.
    GoTo(Bound),
    /// Go to the last entry.
    Last,
    /// Go on to where the condition holds.
    Continue,
    /// Go back to where it holds.
    ContinueBack,
}

/// What is typed at the bottom of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Keys step.
    Stepping,
    /// A place is typed.
    Place(String),
    /// A condition is typed.
    Condition(String),
    /// Help is shown until the next key.
    Help,
}

/// What the screen shows besides the step.
pub struct App {
    /// What keys do.
    pub mode: Mode,
    /// The chosen decision.
    pub cursor: usize,
    /// Decisions of the step.
    pub decisions: usize,
    /// Whether the chosen decision is explained.
    pub explains: bool,
    /// First line of the explanation that is shown.
    pub scroll: usize,
    /// Columns of its tables that are out of sight on the left.
    pub shift: usize,
    /// What is said at the bottom, and whether it is a mistake.
    pub message: (String, bool),
    /// What is stopped on.
    pub condition: Option<Predicate>,
}

/// Whether a key is Ctrl-C, which a terminal that gives single keys does not make a signal of.
pub fn is_interrupt(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

impl App {
    /// Before the first key.
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

    /// Another step is shown.
    pub fn arrive(&mut self, decisions: usize) {
        (self.cursor, self.scroll, self.shift, self.decisions) = (0, 0, 0, decisions);
    }

    /// Says something.
    pub fn say(&mut self, message: impl Into<String>) {
        self.message = (message.into(), false);
    }

    /// Takes a key.
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
        self.say("there is no condition to continue to yet: type one");
        Action::Redraw
    }

    /// A key while something is typed.
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
                    // What was typed stays, so that it can be mended.
                    Err(mistake) => {
                        self.message = (mistake.lines().next().unwrap_or_default().to_owned(), true);
                    }
                }
            }
            KeyCode::Backspace => drop(typed.pop()),
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => typed.clear(),
            KeyCode::Char(character) if typed.chars().count() < TYPED_MAX => typed.push(character),
            _ => {}
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
            Some(_) => "c continues to where it holds".to_owned(),
            None => "there is no condition any more".to_owned(),
        });
        Ok(Action::Redraw)
    }
}
