//! The lanes over time: their utilisation, their groups, and the pauses of partitions.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::axis::nice_top;
use super::charts::{self, note, nothing, path};
use super::numbers;
use super::strips::{self, CELLS_NAMED_MAX, Cell, Strip};
use super::tables;
use super::timeline::{HEIGHT, Timeline};
use crate::drawing::{Line, band};
use crate::gathered::{GROUPS_SHOWN_MAX, Gathered, GroupKey, LaneKey, Slot};

/// Greatest number of lanes with a row each; those that worked most are shown.
const LANES_SHOWN_MAX: usize = 40;
/// Greatest number of lanes with an area each in the map of placement.
const AREAS_MAX: usize = 16;
/// Greatest number of partitions with a row each; those that were paused longest are shown.
const PARTITIONS_SHOWN_MAX: usize = 24;
/// Number of parts into which the time is divided. For each busiest group, the page names the part with its greatest
/// share of rows.
const PARTS: usize = 10;
/// Number of busiest groups shown.
const BUSIEST: usize = 5;
/// Number of different colours of lanes.
const COLOURS: usize = 8;

/// The lanes of a log, in the order of display.
pub(super) struct Lanes<'a> {
    gathered: &'a Gathered,
    order: Vec<LaneKey>,
    has_processes: bool,
}

impl<'a> Lanes<'a> {
    pub(super) fn new(gathered: &'a Gathered) -> Self {
        let mut keys: std::collections::BTreeSet<LaneKey> = gathered.lanes.keys().copied().collect();
        keys.extend(gathered.slots.iter().flatten().flat_map(|slot| slot.lanes.keys().copied()));
        let order: Vec<_> = keys.into_iter().collect();
        let has_processes = order.iter().any(|(journal, _)| *journal != order[0].0);
        Self { gathered, order, has_processes }
    }

    /// Returns the name of a lane: its index, preceded by its process's index if there are several processes.
    fn short_name(&self, (journal, lane): LaneKey) -> String {
        if self.has_processes { format!("{journal}.{lane}") } else { lane.to_string() }
    }

    fn name(&self, key: LaneKey) -> String {
        let device = self.gathered.lanes.get(&key).map_or("", |lane| lane.device.as_str());
        format!("{} · {device}", self.short_name(key))
    }

    fn colour(&self, key: LaneKey) -> usize {
        self.order.binary_search(&key).unwrap_or(0) % COLOURS
    }

    /// Returns the lanes with the greatest values, and the number of other lanes.
    fn most(&self, max: usize, of: impl Fn(LaneKey) -> u128) -> (Vec<LaneKey>, usize) {
        let mut keys = self.order.clone();
        keys.sort_by_key(|key| std::cmp::Reverse(of(*key)));
        let others = keys.len().saturating_sub(max);
        keys.truncate(max);
        keys.sort_unstable();
        (keys, others)
    }
}

/// Returns a note about those that are not shown.
fn further(others: usize, words: &str) -> Markup {
    html! { @if others > 0 { (note(&format!("{others} further {words}."))) } }
}

