//! State of the screen: the newest answers, and the choices made by keys. Uses no terminal, clock or endpoint.

use std::time::Duration;

use super::client::{News, Subject, Trouble, Wish};
use crate::endpoint::live::snapshot::{Candles, Risk, Snapshot, State};

/// Age of the newest answer from which the endpoint counts as silent.
const SILENT_AFTER: Duration = Duration::from_secs(2);

/// Parts of the screen, in the order of Tab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pane {
    /// Rates, lag and latency.
    Rates,
    /// Candles of the chosen symbol.
    Candles,
    /// Lanes.
    Lanes,
    /// Signals by kind, and the newest ones.
    Signals,
    /// The newest decisions.
    Decisions,
    /// Partitions.
    Partitions,
    /// Risk requests.
    Risk,
    /// Log, disk, hot state, devices and verifier.
    Stores,
}

impl Pane {
    /// All panes, in the order of Tab.
    pub const ALL: [Self; 8] = [
        Self::Rates,
        Self::Candles,
        Self::Lanes,
        Self::Signals,
        Self::Decisions,
        Self::Partitions,
        Self::Risk,
        Self::Stores,
    ];

    /// Returns the name on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rates => "rates",
            Self::Candles => "candles",
            Self::Lanes => "lanes",
            Self::Signals => "signals",
            Self::Decisions => "decisions",
            Self::Partitions => "partitions",
            Self::Risk => "risk",
            Self::Stores => "stores",
        }
    }

    /// Returns the pane `steps` further; wraps at both ends.
    fn moved(self, steps: isize) -> Self {
        let count = Self::ALL.len() as isize;
        Self::ALL[(self as isize + steps).rem_euclid(count) as usize]
    }
}

/// Input modes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Keys choose panes and rows.
    Watching,
    /// The user searches for a symbol.
    Search(Search),
    /// An explanation is shown.
    Why(Why),
    /// Help is shown until the next key.
    Help,
}

/// A search for a symbol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Typed text.
    pub typed: String,
    /// Index of the chosen match.
    pub chosen: usize,
}

/// An explanation on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// Subject of the explanation.
    pub subject: Subject,
    /// Time of the request.
    pub asked: Duration,
    /// Lines of the explanation; `None` until the answer comes.
    pub lines: Option<Vec<String>>,
    /// First visible line.
    pub scroll: usize,
    /// Columns scrolled out on the left.
    pub shift: usize,
}

/// State of the connection to the endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// No request was answered yet, and none failed.
    Asking,
    /// The endpoint answers.
    Answers,
    /// The endpoint has not answered for this time.
    Silent(Duration),
    /// The endpoint answers with something other than a state.
    Refuses,
}

/// State of the screen. Times are durations since its start.
#[derive(Clone, Debug)]
pub struct Model {
    /// URL of the endpoint.
    pub url: String,
    /// Current time.
    pub now: Duration,
    /// True if the terminal shows colours.
    pub is_coloured: bool,
    /// The snapshot on the screen; `None` before the first one.
    pub snapshot: Option<Snapshot>,
    /// The newest state in words, updated even while the screen is paused; `None` before the first one.
    pub state: Option<State>,
    /// Time of the newest snapshot; `None` before the first one.
    pub answered: Option<Duration>,
    /// Reason why the last request failed; `None` if it was answered.
    pub trouble: Option<Trouble>,
    /// Time at which the screen was paused; `None` while it is not.
    pub paused: Option<Duration>,
    /// The pane that keys act on.
    pub focus: Pane,
    /// Key of the selected row of each pane; `None` selects the first row, whichever it is.
    selected: [Option<String>; Pane::ALL.len()],
    /// The chosen candles; `None` until a state names symbols.
    pub wish: Option<Wish>,
    /// The chosen candles' data, or the reason why there are none; `None` until an answer comes.
    pub candles: Option<Result<Candles, Trouble>>,
    /// Input mode.
    pub mode: Mode,
}

impl Model {
    /// Returns the state before the first answer of the endpoint at this URL.
    pub fn new(url: &str, is_coloured: bool) -> Self {
        Self {
            url: url.to_owned(),
            now: Duration::ZERO,
            is_coloured,
            snapshot: None,
            state: None,
            answered: None,
            trouble: None,
            paused: None,
            focus: Pane::Decisions,
            selected: Default::default(),
            wish: None,
            candles: None,
            mode: Mode::Watching,
        }
    }

