//! Parameters of the tools, and the commands that they become. Doc comments here are descriptions for assistants.
//!
//! `tools` adds the parameters that several tools share: the log, the form of the answer and the name of a file.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::call::{Call, Command, Form, Keep};
use super::check::{Mistake, check_log};
use super::page::{Page, PageName};

/// Values of the shared parameters, and the logs and file that a tool may use.
#[derive(Debug, Default)]
pub struct Shared {
    /// URL of the chosen log.
    pub log: String,
    /// URLs of all logs that may be read.
    pub logs: Vec<String>,
    /// True for an answer in JSON, false for one in words.
    pub is_json: bool,
    /// File to create; `None` for a tool that only reads.
    pub creates: Option<PathBuf>,
}

/// Parameters of a tool.
pub trait Parameters: DeserializeOwned + JsonSchema + 'static {
    /// Returns the tool's work. The error names the parameter and the remedy.
    fn call(self, shared: Shared) -> Result<Call, Mistake>;
}

/// A tool without parameters of its own: the list of topics.
#[derive(Deserialize, JsonSchema)]
pub struct Topics {}

impl Parameters for Topics {
    fn call(self, _: Shared) -> Result<Call, Mistake> {
        Ok(Call::Command(Command::new(&["topics"], Form::Text)))
    }
}

/// Parameters of `verify`.
#[derive(Deserialize, JsonSchema)]
pub struct Verify {
    /// Rerun the stages over the recorded ticks as well and compare every signal bit for bit; takes longer
    #[serde(default)]
    outputs: bool,
}

impl Parameters for Verify {
    fn call(self, shared: Shared) -> Result<Call, Mistake> {
        let command = Command::in_words(&["replay", "verify"], shared.is_json);
        Ok(Call::Command(command.flag("--outputs", self.outputs).may_differ()))
    }
}

/// Parameters of `report` and `write_report`.
#[derive(Deserialize, JsonSchema)]
pub struct Report {
    /// Beginning of the window for the slowest signals: a time such as 2026-11-24T03:00:00Z, a sequence such as 42, or
    /// offset:N (default: that of the journal)
    since: Option<String>,
    /// End of the window, in the same forms (default: the end of the journal)
    until: Option<String>,
    /// Number of slowest signals to explain
    #[schemars(range(min = 1, max = 50))]
    slowest: Option<u32>,
    /// Verify the outputs as well: rerun the stages over the recorded ticks; takes longer
    #[serde(default)]
    outputs: bool,
}

/// Default number of slowest signals in a report.
const SLOWEST: u32 = 5;

impl Parameters for Report {
    fn call(self, shared: Shared) -> Result<Call, Mistake> {
        let count = self.slowest.unwrap_or(SLOWEST);
        let window = |command: Command| command.values("--since", &self.since).values("--until", &self.until);
        if shared.creates.is_some() {
            let command =
                window(Command::new(&["replay", "report"], Form::Text)).values("--slowest", [count]);
            let command = command.flag("--outputs", self.outputs).may_differ();
            return Ok(Call::Command(command.creates(shared.creates)));
        }
        let verify =
            Command::in_words(&["replay", "verify"], true).flag("--outputs", self.outputs).may_differ();
        let slowest = window(Command::in_words(&["replay", "slowest"], true)).operand(count);
        Ok(Call::Each(vec![("verified", verify), ("slowest", slowest)]))
    }
}

/// Parameters of `slowest`.
#[derive(Deserialize, JsonSchema)]
pub struct Slowest {
    /// Number of signals to list (default: 10)
    #[schemars(range(min = 1, max = 100))]
    count: Option<u32>,
    /// Beginning of the window: a time such as 2026-11-24T03:00:00Z, a sequence of the journal such as 42, or offset:N
    /// (default: the beginning of the journal)
    since: Option<String>,
    /// End of the window, in the same forms (default: the end of the journal)
    until: Option<String>,
    /// Ordinal of the process to look at (default: all processes)
    partition: Option<u32>,
}

