//! Avro's `long` and `int`: zigzag varints of 1 to 10 bytes.
//!
//! ```text
//!  bytes   c1 b2 a3 04 xx xx xx xx      one 8-byte load
//!  stops   00 00 00 80 ...              lowest clear top bit = last byte of the value
//!  groups  41 32 23 04                  top bits off, bytes after the stop off
//!  value   4 x 7 bits pushed together   three shift-and-or steps, no loop
//! ```

/// Greatest number of bytes of a varint.
pub const VARINT_BYTES_MAX: usize = 10;

/// The reason why a varint cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarintError {
    /// The bytes end within the varint.
    Truncated,
    /// The value does not fit into 64 bits.
    TooLong,
}

const TOP_BITS: u64 = 0x8080_8080_8080_8080;

/// Joins the low 7 bits of each byte of `word`; the top bits are ignored.
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

/// Reads one varint at `at`. Returns its value and the position after it.
///
/// The value is computed without branches on its bytes. The lengths of prices and of the zeros between them are
/// unpredictable, and a mispredicted branch costs more than the arithmetic.
#[inline(always)]
pub fn read_long(bytes: &[u8], at: usize) -> Result<(i64, usize), VarintError> {
    let Some(head) = bytes.get(at..).and_then(|rest| rest.first_chunk::<VARINT_BYTES_MAX>()) else {
        return read_long_near_end(bytes, at);
    };
    let word = first_word(head);
    let stops = !word & TOP_BITS;
    if stops != 0 {
        return Ok((short_value(word, stops), end(at, stops)));
    }
    long_value(word, head[8], head[9]).map(|(value, size)| (value, at + size))
}

/// Reads one varint of a record with a few small values, whose end is always near. Near the end it loads the last 8
/// bytes and shifts out those before `at`, so that no branch depends on the distance.
#[inline(always)]
pub fn read_long_in_small(bytes: &[u8], at: usize) -> Result<(i64, usize), VarintError> {
    let Some(last) = bytes.len().checked_sub(8) else {
        return read_long_in_tiny(bytes, at);
    };
    let start = at.min(last);
    let (Some(head), true) = (bytes[start..].first_chunk::<8>(), at < bytes.len()) else {
        return Err(VarintError::Truncated);
    };
    let word = u64::from_le_bytes(*head) >> (8 * (at - start));
    let stops = !word & TOP_BITS;
    if stops != 0 {
        let end = end(at, stops);
        // A zero byte after the end would look like a last byte.
        return if end <= bytes.len() {
            Ok((short_value(word, stops), end))
        } else {
            Err(VarintError::Truncated)
        };
    }
    match bytes[at..] {
        [_, _, _, _, _, _, _, _, ninth @ ..0x80, ..] => long_value(word, ninth, 0),
        [_, _, _, _, _, _, _, _, ninth, tenth, ..] => long_value(word, ninth, tenth),
        _ => Err(VarintError::Truncated),
    }
    .map(|(value, size)| (value, at + size))
}

/// Number of values read together.
const GROUP: usize = 8;
/// Greatest number of groups that are read value by value, after columns of mixed sizes, before the next attempt to
/// read a whole group.
const DOUBT_MAX: usize = 8;

/// Fills `values` with varints from `at` on. Returns the position after them, or that of the first invalid one.
///
/// If values are read one by one, each must wait for the size of the one before it. Times, trade ids and zeros mostly
/// have one size throughout their column. So eight values of one size are read without waiting, and read again one by
/// one if their sizes differ.
pub fn read_longs(
    bytes: &[u8],
    mut at: usize,
    mut values: &mut [i64],
) -> Result<usize, (usize, VarintError)> {
    let mut doubt = 1;
    while !values.is_empty() {
        let (size, read) = read_of_one_size(&bytes[at..], values);
        at += read * size;
        doubt = if read > 0 { 1 } else { DOUBT_MAX.min(2 * doubt) };
        let upto = values.len().min(read + GROUP * doubt);
        for value in &mut values[read..upto] {
            (*value, at) = read_long(bytes, at).map_err(|error| (at, error))?;
        }
        values = &mut values[upto..];
    }
    Ok(at)
}

