//! `warptape dlq replay`: sends the original bytes of dead letters back to their topics.
//!
//! The progress is kept in a separate consumer group: the committed offset of a partition is the next letter to replay.
//! The offset is committed in the transaction that sends the records. So a second call continues after the last commit
//! of the first one, even if the first one crashed. Two concurrent calls share a transactional id, and the newer one
//! fences the older one before it reads the older one's progress.
//!
//! Contents of a letter are not trusted, because anybody may write one. Records go only to the topics that the pipeline
//! reads.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use warptape_eventlog::{EventLog, NewRecord, Producer};
use warptape_schemas::DeadLetter;

use super::letters::{Letter, Letters, Range};
use super::original;
use crate::cli::DlqReplayArgs;
use crate::clock::wall_clock_ns;
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::{printable_line, stdout};
use crate::settings::Settings;

/// Records of one transaction.
const TRANSACTION_RECORDS_MAX: usize = 1_000;
/// Bytes after which a transaction is committed.
const TRANSACTION_BYTES_DUE: usize = 4 << 20;

/// Sends the requested records and counts them.
pub fn execute(args: &DlqReplayArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    // The command creates no log.
    let log = open_log(settings, Purpose::Show)?.log;
    let letters = Letters::new(&*log, &settings.topics.names.dead_letter)?;
    if let Some(partition) = args.partition {
        letters.check_partition(partition)?;
    }
    let OpenLog { bare, .. } = open_log(settings, Purpose::Resend)?;
    let group = format!("{}.dlq", settings.engine.group);
    let targets = targets(&*bare, settings)?;
    // The producer refuses larger records, so the limits are read before it exists.
    let bytes_max = bare.record_bytes_max(&targets.keys().map(String::as_str).collect::<Vec<_>>())?;
    let mut resend = Resend {
        bytes_max: targets.keys().cloned().zip(bytes_max).collect(),
        producer: bare.producer(&group)?,
        targets,
        log: &*bare,
        letters: &letters,
        group,
        pending: Pending::default(),
        counts: Counts::default(),
    };
    let partitions: Vec<i32> = args.partition.map_or_else(|| letters.partitions().collect(), |one| vec![one]);
    let (from, to) = (args.offset.or(args.from), args.offset.or(args.to));
    let range = (from.is_some() || to.is_some()).then_some(Range { from, to });
    for &partition in &partitions {
        match range {
            None => resend.rest(partition)?,
            Some(range) => resend.range(partition, range)?,
        }
    }
    let mut stdout = stdout();
    write!(stdout, "{}", resend.counts.text(range.is_some()))?;
    Ok(ExitCode::SUCCESS)
}

struct Resend<'a> {
    producer: Box<dyn Producer>,
    /// The topics that the pipeline reads, each with its number of partitions. Records are sent to no other topic.
    targets: BTreeMap<String, i32>,
    /// The largest record that each topic accepts, in bytes.
    bytes_max: BTreeMap<String, usize>,
    log: &'a dyn EventLog,
    letters: &'a Letters<'a>,
    group: String,
    pending: Pending,
    counts: Counts,
}

/// Contents of the next transaction.
#[derive(Default)]
struct Pending {
    letters: Vec<DeadLetter>,
    bytes: usize,
}

/// Results of the command.
#[derive(Default)]
struct Counts {
    /// Number of records that were sent, by topic and partition.
    sent: BTreeMap<(String, i32), u64>,
    /// Number of sent records that an earlier call had sent as well.
    again: u64,
    /// True if letters were skipped because an earlier call had passed them.
    passes_over: bool,
    unreadable: u64,
    /// Number of records that were not sent because the pipeline does not read their topic, by topic and partition.
    refused: BTreeMap<(String, i32), u64>,
    /// Number of letters whose records are gone or too large.
    unsendable: u64,
}

/// Returns the topics in the log whose records the pipeline processes, each with its number of partitions.
fn targets(log: &dyn EventLog, settings: &Settings) -> anyhow::Result<BTreeMap<String, i32>> {
    let names = &settings.topics.names;
    let read = log.topics_named(&[&names.ticks, &names.risk_requests])?;
    Ok(read.into_iter().map(|info| (info.spec.name, info.spec.partitions)).collect())
}

