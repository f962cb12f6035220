//! State of everything that the endpoint reports, at one moment.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warptape_engine::Topics;
use warptape_eventlog::ClientFigures;
use warptape_hot::{HotFigures, HotStatus};
use warptape_replay::VerifyOptions;
use warptape_schemas::journal::LaneSpec;
use warptape_stages::Lateness;

use super::live::Explains;
use super::sampler::Sampled;
use crate::clock::Clock;
use crate::runtime::{EngineView, Progress};
use crate::watch::{LogWatch, Lost};

/// Sources of the endpoint's pages on a running pipeline.
pub struct Watched {
    /// Name of the process.
    pub node: String,
    /// Consumer group of the process.
    pub group: String,
    /// Ordinal of the process in the group.
    pub ordinal: i32,
    /// The topics.
    pub topics: Topics,
    /// Lanes by index.
    pub lanes: Vec<LaneSpec>,
    /// Greatest lag of a healthy process.
    pub lag_max: Duration,
    /// Longest commit of a healthy process.
    pub commit_max: Duration,
    /// Greatest percentage of late or dead ticks in a healthy process.
    pub refused_percent_max: u32,
    /// Greatest number of symbols in a partition.
    pub symbols_max: u32,
    /// Figures of the engine.
    pub progress: Arc<Progress>,
    /// Watch on whether the log answers; `None` if the log cannot become unreachable.
    pub watch: Option<Arc<LogWatch>>,
    /// Hot state; `None` if it is not in Redis.
    pub hot_state: Option<Arc<HotStatus>>,
    /// A folder on the disk of the log; `None` if the log is not on this machine.
    pub disk: Option<PathBuf>,
    /// Lateness of venues, which decides the group of a symbol.
    pub lateness: Lateness,
    /// Explanations of the journal for the live page.
    pub explains: Arc<dyn Explains>,
    /// Verification beside the pipeline; `None` if there is none.
    pub verify: Option<VerifyOptions>,
    /// Share of a core that the verification may use, in percent; 0 for none.
    pub verify_percent: u32,
}

/// Age above which a GPU's sample is ignored. GPUs are sampled once a second by default.
const SAMPLE_AGE_MAX: Duration = Duration::from_secs(10);

/// State of the sources at one moment.
pub(super) struct View<'a> {
    pub(super) watched: &'a Watched,
    /// ns since the epoch, on the clock of this process.
    pub(super) now_ns: i64,
    pub(super) engine: EngineView,
    pub(super) lost: Option<Lost>,
    pub(super) hot_state: Option<HotFigures>,
    pub(super) sampled: Sampled,
    /// Figures that the clients of the log report.
    pub(super) clients: Vec<ClientFigures>,
}

impl View<'_> {
    /// Returns the time since an instant, in seconds.
    pub(super) fn lasts_s(&self, since_ns: i64) -> f64 {
        (self.now_ns - since_ns).max(0) as f64 / 1e9
    }
}

impl Watched {
    pub(super) fn view(&self, clock: Clock, sampled: Sampled, clients: Vec<ClientFigures>) -> View<'_> {
        let mut engine = self.progress.engine();
        engine
            .samples
            .retain(|device, _| engine.sampled_at.get(device).is_none_or(|at| at.elapsed() < SAMPLE_AGE_MAX));
        View {
            watched: self,
            now_ns: clock.now_ns(),
            engine,
            lost: self.watch.as_ref().and_then(|watch| watch.lost()),
            hot_state: self.hot_state.as_ref().map(|status| status.figures()),
            sampled,
            clients,
        }
    }

    /// Returns the device of a lane.
    pub(super) fn device_of(&self, lane: i32) -> &str {
        usize::try_from(lane).ok().and_then(|lane| self.lanes.get(lane)).map_or("", |spec| &spec.device)
    }
}

