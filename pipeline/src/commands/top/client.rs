//! Requests to the endpoint of a running pipeline, and a thread that asks for the pipeline's state twice a second.

use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use serde::de::DeserializeOwned;
use thiserror::Error;
use ureq::Agent;

use crate::endpoint::live::snapshot::{Candles, Snapshot};
use crate::endpoint::{Endpoint, LiveData};
use crate::http_agent::http_agent;
use crate::settings::Secret;

/// Time between two requests for the state.
pub const POLL: Duration = Duration::from_millis(500);
/// Time between two requests for the same candles.
const CANDLES_INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// Longest wait for a state or for candles. An endpoint with a stuck engine answers after 3 s.
const ANSWER_MAX: Duration = Duration::from_secs(4);
/// Path of explanations.
const WHY: &str = "/why.txt";
/// Longest wait for an explanation.
const WHY_MAX: Duration = Duration::from_secs(60);
/// Wait before the next request for an explanation while the endpoint prepares another one.
const BUSY_WAIT: Duration = Duration::from_secs(1);
/// Greatest number of characters shown of a refusal.
const REFUSAL_MAX: usize = 300;

/// Reasons why there is no answer to show.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Trouble {
    /// The endpoint does not answer.
    #[error("{0}")]
    Silent(String),
    /// The endpoint has a token, and the one presented is not it.
    #[error("it wants a token: set endpoint.token, for example with WARPTAPE__ENDPOINT__TOKEN")]
    Token,
    /// The endpoint cannot answer now, for this reason.
    #[error("{0}")]
    Busy(String),
    /// The endpoint refuses the request.
    #[error("{path}: status {status}: {text}")]
    Refused {
        /// Path of the page.
        path: String,
        /// HTTP status of the answer.
        status: u16,
        /// Beginning of the answer's text.
        text: String,
    },
    /// The answer is not of this software's form.
    #[error("{path} cannot be read ({error}): use `top` of the pipeline's version")]
    Form {
        /// Path of the page.
        path: String,
        /// Place and kind of the difference.
        error: String,
    },
}

/// Subject of an explanation, with its position or id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A signal.
    Signal(String),
    /// An entry of the journal.
    Entry(String),
    /// A risk request.
    Request(String),
}

impl Subject {
    /// Returns the parameter of `/why.txt` and its value.
    pub fn query(&self) -> (&'static str, &str) {
        match self {
            Self::Signal(place) => ("signal", place),
            Self::Entry(place) => ("entry", place),
            Self::Request(id) => ("request", id),
        }
    }
}

/// The candles to ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Symbol of the candles.
    pub symbol: String,
    /// Specification of the bar.
    pub bar: String,
}

/// Answers of the endpoint, or the reasons for missing ones.
#[derive(Debug)]
pub enum News {
    /// The state.
    State(Box<Result<Snapshot, Trouble>>),
    /// Candles.
    Candles(Wish, Result<Candles, Trouble>),
    /// An explanation.
    Why(Subject, Result<String, Trouble>),
}

/// Client of one endpoint. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Client {
    url: String,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    /// The endpoint at the URL, asked by HTTP.
    Remote(Remote),
    /// The endpoint of this process.
    Inside(LiveData),
}

/// Agents of two patiences, and the token that they present.
#[derive(Clone, Debug)]
struct Remote {
    agent: Agent,
    patient: Agent,
    token: Option<Secret>,
}

impl Remote {
    /// Returns the status and the text of an answer.
    fn ask(&self, url: String, query: &[(&str, &str)], is_patient: bool) -> Result<(u16, String), String> {
        let told = |error: ureq::Error| error.to_string();
        let agent = if is_patient { &self.patient } else { &self.agent };
        let mut request = agent.get(url).query_pairs(query.iter().copied());
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {}", token.reveal()));
        }
        let mut answer = request.call().map_err(told)?;
        let status = answer.status().as_u16();
        Ok((status, answer.body_mut().read_to_string().map_err(told)?))
    }
}

