//! A campaign of faults on a real Kafka.

use std::path::Path;

use warptape_eventlog::{EventLog, KafkaLog, KafkaOptions, Record};

use super::broker::Broker;
use super::campaign::{self, FEED_FILE, Fault, Scene};
use super::history::Random;
use super::kafka_market::{Market, PARTITIONS, TickReader, fed};
use super::processes::{DEADLINE, Running};

/// Greatest allowed memory of an unpacked batch, in bytes: more than the largest foreign record, and less than a bomb.
const UNPACKED_BYTES_MAX: usize = 32 << 20;

/// A market on its own broker.
struct OwnBroker {
    broker: Broker,
    options: KafkaOptions,
    market: Market,
}

impl OwnBroker {
    fn new() -> Self {
        let broker = Broker::start("campaign");
        let options = KafkaOptions {
            request_timeout: DEADLINE,
            stall_timeout: DEADLINE,
            unpacked_bytes_max: UNPACKED_BYTES_MAX,
            ..KafkaOptions::new(&broker.direct)
        };
        // After a silence longer than the session timeout, the broker would treat a returning static member as a second
        // member.
        let settings =
            format!("kafka.session_timeout_ms = 30000\nkafka.unpacked_bytes_max = {UNPACKED_BYTES_MAX}");
        let url = format!("kafka:{}", broker.address);
        let market = Market::reached_by("campaign", options.clone(), url, &settings);
        Self { broker, options, market }
    }
}

impl Scene for OwnBroker {
    fn log(&self) -> &dyn EventLog {
        &self.market.log
    }

    fn partitions(&self) -> i32 {
        PARTITIONS
    }

    fn prefix(&self) -> &str {
        &self.market.prefix
    }

    fn group(&self) -> &str {
        &self.market.group
    }

    fn faults(&self) -> &[Fault] {
        use Fault::{
            Abort, Bomb, ClockStep, Failpoint, FeedTwice, Freeze, FreezeBroker, Kill, KillBeginning,
            KillBroker, KillFeed, Neighbours, RepeatFile, ResetOffsets, Retention, Stop,
        };
        &[
            Kill,
            Kill,
            KillBeginning,
            Failpoint,
            Failpoint,
            Freeze,
            KillFeed,
            Stop,
            KillBroker,
            FreezeBroker,
            FeedTwice,
            RepeatFile,
            Abort,
            ResetOffsets,
            ClockStep,
            Retention,
            Neighbours,
            Bomb,
        ]
    }

    fn start_feed(&self, seed: u64) -> Running {
        self.market.start_feed(seed)
    }

    fn start_run(&self, environment: &[(&str, &str)]) -> Running {
        self.market.start_run_with(&[], environment)
    }

    fn ticks(&self) -> Vec<Vec<Record>> {
        self.market.ticks()
    }

    fn broker(&self) -> Option<&Broker> {
        Some(&self.broker)
    }

    fn market(&self) -> Option<&Market> {
        Some(&self.market)
    }

    fn compressing(&self) -> Box<dyn EventLog> {
        let extra = [("compression.type", "zstd"), ("message.max.bytes", "25000000")];
        let extra = extra.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let options = KafkaOptions { extra, ..self.options.clone() };
        Box::new(KafkaLog::open(options).expect("a broker"))
    }

    fn noise_bytes_max(&self) -> usize {
        let taken = self.market.log.record_bytes_max(&[&self.market.topic("ticks")]);
        taken.expect("the broker says what its topics take")[0]
    }

    fn folder(&self) -> &Path {
        self.market.path()
    }

    fn feed_file(&self, file: &str, arguments: &[&str]) -> Running {
        let url = &self.market.url;
        Running::start(self.folder(), &[FEED_FILE, &["-c", "w.toml", "--log", url, file], arguments].concat())
    }

    fn check_damaged_copy(&self, _random: &mut Random) {
        unreachable!("files of a broker are its own");
    }

    fn await_published(&self, seed: u64, summary: &str, [ticks, others]: [u64; 2]) {
        let reader =
            TickReader::behind(&self.market.log, &self.market.topic("ticks"), &self.market.removed());
        reader.await_all(fed(summary) + ticks, others);
        self.market.check_feed(seed, summary);
    }

    fn drain(&self, run: Running) {
        self.market.drain(run);
    }

    fn check(&self) -> [usize; 3] {
        self.market.check()
    }
}

#[test]
fn faults_on_kafka_lose_nothing_and_double_nothing() {
    let campaign = campaign::run(OwnBroker::new);
    // At least one episode must be complete. How often the broker itself ends an episode depends on the load of the
    // machine.
    assert!(campaign.late > 0 && campaign.episodes > 0, "{campaign:?}");
}
