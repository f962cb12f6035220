//! Standard error, shared by log lines and a live display: a line is written above the display, which is then drawn
//! again.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indicatif::MultiProgress;
use tracing_subscriber::fmt::MakeWriter;

use crate::logging::LogFormat;

/// Greatest number of bytes of lines that wait for the end of a full screen.
const HELD_MAX: usize = 256 << 10;

/// Destination of log lines. Clones share the display.
#[derive(Clone, Default)]
pub struct Terminal {
    /// Format of log lines.
    format: LogFormat,
    /// The present display, which the command itself draws.
    display: Arc<Mutex<Display>>,
}

/// Displays that lines must not tear.
#[derive(Default)]
enum Display {
    /// None.
    #[default]
    None,
    /// Lines below the log.
    Live(MultiProgress),
    /// A full screen, with the lines that wait for its end.
    Full(Held),
}

/// Lines that wait: the newest ones.
#[derive(Default)]
struct Held {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Number of older lines left out.
    left_out: u64,
}

impl Held {
    fn push(&mut self, line: &[u8]) {
        self.lines.push_back(line.to_owned());
        self.bytes += line.len();
        while self.bytes > HELD_MAX
            && let Some(oldest) = self.lines.pop_front()
        {
            self.bytes -= oldest.len();
            self.left_out += 1;
        }
    }

    fn write(self, out: &mut impl Write) -> io::Result<()> {
        if self.left_out > 0 {
            writeln!(out, "({} older lines of the log are left out: write it to a file)", self.left_out)?;
        }
        self.lines.iter().try_for_each(|line| out.write_all(line))
    }
}

impl Terminal {
    /// Creates standard error without a display, for log lines of this format.
    pub fn new(format: LogFormat) -> Self {
        Self { format, ..Self::default() }
    }

    /// Returns the format of log lines.
    pub fn format(&self) -> LogFormat {
        self.format
    }

    /// True if a person may see a display there.
    pub fn is_watched(&self) -> bool {
        self.format == LogFormat::Text && io::stderr().is_terminal()
    }

    /// Starts to write lines above this display.
    pub fn show(&self, display: MultiProgress) {
        *self.lock() = Display::Live(display);
    }

    /// Forgets the display.
    pub fn clear(&self) {
        *self.lock() = Display::None;
    }

    /// Holds lines back while a full screen is shown, if they would go to a terminal.
    pub fn cover(&self) -> Cover {
        if io::stderr().is_terminal() {
            *self.lock() = Display::Full(Held::default());
        }
        Cover(self.clone())
    }

    /// True if lines are held back.
    pub fn is_covered(&self) -> bool {
        matches!(*self.lock(), Display::Full(_))
    }

    /// Writes the lines that were held back, before all later ones.
    fn uncover(&self, out: &mut impl Write) -> io::Result<()> {
        let mut display = self.lock();
        let Display::Full(held) = &mut *display else { return Ok(()) };
        let held = std::mem::take(held);
        *display = Display::None;
        held.write(out)
    }

    /// [`Terminal::uncover`] for an exit at once: nothing is written if another thread is writing.
    pub fn uncover_at_exit(&self) {
        if let Ok(mut display) = self.display.try_lock()
            && let Display::Full(held) = &mut *display
        {
            let held = std::mem::take(held);
            *display = Display::None;
            drop(held.write(&mut io::stderr()));
        }
    }

