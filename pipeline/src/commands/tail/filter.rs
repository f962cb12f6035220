//! Filters of rows by symbol, kind, bar and event time.

use std::collections::BTreeSet;

use serde_json::Value;
use warptape_hot::UnknownSymbol;

use super::layouts;
use super::look::Look;
use super::names::Names;
use super::rows::TickRow;
use super::show::branch;
use crate::cli::{BACKWARDS, TailArgs};
use crate::usage_error::UsageError;

/// Greatest number of other values that are kept, to suggest similar ones.
const OTHERS_MAX: usize = 10_000;
/// Greatest number of bars that a message lists.
const BARS_SHOWN: usize = 50;

/// The filters of a command.
pub struct Filter {
    symbol: Option<Wanted>,
    bar: Option<Wanted>,
    /// Wanted kinds; empty for all kinds.
    kinds: Vec<String>,
    since_ns: Option<i64>,
    until_ns: Option<i64>,
}

/// A wanted value of a field.
struct Wanted {
    value: String,
    /// True if some row had the value.
    is_found: bool,
    /// Values of other rows, kept until a row has the wanted one.
    others: BTreeSet<String>,
}

impl Filter {
    /// Checks the filters of the arguments against a topic.
    pub fn new(args: &TailArgs, names: &Names<'_>) -> Result<Self, UsageError> {
        names.check_bar(args.bar.as_deref())?;
        if args.since.zip(args.until).is_some_and(|(since, until)| until <= since) {
            return Err(UsageError(BACKWARDS.to_owned()));
        }
        let wanted = |value: &Option<String>| value.clone().map(Wanted::new);
        Ok(Self {
            symbol: wanted(&args.symbol),
            bar: wanted(&args.bar),
            kinds: names.kinds(&args.kind)?,
            since_ns: args.since,
            until_ns: args.until,
        })
    }

    /// True if a row must be printed. `timestamp_ns` is the time of the row's record.
    pub fn takes(&mut self, row: &TickRow, timestamp_ns: i64) -> bool {
        let layout = layouts::of(row.schema);
        let field = |name: &str| row.fields.get(name);
        let has = |wanted: &mut Option<Wanted>, name: &str| match wanted {
            Some(wanted) => wanted.is_in(field(name)),
            None => true,
        };
        // Both filters see every row, so that each knows whether its value exists.
        let (has_symbol, has_bar) = (has(&mut self.symbol, "symbol"), has(&mut self.bar, layout.bar));
        let kind = field(layout.kind).map_or("", branch);
        let has_kind = self.kinds.is_empty() || self.kinds.iter().any(|wanted| wanted == kind);
        let at_ns = field(layout.time).and_then(Value::as_i64).unwrap_or(timestamp_ns);
        let is_within = self.since_ns.is_none_or(|since_ns| at_ns >= since_ns)
            && self.until_ns.is_none_or(|until_ns| at_ns < until_ns);
        has_symbol && has_bar && has_kind && is_within
    }

    /// Notes the symbol of a row that is not passed to [`Filter::takes`].
    pub fn note_symbol(&mut self, symbol: &str) {
        if let Some(wanted) = &mut self.symbol {
            wanted.note(symbol);
        }
    }

    /// Returns true if some row had the wanted bar, or none is wanted.
    pub fn has_found_bar(&self) -> bool {
        self.bar.as_ref().is_none_or(|bar| bar.is_found)
    }

    /// Returns true if some row had each wanted value.
    pub fn has_found_all(&self) -> bool {
        self.has_found_bar() && self.symbol.as_ref().is_none_or(|symbol| symbol.is_found)
    }

    /// Returns a look that finds the rows with the wanted symbol and time.
    pub fn look(&self) -> Look {
        let symbol = self.symbol.as_ref().map(|symbol| symbol.value.as_str());
        Look::new(symbol, self.since_ns, self.until_ns)
    }

