//! Health of a pipeline: the state of each component, with the reason if it is unwell. A pure function of the view.

use std::collections::BTreeSet;

use serde::Serialize;
use warptape_hot::Connection;
use warptape_schemas::journal::BreakerState;

use super::sampler::Disk;
use super::view::{View, seconds_since};

/// Silence of the engine, in seconds, after which it counts as hanging.
const SILENT_MAX_S: f64 = 10.0;
/// Silence of the engine, in seconds, after which /livez fails. It is longer because a supervisor then kills the
/// process.
const LIVE_MAX_S: f64 = 60.0;
/// Longest time, in seconds, that a lane may take for a batch.
const STALL_MAX_S: f64 = 10.0;
/// Share of dead letters among the records of half a minute above which there are too many, and their least number.
const DEAD_SHARE_MAX: f64 = 0.01;
const DEAD_MIN: u64 = 10;
/// Least number of late or dead ticks in half a minute that is judged.
const REFUSED_MIN: u64 = 10;
/// Greatest number of characters of an external cause that are repeated.
const CAUSE_CHARS_MAX: usize = 400;

/// States of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// The component works.
    Ok,
    /// The component works, but needs attention.
    Degraded,
    /// The component does not work.
    Down,
}

impl State {
    /// Returns the state's name in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Down => "down",
        }
    }
}

/// State of a component.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Component {
    pub(super) name: &'static str,
    pub(super) state: State,
    /// The trouble, or the current activity.
    pub(super) reason: String,
}

/// Health of a pipeline.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Health {
    /// The worst state of the components.
    pub(super) status: State,
    /// True if the pipeline reads, commits and computes.
    pub(super) ready: bool,
    /// True if the process should keep running; one that is not live cannot recover by itself.
    pub(super) live: bool,
    pub(super) node: String,
    pub(super) group: String,
    pub(super) version: &'static str,
    pub(super) components: Vec<Component>,
}

impl Health {
    /// Returns the troubles in one line, for /readyz.
    pub(super) fn told(&self) -> String {
        let wrong = |state: State| {
            self.components
                .iter()
                .filter(move |component| component.state == state)
                .map(|component| &component.reason)
        };
        let told: Vec<&str> = wrong(State::Down).chain(wrong(State::Degraded)).map(String::as_str).collect();
        told.join("; ")
    }
}

/// Assesses the health of the pipeline in the view.
pub(super) fn assess(view: &View<'_>) -> Health {
    let components = vec![
        engine(view),
        log(view),
        commits(view),
        lanes(view),
        lag(view),
        dead_letters(view),
        ticks(view),
        symbols(view),
    ];
    // Hot state is derived from the log; its loss stops neither reading nor committing.
    let ready = components.iter().all(|component| component.state != State::Down);
    let others = hot_state(view).into_iter().chain(devices(view)).chain(partitioner(view));
    let components: Vec<_> = components.into_iter().chain(others).collect();
    let status = components.iter().map(|component| component.state).max().unwrap_or(State::Ok);
    Health {
        status,
        ready,
        live: is_live(view),
        node: view.watched.node.clone(),
        group: view.watched.group.clone(),
        version: env!("CARGO_PKG_VERSION"),
        components,
    }
}

pub(super) fn component(name: &'static str, state: State, reason: impl Into<String>) -> Component {
    Component { name, state, reason: reason.into() }
}

/// Returns the time since the engine's last report, in seconds; `None` before its first one.
fn silence_s(view: &View<'_>) -> Option<f64> {
    (view.engine.at_ns > 0).then(|| (view.now_ns - view.engine.at_ns).max(0) as f64 / 1e9)
}

fn is_live(view: &View<'_>) -> bool {
    let engine = &view.engine;
    !engine.has_ended && silence_s(view).is_none_or(|silent_s| silent_s < LIVE_MAX_S)
}

fn engine(view: &View<'_>) -> Component {
    let of = |state, reason: String| component("engine", state, reason);
    let engine = &view.engine;
    if engine.has_ended {
        return of(State::Down, "the engine has ended".to_owned());
    }
    let Some(silent_s) = silence_s(view) else {
        return of(State::Down, "the engine is starting".to_owned());
    };
    if silent_s >= SILENT_MAX_S {
        return of(State::Down, format!("the engine loop has not run for {silent_s:.0} s"));
    }
    if engine.status.is_stopping {
        return of(State::Down, "the pipeline is draining and then ends".to_owned());
    }
    let partitions = &engine.status.partitions;
    let restoring = partitions.iter().filter(|partition| !partition.is_restored).count();
    if restoring > 0 {
        return of(State::Down, format!("{restoring} of {} partitions are being restored", partitions.len()));
    }
    match partitions.len() {
        0 => of(State::Ok, "this process owns no partition and stands by".to_owned()),
        count => of(State::Ok, format!("partitions: {count}")),
    }
}

