//! The tables and their columns: the only declaration, from which schemas and documentation follow. Cells of rows are
//! in the order of columns.

use std::fmt::Write;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// True or false.
    Bool,
    /// 64-bit integers.
    Int,
    /// 64-bit floating point numbers.
    Float,
    /// UTF-8.
    Text,
}

impl ColumnKind {
    fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int64",
            Self::Float => "float64",
            Self::Text => "utf8",
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, with its unit last.
    pub name: &'static str,
    /// Its type.
    pub kind: ColumnKind,
    /// True if it may be null.
    pub is_nullable: bool,
    /// Its meaning.
    pub words: &'static str,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name, and that of its file without the extension.
    pub name: &'static str,
    /// The meaning of a row.
    pub words: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
}

const fn column(name: &'static str, kind: ColumnKind, is_nullable: bool, words: &'static str) -> Column {
    Column { name, kind, is_nullable, words }
}

const fn maybe_bool(name: &'static str, words: &'static str) -> Column {
    column(name, ColumnKind::Bool, true, words)
}

const fn int(name: &'static str, words: &'static str) -> Column {
    column(name, ColumnKind::Int, false, words)
}

const fn maybe_int(name: &'static str, words: &'static str) -> Column {
    column(name, ColumnKind::Int, true, words)
}

const fn maybe_float(name: &'static str, words: &'static str) -> Column {
    column(name, ColumnKind::Float, true, words)
}

const fn text(name: &'static str, words: &'static str) -> Column {
    column(name, ColumnKind::Text, false, words)
}

const fn maybe_text(name: &'static str, words: &'static str) -> Column {
    column(name, ColumnKind::Text, true, words)
}

/// Signals.
pub(crate) const SIGNALS: Table = Table {
    name: "signals",
    words: "A signal, in the order of its partition.",
    columns: &[
        int("partition", "partition of the topic, the same as that of the ticks"),
        int("offset", "offset in the topic of signals"),
        int("record_time_ns", "when the transaction with it was written, as the log has it"),
        text("symbol", "`VENUE:TICKER`"),
        text("kind", "what happened: `BAR`, `EMA_CROSS_UP` and so on, as in signal.avsc"),
        text("bar_spec", "kind of bar: `1s`, `tick:100`, `volume:10`"),
        int("bar_start_ns", "start of the bar, event time"),
        int("bar_end_ns", "end of the bar, event time"),
        int("source_offset", "offset of the tick record that caused it"),
        int("source_index", "row of the tick in that record"),
        column("value", ColumnKind::Float, false, "what crossed; the close for a bar"),
        column("threshold", ColumnKind::Float, false, "what it crossed; 0 for a bar"),
        maybe_int(
            "open_e9",
            "first price of the bar, in 1e-9; null where the signal has no bar, or `exact` has the prices",
        ),
        maybe_int("high_e9", "highest price, likewise"),
        maybe_int("low_e9", "lowest price, likewise"),
        maybe_int("close_e9", "last price, likewise"),
        maybe_int(
            "volume_e9",
            "sum of the sizes, in 1e-9; 9,223,372,036,854,775,807 stands for at least that much",
        ),
        maybe_int("trades", "number of trades"),
        maybe_int("bid_price_e9", "bid before the bar's end, in 1e-9; 0 stands for none"),
        maybe_int("ask_price_e9", "offer, likewise"),
        maybe_text(
            "exact",
            "JSON with the bar's numbers where 64 bits of 1e-9 cannot hold them: integers as text, prices scaled by 1e-18 (`open_e18`), the volume by 1e-9",
        ),
        maybe_float("sma", "simple moving average; indicators are null until enough bars closed"),
        maybe_float("ema_fast", "fast exponential moving average"),
        maybe_float("ema_slow", "slow exponential moving average"),
        maybe_float("bollinger_middle", "middle of the Bollinger bands"),
        maybe_float("bollinger_upper", "upper Bollinger band"),
        maybe_float("bollinger_lower", "lower Bollinger band"),
        maybe_float("rsi", "relative strength index"),
        maybe_float("macd", "MACD"),
        maybe_float("macd_signal", "its signal line"),
        maybe_float("macd_histogram", "MACD less its signal line"),
        maybe_float("atr", "average true range"),
        maybe_float("vwap", "volume-weighted average price"),
        maybe_float("momentum", "momentum"),
        maybe_float("roc", "rate of change"),
        maybe_float("zscore", "z-score"),
        maybe_float("realised_volatility", "realised volatility"),
        maybe_text(
            "further_indicators",
            "JSON with values of indicators that have no column of their own, by name",
        ),
        maybe_bool("partial", "whether the bar lacks some of its interval"),
        maybe_int("buy_volume_e9", "sum of the sizes of trades with an aggressive buyer, as `volume_e9`"),
        maybe_int("sell_volume_e9", "sum of the sizes of trades with an aggressive seller, likewise"),
        maybe_int("buy_trades", "number of trades with an aggressive buyer"),
        maybe_int("sell_trades", "number of trades with an aggressive seller"),
        maybe_int(
            "bid_size_e9",
            "size of the bid, as `volume_e9`; 0 where it is not told, null without a bid",
        ),
        maybe_int("ask_size_e9", "size of the offer, likewise"),
        maybe_bool(
            "quote_forgotten",
            "whether the bar's quote was kept no more, so that bid and offer are missing",
        ),
        maybe_text(
            "exact_flow",
            "JSON with volumes by side and sizes where 64 bits of 1e-9 cannot hold them: integers as text, scaled by 1e-9",
        ),
    ],
};

