//! Inputs of the scheduler in words.

use warptape_schemas::journal::{
    Checkpoint, CommitEnded, CommitOutcome, ControlCommand, DeviceSample, Input, JournalEntry, LaneId,
    LaneSpec, PartitionAssigned, Positions, Sealed, Started, TaskArrived,
};

use super::reasons::milliseconds;
use crate::commands::columns::{numbered, utc};
use crate::endpoint::throttle_reasons;

/// Describes the input of an entry in a sentence that begins with the input's kind. `started` is the start of the
/// process that wrote the entry, if known; it names the devices of lanes.
pub fn words(entry: &JournalEntry, started: Option<&Started>) -> String {
    let lane = |lane: LaneId| {
        let spec = started.and_then(|started| started.lanes.iter().find(|spec| spec.lane == lane));
        match spec {
            Some(spec) => format!("lane {lane} ({})", spec.device),
            None => format!("lane {lane}"),
        }
    };
    match &entry.input {
        Input::Started(started) => of_start(started),
        Input::PartitionAssigned(assigned) => of_assignment(assigned),
        Input::PartitionRevoked(revoked) => {
            format!("PartitionRevoked: partition {} left the process", revoked.partition)
        }
        Input::Arrived(arrived) => {
            let rows: i64 = arrived.groups.iter().fold(0, |sum, group| sum.saturating_add(group.rows));
            format!(
                "Arrived: {} in {} of partition {}, from records before offset {}",
                numbered(rows, "row", "rows"),
                numbered(arrived.groups.len() as u64, "group", "groups"),
                arrived.partition,
                arrived.next_offset
            )
        }
        Input::Completed(done) => format!(
            "Completed: {} finished batch {} after {}",
            lane(done.lane),
            done.batch,
            milliseconds(done.service_ns)
        ),
        Input::LaneLost(lost) => {
            let kept =
                if lost.kept { "the states of its groups are kept" } else { "its partitions are restored" };
            format!("LaneLost: {} stopped working, {kept}: {}", lane(lost.lane), lost.reason)
        }
        Input::LaneReady(ready) => format!("LaneReady: {} is ready for work", lane(ready.lane)),
        Input::Woke(_) => "Woke: the wake-up that the scheduler asked for".to_owned(),
        Input::Draining(_) => {
            "Draining: the process is about to end, so waiting work is dispatched".to_owned()
        }
        Input::Measured(measured) => {
            let batches = numbered(measured.points.len() as u64, "batch", "batches");
            format!("Measured: the speed of {} was measured with {batches}", lane(measured.lane))
        }
        Input::Released(released) => format!(
            "Released: {} gave back group {} of partition {}",
            lane(released.lane),
            released.group,
            released.partition
        ),
        Input::TaskArrived(task) => of_task(task),
        Input::SliceDone(done) => format!(
            "SliceDone: {} finished slice {} after {}",
            lane(done.lane),
            done.slice,
            milliseconds(done.service_ns)
        ),
        Input::TaskDropped(dropped) => format!("TaskDropped: task {} was withdrawn", dropped.task),
        Input::Sealed(sealed) => of_seal(sealed),
        Input::Priced(priced) => {
            format!("Priced: the answer to question {} has {} prices", priced.question, priced.prices.len())
        }
        Input::Sampled(sampled) => {
            format!("Sampled: {}{}", lane(sampled.lane), of_sample(&sampled.sample))
        }
        Input::Control(control) => {
            format!("Control: {} from {:?}: {}", control.id, control.by, of_command(&control.command))
        }
        Input::Checkpoint(checkpoint) => of_checkpoint(checkpoint),
        Input::CommitEnded(ended) => of_commit(ended, entry.at_ns),
        Input::Trained(trained) => format!(
            "Trained: the network {} ({} bytes) is available to policies that name it",
            trained.hash,
            trained.network.0.len()
        ),
        Input::Positions(positions) => of_positions(positions),
    }
}

fn of_assignment(assigned: &PartitionAssigned) -> String {
    let PartitionAssigned { partition, groups, committed_offset, snapshot_offset, is_emptied, lost_from } =
        *assigned;
    let emptied =
        if is_emptied { ", with an empty state, because the records before were removed" } else { "" };
    let lost = lost_from.map_or_else(String::new, |from| {
        format!(", and no transaction accounts for records {from} to {}", committed_offset - 1)
    });
    format!(
        "PartitionAssigned: the process owns partition {partition} with {} and reads it from offset \
         {snapshot_offset} on{emptied}; the committed offset is {committed_offset}{lost}",
        numbered(groups, "group", "groups"),
    )
}

