//! Meanings of keys.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::client::Subject;
use super::model::{Mode, Model, Pane, Search, Why};
use crate::commands::full_screen::{edit, is_interrupt};

/// Number of rows by which a page key moves.
const PAGE: isize = 10;
/// Number of columns by which a key scrolls an explanation sideways.
const SHIFT: usize = 16;
/// Greatest number of typed characters.
const TYPED_MAX: usize = 200;

/// The keys, in the order of the help.
pub const KEYS: [(&str, &str); 11] = [
    ("Tab, right", "next pane"),
    ("Shift-Tab, left", "previous pane"),
    ("up, down", "select a row; in candles, another symbol"),
    ("PageUp, PageDown", "10 rows up, down"),
    ("Home, End", "first and last row"),
    ("Enter", "explain the selected decision, signal or risk request"),
    ("s, /", "choose a symbol: type a part of its name"),
    ("b", "next bar of the symbol"),
    ("Space", "stand still, go on"),
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
    /// Ask for an explanation.
    Explain(Subject),
}

impl Model {
    /// Handles a key, and returns the action that it asks for.
    pub fn key(&mut self, key: KeyEvent) -> Action {
        if is_interrupt(key) {
            return Action::Quit;
        }
        if key.code == KeyCode::Char('l') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Action::Repaint;
        }
        match std::mem::replace(&mut self.mode, Mode::Watching) {
            Mode::Watching => self.command(key),
            Mode::Search(search) => self.search(key, search),
            Mode::Why(why) => self.scroll(key, why),
            Mode::Help => Action::Redraw,
        }
    }

    fn command(&mut self, key: KeyEvent) -> Action {
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Tab | KeyCode::Right => self.move_focus(1),
            KeyCode::BackTab | KeyCode::Left => self.move_focus(-1),
            KeyCode::Up => self.move_selection(-1),
            KeyCode::Down => self.move_selection(1),
            KeyCode::PageUp => self.move_selection(-PAGE),
            KeyCode::PageDown => self.move_selection(PAGE),
            KeyCode::Home => self.move_selection(isize::MIN),
            KeyCode::End => self.move_selection(isize::MAX),
            KeyCode::Enter => return self.explain(),
            KeyCode::Char('s' | '/') => self.mode = Mode::Search(Search::default()),
            KeyCode::Char('b') => self.next_bar(),
            KeyCode::Char(' ') => self.paused = if self.paused.is_some() { None } else { Some(self.now) },
            KeyCode::Char('?') => self.mode = Mode::Help,
            _ => {}
        }
        Action::Redraw
    }

    fn explain(&mut self) -> Action {
        let Some(subject) = self.subject() else { return Action::Redraw };
        let why = Why { subject: subject.clone(), asked: self.now, lines: None, scroll: 0, shift: 0 };
        self.mode = Mode::Why(why);
        Action::Explain(subject)
    }

    /// Handles a key while the user types a part of a symbol's name.
    fn search(&mut self, key: KeyEvent, mut search: Search) -> Action {
        match key.code {
            KeyCode::Esc => return Action::Redraw,
            KeyCode::Enter => {
                let found = self.matches(&search).get(search.chosen).map(|name| (*name).to_owned());
                // The user may type the whole name of a symbol outside the list.
                let name = found.or_else(|| Some(search.typed.clone()).filter(|typed| !typed.is_empty()));
                if let Some(name) = name {
                    self.choose_symbol(&name);
                    self.focus = Pane::Candles;
                }
                return Action::Redraw;
            }
            KeyCode::Up => search.chosen = search.chosen.saturating_sub(1),
            KeyCode::Down => {
                search.chosen = (search.chosen + 1).min(self.matches(&search).len().saturating_sub(1));
            }
            _ if edit(&mut search.typed, key, TYPED_MAX) => search.chosen = 0,
            _ => {}
        }
        self.mode = Mode::Search(search);
        Action::Redraw
    }

    /// Handles a key while an explanation is shown.
    fn scroll(&mut self, key: KeyEvent, mut why: Why) -> Action {
        let last = why.lines.as_ref().map_or(0, |lines| lines.len().saturating_sub(1));
        let moved = |steps: isize| why.scroll.saturating_add_signed(steps).min(last);
        match key.code {
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') => return Action::Redraw,
            KeyCode::Up => why.scroll = moved(-1),
            KeyCode::Down => why.scroll = moved(1),
            KeyCode::PageUp => why.scroll = moved(-PAGE),
            KeyCode::PageDown | KeyCode::Char(' ') => why.scroll = moved(PAGE),
            KeyCode::Home => why.scroll = 0,
            KeyCode::End => why.scroll = last,
            KeyCode::Left => why.shift = why.shift.saturating_sub(SHIFT),
            KeyCode::Right => why.shift = why.shift.saturating_add(SHIFT).min(usize::from(u16::MAX)),
            _ => {}
        }
        self.mode = Mode::Why(why);
        Action::Redraw
    }
}
