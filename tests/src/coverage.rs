//! Counts of the situations that simulated runs met.

use warptape_engine::{Command, Event, Observer};

use crate::vocabulary::{Commands, Events};

/// Declares the counts once: the struct, its sum and its least.
macro_rules! coverage {
    ($($(#[$doc:meta])* $count:ident,)*) => {
        /// Counts of a run's situations: seeds that meet nothing would prove nothing.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Coverage {
            $($(#[$doc])* pub $count: usize,)*
            /// Commands from the cores, by kind.
            pub commands: Commands,
            /// Events to the cores, by kind.
            pub events: Events,
        }

        impl Coverage {
            /// Returns the sums of both.
            pub fn plus(self, other: Self) -> Self {
                Self {
                    $($count: self.$count + other.$count,)*
                    commands: self.commands.plus(other.commands),
                    events: self.events.plus(other.events),
                }
            }

            /// Returns the least of its counts with its name.
            pub fn least(&self) -> (&'static str, usize) {
                let counts = [$((stringify!($count), self.$count),)*];
                counts.into_iter().min_by_key(|(_, count)| *count).expect("there are counts")
            }
        }
    };
}

coverage! {
    /// Signals emitted.
    signals,
    /// Late ticks.
    late,
    /// Dead letters.
    dead,
    /// Processes started after the first.
    crashes,
    /// Commits that were in flight at a crash.
    commits_cut,
    /// Lanes lost.
    lanes_lost,
    /// Commands given to lanes on devices.
    device_commands,
    /// Batches that devices began before the previous one was finished.
    batches_overlapped,
    /// Lanes lost because their devices failed.
    device_faults,
    /// Lanes lost because another lane on their device had broken it.
    devices_shared,
    /// Devices with several lanes that a critical error took from all of them.
    devices_lost_whole,
    /// Slices that devices ran beside batches.
    device_slices,
    /// Batches that overtook a slice given to their lane earlier.
    slices_passed,
    /// Lanes lost because their devices failed at a slice.
    background_faults,
    /// Lanes lost whose groups were placed again from memory.
    losses_kept,
    /// Lanes on devices lost whose partitions were restored.
    losses_not_kept,
    /// Groups that lanes were told to let go of.
    releases,
    /// Groups that moved to lanes with less work.
    moves_balanced,
    /// Groups that came back from lanes on devices.
    moves_to_host,
    /// Groups that came back from lanes on the processor.
    moves_to_device,
    /// Groups that never came back: their lanes were lost, their partitions restored, or the process died.
    moves_cut,
    /// Partitions paused.
    pauses,
    /// Fetches that a restore made stale.
    stale_fetches,
    /// Faults after draining had begun.
    faults_while_stopping,
    /// Partitions restored from a snapshot past the beginning.
    snapshots_used,
    /// Partitions restored from snapshots of which compaction had removed older records.
    snapshots_compacted,
    /// Partitions restored from a snapshot written in several transactions, while the previous one still existed.
    snapshots_beside,
    /// Pages of evicted symbols, found in the log.
    pages_found,
    /// Reads of such pages, for ticks of their symbols.
    pages_read,
    /// Restored states whose partition was gone before the read ended.
    restores_outlived,
    /// Partitions restored with a tail whose outputs already existed.
    tails_replayed,
    /// Risk requests answered.
    risk_answers,
    /// Requests that expired.
    risk_expired,
    /// Requests shed because tasks waited for too long.
    risk_shed,
    /// Slices of critical tasks run by lanes with ticks.
    slices_reserved,
    /// Slices of tasks that had waited longest.
    slices_aged,
    /// Requests that expired before their market snapshot.
    expired_before_taken,
    /// Requests with values from the market.
    risk_of_market,
    /// Rounds concluded beside the core.
    rounds_in_background,
    /// Fetches of requests held until ticks were read again.
    requests_held,
    /// Requests that came before the ticks of another partition were read again.
    markets_absent,
    /// Transactions that left results to the next one.
    results_left,
    /// Requests at or after the committed offset that a starting process found answered.
    answers_found,
    /// Slices that revalued only some positions of a portfolio, the others having been kept.
    portfolios_followed,
    /// Processes that ended without lanes, or without a commit's answer.
    gave_up,
    /// Processes that ended because no transaction succeeded for too long.
    outages_given_up,
    /// Times that the group's offsets were set from outside.
    offsets_reset,
    /// Partitions that continued at another offset than the group's committed one.
    offsets_overruled,
    /// Times that a partition lost records covered by a snapshot.
    ticks_removed,
    /// Times that several partitions were assigned to a process at once.
    assigned_together,
    /// Transactions aborted and sent again.
    commits_aborted,
    /// Transactions whose outcome was found out later.
    commits_unknown,
    /// Transactions rejected by the fence or the group, because a partition had another owner by then.
    commits_refused,
    /// Partitions that were handed over with everything committed.
    handed_over,
    /// Partitions released before everything was committed.
    handed_over_late,
    /// Partitions that got another owner before the previous one knew.
    partitions_lost,
    /// Lanes that hung in a batch until they were given up.
    lanes_hung,
    /// Lanes that hung in anything else until they were given up.
    lanes_hung_opening,
    /// Lanes on the processor that were started again.
    lanes_restarted,
    /// Samples of devices in the journal.
    device_samples,
    /// Entries of the journal that hold the scheduler's state.
    checkpoints,
    /// Transactions recorded as committed in the journal.
    commits_told,
    /// Commit attempts recorded as aborted in the journal.
    aborts_told,
    /// Lanes taken out of service because they failed or were slow.
    breakers_opened,
    /// Lanes returned to service after a trial.
    breakers_closed,
    /// Lanes lost because their device had met a critical error.
    xid_errors,
    /// Processes that were asked to end while rows waited, and ended.
    drains,
    /// Checks of lanes that the engine ignored because it had been held up itself.
    held_up,
    /// Networks given to processes at their start.
    networks_told,
    /// Choices for which shadow policies were asked.
    shadows_asked,
    /// Times that the wanted number of lanes changed.
    lanes_wanted,
    /// Journals modelled under other configurations.
    journals_modelled,
    /// Lane events that the core got within a turn, after another event.
    news_in_turns,
    /// Fetches of risk requests that it took within a turn.
    requests_in_turns,
    /// Prepared requests that it took within a turn.
    prepared_in_turns,
    /// Operators' commands that were executed.
    controls_done,
    /// Operators' commands that were refused.
    controls_refused,
}

impl Observer for Coverage {
    fn on_event(&mut self, _now_ns: i64, event: &Event) {
        self.events.count(event);
    }

    fn on_command(&mut self, _now_ns: i64, command: &Command) {
        self.commands.count(command);
    }
}
