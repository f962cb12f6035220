//! Names of the topics.

/// Names of the topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics {
    /// Input: ticks.
    pub ticks: String,
    /// Output: signals.
    pub signals: String,
    /// Journal: inputs and decisions of the scheduler.
    pub journal: String,
    /// State of the stages.
    pub snapshots: String,
    /// Ticks behind the watermark.
    pub late: String,
    /// Records that cannot be processed.
    pub dead_letter: String,
    /// Starts, losses and stops; written outside of transactions.
    pub lifecycle: String,
    /// Input: risk requests.
    pub risk_requests: String,
    /// Results of risk requests.
    pub risk_results: String,
    /// Progress of feeds in their input files.
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

    /// Topics that need as many partitions as the topic of ticks.
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
