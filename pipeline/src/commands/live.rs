//! Display of `run` and `demo`: redrawn on a terminal, printed as a line now and then elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressStyle};
use warptape_schemas::decode_signal;

use super::view::View;
use crate::logging::NOTICE;
use crate::printable::{printable_line, to_stderr};
use crate::runtime::Progress;
use crate::terminal::Terminal;
use crate::watch::{LogWatch, Lost};
use warptape_hot::HotStatus;

/// Time between two redraws.
pub(super) const REDRAW: Duration = Duration::from_millis(100);
/// Time span over which the rates on a terminal are measured.
const RATE_WINDOW: Duration = Duration::from_secs(1);
/// Time between two lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// Signals shown.
const SIGNALS_SHOWN: usize = 5;

/// The display of a running engine, until it is dropped.
pub(super) struct Live {
    /// The view in place of lines, until it is over.
    view: Option<View>,
    progress: Arc<Progress>,
    hot_state: Option<Arc<HotStatus>>,
    /// Watch on a log that may become unreachable; `None` for the embedded log.
    watch: Option<Arc<LogWatch>>,
    was_lost: bool,
    total_ticks: Option<u64>,
    screen: Option<Screen>,
    terminal: Terminal,
    rate_since: Instant,
    rate_ticks: u64,
    ticks_per_second: f64,
    lane_busy_ns: Vec<u64>,
    lane_percent: Vec<f64>,
}

/// Lines on the terminal.
struct Screen {
    ticks: ProgressBar,
    lanes: ProgressBar,
    /// Line of hot state; `None` if it is in memory.
    hot_state: Option<ProgressBar>,
    signals: Vec<ProgressBar>,
}

impl Live {
    /// Creates a display of `progress`, and of `hot_state` and `watch` if given. `total_ticks` adds a bar. Lines follow
    /// the `view` once it is over.
    pub(super) fn new(
        progress: Arc<Progress>,
        hot_state: Option<Arc<HotStatus>>,
        watch: Option<Arc<LogWatch>>,
        total_ticks: Option<u64>,
        terminal: &Terminal,
        view: Option<View>,
    ) -> Self {
        let new_screen = || Screen::new(total_ticks, hot_state.is_some(), terminal);
        Self {
            screen: (view.is_none() && terminal.is_watched()).then(new_screen),
            view,
            lane_busy_ns: vec![0; progress.lanes.len()],
            lane_percent: vec![0.0; progress.lanes.len()],
            progress,
            hot_state,
            watch,
            was_lost: false,
            total_ticks,
            terminal: terminal.clone(),
            rate_since: Instant::now(),
            rate_ticks: 0,
            ticks_per_second: 0.0,
        }
    }

    /// Shows the current state. `unread_ticks` is the number of unread ticks in the log, if it is known.
    pub(super) fn show(&mut self, unread_ticks: Option<u64>) {
        if let Some(view) = &mut self.view {
            // Lines of a file or of a program go on beside the view.
            if !view.step() {
                self.end_view();
            } else if self.terminal.is_covered() {
                return;
            }
        }
        let is_measured = self.measure();
        let lost = self.lost();
        // Without a terminal, a lost or regained log is reported at once.
        let is_news = lost.is_some() != self.was_lost;
        self.was_lost = lost.is_some();
        let line = match &lost {
            Some(lost) => format!("{lost} · {}", self.line(unread_ticks)),
            None => self.line(unread_ticks),
        };
        if let Some(screen) = &self.screen {
            screen.ticks.set_position(self.progress.ticks.load(Ordering::Relaxed));
            screen.ticks.set_message(line);
            screen.lanes.set_message(self.lanes());
            if let (Some(bar), Some(status)) = (&screen.hot_state, &self.hot_state) {
                bar.set_message(printable_line(&format!("hot state  {status}")).into_owned());
            }
            let latest = self.progress.latest_signals();
            for (bar, signal) in screen.signals.iter().zip(latest.iter().rev()) {
                bar.set_message(printable_line(&describe(signal)).into_owned());
            }
        } else if is_measured || is_news {
            self.log(&line, unread_ticks);
            if let Some(status) = &self.hot_state {
                to_stderr(format_args!("hot state  {status}"));
            }
        }
    }

    /// Returns the time until the display is to be shown again.
    pub(super) fn pace(&self) -> Duration {
        if self.view.is_some() { View::PACE } else { REDRAW }
    }

    /// Closes the view, so that the terminal is as before while the rest of the process ends.
    pub(super) fn close_view(&mut self) {
        self.view = None;
    }

    /// Shows lines in place of the view.
    fn end_view(&mut self) {
        self.close_view();
        (self.rate_since, self.rate_ticks) = (Instant::now(), self.progress.ticks.load(Ordering::Relaxed));
        self.lane_busy_ns =
            self.progress.lanes.iter().map(|lane| lane.busy_ns.load(Ordering::Relaxed)).collect();
        let new_screen = || Screen::new(self.total_ticks, self.hot_state.is_some(), &self.terminal);
        self.screen = self.terminal.is_watched().then(new_screen);
    }

