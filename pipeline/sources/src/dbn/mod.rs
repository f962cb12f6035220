//! Databento Binary Encoding: files of trades and of books, plain or compressed with Zstandard.
//!
//! | record | becomes |
//! | --- | --- |
//! | trades, action `T` | a trade |
//! | mbp-1 and cmbp-1, action `T` | a trade, and before it a quote of its level 0, the book before it, where that was not told yet |
//! | mbp-1 and cmbp-1, any other action | a quote of level 0 |
//! | mbp-10 | the same as of mbp-1, with quotes only if level 0 has changed |
//! | tbbo and tcbbo; mbp-1 of live recordings, which name no schema | a quote (level 0, the book before the trade), then the trade |
//! | bbo and cbbo | a quote at `ts_recv`, the end of the interval |
//! | a trade of size 0, a record of another schema | nothing |
//!
//! Ignored records are counted by kind.
//!
//! Prices in the files are also in units of 1e-9; an undefined price means an absent side of the book. Sizes are whole
//! units. The event time is `ts_event`, the receive time `ts_recv`. A trade's id is `sequence`, the number of the
//! venue's message; further trades of the same message have no id. Symbols are `VENUE:RAW_SYMBOL`. The raw symbol comes
//! from the file's symbology at the record's time. The venue is the file's data set, unless another one is given. In a
//! data set with several publishers, each publisher is a venue of its own, `DATASET.PUBLISHER`. Consolidated books
//! (cmbp-1, cbbo, tcbbo) belong to the data set itself. Several files are merged by receive time.

mod market_event;
mod publisher_venues;
mod record_reader;
mod whole_stream;

use std::collections::VecDeque;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use ::dbn::decode::{DbnDecoder, DbnMetadata, DynReader};
use ::dbn::{Record, VersionUpgradePolicy};
use warptape_events::tick::Tick;

use self::record_reader::{RecordProblem, RecordReader};
use self::whole_stream::WholeStream;
use super::arrival_merge::{ArrivalMerge, TickInput};
use super::input::{CountedFile, FileProgress};
use super::{DOES_NOT_FIT, FieldProblem, PassedOver, SourceError};

/// Greatest number of bad records per file that get a warning each.
const WARNED: u64 = 10;

/// Ticks of one or more DBN files.
pub type DbnSource = ArrivalMerge<DbnFile>;

impl DbnSource {
    /// Opens the files and reads their metadata. A bad record ends a file's ticks, unless bad records are skipped.
    ///
    /// # Errors
    /// If no file is given, or one cannot be opened or is not DBN.
    pub fn open(paths: &[PathBuf], venue: Option<&str>, skips_bad: bool) -> Result<DbnSource, SourceError> {
        if paths.is_empty() {
            return Err(SourceError::NoFiles);
        }
        let files: Result<Vec<DbnFile>, SourceError> =
            paths.iter().map(|path| DbnFile::open(path, venue, skips_bad)).collect();
        Ok(ArrivalMerge::new(files?))
    }
}

/// Ticks of one file, in the order of its records.
pub struct DbnFile {
    path: PathBuf,
    decoder: DbnDecoder<WholeStream<DynReader<'static, BufReader<CountedFile>>>>,
    progress: FileProgress,
    reader: RecordReader,
    /// Ticks of the last record that were not returned yet.
    ticks: VecDeque<Tick>,
    /// Number of records decoded so far.
    record: u64,
    /// Number of uncompressed bytes of these records.
    records_bytes: u64,
    passed_over: PassedOver,
    skips_bad: bool,
}

impl DbnFile {
    fn open(path: &Path, venue: Option<&str>, skips_bad: bool) -> Result<DbnFile, SourceError> {
        let (file, progress) = CountedFile::open(path)?;
        let failed = |source| SourceError::Dbn { path: path.to_owned(), record: 0, source };
        let stream = WholeStream::new(DynReader::inferred_with_buffer(file).map_err(failed)?);
        // The records of interest are the same in versions 1 to 3, and without conversion their bytes can be counted.
        let decoder = DbnDecoder::with_upgrade_policy(stream, VersionUpgradePolicy::AsIs).map_err(failed)?;
        let reader = RecordReader::new(decoder.metadata(), venue).map_err(failed)?;
        Ok(DbnFile {
            path: path.to_owned(),
            decoder,
            progress,
            reader,
            ticks: VecDeque::new(),
            record: 0,
            records_bytes: 0,
            passed_over: PassedOver::default(),
            skips_bad,
        })
    }

    /// Returns the next tick. Skips records without ticks.
    fn pull(&mut self) -> Result<Option<Tick>, SourceError> {
        loop {
            if let Some(tick) = self.ticks.pop_front() {
                return Ok(Some(tick));
            }
            let record = match self.decoder.decode_ref() {
                Ok(Some(record)) => record,
                Ok(None) => return self.check_end(),
                Err(source) => {
                    return Err(SourceError::Dbn { path: self.path.clone(), record: self.record, source });
                }
            };
            self.record += 1;
            self.records_bytes += record.record_size() as u64;
            let Err(problem) = self.reader.read(record, &mut self.ticks, &mut self.passed_over) else {
                continue;
            };
            let may_be_skipped = !matches!(problem, RecordProblem::Decode(_));
            let error = self.error(problem);
            if !(self.skips_bad && may_be_skipped) {
                return Err(error);
            }
            self.ticks.clear();
            self.passed_over.bad += 1;
            match self.passed_over.bad {
                ..WARNED => tracing::warn!("{error}; the record is skipped"),
                WARNED => tracing::warn!(
                    "{error}; the record is skipped, and further ones are skipped \
                                          without a message"
                ),
                _ => {}
            }
        }
    }

    /// Checks that the stream ends at the end of a record.
    fn check_end(&self) -> Result<Option<Tick>, SourceError> {
        if self.decoder.get_ref().holds(self.records_bytes) {
            return Ok(None);
        }
        Err(SourceError::DbnCutShort { path: self.path.clone(), record: self.record })
    }

    /// Returns the error for the record that was decoded last.
    fn error(&self, problem: RecordProblem) -> SourceError {
        let (path, record) = (self.path.clone(), self.record);
        match problem {
            RecordProblem::Field(problem) => SourceError::BadRecord { path, record, problem },
            RecordProblem::UnknownInstrument { instrument_id, event_time_ns } => {
                SourceError::UnknownInstrument { path, record, instrument_id, event_time_ns }
            }
            RecordProblem::Decode(source) => SourceError::Dbn { path, record: record - 1, source },
        }
    }
}

impl Iterator for DbnFile {
    type Item = Result<Tick, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pull().transpose()
    }
}

impl TickInput for DbnFile {
    const PLACE: &'static str = "record";

    fn leave_out(&mut self, problem: FieldProblem) -> Result<(), SourceError> {
        tracing::warn!(path = %self.path.display(), record = self.record, %problem, "a tick is left out");
        self.passed_over.ignore(DOES_NOT_FIT);
        Ok(())
    }

    fn progress(&self) -> &FileProgress {
        &self.progress
    }

    fn place(&self) -> u64 {
        self.record
    }

    fn passed_over(&self) -> PassedOver {
        self.passed_over.clone()
    }
}

#[cfg(test)]
mod tests;
