//! What-if of journals: the history of every process can be modelled, as recorded and with changes. Each row that
//! arrived must be done once and in order, or be accounted for.

use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::{Decision, Input};
use warptape_what_if::{Changes, Figures, LossTime, Recording, WhatIfError};

use super::{FULL_CHECK_EVERY, Failure, World};

/// A step: its time, its input, and its decisions.
type Step = (i64, Input, Vec<Decision>);

impl World {
    /// Models each committed journal.
    pub(super) fn check_models(&mut self, seed: u64) -> Result<(), Failure> {
        let journals = self.committed.records.get("journal");
        for (ordinal, records) in journals.into_iter().flatten() {
            let step = |record: &Vec<u8>| {
                let entry = decode_journal_entry(record).expect("entries are written whole");
                (entry.at_ns, entry.input, entry.decisions)
            };
            let failed = |error| Failure::Journal(format!("journal {ordinal} cannot be modelled: {error}"));
            let is_modelled = check(records.iter().map(step).collect(), seed).map_err(failed)?;
            self.coverage.journals_modelled += usize::from(is_modelled);
        }
        Ok(())
    }
}

/// Models a journal as recorded, or with one of several changes, in turn. Returns true if rows arrived in it.
fn check(steps: Vec<Step>, seed: u64) -> Result<bool, String> {
    let recording = match Recording::of_steps(steps) {
        Err(WhatIfError::NothingArrived { .. }) => return Ok(false),
        recording => recording.map_err(|error| error.to_string())?,
    };
    check_order("measured", &recording.measured)?;
    let last = recording.started().lanes.len() - 1;
    let changed = [
        Changes::default(),
        Changes { policy: Some("balanced".to_owned()), ..Changes::default() },
        Changes { policy: Some("lp-price".to_owned()), ..Changes::default() },
        Changes { slow: vec![("0".to_owned(), 3_000)], ..Changes::default() },
        Changes { lose: vec![(last.to_string(), LossTime::After(0))], ..Changes::default() },
    ];
    let changes = &changed[(seed / FULL_CHECK_EVERY) as usize % changed.len()];
    let told = |error: &dyn std::fmt::Display| format!("{changes:?}: {error}");
    match recording.model(changes, seed) {
        // If a process finished no batch or slice, its journal has no measured times.
        Err(WhatIfError::NothingMeasured { .. }) => {}
        Err(error) => return Err(told(&error)),
        Ok(modelled) => check_order("modelled", &modelled.figures).map_err(|error| told(&error))?,
    }
    Ok(true)
}

fn check_order(run: &str, figures: &Figures) -> Result<(), String> {
    match figures.order.is_kept() {
        true => Ok(()),
        false => Err(format!("{run}: {:?}", figures.order)),
    }
}
