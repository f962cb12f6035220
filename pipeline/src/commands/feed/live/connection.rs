//! The connection to a venue: a thread connects, reads and connects again, and hands over the received messages.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use crossbeam_channel::{Receiver, SendError, Sender, bounded};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tungstenite::client::{ClientRequestBuilder, client_with_config};
use tungstenite::http::Uri;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Bytes, Error, HandshakeError, Message, WebSocket};

use crate::cli::Interrupt;
use crate::clock::wall_clock_ns;
use crate::usage_error::UsageError;
use warptape_sources::live::Backoff;

/// Longest wait for a connection to an address, and for each reply in a handshake.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Longest read before the silence of the connection is checked.
const READ_WAIT: Duration = Duration::from_millis(100);
/// Silence after which the client sends a ping.
const SILENCE_ASKED: Duration = Duration::from_secs(15);
/// Silence after which the client ends the connection.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Largest message, in bytes; a trade has less than a hundredth of it.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Greatest number of messages that wait for the feed. The thread then stops reading, and the venue has to wait.
const WAITING_MAX: usize = 4_096;

/// An event of the connection.
#[derive(Debug)]
pub enum Event {
    /// The connection is open, and the subscription is sent.
    Connected,
    /// A text message.
    Text {
        /// Wall clock at receipt.
        receive_time_ns: i64,
        /// The message.
        text: String,
    },
    /// A message that is not text, with its length in bytes.
    Binary(usize),
    /// A connection ended.
    Cut {
        /// Wall clock at the end.
        time_ns: i64,
        /// The reason, in words.
        reason: String,
        /// Wait before the next connection.
        wait: Duration,
    },
    /// A new connection failed after an earlier one had ended.
    Unreachable {
        /// The reason, in words.
        reason: String,
        /// Wait before the next try.
        wait: Duration,
    },
    /// The first connection failed, and no other is tried.
    Failed(anyhow::Error),
}

/// The server to connect to, and the first message to it.
pub struct Target {
    uri: Uri,
    host: String,
    port: u16,
    /// Trusted authorities; `None` without TLS.
    tls: Option<Arc<ClientConfig>>,
    subscription: Option<String>,
    silence: Silence,
}

/// Limits of silence.
#[derive(Clone, Copy)]
struct Silence {
    asked: Duration,
    max: Duration,
}

/// The feed has ended, and nobody receives events.
struct Gone;

impl<T> From<SendError<T>> for Gone {
    fn from(_: SendError<T>) -> Self {
        Gone
    }
}

type Socket = WebSocket<Box<dyn Stream>>;

trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

