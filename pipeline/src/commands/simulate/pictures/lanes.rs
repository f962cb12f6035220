//! Pictures of lanes: the busy share of each lane class over time, and a timeline of all lanes by kind of task.

use warptape_report::drawing::{Axis, LEFT, Picture, RIGHT, TOP, WIDTH, colour};
use warptape_simulator::{Fleet, Outcome, Ran, Workload};

/// Number of time spans in a picture of utilisation.
const SPANS: usize = 60;
const HEIGHT: f64 = 260.0;
/// Greatest number of slices in a timeline; later slices are left out.
const SLICES_MAX: usize = 3_000;
const LANE_HEIGHT: f64 = 14.0;

/// Returns, for each class, its busy share in equal spans of the time.
fn shares(fleet: &Fleet, ran: &[Ran], until_ns: i64) -> Vec<Vec<f64>> {
    let span_ns = (until_ns as f64 / SPANS as f64).max(1.0);
    let classes: Vec<usize> = (0..fleet.lanes()).map(|lane| fleet.class_of(lane)).collect();
    let mut shares = vec![vec![0.0; SPANS]; fleet.classes.len()];
    for one in ran {
        let class = classes[one.lane];
        let of_span = 1.0 / span_ns / fleet.classes[class].lanes as f64;
        let (from, to) = (one.from_ns as f64, one.to_ns.min(until_ns) as f64);
        let last = ((to / span_ns) as usize).min(SPANS - 1);
        for (span, share) in
            shares[class].iter_mut().enumerate().take(last + 1).skip((from / span_ns) as usize)
        {
            let begin = span as f64 * span_ns;
            *share += (to.min(begin + span_ns) - from.max(begin)).max(0.0) * of_span;
        }
    }
    shares
}

/// Draws the utilisation of each class in a recorded run, until the arrival of the last task.
pub fn utilisation(name: &str, fleet: &Fleet, outcome: &Outcome) -> String {
    let until_ns = (outcome.arrivals_s * 1e9) as i64;
    let (times, percent) = (Axis::new(0.0, outcome.arrivals_s), Axis::new(0.0, 100.0));
    let keys = fleet.classes.iter().map(|class| class.name.as_str());
    let mut picture = Picture::new(&format!("Utilisation by class of lanes: {name}"), HEIGHT, keys);
    picture.axis_below(&times, "time, s");
    picture.axis_beside(&percent, "busy time of lanes, %");
    for (class, shares) in shares(fleet, &outcome.ran, until_ns).iter().enumerate() {
        let middle = |span: usize| LEFT + (span as f64 + 0.5) / SPANS as f64 * (WIDTH - LEFT - RIGHT);
        let line: Vec<_> = shares
            .iter()
            .enumerate()
            .map(|(span, share)| (middle(span), TOP + (1.0 - share.min(1.0)) * HEIGHT))
            .collect();
        picture.line("class", &line, colour(class));
    }
    picture.into_svg()
}

/// Draws the lanes of a recorded run over time: a bar for each slice, in the colour of its kind. Later slices of a long
/// run are left out.
pub fn timeline(name: &str, fleet: &Fleet, workload: &Workload, outcome: &Outcome) -> String {
    let ran = &outcome.ran[..outcome.ran.len().min(SLICES_MAX)];
    let until_ns = ran.iter().map(|one| one.to_ns).max().unwrap_or(0);
    let height = fleet.lanes() as f64 * LANE_HEIGHT;
    let keys = workload.kinds.iter().map(|kind| kind.name.as_str());
    let mut picture = Picture::new(&format!("Lanes over time: {name}"), height, keys);
    let times = Axis::new(0.0, until_ns as f64 / 1e9);
    picture.axis_below(&times, "time, s");
    for lane in 0..fleet.lanes() {
        let class = &fleet.classes[fleet.class_of(lane)].name;
        // A long name is cut where the lanes begin.
        let short: String = class.chars().take(8).collect();
        let y = TOP + lane as f64 * LANE_HEIGHT;
        picture.label((LEFT - 6.0, y + 11.0), "end", &format!("{short} {lane}"));
    }
    let width = WIDTH - LEFT - RIGHT;
    for one in ran {
        let [from, to] = [one.from_ns, one.to_ns].map(|ns| times.share(ns as f64 / 1e9) * width);
        let y = TOP + one.lane as f64 * LANE_HEIGHT + 1.0;
        let lost = if one.is_lost { ", lost with its lane" } else { "" };
        let [from_s, to_s] = [one.from_ns, one.to_ns].map(|ns| ns as f64 / 1e9);
        let kind = &workload.kinds[one.kind].name;
        let tip = format!("task {}, {kind}: {from_s:.4} to {to_s:.4} s{lost}", one.task);
        let class = if one.is_lost { "lost" } else { "slice" };
        picture.rect(class, (LEFT + from, y), (to - from, LANE_HEIGHT - 2.0), colour(one.kind), &tip);
    }
    picture.into_svg()
}

