//! The printed rows of one record: a batch of ticks has one row for each tick.

use serde_json::{Map, Value};

use super::look::Rows;

/// One row.
pub struct TickRow {
    /// Schema name. Rows of a batch have the name of the schema with their fields: `ScaledTickBatch` with scales,
    /// otherwise that of a single tick.
    pub schema: &'static str,
    /// Index within the record; `None` unless the record is a batch.
    pub index: Option<usize>,
    /// The fields as an object.
    pub fields: Value,
}

impl TickRow {
    /// Returns the row's symbol; `None` for rows of a kind without one.
    pub fn symbol(&self) -> Option<&str> {
        self.fields.get("symbol")?.as_str()
    }
}

/// Returns the rows of a decoded record.
pub fn rows(schema: &'static str, value: Value) -> Vec<TickRow> {
    rows_of(schema, value, &Rows::Any)
}

/// Returns the wanted rows of a decoded record.
pub fn rows_of(schema: &'static str, value: Value, wanted: &Rows) -> Vec<TickRow> {
    match value {
        Value::Object(columns) if columns.contains_key("symbols") => {
            let schema = if columns.contains_key("price_scale") { "ScaledTickBatch" } else { "Tick" };
            ticks(schema, &columns, wanted)
        }
        fields => vec![TickRow { schema, index: None, fields }],
    }
}

/// Returns the ticks of a batch. The batch has a dictionary of symbols, an index into it for each tick, and an array
/// for each other field. Fields missing in a bad record are null.
fn ticks(schema: &'static str, columns: &Map<String, Value>, wanted: &Rows) -> Vec<TickRow> {
    let array = |name: &str| columns.get(name).and_then(Value::as_array);
    let (Some(dictionary), Some(symbols)) = (array("symbols"), array("symbol")) else { return Vec::new() };
    let row = |(index, symbol): (usize, &Value)| {
        let name = symbol.as_u64().and_then(|symbol| dictionary.get(usize::try_from(symbol).ok()?));
        let mut fields = Map::from_iter([("symbol".to_owned(), name.cloned().unwrap_or_default())]);
        for (column, values) in columns {
            let value = match column.as_str() {
                "symbols" | "symbol" => continue,
                // Scales are arrays by symbol of the dictionary, not by tick.
                "price_scale" | "size_scale" => {
                    symbol.as_u64().and_then(|symbol| values.get(usize::try_from(symbol).ok()?))
                }
                _ => values.get(index),
            };
            let is_empty = values.as_array().is_some_and(Vec::is_empty);
            let default = if is_empty { default_of(column) } else { Value::Null };
            fields.insert(column.clone(), value.cloned().unwrap_or(default));
        }
        TickRow { schema, index: Some(index), fields: Value::Object(fields) }
    };
    symbols.iter().enumerate().filter(|(index, _)| wanted.have(*index)).map(row).collect()
}

/// Returns the default of a column that a batch leaves empty; null for a column that must not be empty.
fn default_of(column: &str) -> Value {
    match column {
        "kind" | "event_time_ns" => Value::Null,
        "side" => "NONE".into(),
        _ => 0.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_batch_is_one_row_for_each_tick() {
        let batch = json!({
            "symbols": ["A:X", "B:Y"], "symbol": [1, 0, 1], "kind": ["TRADE", "QUOTE", "TRADE"], "price_e9": [1, 2, 3],
        });
        let rows = rows("TickBatch", batch);
        assert!(rows.iter().all(|row| row.schema == "Tick"));
        let rows: Vec<_> = rows.into_iter().map(|row| (row.index, row.fields)).collect();
        assert_eq!(
            rows,
            [
                (Some(0), json!({"symbol": "B:Y", "kind": "TRADE", "price_e9": 1})),
                (Some(1), json!({"symbol": "A:X", "kind": "QUOTE", "price_e9": 2})),
                (Some(2), json!({"symbol": "B:Y", "kind": "TRADE", "price_e9": 3})),
            ]
        );
    }

    #[test]
    fn a_column_that_is_left_empty_has_its_default_in_every_row() {
        let batch = json!({
            "symbols": ["A:X"], "symbol": [0], "kind": [], "side": [], "trade_id": [], "price_e9": [7],
        });
        let rows: Vec<_> = rows("PackedTickBatch", batch).into_iter().map(|row| row.fields).collect();
        let expected = json!({"symbol": "A:X", "kind": null, "side": "NONE", "trade_id": 0, "price_e9": 7});
        assert_eq!(rows, [expected]);
    }

    #[test]
    fn rows_have_the_scales_of_their_entries() {
        let batch = json!({
            "symbols": ["A:X", "A:X"], "price_scale": [9, 2], "size_scale": [0, 9], "symbol": [1, 0], "price": [700, 5],
        });
        let rows = rows("PackedTickBatch", batch);
        assert!(rows.iter().all(|row| row.schema == "ScaledTickBatch"), "a Tick has no such fields");
        let fields: Vec<_> = rows.into_iter().map(|row| row.fields).collect();
        assert_eq!(
            fields,
            [
                json!({"symbol": "A:X", "price_scale": 2, "size_scale": 9, "price": 700}),
                json!({"symbol": "A:X", "price_scale": 9, "size_scale": 0, "price": 5}),
            ]
        );
    }

    #[test]
    fn any_other_record_is_one_row() {
        let rows = rows("Signal", json!({"symbol": "A:X", "value": 1.5}));
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].symbol(), rows[0].index), (Some("A:X"), None));
    }
}