/// Reads groups while all their values have the size of the first one. Returns the size and the number of values read.
#[inline]
fn read_of_one_size(bytes: &[u8], values: &mut [i64]) -> (usize, usize) {
    if bytes.first() == Some(&0) {
        return (1, read_zeros(bytes, values));
    }
    let size = bytes.iter().take(9).take_while(|byte| **byte >= 0x80).count() + 1;
    let read = match size {
        1 => read_groups::<1>,
        2 => read_groups::<2>,
        3 => read_groups::<3>,
        4 => read_groups::<4>,
        5 => read_groups::<5>,
        6 => read_groups::<6>,
        7 => read_groups::<7>,
        8 => read_groups::<8>,
        9 => read_groups::<9>,
        _ => return (size, 0),
    };
    (size, read(bytes, values))
}

/// Reads blocks of zeros, or groups of one-byte values if the first block is not all zeros. Trades have zeros in the
/// quote columns, and quotes have zeros in the trade columns.
fn read_zeros(bytes: &[u8], values: &mut [i64]) -> usize {
    const BLOCK: usize = 32;
    let blocks = bytes[..bytes.len().min(values.len())].as_chunks::<BLOCK>().0;
    let zeros = blocks.iter().take_while(|block| **block == [0; BLOCK]).count() * BLOCK;
    if zeros == 0 {
        return read_groups::<1>(bytes, values);
    }
    values[..zeros].fill(0);
    zeros
}

fn read_groups<const SIZE: usize>(bytes: &[u8], values: &mut [i64]) -> usize {
    let groups = bytes.as_chunks::<SIZE>().0.as_chunks::<GROUP>().0;
    let mut read = 0;
    for (group, values) in groups.iter().zip(values.as_chunks_mut::<GROUP>().0) {
        let mut others = 0;
        for (bytes, value) in group.iter().zip(values) {
            let (last, before) = bytes.split_last().expect("no size is 0");
            let mut word = [0; 8];
            word[..before.len()].copy_from_slice(before);
            let word = u64::from_le_bytes(word);
            others |= word ^ TOP_BITS.unbounded_shr(8 * (9 - SIZE as u32)) | u64::from(*last);
            *value = unzigzag(join_groups(word) | u64::from(*last) << (7 * (SIZE - 1)));
        }
        if others & TOP_BITS != 0 {
            break;
        }
        read += GROUP;
    }
    read
}

/// Reads non-negative numbers of one or two bytes, four per word of 8 bytes. It stops before four numbers that are not
/// all of this kind, or if bytes or values run out. Returns the number of values read, and the position after them.
#[inline]
pub fn read_small(bytes: &[u8], mut at: usize, values: &mut [u32]) -> (usize, usize) {
    let mut read = 0;
    for four in values.as_chunks_mut::<4>().0 {
        let Some(head) = bytes[at..].first_chunk::<8>() else { break };
        let mut word = u64::from_le_bytes(*head);
        let (mut others, mut size) = (0, 0);
        for value in four {
            let has_two = word >> 7 & 1;
            let raw = word & 0x7f | word >> 1 & 0x3f80 & has_two.wrapping_neg();
            // The sign of the number, and a third byte.
            others |= raw | word >> 15 & has_two;
            *value = raw as u32 >> 1;
            size += 1 + has_two as usize;
            word >>= 8 << has_two;
        }
        if others & 1 != 0 {
            break;
        }
        read += 4;
        at += size;
    }
    (read, at)
}

#[inline(always)]
fn first_word(head: &[u8; VARINT_BYTES_MAX]) -> u64 {
    u64::from_le_bytes(*head.first_chunk().expect("10 bytes begin with 8"))
}

/// Returns the position after the first stop bit of a word at `at`. Only one shift and one addition depend on the stop,
/// because the next value waits for the position.
#[inline(always)]
fn end(at: usize, stops: u64) -> usize {
    (at + 1) + (stops.trailing_zeros() as usize >> 3)
}

/// Returns the value of at most 8 bytes at the start of a word.
#[inline(always)]
fn short_value(word: u64, stops: u64) -> i64 {
    let upto_stop = stops ^ (stops - 1);
    unzigzag(join_groups(word & upto_stop))
}

