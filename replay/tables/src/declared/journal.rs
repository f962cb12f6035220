//! Tables of the journal: decisions, batches, tasks, commits and latencies.

use crate::table::{Table, int, maybe_int, maybe_time, maybe_word, text, time, word};

/// Decisions.
pub(crate) const DECISIONS: Table = Table {
    name: "decisions",
    words: "A decision of the scheduler, in the order of its journal.",
    columns: &[
        int("journal_partition", "partition of the journal: the ordinal of the process"),
        int("offset", "offset of the entry in the journal"),
        int("sequence", "sequence of the entry, for `replay why`"),
        int("decision_index", "number of the decision within the entry, from 0"),
        time("at_ns", "time of the step of the scheduler"),
        time("record_time_ns", "time of the entry's record in the log"),
        word("input", "kind of the input of the entry: `Arrived`, `Completed` and so on"),
        word("decision", "kind of decision: `Place`, `Dispatch` and so on"),
        maybe_word("reason", "reason of the decision; null if its kind has none"),
        maybe_int("lane", "lane of the decision; null if it has none"),
        maybe_int("partition", "partition of ticks of the decision; null if it has none"),
        maybe_int("group", "symbol group of the decision; null if it has none"),
        maybe_int("batch", "batch of the decision; null if it has none"),
        maybe_int("task", "risk task of the decision; null if it has none"),
        maybe_int("rows", "rows of the decision; null if it has none"),
        text("detail", "the whole decision as JSON"),
    ],
};

/// Batches.
pub(crate) const BATCHES: Table = Table {
    name: "batches",
    words: "A batch of ticks on a lane, in the order of completion.",
    columns: &[
        int("journal_partition", "partition of the journal: the ordinal of the process"),
        int(
            "life_sequence",
            "sequence of the start or checkpoint where the known part of its process life begins; batch \
             numbers start over with each life",
        ),
        int("batch", "number of the batch"),
        int("lane", "the lane"),
        maybe_word("device", "device of the lane, such as `cpu:0`"),
        int("dispatch_sequence", "sequence of the entry that dispatched it"),
        time("dispatched_ns", "time of that entry"),
        int("rows", "rows"),
        int("bytes", "bytes transferred to the device"),
        int("groups", "groups with rows in the batch"),
        word("reason", "reason for its dispatch at that time: `IDLE`, `FULL`, `DEADLINE` or `DRAIN`"),
        time("oldest_arrival_ns", "arrival of its oldest row"),
        time("predicted_finish_ns", "predicted time of its completion"),
        maybe_int(
            "completed_sequence",
            "sequence of the entry with its completion; null if the lane or the process was lost",
        ),
        maybe_time("completed_ns", "time of that entry"),
        maybe_int("service_ns", "time that the lane spent on it"),
        int("queue_wait_ns", "from the arrival of the oldest row to the dispatch"),
        maybe_int(
            "lane_ns",
            "from the dispatch to the completion: waiting behind earlier batches, and processing",
        ),
    ],
};

/// Tasks.
pub(crate) const TASKS: Table = Table {
    name: "tasks",
    words: "A risk task, in the order of completion; a request with several rounds has one row per round.",
    columns: &[
        int("journal_partition", "partition of the journal: the ordinal of the process"),
        int(
            "life_sequence",
            "sequence of the start or checkpoint where the known part of its process life begins; task \
             numbers start over with each life",
        ),
        int("task", "number of the task"),
        int("first_unit", "first unit of the round; 0 in the first round"),
        text("request_id", "id of the request"),
        int("partition", "partition of the request"),
        int("request_offset", "offset of the request"),
        word("tenant", "tenant"),
        word("class", "class: `CRITICAL`, `INTERACTIVE`, `BATCH`"),
        word("rate_key", "key under which the speed of its units is learnt"),
        int("units", "units of the round"),
        int("arrival_sequence", "sequence of the entry with its arrival"),
        time("arrived_ns", "time of that entry"),
        maybe_time("deadline_ns", "its deadline"),
        maybe_time("first_slice_ns", "time when its first slice began"),
        int("slices", "slices begun by lanes"),
        int("service_ns", "time that lanes worked on finished slices"),
        maybe_word(
            "outcome",
            "how it ended: `Finish`, `Expire`, `Reject`, `Shed` or `TaskDropped` (withdrawn, or its partition was revoked); null if its process was lost",
        ),
        maybe_int("ended_sequence", "sequence of the entry with its end"),
        maybe_time("ended_ns", "time of that entry"),
    ],
};

/// Commits.
pub(crate) const COMMITS: Table = Table {
    name: "commits",
    words: "The part of one partition of ticks in a transaction, in the order of the journal.",
    columns: &[
        int("journal_partition", "partition of the journal: the ordinal of the process"),
        int("sealed_sequence", "sequence of the `Sealed` entry, which names the transaction"),
        time("sealed_ns", "time of that entry"),
        time("record_time_ns", "time of the journal record in the log"),
        int("partition", "partition of the ticks"),
        int("first_offset", "offset of the first tick record in it"),
        int("next_offset", "offset after the last tick record in it: the committed offset"),
        int("signals", "signals in it"),
        int("late", "late ticks in it"),
        int("dead_letters", "dead letters in it"),
        int("risk_results", "risk results in it"),
        maybe_int(
            "attempts",
            "attempts to commit it; null if the journal does not record them, as for the last transaction of a process life",
        ),
        maybe_word("outcome", "outcome, always `COMMITTED`: other transactions are not in the log"),
        maybe_time(
            "sent_ns",
            "time when the successful attempt began to write; null if the journal does not have it",
        ),
        maybe_time(
            "ended_ns",
            "time when the process learnt of the commit; null if the journal does not have it",
        ),
    ],
};

/// Latencies.
pub(crate) const LATENCIES: Table = Table {
    name: "latencies",
    words: "A tick record that caused signals, with the waits until their commit.",
    columns: &[
        int("partition", "partition of the ticks"),
        int("source_offset", "offset of the tick record"),
        int("signals", "number of signals that it caused"),
        int("journal_partition", "partition of the journal: the ordinal of the process"),
        int("sealed_sequence", "sequence of the `Sealed` entry of the transaction with the signals"),
        maybe_time(
            "tick_time_ns",
            "time of the tick record in the log; null if the record was removed. Kafka stores milliseconds",
        ),
        maybe_time(
            "arrived_ns",
            "time when its rows reached the scheduler; null if that was before the window",
        ),
        time("sealed_ns", "time when its outputs were handed to the log"),
        maybe_time(
            "sent_ns",
            "time when the successful attempt began to write; null if `attempts` of the \
                              commit is null",
        ),
        maybe_time("committed_ns", "time when the process learnt of the commit"),
        maybe_int(
            "read_wait_ns",
            "from `tick_time_ns` to `arrived_ns`: in the log, then fetched and decoded",
        ),
        maybe_int(
            "process_wait_ns",
            "from `arrived_ns` to `sealed_ns`: in queues, on lanes, and behind earlier records",
        ),
        maybe_int("seal_wait_ns", "from `sealed_ns` to `sent_ns`: behind the previous commit"),
        maybe_int("commit_ns", "from `sent_ns` to `committed_ns`"),
        maybe_int("total_ns", "from `tick_time_ns` to `committed_ns`: the sum of the four"),
    ],
};
