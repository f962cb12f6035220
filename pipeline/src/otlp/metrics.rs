//! A run's counters as OpenTelemetry metrics. Each export reads them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry::{KeyValue, metrics::AsyncInstrument};
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, Protocol, RetryPolicy, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};

use super::client::{ANSWER_TIMEOUT, MetricsSender};
use crate::endpoint::metrics::{
    DEAD, DECISIONS, LANE_BUSY, LANE_IN_FLIGHT, LANE_ROWS, LATE, LOST_SPANS, Metric, REPEATED, RISK_REQUESTS,
    SIGNALS, TICKS, TRANSACTIONS, WAITING_ROWS,
};
use crate::runtime::{LaneProgress, Progress};
use crate::settings::OtlpSettings;
use crate::traces::SpanCounts;

/// Starts the thread that exports the metrics.
pub(super) fn start(
    settings: &OtlpSettings,
    sender: MetricsSender,
    resource: Resource,
    progress: &Arc<Progress>,
    counts: &Arc<SpanCounts>,
) -> Result<SdkMeterProvider, ExporterBuildError> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_http_client(sender)
        .with_protocol(Protocol::HttpBinary)
        .with_retry_policy(RetryPolicy::disabled())
        .with_timeout(ANSWER_TIMEOUT)
        .with_endpoint(format!("{}/v1/metrics", settings.endpoint))
        .build()?;
    let reader = PeriodicReader::builder(exporter).with_interval(settings.metrics_interval).build();
    let provider = SdkMeterProvider::builder().with_resource(resource).with_reader(reader).build();
    let meter = provider.meter("warptape");
    declare(&meter, progress);
    let counts = counts.clone();
    count(&meter, &LOST_SPANS, &[], move || counts.lost.load(Ordering::Relaxed));
    Ok(provider)
}

/// A metric with its labels, and the run's counter that it reports.
type Counter = (Metric, &'static [(&'static str, &'static str)], fn(&Progress) -> &AtomicU64);

const COUNTERS: [Counter; 8] = [
    (TICKS, &[], |progress| &progress.ticks),
    (LATE, &[], |progress| &progress.late),
    (DEAD, &[], |progress| &progress.dead_letters),
    (REPEATED, &[], |progress| &progress.repeated_trades),
    (RISK_REQUESTS, &[], |progress| &progress.risk_requests),
    (SIGNALS, &[], |progress| &progress.signals),
    (DECISIONS, &[], |progress| &progress.decisions),
    (TRANSACTIONS, &[("outcome", "committed")], |progress| &progress.commits),
];

fn declare(meter: &Meter, progress: &Arc<Progress>) {
    for (metric, labels, counter) in &COUNTERS {
        let progress = progress.clone();
        count(meter, metric, labels, move || counter(&progress).load(Ordering::Relaxed));
    }
    let of_waiting = progress.clone();
    meter
        .i64_observable_up_down_counter(WAITING_ROWS.otlp_name())
        .with_unit(WAITING_ROWS.otlp_unit())
        .with_description(WAITING_ROWS.help)
        .with_callback(move |rows| rows.observe(of_waiting.waiting_rows.load(Ordering::Relaxed), &[]))
        .build();
    let of_busy = progress.clone();
    meter
        .f64_observable_counter(LANE_BUSY.otlp_name())
        .with_unit(LANE_BUSY.otlp_unit())
        .with_description(LANE_BUSY.help)
        .with_callback(move |busy| {
            by_lane(&of_busy, busy, |lane| lane.busy_ns.load(Ordering::Relaxed) as f64 / 1e9);
        })
        .build();
    let of_rows = progress.clone();
    meter
        .u64_observable_counter(LANE_ROWS.otlp_name())
        .with_unit(LANE_ROWS.otlp_unit())
        .with_description(LANE_ROWS.help)
        .with_callback(move |rows| by_lane(&of_rows, rows, |lane| lane.rows.load(Ordering::Relaxed)))
        .build();
    let of_flight = progress.clone();
    meter
        .i64_observable_up_down_counter(LANE_IN_FLIGHT.otlp_name())
        .with_unit(LANE_IN_FLIGHT.otlp_unit())
        .with_description(LANE_IN_FLIGHT.help)
        .with_callback(move |rows| {
            by_lane(&of_flight, rows, |lane| lane.in_flight_rows.load(Ordering::Relaxed));
        })
        .build();
}

fn count(
    meter: &Meter,
    metric: &Metric,
    labels: &[(&'static str, &'static str)],
    read: impl Fn() -> u64 + Send + Sync + 'static,
) {
    let labels: Vec<KeyValue> = labels.iter().map(|(name, value)| KeyValue::new(*name, *value)).collect();
    meter
        .u64_observable_counter(metric.otlp_name())
        .with_unit(metric.otlp_unit())
        .with_description(metric.help)
        .with_callback(move |counter| counter.observe(read(), &labels))
        .build();
}

fn by_lane<T>(progress: &Progress, instrument: &dyn AsyncInstrument<T>, read: impl Fn(&LaneProgress) -> T) {
    for (lane, figures) in (0_i64..).zip(&progress.lanes) {
        instrument.observe(read(figures), &[KeyValue::new("warptape.lane", lane)]);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_page_of_logs_lists_what_is_exported() {
        let of_lanes = [LANE_BUSY, LANE_ROWS, LANE_IN_FLIGHT].map(|metric| (metric, "`warptape.lane`"));
        let counters = COUNTERS.map(|(metric, labels, _)| {
            (metric, if labels.is_empty() { "" } else { "`outcome`: `committed`" })
        });
        let others = [WAITING_ROWS, LOST_SPANS].map(|metric| (metric, ""));
        let mut table =
            "| metric | unit | attribute | what it says |\n| --- | --- | --- | --- |\n".to_owned();
        for (metric, attribute) in counters.into_iter().chain(of_lanes).chain(others) {
            let (name, unit, help) = (metric.otlp_name(), metric.otlp_unit(), metric.help);
            table += &format!("| `{name}` | {unit} | {attribute} | {help} |\n");
        }
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/logs.md");
        let page = std::fs::read_to_string(&path).expect("docs/logs.md is there");
        let (begin, end) = ("<!-- otlp metrics: written by a test -->\n", "<!-- /otlp metrics -->\n");
        let (before, rest) = page.split_once(begin).expect("the mark before the table");
        let (listed, after) = rest.split_once(end).expect("the mark behind the table");
        if std::env::var_os("WARPTAPE_UPDATE_EXAMPLE").is_some() {
            std::fs::write(&path, [before, begin, &table, end, after].concat())
                .expect("the page can be written");
            return;
        }
        assert_eq!(listed, table, "run with WARPTAPE_UPDATE_EXAMPLE=1 to write it anew");
    }
}
