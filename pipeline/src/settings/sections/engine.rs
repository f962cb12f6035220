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
/// Service after which a risk task lets others of its tenant go first: some dozens of slices.
const RISK_QUANTUM_NS: i64 = 20_000_000;
/// Time between looks at whether prices of kinds of tasks are to be found anew.
const PRICE_INTERVAL_NS: i64 = NS_PER_S;
/// Version of what predicts the time of slices.
const PREDICTOR: i32 = 1;

/// Values of `risk.policy`.
const POLICIES: &str = "`fair`, `lp-price`, `earliest-deadline`, `least-laxity`, `first-come`, `round-robin`, `weighted-round-robin`, \
     `score-utilization`, `shortest-queue`, `two-choices`, `earliest-completion`, `linucb`, or `dqn:` and the hash of a network in `networks`, of \
     which eight digits are enough";

/// Values of `risk.shadow`.
const SHADOWS: &str = "policies of `policy` other than `linucb`, which learns from what it decides itself";

section! {
    "engine": "The loop that reads ticks, feeds lanes and commits.";
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
        /// Number of this process within its group, from 0. Each process has its own: its transactional id is
        /// GROUP-ORDINAL, its partition of the journal has this number, and on Kafka it comes back to its partitions by it.
        ordinal: i32 = integer(0, 0..=1023, whole);
        /// Devices that lanes run on: `cpu:N` is N lanes on the CPU, `cuda:N` a lane on GPU N, `auto` one on each GPU
        /// or, without any, one per core but one. Where all are on GPUs, some on the CPU stand by, as far as 64 in all allow.
        devices: Vec<String> = list(
            &["cpu:2"],
            64,
            "`cpu:N` (N lanes on the CPU, 1 to 64), `cuda:N` (a lane on GPU N, from 0), `cuda:N#M` (M lanes on \
             it, 1 to 16) or `auto` (a lane on each GPU; without any, one CPU lane per core but one)",
            syntax::is_device,
            <[String]>::to_vec,
        );
        /// Time that a GPU may take for a batch, in milliseconds: then its lanes' groups go elsewhere. To be opened, to make
        /// up for what a group has missed, or for a slice of a risk task it may take a minute at least.
        device_deadline as device_deadline_ms: Duration = integer(5_000, 10..=600_000, milliseconds);
        /// Time between transactions, in milliseconds.
        commit_interval as commit_interval_ms: Duration = integer(100, 1..=60_000, milliseconds);
        /// Time between entries of the journal that hold the scheduler's whole state, in seconds: a replay may begin at them.
        checkpoint_interval_ns as checkpoint_interval_s: i64 = integer(60, 1..=86_400, |seconds| seconds * NS_PER_S);
        /// Source records of a partition between two snapshots of its state.
        snapshot_interval_records: i64 = integer(20_000, 1..=1_000_000_000, whole);
        /// Event time without a tick, in seconds, after which the indicators of a symbol leave memory at a snapshot, until its next tick; 0:
        /// never. Nothing of it shows in outputs.
        evict_idle_ns as evict_idle_s: Option<i64> =
            integer(604_800, 0..=315_360_000, |seconds| (seconds > 0).then_some(seconds * NS_PER_S));
        /// Time by the wall clock, in milliseconds, without a record in a partition, after which those time bars close whose ends the clock
        /// has passed by as much; 0: never, which is right wherever ticks are not of now. The process says so among the ticks, so that a
        /// replay closes the same bars; ticks that come later with times before that are late.
        idle_close_ns as idle_close_ms: Option<i64> =
            integer(0, 0..=86_400_000, |ms| (ms > 0).then_some(ms * 1_000_000));
        /// Records taken from the log at once.
        poll_records_max: usize = integer(256, 1..=65_536, whole);
        /// Bytes taken from the log at once, about.
        poll_bytes_max: usize = integer(524_288, 4_096..=1 << 30, whole);
    }
}

