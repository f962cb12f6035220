//! Compares the journal's accounts with the offsets that the group has committed.

use warptape_eventlog::{EventLog, LogError, OffsetRange, TopicPartition};
use warptape_schemas::Describer;

use crate::accounts::{Accounts, Covered};
use crate::comparison::described;
use crate::cut::Cut;
use crate::partition_reader::PartitionReader;
use crate::{Orphans, OutputOptions, Unaccounted, VerifyOptions};

/// Returns the first partition for which the accounts have more or fewer records than the group has committed.
pub(crate) fn find(
    log: &dyn EventLog,
    options: &VerifyOptions,
    cut: &Cut,
    accounts: &Accounts,
) -> Result<Option<Unaccounted>, LogError> {
    let sources = &options.sources;
    for (partition, committed) in (0..).zip(&cut.committed) {
        let committed_offset = committed.unwrap_or(0);
        let covered = accounts.covered(partition, committed_offset);
        if !accounts.agrees(&covered, committed_offset) {
            return Ok(Some(Unaccounted {
                topic: sources.ticks.clone(),
                partition,
                group: sources.group.clone(),
                accounted_offset: covered.to,
                resumed_offset: covered.resumed,
                committed_offset,
                orphans: orphans(log, sources, cut, partition, &covered)?,
            }));
        }
    }
    for (partition, risk) in (0..).zip(&cut.risk) {
        if let Some(accounted_offset) = accounts.next_request(partition)
            && accounted_offset < risk.answered
        {
            return Ok(Some(Unaccounted {
                topic: sources.risk_requests.clone(),
                partition,
                group: sources.group.clone(),
                accounted_offset,
                resumed_offset: None,
                committed_offset: risk.answered,
                orphans: Vec::new(),
            }));
        }
    }
    Ok(None)
}

/// Returns the outputs after those in the journal's accounts, if the accounts show their number.
fn orphans(
    log: &dyn EventLog,
    sources: &OutputOptions,
    cut: &Cut,
    partition: i32,
    covered: &Covered,
) -> Result<Vec<Orphans>, LogError> {
    let Some(cut) = cut.partitions.get(partition as usize).filter(|_| covered.is_whole) else {
        return Ok(Vec::new());
    };
    let sum = |count: fn(&crate::accounts::SealedRange) -> i64| {
        covered.ranges.iter().map(count).fold(0, i64::saturating_add)
    };
    let counted = [
        (&sources.signals, cut.signals, sum(|range| range.signals)),
        (&sources.late, cut.late, sum(|range| range.late)),
        (&sources.dead_letter, cut.dead_letter, sum(|range| range.dead_letters)),
    ];
    let mut all = Vec::new();
    for (topic, range, accounted) in counted {
        let source = TopicPartition { topic: topic.clone(), partition };
        all.extend(behind(log, source, range, accounted)?);
    }
    Ok(all)
}

/// Returns the records of a partition without the first `accounted` ones.
fn behind(
    log: &dyn EventLog,
    source: TopicPartition,
    range: OffsetRange,
    accounted: i64,
) -> Result<Option<Orphans>, LogError> {
    let topic = source.topic.clone();
    let mut reader = PartitionReader::open(log, source, range)?;
    let mut orphans: Option<Orphans> = None;
    let mut read = 0;
    while let Some(record) = reader.next()? {
        read += 1;
        if read <= accounted {
            continue;
        }
        let first = || Orphans {
            topic: topic.clone(),
            offset: record.offset,
            count: 0,
            first: described(&Describer::new(), &record.value),
        };
        orphans.get_or_insert_with(first).count += 1;
    }
    Ok(orphans)
}
