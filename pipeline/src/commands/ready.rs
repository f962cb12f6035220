//! `warptape ready`: whether a running pipeline is, for health checks of containers and for scripts.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

use crate::cli::{DIVERGED, ReadyArgs};
use crate::endpoint::{DEFAULT_PORT, reachable};
use crate::printable::{printable_line, stdout};
use crate::settings::EndpointSettings;

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Asks, and prints the answer.
pub fn execute(args: &ReadyArgs, settings: &EndpointSettings) -> anyhow::Result<ExitCode> {
    let url = args.url.clone().unwrap_or_else(|| url_of(settings));
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(ANSWER_MAX))
        .http_status_as_error(false)
        .tls_config(tls)
        .build()
        .new_agent();
    let asked = agent.get(&url).call();
    let mut answer = asked
        .with_context(|| format!("{url} does not answer: does `warptape run` listen there (--listen)?"))?;
    let text =
        answer.body_mut().read_to_string().with_context(|| format!("{url} does not answer in words"))?;
    let is_ready = answer.status().is_success();
    let mut out = stdout();
    writeln!(out, "{}", printable_line(text.trim_end()))?;
    out.flush()?;
    Ok(if is_ready { ExitCode::SUCCESS } else { ExitCode::from(DIVERGED) })
}

/// Where the pipeline of these settings tells whether it is ready.
fn url_of(settings: &EndpointSettings) -> String {
    let default = SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT));
    let address = settings.listen.parse().map_or(default, reachable);
    let scheme = if settings.tls_certificate.as_os_str().is_empty() { "http" } else { "https" };
    format!("{scheme}://{address}/readyz")
}
