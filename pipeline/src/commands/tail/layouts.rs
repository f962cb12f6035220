//! The table columns of each kind of record, and the fields that filters compare.

use super::show::Show;

/// The columns of one schema, besides the position that every line has.
pub struct Layout {
    /// Schema name; empty for records of schemas without a layout.
    pub schema: &'static str,
    /// Columns besides the position.
    pub columns: &'static [Column],
    /// Titles of the columns that get room first.
    pub first: &'static [&'static str],
    /// Fields that CSV has in addition to the columns.
    pub more: &'static [&'static str],
    /// Field of `--kind`: an enum or a union; empty for records without kinds.
    pub kind: &'static str,
    /// Field of `--bar`; empty for records without bars.
    pub bar: &'static str,
    /// Field of `--since` and `--until`, ns since the epoch; empty for the record's own time.
    pub time: &'static str,
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Title in tables.
    pub title: &'static str,
    /// Width that most cells need.
    pub width: usize,
    /// Least width if room is short.
    pub least: usize,
    /// Form of the cells.
    pub show: Show,
}

impl Column {
    /// Returns the name for `--columns` and in CSV.
    pub fn name(&self) -> String {
        self.title.to_lowercase().replace(' ', "_")
    }

    const fn down_to(self, least: usize) -> Self {
        Self { least, ..self }
    }
}

/// Width of `partition:offset:index`.
const POSITION_WIDTH: usize = 16;
/// Width of a time with microseconds.
const TIME_WIDTH: usize = 27;
/// Width of a field without a column of its own.
const FIELD_WIDTH: usize = 14;

const fn column(title: &'static str, width: usize, show: Show) -> Column {
    Column { title, width, least: width, show }
}

/// Column of a record's position, in one cell.
pub const POSITION: Column = column("POSITION", POSITION_WIDTH, Show::Position).down_to(9);
/// Columns of a record's position, one for each part.
pub const PLACE: [Column; 3] = [
    column("PARTITION", 9, Show::Partition),
    column("OFFSET", 12, Show::Offset),
    column("INDEX", 5, Show::Index),
];
/// Column of a record's time, for schemas without a time field.
pub const WRITTEN: Column = column("WRITTEN", TIME_WIDTH, Show::Written);

/// Returns the column of a field of the record's JSON.
pub fn of_field(name: &'static str) -> Column {
    let width = name.len().max(FIELD_WIDTH);
    Column { title: name, width, least: FIELD_WIDTH, show: Show::Field(name) }
}

/// Returns the column of a value of a signal's `further_indicators`. The name is kept until the process ends.
pub fn of_further(name: &str) -> Column {
    let name: &'static str = name.to_owned().leak();
    Column { title: name, width: name.len().max(14), least: FIELD_WIDTH, show: Show::Further(name) }
}

/// Returns the column of a price, size or volume.
const fn decimal(title: &'static str, name: &'static str) -> Column {
    column(title, 14, Show::Decimal(name)).down_to(10)
}

const PLAIN: Layout = Layout { schema: "", columns: &[], first: &[], more: &[], kind: "", bar: "", time: "" };

