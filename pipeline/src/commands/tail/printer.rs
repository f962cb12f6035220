//! Prints rows of records: as a table, as JSON, or as CSV.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};
use warptape_engine::payload_of;
use warptape_eventlog::Record;
use warptape_schemas::journal::{Input, JournalEntry, Started};
use warptape_schemas::{Describer, decode_journal_entry};

use super::filter::Filter;
use super::json_line::JsonLine;
use super::look::{Look, Rows};
use super::names::Names;
use super::readable::readable;
use super::rows::{self, TickRow};
use super::show::{Position, Row};
use super::view::View;
use super::{inputs, layouts, reasons};
use crate::cli::{ListFormat, TailArgs};
use crate::commands::csv_rows;
use crate::commands::fit::{Room, left_out, wrap};
use crate::commands::json::Integers;
use crate::printable::{printable_line, to_stderr};
use crate::usage_error::UsageError;

/// Indentation of the decisions below a journal entry, and of their continuation lines.
const INDENTS: [&str; 2] = ["    ", "      "];

/// Prints the rows that the filter takes.
pub struct Printer<'a, W> {
    topic: &'a str,
    output: W,
    filter: Filter,
    look: Look,
    form: Form,
    describer: Describer,
    /// Start of the process that writes each partition of the journal, once an entry has named it.
    started: BTreeMap<i32, Started>,
}

/// Form of the output.
enum Form {
    Json(Integers),
    Table(Table),
    Csv {
        view: View,
        /// True once the names of the columns are written.
        has_names: bool,
    },
}

/// A table in progress.
struct Table {
    room: Room,
    /// True if the user chose the columns; otherwise they follow each row's schema.
    is_chosen: bool,
    view: View,
    /// Schema of the rows below the last header; `None` before the first row.
    schema: Option<&'static str>,
}

impl Form {
    fn new(args: &TailArgs, names: &Names<'_>) -> Result<Self, UsageError> {
        let integers = Integers::of(args.raw, args.output == ListFormat::Json)?;
        let columns = names.columns(&args.columns)?;
        let is_chosen = !columns.is_empty();
        Ok(match args.output {
            ListFormat::Json if is_chosen => {
                let message =
                    "--columns is for tables and CSV; leave it out, because JSON always has all fields";
                return Err(UsageError(message.to_owned()));
            }
            ListFormat::Json => Self::Json(integers),
            ListFormat::Table => {
                let room = Room::of_stdout(args.wide);
                let view = if is_chosen { View::chosen(columns, room) } else { View::of(names.layout, room) };
                Self::Table(Table { room, is_chosen, view, schema: None })
            }
            ListFormat::Csv if is_chosen => {
                Self::Csv { view: View::chosen(columns, Room::Whole), has_names: false }
            }
            ListFormat::Csv => Self::Csv { view: View::csv(names.layout), has_names: false },
        })
    }
}

impl<'a, W: Write> Printer<'a, W> {
    /// Checks the arguments against the names of the topic.
    pub fn new(args: &TailArgs, topic: &'a str, names: &Names<'_>, output: W) -> Result<Self, UsageError> {
        let (filter, form) = (Filter::new(args, names)?, Form::new(args, names)?);
        let (look, started) = (filter.look(), BTreeMap::new());
        Ok(Self { topic, output, filter, look, form, describer: Describer::new(), started })
    }

    /// Warns if no row so far had the requested symbol or bar.
    pub fn tell_missing(&self, url: &str) {
        if let Some(missing) = self.filter.missing() {
            to_stderr(format_args!("{url} ({}) has {missing}", self.topic));
        }
    }

    /// Prints the rows of a record.
    pub fn print(&mut self, partition: i32, record: &Record) -> io::Result<()> {
        let wanted = self.look_at(record);
        if wanted.are_none() {
            return Ok(());
        }
        match payload_of(record).and_then(|payload| self.describer.describe(payload)) {
            Ok((schema, value)) => {
                for row in rows::rows_of(schema, value, &wanted) {
                    if self.filter.takes(&row, record.timestamp_ns) {
                        self.print_row(partition, record, row)?;
                    }
                }
                Ok(())
            }
            Err(error) => self.print_undecodable(partition, record, &error.to_string()),
        }
    }

    /// Returns true if some row so far had each of the requested symbol and bar.
    pub fn has_found_all(&self) -> bool {
        self.filter.has_found_all()
    }

    /// Notes the symbols and bars of a record without printing it.
    pub fn survey(&mut self, record: &Record) {
        if self.look_at(record).are_none() {
            return;
        }
        if let Ok((schema, value)) = payload_of(record).and_then(|payload| self.describer.describe(payload)) {
            for row in rows::rows(schema, value) {
                self.filter.takes(&row, record.timestamp_ns);
            }
        }
    }

