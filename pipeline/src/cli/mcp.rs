//! Arguments of `mcp`, which offers the commands to assistants as tools.

use std::path::PathBuf;

use clap::{Args, value_parser};

use super::replay::parse_log;

/// Arguments of `warptape mcp`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
An assistant's client starts this command and calls its tools over standard input and output (Model Context Protocol). The tools verify and
explain a recorded run: report, verify, slowest, why, why_not, diff, what_if, topics, tail and metrics. They only read, unless --allow-writes
names a folder. Texts in answers come from the log: producers wrote symbols and identifiers.

The client's configuration, with absolute paths:
  {\"mcpServers\": {\"warptape\": {\"command\": \"/usr/bin/warptape\", \"args\": [\"mcp\", \"--log\", \"sqlite:/var/lib/warptape/market.db\"]}}}

Example: warptape mcp --log sqlite:market.db --endpoint http://127.0.0.1:9464")]
pub struct McpArgs {
    /// Further log that tools may read, besides that of --log; may be given for several logs
    #[arg(long, value_name = "URL", value_parser = parse_log)]
    pub other_log: Vec<String>,
    /// Endpoint of a running pipeline, whose metrics and health the tool `metrics` reads: http://HOST:PORT. It gets
    /// endpoint.token
    #[arg(long, value_name = "URL", value_parser = parse_endpoint)]
    pub endpoint: Option<String>,
    /// Folder in which the tools write_report, write_timeline and write_model may create files (default: there are no
    /// such tools)
    #[arg(long, value_name = "FOLDER")]
    pub allow_writes: Option<PathBuf>,
    /// Longest time of a call, in seconds
    #[arg(long, value_name = "S", default_value_t = 300, value_parser = value_parser!(u64).range(1..=86_400))]
    pub timeout_s: u64,
}

/// Returns the URL without its last slash.
fn parse_endpoint(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match host.map(|host| host.trim_end_matches('/')) {
        Some(host) if !host.is_empty() && !host.contains(['/', '?', '#', '@']) => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        _ => Err("give http://HOST:PORT or https://HOST:PORT".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_scheme_and_a_host() {
        assert_eq!(parse_endpoint("http://127.0.0.1:9464/").as_deref(), Ok("http://127.0.0.1:9464"));
        for wrong in
            ["", "127.0.0.1:9464", "http://", "file:///etc/passwd", "http://a/metrics", "http://u:p@a"]
        {
            assert!(parse_endpoint(wrong).is_err(), "{wrong}");
        }
    }
}