    /// Logs the progress, in words and, for machines, in numbers.
    fn log(&self, line: &str, unread_ticks: Option<u64>) {
        let progress = &self.progress;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        tracing::info!(
            target: NOTICE,
            ticks = count(&progress.ticks),
            ticks_per_second = self.ticks_per_second as u64,
            unread_ticks,
            signals = count(&progress.signals),
            decisions = count(&progress.decisions),
            commits = count(&progress.commits),
            waiting_rows = progress.waiting_rows.load(Ordering::Relaxed),
            late = count(&progress.late),
            dead_letters = count(&progress.dead_letters),
            "{line}"
        );
    }

    /// Returns the cause and start of the log's loss; `None` while the log answers.
    pub(super) fn lost(&self) -> Option<Lost> {
        self.watch.as_ref().and_then(|watch| watch.lost())
    }

    /// Measures the rates if they are due. Returns true if it did.
    fn measure(&mut self) -> bool {
        let window = if self.screen.is_some() { RATE_WINDOW } else { LINE_INTERVAL };
        let now = Instant::now();
        let elapsed = now.duration_since(self.rate_since);
        if elapsed < window {
            return false;
        }
        let ticks = self.progress.ticks.load(Ordering::Relaxed);
        self.ticks_per_second = (ticks - self.rate_ticks) as f64 / elapsed.as_secs_f64();
        for (lane, figures) in self.progress.lanes.iter().enumerate() {
            let busy_ns = figures.busy_ns.load(Ordering::Relaxed);
            let busy = (busy_ns - self.lane_busy_ns[lane]) as f64;
            // Slices may run beside batches, so their times may add up to more than 100 %.
            self.lane_percent[lane] = (100.0 * busy / elapsed.as_nanos() as f64).min(100.0);
            self.lane_busy_ns[lane] = busy_ns;
        }
        (self.rate_since, self.rate_ticks) = (now, ticks);
        true
    }

    fn line(&self, unread_ticks: Option<u64>) -> String {
        let progress = &self.progress;
        let count = |counter: &AtomicU64| HumanCount(counter.load(Ordering::Relaxed));
        let ticks = count(&progress.ticks);
        let total = self.total_ticks.map(|total| format!(" of {}", HumanCount(total))).unwrap_or_default();
        let unread = unread_ticks.map(|ticks| format!(" · {} unread", HumanCount(ticks))).unwrap_or_default();
        let repeated = match progress.repeated_trades.load(Ordering::Relaxed) {
            0 => String::new(),
            repeated => format!(" · {} trade ids repeated", HumanCount(repeated)),
        };
        let waiting = HumanCount(progress.waiting_rows.load(Ordering::Relaxed).max(0) as u64);
        format!(
            "{ticks}{total} ticks · {}/s{unread} · {} signals · {} decisions · {} commits · {waiting} rows wait{repeated}",
            HumanCount(self.ticks_per_second as u64),
            count(&progress.signals),
            count(&progress.decisions),
            count(&progress.commits),
        )
    }

    fn lanes(&self) -> String {
        let lanes = self.lane_percent.iter().enumerate();
        let lanes: Vec<String> = lanes.map(|(lane, percent)| format!("{lane} {percent:.0}%")).collect();
        let in_flight: i64 =
            self.progress.lanes.iter().map(|lane| lane.in_flight_rows.load(Ordering::Relaxed).max(0)).sum();
        format!("lanes busy  {}  ({} rows in flight)", lanes.join(" · "), HumanCount(in_flight as u64))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.view = None;
        self.terminal.clear();
        if let Some(screen) = &self.screen {
            screen.ticks.finish_and_clear();
            screen.lanes.finish_and_clear();
            screen.hot_state.iter().for_each(ProgressBar::finish_and_clear);
            screen.signals.iter().for_each(ProgressBar::finish_and_clear);
        }
    }
}

impl Screen {
    fn new(total_ticks: Option<u64>, hot_state: bool, terminal: &Terminal) -> Self {
        let lines = MultiProgress::new();
        terminal.show(lines.clone());
        let style = |template: &str| ProgressStyle::with_template(template).expect("the templates are valid");
        let ticks = match total_ticks {
            Some(total) => ProgressBar::new(total).with_style(style("{bar:12} {wide_msg}")),
            None => ProgressBar::new_spinner().with_style(style("{spinner} {wide_msg}")),
        };
        let line = || lines.add(ProgressBar::new_spinner().with_style(style("{wide_msg}")));
        let ticks = lines.add(ticks);
        let (lanes, hot_state) = (line(), hot_state.then(line));
        Self { ticks, lanes, hot_state, signals: (0..SIGNALS_SHOWN).map(|_| line()).collect() }
    }
}

/// Formats a signal as one line.
fn describe(payload: &[u8]) -> String {
    let Ok(signal) = decode_signal(payload) else { return "signal   (not readable)".to_owned() };
    let words = signal.kind.words();
    let kind = signal.name.as_deref().map_or_else(|| words.to_owned(), |name| format!("{words} {name}"));
    format!("signal  {:<20} {:<8} {kind:<15} {:.4}", signal.symbol, signal.bar_spec, signal.value)
}
