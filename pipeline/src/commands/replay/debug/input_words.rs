//! What the scheduler was told, in words.

use warptape_replay::debugger::Step;
use warptape_schemas::journal::{
    Checkpoint, CommitEnded, CommitOutcome, ControlCommand, Input, LaneId, Sealed, Started, TaskArrived,
};

use super::super::chain::milliseconds;
use crate::commands::columns::utc;

/// An input in a sentence, its kind first.
pub fn words(input: &Input, step: &Step<'_>) -> String {
    let lane = |lane: LaneId| match step.device(lane) {
        "" => format!("lane {lane}"),
        device => format!("lane {lane} ({device})"),
    };
    match input {
        Input::Started(started) => of_start(started),
        Input::PartitionAssigned(assigned) => format!(
            "PartitionAssigned: partition {} with {} groups came to the process, read from offset {} on; {} is committed",
            assigned.partition, assigned.groups, assigned.snapshot_offset, assigned.committed_offset
        ),
        Input::PartitionRevoked(revoked) => {
            format!("PartitionRevoked: partition {} left the process", revoked.partition)
        }
        Input::Arrived(arrived) => {
            let rows: i64 = arrived.groups.iter().map(|group| group.rows).sum();
            format!(
                "Arrived: {rows} rows of {} groups of partition {}, from records before offset {}",
                arrived.groups.len(),
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
            let kept = if lost.kept { "its groups' states are kept" } else { "its partitions are restored" };
            format!("LaneLost: {} stopped working, {kept}: {}", lane(lost.lane), lost.reason)
        }
        Input::LaneReady(ready) => format!("LaneReady: {} works", lane(ready.lane)),
        Input::Woke(_) => "Woke: the time came that the scheduler asked to be woken at".to_owned(),
        Input::Draining(_) => "Draining: what waits goes out, because the process is about to end".to_owned(),
        Input::Measured(measured) => {
            format!("Measured: {} was measured with {} batches", lane(measured.lane), measured.points.len())
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
            format!("Priced: question {} is answered with {} prices", priced.question, priced.prices.len())
        }
        Input::Sampled(sampled) => {
            let of = |name: &str, value: Option<i64>, unit: &str| {
                value.map_or_else(String::new, |value| format!(", {name} {value} {unit}"))
            };
            let sample = &sampled.sample;
            format!(
                "Sampled: {}{}{}{}",
                lane(sampled.lane),
                of("temperature", sample.temperature_c, "°C"),
                of("utilization", sample.utilization_percent, "%"),
                of("free memory", sample.memory_free_bytes.map(|bytes| bytes >> 20), "MiB"),
            )
        }
        Input::Control(control) => {
            format!("Control: {} from {:?}: {}", control.id, control.by, of_command(&control.command))
        }
        Input::Checkpoint(checkpoint) => of_checkpoint(checkpoint),
        Input::CommitEnded(ended) => of_commit(ended),
        Input::Trained(trained) => format!(
            "Trained: the network {} of {} bytes is there for policies that name it",
            trained.hash,
            trained.network.0.len()
        ),
    }
}

fn of_start(started: &Started) -> String {
    let devices: Vec<&str> = started.lanes.iter().map(|lane| lane.device.as_str()).collect();
    format!(
        "Started: process {:?} began with warptape {} and {} lanes: {}",
        started.node,
        started.software,
        devices.len(),
        devices.join(", ")
    )
}

fn of_task(task: &TaskArrived) -> String {
    let deadline = task.deadline_ns.map_or_else(String::new, |at_ns| format!(", due by {}", utc(at_ns)));
    format!(
        "TaskArrived: task {} of {} units is asked for by request {:?} of {:?}{deadline}; it lies at offset {} of partition {}",
        task.task, task.units, task.request_id, task.tenant, task.offset, task.partition
    )
}

fn of_seal(sealed: &Sealed) -> String {
    let parts: Vec<String> = sealed
        .partitions
        .iter()
        .map(|part| {
            format!(
                "partition {} offsets {} to {} with {} signals",
                part.partition, part.first_offset, part.next_offset, part.signals
            )
        })
        .collect();
    format!("Sealed: a transaction is handed to the log: {}", parts.join("; "))
}

fn of_checkpoint(checkpoint: &Checkpoint) -> String {
    format!(
        "Checkpoint: part {} of {} of the scheduler's state, {} bytes",
        checkpoint.part + 1,
        checkpoint.parts,
        checkpoint.state.0.len()
    )
}

fn of_commit(ended: &CommitEnded) -> String {
    let outcome = match ended.outcome {
        CommitOutcome::Committed => "is committed",
        CommitOutcome::Aborted => "was aborted",
    };
    format!(
        "CommitEnded: the transaction sealed with entry {} {outcome}; attempt {} took {}",
        ended.sealed,
        ended.attempt,
        milliseconds(ended.ended_ns - ended.sent_ns)
    )
}

fn of_command(command: &ControlCommand) -> String {
    // A union: its one member is the name with the fields.
    serde_json::json!(command).to_string()
}
