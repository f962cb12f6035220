//! Admission: it checks whether an input may be applied. Everything after it relies on these checks.
//!
//! It reads the state and never changes it, so that a refused input leaves no trace. It refuses every bad input that a
//! damaged journal may contain. The bounds are the named limits of `config`.

use warptape_events::journal::{
    Arrived, Completed, Control, ControlCommand, Input, LaneId, Measured, PartitionAssigned, PartitionId,
    Priced, Released, Sealed, SealedPartition, ServicePoint, SliceDone, TaskArrived,
};

use crate::config::{
    BYTES_MAX, COST_MAX, GROUPS_PER_PARTITION_MAX, GROUPS_TOTAL_MAX, PARTITIONS_MAX, POINTS_MAX,
    REQUEST_BYTES_MAX, ROWS_MAX, TASKS_MAX, TEXT_BYTES_MAX, TIME_NS_MAX, UNITS_MAX,
};
use crate::error::StepError;
use crate::lanes::Lane;
use crate::life::Life;
use crate::partitions::Partition;
use crate::partitions::PartitionPhase;

/// Checks that the time is in range.
pub(crate) fn admit_time(at_ns: i64) -> Result<(), StepError> {
    if (0..=TIME_NS_MAX).contains(&at_ns) { Ok(()) } else { Err(StepError::TimeOutOfRange { at_ns }) }
}

/// Checks that the input may be applied to the state.
pub(crate) fn admit(life: &Life, at_ns: i64, input: &Input) -> Result<(), StepError> {
    if at_ns < life.clock.at_ns {
        return Err(StepError::TimeFell { last_ns: life.clock.at_ns, at_ns });
    }
    match input {
        Input::Started(_)
        | Input::Woke(_)
        | Input::Draining(_)
        | Input::Checkpoint(_)
        | Input::CommitEnded(_)
        | Input::Positions(_) => Ok(()),
        Input::PartitionAssigned(assigned) => admit_assigned(life, assigned),
        Input::PartitionRevoked(revoked) => match phase(life, revoked.partition) {
            PartitionPhase::Revoked => Err(StepError::NotAssigned { partition: revoked.partition }),
            PartitionPhase::Assigned | PartitionPhase::Restoring => Ok(()),
        },
        Input::Arrived(arrived) => admit_arrived(life, arrived),
        Input::Completed(completed) => admit_completed(life, completed),
        Input::LaneLost(lost) => match find_lane(life, lost.lane)?.ready {
            true => Ok(()),
            false => Err(StepError::LaneAlreadyLost { lane: lost.lane }),
        },
        Input::Measured(measured) => admit_measured(life, measured),
        Input::Released(released) => admit_released(life, released),
        Input::TaskArrived(arrived) => admit_task(life, arrived),
        Input::SliceDone(done) => admit_slice_done(life, done),
        Input::TaskDropped(dropped) => match life.risk.knows(dropped.task) {
            true => Ok(()),
            false => Err(StepError::UnknownTask { task: dropped.task }),
        },
        Input::Sealed(sealed) => admit_sealed(life, sealed),
        Input::Priced(priced) => admit_priced(life, priced),
        Input::Sampled(sampled) => find_lane(life, sampled.lane).map(|_| ()),
        Input::Control(control) => admit_control(control),
        Input::Trained(trained) => life.learnt.networks.admit(trained, life.lanes.len()),
        Input::LaneReady(ready) => match find_lane(life, ready.lane)?.ready {
            true => Err(StepError::LaneAlreadyReady { lane: ready.lane }),
            false => Ok(()),
        },
    }
}

fn phase(life: &Life, partition: PartitionId) -> PartitionPhase {
    life.partitions.get(&partition).map_or(PartitionPhase::Revoked, |partition| partition.phase)
}

fn find_lane(life: &Life, lane: LaneId) -> Result<&Lane, StepError> {
    let unknown = StepError::UnknownLane { lane, lanes: life.lanes.len() };
    usize::try_from(lane).ok().and_then(|index| life.lanes.get(index)).ok_or(unknown)
}

