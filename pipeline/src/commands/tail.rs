//! `warptape tail`: prints the records of a topic, decoded, as they come.
//!
//! An undecodable record is printed with the reason, and does not end the command.

pub mod inputs;
pub(super) mod json_line;
pub(super) mod layout;
mod lines;
pub(super) mod readable;
pub mod reasons;
pub(super) mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use warptape_engine::payload_of;
use warptape_eventlog::{Consumer, EventLog, Fetched, Record, TopicInfo, TopicPartition};
use warptape_hot::UnknownSymbol;
use warptape_schemas::journal::{Input, JournalEntry, Started};
use warptape_schemas::{Describer, decode_journal_entry};

pub use self::lines::{Lines, Polled};

use self::json_line::JsonLine;

use crate::cli::{Interrupt, TailArgs, TailFormat};
use crate::open::{Purpose, open_log};
use crate::printable::{printable_line, stdout, to_stderr};
use crate::settings::Settings;
use crate::usage_error::UsageError;

/// Longest poll before Ctrl-C is checked again.
const POLL: Duration = Duration::from_millis(100);
/// Records printed between two checks of Ctrl-C.
const RECORDS_MAX: usize = 256;
/// Approximate bytes printed between two checks.
const BYTES_MAX: usize = 4 << 20;
/// Greatest number of topics that a message lists.
const KNOWN_MAX: usize = 50;
/// Greatest number of symbols to search for similar names.
const OTHERS_MAX: usize = 10_000;

