//! A session in the terminal: keys and the answers of the endpoint.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use ratatui::crossterm::event::{Event, KeyEventKind};

use super::client::{Client, News, Subject, Wish, explain, poll, spawn};
use super::keys::Action;
use super::model::{Mode, Model};
use super::screen::draw;
use crate::cli::Interrupt;
use crate::commands::full_screen::{FullScreen, Waited};
use crate::terminal::Terminal;

/// Longest wait for a key before answers and signals are checked.
const LOOK: Duration = Duration::from_millis(50);
/// Time after which the screen is redrawn even without news, because the shown ages grow.
const REDRAW: Duration = Duration::from_millis(500);

/// Shows the pipeline until a key or a signal ends it, and restores the terminal.
pub fn run(
    client: Client,
    interrupt: &Interrupt,
    terminal: &Terminal,
    is_coloured: bool,
) -> anyhow::Result<()> {
    let mut session = Session::open(client, terminal, is_coloured)?;
    while !interrupt.is_set() && session.step(LOOK)? {}
    Ok(())
}

/// The screen with its answers, until it is dropped.
pub struct Session {
    screen: FullScreen,
    model: Model,
    client: Client,
    started: Instant,
    /// Time of the last drawing; `None` if something has changed since.
    drawn: Option<Instant>,
    news: Receiver<News>,
    to_us: Sender<News>,
    wishes: Sender<Option<Wish>>,
    /// The candles that the poller currently asks for.
    wish: Option<Wish>,
    /// Dropped once nobody waits for the explanation; its thread then gives up.
    explaining: Option<Sender<()>>,
}

impl Session {
    /// Opens the screen, and starts to ask. Lines of the log go to this terminal.
    pub fn open(client: Client, terminal: &Terminal, is_coloured: bool) -> anyhow::Result<Self> {
        let screen = FullScreen::open(terminal)?;
        let (to_us, news) = unbounded();
        let (wishes, wished) = unbounded();
        let poller = (client.clone(), to_us.clone());
        spawn(move || poll(&poller.0, &wished, &poller.1))?;
        let model = Model::new(client.url(), is_coloured);
        let (started, drawn, wish, explaining) = (Instant::now(), None, None, None);
        Ok(Self { screen, model, client, started, drawn, news, to_us, wishes, wish, explaining })
    }

    /// Draws if something has changed, waits for a key, and takes keys and answers in. Returns false if a key asks for
    /// the end, or the terminal was closed.
    pub fn step(&mut self, wait: Duration) -> anyhow::Result<bool> {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW) {
            self.model.now = self.started.elapsed();
            if !self.screen.draw(|frame| draw(frame, &self.model))? {
                return Ok(false);
            }
            self.drawn = Some(Instant::now());
        }
        let mut wait = wait;
        loop {
            match self.screen.keys.next(wait)? {
                Waited::Nothing => break,
                Waited::Event(event) => {
                    (wait, self.drawn) = (Duration::ZERO, None);
                    if self.perform(event)? {
                        return Ok(false);
                    }
                }
                Waited::Closed => return Ok(false),
            }
        }
        self.model.now = self.started.elapsed();
        while let Ok(news) = self.news.try_recv() {
            self.drawn = None;
            self.model.take(news);
        }
        self.tell_wish();
        Ok(true)
    }

    /// Performs the action of a key. Returns true if it ends the session.
    fn perform(&mut self, event: Event) -> anyhow::Result<bool> {
        let action = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.model.key(key),
            _ => Action::Redraw,
        };
        if !matches!(self.model.mode, Mode::Why(_)) {
            self.explaining = None;
        }
        match action {
            Action::Quit => return Ok(true),
            Action::Repaint => self.screen.terminal.clear()?,
            Action::Explain(subject) => self.explain(subject)?,
            Action::Redraw => {}
        }
        Ok(false)
    }

    fn explain(&mut self, subject: Subject) -> anyhow::Result<()> {
        let (explaining, gone) = bounded(0);
        self.explaining = Some(explaining);
        let (client, to_us) = (self.client.clone(), self.to_us.clone());
        Ok(spawn(move || explain(&client, subject, &gone, &to_us))?)
    }

    /// Tells the poller which candles to ask for.
    fn tell_wish(&mut self) {
        if self.wish != self.model.wish {
            self.wish = self.model.wish.clone();
            // The poller lives as long as the session.
            drop(self.wishes.send(self.wish.clone()));
        }
    }
}
