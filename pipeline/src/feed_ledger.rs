//! The ledger of feeds: the progress of each source, kept in the log and committed with the ticks. So a repeated feed
//! adds nothing.
//!
//! A file is identified by its content: by the digest of its bytes at the time of the feed. So the feed of a file that
//! has grown continues at the file's old end. This module must not know how sources are read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use warptape_eventlog::{EventLog, Fetched, LogError, TopicPartition};
use warptape_schemas::{Feed, decode_feed, encode_feed};

/// Greatest number of records and bytes of one read of the topic.
const READ_RECORDS_MAX: usize = 1_024;
const READ_BYTES_MAX: usize = 4 << 20;
/// Wait before the reader checks again whether it reached the end.
const READ_WAIT: Duration = Duration::from_millis(100);
/// Number of bytes at a file's beginning that identify it while it is fed.
const CLAIMED_BYTES: u64 = 4_096;
/// Number of bytes of a file read at once.
const BLOCK_BYTES: usize = 1 << 20;

/// Reasons for unknown or contradictory progress.
#[derive(Debug, thiserror::Error)]
pub enum FeedLedgerError {
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The same file is named twice.
    #[error("{}: the same content is named twice; name each file once", path.display())]
    Twice {
        /// The second file.
        path: PathBuf,
    },
    /// The file was fed in another order.
    #[error(
        "{}: {ticks} of its ticks are already in the log, fed {}. Fed in another order, they would count twice: use the same order, or publish the whole file again with --again",
        path.display(),
        if *were_sorted { "sorted (--sort)" } else { "in file order (--keep-order)" }
    )]
    OtherOrder {
        /// The file.
        path: PathBuf,
        /// Number of its ticks in the log.
        ticks: i64,
        /// True if the ticks were sorted.
        were_sorted: bool,
    },
    /// A file that was fed sorted has grown.
    #[error(
        "{}: was fed sorted and has grown since. Its new rows may lie between rows in the log: feed them as \
         a separate file, or publish the whole file again with --again",
        path.display()
    )]
    SortedGrew {
        /// The file.
        path: PathBuf,
    },
    /// A file that was fed in part has changed since.
    #[error(
        "{}: was fed before, up to tick {ticks} but not to its end, and has changed since. Ticks of both \
         versions would count twice: restore the old file, or publish the whole new one with --again. For \
         bad lines in a CSV file, restore it and use --skip-bad",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// Number of its ticks in the log.
        ticks: i64,
    },
}

/// An input of a feed: a file, or a generator of ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedInput {
    /// Kind of the source, with everything besides the file's bytes that determines its ticks.
    pub source: String,
    /// The file; `None` for a generator.
    pub path: Option<PathBuf>,
    /// True if the ticks are fed in another order than the file's.
    pub is_sorted: bool,
    /// Source text of the same file fed in the other order; `None` if there is only one order.
    pub other_order: Option<String>,
}

/// Progress of a feed's inputs in the log.
#[derive(Debug, Default)]
pub struct FeedLedger {
    topic: String,
    /// Feed of each input; `None` for an input that cannot be identified again, such as a pipe.
    feeds: Vec<Option<Feed>>,
    changed: BTreeSet<usize>,
    /// Scales that earlier feeds set, of symbols whose prices do not have nine decimals.
    scales: BTreeMap<String, u8>,
    /// Scales set since the last commit.
    begun: Vec<Feed>,
}

/// Source text that records a symbol's scale other than nine decimals. Later prices of the symbol must be exact at that
/// scale.
const SCALE_OF: &str = "scale of symbol=";
const DECIMALS: &str = " decimals=";

