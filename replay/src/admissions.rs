//! The journal's account of risk requests: for each, the entry that gave it to the scheduler, its market, and its end.

use std::sync::Arc;

use warptape_eventlog::Record;
use warptape_scheduler::WAVE_RULES;
use warptape_schemas::journal::{
    AsOf, Decision, Expire, Input, JournalEntry, Reject, Shed, TaskArrived, TaskId,
};

use crate::difference::{Difference, differences};
use crate::segments::ConfigId;

/// A request that was given to the scheduler.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Name of the process that wrote the entry.
    pub(crate) node: Arc<str>,
    /// Sequence of the entry.
    pub(crate) sequence: i64,
    /// Time of the entry.
    pub(crate) at_ns: i64,
    /// Partition and offset of the entry.
    pub(crate) place: (i32, i64),
    /// The first round of the task as the scheduler got it, without the market.
    pub(crate) arrived: Box<TaskArrived>,
    /// End of the task's units so far, exclusive.
    units_end: i64,
    /// The market with which the request was computed, by partition.
    pub(crate) as_of: Box<[AsOf]>,
    /// True if the process certainly recorded widths of units.
    pub(crate) has_widths: bool,
    /// The stage configuration of the process.
    pub(crate) config: ConfigId,
    /// End of the request; `None` if its process ended before that.
    end: Option<AdmissionEnd>,
}

/// The start of a process.
#[derive(Debug)]
struct Start {
    node: Arc<str>,
    at_ns: i64,
    config: ConfigId,
}

/// The end of a task.
#[derive(Clone, Debug)]
pub(crate) enum AdmissionEnd {
    Finished,
    Rejected(Reject),
    Expired(Expire),
    Shed(Shed),
    /// The request was withdrawn or cancelled.
    Dropped,
}

/// All admissions of a log. Each request takes some hundred bytes; its contents are not kept.
#[derive(Debug, Default)]
pub(crate) struct Admissions {
    /// Admissions in the order of the journal, by partition; sorted by request after `gather`.
    all: Vec<Admission>,
    /// Starts of processes, in the order of the journal, by partition.
    starts: Vec<Start>,
    /// Index of the first admission in the process life being read. Tasks are numbered in order within a life.
    life: usize,
    node: Arc<str>,
    /// True if the process being read certainly records widths of units.
    has_widths: bool,
    /// The partition of the journal being read.
    journal: i32,
    /// The first later round that contradicts its task, as an admission, with the differences.
    pub(crate) misstated: Option<Box<(Admission, Vec<Difference>)>>,
}

impl Admissions {
    /// Begins another partition of the journal.
    pub(crate) fn begin(&mut self, journal: i32) {
        self.life = self.all.len();
        self.has_widths = false;
        self.journal = journal;
    }

    /// Adds the next entry, which is in `record`. `config` is the stage configuration of its process.
    pub(crate) fn add(&mut self, record: &Record, entry: &JournalEntry, config: ConfigId) {
        match &entry.input {
            Input::Started(started) => {
                self.life = self.all.len();
                self.node = started.node.as_str().into();
                self.has_widths = started.rules >= WAVE_RULES;
                self.starts.push(Start { node: self.node.clone(), at_ns: entry.at_ns, config });
            }
            Input::TaskArrived(arrived) if arrived.first_unit == 0 => {
                self.admit(record, entry, arrived, config)
            }
            Input::TaskArrived(arrived) => self.go_on(record, entry, arrived, config),
            Input::TaskDropped(dropped) => self.end(dropped.task, AdmissionEnd::Dropped),
            _ => {}
        }
        for decision in &entry.decisions {
            match decision {
                Decision::Finish(finish) => self.end(finish.task, AdmissionEnd::Finished),
                Decision::Reject(reject) => self.end(reject.task, AdmissionEnd::Rejected(reject.clone())),
                Decision::Expire(expire) => self.end(expire.task, AdmissionEnd::Expired(*expire)),
                Decision::Shed(shed) => self.end(shed.task, AdmissionEnd::Shed(*shed)),
                _ => {}
            }
        }
    }

