//! Converts UTF-16, the encoding of spreadsheets and trading terminals, to UTF-8.

use std::io::{self, BufRead, Read};

/// Number of bytes that are read before they are converted.
const BLOCK_BYTES: usize = 64 * 1024;

/// The order of the two bytes of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Utf16 {
    LittleEndian,
    BigEndian,
}

impl Utf16 {
    /// Detects UTF-16 by its byte order mark, or by the zero byte of a first ASCII character.
    pub(super) fn of(beginning: &[u8]) -> Option<Utf16> {
        match *beginning {
            [0xff, 0xfe, ..] => Some(Utf16::LittleEndian),
            [0xfe, 0xff, ..] => Some(Utf16::BigEndian),
            [1..=0x7f, 0, ..] => Some(Utf16::LittleEndian),
            [0, 1..=0x7f, ..] => Some(Utf16::BigEndian),
            _ => None,
        }
    }
}

/// Reads text in UTF-16 as UTF-8, without its mark. Invalid characters become U+FFFD.
pub(super) struct Utf16Reader<R> {
    inner: R,
    order: Utf16,
    /// Units that are not converted yet: the first half of a surrogate pair. `half` is a single byte at the end of a
    /// block.
    units: Vec<u16>,
    half: Option<u8>,
    block: Vec<u8>,
    text: String,
    /// Number of bytes of `text` already read.
    given: usize,
    is_first: bool,
    is_done: bool,
}

impl<R: BufRead> Utf16Reader<R> {
    pub(super) fn new(inner: R, order: Utf16) -> Utf16Reader<R> {
        Utf16Reader {
            inner,
            order,
            units: Vec::new(),
            half: None,
            block: vec![0; BLOCK_BYTES],
            text: String::new(),
            given: 0,
            is_first: true,
            is_done: false,
        }
    }

    /// Converts the next block.
    fn fill(&mut self) -> io::Result<()> {
        let read = self.inner.read(&mut self.block)?;
        self.is_done = read == 0;
        for &byte in &self.block[..read] {
            match self.half.take() {
                None => self.half = Some(byte),
                Some(first) => self.units.push(match self.order {
                    Utf16::LittleEndian => u16::from_le_bytes([first, byte]),
                    Utf16::BigEndian => u16::from_be_bytes([first, byte]),
                }),
            }
        }
        if self.is_done && self.half.take().is_some() {
            self.units.push(u16::from(b'?'));
        }
        // The second half of a surrogate pair may be in the next block.
        let is_first_half = |unit: &u16| (0xd800..0xdc00).contains(unit);
        let kept = self.units.pop_if(|unit| !self.is_done && is_first_half(unit));
        self.text.clear();
        self.given = 0;
        let characters = char::decode_utf16(self.units.drain(..));
        self.text.extend(characters.map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)));
        self.units.extend(kept);
        if self.is_first && !self.text.is_empty() {
            self.is_first = false;
            if self.text.starts_with('\u{feff}') {
                self.given = '\u{feff}'.len_utf8();
            }
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Utf16Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() && !self.is_done {
            self.fill()?;
        }
        let left = &self.text.as_bytes()[self.given..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back_whatever_its_length() {
        for text in ["", "sym\tts\r\n", "测试, 𝄞 and ü", &"𝄞x".repeat(BLOCK_BYTES / 3)] {
            for (order, mark) in [(Utf16::LittleEndian, true), (Utf16::BigEndian, false)] {
                let marked = if mark { format!("\u{feff}{text}") } else { text.to_owned() };
                let bytes: Vec<u8> = marked
                    .encode_utf16()
                    .flat_map(|unit| match order {
                        Utf16::LittleEndian => unit.to_le_bytes(),
                        Utf16::BigEndian => unit.to_be_bytes(),
                    })
                    .collect();
                let mut read = String::new();
                Utf16Reader::new(&*bytes, order).read_to_string(&mut read).expect("UTF-8");
                assert_eq!(read, text);
            }
        }
    }

    #[test]
    fn what_is_no_utf16_is_left_alone() {
        for beginning in [&b"sym,ts"[..], b"", b"s", b"\xef\xbb\xbfsym", b"\0\0"] {
            assert_eq!(Utf16::of(beginning), None);
        }
        assert_eq!(Utf16::of(b"s\0y\0"), Some(Utf16::LittleEndian));
    }
}
