//! Syntax of values such as URLs, names and devices.

use warptape_eventlog::KafkaOptions;
use warptape_eventlog::kafka::is_broker_list;
use warptape_kernels::BarSpec;
use warptape_scheduler::{QUOTA_RATE_MAX, TASKS_MAX, TENANT_WEIGHT_MAX};
use warptape_schemas::journal::{LaneSpec, Quota, TenantWeight};

use warptape_hot::HotUrl;

/// Greatest number of lanes of a process.
pub const LANES_MAX: usize = 64;
/// Greatest number of lanes of a GPU.
pub const GPU_LANES_MAX: usize = 16;
/// Greatest number of stand-by lanes.
const STAND_BY_MAX: usize = 8;
/// Greatest lateness of a venue's ticks: an hour.
const LATENESS_MAX_NS: i64 = 3_600_000_000_000;
/// Longest name of a group, a node or a topic prefix, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Returns true for `sqlite:PATH` and `kafka:HOST:PORT[,HOST:PORT…]`.
pub fn is_log_url(text: &str) -> bool {
    text.strip_prefix("sqlite:").is_some_and(|path| !path.is_empty())
        || text.strip_prefix("kafka:").is_some_and(is_broker_list)
}

/// Returns the URL of a log given as a URL or as the path of its file. A text with a colon before any slash is returned
/// unchanged: it may be a mistyped URL, or a broker.
pub fn log_url(text: &str) -> String {
    let is_path = match text.split_once(':') {
        None => !text.is_empty(),
        Some((before, _)) => before.contains('/'),
    };
    if is_path { format!("sqlite:{text}") } else { text.to_owned() }
}

/// Returns true for a name that is safe in file names, topic names and metrics.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && is_topic_prefix(text)
}

/// Returns true for a name or an empty text.
pub fn is_topic_prefix(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    text.len() <= NAME_BYTES_MAX && text.bytes().all(allowed)
}

/// Parses a tenant and its weight, `TENANT=WEIGHT`.
pub fn tenant_weight(text: &str) -> Option<TenantWeight> {
    let (tenant, weight) = text.split_once('=')?;
    let weight = weight.parse().ok().filter(|weight| (1..=TENANT_WEIGHT_MAX).contains(weight))?;
    is_name(tenant).then(|| TenantWeight { tenant: tenant.to_owned(), weight })
}

/// Returns true for `TENANT=WEIGHT`.
pub fn is_tenant_weight(text: &str) -> bool {
    tenant_weight(text).is_some()
}

/// Parses the quota of a tenant or a cohort of tenants: a name, followed by words with a value each.
pub fn quota(text: &str) -> Option<Quota> {
    let mut words = text.split_whitespace();
    let name = words.next().filter(|name| is_name(name))?.to_owned();
    let mut quota =
        Quota { name, parent: String::new(), guaranteed: 0, lendable: 0, limit: 0, rate_per_s: 0, burst: 1 };
    for word in words {
        let (what, value) = word.split_once('=')?;
        let up_to = |max| value.parse().ok().filter(|number| (0..=max).contains(number));
        match what {
            "parent" if is_name(value) => value.clone_into(&mut quota.parent),
            "guaranteed" => quota.guaranteed = up_to(TASKS_MAX)?,
            "lendable" => quota.lendable = up_to(TASKS_MAX)?,
            "limit" => quota.limit = up_to(TASKS_MAX)?,
            "rate" => quota.rate_per_s = up_to(QUOTA_RATE_MAX)?,
            "burst" => quota.burst = up_to(TASKS_MAX)?,
            _ => return None,
        }
    }
    Some(quota)
}

/// Returns true if [`quota`] can read the text.
pub fn is_quota(text: &str) -> bool {
    quota(text).is_some()
}

/// Returns true for a prefix of keys in Redis.
pub fn is_key_prefix(text: &str) -> bool {
    is_topic_prefix(&text.replace(':', "."))
}

/// Returns true for a numeric address and port to listen on, or an empty text.
pub fn is_listen_address(text: &str) -> bool {
    text.is_empty() || text.parse::<std::net::SocketAddr>().is_ok()
}

/// Returns true for a host name.
pub fn is_host_name(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

/// Returns true for `memory` or the URL of a Redis.
pub fn is_hot_state_url(text: &str) -> bool {
    HotUrl::parse(text).is_some()
}

/// An item of `engine.devices`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceSyntax {
    /// `auto`: all GPUs, or all cores but one.
    Auto,
    /// `cpu:N`: lanes on the CPU.
    Cpu {
        /// Number of lanes: N.
        lanes: usize,
    },
    /// `cuda:N` or `cuda:N#M`: lanes on a GPU.
    Gpu {
        /// Ordinal of the GPU: N.
        ordinal: u32,
        /// Number of lanes: M, or 1 without it.
        lanes: usize,
    },
}

