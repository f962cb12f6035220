//! Arguments of `replay diff`.

use clap::Args;

use super::ChainFormat;
use crate::settings::{is_log_url, log_url};

/// Arguments of `warptape replay diff`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A and B are logs: sqlite:PATH, kafka:HOST:PORT, or the path of an embedded log or an export. Both must have the topic names of the
configuration.

Exit status: 0 same configuration, inputs, decisions and signals, apart from times and measurements; 1 different; 2 a log cannot be read.

Example: warptape replay diff monday.db tuesday.db")]
pub struct DiffArgs {
    /// The log to compare with
    #[arg(value_name = "A", value_parser = parse_log)]
    pub a: String,
    /// The log to compare
    #[arg(value_name = "B", value_parser = parse_log)]
    pub b: String,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t = ChainFormat::Table)]
    pub output: ChainFormat,
    /// All columns of tables, uncut, whatever the width of the terminal
    #[arg(long)]
    pub wide: bool,
}

/// Returns the URL of a log that was given as a URL or as the path of its file.
pub(in crate::cli) fn parse_log(text: &str) -> Result<String, String> {
    let url = log_url(text);
    match is_log_url(&url) {
        true => Ok(url),
        false => Err("give sqlite:PATH, kafka:HOST:PORT or the path of a file".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_urls_or_paths() {
        let check = |text: &str, expected: &str| assert_eq!(parse_log(text).as_deref(), Ok(expected));
        check("sqlite:a.db", "sqlite:a.db");
        check("kafka:localhost:9092", "kafka:localhost:9092");
        check("/tmp/a.db", "sqlite:/tmp/a.db");
        assert!(parse_log("").is_err() && parse_log("sqlite:").is_err() && parse_log("kafka:x").is_err());
    }
}
