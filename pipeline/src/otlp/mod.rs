//! Traces and metrics for an OpenTelemetry receiver, sent by OTLP over HTTP.
//!
//! ```text
//!  engine thread ──traces, bounded, never waits──► exporter thread ──POST /v1/traces──►  receiver
//!  counters of the run ◄──looks now and then── metrics thread ──────POST /v1/metrics──►
//! ```
//!
//! A request that a receiver temporarily cannot accept is retried for some seconds, while further traces wait. If the
//! receiver is slow, hangs or refuses for longer, data is lost; the losses are counted and reported. They have no other
//! effect: the engine never waits for the receiver, and the process's end waits at most [`STOP_MAX`]. `runtime::tracer`
//! decides which records are traced, and what a trace contains.

mod client;
mod metrics;
mod spans;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, select};
use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};

use crate::runtime::Progress;
use crate::settings::Settings;
use crate::traces::{SpanCounts, Trace, TraceSender};
use client::{HttpSender, MetricsSender};

/// Greatest number of traces that wait for the exporter.
const WAITING_MAX: usize = 1_024;
/// Approximate greatest number of spans in one request.
const REQUEST_SPANS_MAX: usize = 512;
/// Longest time for which spans wait to be sent with others.
const GATHER_MAX: Duration = Duration::from_secs(1);
/// Longest time for which the process's end waits for unsent data.
const STOP_MAX: Duration = Duration::from_secs(2);

/// The export of a running process, which ends when this is dropped.
pub struct Otlp {
    traces: TraceSender,
    /// Signals the end of the process.
    stop: Sender<()>,
    /// Disconnected once the exporter has sent everything.
    exporter: Receiver<()>,
    sender: HttpSender,
    /// Sends the metrics at intervals, on its own thread.
    meters: Option<SdkMeterProvider>,
    counts: Arc<SpanCounts>,
}

impl Otlp {
    /// Starts the export of a run's counters and traces; `None` if no receiver is configured.
    pub fn start(settings: &Settings, progress: &Arc<Progress>) -> anyhow::Result<Option<Self>> {
        let otlp = &settings.otlp;
        if otlp.endpoint.is_empty() {
            return Ok(None);
        }
        let sender = HttpSender::new(otlp.headers.as_ref())?;
        let resource = Resource::builder_empty()
            .with_attributes([
                KeyValue::new("service.name", "warptape"),
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
                KeyValue::new("service.namespace", settings.engine.group.clone()),
                KeyValue::new("service.instance.id", settings.engine.node.clone()),
            ])
            .build();
        let mut spans = SpanExporter::builder()
            .with_http()
            .with_http_client(sender.clone())
            .with_protocol(Protocol::HttpBinary)
            .with_retry_policy(RetryPolicy::disabled())
            .with_timeout(client::ANSWER_TIMEOUT)
            .with_endpoint(format!("{}/v1/traces", otlp.endpoint))
            .build()?;
        spans.set_resource(&resource);
        let counts = Arc::new(SpanCounts::default());
        let meters = metrics::start(
            otlp,
            MetricsSender::new(sender.clone(), &otlp.endpoint),
            resource,
            progress,
            &counts,
        )?;
        let (waiting, traces) = bounded(WAITING_MAX);
        let (stop, stopped) = bounded(1);
        let (alive, exporter) = bounded(0);
        let of_thread = Exporter {
            spans,
            endpoint: otlp.endpoint.clone(),
            gathered: Vec::new(),
            counts: counts.clone(),
            fails: false,
        };
        thread::Builder::new()
            .name("otlp".to_owned())
            .spawn(move || {
                let _alive: Sender<()> = alive;
                of_thread.run(&traces, &stopped);
            })
            .context("cannot start the thread that exports traces")?;
        let traces = TraceSender::new(waiting, counts.clone(), otlp.sample_ppm, otlp.request_sample_ppm);
        Ok(Some(Self { traces, stop, exporter, sender, meters: Some(meters), counts }))
    }

