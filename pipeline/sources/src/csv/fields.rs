//! One line of CSV split into fields, without allocating.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::FieldProblem;

/// Greatest number of columns in a line.
const COLUMNS_MAX: usize = 256;

/// Splits lines into fields. A record is one line. A quote that is not closed in its line is an error, so that a stray
/// quote cannot swallow the rest of a file.
pub(super) struct FieldSplitter {
    reader: Reader,
    /// Unquoted bytes of all fields of the line, one after another.
    bytes: Vec<u8>,
    /// End offset of each field in `bytes`.
    ends: Box<[usize; COLUMNS_MAX]>,
    /// Number of fields in the line.
    count: usize,
}

impl FieldSplitter {
    pub(super) fn new(delimiter: u8) -> FieldSplitter {
        let reader = ReaderBuilder::new().delimiter(delimiter).build();
        FieldSplitter { reader, bytes: Vec::new(), ends: Box::new([0; COLUMNS_MAX]), count: 0 }
    }

    /// Splits a line without its end. [`FieldSplitter::get`] then returns the fields.
    pub(super) fn split(&mut self, line: &[u8]) -> Result<(), FieldProblem> {
        self.count = 0;
        if line.is_empty() {
            return Ok(());
        }
        if line.iter().filter(|&&byte| byte == b'"').count() % 2 != 0 {
            return Err(FieldProblem::new("line", line, "quoted fields to be closed on their line"));
        }
        // Removing quotes never lengthens a text.
        self.bytes.resize(line.len(), 0);
        self.reader.reset();
        let (result, read, written, ended) =
            self.reader.read_record(line, &mut self.bytes, &mut self.ends[..]);
        match result {
            // The line end is already removed, so the record ends with the input.
            ReadRecordResult::InputEmpty => {}
            ReadRecordResult::OutputEndsFull => {
                return Err(FieldProblem::new("line", line, format!("at most {COLUMNS_MAX} columns")));
            }
            // The parser also treats a lone carriage return as the end of a record.
            _ => return Err(FieldProblem::new("line", &line[read..], "one record per line")),
        }
        let output = &mut self.bytes[written..];
        let (result, _, _, last) = self.reader.read_record(&[], output, &mut self.ends[ended..]);
        if matches!(result, ReadRecordResult::OutputEndsFull) {
            return Err(FieldProblem::new("line", line, format!("at most {COLUMNS_MAX} columns")));
        }
        self.count = ended + last;
        Ok(())
    }

    /// Returns a field by its column, from 0; `None` after the last field.
    pub(super) fn get(&self, column: usize) -> Option<&[u8]> {
        if column >= self.count {
            return None;
        }
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        Some(&self.bytes[start..self.ends[column]])
    }

    /// Returns the number of columns of the line.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns true if a non-empty field follows the first `columns` ones. Empty further fields are no error.
    pub(super) fn has_more_than(&self, columns: usize) -> bool {
        let end_of = |count: usize| if count == 0 { 0 } else { self.ends[count - 1] };
        self.count > columns && end_of(self.count) > end_of(columns)
    }

    /// Returns all fields as text, for headers.
    pub(super) fn texts(&self) -> Vec<String> {
        (0..self.count)
            .filter_map(|column| self.get(column))
            .map(|field| String::from_utf8_lossy(field).trim().to_owned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(delimiter: u8, line: &str, expected: &[&str]) {
        let mut splitter = FieldSplitter::new(delimiter);
        // Each line is split twice, because no state may carry over to the next line.
        for _ in 0..2 {
            splitter.split(line.as_bytes()).expect("a good line");
            assert_eq!(splitter.texts(), expected, "{line}");
            assert_eq!(splitter.get(expected.len()), None);
            let filled = expected.iter().rposition(|field| !field.is_empty()).map_or(0, |last| last + 1);
            let more = (0..=expected.len()).map(|columns| splitter.has_more_than(columns));
            assert!(more.eq((0..=expected.len()).map(|columns| columns < filled)), "{line}");
        }
    }

    #[test]
    fn fields_are_split_and_unquoted() {
        check(b',', "a,b,c", &["a", "b", "c"]);
        check(b',', "a,,", &["a", "", ""]);
        check(b',', r#""a,1","b ""x""",c"#, &["a,1", r#"b "x""#, "c"]);
        check(b';', "a,1;b", &["a,1", "b"]);
        check(b'\t', "a\tb", &["a", "b"]);
        check(b',', "one", &["one"]);
        check(b',', &vec!["7"; COLUMNS_MAX].join(","), &["7"; COLUMNS_MAX]);
    }

    #[test]
    fn lines_that_are_no_record() {
        let mut splitter = FieldSplitter::new(b',');
        for line in [r#"a,"b,c"#.to_owned(), "a\rb".to_owned(), vec!["7"; COLUMNS_MAX + 1].join(",")] {
            assert!(splitter.split(line.as_bytes()).is_err(), "{line}");
            assert_eq!(splitter.get(0), None);
        }
        splitter.split(b"a,b").expect("a bad line leaves nothing behind");
        assert_eq!(splitter.texts(), ["a", "b"]);
    }
}