    /// Writes without disturbing the display.
    fn write_to(&self, out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        let live = match &mut *self.lock() {
            Display::Full(held) => {
                held.push(bytes);
                return Ok(());
            }
            Display::Live(live) => Some(live.clone()),
            Display::None => None,
        };
        match live {
            Some(live) => live.suspend(|| out.write_all(bytes)),
            None => out.write_all(bytes),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Display> {
        self.display.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Step = Box<dyn FnOnce() + Send>;

/// The step that restores the terminal before an exit at once; `None` while no screen is shown.
static BEFORE_EXIT: Mutex<Option<Step>> = Mutex::new(None);

/// Sets or clears the step before an exit at once.
pub fn before_exit(step: Option<Step>) {
    *BEFORE_EXIT.lock().unwrap_or_else(PoisonError::into_inner) = step;
}

/// Takes the step before an exit at once.
pub fn restore_at_exit() {
    let step = BEFORE_EXIT.try_lock().ok().and_then(|mut step| step.take());
    if let Some(step) = step {
        step();
    }
}

/// A full screen in front of the lines of a terminal, which are written when it is dropped.
pub struct Cover(Terminal);

impl Drop for Cover {
    fn drop(&mut self) {
        // A closed terminal shows no lines.
        drop(self.0.uncover(&mut io::stderr()));
    }
}

/// A line being written to standard error.
pub struct Line<'a>(&'a Terminal);

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_to(&mut io::stderr(), bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl<'a> MakeWriter<'a> for Terminal {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self)
    }
}

#[cfg(test)]
mod tests {
    use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

    use super::*;

    /// A terminal that records its operations.
    #[derive(Clone, Debug, Default)]
    struct Noted(Arc<Mutex<Vec<String>>>);

    impl Noted {
        fn note(&self, what: &str) -> io::Result<()> {
            self.0.lock().expect("nobody panics").push(what.to_owned());
            Ok(())
        }
    }

    impl TermLike for Noted {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.note(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.note(text)
        }
        fn clear_line(&self) -> io::Result<()> {
            self.note("cleared")
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Write for Noted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.note(std::str::from_utf8(bytes).expect("text"))?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_goes_above_the_display() {
        let mut noted = Noted::default();
        let display = MultiProgress::with_draw_target(ProgressDrawTarget::term_like(Box::new(noted.clone())));
        let style = ProgressStyle::with_template("{wide_msg}").expect("a template");
        let bar = display.add(ProgressBar::new_spinner().with_style(style));
        bar.set_message("7 ticks");
        bar.tick();
        let terminal = Terminal::default();
        terminal.show(display);
        let before = noted.0.lock().expect("nobody panics").len();
        terminal.write_to(&mut noted, b"a broker is gone\n").expect("it is written");
        let done: Vec<String> = noted.0.lock().expect("nobody panics")[before..].to_vec();
        let place = |what: &str| done.iter().position(|line| line.contains(what));
        let (cleared, said, drawn) = (place("cleared"), place("a broker is gone"), place("7 ticks"));
        assert!(cleared.is_some() && cleared < said && said < drawn, "{done:?}");

        terminal.clear();
        let before = noted.0.lock().expect("nobody panics").len();
        terminal.write_to(&mut noted, b"and back\n").expect("it is written");
        assert_eq!(noted.0.lock().expect("nobody panics")[before..], ["and back\n"]);
    }

    #[test]
    fn lines_wait_for_the_end_of_a_full_screen() {
        let terminal = Terminal::default();
        let mut out = Vec::new();
        let uncovered = |terminal: &Terminal| {
            let mut out = Vec::new();
            terminal.uncover(&mut out).expect("memory takes all");
            String::from_utf8(out).expect("text")
        };
        *terminal.lock() = Display::Full(Held::default());
        terminal.clone().write_to(&mut out, b"a broker is gone\n").expect("it is held");
        terminal.write_to(&mut out, b"and back\n").expect("it is held");
        assert!(out.is_empty() && terminal.is_covered());
        assert_eq!(uncovered(&terminal), "a broker is gone\nand back\n");
        assert!(!terminal.is_covered());
        terminal.write_to(&mut out, b"on\n").expect("it is written");
        assert_eq!(out, b"on\n");
        assert_eq!(uncovered(&terminal), "", "they are written once");

        // The newest ones fit.
        *terminal.lock() = Display::Full(Held::default());
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        for _ in 0..HELD_MAX / 1024 + 3 {
            terminal.write_to(&mut out, &line).expect("it is held");
        }
        let written = uncovered(&terminal);
        assert!(written.starts_with("(3 older lines of the log are left out"), "{}", &written[..80]);
        assert_eq!(written.lines().count(), 1 + HELD_MAX / 1024);
    }
}
