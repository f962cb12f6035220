//! Draws the work of lanes: batches with the arrivals of their rows, and slices of risk tasks.

use std::collections::BTreeMap;
use std::io::{self, Write};

use warptape_replay::chain::flight;
use warptape_replay::history::{Arrival, Batch, BatchEnd, Round, Slice, Trigger};

use crate::names::{Key, Name};
use crate::packets::{Event, Notes, number, text};
use crate::timeline::Timeline;
use crate::tracks::{Of, Overlap};
use crate::words;

/// Greatest number of arrivals drawn for a batch; the oldest ones are drawn.
const ARRIVALS_MAX: usize = 8;

impl<W: Write> Timeline<W> {
    pub(crate) fn batch(&mut self, batch: &Batch) -> io::Result<()> {
        let (dispatched_ns, lane) = (batch.at.at_ns, batch.dispatch.lane);
        let (end_ns, flown) = match batch.end {
            BatchEnd::Completed { at, service_ns, lane_free_ns } => {
                (at.at_ns, Some(flight(dispatched_ns, at.at_ns, service_ns, lane_free_ns)))
            }
            BatchEnd::Lost(at) => (at.at_ns, None),
            BatchEnd::Open => (self.last_ns(), None),
        };
        let [lane_wait_ns, service_ns, _] = flown.unwrap_or_default();
        let begin_ns = dispatched_ns.saturating_add(lane_wait_ns);
        let ending_flows = self.arrivals(batch)?;
        let mut notes = notes_of(batch);
        if let Some([lane_wait_ns, service_ns, handover_ns]) = flown {
            notes.push(number(Key::LaneWait, lane_wait_ns));
            notes.push(number(Key::Service, service_ns));
            notes.push(number(Key::Handover, handover_ns));
            notes.push(number(Key::Took, end_ns.saturating_sub(dispatched_ns)));
        }
        let name = match batch.end {
            BatchEnd::Lost(_) => Name::BatchLost,
            _ => batch.dispatch.reason.into(),
        };
        notes.extend(self.before_window(begin_ns));
        let flows = vec![self.flow_of_batch(batch.dispatch.batch)];
        let Some((row, span)) = self.room(Of::Lane(lane), begin_ns, end_ns, Overlap::Never)? else {
            return Ok(());
        };
        self.drawn.batches += 1;
        self.out.begin(row, span.begin_ns, name, Event { flows, ending_flows, notes })?;
        if flown.is_some() {
            let served_ns = begin_ns.saturating_add(service_ns).clamp(span.begin_ns, span.end_ns);
            self.out.begin(row, span.begin_ns, Name::Service, Event::default())?;
            self.out.end(row, served_ns)?;
        }
        self.out.end(row, span.end_ns)
    }

    /// Draws the oldest arrivals of a batch, each with its own flow to the batch.
    fn arrivals(&mut self, batch: &Batch) -> io::Result<Vec<u64>> {
        let mut found: BTreeMap<(i64, Option<i64>, i32), (&Arrival, i64)> = BTreeMap::new();
        for piece in batch.parts.iter().flat_map(|part| &part.pieces) {
            let arrival = &*piece.arrival;
            let place = (arrival.at_ns, arrival.sequence, arrival.partition);
            let (_, rows) = found.entry(place).or_insert((arrival, 0));
            *rows = rows.saturating_add(piece.rows);
        }
        let mut flows = Vec::new();
        for (arrival, rows) in found.into_values().take(ARRIVALS_MAX) {
            let flow = self.next_flow();
            let mut notes = vec![number(Key::Batch, batch.dispatch.batch), number(Key::Rows, rows)];
            notes.extend(arrival.sequence.map(|sequence| number(Key::Sequence, sequence)));
            if let Some((first, next)) = arrival.offsets {
                notes.push(number(Key::FirstOffset, first));
                notes.push(number(Key::NextOffset, next));
            }
            let event = Event { flows: vec![flow], notes, ..Event::default() };
            self.instant(Of::Arrivals(arrival.partition), arrival.at_ns, Name::Arrived, event)?;
            flows.push(flow);
        }
        Ok(flows)
    }

