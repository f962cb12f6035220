//! The HTTP endpoint of a running pipeline, or of a verifier: metrics, health, probes.
//!
//! ```text
//!   engine ──► Progress ─┐
//!   log watch, hot state ┼─► View ──► metrics   /metrics
//!   Sampler: lag, rates ─┘     └────► health    /livez /readyz /health /gpu-health
//!                                     reports   /gpu-memory /performance-metrics
//!   log ◄──────────────────────────────► control   POST /control
//!   log, View ─────────────────────────► live      / /live /candles.json /why.txt
//! ```
//!
//! A verifier's pages are made from its thread's reports ([`VerifierProgress`]).
//!
//! The endpoint decides nothing: it reads the pipeline's state, and passes commands through the log, as `warptape
//! control` does. Pages are made at most a few times a second, however often they are requested.

mod connections;
mod control;
mod health;
mod host;
mod http;
mod inside;
pub mod live;
pub(crate) mod metrics;
mod openapi;
mod pages;
mod process;
mod reports;
mod sampler;
mod scrape;
mod tls;
mod verifier;
mod view;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use thiserror::Error;
use tokio::sync::oneshot;
use warptape_eventlog::EventLog;

use crate::clock::Clock;
use crate::settings::{EndpointSettings, Unguarded};
use control::Orders;
use http::{Guard, Served};
pub use inside::LiveData;
pub use live::{Explains, Subject, Unexplained};
pub use metrics::{METRICS, VERIFIER_METRICS};
use pages::Pages;
pub(crate) use scrape::throttle_reasons;
use tls::Tls;
pub use verifier::VerifierProgress;
use verifier::WatchedVerifier;
pub use view::Watched;

/// Default port of the endpoint.
pub const DEFAULT_PORT: u16 = 9464;

/// Errors at the start of the endpoint.
#[derive(Debug, Error)]
pub enum EndpointError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {source}; choose another address with endpoint.listen or --listen")]
    Listen {
        /// The address.
        address: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file of the TLS configuration cannot be used.
    #[error("endpoint.{key}: {}: {reason}", .path.display())]
    Tls {
        /// The setting.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// The mistake.
        reason: String,
    },
    /// The system cannot start a thread.
    #[error("cannot start the thread of the HTTP endpoint: {0}")]
    Thread(#[source] std::io::Error),
}

/// The running endpoint, which stops when this is dropped.
pub struct Endpoint {
    url: String,
    live: LiveData,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Listens on an address, and serves the pages of a running pipeline.
    pub fn start(
        listener: TcpListener,
        settings: &EndpointSettings,
        watched: Watched,
        log: Arc<dyn EventLog>,
    ) -> Result<Self, EndpointError> {
        let orders = Orders::new(log.clone(), watched.topics.clone(), watched.ordinal);
        Self::serve(listener, settings, Some(orders), Pages::of_pipeline(watched, log))
    }

    /// Listens on an address, and serves the pages of a verifier that reports its state in `progress`. The pages name
    /// the process and its group.
    pub fn start_for_verifier(
        listener: TcpListener,
        settings: &EndpointSettings,
        (node, group, journal): (String, String, String),
        progress: Arc<VerifierProgress>,
        log: Arc<dyn EventLog>,
    ) -> Result<Self, EndpointError> {
        let clock = Clock::start();
        let watched = WatchedVerifier::start(node, group, journal, progress, log.clone(), clock)
            .map_err(EndpointError::Thread)?;
        Self::serve(listener, settings, None, Pages::of_verifier(watched, log, clock))
    }

    fn serve(
        listener: TcpListener,
        settings: &EndpointSettings,
        orders: Option<Orders>,
        pages: Pages,
    ) -> Result<Self, EndpointError> {
        let tls = Tls::new(&settings.tls_certificate, &settings.tls_key)?;
        let address = listener.local_addr().map_err(EndpointError::Thread)?;
        let url = format!("{}://{}", if tls.is_some() { "https" } else { "http" }, reachable(address));
        warn_of_openness(address, settings);
        let guard = Guard::new(settings);
        let served = Arc::new(Served { guard, orders, pages });
        let live = LiveData::of(&served);
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("endpoint".to_owned())
            .spawn(move || http::serve(listener, tls, served, stopped))
            .map_err(EndpointError::Thread)?;
        Ok(Self { url, live, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the endpoint's address for clients on this machine, such as `http://127.0.0.1:9464`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the data of the live page, for a reader in this process.
    pub fn live(&self) -> LiveData {
        self.live.clone()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The panic hook has already reported a panic of the thread.
            drop(thread.join());
        }
    }
}

/// Warns if other machines can reach the address, because they can read the pages that need no token.
fn warn_of_openness(address: SocketAddr, settings: &EndpointSettings) {
    let is_open = settings.token.is_none() && settings.unguarded == Unguarded::Pages;
    if is_open && !address.ip().is_loopback() {
        tracing::warn!(
            %address,
            "the endpoint has no token (endpoint.token): anyone who can reach its address can read metrics and the names of symbols and machines"
        );
    }
}

/// Binds an address to listen on.
pub fn listen(address: &str) -> Result<TcpListener, EndpointError> {
    TcpListener::bind(address).map_err(|source| EndpointError::Listen { address: address.to_owned(), source })
}

/// Returns the URL at which this machine reaches the configured endpoint, or the default one.
pub fn url_of(settings: &EndpointSettings) -> String {
    let default = SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT));
    let address = settings.listen.parse().map_or(default, reachable);
    let scheme = if settings.tls_certificate.as_os_str().is_empty() { "http" } else { "https" };
    format!("{scheme}://{address}")
}

/// Returns an address to connect to: replaces the unspecified address with this machine's own.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => [127, 0, 0, 1].into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}
