//! Neighbours on the same cluster, whose topics are created and deleted in large numbers.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use super::kafka_clients::given;

/// Script that creates topics with a varying number of partitions, and deletes them, until standard input is closed. It
/// prints the number of deletions.
const COME_AND_GO: &str = "\
import select, sys
from confluent_kafka.admin import AdminClient, NewTopic
admin = AdminClient({'bootstrap.servers': sys.argv[1]})
names = [f'neighbour-{number}.{topic}' for number in range(20) for topic in ('ticks', 'journal', 'control')]
rounds = 0
while rounds < 2 or not select.select([sys.stdin], [], [], 0)[0]:
    topics = [NewTopic(name, 1 + rounds % 3, 1) for name in names]
    for change in (lambda: admin.create_topics(topics), lambda: admin.delete_topics(names)):
        for answer in change().values():
            answer.result()
    rounds += 1
print(rounds * len(names))
";

/// A process that creates and deletes topics; it is killed when dropped.
pub struct Neighbours(Child);

impl Neighbours {
    pub fn start(brokers: &str) -> Neighbours {
        let mut python = Command::new(given("WARPTAPE_TEST_PYTHON"));
        python.args(["-c", COME_AND_GO, brokers]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Neighbours(python.spawn().expect("Python starts"))
    }

    /// Ends the process once it has created each topic at least twice. Returns the number of deletions.
    pub fn stop(mut self) -> u64 {
        drop(self.0.stdin.take());
        let mut told = String::new();
        self.0.stdout.take().expect("a pipe").read_to_string(&mut told).expect("text");
        assert!(self.0.wait().expect("a child can be waited for").success(), "neighbours have failed");
        told.trim().parse().expect("a number of topics")
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
