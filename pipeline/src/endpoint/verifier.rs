//! Pages of a verifier that follows a log.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use warptape_eventlog::EventLog;
use warptape_replay::Followed;

use super::health::{Component, Health, State, component, cut};
use super::metrics::*;
use super::sampler::{JournalLag, SeenLag};
use super::scrape::{Format, Page, write};
use crate::clock::Clock;

/// Time without an answer of the log, in seconds, after which the verifier is not ready.
const LOST_MAX_S: f64 = 10.0;

/// State of a verifier, as its thread reports it.
#[derive(Debug, Default)]
pub struct VerifierProgress(Mutex<VerifierState>);

#[derive(Clone, Debug, Default)]
struct VerifierState {
    followed: Followed,
    /// Time of the first failed round in a row, and the cause of the last one; `None` after a success.
    failing: Option<(i64, String)>,
    has_ended: bool,
}

impl VerifierProgress {
    fn change(&self, change: impl FnOnce(&mut VerifierState)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn state(&self) -> VerifierState {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records a finished round.
    pub fn follow(&self, followed: &Followed) {
        self.change(|state| (state.followed, state.failing) = (followed.clone(), None));
    }

    /// Records a failed read of the log.
    pub fn fail(&self, now_ns: i64, cause: String) {
        self.change(|state| {
            let since_ns = state.failing.take().map_or(now_ns, |(since_ns, _)| since_ns);
            state.failing = Some((since_ns, cause));
        });
    }

    /// Records the end of the thread.
    pub fn end(&self) {
        self.change(|state| state.has_ended = true);
    }

    /// Returns the cause of the last failure; `None` if the last round succeeded.
    pub fn cause_of_failure(&self) -> Option<String> {
        self.state().failing.map(|(_, cause)| cause)
    }

    /// Returns the results of verification so far.
    pub fn followed(&self) -> Followed {
        self.state().followed
    }
}

/// A verifier, and the thread that measures its lag.
pub(super) struct WatchedVerifier {
    node: String,
    group: String,
    progress: Arc<VerifierProgress>,
    lag: JournalLag,
}

impl WatchedVerifier {
    pub(super) fn start(
        node: String,
        group: String,
        journal: String,
        progress: Arc<VerifierProgress>,
        log: Arc<dyn EventLog>,
        clock: Clock,
    ) -> std::io::Result<Self> {
        let of_thread = progress.clone();
        let places = move || of_thread.followed().places;
        let lag = JournalLag::start(log, journal, places, clock)?;
        Ok(Self { node, group, progress, lag })
    }

    pub(super) fn view(&self, now_ns: i64) -> VerifierView {
        let (node, group) = (self.node.clone(), self.group.clone());
        VerifierView { node, group, now_ns, state: self.progress.state(), lag: self.lag.seen() }
    }
}

/// State of a verifier at one moment.
pub(super) struct VerifierView {
    node: String,
    group: String,
    now_ns: i64,
    state: VerifierState,
    lag: SeenLag,
}

impl VerifierView {
    /// Returns the number of unverified journal entries when the log last reported the journal's end.
    fn behind_records(&self) -> i64 {
        self.lag.partitions.values().map(|lag| lag.records).sum()
    }

    /// Returns the greatest possible age of the oldest unverified entry, in seconds. While the log does not answer or
    /// cannot be read, that time counts too, because new entries are unknown.
    fn behind_s(&self) -> f64 {
        let oldest_s = self.lag.partitions.values().map(|lag| lag.seconds).fold(0.0, f64::max);
        (oldest_s + self.lag.unknown_s(self.now_ns).unwrap_or(0.0)).max(self.failing_s())
    }

    /// Returns the time in seconds for which nothing could be verified.
    fn failing_s(&self) -> f64 {
        self.state.failing.as_ref().map_or(0.0, |(since_ns, _)| (self.now_ns - since_ns).max(0) as f64 / 1e9)
    }

    pub(super) fn assess(&self) -> Health {
        let components = vec![self.verification(), self.log()];
        let status = components.iter().map(|component| component.state).max().unwrap_or(State::Ok);
        Health {
            status,
            ready: status != State::Down,
            // A verifier that has found a difference stays alive to report it: after a restart it would begin behind
            // the difference.
            live: !self.state.has_ended || self.state.followed.report.divergence.is_some(),
            node: self.node.clone(),
            group: self.group.clone(),
            version: env!("CARGO_PKG_VERSION"),
            components,
        }
    }

    fn verification(&self) -> Component {
        let Followed { report, sequence, headless, .. } = &self.state.followed;
        let of = |state, reason| component("verification", state, reason);
        if let Some(divergence) = &report.divergence {
            let sequence = sequence.map(|sequence| format!(" at sequence {sequence}")).unwrap_or_default();
            return of(State::Down, format!("a difference{sequence}: {}", cut(&divergence.to_string())));
        }
        if self.state.has_ended {
            return of(State::Down, "the verifier has ended".to_owned());
        }
        let (entries, records) = (report.entries, self.behind_records());
        let words = format!(
            "{entries} entries are identical; {records} records of the journal are not verified yet, the first for {:.1} s",
            self.behind_s()
        );
        if entries == 0 {
            return of(State::Down, format!("nothing is verified yet: {words}"));
        }
        if !headless.is_empty() {
            return of(
                State::Degraded,
                format!(
                    "the journals {headless:?} have no readable start or checkpoint and are skipped until one comes: {words}"
                ),
            );
        }
        of(State::Ok, words)
    }

    fn log(&self) -> Component {
        let Some((_, cause)) = &self.state.failing else {
            return component("log", State::Ok, "it can be read");
        };
        let seconds = self.failing_s();
        let state = if seconds >= LOST_MAX_S { State::Down } else { State::Degraded };
        component("log", state, format!("verification has failed for {seconds:.0} s: {}", cut(cause)))
    }

    pub(super) fn scrape(&self, format: Format) -> Result<Vec<u8>, fmt::Error> {
        write(self.page(), format)
    }

    fn page(&self) -> Page {
        let mut page = Page::default();
        let labels = vec![env!("CARGO_PKG_VERSION").to_owned(), self.node.clone(), self.group.clone()];
        page.numbers(BUILD, [(labels, 1.0)]);
        let Followed { report, sequence, .. } = &self.state.followed;
        page.count(VERIFIED_ENTRIES, report.entries);
        page.count(VERIFIED_DECISIONS, report.decisions);
        if let Some(outputs) = &report.outputs {
            let topics =
                [("signals", outputs.signals), ("late", outputs.late), ("dead-letter", outputs.dead_letters)];
            page.numbers(
                VERIFIED_OUTPUTS,
                topics.map(|(topic, count)| (vec![topic.to_owned()], count as f64)),
            );
        }
        page.number(VERIFIER_BEHIND_RECORDS, self.behind_records() as f64);
        page.number(VERIFIER_BEHIND, self.behind_s());
        page.number(VERIFIER_DIFFERENCE, f64::from(u8::from(report.divergence.is_some())));
        if let Some(sequence) = sequence {
            page.number(VERIFIER_SEQUENCE, *sequence as f64);
        }
        page.usage();
        page
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use warptape_replay::{Divergence, JournalDivergence, OutputCounts, Report};

    use super::super::sampler::Lag;
    use super::*;

    const S: i64 = 1_000_000_000;

    /// Returns a verifier that has found a difference, and was behind at the log's last answer.
    fn view(now_ns: i64) -> VerifierView {
        let divergence = JournalDivergence {
            topic: "journal".to_owned(),
            partition: 0,
            offset: 8,
            sequence: 7,
            software: None,
            at_ns: None,
            input: None,
            differences: Vec::new(),
        };
        let report = Report {
            entries: 7,
            decisions: 5,
            outputs: Some(OutputCounts::default()),
            divergence: Some(Divergence::Journal(divergence)),
            ..Report::default()
        };
        let followed = Followed { report, sequence: Some(7), ..Followed::default() };
        let lag = |records, seconds| Lag { records, seconds, open_records: 0 };
        VerifierView {
            node: "node-0".to_owned(),
            group: "warptape".to_owned(),
            now_ns,
            state: VerifierState { followed, ..VerifierState::default() },
            lag: SeenLag {
                at_ns: 100 * S,
                partitions: BTreeMap::from([(0, lag(3, 1.5)), (1, lag(4, 0.5))]),
                error: None,
            },
        }
    }

    #[test]
    fn a_scrape_of_a_verifier_has_its_metrics() {
        let text = String::from_utf8(view(101 * S).scrape(Format::Text).expect("it can be written"));
        let text = text.expect("UTF-8");
        for metric in VERIFIER_METRICS {
            let name = metric.full_name();
            let declared = text.lines().filter(|line| line.starts_with(&format!("# TYPE {name} "))).count();
            assert_eq!(declared, 1, "{name} in\n{text}");
        }
        for line in [
            "warptape_verifier_entries_total 7.0",
            "warptape_verifier_behind_records 7.0",
            "warptape_verifier_behind_seconds 1.5",
            "warptape_verifier_difference 1.0",
            "warptape_verifier_difference_sequence 7.0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn a_log_that_does_not_answer_counts_as_behind() {
        assert_eq!(view(103 * S).behind_s(), 1.5);
        assert_eq!(view(160 * S).behind_s(), 61.5);
    }

    #[test]
    fn health_names_a_difference_and_a_log_that_is_lost() {
        let mut view = view(101 * S);
        let health = view.assess();
        assert!(!health.ready && health.live);
        assert!(health.told().starts_with("a difference at sequence 7: "), "{}", health.told());
        // The thread has ended at the difference. A supervisor must not restart the verifier, which would then begin
        // behind the difference.
        view.state.has_ended = true;
        assert!(view.assess().live);
        view.state.followed.report.divergence = None;
        assert!(!view.assess().live);
        view.state.has_ended = false;
        assert!(view.assess().ready, "{}", view.assess().told());
        view.state.followed.headless = vec![3];
        assert_eq!(view.assess().status, State::Degraded);
        view.state.followed = Followed::default();
        assert!(!view.assess().ready, "nothing is verified yet");
        view.state.followed.report.entries = 7;
        view.state.failing = Some((99 * S, "no broker answers".to_owned()));
        assert!(view.assess().ready && view.assess().status == State::Degraded);
        view.state.failing = Some((90 * S, "no broker answers".to_owned()));
        assert!(!view.assess().ready);
        assert_eq!(view.assess().told(), "verification has failed for 11 s: no broker answers");
    }
}