    /// Returns the rows of a record that may be wanted, and notes the symbols of the others.
    fn look_at(&mut self, record: &Record) -> Rows {
        // A message about a missing bar needs the bars of all rows.
        if !self.filter.has_found_bar() {
            return Rows::Any;
        }
        let Ok(payload) = payload_of(record) else { return Rows::Any };
        let wanted = self.look.at(payload);
        self.look.new_symbols().for_each(|symbol| self.filter.note_symbol(symbol));
        wanted
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    fn print_undecodable(&mut self, partition: i32, record: &Record, error: &str) -> io::Result<()> {
        let words = format!("{partition}:{}  cannot be decoded: {error}", record.offset);
        match &self.form {
            Form::Json(integers) => JsonLine::new(self.topic, partition, record)
                .with_integers(*integers)
                .with_error(error)
                .write(&mut self.output),
            Form::Table(table) => write_sentence(&mut self.output, &words, ["", "  "], table.room),
            Form::Csv { .. } => {
                to_stderr(format_args!("{} {words}", self.topic));
                Ok(())
            }
        }
    }

    fn print_row(&mut self, partition: i32, record: &Record, mut row: TickRow) -> io::Result<()> {
        if let Form::Json(integers) = self.form {
            let line = JsonLine::new(self.topic, partition, record).with_integers(integers);
            return line.write_row(&row, &self.describer, &mut self.output);
        }
        let mut decisions = Vec::new();
        if layouts::of(row.schema).schema == "JournalEntry"
            && let Ok(entry) = decode_journal_entry(&record.value)
        {
            decisions = self.tell_entry(partition, &entry, &mut row.fields);
        }
        let at = Position { partition, offset: record.offset, timestamp_ns: record.timestamp_ns };
        self.write_cells(at, &row)?;
        let Form::Table(Table { room, is_chosen: false, .. }) = self.form else { return Ok(()) };
        let write = |words: &String| write_sentence(&mut self.output, &printable_line(words), INDENTS, room);
        decisions.iter().try_for_each(write)
    }

    /// Replaces an entry's input and decisions with sentences. Returns the sentences of the decisions.
    fn tell_entry(&mut self, partition: i32, entry: &JournalEntry, fields: &mut Value) -> Vec<String> {
        let began = match &entry.input {
            Input::Started(started) => Some(started),
            Input::Checkpoint(checkpoint) => checkpoint.started.as_ref(),
            _ => None,
        };
        if let Some(began) = began {
            self.started.insert(partition, (**began).clone());
        }
        let started = self.started.get(&partition);
        let decisions = json!({ "at_ns": entry.at_ns, "decisions": entry.decisions });
        let decisions: Vec<String> = reasons::of_decisions(&decisions, started).collect();
        fields["input"] = inputs::words(entry, started).into();
        fields["decisions"] = decisions.join("; ").into();
        decisions
    }

    /// Writes the cells of a row. Writes the titles before the first row.
    fn write_cells(&mut self, at: Position, row: &TickRow) -> io::Result<()> {
        let Self { output, form, describer, .. } = self;
        let with_json = |view: &View| match view.needs_json() {
            true => readable(row.schema, &row.fields, describer),
            false => Value::Null,
        };
        match form {
            Form::Json(_) => Ok(()),
            Form::Csv { view, has_names } => {
                if !std::mem::replace(has_names, true) {
                    output.write_all(csv_rows::row(view.names())?.as_bytes())?;
                }
                let readable = with_json(view);
                let cells = view.record(Row { at, row, readable: &readable });
                output.write_all(csv_rows::row(cells)?.as_bytes())
            }
            Form::Table(table) => {
                let view = table.view_of(row.schema, output)?;
                let readable = with_json(view);
                writeln!(output, "{}", view.text(Row { at, row, readable: &readable }))
            }
        }
    }
}

impl Table {
    /// Returns the columns for rows of a schema. Writes their titles if the previous row had others.
    fn view_of(&mut self, schema: &str, output: &mut impl Write) -> io::Result<&View> {
        let layout = layouts::of(schema);
        let is_same = self.is_chosen || self.schema == Some(layout.schema);
        if !is_same {
            self.view = View::of(layout, self.room);
        }
        if self.schema.is_none()
            && let Some(note) = left_out(&self.view.missing)
        {
            to_stderr(format_args!("{note}"));
        }
        if self.schema.is_none() || !is_same {
            writeln!(output, "{}", self.view.header())?;
        }
        self.schema = Some(layout.schema);
        Ok(&self.view)
    }
}

/// Writes a printable sentence, wrapped if it does not fit one line.
fn write_sentence(out: &mut impl Write, words: &str, indents: [&str; 2], room: Room) -> io::Result<()> {
    let [first, further] = indents;
    let Room::Columns(columns) = room else { return writeln!(out, "{first}{words}") };
    let lines = wrap(words, columns.saturating_sub(further.len()).max(1), "");
    for (number, line) in lines.iter().enumerate() {
        writeln!(out, "{}{line}", if number == 0 { first } else { further })?;
    }
    Ok(())
}
