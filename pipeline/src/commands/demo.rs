//! `warptape demo`: a synthetic market through the whole pipeline on an embedded log.

use std::fs::DirBuilder;
use std::io::{ErrorKind, Write};
use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use warptape_eventlog::EventLog;

use super::journal::anchoring;
use super::live::Live;
use super::run::{NO_THREAD, keep_hot_state, watched, write_summary};
use super::view::{self, View};
use crate::cli::{DemoArgs, Interrupt};
use crate::clock::Clock;
use crate::endpoint::{self, Endpoint, EndpointError};
use crate::open::{OpenLog, Purpose, open_log};
use crate::otlp::Otlp;
use crate::printable::{stdout, to_stderr};
use crate::publisher::{Publisher, create_missing_topics};
use crate::retention::Retention;
use crate::runtime::{Progress, Stop, run};
use crate::settings::Settings;
use crate::terminal::Terminal;
use crate::usage_error::UsageError;
use warptape_hot::HotState;
use warptape_sources::synth::{SynthConfig, SynthSource};

/// File of the log in the demo's folder.
pub const LOG_FILE: &str = "demo.db";
/// Permissions of a new folder: all for its owner, none for others.
const PRIVATE: u32 = 0o700;
/// Greatest number of names tried for a new folder.
const FOLDERS_MAX: u32 = 100;
/// Ticks of one record.
const RECORD_TICKS: NonZeroUsize = NonZeroUsize::new(256).expect("256 is not zero");
/// Greatest number of published ticks that the pipeline has not processed yet.
const LEAD_TICKS_MAX: u64 = 1_000_000;
/// Ticks between two checks of the lead, the rate and a stop.
const LOOK_TICKS: u64 = 4_096;
/// Ticks per second of a demo without `--ticks`: fast enough for a display, slow enough for hours on a disk.
const ENDLESS_TICKS_PER_SECOND: u64 = 200_000;
/// Share of a core that verifies the log beside the pipeline, in percent.
const VERIFY_PERCENT: u32 = 10;
/// Wait of the market before it checks again whether it may go on.
const FEED_WAIT: Duration = Duration::from_millis(1);

/// Returns the folder of the demo's log: the one given, or a new one.
pub fn log_path(args: &DemoArgs) -> anyhow::Result<PathBuf> {
    let folder = match &args.data {
        Some(folder) => {
            let created = DirBuilder::new().recursive(true).mode(PRIVATE).create(folder);
            created.with_context(|| format!("cannot create the folder {}", folder.display()))?;
            folder.clone()
        }
        None => new_folder(&std::env::temp_dir())?,
    };
    let path = folder.join(LOG_FILE);
    refuse_existing(&path)?;
    Ok(path)
}

/// Creates a new folder that only this user can read. In a shared parent, another user may have created a folder or a
/// link of that name.
fn new_folder(parent: &Path) -> anyhow::Result<PathBuf> {
    for number in 0..FOLDERS_MAX {
        let name = match number {
            0 => format!("warptape-demo-{}", std::process::id()),
            _ => format!("warptape-demo-{}-{number}", std::process::id()),
        };
        let folder = parent.join(name);
        match DirBuilder::new().mode(PRIVATE).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot create the folder {}", folder.display()));
            }
        }
    }
    anyhow::bail!(
        "{} has too many demo folders: name another folder with --data, or remove old ones",
        parent.display()
    )
}

/// Refuses a log that exists already, because a demo must not publish its market there.
pub fn refuse_existing(path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        let message = format!(
            "{} exists, and a demo needs a new log: remove the file or choose another one with \
                     --data or --log",
            path.display()
        );
        return Err(UsageError(message).into());
    }
    Ok(())
}