impl FeedLedger {
    /// Finds the tick at which each input continues; with `again`, its first one.
    ///
    /// # Errors
    /// If the log or a file cannot be read, or a file would be fed twice.
    pub fn open(
        log: &dyn EventLog,
        topic: &str,
        inputs: &[FeedInput],
        again: bool,
    ) -> Result<Self, FeedLedgerError> {
        let known = read(log, topic)?;
        let beginnings: Vec<Option<Beginnings>> =
            inputs.iter().map(|input| Beginnings::read(input, &known)).collect::<Result<_, _>>()?;
        let mut feeds: Vec<Option<Feed>> = Vec::with_capacity(inputs.len());
        for (input, own) in inputs.iter().zip(&beginnings) {
            let mut feed = match (&input.path, own) {
                (None, _) => Some(synthetic(input, &known)),
                (Some(path), Some(own)) => {
                    let feed = of_file(input, path, &known, own);
                    if !again {
                        check_order(input, path, &known, own)?;
                    }
                    // Contents distinguish files of the same name.
                    let is_any = |feed: &Feed| beginnings.iter().flatten().any(|file| file.hold(feed));
                    match changed(path, &feed, &known).filter(|feed| !again && !is_any(feed)) {
                        Some(Feed { ticks, .. }) => {
                            return Err(FeedLedgerError::Changed { path: path.clone(), ticks: *ticks });
                        }
                        None => Some(feed),
                    }
                }
                (Some(_), None) => None,
            };
            if let Some(feed) = &mut feed {
                if again {
                    feed.ticks = 0;
                }
                let is_same = |other: &Feed| other.key() == feed.key();
                if let Some(path) = input.path.as_ref().filter(|_| feeds.iter().flatten().any(is_same)) {
                    return Err(FeedLedgerError::Twice { path: path.clone() });
                }
            }
            feeds.push(feed);
        }
        let scales = known.iter().filter_map(|feed| scale_of(&feed.source)).collect();
        Ok(Self { topic: topic.to_owned(), feeds, changed: BTreeSet::new(), scales, begun: Vec::new() })
    }

    /// Returns the scales of symbols whose prices do not have nine decimals.
    pub fn scales(&self) -> &BTreeMap<String, u8> {
        &self.scales
    }

    /// Records that the symbol's first prices in the log have this scale.
    pub fn begin_scale(&mut self, symbol: String, scale: u8) {
        if !self.scales.contains_key(&symbol) {
            let source = format!("{SCALE_OF}{symbol}{DECIMALS}{scale}");
            self.begun.push(Feed { source, is_finished: true, ..Feed::default() });
            self.scales.insert(symbol, scale);
        }
    }

    /// Returns the name of the topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Returns the number of each input's ticks in the log, which the feed skips.
    pub fn ticks(&self) -> impl Iterator<Item = u64> + '_ {
        self.feeds.iter().map(|feed| feed.as_ref().map_or(0, |feed| feed.ticks.unsigned_abs()))
    }

    /// Counts a published tick of an input.
    pub fn count(&mut self, input: usize) {
        if let Some(Some(feed)) = self.feeds.get_mut(input) {
            feed.ticks += 1;
            feed.is_finished = false;
            self.changed.insert(input);
        }
    }

    /// Notes that all inputs were read to their end.
    pub fn finish(&mut self) {
        for (input, feed) in self.feeds.iter_mut().enumerate() {
            if let Some(feed) = feed.as_mut().filter(|feed| !feed.is_finished) {
                feed.is_finished = true;
                self.changed.insert(input);
            }
        }
    }

    /// Returns keys and records of all changes since the last call.
    pub fn take_records(&mut self) -> Vec<(String, Vec<u8>)> {
        let changed = std::mem::take(&mut self.changed).into_iter();
        let record = |feed: &Feed| {
            let mut bytes = Vec::new();
            encode_feed(feed, &mut bytes);
            (feed.key(), bytes)
        };
        let begun = std::mem::take(&mut self.begun);
        let begun = begun.iter().map(record).collect::<Vec<_>>();
        changed.filter_map(|input| self.feeds[input].as_ref().map(record)).chain(begun).collect()
    }
}

