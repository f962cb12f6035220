//! The loop of a live feed: writes events of the connection to the log, and to the recording.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::bail;
use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::connection::Event;
use super::recorder::Recorder;
use super::words;
use crate::cli::Interrupt;
use crate::printable::to_stderr;
use crate::publisher::{PublishError, Published, Publisher};
use warptape_sources::live::{ClockSummary, LiveSession, LiveVenue, Outcome, Received, TradeGap, line_of};

/// Approximate time until a tick is committed.
const LINGER: Duration = Duration::from_millis(50);
/// Time between two reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// Greatest number of bad messages that the process's log names; further ones are only counted.
const NAMED_MAX: u64 = 10;
/// Largest number of gaps that the summary names; the log names each.
const LISTED_MAX: usize = 20;

/// Limits of a feed.
pub struct Limits {
    /// End time of the feed; `None` for no limit.
    pub end: Option<Instant>,
    /// Greatest number of ticks.
    pub ticks: u64,
    /// Median clock difference from which a warning is printed, in ms.
    pub clock_warn_ms: u64,
}

/// A live feed.
pub struct Feeding<'a> {
    /// Venue of the symbols.
    name: &'a str,
    session: LiveSession,
    publisher: Publisher,
    recorder: Option<Recorder>,
    limits: Limits,
    ticks: u64,
    connections: u64,
    /// The first [`LISTED_MAX`] gaps.
    gaps: Vec<TradeGap>,
    /// Number of bad messages named so far.
    named: u64,
    flushed: Instant,
    reported: Instant,
    /// Number of ticks at the last report.
    reported_ticks: u64,
}

impl<'a> Feeding<'a> {
    /// Starts a feed of a venue's symbols.
    pub fn new(
        name: &'a str,
        session: LiveSession,
        publisher: Publisher,
        recorder: Option<Recorder>,
        limits: Limits,
    ) -> Self {
        let now = Instant::now();
        Self {
            name,
            session,
            publisher,
            recorder,
            limits,
            ticks: 0,
            connections: 0,
            gaps: Vec::new(),
            named: 0,
            flushed: now,
            reported: now,
            reported_ticks: 0,
        }
    }

    /// Publishes the ticks of all events, until a signal, a limit or an error. Ticks before an error are published, unless
    /// the recording cannot be written.
    pub fn run(&mut self, events: &Receiver<Event>, interrupt: &Interrupt) -> anyhow::Result<()> {
        let ran = self.run_until_end(events, interrupt);
        // A failed publisher cannot flush, and its transaction may already be in the log.
        let has_failed = ran.as_ref().is_err_and(|error| error.is::<PublishError>());
        let flushed = if has_failed { Ok(()) } else { self.flush() };
        self.warn_of_clock(self.session.clock());
        ran.and(flushed)
    }

    fn run_until_end(&mut self, events: &Receiver<Event>, interrupt: &Interrupt) -> anyhow::Result<()> {
        while !interrupt.is_set() && self.ticks < self.limits.ticks {
            let now = Instant::now();
            if self.limits.end.is_some_and(|end| now >= end) {
                break;
            }
            match events.recv_timeout(LINGER) {
                Ok(event) => self.take(event)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if interrupt.is_set() => break,
                Err(RecvTimeoutError::Disconnected) => bail!("the thread of the connection has ended"),
            }
            if self.flushed.elapsed() >= LINGER {
                self.flush()?;
            }
            if self.reported.elapsed() >= REPORT_INTERVAL {
                self.report();
            }
        }
        Ok(())
    }

    /// Returns the committed ticks and records.
    pub fn published(&self) -> Published {
        self.publisher.published()
    }

    /// Returns the ticks of a transaction with an unknown outcome.
    pub fn in_doubt_ticks(&self) -> u64 {
        self.publisher.in_doubt_ticks()
    }

