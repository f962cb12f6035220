//! `warptape tail`: prints the records of a topic, decoded, as they come.
//!
//! A record that cannot be decoded is printed with the reason; the command continues.

mod defaults;
mod filter;
pub mod inputs;
pub(super) mod json_line;
pub(super) mod layouts;
mod lines;
mod look;
mod names;
mod printer;
pub(super) mod readable;
mod reading;
pub mod reasons;
pub(super) mod rows;
pub(super) mod show;
pub(super) mod view;

use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::time::Duration;

use warptape_eventlog::{EventLog, Selection};

pub use self::lines::{Lines, Polled};

use self::names::Names;
use self::printer::Printer;
use self::reading::Reading;
use crate::cli::{Interrupt, TailArgs};
use crate::open::{Purpose, open_log};
use crate::printable::{stdout, to_stderr};
use crate::settings::Settings;

/// Longest poll before Ctrl-C is checked again.
const POLL: Duration = Duration::from_millis(100);

/// Prints records until Ctrl-C, or until the end if requested.
pub fn execute(args: &TailArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let log = open_log(settings, Purpose::Show)?.log;
    let from_to = (args.reads_old_records(), args.exit_at_end);
    let mut reading = Reading::open(&*log, settings, &args.topic, from_to)?;
    let topic = reading.topic().to_owned();
    let names = Names::of(&topic, &settings.topics.names);
    let mut printer = Printer::new(args, &topic, &names, BufWriter::new(stdout()))?;
    let is_selective = reading.select(&selection(args.symbol.as_deref(), (args.since, args.until)));
    let surveys = is_selective && args.reads_old_records();
    let interrupt = Interrupt::install()?;
    let mut waits = false;
    while !interrupt.is_set() && !reading.has_ended() {
        if reading.has_caught_up() && !waits {
            waits = true;
            if surveys {
                survey(&*log, settings, &topic, &mut printer, &interrupt)?;
            }
            printer.tell_missing(&log.url());
            to_stderr(format_args!("waiting for new records of {topic}; Ctrl-C to end"));
        }
        if reading.poll(POLL, |partition, record| printer.print(partition, record))? {
            printer.flush()?;
        }
    }
    printer.flush()?;
    if !waits && !interrupt.is_set() {
        if surveys {
            survey(&*log, settings, &topic, &mut printer, &interrupt)?;
        }
        printer.tell_missing(&log.url());
    }
    if args.exit_at_end && !args.reads_old_records() {
        to_stderr(format_args!(
            "tail begins with new records; --from-beginning or --since prints those of {topic} that are in the log"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the records that may have rows of a symbol and of a time in a range.
fn selection(symbol: Option<&str>, (since_ns, until_ns): (Option<i64>, Option<i64>)) -> Selection {
    let key = symbol.map(|symbol| symbol.as_bytes().to_vec());
    Selection { key, since_ns, until_ns, ..Selection::default() }
}

/// Reads the records that the log has left out, until the wanted symbol and bar are found. So a message about a missing
/// one knows whether it exists, and the similar ones.
fn survey<W: Write>(
    log: &dyn EventLog,
    settings: &Settings,
    topic: &str,
    printer: &mut Printer<'_, W>,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    if printer.has_found_all() {
        return Ok(());
    }
    let mut reading = Reading::open(log, settings, topic, (true, true))?;
    while !reading.has_ended() && !printer.has_found_all() && !interrupt.is_set() {
        reading.poll(POLL, |_, record| {
            printer.survey(record);
            anyhow::Ok(())
        })?;
    }
    Ok(())
}
