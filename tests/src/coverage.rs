//! What simulated runs met.

use warptape_engine::{Command, Event, Observer};

use crate::vocabulary::{Commands, Events};

/// Declares the counts once: the struct, its sum and its least.
macro_rules! coverage {
    ($($(#[$doc:meta])* $count:ident,)*) => {
        /// What a run met: seeds that meet nothing would prove nothing.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Coverage {
            $($(#[$doc])* pub $count: usize,)*
            /// Commands of the cores, by kind.
            pub commands: Commands,
            /// Events that they were told, by kind.
            pub events: Events,
        }

        impl Coverage {
            /// Both together.
            pub fn plus(self, other: Self) -> Self {
                Self {
                    $($count: self.$count + other.$count,)*
                    commands: self.commands.plus(other.commands),
                    events: self.events.plus(other.events),
                }
            }

            /// The least of its counts, by name.
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
    /// Commands that lanes on devices were given.
    device_commands,
    /// Batches that devices began before the one before was finished.
    batches_overlapped,
    /// Lanes lost because their devices failed.
    device_faults,
    /// Lanes lost because another lane on their device had broken it.
    devices_shared,
    /// Devices with several lanes that a critical error took from all of them.
    devices_lost_whole,
    /// Slices that devices did beside batches.
    device_slices,
    /// Batches that passed a slice which their lane was given before.
    slices_passed,
    /// Lanes lost because their devices failed at a slice.
    background_faults,
    /// Lanes lost whose groups were placed again from memory.
    losses_kept,
    /// Lanes on devices lost whose partitions were restored.
    losses_not_kept,
    /// Groups that lanes were told to let go of.
    releases,
    /// Those that moved to lanes with less to do.
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
    /// Partitions restored from a snapshot that had gone out in several transactions, beside the one before.
    snapshots_beside,
    /// Pages of symbols that left memory, found in the log.
    pages_found,
    /// Readings of such pages, for ticks of their symbols.
    pages_read,
    /// States of partitions that went while they were read.
    restores_outlived,
    /// Partitions restored with a tail whose outputs existed.
    tails_replayed,
    /// Risk requests answered.
    risk_answers,
    /// Those that expired.
    risk_expired,
    /// Those that were shed because tasks waited for too long.
    risk_shed,
    /// Slices that lanes with ticks did of critical tasks.
    slices_reserved,
    /// Slices of tasks that had waited longest.
    slices_aged,
    /// Those that expired before the market was taken for them.
    expired_before_taken,
    /// Those that have something from the market.
    risk_of_market,
    /// Rounds that were concluded beside the core.
    rounds_in_background,
    /// Fetches of requests that had to wait until ticks were read again.
    requests_held,
    /// Requests that came while the ticks of another partition were still to be read again.
    markets_absent,
    /// Transactions that left results to the next one.
    results_left,
    /// Requests at or behind the committed offset that were found answered when a process began.
    answers_found,
    /// Slices that revalued only some positions of a portfolio, the others having been kept.
    portfolios_followed,
    /// Processes that ended for want of lanes, or of a commit's answer.
    gave_up,
    /// Processes that ended because no transaction came through for too long.
    outages_given_up,
    /// Times that somebody set the group's offsets.
    offsets_reset,
    /// Partitions that went on elsewhere than the group had committed.
    offsets_overruled,
    /// Times that a partition has lost records that a snapshot stands for.
    ticks_removed,
    /// Times that several partitions were assigned to a process at once.
    assigned_together,
    /// Transactions that were aborted and sent again.
    commits_aborted,
    /// Transactions whose outcome was found out later.
    commits_unknown,
    /// Transactions that the fence or the group refused, because a partition of them was others' by then.
    commits_refused,
    /// Partitions that were handed over with everything committed.
    handed_over,
    /// Partitions that were let go of before everything was committed.
    handed_over_late,
    /// Partitions that others owned before their owner knew.
    partitions_lost,
    /// Lanes that hung in a batch until they were given up.
    lanes_hung,
    /// Lanes that hung in anything else until they were given up.
    lanes_hung_opening,
    /// Lanes on the processor that were started again.
    lanes_restarted,
    /// Samples of devices that the journal has.
    device_samples,
    /// Entries of the journal that hold the scheduler's state.
    checkpoints,
    /// Transactions of which the journal says that they were committed.
    commits_told,
    /// Attempts to commit of which the journal says that they were aborted.
    aborts_told,
    /// Lanes that were taken out of service because they failed or were slow.
    breakers_opened,
    /// Lanes that came back into service after they were tried.
    breakers_closed,
    /// Lanes lost because their device had met a critical error.
    xid_errors,
    /// Processes that were asked to end while rows waited, and did.
    drains,
    /// Looks at lanes that the engine did not judge by, because it had been held up itself.
    held_up,
    /// Networks that processes were told of when they began.
    networks_told,
    /// Choices at which policies in the shadow were asked.
    shadows_asked,
    /// Times that another number of lanes was wanted.
    lanes_wanted,
    /// Journals that were modelled under other configurations.
    journals_modelled,
    /// Pieces of news of lanes that the core heard within a turn, after another event.
    news_in_turns,
    /// Fetches of risk requests that it took within a turn.
    requests_in_turns,
    /// Prepared requests that it took within a turn.
    prepared_in_turns,
    /// Operators' commands that were obeyed.
    controls_done,
    /// Those that were refused.
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
