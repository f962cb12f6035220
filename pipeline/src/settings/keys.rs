//! The table of all keys: name, default, what is allowed, and what it is for.
//!
//! Everything else about configuration (parsing, `config show`, the example file) is derived from this table. It must
//! not know where values come from.

use warptape_kernels::{PARAMETERS, Parameter};

use super::syntax;
use warptape_hot::HotUrl;

/// One configuration key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Dotted path, such as `engine.commit_interval_ms`.
    pub path: &'static str,
    /// Type, default and limits.
    pub kind: Kind,
    /// What the key is for: one or two sentences for the example file.
    pub about: &'static str,
}

/// Type of a key with its default and what it may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A string.
    Text {
        /// Default.
        default: &'static str,
        /// What is allowed, in words.
        allowed: &'static str,
        /// Is it?
        check: fn(&str) -> bool,
    },
    /// One of a few words.
    Choice {
        /// Default.
        default: &'static str,
        /// All of them.
        choices: &'static [&'static str],
    },
    /// A whole number.
    Integer {
        /// Default.
        default: i64,
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// A number.
    Number {
        /// Default.
        default: f64,
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
    },
    /// A list of strings.
    List {
        /// Default.
        default: &'static [&'static str],
        /// What an item may be, in words.
        allowed: &'static str,
        /// Greatest number of items; the least is 1, or 0 where the default has none.
        items_max: usize,
        /// Is the item allowed?
        check: fn(&str) -> bool,
    },
    /// A string that may hold a password: then only from where secrets come from.
    Address {
        /// Default.
        default: &'static str,
        /// What is allowed, in words.
        allowed: &'static str,
        /// Is it?
        check: fn(&str) -> bool,
    },
    /// Something that must not be seen: only from the environment, or from a file of its own that `KEY_file` names.
    Secret,
    /// Names that somebody else defines, with a text each; some of them may be secrets.
    Table {
        /// What is allowed, in words.
        allowed: &'static str,
        /// Is the name allowed?
        check: fn(&str) -> bool,
        /// Is what has this name a secret?
        is_secret: fn(&str) -> bool,
    },
}

/// Sections in the order of the example file, with what each is about.
pub const SECTIONS: &[(&str, &str)] = &[
    ("log", "Where events are kept."),
    (
        "topics",
        "Topics: ticks, signals, journal, snapshots, late, dead-letter, lifecycle, risk.requests, risk.results.",
    ),
    ("hot_state", "The latest of each symbol, and results of risk requests, for those who want them now."),
    ("kafka", "How to be a client of Kafka, for logs of the form kafka:HOST:PORT."),
    (
        "kafka.retention_hours",
        "How long topics that are created on Kafka keep records, in hours; 0 is for ever.",
    ),
    ("schema_registry", "Where the schemas of records are registered."),
    ("engine", "The loop that reads ticks, feeds lanes and commits."),
    ("scheduler", "Placement of symbol groups, dispatch of batches, backpressure."),
    ("risk", "Risk requests, and how lanes share them."),
    ("stages", "What is computed; outputs depend on this section and the log alone."),
    ("stages.indicators", "Windows of the indicators, in bars."),
    ("stages.signals", "Thresholds of the signals."),
    ("stages.market", "What risk requests find of the market."),
];

const fn integer(path: &'static str, default: i64, min: i64, max: i64, about: &'static str) -> Key {
    Key { path, kind: Kind::Integer { default, min, max }, about }
}

const fn number(path: &'static str, default: f64, min: f64, max: f64, about: &'static str) -> Key {
    Key { path, kind: Kind::Number { default, min, max }, about }
}

const fn retention(path: &'static str, default: i64, about: &'static str) -> Key {
    integer(path, default, 0, 1_000_000, about)
}

/// The key of an indicator's parameter.
const fn parameter(parameter: &Parameter) -> Key {
    let Parameter { path, default, min, max, is_window, about, .. } = *parameter;
    if is_window {
        integer(path, default as i64, min as i64, max as i64, about)
    } else {
        number(path, default, min, max, about)
    }
}

/// All keys, section by section: those of indicators come from the table of indicators.
pub const KEYS: &[Key] = &{
    let mut keys =
        [BEFORE_INDICATORS[0]; BEFORE_INDICATORS.len() + PARAMETERS.len() + AFTER_INDICATORS.len()];
    let mut position = 0;
    while position < keys.len() {
        keys[position] = if position < BEFORE_INDICATORS.len() {
            BEFORE_INDICATORS[position]
        } else if position < BEFORE_INDICATORS.len() + PARAMETERS.len() {
            parameter(&PARAMETERS[position - BEFORE_INDICATORS.len()])
        } else {
            AFTER_INDICATORS[position - BEFORE_INDICATORS.len() - PARAMETERS.len()]
        };
        position += 1;
    }
    keys
};

