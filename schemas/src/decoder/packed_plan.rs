//! Records of many ticks, by columns of a fixed width.

use apache_avro::Schema;
use apache_avro::schema::RecordSchema;

use super::batch_plan::{
    judge, read_of_entries, read_symbols, skip_array, with_scaled_name, with_scaled_names,
};
use super::dictionary::Dictionary;
use super::packed_columns::{Columns, PackedRecord};
use super::packed_entries::{Entries, EntryField};
use super::plan::{Skip, mismatch, require};
use crate::ROWS_MAX;
use crate::check::{PRICE_SCALE, Prices, SIZE_SCALE};
use crate::cursor::Cursor;
use crate::error::{DecodeError, SchemaError};
use crate::known;
use crate::long_field::LongField;
use crate::symbol_table::SymbolTable;
use crate::tick::TickColumns;

/// The writer's fields in their order, and memory that all records use.
#[derive(Debug)]
pub(super) struct PackedPlan {
    steps: Vec<PackedStep>,
    entries: Entries,
    columns: Columns,
}

#[derive(Clone, Copy, Debug)]
enum PackedStep {
    Symbols,
    PriceScales,
    SizeScales,
    Entries(EntryField),
    Number(NumberField),
    Bytes(BytesField),
    Skip(Skip),
    SkipArray(Skip),
}

#[derive(Clone, Copy, Debug)]
enum NumberField {
    Rows,
    EventTimeBase,
    EventTimeUnit,
    ReceiveTimeBase,
    ReceiveTimeUnit,
}

#[derive(Clone, Copy, Debug)]
enum BytesField {
    Quotes,
    Symbol,
    Side,
    Long(LongField),
}

impl PackedPlan {
    pub(super) fn compile(record: &RecordSchema) -> Result<Self, SchemaError> {
        let reader = known::PACKED_TICK_BATCH.name;
        let required = ["symbols", "rows", "event_time_base_ns", "event_time_unit_ns", "event_time_ns"];
        require(reader, record, &required)?;
        let step = |name: &str, schema: &Schema| match PackedStep::of(name) {
            Some(step) if step.has_type(schema) => Ok(step),
            Some(_) => Err(mismatch(reader, name)),
            None => PackedStep::skip(schema).ok_or_else(|| SchemaError::Unresolvable {
                name: reader,
                detail: format!("the field {name} is nested; leave it out"),
            }),
        };
        let steps = record.fields.iter().map(|field| step(&field.name, &field.schema));
        Ok(Self {
            steps: steps.collect::<Result<_, _>>()?,
            entries: Entries::default(),
            columns: Columns::default(),
        })
    }

    pub(super) fn decode(
        &mut self,
        datum: &[u8],
        by_rows: bool,
        dictionary: &mut Dictionary,
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError> {
        let start = out.len();
        let are_valid = self.unpack(datum, by_rows, dictionary, symbols, out)?;
        dictionary.scale_rows(start, by_rows, out)?;
        let prices = if are_valid { None } else { Some(Prices::Any) };
        let judged = judge(start, by_rows, prices, dictionary, symbols, out);
        out.rejected.iter_mut().for_each(with_scaled_name);
        judged.map_err(with_scaled_names)?;
        Ok(out.len() - start)
    }

    /// Appends the rows, with dictionary indexes in place of symbol numbers. Returns true if all values are certainly
    /// valid.
    pub(super) fn unpack(
        &mut self,
        datum: &[u8],
        by_rows: bool,
        dictionary: &mut Dictionary,
        symbols: &SymbolTable,
        out: &mut TickColumns,
    ) -> Result<bool, DecodeError> {
        let record = self.read(datum, dictionary, symbols)?;
        let rows = match usize::try_from(record.rows) {
            Ok(0) => return Err(DecodeError::NoRows),
            Ok(rows @ 1..=ROWS_MAX) => rows,
            _ => return Err(DecodeError::TooManyRows { field: "event_time_ns" }),
        };
        dictionary.default_scales();
        self.entries.finish(dictionary.len())?;
        self.columns.append(&record, rows, &self.entries, by_rows, out)
    }

    fn read<'a>(
        &mut self,
        datum: &'a [u8],
        dictionary: &mut Dictionary,
        symbols: &SymbolTable,
    ) -> Result<PackedRecord<'a>, DecodeError> {
        dictionary.clear();
        self.entries.clear();
        let (mut cursor, mut record) = (Cursor::new(datum), PackedRecord::default());
        for step in &self.steps {
            match *step {
                PackedStep::Symbols => read_symbols(&mut cursor, dictionary, symbols)?,
                PackedStep::PriceScales => {
                    read_of_entries(&mut cursor, PRICE_SCALE, dictionary.price_scales_mut())?;
                }
                PackedStep::SizeScales => {
                    read_of_entries(&mut cursor, SIZE_SCALE, dictionary.size_scales_mut())?;
                }
                PackedStep::Entries(field) => {
                    read_of_entries(&mut cursor, field.name(), self.entries.numbers_mut(field))?;
                }
                PackedStep::Number(field) => *field.of(&mut record) = cursor.long()?,
                PackedStep::Bytes(field) => *field.of(&mut record) = cursor.bytes()?,
                PackedStep::Skip(skip) => skip.pass(&mut cursor)?,
                PackedStep::SkipArray(skip) => skip_array(&mut cursor, skip)?,
            }
        }
        cursor.finish()?;
        Ok(record)
    }
}

