//! The live page: the activity of a running pipeline, for browsers and for `warptape top`.
//!
//! ```text
//!   View (figures of the engine) ─────────┐
//!   log: signals, journal, risk ► Reading ┼─► Snapshot, twice a second ──► /live, /live.json
//!   log ► Verifying (a share of a core) ──┘                  Series ─────► /candles.json
//!   log ► Explains ──────────────────────────────────────────────────────► /why.txt
//! ```
//!
//! The log is read only while somebody looks at the page. A slow client costs nothing: it misses snapshots.

mod assets;
mod cache;
mod history;
mod making;
mod reading;
mod seen;
mod series;
pub mod snapshot;
mod stream;
mod verified;
mod why;

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use tokio::sync::watch;
use tokio::time::timeout;
use warptape_eventlog::EventLog;
use warptape_schemas::journal::{JournalEntry, Started};

pub(super) use assets::{ASSETS, POLICY};
use cache::Cache;
use history::Rates;
use reading::Reading;
use seen::Seen;
use series::Series;
use verified::Verifying;
use why::Explanations;
pub use why::Unexplained;

use super::sampler::{EachInterval, Sampler};
use super::view::Watched;
use crate::clock::Clock;

/// Time between two snapshots.
const PACE: Duration = Duration::from_millis(500);
/// Time in ns after the last request for which the log is still read.
const INTEREST_NS: i64 = 10_000_000_000;
/// Age of a snapshot, in ns, from which a request waits for a new one.
const FRESH_NS: i64 = 1_000_000_000;
/// Longest wait of a request for a snapshot.
const SNAPSHOT_WAIT: Duration = Duration::from_secs(3);

/// Subjects of explanations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The decisions of an entry: partition of the journal and sequence.
    Entry(i32, i64),
    /// A signal: partition and offset.
    Signal(i32, i64),
    /// The answer to a risk request, by its id.
    Request(String),
}

/// Explains the journal, in the words of the commands.
pub trait Explains: Send + Sync {
    /// Describes the input of an entry, and each of its decisions with its reason.
    fn entry(&self, entry: &JournalEntry, started: Option<&Started>) -> (String, Vec<String>);
    /// Returns the whole explanation of a subject.
    ///
    /// # Errors
    /// The reason, if the log does not have the subject, or cannot be read.
    fn why(&self, log: &dyn EventLog, subject: &Subject) -> Result<String, Unexplained>;
}

