//! Unsigned numbers of one width, little endian, one after the other. No number depends on the ones before it, so
//! compilers turn the loops into vector instructions.
//!
//! ```text
//!  width 0   no bytes: all numbers are 0
//!  width 3   c1 b2 a3   c1 b2 a4   ...      the width is the number of bytes divided by that of numbers
//! ```

/// Greatest width, in bytes.
const WIDTH_MAX: usize = 8;

/// Returns the width of `count` numbers in `length` bytes; `None` if they have none.
pub fn width(length: usize, count: usize) -> Option<usize> {
    match length.checked_div(count) {
        Some(width) => (width <= WIDTH_MAX && width * count == length).then_some(width),
        None => (length == 0).then_some(0),
    }
}

/// Returns the largest number of a width.
pub fn largest(width: usize) -> u64 {
    u64::MAX.unbounded_shr(u64::BITS - 8 * width as u32)
}

/// Returns the numbers in bytes of the narrowest width.
pub fn narrowest(numbers: &[u64]) -> Vec<u8> {
    let any = numbers.iter().fold(0, |any, number| any | number);
    let width = (u64::BITS - any.leading_zeros()).div_ceil(8) as usize;
    let mut bytes = Vec::with_capacity(width * numbers.len() + WIDTH_MAX);
    for number in numbers {
        // Eight bytes are one store; the next number overwrites those beyond the width.
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.truncate(bytes.len() - (WIDTH_MAX - width));
    }
    bytes
}

/// Calls a function of numbers with the width as a constant, so that the compiler generates a loop for each width.
macro_rules! by_width {
    ($width:expr, $function:ident($($argument:expr),*)) => {
        match $width {
            1 => $function::<1, _>($($argument),*),
            2 => $function::<2, _>($($argument),*),
            3 => $function::<3, _>($($argument),*),
            4 => $function::<4, _>($($argument),*),
            5 => $function::<5, _>($($argument),*),
            6 => $function::<6, _>($($argument),*),
            7 => $function::<7, _>($($argument),*),
            _ => $function::<8, _>($($argument),*),
        }
    };
}

/// Fills `out` with a value for each of as many numbers.
///
/// # Panics
/// The numbers have no [`width`].
#[inline]
pub fn fill<T: Copy>(bytes: &[u8], out: &mut [T], value: impl Fn(u64) -> T) {
    match width(bytes.len(), out.len()).expect("numbers with a width") {
        0 => out.fill(value(0)),
        width => by_width!(width, fill_of(bytes, out, value)),
    }
}

/// Calls `each` with each item and its number.
///
/// # Panics
/// The numbers have no [`width`].
#[inline]
pub fn for_each<T>(bytes: &[u8], items: impl ExactSizeIterator<Item = T>, mut each: impl FnMut(T, u64)) {
    match width(bytes.len(), items.len()).expect("numbers with a width") {
        0 => items.for_each(|item| each(item, 0)),
        width => by_width!(width, for_each_of(bytes, items, each)),
    }
}

#[inline]
fn fill_of<const WIDTH: usize, T>(bytes: &[u8], out: &mut [T], value: impl Fn(u64) -> T) {
    for (slot, number) in out.iter_mut().zip(numbers::<WIDTH>(bytes)) {
        *slot = value(number);
    }
}

#[inline]
fn for_each_of<const WIDTH: usize, T>(
    bytes: &[u8],
    items: impl Iterator<Item = T>,
    mut each: impl FnMut(T, u64),
) {
    items.zip(numbers::<WIDTH>(bytes)).for_each(|(item, number)| each(item, number));
}

#[inline(always)]
fn numbers<const WIDTH: usize>(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<WIDTH>().0.iter().map(|bytes| {
        let mut word = [0; WIDTH_MAX];
        word[..WIDTH].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], count: usize) -> Vec<u64> {
        let mut filled = vec![7; count];
        fill(bytes, &mut filled, |number| number);
        let mut called = Vec::new();
        for_each(bytes, 0..count, |place, number| {
            assert_eq!(place, called.len());
            called.push(number);
        });
        assert_eq!(filled, called);
        filled
    }

    #[test]
    fn numbers_of_every_width_read_back() {
        for width in 0..=WIDTH_MAX {
            let largest = largest(width);
            assert_eq!(largest.checked_add(1).is_none(), width == WIDTH_MAX);
            let numbers = [0, largest, largest / 3, largest - largest / 7, largest >> 1];
            let bytes = narrowest(&numbers);
            assert_eq!(bytes.len(), width * numbers.len());
            assert_eq!(read(&bytes, numbers.len()), numbers);
        }
        assert_eq!(narrowest(&[1, 0x1_0000]), [1, 0, 0, 0, 0, 1]);
        assert!(narrowest(&[]).is_empty() && read(&[], 0).is_empty());
    }

    #[test]
    fn widths_divide_the_bytes() {
        assert_eq!(
            [width(0, 0), width(0, 5), width(15, 5), width(40, 5)],
            [Some(0), Some(0), Some(3), Some(8)]
        );
        assert_eq!([width(1, 0), width(4, 5), width(16, 5), width(45, 5)], [None; 4]);
        assert_eq!(width(usize::MAX, 2), None);
    }
}
