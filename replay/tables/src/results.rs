//! Answers to risk requests as rows.

use warptape_eventlog::Record;
use warptape_schemas::decode_risk_result;

use crate::cell::Cell;
use crate::journal::to_value;
use crate::rows::Rows;
use crate::table::{Table, int, maybe_text, maybe_time, text, time, word};

/// Answers to risk requests.
pub(crate) const RISK_RESULTS: Table = Table {
    name: "risk_results",
    words: "An answer to a risk request, in the order of its partition.",
    columns: &[
        int("partition", "partition of the topic, the same as that of the request"),
        int("offset", "offset in the topic of results"),
        time("record_time_ns", "time of its record in the log"),
        text("request_id", "id of the request"),
        word("tenant", "tenant that asked"),
        word("class", "class: `CRITICAL`, `INTERACTIVE`, `BATCH`"),
        int("request_offset", "offset of the request"),
        word("outcome", "kind of the answer: `options`, `portfolio`, `error` and so on"),
        text("outcome_detail", "the whole answer as JSON"),
        text("as_of_detail", "numbers taken from the market as JSON, by asset"),
        int("seed", "seed of random numbers"),
        time("received_ns", "time at which the request reached the engine"),
        maybe_time("started_ns", "time at which its first slice went to a lane; null if none did"),
        time("finished_ns", "time at which the answer was known"),
        int("compute_ns", "time that lanes worked on it"),
        int("cost_ns", "estimated time of one core; 0 if it was refused before the estimate"),
        text("devices", "devices that worked on it, as a JSON array"),
        word("node", "process that answered"),
        int("decision_sequence", "sequence of the entry that admitted or refused it; -1 if there is none"),
        maybe_text("cancels", "id of the request that this one cancels"),
        int("rules", "number of the rules of the answer"),
    ],
};

/// Adds the row of an answer. An error says why the answer cannot be read.
pub(crate) fn push(partition: i32, record: &Record, rows: &mut Rows) -> Result<(), String> {
    let result = decode_risk_result(&record.value).map_err(|error| error.to_string())?;
    let outcome = to_value(&result.outcome);
    let kind = outcome.get("type").and_then(|kind| kind.as_str()).unwrap_or_default();
    let (class, devices) = (to_value(&result.class), to_value(&result.devices).to_string());
    let (detail, as_of) = (outcome.to_string(), to_value(&result.as_of).to_string());
    let row = [
        partition.into(),
        record.offset.into(),
        record.timestamp_ns.into(),
        result.request_id.as_str().into(),
        result.tenant.as_str().into(),
        class.as_str().expect("a class is a word").into(),
        result.offset.into(),
        kind.into(),
        detail.as_str().into(),
        as_of.as_str().into(),
        result.seed.into(),
        result.received_ns.into(),
        Cell::from(Some(result.started_ns).filter(|ns| *ns != 0)),
        result.finished_ns.into(),
        result.compute_ns.into(),
        result.cost_ns.into(),
        devices.as_str().into(),
        result.node.as_str().into(),
        result.decision_sequence.into(),
        result.cancels.as_deref().into(),
        result.rules.into(),
    ];
    rows.push(&RISK_RESULTS, &row);
    Ok(())
}
