//! Avro's `long` and `int`: zigzag varints of 1 to 10 bytes.
//!
//! ```text
//!  bytes   c1 b2 a3 04 xx xx xx xx      one 8-byte load
//!  stops   00 00 00 80 ...              lowest clear top bit = last byte of the value
//!  groups  41 32 23 04                  top bits off, bytes behind the stop off
//!  value   4 x 7 bits pushed together   three shift-and-or steps, no loop
//! ```

/// The largest number of bytes a varint may have.
pub(crate) const VARINT_BYTES_MAX: usize = 10;

/// Why there is no varint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VarintError {
    /// The bytes end before it does.
    Truncated,
    /// It does not fit into 64 bits.
    TooLong,
}

const TOP_BITS: u64 = 0x8080_8080_8080_8080;

/// Pushes the low 7 bits of each byte of `word` together; the top bits are ignored.
#[inline(always)]
fn join_groups(word: u64) -> u64 {
    let pairs = (word & 0x007f_007f_007f_007f) | ((word & 0x7f00_7f00_7f00_7f00) >> 1);
    let quads = (pairs & 0x0000_3fff_0000_3fff) | ((pairs & 0x3fff_0000_3fff_0000) >> 2);
    (quads & 0x0fff_ffff) | ((quads & 0x0fff_ffff_0000_0000) >> 4)
}

#[inline(always)]
fn unzigzag(raw: u64) -> i64 {
    (raw >> 1) as i64 ^ -((raw & 1) as i64)
}

/// Reads one varint from the front of `bytes`; returns it with its size.
#[inline(always)]
pub(crate) fn read_long(bytes: &[u8]) -> Result<(i64, usize), VarintError> {
    let Some(head) = bytes.first_chunk::<VARINT_BYTES_MAX>() else {
        return read_long_near_end(bytes);
    };
    let word = u64::from_le_bytes([head[0], head[1], head[2], head[3], head[4], head[5], head[6], head[7]]);
    let stops = !word & TOP_BITS;
    if stops != 0 {
        let upto_stop = stops ^ (stops - 1);
        let size = (stops.trailing_zeros() as usize + 1) / 8;
        return Ok((unzigzag(join_groups(word & upto_stop)), size));
    }
    let low = join_groups(word);
    let (ninth, tenth) = (head[8], head[9]);
    if ninth < 0x80 {
        return Ok((unzigzag(low | u64::from(ninth) << 56), 9));
    }
    if tenth > 1 {
        return Err(VarintError::TooLong);
    }
    Ok((unzigzag(low | u64::from(ninth & 0x7f) << 56 | u64::from(tenth) << 63), 10))
}

#[cold]
fn read_long_near_end(bytes: &[u8]) -> Result<(i64, usize), VarintError> {
    let mut raw = 0_u64;
    for (index, &byte) in bytes.iter().enumerate().take(VARINT_BYTES_MAX) {
        if index == VARINT_BYTES_MAX - 1 && byte > 1 {
            return Err(VarintError::TooLong);
        }
        raw |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok((unzigzag(raw), index + 1));
        }
    }
    Err(VarintError::Truncated)
}

/// Appends one varint.
#[inline]
pub(crate) fn put_long(value: i64, out: &mut Vec<u8>) {
    let mut raw = ((value << 1) ^ (value >> 63)) as u64;
    if raw < 0x80 {
        out.push(raw as u8);
        return;
    }
    let mut bytes = [0_u8; VARINT_BYTES_MAX];
    let mut size = 0;
    while raw >= 0x80 {
        bytes[size] = raw as u8 | 0x80;
        raw >>= 7;
        size += 1;
    }
    bytes[size] = raw as u8;
    out.extend_from_slice(&bytes[..=size]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values on both sides of every length limit, read with and without bytes behind them.
    #[test]
    fn every_length_reads_back() {
        let mut values = vec![i64::MIN, i64::MAX, 0, -1];
        for bits in 0..63 {
            let limit = 1_i64 << bits;
            values.extend([limit - 1, limit, limit + 1, -limit, -limit - 1, -limit + 1]);
        }
        for value in values {
            let mut bytes = Vec::new();
            put_long(value, &mut bytes);
            let size = bytes.len();
            for cut in 0..size {
                assert_eq!(read_long(&bytes[..cut]), Err(VarintError::Truncated), "{value} cut at {cut}");
            }
            for padding in [0_u8, 0xff] {
                bytes.truncate(size);
                for _ in 0..=VARINT_BYTES_MAX {
                    assert_eq!(read_long(&bytes), Ok((value, size)), "{bytes:02x?}");
                    bytes.push(padding);
                }
            }
        }
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        for tenth in [0x02, 0x7f, 0x80, 0xff] {
            let mut bytes = vec![0xff; 9];
            bytes.push(tenth);
            assert_eq!(read_long(&bytes), Err(VarintError::TooLong));
            assert_eq!(read_long_near_end(&bytes), Err(VarintError::TooLong));
        }
    }
}
