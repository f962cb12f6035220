//! A screen of its own in the terminal, and keys that all such screens share.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{set_hook, take_hook};
use std::thread;
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, enable_raw_mode};
use ratatui::{DefaultTerminal, Frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::logging::{LogFormat, NOTICE};
use crate::terminal::{Cover, Terminal, before_exit};

/// A screen, until it is dropped. Log lines and panics of all threads wait for its end if standard error is the same
/// terminal.
pub struct FullScreen {
    /// The terminal to draw on.
    pub terminal: DefaultTerminal,
    /// Keys and changes of the terminal's size.
    pub keys: Keys,
    // Dropped in this order: lines follow once the terminal is as before.
    _restored: Restored,
    _cover: Cover,
}

impl FullScreen {
    /// Opens a screen on standard output. Lines of the log go to this terminal.
    pub fn open(log: &Terminal) -> io::Result<Self> {
        let cover = log.cover();
        hold_panics(log);
        let restored = Restored;
        let at_exit = log.clone();
        before_exit(Some(Box::new(move || {
            drop(ratatui::try_restore());
            at_exit.uncover_at_exit();
        })));
        let keys = Keys::open()?;
        enable_raw_mode()?;
        #[expect(clippy::disallowed_methods, reason = "what is drawn is made printable before")]
        let (mut out, drawn) = (io::stdout(), io::stdout());
        execute!(out, EnterAlternateScreen)?;
        let terminal = ratatui::Terminal::new(CrosstermBackend::new(drawn))?;
        Ok(Self { terminal, keys, _restored: restored, _cover: cover })
    }

    /// Draws a frame; returns false if the terminal was closed.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<bool> {
        if self.keys.is_closed(Duration::ZERO)? {
            return Ok(false);
        }
        match self.terminal.draw(render) {
            Ok(_) => Ok(true),
            // The terminal may be closed while it is drawn on.
            Err(error) => match self.keys.is_closed(Duration::ZERO)? {
                true => Ok(false),
                false => Err(error),
            },
        }
    }
}

/// Events of the terminal. crossterm never returns from reading a closed terminal, so each read is preceded by a check.
pub struct Keys {
    /// The terminal if standard input is none.
    terminal: Option<File>,
}

/// The result of a wait for an event.
pub enum Waited {
    /// Nothing happened.
    Nothing,
    /// A key was pressed, or the terminal has another size.
    Event(Event),
    /// The terminal was closed.
    Closed,
}

impl Keys {
    fn open() -> io::Result<Self> {
        let is_terminal = io::stdin().is_terminal();
        Ok(Self { terminal: if is_terminal { None } else { Some(File::open("/dev/tty")?) } })
    }

    /// Waits at most `wait` for an event. A signal may end the wait earlier.
    pub fn next(&self, wait: Duration) -> io::Result<Waited> {
        if self.is_closed(Duration::ZERO)? {
            return Ok(Waited::Closed);
        }
        if !wait.is_zero() && !event::poll(Duration::ZERO)? && self.is_closed(wait)? {
            return Ok(Waited::Closed);
        }
        match event::poll(Duration::ZERO)? {
            true => event::read().map(Waited::Event),
            false => Ok(Waited::Nothing),
        }
    }

    /// Waits at most `wait` for input or the end of the terminal; returns true if it has ended.
    fn is_closed(&self, wait: Duration) -> io::Result<bool> {
        let stdin = io::stdin();
        let terminal: BorrowedFd<'_> = self.terminal.as_ref().map_or(stdin.as_fd(), File::as_fd);
        let mut polled = [PollFd::from_borrowed_fd(terminal, PollFlags::IN)];
        let wait = Timespec::try_from(wait).unwrap_or_default();
        match poll(&mut polled, Some(&wait)) {
            Ok(_) => Ok(polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Restores the terminal when dropped, however the command ends.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        before_exit(None);
        // A closed terminal needs no restoring.
        drop(ratatui::try_restore());
    }
}

/// Logs panics while a screen covers standard error. Their message would tear it, or end with it.
fn hold_panics(log: &Terminal) {
    let (log, before) = (log.clone(), take_hook());
    set_hook(Box::new(move |panic| {
        // The hook of JSON lines logs already.
        if log.format() == LogFormat::Json || !log.is_covered() {
            return before(panic);
        }
        let (thread, backtrace) = (thread::current(), Backtrace::capture());
        let is_asked_for = backtrace.status() == BacktraceStatus::Captured;
        let backtrace = if is_asked_for { format!("\n{backtrace}") } else { String::new() };
        let name = thread.name().unwrap_or("unnamed");
        tracing::error!(target: NOTICE, "thread {name:?} {panic}{backtrace}");
    }));
}

/// True if a key is Ctrl-C, which a terminal in raw mode does not turn into a signal.
pub fn is_interrupt(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

/// Changes a typed text of at most `most` characters by a key. Returns false if the key is none of typing.
pub fn edit(typed: &mut String, key: KeyEvent, most: usize) -> bool {
    let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Backspace => drop(typed.pop()),
        KeyCode::Char('u') if has_control => typed.clear(),
        KeyCode::Char(character) if !has_control && typed.chars().count() < most => typed.push(character),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_typed() {
        let mut typed = String::new();
        let mut press =
            |code, modifiers| (edit(&mut typed, KeyEvent::new(code, modifiers), 3), typed.clone());
        let none = KeyModifiers::NONE;
        for (letter, expected) in [('a', "a"), ('株', "a株"), ('c', "a株c")] {
            assert_eq!(press(KeyCode::Char(letter), none), (true, expected.to_owned()));
        }
        assert_eq!(press(KeyCode::Char('d'), none), (false, "a株c".to_owned()), "there are three already");
        assert_eq!(press(KeyCode::Backspace, none), (true, "a株".to_owned()));
        assert_eq!(press(KeyCode::Char('a'), KeyModifiers::CONTROL), (false, "a株".to_owned()));
        assert_eq!(press(KeyCode::Up, none), (false, "a株".to_owned()));
        assert_eq!(press(KeyCode::Char('u'), KeyModifiers::CONTROL), (true, String::new()));
    }
}
