//! The loop that reads, feeds lanes and commits; its scheduler, and its risk tasks.

use std::path::PathBuf;
use std::time::Duration;

use warptape_scheduler::{
    NETWORKS_MAX, PLACEMENT_POLICIES, SHADOW_EVERY_MAX, SHADOWS_MAX, STEP_BYTES_MAX, TASK_POLICIES,
    current_task_policy, dqn, in_steps,
};
use warptape_schemas::journal::{
    BreakerConfig, QueueConfig, Quota, RiskConfig, SchedulerConfig, SplitPolicy, TenantWeight,
};

use super::super::declaration::{choice, integer, list, section, text, whole};
use super::super::syntax;
use super::milliseconds;

const NS_PER_S: i64 = 1_000_000_000;
/// Service time after which a risk task lets other tasks of its tenant go first; some dozens of slices.
const RISK_QUANTUM_NS: i64 = 20_000_000;
/// Time between two checks whether the prices of task kinds must be recomputed.
const PRICE_INTERVAL_NS: i64 = NS_PER_S;
/// Version of the predictor of slice times.
const PREDICTOR: i32 = 1;

/// Allowed values of `risk.policy`.
const POLICIES: &str = "`fair`, `lp-price`, `earliest-deadline`, `least-laxity`, `first-come`, \
     `round-robin`, `weighted-round-robin`, `score-utilization`, `shortest-queue`, `two-choices`, \
     `earliest-completion`, `linucb`, or `dqn:` and the first eight or more digits of the hash of a network \
     in `networks`";

/// Allowed values of `risk.shadow`.
const SHADOWS: &str = "a value of `policy` except `linucb`, which learns only from its own decisions";

section! {
    "engine": "The loop that reads ticks, sends batches to lanes and commits.";
    /// The loop that reads, feeds lanes and commits.
    pub struct EngineSettings {
        /// Consumer group: it owns the offsets of the source topic.
        group: String = text(
            "warptape",
            "a string of 1 to 64 characters of A-Z a-z 0-9 . _ -",
            syntax::is_name,
            str::to_owned,
        );
        /// Name of this process within its group, for people; an empty one is `node-ORDINAL`.
        node: String = text(
            "",
            "a string of up to 64 characters of A-Z a-z 0-9 . _ -",
            syntax::is_topic_prefix,
            str::to_owned,
        );
        /// Number of this process within its group, from 0, unique in the group. Its transactional id is GROUP-ORDINAL,
        /// and its partition of the journal has this number. On Kafka the process comes back to its partitions by it.
        ordinal: i32 = integer(0, 0..=1023, whole);
        /// Devices that lanes run on: `cpu:N` is N lanes on the CPU, `cuda:N` a lane on GPU N, `auto` one on each GPU.
        /// Without a GPU, `auto` is one lane per core but one. If all lanes are on GPUs, some on the CPU stand by, up
        /// to 64 lanes in all.
        devices: Vec<String> = list(
            &["cpu:2"],
            64,
            "`cpu:N` (N lanes on the CPU, 1 to 64), `cuda:N` (a lane on GPU N, from 0), `cuda:N#M` (M lanes \
             on GPU N, 1 to 16) or `auto` (a lane on each GPU; without GPUs, CPU lanes on all cores but one)",
            syntax::is_device,
            <[String]>::to_vec,
        );
        /// Time that a GPU may take for a batch, in milliseconds; after it, the groups of its lanes move elsewhere.
        /// Opening, making up for missed ticks of a group, and slices of risk tasks get at least a minute.
        device_deadline as device_deadline_ms: Duration = integer(5_000, 10..=600_000, milliseconds);
        /// Time between transactions, in milliseconds. Reads of new ticks on the embedded log are at
        /// least a twentieth of it apart, or 5 ms if that is shorter.
        commit_interval as commit_interval_ms: Duration = integer(100, 1..=60_000, milliseconds);
        /// Time between entries of the journal that hold the scheduler's whole state, in seconds. A replay may begin at
        /// them.
        checkpoint_interval_ns as checkpoint_interval_s: i64 = integer(60, 1..=86_400, |seconds| seconds * NS_PER_S);
        /// Source records of a partition between two snapshots of its state.
        snapshot_interval_records: i64 = integer(20_000, 1..=1_000_000_000, whole);
        /// Event time without a tick, in seconds, after which a symbol's indicators leave memory at a snapshot, until
        /// its next tick; 0: never. Outputs stay the same.
        evict_idle_ns as evict_idle_s: Option<i64> =
            integer(604_800, 0..=315_360_000, |seconds| (seconds > 0).then_some(seconds * NS_PER_S));
        /// Wall-clock time without a record in a partition, in milliseconds, after which it closes time bars that ended
        /// at least this long ago; 0: never. 0 is right for ticks of the past. The process records the close among the
        /// ticks, so that a replay closes the same bars. Later ticks with times before the close are late.
        idle_close_ns as idle_close_ms: Option<i64> =
            integer(0, 0..=86_400_000, |ms| (ms > 0).then_some(ms * 1_000_000));
        /// Greatest number of records taken from the log at once.
        poll_records_max: usize = integer(256, 1..=65_536, whole);
        /// Approximate number of bytes taken from the log at once.
        poll_bytes_max: usize = integer(524_288, 4_096..=1 << 30, whole);
    }
}