    fn admit(&mut self, record: &Record, entry: &JournalEntry, arrived: &TaskArrived, config: ConfigId) {
        let admission = self.admission(record, entry, arrived, config);
        self.all.push(admission);
    }

    /// Compares a later round of a task with the first one: only the division into units may differ.
    fn go_on(&mut self, record: &Record, entry: &JournalEntry, arrived: &TaskArrived, config: ConfigId) {
        let found = self.admission(record, entry, arrived, config);
        let life = &mut self.all[self.life..];
        let index = life.partition_point(|admission| admission.arrived.task < arrived.task);
        let Some(first) = life.get_mut(index).filter(|first| first.arrived.task == arrived.task) else {
            return;
        };
        let expected = TaskArrived {
            rate_key: arrived.rate_key.clone(),
            first_unit: first.units_end,
            units: arrived.units,
            unit_cost: arrived.unit_cost,
            slice_units_max: arrived.units,
            gang: arrived.gang,
            unit_width: arrived.unit_width,
            as_of: first.as_of.to_vec(),
            ..(*first.arrived).clone()
        };
        first.units_end = arrived.first_unit.saturating_add(arrived.units);
        let whole = TaskArrived { as_of: found.as_of.to_vec(), ..(*found.arrived).clone() };
        if expected != whole && self.misstated.is_none() {
            let value = |arrived: &TaskArrived| serde_json::to_value(arrived).unwrap_or_default();
            let differences = differences("input.TaskArrived", &value(&expected), &value(&whole));
            self.misstated = Some(Box::new((found, differences)));
        }
    }

    fn admission(
        &self,
        record: &Record,
        entry: &JournalEntry,
        arrived: &TaskArrived,
        config: ConfigId,
    ) -> Admission {
        let mut arrived = Box::new(arrived.clone());
        let mut as_of = std::mem::take(&mut arrived.as_of);
        as_of.sort_by_key(|as_of| as_of.partition);
        Admission {
            node: self.node.clone(),
            sequence: entry.sequence,
            at_ns: entry.at_ns,
            place: (self.journal, record.offset),
            units_end: arrived.units,
            arrived,
            as_of: as_of.into(),
            has_widths: self.has_widths,
            config,
            end: None,
        }
    }

    /// Records the end of a task or of one of its rounds; the last one counts.
    fn end(&mut self, task: TaskId, end: AdmissionEnd) {
        let life = &mut self.all[self.life..];
        let index = life.partition_point(|admission| admission.arrived.task < task);
        if let Some(admission) = life.get_mut(index).filter(|admission| admission.arrived.task == task) {
            admission.end = Some(end);
        }
    }

    /// Ends the reading of the journal, and sorts the admissions by request.
    pub(crate) fn gather(&mut self) {
        self.all.sort_by_key(|admission| {
            (admission.arrived.partition, admission.arrived.offset, admission.at_ns)
        });
    }

    /// Returns the stage configuration of a process at a time; `None` if the process is not in the journal.
    pub(crate) fn config_of(&self, node: &str, at_ns: i64) -> Option<ConfigId> {
        let mut starts = self.starts.iter().filter(|start| *start.node == *node);
        let first = starts.next()?;
        // The process may have started with an older entry, which was removed.
        let last = starts.filter(|start| start.at_ns <= at_ns).max_by_key(|start| start.at_ns);
        Some(last.unwrap_or(first).config)
    }

    /// Returns the admissions of a request, oldest first. There are several if a process lost the partition before it
    /// answered.
    pub(crate) fn of(&self, partition: i32, offset: i64) -> &[Admission] {
        let key = |admission: &Admission| (admission.arrived.partition, admission.arrived.offset);
        let first = self.all.partition_point(|admission| key(admission) < (partition, offset));
        let rest = &self.all[first..];
        &rest[..rest.partition_point(|admission| key(admission) == (partition, offset))]
    }
}