    /// Writes the summary at the end of the feed, after its first line.
    pub fn write_summary(&self, out: &mut impl Write, first: &str, venue: LiveVenue) -> io::Result<()> {
        writeln!(out, "{first}")?;
        writeln!(out, "{}", words::counts(self.session.counts(), self.connections))?;
        for line in words::cuts(self.session.first_cuts(), self.session.cut_count()) {
            writeln!(out, "{line}")?;
        }
        for line in words::gaps(&self.gaps, self.session.counts()) {
            writeln!(out, "{line}")?;
        }
        if let Some(clock) = self.session.clock() {
            writeln!(out, "{}", words::clock(clock))?;
        }
        if let Some(recorder) = &self.recorder {
            let (path, messages) = recorder.recorded();
            writeln!(out, "{}", words::recorded(path, messages, venue, self.name))?;
        }
        Ok(())
    }

    fn take(&mut self, event: Event) -> anyhow::Result<()> {
        match event {
            Event::Connected => {
                self.connections += 1;
                to_stderr(format_args!("{}: connected", self.name));
            }
            Event::Text { receive_time_ns, text } => self.take_text(receive_time_ns, &text)?,
            Event::Binary(bytes) => {
                self.session.receive_other();
                self.warn_bad(&format!("a binary message of {bytes} bytes"));
            }
            Event::Cut { time_ns, reason, wait } => {
                tracing::warn!(venue = self.name, reason, ?wait, "the connection is cut");
                self.session.cut(time_ns, reason);
            }
            Event::Unreachable { reason, wait } => {
                tracing::warn!(venue = self.name, reason, ?wait, "no connection");
            }
            Event::Failed(error) => return Err(error),
        }
        Ok(())
    }

    fn take_text(&mut self, receive_time_ns: i64, text: &str) -> anyhow::Result<()> {
        let line = line_of(receive_time_ns, text);
        let Received { outcome, gap, checked_cut } = self.session.receive(receive_time_ns, &line);
        if let Some(recorder) = &mut self.recorder {
            match outcome {
                Outcome::Bad(_) | Outcome::Repeated | Outcome::Refused(_) => recorder.add_aside(&line)?,
                Outcome::Tick(_) | Outcome::Nothing | Outcome::Unfit(_) => recorder.add(&line)?,
            }
        }
        if let Some(gap) = gap {
            tracing::warn!("{}", words::gap(&gap));
            if self.gaps.len() < LISTED_MAX {
                self.gaps.push(gap);
            }
        }
        if let Some(cut) = checked_cut {
            tracing::info!("{}", words::cut(&cut));
        }
        match outcome {
            Outcome::Tick(tick) => {
                if let Some((symbol, scale)) = self.session.take_begun_scale() {
                    self.publisher.begin_scale(symbol, scale);
                }
                self.publisher.push(tick)?;
                self.ticks += 1;
            }
            Outcome::Bad(problem) | Outcome::Unfit(problem) => self.warn_bad(&problem.to_string()),
            Outcome::Refused(reason) => {
                bail!("{}: the venue refuses the subscription: {reason:.200}; check --symbols", self.name)
            }
            Outcome::Nothing | Outcome::Repeated => {}
        }
        Ok(())
    }

    /// Logs a bad message, if it is one of the first.
    fn warn_bad(&mut self, problem: &str) {
        self.named += 1;
        match self.named {
            ..NAMED_MAX => tracing::warn!(problem, "a message is left out"),
            NAMED_MAX => tracing::warn!(problem, "a message is left out; further ones are counted only"),
            _ => {}
        }
    }

    /// Commits the ticks so far, after the recording has them.
    fn flush(&mut self) -> anyhow::Result<()> {
        if let Some(recorder) = &mut self.recorder {
            recorder.flush()?;
        }
        self.publisher.flush()?;
        self.flushed = Instant::now();
        Ok(())
    }

    fn report(&mut self) {
        let ticks = self.ticks - self.reported_ticks;
        let clock = self.session.take_recent_clock();
        to_stderr(format_args!("{}", words::report(self.name, ticks, self.session.counts(), clock)));
        self.warn_of_clock(clock);
        (self.reported, self.reported_ticks) = (Instant::now(), self.ticks);
    }

    fn warn_of_clock(&self, clock: Option<ClockSummary>) {
        let limit_ms = self.limits.clock_warn_ms;
        if let Some(ClockSummary { median_ms, .. }) = clock
            && median_ms.unsigned_abs() > limit_ms
        {
            tracing::warn!(venue = self.name, median_ms, limit_ms, "{}", words::CLOCK_REMEDY);
        }
    }
}
