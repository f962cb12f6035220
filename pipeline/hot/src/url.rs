//! The URL of hot state: `memory`, or a Redis with its password, which is never printed.

use std::fmt;
use std::sync::Once;

use redis::{Client, IntoConnectionInfo};

/// Place of the hot state: the log alone, or a Redis or Valkey server.
#[derive(Clone, PartialEq, Eq)]
pub enum HotUrl {
    /// Only in the log: each query computes its answer from it.
    Memory,
    /// A Redis or Valkey server: `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, or `rediss://` for TLS.
    Redis(RedisUrl),
}

/// URL of a server. When printed, it has `***` instead of the password.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl(String);

impl HotUrl {
    /// The allowed forms, in words.
    pub const ALLOWED: &'static str =
        "`memory`, or redis://[USER:PASSWORD@]HOST[:PORT][/DB], or rediss:// and the same for TLS";

    /// Parses a URL; `None` for a text of another form than [`Self::ALLOWED`].
    pub fn parse(text: &str) -> Option<Self> {
        if text == "memory" {
            return Some(Self::Memory);
        }
        let is_redis = text.starts_with("redis://") || text.starts_with("rediss://");
        // The client would ignore parameters or, worse, stop checking certificates.
        let is_plain = is_redis && !text.contains(['?', '#']) && text.into_connection_info().is_ok();
        is_plain.then(|| Self::Redis(RedisUrl(text.to_owned())))
    }
}

impl RedisUrl {
    /// Returns a client for this server. It does not connect yet.
    pub(super) fn client(&self) -> redis::RedisResult<Client> {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // An error means that another part of the process has already chosen a provider, which works as well.
            drop(rustls::crypto::ring::default_provider().install_default());
        });
        Client::open(self.0.as_str())
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(&self.0))
    }
}

impl fmt::Display for HotUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Redis(url) => url.fmt(f),
        }
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for HotUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the text with `***` between `://USER:` or `kafka:USER:` and the last `@`, even if it is not a valid URL.
pub fn without_password(text: &str) -> String {
    let hidden = || {
        let rest = text.strip_prefix("kafka:").or_else(|| Some(text.split_once("://")?.1))?;
        let scheme = &text[..text.len() - rest.len()];
        let (user, host) = rest.rsplit_once('@')?;
        let (name, _) = user.split_once(':')?;
        Some(format!("{scheme}{name}:***@{host}"))
    };
    hidden().unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allowed() {
        for text in [
            "memory",
            "redis://localhost",
            "redis://127.0.0.1:6380/3",
            "redis://:pw@cache",
            "rediss://user:p%40ss@cache.example:6390",
            "redis://[::1]:6379",
        ] {
            assert!(HotUrl::parse(text).is_some(), "{text}");
        }
        for text in [
            "",
            "Memory",
            "localhost:6379",
            "redis:localhost",
            "redis://",
            "redis://0.0.0.0",
            "redis://cache/db",
            "redis://cache:port",
            "http://cache",
            "rediss://cache/#insecure",
            "redis://cache?protocol=resp3",
            "unix:///run/redis.sock",
        ] {
            assert_eq!(HotUrl::parse(text), None, "{text}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        let check = |text: &str, shown: &str| assert_eq!(without_password(text), shown);
        check("redis://:secret@cache:6379/0", "redis://:***@cache:6379/0");
        check("rediss://user:se:cr@et@cache", "rediss://user:***@cache");
        check("rdis//:typo@x", "rdis//:typo@x");
        check("rdis://:secret@x", "rdis://:***@x");
        check("redis://user@cache", "redis://user@cache");
        check("redis://cache", "redis://cache");
        check("kafka:user:secret@host:9092", "kafka:user:***@host:9092");
        check("kafka:one:9092,two:9092", "kafka:one:9092,two:9092");
        check("sqlite:a@b.db", "sqlite:a@b.db");
        check("memory", "memory");
        let url = HotUrl::parse("redis://u:secret@cache").unwrap();
        assert_eq!(format!("{url} {url:?}"), "redis://u:***@cache redis://u:***@cache");
    }
}