fn log(view: &View<'_>) -> Component {
    match &view.lost {
        Some(lost) => component("log", State::Down, format!("{lost}: {}", cut(&lost.cause))),
        None => match view.sampled.disk.filter(Disk::is_scarce) {
            Some(disk) => {
                let reason = format!(
                    "the disk of the log has {:.1} MiB left of {:.1} GiB; free some space: the pipeline ends when the disk is full",
                    disk.free as f64 / f64::from(1 << 20),
                    disk.size as f64 / f64::from(1 << 30)
                );
                component("log", State::Degraded, reason)
            }
            None => component("log", State::Ok, "it answers"),
        },
    }
}

fn commits(view: &View<'_>) -> Component {
    let engine = &view.engine;
    let since_s = |since_ns: i64| view.lasts_s(since_ns);
    if let Some(since_ns) = engine.status.aborting_since_ns {
        let cause = engine.committed.failing.as_deref().unwrap_or("the log gave no cause");
        let (seconds, cause) = (since_s(since_ns), cut(cause));
        return component(
            "commits",
            State::Down,
            format!("every commit has failed for {seconds:.0} s: {cause}"),
        );
    }
    let max_s = view.watched.commit_max.as_secs_f64();
    if let Some(seconds) = engine.status.committing_since_ns.map(since_s).filter(|seconds| *seconds > max_s) {
        return component(
            "commits",
            State::Down,
            format!("a transaction has been under way for {seconds:.0} s"),
        );
    }
    let reason = match engine.committed.last_ns {
        Some(last_ns) => format!("the last commit was {:.1} s ago", since_s(last_ns)),
        None => "nothing to commit so far".to_owned(),
    };
    component("commits", State::Ok, reason)
}

fn lanes(view: &View<'_>) -> Component {
    let lanes = &view.engine.status.lanes;
    let mut wrong = Vec::new();
    let mut working = 0;
    for (lane, stalled_s) in
        lanes.iter().zip(view.sampled.stalls.iter().copied().chain(std::iter::repeat(0.0)))
    {
        let device = view.watched.device_of(lane.lane());
        let name = format!("lane {} ({device})", lane.lane());
        if !lane.load.ready {
            wrong.push(format!("{name} is lost or not open yet"));
        } else if stalled_s >= STALL_MAX_S {
            wrong.push(format!("{name} has been working on one batch for {stalled_s:.0} s"));
        } else if lane.breaker == BreakerState::Open {
            wrong.push(format!("the breaker of {name} is open"));
        } else if lane.load.in_service {
            // A drained lane is healthy, but does not work.
            working += 1;
        }
    }
    let state = match (working, wrong.len()) {
        (0, _) if !lanes.is_empty() => State::Down,
        (_, 0) => State::Ok,
        _ => State::Degraded,
    };
    let reason = if wrong.is_empty() { format!("lanes: {working}") } else { wrong.join(", ") };
    component("lanes", state, reason)
}

fn lag(view: &View<'_>) -> Component {
    let seen = &view.sampled.lag;
    if let Some(seconds) = seen.unknown_s(view.now_ns) {
        let cause = seen.error.as_deref().unwrap_or("the log has not answered");
        let reason = format!("the lag of partitions has been unknown for {seconds:.0} s: {}", cut(cause));
        return component("lag", State::Degraded, reason);
    }
    if seen.partitions.is_empty() {
        return component("lag", State::Ok, "the lag of partitions is not measured yet");
    }
    let behind = seen.partitions.iter().max_by(|(_, a), (_, b)| a.seconds.total_cmp(&b.seconds));
    let Some((partition, lag)) = behind.filter(|(_, lag)| lag.records > 0) else {
        return component("lag", State::Ok, "all tick records in the log are committed");
    };
    let is_behind = lag.seconds > view.watched.lag_max.as_secs_f64();
    let state = if is_behind { State::Degraded } else { State::Ok };
    let mut reason = format!(
        "partition {partition} is {} records behind; the first has waited for {:.1} s",
        lag.records, lag.seconds
    );
    if lag.open_records > 0 {
        reason += &format!("; {} of them wait for a producer to end its transaction", lag.open_records);
    }
    component("lag", state, reason)
}