section! {
    "scheduler": "Placement of symbol groups on lanes, dispatch of batches, and backpressure.";
    into SchedulerConfig {
        /// Policy that chooses a lane for a symbol group. `rendezvous` is weighted rendezvous hashing with a bounded
        /// number of groups per lane. `balanced` takes the lane with the least measured load, and moves groups as loads
        /// change.
        placement_policy: String = choice(&PLACEMENT_POLICIES, |name| in_steps(&format!("{name}@1"), STEP_BYTES_MAX));
        /// Seed of the policy's hash streams.
        placement_seed: i64 = integer(0, i64::MIN..=i64::MAX, whole);
        /// Greatest share of its fair number of groups that a lane takes, in percent.
        load_factor_percent: i32 = integer(125, 100..=10_000, whole);
        /// Rows a lane may have in flight.
        lane_credit_rows: i64 = integer(262_144, 1..=1 << 32, whole);
        /// Bytes a lane may have in flight.
        lane_credit_bytes: i64 = integer(33_554_432, 4_096..=1 << 40, whole);
        /// Batches a lane may have in flight: 2 is one running, one queued.
        lane_batches_max: i32 = integer(2, 1..=64, whole);
        /// Rows of the largest batch.
        batch_rows_max: i64 = integer(65_536, 1..=1 << 24, whole);
        /// Time from a row's arrival within which a busy lane should be predicted to finish it, in microseconds.
        row_deadline_ns as row_deadline_us: i64 = integer(5_000, 1..=60_000_000, |us| us * 1_000);
        /// Waiting rows of a partition from which on it is paused at the source.
        high_water_rows: i64 = integer(1_048_576, 1..=1 << 32, whole);
        /// A paused partition is resumed when no more than this many of its rows wait.
        low_water_rows: i64 = integer(262_144, 0..=1 << 32, whole);
        /// Time between checks which groups are better off on the other kind of lane, in milliseconds; 0: groups stay.
        /// Only for lanes on both GPUs and the CPU.
        route_interval_ns as route_interval_ms: i64 = integer(1_000, 0..=86_400_000, |ms| ms * 1_000_000);
        /// Length of a window of `balanced`, in milliseconds: loads are measured in it, and groups may move after it.
        /// 0: nothing is measured, and groups stay.
        balance_interval_ns as balance_interval_ms: i64 = integer(250, 0..=86_400_000, |ms| ms * 1_000_000);
    }
    and {
        risk: RiskConfig = |values| RiskSettings::read(values).config();
        breakers: Option<BreakerConfig> = |values| Some(BreakerConfig::read(values));
    }
}

section! {
    "breakers": "Breakers: when a failing or slow lane stops getting work, and how it gets work again.";
    into BreakerConfig {
        /// Losses of a lane within the window that take it out of service; 0: never.
        losses_max: i32 = integer(3, 0..=100, whole);
        /// Time in which losses are counted, in seconds.
        window_ns as window_s: i64 = integer(60, 1..=86_400, |seconds| seconds * NS_PER_S);
        /// Time of a lane's batches, in percent of the predicted time and beside the other lanes, from which on the
        /// lane is slow; 0: never.
        slow_percent: i32 = integer(500, 0..=10_000, whole);
        /// Time for which a lane must be slow without a break, in milliseconds, to go out of service.
        slow_ns as slow_ms: i64 = integer(250, 0..=600_000, |ms| ms * 1_000_000);
        /// Time until a lane that is out of service gets half of its groups and slices on trial, in milliseconds. It
        /// doubles with each failed trial, up to `probe_max_s`.
        probe_ns as probe_ms: i64 = integer(2_000, 1..=3_600_000, |ms| ms * 1_000_000);
        /// Longest time until a trial, in seconds.
        probe_ns_max as probe_max_s: i64 = integer(300, 1..=86_400, |seconds| seconds * NS_PER_S);
        /// Batches and slices that must succeed before the lane is in service again.
        probes: i32 = integer(8, 1..=10_000, whole);
        /// Distance of a GPU's temperature from throttling, in degrees Celsius, below which its lanes count with half
        /// of their weight; 0: never. Below half of this they count with a quarter.
        headroom_c: i32 = integer(5, 0..=100, whole);
        /// Free share of a GPU's memory, in percent, below which its lanes get no further groups while another lane can
        /// take them; 0: never. They get groups again with twice this share free.
        memory_free_percent: i32 = integer(5, 0..=50, whole);
    }
}