/// Shows the utilisation of each lane.
pub(super) fn utilisation(timeline: &Timeline<'_>, lanes: &Lanes<'_>) -> Markup {
    let busy = |key: LaneKey| lanes.gathered.lanes.get(&key).map_or(0, |lane| lane.busy_ns);
    let whole: f64 = timeline.seconds.iter().sum();
    let total: u64 = lanes.order.iter().fold(0, |sum: u64, key| sum.saturating_add(busy(*key)));
    let facts =
        format!("mean {}", numbers::percent(total as f64 / 1e9, whole * lanes.order.len().max(1) as f64));
    let (keys, others) = lanes.most(LANES_SHOWN_MAX, |key| busy(key).into());
    let of = |slot: &Slot, key: LaneKey| slot.lanes.get(&key).copied().unwrap_or_default();
    let strip = |key: &LaneKey| {
        let parts = timeline.rates(|slot| of(slot, *key).busy_ns as f64 / 1e9);
        let cell = |(part, slot): (f64, &Option<&Slot>)| {
            let a_row = slot.and_then(|slot| of(slot, *key).batches.ns_per_row());
            let a_row = a_row.map_or_else(String::new, |ns| format!(", {} per row", numbers::duration(ns)));
            Cell::shaded(part, format!("{}{a_row}", numbers::percent(part, 1.0)))
        };
        Strip {
            name: lanes.name(*key),
            number: numbers::percent(busy(*key) as f64 / 1e9, whole),
            cells: parts.into_iter().zip(&timeline.slots).map(cell).collect(),
        }
    };
    let row = |key: &LaneKey| {
        let lane = lanes.gathered.lanes.get(key).cloned().unwrap_or_default();
        let a_row = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), numbers::duration);
        let slots = timeline.slots.iter().flatten();
        [
            lanes.name(*key),
            lane.class,
            numbers::count(lane.batches),
            numbers::count(lane.rows),
            numbers::percent(lane.busy_ns as f64 / 1e9, whole),
            a_row(lane.done.ns_per_row()),
            a_row(slots.filter_map(|slot| of(slot, *key).batches.ns_per_row()).max()),
        ]
    };
    let header = ["lane", "class", "batches", "rows", "at work", "time per row", "maximum per slot"];
    let drawing = if total == 0 {
        nothing("No lane worked in this window.")
    } else {
        let strips: Vec<Strip> = keys.iter().map(strip).collect();
        html! {
            (strips::shades("heat", "0 %", "100 %"))
            (strips::rows(timeline, "heat", &strips, CELLS_NAMED_MAX / 2))
            (further(others, "lanes worked less"))
            (tables::table(&header, &keys.iter().map(row).collect::<Vec<_>>()))
        }
    };
    charts::figure("Utilisation of lanes", "share of time spent on batches and slices", &facts, drawing)
}

/// Shows the number of groups of each lane, and the lane of each group.
pub(super) fn placement(timeline: &Timeline<'_>, lanes: &Lanes<'_>) -> Markup {
    let held = |key: LaneKey| {
        let of = |slot: &Slot| slot.lanes.get(&key).map_or(0, |lane| lane.group_ns);
        timeline.slots.iter().flatten().map(|slot| of(slot)).fold(0, u128::saturating_add)
    };
    let (keys, others) = lanes.most(AREAS_MAX, held);
    let keys: Vec<_> = keys.into_iter().filter(|key| held(*key) > 0).collect();
    let facts = format!("{} groups", numbers::count(lanes.gathered.groups.len() as u64));
    let figure =
        |drawing| charts::figure("Groups by lane", "placement over time, lanes stacked", &facts, drawing);
    if keys.is_empty() {
        return figure(nothing("No group was on a lane in this window."));
    }
    let groups_on = |key: LaneKey| {
        timeline.rates(|slot| slot.lanes.get(&key).map_or(0.0, |lane| lane.group_ns as f64 / 1e9))
    };
    let all = timeline.rates(|slot| slot.lanes.values().map(|lane| lane.group_ns as f64 / 1e9).sum());
    let top = nice_top(all.iter().copied().fold(0.0, f64::max));
    let place =
        |values: &[f64]| values.iter().map(|value| Some(HEIGHT * (1.0 - value / top))).collect::<Vec<_>>();
    let mut below = vec![0.0; timeline.axis.slots];
    let mut bands = Vec::new();
    for key in &keys {
        let upper: Vec<f64> = below.iter().zip(groups_on(*key)).map(|(below, more)| below + more).collect();
        bands.push((format!("stack l{}", lanes.colour(*key)), band(&place(&below), &place(&upper))));
        below = upper;
    }
    if others > 0 {
        bands.push(("stack rest".to_owned(), band(&place(&below), &place(&all))));
    }
    let shares: Vec<_> = keys.iter().map(|key| (lanes.short_name(*key), groups_on(*key))).collect();
    let said = |index: usize| {
        let words: Vec<_> = shares
            .iter()
            .filter(|(_, groups)| groups[index] >= 0.05)
            .map(|(name, groups)| {
                format!("{} on lane {name}", numbers::short((groups[index] * 10.0).round() / 10.0))
            })
            .collect();
        (!words.is_empty()).then(|| words.join(", "))
    };
    let drawn = html! { @for (class, band) in &bands { (path(class, band)) } };
    let svg = timeline.svg("chart", "groups on each lane over time", &drawn, said);
    let line = |at: f64, value: f64| Line { at, label: numbers::short(value) };
    html! {
        (figure(html! {
            (keys_of_lanes(lanes, &keys))
            (charts::row("row chart", &[line(0.0, top), line(1.0, 0.0)], &svg))
            (timeline.times())
            (further(others, "lanes are combined, in grey"))
        }))
        (groups(timeline, lanes))
    }
}