fn dead_letters(view: &View<'_>) -> Component {
    let recent = &view.sampled.recent;
    let (dead, records) = (recent.dead_letters, recent.records);
    // Each tick of a record may be a dead letter of its own.
    let read = records.max(recent.ticks + recent.dead_ticks);
    let is_flood = dead >= DEAD_MIN && dead as f64 >= DEAD_SHARE_MAX * read as f64;
    let state = if is_flood { State::Degraded } else { State::Ok };
    let mut reason =
        format!("{dead} dead letters among {records} records in the last {:.0} s", recent.seconds);
    if is_flood {
        reason += ": see `warptape tail dead-letter` for the reasons";
    }
    component("dead_letters", state, reason)
}

/// Assesses the share of ticks that are late or dead letters.
fn ticks(view: &View<'_>) -> Component {
    let recent = &view.sampled.recent;
    let (late, dead, ticks) = (recent.late, recent.dead_ticks, recent.ticks + recent.dead_ticks);
    let refused = late + dead;
    let percent_max = view.watched.refused_percent_max;
    let is_flood = refused >= REFUSED_MIN && refused * 100 > ticks * u64::from(percent_max);
    let state = if is_flood { State::Degraded } else { State::Ok };
    let mut reason = format!(
        "of {ticks} ticks in the last {:.0} s, {late} were late and {dead} became dead letters",
        recent.seconds
    );
    if is_flood {
        reason += &format!(
            ", more than endpoint.refused_percent_max allows ({percent_max} %): see `warptape tail late` and \
             `warptape tail dead-letter`; correct a wrong watermark with `warptape control watermark`"
        );
    }
    component("ticks", state, reason)
}

/// Assesses whether partitions have reached their limit on symbols.
fn symbols(view: &View<'_>) -> Component {
    let partitions = &view.engine.status.partitions;
    let symbols_max = view.watched.symbols_max;
    let full = partitions.iter().filter(|partition| partition.symbols >= symbols_max as usize);
    let full: Vec<String> = full.map(|partition| partition.partition.to_string()).collect();
    if full.is_empty() {
        let most = partitions.iter().map(|partition| partition.symbols).max().unwrap_or(0);
        return component(
            "symbols",
            State::Ok,
            format!("{most} of at most {symbols_max} symbols in the fullest partition"),
        );
    }
    let reason = format!(
        "partitions that have reached stages.symbols_max ({symbols_max} symbols): {}; ticks of further symbols become dead letters there",
        full.join(", ")
    );
    component("symbols", State::Degraded, reason)
}

fn hot_state(view: &View<'_>) -> Option<Component> {
    let figures = view.hot_state.as_ref()?;
    let (state, reason) = match &figures.connection {
        Connection::Connecting => (State::Degraded, "connecting to Redis for the first time".to_owned()),
        Connection::Up => (State::Ok, format!("{} records behind", figures.behind)),
        Connection::Down { since, reason } => (
            State::Degraded,
            format!("no connection to Redis for {:.0} s: {}", seconds_since(*since), cut(reason)),
        ),
        Connection::NoLog { since, reason } => {
            let reason = format!("cannot read the log for {:.0} s: {}", seconds_since(*since), cut(reason));
            (State::Degraded, reason)
        }
        Connection::Closed => (State::Degraded, "ended".to_owned()),
    };
    Some(component("hot_state", state, reason))
}

/// Returns the trouble if producers use different partitioners; `None` if they agree.
fn partitioner(view: &View<'_>) -> Option<Component> {
    let split = &view.engine.status.split_symbols;
    (split.count > 0).then(|| component("partitioner", State::Degraded, cut(&split.to_string())))
}

/// Assesses the GPUs; `None` if there are none.
fn devices(view: &View<'_>) -> Option<Component> {
    let samples = &view.engine.samples;
    let devices: BTreeSet<&String> = samples.keys().chain(view.engine.sampled_at.keys()).collect();
    if devices.is_empty() {
        return None;
    }
    let wrong: Vec<String> = devices
        .into_iter()
        .flat_map(|device| {
            device_troubles(view, device).into_iter().map(move |trouble| format!("{device}: {trouble}"))
        })
        .collect();
    let state = if wrong.is_empty() { State::Ok } else { State::Degraded };
    let reason = if wrong.is_empty() { format!("GPUs: {}", samples.len()) } else { wrong.join(", ") };
    Some(component("devices", state, reason))
}

