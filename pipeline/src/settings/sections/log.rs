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
        /// The event log. `sqlite:PATH` is a file, shared by all commands; `kafka:HOST:PORT` is a cluster.
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
    and {
        /// Ages up to which the embedded log keeps records.
        kept_for: KeptFor = |values| KeptFor::read(values);
        /// Sizes up to which the embedded log keeps records.
        kept_bytes: KeptBytes = |values| KeptBytes::read(values);
    }
}

section! {
    "log.retention_hours": "Age up to which the embedded log keeps records, in hours since they were written; 0 is without limit. A \
                            live `run` removes older ones, except what it needs for a restart. On Kafka, see \
                            [kafka.retention_hours].";
    /// Ages up to which records are kept, by topic; `None` is without limit.
    pub struct KeptFor {
        /// Ticks.
        ticks: Option<Duration> = integer(0, 0..=1_000_000, hours);
        /// Signals.
        signals: Option<Duration> = integer(0, 0..=1_000_000, hours);
        /// Journal. `replay` begins at the first remaining start or checkpoint.
        journal: Option<Duration> = integer(0, 0..=1_000_000, hours);
        /// Late ticks.
        late: Option<Duration> = integer(0, 0..=1_000_000, hours);
        /// Dead letters.
        dead_letter: Option<Duration> = integer(0, 0..=1_000_000, hours);
        /// Lifecycle.
        lifecycle: Option<Duration> = integer(0, 0..=1_000_000, hours);
        /// Risk requests.
        risk_requests: Option<Duration> = integer(0, 0..=1_000_000, hours);
        /// Risk results. A request's id is refused a second time while its result is kept.
        risk_results: Option<Duration> = integer(0, 0..=1_000_000, hours);
    }
}

section! {
    "log.retention_mib": "Size up to which the embedded log keeps the records of a topic, in MiB; 0 is without limit. A live `run` \
                          removes the oldest ones beyond it, except what it needs for a restart. Other files, indices and \
                          snapshots come on top.";
    /// Sizes in bytes up to which records are kept, by topic; `None` is without limit.
    pub struct KeptBytes {
        /// Ticks.
        ticks: Option<u64> = integer(24_576, 0..=1_000_000_000, mebibytes);
        /// Signals.
        signals: Option<u64> = integer(24_576, 0..=1_000_000_000, mebibytes);
        /// Journal. `replay` begins at the first remaining start or checkpoint.
        journal: Option<u64> = integer(8_192, 0..=1_000_000_000, mebibytes);
        /// Late ticks.
        late: Option<u64> = integer(1_024, 0..=1_000_000_000, mebibytes);
        /// Dead letters.
        dead_letter: Option<u64> = integer(1_024, 0..=1_000_000_000, mebibytes);
        /// Lifecycle.
        lifecycle: Option<u64> = integer(1_024, 0..=1_000_000_000, mebibytes);
        /// Risk requests.
        risk_requests: Option<u64> = integer(2_048, 0..=1_000_000_000, mebibytes);
        /// Risk results. A request's id is refused a second time while its result is kept.
        risk_results: Option<u64> = integer(3_072, 0..=1_000_000_000, mebibytes);
    }
}

fn hours(number: i64) -> Option<Duration> {
    (number > 0).then(|| Duration::from_secs(number as u64 * 3600))
}

fn mebibytes(number: i64) -> Option<u64> {
    (number > 0).then_some((number as u64) << 20)
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
