//! Arguments of `top`.

use clap::Args;

/// Arguments of `warptape top`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Shows a running pipeline in the terminal: its state in words, rates, lag and latency, candles, lanes, signals, decisions with reasons, risk and
stores. The key ? lists the keys, and q quits. Without a terminal the command prints a line every 5 s.

An endpoint with a token needs it here as endpoint.token, such as in WARPTAPE__ENDPOINT__TOKEN. NO_COLOR turns colours off. See docs/top.md.

Example: warptape top --endpoint http://127.0.0.1:9464")]
pub struct TopArgs {
    /// Endpoint of the running pipeline (default: that of endpoint.listen, or http://127.0.0.1:9464)
    #[arg(long, value_name = "URL", value_parser = parse_endpoint)]
    pub endpoint: Option<String>,
}

/// Parses the URL of an endpoint. Returns it without slashes at its end.
fn parse_endpoint(text: &str) -> Result<String, String> {
    let url = text.trim_end_matches('/');
    let is_whole = |rest: &str| !rest.is_empty() && !rest.contains(['/', '?', '#', ' ', '@']);
    match url.split_once("://") {
        Some(("http" | "https", rest)) if is_whole(rest) => Ok(url.to_owned()),
        _ => Err("give the URL of an endpoint without a path, such as http://127.0.0.1:9464".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_url_without_a_path() {
        for (text, url) in [
            ("http://127.0.0.1:9464/", "http://127.0.0.1:9464"),
            ("https://tape.example.com", "https://tape.example.com"),
            ("http://[::1]:9464", "http://[::1]:9464"),
        ] {
            assert_eq!(parse_endpoint(text).as_deref(), Ok(url));
        }
        for wrong in
            ["", "127.0.0.1:9464", "http://", "ftp://a", "http://a/metrics", "http://a?b", "http://u:p@a"]
        {
            assert!(
                parse_endpoint(wrong).is_err_and(|error| error.contains("http://127.0.0.1:9464")),
                "{wrong:?}"
            );
        }
    }
}
