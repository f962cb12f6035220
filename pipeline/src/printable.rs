//! Terminal output: everything that commands print goes through here, and is made printable like the text on the
//! report's pages.

use std::fmt;
use std::io::{self, IsTerminal, StdoutLock, Write};

pub use warptape_report::{printable, printable_line};

use crate::logging::NOTICE;

/// Returns standard output, for printable text.
pub fn stdout() -> Printable<StdoutLock<'static>> {
    #[expect(clippy::disallowed_methods, reason = "this is where it becomes printable")]
    let stdout = io::stdout();
    Printable(stdout.lock())
}

/// True if standard output is a terminal.
pub fn is_terminal() -> bool {
    #[expect(clippy::disallowed_methods, reason = "nothing is printed to it")]
    io::stdout().is_terminal()
}

/// Assumed width of terminals that do not report theirs.
const COLUMNS: usize = 80;

/// Returns the width of standard output in columns, which `COLUMNS` overrides; `None` if standard output is not a
/// terminal.
pub fn terminal_columns() -> Option<usize> {
    if !is_terminal() {
        return None;
    }
    #[expect(clippy::disallowed_methods, reason = "nothing is printed to it")]
    let told = || rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    Some(set.or_else(told).filter(|columns| *columns > 0).unwrap_or(COLUMNS))
}

/// Writes a message to the user on standard error: as a printable line, or as a log line if the log is JSON.
pub fn to_stderr(line: fmt::Arguments<'_>) {
    tracing::info!(target: NOTICE, "{line}");
}

/// A writer that makes text printable. Each call must contain whole characters, as formatted text does.
pub struct Printable<W>(pub W);

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(printable(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_escapes_what_it_is_given() {
        let mut written = Vec::new();
        writeln!(Printable(&mut written), "a\u{9b}2J\tb").expect("memory takes all");
        assert_eq!(written, b"a\\u009b2J\\u0009b\n");
        let mut written = Vec::new();
        serde_json::to_writer(Printable(&mut written), "\u{1b}\"\u{202e}").expect("memory takes all");
        assert_eq!(written, br#""\u001b\"\u202e""#);
    }
}
