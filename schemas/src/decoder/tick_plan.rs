//! Records of one tick.

use apache_avro::schema::RecordSchema;

use super::enum_table::{EnumTable, SIDES, TICK_KINDS};
use super::plan::{Scalar, Shape, Skip, enum_table, mismatch, require, scalar};
use crate::check::{InvalidTick, Longs, TickProblem, check_row, check_symbol};
use crate::cursor::Cursor;
use crate::error::{DecodeError, SchemaError};
use crate::known;
use crate::long_field::{LONG_FIELD_COUNT, LongField};
use crate::symbol_table::SymbolTable;
use crate::tick::{Side, TickColumns, TickKind};

/// The writer's fields in their order.
///
/// Once the kind is known, so is which of the fields behind it must be zero. They are next to each other in our schema,
/// and four zeros are four bytes: one comparison instead of four numbers.
#[derive(Debug)]
pub(super) struct TickPlan {
    /// Up to the kind.
    head: Vec<Step>,
    /// Behind the kind, for each kind.
    tails: [Vec<Step>; 2],
}

#[derive(Clone, Debug)]
enum Step {
    Symbol,
    Kind(Box<EnumTable<TickKind>>),
    Side(Box<EnumTable<Side>>),
    /// Numbers that follow each other in the writer's order as in ours: the first, and the one behind the last.
    Longs(usize, usize),
    /// Fields of the other kind of tick: this many zero bytes, or else what the steps make of them.
    Zeros(usize, Vec<Step>),
    Skip(Skip),
}

/// One tick as it comes off the wire, its symbol not looked up yet.
pub(super) struct RawTick<'a> {
    pub(super) symbol: &'a [u8],
    pub(super) kind: TickKind,
    pub(super) side: Side,
    pub(super) longs: Longs,
}

impl TickPlan {
    pub(super) fn compile(record: &RecordSchema) -> Result<Shape<Self>, SchemaError> {
        let reader = known::TICK.name;
        require(reader, record, &["symbol", "kind", "event_time_ns"])?;
        let mut steps = Vec::new();
        for field in &record.fields {
            let name = field.name.as_str();
            let long = LongField::named(name);
            if long.is_none() && !["symbol", "kind", "side"].contains(&name) {
                match Skip::of(&field.schema) {
                    Some(skip) => steps.push(Step::Skip(skip)),
                    None => return Ok(Shape::Other),
                }
                continue;
            }
            let Some(found) = scalar(reader, name, &field.schema)? else {
                return Ok(Shape::Other);
            };
            steps.push(match (name, long, found) {
                ("symbol", _, Scalar::Text) => Step::Symbol,
                ("kind", _, Scalar::Enum(symbols)) => Step::Kind(Box::new(enum_table(&symbols, &TICK_KINDS))),
                ("side", _, Scalar::Enum(symbols)) => Step::Side(Box::new(enum_table(&symbols, &SIDES))),
                (_, Some(long), Scalar::Long) => Step::Longs(long as usize, long as usize + 1),
                _ => return Err(mismatch(reader, name)),
            });
        }
        Ok(Shape::Simple(Self::of(&steps)))
    }

    /// From one step for each field.
    fn of(steps: &[Step]) -> Self {
        let is_kind = |step: &Step| matches!(step, Step::Kind(_));
        let behind_kind = steps.iter().position(is_kind).map_or(steps.len(), |kind| kind + 1);
        let (head, tail) = steps.split_at(behind_kind);
        let tail_of = |kind: TickKind| {
            let zeros = tail
                .iter()
                .map(|step| if step.is_foreign(kind) { step.clone().into_zeros() } else { step.clone() });
            merged(zeros)
        };
        Self {
            head: merged(head.iter().cloned()),
            tails: [tail_of(TickKind::Trade), tail_of(TickKind::Quote)],
        }
    }

    pub(super) fn decode(
        &self,
        datum: &[u8],
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError> {
        let mut cursor = Cursor::new(datum);
        let mut tick =
            RawTick { symbol: &[], kind: TickKind::Trade, side: Side::None, longs: [0; LONG_FIELD_COUNT] };
        for step in &self.head {
            tick.read(step, &mut cursor)?;
        }
        for step in &self.tails[tick.kind as usize] {
            tick.read(step, &mut cursor)?;
        }
        cursor.finish()?;
        tick.append(symbols, out)
    }
}

impl Step {
    /// Whether a tick of this kind has a zero byte there.
    fn is_foreign(&self, kind: TickKind) -> bool {
        match (self, kind) {
            (Step::Longs(field, _), TickKind::Trade) => *field >= LongField::BidPrice as usize,
            (Step::Longs(field, _), TickKind::Quote) => {
                (LongField::TradeId as usize..=LongField::Size as usize).contains(field)
            }
            (Step::Side(table), TickKind::Quote) => table.of_zero() == Some(Side::None),
            _ => false,
        }
    }

    fn into_zeros(self) -> Self {
        Step::Zeros(1, vec![self])
    }
}

/// The same steps, but fewer.
fn merged(steps: impl Iterator<Item = Step>) -> Vec<Step> {
    let mut merged = Vec::<Step>::new();
    for step in steps {
        match (merged.last_mut(), step) {
            (Some(Step::Longs(_, end)), Step::Longs(field, field_end)) if *end == field => *end = field_end,
            (Some(Step::Zeros(count, otherwise)), Step::Zeros(more, steps)) => {
                *count += more;
                otherwise.extend(steps);
            }
            (_, step) => merged.push(step),
        }
    }
    merged
}

impl<'a> RawTick<'a> {
    #[inline(always)]
    fn read(&mut self, step: &Step, cursor: &mut Cursor<'a>) -> Result<(), DecodeError> {
        match step {
            Step::Zeros(count, otherwise) => {
                if !cursor.pass_zeros(*count) {
                    return otherwise.iter().try_for_each(|step| self.read_foreign(step, cursor));
                }
            }
            Step::Symbol => self.symbol = cursor.bytes()?,
            Step::Kind(table) => self.kind = table.read(cursor)?.map_err(|index| unknown_kind(0, index))?,
            Step::Side(table) => self.side = table.read(cursor)?.map_err(|index| unknown_side(0, index))?,
            Step::Longs(start, end) => cursor.few_longs(&mut self.longs[*start..*end])?,
            Step::Skip(skip) => skip.pass(cursor)?,
        }
        Ok(())
    }

    /// A field of the other kind that is not simply zero: bad, or written in more bytes than it needs.
    #[cold]
    fn read_foreign(&mut self, step: &Step, cursor: &mut Cursor<'a>) -> Result<(), DecodeError> {
        match step {
            Step::Longs(field, _) => self.longs[*field] = cursor.long()?,
            Step::Side(table) => self.side = table.read(cursor)?.map_err(|index| unknown_side(0, index))?,
            other => unreachable!("only numbers and sides are foreign to a kind: {other:?}"),
        }
        Ok(())
    }
}

impl RawTick<'_> {
    /// Checks the tick, numbers its symbol and appends it as a row.
    #[inline]
    pub(super) fn append(
        &self,
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError> {
        check_row(0, self.kind, self.side, &self.longs)?;
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
