//! Converts the columns of tables to ticks.

use anyhow::{anyhow, bail};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use warptape_pipeline::library::GivenTick;

/// A tick in Python's form: symbol, kind, times in ns, trade id, side, and decimals as text.
pub type Row = (String, String, i64, i64, i64, String, String, String, String, String, String, String);

/// Returns the tick of a row.
pub fn tick_of_row(row: Row) -> GivenTick {
    let (symbol, kind, event_time_ns, receive_time_ns, trade_id, side, ..) = row;
    let (.., price, size, bid_price, bid_size, ask_price, ask_size) = row;
    GivenTick {
        symbol,
        kind,
        event_time_ns,
        receive_time_ns,
        trade_id,
        side,
        price,
        size,
        bid_price,
        bid_size,
        ask_price,
        ask_size,
    }
}

/// Returns the ticks of a batch. Columns have the same names as in the table of ticks; `event_time` is `event_time_ns`.
///
/// # Errors
/// If a column is missing, or has a type that does not fit its values.
pub fn ticks_of_batch(batch: &RecordBatch) -> anyhow::Result<Vec<GivenTick>> {
    let texts = |name: &str| match batch.column_by_name(name) {
        Some(column) => texts(name, &**column),
        None => Ok(vec![String::new(); batch.num_rows()]),
    };
    let integers =
        |names: [&str; 2]| match names.iter().find_map(|name| Some((name, batch.column_by_name(name)?))) {
            Some((name, column)) => integers(name, &**column),
            None => Ok(vec![0; batch.num_rows()]),
        };
    for wanted in [["symbol", "symbol"], ["event_time_ns", "event_time"]] {
        if !wanted.iter().any(|name| batch.column_by_name(name).is_some()) {
            bail!("the table has no column {}; ticks need it", wanted[0]);
        }
    }
    let mut ticks = vec![GivenTick::default(); batch.num_rows()];
    type Field = fn(&mut GivenTick) -> &mut String;
    let fields: [(&str, Field); 9] = [
        ("symbol", |tick| &mut tick.symbol),
        ("kind", |tick| &mut tick.kind),
        ("side", |tick| &mut tick.side),
        ("price", |tick| &mut tick.price),
        ("size", |tick| &mut tick.size),
        ("bid_price", |tick| &mut tick.bid_price),
        ("bid_size", |tick| &mut tick.bid_size),
        ("ask_price", |tick| &mut tick.ask_price),
        ("ask_size", |tick| &mut tick.ask_size),
    ];
    for (name, field) in fields {
        ticks.iter_mut().zip(texts(name)?).for_each(|(tick, text)| *field(tick) = text);
    }
    let times = integers(["event_time_ns", "event_time"])?.into_iter();
    let received = integers(["receive_time_ns", "receive_time"])?;
    let ids = integers(["trade_id", "trade_id"])?;
    for (tick, (event_time_ns, (receive_time_ns, trade_id))) in
        ticks.iter_mut().zip(times.zip(received.into_iter().zip(ids)))
    {
        (tick.event_time_ns, tick.receive_time_ns, tick.trade_id) =
            (event_time_ns, receive_time_ns, trade_id);
    }
    Ok(ticks)
}

/// Returns the values of a column as text, with numbers in decimal form without exponents. Null gives an empty text.
fn texts(name: &str, column: &dyn Array) -> anyhow::Result<Vec<String>> {
    let rows = 0..column.len();
    let each = |of: &dyn Fn(usize) -> String| -> Vec<String> {
        rows.clone().map(|row| if column.is_null(row) { String::new() } else { of(row) }).collect()
    };
    if let Some(coded) = column.as_any_dictionary_opt() {
        // If the dictionary is empty, every row is null, and its keys cannot be normalised.
        if coded.values().is_empty() {
            return Ok(vec![String::new(); column.len()]);
        }
        let (words, keys) = (texts(name, &**coded.values())?, coded.normalized_keys());
        return Ok(each(&|row| words[keys[row]].clone()));
    }
    Ok(match column.data_type() {
        DataType::Utf8 => each(&|row| column.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => each(&|row| column.as_string::<i64>().value(row).to_owned()),
        DataType::Utf8View => each(&|row| column.as_string_view().value(row).to_owned()),
        DataType::Int32 => each(&|row| column.as_primitive::<Int32Type>().value(row).to_string()),
        DataType::Int64 => each(&|row| column.as_primitive::<Int64Type>().value(row).to_string()),
        DataType::UInt32 => each(&|row| column.as_primitive::<UInt32Type>().value(row).to_string()),
        DataType::UInt64 => each(&|row| column.as_primitive::<UInt64Type>().value(row).to_string()),
        DataType::Float32 => each(&|row| column.as_primitive::<Float32Type>().value(row).to_string()),
        DataType::Float64 => each(&|row| column.as_primitive::<Float64Type>().value(row).to_string()),
        DataType::Decimal128(_, _) => {
            let decimals = column.as_primitive::<Decimal128Type>();
            each(&|row| without_zeros(decimals.value_as_string(row)))
        }
        DataType::Null => vec![String::new(); column.len()],
        other => bail!("column {name} has the type {other}; give text, numbers or decimals"),
    })
}

/// Removes zeros at the end of the fraction.
fn without_zeros(mut text: String) -> String {
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    text
}

/// Returns the values of a column as integers, with times in nanoseconds since the epoch. Null gives 0.
fn integers(name: &str, column: &dyn Array) -> anyhow::Result<Vec<i64>> {
    let values: Vec<i64> = match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().values().to_vec(),
        DataType::Int32 => {
            column.as_primitive::<Int32Type>().values().iter().copied().map(i64::from).collect()
        }
        DataType::UInt32 => {
            column.as_primitive::<UInt32Type>().values().iter().copied().map(i64::from).collect()
        }
        DataType::UInt64 => {
            let values = column.as_primitive::<UInt64Type>().values().iter();
            let values = values.map(|value| i64::try_from(*value));
            values
                .collect::<Result<_, _>>()
                .map_err(|_| anyhow!("column {name}: a number does not fit into 64 bits"))?
        }
        // Civil times: the zone of who wrote them is not known.
        DataType::Timestamp(_, None) => bail!(
            "column {name} has times without a zone; give it one, in polars by .dt.replace_time_zone(\"UTC\"), in \
             pandas by .dt.tz_localize(\"UTC\")"
        ),
        DataType::Timestamp(unit, Some(_)) => {
            let (values, unit_ns) = match unit {
                TimeUnit::Nanosecond => (column.as_primitive::<TimestampNanosecondType>().values(), 1),
                TimeUnit::Microsecond => (column.as_primitive::<TimestampMicrosecondType>().values(), 1_000),
                TimeUnit::Millisecond => {
                    (column.as_primitive::<TimestampMillisecondType>().values(), 1_000_000)
                }
                TimeUnit::Second => (column.as_primitive::<TimestampSecondType>().values(), 1_000_000_000),
            };
            let times = values.iter().map(|time| time.checked_mul(unit_ns));
            times.collect::<Option<_>>().ok_or_else(|| anyhow!("column {name}: a time is after 2262"))?
        }
        DataType::Null => vec![0; column.len()],
        other => bail!("column {name} has the type {other}; give a timestamp with a time zone, or integers"),
    };
    // The value of a null row is undefined.
    let is_there = |row: usize| !column.is_null(row);
    Ok(values.into_iter().enumerate().map(|(row, value)| if is_there(row) { value } else { 0 }).collect())
}
