//! Chooses a symbol's partition as every Kafka client does.

/// Seed of Kafka's murmur2.
const SEED: u32 = 0x9747_b28c;
const MULTIPLIER: u32 = 0x5bd1_e995;
const ROTATION: u32 = 24;

/// Returns the partition that Kafka's default partitioner chooses for a record with the symbol as key. It is murmur2 of
/// the key's bytes, made positive, modulo the number of partitions. A producer in any language chooses the same one for
/// that key.
///
/// # Panics
/// If `partitions` is not positive; a topic has at least one, and the configuration was checked before.
pub fn partition_of(symbol: &str, partitions: i32) -> i32 {
    assert!(partitions > 0, "a topic has at least one partition, not {partitions}");
    (murmur2(symbol.as_bytes()) & i32::MAX) % partitions
}

/// Returns the 32-bit MurmurHash2, as in `org.apache.kafka.common.utils.Utils.murmur2`.
fn murmur2(bytes: &[u8]) -> i32 {
    // Java hashes arrays of less than 2^31 bytes; in both implementations the length enters modulo 2^32.
    let mut hash = SEED ^ (bytes.len() as u32);
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        let mut mixed = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(MULTIPLIER);
        mixed ^= mixed >> ROTATION;
        hash = hash.wrapping_mul(MULTIPLIER) ^ mixed.wrapping_mul(MULTIPLIER);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        for (index, &byte) in rest.iter().enumerate() {
            hash ^= u32::from(byte) << (8 * index);
        }
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^= hash >> 15;
    hash as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of Kafka's own `UtilsTest.testMurmur2`.
    #[test]
    fn murmur2_of_the_published_vectors() {
        for (text, expected) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn negative_hashes_are_made_positive_by_their_sign_bit() {
        // Kafka computes (-973932308 & 0x7fffffff) % 8, not the absolute value.
        assert_eq!(partition_of("21", 8), (-973_932_308_i32 & i32::MAX) % 8);
        assert_eq!(partition_of("21", 1), 0);
        for index in 0..1_000 {
            let partition = partition_of(&format!("SYNTH:{index}"), 7);
            assert!((0..7).contains(&partition));
        }
    }
}
