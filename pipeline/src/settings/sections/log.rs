//! The event log, and hot state.

use std::path::PathBuf;
use std::time::Duration;

use warptape_eventlog::Durability;
use warptape_hot::HotUrl;

use super::super::declaration::{address, choice, integer, section, text, whole};
use super::super::syntax;
use super::super::value::Setting;
use super::milliseconds;
use crate::runtime::Topics;

section! {
    "log": "The event log.";
    /// The event log.
    pub struct LogSettings {
        /// The event log. `sqlite:PATH` is one file, shared by all commands; `kafka:HOST:PORT` is a cluster.
        url: String = text(
            "sqlite:warptape.db",
            "a string of the form sqlite:PATH or kafka:HOST:PORT[,HOST:PORT…]",
            syntax::is_log_url,
            str::to_owned,
        );
        /// Losses that a commit survives: `process`, the death of the process; `full`, the loss of power as well.
        durability: Durability = choice(&["process", "full"], |word| match word {
            "full" => Durability::Full,
            _ => Durability::Process,
        });
    }
}

section! {
    "topics": "Names and partitions of topics, such as ticks, signals, journal, snapshots, late, dead-letter, lifecycle, risk.requests and risk.results.";
    /// Names of topics, and how missing ones are created.
    pub struct TopicSettings {
        /// Prefix of every topic name.
        prefix: String = text(
            "",
            "a string of up to 64 characters of A-Z a-z 0-9 . _ -",
            syntax::is_topic_prefix,
            str::to_owned,
        );
        /// Partitions of topics that are created; existing topics keep theirs.
        partitions: i32 = integer(4, 1..=1024, whole);
        /// Partitions of the journal when it is created: the greatest number of processes in a group. 0 is 16 on Kafka,
        /// and 1 on the embedded log, where a group has one process.
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
    "journal": "Anchors of the journal: signatures, also stored in a second place, so that a forged or cut journal is noticed.";
    /// How the journal is anchored.
    pub struct JournalSettings {
        /// File of the Ed25519 private key that signs the head of each commit, in PEM (`warptape journal keygen` makes
        /// one); an empty path: no signatures. Only its owner and its group may read it.
        signing_key_file: PathBuf = text("", "a path, or an empty string", |_| true, |path| PathBuf::from(path));
        /// File on another disk or machine to append signed heads to; an empty path: none. Processes may share one.
        anchor_file: PathBuf = text("", "a path, or an empty string", |_| true, |path| PathBuf::from(path));
        /// Another event log to write signed heads to, of the form `sqlite:PATH` or `kafka:HOST:PORT`; an empty string:
        /// none. Its topic is `anchors`, with topics.prefix, and all of section `kafka` applies to it too.
        anchor_log: String = text(
            "",
            "a string of the form sqlite:PATH or kafka:HOST:PORT[,HOST:PORT…], or an empty string",
            |url| url.is_empty() || syntax::is_log_url(url),
            str::to_owned,
        );
        /// Least time between two heads in the second places, in milliseconds. A cut of the log's last records up to
        /// this time is not found.
        anchor_interval as anchor_interval_ms: Duration = integer(1_000, 0..=3_600_000, milliseconds);
    }
}

section! {
    "hot_state": "Hot state: the latest values of each symbol and the results of risk requests, for quick reads.";
    /// The latest state of each symbol, and results of risk requests.
    pub struct HotStateSettings {
        /// Place of hot state: `redis://` and `rediss://` (TLS) name a Redis or Valkey, `memory` keeps nothing beside
        /// the log. An address with a password comes from the environment: WARPTAPE__HOT_STATE__URL, or
        /// WARPTAPE__HOT_STATE__URL_FILE for the path of a file that holds it. It is never printed.
        url: HotUrl = address("memory", HotUrl::ALLOWED, syntax::is_hot_state_url, |text| {
            HotUrl::parse(text).expect("the address was checked when it was read")
        });
        /// Prefix of every key in Redis, before topics.prefix. Logs that share a Redis need different prefixes.
        prefix: String = text(
            "warptape:",
            "a string of up to 64 characters of A-Z a-z 0-9 . _ - :",
            syntax::is_key_prefix,
            str::to_owned,
        );
        /// Time for which Redis keeps the result of a risk request, in seconds from its record's time. The log keeps it
        /// longer.
        result_ttl as result_ttl_s: Duration = integer(3_600, 1..=2_592_000, |seconds| {
            Duration::from_secs(seconds as u64)
        });
    }
}
