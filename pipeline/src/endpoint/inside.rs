//! The data of the live page for a reader within the process: no connection, no token, no TLS.

use std::sync::{Arc, Weak};

use axum::http::StatusCode;

use super::http::Served;
use super::live::Answer;

/// Answers the questions that the endpoint's clients ask. It keeps nothing of the endpoint alive.
#[derive(Clone, Debug)]
pub struct LiveData(Weak<Served>);

impl LiveData {
    pub(super) fn of(served: &Arc<Served>) -> Self {
        Self(Arc::downgrade(served))
    }

    /// Returns the status and the text of the answer to `GET PATH?QUERY`.
    ///
    /// # Errors
    /// The reason, if nobody answers.
    pub fn ask(&self, path: &str, query: &[(&str, &str)]) -> Result<(u16, String), String> {
        let served = self.0.upgrade().ok_or("the endpoint has ended")?;
        let live = served.pages.live.as_ref().ok_or("the system could not start its thread")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let answer = runtime.block_on(live.answer(path, &encoded(query)));
        // An explanation may be under way after its time.
        runtime.shutdown_background();
        let Some(answer) = answer else { return Ok((StatusCode::NOT_FOUND.as_u16(), path.to_owned())) };
        let status = answer.status().as_u16();
        match answer {
            Answer::Json(bytes) => Ok((status, String::from_utf8_lossy(&bytes).into_owned())),
            Answer::Text(text) | Answer::Missing(text) | Answer::Unavailable(text) => Ok((status, text)),
            Answer::Wrong(text) | Answer::Busy(text) => Ok((status, text.to_owned())),
            Answer::Stream(_) => Err(format!("{path} is a stream, which has no end")),
        }
    }
}

/// Encodes the pairs of a query.
fn encoded(query: &[(&str, &str)]) -> String {
    let value = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    query.iter().map(|(name, text)| format!("{name}={}", value(text))).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_encoded() {
        assert_eq!(encoded(&[]), "");
        assert_eq!(
            encoded(&[("symbol", "A&B:株"), ("bar", "1s")]),
            "symbol=%41%26%42%3A%E6%A0%AA&bar=%31%73"
        );
    }

    #[test]
    fn an_endpoint_that_has_ended_does_not_answer() {
        let data = LiveData(Weak::new());
        assert_eq!(data.ask("/live.json", &[]), Err("the endpoint has ended".to_owned()));
    }
}
