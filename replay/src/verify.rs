//! Verifies a log: first the journal, then its accounts, then the outputs.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use warptape_eventlog::{EventLog, OffsetRange, Record, TopicPartition};
use warptape_stages::RepeatedTrades;

use crate::accounts::SealedRange;
use crate::admissions::Admissions;
use crate::anchor::AnchorCheck;
use crate::controls::ControlCheck;
use crate::cut::Cut;
use crate::journal::{JournalCheck, Trimmed};
use crate::outputs::OutputCheck;
use crate::read_ahead;
use crate::risk::RiskCheck;
use crate::unaccounted;
use crate::{
    Divergence, JournalDivergence, JournalEnd, OutputCounts, Phase, ReplayError, ReplayProgress, Report,
    VerifyOptions,
};

/// Verifies a recorded run. Steps every journal entry again and compares it, and compares the accounts in entries with
/// the committed offsets. Stops at the first difference, which is part of the report.
///
/// With [`VerifyOptions::outputs`]:
/// - every tick is compared with the digest in the journal and processed again under its stage configuration;
/// - every output record is compared, byte for byte;
/// - every risk request is answered again, and compared as far as the answer is a function of the log;
/// - snapshots are compared with the states of the ticks before them, and operators' commands and the answers to them
///   with the journal.
///
/// The log may be written meanwhile: the verification covers one moment between two transactions. Memory is bounded by:
/// - a few fetches, and the state of one partition under each of its configurations;
/// - about 60 bytes for each transaction of a partition, at most 65,536 of which are kept;
/// - some hundred bytes for each record of a snapshot, and the commands of operators with their answers;
/// - some hundred bytes for each risk request, and what all partitions keep of the market, if there are risk requests.
///
/// # Errors
/// If the log cannot be read, or there is nothing to compare.
pub fn verify(
    log: &dyn EventLog,
    options: &VerifyOptions,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<Report, ReplayError> {
    let cut = Cut::take(log, options)?;
    let admissions = (!cut.risk.is_empty()).then(Admissions::default);
    let mut check = JournalCheck::new(&options.journal, admissions);
    let mut anchors = AnchorCheck::new(&options.journal, &options.public_keys, options.anchored.as_ref());
    let (divergence, missing_end) = check_journals(log, options, &cut, &mut check, &mut anchors, progress)?;
    if divergence.is_none() && check.identical.entries == 0 {
        return Err(nothing_to_verify(log, &options.journal, &check.trimmed));
    }
    let mut report = Report {
        entries: check.identical.entries,
        decisions: check.identical.decisions,
        processes: check.identical.processes,
        outputs: None,
        notes: check.trimmed.iter().map(|trimmed| trimmed_note(&options.journal, trimmed)).collect(),
        divergence: divergence.map(Divergence::Journal),
    };
    if report.divergence.is_none() {
        report.divergence = check_anchors(log, options, &mut anchors, &mut report.notes)?;
    }
    if report.divergence.is_none() {
        // If outputs were lost together with entries, they say more than the early end of a journal.
        let unaccounted = check_accounts(log, options, &cut, &check, &mut report.notes)?;
        report.divergence = unaccounted.or(missing_end.map(Divergence::JournalEnd));
    }
    if report.divergence.is_none() {
        report.divergence =
            check.assignments.check(&options.journal, &check.accounts, &cut).map(Divergence::Journal);
    }
    if report.divergence.is_none() && options.outputs {
        check_outputs(log, options, &cut, &check, &mut report, progress)?;
    }
    if report.divergence.is_none() && options.outputs {
        check_controls(log, options, &cut, &check, &mut report)?;
    }
    if report.divergence.is_none()
        && options.outputs
        && let Some(admissions) = check.admissions.take()
    {
        if check.accounts.is_trimmed {
            let note = "risk results were not compared, because decisions on older requests were removed";
            report.notes.push(note.to_owned());
            return Ok(report);
        }
        let mut risk = RiskCheck::new(log, options, &check, &cut.risk, admissions);
        report.divergence = risk.run(progress)?;
        report.outputs.as_mut().expect("they were just compared").risk_results = risk.identical;
    }
    Ok(report)
}

/// Compares one journal partition, given all its records, and returns the first difference. Its statements about other
/// topics are not compared.
pub fn verify_journal(topic: &str, partition: i32, records: &[Record]) -> Option<JournalDivergence> {
    let mut check = JournalCheck::new(topic, None);
    check.begin(partition, records.first().map_or(0, |first| first.offset));
    let found = records.iter().find_map(|record| check.check_entry(record, false).err());
    found.map(|found| *found).or_else(|| check.check_end())
}

/// Returns the first difference between journals and their anchors, if anchors are requested.
fn check_anchors(
    log: &dyn EventLog,
    options: &VerifyOptions,
    anchors: &mut AnchorCheck<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<Divergence>, ReplayError> {
    let found = match anchors.divergence() {
        Some(found) => Some(found),
        None => anchors.check_told(log, &options.lifecycle, notes)?,
    };
    notes.extend(anchors.notes());
    Ok(found.map(Divergence::Anchor))
}

/// Compares the entries of all journals. Returns the first entry that differs, or the first journal that ends before
/// its committed entries.
fn check_journals(
    log: &dyn EventLog,
    options: &VerifyOptions,
    cut: &Cut,
    check: &mut JournalCheck,
    anchors: &mut AnchorCheck<'_>,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<(Option<JournalDivergence>, Option<JournalEnd>), ReplayError> {
    let length = |range: &OffsetRange| (range.next - range.first) as u64;
    let total = cut.journal.iter().map(length).sum();
    let (mut done_before, mut missing_end) = (0, None);
    for ((partition, range), end) in (0..).zip(&cut.journal).zip(&cut.journal_ends) {
        check.begin(partition, range.first);
        let source = TopicPartition { topic: options.journal.clone(), partition };
        let mut next = range.first;
        let flow = read_ahead::for_each_fetch(log, source, *range, |fetch| {
            for (index, record) in fetch.records.iter().enumerate() {
                match check.check_entry(record, index < fetch.chained) {
                    Ok(entry) => anchors.add(partition, record, &entry),
                    Err(divergence) => return ControlFlow::Break(*divergence),
                }
                next = record.offset + 1;
            }
            let done = done_before + (next - range.first) as u64;
            progress(ReplayProgress { phase: Phase::Journal, done, total });
            ControlFlow::Continue(())
        })?;
        let divergence = flow.break_value().or_else(|| check.check_end());
        if divergence.is_some() {
            return Ok((divergence, None));
        }
        if let (Some(committed_sequence), Some(next_sequence)) = (*end, check.next_sequence())
            && next_sequence < committed_sequence
        {
            let (topic, group) = (options.journal.clone(), options.sources.group.clone());
            missing_end.get_or_insert(JournalEnd {
                topic,
                partition,
                group,
                next_sequence,
                committed_sequence,
            });
        }
        done_before += length(range);
    }
    Ok((None, missing_end))
}

/// Returns the error for offsets without entries, such as a broker's markers of aborted transactions, or for entries
/// without a start.
fn nothing_to_verify(log: &dyn EventLog, topic: &str, trimmed: &[Trimmed]) -> ReplayError {
    let (url, topic) = (log.url(), topic.to_owned());
    match trimmed.first() {
        Some(&Trimmed { partition, first_offset: first, .. }) => {
            ReplayError::JournalTrimmed { url, topic, partition, first }
        }
        None => ReplayError::EmptyJournal { url, topic },
    }
}

fn trimmed_note(topic: &str, trimmed: &Trimmed) -> String {
    let Trimmed { partition, first_offset, first_sequence } = trimmed;
    let what = match first_sequence {
        Some(sequence) => {
            format!(
                "decisions were compared from sequence {sequence} on, where a process started or wrote a checkpoint"
            )
        }
        None => "no process has started or written a checkpoint since, so its decisions were not compared"
            .to_owned(),
    };
    format!(
        "{topic} partition {partition} begins at offset {first_offset}, older entries were removed: {what}"
    )
}

fn check_accounts(
    log: &dyn EventLog,
    options: &VerifyOptions,
    cut: &Cut,
    check: &JournalCheck,
    notes: &mut Vec<String>,
) -> Result<Option<Divergence>, ReplayError> {
    if cut.committed.iter().all(Option::is_none) {
        let group = &options.sources.group;
        notes.push(format!(
            "group {group} has no committed offsets (any more), so entries missing at the end could not be detected"
        ));
        return Ok(None);
    }
    notes.extend(lost_notes(options, cut, check));
    Ok(unaccounted::find(log, options, cut, &check.accounts)?.map(Divergence::Unaccounted))
}

fn check_outputs(
    log: &dyn EventLog,
    options: &VerifyOptions,
    cut: &Cut,
    check: &JournalCheck,
    report: &mut Report,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<(), ReplayError> {
    let count = |ticks: OffsetRange| (ticks.next - ticks.first).max(0) as u64;
    let total = cut.partitions.iter().map(|partition| count(partition.ticks)).sum();
    let mut done = 0;
    let (segments, counts) = (&check.segments, OutputCounts::default());
    let repeated = RepeatedTrades::default();
    let (begins, gone) = (Vec::new(), None);
    let (ownerships, is_trimmed) = (&check.ownerships, check.accounts.is_trimmed);
    let mut outputs = OutputCheck {
        log,
        journal: &options.journal,
        arrivals: &check.arrivals,
        options: &options.sources,
        segments,
        counts,
        repeated,
        begins,
        gone,
        ownerships,
        is_trimmed,
    };
    for (partition, cut) in (0..).zip(&cut.partitions) {
        let mut advance = |records: u64| {
            done += records;
            progress(ReplayProgress { phase: Phase::Outputs, done, total });
        };
        let covered = check.accounts.covered(partition, cut.ticks.next);
        report.divergence = outputs.check_partition(partition, cut, covered, &mut advance)?;
        if report.divergence.is_some() {
            break;
        }
    }
    let RepeatedTrades { repeated: repeated_trades, untold: untold_trades, .. } = outputs.repeated;
    report.outputs = Some(OutputCounts { repeated_trades, untold_trades, ..outputs.counts });
    if let (Some((partition, first)), 0) = (outputs.gone, outputs.counts.tick_records) {
        let (url, topic) = (log.url(), options.sources.ticks.clone());
        return Err(ReplayError::RecordsGone { url, topic, partition, first });
    }
    report.notes.append(&mut outputs.begins);
    report.notes.extend(segment_notes(options, cut, check));
    if cut.is_risk_gone {
        let note =
            "risk results were not compared, because the first ticks, requests or results were removed";
        report.notes.push(note.to_owned());
    }
    if !outputs.repeated.is_empty() {
        report.notes.push(outputs.repeated.to_string());
    }
    Ok(())
}

fn check_controls(
    log: &dyn EventLog,
    options: &VerifyOptions,
    cut: &Cut,
    check: &JournalCheck,
    report: &mut Report,
) -> Result<(), ReplayError> {
    let mut controls = ControlCheck::new(log, &options.sources, &check.controls);
    for (partition, cut) in (0..).zip(&cut.controls) {
        report.divergence = controls.check_partition(partition, cut)?.map(Divergence::Output);
        if report.divergence.is_some() {
            break;
        }
    }
    if report.divergence.is_none() {
        report.divergence = controls.check_event_times()?.map(Divergence::Output);
    }
    report.outputs.as_mut().expect("they were just compared").control_results = controls.identical;
    report.notes.append(&mut controls.notes);
    Ok(())
}

/// Describes the records that were given up, one line per range.
fn lost_notes(options: &VerifyOptions, cut: &Cut, check: &JournalCheck) -> Vec<String> {
    let ticks = &options.sources.ticks;
    let of_partition = |(partition, committed): (i32, &Option<i64>)| {
        let covered = check.accounts.covered(partition, committed.unwrap_or(0));
        let lost = covered.ranges.into_iter().filter(|range| range.is_lost);
        let note = move |range: SealedRange| {
            let SealedRange { first, next, .. } = range;
            format!(
                "{ticks}/{partition}: records {first} to {} were given up; no transaction contains their outputs",
                next - 1
            )
        };
        lost.map(note).collect::<Vec<_>>()
    };
    (0..).zip(&cut.committed).flat_map(of_partition).collect()
}

/// Describes the changes of the stage configuration, one line per change.
fn segment_notes(options: &VerifyOptions, cut: &Cut, check: &JournalCheck) -> Vec<String> {
    let ticks = &options.sources.ticks;
    let mut places: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
    let mut anew = Vec::new();
    for (partition, cut) in (0..).zip(&cut.partitions) {
        let segments = check.segments.of(partition, cut.ticks.next);
        for pair in segments.windows(2) {
            let place = format!("{ticks}/{partition} offset {}", pair[1].from);
            if pair[0].config == pair[1].config {
                let fold = pair[1].fold;
                anew.push(format!("{place}: the state is computed from offset {fold} on, because earlier records were removed"));
                continue;
            }
            places.entry((pair[0].config, pair[1].config)).or_default().push(place);
        }
    }
    let note = |((from, to), places): ((usize, usize), Vec<String>)| {
        let change = check.segments.change(from, to);
        format!("another stage configuration ({change}) from {} on", places.join(", "))
    };
    places.into_iter().map(note).chain(anew).collect()
}
