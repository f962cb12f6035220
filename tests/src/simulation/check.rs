//! Checks of the results of a simulated run.

use warptape_eventlog::Record;
use warptape_replay::verify_journal;
use warptape_scheduler::Scheduler;
use warptape_schemas::hex::Digits;
use warptape_schemas::journal::{
    BreakerState, Checkpoint, CommitOutcome, Decision, Input, JournalEntry, ReleaseCause, SliceReason,
};
use warptape_schemas::{
    GENESIS_HASH, check_chain, decode_dead_letter, decode_journal_entry, decode_late_tick,
};

use super::commits::Commits;
use super::source::MARKERS;
use super::told::Told;
use super::{Failure, World};
use crate::coverage::Coverage;
use crate::sequential::Outputs;

impl World {
    /// Compares the committed topics with the sequential run, and counts the situations found in the journals.
    pub(super) fn check(&mut self, expected: &[Outputs]) -> Result<(), Failure> {
        if let Some(impossible) = &self.impossible {
            return Err(Failure::Outputs(impossible.clone()));
        }
        for (partition, expected) in (0_i32..).zip(expected) {
            let signals = self.topic("signals", partition).iter().cloned();
            let late = self.topic("late", partition).iter().map(|record| {
                let late = decode_late_tick(record).expect("late ticks are written whole");
                (late.offset, late.index)
            });
            let dead = self.topic("dead-letter", partition).iter();
            let dead = dead.map(|record| {
                let letter = decode_dead_letter(record).expect("letters are written whole");
                (letter.offset, letter.rows)
            });
            let found = Outputs { signals: signals.collect(), late: late.collect(), dead: dead.collect() };
            if found != *expected {
                let difference = difference(expected, &found);
                return Err(Failure::Outputs(format!("partition {partition}: {difference}")));
            }
            let end = self.source[partition as usize].len() as i64;
            let committed = self.committed.offsets.get(&partition).copied().unwrap_or(0);
            // The committed offset may or may not include the marker after the last record.
            if !(end..=end + MARKERS).contains(&committed) {
                let found = format!("partition {partition}: committed offset {committed} of {end}");
                return Err(Failure::Outputs(found));
            }
        }
        let journals = self.committed.records.get("journal").into_iter().flat_map(|journals| journals.keys());
        let mut told = Coverage::default();
        for &ordinal in journals {
            self.check_journal(ordinal, &mut told)?;
        }
        told.moves_cut = told.releases - told.moves_to_host - told.moves_to_device;
        self.coverage = self.coverage.plus(told);
        Ok(())
    }

    /// Counts the situations of an entry that concern lanes on devices and moving groups.
    fn count(&self, entry: &JournalEntry, coverage: &mut Coverage) {
        match &entry.input {
            Input::LaneLost(lost) if self.config.core.is_on_device(lost.lane) => {
                coverage.losses_kept += usize::from(lost.kept);
                coverage.losses_not_kept += usize::from(!lost.kept);
            }
            Input::Released(released) => {
                let from_device = self.config.core.is_on_device(released.lane);
                coverage.moves_to_host += usize::from(from_device);
                coverage.moves_to_device += usize::from(!from_device);
            }
            Input::Sampled(_) => coverage.device_samples += 1,
            Input::Trained(_) => coverage.networks_told += 1,
            Input::Checkpoint(_) => coverage.checkpoints += 1,
            Input::CommitEnded(ended) => match ended.outcome {
                CommitOutcome::Committed => coverage.commits_told += 1,
                CommitOutcome::Aborted => coverage.aborts_told += 1,
            },
            _ => {}
        }
        let releases = |decision: &&Decision| matches!(decision, Decision::Release(_));
        for decision in &entry.decisions {
            match decision {
                Decision::Breaker(breaker) => {
                    coverage.breakers_opened += usize::from(breaker.state == BreakerState::Open);
                    coverage.breakers_closed += usize::from(breaker.state == BreakerState::Closed);
                }
                Decision::RunSlice(slice) => match slice.reason {
                    SliceReason::Order
                    | SliceReason::Explored
                    | SliceReason::Stolen
                    | SliceReason::StoodIn => {}
                    SliceReason::Reserved => coverage.slices_reserved += 1,
                    SliceReason::Aged => coverage.slices_aged += 1,
                },
                _ => {}
            }
        }
        coverage.releases += entry.decisions.iter().filter(releases).count();
        for decision in &entry.decisions {
            coverage.shadows_asked += usize::from(matches!(decision, Decision::Shadow(_)));
            coverage.lanes_wanted += usize::from(matches!(decision, Decision::Scale(_)));
        }
        let balances = |decision: &&Decision| matches!(decision, Decision::Release(release) if release.cause == ReleaseCause::Balance);
        coverage.moves_balanced += entry.decisions.iter().filter(balances).count();
    }

