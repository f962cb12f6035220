//! The verification of a log: first the journal, then the outputs.

use warptape_eventlog::{EventLog, OffsetRange, TopicPartition};

use crate::admissions::Admissions;
use crate::cut::Cut;
use crate::journal::JournalCheck;
use crate::outputs::check_partition;
use crate::partition_reader::PartitionReader;
use crate::risk::RiskCheck;
use crate::{
    Divergence, JournalDivergence, OutputCounts, OutputOptions, Phase, Progress, ReplayError, Report,
    VerifyOptions,
};

/// Verifies a recorded run: every journal entry is stepped again and compared, and with [`VerifyOptions::outputs`] every
/// tick is processed again and every output record compared, byte for byte; every risk request is answered again, and what is a
/// function of the log compared. Stops at the first difference, which is part of the report.
///
/// The log may be written meanwhile: it is verified as of one moment between two transactions. Memory is bounded by a
/// few fetches and the state of one partition; where there are risk requests, by some hundred bytes for each of them, and by
/// what all partitions keep of the market.
///
/// # Errors
/// If nothing can be said about the log: it cannot be read, or there is nothing to compare.
pub fn verify(
    log: &dyn EventLog,
    options: &VerifyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, ReplayError> {
    let cut = Cut::take(log, options)?;
    let admissions = (!cut.risk.is_empty()).then(Admissions::default);
    let mut check = JournalCheck::new(&options.journal, admissions);
    let divergence = check_journals(log, &options.journal, &cut, &mut check, progress)?;
    if divergence.is_none() && check.entries == 0 {
        // Offsets were used, but by no entry: a broker's markers of aborted transactions.
        return Err(ReplayError::EmptyJournal { url: log.url(), topic: options.journal.clone() });
    }
    let mut report = Report {
        entries: check.entries,
        decisions: check.decisions,
        processes: check.processes,
        outputs: None,
        divergence: divergence.map(Divergence::Journal),
    };
    if let (None, Some(outputs)) = (&report.divergence, &options.outputs) {
        check_outputs(log, outputs, &cut, &check, &mut report, progress)?;
        if let (None, Some(admissions)) = (&report.divergence, check.admissions) {
            let config = check.configs.only()?;
            let mut risk = RiskCheck::new(log, outputs, &config, &cut.risk, admissions);
            report.divergence = risk.run(progress)?.map(Divergence::Output);
            report.outputs.as_mut().expect("they were just compared").risk_results = risk.identical;
        }
    }
    Ok(report)
}

fn check_journals(
    log: &dyn EventLog,
    topic: &str,
    cut: &Cut,
    check: &mut JournalCheck,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<JournalDivergence>, ReplayError> {
    let length = |range: &OffsetRange| (range.next - range.first) as u64;
    let total = cut.journal.iter().map(length).sum();
    let mut done_before = 0;
    for (partition, range) in (0..).zip(&cut.journal) {
        check.begin(partition);
        let source = TopicPartition { topic: topic.to_owned(), partition };
        let mut reader = PartitionReader::open(log, source, *range)?;
        loop {
            let records = reader.next_fetch()?;
            let Some(last) = records.last() else { break };
            for record in &records {
                if let Some(divergence) = check.check(record) {
                    return Ok(Some(divergence));
                }
            }
            let done = done_before + (last.offset + 1 - range.first) as u64;
            progress(Progress { phase: Phase::Journal, done, total });
        }
        done_before += length(range);
    }
    Ok(None)
}

fn check_outputs(
    log: &dyn EventLog,
    options: &OutputOptions,
    cut: &Cut,
    check: &JournalCheck,
    report: &mut Report,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), ReplayError> {
    let config = check.configs.only()?;
    let total = cut.partitions.iter().map(|partition| partition.ticks.next as u64).sum();
    let mut done = 0;
    let mut counts = OutputCounts::default();
    for (partition, cut) in (0..).zip(&cut.partitions) {
        let mut advance = |records: u64| {
            done += records;
            progress(Progress { phase: Phase::Outputs, done, total });
        };
        let divergence = check_partition(log, options, &config, partition, cut, &mut counts, &mut advance)?;
        if let Some(divergence) = divergence {
            report.divergence = Some(Divergence::Output(divergence));
            break;
        }
    }
    report.outputs = Some(counts);
    Ok(())
}
