//! Errors that answer requests, in words: one way to say them, for the run and for its replay.

use std::collections::{BTreeSet, VecDeque};

use warptape_events::journal::{Expire, Reject, RejectReason, Shed};
use warptape_events::risk::{RiskError, RiskErrorCode, RiskOutcome, RiskResult};
use warptape_events::{DecodeError, encode_risk_result};
use xxhash_rust::xxh3::xxh3_128;

use super::bad;

/// Most bytes of a repeated text.
const REPEATED_BYTES_MAX: usize = 128;
/// Most ids that are remembered of a partition, the newest. A request whose id is older is answered again.
const IDS_MAX: usize = 1 << 20;

/// The error of a record that is no request.
pub fn unreadable(error: &DecodeError) -> RiskError {
    bad("", format!("the request cannot be read: {error}"))
}

/// The part of an id or of a tenant's name that a refusal repeats: at most the size of a good one.
pub fn repeated(text: &str) -> String {
    let mut end = text.len().min(REPEATED_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// The error of a request whose id an earlier one had.
pub fn duplicate(request_id: &str) -> RiskError {
    let request_id = repeated(request_id);
    let message = format!("{request_id} was asked before: choose another id");
    RiskError { code: RiskErrorCode::Duplicate, field: "request_id".to_owned(), message }
}

/// The error of a request that the scheduler refused.
pub fn rejected(reject: &Reject) -> RiskError {
    let (code, message) = match reject.reason {
        RejectReason::Overloaded => {
            let Reject { tasks, tasks_max, bytes, bytes_max, .. } = reject;
            let message = match tasks >= tasks_max {
                true => format!("{tasks} requests wait, {tasks_max} may: ask again later"),
                false => {
                    format!("with this one {bytes} bytes of requests wait, {bytes_max} may: ask again later")
                }
            };
            (RiskErrorCode::Overloaded, message)
        }
        RejectReason::Expired => (RiskErrorCode::Expired, "the deadline had passed on arrival".to_owned()),
        RejectReason::Quota => {
            let Reject { tasks, tasks_max, quota, .. } = reject;
            let message = format!(
                "{quota} is refused by its quota: {tasks} requests wait, {tasks_max} may: ask again later"
            );
            (RiskErrorCode::Overloaded, message)
        }
        RejectReason::Rate => {
            let Reject { tasks_max, quota, .. } = reject;
            let message = format!("{quota} may ask {tasks_max} times in a second: ask more slowly");
            (RiskErrorCode::Overloaded, message)
        }
        RejectReason::Congested => {
            let Reject { tasks, tasks_max, .. } = reject;
            let message =
                format!("requests wait for too long: {tasks} wait, {tasks_max} may for now: ask again later");
            (RiskErrorCode::Overloaded, message)
        }
    };
    RiskError { code, field: String::new(), message }
}

/// The error of a request that the scheduler gave up at its deadline.
pub fn expired(expire: &Expire) -> RiskError {
    let message = format!("the deadline passed, {} slices were under way", expire.slices_running);
    RiskError { code: RiskErrorCode::Expired, field: "deadline_ns".to_owned(), message }
}

/// The error of a request that the scheduler shed.
pub fn shed(shed: &Shed) -> RiskError {
    let milliseconds = |ns: i64| ns / 1_000_000;
    let message = format!(
        "shed after {} ms: requests have waited longer than {} ms for a while: ask again later",
        milliseconds(shed.waited_ns),
        milliseconds(shed.target_ns),
    );
    RiskError { code: RiskErrorCode::Overloaded, field: String::new(), message }
}

/// The error of a request that would take longer than is allowed.
pub fn too_costly(cost_ns: i64, cost_max_ns: i64) -> RiskError {
    let seconds = |ns: i64| ns as f64 / 1e9;
    let message = format!(
        "estimated to take {:.3} s of one core, risk.cost_max_s allows {}: ask for less (samples, steps, scenarios, rules), or have \
         the limit raised",
        seconds(cost_ns),
        seconds(cost_max_ns)
    );
    bad("problem", message)
}

/// The error of a request that another request cancelled.
pub fn cancelled(by: &str, tenant: &str, offset: i64) -> RiskError {
    let message = format!("cancelled by request {by:?} of tenant {tenant:?}, at offset {offset}");
    RiskError { code: RiskErrorCode::Expired, field: String::new(), message }
}

/// The error of a cancelling request without anything to cancel.
pub fn not_cancelled(request_id: &str, is_known: bool) -> RiskError {
    let request_id = repeated(request_id);
    let message = match is_known {
        true => format!("{request_id} has its result already"),
        false => format!(
            "no request {request_id} came before in this partition: send it to the partition of that request, under the same key"
        ),
    };
    bad("cancels", message)
}

/// The error of a request whose computation panicked.
pub fn panicked() -> RiskError {
    let message = "these numbers make what computes the answer panic, which is a mistake of ours: the log of the process says where; \
                   report it";
    bad("problem", message)
}

/// Least size of a record, key included, that the topic of results must accept: the largest error, with the market of
/// 4,096 assets.
pub const RESULT_BYTES_MIN: i64 = 512 << 10;
const TOO_LARGE: [&str; 3] = [
    "the answer has ",
    " bytes, and the topic of results takes ",
    ": ask for less at once, or raise max.message.bytes of the topic",
];

/// The encoded record of a result. If key and record exceed `bytes_max` bytes, the result becomes an error and its
/// record is returned.
pub fn encode_bounded(result: &mut RiskResult, bytes_max: i64) -> Vec<u8> {
    let mut record = Vec::new();
    encode_risk_result(result, &mut record);
    let bytes = (result.request_id.len() + record.len()) as i64;
    if bytes > bytes_max {
        result.outcome = RiskOutcome::Error(too_large(bytes, bytes_max));
        record.clear();
        encode_risk_result(result, &mut record);
    }
    record
}

fn too_large(bytes: i64, bytes_max: i64) -> RiskError {
    let [has, takes, advice] = TOO_LARGE;
    bad("problem", format!("{has}{bytes}{takes}{bytes_max}{advice}"))
}

/// The limit of the topic that the error of a too large result states; `None` for all other outcomes. Every process
/// runs with at least [`RESULT_BYTES_MIN`].
pub fn stated_limit(outcome: &RiskOutcome) -> Option<i64> {
    let RiskOutcome::Error(error) = outcome else { return None };
    let [has, takes, advice] = TOO_LARGE;
    let (_, limit) = error.message.strip_prefix(has)?.strip_suffix(advice)?.split_once(takes)?;
    limit.parse().ok().filter(|limit| *limit >= RESULT_BYTES_MIN)
}

/// The remembered ids of the requests of a partition.
#[derive(Debug, Default)]
pub struct RequestIds {
    /// Hashes of ids.
    known: BTreeSet<u128>,
    /// The same hashes, oldest first.
    order: VecDeque<u128>,
}

impl RequestIds {
    /// Takes an id. Returns true if it is new. An empty id is never remembered, so it is always new.
    pub fn insert(&mut self, request_id: &str) -> bool {
        if request_id.is_empty() {
            return true;
        }
        let id = xxh3_128(request_id.as_bytes());
        if !self.known.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > IDS_MAX {
            let oldest = self.order.pop_front().expect("there are more than none");
            self.known.remove(&oldest);
        }
        true
    }

    /// True if an id was taken and is still remembered.
    pub fn contains(&self, request_id: &str) -> bool {
        self.known.contains(&xxh3_128(request_id.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_and_an_empty_one_always() {
        let mut ids = RequestIds::default();
        let found = ["a", "b", "a", "", ""].map(|id| ids.insert(id));
        assert_eq!(found, [true, true, false, true, true]);
    }

    #[test]
    fn the_oldest_ids_are_forgotten() {
        let mut ids = RequestIds::default();
        assert!((0..=IDS_MAX).all(|id| ids.insert(&id.to_string())));
        assert!(!ids.insert("1") && ids.insert("0"));
        assert!(ids.insert("1"), "it was the oldest when another was taken");
    }
}