impl Admission {
    /// Returns the end of the request; `None` if its process ended first, so that this admission has no result.
    pub(crate) fn end(&self) -> Option<&AdmissionEnd> {
        self.end.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use warptape_schemas::hex::Digits;
    use warptape_schemas::journal::{Finish, RiskConfig, Started, TaskClass, TaskDropped};

    use super::*;

    fn entry(sequence: i64, input: Input, decisions: Vec<Decision>) -> JournalEntry {
        let (state_hash, hash) = (Digits::zeros(), Digits::zeros());
        JournalEntry { sequence, at_ns: 100 - sequence, input, decisions, state_hash, hash }
    }

    fn add(admissions: &mut Admissions, entry: &JournalEntry, config: ConfigId) {
        let (key, headers, value) = (None, Vec::new(), Vec::new());
        admissions.add(&Record { offset: 0, key, headers, timestamp_ns: 0, value }, entry, config);
    }

    fn started(node: &str) -> Input {
        let config = serde_json::from_value(serde_json::json!({
            "placement_policy": "rendezvous", "placement_seed": 0, "load_factor_percent": 125,
            "lane_credit_rows": 1, "lane_credit_bytes": 1, "lane_batches_max": 1, "batch_rows_max": 1,
            "row_deadline_ns": 1, "high_water_rows": 2, "low_water_rows": 1, "route_interval_ns": 0,
            "risk": RiskConfig::default(), "balance_interval_ns": 0
        }));
        Input::Started(Box::new(Started {
            node: node.to_owned(),
            software: String::new(),
            stage_config: String::new(),
            scheduler: config.expect("a configuration"),
            lanes: Vec::new(),
            autoscale: None,
            shadow: None,
            rules: 1,
        }))
    }

    fn arrived(task: TaskId, offset: i64, first_unit: i64) -> Input {
        let as_of = |partition| AsOf { partition, next_offset: 7 };
        Input::TaskArrived(TaskArrived {
            task,
            partition: 0,
            offset,
            request_id: String::new(),
            tenant: String::new(),
            class: TaskClass::Batch,
            deadline_ns: None,
            rate_key: String::new(),
            first_unit,
            units: 1,
            unit_cost: 1,
            slice_units_max: 1,
            bytes: 0,
            gang: false,
            as_of: vec![as_of(3), as_of(1)],
            unit_width: 0,
        })
    }

    fn finish(task: TaskId) -> Vec<Decision> {
        vec![Decision::Finish(Finish { task, slices: 1, service_ns: 1, predicted_ns: 1 })]
    }

    #[test]
    fn a_request_has_the_admissions_that_came_to_an_end() {
        let mut admissions = Admissions::default();
        add(&mut admissions, &entry(0, started("a"), vec![]), 0);
        add(&mut admissions, &entry(1, arrived(0, 5, 0), vec![]), 0);
        add(&mut admissions, &entry(2, arrived(1, 6, 0), finish(0)), 0);
        add(&mut admissions, &entry(3, arrived(0, 5, 4), finish(0)), 0);
        add(&mut admissions, &entry(4, Input::TaskDropped(TaskDropped { task: 1 }), vec![]), 0);
        // Tasks of another life have the same numbers.
        add(&mut admissions, &entry(5, started("a"), vec![]), 0);
        add(&mut admissions, &entry(6, arrived(0, 6, 0), finish(0)), 0);
        // Tasks of another process have the same numbers, too. This process answers a request again whose first answer
        // was lost.
        admissions.begin(1);
        add(&mut admissions, &entry(0, started("b"), vec![]), 0);
        add(&mut admissions, &entry(1, arrived(0, 6, 0), finish(0)), 0);
        admissions.gather();
        let of = |offset: i64| -> Vec<(&str, i64)> {
            let of = admissions.of(0, offset).iter().filter(|admission| admission.end().is_some());
            of.map(|admission| (&*admission.node, admission.sequence)).collect()
        };
        assert_eq!(of(5), [("a", 1)]);
        // The order is oldest first, by the clock of the process that wrote the entry. The second admission was
        // withdrawn.
        assert_eq!(of(6), [("a", 6), ("a", 2), ("b", 1)]);
        assert_eq!(of(7), []);
        let partitions: Vec<i32> = admissions.of(0, 5)[0].as_of.iter().map(|as_of| as_of.partition).collect();
        assert_eq!(partitions, [1, 3]);
    }
}
