//! The HTTP server: limits on connections, and routes to pages.
//!
//! Clients may be slow, many or hostile. The number of connections, their lifetimes and the size of requests are
//! limited. Each page is made at most four times a second. The live page's data have limits of their own.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::Response;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::connections::Connections;
use super::control::{self, Orders};
use super::host;
use super::live::{ASSETS, Answer, LivePage, POLICY};
use super::openapi::openapi;
use super::pages::{CONTROL, LIVE, OPENAPI, Page, Pages, ROUTES, list};
use super::scrape::Format;
use super::tls::Tls;
use crate::settings::{EndpointSettings, Unguarded};

/// Greatest number of connections. Another one closes the oldest of the address with the most connections.
const CONNECTIONS_MAX: usize = 512;
/// Longest time that a connection may take for TLS, and for the head of each request.
const HEAD_MAX: Duration = Duration::from_secs(5);
/// Longest life of a connection; the client may then open another.
const CONNECTION_MAX: Duration = Duration::from_secs(60);
/// Greatest length of a request's head, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Bytes of answers that the system buffers for a client that does not read. The system's default is megabytes for each
/// connection.
const UNREAD_BYTES_MAX: usize = 128 << 10;
/// Pause after a failed accept, for example if the process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Access rules of the pages.
pub(super) struct Guard {
    /// Hash of the required token; `None` if none is set.
    token: Option<blake3::Hash>,
    /// Names of the endpoint besides localhost and addresses.
    hosts: Vec<String>,
    /// Pages that may be read without a token, if no token is set.
    unguarded: Unguarded,
}

/// Reasons to refuse a page.
enum Refusal {
    NoToken,
    /// The page needs a token, and none is set.
    NoTokenSet,
    /// The host name of the request is not allowed.
    Host(String),
}

impl Guard {
    pub(super) fn new(settings: &EndpointSettings) -> Self {
        let token = settings.token.as_ref().map(|token| blake3::hash(token.reveal().as_bytes()));
        Self { token, hosts: settings.hosts.clone(), unguarded: settings.unguarded }
    }

    fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Checks a request. With the token any host name is allowed, because a foreign page cannot know the token.
    fn admits(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        match (&self.token, self.unguarded) {
            (Some(token), _) if Self::presents(token, headers) => Ok(()),
            (Some(_), _) => Err(Refusal::NoToken),
            (None, Unguarded::Probes) => Err(Refusal::NoTokenSet),
            (None, Unguarded::Pages) => match host::of(uri, headers) {
                Some(host) if !host::is_own(&host, &self.hosts) => Err(Refusal::Host(host)),
                _ => Ok(()),
            },
        }
    }

    fn presents(token: &blake3::Hash, headers: &HeaderMap) -> bool {
        let presented = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let presented = presented.and_then(|value| value.split_once(' '));
        // Comparing hashes takes constant time.
        presented.is_some_and(|(scheme, presented)| {
            scheme.eq_ignore_ascii_case("bearer") && blake3::hash(presented.trim().as_bytes()) == *token
        })
    }
}

/// The pages, and the rules for access to them.
pub(super) struct Served {
    pub(super) guard: Guard,
    pub(super) pages: Pages,
    /// Sends commands; `None` for a verifier, which accepts none.
    pub(super) orders: Option<Orders>,
}

/// Serves until the sender is dropped.
pub(super) fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    served: Arc<Served>,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => return tracing::error!(%error, "the HTTP endpoint cannot be served"),
    };
    let serving = async {
        listener.set_nonblocking(true)?;
        // Connections inherit the buffer size from the listener.
        SockRef::from(&listener).set_send_buffer_size(UNREAD_BYTES_MAX)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let app = Router::new().fallback(answer).with_state(served.clone());
        tokio::select! {
            () = accept(&listener, tls, app) => {}
            _ = stopped => {}
        }
        std::io::Result::Ok(())
    };
    if let Err(error) = runtime.block_on(serving) {
        tracing::error!(%error, "the HTTP endpoint cannot be served");
    }
    if let Some(orders) = &served.orders {
        orders.end();
    }
    // Open connections are closed with the runtime.
    runtime.shutdown_background();
}