/// Keys of the sections before that of the indicators' parameters.
const BEFORE_INDICATORS: &[Key] = &[
    Key {
        path: "log.url",
        kind: Kind::Text {
            default: "sqlite:warptape.db",
            allowed: "a string of the form sqlite:PATH or kafka:HOST:PORT[,HOST:PORT…]",
            check: syntax::is_log_url,
        },
        about: "The event log. `sqlite:PATH` is one file, shared by all commands; `kafka:HOST:PORT` is a cluster.",
    },
    Key {
        path: "log.durability",
        kind: Kind::Choice { default: "process", choices: &["process", "full"] },
        about: "What a commit survives: `process` the death of the process, `full` the loss of power as well.",
    },
    Key {
        path: "topics.prefix",
        kind: Kind::Text {
            default: "",
            allowed: "a string of up to 64 characters of A-Z a-z 0-9 . _ -",
            check: syntax::is_topic_prefix,
        },
        about: "Put before every topic name.",
    },
    integer(
        "topics.partitions",
        4,
        1,
        1024,
        "Partitions of topics that are created; existing topics keep theirs.",
    ),
    integer(
        "topics.journal_partitions",
        0,
        0,
        1024,
        "Partitions of the journal when it is created: so many processes can be in a group. 0 is 16 on Kafka, and 1 on \
         the embedded log, where a group has one process.",
    ),
    Key {
        path: "hot_state.url",
        kind: Kind::Address { default: "memory", allowed: HotUrl::ALLOWED, check: syntax::is_hot_state_url },
        about: "Where it is kept: `redis://` and `rediss://` (TLS) name a Redis or Valkey, `memory` keeps none beside the \
                log. An address with a password comes from the environment: WARPTAPE__HOT_STATE__URL, or \
                WARPTAPE__HOT_STATE__URL_FILE for the path of a file that holds it. It is never printed.",
    },
    Key {
        path: "hot_state.prefix",
        kind: Kind::Text {
            default: "warptape:",
            allowed: "a string of up to 64 characters of A-Z a-z 0-9 . _ - :",
            check: syntax::is_key_prefix,
        },
        about: "Put before every key in Redis, followed by topics.prefix. Logs that share a Redis need one each.",
    },
    integer(
        "hot_state.result_ttl_s",
        3_600,
        1,
        2_592_000,
        "How long Redis keeps the result of a risk request, in seconds from its record's time on. The log keeps it for \
         longer.",
    ),
    Key {
        path: "kafka.group_protocol",
        kind: Kind::Choice { default: "classic", choices: &["classic", "consumer"] },
        about: "Protocol of the consumer group: `consumer` is the one of KIP-848, for brokers from 4.0 on.",
    },
    integer(
        "kafka.session_timeout_ms",
        10_000,
        6_000,
        1_800_000,
        "A process that is silent for so long loses its partitions to others, in milliseconds. The broker has the \
         last word with group_protocol `consumer`. A transaction may be open for half of it.",
    ),
    integer(
        "kafka.request_timeout_ms",
        30_000,
        1_000,
        600_000,
        "Longest wait for an answer of the cluster, in milliseconds. After a third of it a question is asked again on a new \
         connection; after all of it the outcome of a commit is unknown, and is settled before anything else is written. \
         The same holds for records that nobody acknowledges for so long. A process that reads nothing for so long, though \
         there are records, ends.",
    ),
    integer(
        "kafka.replication_factor",
        0,
        0,
        15,
        "Replicas of topics that are created; 0 leaves it to the broker (default.replication.factor).",
    ),
    integer(
        "kafka.min_insync_replicas",
        0,
        0,
        15,
        "Replicas that must have a record before it counts as written, for topics that are created; 0 leaves it to the \
         broker (min.insync.replicas). 2 of 3 replicas survive the loss of one broker.",
    ),
    Key {
        path: "kafka.properties",
        kind: Kind::Table {
            allowed: "properties of librdkafka by their names, but those that Warptape sets itself",
            check: syntax::is_librdkafka_property,
            is_secret: syntax::is_secret_name,
        },
        about: "Handed to librdkafka as they are: `\"security.protocol\" = \"SASL_SSL\"`. Passwords and private keys come \
                from the environment: WARPTAPE__KAFKA__PROPERTIES__SASL__PASSWORD, or \
                WARPTAPE__KAFKA__PROPERTIES__SASL__PASSWORD_FILE for the path of a file that holds it.",
    },
    retention(
        "kafka.retention_hours.ticks",
        168,
        "Ticks. A state whose snapshots are lost is rebuilt from them.",
    ),
    retention("kafka.retention_hours.signals", 168, "Signals."),
    retention("kafka.retention_hours.journal", 0, "Journal. `replay verify` begins at its first entry."),
    retention("kafka.retention_hours.late", 168, "Late ticks."),
    retention("kafka.retention_hours.dead_letter", 720, "Dead letters."),
    retention("kafka.retention_hours.lifecycle", 720, "Lifecycle."),
    retention("kafka.retention_hours.risk_requests", 168, "Risk requests."),
    retention(
        "kafka.retention_hours.risk_results",
        168,
        "Risk results. The id of a request is refused a second time as long as its result is there.",
    ),
    Key {
        path: "schema_registry.url",
        kind: Kind::Text {
            default: "",
            allowed: "a string of the form http://HOST:PORT or https://HOST:PORT without user and password, or an \
                      empty one",
            check: syntax::is_registry_url,
        },
        about: "Schema registry with the REST interface of Confluent's. Where it is set, records are written in its \
                frame (a zero byte, four bytes of schema id) and schemas are registered at start; where it is empty, \
                in Avro's single-object encoding. Either is read.",
    },
    Key {
        path: "schema_registry.username",
        kind: Kind::Text { default: "", allowed: "a string without a colon", check: syntax::is_username },
        about: "User name for the registry, if it asks for one.",
    },
    Key { path: "schema_registry.password", kind: Kind::Secret, about: "Password for the registry." },
    integer(
        "schema_registry.retry_ms",
        10_000,
        0,
        600_000,
        "How long a registry that does not answer is asked again for the schema of a record, in milliseconds. Then the \
         process ends: the record may be a good one.",
    ),
    Key {
        path: "engine.group",
        kind: Kind::Text {
            default: "warptape",
            allowed: "a string of 1 to 64 characters of A-Z a-z 0-9 . _ -",
            check: syntax::is_name,
        },
        about: "Consumer group: it owns the offsets of the source topic.",
    },
    Key {
        path: "engine.node",
        kind: Kind::Text {
            default: "",
            allowed: "a string of up to 64 characters of A-Z a-z 0-9 . _ -",
            check: syntax::is_topic_prefix,
        },
        about: "Name of this process within its group, for people; an empty one is `node-ORDINAL`.",
    },
    integer(
        "engine.ordinal",
        0,
        0,
        1023,
        "Number of this process within its group, from 0. Each process has its own: its transactional id is \
         GROUP-ORDINAL, its partition of the journal has this number, and on Kafka it comes back to its partitions by it.",
    ),
    Key {
        path: "engine.devices",
        kind: Kind::List {
            default: &["cpu:2"],
            allowed: "`cpu:N` (N lanes on the CPU, 1 to 64), `cuda:N` (a lane on GPU N, from 0), `cuda:N#M` (M lanes on \
                      it, 1 to 16) or `auto` (a lane on each GPU; without any, one CPU lane per core but one)",
            items_max: 64,
            check: syntax::is_device,
        },
        about: "Devices that lanes run on: `cpu:N` is N lanes on the CPU, `cuda:N` a lane on GPU N, `auto` one on each GPU \
                or, without any, one per core but one. Where all are on GPUs, some on the CPU stand by, as far as 64 in all allow.",
    },
    integer(
        "engine.device_deadline_ms",
        5_000,
        10,
        600_000,
        "Time that a GPU may take for a batch, in milliseconds: then its lanes' groups go elsewhere. To be opened, to make \
         up for what a group has missed, or for a slice of a risk task it may take a minute at least.",
    ),
    integer("engine.commit_interval_ms", 100, 1, 60_000, "Time between transactions, in milliseconds."),
    integer(
        "engine.snapshot_interval_records",
        20_000,
        1,
        1_000_000_000,
        "Source records of a partition between two snapshots of its state.",
    ),
    integer("engine.poll_records_max", 256, 1, 65_536, "Records taken from the log at once."),
    integer("engine.poll_bytes_max", 524_288, 4_096, 1 << 30, "Bytes taken from the log at once, about."),
    Key {
        path: "scheduler.placement_policy",
        kind: Kind::Choice { default: "rendezvous", choices: &["rendezvous"] },
        about: "Rule that chooses a lane for a symbol group: `rendezvous` is weighted rendezvous hashing with bounded load.",
    },
    integer("scheduler.placement_seed", 0, i64::MIN, i64::MAX, "Seed of the policy's hash streams."),
    integer(
        "scheduler.load_factor_percent",
        125,
        100,
        10_000,
        "A lane takes at most this share of its fair number of groups, in percent.",
    ),
    integer("scheduler.lane_credit_rows", 262_144, 1, 1 << 32, "Rows a lane may have in flight."),
    integer("scheduler.lane_credit_bytes", 33_554_432, 4_096, 1 << 40, "Bytes a lane may have in flight."),
    integer(
        "scheduler.lane_batches_max",
        2,
        1,
        64,
        "Batches a lane may have in flight: 2 is one running, one queued.",
    ),
    integer("scheduler.batch_rows_max", 65_536, 1, 1 << 24, "Rows of the largest batch."),
    integer(
        "scheduler.row_deadline_us",
        5_000,
        1,
        60_000_000,
        "Time from a row's arrival by which a busy lane is predicted to finish it, in microseconds.",
    ),
    integer(
        "scheduler.high_water_rows",
        1_048_576,
        1,
        1 << 32,
        "A partition is paused at the source when this many of its rows wait.",
    ),
    integer(
        "scheduler.low_water_rows",
        262_144,
        0,
        1 << 32,
        "A paused partition is resumed when no more than this many of its rows wait.",
    ),
    integer(
        "scheduler.route_interval_ms",
        1_000,
        0,
        86_400_000,
        "Where there are lanes on GPUs and on the processor: time between looks at which groups are better off on the \
         other kind, in milliseconds; 0: groups stay.",
    ),
    integer(
        "risk.commit_interval_ms",
        5,
        1,
        60_000,
        "Time between transactions while risk results wait, in milliseconds; `engine.commit_interval_ms` else.",
    ),
    integer(
        "risk.slice_us",
        500,
        1,
        1_000_000,
        "Time that a lane is to work on one slice of a task, in microseconds. Batches of ticks that come meanwhile do not wait for it, but on the processor they share its time.",
    ),
    integer("risk.tasks_max", 10_000, 1, 1_000_000, "Tasks known at a time; a further one is rejected."),
    integer(
        "risk.bytes_max",
        256 << 20,
        1,
        1 << 40,
        "Bytes of the requests of tasks known at a time and of what their work may come to, about; a further one is rejected, unless there is no other.",
    ),
    integer(
        "risk.cost_max_s",
        3_600,
        1,
        31_536_000,
        "Time of one core that a request may be estimated to take, in seconds; a larger one is refused. docs/risk.md says how it \
         is estimated; lanes on GPUs take less.",
    ),
    Key {
        path: "risk.split",
        kind: Kind::Choice { default: "dynamic", choices: &["dynamic", "equal", "score"] },
        about: "How the units of a task are shared out: every free lane takes the next ones (`dynamic`), each lane gets as \
                many (`equal`), or in proportion to its weight (`score`).",
    },
    Key {
        path: "risk.tenant_weights",
        kind: Kind::List {
            default: &[],
            allowed: "`TENANT=WEIGHT`, the weight from 1 to 1000",
            items_max: 1_024,
            check: syntax::is_tenant_weight,
        },
        about: "What tenants' shares of the lanes are in proportion to, within a class of urgency: `[\"desk=4\"]`. Tenants that \
                are not named weigh 1.",
    },
    Key {
        path: "stages.bars",
        kind: Kind::List {
            default: &["1s", "1m", "5m"],
            allowed: "an interval (`250ms`, `1s`, `5m`, `1h`), `tick:N` trades or `volume:V`",
            items_max: 16,
            check: syntax::is_bar,
        },
        about: "Bars that ticks are folded into: by event time (`250ms`, `1s`, `5m`, `1h`), by trades (`tick:100`), by \
                volume (`volume:10`).",
    },
    integer(
        "stages.allowed_lateness_ms",
        2_000,
        0,
        3_600_000,
        "How far a tick's event time may lie behind the greatest one seen in its partition, in milliseconds.",
    ),
    integer(
        "stages.future_max_ms",
        345_600_000,
        1,
        9_000_000_000_000,
        "How far a tick's event time may lie ahead of the greatest one seen in its partition, in milliseconds: a record with one \
         further ahead is a dead letter. After a longer gap in the data, the first 7 records of each partition are. The default \
         of four days is longer than markets close over a weekend and a holiday; less is safer where they do not close.",
    ),
    integer(
        "stages.clock_skew_max_ms",
        60_000,
        1,
        9_000_000_000_000,
        "How far a tick's event time may lie ahead of the time at which its record was written, in milliseconds: a record with one further ahead is a dead letter, however long markets may close. The time is \
         the record's create time: the producer's clock, or the broker's with `message.timestamp.type=LogAppendTime`. Data that \
         are dated in the future lose the first 7 records of each partition; after these, the greatest event time alone counts.",
    ),
    integer(
        "stages.groups_per_partition",
        16,
        1,
        4_096,
        "Symbol groups of a partition: the unit of placement on lanes.",
    ),
];