/// Answer to a request.
pub(super) enum Answer {
    /// A JSON document.
    Json(Bytes),
    Stream(Body),
    Text(String),
    /// The parameters are wrong.
    Wrong(&'static str),
    /// The subject does not exist.
    Missing(String),
    /// The log cannot be read, or not soon enough.
    Unavailable(String),
    /// Try again.
    Busy(&'static str),
}

impl Answer {
    /// Returns the status of the answer.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Json(_) | Self::Stream(_) | Self::Text(_) => StatusCode::OK,
            Self::Wrong(_) => StatusCode::BAD_REQUEST,
            Self::Missing(_) => StatusCode::NOT_FOUND,
            Self::Busy(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// The page of a running pipeline.
pub(super) struct LivePage {
    shared: Arc<Shared>,
    explanations: Explanations,
    cache: Cache,
    _thread: EachInterval,
}

/// State that the page's thread and the server share.
struct Shared {
    newest: watch::Sender<Bytes>,
    made_at_ns: AtomicI64,
    series: Arc<Mutex<Series>>,
    /// Number of open streams.
    streams: AtomicUsize,
    asked_at_ns: AtomicI64,
    clock: Clock,
}

/// Counts as an open stream until it is dropped.
struct Looking(Arc<Shared>);

impl Drop for Looking {
    fn drop(&mut self) {
        self.0.ask();
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    fn look(self: &Arc<Self>) -> Looking {
        self.streams.fetch_add(1, Ordering::Relaxed);
        Looking(self.clone())
    }

    fn looking(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Notes that a client made a request.
    fn ask(&self) {
        self.asked_at_ns.store(self.clock.now_ns(), Ordering::Relaxed);
    }

    /// True if a client is connected, or made a request recently.
    fn is_wanted(&self) -> bool {
        self.looking() > 0 || self.clock.now_ns() - self.asked_at_ns.load(Ordering::Relaxed) < INTEREST_NS
    }
}

impl LivePage {
    /// Starts the page's thread.
    pub(super) fn start(
        watched: Arc<Watched>,
        sampler: Option<Arc<Sampler>>,
        log: Arc<dyn EventLog>,
    ) -> std::io::Result<Self> {
        let clock = Clock::start();
        let series = Arc::<Mutex<Series>>::default();
        let shared = Arc::new(Shared {
            newest: watch::Sender::new(Bytes::new()),
            made_at_ns: AtomicI64::new(0),
            series: series.clone(),
            streams: AtomicUsize::new(0),
            asked_at_ns: AtomicI64::new(i64::MIN / 2),
            clock,
        });
        let explains = watched.explains.clone();
        let verifying = match (&watched.verify, watched.verify_percent) {
            (Some(options), 1..) => {
                Some(Verifying::start(log.clone(), options.clone(), watched.ordinal, watched.verify_percent)?)
            }
            _ => None,
        };
        let mut making = Making {
            reading: Reading::new(log.clone(), watched.topics.clone(), watched.ordinal),
            seen: Seen::new(explains.clone(), series),
            rates: Rates::default(),
            verifying,
            has_started: false,
            watched,
            sampler,
            log: log.clone(),
            shared: shared.clone(),
        };
        let thread = EachInterval::start("page", PACE, move || making.step())?;
        let explanations = Explanations::new(log, explains);
        Ok(Self { shared, explanations, cache: Cache::default(), _thread: thread })
    }

    /// Answers a request for a path of the page; `None` if it has no such path.
    pub(super) async fn answer(&self, path: &str, query: &str) -> Option<Answer> {
        Some(match path {
            "/live" => Answer::Stream(stream::body(self.shared.clone())),
            "/live.json" => self.newest().await,
            "/candles.json" => self.candles(query),
            "/why.txt" => self.why(query).await,
            _ => return None,
        })
    }

    async fn newest(&self) -> Answer {
        let shared = &self.shared;
        let mut newest = shared.newest.subscribe();
        // The first request must wait until the log is read for it.
        let is_fresh = shared.is_wanted()
            && shared.clock.now_ns() - shared.made_at_ns.load(Ordering::Relaxed) < FRESH_NS;
        shared.ask();
        if !is_fresh && !matches!(timeout(SNAPSHOT_WAIT, newest.changed()).await, Ok(Ok(()))) {
            return Answer::Busy("no snapshot could be made: the log or the engine does not answer");
        }
        let bytes = newest.borrow().clone();
        if bytes.is_empty() { Answer::Busy("the page is starting") } else { Answer::Json(bytes) }
    }

    fn candles(&self, query: &str) -> Answer {
        self.shared.ask();
        let (Some(symbol), Some(bar)) = (parameter(query, "symbol"), parameter(query, "bar")) else {
            return Answer::Wrong("give a symbol and a bar, as in /candles.json?symbol=SYNTH:AAAA&bar=1s");
        };
        let missing = format!(
            "no {bar:?} bars of {symbol:?} are kept: none were read so far, or the page has no room for more symbols"
        );
        let made = self.cache.get(symbol, bar, |symbol, bar| {
            let series = self.shared.series.lock().unwrap_or_else(PoisonError::into_inner);
            let candles = series.candles(symbol, bar)?;
            Some(serde_json::to_vec(&candles).expect("candles can be written"))
        });
        made.map_or(Answer::Missing(missing), Answer::Json)
    }

    async fn why(&self, query: &str) -> Answer {
        let Some(subject) = subject(query) else {
            return Answer::Wrong("give signal=PARTITION:OFFSET, entry=JOURNAL:SEQUENCE or request=ID");
        };
        self.explanations.explain(subject).await
    }
}

/// State of the page's thread.
struct Making {
    watched: Arc<Watched>,
    sampler: Option<Arc<Sampler>>,
    log: Arc<dyn EventLog>,
    reading: Reading,
    seen: Seen,
    rates: Rates,
    verifying: Option<Verifying>,
    /// True once the journal was searched for the start of the process.
    has_started: bool,
    shared: Arc<Shared>,
}

impl Making {
    /// Takes samples; while somebody looks, also reads the log and makes a snapshot.
    fn step(&mut self) {
        let sampled = self.sampler.as_ref().map(|sampler| sampler.sampled()).unwrap_or_default();
        let view = self.watched.view(self.shared.clock, sampled, Vec::new());
        let lags = view.sampled.lag.known(view.now_ns);
        let lag_s = lags.map(|lags| lags.values().map(|lag| lag.seconds).fold(0.0, f64::max));
        self.rates.sample(view.now_ns, &self.watched.progress, lag_s);
        if !self.shared.is_wanted() {
            return self.reading.close();
        }
        if !self.has_started {
            let (topics, ordinal) = (&self.watched.topics, self.watched.ordinal);
            // Without the start, explanations lack the devices of lanes and the limits of decisions. The search reads a
            // journal without a start to its end, so it is not repeated.
            if let Ok(started) = warptape_replay::started_of(&*self.log, &topics.journal, ordinal) {
                (self.seen.started, self.has_started) = (started, true);
            }
        }
        let partitions: Vec<i32> =
            view.engine.status.partitions.iter().map(|partition| partition.partition).collect();
        if let Err(error) = self.reading.read(&partitions, &mut self.seen) {
            tracing::debug!(%error, "the page cannot read the log for now");
        }
        let verified =
            self.verifying.as_ref().map(|of| of.progress(self.watched.ordinal, self.seen.newest_sequence));
        let made =
            making::snapshot(&view, &self.log.url(), &self.rates, &self.seen, self.reading.skipped, verified);
        let bytes = serde_json::to_vec(&made).expect("a snapshot can be written");
        self.shared.made_at_ns.store(self.shared.clock.now_ns(), Ordering::Relaxed);
        self.shared.newest.send_replace(bytes.into());
    }
}

/// Returns a decoded parameter of a query.
fn parameter(query: &str, name: &str) -> Option<String> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

/// Returns the subject of a query for an explanation.
fn subject(query: &str) -> Option<Subject> {
    let place = |name| {
        let text = parameter(query, name)?;
        let (one, other) = text.split_once(':')?;
        Some((
            one.parse::<i32>().ok().filter(|of| *of >= 0)?,
            other.parse::<i64>().ok().filter(|of| *of >= 0)?,
        ))
    };
    if let Some((partition, offset)) = place("signal") {
        return Some(Subject::Signal(partition, offset));
    }
    if let Some((journal, sequence)) = place("entry") {
        return Some(Subject::Entry(journal, sequence));
    }
    parameter(query, "request").map(Subject::Request)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns no explanations.
    pub(in super::super) struct Wordless;

    impl Explains for Wordless {
        fn entry(&self, _: &JournalEntry, _: Option<&Started>) -> (String, Vec<String>) {
            (String::new(), Vec::new())
        }

        fn why(&self, _: &dyn EventLog, _: &Subject) -> Result<String, Unexplained> {
            Err(Unexplained::Missing("nothing is known".to_owned()))
        }
    }

    #[test]
    fn parameters_are_decoded_and_bad_ones_are_none() {
        let query = "symbol=SYNTH%3AAAAA&bar=1s&empty=&bad=%zz&sign=%+4&cut=%4&words=a+b&bytes=%ff";
        let of = |name| parameter(query, name);
        assert_eq!(of("symbol").as_deref(), Some("SYNTH:AAAA"));
        assert_eq!((of("bar").as_deref(), of("words").as_deref()), (Some("1s"), Some("a b")));
        assert_eq!(
            [of("empty"), of("bad"), of("sign"), of("cut"), of("bytes"), of("sym")],
            [None, None, None, None, None, None]
        );
    }

    #[test]
    fn subjects_of_explanations() {
        assert_eq!(subject("signal=3:17"), Some(Subject::Signal(3, 17)));
        assert_eq!(subject("entry=0%3A5"), Some(Subject::Entry(0, 5)));
        assert_eq!(subject("request=a%26b"), Some(Subject::Request("a&b".to_owned())));
        for wrong in ["", "signal=3", "signal=-1:4", "entry=x:1", "signal=1:99999999999999999999"] {
            assert_eq!(subject(wrong), None, "{wrong}");
        }
    }
}
