//! The values of all metrics at one moment, in one of the scrape formats.

use std::fmt;
use std::sync::atomic::Ordering;

use prometheus_client::collector::Collector;
#[cfg(feature = "native-histograms")]
use prometheus_client::encoding::prometheus_protobuf;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric as _, MetricEncoder, NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use warptape_engine::{Counts, REQUEST_OUTCOMES, TASK_CLASSES, TimeBuckets};
use warptape_eventlog::ClientFigures;
use warptape_hot::Connection;
use warptape_schemas::journal::BreakerState;

use super::health::assess;
use super::metrics::*;
use super::process::usage;
use super::view::View;

/// Formats of a scrape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Format {
    /// The Prometheus text format, which all scrapers read.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The Prometheus protobuf format, the only one with native histograms.
    #[cfg(feature = "native-histograms")]
    Protobuf,
}

impl Format {
    /// Returns the richest format that an `Accept` header allows.
    pub(super) fn accepted(accept: &str) -> Self {
        let of = |name: &str| accept.split(',').any(|part| part.trim().starts_with(name));
        match () {
            #[cfg(feature = "native-histograms")]
            () if of("application/vnd.google.protobuf") => Self::Protobuf,
            () if of("application/openmetrics-text") => Self::OpenMetrics,
            () => Self::Text,
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            #[cfg(feature = "native-histograms")]
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

/// Writes all metrics of a view as a scrape.
pub(super) fn scrape(view: View<'_>, format: Format) -> Result<Vec<u8>, fmt::Error> {
    write(Page::of(&view), format)
}

/// Writes a page in one of the formats.
pub(super) fn write(page: Page, format: Format) -> Result<Vec<u8>, fmt::Error> {
    let mut registry = Registry::with_prefix("warptape");
    registry.register_collector(Box::new(page));
    let mut written = String::new();
    match format {
        Format::Text => prometheus_text::encode(&mut written, &registry)?,
        Format::OpenMetrics => text::encode(&mut written, &registry)?,
        #[cfg(feature = "native-histograms")]
        Format::Protobuf => {
            return prometheus_protobuf::encode_to_vec(&registry).map_err(|_| fmt::Error);
        }
    }
    Ok(written.into_bytes())
}

/// Values of a label set, in the order of the metric's labels.
type Labels = Vec<String>;

/// Values of a metric.
#[derive(Debug)]
enum Samples {
    Numbers(Vec<(Labels, f64)>),
    Distribution(Histogram),
    Times(TimeBuckets),
}

/// A scrape before it is written.
#[derive(Debug, Default)]
pub(super) struct Page(Vec<(Metric, Samples)>);

impl Page {
    pub(super) fn number(&mut self, metric: Metric, value: f64) {
        self.numbers(metric, [(Vec::new(), value)]);
    }

    pub(super) fn count(&mut self, metric: Metric, value: u64) {
        self.number(metric, value as f64);
    }

    pub(super) fn numbers(&mut self, metric: Metric, samples: impl IntoIterator<Item = (Labels, f64)>) {
        self.0.push((metric, Samples::Numbers(samples.into_iter().collect())));
    }

    fn counts(&mut self, metric: Metric, counts: &Counts) {
        self.numbers(metric, counts.iter().map(|(label, count)| (vec![label.to_owned()], count as f64)));
    }

    fn of(view: &View<'_>) -> Self {
        let mut page = Self(Vec::with_capacity(METRICS.len()));
        page.process(view);
        page.ticks(view);
        page.kafka_clients(view);
        page.partitions(view);
        page.latencies(view);
        page.commits(view);
        page.decisions(view);
        page.lanes(view);
        page.risk(view);
        page.autoscale(view);
        page.hot_state(view);
        page.devices(view);
        page.usage();
        page
    }

    fn process(&mut self, view: &View<'_>) {
        let health = assess(view);
        let labels = vec![health.version.to_owned(), health.node.clone(), health.group.clone()];
        self.numbers(BUILD, [(labels, 1.0)]);
        self.number(READY, f64::from(u8::from(health.ready)));
        let healthy = health.components.iter().map(|component| {
            let value = match component.state {
                super::health::State::Ok => 1.0,
                super::health::State::Degraded => 0.5,
                super::health::State::Down => 0.0,
            };
            (vec![component.name.to_owned()], value)
        });
        self.numbers(COMPONENT, healthy);
    }

    fn ticks(&mut self, view: &View<'_>) {
        let progress = &view.watched.progress;
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        self.count(READ_RECORDS, read(&progress.records_read));
        self.count(READ, read(&progress.bytes_read));
        self.count(TICKS, read(&progress.ticks));
        self.count(LATE, read(&progress.late));
        self.count(DEAD, read(&progress.dead_letters));
        self.count(DEAD_TICKS, read(&progress.dead_ticks));
        self.count(REPEATED, read(&progress.repeated_trades));
        let signals = read(&progress.signals);
        self.count(SIGNALS, signals);
        let committed = &view.engine.committed;
        let written = [
            ("signals", signals),
            ("late", committed.late),
            ("dead-letter", committed.dead_letters),
            ("snapshots", committed.snapshots),
            ("risk.results", committed.risk_results.values().sum()),
            ("journal", committed.journal_entries),
        ];
        self.numbers(WRITTEN, written.map(|(topic, count)| (vec![topic.to_owned()], count as f64)));
        self.count(SYMBOLS, view.engine.status.symbols as u64);
        self.count(EVICTED_SYMBOLS, view.engine.status.evicted as u64);
        self.count(SPLIT_SYMBOLS, view.engine.status.split_symbols.count);
    }

    fn kafka_clients(&mut self, view: &View<'_>) {
        let clients = &view.clients;
        if clients.is_empty() {
            return;
        }
        let mut each = |metric, value: fn(&ClientFigures) -> Option<u64>| {
            let known = clients.iter().filter_map(|of| Some((vec![of.client.to_owned()], value(of)? as f64)));
            self.numbers(metric, known);
        };
        each(KAFKA_BROKERS, |of| Some(of.brokers));
        each(KAFKA_CONNECTED, |of| Some(of.brokers_connected));
        each(KAFKA_REQUESTS, |of| Some(of.requests));
        each(KAFKA_SENT, |of| Some(of.sent_bytes));
        each(KAFKA_RECEIVED, |of| Some(of.received_bytes));
        each(KAFKA_ERRORS, |of| Some(of.errors));
        each(KAFKA_QUEUED, |of| Some(of.queued_records));
        let waits = clients
            .iter()
            .filter_map(|of| Some((vec![of.client.to_owned()], of.round_trip_us? as f64 / 1e6)));
        self.numbers(KAFKA_ROUND_TRIP, waits);
    }

    fn partitions(&mut self, view: &View<'_>) {
        let partitions = &view.engine.status.partitions;
        let name = |partition: i32| vec![partition.to_string()];
        let lags = || view.sampled.lag.known(view.now_ns).into_iter().flatten();
        self.numbers(LAG_RECORDS, lags().map(|(&partition, lag)| (name(partition), lag.records as f64)));
        self.numbers(
            OPEN_RECORDS,
            lags().map(|(&partition, lag)| (name(partition), lag.open_records as f64)),
        );
        self.numbers(LAG, lags().map(|(&partition, lag)| (name(partition), lag.seconds)));
        let delays = partitions.iter().filter_map(|partition| {
            let delay_ns = view.now_ns.checked_sub(partition.watermark_ns?)?;
            Some((name(partition.partition), delay_ns as f64 / 1e9))
        });
        self.numbers(WATERMARK_DELAY, delays);
        let mut each = |metric, value: fn(&warptape_engine::PartitionStatus) -> f64| {
            self.numbers(
                metric,
                partitions.iter().map(|partition| (name(partition.partition), value(partition))),
            );
        };
        each(PARTITION_ROWS, |partition| partition.waiting_rows as f64);
        each(PARTITION_BYTES, |partition| partition.waiting_bytes as f64);
        each(PAUSED, |partition| f64::from(u8::from(partition.is_paused)));
        each(RESTORED, |partition| f64::from(u8::from(partition.is_restored)));
    }

    fn latencies(&mut self, view: &View<'_>) {
        let latencies = &view.watched.progress.latencies;
        for (metric, histogram) in [
            (TICK_TO_SIGNAL, &latencies.tick_to_signal),
            (READ_TO_SIGNAL, &latencies.read_to_signal),
            (READ_TO_SEAL, &latencies.read_to_seal),
            (COMMIT, &latencies.commit),
            (RISK_ENQUEUE, &latencies.risk_enqueue),
        ] {
            self.0.push((metric, Samples::Distribution(histogram.clone())));
        }
        let tally = &view.engine.status.tally;
        for (metric, times) in [
            (BATCH_WAIT, &tally.batch_waits),
            (BATCH_SERVICE, &tally.batch_service),
            (PREDICTION_ERROR, &tally.prediction_errors),
        ] {
            self.0.push((metric, Samples::Times(times.clone())));
        }
    }

    fn commits(&mut self, view: &View<'_>) {
        let since_s = |since_ns: Option<i64>| since_ns.map_or(0.0, |since_ns| view.lasts_s(since_ns));
        let (engine, committed) = (&view.engine, &view.engine.committed);
        let outcomes = [
            ("committed", view.watched.progress.commits.load(Ordering::Relaxed)),
            ("aborted", committed.aborts),
        ];
        self.numbers(TRANSACTIONS, outcomes.map(|(outcome, count)| (vec![outcome.to_owned()], count as f64)));
        self.count(LOOKED_UP, committed.looked_up);
        self.number(COMMITTING, since_s(engine.status.committing_since_ns));
        self.number(ABORTING, since_s(engine.status.aborting_since_ns));
        self.number(LOG_LOST, view.lost.as_ref().map_or(0.0, |lost| lost.since.elapsed().as_secs_f64()));
        if let Some(disk) = view.sampled.disk {
            self.count(DISK_FREE, disk.free);
            self.count(DISK_SIZE, disk.size);
        }
    }

    fn decisions(&mut self, view: &View<'_>) {
        let tally = &view.engine.status.tally;
        self.counts(DECISIONS, &tally.decisions);
        self.counts(BATCHES, &tally.batches);
        self.counts(MOVES, &tally.moves);
    }

    fn lanes(&mut self, view: &View<'_>) {
        let lanes = &view.engine.status.lanes;
        let name = |lane: i32| vec![lane.to_string(), view.watched.device_of(lane).to_owned()];
        let states = [
            (BreakerState::Closed, "closed"),
            (BreakerState::HalfOpen, "half_open"),
            (BreakerState::Open, "open"),
        ];
        let breakers = lanes.iter().flat_map(|lane| {
            states.map(|(state, word)| {
                let labels = name(lane.lane()).into_iter().chain([word.to_owned()]).collect();
                (labels, f64::from(u8::from(lane.breaker == state)))
            })
        });
        let breakers: Vec<_> = breakers.collect();
        let mut each = |metric, value: fn(&warptape_engine::LaneStatus) -> f64| {
            self.numbers(metric, lanes.iter().map(|lane| (name(lane.lane()), value(lane))));
        };
        each(LANE_READY, |lane| f64::from(u8::from(lane.load.ready)));
        each(LANE_IN_SERVICE, |lane| f64::from(u8::from(lane.load.in_service)));
        each(LANE_GROUPS, |lane| f64::from(lane.load.groups_placed));
        each(LANE_WAITING, |lane| lane.load.waiting_rows as f64);
        each(LANE_IN_FLIGHT, |lane| lane.load.in_flight_rows as f64);
        each(LANE_IN_FLIGHT_BYTES, |lane| lane.load.in_flight_bytes as f64);
        each(LANE_BATCHES, |lane| f64::from(lane.load.in_flight_batches));
        self.numbers(BREAKER, breakers);
        let stalls = (0..).zip(&view.sampled.stalls);
        self.numbers(LANE_STALLED, stalls.map(|(lane, &stalled_s)| (name(lane), stalled_s)));
        let figures = || (0..).zip(&view.watched.progress.lanes);
        let rows = |of: &crate::runtime::LaneProgress| of.rows.load(Ordering::Relaxed) as f64;
        self.numbers(LANE_ROWS, figures().map(|(lane, of)| (name(lane), rows(of))));
        let busy_s = |of: &crate::runtime::LaneProgress| of.busy_ns.load(Ordering::Relaxed) as f64 / 1e9;
        self.numbers(LANE_BUSY, figures().map(|(lane, of)| (name(lane), busy_s(of))));
    }

    fn risk(&mut self, view: &View<'_>) {
        let status = &view.engine.status;
        self.count(RISK_REQUESTS, view.watched.progress.risk_requests.load(Ordering::Relaxed));
        let results = &view.engine.committed.risk_results;
        let all = TASK_CLASSES
            .iter()
            .flat_map(|&class| REQUEST_OUTCOMES.iter().map(move |&outcome| (class, outcome)));
        let counted = all.map(|(class, outcome)| {
            let count = results.get(&(class, outcome)).copied().unwrap_or_default();
            (vec![class.to_owned(), outcome.to_owned()], count as f64)
        });
        self.numbers(RISK_RESULTS, counted);
        self.counts(RISK_ADMITTED, &status.tally.admitted);
        self.counts(RISK_REJECTED, &status.tally.rejected);
        self.count(RISK_MISSES, status.tally.deadline_misses);
        self.count(RISK_SHED, status.tally.shed);
        self.numbers(
            QUOTA_TASKS,
            status.quotas.iter().map(|(name, tasks, _)| (vec![name.clone()], *tasks as f64)),
        );
        let limited = status.quotas.iter().filter(|(_, _, limit)| *limit > 0);
        self.numbers(QUOTA_LIMIT, limited.map(|(name, _, limit)| (vec![name.clone()], *limit as f64)));
        self.count(RISK_TASKS, status.tasks as u64);
        self.number(RISK_WAITING, f64::from(status.tasks_waiting));
        let choices = status.tally.shadows.iter().flat_map(|of| {
            let labels = move |choice: &str| vec![of.policy.clone(), choice.to_owned()];
            of.choices.iter().map(move |(choice, count)| (labels(choice), count as f64))
        });
        self.numbers(SHADOW, choices);
    }

    fn autoscale(&mut self, view: &View<'_>) {
        let Some(wish) = view.engine.status.wish else { return };
        self.number(LANES_WANTED, f64::from(wish.lanes));
        self.number(LANES_LOAD, wish.load_e6 as f64 / 1e6);
        if let Some(error_ppm) = wish.error_ppm {
            self.number(FORECAST_ERROR, error_ppm as f64 / 1e6);
        }
    }

    fn hot_state(&mut self, view: &View<'_>) {
        let Some(figures) = &view.hot_state else { return };
        self.number(HOT_UP, f64::from(u8::from(figures.connection == Connection::Up)));
        self.count(HOT_WRITTEN, figures.written);
        self.count(HOT_BEHIND, figures.behind);
        self.count(HOT_REBUILDS, figures.rebuilds);
        self.count(HOT_LOSSES, figures.losses);
    }

    fn devices(&mut self, view: &View<'_>) {
        let samples = &view.engine.samples;
        if samples.is_empty() {
            return;
        }
        let mut each = |metric, value: fn(&warptape_kernels::device::Sample) -> Option<f64>| {
            let known =
                samples.iter().filter_map(|(device, sample)| Some((vec![device.clone()], value(sample)?)));
            self.numbers(metric, known);
        };
        each(MEMORY_USED, |sample| sample.memory_used_bytes.map(|bytes| bytes as f64));
        each(MEMORY_FREE, |sample| sample.memory_free_bytes.map(|bytes| bytes as f64));
        each(UTILIZATION, |sample| sample.utilization_percent.map(|percent| f64::from(percent) / 100.0));
        each(TEMPERATURE, |sample| sample.temperature_c.map(f64::from));
        each(SLOWDOWN, |sample| sample.slowdown_c.map(f64::from));
        each(POWER, |sample| sample.power_mw.map(|milliwatts| f64::from(milliwatts) / 1e3));
        each(SM_CLOCK, |sample| sample.sm_clock_mhz.map(|megahertz| f64::from(megahertz) * 1e6));
        each(MEMORY_CLOCK, |sample| sample.memory_clock_mhz.map(|megahertz| f64::from(megahertz) * 1e6));
        each(ECC, |sample| sample.ecc_errors_uncorrected.map(|errors| errors as f64));
        let reasons = samples.iter().flat_map(|(device, sample)| {
            let named = throttle_reasons(sample.throttle_bits.unwrap_or_default());
            named.map(move |reason| (vec![device.clone(), reason.to_owned()], 1.0))
        });
        self.numbers(THROTTLED, reasons);
        let xids = &view.engine.xids;
        self.numbers(XID, xids.iter().map(|(device, &count)| (vec![device.clone()], count as f64)));
    }

    pub(super) fn usage(&mut self) {
        let usage = usage();
        self.number(CPU, usage.cpu_s);
        if let Some(bytes) = usage.resident_bytes {
            self.count(RESIDENT, bytes);
        }
        if let Some(bytes) = usage.limit_bytes {
            self.count(MEMORY_LIMIT, bytes);
        }
        if let Some(files) = usage.open_files {
            self.count(FILES, files);
        }
    }
}

/// Names of NVML's bits for clock limits. An idle GPU, and one at its highest clocks, are not throttled.
const THROTTLE_REASONS: &[(u32, &str)] = &[
    (1, "applications_clocks_setting"),
    (2, "software_power_cap"),
    (3, "hardware_slowdown"),
    (4, "sync_boost"),
    (5, "software_thermal_slowdown"),
    (6, "hardware_thermal_slowdown"),
    (7, "hardware_power_brake_slowdown"),
    (8, "display_clocks_setting"),
];

/// Returns the names of the reasons for throttling.
pub(crate) fn throttle_reasons(bits: u64) -> impl Iterator<Item = &'static str> {
    THROTTLE_REASONS.iter().filter(move |(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name)
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (metric, samples) in &self.0 {
            let unit = (!metric.unit.is_empty()).then(|| Unit::Other(metric.unit.to_owned()));
            let kind = match metric.kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
                MetricKind::Histogram => MetricType::Histogram,
            };
            let encoder = encoder.encode_descriptor(metric.name, metric.help, unit.as_ref(), kind)?;
            samples.encode(metric, encoder)?;
        }
        Ok(())
    }
}

impl Samples {
    fn encode(&self, metric: &Metric, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Numbers(samples) => {
                for (values, value) in samples {
                    let labels: Vec<_> =
                        metric.labels.iter().copied().zip(values.iter().map(String::as_str)).collect();
                    let mut encoder = encoder.encode_family(&labels)?;
                    match metric.kind {
                        MetricKind::Counter => encoder.encode_counter::<NoLabelSet, f64, f64>(value, None)?,
                        MetricKind::Gauge | MetricKind::Histogram => encoder.encode_gauge(value)?,
                    }
                }
                Ok(())
            }
            Self::Distribution(histogram) => histogram.encode(encoder),
            Self::Times(times) => {
                let bound = |us: Option<u64>| us.map_or(f64::INFINITY, |us| us as f64 / 1e6);
                let buckets: Vec<_> = times.buckets().map(|(us, count)| (bound(us), count)).collect();
                let sum_s = times.sum_ns() as f64 / 1e9;
                encoder.encode_histogram::<NoLabelSet>(sum_s, times.count(), &buckets, None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::view::tests::full_view;
    use super::*;

    fn text(format: Format) -> String {
        let watched = full_view::watched();
        String::from_utf8(scrape(full_view::view(&watched), format).expect("it can be written"))
            .expect("UTF-8")
    }

    #[test]
    fn a_full_scrape_has_every_metric_once_with_its_labels() {
        for format in [Format::Text, Format::OpenMetrics] {
            let text = text(format);
            for metric in METRICS {
                let name = metric.full_name();
                // In OpenMetrics, a counter's family has a name without `_total`.
                let family = match format {
                    Format::OpenMetrics => name.trim_end_matches("_total"),
                    _ => &name,
                };
                let declared =
                    text.lines().filter(|line| line.starts_with(&format!("# TYPE {family} "))).count();
                assert_eq!(declared, 1, "{family} in\n{text}");
                let suffix = if metric.kind == MetricKind::Histogram { "_count" } else { "" };
                let sample = text.lines().find(|line| {
                    line.strip_prefix(&format!("{name}{suffix}"))
                        .is_some_and(|rest| rest.starts_with(['{', ' ']))
                });
                let sample = sample.unwrap_or_else(|| panic!("no sample of {name} in\n{text}"));
                let labels: Vec<&str> = match sample.split_once('{') {
                    Some((_, rest)) => rest
                        .split("\",")
                        .filter_map(|label| label.split_once("=\""))
                        .map(|(name, _)| name)
                        .collect(),
                    None => Vec::new(),
                };
                assert_eq!(labels, metric.labels, "{sample}");
            }
            let declared: BTreeSet<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
            assert_eq!(declared.len(), METRICS.len());
        }
        assert!(text(Format::OpenMetrics).ends_with("# EOF\n"));
    }

    #[test]
    fn a_scrape_asks_for_its_format() {
        // Headers that Prometheus 2.42 sends without and with native histograms.
        let plain = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let native = format!(
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,{plain}"
        );
        assert_eq!(Format::accepted(plain), Format::OpenMetrics);
        #[cfg(feature = "native-histograms")]
        assert_eq!(Format::accepted(&native), Format::Protobuf);
        // A build without protobuf answers in the next format that the header names.
        #[cfg(not(feature = "native-histograms"))]
        assert_eq!(Format::accepted(&native), Format::OpenMetrics);
        assert_eq!(Format::accepted("*/*"), Format::Text);
        assert_eq!(Format::accepted(""), Format::Text);
    }

    #[test]
    fn bits_of_nvml_are_named() {
        let named: Vec<&str> = throttle_reasons(1 << 6 | 1 << 2 | 1).collect();
        assert_eq!(named, ["software_power_cap", "hardware_thermal_slowdown"]);
    }
}
