//! Data written with an older version of a schema, brought to the current one by Avro's rules.

use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::writer::datum::GenericDatumWriter;

use crate::error::DecodeError;
use crate::known::KnownSchema;

/// Rewrites a datum of `writer` as a datum of `reader`. Both are parsed on each call: old records are rare.
pub(crate) fn resolve(
    writer: KnownSchema,
    reader: KnownSchema,
    datum: &[u8],
) -> Result<Vec<u8>, DecodeError> {
    let parse = |schema: KnownSchema| {
        // The texts are compiled in, and a test parses each of them.
        Schema::parse_str(schema.text).expect("a published schema parses")
    };
    let (writer_schema, reader_schema) = (parse(writer), parse(reader));
    let unresolvable = |error: apache_avro::Error| DecodeError::Unresolvable {
        name: reader.name,
        detail: error.to_string(),
    };
    let mut rest = datum;
    let value = GenericDatumReader::builder(&writer_schema)
        .reader_schema(&reader_schema)
        .build()
        .and_then(|avro| avro.read_value(&mut rest))
        .map_err(unresolvable)?;
    if !rest.is_empty() {
        return Err(DecodeError::TrailingBytes { count: rest.len() });
    }
    GenericDatumWriter::builder(&reader_schema)
        .build()
        .and_then(|avro| avro.write_value_to_vec(value))
        .map_err(unresolvable)
}
