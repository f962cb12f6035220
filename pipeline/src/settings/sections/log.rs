//! Where events are kept, and the latest of them.

use std::time::Duration;

use warptape_eventlog::Durability;
use warptape_hot::HotUrl;

use super::super::declaration::{address, choice, integer, section, text, whole};
use super::super::syntax;
use super::super::value::Setting;
use crate::engine::Topics;

section! {
    "log": "Where events are kept.";
    /// Where events are kept.
    pub struct LogSettings {
        /// The event log. `sqlite:PATH` is one file, shared by all commands; `kafka:HOST:PORT` is a cluster.
        url: String = text(
            "sqlite:warptape.db",
            "a string of the form sqlite:PATH or kafka:HOST:PORT[,HOST:PORT…]",
            syntax::is_log_url,
            str::to_owned,
        );
        /// What a commit survives: `process` the death of the process, `full` the loss of power as well.
        durability: Durability = choice(&["process", "full"], |word| match word {
            "full" => Durability::Full,
            _ => Durability::Process,
        });
    }
}

section! {
    "topics": "Topics: ticks, signals, journal, snapshots, late, dead-letter, lifecycle, risk.requests, risk.results.";
    /// Names of topics, and how missing ones are created.
    pub struct TopicSettings {
        /// Put before every topic name.
        prefix: String = text(
            "",
            "a string of up to 64 characters of A-Z a-z 0-9 . _ -",
            syntax::is_topic_prefix,
            str::to_owned,
        );
        /// Partitions of topics that are created; existing topics keep theirs.
        partitions: i32 = integer(4, 1..=1024, whole);
        /// Partitions of the journal when it is created: so many processes can be in a group. 0 is 16 on Kafka, and 1 on
        /// the embedded log, where a group has one process.
        journal_partitions: i32 = integer(0, 0..=1024, whole);
    }
    and {
        /// Names, prefix included.
        names: Topics = |values| match values.get("topics.prefix") {
            Setting::Text(prefix) => Topics::new(prefix),
            other => unreachable!("the prefix of topics is a text, not {other:?}"),
        };
    }
}

section! {
    "hot_state": "The latest of each symbol, and results of risk requests, for those who want them now.";
    /// The latest of each symbol, and results of risk requests.
    pub struct HotStateSettings {
        /// Where it is kept: `redis://` and `rediss://` (TLS) name a Redis or Valkey, `memory` keeps none beside the
        /// log. An address with a password comes from the environment: WARPTAPE__HOT_STATE__URL, or
        /// WARPTAPE__HOT_STATE__URL_FILE for the path of a file that holds it. It is never printed.
        url: HotUrl = address("memory", HotUrl::ALLOWED, syntax::is_hot_state_url, |text| {
            HotUrl::parse(text).expect("the address was checked when it was read")
        });
        /// Put before every key in Redis, followed by topics.prefix. Logs that share a Redis need one each.
        prefix: String = text(
            "warptape:",
            "a string of up to 64 characters of A-Z a-z 0-9 . _ - :",
            syntax::is_key_prefix,
            str::to_owned,
        );
        /// How long Redis keeps the result of a risk request, in seconds from its record's time on. The log keeps it for
        /// longer.
        result_ttl as result_ttl_s: Duration = integer(3_600, 1..=2_592_000, |seconds| {
            Duration::from_secs(seconds as u64)
        });
    }
}