    /// Draws a slice of a task on its lane. Tasks and batches of a lane may overlap, so they have separate tracks.
    pub(crate) fn task_slice(&mut self, slice: &Slice) -> io::Result<()> {
        let (run, end_ns) = (&slice.run, slice.done.map_or(self.last_ns(), |(done, _)| done.at_ns));
        let mut notes = vec![
            number(Key::Task, run.task),
            number(Key::Slice, run.slice),
            number(Key::Sequence, slice.at.sequence),
            number(Key::FirstUnit, run.from),
            number(Key::NextUnit, run.to),
            text(Key::Tenant, &run.tenant),
            text(Key::Reason, &words::of(&run.reason)),
            number(Key::Predicted, run.predicted_finish_ns.saturating_sub(slice.at.at_ns)),
        ];
        notes.extend(slice.done.map(|(_, service_ns)| number(Key::Service, service_ns)));
        let event = Event { flows: vec![self.flow_of_task(run.task)], notes, ..Event::default() };
        let of = Of::LaneTasks(run.lane);
        self.slice(of, (slice.at.at_ns, end_ns), Overlap::Never, run.class.into(), event)
    }

    pub(crate) fn round(&mut self, round: &Round) -> io::Result<()> {
        let arrived = &round.arrived;
        let end = round.end.map(|(_, end)| end);
        let end_ns = round.end.map_or(self.last_ns(), |(at, _)| at.at_ns);
        let mut notes = vec![
            number(Key::Task, arrived.task),
            text(Key::RequestId, &arrived.request_id),
            text(Key::Tenant, &arrived.tenant),
            text(Key::Class, &words::of(&arrived.class)),
            number(Key::Partition, arrived.partition),
            number(Key::Offset, arrived.offset),
            number(Key::FirstUnit, arrived.first_unit),
            number(Key::Units, arrived.units),
            number(Key::Slices, round.slices),
            number(Key::Sequence, round.at.sequence),
        ];
        let wait_ns = round.first_slice.map(|first| first.at_ns.saturating_sub(round.at.at_ns));
        notes.extend(wait_ns.map(|wait_ns| number(Key::FirstSliceWait, wait_ns)));
        notes.extend(self.before_window(round.at.at_ns));
        let Some((row, span)) = self.room(Of::Requests, round.at.at_ns, end_ns, Overlap::Maybe)? else {
            return Ok(());
        };
        self.out.begin(row, span.begin_ns, end.into(), Event { notes, ..Event::default() })?;
        if end.is_some() && round.slices > 0 {
            let ending_flows = vec![self.flow_of_task(arrived.task)];
            let event = Event { ending_flows, ..Event::default() };
            self.out.instant(row, span.end_ns, Name::Answered, event)?;
        }
        self.out.end(row, span.end_ns)
    }
}

/// Returns the annotations of a batch that do not depend on its outcome.
fn notes_of(batch: &Batch) -> Notes {
    let (dispatch, dispatched_ns) = (&batch.dispatch, batch.at.at_ns);
    let trigger = match batch.trigger {
        Trigger::Arrived(_) => "rows arrived",
        Trigger::Completed(_) => "a batch came back",
        Trigger::Woke => "a time came",
        Trigger::Placing => "groups were placed",
        Trigger::Other => "something else",
    };
    vec![
        number(Key::Batch, dispatch.batch),
        number(Key::Sequence, batch.at.sequence),
        text(Key::Trigger, trigger),
        number(Key::Rows, dispatch.rows),
        number(Key::Bytes, dispatch.bytes),
        number(Key::Groups, batch.parts.len() as i64),
        number(Key::QueueWait, dispatched_ns.saturating_sub(dispatch.oldest_arrival_ns)),
        number(Key::Predicted, dispatch.predicted_finish_ns.saturating_sub(dispatched_ns)),
    ]
}
