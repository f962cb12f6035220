//! Sorts the rows of a file by their times with bounded memory: sorted runs go to a temporary file and are merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Greatest number of bytes of rows that are sorted in memory at once.
const RUN_BYTES_MAX: usize = 64 << 20;
/// Memory for a row in addition to its bytes.
const ROW_BYTES: usize = size_of::<RowPlace>();
/// Greatest number of runs of a file. Each needs a buffer during merging; together they hold about 64 GiB of rows.
const RUNS_MAX: usize = 1_024;
/// Bytes read at once from each run.
const READ_BYTES: usize = 16 * 1024;
/// Size of the key, the line number and the length of a row in the temporary file, in bytes.
const HEAD_BYTES: usize = 28;

/// A time, and a tie-breaker derived from the line number.
type RowKey = (i64, u64);

/// Place of a row in the run that is in memory.
#[derive(Clone, Copy, Debug)]
struct RowPlace {
    key: RowKey,
    line: u64,
    start: usize,
    length: usize,
}

/// Collects rows in any order.
pub(super) struct RowSorter {
    is_newest_first: bool,
    run_bytes_max: usize,
    bytes: Vec<u8>,
    places: Vec<RowPlace>,
    aside: Option<BufWriter<File>>,
    /// End of each run in the temporary file.
    ends: Vec<u64>,
}

impl RowSorter {
    /// Creates a sorter. Rows of the same time keep the file's order, or its reverse if the newest row comes first.
    pub(super) fn new(is_newest_first: bool) -> RowSorter {
        RowSorter {
            is_newest_first,
            run_bytes_max: RUN_BYTES_MAX,
            bytes: Vec::new(),
            places: Vec::new(),
            aside: None,
            ends: Vec::new(),
        }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, time_ns: i64, line: u64, row: &[u8]) -> io::Result<()> {
        if self.bytes.len() + row.len() + self.places.len() * ROW_BYTES > self.run_bytes_max {
            self.put_aside()?;
        }
        let of_time = if self.is_newest_first { u64::MAX - line } else { line };
        let place = RowPlace { key: (time_ns, of_time), line, start: self.bytes.len(), length: row.len() };
        self.places.push(place);
        self.bytes.extend_from_slice(row);
        Ok(())
    }

    /// Returns all rows in order. With `may_stay` the last rows stay in memory; otherwise they go to the temporary
    /// file, too.
    pub(super) fn finish(mut self, may_stay: bool) -> io::Result<SortedRows> {
        if !may_stay {
            self.put_aside()?;
            (self.bytes, self.places) = (Vec::new(), Vec::new());
        }
        self.places.sort_unstable_by_key(|place| place.key);
        let in_memory = Run::Memory { bytes: self.bytes, places: self.places.into_iter() };
        let mut runs = vec![in_memory];
        if let Some(aside) = self.aside {
            let file = Arc::new(aside.into_inner().map_err(io::IntoInnerError::into_error)?);
            let starts = std::iter::once(0).chain(self.ends.iter().copied());
            runs.extend(starts.zip(&self.ends).map(|(start, &end)| {
                Run::File(BufReader::with_capacity(
                    READ_BYTES,
                    FilePart { file: file.clone(), at: start, end },
                ))
            }));
        }
        let mut rows = SortedRows {
            heads: runs.iter().map(|_| SortedRow::default()).collect(),
            runs,
            order: BinaryHeap::new(),
            row: SortedRow::default(),
        };
        for run in 0..rows.runs.len() {
            rows.read_head(run)?;
        }
        Ok(rows)
    }

    /// Appends the rows in memory to the temporary file as a run.
    fn put_aside(&mut self) -> io::Result<()> {
        if self.ends.len() >= RUNS_MAX {
            let found = "it has too many rows to sort at once; feed it in parts";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, found));
        }
        self.places.sort_unstable_by_key(|place| place.key);
        let file = match &mut self.aside {
            Some(file) => file,
            None => self.aside.insert(BufWriter::with_capacity(READ_BYTES, tempfile::tempfile()?)),
        };
        let mut end = self.ends.last().copied().unwrap_or(0);
        for RowPlace { key: (time_ns, of_time), line, start, length } in self.places.drain(..) {
            file.write_all(&time_ns.to_le_bytes())?;
            file.write_all(&of_time.to_le_bytes())?;
            file.write_all(&line.to_le_bytes())?;
            // Lines are limited to a few megabytes.
            file.write_all(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes())?;
            file.write_all(&self.bytes[start..start + length])?;
            end += (HEAD_BYTES + length) as u64;
        }
        self.ends.push(end);
        self.bytes.clear();
        Ok(())
    }
}