/// A record of the published schema, whose values were not checked.
pub(crate) struct Unpacked {
    pub(crate) symbols: Vec<String>,
    /// Scales of prices and sizes, by symbol.
    pub(crate) scales: Vec<[i64; 2]>,
    /// The rows, with indexes into `symbols` in place of symbol numbers.
    pub(crate) columns: TickColumns,
}

impl Unpacked {
    /// Reads a record; `schema` is the published one.
    pub(crate) fn read(schema: &Schema, datum: &[u8]) -> Result<Self, DecodeError> {
        let Schema::Record(record) = schema else { panic!("the published schema is a record") };
        let mut plan = PackedPlan::compile(record).expect("a published schema has a plan");
        let (mut dictionary, mut columns) = (Dictionary::default(), TickColumns::default());
        plan.unpack(datum, false, &mut dictionary, &SymbolTable::default(), &mut columns)?;
        let (mut symbols, mut scales) = (Vec::new(), Vec::new());
        for (symbol, of_symbol) in (0..dictionary.len()).filter_map(|index| dictionary.entry(index)) {
            let text = std::str::from_utf8(symbol);
            let text = text.map_err(|_| Cursor::new(datum).malformed("a string that is not UTF-8"))?;
            symbols.push(text.to_owned());
            scales.push(of_symbol);
        }
        Ok(Self { symbols, scales, columns })
    }
}

impl PackedStep {
    /// Returns the step of a published field; `None` for other fields.
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "symbols" => Self::Symbols,
            PRICE_SCALE => Self::PriceScales,
            SIZE_SCALE => Self::SizeScales,
            "rows" => Self::Number(NumberField::Rows),
            "event_time_base_ns" => Self::Number(NumberField::EventTimeBase),
            "event_time_unit_ns" => Self::Number(NumberField::EventTimeUnit),
            "receive_time_base_ns" => Self::Number(NumberField::ReceiveTimeBase),
            "receive_time_unit_ns" => Self::Number(NumberField::ReceiveTimeUnit),
            "quotes" => Self::Bytes(BytesField::Quotes),
            "symbol" => Self::Bytes(BytesField::Symbol),
            "side" => Self::Bytes(BytesField::Side),
            _ => match (EntryField::named(name), LongField::scaled_named(name)) {
                (Some(field), _) => Self::Entries(field),
                (None, field) => Self::Bytes(BytesField::Long(field?)),
            },
        })
    }

    /// Returns the step over a field of another name; `None` if it has parts. Arrays whose items take no bytes are
    /// refused: a few bytes could claim millions of items to skip.
    fn skip(schema: &Schema) -> Option<Self> {
        match schema {
            Schema::Array(array) => {
                Skip::of(&array.items).filter(|skip| !matches!(skip, Skip::Fixed(0))).map(Self::SkipArray)
            }
            schema => Skip::of(schema).map(Self::Skip),
        }
    }

    /// True if a writer's field has the type of the published one.
    fn has_type(self, schema: &Schema) -> bool {
        let is_number = |schema: &Schema| matches!(schema, Schema::Int | Schema::Long);
        match (self, schema) {
            (Self::Symbols, Schema::Array(array)) => matches!(*array.items, Schema::String),
            (Self::PriceScales | Self::SizeScales | Self::Entries(_), Schema::Array(array)) => {
                is_number(&array.items)
            }
            (Self::Number(_), schema) => is_number(schema),
            (Self::Bytes(_), schema) => matches!(schema, Schema::Bytes),
            _ => false,
        }
    }
}

impl NumberField {
    fn of<'r>(self, record: &'r mut PackedRecord<'_>) -> &'r mut i64 {
        match self {
            Self::Rows => &mut record.rows,
            Self::EventTimeBase => &mut record.event_time.base,
            Self::EventTimeUnit => &mut record.event_time.unit,
            Self::ReceiveTimeBase => &mut record.receive_time.base,
            Self::ReceiveTimeUnit => &mut record.receive_time.unit,
        }
    }
}

impl BytesField {
    fn of<'r, 'a>(self, record: &'r mut PackedRecord<'a>) -> &'r mut &'a [u8] {
        match self {
            Self::Quotes => &mut record.quotes,
            Self::Symbol => &mut record.symbol,
            Self::Side => &mut record.side,
            Self::Long(field) => &mut record.longs[field as usize],
        }
    }
}