/// Decisions.
pub(crate) const DECISIONS: Table = Table {
    name: "decisions",
    words: "A decision of the scheduler, in the order of its journal.",
    columns: &[
        int("journal_partition", "partition of the journal: the ordinal of the process"),
        int("offset", "offset of the entry in the journal"),
        int("sequence", "sequence of the entry, by which `replay why` explains it"),
        int("decision_index", "number of the decision within the entry, from 0"),
        int("at_ns", "time of the step"),
        int("record_time_ns", "when the transaction with the entry was written, as the log has it"),
        text("input", "kind of the input that it answers: `Arrived`, `Completed` and so on"),
        text("decision", "kind of decision: `Place`, `Dispatch` and so on"),
        maybe_text("reason", "why, where the decision has a word for it"),
        maybe_int("lane", "lane that it is about"),
        maybe_int("partition", "partition of the ticks that it is about"),
        maybe_int("group", "group that it is about"),
        maybe_int("batch", "batch that it is about"),
        maybe_int("task", "risk task that it is about"),
        maybe_int("rows", "rows that it is about"),
        text("detail", "all of the decision as JSON"),
    ],
};

/// Batches.
pub(crate) const BATCHES: Table = Table {
    name: "batches",
    words: "A batch of ticks on a lane, in the order in which they ended.",
    columns: &[
        int("journal_partition", "partition of the journal: the ordinal of the process"),
        int(
            "life_sequence",
            "sequence of the start or checkpoint from which its process life is known; batches are numbered by life",
        ),
        int("batch", "number of the batch"),
        int("lane", "the lane"),
        maybe_text("device", "the lane's device, such as `cpu:0`"),
        int("dispatch_sequence", "sequence of the entry that dispatched it"),
        int("dispatched_ns", "time of that entry"),
        int("rows", "rows"),
        int("bytes", "bytes on their way to the device"),
        int("groups", "groups that it has rows of"),
        text("reason", "why then: `IDLE`, `FULL`, `DEADLINE`, `DRAIN`"),
        int("oldest_arrival_ns", "arrival of its oldest row"),
        int("predicted_finish_ns", "when it was predicted to be done"),
        maybe_int(
            "completed_sequence",
            "sequence of the entry that says it is done; null where the lane or the process was lost",
        ),
        maybe_int("completed_ns", "time of that entry"),
        maybe_int("service_ns", "time the lane worked on it"),
        int("queue_wait_ns", "from the oldest row's arrival to the dispatch"),
        maybe_int(
            "lane_ns",
            "from the dispatch to the completion: behind batches before it, and being worked on",
        ),
    ],
};

