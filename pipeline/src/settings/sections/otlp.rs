//! Where traces and metrics go.

use std::time::Duration;

use super::super::declaration::{integer, secret, section, text, whole};
use super::super::secret::Secret;
use super::super::syntax;

section! {
    "otlp": "Traces and metrics for those who collect them by OpenTelemetry's protocol, OTLP over HTTP.";
    /// Where traces and metrics go.
    pub struct OtlpSettings {
        /// Address of a receiver, such as `http://127.0.0.1:4318`: `/v1/traces` and `/v1/metrics` are put behind it. Where it is
        /// empty, nothing is exported.
        endpoint: String = text(
            "",
            "a string of the form http://HOST:PORT or https://HOST:PORT, with a path if need be and without user and password, or an empty one",
            syntax::is_registry_url,
            |url| url.trim_end_matches('/').to_owned(),
        );
        /// Headers of each request to the receiver, as `NAME=VALUE,NAME=VALUE`, such as `authorization=Bearer …`.
        headers: Option<Secret> = secret();
        /// How many of a million tick records are traced on their way to their signals. Which ones follows from partition
        /// and offset.
        sample_ppm: u32 = integer(1_000, 0..=1_000_000, whole);
        /// How many of a million risk requests are traced on their way to their results; likewise.
        request_sample_ppm: u32 = integer(1_000_000, 0..=1_000_000, whole);
        /// Time between two exports of the metrics, in seconds.
        metrics_interval as metrics_interval_s: Duration = integer(10, 1..=3_600, |seconds| {
            Duration::from_secs(seconds as u64)
        });
    }
}