impl Parameters for Slowest {
    fn call(self, shared: Shared) -> Result<Call, Mistake> {
        let command = Command::in_words(&["replay", "slowest"], shared.is_json)
            .values("--since", self.since)
            .values("--until", self.until)
            .values("--partition", self.partition)
            .operand(self.count.unwrap_or(10));
        Ok(Call::Command(command))
    }
}

/// Parameters of `why`.
#[derive(Deserialize, JsonSchema)]
pub struct Why {
    /// Subject to explain. A journal entry by its sequence: 42. A signal: signal:PARTITION:OFFSET. The newest signal of
    /// a symbol: VENUE:TICKER. Its first signal at or after an event time: VENUE:TICKER@2024-08-08T00:00:05Z. The
    /// answer to a risk request: request:ID. A batch: batch:17
    subject: String,
    /// Partition of the journal, the ordinal of the process, for an entry or a batch (default: 0)
    partition: Option<u32>,
}

impl Parameters for Why {
    fn call(self, shared: Shared) -> Result<Call, Mistake> {
        let command = Command::in_words(&["replay", "why"], shared.is_json)
            .values("--partition", self.partition)
            .operand(self.subject);
        Ok(Call::Command(command))
    }
}

/// Parameters of `why_not`.
#[derive(Deserialize, JsonSchema)]
pub struct WhyNot {
    /// The lane: its number such as 1, or its device such as cuda:1
    lane: String,
    /// When to look: a time such as 2026-11-24T03:01:00Z, a sequence of the journal such as 1236, or offset:N
    at: String,
    /// Partition of the journal: the ordinal of the process (default: 0)
    partition: Option<u32>,
}

impl Parameters for WhyNot {
    fn call(self, shared: Shared) -> Result<Call, Mistake> {
        let command = Command::in_words(&["replay", "why-not"], shared.is_json)
            .values("--at", [self.at])
            .values("--partition", self.partition)
            .operand(self.lane);
        Ok(Call::Command(command))
    }
}

/// Parameters of `diff`.
#[derive(Deserialize, JsonSchema)]
pub struct Diff {
    /// The log to compare with: side A. The side B is `log`
    with: String,
}

impl Parameters for Diff {
    fn call(self, shared: Shared) -> Result<Call, Mistake> {
        check_log("with", &self.with, &shared.logs)?;
        let command = Command::in_words(&["replay", "diff"], shared.is_json).may_differ();
        Ok(Call::Command(command.operand(self.with).operand(shared.log)))
    }
}

/// Parameters of `what_if` and `write_model`.
#[derive(Deserialize, JsonSchema)]
pub struct WhatIf {
    /// Other policy of tasks or of placement by its name, such as lp-price; a recorded network as dqn:HASH
    policy: Option<String>,
    /// Other devices for the lanes, such as cpu:4, or cuda:0 and cuda:1
    #[serde(default)]
    devices: Vec<String>,
    /// Other values for fields of the scheduler's configuration, each as KEY=VALUE, such as row_deadline_us=20000
    #[serde(default)]
    set: Vec<String>,
    /// Other weights for lanes, each as LANE=N, such as cpu:1=2
    #[serde(default)]
    weight: Vec<String>,
    /// Factors for the time of lanes' work, each as LANE=FACTORx, such as cpu:1=2x
    #[serde(default)]
    slow: Vec<String>,
    /// Lanes to lose, each as LANE@TIME or LANE@+SECONDS after the window begins, such as cpu:1@+5
    #[serde(default)]
    lose: Vec<String>,
    /// Runs of each configuration (default: 5)
    #[schemars(range(min = 2, max = 100))]
    seeds: Option<u32>,
    /// First entry that is counted: a time such as 2026-11-24T03:00:00Z, sequence:N or offset:N (default: the first)
    since: Option<String>,
    /// First entry after the window, in the same forms (default: none)
    until: Option<String>,
    /// Partition of the journal: the ordinal of the process (default: 0)
    partition: Option<u32>,
}

