//! Faults of a real broker and of the network in front of it, while `feed` and `run` work. No record is lost or
//! doubled, no stall exceeds twice the timeout, and the outputs equal those of an uninterrupted run.

use std::time::{Duration, Instant};

use warptape_eventlog::{KafkaOptions, Record};
use warptape_schemas::{LifecycleEvent, decode_lifecycle};

use super::broker::{Broker, shared};
use super::history::Random;
use super::hot::{expect_equal_on, keep_up_on};
use super::kafka_market::{Market, published};
use super::machine_clock::MachineClock;
use super::outputs::records;
use super::processes::Running;
use super::proxy::{Fault, Proxy};
use super::redis_server::RedisServer;

/// Longest wait of the test itself for an answer of the broker.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest wait of the processes for an answer of the broker. Twice this time must leave room for librdkafka's own
/// timers. These look for unanswered requests once a second, and wait up to another second before a new connection.
const TIMEOUT: Duration = Duration::from_secs(8);
/// Shorter timeout, for a broker that hangs longer than it.
const TIMEOUT_SHORT: Duration = Duration::from_secs(6);
/// Settings: the session timeout exceeds the silences, because after a longer one the broker would treat a returning
/// member as another one. A producer's dead connection is given up after two seconds, not after librdkafka's ten.
const SETTINGS: &str = "kafka.session_timeout_ms = 30000
kafka.properties.\"api.version.request.timeout.ms\" = 2000";

/// Number of kills of the broker. The next constants are the time of load before each, and the time without a broker.
const BROKER_KILLS: u64 = 2;
const LOAD_MS_MAX: u64 = 1_500;
const OUTAGE_MS_MAX: u64 = 2_000;

/// Added latency of each message.
const LATENCY: Duration = Duration::from_millis(40);
/// Time with slow connections. The next constants are times without any data: one too short for a timeout, and one
/// longer.
const SLOW: Duration = Duration::from_secs(2);
const HOLES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];
/// Delays of an answer: the first is within the timeout, the second exceeds it.
const END_TXN_DELAYS: [Duration; 2] = [Duration::from_millis(700), Duration::from_secs(9)];
const REDIS_KILLS: u64 = 2;
const CUTS: u64 = 5;
const CUT_MS_MAX: u64 = 300;

/// A feed and a run on a broker of their own.
struct Load {
    broker: Broker,
    market: Market,
    seed: u64,
    feed: Running,
    run: Running,
    clock: MachineClock,
    stall_max: Duration,
}

impl Load {
    /// Starts the load. `proxy` is the proxy through which the processes reach the broker; `None`: directly.
    fn start(broker: Broker, proxy: Option<&Proxy>, timeout: Duration, random: &mut Random) -> Load {
        let options = KafkaOptions {
            transaction_timeout: Duration::from_secs(2),
            request_timeout: PATIENCE,
            stall_timeout: PATIENCE,
            ..KafkaOptions::new(&broker.direct)
        };
        let address = proxy.map_or(&broker.address, |proxy| &proxy.address);
        let settings = format!("{SETTINGS}\nkafka.request_timeout_ms = {}", timeout.as_millis());
        let market = Market::reached_by("faults", options, format!("kafka:{address}"), &settings);
        let seed = random.below(1 << 32);
        let (feed, run) = (market.start_feed(seed), market.start_run());
        let clock = MachineClock::start(market.path());
        let mut load = Load { broker, market, seed, feed, run, clock, stall_max: 2 * timeout };
        load.market.run_on(&mut load.run, &mut load.feed);
        load
    }

    #[track_caller]
    fn goes_on(&mut self) {
        let Load { market, feed, run, clock, stall_max, .. } = self;
        market.run_on_without_stall(*stall_max, clock, run, feed);
    }

    /// Ends the load, and compares the outputs.
    #[track_caller]
    fn check(self) {
        let fed = self.feed.stop("TERM");
        self.market.await_ticks(published(&fed), 0);
        self.market.check_feed(self.seed, &fed);
        self.market.drain(self.run);
        let counts = self.market.check();
        println!("{fed}signals, late, dead letters: {counts:?}");
        assert!(counts[0] > 1000, "{counts:?}");
    }
}

#[test]
#[ignore = "long: see tests/run --all"]
fn a_broker_that_dies_under_load_costs_nothing() {
    let mut random = Random::from_environment();
    let mut load = Load::start(Broker::start("crash"), None, TIMEOUT, &mut random);
    for _ in 0..BROKER_KILLS {
        load.run.run_for(Duration::from_millis(random.below(LOAD_MS_MAX)));
        load.broker.kill();
        load.run.run_for(Duration::from_millis(random.below(OUTAGE_MS_MAX)));
        load.broker.start_again();
        load.goes_on();
    }
    load.check();
}