/// Ensures that no other process feeds one of the inputs until the returned guards are dropped. On Kafka this reserves
/// nothing.
///
/// The first bytes identify a file, because they stay the same while the file grows.
pub fn claim(
    log: &dyn EventLog,
    topic: &str,
    inputs: &[FeedInput],
) -> Result<Vec<Box<dyn Send>>, FeedLedgerError> {
    let mut names = BTreeSet::new();
    for FeedInput { source, path, .. } in inputs {
        let mut hasher = blake3::Hasher::new();
        hasher.update(topic.as_bytes()).update(&[0]).update(source.as_bytes()).update(&[0]);
        if let Some(path) = path {
            if !is_file(path)? {
                continue;
            }
            let failed = |source| FeedLedgerError::File { path: path.clone(), source };
            let content = Content::open(path).map_err(failed)?;
            hasher.update_reader(content.take(CLAIMED_BYTES)).map_err(failed)?;
        }
        names.insert(format!("feed-{}", &hasher.finalize().to_hex()[..16]));
    }
    names.iter().map(|name| Ok(log.claim(name)?)).collect()
}

/// Returns all known feeds, oldest first.
fn read(log: &dyn EventLog, topic: &str) -> Result<Vec<Feed>, LogError> {
    let source = TopicPartition { topic: topic.to_owned(), partition: 0 };
    let mut reader = log.reader(std::slice::from_ref(&source))?;
    // A feed in progress may hide later commits of others, so this waits for the end of its transaction.
    let end = log.written_end(&source)?;
    let mut known: Vec<Feed> = Vec::new();
    while reader.position(&source)? < end {
        let Fetched::Records { records, .. } = reader.poll(READ_WAIT, READ_RECORDS_MAX, READ_BYTES_MAX)?
        else {
            continue;
        };
        for record in records {
            match decode_feed(&record.value) {
                Ok(feed) => {
                    known.retain(|older| older.key() != feed.key());
                    known.push(feed);
                }
                Err(error) => {
                    tracing::warn!(offset = record.offset, %error, "a record of feeds cannot be read and is skipped")
                }
            }
        }
    }
    Ok(known)
}

/// Parses a symbol and the scale of its prices from their source text.
fn scale_of(source: &str) -> Option<(String, u8)> {
    let (symbol, decimals) = source.strip_prefix(SCALE_OF)?.rsplit_once(DECIMALS)?;
    Some((symbol.to_owned(), decimals.parse().ok()?))
}

fn synthetic(input: &FeedInput, known: &[Feed]) -> Feed {
    let new = Feed { source: input.source.clone(), ..Feed::default() };
    known.iter().rfind(|feed| feed.key() == new.key()).cloned().unwrap_or(new)
}

fn is_file(path: &Path) -> Result<bool, FeedLedgerError> {
    match path.metadata() {
        Ok(metadata) => Ok(metadata.is_file()),
        Err(source) => Err(FeedLedgerError::File { path: path.to_owned(), source }),
    }
}

/// Sizes and digests of a file's prefixes that may have been fed before; the last one is of the whole file.
struct Beginnings {
    source: String,
    /// Sizes and digests of the unpacked contents, so that a file and its packed copy are equal.
    digests: Vec<(u64, String)>,
}

impl Beginnings {
    /// Reads the digests; `None` for an input without a file.
    fn read(input: &FeedInput, known: &[Feed]) -> Result<Option<Self>, FeedLedgerError> {
        let Some(path) = &input.path else { return Ok(None) };
        if !is_file(path)? {
            return Ok(None);
        }
        let is_source =
            |source: &String| *source == input.source || Some(source) == input.other_order.as_ref();
        let of_source = known.iter().filter(|feed| is_source(&feed.source));
        let sizes: BTreeSet<u64> = of_source.map(|feed| feed.size_bytes.unsigned_abs()).collect();
        let failed = |source| FeedLedgerError::File { path: path.clone(), source };
        let content = Content::open(path).map_err(failed)?;
        let digests = prefix_digests(content, &sizes).map_err(failed)?;
        Ok(Some(Self { source: input.source.clone(), digests }))
    }

    /// True if the file, or a non-empty prefix of it, was fed before.
    fn hold(&self, feed: &Feed) -> bool {
        let is_any = self.digests.iter().any(|digest| is_of(digest, feed));
        feed.size_bytes > 0 && feed.source == self.source && is_any
    }

