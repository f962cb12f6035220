//! Names of the topics.

/// Names of the topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics {
    /// Ticks in.
    pub ticks: String,
    /// Signals out.
    pub signals: String,
    /// Scheduler inputs and decisions.
    pub journal: String,
    /// Stage state.
    pub snapshots: String,
    /// Ticks behind the watermark.
    pub late: String,
    /// Records that cannot be processed.
    pub dead_letter: String,
    /// Starts, losses, stops; not transactional.
    pub lifecycle: String,
    /// Risk requests, which the engine reads.
    pub risk_requests: String,
    /// Results of risk requests.
    pub risk_results: String,
    /// Positions of the sources of ticks in the log.
    pub feeds: String,
    /// Operators' commands, with a partition for each process.
    pub control: String,
    /// Answers to operators' commands, with a partition for each process.
    pub control_results: String,
}

impl Topics {
    /// All names with a prefix.
    pub fn new(prefix: &str) -> Self {
        let name = |topic: &str| format!("{prefix}{topic}");
        Self {
            ticks: name("ticks"),
            signals: name("signals"),
            journal: name("journal"),
            snapshots: name("snapshots"),
            late: name("late"),
            dead_letter: name("dead-letter"),
            lifecycle: name("lifecycle"),
            risk_requests: name("risk.requests"),
            risk_results: name("risk.results"),
            feeds: name("feeds"),
            control: name("control"),
            control_results: name("control.results"),
        }
    }

    /// The topics that need a partition for each partition of ticks.
    pub fn beside_ticks(&self) -> [&str; 6] {
        [
            &self.signals,
            &self.snapshots,
            &self.late,
            &self.dead_letter,
            &self.risk_requests,
            &self.risk_results,
        ]
    }
}
