//! Server-sent events: each client gets the newest snapshot. A slow client gets fewer snapshots, but never older ones.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use super::Shared;

/// Longest life of a stream; the client then opens another. It is shorter than the life of a connection.
const STREAM_MAX: Duration = Duration::from_secs(50);
/// Time without a snapshot after which a comment shows that the stream lives.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Bytes per second that all streams together may send. With more streams, each gets fewer snapshots.
const BYTES_PER_SECOND_MAX: usize = 4 << 20;

/// Returns the body of a stream.
pub(super) fn body(shared: Arc<Shared>) -> Body {
    let (send, receive) = mpsc::channel(1);
    tokio::spawn(feed(shared, send));
    Body::new(Events(receive))
}

/// Sends snapshots until the client disconnects or the stream's time is up.
async fn feed(shared: Arc<Shared>, send: mpsc::Sender<Bytes>) {
    let _looking = shared.look();
    let mut newest: watch::Receiver<Bytes> = shared.newest.subscribe();
    let end = Instant::now() + STREAM_MAX;
    newest.mark_changed();
    while Instant::now() < end {
        let event = match timeout(HEARTBEAT, newest.changed()).await {
            Ok(Ok(())) => event(&newest.borrow_and_update()),
            Ok(Err(_)) => return,
            Err(_) => Bytes::from_static(b": nothing new\n\n"),
        };
        let pause = pause(event.len(), shared.looking());
        if send.send(event).await.is_err() {
            return;
        }
        sleep(pause).await;
    }
}

/// Returns the pause after an event that keeps all streams together within the rate.
fn pause(bytes: usize, streams: usize) -> Duration {
    Duration::from_secs_f64((bytes * streams) as f64 / BYTES_PER_SECOND_MAX as f64)
}

fn event(snapshot: &Bytes) -> Bytes {
    if snapshot.is_empty() {
        return Bytes::from_static(b": starting\n\n");
    }
    [b"event: state\ndata: ", snapshot.as_ref(), b"\n\n"].concat().into()
}

/// The events of one client.
struct Events(mpsc::Receiver<Bytes>);

impl HttpBody for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_streams_share_a_rate() {
        assert_eq!(pause(BYTES_PER_SECOND_MAX / 128, 128), Duration::from_secs(1));
        assert!(pause(30_000, 1) < Duration::from_millis(10));
    }

    #[test]
    fn an_event_is_one_line_of_data() {
        assert_eq!(event(&Bytes::from_static(b"{}")), &b"event: state\ndata: {}\n\n"[..]);
    }
}