section! {
    "risk": "Risk requests: limits, deadlines, and how tasks are scheduled on lanes.";
    /// Risk requests, and how lanes share them.
    pub struct RiskSettings {
        /// Time between transactions while risk results wait, in milliseconds; otherwise it is
        /// `engine.commit_interval_ms`.
        commit_interval as commit_interval_ms: Duration = integer(5, 1..=60_000, milliseconds);
        /// Target time of a lane for one slice of a task, in microseconds. Batches of ticks that arrive meanwhile do
        /// not wait for the slice, but on the CPU they share its time.
        slice_ns as slice_us: i64 = integer(500, 1..=1_000_000, |us| us * 1_000);
        /// Greatest number of tasks known at a time; a further one is rejected.
        tasks_max: i32 = integer(10_000, 1..=1_000_000, whole);
        /// Approximate bytes of the known tasks' requests, and of the memory that their work may come to take. A
        /// further task is rejected, unless there is no other.
        bytes_max: i64 = integer(256 << 20, 1..=1 << 40, whole);
        /// Greatest estimated time of one core for a request, in seconds; a larger request is refused. docs/risk.md
        /// describes the estimate. Lanes on GPUs take less time.
        cost_max_ns as cost_max_s: i64 = integer(3_600, 1..=31_536_000, |seconds| seconds * NS_PER_S);
        /// Policy that chooses the lanes of a task. A free lane takes the first task of the most urgent class in the
        /// policy's order: `fair` (tenants by turns, then deadlines), `earliest-deadline`, `least-laxity`,
        /// `first-come`. Or it takes a task of the kind that it is comparatively fast at: `lp-price`. Or a task joins
        /// the queue of one lane when it arrives: `round-robin`, `weighted-round-robin`, `score-utilization`,
        /// `shortest-queue`, `two-choices`, `earliest-completion`, `linucb`. The network of `dqn:HASH` chooses such a
        /// queue as well. docs/scheduling.md compares them.
        policy: String = text(
            "lp-price",
            POLICIES,
            is_policy,
            current_task_policy,
        );
        /// Files of networks that the policy `dqn:HASH` may name, in the configuration or by `warptape control policy
        /// tasks`. They are read at the start of the process, and are part of its journal.
        networks: Vec<PathBuf> = list(&[], NETWORKS_MAX, "a path", |path| !path.is_empty(), |paths| {
            paths.iter().map(PathBuf::from).collect()
        });
        /// Shadow policies, with names as in `policy`, except `linucb`. Each is asked what it would do; the journal has
        /// its answer beside the decision, and nothing follows from it (`lp-price` has its prices computed). They need
        /// a build with the feature `lab`.
        shadow: Vec<String> = list(&[], SHADOWS_MAX, SHADOWS, is_shadow, <[String]>::to_vec);
        /// Choices per question to the shadow policies. Their time is taken from the scheduler's.
        shadow_every: i32 = integer(256, 1..=SHADOW_EVERY_MAX as i64, whole);
        /// Share of the time of a lane with ticks, in percent, that is kept for critical tasks, and for others that
        /// waited for `ageing_ms`. With 0, ticks leave no time to tasks while lanes always have some.
        critical_percent: i32 = integer(25, 0..=100, whole);
        /// Time without a slice, in milliseconds, after which a task goes before all others in one slice of sixteen,
        /// whatever its class; 0: never.
        ageing_ns as ageing_ms: i64 = integer(1_000, 0..=86_400_000, |ms| ms * 1_000_000);
        /// Share of choices drawn at random among all possible ones, in parts per million; 10,000 is one per cent, and
        /// 0 is none. By them policies can be compared from the journal.
        explore_ppm: i32 = integer(0, 0..=20_000, whole);
        /// Quotas of tenants and of cohorts of tenants: tasks known at a time, and requests per second. An example,
        /// each word optional: `desk parent=firm guaranteed=20 lendable=10 limit=200 rate=50 burst=100`. Guaranteed
        /// tasks that are not lent have room whatever others have. A parent comes before its children.
        /// docs/scheduling.md says more.
        quotas: Vec<Quota> = list(
            &[],
            256,
            "`NAME`, followed by any of these, separated by spaces: `parent=NAME`, `guaranteed=TASKS`, `lendable=TASKS`, `limit=TASKS`, `rate=REQUESTS_A_SECOND` and \
             `burst=REQUESTS`",
            syntax::is_quota,
            |items| items.iter().map(quota).collect(),
        );
        /// Target time for a task to begin, in milliseconds; 0: none. If the most urgent waiting tasks exceed it for
        /// `delay_interval_ms`, tasks that have not begun are shed: batch first, critical ones never.
        delay_target_ns as delay_target_ms: i64 = integer(0, 0..=86_400_000, |ms| ms * 1_000_000);
        /// Time for which tasks must exceed the target before one is shed, in milliseconds; the next ones follow ever
        /// faster.
        delay_interval_ns as delay_interval_ms: i64 = integer(100, 1..=86_400_000, |ms| ms * 1_000_000);
        /// Least limit on known tasks if the limit follows the delay; 0: it is always `tasks_max`. It shrinks while
        /// tasks wait for longer than `delay_target_ms`, and grows again. It refuses no critical task.
        in_flight_min: i32 = integer(0, 0..=1_000_000, whole);
        /// Distribution of a task's units among lanes. With `dynamic` every free lane takes the next ones. With `equal`
        /// each lane gets as many, and with `score` as many as its weight says.
        split: SplitPolicy = choice(&["dynamic", "equal", "score"], |word| match word {
            "equal" => SplitPolicy::Equal,
            "score" => SplitPolicy::Score,
            _ => SplitPolicy::Dynamic,
        });
        /// Weights by which tenants share the lanes within a class of urgency: `["desk=4"]`. Other tenants weigh 1.
        tenant_weights: Vec<TenantWeight> = list(
            &[],
            1_024,
            "`TENANT=WEIGHT`, with a weight from 1 to 1000",
            syntax::is_tenant_weight,
            |items| items.iter().map(tenant_weight).collect(),
        );
    }
}

