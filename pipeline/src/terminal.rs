//! Standard error, shared by log lines and a live display: a line is written above the display, which is then drawn
//! again.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indicatif::MultiProgress;
use tracing_subscriber::fmt::MakeWriter;

use crate::logging::LogFormat;

/// Destination of log lines. Clones share the display.
#[derive(Clone, Default)]
pub struct Terminal {
    /// Format of log lines.
    format: LogFormat,
    /// The current display, which the command draws; `None` if there is none.
    display: Arc<Mutex<Option<MultiProgress>>>,
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
        *self.lock() = Some(display);
    }

    /// Forgets the display.
    pub fn clear(&self) {
        *self.lock() = None;
    }

    /// Writes without disturbing the display.
    fn write_to(&self, out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        let display = self.lock().clone();
        match display {
            Some(display) => display.suspend(|| out.write_all(bytes)),
            None => out.write_all(bytes),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<MultiProgress>> {
        self.display.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line that is being written to standard error.
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
}