impl DeviceSyntax {
    /// Parses an item; `None` if it has none of these forms.
    pub fn parse(text: &str) -> Option<DeviceSyntax> {
        if text == "auto" {
            return Some(DeviceSyntax::Auto);
        }
        let within = |digits: &str, min: usize, max: usize| {
            let is_canonical = digits == "0" || !digits.starts_with('0');
            let is_number = is_canonical && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|number| is_number && (min..=max).contains(number))
        };
        if let Some(lanes) = text.strip_prefix("cpu:") {
            return Some(DeviceSyntax::Cpu { lanes: within(lanes, 1, LANES_MAX)? });
        }
        let (ordinal, lanes) = match text.strip_prefix("cuda:")?.split_once('#') {
            Some((ordinal, lanes)) => (ordinal, within(lanes, 1, GPU_LANES_MAX)?),
            None => (text.strip_prefix("cuda:")?, 1),
        };
        Some(DeviceSyntax::Gpu { ordinal: within(ordinal, 0, LANES_MAX - 1)? as u32, lanes })
    }
}

/// Returns true for `cpu:N`, `cuda:N`, `cuda:N#M` and `auto`.
pub fn is_device(text: &str) -> bool {
    DeviceSyntax::parse(text).is_some()
}

/// Returns a lane of weight 1 for each lane of the devices, in order, on a machine with `cores` cores and `gpus` usable
/// GPUs. If all of these are on GPUs, stand-by lanes of weight 0 on the CPU follow.
pub fn lanes(devices: &[String], cores: usize, gpus: usize) -> Vec<LaneSpec> {
    let spare_cores = cores.saturating_sub(1);
    // GPU of each lane; `None` for a lane on the CPU.
    let mut places: Vec<Option<u32>> = Vec::new();
    for device in devices.iter().filter_map(|device| DeviceSyntax::parse(device)) {
        match device {
            DeviceSyntax::Auto if gpus > 0 => places.extend((0..gpus as u32).map(Some)),
            DeviceSyntax::Auto => places.extend(std::iter::repeat_n(None, spare_cores.clamp(1, LANES_MAX))),
            DeviceSyntax::Cpu { lanes } => places.extend(std::iter::repeat_n(None, lanes)),
            DeviceSyntax::Gpu { ordinal, lanes } => {
                places.extend(std::iter::repeat_n(Some(ordinal), lanes));
            }
        }
    }
    let at_work = places.len();
    if places.iter().all(Option::is_some) {
        let room = LANES_MAX.saturating_sub(at_work);
        places.extend(std::iter::repeat_n(None, spare_cores.clamp(1, STAND_BY_MAX).min(room)));
    }
    let lane = |(index, place): (usize, &Option<u32>)| {
        let count = |places: &[Option<u32>]| places.iter().filter(|other| *other == place).count();
        let device = match place {
            None => format!("cpu:{index}"),
            Some(ordinal) if count(&places) == 1 => format!("cuda:{ordinal}"),
            Some(ordinal) => format!("cuda:{ordinal}#{}", count(&places[..index])),
        };
        LaneSpec::new(index as i32, device, i32::from(index < at_work))
    };
    places.iter().enumerate().map(lane).collect()
}

/// Returns the GPU of a lane, given the name with which the lane is opened: `cuda:0` for `cuda:0` and `cuda:0#1`.
pub fn gpu_of_lane(device: &str) -> Option<&str> {
    let name = device.split('#').next()?;
    name.starts_with("cuda:").then_some(name)
}

/// Returns true for a name that librdkafka may know, unless Warptape sets that property itself.
pub fn is_librdkafka_property(name: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && name.bytes().all(allowed) && !KafkaOptions::is_reserved(name)
}

/// Returns true for names of passwords, client secrets, passphrases and private keys.
pub fn is_secret_name(name: &str) -> bool {
    ["password", "secret", "passphrase", "key.pem", "ssl_key", "sasl.oauthbearer.config"]
        .iter()
        .any(|word| name.contains(word))
}

/// Returns true for an HTTP address without user information, query and fragment, or an empty text.
pub fn is_registry_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")) else {
        return text.is_empty();
    };
    let host = rest.split('/').next().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'@' | b'?' | b'#' | b'"' | b'\\');
    !host.is_empty() && !host.starts_with(':') && rest.bytes().all(plain)
}

/// Returns true for a user name that HTTP basic authentication allows, or an empty text.
pub fn is_username(text: &str) -> bool {
    !text.contains(':') && !text.chars().any(char::is_control)
}

/// Returns true for a venue and the lateness of its ticks.
pub fn is_venue_lateness(text: &str) -> bool {
    venue_lateness(text).is_some()
}

