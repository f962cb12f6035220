//! `warptape run`: runs the pipeline until Ctrl-C.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use crossbeam_channel::bounded;
use indicatif::HumanCount;
use warptape_eventlog::{EventLog, LogError, TopicInfo};

use super::demo::end_offsets;
use super::explaining::Explaining;
use super::journal::anchoring;
use super::live::{Live, REDRAW};
use super::replay;
use super::topics::ready_topics;
use super::view::{self, View};
use crate::cli::{Interrupt, RunArgs};
use crate::clock::Clock;
use crate::endpoint::{self, Endpoint, Watched};
use crate::logging::NOTICE;
use crate::open::{OpenLog, Purpose, failover_note, open_log};
use crate::otlp::Otlp;
use crate::printable::{stdout, to_stderr};
use crate::retention::Retention;
use crate::runtime::{EngineConfig, EngineError, Progress, Stop, Summary, run};
use crate::settings::Settings;
use crate::terminal::Terminal;
use crate::watch::LogWatch;
use warptape_engine::{PartitionStatus, Status};
use warptape_hot::{HotState, HotStatus, HotUrl};
use warptape_replay::VerifyOptions;
use warptape_stages::Lateness;

/// Longest wait of an ending process for a log that does not answer, or for an engine that has not started.
const STOP_LOST_MAX: Duration = Duration::from_secs(8);
/// Outage of the log after which an ending process no longer waits for it. A shorter outage may pass.
const LOST_MIN: Duration = Duration::from_secs(5);

/// Time that a transaction may take beyond the commit interval before the process is not ready.
const COMMIT_MAX: Duration = Duration::from_secs(10);

/// Message of `--until-caught-up`, printed once.
const CAUGHT_UP: &str = "caught up: all ticks that were in the log at the start have been read";
const CLOSED: &str = "closed: ticks earlier than the ends of the closed bars are late from now on; leave out --close if a file will grow";

/// Error of a command that could not start its first threads.
pub(super) const NO_THREAD: &str =
    "the system cannot start a thread: raise the limits on memory (ulimit -v) and on processes (ulimit -u)";