/// True for the name of a task policy. The existence of a network is checked with the networks.
fn is_policy(name: &str) -> bool {
    TASK_POLICIES.contains(&name) || dqn::prefix_of(name).is_some()
}

fn is_shadow(name: &str) -> bool {
    is_policy(name) && name != "linucb"
}

fn quota(text: &String) -> Quota {
    syntax::quota(text).unwrap_or_else(|| unreachable!("{text} was checked when it was read"))
}

fn tenant_weight(text: &String) -> TenantWeight {
    syntax::tenant_weight(text).unwrap_or_else(|| unreachable!("{text} was checked when it was read"))
}

impl RiskSettings {
    /// Returns the scheduler's configuration of risk tasks.
    fn config(self) -> RiskConfig {
        let Self {
            slice_ns,
            tasks_max,
            bytes_max,
            policy,
            critical_percent,
            ageing_ns,
            explore_ppm,
            quotas,
            delay_target_ns,
            delay_interval_ns,
            in_flight_min,
            split,
            tenant_weights,
            commit_interval: _,
            cost_max_ns: _,
            networks: _,
            shadow: _,
            shadow_every: _,
        } = self;
        RiskConfig {
            slice_ns,
            tasks_max,
            bytes_max,
            quantum_ns: RISK_QUANTUM_NS,
            policy,
            price_interval_ns: PRICE_INTERVAL_NS,
            critical_percent,
            ageing_ns,
            predictor: PREDICTOR,
            explore_ppm,
            queues: QueueConfig { quotas, delay_target_ns, delay_interval_ns, in_flight_min },
            steals: true,
            split,
            tenant_weights,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_of_tasks_is_named() {
        for name in TASK_POLICIES {
            assert!(POLICIES.contains(&format!("`{name}`")), "{name}");
            assert!(is_policy(name));
        }
        assert!(!is_policy("dice") && !is_policy("dqn:") && is_policy("dqn:0123abcd"));
    }
}
