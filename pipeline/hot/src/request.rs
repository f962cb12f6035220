//! The result of one risk request, from Redis or from the log.

use serde::Serialize;
use warptape_eventlog::{EventLog, TopicPartition};
use warptape_schemas::Describer;

use crate::HotConfig;
use crate::error::HotError;
use crate::follower::{partitions, read_to_end};
use crate::keys::{Keys, ResultValue};
use crate::results::answer;
use crate::store::RedisStore;
use crate::url::RedisUrl;

/// The state of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestState {
    /// Id of the request.
    pub request_id: String,
    /// Source of the state: the Redis URL without its password, or the log.
    pub source: String,
    /// Result of the request.
    pub result: ResultValue,
}

/// The request has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownRequest {
    /// The result is not in Redis.
    #[error(
        "{source_name} has no result of request {request_id:?}: it was not answered, or the answer expired \
         (hot_state.result_ttl_s). `--hot-state memory` looks it up in the log"
    )]
    InRedis {
        /// The requested id.
        request_id: String,
        /// The Redis URL, without its password.
        source_name: String,
    },
    /// The result is not in the log.
    #[error(
        "{source_name} has no result of request {request_id:?} in {topic}: it was not answered yet, or the \
         log has dropped the answer. `warptape run` answers the requests in {requests}"
    )]
    InLog {
        /// Id of the request.
        request_id: String,
        /// The log.
        source_name: String,
        /// Topic of results.
        topic: String,
        /// Topic of requests.
        requests: String,
    },
}

/// Returns the result from Redis.
pub fn result_from_redis(
    url: &RedisUrl,
    keys: Keys,
    request_id: &str,
) -> Result<Result<RequestState, UnknownRequest>, HotError> {
    let mut store = RedisStore::connect(url, keys)?;
    store.check_layout()?;
    let (request_id, source) = (request_id.to_owned(), url.to_string());
    Ok(match store.result(&request_id)? {
        Some(result) => Ok(RequestState { request_id, source, result }),
        None => Err(UnknownRequest::InRedis { request_id, source_name: source }),
    })
}

/// Searches all results in the log. Returns the first result with the id, by time if several partitions have one.
pub fn result_from_log(
    log: &dyn EventLog,
    config: &HotConfig,
    request_id: &str,
) -> Result<Result<RequestState, UnknownRequest>, HotError> {
    let topic = &config.results;
    let describer = Describer::new();
    let mut first: Option<ResultValue> = None;
    for partition in 0..partitions(log, topic)? {
        read_to_end(log, &TopicPartition { topic: topic.clone(), partition }, 0, |record| {
            // The key of a result is the id of its request. Other records are ignored.
            if record.key.as_deref() == Some(request_id.as_bytes())
                && first.as_ref().is_none_or(|first| record.timestamp_ns < first.committed_ns)
                && let Ok(Some((_, value))) = answer(&describer, partition, &record)
            {
                first = Some(value);
            }
        })?;
    }
    let (request_id, source) = (request_id.to_owned(), log.url());
    Ok(match first {
        Some(result) => Ok(RequestState { request_id, source, result }),
        None => Err(UnknownRequest::InLog {
            request_id,
            source_name: source,
            topic: topic.clone(),
            requests: config.requests.clone(),
        }),
    })
}