    /// Stores an answer of the endpoint.
    pub fn take(&mut self, news: News) {
        match news {
            News::State(state) => self.take_state(*state),
            News::Candles(wish, candles) => {
                if self.wish.as_ref() == Some(&wish) && self.may_change(self.candles.is_some()) {
                    self.candles = Some(candles);
                }
            }
            News::Why(subject, answer) => self.take_why(&subject, answer),
        }
    }

    fn take_state(&mut self, snapshot: Result<Snapshot, Trouble>) {
        let snapshot = match snapshot {
            Ok(snapshot) => snapshot,
            Err(trouble) => {
                self.trouble = Some(trouble);
                return;
            }
        };
        self.trouble = None;
        self.answered = Some(self.now);
        self.state = Some(snapshot.state.clone());
        if self.may_change(self.snapshot.is_some()) {
            self.snapshot = Some(snapshot);
            self.choose_first_symbol();
        }
    }

    /// True unless the screen is paused and has something to show.
    fn may_change(&self, has_something: bool) -> bool {
        self.paused.is_none() || !has_something
    }

    fn take_why(&mut self, subject: &Subject, answer: Result<String, Trouble>) {
        if let Mode::Why(why) = &mut self.mode
            && why.subject == *subject
        {
            let text = answer.unwrap_or_else(|trouble| trouble.to_string());
            why.lines = Some(text.lines().map(super::words::shown).collect());
        }
    }

    /// Returns the state of the connection to the endpoint.
    pub fn link(&self) -> Link {
        let silence = self.now.saturating_sub(self.answered.unwrap_or_default());
        match (&self.trouble, self.answered) {
            (None, None) if silence < SILENT_AFTER => Link::Asking,
            (None, Some(_)) if silence < SILENT_AFTER => Link::Answers,
            (None | Some(Trouble::Silent(_)), _) => Link::Silent(silence),
            (Some(_), _) => Link::Refuses,
        }
    }

    /// Chooses the first symbol if none is chosen.
    fn choose_first_symbol(&mut self) {
        let first = self.snapshot.as_ref().and_then(|state| state.symbols.first());
        if let Some(name) = first.map(|symbol| symbol.symbol.clone()).filter(|_| self.wish.is_none()) {
            self.choose_symbol(&name);
        }
    }

    /// Chooses a symbol, and keeps the bar if the symbol has it.
    pub fn choose_symbol(&mut self, name: &str) {
        let bars = self.bars_of(name);
        let bar = self.wish.as_ref().map(|wish| wish.bar.clone()).filter(|bar| bars.contains(bar));
        let bar = bar.or_else(|| bars.first().cloned());
        // A symbol outside the list keeps the previous symbol's bar, which it may have.
        let bar = bar.or_else(|| self.wish.as_ref().map(|wish| wish.bar.clone())).unwrap_or_default();
        self.wish_for(Wish { symbol: name.to_owned(), bar });
    }

    fn wish_for(&mut self, wish: Wish) {
        if self.wish.as_ref() != Some(&wish) {
            self.wish = Some(wish);
            self.candles = None;
        }
    }

    /// Returns the specifications of a symbol's bars.
    pub fn bars_of(&self, name: &str) -> &[String] {
        let symbols = self.snapshot.as_ref().map_or(&[][..], |state| &state.symbols);
        symbols.iter().find(|symbol| symbol.symbol == name).map_or(&[], |symbol| &symbol.bars)
    }

    /// Chooses the next bar of the chosen symbol.
    pub fn next_bar(&mut self) {
        let Some(wish) = self.wish.clone() else { return };
        let bars = self.bars_of(&wish.symbol);
        let place = bars.iter().position(|bar| *bar == wish.bar);
        let next = place.map_or(0, |place| (place + 1) % bars.len());
        if let Some(bar) = bars.get(next).cloned() {
            self.wish_for(Wish { bar, ..wish });
        }
    }

    /// Moves the focus by this many panes.
    pub fn move_focus(&mut self, steps: isize) {
        self.focus = self.focus.moved(steps);
    }

