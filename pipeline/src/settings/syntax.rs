//! Syntax of the values that have one: URLs, names, devices.

use warptape_eventlog::KafkaOptions;
use warptape_eventlog::kafka::is_broker_list;
use warptape_schemas::journal::LaneSpec;

use crate::hot::HotUrl;

/// Greatest number of lanes of one process.
pub const LANES_MAX: usize = 64;
/// Longest name of a group, a node or a topic prefix, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// `sqlite:PATH` or `kafka:HOST:PORT[,HOST:PORT…]`.
pub fn is_log_url(text: &str) -> bool {
    text.strip_prefix("sqlite:").is_some_and(|path| !path.is_empty())
        || text.strip_prefix("kafka:").is_some_and(is_broker_list)
}

/// A name that is safe in file names, topic names and metrics.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && is_topic_prefix(text)
}

/// A name, or nothing.
pub fn is_topic_prefix(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    text.len() <= NAME_BYTES_MAX && text.bytes().all(allowed)
}

/// Beginning of the names of keys in Redis.
pub fn is_key_prefix(text: &str) -> bool {
    is_topic_prefix(&text.replace(':', "."))
}

/// `memory` or the URL of a Redis.
pub fn is_hot_state_url(text: &str) -> bool {
    HotUrl::parse(text).is_some()
}

/// `cpu:N` or `auto`.
pub fn is_device(text: &str) -> bool {
    device_lanes(text, 1).is_some()
}

/// Number of lanes that a device stands for on a machine of so many cores.
pub fn device_lanes(text: &str, cores: usize) -> Option<usize> {
    if text == "auto" {
        return Some(cores.saturating_sub(1).clamp(1, LANES_MAX));
    }
    let digits = text.strip_prefix("cpu:")?;
    let canonical = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|lanes| canonical && (1..=LANES_MAX).contains(lanes))
}

/// Lanes of equal weight, one for each of the devices' lanes in order.
pub fn lanes(devices: &[String], cores: usize) -> Vec<LaneSpec> {
    let count: usize = devices.iter().map(|device| device_lanes(device, cores).unwrap_or(0)).sum();
    let lane = |index: i32| LaneSpec { lane: index, device: format!("cpu:{index}"), weight: 1 };
    (0..count as i32).map(lane).collect()
}

/// A name that librdkafka may know, and that is not Warptape's own to set.
pub fn is_librdkafka_property(name: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && name.bytes().all(allowed) && !KafkaOptions::is_reserved(name)
}

/// Passwords, client secrets, passphrases and private keys, by what such things are called.
pub fn is_secret_name(name: &str) -> bool {
    ["password", "secret", "passphrase", "key.pem", "ssl_key", "sasl.oauthbearer.config"]
        .iter()
        .any(|word| name.contains(word))
}

/// An HTTP address without user information, query and fragment; or nothing.
pub fn is_registry_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")) else {
        return text.is_empty();
    };
    let host = rest.split('/').next().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'@' | b'?' | b'#' | b'"' | b'\\');
    !host.is_empty() && !host.starts_with(':') && rest.bytes().all(plain)
}

/// A user name of HTTP's basic authentication, or nothing.
pub fn is_username(text: &str) -> bool {
    !text.contains(':') && !text.chars().any(char::is_control)
}

/// A bar specification.
pub fn is_bar(text: &str) -> bool {
    text.parse::<warptape_kernels::BarSpec>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices() {
        let check =
            |text: &str, expected: Option<usize>| assert_eq!(device_lanes(text, 8), expected, "{text}");
        check("cpu:1", Some(1));
        check("cpu:64", Some(64));
        check("auto", Some(7));
        for wrong in
            ["", "cpu", "cpu:", "cpu:0", "cpu:65", "cpu:+1", "cpu:01", "cpu:1x", "cuda:0", "AUTO", "cpu:-1"]
        {
            check(wrong, None);
        }
        assert_eq!(device_lanes("auto", 1), Some(1));
        assert_eq!(device_lanes("auto", 1000), Some(LANES_MAX));
    }

    #[test]
    fn lanes_are_numbered_over_all_devices() {
        let devices = ["cpu:2".to_owned(), "cpu:1".to_owned()];
        let names: Vec<_> = lanes(&devices, 8).into_iter().map(|lane| (lane.lane, lane.device)).collect();
        assert_eq!(names, [(0, "cpu:0".to_owned()), (1, "cpu:1".to_owned()), (2, "cpu:2".to_owned())]);
    }

    #[test]
    fn properties_of_librdkafka() {
        for (name, allowed, secret) in [
            ("security.protocol", true, false),
            ("ssl.ca.location", true, false),
            ("ssl.key.location", true, false),
            ("sasl.password", true, true),
            ("ssl.key.password", true, true),
            ("ssl.keystore.password", true, true),
            ("ssl.key.pem", true, true),
            ("sasl.oauthbearer.client.secret", true, true),
            ("sasl.oauthbearer.assertion.private.key.passphrase", true, true),
            ("sasl.oauthbearer.assertion.private.key.pem", true, true),
            ("", false, false),
            ("Security.Protocol", false, false),
            ("a b", false, false),
            ("transactional.id", false, false),
            ("bootstrap.servers", false, false),
        ] {
            assert_eq!((is_librdkafka_property(name), is_secret_name(name)), (allowed, secret), "{name}");
        }
    }

    #[test]
    fn addresses_of_registries() {
        for good in ["", "http://localhost:8081", "https://registry.example/base/path", "http://[::1]:8081"] {
            assert!(is_registry_url(good), "{good}");
        }
        for bad in [
            "localhost:8081",
            "http://",
            "http://:8081",
            "http://u:p@host",
            "http://host?x",
            "ftp://host",
            "http://a b",
        ] {
            assert!(!is_registry_url(bad), "{bad}");
        }
    }

    #[test]
    fn urls_and_names() {
        for (text, expected) in [
            ("sqlite:a.db", true),
            ("sqlite:", false),
            ("a.db", false),
            ("kafka:x", false),
            ("kafka:a:1,b:2", true),
        ] {
            assert_eq!(is_log_url(text), expected, "{text}");
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for (text, expected) in
            [("node-0", true), ("", false), ("a/b", false), ("é", false), (long.as_str(), false)]
        {
            assert_eq!(is_name(text), expected, "{text}");
        }
        assert!(is_topic_prefix(""));
    }
}