impl Resend<'_> {
    /// Sends all letters of a partition that were not replayed yet.
    fn rest(&mut self, partition: i32) -> anyhow::Result<()> {
        let whole = self.letters.offsets(partition);
        let from = self.replayed_before(partition)?.clamp(whole.first, whole.next);
        self.counts.passes_over |= from > whole.first;
        let mut next = from;
        let letters = self.letters;
        letters.read(partition, Range { from: Some(from), to: None }, &mut |letter| {
            next = letter.record.offset + 1;
            self.add(letter)?;
            if self.pending.is_due() { self.commit(Some((partition, next))) } else { Ok(()) }
        })?;
        // The progress also moves past unreadable records at the end.
        if whole.next > from { self.commit(Some((partition, whole.next))) } else { Ok(()) }
    }

    /// Sends all letters in the range, even those already replayed. The partition's progress does not change.
    fn range(&mut self, partition: i32, range: Range) -> anyhow::Result<()> {
        let before = self.replayed_before(partition)?;
        let letters = self.letters;
        letters.read(partition, range, &mut |letter| {
            let is_sent = letter.content.as_ref().is_ok_and(|content| self.is_target(content));
            self.counts.again += u64::from(letter.record.offset < before && is_sent);
            self.add(letter)?;
            if self.pending.is_due() { self.commit(None) } else { Ok(()) }
        })?;
        self.commit(None)
    }

    fn replayed_before(&self, partition: i32) -> anyhow::Result<i64> {
        Ok(self.log.committed(&self.group, &self.letters.source(partition))?.unwrap_or(0))
    }

    fn add(&mut self, letter: Letter) -> anyhow::Result<()> {
        let (partition, offset) = (letter.partition, letter.record.offset);
        match letter.content {
            Ok(content) if !self.is_target(&content) => {
                *self.counts.refused.entry((content.topic, content.partition)).or_default() += 1;
            }
            Ok(content) => match self.whole(content)? {
                Ok(whole) => {
                    self.pending.bytes += whole.value.len();
                    self.pending.letters.push(whole);
                }
                Err(reason) => {
                    tracing::warn!(partition, offset, reason, "dead letter not replayed");
                    self.counts.unsendable += 1;
                }
            },
            Err(error) => {
                tracing::warn!(partition, offset, %error, "not a dead letter: skipped");
                self.counts.unreadable += 1;
            }
        }
        Ok(())
    }

    /// Returns a letter with its whole record, or the reason why the record cannot be sent.
    fn whole(&self, letter: DeadLetter) -> anyhow::Result<Result<DeadLetter, String>> {
        Ok(original::whole(self.log, letter)?.and_then(|letter| {
            let bytes_max = self.bytes_max.get(&letter.topic);
            match bytes_max.and_then(|bytes_max| original::too_large(&letter, *bytes_max)) {
                None => Ok(letter),
                Some(reason) => Err(reason),
            }
        }))
    }

    /// Returns true if the pipeline reads the topic and partition that the letter names as its source.
    fn is_target(&self, letter: &DeadLetter) -> bool {
        self.targets.get(&letter.topic).is_some_and(|partitions| (0..*partitions).contains(&letter.partition))
    }

    /// Sends the pending records, with the partition's progress after them.
    fn commit(&mut self, replayed: Option<(i32, i64)>) -> anyhow::Result<()> {
        let letters = std::mem::take(&mut self.pending).letters;
        if letters.is_empty() && replayed.is_none() {
            return Ok(());
        }
        self.producer.begin()?;
        let timestamp_ns = wall_clock_ns();
        for letter in &letters {
            self.producer.send(NewRecord {
                topic: letter.topic.as_str().into(),
                partition: letter.partition,
                key: letter.key.as_deref().map(Into::into),
                timestamp_ns,
                value: letter.value.as_slice().into(),
                ..NewRecord::default()
            })?;
        }
        if let Some((partition, next)) = replayed {
            self.producer.send_offsets(&self.group, &[(self.letters.source(partition), next)])?;
        }
        self.producer.commit()?;
        for letter in letters {
            *self.counts.sent.entry((letter.topic, letter.partition)).or_default() += 1;
        }
        Ok(())
    }
}

impl Pending {
    fn is_due(&self) -> bool {
        self.letters.len() >= TRANSACTION_RECORDS_MAX || self.bytes >= TRANSACTION_BYTES_DUE
    }
}

impl Counts {
    fn text(&self, is_range: bool) -> String {
        let total: u64 = self.sent.values().sum();
        let mut text = format!("replayed   {total:>8}\n");
        for ((topic, partition), count) in &self.sent {
            text += &format!("  to       {count:>8}   {topic} partition {partition}\n");
        }
        if self.again > 0 {
            text += &format!("again      {:>8}   of them an earlier call had replayed too\n", self.again);
        }
        if self.unreadable > 0 {
            text += &format!("unreadable {:>8}   not dead letters: skipped\n", self.unreadable);
        }
        for ((topic, partition), count) in &self.refused {
            text += &format!(
                "refused    {count:>8}   name {} partition {partition} as their source, which the pipeline \
                 does not read: not sent\n",
                printable_line(topic)
            );
        }
        if self.unsendable > 0 {
            text += &format!(
                "kept back  {:>8}   records that are gone or too large; the reasons are above\n",
                self.unsendable
            );
        }
        if self.passes_over {
            text += "Dead letters that an earlier call replayed were not sent again; to send them again, use --offset, --from or --to.\n";
        }
        if is_range && total > 0 {
            text += "A second call with this range sends these dead letters again; a call without a range may do so too.\n";
        }
        text
    }
}