section! {
    "scheduler": "Placement of symbol groups, dispatch of batches, backpressure.";
    into SchedulerConfig {
        /// Rule that chooses a lane for a symbol group: `rendezvous` is weighted rendezvous hashing with a bounded number of groups,
        /// `balanced` the lane that is measured to have the least to do, and groups move as that changes.
        placement_policy: String = choice(&PLACEMENT_POLICIES, |name| in_steps(&format!("{name}@1"), STEP_BYTES_MAX));
        /// Seed of the policy's hash streams.
        placement_seed: i64 = integer(0, i64::MIN..=i64::MAX, whole);
        /// A lane takes at most this share of its fair number of groups, in percent.
        load_factor_percent: i32 = integer(125, 100..=10_000, whole);
        /// Rows a lane may have in flight.
        lane_credit_rows: i64 = integer(262_144, 1..=1 << 32, whole);
        /// Bytes a lane may have in flight.
        lane_credit_bytes: i64 = integer(33_554_432, 4_096..=1 << 40, whole);
        /// Batches a lane may have in flight: 2 is one running, one queued.
        lane_batches_max: i32 = integer(2, 1..=64, whole);
        /// Rows of the largest batch.
        batch_rows_max: i64 = integer(65_536, 1..=1 << 24, whole);
        /// Time from a row's arrival by which a busy lane is predicted to finish it, in microseconds.
        row_deadline_ns as row_deadline_us: i64 = integer(5_000, 1..=60_000_000, |us| us * 1_000);
        /// A partition is paused at the source when this many of its rows wait.
        high_water_rows: i64 = integer(1_048_576, 1..=1 << 32, whole);
        /// A paused partition is resumed when no more than this many of its rows wait.
        low_water_rows: i64 = integer(262_144, 0..=1 << 32, whole);
        /// Where there are lanes on GPUs and on the processor: time between looks at which groups are better off on the
        /// other kind, in milliseconds; 0: groups stay.
        route_interval_ns as route_interval_ms: i64 = integer(1_000, 0..=86_400_000, |ms| ms * 1_000_000);
        /// Under `balanced`: length of a window in which loads are measured and after which groups may move, in milliseconds; 0:
        /// nothing is measured, and groups stay.
        balance_interval_ns as balance_interval_ms: i64 = integer(250, 0..=86_400_000, |ms| ms * 1_000_000);
    }
    and {
        risk: RiskConfig = |values| RiskSettings::read(values).config();
        breakers: Option<BreakerConfig> = |values| Some(BreakerConfig::read(values));
    }
}

section! {
    "breakers": "When a lane that fails or is slow gets no work, and how it comes back.";
    into BreakerConfig {
        /// Losses of a lane within the window that take it out of service; 0: none do.
        losses_max: i32 = integer(3, 0..=100, whole);
        /// Time in which losses are counted, in seconds.
        window_ns as window_s: i64 = integer(60, 1..=86_400, |seconds| seconds * NS_PER_S);
        /// A lane is slow whose batches take so many percent of what is predicted, beside the other lanes; 0: none is.
        slow_percent: i32 = integer(500, 0..=10_000, whole);
        /// How long it has to be slow without a break, in milliseconds.
        slow_ns as slow_ms: i64 = integer(250, 0..=600_000, |ms| ms * 1_000_000);
        /// Time until a lane that is out of service is tried with half of its groups and with slices, in milliseconds; twice
        /// as long each time that it fails, and not above `probe_max_s`.
        probe_ns as probe_ms: i64 = integer(2_000, 1..=3_600_000, |ms| ms * 1_000_000);
        /// The longest such time, in seconds.
        probe_ns_max as probe_max_s: i64 = integer(300, 1..=86_400, |seconds| seconds * NS_PER_S);
        /// Batches and slices that have to go well before it is in service again.
        probes: i32 = integer(8, 1..=10_000, whole);
        /// A lane whose GPU has less than this left before it throttles counts with half of its weight, and with a quarter
        /// below half of this, in degrees Celsius; 0: always with all of it.
        headroom_c: i32 = integer(5, 0..=100, whole);
        /// A lane whose GPU has less than so many percent of its memory free gets no further groups while another lane can
        /// take them, until it has twice as many; 0: memory does not count.
        memory_free_percent: i32 = integer(5, 0..=50, whole);
    }
}

