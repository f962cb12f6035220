//! `warptape dlq`: lists dead letters, shows one, and sends their records back to their topics.

mod dump;
mod letters;
mod list;
mod original;
mod resend;

use std::io::{self, Write};
use std::process::ExitCode;

use warptape_schemas::{DeadLetter, Describer};

use self::letters::{Letter, Letters, Range};
use super::columns::utc;
use super::tail::json_line::JsonLine;
use super::tail::rows::rows;
use crate::cli::{DlqArgs, DlqCommand, DlqFormat, DlqShowArgs};
use crate::open::{Purpose, open_log};
use crate::printable::{printable_line, stdout};
use crate::settings::Settings;
use crate::usage_error::UsageError;

/// Runs the command that was asked for.
pub fn execute(args: &DlqArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    match &args.command {
        DlqCommand::List(args) => list::execute(args, settings),
        DlqCommand::Show(args) => show(args, settings),
        DlqCommand::Replay(args) => resend::execute(args, settings),
    }
}

/// Names the rows of its record that a letter is about; empty if it is about the whole record.
fn rows_of(letter: &DeadLetter) -> String {
    match letter.rows[..] {
        [] => String::new(),
        [row] => format!(" row {row}"),
        [first, .., last] => format!(" rows {first}..{last} ({})", letter.rows.len()),
    }
}

fn show(args: &DlqShowArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let log = open_log(settings, Purpose::Show)?.log;
    let topic = &settings.topics.names.dead_letter;
    let letters = Letters::new(&*log, topic)?;
    let offset = args.place.offset;
    let partition = match (args.place.partition, args.partition) {
        (Some(_), Some(_)) => {
            let message = "the partition is given twice: give PARTITION:OFFSET, or OFFSET with --partition";
            return Err(UsageError(message.to_owned()).into());
        }
        (with_offset, alone) => with_offset.or(alone).unwrap_or(0),
    };
    letters.check_partition(partition)?;
    let mut found = None;
    letters.read(partition, Range { from: Some(offset), to: Some(offset) }, &mut |letter| {
        found = Some(letter);
        Ok(())
    })?;
    let letter = found.ok_or_else(|| {
        UsageError(format!(
            "{topic} partition {partition} has no record at offset {offset}; `warptape dlq list` lists all \
             dead letters"
        ))
    })?;
    match args.output {
        DlqFormat::Text => write_letter(&mut stdout(), topic, &letter)?,
        DlqFormat::Json => {
            let line = JsonLine::new(topic, partition, &letter.record);
            write_json(&mut stdout(), &line, &letter, &Describer::new())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the line that `tail` prints for the record.
fn write_json(
    out: &mut impl Write,
    line: &JsonLine<'_>,
    letter: &Letter,
    describer: &Describer,
) -> io::Result<()> {
    match describer.describe(&letter.record.value) {
        Ok((schema, value)) => {
            rows(schema, value).iter().try_for_each(|row| line.write_row(row, describer, out))
        }
        Err(error) => line.with_error(&error.to_string()).write(out),
    }
}

fn write_letter(out: &mut impl Write, topic: &str, letter: &Letter) -> io::Result<()> {
    let record = &letter.record;
    writeln!(out, "record     {topic} partition {} offset {}", letter.partition, record.offset)?;
    writeln!(out, "time       {}", utc(record.timestamp_ns))?;
    for (name, value) in &record.headers {
        let (name, value) = (printable_line(name), String::from_utf8_lossy(value));
        writeln!(out, "header     {name}: {}", printable_line(&value))?;
    }
    let content = match &letter.content {
        Ok(content) => content,
        Err(error) => {
            writeln!(out, "unreadable {error}")?;
            return write_bytes(out, "record's value", &record.value);
        }
    };
    let source = printable_line(&content.topic);
    let (partition, offsets, rows) = (content.partition, offsets(content, " to "), rows_of(content));
    writeln!(out, "source     {source} partition {partition} offset {offsets}{rows}")?;
    writeln!(out, "reason     {}", content.reason.name())?;
    writeln!(out, "detail     {}", printable_line(&content.detail))?;
    if let Some(cut) = &content.cut {
        let (key, value, digest) = (cut.key_bytes, cut.value_bytes, cut.digest);
        writeln!(
            out,
            "cut        the original has {key} bytes of key and {value} of value; BLAKE3 of both: {digest}"
        )?;
    }
    match &content.key {
        None => writeln!(out, "key        none")?,
        Some(key) => write_bytes(out, "key", key)?,
    }
    write_bytes(out, "value", &content.value)
}

/// Names the offset of a letter's record, or the first and last offset of its batch.
fn offsets(content: &DeadLetter, to: &str) -> String {
    match content.last_offset {
        None => content.offset.to_string(),
        Some(last) => format!("{}{to}{last}", content.offset),
    }
}

fn write_bytes(out: &mut impl Write, name: &str, bytes: &[u8]) -> io::Result<()> {
    writeln!(out, "{name:<10} {} bytes", bytes.len())?;
    dump::lines(bytes).try_for_each(|line| writeln!(out, "  {line}"))
}