impl Client {
    /// Creates a client of the endpoint at a URL without a path.
    pub fn new(url: &str, token: Option<Secret>) -> Self {
        let (agent, patient) = (http_agent(CONNECT_MAX, ANSWER_MAX), http_agent(CONNECT_MAX, WHY_MAX));
        Self { url: url.to_owned(), source: Source::Remote(Remote { agent, patient, token }) }
    }

    /// Creates a client of an endpoint of this process. It needs no token, and no trust in a certificate.
    pub fn inside(endpoint: &Endpoint) -> Self {
        Self { url: endpoint.url().to_owned(), source: Source::Inside(endpoint.live()) }
    }

    /// Returns the URL of the endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Asks for the state.
    pub fn state(&self) -> Result<Snapshot, Trouble> {
        json("/live.json", &self.ask("/live.json", &[])?)
    }

    /// Asks for candles.
    pub fn candles(&self, wish: &Wish) -> Result<Candles, Trouble> {
        let path = "/candles.json";
        json(path, &self.ask(path, &[("symbol", &wish.symbol), ("bar", &wish.bar)])?)
    }

    /// Asks for an explanation.
    pub fn why(&self, subject: &Subject) -> Result<String, Trouble> {
        self.ask(WHY, &[subject.query()])
    }

    fn ask(&self, path: &str, query: &[(&str, &str)]) -> Result<String, Trouble> {
        let answer = match &self.source {
            Source::Remote(remote) => remote.ask(format!("{}{path}", self.url), query, path == WHY),
            Source::Inside(data) => data.ask(path, query),
        };
        let (status, text) = answer.map_err(Trouble::Silent)?;
        match status {
            200 => Ok(text),
            401 => Err(Trouble::Token),
            429 => Err(Trouble::Busy(begin(&text))),
            _ => Err(Trouble::Refused { path: path.to_owned(), status, text: begin(&text) }),
        }
    }
}

/// Returns the beginning of a refusal's text.
fn begin(text: &str) -> String {
    text.trim().chars().take(REFUSAL_MAX).collect()
}

fn json<T: DeserializeOwned>(path: &str, text: &str) -> Result<T, Trouble> {
    serde_json::from_str(text)
        .map_err(|error| Trouble::Form { path: path.to_owned(), error: error.to_string() })
}

/// Asks for the state and for the wished candles repeatedly, until the sender of wishes or the receiver of news is
/// dropped.
pub fn poll(client: &Client, wishes: &Receiver<Option<Wish>>, news: &Sender<News>) {
    let mut wish: Option<Wish> = None;
    let (mut state_due, mut candles_due) = (Instant::now(), Instant::now());
    loop {
        if state_due <= Instant::now() {
            state_due = Instant::now() + POLL;
            if news.send(News::State(Box::new(client.state()))).is_err() {
                return;
            }
        }
        if let Some(wish) = wish.as_ref().filter(|_| candles_due <= Instant::now()) {
            candles_due = Instant::now() + CANDLES_INTERVAL;
            if news.send(News::Candles(wish.clone(), client.candles(wish))).is_err() {
                return;
            }
        }
        match wishes.recv_deadline(state_due) {
            Ok(new) => (wish, candles_due) = (new, Instant::now()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Asks for an explanation, and repeats the request while the endpoint prepares another one. `gone` is disconnected
/// once nobody waits for the answer.
pub fn explain(client: &Client, subject: Subject, gone: &Receiver<()>, news: &Sender<News>) {
    let until = Instant::now() + WHY_MAX;
    loop {
        let asked = Instant::now();
        let answer = client.why(&subject);
        // A refusal that comes late concerns this explanation, not another one.
        let is_other = matches!(answer, Err(Trouble::Busy(_))) && asked.elapsed() < BUSY_WAIT;
        if !is_other || Instant::now() > until {
            // The session may have ended meanwhile.
            return drop(news.send(News::Why(subject, answer)));
        }
        if gone.recv_timeout(BUSY_WAIT) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

/// Starts a thread that ends with its work or with the process, so that a slow endpoint does not delay the exit.
pub fn spawn(work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name("top".to_owned()).spawn(work).map(drop)
}
