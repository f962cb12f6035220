//! How the types of [`crate::journal`] lie in the datum of a journal entry.

use crate::journal::{
    Admit, Arrived, AsOf, Candidate, Completed, Decision, DeviceSample, Dispatch, Draining, Exclusion,
    ExclusionReason, Expire, Fence, Finish, GroupArrival, Input, JournalEntry, LaneKind, LaneLost, LaneReady,
    LaneSpec, LaneTelemetry, Measured, PartitionAssigned, PartitionRevoked, Pause, Place, PolicyRef, Reject,
    RejectReason, Release, ReleaseReason, Released, Reserve, Restore, Resume, RiskConfig, Route, RunSlice,
    SchedulerConfig, Sealed, SealedPartition, ServicePoint, Share, SliceDone, Split, SplitPolicy, Started,
    Take, TaskArrived, TaskClass, TaskDropped, TenantWeight, WakeAt, Woke,
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
    risk,
});
wire_record!(RiskConfig { slice_ns, tasks_max, split, tenant_weights, bytes_max, quantum_ns });
wire_enum!(SplitPolicy { 0 => Dynamic, 1 => Equal, 2 => Score });
wire_record!(TenantWeight { tenant, weight });
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
    11 => TaskArrived,
    12 => SliceDone,
    13 => TaskDropped,
    14 => Sealed,
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
wire_record!(TaskArrived {
    task,
    partition,
    offset,
    request_id,
    tenant,
    class,
    deadline_ns,
    rate_key,
    first_unit,
    units,
    unit_cost,
    slice_units_max,
    gang,
    as_of,
    bytes,
});
wire_enum!(TaskClass { 0 => Critical, 1 => Interactive, 2 => Batch });
wire_record!(AsOf { partition, next_offset });
wire_record!(SliceDone { lane, slice, service_ns });
wire_record!(TaskDropped { task });
wire_record!(Sealed { partitions });
wire_record!(SealedPartition {
    partition,
    first_offset,
    next_offset,
    ticks_digest,
    signals,
    late,
    dead_letters,
    risk_results,
    next_request,
});

wire_union!(Decision {
    0 => Place,
    1 => Dispatch,
    2 => Pause,
    3 => Resume,
    4 => Fence,
    5 => Restore,
    6 => WakeAt,
    7 => Release,
    8 => Admit,
    9 => Reject,
    10 => Split,
    11 => Reserve,
    12 => RunSlice,
    13 => Expire,
    14 => Finish,
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
wire_record!(Admit { task, class, tenant, tasks });
wire_enum!(RejectReason { 0 => Overloaded, 1 => Expired });
wire_record!(Reject { task, reason, tasks, tasks_max, deadline_ns, bytes, bytes_max });
wire_record!(Share { lane, from, to, score });
wire_record!(Split { task, policy, gang, shares });
wire_record!(Reserve { task, lanes, busy, until_ns });
wire_record!(RunSlice {
    slice,
    task,
    lane,
    from,
    to,
    class,
    tenant,
    tasks_waiting,
    tenant_service_ns,
    service_fs_per_cost,
    predicted_finish_ns,
});
wire_record!(Expire { task, deadline_ns, slices_running });
wire_record!(Finish { task, slices, service_ns });

wire_record!(JournalEntry { sequence, at_ns, input, decisions, state_hash, hash });