    /// Returns the identifiers of a pane's rows; empty for panes whose rows are numbered.
    fn places(&self, pane: Pane) -> Vec<&str> {
        let Some(state) = &self.snapshot else { return Vec::new() };
        match pane {
            Pane::Candles => state.symbols.iter().map(|symbol| symbol.symbol.as_str()).collect(),
            Pane::Signals => state.signals.iter().map(|signal| signal.place.as_str()).collect(),
            Pane::Decisions => state.decisions.iter().map(|entry| entry.place.as_str()).collect(),
            Pane::Risk => state.risk.iter().map(|risk| risk.id.as_str()).collect(),
            Pane::Rates | Pane::Lanes | Pane::Partitions | Pane::Stores => Vec::new(),
        }
    }

    /// Returns the keys of a pane's rows. A row keeps its key while other rows come.
    fn row_keys(&self, pane: Pane) -> Vec<String> {
        let (Pane::Risk, Some(Snapshot { risk, .. })) = (pane, &self.snapshot) else {
            return self.places(pane).into_iter().map(str::to_owned).collect();
        };
        // A request and its answer have the same id, and an id may occur again.
        let key = |(index, of): (usize, &Risk)| {
            let is_same = |older: &&Risk| older.id == of.id && older.outcome == of.outcome;
            let older = risk[index + 1..].iter().filter(is_same).count();
            format!("{older} {} {}", of.outcome, of.id)
        };
        risk.iter().enumerate().map(key).collect()
    }

    /// Returns the index of a pane's selected row. If that row is gone, the last row is selected.
    pub fn selected(&self, pane: Pane) -> usize {
        let Some(place) = &self.selected[pane as usize] else { return 0 };
        match pane {
            // Rows of these panes are identified by their number.
            Pane::Lanes | Pane::Partitions | Pane::Stores => {
                place.parse().unwrap_or(0).min(self.rows(pane).saturating_sub(1))
            }
            _ => {
                let keys = self.row_keys(pane);
                keys.iter().position(|one| one == place).unwrap_or(keys.len().saturating_sub(1))
            }
        }
    }

    fn rows(&self, pane: Pane) -> usize {
        let Some(state) = &self.snapshot else { return 0 };
        match pane {
            Pane::Lanes => state.lanes.len(),
            Pane::Partitions => state.partitions.len(),
            Pane::Stores => super::panes::store_rows(state),
            _ => self.places(pane).len(),
        }
    }

    /// Moves the selection of the focused pane by this many rows.
    pub fn move_selection(&mut self, steps: isize) {
        let pane = self.focus;
        if pane == Pane::Candles {
            return self.move_symbol(steps);
        }
        let index = self.selected(pane).saturating_add_signed(steps).min(self.rows(pane).saturating_sub(1));
        let place = match pane {
            Pane::Lanes | Pane::Partitions | Pane::Stores => Some(index.to_string()),
            _ => self.row_keys(pane).into_iter().nth(index),
        };
        self.selected[pane as usize] = place.filter(|_| index > 0);
    }

    fn move_symbol(&mut self, steps: isize) {
        let places = self.places(Pane::Candles);
        let now = self.wish.as_ref().and_then(|wish| places.iter().position(|name| *name == wish.symbol));
        let next = now.map_or(0, |now| now.saturating_add_signed(steps).min(places.len().saturating_sub(1)));
        if let Some(name) = places.get(next).map(|name| (*name).to_owned()) {
            self.choose_symbol(&name);
        }
    }

    /// Returns the subject of the focused pane's selected row; `None` if it has no explanation.
    pub fn subject(&self) -> Option<Subject> {
        let place = (*self.places(self.focus).get(self.selected(self.focus))?).to_owned();
        match self.focus {
            Pane::Signals => Some(Subject::Signal(place)),
            Pane::Decisions => Some(Subject::Entry(place)),
            Pane::Risk => Some(Subject::Request(place)),
            _ => None,
        }
    }

    /// Returns the symbols whose names contain the typed text, in any case.
    pub fn matches(&self, search: &Search) -> Vec<&str> {
        let typed = search.typed.to_lowercase();
        let mut found = self.places(Pane::Candles);
        found.retain(|name| name.to_lowercase().contains(&typed));
        found
    }
}