fn of_positions(positions: &Positions) -> String {
    let partitions = positions.partitions.iter();
    let reached: Vec<String> =
        partitions.map(|one| format!("{}: {}", one.partition, one.next_offset)).collect();
    let reached = if reached.is_empty() { "nothing yet".to_owned() } else { reached.join(", ") };
    format!(
        "Positions: the journal of group {:?} has reached these offsets (partition: offset): {reached}",
        positions.group
    )
}

fn of_start(started: &Started) -> String {
    let are_alike = started.lanes.iter().all(|lane| lane.weight == started.lanes[0].weight);
    let device = |lane: &LaneSpec| match are_alike {
        true => lane.device.clone(),
        false => format!("{} (weight {})", lane.device, lane.weight),
    };
    let devices: Vec<String> = started.lanes.iter().map(device).collect();
    format!(
        "Started: process {:?} started with warptape {} and {}: {}",
        started.node,
        started.software,
        numbered(devices.len() as u64, "lane", "lanes"),
        devices.join(", ")
    )
}

/// Describes a sample of a lane's device.
fn of_sample(sample: &DeviceSample) -> String {
    let of = |name: &str, value: Option<i64>, unit: &str| {
        value.map_or_else(String::new, |value| format!(", {name} {value} {unit}"))
    };
    let throttled: Vec<&str> =
        sample.throttle_bits.map(|bits| throttle_reasons(bits.unsigned_abs()).collect()).unwrap_or_default();
    let held_down = match throttled.is_empty() {
        true => String::new(),
        false => format!(", lowered by {}", throttled.join(", ")),
    };
    [
        of("temperature", sample.temperature_c, "°C"),
        sample.slowdown_c.map_or_else(String::new, |limit| format!(" (its limit is {limit} °C)")),
        of("clock", sample.sm_clock_mhz, "MHz"),
        held_down,
        of("utilization", sample.utilization_percent, "%"),
        of("free memory", sample.memory_free_bytes.map(|bytes| bytes >> 20), "MiB"),
        of("uncorrectable memory errors:", sample.ecc_errors_uncorrected.filter(|errors| *errors > 0), "")
            .trim_end()
            .to_owned(),
        of("critical error Xid", sample.xid, "").trim_end().to_owned(),
    ]
    .concat()
}

fn of_task(task: &TaskArrived) -> String {
    let deadline = task.deadline_ns.map_or_else(String::new, |at_ns| format!(", due by {}", utc(at_ns)));
    format!(
        "TaskArrived: task {} with {}, for request {:?} of {:?}{deadline}; the request is at offset {} of partition {}",
        task.task,
        numbered(task.units, "unit", "units"),
        task.request_id,
        task.tenant,
        task.offset,
        task.partition
    )
}

fn of_seal(sealed: &Sealed) -> String {
    let parts: Vec<String> = sealed
        .partitions
        .iter()
        .map(|part| {
            format!(
                "partition {} offsets {} to {} with {}",
                part.partition,
                part.first_offset,
                part.next_offset,
                numbered(part.signals, "signal", "signals")
            )
        })
        .collect();
    format!("Sealed: a transaction goes to the log: {}", parts.join("; "))
}

fn of_checkpoint(checkpoint: &Checkpoint) -> String {
    format!(
        "Checkpoint: part {} of {} of the scheduler's state, {} bytes",
        checkpoint.part.saturating_add(1),
        checkpoint.parts,
        checkpoint.state.0.len()
    )
}

/// Describes the outcome of a commit. `at_ns` is the time of the entry that reports it.
fn of_commit(ended: &CommitEnded, at_ns: i64) -> String {
    let outcome = match ended.outcome {
        CommitOutcome::Committed => "is committed",
        CommitOutcome::Aborted => "is aborted and sent again",
    };
    let looked_up =
        if ended.looked_up { ", as looked up in the log, which had not reported the outcome" } else { "" };
    format!(
        "CommitEnded: the transaction sealed with entry {} {outcome}{looked_up}: attempt {} was sent at {} and took {}; the process learnt its outcome {} later",
        ended.sealed,
        ended.attempt,
        utc(ended.sent_ns),
        milliseconds(ended.ended_ns.saturating_sub(ended.sent_ns)),
        milliseconds(at_ns.saturating_sub(ended.ended_ns)),
    )
}

