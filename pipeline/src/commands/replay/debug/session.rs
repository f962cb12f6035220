//! A terminal, its keys, and the journal that they step through.

use std::time::{Duration, Instant};

use anyhow::bail;
use ratatui::crossterm::event::{Event, KeyEvent, KeyEventKind};
use warptape_replay::debugger::{Found, Stepper};
use warptape_replay::history::Bound;

use super::app::{Action, App};
use super::screen::draw;
use super::view::View;
use crate::cli::{DebugArgs, Interrupt};
use crate::commands::columns::utc;
use crate::commands::full_screen::{FullScreen, Waited, is_interrupt};
use crate::terminal::Terminal;

/// Longest wait for a key before signals are checked again.
const LOOK: Duration = Duration::from_millis(100);

/// Steps until a key or a signal ends it, and restores the terminal.
pub fn run(
    stepper: &mut Stepper<'_>,
    args: &DebugArgs,
    source: &str,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let interrupt = Interrupt::install()?;
    let screen = FullScreen::open(terminal)?;
    let app = App::new(args.condition.clone());
    let mut session =
        Session { screen, stepper, app, view: View::default(), source, interrupt, quits: false };
    session.arrive()?;
    if let Some(at) = args.at {
        session.perform(Action::GoTo(at))?;
    }
    session.take_keys()
}

struct Session<'s, 'a> {
    screen: FullScreen,
    stepper: &'s mut Stepper<'a>,
    app: App,
    view: View,
    source: &'s str,
    interrupt: Interrupt,
    /// True if a key asked to quit during a long search.
    quits: bool,
}

impl Session<'_, '_> {
    fn take_keys(&mut self) -> anyhow::Result<()> {
        loop {
            if !self.screen.draw(|frame| draw(frame, &self.app, &self.view, None))? {
                return Ok(());
            }
            let event = loop {
                match self.screen.keys.next(LOOK)? {
                    Waited::Event(event) => break event,
                    Waited::Nothing if !self.interrupt.is_set() => {}
                    Waited::Nothing | Waited::Closed => return Ok(()),
                }
            };
            let action = match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => self.app.key(key),
                _ => Action::Redraw,
            };
            if action == Action::Quit || self.interrupt.is_set() {
                return Ok(());
            }
            self.perform(action)?;
            if self.quits {
                return Ok(());
            }
        }
    }

    fn perform(&mut self, action: Action) -> anyhow::Result<()> {
        if matches!(action, Action::Redraw | Action::Repaint) {
            if action == Action::Repaint {
                self.screen.terminal.clear()?;
            }
            return self.explain();
        }
        let found = self.step(&action)?;
        self.arrive()?;
        match (found, action) {
            (Found::Here, _) => {}
            (Found::Stopped, _) => self.app.say(format!("stopped at sequence {}", self.view.sequence)),
            (Found::Nothing, Action::Continue) => self.app.say("the condition holds for no later entry"),
            (Found::Nothing, Action::ContinueBack) => {
                self.app.say("the condition holds for no earlier entry")
            }
            (Found::Nothing, Action::Back) => self.app.say("this is the first entry with a known state"),
            (Found::Nothing, Action::GoTo(bound)) => {
                self.app
                    .say(format!("there is no entry at {} or after it; this is the last one", place(bound)));
            }
            (Found::Nothing, _) => self.app.say("this is the last entry"),
        }
        Ok(())
    }

    fn step(&mut self, action: &Action) -> anyhow::Result<Found> {
        let Self { screen, stepper, app, view, interrupt, quits, .. } = self;
        let range = stepper.range();
        let (mut shown, mut failed) = (Instant::now(), None);
        let mut progress = |offset: i64| {
            if shown.elapsed() < LOOK {
                return true;
            }
            shown = Instant::now();
            let words =
                format!("offset {offset} of {} to {}; press any key to stop", range.first, range.next - 1);
            match show_progress(screen, app, view, &words) {
                Ok(key) => {
                    *quits |= key.is_some_and(is_interrupt);
                    key.is_none() && !interrupt.is_set()
                }
                Err(error) => {
                    failed = Some(error);
                    false
                }
            }
        };
        let sequence = stepper.step().entry.sequence;
        let found = match action {
            Action::Next => stepper.forward()?,
            Action::Back => stepper.back()?,
            Action::Page(entries) => {
                let to = sequence.saturating_add(*entries).max(0);
                stepper.go_to(Bound::Sequence(to), &mut progress)?
            }
            Action::GoTo(bound) => stepper.go_to(*bound, &mut progress)?,
            Action::Last => {
                stepper.go_to(Bound::Offset(i64::MAX), &mut progress)?;
                Found::Here
            }
            Action::Continue | Action::ContinueBack => match &app.condition {
                Some(condition) if *action == Action::Continue => {
                    stepper.find_next(condition, &mut progress)?
                }
                Some(condition) => stepper.find_back(condition, &mut progress)?,
                None => Found::Nothing,
            },
            Action::Redraw | Action::Repaint | Action::Quit => Found::Here,
        };
        match failed {
            Some(error) => Err(error),
            None => Ok(found),
        }
    }

    /// Shows the step at the position.
    fn arrive(&mut self) -> anyhow::Result<()> {
        self.view = View::of(self.stepper, self.source);
        self.app.arrive(self.view.decisions.len());
        self.explain()
    }

    /// Adds the explanation of the chosen decision, if it is shown.
    fn explain(&mut self) -> anyhow::Result<()> {
        self.view.explanation = None;
        if self.app.explains {
            self.view.explain(self.stepper, self.app.cursor)?;
        }
        Ok(())
    }
}

/// Describes a place in words.
fn place(bound: Bound) -> String {
    match bound {
        Bound::Sequence(sequence) => format!("sequence {sequence}"),
        Bound::Offset(offset) => format!("offset {offset}"),
        Bound::Time(at_ns) => utc(at_ns),
    }
}

/// Shows the progress of a search. Returns a key pressed meanwhile, which stops the search.
fn show_progress(
    screen: &mut FullScreen,
    app: &App,
    view: &View,
    words: &str,
) -> anyhow::Result<Option<KeyEvent>> {
    if !screen.draw(|frame| draw(frame, app, view, Some(words)))? {
        bail!("the terminal was closed");
    }
    loop {
        match screen.keys.next(Duration::ZERO)? {
            Waited::Event(Event::Key(key)) => return Ok(Some(key)),
            Waited::Event(_) => {}
            Waited::Nothing => return Ok(None),
            Waited::Closed => bail!("the terminal was closed"),
        }
    }
}
