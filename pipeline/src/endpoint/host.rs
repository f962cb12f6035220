//! The host name in requests to the endpoint.
//!
//! The check protects against DNS rebinding. In this attack, a foreign page makes its own name resolve to this machine,
//! and the browser then lets the page read data from here. The browser sends that name along, so requests with foreign
//! names are refused. An address as host is safe, because no page can own it.

use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header};

/// Returns the host name or address in a request, without its port, in lower case; `None` if the request has none.
/// Browsers always send one.
pub(super) fn of(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let named = match uri.authority() {
        Some(authority) => authority.as_str(),
        // A header that is not text cannot be an allowed name.
        None => headers.get(header::HOST)?.to_str().unwrap_or("?"),
    };
    Some(without_port(named).trim_end_matches('.').to_ascii_lowercase())
}

/// True if the host is localhost, an address, or one of `names`.
pub(super) fn is_own(host: &str, names: &[String]) -> bool {
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let is_local = host == "localhost" || host.ends_with(".localhost");
    is_local || address.parse::<IpAddr>().is_ok() || names.iter().any(|name| name == host)
}

fn without_port(named: &str) -> &str {
    match named.rfind(':') {
        // An IPv6 address contains colons, and is in brackets.
        Some(colon) if named.find(']').is_none_or(|bracket| bracket < colon) => &named[..colon],
        _ => named,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn names_of_others_are_not_own() {
        let names = ["tape.example.com".to_owned()];
        let check = |host: &str, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_str(host).expect("a header"));
            let host = of(&Uri::from_static("/metrics"), &headers).expect("a name");
            assert_eq!(is_own(&host, &names), expected, "{host}");
        };
        for host in [
            "localhost",
            "LOCALHOST:9464",
            "localhost.",
            "a.localhost:1",
            "127.0.0.1:9464",
            "[::1]:9464",
            "[::1]",
        ] {
            check(host, true);
        }
        for host in ["10.1.2.3", "192.168.0.9:9464", "tape.example.com", "Tape.Example.Com:9464"] {
            check(host, true);
        }
        for host in [
            "evil.example",
            "evil.example:9464",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            ":9464",
            "[::1",
        ] {
            check(host, false);
        }
        let absolute = Uri::from_static("http://evil.example/metrics");
        assert_eq!(of(&absolute, &HeaderMap::new()).as_deref(), Some("evil.example"));
        assert_eq!(of(&Uri::from_static("/metrics"), &HeaderMap::new()), None);
    }
}