impl Target {
    /// Parses an address. TLS trusts the system's authorities, as the pipeline's HTTP client does.
    pub fn new(address: &str, subscription: Option<String>) -> anyhow::Result<Self> {
        let refused = |found: &str| {
            UsageError(format!("--url {address:.200}: {found}, such as wss://stream.example.com:9443"))
        };
        let uri: Uri = address.parse().map_err(|_| refused("no address; give the address of a WebSocket"))?;
        let is_tls = match uri.scheme_str() {
            Some("wss") => true,
            Some("ws") => false,
            _ => return Err(refused("begin it with wss://, or with ws:// for a server without TLS").into()),
        };
        let host = uri.host().ok_or_else(|| refused("the host is missing; give wss://HOST[:PORT]"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let tls = is_tls.then(tls_config).transpose()?;
        let silence = Silence { asked: SILENCE_ASKED, max: SILENCE_MAX };
        Ok(Self { uri, host, port, tls, subscription, silence })
    }

    /// Starts a thread that connects, and reconnects after each end, until the receiver is dropped or a signal comes.
    pub fn start(self, interrupt: Interrupt) -> io::Result<Receiver<Event>> {
        let (sender, receiver) = bounded(WAITING_MAX);
        let run = move || drop(self.keep_connected(&sender, &interrupt));
        thread::Builder::new().name("live".to_owned()).spawn(run)?;
        Ok(receiver)
    }

    fn keep_connected(&self, events: &Sender<Event>, interrupt: &Interrupt) -> Result<(), Gone> {
        let mut backoff = Backoff::default();
        let mut is_first = true;
        loop {
            let wait = match self.connect() {
                Ok(socket) => {
                    events.send(Event::Connected)?;
                    let since = Instant::now();
                    let reason = read_all(socket, events, self.silence)?;
                    let wait = backoff.wait_after(since.elapsed());
                    events.send(Event::Cut { time_ns: wall_clock_ns(), reason, wait })?;
                    wait
                }
                Err(error) if is_first => return Ok(events.send(Event::Failed(error))?),
                Err(error) => {
                    let wait = backoff.wait_after(Duration::ZERO);
                    events.send(Event::Unreachable { reason: format!("{error:#}"), wait })?;
                    wait
                }
            };
            is_first = false;
            if interrupt.wait(wait) {
                return Ok(());
            }
        }
    }

    fn connect(&self) -> anyhow::Result<Socket> {
        let tcp = self.connect_tcp()?;
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(ANSWER_MAX))?;
        tcp.set_write_timeout(Some(ANSWER_MAX))?;
        let timeouts = tcp.try_clone()?;
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(tcp),
            Some(config) => {
                let name = ServerName::try_from(self.host.clone())?;
                Box::new(StreamOwned::new(ClientConnection::new(config.clone(), name)?, tcp))
            }
        };
        let agent = concat!("warptape/", env!("CARGO_PKG_VERSION"));
        let request = ClientRequestBuilder::new(self.uri.clone()).with_header("User-Agent", agent);
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_BYTES_MAX))
            .max_frame_size(Some(MESSAGE_BYTES_MAX));
        let (mut socket, _) =
            client_with_config(request, stream, Some(limits)).map_err(|error| match error {
                HandshakeError::Failure(error) => anyhow!("{}: the server refuses: {error}", self.place()),
                HandshakeError::Interrupted(_) => self.unanswered(),
            })?;
        if let Some(message) = &self.subscription {
            socket.send(Message::text(message)).with_context(|| self.place())?;
        }
        timeouts.set_read_timeout(Some(READ_WAIT))?;
        Ok(socket)
    }

    fn connect_tcp(&self) -> anyhow::Result<TcpStream> {
        let addresses = (self.host.as_str(), self.port).to_socket_addrs();
        let addresses = addresses.with_context(|| format!("{}: the host is not found", self.place()))?;
        let mut failure = None;
        for address in addresses {
            match TcpStream::connect_timeout(&address, ANSWER_MAX) {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) => Err(error).with_context(|| format!("{}: cannot connect", self.place())),
            None => bail!("{}: the host has no address", self.place()),
        }
    }

    fn unanswered(&self) -> anyhow::Error {
        anyhow!("{}: no answer within {} s", self.place(), ANSWER_MAX.as_secs())
    }

    fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

fn tls_config() -> anyhow::Result<Arc<ClientConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Passes on all messages of a connection. Returns the reason for its end.
fn read_all(mut socket: Socket, events: &Sender<Event>, silence: Silence) -> Result<String, Gone> {
    let mut heard = Instant::now();
    let mut is_asked = false;
    loop {
        match socket.read() {
            Ok(message) => {
                (heard, is_asked) = (Instant::now(), false);
                if let Some(reason) = hand_over(message, events)? {
                    // A failed reply to a close frame does not matter.
                    drop(socket.flush());
                    return Ok(reason);
                }
            }
            Err(Error::Io(error)) if is_wait(&error) => {
                let silent = heard.elapsed();
                if silent >= silence.max {
                    return Ok(format!("the venue was silent for {:.0} s", silent.as_secs_f64()));
                }
                if silent >= silence.asked && !is_asked {
                    is_asked = true;
                    if let Err(error) = socket.send(Message::Ping(Bytes::new())) {
                        return Ok(error.to_string());
                    }
                }
            }
            Err(Error::Capacity(error)) => {
                return Ok(format!("a message is too large ({error})"));
            }
            Err(error) => return Ok(error.to_string()),
        }
    }
}

/// Passes on a message. Returns the reason if the message closes the connection.
fn hand_over(message: Message, events: &Sender<Event>) -> Result<Option<String>, Gone> {
    match message {
        Message::Text(text) => {
            events.send(Event::Text { receive_time_ns: wall_clock_ns(), text: text.as_str().to_owned() })?;
        }
        Message::Binary(bytes) => events.send(Event::Binary(bytes.len()))?,
        Message::Close(None) => return Ok(Some("the venue closed it".to_owned())),
        Message::Close(Some(frame)) => {
            return Ok(Some(format!("the venue closed it ({} {:.100})", frame.code, frame.reason.as_str())));
        }
        // The library answers a ping at the next read.
        Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
    }
    Ok(None)
}