/// Tasks.
pub(crate) const TASKS: Table = Table {
    name: "tasks",
    words: "A risk task, in the order in which they ended; a request that takes several rounds has a row for each.",
    columns: &[
        int("journal_partition", "partition of the journal: the ordinal of the process"),
        int(
            "life_sequence",
            "sequence of the start or checkpoint from which its process life is known; tasks are numbered by life",
        ),
        int("task", "number of the task"),
        int("first_unit", "first unit of the round; 0 in the first round"),
        text("request_id", "id of the request"),
        int("partition", "partition of the request"),
        int("request_offset", "offset of the request"),
        text("tenant", "tenant"),
        text("class", "class: `CRITICAL`, `INTERACTIVE`, `BATCH`"),
        text("rate_key", "what the speed of its units is known by"),
        int("units", "units of the round"),
        int("arrival_sequence", "sequence of the entry with which it arrived"),
        int("arrived_ns", "time of that entry"),
        maybe_int("deadline_ns", "its deadline"),
        maybe_int("first_slice_ns", "when its first slice began"),
        int("slices", "slices that lanes began"),
        int("service_ns", "time that lanes worked on those that they finished"),
        maybe_text(
            "outcome",
            "how it ended: `Finish`, `Expire`, `Reject`, `Shed`, `TaskDropped` (withdrawn, or its partition was revoked); null where its process was lost",
        ),
        maybe_int("ended_sequence", "sequence of the entry with which it ended"),
        maybe_int("ended_ns", "time of that entry"),
    ],
};

/// Commits.
pub(crate) const COMMITS: Table = Table {
    name: "commits",
    words: "What one partition of the ticks has in a transaction, in the order of the journal.",
    columns: &[
        int("journal_partition", "partition of the journal: the ordinal of the process"),
        int("sealed_sequence", "sequence of the `Sealed` entry, which names the transaction"),
        int("sealed_ns", "time of that entry"),
        int("record_time_ns", "when the transaction was written, as the log has it"),
        int("partition", "partition of the ticks"),
        int("first_offset", "first tick record that it is made of"),
        int("next_offset", "the one after the last: the offset that it commits"),
        int("signals", "signals in it"),
        int("late", "late ticks in it"),
        int("dead_letters", "dead letters in it"),
        int("risk_results", "risk results in it"),
        maybe_int(
            "attempts",
            "attempts to commit it that the journal tells of; null where it tells of none, as of the last transaction of a process life",
        ),
        maybe_text("outcome", "`COMMITTED`: transactions that were not are not in the log"),
        maybe_int(
            "sent_ns",
            "when the attempt that committed began to write; null where the journal does not tell",
        ),
        maybe_int("ended_ns", "when the commit was known; null likewise"),
    ],
};

/// Latencies.
pub(crate) const LATENCIES: Table = Table {
    name: "latencies",
    words: "A tick record that caused signals, with each wait on the way to their commit.",
    columns: &[
        int("partition", "partition of the ticks"),
        int("source_offset", "offset of the tick record"),
        int("signals", "signals that it caused"),
        int("journal_partition", "partition of the journal: the ordinal of the process"),
        int("sealed_sequence", "sequence of the `Sealed` entry of the transaction with the signals"),
        maybe_int(
            "tick_time_ns",
            "when the tick record was written, as the log has it; null where it is gone. Kafka keeps milliseconds",
        ),
        maybe_int("arrived_ns", "when its rows reached the scheduler; null where that was before the window"),
        int("sealed_ns", "when what it caused was handed to the log"),
        maybe_int("sent_ns", "when the attempt that committed began to write; null as `attempts` of commits"),
        maybe_int("committed_ns", "when the commit was known"),
        maybe_int(
            "read_wait_ns",
            "from `tick_time_ns` to `arrived_ns`: in the log, being fetched and decoded",
        ),
        maybe_int(
            "process_wait_ns",
            "from `arrived_ns` to `sealed_ns`: in queues and on lanes, and behind records before it",
        ),
        maybe_int("seal_wait_ns", "from `sealed_ns` to `sent_ns`: behind the commit before it"),
        maybe_int("commit_ns", "from `sent_ns` to `committed_ns`"),
        maybe_int("total_ns", "from `tick_time_ns` to `committed_ns`: the sum of the four"),
    ],
};

/// All tables.
pub static TABLES: [&Table; 6] = [&SIGNALS, &DECISIONS, &BATCHES, &TASKS, &COMMITS, &LATENCIES];

/// The tables as Markdown.
pub fn documented() -> String {
    let mut text = String::new();
    for table in TABLES {
        let Table { name, words, columns } = table;
        let _ = write!(
            text,
            "\n### {name}\n\n{words}\n\n| column | type | null | what |\n| --- | --- | --- | --- |\n"
        );
        for Column { name, kind, is_nullable, words } in *columns {
            let null = if *is_nullable { "yes" } else { "" };
            let _ = writeln!(text, "| `{name}` | {} | {null} | {words} |", kind.name());
        }
    }
    text
}
