//! Dumps of bytes for people: sixteen a line, as hex digits and as ASCII.

const BYTES_PER_LINE: usize = 16;

/// Returns the lines of a dump, each with the offset of its first byte.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = String> + '_ {
    bytes.chunks(BYTES_PER_LINE).enumerate().map(|(index, chunk)| {
        let mut line = format!("{:08x} ", index * BYTES_PER_LINE);
        for place in 0..BYTES_PER_LINE {
            if place % 8 == 0 {
                line.push(' ');
            }
            match chunk.get(place) {
                Some(byte) => line.push_str(&format!("{byte:02x} ")),
                None => line.push_str("   "),
            }
        }
        line.push_str(" |");
        line.extend(
            chunk.iter().map(|&byte| if matches!(byte, b' '..=b'~') { char::from(byte) } else { '.' }),
        );
        line.push('|');
        line
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form of `hexdump -C`.
    #[test]
    fn bytes_stand_beside_their_letters() {
        let bytes = [&b"\x00\xc3price 1\n"[..], &[b'~', 0x7f, 0xff, b'|'], b"0123456"].concat();
        assert_eq!(
            lines(&bytes).collect::<Vec<_>>(),
            [
                "00000000  00 c3 70 72 69 63 65 20  31 0a 7e 7f ff 7c 30 31  |..price 1.~..|01|",
                "00000010  32 33 34 35 36                                    |23456|",
            ]
        );
        assert_eq!(lines(b"").count(), 0);
    }
}