/// True if the error is only a read's timeout.
fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Starts a server that accepts one connection, and returns its end to the test.
    fn connected(silence: Silence) -> (WebSocket<TcpStream>, Receiver<Event>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("ws://{}", listener.local_addr().expect("an address"));
        let mut target = Target::new(&address, Some("subscribe".to_owned())).expect("an address");
        target.silence = silence;
        let events = target.start(Interrupt::default()).expect("a thread");
        let (stream, _) = listener.accept().expect("a connection");
        let mut server = tungstenite::accept(stream).expect("a handshake");
        assert_eq!(server.read().expect("a message"), Message::text("subscribe"));
        (server, events)
    }

    fn next(events: &Receiver<Event>) -> Event {
        events.recv_timeout(Duration::from_secs(60)).expect("an event")
    }

    #[track_caller]
    fn check_cut(events: &Receiver<Event>, expected: &str) {
        match next(events) {
            Event::Cut { reason, .. } => assert!(reason.contains(expected), "{reason}"),
            other => panic!("{other:?}"),
        }
    }

    const LONG: Silence = Silence { asked: SILENCE_ASKED, max: SILENCE_MAX };

    #[test]
    fn a_silent_server_is_asked_and_left() {
        // Allows the answer some seconds, even on a busy machine.
        let silence = Silence { asked: Duration::from_millis(150), max: Duration::from_secs(4) };
        let (mut server, events) = connected(silence);
        assert!(matches!(next(&events), Event::Connected));
        assert_eq!(server.read().expect("a ping"), Message::Ping(Bytes::new()));
        // The answer resets the silence, so the next silence causes another ping.
        server.flush().expect("the answer is sent");
        assert_eq!(server.read().expect("a ping"), Message::Ping(Bytes::new()));
        check_cut(&events, "silent");
    }

    #[test]
    fn messages_come_in_order_and_pings_are_answered() {
        let (mut server, events) = connected(LONG);
        assert!(matches!(next(&events), Event::Connected));
        server.send(Message::text("a")).expect("it is sent");
        server.send(Message::Ping(Bytes::from_static(b"7"))).expect("it is sent");
        server.send(Message::binary(vec![1, 2, 3])).expect("it is sent");
        assert!(
            matches!(next(&events), Event::Text { text, receive_time_ns } if text == "a" && receive_time_ns > 0)
        );
        assert!(matches!(next(&events), Event::Binary(3)));
        assert_eq!(server.read().expect("the answer"), Message::Pong(Bytes::from_static(b"7")));
        server.close(None).expect("it is sent");
        check_cut(&events, "closed it");
    }

    #[test]
    fn a_huge_message_ends_the_connection() {
        let (mut server, events) = connected(LONG);
        assert!(matches!(next(&events), Event::Connected));
        server.send(Message::text("x".repeat(MESSAGE_BYTES_MAX))).expect("it is sent");
        assert!(matches!(next(&events), Event::Text { text, .. } if text.len() == MESSAGE_BYTES_MAX));
        // The client may disconnect before the whole message is sent.
        drop(server.send(Message::text("x".repeat(MESSAGE_BYTES_MAX + 1))));
        check_cut(&events, "too large");
    }

    #[test]
    fn only_addresses_of_websockets_are_taken() {
        for wrong in ["", "stream.example.com", "http://a", "ws://", "ws://a b", "wss:///x"] {
            let error = Target::new(wrong, None).err().expect(wrong);
            assert!(error.is::<UsageError>() && error.to_string().contains("--url"), "{error}");
        }
        let target = Target::new("ws://[::1]:7/x", None).expect("an address");
        assert_eq!((target.host.as_str(), target.port), ("::1", 7));
    }

    #[test]
    fn a_first_connection_that_fails_is_the_last_one() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("ws://{}", listener.local_addr().expect("an address"));
        drop(listener);
        let events = Target::new(&address, None).expect("an address").start(Interrupt::default());
        let events = events.expect("a thread");
        assert!(
            matches!(next(&events), Event::Failed(error) if format!("{error:#}").contains("cannot connect"))
        );
        assert!(events.recv_timeout(Duration::from_secs(60)).is_err(), "the thread has ended");
    }
}
