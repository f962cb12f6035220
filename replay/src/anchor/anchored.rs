//! Anchors that were stored elsewhere: evidence of a journal's earlier contents.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::{Anchor, PublicKey, Told};
use warptape_schemas::hex::Digits;

/// Greatest number of anchors kept per journal partition; beyond it, every second one is dropped, but never the newest.
const ANCHORS_MAX: usize = 65_536;
/// Longest line, in bytes.
const LINE_BYTES_MAX: u64 = 4_096;
/// Size of a file's tail in which its newest anchor is searched first, in bytes.
const TAIL_BYTES: u64 = 64 << 10;

/// Anchors by journal topic and partition.
#[derive(Clone, Debug, Default)]
pub struct Anchored {
    /// Source of the anchors, for messages.
    pub source: String,
    pub(super) partitions: BTreeMap<(String, i32), PartitionAnchors>,
    /// Number of lines that are not anchors, such as a line that was cut off when its writer died.
    pub(super) unreadable: u64,
    /// Number of anchors that none of the given keys signed.
    pub(super) foreign: u64,
    /// True if signatures were verified.
    pub(super) is_verified: bool,
}

/// Anchors of one partition.
#[derive(Clone, Debug, Default)]
pub(super) struct PartitionAnchors {
    /// Hashes by sequence.
    pub(super) entries: BTreeMap<i64, Digits<64>>,
    /// Sequence for which two anchors have different hashes; `None` if there is none.
    pub(super) torn: Option<i64>,
    /// The lifecycle records of each life, as counted by its newest anchor.
    pub(super) told: BTreeMap<i64, Told>,
}

/// Reasons why anchors cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AnchoredError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The file or log contains no anchor.
    #[error(
        "{place}: holds no anchor ({unreadable} lines are not anchors, {foreign} anchors are signed with other keys)"
    )]
    None {
        /// The file or the log.
        place: String,
        /// Number of lines that are not anchors.
        unreadable: u64,
        /// Number of anchors that other keys signed.
        foreign: u64,
    },
}

impl Anchored {
    /// Reads a file of anchors, one per line. If keys are given, only anchors that they signed count.
    pub fn read(path: &Path, keys: &[PublicKey]) -> Result<Self, AnchoredError> {
        let unreadable = |source| AnchoredError::Unreadable { path: path.to_owned(), source };
        let mut reader = BufReader::new(File::open(path).map_err(unreadable)?);
        let mut anchored = Self::new(path.display().to_string(), keys);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
            if length.map_err(unreadable)? == 0 {
                return anchored.finish();
            }
            anchored.add_line(&line, keys);
        }
    }

    /// Creates an empty collection for anchors that are read from `source`.
    pub fn new(source: String, keys: &[PublicKey]) -> Self {
        Self { source, is_verified: !keys.is_empty(), ..Self::default() }
    }

    /// Adds one more line.
    pub fn add_line(&mut self, line: &[u8], keys: &[PublicKey]) {
        let line = std::str::from_utf8(line).map(str::trim_end).unwrap_or_default();
        match line.parse::<Anchor>() {
            Err(_) => self.unreadable += 1,
            Ok(anchor) if !keys.is_empty() && !keys.iter().any(|key| anchor.is_by(key)) => self.foreign += 1,
            Ok(anchor) => self.add(&anchor),
        }
    }

    /// Finishes reading; returns an error if there was no anchor.
    pub fn finish(self) -> Result<Self, AnchoredError> {
        if self.partitions.is_empty() {
            let Self { source: place, unreadable, foreign, .. } = self;
            return Err(AnchoredError::None { place, unreadable, foreign });
        }
        Ok(self)
    }

    fn add(&mut self, anchor: &Anchor) {
        let statement = &anchor.statement;
        let partition = self.partitions.entry((statement.topic.clone(), statement.partition)).or_default();
        if partition.entries.len() >= ANCHORS_MAX {
            let mut index = 0;
            partition.entries.retain(|_, _| {
                index += 1;
                index % 2 == 0
            });
        }
        let known = partition.entries.insert(statement.sequence, statement.hash);
        if known.is_some_and(|known| known != statement.hash) {
            partition.torn.get_or_insert(statement.sequence);
        }
        let told = partition.told.entry(statement.told.life).or_insert(statement.told);
        if told.count < statement.told.count {
            *told = statement.told;
        }
    }

    /// Returns the newest anchor of a journal's partition in a file; `None` if the file is missing or has none.
    pub fn newest(path: &Path, topic: &str, partition: i32) -> io::Result<Option<Anchor>> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let length = file.seek(SeekFrom::End(0))?;
        let mut back = TAIL_BYTES;
        loop {
            let from = length.saturating_sub(back);
            file.seek(SeekFrom::Start(from))?;
            let mut newest: Option<Anchor> = None;
            let mut reader = BufReader::new(&mut file);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line)? > 0 {
                let text = std::str::from_utf8(&line).map(str::trim_end).unwrap_or_default();
                let anchor = text.parse::<Anchor>().ok().filter(|anchor| {
                    (anchor.statement.topic.as_str(), anchor.statement.partition) == (topic, partition)
                });
                newest = anchor.or(newest);
                line.clear();
            }
            if newest.is_some() || from == 0 {
                return Ok(newest);
            }
            back = back.saturating_mul(16);
        }
    }
}
