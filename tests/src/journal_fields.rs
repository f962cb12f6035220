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

const SETTING: Known = Stated(
    "a setting: decisions must follow from it, but which one an operator chose is written nowhere else",
);
const MACHINE: Known = Stated("what the machine was, by its own word");
const MEASURED: Known = Stated("measured by the process");
const STEPPED: Known = Checked("the scheduler takes no other");

/// All fields of the journal's inputs.
pub const FIELDS: &[Fields] = &[
    fields("Started", &["stage_config"], Checked("outputs and snapshots are made again by it")),
    fields("Started", &["node"], Checked("the key of the journal's records")),
    fields("Started", &["software"], Stated("the process's own word")),
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
    fields("PartitionAssigned", &["committed_offset"], Checked("where transactions ended")),
    fields(
        "PartitionAssigned",
        &["snapshot_offset"],
        Checked("the rows that arrive next, of the records from there on"),
    ),
    fields(
        "PartitionAssigned",
        &["is_emptied", "lost_from"],
        Stated("which records were gone when the process began is known to it alone"),
    ),
    fields(
        "PartitionRevoked",
        &["partition"],
        Stated("who had a partition of which nothing was committed any more is known to its group alone"),
    ),
    fields("Arrived", &["partition", "groups"], Checked("the rows of the tick records")),
    fields(
        "Arrived",
        &["next_offset"],
        Stated("how records were read together, as long as the rows are those of the records"),
    ),
    fields("GroupArrival", &["group", "rows"], Checked("the rows of the tick records")),
    fields("GroupArrival", &["bytes"], Checked("the bytes of a row")),
    fields("Completed", &["lane", "batch"], STEPPED),
    fields("Completed", &["service_ns", "sample"], MEASURED),
    fields("Sampled", &["*"], MEASURED),
    fields("DeviceSample", &["*"], MEASURED),
    fields("LaneLost", &["*"], Stated("what happened to the machine")),
    fields("LaneReady", &["*"], Stated("what happened to the machine")),
    fields("Measured", &["*"], MEASURED),
    fields("ServicePoint", &["*"], MEASURED),
    fields("Released", &["*"], STEPPED),
    fields("TaskArrived", &["task"], Checked("the number of the request before")),
    fields(
        "TaskArrived",
        &["partition", "offset", "request_id", "tenant", "class", "deadline_ns"],
        Checked("the request"),
    ),
    fields("TaskArrived", &["gang", "bytes", "as_of", "first_unit"], Checked("the request and the market")),
    fields(
        "TaskArrived",
        &["rate_key", "units", "unit_cost", "slice_units_max"],
        Stated(
            "the request and the market, but not of later rounds, of portfolios that follow earlier ones, and of tasks without a result",
        ),
    ),
    fields("AsOf", &["*"], Checked("the result that the market of these offsets gives")),
    fields("SliceDone", &["lane", "slice"], STEPPED),
    fields("SliceDone", &["service_ns"], MEASURED),
    fields(
        "TaskDropped",
        &["task"],
        Stated("when a request was withdrawn; one that is answered all the same is found"),
    ),
    fields("Sealed", &["partitions"], Checked("committed offsets, ticks, outputs")),
    fields("SealedPartition", &["*"], Checked("committed offsets, ticks, outputs, results and requests")),
    fields("Priced", &["question"], STEPPED),
    fields(
        "Priced",
        &["prices"],
        Stated("the solution of a linear program, whose last bits no replay makes again"),
    ),
    fields("Control", &["*"], Checked("the command in its topic")),
    fields("DrainLane", &["*"], Checked("the command in its topic")),
    fields("UndrainLane", &["*"], Checked("the command in its topic")),
    fields("WeighLane", &["*"], Checked("the command in its topic")),
    fields("WeighTenant", &["*"], Checked("the command in its topic")),
    fields("SetBreaker", &["*"], Checked("the command in its topic")),
    fields("ChoosePolicy", &["*"], Checked("the command in its topic")),
    fields("SetWatermark", &["*"], Checked("the command in its topic")),
    fields("Positions", &["group"], Stated("the process's own word")),
    fields("Positions", &["is_whole", "partitions"], Checked("the entries before")),
    fields("Position", &["*"], Checked("the entries before")),
    fields("Checkpoint", &["started"], Checked("how the life began")),
    fields("Checkpoint", &["part", "parts"], Checked("each other")),
    fields("Checkpoint", &["state"], Checked("the state that the inputs before give")),
    fields(
        "CommitEnded",
        &["attempt", "outcome"],
        Checked("the transactions of the life, which follow each other"),
    ),
    fields(
        "CommitEnded",
        &["sealed"],
        Stated(
            "which entry was the last of a transaction that moved no offset; of all others it is compared",
        ),
    ),
    fields(
        "CommitEnded",
        &["sent_ns", "ended_ns"],
        Stated("a clock: it must lie between the transaction's seal and this entry"),
    ),
    fields("CommitEnded", &["looked_up"], Stated("how the process learnt the outcome")),
    fields("Trained", &["hash"], Checked("the network's bytes")),
    fields("Trained", &["network"], Checked("its hash")),
];

/// The knowledge of a verification about a removed entry, by the name of its input, if all later entries were
/// recomputed.
pub const REMOVED: &[(&str, Known)] = &[
    ("Started", STEPPED),
    ("PartitionAssigned", STEPPED),
    ("PartitionRevoked", Stated("as its field")),
    ("Arrived", Checked("the rows of the tick records")),
    ("Completed", Stated("work that ended late, and was not waited for")),
    ("LaneLost", Stated("what happened to the machine")),
    ("LaneReady", Stated("what happened to the machine")),
    ("Woke", Stated("when time was looked at")),
    ("Draining", Stated("when a process was asked to end")),
    ("Measured", MEASURED),
    ("Released", Stated("work that ended late, and was not waited for")),
    ("TaskArrived", Stated("a request that was withdrawn, or whose process ended before it was answered")),
    ("SliceDone", Stated("work that ended late, and was not waited for")),
    ("TaskDropped", Stated("when a request was withdrawn")),
    ("Sealed", Checked("committed offsets")),
    ("Priced", Stated("as its prices")),
    ("Sampled", MEASURED),
    ("Control", Checked("the command in its topic")),
    ("Checkpoint", Stated("a copy of the state, which is there without it")),
    ("CommitEnded", Stated("the outcome of a transaction that moved no offset; all others have to be there")),
    ("Trained", STEPPED),
    ("Positions", Stated("a summary of the entries before, which is there without it")),
];

/// Returns what a verification knows about a field; `None` if the table lacks the field.
pub fn known(record: &str, field: &str) -> Option<Known> {
    let of_record = FIELDS.iter().filter(|fields| fields.record == record);
    let named = of_record.clone().find(|fields| fields.fields.contains(&field));
    let others = of_record.clone().find(|fields| fields.fields == ["*"]);
    named.or(others).map(|fields| fields.known)
}