fn admit_assigned(life: &Life, assigned: &PartitionAssigned) -> Result<(), StepError> {
    let &PartitionAssigned { partition, groups, committed_offset, snapshot_offset, .. } = assigned;
    if partition < 0 {
        return Err(StepError::BadPartition { partition });
    }
    if !(1..=GROUPS_PER_PARTITION_MAX).contains(&groups) {
        return Err(StepError::BadGroupCount { partition, groups });
    }
    if snapshot_offset < 0 || committed_offset < snapshot_offset {
        return Err(StepError::BadOffsets { partition, snapshot_offset, committed_offset });
    }
    let known = life.partitions.get(&partition);
    if known.is_none() && life.partitions.len() >= PARTITIONS_MAX {
        return Err(StepError::TooManyPartitions);
    }
    let groups_known = known.map_or(0, |partition| partition.groups.len() as i64);
    if life.counts.groups_seen + (i64::from(groups) - groups_known).max(0) > GROUPS_TOTAL_MAX {
        return Err(StepError::TooManyGroups);
    }
    Ok(())
}

fn admit_priced(life: &Life, priced: &Priced) -> Result<(), StepError> {
    let &Priced { question, ref prices } = priced;
    let question_next = life.risk.question_next();
    if !(0..question_next).contains(&question) {
        return Err(StepError::UnknownQuestion { question, question_next });
    }
    // An answer to an older question changes nothing, whatever it contains.
    let kinds = life.risk.kinds_asked(question).unwrap_or(prices.len());
    if !prices.is_empty() && (prices.len() != kinds || prices.iter().any(|price| *price < 0)) {
        return Err(StepError::BadPrices { question, kinds, prices: prices.len() });
    }
    Ok(())
}

fn admit_sealed(life: &Life, sealed: &Sealed) -> Result<(), StepError> {
    for &SealedPartition { partition, first_offset, next_offset, .. } in &sealed.partitions {
        if phase(life, partition) != PartitionPhase::Assigned {
            return Err(StepError::NotAssigned { partition });
        }
        if next_offset < first_offset {
            return Err(StepError::OffsetFell { partition, position: first_offset, next_offset });
        }
    }
    Ok(())
}

fn admit_arrived(life: &Life, arrived: &Arrived) -> Result<(), StepError> {
    let partition = arrived.partition;
    let known = life
        .partitions
        .get(&partition)
        .filter(|known| known.phase == PartitionPhase::Assigned)
        .ok_or(StepError::NotAssigned { partition })?;
    if arrived.next_offset < known.position {
        let position = known.position;
        return Err(StepError::OffsetFell { partition, position, next_offset: arrived.next_offset });
    }
    let (mut rows, mut bytes) = (known.waiting_rows, known.waiting_bytes);
    let mut group_last = -1;
    for arrival in &arrived.groups {
        let group = arrival.group;
        let groups = known.groups_active as i32;
        if !(0..groups).contains(&group) {
            return Err(StepError::UnknownGroup { partition, group, groups });
        }
        if group <= group_last {
            return Err(StepError::GroupsNotAscending { partition, group });
        }
        group_last = group;
        if arrival.rows < 1 || arrival.bytes < 0 {
            return Err(StepError::BadArrival { partition, group, rows: arrival.rows, bytes: arrival.bytes });
        }
        rows = rows.saturating_add(arrival.rows);
        bytes = bytes.saturating_add(arrival.bytes);
    }
    if rows > ROWS_MAX || bytes > BYTES_MAX {
        return Err(StepError::TooMuchWaiting { partition });
    }
    Ok(())
}

fn admit_completed(life: &Life, completed: &Completed) -> Result<(), StepError> {
    let &Completed { lane: lane_id, batch, service_ns, .. } = completed;
    let lane = find_lane(life, lane_id)?;
    if service_ns < 0 {
        return Err(StepError::NegativeServiceTime { batch, service_ns });
    }
    if is_void(lane, batch) {
        return Ok(());
    }
    match lane.in_flight.batches.front() {
        Some(oldest) if oldest.batch == batch => Ok(()),
        Some(oldest) if lane.in_flight.batches.iter().any(|other| other.batch == batch) => {
            Err(StepError::OutOfOrder { lane: lane_id, batch, expected: oldest.batch })
        }
        _ => Err(StepError::UnknownBatch { lane: lane_id, batch }),
    }
}

