//! Encoders of all records except ticks.

use crate::control::{Control, ControlResult};
use crate::dead_letter::DeadLetter;
use crate::feed::Feed;
use crate::frame;
use crate::journal::JournalEntry;
use crate::known::{self, KnownSchema};
use crate::late_tick::LateTick;
use crate::lifecycle::Lifecycle;
use crate::risk::{RiskRequest, RiskResult};
use crate::set_event_time::SetEventTime;
use crate::signal::Signal;
use crate::snapshot::Snapshot;
use crate::wire::Wire;

/// Appends a signal in the first version of its schema that can represent it.
pub fn encode_signal(signal: &Signal<'_>, out: &mut Vec<u8>) {
    let schema = signal.schema();
    out.extend_from_slice(&frame::header(schema.fingerprint));
    signal.put_version(schema.version, out);
}

/// Appends a journal entry unchanged; [`crate::JournalWriter`] makes consecutive entries.
pub fn encode_journal_entry(entry: &JournalEntry, out: &mut Vec<u8>) {
    encode(known::JOURNAL_ENTRY, entry, out);
}

/// Appends a snapshot with its checksum.
pub fn encode_snapshot(snapshot: &Snapshot, out: &mut Vec<u8>) {
    out.extend_from_slice(&frame::header(known::SNAPSHOT.fingerprint));
    snapshot.put_with_checksum(out);
}

/// Appends a late tick.
pub fn encode_late_tick(late_tick: &LateTick, out: &mut Vec<u8>) {
    if late_tick.is_scaled() {
        encode(known::LATE_TICK, late_tick, out);
    } else {
        out.extend_from_slice(&frame::header(known::LATE_TICK_1.fingerprint));
        late_tick.put_version(known::LATE_TICK_1.version, out);
    }
}

/// Appends a dead letter in the first version of its schema that can represent it.
pub fn encode_dead_letter(dead_letter: &DeadLetter, out: &mut Vec<u8>) {
    let schema = dead_letter.schema();
    out.extend_from_slice(&frame::header(schema.fingerprint));
    dead_letter.put_version(schema.version, out);
}

/// Appends a lifecycle event.
pub fn encode_lifecycle(lifecycle: &Lifecycle, out: &mut Vec<u8>) {
    encode(known::LIFECYCLE, lifecycle, out);
}

/// Appends the progress of a source of ticks.
pub fn encode_feed(feed: &Feed, out: &mut Vec<u8>) {
    encode(known::FEED, feed, out);
}

/// Appends an operator's command.
pub fn encode_control(control: &Control, out: &mut Vec<u8>) {
    encode(known::CONTROL, control, out);
}

/// Appends a set event time in the first version of its schema that can represent it.
pub fn encode_set_event_time(set: &SetEventTime, out: &mut Vec<u8>) {
    let schema = set.schema();
    out.extend_from_slice(&frame::header(schema.fingerprint));
    set.put_version(schema.version, out);
}

/// Appends the answer to a command.
pub fn encode_control_result(result: &ControlResult, out: &mut Vec<u8>) {
    encode(known::CONTROL_RESULT, result, out);
}

/// Appends a risk request.
pub fn encode_risk_request(request: &RiskRequest, out: &mut Vec<u8>) {
    let schema = request.schema();
    out.extend_from_slice(&frame::header(schema.fingerprint));
    request.put_version(schema.version, out);
}

/// Appends a risk result.
pub fn encode_risk_result(result: &RiskResult, out: &mut Vec<u8>) {
    let schema = result.schema();
    out.extend_from_slice(&frame::header(schema.fingerprint));
    result.put_version(schema.version, out);
}

fn encode(schema: KnownSchema, record: &impl for<'datum> Wire<'datum>, out: &mut Vec<u8>) {
    out.extend_from_slice(&frame::header(schema.fingerprint));
    record.put(out);
}
