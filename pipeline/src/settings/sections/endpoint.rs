//! The HTTP endpoint of a running pipeline.

use std::path::PathBuf;
use std::time::Duration;

use super::super::declaration::{choice, integer, list, secret, section, text, whole};
use super::super::secret::Secret;
use super::super::syntax;

/// Greatest number of host names of an endpoint.
const HOSTS_MAX: usize = 64;

/// Pages that may be read from an endpoint without a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unguarded {
    /// All pages.
    #[default]
    Pages,
    /// Only liveness and readiness.
    Probes,
}

section! {
    "endpoint": "The HTTP endpoint of a running pipeline: metrics, health, probes and commands.";
    /// The HTTP endpoint.
    pub struct EndpointSettings {
        /// Address to listen on, such as `127.0.0.1:9464`, or `0.0.0.0:9464` for all addresses of the machine. If it is
        /// empty, `run` does not listen. `demo` then listens on 127.0.0.1:9464, or on another port if that one is
        /// taken.
        listen: String = text(
            "",
            "an address and a port, such as 127.0.0.1:9464 or [::1]:9464, or an empty string",
            syntax::is_listen_address,
            str::to_owned,
        );
        /// Names by which clients address it besides localhost and addresses, such as `tape.example.com`. A request by
        /// another name is refused unless it has the token. Otherwise a page elsewhere could point its own name here,
        /// and read what a browser here reaches.
        hosts: Vec<String> = list(
            &[],
            HOSTS_MAX,
            "a name of letters, digits, hyphens and dots",
            syntax::is_host_name,
            |names| names.iter().map(|name| name.to_ascii_lowercase()).collect(),
        );
        /// Token that clients must present as `Authorization: Bearer TOKEN`, except for /livez and /readyz. Without
        /// one, all who reach the address may read.
        token: Option<Secret> = secret();
        /// Pages that may be read without a `token`: `pages`, all of them, or `probes`, /livez and /readyz alone, as in
        /// the container's image.
        unguarded: Unguarded = choice(&["pages", "probes"], |word| match word {
            "pages" => Unguarded::Pages,
            _ => Unguarded::Probes,
        });
        /// File of the certificate that clients see and of its chain up to its authority, in PEM; an empty path: no
        /// TLS.
        tls_certificate: PathBuf = text("", "a path, or an empty string", |_| true, |path| PathBuf::from(path));
        /// File of the certificate's private key, in PEM.
        tls_key: PathBuf = text("", "a path, or an empty string", |_| true, |path| PathBuf::from(path));
        /// Share of a core that may verify the log beside the pipeline, in percent; 0: none. `demo` uses 10 if it is 0.
        /// The live page shows the progress. The verifier has the state of the stages in memory once more.
        verify_percent: u32 = integer(0, 0..=100, whole);
        /// Lag from which a partition counts as behind in /health, in seconds.
        lag_max as lag_max_s: Duration = integer(15, 1..=86_400, |seconds| Duration::from_secs(seconds as u64));
        /// Percentage of ticks that may be late or dead letters; if more are within half a minute, /health says
        /// degraded.
        refused_percent_max: u32 = integer(5, 0..=100, whole);
    }
}
