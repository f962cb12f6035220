//! Rows of CSV (RFC 4180, but with a line feed at the end of each line).

use std::io;

/// Returns one row as a line, with quotes where a cell needs them.
pub fn row<I: AsRef<[u8]>>(cells: impl IntoIterator<Item = I>) -> io::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells)?;
    let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_needed() {
        let line = row(["a", "", "b,c", "d \"e\"", "f\ng", "1.5"]).expect("memory takes all");
        assert_eq!(line, "a,,\"b,c\",\"d \"\"e\"\"\",\"f\ng\",1.5\n");
    }
}
