//! A campaign of faults on a real Kafka.

use warptape_eventlog::{EventLog, KafkaOptions};

use super::broker::Broker;
use super::campaign::{self, Fault, Scene};
use super::kafka_market::{Market, PARTITIONS, TickReader, fed};
use super::processes::{DEADLINE, Running};

/// A broker that is silent for longer than the session timeout takes a static member that comes back for two.
const SETTINGS: &str = "kafka.session_timeout_ms = 30000";

/// A market on a broker of its own.
struct OwnBroker {
    broker: Broker,
    market: Market,
}

impl OwnBroker {
    fn new() -> Self {
        let broker = Broker::start("campaign");
        let options = KafkaOptions {
            request_timeout: DEADLINE,
            stall_timeout: DEADLINE,
            ..KafkaOptions::new(&broker.direct)
        };
        let market = Market::reached_by("campaign", options, format!("kafka:{}", broker.address), SETTINGS);
        Self { broker, market }
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
        use Fault::{Failpoint, Freeze, FreezeBroker, Kill, KillBeginning, KillBroker, KillFeed, Stop};
        &[Kill, Kill, KillBeginning, Failpoint, Failpoint, Freeze, KillFeed, Stop, KillBroker, FreezeBroker]
    }

    fn start_feed(&self, seed: u64) -> Running {
        self.market.start_feed(seed)
    }

    fn start_run(&self, environment: &[(&str, &str)]) -> Running {
        self.market.start_run_with(&[], environment)
    }

    fn broker(&self) -> Option<&Broker> {
        Some(&self.broker)
    }

    fn await_published(&self, seed: u64, summary: &str, poison: u64) {
        let ticks = TickReader::new(&self.market.log, &self.market.topic("ticks"), PARTITIONS);
        ticks.await_all(fed(summary), poison);
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
    assert!(campaign.late > 0 && campaign.episodes > campaign.excused, "{campaign:?}");
}