/// Prints records until Ctrl-C, or until the end if requested.
pub fn execute(args: &TailArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let log = open_log(settings, Purpose::Show)?.log;
    let topic = find_topic(&*log, &args.topic, &settings.topics.prefix)?;
    let partitions: Vec<TopicPartition> = (0..topic.spec.partitions)
        .map(|partition| TopicPartition { topic: topic.spec.name.clone(), partition })
        .collect();
    let mut reader = log.reader(&partitions)?;
    let mut open = seek(&mut *reader, &partitions, args.from_beginning)?;
    let interrupt = Interrupt::install()?;
    let mut waits = false;
    let mut printer = Printer::new(args, &topic.spec.name, BufWriter::new(stdout()));
    while !interrupt.is_set() && (!args.exit_at_end || !open.is_empty()) {
        if open.is_empty() && !waits {
            waits = true;
            printer.tell_unknown_symbol(&log.url());
            to_stderr(format_args!("waiting for new records of {}; Ctrl-C to end", topic.spec.name));
        }
        if let Fetched::Records { source, records } = reader.poll(POLL, RECORDS_MAX, BYTES_MAX)? {
            for record in &records {
                // Records written after the start lie after the requested end.
                if !args.exit_at_end || open.get(&source).is_some_and(|end| record.offset < *end) {
                    printer.print(source.partition, record)?;
                }
            }
            printer.flush()?;
        }
        drop_finished(&mut *reader, &mut open)?;
    }
    printer.flush()?;
    if !waits && !interrupt.is_set() {
        printer.tell_unknown_symbol(&log.url());
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds the topic of that name, which may include the prefix. A topic without the prefix belongs to others.
fn find_topic(log: &dyn EventLog, name: &str, prefix: &str) -> anyhow::Result<TopicInfo> {
    let prefixed = format!("{prefix}{name}");
    let full = if name.starts_with(prefix) { name } else { &prefixed };
    for wanted in [prefixed.as_str(), full] {
        if let Some(topic) = log.topic(wanted)? {
            return Ok(topic);
        }
    }
    let known = match log.topic_names()?.as_slice() {
        [] => "no topics yet: publish ticks with `warptape feed` first".to_owned(),
        // A shared cluster may have thousands of topics.
        names => names[..names.len().min(KNOWN_MAX)].join(", "),
    };
    let url = log.url();
    Err(UsageError(format!("{url} has no topic {full:?} (topics.prefix = {prefix:?}); it has {known}"))
        .into())
}

/// Moves the reader to its first record. Returns the partitions with records before their present end.
fn seek(
    reader: &mut dyn Consumer,
    partitions: &[TopicPartition],
    from_beginning: bool,
) -> anyhow::Result<BTreeMap<TopicPartition, i64>> {
    let mut open = BTreeMap::new();
    for partition in partitions {
        let range = reader.offsets(partition)?;
        reader.seek(partition, if from_beginning { range.first } else { range.next })?;
        if from_beginning && range.first < range.next {
            open.insert(partition.clone(), range.next);
        }
    }
    Ok(open)
}

/// Drops the partitions that were read to their end; the last offset need not have a record.
fn drop_finished(reader: &mut dyn Consumer, open: &mut BTreeMap<TopicPartition, i64>) -> anyhow::Result<()> {
    let mut finished = Vec::new();
    for (partition, end) in &*open {
        if reader.position(partition)? >= *end {
            finished.push(partition.clone());
        }
    }
    for partition in finished {
        open.remove(&partition);
    }
    Ok(())
}

struct Printer<'a, W> {
    format: TailFormat,
    symbol: Option<&'a str>,
    topic: &'a str,
    output: W,
    describer: Describer,
    header: Option<&'static str>,
    /// True if a row had the requested symbol.
    is_found: bool,
    /// Symbols of other rows, until a row has the requested one.
    others: BTreeSet<String>,
    /// Start of the process that writes each partition of the journal, as far as its entries told.
    started: BTreeMap<i32, Started>,
}

impl<'a, W: Write> Printer<'a, W> {
    fn new(args: &'a TailArgs, topic: &'a str, output: W) -> Self {
        Printer {
            format: args.output,
            symbol: args.symbol.as_deref(),
            topic,
            output,
            describer: Describer::new(),
            header: None,
            is_found: false,
            others: BTreeSet::new(),
            started: BTreeMap::new(),
        }
    }

    /// Warns if no row so far had the requested symbol. Nothing is known if no row was read.
    fn tell_unknown_symbol(&self, url: &str) {
        if let Some(symbol) = self.symbol.filter(|_| !self.is_found && !self.others.is_empty()) {
            let near = UnknownSymbol::new(symbol, String::new(), &self.others).near;
            let like = if near.is_empty() {
                String::new()
            } else {
                format!("; did you mean {}?", near.join(" or "))
            };
            to_stderr(format_args!("{url} ({}) has no record of {symbol:?} so far{like}", self.topic));
        }
    }

    /// True if a row has to be printed.
    fn is_wanted(&mut self, row: &rows::TickRow) -> bool {
        let Some(wanted) = self.symbol else { return true };
        match row.symbol() {
            Some(symbol) if symbol == wanted => {
                self.is_found = true;
                self.others.clear();
                true
            }
            Some(other) => {
                if !self.is_found && self.others.len() < OTHERS_MAX && !self.others.contains(other) {
                    self.others.insert(other.to_owned());
                }
                false
            }
            None => false,
        }
    }

    fn print(&mut self, partition: i32, record: &Record) -> io::Result<()> {
        let line = JsonLine::new(self.topic, partition, record);
        match payload_of(record).and_then(|payload| self.describer.describe(payload)) {
            Ok((schema, value)) => {
                if self.format == TailFormat::Table
                    && layout::of(schema).schema == "JournalEntry"
                    && let Ok(entry) = decode_journal_entry(&record.value)
                {
                    return self.print_entry(&line, &entry);
                }
                for row in rows::rows(schema, value) {
                    if self.is_wanted(&row) {
                        self.print_row(&line, &row)?;
                    }
                }
                Ok(())
            }
            Err(error) => match self.format {
                TailFormat::Json => line.with_error(&error.to_string()).write(&mut self.output),
                TailFormat::Table => {
                    writeln!(self.output, "{partition}:{}  cannot be decoded: {error}", record.offset)
                }
            },
        }
    }

    fn print_row(&mut self, line: &JsonLine, row: &rows::TickRow) -> io::Result<()> {
        match self.format {
            TailFormat::Json => line.write_row(row, &self.describer, &mut self.output),
            TailFormat::Table => {
                let layout = layout::of(row.schema);
                if self.header != Some(layout.schema) {
                    writeln!(self.output, "{}", layout.header())?;
                    self.header = Some(layout.schema);
                }
                let at = layout::Position {
                    partition: line.partition,
                    offset: line.offset,
                    timestamp_ns: line.timestamp_ns,
                };
                writeln!(self.output, "{}", layout.line(at, row))
            }
        }
    }

    /// Prints an entry of a journal in words: the scheduler's input, and below it the decisions.
    fn print_entry(&mut self, line: &JsonLine, entry: &JournalEntry) -> io::Result<()> {
        if self.symbol.is_some() {
            return Ok(());
        }
        let began = match &entry.input {
            Input::Started(started) => Some(started),
            Input::Checkpoint(checkpoint) => checkpoint.started.as_ref(),
            _ => None,
        };
        if let Some(began) = began {
            self.started.insert(line.partition, (**began).clone());
        }
        let started = self.started.get(&line.partition);
        let words = inputs::words(entry, started);
        let decisions = json!({ "at_ns": entry.at_ns, "decisions": entry.decisions });
        let decided: Vec<String> = reasons::of_decisions(&decisions, started).collect();
        let fields = json!({ "sequence": entry.sequence, "at_ns": entry.at_ns, "input": words });
        self.print_row(line, &rows::TickRow { schema: "JournalEntry", index: None, fields })?;
        decided.iter().try_for_each(|words| writeln!(self.output, "    {}", printable_line(words)))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