fn of_command(command: &ControlCommand) -> String {
    // The JSON of a command is an object with one member: the command's name and its fields.
    serde_json::json!(command).to_string()
}

#[cfg(test)]
pub(super) mod tests {
    use warptape_schemas::hex::Digits;
    use warptape_schemas::journal::{Completed, LaneSpec, Sampled, SchedulerConfig};

    use super::*;

    fn entry(input: Input) -> JournalEntry {
        let (state_hash, hash) = (Digits::zeros(), Digits::zeros());
        JournalEntry { sequence: 8, at_ns: 5_000_000, input, decisions: Vec::new(), state_hash, hash }
    }

    /// Returns the start of a process with a row deadline of 5 ms.
    pub(in super::super) fn started() -> Started {
        let scheduler: SchedulerConfig = serde_json::from_value(serde_json::json!({
            "placement_policy": "rendezvous", "placement_seed": 0, "load_factor_percent": 125,
            "lane_credit_rows": 1, "lane_credit_bytes": 1, "lane_batches_max": 1, "batch_rows_max": 1,
            "row_deadline_ns": 5_000_000, "high_water_rows": 2, "low_water_rows": 1, "route_interval_ns": 0,
            "risk": warptape_schemas::journal::RiskConfig::default(), "balance_interval_ns": 0
        }))
        .expect("a configuration");
        Started {
            node: "n".to_owned(),
            software: "s".to_owned(),
            stage_config: "{}".to_owned(),
            scheduler,
            lanes: vec![LaneSpec::new(0, "cpu:0", 1), LaneSpec::new(1, "cuda:1", 1)],
            autoscale: None,
            shadow: None,
            rules: 1,
        }
    }

    #[test]
    fn lanes_have_their_devices_where_these_are_known() {
        let completed = Completed { lane: 1, batch: 980, service_ns: 1_024_404_000, sample: None };
        let completed = entry(Input::Completed(completed));
        assert_eq!(
            words(&completed, Some(&started())),
            "Completed: lane 1 (cuda:1) finished batch 980 after 1024.404 ms"
        );
        assert!(words(&completed, None).contains("lane 1 finished"));
    }

    #[test]
    fn a_device_that_is_held_down_says_so() {
        let sample = DeviceSample {
            temperature_c: Some(89),
            slowdown_c: Some(90),
            sm_clock_mhz: Some(210),
            throttle_bits: Some(1 << 6 | 1),
            utilization_percent: Some(100),
            memory_free_bytes: Some(3 << 20),
            ecc_errors_uncorrected: Some(0),
            ..DeviceSample::default()
        };
        let sampled =
            |sample| words(&entry(Input::Sampled(Box::new(Sampled { lane: 1, sample }))), Some(&started()));
        assert_eq!(
            sampled(sample.clone()),
            "Sampled: lane 1 (cuda:1), temperature 89 °C (its limit is 90 °C), clock 210 MHz, lowered by hardware_thermal_slowdown, \
             utilization 100 %, free memory 3 MiB"
        );
        let failed =
            DeviceSample { ecc_errors_uncorrected: Some(2), xid: Some(79), ..DeviceSample::default() };
        assert_eq!(
            sampled(failed),
            "Sampled: lane 1 (cuda:1), uncorrectable memory errors: 2, critical error Xid 79"
        );
        assert_eq!(sampled(DeviceSample::default()), "Sampled: lane 1 (cuda:1)");
    }

    #[test]
    fn what_became_of_a_commit_is_told() {
        let said = |outcome, looked_up| {
            let (sealed, attempt, sent_ns, ended_ns) = (7, 2, 1_000_000, 4_500_000);
            words(
                &entry(Input::CommitEnded(CommitEnded {
                    sealed,
                    attempt,
                    sent_ns,
                    ended_ns,
                    outcome,
                    looked_up,
                })),
                None,
            )
        };
        assert_eq!(
            said(CommitOutcome::Committed, false),
            "CommitEnded: the transaction sealed with entry 7 is committed: attempt 2 was sent at \
             1970-01-01T00:00:00.001000Z and took 3.500 ms; the process learnt its outcome 0.500 ms later"
        );
        assert!(said(CommitOutcome::Aborted, true).contains(
            " is aborted and sent again, as looked up in the log, which had not reported the outcome: "
        ));
    }
}