#[cfg(test)]
mod tests {
    use warptape_simulator::{Failure, Options, Outage, run};

    use super::*;

    fn recorded() -> (Fleet, Workload, Outcome) {
        let mut fleet = Fleet::volta_turing_radeon();
        fleet.failures =
            vec![Failure { lanes: 8..12, outage: Outage::At { at_s: 0.3, back_after_s: Some(0.5) } }];
        let workload = Workload::three_kinds(0.8, 80);
        let options = Options { slice_ns: 20_000_000, records: true, ..Options::default() };
        let outcome = run(&fleet, &workload, &options, 1);
        (fleet, workload, outcome)
    }

    #[test]
    fn bars_stand_where_and_when_lanes_worked() {
        let (fleet, workload, outcome) = recorded();
        let text = timeline("fair", &fleet, &workload, &outcome);
        let document = roxmltree::Document::parse(&text).unwrap();
        let bars =
            document.descendants().filter(|node| matches!(node.attribute("class"), Some("slice" | "lost")));
        let bars: Vec<_> = bars.collect();
        assert_eq!(bars.len(), outcome.ran.len());
        assert!(outcome.counts.redone > 0 && text.contains("lost with its lane"));
        let until_s = outcome.ran.iter().map(|one| one.to_ns).max().unwrap() as f64 / 1e9;
        for (bar, one) in bars.iter().zip(&outcome.ran) {
            let of = |name: &str| bar.attribute(name).unwrap().parse::<f64>().unwrap();
            assert_eq!(((of("y") - TOP) / LANE_HEIGHT) as usize, one.lane);
            assert_eq!(bar.attribute("fill"), Some(colour(one.kind)));
            let from_s = (of("x") - LEFT) / (WIDTH - LEFT - RIGHT) * until_s;
            assert!((from_s - one.from_ns as f64 / 1e9).abs() < until_s * 1e-4, "{from_s} {one:?}");
        }
    }

    #[test]
    fn utilisation_is_that_of_the_figures() {
        let (fleet, _, outcome) = recorded();
        let until_ns = (outcome.arrivals_s * 1e9) as i64;
        let shares = shares(&fleet, &outcome.ran, until_ns);
        for (class, shares) in shares.iter().enumerate() {
            let mean = shares.iter().sum::<f64>() / SPANS as f64;
            let share = outcome.busy_s[class] / fleet.classes[class].lanes as f64 / outcome.arrivals_s;
            assert!((mean - share).abs() < 1e-6, "class {class}: {mean} {share}");
            assert!(shares.iter().all(|share| *share < 1.0 + 1e-9), "{shares:?}");
        }
        let text = utilisation("fair", &fleet, &outcome);
        let document = roxmltree::Document::parse(&text).unwrap();
        let lines = document.descendants().filter(|node| node.attribute("class") == Some("class"));
        assert_eq!(lines.count(), 3);
        assert_eq!(text, utilisation("fair", &fleet, &outcome));
    }
}
