//! Runs librdkafka calls that may never return on a separate thread.
//!
//! A producer's request to a coordinator waits as long as a connection to it hangs, whatever its timeout (2.12.1,
//! `rd_kafka_coord_req`). A caller that stops waiting leaves the thread behind with the client, which is destroyed when
//! the call returns.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rdkafka::producer::ThreadedProducer;

use super::context::Context;
use super::native::NativeError;

/// Time by which librdkafka's own timers may exceed the timeout of a call.
const GRACE: Duration = Duration::from_secs(1);

/// A librdkafka producer with its own threads.
pub(super) type Client = ThreadedProducer<Context>;
type Call = Box<dyn FnOnce(&Client) -> Result<(), NativeError> + Send>;

/// A producer's client with the thread for its calls.
pub(super) struct Caller {
    client: Option<Arc<Client>>,
    calls: Option<Sender<Call>>,
    results: Receiver<Result<(), NativeError>>,
    thread: Option<JoinHandle<()>>,
    /// True if no caller waits for the thread any more.
    is_left: Cell<bool>,
}

impl Caller {
    pub(super) fn new(client: Client) -> Self {
        let client = Arc::new(client);
        let of_thread = client.clone();
        let (calls, received) = channel::<Call>();
        let (sent, results) = channel();
        let thread = thread::Builder::new()
            .name("kafka-producer".to_owned())
            .spawn(move || {
                for call in received {
                    // The caller may have stopped waiting.
                    drop(sent.send(call(&of_thread)));
                }
            })
            .expect("the system can start a thread");
        let (client, calls, thread) = (Some(client), Some(calls), Some(thread));
        Self { client, calls, results, thread, is_left: Cell::new(false) }
    }

    pub(super) fn client(&self) -> &Client {
        self.client.as_ref().expect("it is there until the caller is dropped")
    }

    /// Makes a call with this timeout; `None` if it does not return. No further call is allowed after that.
    pub(super) fn call(
        &self,
        timeout: Duration,
        call: impl FnOnce(&Client) -> Result<(), NativeError> + Send + 'static,
    ) -> Option<Result<(), NativeError>> {
        let calls = self.calls.as_ref().expect("it is there until the caller is dropped");
        calls.send(Box::new(call)).expect("the thread runs until the caller is dropped");
        let result = self.results.recv_timeout(timeout + GRACE).ok();
        if result.is_none() {
            self.leave();
        }
        result
    }

    /// Stops waiting for the client to be destroyed, because that takes long while a connection hangs.
    pub(super) fn leave(&self) {
        self.is_left.set(true);
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.is_left.get() {
            // The thread then holds the last reference and destroys the client.
            self.client = None;
        }
        self.calls = None;
        if let Some(thread) = self.thread.take()
            && !self.is_left.get()
        {
            thread.join().expect("librdkafka does not panic");
        }
    }
}