impl Parameters for WhatIf {
    fn call(self, shared: Shared) -> Result<Call, Mistake> {
        let hash = self.policy.as_ref().and_then(|policy| policy.strip_prefix("dqn:"));
        if hash.is_some_and(|hash| hash.is_empty() || !hash.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            let words = "policy: a file of a network cannot be read here; give a recorded one as dqn:HASH";
            return Err(Mistake(words.to_owned()));
        }
        let command = Command::in_words(&["replay", "what-if"], shared.is_json)
            .values("--policy", self.policy)
            .values("--devices", self.devices)
            .values("--set", self.set)
            .values("--weight", self.weight)
            .values("--slow", self.slow)
            .values("--lose", self.lose)
            .values("--seeds", self.seeds)
            .values("--since", self.since)
            .values("--until", self.until)
            .values("--partition", self.partition);
        Ok(Call::Command(command.creates(shared.creates)))
    }
}

/// Parameters of `write_timeline`.
#[derive(Deserialize, JsonSchema)]
pub struct Timeline {
    /// First entry of the timeline: a time such as 2026-11-24T03:00:00Z, sequence:N or offset:N (default: the first)
    since: Option<String>,
    /// First entry after the timeline, in the same forms (default: none)
    until: Option<String>,
    /// Ordinal of the process to show (default: all processes)
    partition: Option<u32>,
}

impl Parameters for Timeline {
    fn call(self, shared: Shared) -> Result<Call, Mistake> {
        let command = Command::in_words(&["replay", "timeline"], true)
            .values("--since", self.since)
            .values("--until", self.until)
            .values("--partition", self.partition);
        Ok(Call::Command(command.creates(shared.creates)))
    }
}

/// Parameters of `tail`.
#[derive(Deserialize, JsonSchema)]
pub struct Tail {
    /// The topic
    topic: Topic,
    /// Number of records, or of ticks for the topic of ticks (default: 20)
    #[schemars(range(min = 1, max = 500))]
    count: Option<u16>,
    /// End of the topic from which they are taken (default: newest; a long topic is read as a whole for it)
    #[serde(default)]
    from: End,
    /// Only records of this symbol, VENUE:TICKER
    symbol: Option<String>,
}

/// Topics that can be listed.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
enum Topic {
    Signals,
    Ticks,
    Late,
    DeadLetter,
    Journal,
    Lifecycle,
    Feeds,
    #[serde(rename = "risk.requests")]
    RiskRequests,
    #[serde(rename = "risk.results")]
    RiskResults,
    Control,
    #[serde(rename = "control.results")]
    ControlResults,
}

impl Topic {
    fn name(self) -> &'static str {
        match self {
            Self::Signals => "signals",
            Self::Ticks => "ticks",
            Self::Late => "late",
            Self::DeadLetter => "dead-letter",
            Self::Journal => "journal",
            Self::Lifecycle => "lifecycle",
            Self::Feeds => "feeds",
            Self::RiskRequests => "risk.requests",
            Self::RiskResults => "risk.results",
            Self::Control => "control",
            Self::ControlResults => "control.results",
        }
    }
}

/// Ends of a topic.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
enum End {
    #[default]
    Newest,
    Oldest,
}

impl Parameters for Tail {
    fn call(self, _: Shared) -> Result<Call, Mistake> {
        let count = self.count.unwrap_or(20).into();
        let keep = match self.from {
            End::Newest => Keep::Last(count),
            End::Oldest => Keep::First(count),
        };
        let command = Command::new(&["tail", "--from-beginning", "--exit-at-end"], Form::Lines(keep))
            .values("--symbol", self.symbol)
            .operand(self.topic.name());
        Ok(Call::Command(command))
    }
}

/// Parameters of `metrics`.
#[derive(Deserialize, JsonSchema)]
pub struct Metrics {
    /// The page (default: performance-metrics)
    #[serde(default)]
    page: PageName,
    /// Part of the names of the wanted metrics, for the page `metrics` (default: all metrics)
    containing: Option<String>,
}

impl Parameters for Metrics {
    fn call(self, _: Shared) -> Result<Call, Mistake> {
        Ok(Call::Page(Page { name: self.page, containing: self.containing }))
    }
}