fn keys_of_lanes(lanes: &Lanes<'_>, keys: &[LaneKey]) -> Markup {
    html! {
        div.keys {
            @for key in keys {
                span { i class={ "l" (lanes.colour(*key)) } {} "lane " (lanes.name(*key)) }
            }
        }
    }
}

/// Returns a row for each group. In each slot it has the colour of the lane on which the group was longest.
fn groups(timeline: &Timeline<'_>, lanes: &Lanes<'_>) -> Markup {
    let gathered = lanes.gathered;
    let count = gathered.groups.len();
    if count > GROUPS_SHOWN_MAX {
        return note(&format!(
            "The placement of single groups is shown only for up to {GROUPS_SHOWN_MAX} groups; this run has {}.",
            numbers::count(count as u64)
        ));
    }
    let strips: Vec<Strip> =
        gathered.groups.iter().map(|(group, rows)| group_strip(timeline, lanes, *group, *rows)).collect();
    html! {
        details.groups open=[(count <= 32).then_some("open")] {
            summary {
                "Each of the " (count) " groups: its lane over time, by colour and number, and its share of all rows"
            }
            (strips::rows(timeline, "group", &strips, CELLS_NAMED_MAX / 2))
        }
        (busiest(timeline, lanes))
    }
}

/// Returns the busiest groups: their rows in total, and in the part of the time in which each had its greatest share.
fn busiest(timeline: &Timeline<'_>, lanes: &Lanes<'_>) -> Markup {
    let gathered = lanes.gathered;
    if timeline.slots.len() < PARTS {
        return html! {};
    }
    // The last part includes the slots that remain after the division.
    let width = timeline.slots.len() / PARTS;
    let part = |number: usize| match number + 1 {
        PARTS => &timeline.slots[number * width..],
        next => &timeline.slots[number * width..next * width],
    };
    let parts: Vec<&[Option<&Slot>]> = (0..PARTS).map(part).collect();
    let rows_of = |slots: &[Option<&Slot>], group: Option<&GroupKey>| -> u64 {
        let of = |slot: &&Slot| match group {
            Some(group) => slot.group_rows.get(group).copied().unwrap_or(0),
            None => slot.rows,
        };
        slots.iter().flatten().map(of).fold(0, u64::saturating_add)
    };
    let all_rows = rows_of(&timeline.slots, None);
    let peak_of = |group: &GroupKey| {
        let share = |part: &usize| {
            let (rows, all) = (rows_of(parts[*part], Some(group)), rows_of(parts[*part], None));
            // A part with few rows is not significant.
            if all.saturating_mul(2 * PARTS as u64) < all_rows {
                0.0
            } else {
                rows as f64 / all.max(1) as f64
            }
        };
        (0..parts.len()).map(|part| (share(&part), part)).max_by(|one, other| one.0.total_cmp(&other.0))
    };
    let mut found: Vec<_> = gathered
        .groups
        .iter()
        .filter_map(|(group, rows)| peak_of(group).map(|(share, part)| (*group, *rows, share, part)))
        .filter(|(_, _, share, _)| *share > 0.0)
        .collect();
    found.sort_by(|one, other| other.2.total_cmp(&one.2));
    found.truncate(BUSIEST);
    if found.is_empty() {
        return html! {};
    }
    let lane_of = |group: GroupKey, part: usize| {
        let mut on: BTreeMap<LaneKey, u64> = BTreeMap::new();
        for (lane, ns) in parts[part].iter().flatten().filter_map(|slot| slot.groups.get(&group)).flatten() {
            let sum = on.entry(*lane).or_default();
            *sum = sum.saturating_add(*ns);
        }
        on.into_iter().max_by_key(|(_, ns)| *ns).map(|(lane, _)| lane)
    };
    let row = |(group, rows, share, part): (GroupKey, u64, f64, usize)| {
        let from_ns = gathered.slots.begin_ns(part * width);
        [
            format!("{}/{}", group.0, group.1),
            numbers::count(rows),
            numbers::percent(rows as f64, gathered.totals.rows as f64),
            numbers::percent(share, 1.0),
            numbers::utc(from_ns),
            lane_of(group, part).map_or_else(|| "–".to_owned(), |lane| lanes.name(lane)),
        ]
    };
    let header = [
        "group",
        "rows",
        "share of all",
        "greatest share",
        "in the tenth of the time from (UTC)",
        "then on lane",
    ];
    html! {
        h3 { "Groups with the largest share of rows in a tenth of the time" }
        (tables::table(&header, &found.into_iter().map(row).collect::<Vec<_>>()))
        (note("All ticks of a symbol are rows of one group, and a group is on one lane at a time. To see the symbols of a batch, use replay why batch:N."))
    }
}

