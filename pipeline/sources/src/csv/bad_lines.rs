//! Treatment of lines that do not parse: an error, or a copy in a separate file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::{FieldProblem, SourceError};

/// Treatment of a line that does not parse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BadLines {
    /// The line stops the source.
    #[default]
    Stop,
    /// The line is counted, and appended byte for byte to `<file>.bad`, next to its file or in the given folder. The
    /// first bad line replaces such a file of an earlier run.
    Aside {
        /// Folder of the files for bad lines; `None` puts each next to its CSV file.
        folder: Option<PathBuf>,
    },
}

/// The bad lines of one file. The first one creates the file.
pub(super) struct AsideFile {
    path: PathBuf,
    writer: Option<BufWriter<File>>,
    count: u64,
    /// Number and fault of the first bad line; `None` before it.
    first: Option<(u64, String)>,
}

impl AsideFile {
    /// Creates the collector of a file's bad lines; `None` if bad lines stop the source.
    pub(super) fn of(csv_path: &Path, bad_lines: &BadLines) -> Option<AsideFile> {
        let BadLines::Aside { folder } = bad_lines else { return None };
        let mut name = csv_path.file_name().unwrap_or_default().to_owned();
        name.push(".bad");
        let path = match folder {
            Some(folder) => folder.join(name),
            None => csv_path.with_file_name(name),
        };
        Some(AsideFile { path, writer: None, count: 0, first: None })
    }

    /// Appends a line with its line end.
    pub(super) fn write(&mut self, raw: &[u8], line: u64, problem: &FieldProblem) -> Result<(), SourceError> {
        let writer = match self.writer.take() {
            Some(writer) => Ok(writer),
            None => File::create(&self.path).map(BufWriter::new),
        };
        let written = writer.and_then(|mut writer| {
            writer.write_all(raw)?;
            Ok(self.writer.insert(writer))
        });
        written.map_err(|source| SourceError::Aside { path: self.path.clone(), source })?;
        self.count_only(line, problem);
        Ok(())
    }

    /// Counts a line without writing it.
    pub(super) fn count_only(&mut self, line: u64, problem: &FieldProblem) {
        self.first.get_or_insert_with(|| (line, problem.to_string()));
        self.count += 1;
    }

    /// Flushes buffered lines. Called at the end of the CSV file, while an error can still be reported.
    pub(super) fn finish(&mut self) -> Result<(), SourceError> {
        let flushed = self.writer.as_mut().map_or(Ok(()), Write::flush);
        flushed.map_err(|source| SourceError::Aside { path: self.path.clone(), source })
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns number and fault of the first bad line.
    pub(super) fn first(&self) -> Option<&(u64, String)> {
        self.first.as_ref()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
