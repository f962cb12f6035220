//! A session in the terminal: keys and the answers of the endpoint.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::client::{Client, News, Subject, Wish, explain, poll, spawn};
use super::keys::Action;
use super::model::{Mode, Model};
use super::screen::draw;
use crate::cli::Interrupt;

/// Longest wait for a key before answers and signals are checked.
const LOOK: Duration = Duration::from_millis(50);
/// Time after which the screen is redrawn even without news, because the shown ages grow.
const REDRAW: Duration = Duration::from_millis(500);

/// Shows the pipeline until a key or a signal ends it, and restores the terminal.
pub fn run(client: &Client, interrupt: &Interrupt, is_coloured: bool) -> anyhow::Result<()> {
    let _restored = Restored;
    // The panic hook restores the terminal before the panic's message, too.
    let terminal = ratatui::try_init()?;
    let (to_us, news) = unbounded();
    let (wishes, wished) = unbounded();
    let poller = (client.clone(), to_us.clone());
    spawn(move || poll(&poller.0, &wished, &poller.1))?;
    let model = Model::new(client.url(), is_coloured);
    let session = Session {
        terminal,
        model,
        client,
        started: Instant::now(),
        news,
        to_us,
        wishes,
        wish: None,
        explaining: None,
    };
    session.watch(interrupt)
}

/// Restores the terminal when dropped, however the command ends.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        // A closed terminal need not be restored.
        drop(ratatui::try_restore());
    }
}

struct Session<'a> {
    terminal: DefaultTerminal,
    model: Model,
    client: &'a Client,
    started: Instant,
    news: Receiver<News>,
    to_us: Sender<News>,
    wishes: Sender<Option<Wish>>,
    /// The candles that the poller currently asks for.
    wish: Option<Wish>,
    /// Dropped once nobody waits for the explanation; its thread then gives up.
    explaining: Option<Sender<()>>,
}

impl Session<'_> {
    fn watch(mut self, interrupt: &Interrupt) -> anyhow::Result<()> {
        let mut drawn: Option<Instant> = None;
        while !interrupt.is_set() {
            if drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW) {
                self.model.now = self.started.elapsed();
                self.terminal.draw(|frame| draw(frame, &self.model))?;
                drawn = Some(Instant::now());
            }
            if event::poll(LOOK)? {
                drawn = None;
                if self.perform(event::read()?)? {
                    return Ok(());
                }
            }
            self.model.now = self.started.elapsed();
            while let Ok(news) = self.news.try_recv() {
                drawn = None;
                self.model.take(news);
            }
            self.tell_wish();
        }
        Ok(())
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
            Action::Repaint => self.terminal.clear()?,
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
