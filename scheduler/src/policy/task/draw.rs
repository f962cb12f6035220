//! Draws: random numbers with an address, so that a replay draws the same ones.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A random number below `below`: draw `number` at a counter of the named stream, for a seed.
pub(crate) fn draw(stream: &str, seed: i64, counter: i64, number: u64, below: usize) -> usize {
    let stream = xxh3_64_with_seed(stream.as_bytes(), seed as u64);
    let mut address = [0u8; 24];
    address[..8].copy_from_slice(&stream.to_le_bytes());
    address[8..16].copy_from_slice(&counter.to_le_bytes());
    address[16..].copy_from_slice(&number.to_le_bytes());
    ((u128::from(xxh3_64(&address)) * below as u128) >> 64) as usize
}
