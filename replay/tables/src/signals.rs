//! Signals as rows.

use serde_json::json;
use warptape_eventlog::{EventLog, OffsetRange, Record, TopicPartition};
use warptape_replay::{PartitionReader, ReplayError};
use warptape_schemas::decode_signal;
use warptape_schemas::signal::{Bar, ExactBar, ExactFlow, INDICATORS};

use crate::TablesError;
use crate::sink::{Cell, Sinks};
use crate::table::SIGNALS;

/// Writes the signals of a partition; `progress` gets the number of offsets read in each step.
pub(crate) fn write(
    log: &dyn EventLog,
    source: TopicPartition,
    range: OffsetRange,
    sinks: &mut Sinks,
    progress: &mut dyn FnMut(i64),
) -> Result<(), TablesError> {
    let mut reader = PartitionReader::open(log, source.clone(), range)?;
    let mut last = range.first;
    while let Some(record) = reader.next()? {
        push(log, &source, &record, sinks)?;
        progress(record.offset + 1 - last);
        last = record.offset + 1;
    }
    progress(range.next - last);
    Ok(())
}

fn push(
    log: &dyn EventLog,
    source: &TopicPartition,
    record: &Record,
    sinks: &mut Sinks,
) -> Result<(), TablesError> {
    let signal = decode_signal(&record.value).map_err(|error| ReplayError::RecordUnreadable {
        url: log.url(),
        topic: source.topic.clone(),
        partition: source.partition,
        offset: record.offset,
        error: error.to_string(),
    })?;
    let bar = signal.bar.as_ref();
    let exact = bar.and_then(|bar| bar.exact.as_ref()).map(exact_text);
    let further = bar.filter(|bar| !bar.further_indicators.is_empty());
    let further = further.map(|bar| json!(bar.further_indicators).to_string());
    let number = |of: fn(&Bar) -> Option<i64>| Cell::from(bar.and_then(of));
    let mut row = vec![
        source.partition.into(),
        record.offset.into(),
        record.timestamp_ns.into(),
        (&*signal.symbol).into(),
        signal.kind.name().into(),
        (&*signal.bar_spec).into(),
        signal.bar_start_ns.into(),
        signal.bar_end_ns.into(),
        signal.source_offset.into(),
        signal.source_index.into(),
        signal.value.into(),
        signal.threshold.into(),
        number(|bar| bar.open_e9),
        number(|bar| bar.high_e9),
        number(|bar| bar.low_e9),
        number(|bar| bar.close_e9),
        bar.map(|bar| bar.volume_e9).into(),
        bar.map(|bar| bar.trades).into(),
        number(|bar| bar.bid_price_e9),
        number(|bar| bar.ask_price_e9),
        exact.as_deref().into(),
    ];
    row.extend((0..INDICATORS.len()).map(|index| Cell::from(bar.and_then(|bar| bar.indicators[index]))));
    row.push(further.as_deref().into());
    row.push(bar.and_then(|bar| bar.partial).into());
    row.extend([
        number(|bar| bar.buy_volume_e9),
        number(|bar| bar.sell_volume_e9),
        number(|bar| bar.buy_trades),
        number(|bar| bar.sell_trades),
        number(|bar| bar.bid_size_e9),
        number(|bar| bar.ask_size_e9),
    ]);
    row.push(bar.and_then(|bar| bar.quote_forgotten).into());
    let exact_flow = bar.and_then(|bar| bar.exact_flow.as_ref()).map(exact_flow_text);
    row.push(exact_flow.as_deref().into());
    sinks.push(&SIGNALS, &row)
}

fn exact_text(exact: &ExactBar) -> String {
    let ExactBar { open, high, low, close, volume, bid_price, ask_price } = exact;
    let numbers = [
        ("open_e18", open.0),
        ("high_e18", high.0),
        ("low_e18", low.0),
        ("close_e18", close.0),
        ("volume_e9", volume.0),
        ("bid_price_e18", bid_price.0),
        ("ask_price_e18", ask_price.0),
    ];
    text_of(numbers)
}

fn exact_flow_text(exact: &ExactFlow) -> String {
    let ExactFlow { buy_volume, sell_volume, bid_size, ask_size } = exact;
    text_of([
        ("buy_volume_e9", buy_volume.0),
        ("sell_volume_e9", sell_volume.0),
        ("bid_size_e9", bid_size.0),
        ("ask_size_e9", ask_size.0),
    ])
}

/// Integers as JSON text.
fn text_of<const N: usize>(numbers: [(&str, i128); N]) -> String {
    let fields = numbers.map(|(name, number)| (name.to_owned(), number.to_string().into()));
    serde_json::Value::Object(fields.into_iter().collect()).to_string()
}