/// A part of a file shared by several readers, each with its own position.
struct FilePart {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for FilePart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = (buffer.len() as u64).min(self.end - self.at) as usize;
        let read = self.file.read_at(&mut buffer[..wanted], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// A row with its line number.
#[derive(Debug, Default)]
struct SortedRow {
    line: u64,
    bytes: Vec<u8>,
}

enum Run {
    Memory { bytes: Vec<u8>, places: std::vec::IntoIter<RowPlace> },
    File(BufReader<FilePart>),
}

/// Rows in the order of their times.
pub(super) struct SortedRows {
    runs: Vec<Run>,
    /// The next row of each run.
    heads: Vec<SortedRow>,
    /// Keys of the runs' next rows, with the runs' indexes.
    order: BinaryHeap<Reverse<(RowKey, usize)>>,
    row: SortedRow,
}

impl SortedRows {
    /// Moves to the next row; returns `false` at the end.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        let Some(Reverse((_, run))) = self.order.pop() else { return Ok(false) };
        std::mem::swap(&mut self.row, &mut self.heads[run]);
        self.read_head(run)?;
        Ok(true)
    }

    /// Returns the row, byte for byte.
    pub(super) fn row(&self) -> &[u8] {
        &self.row.bytes
    }

    /// Returns the row's line number in the file.
    pub(super) fn line(&self) -> u64 {
        self.row.line
    }

    fn read_head(&mut self, run: usize) -> io::Result<()> {
        let head = &mut self.heads[run];
        head.bytes.clear();
        let key = match &mut self.runs[run] {
            Run::Memory { bytes, places } => {
                let Some(place) = places.next() else { return Ok(()) };
                head.line = place.line;
                head.bytes.extend_from_slice(&bytes[place.start..place.start + place.length]);
                place.key
            }
            Run::File(file) => {
                let mut fixed = [0; HEAD_BYTES];
                match file.read_exact(&mut fixed) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                    Err(error) => return Err(error),
                }
                let number = |at: usize| std::array::from_fn(|byte| fixed[at + byte]);
                head.line = u64::from_le_bytes(number(16));
                let length = u32::from_le_bytes(std::array::from_fn(|byte| fixed[24 + byte]));
                head.bytes.resize(length as usize, 0);
                file.read_exact(&mut head.bytes)?;
                (i64::from_le_bytes(number(0)), u64::from_le_bytes(number(8)))
            }
        };
        self.order.push(Reverse((key, run)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(
        times: &[i64],
        is_newest_first: bool,
        run_bytes_max: usize,
        may_stay: bool,
    ) -> Vec<(u64, String)> {
        let mut sorter = RowSorter { run_bytes_max, ..RowSorter::new(is_newest_first) };
        for (number, time) in times.iter().enumerate() {
            sorter.push(*time, number as u64, format!("row of {time}").as_bytes()).expect("put aside");
        }
        let mut rows = sorter.finish(may_stay).expect("sorted");
        let mut found = Vec::new();
        while rows.advance().expect("read") {
            found.push((rows.line(), String::from_utf8(rows.row().to_vec()).expect("text")));
        }
        found
    }

    #[test]
    fn rows_come_in_order_whatever_fits_into_memory() {
        let times: Vec<i64> = (0..500_i64).map(|number| number * 7_919 % 101 - 50).collect();
        let mut expected: Vec<(u64, String)> =
            times.iter().enumerate().map(|(line, time)| (line as u64, format!("row of {time}"))).collect();
        expected.sort_by_key(|(line, _)| (times[*line as usize], *line));
        for run_bytes_max in [1, 200, 5_000, RUN_BYTES_MAX] {
            for may_stay in [false, true] {
                assert_eq!(sorted(&times, false, run_bytes_max, may_stay), expected, "{run_bytes_max}");
            }
        }
        assert_eq!(sorted(&[], false, 100, false), []);
    }

    #[test]
    fn rows_of_one_time_are_turned_round_where_the_newest_comes_first() {
        let lines = |times: &[i64], is_newest_first| -> Vec<u64> {
            sorted(times, is_newest_first, 60, true).into_iter().map(|(line, _)| line).collect()
        };
        assert_eq!(lines(&[9, 9, 8, 7, 7], true), [4, 3, 2, 1, 0]);
        assert_eq!(lines(&[9, 9, 8, 7, 7], false), [3, 4, 2, 0, 1]);
    }

    #[test]
    fn too_many_runs_are_an_error() {
        let mut sorter = RowSorter { run_bytes_max: 1, ..RowSorter::new(false) };
        let failed = (0..10_000).find_map(|line| sorter.push(0, line, b"x").err()).expect("too many");
        assert_eq!(failed.kind(), io::ErrorKind::FileTooLarge);
    }
}
