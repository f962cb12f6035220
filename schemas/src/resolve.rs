//! Resolves data written with an older version of a schema to the current one by Avro's rules.
//!
//! A journal has an entry for each step of the scheduler, and most entries of the previous version keep their bytes in
//! the current one. The two schemas are therefore compared once, and a datum is rewritten from bytes to bytes; equal
//! parts are not copied. Beyond Avro's rules, a text of hex digits may become the bytes. Tests compare the results with apache-avro's values.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use apache_avro::Schema;
use apache_avro::schema::RecordField;
use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;

use crate::cursor::Cursor;
use crate::describe;
use crate::error::DecodeError;
use crate::hex;
use crate::known::{self, KnownSchema};
use crate::varint::put_long;
use crate::wire::Wire;

/// Rules for rewriting each older version to the current one, by the older version's fingerprint.
static RESOLUTIONS: LazyLock<BTreeMap<u64, Part>> = LazyLock::new(|| {
    let resolution = |writer: &KnownSchema| {
        let reader = known::CURRENT.iter().find(|reader| reader.name == writer.name);
        let reader = reader.expect("a record with an older version has a current one");
        // The texts are part of the program, and a test resolves data of each version.
        (writer.fingerprint, Part::new(&parsed(*writer), &parsed(*reader)).expect("versions can be resolved"))
    };
    known::OLD.iter().map(resolution).collect()
});

fn parsed(schema: KnownSchema) -> Schema {
    Schema::parse_str(schema.text).expect("a published schema parses")
}

/// Returns a datum of `writer`, one of [`known::OLD`], in the current version.
pub(crate) fn resolve(writer: KnownSchema, datum: &[u8]) -> Result<Cow<'_, [u8]>, DecodeError> {
    RESOLUTIONS[&writer.fingerprint].rewrite(datum)
}

/// Rules for rewriting a part of a writer's datum for the reader.
struct Part {
    /// True if every value of this part has the same bytes in both versions, and each index has the same meaning. An
    /// enum or union with new members is not the same, because the walk must check that older data do not use them.
    is_same: bool,
    content: Content,
}

enum Content {
    Null,
    Boolean,
    Int,
    Long,
    Double,
    String,
    Bytes,
    /// Number of bytes.
    Fixed(usize),
    /// A text of hex digits that became so many bytes.
    Digits(usize),
    /// Reader's index for each of the writer's.
    Enum(Vec<usize>),
    Array(Box<Part>),
    /// The values of a map; keys are strings.
    Map(Box<Part>),
    /// Reader's index, and the rules for the value, for each of the writer's indexes.
    Union(Vec<(usize, Part)>),
    /// The reader has a union where the writer has none: the index of the writer's type in the union.
    Branch(usize, Box<Part>),
    Record {
        fields: Vec<Field>,
        /// Index of the first field from which on all fields are the same.
        same_from: usize,
    },
}

/// A field of the reader.
enum Field {
    /// The writer has the field as well.
    Kept(Part),
    /// The writer does not have the field; the bytes of its default.
    New(Vec<u8>),
}

/// The reason why two schemas are not versions of one record.
type Mismatch = String;

impl Part {
    /// Returns the rules for rewriting a datum of `writer` for `reader`. Fields must be kept, in the same order.
    /// Branches of unions and symbols of enums are matched by name, and must be kept.
    fn new(writer: &Schema, reader: &Schema) -> Result<Self, Mismatch> {
        Versions { writer, reader }.part(writer, reader)
    }

    fn rewrite<'a>(&self, datum: &'a [u8]) -> Result<Cow<'a, [u8]>, DecodeError> {
        let mut rewriting = Rewriting { datum, cursor: Cursor::new(datum), copied: 0, out: Vec::new() };
        if let Walk::Settled = rewriting.walk(self, true)? {
            return Ok(Cow::Borrowed(datum));
        }
        rewriting.cursor.finish()?;
        if rewriting.is_unchanged() {
            return Ok(Cow::Borrowed(datum));
        }
        rewriting.out.extend_from_slice(&datum[rewriting.copied..]);
        Ok(Cow::Owned(rewriting.out))
    }
}

/// Two versions of a schema, whose parts may refer to definitions by name.
struct Versions<'a> {
    writer: &'a Schema,
    reader: &'a Schema,
}

