//! The pages of an endpoint, each made at most four times a second.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::StatusCode;
use serde_json::Value;
use warptape_eventlog::EventLog;

use super::health::{Health, State, assess};
use super::live::LivePage;
use super::reports;
use super::sampler::Sampler;
use super::scrape::{Format, scrape};
use super::verifier::WatchedVerifier;
use super::view::Watched;
use crate::clock::Clock;

/// Time for which a page is cached for all clients.
pub(super) const PAGE_AGE_MAX: Duration = Duration::from_millis(250);

/// All pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Page {
    Live,
    Ready,
    Health,
    Metrics(Format),
    GpuHealth,
    GpuMemory,
    Performance,
}

/// The route of a page.
pub(super) struct Route {
    pub(super) path: &'static str,
    /// The page. Metrics are in text form, unless the request's `Accept` asks for another.
    pub(super) page: Page,
    /// Description of the contents.
    pub(super) about: &'static str,
    /// Media type of the answer.
    pub(super) media: &'static str,
    /// True if the page may answer with status 503.
    pub(super) may_be_unavailable: bool,
    /// True if a verifier has the page, too.
    pub(super) of_verifier: bool,
}

/// All pages, in the order in which the endpoint lists them.
pub(super) const ROUTES: [Route; 7] = [
    Route::new("/metrics", Page::Metrics(Format::Text), "metrics for Prometheus", TEXT, false, true),
    Route::new("/livez", Page::Live, "200 while the process is live; restart it on 503", TEXT, true, true),
    Route::new(
        "/readyz",
        Page::Ready,
        "200 while the pipeline reads, computes and commits",
        TEXT,
        true,
        true,
    ),
    Route::new("/health", Page::Health, "state of each component, with the reason (JSON)", JSON, true, true),
    Route::new("/gpu-health", Page::GpuHealth, "state of each GPU (JSON)", JSON, false, false),
    Route::new("/gpu-memory", Page::GpuMemory, "memory of each GPU (JSON)", JSON, false, false),
    Route::new(
        "/performance-metrics",
        Page::Performance,
        "rates and latencies of the pipeline (JSON)",
        JSON,
        false,
        false,
    ),
];

/// Path of commands.
pub(super) const CONTROL: &str = "/control";
/// Description of the path `/`.
pub(super) const PAGE_ABOUT: &str = "the live page for browsers (HTML); this list for others";
/// A parameter of a query: its name, true if it is required, and a description.
type Parameter = (&'static str, bool, &'static str);
/// Data of the live page: path, media type, parameters, and description.
pub(super) const LIVE: [(&str, &str, &[Parameter], &str); 4] = [
    ("/live.json", JSON, &[], "state of the pipeline, as the live page shows it (JSON)"),
    ("/live", "text/event-stream", &[], "the same twice a second (server-sent events)"),
    (
        "/candles.json",
        JSON,
        &[
            ("symbol", true, "the symbol, such as SYNTH:AAAA"),
            ("bar", true, "specification of the bars, such as 1s"),
        ],
        "the newest candles of a symbol (JSON)",
    ),
    (
        "/why.txt",
        TEXT,
        &[
            ("signal", false, "a signal: PARTITION:OFFSET"),
            ("entry", false, "an entry of the journal: PARTITION:SEQUENCE"),
            ("request", false, "id of a risk request"),
        ],
        "explanation of a signal, an entry of the journal, or a risk request",
    ),
];
/// Path of the OpenAPI document.
pub(super) const OPENAPI: &str = "/openapi.json";

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";

impl Route {
    const fn new(
        path: &'static str,
        page: Page,
        about: &'static str,
        media: &'static str,
        may_be_unavailable: bool,
        of_verifier: bool,
    ) -> Self {
        Self { path, page, about, media, may_be_unavailable, of_verifier }
    }
}

/// Returns the list of pages, for clients that request an unknown one.
pub(super) fn list(is_verifier: bool) -> String {
    let pages = ROUTES.iter().filter(|route| route.of_verifier || !is_verifier);
    let mut lines: Vec<_> = pages.map(|route| (route.path.to_owned(), route.about)).collect();
    lines.push((OPENAPI.to_owned(), "this list for tools (OpenAPI)"));
    if !is_verifier {
        lines.push(("/".to_owned(), PAGE_ABOUT));
        lines.extend(LIVE.map(|(path, _, _, about)| (path.to_owned(), about)));
        let about = "a command to this process, where there is a token (JSON)";
        lines.push((format!("POST {CONTROL}"), about));
    }
    lines.into_iter().map(|(path, about)| format!("{path:<22}{about}\n")).collect()
}

/// Subjects of pages.
enum Subject {
    /// A running pipeline, with the sampler that measures its lag; `None` if the system could not start its threads.
    Pipeline(Arc<Watched>, Option<Arc<Sampler>>),
    /// A verifier that follows a log.
    Verifier(WatchedVerifier),
}

/// A finished page.
#[derive(Clone)]
pub(super) struct Made {
    at: Instant,
    pub(super) status: StatusCode,
    pub(super) content_type: &'static str,
    pub(super) bytes: Bytes,
}

