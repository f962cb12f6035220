//! Names that users may give for the records of a topic: columns, fields and kinds. Fields and kinds come from the
//! topic's schema.

use serde::Deserialize;
use serde_json::Value;
use warptape_schemas::known::KnownSchema;
use warptape_stages::formulas::is_name;

use super::layouts::{self, Column, Layout};
use crate::commands::json::time_name;
use crate::registry::subjects;
use crate::runtime::Topics;
use crate::usage_error::UsageError;

/// The names of a topic.
pub struct Names<'a> {
    topic: &'a str,
    /// Layout of the topic's records.
    pub layout: &'static Layout,
    /// Fields of a record's JSON.
    fields: Vec<&'static str>,
    kinds: Vec<String>,
}

/// An Avro schema of a record, as far as names go.
#[derive(Deserialize)]
struct AvroRecord<'a> {
    #[serde(borrow)]
    fields: Vec<AvroField<'a>>,
}

#[derive(Deserialize)]
struct AvroField<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    of: Value,
}

impl<'a> Names<'a> {
    /// Returns the names of a topic; for a foreign topic, the names that every record has.
    pub fn of(topic: &'a str, topics: &Topics) -> Self {
        let Some(schema) = schema_of(topic, topics) else {
            return Self { topic, layout: layouts::of(""), fields: Vec::new(), kinds: Vec::new() };
        };
        let layout = layouts::of(schema.name);
        let record: AvroRecord<'static> =
            serde_json::from_str(schema.text).expect("a published schema is a record");
        let kind = record.fields.iter().find(|field| field.name == layout.kind);
        let kinds = kind.map_or_else(Vec::new, |field| symbols(&field.of));
        let with_text =
            |field: AvroField<'static>| [Some(field.name), text_name(field.name)].into_iter().flatten();
        Self { topic, layout, fields: record.fields.into_iter().flat_map(with_text).collect(), kinds }
    }

    /// Returns the columns with these names. An error lists the existing names.
    pub fn columns(&self, names: &[String]) -> Result<Vec<Column>, UsageError> {
        names.iter().map(|name| self.column(name)).collect()
    }

    fn column(&self, name: &str) -> Result<Column, UsageError> {
        let wanted = name.trim().to_lowercase().replace(['-', ' '], "_");
        let found = self.own_columns().find(|column| column.name() == wanted);
        let field =
            || self.fields.iter().find(|field| **field == wanted).map(|field| layouts::of_field(field));
        let further = || {
            let name = wanted.strip_prefix("further_indicators.").filter(|name| is_name(name))?;
            self.fields.contains(&"further_indicators").then(|| layouts::of_further(name))
        };
        found.or_else(field).or_else(further).ok_or_else(|| {
            let columns: Vec<String> = self.own_columns().map(|column| column.name()).collect();
            let others = self.fields.iter().filter(|field| !columns.iter().any(|name| name == *field));
            let others: Vec<&str> = others.copied().collect();
            let others = if others.is_empty() {
                String::new()
            } else {
                format!("; further fields: {}", others.join(", "))
            };
            UsageError(format!(
                "--columns: {} has no column {name:?}; its columns: {}{others}",
                self.topic,
                columns.join(", ")
            ))
        })
    }

    fn own_columns(&self) -> impl Iterator<Item = Column> {
        let of_layout = self.layout.columns.iter().copied().filter(|column| column.title != "WRITTEN");
        // A snapshot has its own columns `partition` and `offset`, which come first.
        of_layout.chain([layouts::POSITION, layouts::WRITTEN]).chain(layouts::PLACE)
    }

    /// Returns the kinds with these names, in any case. An error lists the existing names.
    pub fn kinds(&self, names: &[String]) -> Result<Vec<String>, UsageError> {
        let found = |name: &String| {
            let wanted = name.trim().replace('-', "_");
            let kind = self.kinds.iter().find(|kind| kind.eq_ignore_ascii_case(&wanted));
            kind.cloned().ok_or_else(|| {
                UsageError(match self.kinds.is_empty() {
                    true => format!("--kind: records of {} have no kinds; leave it out", self.topic),
                    false => {
                        format!(
                            "--kind: {} has no kind {name:?}; its kinds: {}",
                            self.topic,
                            self.kinds.join(", ")
                        )
                    }
                })
            })
        };
        names.iter().map(found).collect()
    }