impl Versions<'_> {
    fn part(&self, writer: &Schema, reader: &Schema) -> Result<Part, Mismatch> {
        let writer = describe::definition(self.writer, writer);
        let reader = describe::definition(self.reader, reader);
        let (is_same, content) = match (writer, reader) {
            (Schema::Null, Schema::Null) => (true, Content::Null),
            (Schema::Boolean, Schema::Boolean) => (true, Content::Boolean),
            (Schema::Int, Schema::Int) => (true, Content::Int),
            (Schema::Long, Schema::Long) => (true, Content::Long),
            (Schema::Double, Schema::Double) => (true, Content::Double),
            (Schema::String, Schema::String) => (true, Content::String),
            (Schema::Bytes, Schema::Bytes) => (true, Content::Bytes),
            (Schema::Fixed(writer), Schema::Fixed(reader)) if writer.size == reader.size => {
                (true, Content::Fixed(writer.size))
            }
            (Schema::String, Schema::Fixed(reader)) => (false, Content::Digits(reader.size)),
            (Schema::Enum(writer), Schema::Enum(reader)) => {
                let index_of = |symbol: &String| {
                    let index = reader.symbols.iter().position(|other| other == symbol);
                    index.ok_or_else(|| format!("the enum {} lost its symbol {symbol}", reader.name))
                };
                let indices = writer.symbols.iter().map(index_of).collect::<Result<_, _>>()?;
                (writer.symbols == reader.symbols, Content::Enum(indices))
            }
            (Schema::Array(writer), Schema::Array(reader)) => {
                let items = self.part(&writer.items, &reader.items)?;
                (items.is_same, Content::Array(Box::new(items)))
            }
            (Schema::Map(writer), Schema::Map(reader)) => {
                let values = self.part(&writer.types, &reader.types)?;
                (values.is_same, Content::Map(Box::new(values)))
            }
            (Schema::Union(writer), Schema::Union(reader)) => {
                let branches = writer.variants().iter().map(|branch| self.branch(branch, reader.variants()));
                let branches = branches.collect::<Result<Vec<_>, _>>()?;
                let is_same = writer.variants().len() == reader.variants().len()
                    && (0..).zip(&branches).all(|(index, (other, part))| index == *other && part.is_same);
                (is_same, Content::Union(branches))
            }
            (writer, Schema::Union(reader)) => {
                let (index, part) = self.branch(writer, reader.variants())?;
                (false, Content::Branch(index, Box::new(part)))
            }
            (Schema::Record(writer), Schema::Record(reader)) => {
                let fields = self.fields(&writer.fields, &reader.fields)?;
                let is_same = |field: &Field| matches!(field, Field::Kept(part) if part.is_same);
                let same_from = fields.iter().rposition(|field| !is_same(field)).map_or(0, |last| last + 1);
                (same_from == 0, Content::Record { fields, same_from })
            }
            (writer, reader) => return Err(format!("{writer:?} cannot become {reader:?}")),
        };
        Ok(Part { is_same, content })
    }

    /// Returns the reader's branch for a schema of the writer.
    fn branch(&self, writer: &Schema, readers: &[Schema]) -> Result<(usize, Part), Mismatch> {
        let same = |reader: &Schema| match (writer.name(), reader.name()) {
            (Some(writer), Some(reader)) => writer == reader,
            _ => writer == reader,
        };
        let index = readers.iter().position(same);
        let index = index.ok_or_else(|| format!("no branch for {writer:?}"))?;
        Ok((index, self.part(writer, &readers[index])?))
    }

    fn fields(&self, writers: &[RecordField], readers: &[RecordField]) -> Result<Vec<Field>, Mismatch> {
        let mut writers = writers.iter().peekable();
        let mut fields = Vec::with_capacity(readers.len());
        for reader in readers {
            let field = match writers.next_if(|writer| writer.name == reader.name) {
                Some(writer) => Field::Kept(self.part(&writer.schema, &reader.schema)?),
                None => Field::New(self.default_of(reader)?),
            };
            fields.push(field);
        }
        match writers.next() {
            Some(writer) => Err(format!("the field {} went or moved", writer.name)),
            None => Ok(fields),
        }
    }

    /// Returns the bytes of a field's default.
    fn default_of(&self, field: &RecordField) -> Result<Vec<u8>, Mismatch> {
        let default = field.default.clone().ok_or_else(|| format!("{} has no default", field.name))?;
        let schema = describe::definition(self.reader, &field.schema);
        let bytes = Value::try_from(default)
            .and_then(|value| value.resolve(schema))
            .and_then(|value| GenericDatumWriter::builder(schema).build()?.write_value_to_vec(value));
        bytes.map_err(|error| format!("the default of {}: {error}", field.name))
    }
}