/// Runs the pipeline until Ctrl-C or SIGTERM, then drains it and prints a summary.
pub fn execute(args: &RunArgs, settings: &Settings, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    view::check(args.top, !settings.endpoint.listen.is_empty())?;
    let OpenLog { log, schemas, embedded, .. } = open_log(settings, Purpose::Run)?;
    ready_topics(&*log, settings, Purpose::Run)?;
    let mut config = settings.engine_config(schemas);
    config.core.new_segment = args.new_segment;
    config.anchoring = anchoring(settings)?;
    config.core.accepted_loss = args.accept_loss.clone().unwrap_or_default();
    config.core.closes_bars = args.close;
    require_journal(&*log, &config)?;
    tracing::info!(
        target: NOTICE,
        version = env!("CARGO_PKG_VERSION"),
        node = config.core.node,
        ordinal = config.ordinal,
        "warptape run: {} lanes, group {}, log {}",
        config.core.lanes.len(),
        config.core.group,
        log.url()
    );
    if let Some(missing) = &settings.lanes.gpus_missing {
        to_stderr(format_args!("{missing}; all lanes run on the CPU"));
    }
    if let Some(note) = failover_note(settings) {
        to_stderr(format_args!("{note}"));
    }
    let has_ticks = |info: &TopicInfo| info.offsets.iter().any(|range| range.next > 0);
    if !log.topic(&config.core.topics.ticks)?.as_ref().is_some_and(has_ticks) {
        to_stderr(format_args!("the log has no ticks yet: publish some with `warptape feed`"));
    }
    // The address is bound before anything else starts, so an address in use ends the command at once.
    let address = &settings.endpoint.listen;
    let listener = (!address.is_empty()).then(|| endpoint::listen(address)).transpose()?;
    let hot_state = keep_hot_state(&log, settings)?;
    let progress = Arc::new(Progress::new(config.core.lanes.len()));
    let otlp = Otlp::start(settings, &progress)?;
    config.traces = otlp.as_ref().map(Otlp::traces);
    let interrupt = Interrupt::install()?;
    let (stop, stopped) = bounded(1);
    let watch = settings
        .is_on_kafka()
        .then(|| Arc::new(LogWatch::start(log.clone(), config.core.topics.ticks.clone())));
    let status = hot_state.as_ref().map(HotState::status);
    let watched = watched(settings, &config, &progress, &watch, &status);
    let endpoint =
        listener.map(|listener| Endpoint::start(listener, &settings.endpoint, watched, log.clone()));
    let endpoint = endpoint.transpose()?;
    if let Some(endpoint) = &endpoint {
        to_stderr(format_args!("metrics and health: {}", endpoint.url()));
        to_stderr(format_args!("live page: {}/", endpoint.url()));
    }
    let ends = LogEnds::of(&*log, &config)?;
    if args.until_caught_up {
        let LogEnds { ticks, requests } = ends.clone();
        drop(stop.send(Stop::At { ticks, requests }));
    }
    // A run up to the end of a recording leaves the recording as it is.
    let retention = match embedded.filter(|_| !args.until_caught_up) {
        Some(log) => Some(Retention::start(log, settings, progress.clone(), Clock::start())?),
        None => None,
    };
    let engine = {
        let progress = progress.clone();
        thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || run(log, config, progress, stopped))
            .context(NO_THREAD)?
    };
    let view = View::open(args.top, endpoint.as_ref(), terminal, &interrupt);
    let mut live = Live::new(progress.clone(), status, watch, None, terminal, view);
    let mut is_said = ends.are_empty();
    while !engine.is_finished() && !interrupt.wait(live.pace()) {
        live.show(None);
        if !is_said && ends.are_read(&progress.engine().status) {
            is_said = true;
            to_stderr(format_args!("{CAUGHT_UP}"));
        }
    }
    let is_interrupted = interrupt.since().is_some();
    let mut is_told = false;
    let stopping = Instant::now();
    while !engine.is_finished() {
        if stopping.elapsed() >= STOP_LOST_MAX {
            leave_behind(&live, &progress)?;
        }
        // While the engine starts, the channel may still hold the stop at the log's end.
        is_told = is_told || stop.try_send(Stop::Now).is_ok();
        live.show(None);
        thread::park_timeout(REDRAW);
    }
    live.close_view();
    let summary = engine.join().expect("the engine returns its errors");
    drop(retention);
    let hot_status = hot_state.map(HotState::stop);
    if let Some(otlp) = otlp {
        otlp.end();
    }
    drop(live);
    let mut stdout = stdout();
    let summary = summary.map_err(|error| explain(error, settings))?;
    // The engine may have caught up between two checks.
    if args.until_caught_up && !is_said && !is_interrupted {
        to_stderr(format_args!("{CAUGHT_UP}"));
    }
    if args.close && !is_interrupted {
        to_stderr(format_args!("{CLOSED}"));
    }
    write_summary(&mut stdout, &summary, args.until_caught_up, hot_status.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// End offsets of the log when the process started, by partition.
#[derive(Clone)]
struct LogEnds {
    ticks: Vec<(i32, i64)>,
    requests: Vec<(i32, i64)>,
}

impl LogEnds {
    fn of(log: &dyn EventLog, config: &EngineConfig) -> anyhow::Result<Self> {
        let topics = &config.core.topics;
        let ticks = end_offsets(log, &topics.ticks)?;
        Ok(Self { ticks, requests: end_offsets(log, &topics.risk_requests)? })
    }

    fn are_empty(&self) -> bool {
        self.ticks.iter().all(|(_, end)| *end == 0)
    }

    /// True if the process owns a partition, and has read all ticks of those that it owns.
    fn are_read(&self, status: &Status) -> bool {
        let is_read = |partition: &PartitionStatus| {
            let end = self.ticks.iter().find(|(id, _)| *id == partition.partition).map_or(0, |(_, end)| *end);
            partition.is_restored && partition.read_to >= end
        };
        !status.partitions.is_empty() && status.partitions.iter().all(is_read)
    }
}

/// Returns the sources of the HTTP endpoint's pages.
pub(super) fn watched(
    settings: &Settings,
    config: &EngineConfig,
    progress: &Arc<Progress>,
    watch: &Option<Arc<LogWatch>>,
    hot_state: &Option<Arc<HotStatus>>,
) -> Watched {
    let options = VerifyOptions { outputs: true, ..replay::sources(settings, config.schemas.clone()) };
    Watched {
        node: config.core.node.clone(),
        group: config.core.group.clone(),
        ordinal: config.ordinal,
        topics: config.core.topics.clone(),
        lanes: config.core.lanes.clone(),
        lag_max: settings.endpoint.lag_max,
        commit_max: settings.engine.commit_interval + COMMIT_MAX,
        refused_percent_max: settings.endpoint.refused_percent_max,
        symbols_max: config.core.stages.symbols_max,
        progress: progress.clone(),
        watch: watch.clone(),
        hot_state: hot_state.clone(),
        disk: settings.log_folder(),
        lateness: Lateness::of(&config.core.stages),
        explains: Arc::new(Explaining(options.clone())),
        verify: Some(options),
        verify_percent: settings.endpoint.verify_percent,
    }
}

/// Returns an error if an ending engine is not worth waiting for: the log does not answer, or the engine has not
/// started. The process then ends its threads.
fn leave_behind(live: &Live, progress: &Progress) -> anyhow::Result<()> {
    if let Some(lost) = live.lost().filter(|lost| lost.since.elapsed() >= LOST_MIN) {
        bail!(
            "{lost}: {}. The pipeline ended without the log. Nothing is lost: the next start processes again \
             what was not committed",
            lost.cause
        );
    }
    ensure!(
        progress.decisions.load(Ordering::Relaxed) > 0,
        "the pipeline ended before it had begun; nothing was processed"
    );
    Ok(())
}

/// Adds the settings that two processes must not share, if another process took this one's place.
fn explain(error: EngineError, settings: &Settings) -> anyhow::Error {
    let is_replaced =
        matches!(error, EngineError::Log(LogError::MemberFenced { .. } | LogError::Fenced { .. }));
    let error = anyhow::Error::from(error);
    if !is_replaced {
        return error;
    }
    error.context(format!(
        "each process of a group needs its own engine.ordinal (here {}) and engine.node (here {:?})",
        settings.engine.ordinal, settings.engine.node
    ))
}

/// Refuses a process whose ordinal has no partition of the journal.
fn require_journal(log: &dyn EventLog, config: &EngineConfig) -> anyhow::Result<()> {
    let partitions = log.partitions(&config.core.topics.journal)?;
    ensure!(
        config.ordinal < partitions,
        "engine.ordinal = {}, but the journal {} has {partitions} partitions, one for each process of the \
         group. Use a smaller ordinal, or create topics with a greater topics.journal_partitions",
        config.ordinal,
        config.core.topics.journal,
    );
    Ok(())
}

/// Starts to keep hot state in Redis; `None` if the settings keep it in memory.
pub(super) fn keep_hot_state(
    log: &Arc<dyn EventLog>,
    settings: &Settings,
) -> Result<Option<HotState>, LogError> {
    match &settings.hot_state.url {
        HotUrl::Memory => Ok(None),
        HotUrl::Redis(url) => {
            let clock = Clock::start();
            let now_ns = Box::new(move || clock.now_ns());
            HotState::start(log.clone(), settings.hot_config(), url.clone(), now_ns).map(Some)
        }
    }
}

/// Prints the figures of a finished run. `is_recording` is true if it read ticks that were published long before.
pub(super) fn write_summary(
    out: &mut impl Write,
    summary: &Summary,
    is_recording: bool,
    hot_state: Option<&HotStatus>,
) -> std::io::Result<()> {
    let count = |value: u64| HumanCount(value).to_string();
    let seconds = summary.active_ns as f64 / 1e9;
    let per_second = if seconds > 0.0 { (summary.ticks as f64 / seconds) as u64 } else { 0 };
    writeln!(
        out,
        "ticks      {:>12}   {} symbols, {} late",
        count(summary.ticks),
        count(summary.symbols),
        count(summary.late)
    )?;
    writeln!(out, "ticks/s    {:>12}   over {seconds:.2} s, first read to last commit", count(per_second))?;
    if summary.late > 0 {
        writeln!(
            out,
            "late       {:>12}   older than the allowed lateness: see `tail late`",
            count(summary.late)
        )?;
    }
    writeln!(out, "signals    {:>12}", count(summary.signals))?;
    writeln!(
        out,
        "decisions  {:>12}   in {} transactions",
        count(summary.decisions),
        count(summary.commits)
    )?;
    if summary.dead_letters > 0 {
        writeln!(
            out,
            "dead       {:>12}   records that could not be processed: see `tail dead-letter`",
            count(summary.dead_letters)
        )?;
    }
    if summary.open_bars > 0 {
        writeln!(
            out,
            "open bars  {:>12}   time bars that later ticks continue; close them with `run --until-caught-up \
             --close`",
            count(summary.open_bars)
        )?;
    }
    if !summary.repeated.is_empty() {
        writeln!(out, "trade ids  {}", summary.repeated)?;
    }
    if summary.split_symbols.count > 0 {
        writeln!(out, "split      {}", summary.split_symbols)?;
    }
    // Publication and read of a recording have nothing to do with each other.
    let from_publication =
        (&summary.latency_ns, "from the publication of a tick to the commit of its signal");
    let from_read = (&summary.read_latency_ns, "from the read of a tick to the commit of its signal");
    let all = [(!is_recording).then_some(from_publication), Some(from_read)];
    for (latency_ns, what) in all.into_iter().flatten().filter(|(latency_ns, _)| !latency_ns.is_empty()) {
        let [p50, p99, p999] =
            [0.5, 0.99, 0.999].map(|quantile| latency_ns.value_at_quantile(quantile) as f64 / 1e6);
        writeln!(out, "latency    p50 {p50:.1} ms, p99 {p99:.1} ms, p99.9 {p999:.1} ms   {what}")?;
    }
    if let Some(status) = hot_state {
        writeln!(out, "hot state  {status}")?;
    }
    Ok(())
}