/// Returns the seconds since an instant.
pub(super) fn seconds_since(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn figures_of_a_gpu_that_are_old_are_not_told() {
        let watched = full_view::watched();
        let view = || watched.view(Clock::start(), Sampled::default(), Vec::new());
        let tell = |at| {
            watched.progress.change_engine(|view| {
                view.samples.insert("cuda:0".to_owned(), warptape_kernels::device::Sample::default());
                view.sampled_at.insert("cuda:0".to_owned(), at);
            });
        };
        tell(Instant::now());
        assert_eq!(view().engine.samples.len(), 1);
        tell(Instant::now().checked_sub(SAMPLE_AGE_MAX).expect("the machine has run for so long"));
        assert_eq!(view().engine.samples.len(), 0);
    }

    /// A pipeline in which everything has a value.
    pub(in super::super) mod full_view {
        use std::collections::BTreeMap;

        use warptape_engine::{LaneStatus, PartitionStatus, ShadowTally, Status, Tally};
        use warptape_kernels::device::Sample;
        use warptape_scheduler::LaneLoad;
        use warptape_scheduler::autoscale::Wish;
        use warptape_schemas::journal::{BreakerState, ScaleReason};

        use super::*;
        use crate::endpoint::sampler::{Disk, Lag, Recent, SeenLag};

        /// One second, in ns.
        pub(in super::super::super) const S: i64 = 1_000_000_000;
        /// Time of the view.
        pub(in super::super::super) const NOW_NS: i64 = 1_000 * S;

        pub(in super::super::super) fn watched() -> Watched {
            Watched {
                node: "node-0".to_owned(),
                group: "warptape".to_owned(),
                ordinal: 0,
                topics: Topics::new(""),
                lanes: vec![LaneSpec::new(0, "cpu:0", 1), LaneSpec::new(1, "cuda:0", 1)],
                lag_max: Duration::from_secs(15),
                commit_max: Duration::from_secs(10),
                refused_percent_max: 5,
                symbols_max: 1_000,
                progress: Arc::new(Progress::new(2)),
                watch: None,
                hot_state: None,
                disk: None,
                lateness: Lateness::of(&warptape_stages::StageConfig::unlimited(Vec::new(), 0, 16)),
                explains: Arc::new(crate::endpoint::live::tests::Wordless),
                verify: None,
                verify_percent: 0,
            }
        }

        /// Returns the load of a busy lane.
        pub(in super::super::super) fn load(lane: i32) -> LaneLoad {
            LaneLoad {
                lane,
                ready: true,
                in_service: true,
                weight: 1,
                groups_placed: 4,
                waiting_rows: 0,
                in_flight_rows: 10,
                in_flight_bytes: 100,
                in_flight_batches: 1,
                service_ps_per_row: 1_000,
                slice: None,
            }
        }

        /// Returns the view of a healthy pipeline.
        pub(in super::super::super) fn view(watched: &Watched) -> View<'_> {
            let lane = |lane| LaneStatus { load: load(lane), breaker: BreakerState::Closed };
            let partition = PartitionStatus {
                partition: 3,
                is_restored: true,
                is_paused: false,
                next_offset: 100,
                read_to: 100,
                sealed_offset: 90,
                snapshot_offset: 0,
                watermark_ns: Some(NOW_NS - S),
                symbols: 7,
                waiting_rows: 5,
                waiting_bytes: 50,
            };
            let wish = Wish {
                lanes: 4,
                reason: ScaleReason::Forecast,
                utilization_percent: 90,
                waiting_ns: S,
                lanes_in_service: 2,
                arrived_e6: 1_800_000,
                load_e6: 2_500_000,
                is_by_forecast: true,
                forecast_e6: Some(2_500_000),
                error_ppm: Some(100_000),
                season_windows: 24,
                deviations_e3: None,
                is_anomaly: false,
            };
            let mut tally = Tally::default();
            tally.shadows.push(ShadowTally::new("fair@1"));
            let status = Status {
                wish: Some(wish),
                tally,
                partitions: vec![partition],
                lanes: vec![lane(0), lane(1)],
                quotas: vec![("desk".to_owned(), 3, 10)],
                ..Status::default()
            };
            let sample = Sample {
                utilization_percent: Some(50),
                memory_used_bytes: Some(1 << 30),
                memory_free_bytes: Some(3 << 30),
                temperature_c: Some(60),
                slowdown_c: Some(90),
                power_mw: Some(300_000),
                sm_clock_mhz: Some(1_500),
                memory_clock_mhz: Some(2_600),
                throttle_bits: Some(1 << 2),
                ecc_errors_uncorrected: Some(0),
                xid: None,
            };
            let device = || "cuda:0".to_owned();
            let engine = EngineView {
                at_ns: NOW_NS,
                status,
                samples: BTreeMap::from([(device(), sample)]),
                xids: BTreeMap::from([(device(), 0)]),
                ..EngineView::default()
            };
            let hot_state = HotFigures { connection: warptape_hot::Connection::Up, ..HotFigures::default() };
            let sampled = Sampled {
                lag: SeenLag {
                    at_ns: NOW_NS - S,
                    partitions: BTreeMap::from([(3, Lag { records: 10, seconds: 0.1, open_records: 4 })]),
                    error: None,
                },
                disk: Some(Disk { free: 20 << 30, size: 100 << 30 }),
                stalls: vec![0.0, 0.5],
                recent: Recent { seconds: 30.0, records: 1_000, ..Recent::default() },
            };
            let client =
                ClientFigures { client: "consumer", round_trip_us: Some(900), ..ClientFigures::default() };
            View {
                watched,
                now_ns: NOW_NS,
                engine,
                lost: None,
                hot_state: Some(hot_state),
                sampled,
                clients: vec![client],
            }
        }
    }
}
