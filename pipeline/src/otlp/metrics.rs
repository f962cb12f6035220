//! The counters of a run as OpenTelemetry metrics, which are looked at whenever they are exported.

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
use crate::runtime::{LaneProgress, Progress};
use crate::settings::OtlpSettings;
use crate::traces::SpanCounts;

/// Starts the thread that exports them.
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
    count(&meter, "warptape.otlp.spans.lost", "{span}", "Spans that could not be exported", move || {
        counts.lost.load(Ordering::Relaxed)
    });
    Ok(provider)
}

/// Name, unit, meaning, and which counter of a run it is.
type Counter = (&'static str, &'static str, &'static str, fn(&Progress) -> &AtomicU64);

fn declare(meter: &Meter, progress: &Arc<Progress>) {
    let counters: [Counter; 8] = [
        ("warptape.ticks", "{tick}", "Ticks accepted, late ones included", |progress| &progress.ticks),
        ("warptape.ticks.late", "{tick}", "Ticks older than the allowed lateness", |progress| &progress.late),
        ("warptape.dead_letters", "{record}", "Records that could not be read", |progress| {
            &progress.dead_letters
        }),
        ("warptape.trades.repeated", "{trade}", "Trades whose id their symbol had before", |progress| {
            &progress.repeated_trades
        }),
        ("warptape.risk.requests", "{request}", "Risk requests read", |progress| &progress.risk_requests),
        ("warptape.signals", "{signal}", "Signals committed", |progress| &progress.signals),
        ("warptape.decisions", "{decision}", "Decisions of the scheduler", |progress| &progress.decisions),
        ("warptape.commits", "{transaction}", "Transactions committed", |progress| &progress.commits),
    ];
    for (name, unit, about, counter) in counters {
        let progress = progress.clone();
        count(meter, name, unit, about, move || counter(&progress).load(Ordering::Relaxed));
    }
    let of_waiting = progress.clone();
    meter
        .i64_observable_up_down_counter("warptape.rows.waiting")
        .with_unit("{row}")
        .with_description("Rows that wait on the host")
        .with_callback(move |rows| rows.observe(of_waiting.waiting_rows.load(Ordering::Relaxed), &[]))
        .build();
    let of_busy = progress.clone();
    meter
        .f64_observable_counter("warptape.lane.busy")
        .with_unit("s")
        .with_description("Time that a lane has worked")
        .with_callback(move |busy| {
            by_lane(&of_busy, busy, |lane| lane.busy_ns.load(Ordering::Relaxed) as f64 / 1e9);
        })
        .build();
    let of_rows = progress.clone();
    meter
        .u64_observable_counter("warptape.lane.rows")
        .with_unit("{row}")
        .with_description("Rows that a lane has done")
        .with_callback(move |rows| by_lane(&of_rows, rows, |lane| lane.rows.load(Ordering::Relaxed)))
        .build();
    let of_flight = progress.clone();
    meter
        .i64_observable_up_down_counter("warptape.lane.rows.in_flight")
        .with_unit("{row}")
        .with_description("Rows that a lane has and has not done")
        .with_callback(move |rows| {
            by_lane(&of_flight, rows, |lane| lane.in_flight_rows.load(Ordering::Relaxed));
        })
        .build();
}

fn count(
    meter: &Meter,
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    read: impl Fn() -> u64 + Send + Sync + 'static,
) {
    meter
        .u64_observable_counter(name)
        .with_unit(unit)
        .with_description(about)
        .with_callback(move |counter| counter.observe(read(), &[]))
        .build();
}

fn by_lane<T>(progress: &Progress, instrument: &dyn AsyncInstrument<T>, read: impl Fn(&LaneProgress) -> T) {
    for (lane, figures) in (0_i64..).zip(&progress.lanes) {
        instrument.observe(read(figures), &[KeyValue::new("warptape.lane", lane)]);
    }
}
