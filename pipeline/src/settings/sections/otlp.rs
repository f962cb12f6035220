//! Export of traces and metrics.

use std::time::Duration;

use super::super::declaration::{integer, secret, section, text, whole};
use super::super::secret::Secret;
use super::super::syntax;

section! {
    "otlp": "Export of traces and metrics to an OpenTelemetry collector, by OTLP over HTTP.";
    /// Export of traces and metrics.
    pub struct OtlpSettings {
        /// Address of a receiver, such as `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are appended. An
        /// empty address: no export.
        endpoint: String = text(
            "",
            "a string of the form http://HOST:PORT or https://HOST:PORT, optionally with a path, without user and password, or an empty string",
            syntax::is_registry_url,
            |url| url.trim_end_matches('/').to_owned(),
        );
        /// Headers of each request to the receiver, as `NAME=VALUE,NAME=VALUE`, such as `authorization=Bearer …`.
        headers: Option<Secret> = secret();
        /// Tick records that are traced on their way to their signals, per million. Partition and offset determine the
        /// choice.
        sample_ppm: u32 = integer(1_000, 0..=1_000_000, whole);
        /// Risk requests that are traced on their way to their results, per million.
        request_sample_ppm: u32 = integer(1_000_000, 0..=1_000_000, whole);
        /// Time between two exports of the metrics, in seconds.
        metrics_interval as metrics_interval_s: Duration = integer(10, 1..=3_600, |seconds| {
            Duration::from_secs(seconds as u64)
        });
    }
}