async fn accept(listener: &tokio::net::TcpListener, mut tls: Option<Tls>, app: Router) {
    let connections = Connections::default();
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (tls, app) = (tls.as_mut().map(Tls::acceptor), app.clone());
        let place = connections.enter(from.ip(), CONNECTIONS_MAX);
        let number = place.number();
        let serving = tokio::spawn(async move {
            let _place = place;
            match tls {
                None => talk(stream, app).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = timeout(HEAD_MAX, tls.accept(stream)).await {
                        talk(stream, app).await;
                    }
                }
            }
        });
        connections.served_by(number, serving.abort_handle());
    }
}

/// Answers the requests of a connection, until it ends or reaches its maximum age.
async fn talk(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, app: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        // Each connection serves one request, so that idle clients occupy no places.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    tokio::pin!(connection);
    // Errors of clients are ignored.
    if timeout(CONNECTION_MAX, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        drop(timeout(HEAD_MAX, connection).await);
    }
}

async fn answer(State(served): State<Arc<Served>>, request: Request) -> Result<Response, Infallible> {
    let (parts, body) = request.into_parts();
    if parts.uri.path() == CONTROL {
        return Ok(commanded(&served, &parts, body).await);
    }
    if let Some(live) = &served.pages.live
        && let Some(response) = lived(&served, live, &parts).await
    {
        return Ok(response);
    }
    Ok(answered(&served, &parts.method, &parts.uri, &parts.headers))
}

/// Answers a request for the live page or its data; `None` for another path. The page's files contain nothing about the
/// pipeline, so they need no token.
async fn lived(served: &Served, live: &LivePage, parts: &Parts) -> Option<Response> {
    let path = parts.uri.path();
    let asset = ASSETS.iter().find(|asset| asset.path == path);
    let asset = asset.filter(|asset| asset.path != "/" || accepts_html(&parts.headers));
    let is_data = LIVE.iter().any(|(of, ..)| *of == path);
    if asset.is_none() && !is_data {
        return None;
    }
    if ![Method::GET, Method::HEAD].contains(&parts.method) {
        return Some(plain(StatusCode::METHOD_NOT_ALLOWED, "read pages with GET\n".to_owned()));
    }
    if let Some(asset) = asset {
        return Some(guarded(respond(StatusCode::OK, asset.media, Body::from(asset.bytes))));
    }
    if is_from_elsewhere(&parts.headers) {
        let why = "the data of the live page are for this page and for tools, not for pages of other sites\n";
        return Some(plain(StatusCode::FORBIDDEN, why.to_owned()));
    }
    if let Err(refusal) = served.guard.admits(&parts.uri, &parts.headers) {
        return Some(refused(refusal));
    }
    let answer = live.answer(path, parts.uri.query().unwrap_or_default()).await?;
    let status = answer.status();
    Some(guarded(match answer {
        Answer::Json(bytes) => respond(status, "application/json", Body::from(bytes)),
        Answer::Stream(body) => respond(status, "text/event-stream", body),
        Answer::Text(text) => plain(status, text),
        Answer::Wrong(why) | Answer::Busy(why) => plain(status, format!("{why}\n")),
        Answer::Missing(why) | Answer::Unavailable(why) => plain(status, format!("{why}\n")),
    }))
}

/// True if the browser reports that another site's page makes the request. An image or a script there could keep the
/// pipeline busy.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none")
}

fn accepts_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.split(',').any(|media| media.split(';').next().is_some_and(|media| media.trim() == "text/html"))
}

/// Adds headers that make the browser load nothing but the page's own files and data.
fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, header::HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, header::HeaderValue::from_static("no-referrer"));
    response
}

