//! A TCP proxy in front of a broker, which imitates network faults.
//!
//! The proxy forwards whole Kafka messages, each of which begins with its length.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// `api_key` of EndTxn, the request that commits or aborts a transaction.
const END_TXN: i16 = 26;
/// `api_key` of Produce, the request with records.
const PRODUCE: i16 = 0;
/// Greatest size of a message, in bytes; far above any message of the tests.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Faults of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// Each message arrives this much later.
    Latency(Duration),
    /// Connections are accepted, and nothing arrives until the fault is over.
    BlackHole,
    /// The answer to each EndTxn request arrives this much later, and delays all messages after it.
    DelayedEndTxn(Duration),
    /// Requests with records arrive only after the fault ends, and so do all later requests of their connections.
    HeldRecords,
}

/// A proxy on a port of this machine.
pub struct Proxy {
    pub address: String,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Address of the broker, once it is known.
    upstream: Option<String>,
    fault: Fault,
    /// Both ends of each connection, with its number.
    connections: Vec<(u64, [TcpStream; 2])>,
    accepted: u64,
    /// Connections with a smaller number are dead: both ends look open, but nothing arrives any more.
    dead_below: u64,
    /// Number of delayed answers.
    delayed: u64,
    /// Number of delayed requests with records.
    held: u64,
}

impl Proxy {
    pub fn start() -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound address").to_string();
        let state = State {
            upstream: None,
            fault: Fault::None,
            connections: Vec::new(),
            accepted: 0,
            dead_below: 0,
            delayed: 0,
            held: 0,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let of_listener = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                of_listener.accept(client);
            }
        });
        Proxy { address, shared }
    }

    /// Sets the broker's address.
    pub fn lead_to(&self, broker: &str) {
        self.shared.state().upstream = Some(broker.to_owned());
    }

    /// Imposes a fault until the next call.
    pub fn impose(&self, fault: Fault) {
        self.shared.state().fault = fault;
        self.shared.changed.notify_all();
    }

    /// Closes all connections, in the middle of messages.
    pub fn cut(&self) {
        for (_, ends) in self.shared.state().connections.drain(..) {
            close(&ends);
        }
    }

    /// Forgets all connections without closing them, like a router that restarts. New connections work.
    pub fn forget(&self) {
        let mut state = self.shared.state();
        state.dead_below = state.accepted;
    }

    /// Returns the number of delayed answers to EndTxn requests.
    pub fn delayed(&self) -> u64 {
        self.shared.state().delayed
    }

    /// Returns the number of delayed requests with records.
    pub fn held(&self) -> u64 {
        self.shared.state().held
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().upstream = None;
        self.impose(Fault::None);
        self.cut();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }

    fn accept(self: &Arc<Self>, client: TcpStream) {
        let mut state = self.state();
        // Without a broker, the connection is closed at once.
        let Some(upstream) = &state.upstream else { return };
        let Ok(broker) = TcpStream::connect(upstream) else { return };
        // Small messages must not wait to be combined with others.
        client.set_nodelay(true).and(broker.set_nodelay(true)).expect("a socket has the option");
        let clone = |stream: &TcpStream| stream.try_clone().expect("a socket can be cloned");
        let number = state.accepted;
        state.accepted += 1;
        state.connections.push((number, [clone(&client), clone(&broker)]));
        let late = Arc::new(Mutex::new(BTreeSet::new()));
        for (is_request, from, to) in
            [(true, clone(&client), clone(&broker)), (false, clone(&broker), clone(&client))]
        {
            let (shared, late) = (self.clone(), late.clone());
            thread::spawn(move || {
                let pump = Pump { shared, number, is_request, late };
                // However one direction ended, the other one is ended too.
                drop(pump.run(&from, &to));
                close(&[from, to]);
                pump.shared.state().connections.retain(|(known, _)| *known != number);
            });
        }
    }
}

fn close(ends: &[TcpStream; 2]) {
    for end in ends {
        // The socket may already be closed.
        drop(end.shutdown(Shutdown::Both));
    }
}

/// One direction of a connection.
struct Pump {
    shared: Arc<Shared>,
    number: u64,
    is_request: bool,
    /// Correlation ids of requests whose answers must be delayed.
    late: Arc<Mutex<BTreeSet<[u8; 4]>>>,
}

impl Pump {
    fn run(&self, mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
        loop {
            let message = read_message(&mut from)?;
            if self.wait(&message) {
                to.write_all(&message)?;
            }
        }
    }

    /// Waits until the message may pass; false if it must never arrive.
    fn wait(&self, message: &[u8]) -> bool {
        let mut state = self.shared.state();
        if let Some(delay) = self.delay(state.fault, message) {
            if !self.is_request && matches!(state.fault, Fault::DelayedEndTxn(_)) {
                state.delayed += 1;
            }
            let until = Instant::now() + delay;
            let left = || until.saturating_duration_since(Instant::now());
            while !left().is_zero() {
                state = self.shared.changed.wait_timeout(state, left()).expect("nobody panics").0;
            }
        }
        let brings_records = self.is_request && api_key(message) == Some(PRODUCE);
        state.held += u64::from(brings_records && state.fault == Fault::HeldRecords);
        while (state.fault == Fault::BlackHole || brings_records && state.fault == Fault::HeldRecords)
            && self.number >= state.dead_below
        {
            state = self.shared.changed.wait(state).expect("nobody panics while holding it");
        }
        self.number >= state.dead_below
    }

    fn delay(&self, fault: Fault, message: &[u8]) -> Option<Duration> {
        match fault {
            Fault::None | Fault::BlackHole | Fault::HeldRecords => None,
            Fault::Latency(delay) => Some(delay),
            Fault::DelayedEndTxn(delay) => {
                let mut late = self.late.lock().expect("nobody panics while holding it");
                if self.is_request {
                    if message.len() >= 12 && api_key(message) == Some(END_TXN) {
                        late.insert(message[8..12].try_into().expect("four bytes"));
                    }
                    return None;
                }
                late.remove(&message[4..8]).then_some(delay)
            }
        }
    }
}

/// Returns the `api_key` of a request; `None` if the message is too short.
fn api_key(message: &[u8]) -> Option<i16> {
    Some(i16::from_be_bytes(message.get(4..6)?.try_into().ok()?))
}

/// Reads a message, with the length in front of it.
fn read_message(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 4];
    from.read_exact(&mut message)?;
    let length = u32::from_be_bytes(message[..4].try_into().expect("four bytes")) as usize;
    assert!((4..=MESSAGE_BYTES_MAX).contains(&length), "{length} bytes are no message of Kafka");
    message.resize(4 + length, 0);
    from.read_exact(&mut message[4..])?;
    Ok(message)
}
