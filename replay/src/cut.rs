//! One moment of a log: how far each topic reaches, consistently, while a pipeline may go on writing.

use std::collections::BTreeMap;

use warptape_eventlog::{EventLog, LogError, OffsetRange, TopicPartition};

use crate::{OutputOptions, ReplayError, VerifyOptions};

/// Looks at the log before giving up: commits are some 100 ms apart, a look takes a few.
const ATTEMPTS_MAX: u32 = 100;

/// Partitions' offsets by topic.
type Shelf = BTreeMap<String, Vec<OffsetRange>>;

/// What is verified, as of one moment between two transactions.
#[derive(Debug)]
pub(crate) struct Cut {
    /// By partition: each process of a group writes one.
    pub(crate) journal: Vec<OffsetRange>,
    /// By partition; empty where outputs are not asked for.
    pub(crate) partitions: Vec<PartitionCut>,
}

/// Ticks and outputs of a partition.
#[derive(Debug)]
pub(crate) struct PartitionCut {
    /// The ticks whose outputs exist.
    pub(crate) ticks: OffsetRange,
    pub(crate) signals: OffsetRange,
    pub(crate) late: OffsetRange,
    pub(crate) dead_letter: OffsetRange,
}

impl Cut {
    /// Looks until nothing was committed in between.
    pub(crate) fn take(log: &dyn EventLog, options: &VerifyOptions) -> Result<Self, ReplayError> {
        let mut written = vec![options.journal.as_str()];
        if let Some(outputs) = &options.outputs {
            written.extend([&outputs.signals, &outputs.late, &outputs.dead_letter].map(String::as_str));
        }
        let mut shelf = shelf(log)?;
        for _ in 0..ATTEMPTS_MAX {
            let cut = Self::from_shelf(log, options, &shelf)?;
            let after = self::shelf(log)?;
            if written.iter().all(|topic| shelf.get(*topic) == after.get(*topic)) {
                return Ok(cut);
            }
            shelf = after;
        }
        Err(ReplayError::Moving { url: log.url(), attempts: ATTEMPTS_MAX })
    }

    fn from_shelf(log: &dyn EventLog, options: &VerifyOptions, shelf: &Shelf) -> Result<Self, ReplayError> {
        let journal = ranges(log, shelf, &options.journal)?.to_vec();
        if journal.iter().all(|range| range.first == range.next) {
            return Err(ReplayError::EmptyJournal { url: log.url(), topic: options.journal.clone() });
        }
        let partitions = match &options.outputs {
            Some(outputs) => partitions(log, outputs, shelf)?,
            None => Vec::new(),
        };
        Ok(Self { journal, partitions })
    }
}

fn shelf(log: &dyn EventLog) -> Result<Shelf, LogError> {
    Ok(log.topics()?.into_iter().map(|topic| (topic.spec.name, topic.offsets)).collect())
}

fn ranges<'a>(log: &dyn EventLog, shelf: &'a Shelf, topic: &str) -> Result<&'a [OffsetRange], ReplayError> {
    shelf.get(topic).map(Vec::as_slice).ok_or_else(|| ReplayError::NoTopic {
        url: log.url(),
        topic: topic.to_owned(),
        known: match shelf.len() {
            0 => "no topics".to_owned(),
            _ => shelf.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        },
    })
}

fn partitions(
    log: &dyn EventLog,
    outputs: &OutputOptions,
    shelf: &Shelf,
) -> Result<Vec<PartitionCut>, ReplayError> {
    let ticks = ranges(log, shelf, &outputs.ticks)?;
    let fitting = |topic: &str| {
        let found = ranges(log, shelf, topic)?;
        if found.len() == ticks.len() {
            return Ok(found);
        }
        let (url, topic) = (log.url(), topic.to_owned());
        let (found, expected) = (found.len() as i32, ticks.len() as i32);
        Err(ReplayError::PartitionsDiffer { url, topic, found, expected })
    };
    let (signals, late) = (fitting(&outputs.signals)?, fitting(&outputs.late)?);
    let dead_letter = fitting(&outputs.dead_letter)?;
    let mut any_committed = false;
    let mut cuts = Vec::with_capacity(ticks.len());
    for (partition, range) in ticks.iter().enumerate() {
        let source = TopicPartition { topic: outputs.ticks.clone(), partition: partition as i32 };
        let committed = log.committed(&outputs.group, &source)?;
        any_committed |= committed.is_some();
        let next = committed.unwrap_or(0);
        if range.first > 0 && next > 0 {
            let TopicPartition { topic, partition } = source;
            return Err(ReplayError::TicksGone { url: log.url(), topic, partition, first: range.first });
        }
        cuts.push(PartitionCut {
            ticks: OffsetRange { first: 0, next },
            signals: signals[partition],
            late: late[partition],
            dead_letter: dead_letter[partition],
        });
    }
    let is_filled = |cut: &PartitionCut| {
        [cut.signals, cut.late, cut.dead_letter].iter().any(|range| range.first < range.next)
    };
    if !any_committed && cuts.iter().any(is_filled) {
        return Err(ReplayError::NothingCommitted { url: log.url(), group: outputs.group.clone() });
    }
    Ok(cuts)
}
