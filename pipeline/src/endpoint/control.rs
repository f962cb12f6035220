//! An operator's command over HTTP. It goes through the log like a command of `warptape control`, and so does its
//! answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use warptape_engine::{Topics, cut};
use warptape_eventlog::EventLog;
use warptape_schemas::control::{ControlCommand, ControlOutcome, ControlResult, TEXT_BYTES_MAX};

use crate::order::{Order, StoppedSince};

/// Greatest length of a command, in bytes.
pub(super) const BYTES_MAX: usize = 64 << 10;
/// Longest wait for an answer, in seconds; shorter than the life of a connection.
pub(super) const TIMEOUT_S_MAX: u64 = 50;
/// Default wait for an answer, in seconds.
pub(super) const TIMEOUT_S: u64 = 10;

/// Body of a posted command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Posted {
    /// The command, in the JSON form of `warptape tail control -o json`.
    command: ControlCommand,
    /// Name of the sender, for the journal.
    #[serde(default = "somebody")]
    by: String,
    /// Time in seconds for which the command may be executed, and its answer is awaited.
    #[serde(default = "timeout_s")]
    timeout_s: u64,
}

fn somebody() -> String {
    "http".to_owned()
}

fn timeout_s() -> u64 {
    TIMEOUT_S
}

/// Sends commands to this process, one at a time.
pub(super) struct Orders {
    log: Arc<dyn EventLog>,
    topics: Topics,
    ordinal: i32,
    turn: Arc<Mutex<()>>,
    has_ended: Arc<AtomicBool>,
}

impl Orders {
    pub(super) fn new(log: Arc<dyn EventLog>, topics: Topics, ordinal: i32) -> Self {
        Self { log, topics, ordinal, turn: Arc::default(), has_ended: Arc::default() }
    }

    /// Stops waiting for answers.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Sends the posted command, and waits for its answer.
    pub(super) async fn give(&self, posted: &[u8]) -> (StatusCode, Value) {
        let posted: Posted = match serde_json::from_slice(posted) {
            Ok(posted) => posted,
            Err(error) => {
                let example = r#"{"command": {"DrainLane": {"lane": 1}}, "by": "NAME", "timeout_s": 10}"#;
                return told(StatusCode::BAD_REQUEST, &format!("{error}; an example: {example}"));
            }
        };
        if !(1..=TIMEOUT_S_MAX).contains(&posted.timeout_s) {
            return told(
                StatusCode::BAD_REQUEST,
                &format!("timeout_s must be a whole number from 1 to {TIMEOUT_S_MAX}"),
            );
        }
        let Ok(turn) = self.turn.clone().try_lock_owned() else {
            return told(
                StatusCode::SERVICE_UNAVAILABLE,
                "another command is under way; try again once it is answered",
            );
        };
        let order =
            Order::new(posted.command, cut(posted.by, TEXT_BYTES_MAX), Duration::from_secs(posted.timeout_s));
        let (log, topics, ordinal) = (self.log.clone(), self.topics.clone(), self.ordinal);
        let (began, has_ended) = (Instant::now(), self.has_ended.clone());
        let until = began + Duration::from_secs(posted.timeout_s);
        let stopped: StoppedSince =
            Arc::new(move || (has_ended.load(Ordering::Relaxed) || Instant::now() >= until).then_some(began));
        let given = tokio::task::spawn_blocking(move || {
            // The next command waits until this one has ended, even if this client no longer waits.
            let _turn = turn;
            let mut result = None;
            let keep = |answered| {
                result = Some(answered);
                Ok(())
            };
            order.give(&log, &topics, &[ordinal], stopped, keep).map(|_| result)
        });
        match given.await {
            Ok(Ok(Some(result))) => answered(&result),
            Ok(Ok(None)) => told(
                StatusCode::GATEWAY_TIMEOUT,
                "no answer within timeout_s; the process refuses the \
                                                   command if it reads it later",
            ),
            Ok(Err(error)) => told(StatusCode::BAD_GATEWAY, &format!("{error:#}")),
            Err(error) => told(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }
}

fn answered(result: &ControlResult) -> (StatusCode, Value) {
    let status = match result.outcome {
        ControlOutcome::Done => StatusCode::OK,
        ControlOutcome::Refused => StatusCode::CONFLICT,
    };
    (status, serde_json::to_value(result).expect("an answer has names and texts alone"))
}

/// Returns an error as an HTTP answer.
pub(super) fn told(status: StatusCode, error: &str) -> (StatusCode, Value) {
    (status, json!({ "error": error }))
}