    /// Checks that every entry follows its predecessor, and that stepping its input gives its decisions.
    fn check_journal(&self, ordinal: i32, coverage: &mut Coverage) -> Result<(), Failure> {
        let mut scheduler = Scheduler::new();
        let mut checkpoint = None;
        let mut previous = GENESIS_HASH;
        let mut commits = Commits::default();
        let mut told = self.tells_histories.then(|| Told::new(ordinal));
        for (sequence, record) in (0_i64..).zip(self.topic("journal", ordinal)) {
            let failed = |what: &dyn std::fmt::Display| {
                Failure::Journal(format!("entry {ordinal}/{sequence}: {what}"))
            };
            check_chain(previous, record).map_err(|error| failed(&error))?;
            let entry = decode_journal_entry(record).map_err(|error| failed(&error))?;
            if entry.sequence != sequence {
                return Err(failed(&format!("has sequence {}", entry.sequence)));
            }
            if matches!(entry.input, Input::Started(_)) {
                scheduler = Scheduler::new();
            }
            match &entry.input {
                // The checkpoint contains the state before its first part.
                Input::Checkpoint(Checkpoint { part: 0, .. }) => {
                    checkpoint = Some((scheduler.checkpoint(), entry.clone()));
                }
                Input::Checkpoint(Checkpoint { part: 1, parts: 2, state, .. }) => {
                    let (expected, first) = checkpoint.take().expect("the first part comes before");
                    if expected != state.0 {
                        return Err(failed(&"not the state that the inputs before it give"));
                    }
                    scheduler = Scheduler::from_checkpoint(&state.0).map_err(|error| failed(&error))?;
                    let step = scheduler.step(first.at_ns, &first.input, &mut Vec::new());
                    step.map_err(|error| failed(&error))?;
                }
                _ => {}
            }
            let hash = Digits::of(&scheduler.state_hash().to_be_bytes());
            let mut decisions = Vec::new();
            scheduler.step(entry.at_ns, &entry.input, &mut decisions).map_err(|error| failed(&error))?;
            commits.add(&entry).map_err(|error| failed(&error))?;
            if let Some(told) = &mut told {
                told.add(&entry).map_err(|error| failed(&error))?;
            }
            if hash != entry.state_hash || decisions != entry.decisions {
                return Err(failed(&"not what its input gives"));
            }
            self.count(&entry, coverage);
            previous = entry.hash;
        }
        let records: Vec<Record> = (0..).zip(self.topic("journal", ordinal)).map(record).collect();
        if let Some(found) = verify_journal("journal", ordinal, &records) {
            return Err(Failure::Journal(found.to_string()));
        }
        let finished = told.map_or(Ok(()), Told::finish);
        finished.map_err(|error| Failure::Journal(format!("journal {ordinal}: {error}")))
    }
}

fn record((offset, value): (i64, &Vec<u8>)) -> Record {
    Record { offset, key: None, headers: Vec::new(), timestamp_ns: 0, value: value.clone() }
}

fn difference(expected: &Outputs, found: &Outputs) -> String {
    let first = expected.signals.iter().zip(&found.signals).position(|(expected, found)| expected != found);
    format!(
        "{} signals expected, {} found, first difference at {first:?}; {} and {} late; {} and {} dead",
        expected.signals.len(),
        found.signals.len(),
        expected.late.len(),
        found.late.len(),
        expected.dead.len(),
        found.dead.len()
    )
}
