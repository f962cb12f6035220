//! The HTTP client of the pipeline: trusted authorities and timeouts.

use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

/// Creates a client with these limits on the wait for a connection and for a whole answer. It trusts the system's
/// authorities, which may include a company's own. A failure status is returned as an answer, not as an error.
pub(crate) fn http_agent(connect_max: Duration, answer_max: Duration) -> Agent {
    Agent::config_builder()
        .timeout_connect(Some(connect_max))
        .timeout_global(Some(answer_max))
        .http_status_as_error(false)
        .tls_config(
            TlsConfig::builder()
                .root_certs(RootCerts::PlatformVerifier)
                .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .build(),
        )
        .user_agent(concat!("warptape/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}