#[test]
fn a_broker_that_is_gone_is_shown_and_keeps_nobody_from_ending() {
    /// Greatest time to an end: far less than the wait for a broker's answers.
    const END_MAX: Duration = Duration::from_secs(40);
    let mut random = Random::from_environment();
    let mut load = Load::start(Broker::start("gone"), None, PATIENCE, &mut random);
    load.broker.pause();
    load.run.await_saying("broker lost ");
    let asked = Instant::now();
    load.run.signal("TERM");
    let (status, _, error) = load.run.finish();
    let took = asked.elapsed();
    assert_eq!(status.code(), Some(1), "{error}");
    assert!(error.contains("error: broker lost ") && error.contains("Nothing is lost"), "{error}");
    assert!(took < END_MAX, "it took {took:?}");
    load.broker.go_on();
    load.run = load.market.start_run();
    load.goes_on();
    load.check();
}

#[test]
#[ignore = "long: see tests/run --all"]
fn a_broker_that_takes_no_records_is_waited_for() {
    let mut random = Random::from_environment();
    let mut load = Load::start(Broker::start("refusing"), None, TIMEOUT_SHORT, &mut random);

    // The broker is silent for longer than the timeout.
    load.broker.pause();
    load.run.run_for(TIMEOUT_SHORT + TIMEOUT_SHORT / 5);
    load.broker.go_on();
    load.goes_on();

    // The broker refuses records. The process reports the reason and the remedy.
    let signals = load.market.topic("signals");
    load.broker.alter(&signals, "max.message.bytes=100");
    let (log, lifecycle) = (load.market.log.clone(), load.market.topic("lifecycle"));
    load.run.run_until("the refusal is told", || {
        let is_told = |record: &Record| {
            let lifecycle = decode_lifecycle(&record.value).expect("a lifecycle record");
            let says = |part: &str| lifecycle.detail.contains(part);
            lifecycle.event == LifecycleEvent::CommitFailed
                && says(&signals)
                && says("raise max.message.bytes of the topic")
        };
        records(&log, &lifecycle, 0).iter().any(is_told).then_some(())
    });
    load.broker.alter(&signals, "max.message.bytes=1048588");
    // The wait after the last refusal is added to the limit. librdkafka may have skipped numbers of refused records.
    // The next transaction then gets no answer for a whole timeout.
    load.stall_max = 3 * TIMEOUT_SHORT;
    load.goes_on();
    load.check();
}

#[test]
#[ignore = "long: see tests/run --all"]
fn a_network_that_fails_under_load_costs_nothing() {
    let mut random = Random::from_environment();
    let proxy = Proxy::start();
    let broker = Broker::start_behind("network", &proxy.address);
    proxy.lead_to(&broker.address);
    let mut load = Load::start(broker, Some(&proxy), TIMEOUT, &mut random);

    proxy.impose(Fault::Latency(LATENCY));
    load.run.run_for(SLOW);
    load.goes_on();
    proxy.impose(Fault::None);

    for _ in 0..CUTS {
        load.run.run_for(Duration::from_millis(random.below(CUT_MS_MAX)));
        proxy.cut();
    }
    load.goes_on();

    for hole in HOLES {
        proxy.impose(Fault::BlackHole);
        load.run.run_for(hole);
        proxy.impose(Fault::None);
        load.goes_on();
    }

    proxy.forget();
    load.goes_on();

    for delay in END_TXN_DELAYS {
        let before = proxy.delayed();
        proxy.impose(Fault::DelayedEndTxn(delay));
        load.run.run_until("the end of a transaction is answered late", || {
            (proxy.delayed() > before).then_some(())
        });
        load.goes_on();
        proxy.impose(Fault::None);
    }
    load.check();
}

#[test]
fn a_redis_that_dies_and_forgets_costs_nothing() {
    let mut random = Random::from_environment();
    let mut redis = RedisServer::start(&[]);
    let market = Market::new("redis", shared());
    let mut feed = market.start_feed(random.below(1 << 32));
    let mut run = market.start_run_with(&["--hot-state", &redis.url()], &[]);
    market.run_on(&mut run, &mut feed);
    let keep_up = |run: &mut Running, redis: &RedisServer| {
        keep_up_on(run, &market.log, &market.prefix, &redis.url(), "warptape:");
    };
    keep_up(&mut run, &redis);

    let _: () = redis::cmd("FLUSHALL").query(&mut redis.connect()).expect("Redis can be emptied");
    market.run_on(&mut run, &mut feed);
    keep_up(&mut run, &redis);
    for _ in 0..REDIS_KILLS {
        redis.kill();
        market.run_on(&mut run, &mut feed);
        redis.restart();
        market.run_on(&mut run, &mut feed);
        keep_up(&mut run, &redis);
    }

    let fed = feed.stop("TERM");
    market.await_ticks(published(&fed), 0);
    let summary = market.drain(run);
    assert!(summary.contains("\nhot state  redis://"), "{summary}");
    // If this life does not write the rest, the next one does.
    let mut run = market.start_idle_run(&["--hot-state", &redis.url()]);
    keep_up(&mut run, &redis);
    run.stop("TERM");
    expect_equal_on(&market.log, &market.prefix, &mut redis.connect(), "warptape:");
    let counts = market.check();
    assert!(counts[0] > 1000, "{counts:?}");
}
