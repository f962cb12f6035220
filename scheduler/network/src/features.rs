//! Features of a task and of its candidate lanes, scale-free where possible. Times are relative to the least time of
//! any lane for the task.

use crate::layer::ONE;
use crate::log2::log2;
use crate::state::{KIND_BUCKETS, LaneState, PRIORITIES, TaskState, WINDOWS};

/// Number of features of a lane. In this order they are:
///
/// - the logarithm of its completion time (backlog and task), relative to the least completion time of all lanes
/// - the logarithm of its time for the task, relative to the least one
/// - the logarithm of its backlog plus the least time, relative to the least time
/// - the logarithm of its tasks plus one
/// - its completion time less the least one, divided by the least time for the task
/// - the logarithm of its time × weight, relative to the least one: the cost of the task to this lane compared with
///   other lanes
/// - its utilisation by window
/// - 1 if nothing waits for it
/// - 1 if its time for the task is unknown
pub const LANE_FEATURES: usize = 8 + WINDOWS;
/// Number of features of a task. In this order they are:
///
/// - one for each priority, and one for each bucket of kinds
/// - the logarithm of one plus the waiting tasks per lane
/// - a quarter of the logarithm of one plus the least time, in units of 1,024 ns
/// - the logarithm of the time to the deadline, relative to the least time
/// - 1 if it has a deadline
/// - the share of lanes without tasks
pub const TASK_FEATURES: usize = PRIORITIES + KIND_BUCKETS + 5;
/// Bound of features that are logarithms or ratios: ±8.
const FEATURE_MAX: i32 = 8 * ONE;
const PPM: i64 = 1_000_000;
/// Greatest time that features distinguish: 52 days.
const TIME_NS_MAX: i64 = 1 << 52;
const WEIGHT_MAX: i64 = 1 << 10;

/// Features of a task and its lanes; each is within ±8 × [`ONE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    /// Features of the task.
    pub task: [i16; TASK_FEATURES],
    /// Features of each lane, including excluded ones.
    pub lanes: Vec<[i16; LANE_FEATURES]>,
}

fn clamp(value: i32) -> i16 {
    value.clamp(-FEATURE_MAX, FEATURE_MAX) as i16
}

fn time(time_ns: i64) -> i64 {
    time_ns.clamp(0, TIME_NS_MAX)
}

fn share(part: i64, whole: i64) -> i16 {
    (part * i64::from(ONE) / whole.max(1)).clamp(0, i64::from(ONE)) as i16
}

pub(crate) fn utilisation(lane: &LaneState) -> [i16; WINDOWS] {
    lane.utilization_ppm.map(|ppm| share(ppm.clamp(0, PPM), PPM))
}

/// Least known time for the task of any lane that is not excluded; 1 if none is known.
fn least_ns(lanes: &[LaneState]) -> i64 {
    let known = lanes.iter().filter(|lane| !lane.is_excluded && lane.task_ns > 0);
    known.map(|lane| time(lane.task_ns)).min().unwrap_or(1)
}