/// Runs the demo. `again` is this process's command line, from which the printed commands are made; `config` is its
/// configuration file.
pub fn execute(
    args: &DemoArgs,
    settings: &Settings,
    again: &str,
    config: Option<&Path>,
    terminal: &Terminal,
) -> anyhow::Result<ExitCode> {
    view::check(args.top, true)?;
    let OpenLog { log, schemas, embedded, .. } = open_log(settings, Purpose::Run)?;
    let partitions = create_missing_topics(&*log, &settings.topics.names, &settings.topic_plan())?;
    let mut engine_config = settings.engine_config(schemas);
    engine_config.anchoring = anchoring(settings)?;
    let hot_state = keep_hot_state(&log, settings)?;
    let progress = Arc::new(Progress::new(engine_config.core.lanes.len()));
    let otlp = Otlp::start(settings, &progress)?;
    engine_config.traces = otlp.as_ref().map(Otlp::traces);
    let interrupt = Interrupt::install()?;
    to_stderr(format_args!(
        "warptape demo: {} symbols, {} lanes, log {}",
        args.symbols,
        engine_config.core.lanes.len(),
        log.url()
    ));
    if let Some(missing) = &settings.lanes.gpus_missing {
        to_stderr(format_args!("{missing}; all lanes run on the CPU"));
    }

    let status = hot_state.as_ref().map(HotState::status);
    let mut watched = watched(settings, &engine_config, &progress, &None, &status);
    if watched.verify_percent == 0 {
        watched.verify_percent = VERIFY_PERCENT;
    }
    let endpoint =
        Endpoint::start(listener_of(&settings.endpoint.listen)?, &settings.endpoint, watched, log.clone())?;
    to_stderr(format_args!("metrics and health: {}", endpoint.url()));
    to_stderr(format_args!("live page: {}/", endpoint.url()));

    let retention = match embedded {
        Some(log) => Some(Retention::start(log, settings, progress.clone(), Clock::start())?),
        None => None,
    };
    let (stop_engine, engine_stopped) = bounded(1);
    let (engine_runs, engine_gone) = bounded::<()>(0);
    let engine = {
        let (log, progress) = (log.clone(), progress.clone());
        thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || {
                // Dropped when the thread ends, even by a panic.
                let _engine_runs = engine_runs;
                run(log, engine_config, progress, engine_stopped)
            })
            .context(NO_THREAD)?
    };
    let published = Arc::new(AtomicU64::new(0));
    let (stop_market, market_stopped) = bounded::<()>(0);
    let market = {
        let synth = SynthConfig { symbols: args.symbols, ticks: args.ticks, ..SynthConfig::default() };
        let stopping = interrupt.clone();
        let market = Market {
            source: SynthSource::new(synth)?,
            publisher: Publisher::new(
                &log,
                "demo",
                &settings.topics.names.ticks,
                partitions,
                RECORD_TICKS,
                Box::new(move || stopping.since()),
            )?,
            published: published.clone(),
            processed: progress.clone(),
            ticks_per_second: args.ticks.is_none().then_some(ENDLESS_TICKS_PER_SECOND),
            stopped: market_stopped,
        };
        thread::Builder::new().name("market".to_owned()).spawn(move || market.run()).context(NO_THREAD)?
    };

    let started = Instant::now();
    let time_is_up = || args.seconds.is_some_and(|seconds| started.elapsed() >= Duration::from_secs(seconds));
    let view = View::open(args.top, Some(&endpoint), terminal, &interrupt);
    let mut live = Live::new(progress.clone(), status, None, args.ticks, terminal, view);
    let unread = || published.load(Ordering::Relaxed).saturating_sub(progress.ticks.load(Ordering::Relaxed));
    while !engine.is_finished() && !market.is_finished() && !time_is_up() && !interrupt.wait(live.pace()) {
        live.show(Some(unread()));
    }
    drop(stop_market);
    if !market.is_finished() {
        live.close_view();
    }
    let fed = market.join().expect("the market returns its errors");
    // The send fails if the engine has already failed and ended.
    let ticks = end_offsets(&*log, &settings.topics.names.ticks)?;
    let requests = end_offsets(&*log, &settings.topics.names.risk_requests)?;
    drop(stop_engine.send(Stop::At { ticks, requests }));
    // The interrupt may be set by now, so this waits for the engine's end instead.
    while let Err(RecvTimeoutError::Timeout) = engine_gone.recv_timeout(live.pace()) {
        live.show(Some(unread()));
    }
    live.close_view();
    let summary = engine.join().expect("the engine returns its errors");
    drop(retention);
    let hot_status = hot_state.map(HotState::stop);
    if let Some(otlp) = otlp {
        otlp.end();
    }
    drop(live);
    let summary = summary?;
    fed?;

    let config =
        config.map(|path| format!(" -c {}", quoted(&path.display().to_string()))).unwrap_or_default();
    let url = quoted(&log.url());
    let mut out = stdout();
    write_summary(&mut out, &summary, false, hot_status.as_deref())?;
    writeln!(out, "log        {}   (kept: delete it when you are done)", log.url())?;
    writeln!(out, "\nVerify that every decision and every signal replays bit for bit:")?;
    writeln!(out, "  {again} replay verify{config} --log {url} --outputs")?;
    writeln!(out, "see the whole run on one page:")?;
    writeln!(out, "  {again} replay report{config} --log {url} --to demo.html")?;
    writeln!(out, "or print the signals:")?;
    writeln!(out, "  {again} tail signals{config} --log {url} --from-beginning --exit-at-end | head -50")?;
    Ok(ExitCode::SUCCESS)
}

