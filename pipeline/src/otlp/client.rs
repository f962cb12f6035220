//! Sends requests to the receiver with the pipeline's HTTP client, from the exporting thread. If the receiver is
//! temporarily unable to accept a request, the request is retried for a limited time.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use async_trait::async_trait;
use httpdate::parse_http_date;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use ureq::Agent;
use ureq::http::{HeaderName, HeaderValue, StatusCode, header, request};

use crate::clock::wall_clock_ns;
use crate::http_agent::http_agent;
use crate::settings::Secret;
use crate::usage_error::UsageError;

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait for an answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after a request's first attempt from which it is no longer retried.
const RETRY_MAX: Duration = Duration::from_secs(8);
/// Pause before the second attempt; each later one is twice as long.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Time between two checks, during a pause, whether the process ends.
const LOOK: Duration = Duration::from_millis(50);
/// Status codes after which OTLP's specification allows a retry.
const PASSING: [StatusCode; 4] = [
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::BAD_GATEWAY,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::GATEWAY_TIMEOUT,
];
/// Greatest length of an answer, in bytes; the answer may explain a refusal.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Sends requests, each with the configured headers.
#[derive(Clone)]
pub(super) struct HttpSender {
    agent: Agent,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Set when the process ends; requests are then no longer retried.
    ends: Arc<AtomicBool>,
}

impl std::fmt::Debug for HttpSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The headers may contain secrets.
        f.debug_struct("HttpSender").finish_non_exhaustive()
    }
}

impl HttpSender {
    pub(super) fn new(headers: Option<&Secret>) -> Result<Self, UsageError> {
        let headers = headers.map_or(Ok(Vec::new()), |headers| parse_headers(headers.reveal()))?;
        let agent = http_agent(CONNECT_TIMEOUT, ANSWER_TIMEOUT);
        Ok(Self { agent, headers, ends: Arc::default() })
    }

    /// Stops all retries from now on.
    pub(super) fn end(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }

    fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    fn attempt(&self, parts: request::Parts, body: &Bytes) -> Result<Response<Bytes>, HttpError> {
        let sent = self.agent.run(Request::from_parts(parts, body.to_vec()));
        let (parts, mut body) = sent?.into_parts();
        let body = body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
        Ok(Response::from_parts(parts, body.into()))
    }

    /// Waits before the next attempt. Returns false if the process ends.
    fn pause(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        while !self.ends() && Instant::now() < until {
            thread::park_timeout(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
        !self.ends()
    }
}

/// Parses headers of the form `NAME=VALUE,NAME=VALUE`. Errors do not repeat the headers, which may be secret.
fn parse_headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, UsageError> {
    let header = |(number, pair): (usize, &str)| {
        let parsed = pair.split_once('=').and_then(|(name, value)| {
            let mut value = HeaderValue::from_str(value.trim()).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_str(name.trim()).ok()?, value))
        });
        parsed.ok_or_else(|| {
            UsageError(format!(
                "otlp.headers: item {} is not NAME=VALUE with a name and a value that HTTP allows",
                number + 1
            ))
        })
    };
    text.split(',').enumerate().map(header).collect()
}

#[async_trait]
impl HttpClient for HttpSender {
    async fn send_bytes(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        for (name, value) in &self.headers {
            request.headers_mut().insert(name.clone(), value.clone());
        }
        let (parts, body) = request.into_parts();
        let (began, mut pause) = (Instant::now(), RETRY_PAUSE);
        loop {
            let answer = self.attempt(parts.clone(), &body);
            let is_passing = answer.as_ref().map_or(true, |answer| PASSING.contains(&answer.status()));
            let asked = answer.as_ref().ok().and_then(pause_asked).unwrap_or_default();
            let next = pause.max(asked);
            if !is_passing || began.elapsed().saturating_add(next) > RETRY_MAX || !self.pause(next) {
                return answer;
            }
            pause *= 2;
        }
    }
}

/// Returns the pause that the receiver requests, in seconds or until a time; `None` if it requests none.
fn pause_asked(answer: &Response<Bytes>) -> Option<Duration> {
    let text = answer.headers().get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            let now = UNIX_EPOCH + Duration::from_nanos(wall_clock_ns().unsigned_abs());
            Some(parse_http_date(text).ok()?.duration_since(now).unwrap_or_default())
        }
    }
}

/// Sends metrics. Logs when sending starts to fail and when it works again, because the SDK does not.
#[derive(Debug)]
pub(super) struct MetricsSender {
    sender: HttpSender,
    endpoint: String,
    /// True if the last export failed.
    fails: AtomicBool,
}

impl MetricsSender {
    pub(super) fn new(sender: HttpSender, endpoint: &str) -> Self {
        Self { sender, endpoint: endpoint.to_owned(), fails: AtomicBool::new(false) }
    }

    fn tell(&self, error: Option<String>) {
        let failed = self.fails.swap(error.is_some(), Ordering::Relaxed);
        match error {
            None if failed => tracing::warn!(endpoint = self.endpoint, "metrics are exported again"),
            None => {}
            Some(error) if failed => tracing::debug!(error, "metrics are not exported"),
            Some(error) => tracing::warn!(
                endpoint = self.endpoint,
                error,
                "metrics cannot be exported; the next export includes their totals, and the pipeline continues"
            ),
        }
    }
}

#[async_trait]
impl HttpClient for MetricsSender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.sender.send_bytes(request).await;
        self.tell(match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("the receiver answered {}", answer.status())),
            Err(error) => Some(error.to_string()),
        });
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_pairs_and_mistakes_do_not_show_them() {
        let headers = parse_headers("authorization=Bearer abc=, x-scope = desk").expect("two headers");
        let shown: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(shown, [("authorization", &b"Bearer abc="[..]), ("x-scope", b"desk")]);
        for wrong in ["authorization", "a=b,", "a b=c", "a=b\nc: d", "=hidden"] {
            let error = parse_headers(wrong).expect_err("refused").to_string();
            assert!(error.starts_with("otlp.headers: item "), "{error}");
            assert!(!error.contains("hidden"), "{error}");
        }
        let sender = HttpSender::new(Some(&Secret::new("authorization=hidden"))).expect("a header");
        assert!(!format!("{sender:?}").contains("hidden"), "{sender:?}");
    }

    #[test]
    fn a_receiver_names_a_pause_in_seconds_or_by_a_date() {
        let asked = |text: &str| {
            let answer = Response::builder().header(header::RETRY_AFTER, text);
            pause_asked(&answer.body(Bytes::new()).expect("an answer"))
        };
        assert_eq!(asked(" 3 "), Some(Duration::from_secs(3)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO), "it is over");
        let of_days = asked("Fri, 31 Dec 2100 23:59:59 GMT").expect("a date");
        assert!(of_days > Duration::from_secs(1 << 20), "{of_days:?}");
        assert_eq!(asked("soon"), None);
    }
}