/// Those behind the parameters of indicators.
const AFTER_INDICATORS: &[Key] = &[
    number("stages.signals.rsi_upper", 70.0, 0.0, 100.0, "RSI above this is overbought."),
    number(
        "stages.signals.rsi_lower",
        30.0,
        0.0,
        100.0,
        "RSI below this is oversold; less than `rsi_upper`.",
    ),
    number(
        "stages.signals.zscore_threshold",
        3.0,
        0.01,
        100.0,
        "Distance from the mean, in standard deviations, that calls for a reversion. With the width of the Bollinger \
         bands, and their window as `zscore`, each break of a band is a z-score as well (docs/indicators.md).",
    ),
    integer(
        "stages.market.sample_interval_ms",
        1_000,
        1,
        86_400_000,
        "Event time between samples of all prices: volatilities and correlations of risk requests are of these.",
    ),
    integer(
        "stages.market.window",
        256,
        30,
        4_096,
        "Returns that are kept of each symbol, in samples: volatilities and matrices take 30 at least.",
    ),
    number(
        "stages.market.decay",
        0.94,
        0.01,
        1.0,
        "Weight of a return in a covariance relative to the next one.",
    ),
    number(
        "stages.market.trading_hours_a_year",
        8_760.0,
        1.0,
        8_760.0,
        "Hours of trading in a year, by which volatilities and covariances of the market are annualised: 8760 where it never \
         closes, 1638 for 252 days of 6.5 hours.",
    ),
];

