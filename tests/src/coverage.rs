//! What simulated runs met.

/// What a run met: seeds that meet nothing would prove nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Signals emitted.
    pub signals: usize,
    /// Late ticks.
    pub late: usize,
    /// Dead letters.
    pub dead: usize,
    /// Processes started after the first.
    pub crashes: usize,
    /// Commits that were in flight at a crash.
    pub commits_cut: usize,
    /// Lanes lost.
    pub lanes_lost: usize,
    /// Commands that lanes on devices were given.
    pub device_commands: usize,
    /// Batches that devices began before the one before was finished.
    pub batches_beside: usize,
    /// Lanes lost because their devices failed.
    pub device_faults: usize,
    /// Slices that devices did beside batches.
    pub device_slices: usize,
    /// Batches that passed a slice which their lane was given before.
    pub slices_passed: usize,
    /// Lanes lost because their devices failed at a slice.
    pub background_faults: usize,
    /// Lanes lost whose groups were placed again from memory.
    pub losses_kept: usize,
    /// Lanes on devices lost whose partitions were restored.
    pub losses_not_kept: usize,
    /// Groups that lanes were told to let go of.
    pub releases: usize,
    /// Groups that came back from lanes on devices.
    pub moves_to_host: usize,
    /// Groups that came back from lanes on the processor.
    pub moves_to_device: usize,
    /// Groups that never came back: their lanes were lost, their partitions restored, or the process died.
    pub moves_cut: usize,
    /// Partitions paused.
    pub pauses: usize,
    /// Fetches that a restore made stale.
    pub stale_fetches: usize,
    /// Faults after draining had begun.
    pub faults_while_stopping: usize,
    /// Partitions restored from a snapshot past the beginning.
    pub snapshots_used: usize,
    /// Partitions restored with a tail whose outputs existed.
    pub tails_replayed: usize,
    /// Risk requests answered.
    pub risk_answers: usize,
    /// Those that expired.
    pub risk_expired: usize,
    /// Those that expired before the market was taken for them.
    pub expired_before_taken: usize,
    /// Those that have something from the market.
    pub risk_of_market: usize,
    /// Rounds that were concluded beside the core.
    pub rounds_beside: usize,
    /// Fetches of requests that had to wait until ticks were read again.
    pub requests_held: usize,
    /// Requests that came while the ticks of another partition were still to be read again.
    pub markets_absent: usize,
    /// Transactions that left results to the next one.
    pub results_left: usize,
    /// Requests at or behind the committed offset that were found answered when a process began.
    pub answers_found: usize,
    /// Slices that revalued only some positions of a portfolio, the others having been kept.
    pub portfolios_followed: usize,
}

impl Coverage {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            signals: self.signals + other.signals,
            late: self.late + other.late,
            dead: self.dead + other.dead,
            crashes: self.crashes + other.crashes,
            commits_cut: self.commits_cut + other.commits_cut,
            lanes_lost: self.lanes_lost + other.lanes_lost,
            device_commands: self.device_commands + other.device_commands,
            batches_beside: self.batches_beside + other.batches_beside,
            device_faults: self.device_faults + other.device_faults,
            device_slices: self.device_slices + other.device_slices,
            slices_passed: self.slices_passed + other.slices_passed,
            background_faults: self.background_faults + other.background_faults,
            losses_kept: self.losses_kept + other.losses_kept,
            losses_not_kept: self.losses_not_kept + other.losses_not_kept,
            releases: self.releases + other.releases,
            moves_to_host: self.moves_to_host + other.moves_to_host,
            moves_to_device: self.moves_to_device + other.moves_to_device,
            moves_cut: self.moves_cut + other.moves_cut,
            pauses: self.pauses + other.pauses,
            stale_fetches: self.stale_fetches + other.stale_fetches,
            faults_while_stopping: self.faults_while_stopping + other.faults_while_stopping,
            snapshots_used: self.snapshots_used + other.snapshots_used,
            tails_replayed: self.tails_replayed + other.tails_replayed,
            risk_answers: self.risk_answers + other.risk_answers,
            risk_expired: self.risk_expired + other.risk_expired,
            expired_before_taken: self.expired_before_taken + other.expired_before_taken,
            risk_of_market: self.risk_of_market + other.risk_of_market,
            rounds_beside: self.rounds_beside + other.rounds_beside,
            requests_held: self.requests_held + other.requests_held,
            markets_absent: self.markets_absent + other.markets_absent,
            results_left: self.results_left + other.results_left,
            answers_found: self.answers_found + other.answers_found,
            portfolios_followed: self.portfolios_followed + other.portfolios_followed,
        }
    }

    /// The least of its counts.
    pub fn least(&self) -> usize {
        let counts = [
            self.signals,
            self.late,
            self.dead,
            self.crashes,
            self.commits_cut,
            self.lanes_lost,
            self.device_commands,
            self.batches_beside,
            self.device_faults,
            self.device_slices,
            self.slices_passed,
            self.background_faults,
            self.losses_kept,
            self.losses_not_kept,
            self.releases,
            self.moves_to_host,
            self.moves_to_device,
            self.moves_cut,
            self.pauses,
            self.stale_fetches,
            self.faults_while_stopping,
            self.snapshots_used,
            self.tails_replayed,
            self.risk_answers,
            self.risk_expired,
            self.expired_before_taken,
            self.risk_of_market,
            self.rounds_beside,
            self.requests_held,
            self.markets_absent,
            self.results_left,
            self.answers_found,
            self.portfolios_followed,
        ];
        counts.into_iter().min().expect("the list is not empty")
    }
}
