//! Headers of dead letters in the form of Kafka Streams (KIP-1034), for tools that know this form. They repeat fields
//! of the record.

use warptape_schemas::decode_dead_letter;

/// Returns the headers of an encoded dead letter, all of them texts.
pub(super) fn dead_letter_headers(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    // Dead letters are rare, so decoding the record again is cheaper than passing the decoded one along.
    let letter = decode_dead_letter(bytes).expect("a dead letter that was just encoded");
    let header = |name: &str, text: String| (format!("__streams.errors.{name}"), text.into_bytes());
    vec![
        header("exception", letter.reason.name().to_owned()),
        header("message", letter.detail),
        header("topic", letter.topic),
        header("partition", letter.partition.to_string()),
        header("offset", letter.offset.to_string()),
    ]
}
