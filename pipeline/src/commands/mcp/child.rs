//! Runs a command as a child process, with limits on time, output and concurrency. The child is killed if nobody waits
//! for it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command as Process};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::call::{Command, Form, Keep};

/// Greatest number of concurrent commands. Further ones wait.
const COMMANDS_MAX: usize = 2;
/// Greatest length of an answer, in bytes.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Number of bytes kept of standard error.
const SAID_BYTES_MAX: usize = 16 << 10;

/// Starts commands, all with the same executable, configuration and limits.
pub struct Children {
    executable: PathBuf,
    config: Option<PathBuf>,
    time_max: Duration,
    places: Semaphore,
}

/// An ended command.
pub struct Ended {
    /// Standard output, or the requested lines of it.
    pub out: Vec<u8>,
    /// Beginning of standard error.
    pub said: String,
    /// Exit status; `None` if a signal ended it.
    pub code: Option<i32>,
    /// True if the command had more lines than were kept.
    pub has_more: bool,
}

/// Reasons for which a command gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The command did not end in time.
    #[error(
        "the call took longer than {} s and was ended; ask for less, such as a shorter window, or start \
         `warptape mcp` with a greater --timeout-s",
        .0.as_secs()
    )]
    TooLong(Duration),
    /// The command printed too much.
    #[error(
        "the answer has more than {ANSWER_BYTES_MAX} bytes; ask for less, such as a shorter window or a smaller count"
    )]
    TooMuch,
    /// The system could not start the command, or its output broke off.
    #[error("the command cannot be run: {0}")]
    System(#[from] io::Error),
}

impl Children {
    /// Uses this process's executable. Each command gets the configuration file, if there is one.
    pub fn new(config: Option<&Path>, time_max: Duration) -> anyhow::Result<Self> {
        let executable = std::env::current_exe().context("the path of this executable is unknown")?;
        let config = config.map(Path::to_owned);
        Ok(Self { executable, config, time_max, places: Semaphore::new(COMMANDS_MAX) })
    }

    /// Returns the end of a call that begins now. All commands of the call share it.
    pub fn end_of_call(&self) -> Instant {
        Instant::now() + self.time_max
    }

    /// Runs a command on a log to its end, or until the end of its call. The command is killed if the future is dropped.
    pub async fn run(&self, log: &str, command: &Command, until: Instant) -> Result<Ended, ChildError> {
        let run = async {
            let _place = self.places.acquire().await;
            let mut child = self.process(log, command).spawn()?;
            attend(&mut child, command.form).await
        };
        timeout_at(until, run).await.unwrap_or(Err(ChildError::TooLong(self.time_max)))
    }

    fn process(&self, log: &str, command: &Command) -> Process {
        let mut process = Process::new(&self.executable);
        process.arg("--log-format=text").arg(format!("--log={log}"));
        if let Some(config) = &self.config {
            let mut flag = OsString::from("--config=");
            flag.push(config);
            process.arg(flag);
        }
        process.args(command.words());
        // WARPTAPE_LOG is meant for this process's own log. A command's notices belong to its answer.
        process.env_remove("WARPTAPE_LOG");
        process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        process
    }
}

/// Reads a child's output and waits for its end. Kills the child once it has printed enough lines.
async fn attend(child: &mut Child, form: Form) -> Result<Ended, ChildError> {
    let (Some(out), Some(said)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::other("its output is not connected").into());
    };
    let kept = async {
        let mut kept = Kept::new(form);
        let is_whole = kept.read(out).await?;
        if !is_whole {
            child.start_kill()?;
        }
        Ok::<_, ChildError>(kept)
    };
    let (kept, said) = tokio::try_join!(kept, async { Ok(beginning(said).await?) })?;
    let status = child.wait().await?;
    let code = if kept.is_full { Some(0) } else { status.code() };
    Ok(Ended { has_more: kept.is_full || kept.left_out, out: kept.bytes(), said, code })
}