impl Features {
    /// Features of a task and its lanes.
    pub fn new(task: &TaskState, lanes: &[LaneState]) -> Self {
        let least_ns = least_ns(lanes);
        let takes = |lane: &LaneState| if lane.task_ns > 0 { time(lane.task_ns) } else { least_ns };
        let completion = |lane: &LaneState| time(lane.backlog_ns) + takes(lane);
        let weighted = |lane: &LaneState| takes(lane) * lane.weight.clamp(1, WEIGHT_MAX);
        let eligible = || lanes.iter().filter(|lane| !lane.is_excluded);
        let first = eligible().map(completion).min().unwrap_or(1);
        let cheapest = eligible().map(weighted).min().unwrap_or(1);
        let (least_log, first_log, cheapest_log) = (log2(least_ns), log2(first), log2(cheapest));
        let of_lane = |lane: &LaneState| {
            let later = (completion(lane) - first).clamp(-TIME_NS_MAX, TIME_NS_MAX);
            let later = i128::from(later) * i128::from(ONE) / i128::from(least_ns);
            let [newest, older] = utilisation(lane);
            [
                clamp(log2(completion(lane)) - first_log),
                clamp(log2(takes(lane)) - least_log),
                clamp(log2(time(lane.backlog_ns) + least_ns) - least_log),
                clamp(log2(1 + lane.tasks.clamp(0, TIME_NS_MAX))),
                clamp(later.clamp(-i128::from(FEATURE_MAX), i128::from(FEATURE_MAX)) as i32),
                clamp(log2(weighted(lane)) - cheapest_log),
                newest,
                older,
                if lane.backlog_ns <= 0 && lane.tasks <= 0 { ONE as i16 } else { 0 },
                if lane.task_ns > 0 { 0 } else { ONE as i16 },
            ]
        };
        let (number, idle) =
            (eligible().count() as i64, eligible().filter(|lane| lane.tasks <= 0).count() as i64);
        let mut features = [0; TASK_FEATURES];
        one_hot(task, &mut features);
        let rest = &mut features[PRIORITIES + KIND_BUCKETS..];
        let by_lane = (task.waiting.clamp(0, TIME_NS_MAX) << 4) / number.max(1);
        rest[0] = clamp(log2(16 + by_lane) - log2(16));
        rest[1] = clamp(log2(1 + (least_ns >> 10)) / 4);
        rest[2] = task.laxity_ns.map_or(0, |left_ns| clamp(log2(time(left_ns).max(1)) - least_log));
        rest[3] = if task.laxity_ns.is_some() { ONE as i16 } else { 0 };
        rest[4] = share(idle, number);
        Self { task: features, lanes: lanes.iter().map(of_lane).collect() }
    }
}

/// Sets the features of a task's priority and kind, which come first.
pub(crate) fn one_hot(task: &TaskState, features: &mut [i16]) {
    features[task.priority.min(PRIORITIES - 1)] = ONE as i16;
    features[PRIORITIES + task.kind.min(KIND_BUCKETS - 1)] = ONE as i16;
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTREMES: [i64; 6] = [i64::MIN, -1, 0, 1, 1_000_000, i64::MAX];

    #[test]
    fn features_are_in_range_whatever_comes() {
        let check = |task: &TaskState, lanes: &[LaneState]| {
            let Features { task, lanes } = Features::new(task, lanes);
            let all = task.iter().chain(lanes.iter().flatten());
            all.for_each(|feature| assert!(i32::from(feature.abs()) <= FEATURE_MAX, "{feature}"));
        };
        for one in EXTREMES {
            for other in EXTREMES {
                let lane = |number: i64, is_excluded| LaneState {
                    tasks: one,
                    backlog_ns: other,
                    task_ns: one.saturating_add(number),
                    weight: other,
                    utilization_ppm: [one, other],
                    is_excluded,
                };
                let task = TaskState { priority: 9, kind: 99, waiting: other, laxity_ns: Some(one) };
                check(&task, &[lane(0, false), lane(5, false), lane(7, true)]);
                check(&task, &[lane(0, true)]);
                check(&task, &[]);
            }
        }
    }

    #[test]
    fn ratios_are_what_they_are_called() {
        let lane = |tasks, backlog_ns, task_ns, weight| LaneState {
            tasks,
            backlog_ns,
            task_ns,
            weight,
            utilization_ppm: [500_000, 250_000],
            is_excluded: false,
        };
        // The second lane completes first. The first is faster at the task, and has a backlog of four times its time
        // for it.
        let lanes = [lane(3, 4_000, 1_000, 10), lane(0, 0, 2_500, 2)];
        let task = TaskState { priority: 2, kind: 1, waiting: 3, laxity_ns: Some(8_000) };
        let found = Features::new(&task, &lanes);
        // 5,000 ÷ 2,500; 1; 5; 1 + 3; 2.5 later; 10,000 ÷ 5,000. Each is the difference of two logarithms that are
        // rounded down.
        assert_eq!(found.lanes[0], [1024, 0, 2378, 2048, 2560, 1024, 512, 256, 0, 0]);
        assert_eq!(found.lanes[1], [0, 1354, 0, 0, 0, 0, 512, 256, 1024, 0]);
        assert_eq!(found.task[..11], [0, 0, 1024, 0, 1024, 0, 0, 0, 0, 0, 0]);
        // 1 + 3 ÷ 2; 8,000 ÷ 1,000; one lane of two.
        assert_eq!(found.task[11..], [1353, 0, 3072, 1024, 512]);
    }
}