/// Parses a venue and the lateness of its ticks, in nanoseconds: `BYBIT=5s`.
pub fn venue_lateness(text: &str) -> Option<(String, i64)> {
    let (venue, lateness) = text.split_once('=')?;
    let is_venue = !venue.is_empty() && !venue.contains([':', ' ']);
    match lateness.parse() {
        Ok(BarSpec::Time { interval_ns }) if is_venue && interval_ns <= LATENESS_MAX_NS => {
            Some((venue.to_owned(), interval_ns))
        }
        _ => None,
    }
}

/// Returns true for a bar specification.
pub fn is_bar(text: &str) -> bool {
    text.parse::<BarSpec>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices() {
        let check = |text: &str, expected: DeviceSyntax| {
            assert_eq!(DeviceSyntax::parse(text), Some(expected), "{text}");
        };
        check("auto", DeviceSyntax::Auto);
        check("cpu:1", DeviceSyntax::Cpu { lanes: 1 });
        check("cpu:64", DeviceSyntax::Cpu { lanes: 64 });
        check("cuda:0", DeviceSyntax::Gpu { ordinal: 0, lanes: 1 });
        check("cuda:63#16", DeviceSyntax::Gpu { ordinal: 63, lanes: 16 });
        check("cuda:10#1", DeviceSyntax::Gpu { ordinal: 10, lanes: 1 });
        for wrong in [
            "",
            "cpu",
            "cpu:",
            "cpu:0",
            "cpu:65",
            "cpu:+1",
            "cpu:01",
            "cpu:1x",
            "AUTO",
            "cpu:-1",
            "cpu:1#2",
            "cuda",
            "cuda:",
            "cuda:00",
            "cuda:-1",
            "cuda:64",
            "cuda:0#",
            "cuda:0#0",
            "cuda:0#17",
            "cuda:#1",
            "cuda:0#1#1",
            "cuda:0 ",
            "cuda:٣",
        ] {
            assert!(!is_device(wrong), "{wrong}");
        }
    }

    #[test]
    fn lanes_are_numbered_over_all_devices() {
        let check = |devices: &[&str], cores: usize, gpus: usize, expected: &[&str]| {
            let devices: Vec<_> = devices.iter().map(|device| device.to_string()).collect();
            let lanes = lanes(&devices, cores, gpus);
            let names: Vec<_> = lanes.iter().map(|lane| lane.device.as_str()).collect();
            assert_eq!(names, expected, "{devices:?}");
            assert!(lanes.iter().enumerate().all(|(index, lane)| lane.lane == index as i32));
            lanes.iter().filter(|lane| lane.weight == 0).count()
        };
        assert_eq!(check(&["cuda:0"], 1, 1, &["cuda:0", "cpu:1"]), 1);
        assert_eq!(check(&["auto"], 3, 2, &["cuda:0", "cuda:1", "cpu:2", "cpu:3"]), 2);
        assert_eq!(check(&["auto", "cpu:1"], 3, 1, &["cuda:0", "cpu:1"]), 0);
        assert_eq!(lanes(&["auto".to_owned()], 1000, 1).len(), 1 + STAND_BY_MAX);
        assert_eq!(lanes(&[0, 1, 2, 3].map(|gpu| format!("cuda:{gpu}#15")), 1000, 4).len(), LANES_MAX);
        check(&["cpu:2", "cpu:1"], 8, 0, &["cpu:0", "cpu:1", "cpu:2"]);
        check(&["cpu:1"], 8, 2, &["cpu:0"]);
        check(&["auto"], 4, 0, &["cpu:0", "cpu:1", "cpu:2"]);
        check(&["auto"], 1, 0, &["cpu:0"]);
        check(&["cuda:1"], 2, 2, &["cuda:1", "cpu:1"]);
        check(&["cuda:0#2", "cpu:1", "cuda:1"], 8, 2, &["cuda:0#0", "cuda:0#1", "cpu:2", "cuda:1"]);
        check(&["cuda:0", "auto"], 2, 2, &["cuda:0#0", "cuda:0#1", "cuda:1", "cpu:3"]);
        assert_eq!(lanes(&["auto".to_owned()], 1000, 0).len(), LANES_MAX);
        assert_eq!(["cuda:3", "cuda:3#12", "cpu:3"].map(gpu_of_lane), [Some("cuda:3"), Some("cuda:3"), None]);
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
        for (text, expected) in [
            ("sqlite:a.db", "sqlite:a.db"),
            ("kafka:localhost:9092", "kafka:localhost:9092"),
            ("/tmp/a.db", "sqlite:/tmp/a.db"),
            ("./night-10:00.db", "sqlite:./night-10:00.db"),
            ("postgres:x", "postgres:x"),
            ("broker-1:9092", "broker-1:9092"),
            ("10.0.0.5:9092", "10.0.0.5:9092"),
            ("", ""),
        ] {
            assert_eq!(log_url(text), expected);
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
