//! Converts librdkafka's error codes to [`LogError`].

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::types::RDKafkaConfRes;

use super::context::Trouble;
use crate::LogError;

/// Returns true if a retry may succeed in a moment.
pub(super) fn is_passing(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        code,
        Code::BrokerTransportFailure
            | Code::AllBrokersDown
            | Code::OperationTimedOut
            | Code::RequestTimedOut
            | Code::TimedOutQueue
            | Code::WaitingForCoordinator
            | Code::NodeUpdate
            | Code::CoordinatorLoadInProgress
            | Code::CoordinatorNotAvailable
            | Code::NotCoordinator
            | Code::LeaderNotAvailable
            | Code::NotLeaderForPartition
            | Code::BrokerNotAvailable
            | Code::NetworkException
            | Code::OffsetNotAvailable
            | Code::UnknownLeaderEpoch
            | Code::FencedLeaderEpoch
            | Code::UnstableOffsetCommit
            | Code::RebalanceInProgress
            | Code::DestroyBroker
            | Code::Retry
    )
}

/// Returns the error of a failed call. `trouble` is the client's report during the call, which may name the cause.
pub(super) fn failure(
    url: &str,
    doing: &str,
    code: RDKafkaErrorCode,
    text: &str,
    trouble: Option<Trouble>,
) -> LogError {
    use RDKafkaErrorCode as Code;
    let (url, doing) = (url.to_owned(), doing.to_owned());
    if let Some(trouble) = trouble.filter(|_| is_passing(code)) {
        return match trouble.code {
            Code::Authentication | Code::SSL | Code::Resolve => {
                failure(&url, &doing, trouble.code, &trouble.text, None)
            }
            _ => LogError::Unreachable { url, doing, cause: format!("{code}; {}", trouble.text) },
        };
    }
    let cause = if text.is_empty() { code.to_string() } else { text.to_owned() };
    match code {
        Code::Authentication | Code::SaslAuthenticationFailed | Code::SSL => {
            LogError::Authentication { url, doing, cause }
        }
        Code::TopicAuthorizationFailed
        | Code::GroupAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::TransactionalIdAuthorizationFailed => LogError::NotAuthorized { url, doing, cause },
        Code::Resolve => LogError::Unreachable { url, doing, cause },
        code if is_passing(code) => LogError::Unreachable { url, doing, cause },
        code => LogError::Broker { url, doing, code: format!("{code:?}"), cause },
    }
}

/// Returns the error of a configuration that librdkafka rejects. Values are hidden, because some are secrets.
pub(super) fn refused(url: &str, error: KafkaError) -> LogError {
    let (argument, value, allowed) = match error {
        KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, _, key, _) => {
            let allowed = "librdkafka has no such option: check the name; in an environment variable, write a dot as `__`";
            ("librdkafka option", key, allowed.to_owned())
        }
        KafkaError::ClientConfig(_, found, key, _) if is_not_built(&found) => {
            ("librdkafka option", key, with_feature(&found))
        }
        KafkaError::ClientConfig(_, found, key, _) if is_secret(&key) => {
            drop(found);
            ("librdkafka option", key, "librdkafka rejects the value".to_owned())
        }
        KafkaError::ClientConfig(_, found, key, _) => ("librdkafka option", key, found),
        KafkaError::ClientCreation(found) if is_not_built(&found) => {
            ("librdkafka options", "together".to_owned(), with_feature(&found))
        }
        KafkaError::ClientCreation(found) => ("librdkafka options", "together".to_owned(), found),
        other => ("librdkafka options", "together".to_owned(), other.to_string()),
    };
    LogError::Argument { url: url.to_owned(), argument, value, allowed }
}

/// Returns true if librdkafka lacks a feature that a build with `kafka-tls` has. Its text then contains no value.
fn is_not_built(found: &str) -> bool {
    let is_without = !cfg!(feature = "kafka-tls");
    let says = ["not available at build time", "not supported in this build", "recompile librdkafka"];
    is_without && says.iter().any(|said| found.contains(said))
}

fn with_feature(found: &str) -> String {
    format!(
        "{found}. TLS and SASL/SCRAM need a build with the feature `kafka-tls`: `cargo build --release --features kafka-tls`"
    )
}

fn is_secret(key: &str) -> bool {
    ["password", "secret", "passphrase", "pem", "ssl_key", "sasl.oauthbearer", "jaas"]
        .iter()
        .any(|part| key.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_preferred_to_its_effect() {
        let trouble = Trouble { code: RDKafkaErrorCode::Authentication, text: "SASL failed".to_owned() };
        let check = |code, expected: &str| {
            let error = failure("kafka:a:1", "listing topics", code, "", Some(trouble.clone()));
            assert!(format!("{error:?}").starts_with(expected), "{error:?}");
        };
        check(RDKafkaErrorCode::BrokerTransportFailure, "Authentication");
        check(RDKafkaErrorCode::TopicAuthorizationFailed, "NotAuthorized");
        check(RDKafkaErrorCode::InvalidReplicationFactor, "Broker");
    }

    #[test]
    fn refusals_show_no_secrets() {
        let error = |key: &str, value: &str| {
            let found = format!("Invalid value {value:?} for {key:?}");
            let config = RDKafkaConfRes::RD_KAFKA_CONF_INVALID;
            refused("kafka:a:1", KafkaError::ClientConfig(config, found, key.to_owned(), value.to_owned()))
        };
        let shown = error("sasl.password", "correct-horse").to_string();
        assert!(shown.contains("sasl.password") && !shown.contains("correct-horse"), "{shown}");
        let shown = error("security.protocol", "telnet").to_string();
        assert!(shown.contains("security.protocol") && shown.contains("telnet"), "{shown}");
    }

    #[test]
    fn an_option_that_does_not_exist_is_told_from_a_wrong_value() {
        let error = |key: &str| {
            let config = rdkafka::ClientConfig::new().set(key, "correct-horse").create_native_config();
            refused("kafka:a:1", config.err().expect("librdkafka refuses it")).to_string()
        };
        let shown = error("sasl_password");
        assert!(shown.contains("no such option") && !shown.contains("correct-horse"), "{shown}");
        let shown = error("security.protocol");
        assert!(!shown.contains("no such option") && shown.contains("correct-horse"), "{shown}");
    }
}
