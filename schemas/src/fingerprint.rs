//! The fingerprint in a record's header, which identifies the schema that wrote it.

/// Returns the CRC-64-AVRO fingerprint of an Avro schema's text; `None` if the text is not a schema.
pub fn avro_fingerprint(text: &str) -> Option<u64> {
    let bytes = apache_avro::Schema::parse_str(text).ok()?.fingerprint::<apache_avro::rabin::Rabin>().bytes;
    Some(u64::from_le_bytes(bytes.try_into().expect("a CRC-64 has 8 bytes")))
}
