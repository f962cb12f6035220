//! Arguments of `replay debug`.

use std::fmt::Write;

use clap::{Args, ValueEnum};
use warptape_replay::debugger::{FIELDS, Predicate};
use warptape_replay::history::Bound;

use super::chain::{parse_bound, parse_time};
use crate::cli::count::parse_count_from_one;

/// Arguments of `warptape replay debug`.
#[derive(Clone, Debug, Args)]
#[command(after_help = after_help())]
pub struct DebugArgs {
    /// Begin at this entry: its sequence, a time such as 2026-11-24T03:01:00Z, or `offset:N` (default: the first entry)
    #[arg(long, value_name = "SEQUENCE|TIME", value_parser = parse_bound)]
    pub at: Option<Bound>,
    /// Condition to stop on, such as 'lane=cuda:1 && queue>1000'
    #[arg(long = "break", value_name = "CONDITION", value_parser = parse_condition)]
    pub condition: Option<Predicate>,
    /// Partition of the journal: the ordinal of the process
    #[arg(long, value_name = "ORDINAL", default_value_t = 0)]
    pub partition: i32,
    /// Print the next entries that meet the condition, and end: for scripts, without a terminal
    #[arg(short, long, value_enum)]
    pub output: Option<DebugFormat>,
    /// Number of entries to print
    #[arg(long, value_name = "N", default_value = "10", value_parser = parse_count_from_one, requires = "output")]
    pub count: u64,
}

/// How entries are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DebugFormat {
    /// A line for each entry, with a line below it for each decision
    Table,
    /// One JSON object a line for each entry
    Json,
}

fn after_help() -> String {
    let mut text = "\
Keys: n next entry, p previous entry, PageDown and PageUp move by 100, g goes to a sequence or time, b sets a condition, c and C search for
it forwards and backwards, up and down select a decision, e explains it, ? lists all keys, q quits.

A condition compares fields with = != < <= > >= and joins comparisons with && || ! and parentheses; a value with blanks stands in double
quotes. All comparisons apply to the same thing: 'lane=1 && queue>1000' is about the queue of lane 1, 'decision=Dispatch && lane=1' about
dispatches to lane 1. A comparison of a missing field, such as the batch of a Pause, is false. The fields are:
"
    .to_owned();
    for (_, name, meaning) in FIELDS {
        writeln!(text, "  {name:<10} {meaning}").expect("a string takes any text");
    }
    text + "\n\
Example: warptape replay debug --at 2026-11-24T03:01:00Z --break 'decision=Dispatch && reason=DEADLINE' --log sqlite:market.db
         warptape replay debug --break 'lane=cuda:1 && queue>1000' -o json --count 3 --log sqlite:market.db"
}

/// Parses a condition; times in it are RFC 3339.
pub fn parse_condition(text: &str) -> Result<Predicate, String> {
    Predicate::parse(text, &|time| parse_time(time).ok()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions() {
        assert!(parse_condition("at>=1970-01-01T00:00:02Z && lane=cuda:1").is_ok());
        assert!(parse_condition("at>=yesterday").unwrap_err().contains("a time such as"));
    }

    /// Every field is in the help and on the page.
    #[test]
    fn every_field_is_documented() {
        let page = include_str!("../../../../docs/debugger.md");
        for (field, name, meaning) in FIELDS {
            assert_eq!(field.name(), name);
            assert!(after_help().contains(&format!("  {name:<10} {meaning}\n")), "{name} in --help");
            assert!(page.contains(&format!("| `{name}` | {meaning} |")), "{name} in docs/debugger.md");
        }
    }
}