/// A datum while it is rewritten to another version.
struct Rewriting<'a> {
    datum: &'a [u8],
    cursor: Cursor<'a>,
    /// Number of bytes of the datum that are already copied to `out`, or replaced there.
    copied: usize,
    /// The rewritten datum; empty until something differs.
    out: Vec<u8>,
}

/// The result of a walk over a part.
enum Walk {
    /// The cursor is now after the part.
    Passed,
    /// The rest of the datum has the same bytes in both versions, so the walk may stop.
    Settled,
}

impl Rewriting<'_> {
    fn is_unchanged(&self) -> bool {
        self.out.is_empty()
    }

    /// Walks over a part, and writes the differences. `rest_is_same` is true if all later parts are the same.
    fn walk(&mut self, part: &Part, rest_is_same: bool) -> Result<Walk, DecodeError> {
        if part.is_same && rest_is_same && self.is_unchanged() {
            return Ok(Walk::Settled);
        }
        match &part.content {
            Content::Null => {}
            Content::Boolean => _ = bool::get(&mut self.cursor)?,
            Content::Int => _ = self.cursor.int()?,
            Content::Long => _ = self.cursor.long()?,
            Content::Double => _ = self.cursor.double()?,
            Content::String => _ = self.cursor.string()?,
            Content::Bytes => _ = self.cursor.bytes()?,
            Content::Fixed(size) => _ = self.cursor.take(*size)?,
            Content::Digits(size) => {
                self.flush(self.cursor.position());
                let bytes = hex::bytes(self.cursor.bytes()?).filter(|bytes| bytes.len() == *size);
                let bytes = bytes.ok_or_else(|| self.cursor.malformed("a hash that is not of hex digits"))?;
                self.out.extend_from_slice(&bytes);
                self.copied = self.cursor.position();
            }
            Content::Enum(readers) => {
                let start = self.cursor.position();
                let index = self.index("no such symbol of an enum", readers)?;
                self.replace(start, index, readers[index]);
            }
            // Sizes of blocks are not adjusted, because our readers ignore them.
            Content::Array(items) => loop {
                let count = self.cursor.block()?;
                if count == 0 {
                    break;
                }
                for _ in 0..count {
                    self.walk(items, false)?;
                }
            },
            Content::Map(values) => loop {
                let count = self.cursor.block()?;
                if count == 0 {
                    break;
                }
                for _ in 0..count {
                    self.cursor.bytes()?;
                    self.walk(values, false)?;
                }
            },
            Content::Union(readers) => {
                let start = self.cursor.position();
                let index = self.index("no such branch of a union", readers)?;
                let (reader, part) = &readers[index];
                self.replace(start, index, *reader);
                return self.walk(part, rest_is_same);
            }
            Content::Branch(index, part) => {
                self.flush(self.cursor.position());
                put_long(*index as i64, &mut self.out);
                return self.walk(part, rest_is_same);
            }
            Content::Record { fields, same_from } => {
                for (position, field) in fields.iter().enumerate() {
                    match field {
                        Field::Kept(part) => {
                            let walk = self.walk(part, rest_is_same && *same_from <= position + 1)?;
                            if let Walk::Settled = walk {
                                return Ok(walk);
                            }
                        }
                        Field::New(bytes) => {
                            self.flush(self.cursor.position());
                            self.out.extend_from_slice(bytes);
                        }
                    }
                }
            }
        }
        Ok(Walk::Passed)
    }

    /// Reads the writer's index of an enum or union with the members `known`.
    fn index<T>(&mut self, unknown: &'static str, known: &[T]) -> Result<usize, DecodeError> {
        let index = usize::try_from(self.cursor.long()?).ok().filter(|index| *index < known.len());
        index.ok_or_else(|| self.cursor.malformed(unknown))
    }

    /// Replaces an index that was read at `start`.
    fn replace(&mut self, start: usize, writer: usize, reader: usize) {
        if writer != reader {
            self.flush(start);
            put_long(reader as i64, &mut self.out);
            self.copied = self.cursor.position();
        }
    }

    /// Copies the bytes that were walked over, up to `end`.
    fn flush(&mut self, end: usize) {
        self.out.extend_from_slice(&self.datum[self.copied..end]);
        self.copied = end;
    }
}

#[cfg(test)]
mod tests;
