//! The process's log on standard error: lines for people, or one JSON object per line for log collectors.
//!
//! All messages on standard error go through `tracing`, including notices to users. Notices have the target [`NOTICE`]:
//! no filter suppresses them, and they are plain text among the lines for people. Callers need not know the format.

mod json;
mod text;

use std::panic::PanicHookInfo;
use std::thread;

use anyhow::bail;
use clap::ValueEnum;
use time::OffsetDateTime;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{FmtSpan, Writer};
use tracing_subscriber::fmt::time::FormatTime;

use crate::clock::wall_clock_ns;
use crate::terminal::Terminal;
use crate::usage_error::UsageError;

/// Target of notices to the user who called the command. They are always shown.
pub const NOTICE: &str = "warptape::notice";
/// Variable for the filter, in the syntax of `RUST_LOG`; it overrides `-v`.
const FILTER_VARIABLE: &str = "WARPTAPE_LOG";
/// Variable for the format, used without the flag.
const FORMAT_VARIABLE: &str = "WARPTAPE_LOG_FORMAT";
/// Levels for no `-v`, `-v`, `-vv` and `-vvv`.
const LEVELS: [&str; 4] = ["warn", "info", "debug", "trace"];

/// Formats of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

impl LogFormat {
    /// Returns the format that the flag names, or else the environment.
    pub fn chosen(flag: Option<Self>) -> Result<Self, UsageError> {
        if let Some(format) = flag {
            return Ok(format);
        }
        let Some(word) = std::env::var_os(FORMAT_VARIABLE).filter(|word| !word.is_empty()) else {
            return Ok(Self::Text);
        };
        let known = word.to_str().and_then(|word| Self::from_str(word, false).ok());
        known.ok_or_else(|| {
            UsageError(format!(
                "environment variable {FORMAT_VARIABLE}: {word:?} is not a format; use text or json"
            ))
        })
    }

    /// Returns the format that the arguments probably ask for, even if they are invalid.
    pub fn guessed() -> Self {
        let arguments: Vec<_> = std::env::args_os().collect();
        let is_asked = arguments.iter().any(|argument| argument == "--log-format=json")
            || arguments.windows(2).any(|pair| pair[0] == "--log-format" && pair[1] == "json");
        if is_asked { Self::Json } else { Self::chosen(None).unwrap_or_default() }
    }
}

/// Starts the log of this process. An invalid filter starts the default log, which then shows the error.
pub fn start(verbose: u8, format: LogFormat, terminal: &Terminal) -> anyhow::Result<()> {
    let default = LEVELS[usize::from(verbose).min(LEVELS.len() - 1)];
    let (filter, mistake) = match std::env::var(FILTER_VARIABLE) {
        Ok(text) if !text.is_empty() => match EnvFilter::try_new(&text) {
            Ok(filter) => (filter, None),
            Err(error) => (EnvFilter::new(default), Some((text, error))),
        },
        _ => (EnvFilter::new(default), None),
    };
    let always = format!("{NOTICE}=trace").parse().expect("a directive");
    // The last level also logs how long spans took.
    let spans = if usize::from(verbose) + 1 >= LEVELS.len() { FmtSpan::CLOSE } else { FmtSpan::NONE };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter.add_directive(always))
        .with_writer(terminal.clone())
        .with_span_events(spans)
        .log_internal_errors(false);
    match format {
        LogFormat::Text => {
            let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
            subscriber.with_ansi(ansi).fmt_fields(text::fields()).event_format(text::TextLines::new()).init();
        }
        LogFormat::Json => {
            subscriber.with_ansi(false).fmt_fields(json::JsonFields).event_format(json::JsonLines).init();
            std::panic::set_hook(Box::new(log_panic));
        }
    }
    if let Some((text, error)) = mistake {
        bail!(UsageError(format!(
            "environment variable {FILTER_VARIABLE}: {text:?} is not a filter ({error}); try `debug`"
        )));
    }
    Ok(())
}

/// Logs a panic as a line of JSON if the log has that format.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let thread = thread::current();
    let location = panic.location().map(ToString::to_string);
    let reason = panic.payload_as_str().unwrap_or("a value that is not a text");
    tracing::error!(target: NOTICE, thread = thread.name(), location, "panicked: {reason}");
}

/// The wall clock in RFC 3339, in UTC, with microseconds.
struct WallClock;

impl FormatTime for WallClock {
    fn format_time(&self, out: &mut Writer<'_>) -> std::fmt::Result {
        let at = OffsetDateTime::from_unix_timestamp_nanos(wall_clock_ns().into());
        let at = at.expect("64 bits of nanoseconds are some centuries");
        let (date, hour, minute, second) = (at.date(), at.hour(), at.minute(), at.second());
        write!(
            out,
            "{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z",
            date.year(),
            u8::from(date.month()),
            date.day(),
            at.microsecond(),
        )
    }
}