/// Reads a stream to its end, and returns its first [`SAID_BYTES_MAX`] bytes.
async fn beginning(mut stream: impl AsyncRead + Unpin) -> io::Result<String> {
    let mut kept = Vec::new();
    let mut chunk = vec![0; 4 << 10];
    loop {
        let read = stream.read(&mut chunk).await?;
        if read == 0 {
            return Ok(String::from_utf8_lossy(&kept).into_owned());
        }
        kept.extend_from_slice(&chunk[..read.min(SAID_BYTES_MAX - kept.len())]);
    }
}

/// The kept part of an output.
struct Kept {
    form: Form,
    /// Whole lines; empty unless the form is lines.
    lines: VecDeque<Vec<u8>>,
    /// Bytes after the last whole line; all bytes unless the form is lines.
    rest: Vec<u8>,
    /// Number of bytes in lines and rest.
    bytes: usize,
    /// True once all requested first lines are read.
    is_full: bool,
    /// True if lines were dropped.
    left_out: bool,
}

impl Kept {
    fn new(form: Form) -> Self {
        let (lines, rest) = (VecDeque::new(), Vec::new());
        Self { form, lines, rest, bytes: 0, is_full: false, left_out: false }
    }

    /// Reads a stream. Returns false if it stopped early because it has all requested lines.
    async fn read(&mut self, mut stream: impl AsyncRead + Unpin) -> Result<bool, ChildError> {
        let mut chunk = vec![0; 64 << 10];
        loop {
            let read = stream.read(&mut chunk).await?;
            if read == 0 {
                return Ok(true);
            }
            self.take(&chunk[..read]);
            if self.bytes > ANSWER_BYTES_MAX {
                return Err(ChildError::TooMuch);
            }
            if self.is_full {
                return Ok(false);
            }
        }
    }

    fn take(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len();
        let Form::Lines(keep) = self.form else {
            self.rest.extend_from_slice(chunk);
            return;
        };
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.lines.push_back(std::mem::take(&mut self.rest));
                self.drop_beyond(keep);
            }
        }
    }

    /// Drops the newest or the oldest line if there is one too many.
    fn drop_beyond(&mut self, keep: Keep) {
        let dropped = match keep {
            Keep::First(count) if self.lines.len() > count => {
                self.is_full = true;
                self.lines.pop_back()
            }
            Keep::Last(count) if self.lines.len() > count => self.lines.pop_front(),
            _ => None,
        };
        if let Some(line) = dropped {
            self.bytes -= line.len();
            self.left_out = true;
        }
    }

    fn bytes(self) -> Vec<u8> {
        // An unfinished line after enough whole lines is dropped.
        let rest = if self.is_full { Vec::new() } else { self.rest };
        self.lines.into_iter().flatten().chain(rest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(form: Form, chunks: &[&str]) -> (String, bool, bool) {
        let mut kept = Kept::new(form);
        chunks.iter().for_each(|chunk| kept.take(chunk.as_bytes()));
        let (is_full, left_out) = (kept.is_full, kept.left_out);
        (String::from_utf8(kept.bytes()).expect("text"), is_full, left_out)
    }

    #[test]
    fn lines_are_kept_from_either_end() {
        let chunks = ["a\nb", "b\nc\nd", "\ne"];
        assert_eq!(kept(Form::Text, &chunks), ("a\nbb\nc\nd\ne".to_owned(), false, false));
        assert_eq!(kept(Form::Lines(Keep::First(2)), &chunks), ("a\nbb\n".to_owned(), true, true));
        assert_eq!(kept(Form::Lines(Keep::Last(2)), &chunks), ("c\nd\ne".to_owned(), false, true));
        assert_eq!(kept(Form::Lines(Keep::First(4)), &["a\nb\n"]), ("a\nb\n".to_owned(), false, false));
    }

    #[test]
    fn dropped_lines_do_not_count_as_bytes() {
        let mut kept = Kept::new(Form::Lines(Keep::Last(1)));
        (0..1_000).for_each(|_| kept.take(b"line\n"));
        assert_eq!(kept.bytes, 5);
    }
}