/// Executes a command. A command always needs the token, even where pages may be read without one.
async fn commanded(served: &Served, parts: &Parts, body: Body) -> Response {
    let Some(orders) = &served.orders else {
        return plain(StatusCode::NOT_FOUND, "a verifier takes no commands\n".to_owned());
    };
    if parts.method != Method::POST {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "send commands with POST\n".to_owned());
    }
    if !served.guard.has_token() {
        let why = "HTTP commands need a token: set endpoint.token\n";
        return plain(StatusCode::FORBIDDEN, why.to_owned());
    }
    if let Err(refusal) = served.guard.admits(&parts.uri, &parts.headers) {
        return refused(refusal);
    }
    let (status, value) = match timeout(HEAD_MAX, axum::body::to_bytes(body, control::BYTES_MAX)).await {
        Ok(Ok(posted)) => orders.give(&posted).await,
        Ok(Err(_)) => control::told(StatusCode::PAYLOAD_TOO_LARGE, "a command may have at most 64 KiB"),
        Err(_) => {
            control::told(StatusCode::REQUEST_TIMEOUT, "the body of the command did not arrive within 5 s")
        }
    };
    respond(status, "application/json", Body::from(format!("{value}\n")))
}

fn answered(served: &Served, method: &Method, uri: &Uri, headers: &HeaderMap) -> Response {
    let route = ROUTES.iter().find(|route| route.path == uri.path());
    if route.is_none() && !["/", OPENAPI].contains(&uri.path()) {
        let pages = list(served.orders.is_none());
        return plain(StatusCode::NOT_FOUND, format!("no such page; the pages are:\n{pages}"));
    }
    if ![Method::GET, Method::HEAD].contains(method) {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "read pages with GET\n".to_owned());
    }
    let page = match route.map(|route| route.page) {
        Some(Page::Metrics(_)) => {
            let accept =
                headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
            Page::Metrics(Format::accepted(accept))
        }
        Some(page) => page,
        None if uri.path() == OPENAPI => {
            return respond(StatusCode::OK, "application/json", Body::from(format!("{:#}\n", openapi())));
        }
        None => return plain(StatusCode::OK, list(served.orders.is_none())),
    };
    let admitted = served.guard.admits(uri, headers);
    let is_admitted = admitted.is_ok();
    if let (false, Err(refusal)) = (matches!(page, Page::Live | Page::Ready), admitted) {
        return refused(refusal);
    }
    let made = served.pages.get(page);
    if !is_admitted {
        // A probe needs no token. Its cause may name brokers and files, so only clients with the token get it.
        return respond(made.status, made.content_type, Body::from(without_cause(&made.bytes)));
    }
    respond(made.status, made.content_type, Body::from(made.bytes))
}

/// Returns a probe's text without the cause, which follows a colon.
fn without_cause(told: &[u8]) -> Vec<u8> {
    let word = told.split(|byte| [b':', b'\n'].contains(byte)).next().unwrap_or_default();
    [word, b"\n"].concat()
}

fn refused(refusal: Refusal) -> Response {
    match refusal {
        Refusal::NoToken => unauthorized(),
        Refusal::NoTokenSet => {
            let why = "no token is configured, so only /livez and /readyz may be read: set endpoint.token, \
                       or open more pages with endpoint.unguarded\n";
            plain(StatusCode::FORBIDDEN, why.to_owned())
        }
        Refusal::Host(host) => {
            let why = "is not a name of this endpoint: address it as localhost or by its IP address, add the name to endpoint.hosts, or present a token";
            plain(StatusCode::MISDIRECTED_REQUEST, format!("{host:?} {why}\n"))
        }
    }
}

fn unauthorized() -> Response {
    let needs = "a token is required, in the header Authorization: Bearer TOKEN\n".to_owned();
    let mut response = plain(StatusCode::UNAUTHORIZED, needs);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    response
}

fn plain(status: StatusCode, text: String) -> Response {
    respond(status, "text/plain; charset=utf-8", Body::from(text))
}

fn respond(status: StatusCode, content_type: &'static str, body: Body) -> Response {
    let response = Response::builder().status(status).header(header::CONTENT_TYPE, content_type);
    let response = response.header(header::CACHE_CONTROL, "no-store").body(body);
    response.expect("the parts of a response are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_without_a_token_hear_no_cause() {
        assert_eq!(without_cause(b"ready\n"), b"ready\n");
        assert_eq!(
            without_cause(b"not ready: broker db-7.example:9092 lost 12 s ago: refused\n"),
            b"not ready\n"
        );
    }
}
