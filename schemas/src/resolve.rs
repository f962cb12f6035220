//! Data written with an older version of a schema, brought to the current one by Avro's rules.

use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::writer::datum::GenericDatumWriter;

use crate::describe;
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
    // apache-avro takes an end that comes too early for null in places; ours does not.
    describe::value(&writer_schema, datum)?;
    let value = GenericDatumReader::builder(&writer_schema)
        .reader_schema(&reader_schema)
        .build()
        .and_then(|avro| avro.read_value(&mut &datum[..]))
        .map_err(unresolvable)?;
    GenericDatumWriter::builder(&reader_schema)
        .build()
        .and_then(|avro| avro.write_value_to_vec(value))
        .map_err(unresolvable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::{Signal, SignalKind};
    use crate::{frame, known, record};

    fn signal() -> Signal<'static> {
        Signal {
            symbol: "A:B".into(),
            kind: SignalKind::RsiOversold,
            bar_spec: "1s".into(),
            bar_start_ns: 1,
            bar_end_ns: 2,
            source_offset: 3,
            source_index: 4,
            value: 0.5,
            threshold: -1.5,
            bar: None,
        }
    }

    /// The signal schema as it would have been before its last indicator and its last kind came.
    fn older() -> KnownSchema {
        let mut json: serde_json::Value = serde_json::from_str(known::SIGNAL.text).expect("JSON");
        json["fields"].as_array_mut().expect("fields").pop();
        json["fields"][1]["type"]["symbols"].as_array_mut().expect("symbols").pop();
        KnownSchema { version: 0, fingerprint: 1, text: json.to_string().leak(), ..known::SIGNAL }
    }

    #[test]
    fn fields_that_came_later_get_their_defaults() {
        let mut payload = Vec::new();
        record::encode_signal(&signal(), &mut payload);
        let datum = &payload[frame::HEADER_SIZE..];
        // The last field is null, one byte: the older writer did not have it.
        let older_datum = &datum[..datum.len() - 1];
        assert_eq!(resolve(older(), known::SIGNAL, older_datum), Ok(datum.to_vec()));
    }

    #[test]
    fn damage_is_an_error_value() {
        let mut payload = Vec::new();
        record::encode_signal(&signal(), &mut payload);
        let datum = &payload[frame::HEADER_SIZE..];
        assert_eq!(resolve(older(), known::SIGNAL, datum), Err(DecodeError::TrailingBytes { count: 1 }));
        for cut in 0..datum.len() - 1 {
            let error = resolve(older(), known::SIGNAL, &datum[..cut]);
            assert_eq!(error, Err(DecodeError::Truncated { length: cut }));
        }
    }
}
