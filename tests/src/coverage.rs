//! Counts of the situations that simulated runs have met.

use warptape_engine::{Command, Event, Observer};

use crate::vocabulary::{Commands, Events};

/// Declares all counts in one place, and derives the struct, its sum and its least count from them.
macro_rules! coverage {
    ($($(#[$doc:meta])* $count:ident,)*) => {
        /// Numbers of situations that a run met. A seed that meets no situation proves nothing.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Coverage {
            $($(#[$doc])* pub $count: usize,)*
            /// Commands from the cores, by kind.
            pub commands: Commands,
            /// Events to the cores, by kind.
            pub events: Events,
        }

        impl Coverage {
            /// Returns the sums of two coverages.
            pub fn plus(self, other: Self) -> Self {
                Self {
                    $($count: self.$count + other.$count,)*
                    commands: self.commands.plus(other.commands),
                    events: self.events.plus(other.events),
                }
            }

            /// Returns the smallest count with its name.
            pub fn least(&self) -> (&'static str, usize) {
                let counts = [$((stringify!($count), self.$count),)*];
                counts.into_iter().min_by_key(|(_, count)| *count).expect("there are counts")
            }
        }
    };
}

coverage! {
    /// Number of emitted signals.
    signals,
    /// Number of late ticks.
    late,
    /// Number of dead letters.
    dead,
    /// Number of processes started after the first.
    crashes,
    /// Number of commits in flight at a crash.
    commits_cut,
    /// Number of lost lanes.
    lanes_lost,
    /// Number of commands given to lanes on devices.
    device_commands,
    /// Number of batches that devices began before the previous one was finished.
    batches_overlapped,
    /// Number of lanes lost because their device failed.
    device_faults,
    /// Number of lanes lost because another lane had broken their shared device.
    devices_shared,
    /// Number of devices with several lanes whose critical error took all of the lanes.
    devices_lost_whole,
    /// Number of slices that devices ran beside batches.
    device_slices,
    /// Number of batches that overtook a slice which their lane got earlier.
    slices_passed,
    /// Number of lanes lost because their device failed at a slice.
    background_faults,
    /// Number of lost lanes whose groups were placed again from memory.
    losses_kept,
    /// Number of lost lanes on devices whose partitions were restored.
    losses_not_kept,
    /// Number of groups that lanes were told to release.
    releases,
    /// Number of groups that moved to lanes with less work.
    moves_balanced,
    /// Number of groups that moved back from lanes on devices.
    moves_to_host,
    /// Number of groups that moved back from lanes on the processor.
    moves_to_device,
    /// Number of groups that were never released: their lanes were lost, their partitions restored, or the process
    /// died.
    moves_cut,
    /// Number of times that a partition was paused.
    pauses,
    /// Number of fetches that a restore made stale.
    stale_fetches,
    /// Number of faults after draining had begun.
    faults_while_stopping,
    /// Number of partitions restored from a snapshot after the beginning.
    snapshots_used,
    /// Number of partitions restored from snapshots after compaction had removed older records of them.
    snapshots_compacted,
    /// Number of partitions restored from a snapshot that was written in several transactions, beside the previous one.
    snapshots_beside,
    /// Number of pages of evicted symbols found in the log.
    pages_found,
    /// Number of reads of such pages, because ticks of their symbols came.
    pages_read,
    /// Number of restored states whose partition was gone before the read ended.
    restores_outlived,
    /// Number of partitions restored with a tail whose outputs already existed.
    tails_replayed,
    /// Number of answered risk requests.
    risk_answers,
    /// Number of expired requests.
    risk_expired,
    /// Number of requests shed because tasks waited too long.
    risk_shed,
    /// Number of slices of critical tasks that ran on lanes with ticks.
    slices_reserved,
    /// Number of slices of tasks that were chosen because they had waited longest.
    slices_aged,
    /// Number of requests that expired before their market snapshot.
    expired_before_taken,
    /// Number of requests with values from the market.
    risk_of_market,
    /// Number of rounds concluded outside the core.
    rounds_in_background,
    /// Number of fetches of requests that were held until ticks had been read again.
    requests_held,
    /// Number of requests that came before the ticks of another partition had been read again.
    markets_absent,
    /// Number of transactions that left results to the next one.
    results_left,
    /// Number of answered requests, at or after the committed offset, that a starting process found.
    answers_found,
    /// Number of slices that revalued only some positions of a portfolio, because the others had been kept.
    portfolios_followed,
    /// Number of processes that ended without lanes, or without an answer to a commit.
    gave_up,
    /// Number of processes that ended because no transaction succeeded for too long.
    outages_given_up,
    /// Number of times that the group's offsets were set from outside.
    offsets_reset,
    /// Number of partitions that continued at another offset than the group's committed one.
    offsets_overruled,
    /// Number of times that a partition lost records covered by a snapshot.
    ticks_removed,
    /// Number of times that a process got several partitions at once.
    assigned_together,
    /// Number of transactions that were aborted and sent again.
    commits_aborted,
    /// Number of transactions whose outcome was found out later.
    commits_unknown,
    /// Number of transactions that the fence or the group rejected, because a partition had another owner by then.
    commits_refused,
    /// Number of partitions that were handed over after everything was committed.
    handed_over,
    /// Number of partitions that were released before everything was committed.
    handed_over_late,
    /// Number of partitions that got another owner before the previous one knew it.
    partitions_lost,
    /// Number of lanes that hung in a batch until they were given up.
    lanes_hung,
    /// Number of lanes that hung in another operation until they were given up.
    lanes_hung_opening,
    /// Number of restarted lanes on the processor.
    lanes_restarted,
    /// Number of device samples in the journal.
    device_samples,
    /// Number of journal entries that contain the scheduler's state.
    checkpoints,
    /// Number of transactions recorded as committed in the journal.
    commits_told,
    /// Number of commit attempts recorded as aborted in the journal.
    aborts_told,
    /// Number of lanes taken out of service because they failed or were slow.
    breakers_opened,
    /// Number of lanes returned to service after a trial.
    breakers_closed,
    /// Number of lanes lost because of a critical error of their device.
    xid_errors,
    /// Number of processes that were asked to end while rows waited, and ended.
    drains,
    /// Number of checks of lanes that the engine ignored, because it had itself been held up.
    held_up,
    /// Number of networks given to processes at their start.
    networks_told,
    /// Number of choices for which shadow policies were asked.
    shadows_asked,
    /// Number of changes of the wanted number of lanes.
    lanes_wanted,
    /// Number of journals modelled with other configurations.
    journals_modelled,
    /// Number of lane events that the core got within a turn, after another event.
    news_in_turns,
    /// Number of fetches of risk requests that the core took within a turn.
    requests_in_turns,
    /// Number of prepared requests that the core took within a turn.
    prepared_in_turns,
    /// Number of executed operators' commands.
    controls_done,
    /// Number of refused operators' commands.
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