impl Made {
    fn new(status: StatusCode, content_type: &'static str, bytes: Vec<u8>) -> Self {
        Self { at: Instant::now(), status, content_type, bytes: bytes.into() }
    }

    fn text(status: StatusCode, line: String) -> Self {
        Self::new(status, "text/plain; charset=utf-8", (line + "\n").into_bytes())
    }

    fn json(status: StatusCode, value: &Value) -> Self {
        let mut bytes = serde_json::to_vec_pretty(value).expect("values of JSON can be written");
        bytes.push(b'\n');
        Self::new(status, "application/json", bytes)
    }

    fn metrics(written: Result<Vec<u8>, fmt::Error>, format: Format) -> Self {
        match written {
            Ok(bytes) => Self::new(StatusCode::OK, format.content_type(), bytes),
            Err(_) => Self::text(status(false), "the metrics cannot be written".to_owned()),
        }
    }

    /// Returns the liveness page.
    fn live(health: &Health) -> Self {
        let word = if health.live { "live".to_owned() } else { format!("not live: {}", health.told()) };
        Self::text(status(health.live), word)
    }

    /// Returns the readiness page.
    fn ready(health: &Health) -> Self {
        let word = if health.ready { "ready".to_owned() } else { format!("not ready: {}", health.told()) };
        Self::text(status(health.ready), word)
    }

    fn health(health: &Health) -> Self {
        let value = serde_json::to_value(health).expect("health has names and texts alone");
        Self::json(status(health.status != State::Down), &value)
    }
}

fn status(is_good: bool) -> StatusCode {
    if is_good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// Makes pages, and caches each for [`PAGE_AGE_MAX`].
pub(super) struct Pages {
    subject: Subject,
    log: Arc<dyn EventLog>,
    clock: Clock,
    made: Mutex<BTreeMap<Page, Made>>,
    /// The live page; `None` for a verifier, or if the system could not start its thread.
    pub(super) live: Option<LivePage>,
}

impl Pages {
    /// Creates the pages of a running pipeline.
    pub(super) fn of_pipeline(watched: Watched, log: Arc<dyn EventLog>) -> Self {
        let clock = Clock::start();
        let sampler = Sampler::start(&watched, log.clone(), clock).inspect_err(
            |error| tracing::warn!(%error, "cannot start the thread that measures lag and rates"),
        );
        let (watched, sampler) = (Arc::new(watched), sampler.ok().map(Arc::new));
        let live = LivePage::start(watched.clone(), sampler.clone(), log.clone())
            .inspect_err(|error| tracing::warn!(%error, "cannot start the thread of the live page"));
        Self {
            subject: Subject::Pipeline(watched, sampler),
            log,
            clock,
            made: Mutex::default(),
            live: live.ok(),
        }
    }

    /// Creates the pages of a verifier.
    pub(super) fn of_verifier(watched: WatchedVerifier, log: Arc<dyn EventLog>, clock: Clock) -> Self {
        Self { subject: Subject::Verifier(watched), log, clock, made: Mutex::default(), live: None }
    }

    /// Returns a page, made now or at most [`PAGE_AGE_MAX`] ago.
    pub(super) fn get(&self, page: Page) -> Made {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = made.get(&page).filter(|kept| kept.at.elapsed() < PAGE_AGE_MAX) {
            return kept.clone();
        }
        let new = match &self.subject {
            Subject::Pipeline(watched, sampler) => self.of_watched(page, watched, sampler.as_deref()),
            Subject::Verifier(watched) => self.of_watched_verifier(page, watched),
        };
        made.insert(page, new.clone());
        new
    }

    fn of_watched(&self, page: Page, watched: &Watched, sampler: Option<&Sampler>) -> Made {
        let sampled = sampler.map(Sampler::sampled).unwrap_or_default();
        let view = watched.view(self.clock, sampled, self.log.client_figures());
        match page {
            Page::Live => Made::live(&assess(&view)),
            Page::Ready => Made::ready(&assess(&view)),
            Page::Health => Made::health(&assess(&view)),
            Page::Metrics(format) => Made::metrics(scrape(view, format), format),
            Page::GpuHealth => Made::json(StatusCode::OK, &reports::gpu_health(&view)),
            Page::GpuMemory => Made::json(StatusCode::OK, &reports::gpu_memory(&view)),
            Page::Performance => Made::json(StatusCode::OK, &reports::performance(&view)),
        }
    }

    fn of_watched_verifier(&self, page: Page, watched: &WatchedVerifier) -> Made {
        let view = watched.view(self.clock.now_ns());
        match page {
            Page::Live => Made::live(&view.assess()),
            Page::Ready => Made::ready(&view.assess()),
            Page::Health => Made::health(&view.assess()),
            Page::Metrics(format) => Made::metrics(view.scrape(format), format),
            Page::GpuHealth | Page::GpuMemory | Page::Performance => {
                Made::text(StatusCode::NOT_FOUND, "a verifier has no such page".to_owned())
            }
        }
    }
}
