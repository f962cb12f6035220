//! Traces and metrics for an OpenTelemetry receiver, by OTLP over HTTP.
//!
//! ```text
//!  engine thread ──traces, bounded, never waits──► exporter thread ──POST /v1/traces──►  receiver
//!  counters of the run ◄──looks now and then── metrics thread ──────POST /v1/metrics──►
//! ```
//!
//! What a receiver does not take for the moment is sent again for some seconds, while further traces wait. One that is slow, hangs or
//! refuses for longer costs what was to be sent to it, which is counted and told, and nothing else: the
//! engine does not wait for it, and the end of the process no longer than [`STOP_MAX`]. What a trace is of, and which ones there are,
//! is decided in `runtime::tracer`.

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

/// Traces that may wait for the exporter.
const WAITING_MAX: usize = 1_024;
/// Spans of one request, about.
const REQUEST_SPANS_MAX: usize = 512;
/// How long spans wait for others to be sent with.
const GATHER_MAX: Duration = Duration::from_secs(1);
/// How long the end of the process waits for what is still to be sent.
const STOP_MAX: Duration = Duration::from_secs(2);

/// The export of a running process, until it is dropped.
pub struct Otlp {
    traces: TraceSender,
    /// Told that the process ends.
    stop: Sender<()>,
    /// Disconnected when the exporter has sent everything.
    exporter: Receiver<()>,
    sender: HttpSender,
    /// Sends the metrics now and then, with a thread of its own.
    meters: Option<SdkMeterProvider>,
    counts: Arc<SpanCounts>,
}

impl Otlp {
    /// Starts to export what a run counts and traces; nothing where no receiver is configured.
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
            .context("the system can start no thread that exports traces")?;
        let traces = TraceSender::new(waiting, counts.clone(), otlp.sample_ppm, otlp.request_sample_ppm);
        Ok(Some(Self { traces, stop, exporter, sender, meters: Some(meters), counts }))
    }

    /// Where traces are handed over.
    pub fn traces(&self) -> TraceSender {
        self.traces.clone()
    }

    /// Sends what is left, if the receiver takes it in time.
    pub fn end(self) {
        drop(self);
    }
}

impl Drop for Otlp {
    /// Has sent what is left, if the receiver takes it in time, and says what was lost.
    fn drop(&mut self) {
        let deadline = Instant::now() + STOP_MAX;
        self.sender.end();
        // The exporter looks for it when it has nothing else to do, and is told once.
        let _ = self.stop.try_send(());
        let (alive, metrics) = bounded::<()>(0);
        if let Some(meters) = self.meters.take() {
            // It waits for the receiver without an end in sight, so nobody waits for it.
            let shut = thread::Builder::new().name("otlp-metrics".to_owned()).spawn(move || {
                let _alive = alive;
                // The receiver may be gone, of which the last export of spans tells as well.
                drop(meters.shutdown());
            });
            drop(shut);
        }
        let ends = [&self.exporter, &metrics].map(|end| end.recv_deadline(deadline));
        if ends.contains(&Err(RecvTimeoutError::Timeout)) {
            tracing::warn!(
                "the receiver of traces and metrics does not answer, and is not waited for any longer"
            );
        }
        let SpanCounts { lost, under_way } = &*self.counts;
        match lost.load(Ordering::Relaxed) + under_way.load(Ordering::Relaxed) {
            0 => {}
            spans => tracing::warn!(spans, "spans were not exported"),
        }
    }
}

/// What the exporter thread owns.
struct Exporter {
    spans: SpanExporter,
    endpoint: String,
    gathered: Vec<SpanData>,
    counts: Arc<SpanCounts>,
    /// Whether the last export failed.
    fails: bool,
}

impl Exporter {
    fn run(mut self, traces: &Receiver<Trace>, stopped: &Receiver<()>) {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else {
            return tracing::error!("traces are not exported: the system gives no more files");
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

    /// Sends what was gathered, again for some seconds if need be. What cannot be sent then is lost.
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
                    "traces cannot be exported and are lost until they can; the pipeline goes on"
                );
            }
        }
    }
}
