//! Runs the real engine on a market that is fed in real time.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{bounded, never};
use warptape_eventlog::EventLog;
use warptape_pipeline::clock::wall_clock_ns;
use warptape_pipeline::runtime::{EngineConfig, Progress, Stop, run};
use warptape_schemas::tick::Tick;

use crate::engine_run::{publisher, topic_ends};

/// Time between the publication of two pieces of the market.
const PIECE: Duration = Duration::from_millis(10);

/// A market and the pace of its feed.
pub struct Feed<'a> {
    /// Endless ticks of the market.
    pub market: &'a mut dyn Iterator<Item = Tick>,
    /// Number of ticks per second, a multiple of 100.
    pub ticks_per_s: usize,
    /// Number of partitions of the topics. Missing topics are created.
    pub partitions: i32,
}

/// Feeds a market in real time, and runs actions at the given times after the start. Returns the times of the actions
/// on the engine's clock, and last the time of the end.
///
/// # Panics
/// If the engine or the log fails.
pub fn run_live(
    log: &Arc<dyn EventLog>,
    config: EngineConfig,
    feed: Feed<'_>,
    phases: &[(Duration, &dyn Fn())],
) -> Vec<i64> {
    let (topics, lanes) = (config.core.topics.clone(), config.core.lanes.len());
    let mut publisher = publisher(log, feed.partitions, 16);
    let (stop, stopped) = bounded(1);
    let engine = {
        let log = log.clone();
        thread::spawn(move || run(log, config, Arc::new(Progress::new(lanes)), stopped))
    };
    let begun = Instant::now();
    let (mut pieces, mut times_ns) = (0, Vec::new());
    for (until, action) in phases {
        while begun.elapsed() < *until {
            for tick in feed.market.take(feed.ticks_per_s * PIECE.as_millis() as usize / 1_000) {
                publisher.push(tick).expect("the tick is valid");
            }
            publisher.flush().expect("the log takes the ticks");
            pieces += 1;
            let rest = (PIECE * pieces).saturating_sub(begun.elapsed());
            never::<()>().recv_timeout(rest).expect_err("nothing comes");
        }
        times_ns.push(wall_clock_ns());
        action();
    }
    let ticks = topic_ends(log.as_ref(), &topics.ticks);
    let requests = topic_ends(log.as_ref(), &topics.risk_requests);
    stop.send(Stop::At { ticks, requests }).expect("the engine listens");
    engine.join().expect("no panic").expect("the engine works");
    times_ns
}