/// Binds the configured address, or else the default port on 127.0.0.1, or any free port if another demo has it.
fn listener_of(configured: &str) -> Result<TcpListener, EndpointError> {
    if !configured.is_empty() {
        return endpoint::listen(configured);
    }
    let local = |port: u16| endpoint::listen(&format!("127.0.0.1:{port}"));
    local(endpoint::DEFAULT_PORT).or_else(|_| local(0))
}

/// The thread that publishes the market.
struct Market {
    source: SynthSource,
    publisher: Publisher,
    published: Arc<AtomicU64>,
    processed: Arc<Progress>,
    /// Rate of the market; `None` to publish as fast as possible.
    ticks_per_second: Option<u64>,
    /// Disconnected when the market is to stop.
    stopped: Receiver<()>,
}

impl Market {
    fn run(mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        for taken in 1.. {
            let Some(tick) = self.source.next() else { break };
            self.publisher.push(tick)?;
            if taken % LOOK_TICKS == 0 && !self.may_go_on(taken, started)? {
                break;
            }
        }
        self.publisher.flush()?;
        self.published.store(self.publisher.published().ticks, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until the pipeline has caught up and the next ticks are due. Returns false if the market must stop.
    fn may_go_on(&mut self, taken: u64, started: Instant) -> anyhow::Result<bool> {
        loop {
            self.published.store(self.publisher.published().ticks, Ordering::Relaxed);
            let ahead = taken.saturating_sub(self.processed.ticks.load(Ordering::Relaxed));
            let due = self
                .ticks_per_second
                .is_none_or(|rate| taken as f64 <= started.elapsed().as_secs_f64() * rate as f64);
            let wait = if due && ahead < LEAD_TICKS_MAX { Duration::ZERO } else { FEED_WAIT };
            if !due {
                self.publisher.flush()?;
            }
            match self.stopped.recv_timeout(wait) {
                Err(RecvTimeoutError::Disconnected) | Ok(()) => return Ok(false),
                Err(RecvTimeoutError::Timeout) if wait.is_zero() => return Ok(true),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Returns the end offset of each partition of the topic.
pub(super) fn end_offsets(log: &dyn EventLog, topic: &str) -> anyhow::Result<Vec<(i32, i64)>> {
    let info = log.topic(topic)?;
    let info = info.with_context(|| format!("the topic {topic} is gone"))?;
    Ok((0..).zip(info.offsets.iter().map(|range| range.next)).collect())
}

/// Quotes the text so that a shell takes it as one word.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-:=+,@%".contains(letter);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{new_folder, quoted};

    #[test]
    fn a_demo_has_a_folder_of_its_own() {
        let parent = tempfile::tempdir().expect("a folder");
        let mode =
            |path: &std::path::Path| std::fs::metadata(path).expect("it is there").permissions().mode();
        let first = new_folder(parent.path()).expect("a new one");
        assert_eq!(mode(&first) & 0o777, 0o700);
        // A name that exists belongs to somebody, even as a link.
        std::fs::remove_dir(&first).expect("it is empty");
        let elsewhere = parent.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).expect("a folder");
        std::os::unix::fs::symlink(&elsewhere, &first).expect("a link");
        let second = new_folder(parent.path()).expect("another name");
        assert_ne!(second, first);
        assert_eq!(mode(&second) & 0o777, 0o700);
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("sqlite:/tmp/demo-1/demo.db"), "sqlite:/tmp/demo-1/demo.db");
        assert_eq!(quoted("sqlite:it's here"), r"'sqlite:it'\''s here'");
    }
}
