//! Reads a timeline back, and checks the requirements of Perfetto: described tracks, nested slices, flows with two
//! ends.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use warptape_timeline::proto::{EventType, Trace, TrackDescriptor, TrackEvent};

/// A timeline that was read back.
#[derive(Debug, Default)]
pub struct Drawn {
    /// Slices, in the order in which they begin in the file.
    pub slices: Vec<DrawnSlice>,
    /// Number of instants by name.
    pub instants: BTreeMap<String, u64>,
    /// Names of tracks that have content.
    pub tracks: BTreeSet<String>,
    /// Earliest time.
    pub first_ns: u64,
    /// Values of counters by track, in the order of the file.
    pub counters: BTreeMap<u64, Vec<(u64, i64)>>,
    /// By flow: the number of its beginnings and steps, and the number of its ends.
    pub flows: BTreeMap<u64, (u64, u64)>,
    /// Names of tracks; a name begins with the names of the track's parents.
    pub names: BTreeMap<u64, String>,
}

/// A slice that was read back.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawnSlice {
    /// The slice's track.
    pub track: u64,
    /// The slice's name.
    pub name: String,
    /// Time of its beginning.
    pub begin_ns: u64,
    /// Time of its end.
    pub end_ns: u64,
    /// The slice's annotations with numbers.
    pub numbers: BTreeMap<String, i64>,
    /// The slice's annotations with texts.
    pub texts: BTreeMap<String, String>,
    /// Flows through the slice.
    pub flows: Vec<u64>,
}

/// The beginning or the end of a slice in the file.
struct Edge {
    at_ns: u64,
    is_begin: bool,
}

/// Reads a timeline.
///
/// # Errors
/// If Perfetto would not show the timeline as intended; the error describes why.
pub fn read_drawn(bytes: &[u8]) -> Result<Drawn, String> {
    let trace = Trace::decode(bytes).map_err(|error| error.to_string())?;
    let mut tracks: BTreeMap<u64, TrackDescriptor> = BTreeMap::new();
    let (mut names, mut keys) = (BTreeMap::new(), BTreeMap::new());
    let mut drawn = Drawn { first_ns: u64::MAX, ..Drawn::default() };
    let mut edges: BTreeMap<u64, Vec<Edge>> = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for packet in trace.packet {
        if let Some(interned) = packet.interned_data {
            names.extend(interned.event_names.into_iter().map(|one| (one.iid, one.name.unwrap_or_default())));
            let of_keys = interned.debug_annotation_names.into_iter();
            keys.extend(of_keys.map(|one| (one.iid, one.name.unwrap_or_default())));
        }
        if let Some(track) = packet.track_descriptor {
            let uuid = track.uuid.ok_or("a track without a number")?;
            let parent = track.parent_uuid.map(|parent| drawn.names.get(&parent).cloned());
            let parent = match parent {
                None => String::new(),
                Some(parent) => parent.ok_or_else(|| format!("{track:?} is below no track"))? + "/",
            };
            let process = track.process.as_ref().and_then(|process| process.process_name.clone());
            drawn.names.insert(uuid, parent + &track.name.clone().or(process).unwrap_or_default());
            if tracks.insert(uuid, track).is_some() {
                return Err(format!("track {uuid} is described twice"));
            }
        }
        let Some(event) = packet.track_event else { continue };
        let at_ns = packet.timestamp.ok_or("an event without a time")?;
        let uuid = event.track_uuid.ok_or("an event without a track")?;
        let track = tracks.get(&uuid).ok_or_else(|| format!("track {uuid} is not described"))?;
        if track.counter.is_some() != (event.r#type() == EventType::Counter) {
            return Err(format!("{event:?} is on {track:?}"));
        }
        drawn.first_ns = drawn.first_ns.min(at_ns);
        drawn.tracks.insert(track.name.clone().unwrap_or_default());
        drawn.count_flows(&event);
        let name = || names.get(&event.name_iid).cloned().ok_or_else(|| format!("{event:?} has no name"));
        match event.r#type() {
            EventType::SliceBegin => {
                let slice = slice_of(&event, uuid, at_ns, name()?, &keys)?;
                open.entry(uuid).or_default().push(drawn.slices.len());
                drawn.slices.push(slice);
                edges.entry(uuid).or_default().push(Edge { at_ns, is_begin: true });
            }
            EventType::SliceEnd => {
                let begun = open.entry(uuid).or_default().pop();
                drawn.slices[begun.ok_or("a slice ends that did not begin")?].end_ns = at_ns;
                edges.entry(uuid).or_default().push(Edge { at_ns, is_begin: false });
            }
            EventType::Instant => *drawn.instants.entry(name()?).or_default() += 1,
            EventType::Counter => {
                let value = event.counter_value.filter(|value| *value >= 0);
                let value = value.ok_or_else(|| format!("{event:?} counts nothing"))?;
                drawn.counters.entry(uuid).or_default().push((at_ns, value));
            }
            EventType::Unspecified => return Err(format!("{event:?} is nothing")),
        }
    }
    if let Some(begun) = open.values().flatten().next() {
        return Err(format!("{:?} does not end", drawn.slices[*begun]));
    }
    for (uuid, edges) in &edges {
        check_nesting(edges).map_err(|error| format!("{}: {error}", drawn.names[uuid]))?;
    }
    Ok(drawn)
}

