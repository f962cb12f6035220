//! The HTTP endpoint of a running pipeline.

use std::path::PathBuf;
use std::time::Duration;

use super::super::declaration::{integer, secret, section, text, whole};
use super::super::secret::Secret;
use super::super::syntax;

section! {
    "endpoint": "Where a running pipeline tells over HTTP how it fares: metrics, health, probes.";
    /// The HTTP endpoint.
    pub struct EndpointSettings {
        /// Address to listen on, such as `127.0.0.1:9464`, or `0.0.0.0:9464` for all of the machine's; an empty one: `run` listens
        /// nowhere, and `demo` on 127.0.0.1:9464, or on another port where that one is taken.
        listen: String = text(
            "",
            "an address and a port, such as 127.0.0.1:9464 or [::1]:9464, or an empty string",
            syntax::is_listen_address,
            str::to_owned,
        );
        /// What clients have to present as `Authorization: Bearer TOKEN`, but for /livez and /readyz. Without one, all who reach the
        /// address may read.
        token: Option<Secret> = secret();
        /// File of the certificate that clients see, with those that lead to its authority, in PEM; an empty path: no TLS.
        tls_certificate: PathBuf = text("", "a path, or an empty string", |_| true, |path| PathBuf::from(path));
        /// File of the certificate's private key, in PEM.
        tls_key: PathBuf = text("", "a path, or an empty string", |_| true, |path| PathBuf::from(path));
        /// Lag from which a partition counts as behind in /health, in seconds.
        lag_max as lag_max_s: Duration = integer(15, 1..=86_400, |seconds| Duration::from_secs(seconds as u64));
        /// Percentage of ticks that may be late or dead letters: with more within half a minute, /health says degraded.
        refused_percent_max: u32 = integer(5, 0..=100, whole);
    }
}