/// Returns the troubles of a device.
pub(super) fn device_troubles(view: &View<'_>, device: &str) -> Vec<String> {
    let mut troubles = Vec::new();
    let xids = view.engine.xids.get(device).copied().unwrap_or_default();
    if xids > 0 {
        troubles.push(format!("{xids} critical Xid errors"));
    }
    let Some(sample) = view.engine.samples.get(device) else {
        let since = view.engine.sampled_at.get(device).map(|&at| seconds_since(at));
        troubles.push(format!("NVML has returned no measurements for {:.0} s", since.unwrap_or_default()));
        return troubles;
    };
    if let (Some(found), Some(max)) = (sample.temperature_c, sample.slowdown_c)
        && found >= max
    {
        troubles.push(format!("{found} °C, hot enough to lower its clocks"));
    }
    if let Some(errors) = sample.ecc_errors_uncorrected.filter(|&errors| errors > 0) {
        troubles.push(format!("{errors} uncorrectable memory errors"));
    }
    troubles
}

/// Cuts an external cause to [`CAUSE_CHARS_MAX`].
pub(super) fn cut(cause: &str) -> String {
    if cause.chars().count() <= CAUSE_CHARS_MAX {
        return cause.to_owned();
    }
    cause.chars().take(CAUSE_CHARS_MAX).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use warptape_hot::HotFigures;

    use super::super::sampler::{Lag, Recent};
    use super::super::view::tests::full_view::{NOW_NS, S, view, watched};
    use super::*;
    use crate::watch::Lost;

    /// Returns a component's state, the readiness and the component's reason after a change to a healthy pipeline.
    fn assessed(name: &str, change: impl FnOnce(&mut View<'_>)) -> (State, bool, String) {
        let watched = watched();
        let mut view = view(&watched);
        change(&mut view);
        let health = assess(&view);
        let of_name = health.components.iter().find(|component| component.name == name);
        (health.status, health.ready, of_name.expect("the component is there").reason.clone())
    }

    #[test]
    fn what_fares_well_is_ok_and_ready() {
        let (status, ready, reason) = assessed("engine", |_| {});
        assert_eq!((status, ready, reason.as_str()), (State::Ok, true, "partitions: 1"));
    }

    #[test]
    fn each_fault_has_its_name() {
        let lost = |view: &mut View<'_>| {
            let since =
                Instant::now().checked_sub(Duration::from_secs(12)).expect("the machine runs for longer");
            view.lost = Some(Lost { since, cause: "kafka:a:1 does not answer".to_owned() });
        };
        let expected = "broker lost 12 s ago: kafka:a:1 does not answer";
        assert_eq!(assessed("log", lost), (State::Down, false, expected.to_owned()));

        let (status, ready, reason) = assessed("commits", |view| {
            view.engine.status.aborting_since_ns = Some(NOW_NS - 7 * S);
            view.engine.committed.failing = Some("the disk is full".to_owned());
        });
        assert_eq!((status, ready), (State::Down, false));
        assert_eq!(reason, "every commit has failed for 7 s: the disk is full");

        let (status, ready, reason) =
            assessed("commits", |view| view.engine.status.committing_since_ns = Some(NOW_NS - 11 * S));
        assert_eq!((status, ready), (State::Down, false));
        assert_eq!(reason, "a transaction has been under way for 11 s");

        let (status, ready, reason) = assessed("lanes", |view| view.sampled.stalls[1] = 12.0);
        assert_eq!((status, ready), (State::Degraded, true));
        assert_eq!(reason, "lane 1 (cuda:0) has been working on one batch for 12 s");

        let (status, ready, reason) = assessed("lanes", |view| {
            view.engine.status.lanes[0].load.ready = false;
            view.engine.status.lanes[1].breaker = BreakerState::Open;
        });
        assert_eq!((status, ready), (State::Down, false));
        assert_eq!(reason, "lane 0 (cpu:0) is lost or not open yet, the breaker of lane 1 (cuda:0) is open");

        let (status, ready, _) = assessed("lanes", |view| {
            view.engine.status.lanes[0].load.in_service = false;
            view.sampled.stalls[1] = 12.0;
        });
        assert_eq!((status, ready), (State::Down, false));
        let (status, ready, reason) =
            assessed("lanes", |view| view.engine.status.lanes[0].load.in_service = false);
        assert_eq!((status, ready, reason.as_str()), (State::Ok, true, "lanes: 1"));

        let (status, ready, reason) = assessed("lag", |view| {
            view.sampled.lag.partitions.insert(1, Lag { records: 500, seconds: 20.0, open_records: 300 });
        });
        assert_eq!((status, ready), (State::Degraded, true));
        let expected = "partition 1 is 500 records behind; the first has waited for 20.0 s; 300 of them wait for a producer to end its transaction";
        assert_eq!(reason, expected);

        // Without an answer of the log, nothing is known; above all, not that everything is committed.
        let (status, ready, reason) = assessed("lag", |view| view.sampled.lag.at_ns = NOW_NS - 7 * S);
        assert_eq!((status, ready), (State::Degraded, true));
        assert_eq!(reason, "the lag of partitions has been unknown for 7 s: the log has not answered");

        let (status, ready, reason) = assessed("log", |view| {
            view.sampled.disk = Some(Disk { free: 1 << 20, size: 1 << 30 });
        });
        assert_eq!((status, ready), (State::Degraded, true));
        assert!(reason.starts_with("the disk of the log has 1.0 MiB left of 1.0 GiB"), "{reason}");

        let (status, ready, reason) = assessed("dead_letters", |view| {
            view.sampled.recent =
                Recent { seconds: 30.0, records: 1_000, dead_letters: 10, ..Recent::default() };
        });
        assert_eq!((status, ready), (State::Degraded, true));
        assert!(reason.starts_with("10 dead letters among 1000 records in the last 30 s"), "{reason}");

        let (status, ready, reason) = assessed("ticks", |view| {
            let (late, dead_ticks) = (40, 11);
            view.sampled.recent = Recent { seconds: 30.0, ticks: 989, late, dead_ticks, ..Recent::default() };
        });
        assert_eq!((status, ready), (State::Degraded, true));
        assert!(
            reason.starts_with("of 1000 ticks in the last 30 s, 40 were late and 11 became dead letters"),
            "{reason}"
        );
        let (status, _, reason) = assessed("ticks", |view| {
            let (late, dead_ticks) = (40, 10);
            view.sampled.recent = Recent { seconds: 30.0, ticks: 990, late, dead_ticks, ..Recent::default() };
        });
        assert_eq!(status, State::Ok, "{reason}");

        let (status, ready, reason) =
            assessed("symbols", |view| view.engine.status.partitions[0].symbols = 1_000);
        assert_eq!((status, ready), (State::Degraded, true));
        assert!(
            reason.starts_with("partitions that have reached stages.symbols_max (1000 symbols)"),
            "{reason}"
        );

        let (status, ready, reason) = assessed("hot_state", |view| {
            let down = Connection::Down { since: Instant::now(), reason: "connection refused".to_owned() };
            view.hot_state = Some(HotFigures { connection: down, ..HotFigures::default() });
        });
        assert_eq!((status, ready), (State::Degraded, true));
        assert_eq!(reason, "no connection to Redis for 0 s: connection refused");
        let (status, _, reason) = assessed("hot_state", |view| {
            let no_log = Connection::NoLog { since: Instant::now(), reason: "kafka:a:1 is gone".to_owned() };
            view.hot_state = Some(HotFigures { connection: no_log, ..HotFigures::default() });
        });
        assert_eq!((status, &*reason), (State::Degraded, "cannot read the log for 0 s: kafka:a:1 is gone"));

        let (status, ready, reason) = assessed("devices", |view| {
            view.engine.samples.get_mut("cuda:0").expect("it is there").temperature_c = Some(90);
            view.engine.xids.insert("cuda:0".to_owned(), 1);
        });
        assert_eq!((status, ready), (State::Degraded, true));
        assert_eq!(reason, "cuda:0: 1 critical Xid errors, cuda:0: 90 °C, hot enough to lower its clocks");
        let (status, ready, reason) = assessed("devices", |view| {
            view.engine.samples.clear();
            view.engine.sampled_at.insert("cuda:0".to_owned(), Instant::now());
        });
        assert_eq!((status, ready), (State::Degraded, true));
        assert_eq!(reason, "cuda:0: NVML has returned no measurements for 0 s");

        let (status, ready, reason) =
            assessed("engine", |view| view.engine.status.partitions[0].is_restored = false);
        assert_eq!((status, ready), (State::Down, false));
        assert_eq!(reason, "1 of 1 partitions are being restored");
    }

    #[test]
    fn few_dead_letters_are_no_flood() {
        let few = |dead_letters, records| {
            assessed("dead_letters", |view| {
                view.sampled.recent = Recent { seconds: 30.0, records, dead_letters, ..Recent::default() };
            })
        };
        assert_eq!(few(9, 9).0, State::Ok);
        assert_eq!(few(99, 10_000).0, State::Ok);
        assert_eq!(few(100, 10_000).0, State::Degraded);
    }

    #[test]
    fn a_silent_engine_is_not_ready_and_later_not_alive() {
        let watched = watched();
        let of = |silent_s: i64| {
            let mut view = view(&watched);
            view.engine.at_ns = NOW_NS - silent_s * S;
            let health = assess(&view);
            (health.ready, health.live)
        };
        assert_eq!(of(5), (true, true));
        assert_eq!(of(11), (false, true));
        assert_eq!(of(61), (false, false));
    }
}