const LAYOUTS: &[Layout] = &[
    Layout {
        schema: "Tick",
        columns: &[
            WRITTEN,
            column("EVENT TIME", TIME_WIDTH, Show::Time("event_time_ns")),
            column("SYMBOL", 20, Show::Word("symbol")).down_to(16),
            column("KIND", 5, Show::Word("kind")),
            column("SIDE", 4, Show::Word("side")),
            decimal("PRICE", "price_e9"),
            decimal("SIZE", "size_e9"),
            decimal("BID", "bid_price_e9"),
            decimal("BID SIZE", "bid_size_e9"),
            decimal("ASK", "ask_price_e9"),
            decimal("ASK SIZE", "ask_size_e9"),
        ],
        first: &[
            "SYMBOL",
            "EVENT TIME",
            "KIND",
            "PRICE",
            "BID",
            "ASK",
            "SIZE",
            "SIDE",
            "BID SIZE",
            "ASK SIZE",
        ],
        kind: "kind",
        time: "event_time_ns",
        ..PLAIN
    },
    Layout {
        schema: "Signal",
        columns: &[
            WRITTEN,
            column("BAR END", TIME_WIDTH, Show::Time("bar_end_ns")),
            column("SYMBOL", 20, Show::Word("symbol")).down_to(16),
            column("BAR", 8, Show::Word("bar_spec")).down_to(5),
            column("KIND", 14, Show::Kind).down_to(8),
            column("VALUE", 14, Show::Value),
            column("THRESHOLD", 14, Show::Float("threshold")),
            decimal("OPEN", "open_e9"),
            decimal("HIGH", "high_e9"),
            decimal("LOW", "low_e9"),
            decimal("CLOSE", "close_e9"),
            decimal("VOLUME", "volume_e9"),
            column("TRADES", 7, Show::Count("trades")),
            decimal("BOUGHT", "buy_volume_e9"),
            decimal("SOLD", "sell_volume_e9"),
            column("PARTIAL", 7, Show::Word("partial")),
        ],
        first: &[
            "SYMBOL",
            "BAR END",
            "BAR",
            "KIND",
            "VALUE",
            "CLOSE",
            "VOLUME",
            "OPEN",
            "HIGH",
            "LOW",
            "THRESHOLD",
        ],
        kind: "kind",
        bar: "bar_spec",
        time: "bar_end_ns",
        ..PLAIN
    },
    Layout {
        schema: "JournalEntry",
        columns: &[
            column("SEQUENCE", 10, Show::Count("sequence")).down_to(8),
            column("AT", TIME_WIDTH, Show::Time("at_ns")),
            column("INPUT", 40, Show::Sentence("input")).down_to(20),
        ],
        first: &["SEQUENCE", "INPUT", "AT"],
        more: &["decisions"],
        kind: "input",
        time: "at_ns",
        ..PLAIN
    },
    Layout {
        schema: "Snapshot",
        columns: &[
            WRITTEN,
            column("PARTITION", 9, Show::Count("partition")),
            column("GROUP", 5, Show::Count("group")),
            column("AT OFFSET", 12, Show::Count("offset")),
            column("PART", 4, Show::Count("part")),
            column("PARTS", 5, Show::Count("parts")),
            column("BYTES", 10, Show::Size("state")),
            column("CHECKSUM", 64, Show::Word("checksum")).down_to(12),
        ],
        first: &["PARTITION", "GROUP", "AT OFFSET", "BYTES"],
        ..PLAIN
    },
    Layout {
        schema: "LateTick",
        columns: &[
            WRITTEN,
            column("EVENT TIME", TIME_WIDTH, Show::Time("event_time_ns")),
            column("SYMBOL", 20, Show::Word("symbol")).down_to(16),
            column("KIND", 5, Show::Word("kind")),
            column("LATE BY MS", 12, Show::Milliseconds("lateness_ns")),
            column("SOURCE", 24, Show::Source).down_to(16),
        ],
        first: &["SYMBOL", "EVENT TIME", "LATE BY MS", "KIND", "SOURCE"],
        kind: "kind",
        time: "event_time_ns",
        ..PLAIN
    },
    Layout {
        schema: "DeadLetter",
        columns: &[
            WRITTEN,
            column("SOURCE", 24, Show::Source).down_to(16),
            column("REASON", 16, Show::Word("reason")),
            column("DETAIL", 40, Show::Word("detail")).down_to(20),
        ],
        first: &["SOURCE", "REASON", "DETAIL"],
        kind: "reason",
        ..PLAIN
    },
    Layout {
        schema: "Lifecycle",
        columns: &[
            column("AT", TIME_WIDTH, Show::Time("at_ns")),
            column("NODE", 12, Show::Word("node")),
            column("EVENT", 18, Show::Word("event")),
            column("DETAIL", 40, Show::Word("detail")).down_to(20),
        ],
        first: &["AT", "NODE", "EVENT", "DETAIL"],
        kind: "event",
        time: "at_ns",
        ..PLAIN
    },
    Layout {
        schema: "Feed",
        columns: &[
            WRITTEN,
            column("SOURCE", 32, Show::Word("source")).down_to(16),
            column("NAME", 24, Show::Word("name")).down_to(16),
            column("TICKS", 14, Show::Count("ticks")),
            column("FINISHED", 8, Show::Word("is_finished")),
            column("DIGEST", 64, Show::Word("digest")).down_to(12),
        ],
        first: &["SOURCE", "TICKS", "FINISHED", "NAME"],
        ..PLAIN
    },
    Layout {
        schema: "Control",
        columns: &[
            column("AT", TIME_WIDTH, Show::Time("at_ns")),
            column("ID", 40, Show::Word("id")).down_to(20),
            column("BY", 12, Show::Word("by")),
            column("DEADLINE", TIME_WIDTH, Show::Time("deadline_ns")),
            column("COMMAND", 14, Show::Branch("command")),
        ],
        first: &["ID", "COMMAND", "AT", "BY"],
        kind: "command",
        time: "at_ns",
        ..PLAIN
    },
    Layout {
        schema: "ControlResult",
        columns: &[
            column("AT", TIME_WIDTH, Show::Time("at_ns")),
            column("ID", 40, Show::Word("id")).down_to(20),
            column("NODE", 12, Show::Word("node")),
            column("OUTCOME", 8, Show::Word("outcome")),
            column("SEQUENCE", 10, Show::Count("sequence")).down_to(8),
            column("DETAIL", 40, Show::Word("detail")).down_to(20),
        ],
        first: &["ID", "OUTCOME", "DETAIL", "AT"],
        kind: "outcome",
        time: "at_ns",
        ..PLAIN
    },
    Layout {
        schema: "RiskRequest",
        columns: &[
            WRITTEN,
            column("REQUEST", 32, Show::Word("request_id")).down_to(16),
            column("TENANT", 12, Show::Word("tenant")),
            column("CLASS", 11, Show::Word("class")),
            column("DEADLINE", TIME_WIDTH, Show::Time("deadline_ns")),
            column("SEED", 12, Show::Count("seed")),
            column("PROBLEM", 20, Show::Branch("problem")).down_to(12),
        ],
        first: &["REQUEST", "PROBLEM", "CLASS", "WRITTEN"],
        kind: "problem",
        ..PLAIN
    },
    Layout {
        schema: "RiskResult",
        columns: &[
            WRITTEN,
            column("FINISHED", TIME_WIDTH, Show::Time("finished_ns")),
            column("REQUEST", 32, Show::Word("request_id")).down_to(16),
            column("CLASS", 11, Show::Word("class")),
            column("COMPUTE MS", 12, Show::Milliseconds("compute_ns")),
            column("NODE", 12, Show::Word("node")),
            column("SEQUENCE", 10, Show::Count("decision_sequence")),
            column("ANSWER", 40, Show::Answer("outcome")).down_to(20),
        ],
        first: &["REQUEST", "ANSWER", "FINISHED", "CLASS"],
        kind: "outcome",
        time: "finished_ns",
        ..PLAIN
    },
];

const ANY: Layout = Layout { columns: &[WRITTEN, column("RECORD", 40, Show::Json).down_to(20)], ..PLAIN };

/// Returns the layout of a schema, named with or without its namespace.
pub fn of(schema: &str) -> &'static Layout {
    let name = match schema.rsplit('.').next().unwrap_or(schema) {
        "ScaledTickBatch" => "Tick",
        name => name,
    };
    LAYOUTS.iter().find(|layout| layout.schema == name).unwrap_or(&ANY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn important_columns_are_columns_of_their_layout() {
        for layout in LAYOUTS {
            for title in layout.first {
                let is_there = layout.columns.iter().any(|column| column.title == *title);
                assert!(is_there, "{} has no column {title}", layout.schema);
            }
        }
    }
}