/// Returns the value and size of 9 or 10 bytes: a word without a stop, and the bytes after it.
#[inline(always)]
fn long_value(word: u64, ninth: u8, tenth: u8) -> Result<(i64, usize), VarintError> {
    let low = join_groups(word);
    if ninth < 0x80 {
        return Ok((unzigzag(low | u64::from(ninth) << 56), 9));
    }
    if tenth > 1 {
        return Err(VarintError::TooLong);
    }
    Ok((unzigzag(low | u64::from(ninth & 0x7f) << 56 | u64::from(tenth) << 63), 10))
}

#[inline(never)]
fn read_long_near_end(bytes: &[u8], at: usize) -> Result<(i64, usize), VarintError> {
    read_long_in_small(bytes, at)
}

/// Reads one varint, byte by byte, if fewer bytes than a word are left.
#[cold]
fn read_long_in_tiny(bytes: &[u8], at: usize) -> Result<(i64, usize), VarintError> {
    let mut raw = 0_u64;
    for (index, &byte) in bytes.iter().skip(at).enumerate() {
        raw |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok((unzigzag(raw), at + index + 1));
        }
    }
    Err(VarintError::Truncated)
}

/// Spreads a number of at most 56 bits: 7 bits to the low bits of each byte.
#[inline(always)]
fn part_groups(raw: u64) -> u64 {
    let quads = (raw & 0x0fff_ffff) | ((raw & 0x00ff_ffff_f000_0000) << 4);
    let pairs = (quads & 0x0000_3fff_0000_3fff) | ((quads & 0x0fff_c000_0fff_c000) << 2);
    (pairs & 0x007f_007f_007f_007f) | ((pairs & 0x3f80_3f80_3f80_3f80) << 1)
}