fn group_strip(timeline: &Timeline<'_>, lanes: &Lanes<'_>, group: GroupKey, rows: u64) -> Strip {
    let longest = |on: &BTreeMap<LaneKey, u64>| on.iter().max_by_key(|(_, ns)| **ns).map(|(key, _)| *key);
    let homes: Vec<Option<LaneKey>> = timeline
        .slots
        .iter()
        .map(|slot| slot.and_then(|slot| slot.groups.get(&group)).and_then(longest))
        .collect();
    let mut way: Vec<LaneKey> = homes.iter().flatten().copied().collect();
    way.dedup();
    let names: Vec<_> = way.iter().take(4).map(|key| lanes.short_name(*key)).collect();
    let more = if way.len() > names.len() { "→…" } else { "" };
    let all: u64 = lanes.gathered.groups.values().fold(0, |sum, rows| sum.saturating_add(*rows));
    let cell = |key: LaneKey| Cell {
        class: format!("l{}", lanes.colour(key)),
        words: format!("lane {}", lanes.name(key)),
    };
    Strip {
        name: format!("{}/{} · {}{more}", group.0, group.1, names.join("→")),
        number: numbers::percent(rows as f64, all as f64),
        cells: homes.into_iter().map(|home| home.map(cell)).collect(),
    }
}

/// Shows the pauses of partitions.
pub(super) fn pauses(timeline: &Timeline<'_>, gathered: &Gathered) -> Markup {
    let facts = match gathered.totals.pauses {
        0 => "none".to_owned(),
        pauses => format!("{} pauses", numbers::count(pauses)),
    };
    let mut paused: Vec<(i32, u64)> =
        gathered.paused.iter().map(|(partition, ns)| (*partition, *ns)).collect();
    paused.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let others = paused.len().saturating_sub(PARTITIONS_SHOWN_MAX);
    paused.truncate(PARTITIONS_SHOWN_MAX);
    paused.sort_unstable();
    let strip = |(partition, ns): (i32, u64)| Strip {
        name: format!("partition {partition}"),
        number: numbers::duration(ns),
        cells: timeline
            .rates(|slot| slot.paused.get(&partition).map_or(0.0, |ns| *ns as f64 / 1e9))
            .into_iter()
            .map(|part| Cell::shaded(part, format!("paused {}", numbers::percent(part, 1.0))))
            .collect(),
    };
    let strips: Vec<Strip> = paused.into_iter().map(strip).collect();
    let drawing = if strips.is_empty() {
        nothing("No partition was paused: waiting rows never exceeded the high-water mark.")
    } else {
        html! {
            (strips::shades("pause", "0 %", "100 %"))
            (strips::rows(timeline, "pause", &strips, CELLS_NAMED_MAX / 4))
            (further(others, "partitions were paused for less time"))
        }
    };
    charts::figure("Pauses of partitions", "time in which a partition was not read", &facts, drawing)
}