section! {
    "risk": "Risk requests, and how lanes share them.";
    /// Risk requests, and how lanes share them.
    pub struct RiskSettings {
        /// Time between transactions while risk results wait, in milliseconds; `engine.commit_interval_ms` else.
        commit_interval as commit_interval_ms: Duration = integer(5, 1..=60_000, milliseconds);
        /// Time that a lane is to work on one slice of a task, in microseconds. Batches of ticks that come meanwhile do not
        /// wait for it, but on the processor they share its time.
        slice_ns as slice_us: i64 = integer(500, 1..=1_000_000, |us| us * 1_000);
        /// Tasks known at a time; a further one is rejected.
        tasks_max: i32 = integer(10_000, 1..=1_000_000, whole);
        /// Bytes of the requests of tasks known at a time and of what their work may come to, about; a further one is
        /// rejected, unless there is no other.
        bytes_max: i64 = integer(256 << 20, 1..=1 << 40, whole);
        /// Time of one core that a request may be estimated to take, in seconds; a larger one is refused. docs/risk.md says how it
        /// is estimated; lanes on GPUs take less.
        cost_max_ns as cost_max_s: i64 = integer(3_600, 1..=31_536_000, |seconds| seconds * NS_PER_S);
        /// Which lanes do a task. A free lane takes the first task of the most urgent class in an order (`fair`: tenants by
        /// turns, then deadlines; `earliest-deadline`, `least-laxity`, `first-come`), or one of the kind that it is
        /// comparatively fast at (`lp-price`); or a task joins the queue of one lane when it arrives (`round-robin`,
        /// `weighted-round-robin`, `score-utilization`, `shortest-queue`, `two-choices`, `earliest-completion`, `linucb`,
        /// or the one that a network likes best: `dqn:HASH`).
        /// docs/scheduling.md says which is for what.
        policy: String = text(
            "lp-price",
            POLICIES,
            is_policy,
            current_task_policy,
        );
        /// Files of networks that the policy `dqn:HASH` may name, in the configuration or by `warptape control policy tasks`. They are read when the
        /// process begins, and lie in its journal.
        networks: Vec<PathBuf> = list(&[], NETWORKS_MAX, "a path", |path| !path.is_empty(), |paths| {
            paths.iter().map(PathBuf::from).collect()
        });
        /// Policies that are asked what they would have done, beside `policy`, which decides: what they say lies in the journal beside what was
        /// done, and nothing follows from it (`lp-price` has its prices asked for). As `policy` has them, but not `linucb`. They
        /// need a build with the feature `lab`.
        shadow: Vec<String> = list(&[], SHADOWS_MAX, SHADOWS, is_shadow, <[String]>::to_vec);
        /// They are asked at one choice of so many: their time is taken from the scheduler's.
        shadow_every: i32 = integer(256, 1..=SHADOW_EVERY_MAX as i64, whole);
        /// Share of the time of a lane that has ticks, in percent, that is kept for critical tasks, and for tasks of other classes that have
        /// waited for `ageing_ms`; 0: ticks leave nothing to tasks while lanes are never without.
        critical_percent: i32 = integer(25, 0..=100, whole);
        /// Time in which a task gets no slice, in milliseconds, after which it goes before all others in one slice of sixteen, whatever its
        /// class; 0: never.
        ageing_ns as ageing_ms: i64 = integer(1_000, 0..=86_400_000, |ms| ms * 1_000_000);
        /// Share of choices that are drawn at random among all that could be made, in parts per million, so that policies can be compared by
        /// what the journal has: 10,000 is one per cent. 0: none.
        explore_ppm: i32 = integer(0, 0..=20_000, whole);
        /// Tasks that a tenant, or a cohort of tenants, may have known at a time, and how often it may ask: `desk parent=firm guaranteed=20
        /// lendable=10 limit=200 rate=50 burst=100`, each word optional. What is guaranteed and not lent is there whatever others have;
        /// docs/scheduling.md says more. A parent comes before those that name it.
        quotas: Vec<Quota> = list(
            &[],
            256,
            "`NAME`, and with spaces between `parent=NAME`, `guaranteed=TASKS`, `lendable=TASKS`, `limit=TASKS`, `rate=REQUESTS_A_SECOND` and \
             `burst=REQUESTS`",
            syntax::is_quota,
            |items| items.iter().map(quota).collect(),
        );
        /// Time that a task may wait to begin, in milliseconds. When the most urgent ones that wait have waited longer for
        /// `delay_interval_ms`, tasks that have not begun are shed, batch first, critical ones never; 0: never.
        delay_target_ns as delay_target_ms: i64 = integer(0, 0..=86_400_000, |ms| ms * 1_000_000);
        /// Time for which tasks wait too long before one is shed, in milliseconds; the next ones follow ever faster.
        delay_interval_ns as delay_interval_ms: i64 = integer(100, 1..=86_400_000, |ms| ms * 1_000_000);
        /// Where it is positive, the number of tasks that may be known follows the delay, between this and `tasks_max`: it shrinks while
        /// tasks wait for longer than `delay_target_ms`, and grows again. It refuses no critical task.
        in_flight_min: i32 = integer(0, 0..=1_000_000, whole);
        /// How the units of a task are shared out: every free lane takes the next ones (`dynamic`), each lane gets as
        /// many (`equal`), or in proportion to its weight (`score`).
        split: SplitPolicy = choice(&["dynamic", "equal", "score"], |word| match word {
            "equal" => SplitPolicy::Equal,
            "score" => SplitPolicy::Score,
            _ => SplitPolicy::Dynamic,
        });
        /// What tenants' shares of the lanes are in proportion to, within a class of urgency: `["desk=4"]`. Tenants that
        /// are not named weigh 1.
        tenant_weights: Vec<TenantWeight> = list(
            &[],
            1_024,
            "`TENANT=WEIGHT`, the weight from 1 to 1000",
            syntax::is_tenant_weight,
            |items| items.iter().map(tenant_weight).collect(),
        );
    }
}

/// Whether a text is the name of a policy of tasks. Whether its network is there is judged with the networks.
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
    /// What the scheduler is told of them.
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
