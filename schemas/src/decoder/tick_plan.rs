//! Records of one tick.

use apache_avro::schema::RecordSchema;

use super::enum_table::{EnumTable, SIDES, TICK_KINDS};
use super::ordinary_tick;
use super::plan::{Scalar, Shape, Skip, enum_table, mismatch, require, scalar};
use crate::check::{InvalidTick, Longs, Prices, TickProblem, check_row, check_symbol};
use crate::cursor::Cursor;
use crate::error::{DecodeError, SchemaError};
use crate::known;
use crate::long_field::{LONG_FIELD_COUNT, LongField};
use crate::symbol_table::SymbolTable;
use crate::tick::{Side, TickColumns, TickKind};

/// The writer's fields in their order.
#[derive(Debug)]
pub(super) struct TickPlan {
    steps: Vec<TickStep>,
    /// True for the published schema, most of whose records need no steps.
    is_published: bool,
}

#[derive(Debug)]
enum TickStep {
    Symbol,
    Kind(Box<EnumTable<TickKind>>),
    Side(Box<EnumTable<Side>>),
    Long(LongField),
    Skip(Skip),
}

/// One tick as it was read, before its symbol is looked up.
pub(super) struct RawTick<'a> {
    pub(super) symbol: &'a [u8],
    pub(super) kind: TickKind,
    pub(super) side: Side,
    pub(super) longs: Longs,
}

impl TickPlan {
    pub(super) fn compile(record: &RecordSchema, fingerprint: u64) -> Result<Shape<Self>, SchemaError> {
        let reader = known::TICK.name;
        require(reader, record, &["symbol", "kind", "event_time_ns"])?;
        let mut steps = Vec::new();
        for field in &record.fields {
            let name = field.name.as_str();
            let long = LongField::named(name);
            if long.is_none() && !["symbol", "kind", "side"].contains(&name) {
                match Skip::of(&field.schema) {
                    Some(skip) => steps.push(TickStep::Skip(skip)),
                    None => return Ok(Shape::Other),
                }
                continue;
            }
            let Some(found) = scalar(reader, name, &field.schema)? else {
                return Ok(Shape::Other);
            };
            steps.push(match (name, long, found) {
                ("symbol", _, Scalar::Text) => TickStep::Symbol,
                ("kind", _, Scalar::Enum(symbols)) => {
                    TickStep::Kind(Box::new(enum_table(&symbols, &TICK_KINDS)))
                }
                ("side", _, Scalar::Enum(symbols)) => TickStep::Side(Box::new(enum_table(&symbols, &SIDES))),
                (_, Some(long), Scalar::Long) => TickStep::Long(long),
                _ => return Err(mismatch(reader, name)),
            });
        }
        Ok(Shape::Simple(Self { steps, is_published: fingerprint == known::TICK.fingerprint }))
    }

    pub(super) fn decode(
        &self,
        datum: &[u8],
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError> {
        if self.is_published
            && let Some(tick) = ordinary_tick::read(datum)
        {
            return tick.append(symbols, out);
        }
        self.decode_by_steps(datum, symbols, out)
    }

    /// Returns the same plan without the fast reader of ordinary ticks.
    #[cfg(test)]
    pub(super) fn by_steps_only(self) -> Self {
        Self { is_published: false, ..self }
    }

    fn decode_by_steps(
        &self,
        datum: &[u8],
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError> {
        let mut cursor = Cursor::new(datum);
        let mut tick =
            RawTick { symbol: &[], kind: TickKind::Trade, side: Side::None, longs: [0; LONG_FIELD_COUNT] };
        for step in &self.steps {
            match step {
                TickStep::Symbol => tick.symbol = cursor.bytes()?,
                TickStep::Kind(table) => {
                    tick.kind = table.read(&mut cursor)?.map_err(|index| unknown_kind(0, index))?;
                }
                TickStep::Side(table) => {
                    tick.side = table.read(&mut cursor)?.map_err(|index| unknown_side(0, index))?;
                }
                TickStep::Long(field) => tick.longs[*field as usize] = cursor.long()?,
                TickStep::Skip(skip) => skip.pass(&mut cursor)?,
            }
        }
        cursor.finish()?;
        check_row(0, tick.kind, tick.side, &tick.longs, Prices::NotZero)?;
        tick.append(symbols, out)
    }
}

impl RawTick<'_> {
    /// Looks up or numbers the symbol of a tick whose numbers are checked, and appends the tick as a row.
    #[inline]
    pub(super) fn append(
        &self,
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError> {
        let symbol = match symbols.find(self.symbol) {
            Some(symbol) => symbol,
            None => {
                let invalid = |problem| InvalidTick { row: 0, field: "symbol", problem };
                symbols.push(check_symbol(self.symbol).map_err(invalid)?)
            }
        };
        let [event_time, receive_time, trade_id, price, size, bid_price, bid_size, ask_price, ask_size] =
            self.longs;
        out.symbol.push(symbol);
        out.kind.push(self.kind);
        out.event_time_ns.push(event_time);
        out.receive_time_ns.push(receive_time);
        out.trade_id.push(trade_id);
        out.side.push(self.side);
        out.price_e9.push(price);
        out.size_e9.push(size);
        out.bid_price_e9.push(bid_price);
        out.bid_size_e9.push(bid_size);
        out.ask_price_e9.push(ask_price);
        out.ask_size_e9.push(ask_size);
        Ok(1)
    }
}

#[cold]
pub(super) fn unknown_kind(row: usize, index: i64) -> InvalidTick {
    InvalidTick { row, field: "kind", problem: TickProblem::UnknownKind(index) }
}

#[cold]
pub(super) fn unknown_side(row: usize, index: i64) -> InvalidTick {
    InvalidTick { row, field: "side", problem: TickProblem::UnknownSide(index) }
}