impl Drawn {
    fn count_flows(&mut self, event: &TrackEvent) {
        for flow in &event.flow_ids {
            self.flows.entry(*flow).or_default().0 += 1;
        }
        for flow in &event.terminating_flow_ids {
            self.flows.entry(*flow).or_default().1 += 1;
        }
    }

    /// Returns the number of slices by name.
    pub fn slice_names(&self) -> BTreeMap<&str, u64> {
        let mut names = BTreeMap::new();
        self.slices.iter().for_each(|slice| *names.entry(&*slice.name).or_default() += 1);
        names
    }

    /// Checks the timeline of a whole journal: every flow that ends has begun, and flows to a commit come only from
    /// drawn batches.
    ///
    /// # Errors
    /// A description of the first violation.
    pub fn check_flows(&self) -> Result<(), String> {
        let of_batches = self.slices.iter().filter(|slice| slice.numbers.contains_key("queue_wait_ns"));
        let of_batches: BTreeSet<u64> = of_batches.flat_map(|slice| &slice.flows).copied().collect();
        for commit in self.slices.iter().filter(|slice| slice.name.starts_with("commit")) {
            if let Some(flow) = commit.flows.iter().find(|flow| !of_batches.contains(flow)) {
                return Err(format!("flow {flow:x} of {commit:?} comes from no batch"));
            }
        }
        match self.flows.iter().find(|(_, (begins, ends))| *begins == 0 && *ends > 0) {
            None => Ok(()),
            Some((flow, count)) => Err(format!("flow {flow:x} has {count:?} begins and ends")),
        }
    }
}

fn slice_of(
    event: &TrackEvent,
    track: u64,
    begin_ns: u64,
    name: String,
    keys: &BTreeMap<Option<u64>, String>,
) -> Result<DrawnSlice, String> {
    let (mut numbers, mut texts) = (BTreeMap::new(), BTreeMap::new());
    for note in &event.debug_annotations {
        let key = keys.get(&note.name_iid).ok_or_else(|| format!("{note:?} has no name"))?;
        numbers.extend(note.int_value.map(|value| (key.clone(), value)));
        texts.extend(note.string_value.clone().map(|value| (key.clone(), value)));
    }
    Ok(DrawnSlice { track, name, begin_ns, end_ns: begin_ns, numbers, texts, flows: event.flow_ids.clone() })
}

/// Checks nesting. Perfetto sorts events by time, and an end closes the slice that began last. The closed slice must be
/// the intended one, which began last in the file.
fn check_nesting(edges: &[Edge]) -> Result<(), String> {
    let mut by_time: Vec<usize> = (0..edges.len()).collect();
    by_time.sort_by_key(|index| edges[*index].at_ns);
    let pairs = |order: &[usize]| {
        let (mut open, mut pairs) = (Vec::new(), BTreeMap::new());
        for &index in order {
            match edges[index].is_begin {
                true => open.push(index),
                false => {
                    let begun: usize = open.pop().ok_or("a slice ends that did not begin by then")?;
                    pairs.insert(begun, index);
                }
            }
        }
        Ok::<_, String>(pairs)
    };
    let in_file: Vec<usize> = (0..edges.len()).collect();
    let (meant, shown) = (pairs(&in_file)?, pairs(&by_time)?);
    match meant.iter().find(|(begun, ended)| shown.get(begun) != Some(ended)) {
        None => Ok(()),
        Some((begun, ended)) => Err(format!(
            "the slice from {} to {} overlaps another one",
            edges[*begun].at_ns, edges[*ended].at_ns
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(edges: &[(u64, bool)], is_nested: bool) {
        let of = |(at_ns, is_begin): &(u64, bool)| Edge { at_ns: *at_ns, is_begin: *is_begin };
        let edges: Vec<Edge> = edges.iter().map(of).collect();
        assert_eq!(check_nesting(&edges).is_ok(), is_nested);
    }

    #[test]
    fn slices_that_overlap_are_found() {
        check(&[(0, true), (1, true), (2, false), (5, false), (5, true), (9, false)], true);
        check(&[(5, true), (9, false), (0, true), (5, false)], false);
        check(&[(0, true), (10, false), (5, true), (15, false)], false);
        check(&[(5, true), (9, false), (0, true), (4, false)], true);
        check(&[(0, true), (0, false), (0, true), (3, false)], true);
    }
}
