//! Process limits below which librdkafka does not work. They are checked first, because a later failure would not name
//! the limit that was too low. The process even ends if librdkafka cannot start a thread (2.12.1,
//! `rd_kafka_broker_add_logical`).

use rustix::process::{Resource, getrlimit};

use super::KafkaOptions;
use crate::LogError;

/// Least number of descriptors: a socket for each broker and client, and those that wake their threads.
const DESCRIPTORS_MIN: u64 = 64;
/// Least size of the address space in bytes: each client has several threads, and each thread reserves some for its
/// stack.
const ADDRESS_BYTES_MIN: u64 = 1 << 30;

/// Rejects limits that are too low for any use.
pub(super) fn check(options: &KafkaOptions) -> Result<(), LogError> {
    let descriptors = getrlimit(Resource::Nofile).current;
    let address_bytes = getrlimit(Resource::As).current;
    let cause = too_low(descriptors, address_bytes);
    cause.map_or(Ok(()), |cause| {
        let url = format!("kafka:{}", options.brokers);
        Err(LogError::Limit { url, doing: "starting a client".to_owned(), cause })
    })
}

/// Describes the limit that is too low; `None` if all are sufficient.
fn too_low(descriptors: Option<u64>, address_bytes: Option<u64>) -> Option<String> {
    if let Some(limit) = descriptors.filter(|limit| *limit < DESCRIPTORS_MIN) {
        return Some(format!(
            "this process may open only {limit} files (`ulimit -n`) but needs {DESCRIPTORS_MIN}"
        ));
    }
    let limit = address_bytes.filter(|limit| *limit < ADDRESS_BYTES_MIN)?;
    Some(format!(
        "this process may have only {limit} bytes of memory (`ulimit -v`) but needs {ADDRESS_BYTES_MIN}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_that_is_too_low_is_named() {
        assert_eq!(too_low(None, None), None);
        assert_eq!(too_low(Some(64), Some(1 << 30)), None);
        assert!(too_low(Some(63), Some(1)).is_some_and(|cause| cause.contains("`ulimit -n`")));
        assert!(too_low(None, Some((1 << 30) - 1)).is_some_and(|cause| cause.contains("`ulimit -v`")));
    }
}
