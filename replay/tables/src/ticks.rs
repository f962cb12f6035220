//! Ticks, late ticks and dead letters as rows.

use std::sync::Arc;

use warptape_eventlog::{Record, UnreadableBatch};
use warptape_schemas::tick::{Side, Tick, TickKind};
use warptape_schemas::{
    SchemaSource, SymbolTable, TickColumns, TickDecoder, decode_dead_letter, decode_late_tick,
};

use crate::cell::{Cell, Misfit, price, size};
use crate::declared::{DEAD_LETTERS, LATE, TICKS};
use crate::rows::Rows;
use crate::signals::present;

/// Number of symbols after which a decoder forgets them. No partition of a run may have so many.
const SYMBOLS_MAX: usize = 1 << 20;

/// Decodes the records of a partition of ticks.
pub(crate) struct TickRecords {
    decoder: TickDecoder,
    symbols: SymbolTable,
    columns: TickColumns,
}

impl TickRecords {
    /// Creates a decoder of records. `schemas` has their schemas in a registry.
    pub(crate) fn new(schemas: Option<Arc<dyn SchemaSource>>) -> Self {
        let decoder = TickDecoder::with_source(schemas).by_rows(true);
        Self { decoder, symbols: SymbolTable::default(), columns: TickColumns::default() }
    }

    /// Adds the valid rows of a record, and counts the others.
    pub(crate) fn push(&mut self, partition: i32, record: &Record, rows: &mut Rows) -> Result<(), String> {
        if self.symbols.len() > SYMBOLS_MAX {
            self.symbols.truncate(0);
        }
        self.columns.clear();
        let is_whole = UnreadableBatch::of(record).is_none();
        let decoded =
            is_whole.then(|| self.decoder.decode(&record.value, &mut self.symbols, &mut self.columns));
        let Some(Ok(_)) = decoded else {
            rows.left_out += 1;
            return Ok(());
        };
        rows.left_out += self.columns.rejected.len() as u64;
        for row in self.columns.good_rows() {
            let tick = self.columns.tick(row, &self.symbols);
            let place: [Cell<'_>; 4] =
                [partition.into(), record.offset.into(), (row as i64).into(), record.timestamp_ns.into()];
            let cells = cells(&tick).map_err(|error| format!("row {row}: {error}"))?;
            rows.push(&TICKS, &[&place[..], &cells[..]].concat());
        }
        Ok(())
    }
}

/// Returns a tick's cells for the columns that all tables of ticks share.
fn cells(tick: &Tick) -> Result<[Cell<'_>; 14], Misfit> {
    let is_trade = tick.kind == TickKind::Trade;
    let only = |is_there: bool, cell: Cell<'static>| if is_there { cell } else { Cell::Null };
    let scales = tick.scales;
    let price = |number: i64| price(number, scales.price);
    let size = |number: i64| size(number, scales.size);
    let known = |number: i64| Cell::from(Some(number).filter(|number| *number != 0));
    let quote = |price: Cell<'static>, size: Cell<'static>| match present(price, size) {
        Cell::Null => [Cell::Null; 2],
        price => [price, size].map(|cell| only(!is_trade, cell)),
    };
    let [bid_price, bid_size] = quote(price(tick.bid_price_e9)?, size(tick.bid_size_e9)?);
    let [ask_price, ask_size] = quote(price(tick.ask_price_e9)?, size(tick.ask_size_e9)?);
    Ok([
        tick.symbol.as_str().into(),
        if is_trade { "TRADE" } else { "QUOTE" }.into(),
        tick.event_time_ns.into(),
        known(tick.receive_time_ns),
        known(tick.trade_id),
        match tick.side {
            Side::None => "NONE",
            Side::Buy => "BUY",
            Side::Sell => "SELL",
        }
        .into(),
        only(is_trade, price(tick.price_e9)?),
        only(is_trade, size(tick.size_e9)?),
        bid_price,
        bid_size,
        ask_price,
        ask_size,
        i64::from(scales.price).into(),
        i64::from(scales.size).into(),
    ])
}

/// Adds the row of a late tick. An error says why it cannot be read.
pub(crate) fn push_late(partition: i32, record: &Record, rows: &mut Rows) -> Result<(), String> {
    let late = decode_late_tick(&record.value).map_err(|error| error.to_string())?;
    let tick = late.tick();
    let place: [Cell<'_>; 7] = [
        partition.into(),
        record.offset.into(),
        record.timestamp_ns.into(),
        late.topic.as_str().into(),
        late.partition.into(),
        late.offset.into(),
        late.index.into(),
    ];
    let cells = cells(&tick).map_err(|error| error.to_string())?;
    let lateness: [Cell<'_>; 2] = [late.watermark_ns.into(), late.lateness_ns.into()];
    rows.push(&LATE, &[&place[..], &cells[..], &lateness[..]].concat());
    Ok(())
}

/// Adds the row of a dead letter. An error says why it cannot be read.
pub(crate) fn push_dead_letter(partition: i32, record: &Record, rows: &mut Rows) -> Result<(), String> {
    let letter = decode_dead_letter(&record.value).map_err(|error| error.to_string())?;
    let digest = letter.cut.as_ref().map(|cut| cut.digest.to_string());
    let row = [
        partition.into(),
        record.offset.into(),
        record.timestamp_ns.into(),
        letter.topic.as_str().into(),
        letter.partition.into(),
        letter.offset.into(),
        letter.last_offset.into(),
        letter.reason.name().into(),
        letter.detail.as_str().into(),
        Cell::Ints(&letter.rows),
        letter.key.as_deref().into(),
        letter.value.as_slice().into(),
        letter.cut.as_ref().map(|cut| cut.key_bytes).into(),
        letter.cut.as_ref().map(|cut| cut.value_bytes).into(),
        digest.as_deref().into(),
    ];
    rows.push(&DEAD_LETTERS, &row);
    Ok(())
}
