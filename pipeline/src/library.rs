//! The pipeline as a library for programs in other languages: gives access to a log by its URL.
//!
//! The library watches no signals: callers end a call through an [`Interrupt`]. Answers have the JSON form of the
//! commands' answers.

mod given_tick;
mod rows;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser as _;
use serde_json::{Map, Value};
use warptape_replay::ReplayProgress;
use warptape_schemas::risk::RiskResult;
use warptape_schemas::signal::SignalKind;
use warptape_schemas::tick::Tick;

pub use warptape_tables::{RowFilter, Table, TablesError};

pub use self::given_tick::GivenTick;
pub use self::rows::Rows;
use crate::cli::{Cli, Command, Interrupt, environment, told};
use crate::commands;
use crate::commands::tail::Lines;
use crate::commands::topics::ready_topics;
use crate::open::{Purpose, open_log};
use crate::publisher::{Published, Publisher};
use crate::settings::{self, Assignment, Settings, Sources};
use crate::usage_error::UsageError;

/// Ticks in a record: with more, they wait longer for each other; with fewer, readers have more overhead.
const RECORD_TICKS_MAX: NonZeroUsize = NonZeroUsize::new(256).expect("it is not 0");

/// A log with its settings.
pub struct Session {
    settings: Settings,
}

impl Session {
    /// Creates a session from the settings of the file and the environment. `url` replaces their log; a path is an
    /// embedded log.
    ///
    /// # Errors
    /// If a setting is invalid. The log itself is opened later, by each call.
    pub fn new(url: Option<&str>, config: Option<PathBuf>) -> anyhow::Result<Self> {
        let log = url.map(|url| Assignment { giver: "url", key: "log.url", value: settings::log_url(url) });
        let sources = Sources {
            file: config,
            environment: environment()?,
            flags: log.into_iter().collect(),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            ..Sources::default()
        };
        Ok(Self { settings: settings::load(&sources)?.0 })
    }

    /// Returns the URL of the log.
    pub fn url(&self) -> &str {
        &self.settings.log.url
    }

    /// Opens a table for reading rows.
    ///
    /// # Errors
    /// If the log cannot be read or does not have the topic.
    pub fn rows(&self, table: &'static Table, filter: RowFilter) -> anyhow::Result<Rows> {
        Rows::read(&self.settings, table, filter)
    }

    /// Opens a topic for reading lines of JSON, at its beginning or at its current end. With `exits_at_end`, the lines
    /// stop at that end.
    ///
    /// # Errors
    /// If the log cannot be read or does not have the topic.
    pub fn lines(
        &self,
        topic: &str,
        symbol: Option<String>,
        (from_beginning, exits_at_end): (bool, bool),
    ) -> anyhow::Result<Lines> {
        Lines::open(&self.settings, topic, symbol, (from_beginning, exits_at_end))
    }

    /// Returns the JSON of `replay verify`, `why` or `what-if` with these arguments.
    ///
    /// # Errors
    /// If the arguments are wrong, or the log cannot be read.
    pub fn replay(
        &self,
        arguments: &[String],
        progress: &mut dyn FnMut(ReplayProgress),
    ) -> anyhow::Result<String> {
        let line = ["warptape", "replay"].into_iter().chain(arguments.iter().map(String::as_str));
        let cli = Cli::try_parse_from(line).map_err(|error| {
            let text = error.to_string();
            UsageError(text.trim_start_matches("error: ").trim_end().to_owned())
        })?;
        let Command::Replay(args) = &cli.command else { unreachable!("the line says replay") };
        commands::replay::answer(args, &self.settings, progress)
    }

    /// Sends a risk request to the pipeline that runs on the log, and waits for its result. With `waits`, the result
    /// follows all ticks that the log had when the pipeline got its partitions. An interrupt cancels the request.
    ///
    /// # Errors
    /// If the request is invalid, or no result comes in time.
    pub fn risk(
        &self,
        request: Map<String, Value>,
        timeout: Duration,
        waits: bool,
        interrupt: &Interrupt,
    ) -> anyhow::Result<RiskResult> {
        commands::risk::answer(request, timeout, waits, &self.settings, interrupt)
    }

    /// Opens the log for publishing ticks, and creates its missing topics if it is embedded. After the interrupt, calls
    /// wait less for a log that does not answer. `name` is the transactional id: a second publisher of the same name
    /// fences this one.
    ///
    /// # Errors
    /// If the log cannot be opened or has no topic of ticks.
    pub fn publisher(&self, name: &str, interrupt: &Interrupt) -> anyhow::Result<TickPublisher> {
        let log = open_log(&self.settings, Purpose::Feed)?.log;
        let partitions = ready_topics(&*log, &self.settings, Purpose::Feed)?;
        let (stopping, topic) = (interrupt.clone(), &self.settings.topics.names.ticks);
        let stopping_since = Box::new(move || stopping.since());
        Ok(TickPublisher(Publisher::new(&log, name, topic, partitions, RECORD_TICKS_MAX, stopping_since)?))
    }
}

/// Publishes ticks.
pub struct TickPublisher(Publisher);

impl TickPublisher {
    /// Accepts ticks. They are in the log after [`TickPublisher::flush`] at the latest.
    ///
    /// # Errors
    /// If a tick is invalid, or the log cannot be written. The publisher must then be dropped.
    pub fn push(&mut self, ticks: Vec<Tick>) -> anyhow::Result<()> {
        Ok(ticks.into_iter().try_for_each(|tick| self.0.push(tick))?)
    }

    /// Commits all accepted ticks.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        Ok(self.0.flush()?)
    }

    /// Returns the number of ticks and records committed since the publisher was opened.
    pub fn published(&self) -> Published {
        self.0.published()
    }

    /// Describes how many ticks were published since `before`.
    pub fn stopped(&self, before: Published) -> String {
        let ticks = self.0.published().ticks - before.ticks;
        match self.0.in_doubt_ticks() {
            0 => format!("stopped after {ticks} ticks were published"),
            in_doubt => {
                format!(
                    "stopped after {ticks} ticks were published, and up to {in_doubt} more whose outcome is unknown"
                )
            }
        }
    }
}

/// Returns the table of this name, and checks that its rows may have this kind.
///
/// # Errors
/// If there is no such table or kind; the message lists all names.
pub fn table_of(name: &str, kind: Option<&str>) -> anyhow::Result<&'static Table> {
    let table = rows::table_named(name)?;
    let kinds = || SignalKind::ALL.iter().map(|kind| kind.name());
    if let Some(kind) = kind.filter(|wanted| name == "signals" && !kinds().any(|kind| kind == *wanted)) {
        let kinds: Vec<&str> = kinds().collect();
        return Err(UsageError(format!(
            "there is no kind of signal {kind:?}; the kinds are {}",
            kinds.join(", ")
        ))
        .into());
    }
    Ok(table)
}

/// Returns the text of an error, with its causes.
pub fn text_of(error: &anyhow::Error) -> String {
    told(error)
}