/// The key that a path gives a value to: itself, the table that it is a name of, or the secret whose file it names.
pub fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| match &key.kind {
        Kind::Secret | Kind::Address { .. } => {
            path == key.path || path.strip_suffix(FILE_SUFFIX) == Some(key.path)
        }
        Kind::Table { .. } => path == key.path || key.entry_of(path).is_some(),
        _ => path == key.path,
    })
}

/// Put behind the name of a secret or an address, it names the file that holds it.
pub const FILE_SUFFIX: &str = "_file";

/// Is there a section of that path?
pub fn is_section(path: &str) -> bool {
    SECTIONS.iter().any(|(section, _)| *section == path)
}

impl Key {
    /// The section part of the path.
    pub fn section(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// What follows the key and a dot, without the quotes of names that have a dot themselves.
    pub fn entry_of(&self, path: &str) -> Option<String> {
        Some(path.strip_prefix(self.path)?.strip_prefix('.')?.replace('"', ""))
    }

    /// The last part of the path.
    pub fn name(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(_, name)| name)
    }
}

impl Kind {
    /// What is allowed, in words.
    pub fn allowed(&self) -> String {
        match self {
            Kind::Text { allowed, .. } | Kind::Address { allowed, .. } => (*allowed).to_owned(),
            Kind::Choice { choices, .. } => {
                choices.iter().map(|choice| format!("\"{choice}\"")).collect::<Vec<_>>().join(" or ")
            }
            Kind::Integer { min: i64::MIN, max: i64::MAX, .. } => "a whole number of 64 bits".to_owned(),
            Kind::Integer { min, max, .. } => format!("a whole number from {min} to {max}"),
            Kind::Number { min, max, .. } => format!("a number from {min} to {max}"),
            Kind::List { default, allowed, items_max, .. } => {
                format!("a list of {} to {items_max} strings, each {allowed}", default.len().min(1))
            }
            Kind::Secret => {
                format!("a text from the environment, or from a file that KEY{FILE_SUFFIX} names")
            }
            Kind::Table { allowed, .. } => format!("a table of {allowed}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_lies_in_a_section_and_occurs_once() {
        for (position, key) in KEYS.iter().enumerate() {
            assert!(is_section(key.section()), "{}", key.path);
            assert!(!KEYS[..position].iter().any(|other| other.path == key.path), "{}", key.path);
            assert!(!is_section(key.path), "{}", key.path);
        }
        for (section, _) in SECTIONS {
            assert!(KEYS.iter().any(|key| key.section() == *section), "{section}");
        }
    }

    #[test]
    fn keys_of_a_section_are_neighbours_in_the_order_of_sections() {
        let mut order: Vec<_> = KEYS.iter().map(Key::section).collect();
        order.dedup();
        assert_eq!(order, SECTIONS.iter().map(|(section, _)| *section).collect::<Vec<_>>());
    }
}