    /// Describes the wanted value that no row had so far; `None` if all were found, or no row was read.
    pub fn missing(&self) -> Option<String> {
        let symbol = self.symbol.as_ref().filter(|wanted| wanted.is_missing());
        let symbol = symbol.map(|Wanted { value, others, .. }| {
            let near = UnknownSymbol::new(value, String::new(), others).near;
            let like = match near.is_empty() {
                true => String::new(),
                false => format!("; did you mean {}?", near.join(" or ")),
            };
            format!("no record of {value:?} so far{like}")
        });
        let bar = || {
            let Wanted { value, others, .. } = self.bar.as_ref().filter(|wanted| wanted.is_missing())?;
            let bars: Vec<&str> = others.iter().take(BARS_SHOWN).map(String::as_str).collect();
            Some(format!("no bar {value:?} so far; it has {}", bars.join(", ")))
        };
        symbol.or_else(bar)
    }
}

impl Wanted {
    fn new(value: String) -> Self {
        Self { value, is_found: false, others: BTreeSet::new() }
    }

    fn is_missing(&self) -> bool {
        !self.is_found && !self.others.is_empty()
    }

    /// True if the field has the wanted value. Remembers other values until then.
    fn is_in(&mut self, field: Option<&Value>) -> bool {
        field.and_then(Value::as_str).is_some_and(|value| self.note(value))
    }

    /// True if the value is the wanted one.
    fn note(&mut self, value: &str) -> bool {
        match value {
            value if value == self.value => {
                self.is_found = true;
                self.others.clear();
                true
            }
            other => {
                if !self.is_found && self.others.len() < OTHERS_MAX && !self.others.contains(other) {
                    self.others.insert(other.to_owned());
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::runtime::Topics;

    fn filter(topic: &str, line: &str) -> Result<Filter, UsageError> {
        let words = ["warptape", "tail", topic].into_iter().chain(line.split_whitespace());
        let Command::Tail(args) = Cli::parse_from(words).command else { panic!("it is tail") };
        Filter::new(&args, &Names::of(topic, &Topics::new("")))
    }

    fn signal(symbol: &str, kind: &str, bar: &str, bar_end_ns: i64) -> TickRow {
        let fields = json!({"symbol": symbol, "kind": kind, "bar_spec": bar, "bar_end_ns": bar_end_ns});
        TickRow { schema: "Signal", index: None, fields }
    }

    #[test]
    fn rows_have_all_that_is_asked_for() {
        let row = signal("V:A", "BAR", "1m", 2_000);
        for (line, expected) in [
            ("", true),
            ("--kind bar", true),
            ("--kind rsi_oversold,bar", true),
            ("--kind rsi-oversold", false),
            ("--bar 60s", true),
            ("--bar 1s", false),
            ("--symbol V:A --bar 1m", true),
            ("--symbol V:B --bar 1m", false),
            ("--since 2000", true),
            ("--since 1970-01-01T00:00:00.000002001Z", false),
            ("--until 2001", true),
            ("--until 2000", false),
        ] {
            let mut filter = filter("signals", line).expect("good filters");
            assert_eq!(filter.takes(&row, 9_000), expected, "{line}");
        }
        let error = filter("signals", "--since 5 --until 5").err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(BACKWARDS));
    }

    #[test]
    fn a_record_without_event_time_goes_by_its_own_time() {
        let row = TickRow { schema: "Feed", index: None, fields: json!({"ticks": 1}) };
        let mut filter = filter("feeds", "--since 5 --until 9").expect("good filters");
        assert!(filter.takes(&row, 5) && !filter.takes(&row, 4) && !filter.takes(&row, 9));
    }

    #[test]
    fn journal_entries_are_of_the_kind_of_their_input() {
        let row =
            |input: Value| TickRow { schema: "JournalEntry", index: None, fields: json!({ "input": input }) };
        let mut filter = filter("journal", "--kind arrived").expect("good filters");
        assert!(filter.takes(&row(json!({"Arrived": {}})), 0) && !filter.takes(&row(json!({"Woke": {}})), 0));
    }

    #[test]
    fn what_no_row_had_is_told() {
        let mut filter = filter("signals", "--bar 5m").expect("good filters");
        assert_eq!(filter.missing(), None);
        filter.takes(&signal("V:A", "BAR", "1s", 1), 0);
        filter.takes(&signal("V:A", "BAR", "1m", 1), 0);
        assert_eq!(filter.missing().as_deref(), Some("no bar \"5m\" so far; it has 1m, 1s"));
        filter.takes(&signal("V:A", "BAR", "5m", 1), 0);
        assert_eq!(filter.missing(), None);
    }
}
