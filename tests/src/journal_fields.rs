//! The fields of the journal's inputs, and what a verification knows about each. A field is safe if a forger who
//! recomputes hashes and decisions cannot change it unnoticed.
//!
//! `docs/anchors.md` has this table. Tests compare the table with the journal's types and with forgeries.

use Known::{Checked, Stated};

/// The knowledge of a verification about a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The verification derives the field again or compares it; the text names the source.
    Checked(&'static str),
    /// The verification cannot check the field, at least in some cases; the text gives the reason.
    Stated(&'static str),
}

impl Known {
    /// True if every forgery of the field is found.
    pub fn is_checked(self) -> bool {
        matches!(self, Checked(_))
    }

    /// Returns the source of the check, or the reason why there is no check.
    pub fn words(self) -> &'static str {
        match self {
            Checked(words) | Stated(words) => words,
        }
    }
}

/// Fields of one record about which a verification knows the same; `*` means all other fields of the record.
pub struct Fields {
    /// The record's name in the schema of the journal.
    pub record: &'static str,
    /// The names of the fields.
    pub fields: &'static [&'static str],
    /// The knowledge of a verification about the fields.
    pub known: Known,
}

const fn fields(record: &'static str, fields: &'static [&'static str], known: Known) -> Fields {
    Fields { record, fields, known }
}

const SETTING: Known =
    Stated("a setting: decisions must follow from it, but no other record shows the operator's choice");
const MACHINE: Known = Stated("the process's own description of its machine");
const MEASURED: Known = Stated("measured by the process");
const STEPPED: Known = Checked("the inputs that the scheduler accepts");

/// All fields of the journal's inputs.
pub const FIELDS: &[Fields] = &[
    fields("Started", &["stage_config"], Checked("outputs and snapshots, computed again with it")),
    fields("Started", &["node"], Checked("the key of the journal's records")),
    fields("Started", &["software"], Stated("reported by the process alone")),
    fields("Started", &["scheduler", "autoscale", "shadow", "rules"], SETTING),
    fields("Started", &["lanes"], MACHINE),
    fields("SchedulerConfig", &["*"], SETTING),
    fields("RiskConfig", &["*"], SETTING),
    fields("TenantWeight", &["*"], SETTING),
    fields("QueueConfig", &["*"], SETTING),
    fields("Quota", &["*"], SETTING),
    fields("BreakerConfig", &["*"], SETTING),
    fields("AutoscaleConfig", &["*"], SETTING),
    fields("ShadowConfig", &["*"], SETTING),
    fields("LaneSpec", &["lane"], STEPPED),
    fields("LaneSpec", &["*"], MACHINE),
    fields("Peer", &["*"], MACHINE),
    fields("PartitionAssigned", &["partition"], STEPPED),
    fields("PartitionAssigned", &["groups"], Checked("the stage configuration")),
    fields("PartitionAssigned", &["committed_offset"], Checked("the end of the last transaction")),
    fields("PartitionAssigned", &["snapshot_offset"], Checked("the next rows, read from this offset")),
    fields(
        "PartitionAssigned",
        &["is_emptied", "lost_from"],
        Stated("only the process knew which records were already removed at its start"),
    ),
    fields(
        "PartitionRevoked",
        &["partition"],
        Stated("only the consumer group knew the owner of a partition without further commits"),
    ),
    fields("Arrived", &["partition", "groups"], Checked("the rows of the tick records")),
    fields(
        "Arrived",
        &["next_offset"],
        Stated("the grouping of records into reads; the rows themselves are checked"),
    ),
    fields("GroupArrival", &["group", "rows"], Checked("the rows of the tick records")),
    fields("GroupArrival", &["bytes"], Checked("the size of a row")),
    fields("Completed", &["lane", "batch"], STEPPED),
    fields("Completed", &["service_ns", "sample"], MEASURED),
    fields("Sampled", &["*"], MEASURED),
    fields("DeviceSample", &["*"], MEASURED),
    fields("LaneLost", &["*"], Stated("an event on the machine")),
    fields("LaneReady", &["*"], Stated("an event on the machine")),
    fields("Measured", &["*"], MEASURED),
    fields("ServicePoint", &["*"], MEASURED),
    fields("Released", &["*"], STEPPED),
    fields("TaskArrived", &["task"], Checked("the number of the previous request")),
    fields(
        "TaskArrived",
        &["partition", "offset", "request_id", "tenant", "class", "deadline_ns"],
        Checked("the request"),
    ),
    fields("TaskArrived", &["gang", "bytes", "as_of", "first_unit"], Checked("the request and the market")),
    fields(
        "TaskArrived",
        &["rate_key", "units", "unit_cost", "slice_units_max", "unit_width"],
        Stated(
            "checked by request and market, except for later rounds, portfolios that follow earlier ones, and tasks without a result",
        ),
    ),
    fields("AsOf", &["*"], Checked("the result, computed with the market at these offsets")),
    fields("SliceDone", &["lane", "slice"], STEPPED),
    fields("SliceDone", &["service_ns"], MEASURED),
    fields(
        "TaskDropped",
        &["task"],
        Stated("the time of a withdrawal; verification finds a withdrawn request that has an answer"),
    ),
    fields("Sealed", &["partitions"], Checked("committed offsets, ticks, outputs")),
    fields("SealedPartition", &["*"], Checked("committed offsets, ticks, outputs, results and requests")),
    fields("Priced", &["question"], STEPPED),
    fields(
        "Priced",
        &["prices"],
        Stated("the solution of a linear program; replay cannot reproduce its last bits"),
    ),
    fields("Control", &["*"], Checked("the command in its topic")),
    fields("DrainLane", &["*"], Checked("the command in its topic")),
    fields("UndrainLane", &["*"], Checked("the command in its topic")),
    fields("WeighLane", &["*"], Checked("the command in its topic")),
    fields("WeighTenant", &["*"], Checked("the command in its topic")),
    fields("SetBreaker", &["*"], Checked("the command in its topic")),
    fields("ChoosePolicy", &["*"], Checked("the command in its topic")),
    fields("SetWatermark", &["*"], Checked("the command in its topic")),
    fields("Positions", &["group"], Stated("reported by the process alone")),
    fields("Positions", &["is_whole", "partitions"], Checked("the earlier entries")),
    fields("Position", &["*"], Checked("the earlier entries")),
    fields("Checkpoint", &["started"], Checked("the `Started` entry of the process life")),
    fields("Checkpoint", &["part", "parts"], Checked("the other parts")),
    fields("Checkpoint", &["state"], Checked("the state computed from the earlier inputs")),
    fields(
        "CommitEnded",
        &["attempt", "outcome"],
        Checked("the order of the transactions in the process life"),
    ),
    fields(
        "CommitEnded",
        &["sealed"],
        Stated(
            "the last entry of a transaction that moved no offset; for all other transactions it is checked",
        ),
    ),
    fields(
        "CommitEnded",
        &["sent_ns", "ended_ns"],
        Stated(
            "a reading of the clock; only its place between the transaction's seal and this entry is checked",
        ),
    ),
    fields("CommitEnded", &["looked_up"], Stated("known to the process alone")),
    fields("Trained", &["hash"], Checked("the network's bytes")),
    fields("Trained", &["network"], Checked("its hash")),
];

/// The knowledge of a verification about a removed entry, by the name of its input, if all later entries were
/// recomputed.
pub const REMOVED: &[(&str, Known)] = &[
    ("Started", STEPPED),
    ("PartitionAssigned", STEPPED),
    ("PartitionRevoked", Stated("as for `PartitionRevoked.partition`")),
    ("Arrived", Checked("the rows of the tick records")),
    ("Completed", Stated("its work may have been unfinished")),
    ("LaneLost", Stated("an event on the machine")),
    ("LaneReady", Stated("an event on the machine")),
    ("Woke", Stated("the time at which the process read its clock")),
    ("Draining", Stated("the time at which the process was asked to end")),
    ("Measured", MEASURED),
    ("Released", Stated("its work may have been unfinished")),
    (
        "TaskArrived",
        Stated("its request may have been withdrawn, or its process may have ended before the answer"),
    ),
    ("SliceDone", Stated("its work may have been unfinished")),
    ("TaskDropped", Stated("the time of a withdrawal")),
    ("Sealed", Checked("committed offsets")),
    ("Priced", Stated("as for `Priced.prices`")),
    ("Sampled", MEASURED),
    ("Control", Checked("the command in its topic")),
    ("Checkpoint", Stated("a copy of state that the other entries determine")),
    (
        "CommitEnded",
        Stated("the outcome of a transaction that moved no offset; a removal of any other is found"),
    ),
    ("Trained", STEPPED),
    ("Positions", Stated("a summary of earlier entries")),
];

/// Returns what a verification knows about a field; `None` if the table lacks the field.
pub fn known(record: &str, field: &str) -> Option<Known> {
    let of_record = FIELDS.iter().filter(|fields| fields.record == record);
    let named = of_record.clone().find(|fields| fields.fields.contains(&field));
    let others = of_record.clone().find(|fields| fields.fields == ["*"]);
    named.or(others).map(|fields| fields.known)
}