fn admit_measured(life: &Life, measured: &Measured) -> Result<(), StepError> {
    let lane = measured.lane;
    find_lane(life, lane)?;
    let points = &measured.points;
    let good = |point: &&ServicePoint| (1..=ROWS_MAX).contains(&point.rows) && point.service_ns >= 0;
    match points.iter().find(|point| !good(point)) {
        _ if points.len() > POINTS_MAX => Err(StepError::TooManyPoints { lane, points: points.len() }),
        Some(&ServicePoint { rows, service_ns }) => Err(StepError::BadPoint { lane, rows, service_ns }),
        None => Ok(()),
    }
}

fn admit_released(life: &Life, released: &Released) -> Result<(), StepError> {
    let &Released { partition, group, lane, epoch } = released;
    let known = life.partitions.get(&partition).map_or(&[][..], Partition::active);
    let left = usize::try_from(group).ok().and_then(|index| known.get(index));
    match left.is_some_and(|group| group.leaving == Some(lane) && group.epoch == epoch) {
        true => Ok(()),
        false => Err(StepError::NotLeaving { partition, group, lane, epoch }),
    }
}

fn admit_task(life: &Life, arrived: &TaskArrived) -> Result<(), StepError> {
    let &TaskArrived { task, partition, first_unit, units, unit_cost, slice_units_max, .. } = arrived;
    if phase(life, partition) == PartitionPhase::Revoked {
        return Err(StepError::NotAssigned { partition });
    }
    // A number below the greatest one leaves room for the next.
    let (task_next, is_later_round) = (life.risk.task_next(), first_unit > 0);
    if task < 0 || task == i64::MAX || is_later_round != (task < task_next) || life.risk.knows(task) {
        return Err(StepError::BadTaskNumber { task, task_next });
    }
    if life.risk.tasks() >= TASKS_MAX as usize {
        return Err(StepError::TooManyTasks);
    }
    let ranges = [
        ("first_unit", first_unit, 0, UNITS_MAX - 1),
        ("units", units, 1, UNITS_MAX - first_unit.clamp(0, UNITS_MAX - 1)),
        ("unit_cost", unit_cost, 1, COST_MAX),
        ("slice_units_max", slice_units_max, 1, i64::MAX),
        ("deadline_ns", arrived.deadline_ns.unwrap_or(0), 0, TIME_NS_MAX),
        ("bytes", arrived.bytes, 0, REQUEST_BYTES_MAX),
        ("request_id.length", arrived.request_id.len() as i64, 0, TEXT_BYTES_MAX as i64),
        ("tenant.length", arrived.tenant.len() as i64, 0, TEXT_BYTES_MAX as i64),
        ("rate_key.length", arrived.rate_key.len() as i64, 0, TEXT_BYTES_MAX as i64),
    ];
    match ranges.into_iter().find(|(_, found, min, max)| !(min..=max).contains(&found)) {
        Some((field, found, min, max)) => Err(StepError::BadTask { task, field, found, min, max }),
        None => Ok(()),
    }
}

/// A command is always answered, provided that its texts are short enough to be repeated in the answer.
fn admit_control(control: &Control) -> Result<(), StepError> {
    let policy = match &control.command {
        ControlCommand::ChoosePolicy(choice) => choice.of.len().max(choice.name.len()),
        ControlCommand::WeighTenant(weigh) => weigh.tenant.len(),
        _ => 0,
    };
    let bytes = control.id.len().max(control.by.len()).max(policy);
    if bytes > TEXT_BYTES_MAX { Err(StepError::LongControl { bytes }) } else { Ok(()) }
}

fn admit_slice_done(life: &Life, done: &SliceDone) -> Result<(), StepError> {
    let &SliceDone { lane: lane_id, slice, service_ns } = done;
    let lane = find_lane(life, lane_id)?;
    if service_ns < 0 {
        return Err(StepError::NegativeSliceTime { slice, service_ns });
    }
    match lane.is_void_slice(slice) || lane.slices().any(|running| running.slice == slice) {
        true => Ok(()),
        false => Err(StepError::UnknownSlice { lane: lane_id, slice }),
    }
}

/// True if a completion of this batch does not count, because its lane was lost after the dispatch.
pub(crate) fn is_void(lane: &Lane, batch: i64) -> bool {
    (0..lane.void_below).contains(&batch)
}