    /// Checks that the records have bars if `--bar` is given.
    pub fn check_bar(&self, bar: Option<&str>) -> Result<(), UsageError> {
        match bar {
            Some(_) if self.layout.bar.is_empty() => {
                Err(UsageError(format!("--bar: records of {} have no bars; only signals do", self.topic)))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the newest schema of a topic's records; for the topic of ticks, the schema of a single tick.
fn schema_of(topic: &str, topics: &Topics) -> Option<KnownSchema> {
    let of_topic = subjects(topics).into_iter().filter(|subject| subject.topic == topic);
    of_topic.map(|subject| subject.schema).reduce(|best, schema| {
        if schema.name == best.name && schema.version > best.version { schema } else { best }
    })
}

/// Returns the name of the text field beside a raw integer; `None` for other fields.
fn text_name(field: &'static str) -> Option<&'static str> {
    time_name(field).or_else(|| field.strip_suffix("_e9"))
}

/// Returns the symbols of an enum, or the names of a union's records.
fn symbols(schema: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match schema {
        Value::Array(branches) => branches.iter().flat_map(symbols).collect(),
        Value::Object(object) => match object.get("symbols").and_then(Value::as_array) {
            Some(symbols) => symbols.iter().filter_map(text).collect(),
            None => object.get("name").and_then(text).into_iter().collect(),
        },
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(topic: &str) -> Names<'_> {
        Names::of(topic, &Topics::new("desk."))
    }

    #[test]
    fn columns_are_those_of_the_table_and_the_fields_of_the_schema() {
        let signals = names("desk.signals");
        let chosen = ["Symbol", "bar-end", "rsi", "bar_start", "offset"].map(str::to_owned);
        let found = signals.columns(&chosen).expect("columns");
        let found: Vec<String> = found.iter().map(Column::name).collect();
        assert_eq!(found, ["symbol", "bar_end", "rsi", "bar_start", "offset"]);
        let error = signals.columns(&["colour".to_owned()]).unwrap_err().to_string();
        for part in ["desk.signals has no column \"colour\"", "symbol, bar, kind", "buy_volume", "macd"] {
            assert!(error.contains(part), "{part} is missing in {error}");
        }
        let foreign = names("other").columns(&["symbol".to_owned()]).unwrap_err().to_string();
        assert!(foreign.contains("its columns: record, position, written"), "{foreign}");
    }

    #[test]
    fn kinds_are_symbols_of_an_enum_or_branches_of_a_union() {
        let check = |topic: &str, kind: &str, expected: &str| {
            assert_eq!(names(topic).kinds(&[kind.to_owned()]).expect("a kind"), [expected], "{topic}");
        };
        check("desk.ticks", "trade", "TRADE");
        check("desk.late", "QUOTE", "QUOTE");
        check("desk.signals", "ema-cross-up", "EMA_CROSS_UP");
        check("desk.journal", "arrived", "Arrived");
        check("desk.lifecycle", "lane_lost", "LANE_LOST");
        check("desk.dead-letter", "bad_price", "BAD_PRICE");
        check("desk.risk.results", "riskerror", "RiskError");
        check("desk.control.results", "done", "DONE");
        let error = names("desk.ticks").kinds(&["bar".to_owned()]).unwrap_err().to_string();
        assert!(error.ends_with("desk.ticks has no kind \"bar\"; its kinds: TRADE, QUOTE"), "{error}");
        let error = names("desk.feeds").kinds(&["bar".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("have no kinds"), "{error}");
        assert!(names("desk.signals").check_bar(Some("1m")).is_ok());
        assert!(
            names("desk.ticks").check_bar(Some("1m")).unwrap_err().to_string().contains("only signals do")
        );
    }
}
