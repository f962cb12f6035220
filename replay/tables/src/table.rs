//! Tables and their columns, as declared in `declared`. Schemas and documentation are derived from them. Cells of rows
//! are in the order of columns.

use std::fmt::Write;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::declared::{BATCHES, COMMITS, DEAD_LETTERS, DECISIONS, LATE, LATENCIES, SIGNALS, TASKS, TICKS};

/// Digits of a decimal column: as many as fit in 128 bits.
pub const DECIMAL_DIGITS: u8 = 38;
/// Digits after the decimal point of prices: the finest scale that ticks may have.
pub const PRICE_SCALE: u8 = 18;
/// Digits after the decimal point of sizes and volumes.
pub const SIZE_SCALE: u8 = 9;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// True or false.
    Bool,
    /// 64-bit integers.
    Int,
    /// Lists of 32-bit integers.
    Ints,
    /// 64-bit floating point numbers.
    Float,
    /// UTF-8.
    Text,
    /// UTF-8 with few different values, encoded with a dictionary. Arrow files have it as [`ColumnKind::Text`].
    Word,
    /// Bytes.
    Bytes,
    /// Times in UTC, in nanoseconds.
    Time,
    /// Prices: decimal numbers with [`PRICE_SCALE`] digits after the point.
    Price,
    /// Sizes and volumes: decimal numbers with [`SIZE_SCALE`] digits after the point.
    Size,
}

impl ColumnKind {
    fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int64",
            Self::Ints => "list(int32)",
            Self::Float => "float64",
            Self::Text => "utf8",
            Self::Word => "dictionary(utf8)",
            Self::Bytes => "binary",
            Self::Time => "timestamp(ns, UTC)",
            Self::Price => "decimal128(38, 18)",
            Self::Size => "decimal128(38, 9)",
        }
    }

    /// Returns the Arrow type of the column.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int => DataType::Int64,
            Self::Ints => DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true))),
            Self::Float => DataType::Float64,
            Self::Text => DataType::Utf8,
            Self::Word => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Self::Bytes => DataType::Binary,
            Self::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            Self::Price => DataType::Decimal128(DECIMAL_DIGITS, PRICE_SCALE as i8),
            Self::Size => DataType::Decimal128(DECIMAL_DIGITS, SIZE_SCALE as i8),
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column; the names of durations and times end in the unit.
    pub name: &'static str,
    /// Type of the column.
    pub kind: ColumnKind,
    /// True if a cell may be null.
    pub is_nullable: bool,
    /// Meaning of the column.
    pub words: &'static str,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name of the table, and of its file without the extension.
    pub name: &'static str,
    /// Meaning of a row.
    pub words: &'static str,
    /// Columns of the table.
    pub columns: &'static [Column],
}

impl Table {
    /// Returns the declared table of that name; `None` if there is none.
    pub fn named(name: &str) -> Option<&'static Self> {
        TABLES.into_iter().find(|table| table.name == name)
    }

    /// Returns the Arrow schema of the table.
    pub fn schema(&self) -> SchemaRef {
        self.schema_of(ColumnKind::data_type)
    }

    /// Returns the schema of the table with other types.
    pub(crate) fn schema_of(&self, data_type: impl Fn(ColumnKind) -> DataType) -> SchemaRef {
        let field = |column: &Column| Field::new(column.name, data_type(column.kind), column.is_nullable);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }
}

pub(crate) const fn column(
    name: &'static str,
    kind: ColumnKind,
    is_nullable: bool,
    words: &'static str,
) -> Column {
    Column { name, kind, is_nullable, words }
}

/// Declares functions with short names for columns of each kind.
macro_rules! kinds {
    ($($name:ident: $kind:ident, $is_nullable:literal;)+) => {
        $(pub(crate) const fn $name(name: &'static str, words: &'static str) -> Column {
            column(name, ColumnKind::$kind, $is_nullable, words)
        })+
    };
}

kinds! {
    maybe_bool: Bool, true;
    int: Int, false;
    maybe_int: Int, true;
    float: Float, false;
    maybe_float: Float, true;
    text: Text, false;
    maybe_text: Text, true;
    word: Word, false;
    maybe_word: Word, true;
    bytes: Bytes, false;
    maybe_bytes: Bytes, true;
    time: Time, false;
    maybe_time: Time, true;
    maybe_price: Price, true;
    maybe_size: Size, true;
}

/// All tables.
pub static TABLES: [&Table; 9] =
    [&SIGNALS, &TICKS, &LATE, &DEAD_LETTERS, &DECISIONS, &BATCHES, &TASKS, &COMMITS, &LATENCIES];

/// Returns the documentation of all tables, as Markdown.
pub fn documented() -> String {
    let mut text = String::new();
    for table in TABLES {
        let Table { name, words, columns } = table;
        let _ = write!(
            text,
            "\n### {name}\n\n{words}\n\n| column | type | null | what |\n| --- | --- | --- | --- |\n"
        );
        for Column { name, kind, is_nullable, words } in *columns {
            let null = if *is_nullable { "yes" } else { "" };
            let _ = writeln!(text, "| `{name}` | {} | {null} | {words} |", kind.name());
        }
    }
    text
}
