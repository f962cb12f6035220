//! `warptape tail`: prints the records of a topic, decoded, as they come.
//!
//! A record that cannot be decoded is printed with the reason; the command continues.

mod defaults;
mod filter;
pub mod inputs;
pub(super) mod json_line;
pub(super) mod layouts;
mod lines;
mod names;
mod printer;
pub(super) mod readable;
mod reading;
pub mod reasons;
pub(super) mod rows;
pub(super) mod show;
pub(super) mod view;

use std::io::BufWriter;
use std::process::ExitCode;
use std::time::Duration;

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
    let interrupt = Interrupt::install()?;
    let mut waits = false;
    while !interrupt.is_set() && !reading.has_ended() {
        if reading.has_caught_up() && !waits {
            waits = true;
            printer.tell_missing(&log.url());
            to_stderr(format_args!("waiting for new records of {topic}; Ctrl-C to end"));
        }
        if reading.poll(POLL, |partition, record| printer.print(partition, record))? {
            printer.flush()?;
        }
    }
    printer.flush()?;
    if !waits && !interrupt.is_set() {
        printer.tell_missing(&log.url());
    }
    if args.exit_at_end && !args.reads_old_records() {
        to_stderr(format_args!(
            "tail begins with new records; --from-beginning or --since prints those of {topic} that are in the log"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