    /// Returns the known feed of the longest prefix, and true if that prefix is the whole file.
    fn before<'a>(&self, known: &'a [Feed]) -> Option<(&'a Feed, bool)> {
        let held = known.iter().filter(|feed| self.hold(feed));
        let feed = held.max_by_key(|feed| feed.size_bytes)?;
        Some((feed, self.digests.last().is_some_and(|whole| is_of(whole, feed))))
    }
}

/// Refuses a file whose ticks are in the log in another order, or whose new rows may belong between them.
fn check_order(
    input: &FeedInput,
    path: &Path,
    known: &[Feed],
    beginnings: &Beginnings,
) -> Result<(), FeedLedgerError> {
    let holds = |feed: &&Feed| {
        feed.ticks > 0 && feed.size_bytes > 0 && beginnings.digests.iter().any(|digest| is_of(digest, feed))
    };
    let other = |feed: &&Feed| Some(&feed.source) == input.other_order.as_ref();
    if let Some(feed) = known.iter().filter(other).find(holds) {
        let (ticks, were_sorted) = (feed.ticks, !input.is_sorted);
        return Err(FeedLedgerError::OtherOrder { path: path.to_owned(), ticks, were_sorted });
    }
    let grew = |feed: &&Feed| feed.source == input.source && holds(feed);
    let is_whole = beginnings.before(known).is_some_and(|(_, is_whole)| is_whole);
    if input.is_sorted && !is_whole && known.iter().any(|feed| grew(&feed)) {
        return Err(FeedLedgerError::SortedGrew { path: path.to_owned() });
    }
    Ok(())
}

fn is_of((size, digest): &(u64, String), feed: &Feed) -> bool {
    *size == feed.size_bytes.unsigned_abs() && *digest == feed.digest
}

/// Returns the feed of the file, with the progress of its longest prefix that was fed before.
fn of_file(input: &FeedInput, path: &Path, known: &[Feed], beginnings: &Beginnings) -> Feed {
    let (size, digest) = beginnings.digests.last().expect("the whole file has a digest").clone();
    let before = beginnings.before(known);
    let ticks = before.map_or(0, |(feed, _)| feed.ticks);
    let size_bytes = size as i64;
    let is_finished = before.is_some_and(|(feed, is_whole)| feed.is_finished && is_whole);
    Feed { source: input.source.clone(), name: file_name(path), digest, size_bytes, ticks, is_finished }
}

/// Returns the last feed of a file with this name, if it shows that the file has changed. This is so if that feed did
/// not reach the file's end, but got further than any feed of a prefix of this file.
fn changed<'a>(path: &Path, feed: &Feed, known: &'a [Feed]) -> Option<&'a Feed> {
    let name = file_name(path);
    let last = known.iter().rfind(|known| known.source == feed.source && known.name == name);
    last.filter(|last| !last.is_finished && last.ticks > feed.ticks)
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Unpacked contents of a file.
enum Content {
    Plain(File),
    Packed(Box<dyn Read>),
}

impl Content {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(match warptape_sources::unpacked(path)? {
            Some(unpacked) => Self::Packed(unpacked),
            None => Self::Plain(File::open(path)?),
        })
    }
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(buffer),
            // A damaged or truncated packed file ends before the damage; the feed itself reports the error.
            Self::Packed(unpacked) => Ok(unpacked.read(buffer).unwrap_or(0)),
        }
    }
}

/// Returns digests of the prefixes with these sizes, up to the file's length, and of the whole file.
fn prefix_digests(mut file: impl Read, sizes: &BTreeSet<u64>) -> io::Result<Vec<(u64, String)>> {
    let mut hasher = blake3::Hasher::new();
    let mut block = vec![0; BLOCK_BYTES];
    let mut digests = Vec::new();
    for size in sizes.iter().copied().map(Some).chain([None]) {
        loop {
            let left = size.map_or(u64::MAX, |size| size - hasher.count());
            let wanted = left.min(BLOCK_BYTES as u64) as usize;
            let read = file.read(&mut block[..wanted])?;
            hasher.update(&block[..read]);
            if read == 0 {
                break;
            }
        }
        let read = hasher.count();
        if size.is_none_or(|size| size == read) {
            digests.push((read, hasher.finalize().to_hex().to_string()));
        }
    }
    Ok(digests)
}