    /// Returns a sender for traces.
    pub fn traces(&self) -> TraceSender {
        self.traces.clone()
    }

    /// Sends the remaining data, if the receiver accepts it in time.
    pub fn end(self) {
        drop(self);
    }
}

impl Drop for Otlp {
    /// Waits until the remaining data is sent, if the receiver accepts it in time. Reports losses.
    fn drop(&mut self) {
        let deadline = Instant::now() + STOP_MAX;
        self.sender.end();
        // The exporter checks for this message when it is idle; one message is enough.
        let _ = self.stop.try_send(());
        let (alive, metrics) = bounded::<()>(0);
        if let Some(meters) = self.meters.take() {
            // The call may wait for the receiver forever, so its thread is not joined.
            let shut = thread::Builder::new().name("otlp-metrics".to_owned()).spawn(move || {
                let _alive = alive;
                // An error means that the receiver is gone, which the last export of spans reports too.
                drop(meters.shutdown());
            });
            drop(shut);
        }
        let ends = [&self.exporter, &metrics].map(|end| end.recv_deadline(deadline));
        if ends.contains(&Err(RecvTimeoutError::Timeout)) {
            tracing::warn!(
                "the receiver of traces and metrics does not answer; the process ends without waiting for it"
            );
        }
        let SpanCounts { lost, under_way } = &*self.counts;
        match lost.load(Ordering::Relaxed) + under_way.load(Ordering::Relaxed) {
            0 => {}
            spans => tracing::warn!(spans, "spans were not exported"),
        }
    }
}

/// State of the exporter thread.
struct Exporter {
    spans: SpanExporter,
    endpoint: String,
    gathered: Vec<SpanData>,
    counts: Arc<SpanCounts>,
    /// True if the last export failed.
    fails: bool,
}

impl Exporter {
    fn run(mut self, traces: &Receiver<Trace>, stopped: &Receiver<()>) {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else {
            return tracing::error!(
                "traces are not exported: the process has reached its limit of open files"
            );
        };
        let mut due = Instant::now() + GATHER_MAX;
        loop {
            let ends = select! {
                recv(traces) -> trace => match trace {
                    Ok(trace) => {
                        self.gathered.extend(trace.into_spans());
                        false
                    }
                    Err(_) => true,
                },
                recv(stopped) -> _ => true,
                default(due.saturating_duration_since(Instant::now())) => false,
            };
            if ends {
                break;
            }
            if self.gathered.len() >= REQUEST_SPANS_MAX || Instant::now() >= due {
                runtime.block_on(self.export());
                due = Instant::now() + GATHER_MAX;
            }
        }
        let deadline = Instant::now() + STOP_MAX;
        for trace in traces.try_iter() {
            self.gathered.extend(trace.into_spans());
            if self.gathered.len() >= REQUEST_SPANS_MAX && Instant::now() < deadline {
                runtime.block_on(self.export());
            }
        }
        runtime.block_on(self.export());
    }

    /// Sends the gathered spans, and retries for some seconds. Spans that are still unsent are lost.
    async fn export(&mut self) {
        let spans = std::mem::take(&mut self.gathered);
        if spans.is_empty() {
            return;
        }
        let count = spans.len() as u64;
        let exported = self.spans.export(spans).await;
        if exported.is_err() {
            self.counts.lost.fetch_add(count, Ordering::Relaxed);
        }
        self.counts.under_way.fetch_sub(count, Ordering::Relaxed);
        match exported {
            Ok(()) => {
                if std::mem::take(&mut self.fails) {
                    tracing::warn!(endpoint = self.endpoint, "traces are exported again");
                }
            }
            Err(error) if self.fails => tracing::debug!(%error, spans = count, "spans are lost"),
            Err(error) => {
                self.fails = true;
                tracing::warn!(
                    endpoint = self.endpoint, %error,
                    "traces cannot be exported and are lost for now; the pipeline continues"
                );
            }
        }
    }
}
