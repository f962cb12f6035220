//! The HTTP endpoint of a running pipeline, or of a verifier that follows one: metrics, health, probes.
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
//! The endpoint only reads, and decides nothing: a pipeline without one does the same. Commands go through the log,
//! like those of `warptape control`. Pages are made at most a few times a second, however often they are requested.

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

/// The endpoint, until it is dropped.
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

    /// Listens on an address, and serves the pages of a verifier of a journal, with its progress. The pages name the
    /// process and its group.
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

    /// Returns the address for clients on this machine, such as `http://127.0.0.1:9464`.
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
            // A panic of the thread is reported already.
            drop(thread.join());
        }
    }
}

/// Warns if the address is reachable from other machines, because all may then read pages that need no token.
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

/// Returns the URL of the endpoint of these settings, or the default one, from this machine.
pub fn url_of(settings: &EndpointSettings) -> String {
    let default = SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT));
    let address = settings.listen.parse().map_or(default, reachable);
    let scheme = if settings.tls_certificate.as_os_str().is_empty() { "http" } else { "https" };
    format!("{scheme}://{address}")
}

/// Returns an address to connect to: one that stands for all of a machine's becomes the one of this machine.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => [127, 0, 0, 1].into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}
