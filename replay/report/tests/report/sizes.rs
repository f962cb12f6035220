//! A page stays small for any recording, even with as many lanes, groups, moves, pauses, events and chains as possible.

use std::sync::Arc;

use warptape_replay::chain::Seen;
use warptape_replay::history::{
    BreakerChange, Item, LaneChange, Life, Moment, Paused, Slice, Stay, StayEnd, Window,
};
use warptape_report::{Gathered, Gathering, MOVES_KEPT, PAGE_BYTES_MAX, SLOWEST_ON_PAGE_MAX, Verdict};
use warptape_schemas::journal::{
    Breaker, BreakerReason, BreakerState, Imbalance, LaneSpec, Place, PolicyRef, ReleaseCause, RunSlice,
    SliceReason, Started, TaskClass,
};

use crate::recording::{Plan, record, scheduler_config};
use crate::{gathered, page_of, parsed, text_of};

const SLOTS: i64 = 240;
const LANES: i32 = 64;
const PARTITIONS: i32 = 96;
const SLOT_NS: i64 = 1_000_000;

/// Returns a recording with much activity. Many groups of each partition move in every slot, and lanes work for a part
/// of each slot. There are pauses and events all the time.
fn busiest() -> Gathered {
    let recording = record(Plan { outcomes: true, ..Plan::small(91) });
    let mut slowest = gathered(&recording.log, Window::default()).slowest;
    slowest.signals = slowest.signals.iter().cycle().take(SLOWEST_ON_PAGE_MAX).cloned().collect();
    let mut gathering = Gathering::new(Window::default());
    let mut sequence = 0;
    for journal in 0..2 {
        let lanes =
            (0..LANES).map(|lane| LaneSpec::new(lane, "cuda:0#2 <&> \"a long name\"".repeat(9), 1)).collect();
        let started = Started {
            node: "<&>".repeat(200),
            software: format!("{journal}{}", "<&>".repeat(200)),
            stage_config: String::new(),
            scheduler: scheduler_config(),
            lanes,
            autoscale: None,
            shadow: None,
            rules: 1,
        };
        let first = Moment { sequence, at_ns: 0 };
        let life = Life { journal, began: Some(first), since: first, started };
        gathering.see(Seen::Item(&Item::Life(Arc::new(life))));
        for slot in 0..SLOTS {
            let at = |part: i64| Moment { sequence, at_ns: slot * SLOT_NS + part * SLOT_NS / 10 };
            for lane in 0..LANES {
                let done = Some((at(9), SLOT_NS * i64::from((lane * 7 + slot as i32) % 9) / 10));
                let slice = Slice { at: at(0), run: run(lane), done };
                gathering.see(Seen::Item(&Item::Slice(slice)));
            }
            for partition in 0..PARTITIONS {
                gathering.see(Seen::Item(&Item::Stay(stay(
                    partition,
                    (partition + slot as i32) % LANES,
                    at(0),
                    at(9),
                ))));
                let pause = Paused {
                    from: at(1),
                    pause: None,
                    partition,
                    until: Some(at(2 + (i64::from(partition) + slot) % 7)),
                };
                gathering.see(Seen::Item(&Item::Pause(pause)));
            }
            let lost = LaneChange { at: at(3), lane: 0, lost: Some("<&>".repeat(1_000)) };
            gathering.see(Seen::Item(&Item::Lane(lost)));
            let breaker = Breaker {
                lane: 1,
                state: BreakerState::Open,
                reason: BreakerReason::Slow,
                measured: 1,
                limit: 2,
            };
            gathering.see(Seen::Item(&Item::Breaker(BreakerChange { at: at(4), breaker })));
            for signal in 0..5 {
                let latency_ns = Some(1_000 + slot * signal * 1_234_567);
                gathering.see(Seen::Signal { partition: 0, committed_ns: at(5).at_ns, latency_ns });
            }
            sequence += 1;
        }
    }
    gathering.finish(slowest)
}

fn run(lane: i32) -> RunSlice {
    RunSlice {
        slice: 0,
        task: 0,
        lane,
        from: 0,
        to: 1,
        class: TaskClass::Batch,
        tenant: String::new(),
        tasks_waiting: 0,
        tenant_service_ns: 0,
        service_fs_per_cost: 0,
        predicted_finish_ns: 0,
        reason: SliceReason::Order,
        upper_ns: 0,
        propensity_ppm: 1_000_000,
        stolen_from: None,
    }
}

fn stay(partition: i32, lane: i32, placed: Moment, left: Moment) -> Stay {
    let imbalance = Imbalance {
        to: lane + 1,
        group_load_ns: 1,
        from_load_ns: 2,
        to_load_ns: 3,
        gain_ns: 1_234_567,
        cost_ns: 7_654,
        windows: 3,
    };
    let place = Place {
        partition,
        group: 0,
        lane,
        epoch: 0,
        policy: PolicyRef { id: "balanced".to_owned(), version: 1 },
        candidates: Vec::new(),
        excluded: Vec::new(),
        random_stream: 0,
        random_counter: 0,
        propensity_ppm: 1_000_000,
        route: None,
    };
    Stay {
        placed: Some(placed),
        place: Some(Arc::new(place)),
        partition,
        group: 0,
        lane,
        epoch: 0,
        release: Some((placed, ReleaseCause::Balance)),
        imbalance: Some(imbalance),
        left: Some(left),
        end: StayEnd::Released,
    }
}

#[test]
fn the_largest_page_is_small() {
    let found = busiest();
    assert_eq!(found.slots.count() as i64, SLOTS);
    assert_eq!(found.moves.count() as i64, 2 * i64::from(PARTITIONS) * (SLOTS - 1));
    assert_eq!(found.moves.last().count(), MOVES_KEPT);
    let last = found.moves.last().next_back().unwrap();
    assert_eq!((last.from + 1) % LANES, last.to);
    assert_eq!((last.worth, last.placed_ns - last.since_ns), (Some((1_234_567, 7_654)), SLOT_NS));
    let chains = vec!["<&>\"'\u{1b} a line of a chain that is long\n".repeat(10_000); SLOWEST_ON_PAGE_MAX];
    let page = page_of(&found, &Verdict::Failed("<\n".repeat(100_000)), &chains, &"<&>".repeat(500));
    println!("{} bytes", page.len());
    assert!(page.len() < PAGE_BYTES_MAX && page.len() > PAGE_BYTES_MAX / 4, "{} bytes", page.len());
    let text = text_of(parsed(&page).root());
    assert!(
        text.contains("88 further lanes worked less") && text.contains("72 further partitions were paused"),
        "{text}"
    );
}
