//! How the types of [`crate::journal`] lie in the datum of a journal entry.

use crate::journal::{
    Arrived, Candidate, Completed, Decision, DeviceSample, Dispatch, Draining, Exclusion, ExclusionReason,
    Fence, GroupArrival, Input, JournalEntry, LaneKind, LaneLost, LaneReady, LaneSpec, LaneTelemetry,
    Measured, PartitionAssigned, PartitionRevoked, Pause, Place, PolicyRef, Release, ReleaseReason, Released,
    Restore, Resume, Route, SchedulerConfig, ServicePoint, Started, Take, WakeAt, Woke,
};
use crate::wire::{wire_enum, wire_record, wire_union};

wire_record!(SchedulerConfig {
    placement_policy,
    placement_seed,
    load_factor_percent,
    lane_credit_rows,
    lane_credit_bytes,
    lane_batches_max,
    batch_rows_max,
    row_deadline_ns,
    high_water_rows,
    low_water_rows,
    route_interval_ns,
});
wire_record!(LaneSpec { lane, device, weight });
wire_record!(GroupArrival { group, rows, bytes });

wire_union!(Input {
    0 => Started,
    1 => PartitionAssigned,
    2 => PartitionRevoked,
    3 => Arrived,
    4 => Completed,
    5 => LaneLost,
    6 => LaneReady,
    7 => Woke,
    8 => Draining,
    9 => Measured,
    10 => Released,
});
wire_record!(Started { node, software, stage_config, scheduler, lanes });
wire_record!(PartitionAssigned { partition, groups, committed_offset, snapshot_offset });
wire_record!(PartitionRevoked { partition });
wire_record!(Arrived { partition, next_offset, groups });
wire_record!(Completed { lane, batch, service_ns, sample });
wire_record!(DeviceSample {
    slots_bytes,
    staging_bytes,
    work_bytes,
    memory_used_bytes,
    memory_free_bytes,
    utilization_percent,
    temperature_c,
    power_mw,
    sm_clock_mhz,
    memory_clock_mhz,
    throttle_bits,
    ecc_errors_uncorrected,
});
wire_record!(LaneLost { lane, reason, kept });
wire_record!(LaneReady { lane });
wire_record!(Woke {});
wire_record!(Draining {});
wire_record!(Measured { lane, points });
wire_record!(ServicePoint { rows, service_ns });
wire_record!(Released { partition, group, lane, epoch });

wire_union!(Decision {
    0 => Place,
    1 => Dispatch,
    2 => Pause,
    3 => Resume,
    4 => Fence,
    5 => Restore,
    6 => WakeAt,
    7 => Release,
});
wire_record!(Candidate { lane, score, groups_placed, groups_max });
wire_enum!(ExclusionReason { 0 => Lost, 1 => Full, 2 => Slower });
wire_record!(Exclusion { lane, reason });
wire_record!(PolicyRef { id, version });
wire_record!(LaneTelemetry { in_flight_rows, in_flight_bytes, in_flight_batches, service_ps_per_row });
wire_record!(Take { partition, group, epoch, rows });
wire_enum!(ReleaseReason { 0 => Idle, 1 => Full, 2 => Deadline, 3 => Drain });
wire_record!(Place {
    partition,
    group,
    lane,
    epoch,
    policy,
    candidates,
    excluded,
    random_stream,
    random_counter,
    propensity_ppm,
    route,
});
wire_enum!(LaneKind { 0 => Host, 1 => Device });
wire_record!(Route { kind, rows, break_even_rows, host_ns, device_ns });
wire_record!(Dispatch {
    batch,
    lane,
    takes,
    rows,
    bytes,
    reason,
    telemetry,
    oldest_arrival_ns,
    predicted_finish_ns,
});
wire_record!(Pause { partition, waiting_rows, high_water_rows });
wire_record!(Resume { partition, waiting_rows, low_water_rows });
wire_record!(Fence { lane, groups, reason });
wire_record!(Restore { partition, lost_lane });
wire_record!(WakeAt { at_ns });
wire_record!(Release { partition, group, lane, epoch, route });

wire_record!(JournalEntry { sequence, at_ns, input, decisions, state_hash, hash });