/// Appends one varint.
#[inline]
pub fn put_long(value: i64, out: &mut Vec<u8>) {
    let raw = ((value << 1) ^ (value >> 63)) as u64;
    let start = out.len();
    if raw >> 56 == 0 {
        let bits = 64 - (raw | 1).leading_zeros() as usize;
        let size = bits.div_ceil(7);
        let tops_of_all_but_last = TOP_BITS & ((1 << (8 * (size - 1))) - 1);
        // Eight bytes are one store; copying only the used bytes would be a function call.
        out.extend_from_slice(&(part_groups(raw) | tops_of_all_but_last).to_le_bytes());
        out.truncate(start + size);
        return;
    }
    let low = part_groups(raw & (u64::MAX >> 8)) | TOP_BITS;
    let [.., high] = raw.to_le_bytes();
    let mut bytes = [0; VARINT_BYTES_MAX];
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    bytes[8] = high;
    bytes[9] = 1;
    out.extend_from_slice(&bytes);
    out.truncate(start + 9 + usize::from(high >> 7));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a varint with both readers, which must agree.
    fn read(bytes: &[u8], at: usize) -> Result<(i64, usize), VarintError> {
        let result = read_long(bytes, at);
        assert_eq!(read_long_in_small(bytes, at), result, "{bytes:02x?} at {at}");
        result
    }

    /// Encodes in the standard way: seven bits per byte, the lowest first, and the top bit set on all bytes but the
    /// last.
    fn by_the_book(value: i64) -> Vec<u8> {
        let mut raw = ((value << 1) ^ (value >> 63)) as u64;
        let mut bytes = Vec::new();
        while raw >= 0x80 {
            bytes.push(raw as u8 | 0x80);
            raw >>= 7;
        }
        bytes.push(raw as u8);
        bytes
    }

    /// Values on both sides of every length limit are read back, with any number of bytes before and after them.
    #[test]
    fn every_length_reads_back() {
        let mut values = vec![i64::MIN, i64::MAX, 0, -1];
        for bits in 0..63 {
            let limit = 1_i64 << bits;
            values.extend([limit - 1, limit, limit + 1, -limit, -limit - 1, -limit + 1]);
        }
        for (value, before) in values.into_iter().flat_map(|value| (0..12).map(move |before| (value, before)))
        {
            let mut bytes = vec![0x85; before];
            put_long(value, &mut bytes);
            assert_eq!(bytes[before..], by_the_book(value));
            let end = bytes.len();
            for cut in before..end {
                assert_eq!(read(&bytes[..cut], before), Err(VarintError::Truncated), "{value} cut at {cut}");
            }
            for padding in [0_u8, 0xff] {
                bytes.truncate(end);
                for _ in 0..=VARINT_BYTES_MAX {
                    assert_eq!(read(&bytes, before), Ok((value, end)), "{bytes:02x?}");
                    bytes.push(padding);
                }
            }
        }
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        for tenth in [0x02, 0x7f, 0x80, 0xff] {
            for behind in 0..3 {
                let mut bytes = vec![0xff; 9];
                bytes.push(tenth);
                bytes.resize(10 + behind, 0);
                assert_eq!(read(&bytes, 0), Err(VarintError::TooLong));
            }
        }
    }

    #[test]
    fn values_may_take_more_bytes_than_they_need() {
        for zeros in 0..9 {
            let mut bytes = vec![0x82];
            bytes.extend(vec![0x80; zeros]);
            bytes.push(0);
            assert_eq!(read(&bytes, 0), Ok((1, zeros + 2)));
        }
    }

    /// Columns of one size with exceptions, and of mixed sizes, truncated anywhere, are read like single values.
    #[test]
    fn columns_read_like_one_value_after_the_other() {
        let mut random = 1_u64;
        let mut draw = |limit: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % limit
        };
        for round in 0..if cfg!(miri) { 10 } else { 4_000 } {
            let (size, others) = (1 + draw(10), [0, 1, 10, 100][round % 4]);
            let mut bytes = vec![0x85; draw(9) as usize];
            let start = bytes.len();
            let count = draw(200) as usize;
            // Many columns are all zeros, or begin with zeros.
            let zeros = if draw(3) == 0 { draw(300) as usize } else { 0 };
            bytes.extend(std::iter::repeat_n(0, zeros.min(count)));
            for _ in zeros..count {
                let size = if draw(100) < others { 1 + draw(10) } else { size };
                bytes.extend((1..size).map(|_| 0x80 | draw(0x80) as u8));
                // The tenth byte may be one too large.
                bytes.push(if size == 10 { draw(3) } else { draw(0x80) } as u8);
            }
            bytes.extend((0..draw(12)).map(|_| draw(0x100) as u8));
            if draw(4) == 0 {
                bytes.truncate(start + draw((bytes.len() - start + 1) as u64) as usize);
            }
            let mut expected = Vec::new();
            let mut end = Ok(start);
            while let (Ok(at), true) = (end, expected.len() < count) {
                end = read_long(&bytes, at).map_err(|error| (at, error)).map(|(value, end)| {
                    expected.push(value);
                    end
                });
            }
            let mut values = vec![7; count];
            assert_eq!(read_longs(&bytes, start, &mut values), end, "{bytes:02x?} from {start}");
            assert_eq!(values[..expected.len()], expected, "{bytes:02x?} from {start}");
        }
    }

    #[test]
    fn small_numbers_read_until_another_comes() {
        let small = [0, 63, 64, 8_191, 1, 5_000, 2, 3, 70, 71, 4, 8_190];
        let encoded = |values: &[i64]| {
            let mut bytes = vec![0x85; 3];
            values.iter().for_each(|value| put_long(*value, &mut bytes));
            bytes
        };
        for other in [8_192, -1, -8_000, i64::MAX] {
            for place in 0..=small.len() {
                let mut values = small.to_vec();
                values.insert(place, other);
                let bytes = encoded(&values);
                let mut read = [0; 13];
                let (count, end) = read_small(&bytes, 3, &mut read);
                assert_eq!(count, place / 4 * 4, "{other} at {place}");
                assert_eq!(end, encoded(&values[..count]).len());
                assert_eq!(
                    read[..count].iter().map(|value| i64::from(*value)).collect::<Vec<_>>(),
                    values[..count]
                );
            }
        }
        // Eight bytes are read at a time, so the last numbers are left to other readers.
        let bytes = encoded(&small);
        for length in 3..bytes.len() {
            let (count, end) = read_small(&bytes[..length], 3, &mut [0; 12]);
            assert!(count % 4 == 0 && end <= length && encoded(&small[..count]).len() == end);
        }
    }
}
