//! Exported tables: written once, or continuously, and reported.

use std::io::Write;

use indicatif::HumanCount;
use warptape_eventlog::EventLog;
use warptape_replay::ExportOptions;
use warptape_tables::{TABLES, Table, TableFormat, Written, write_tables};

use super::{follow, progress_bar, show};
use crate::cli::{ExportArgs, ExportFormat, VerifyFormat};
use crate::printable::stdout;
use crate::usage_error::UsageError;

/// Returns the format of tables; `None` if a log is requested.
pub fn format_of(format: ExportFormat) -> Option<TableFormat> {
    match format {
        ExportFormat::Log => None,
        ExportFormat::Parquet => Some(TableFormat::Parquet),
        ExportFormat::Arrow => Some(TableFormat::Arrow),
    }
}

/// Writes the requested tables.
pub fn execute(
    args: &ExportArgs,
    log: &dyn EventLog,
    options: &ExportOptions,
    format: TableFormat,
) -> anyhow::Result<()> {
    let tables = requested(&args.tables)?;
    if args.follow {
        let written = follow::execute(args, log, options, (format, &tables))?;
        return print(&written, args, |table| args.to.join(table).display().to_string());
    }
    let bar = progress_bar();
    let written = write_tables(log, &args.to, format, options, &tables, &mut |progress| show(&bar, progress));
    bar.finish_and_clear();
    let file = |table: &str| args.to.join(format!("{table}.{}", format.ending())).display().to_string();
    print(&written?, args, file)
}

/// Returns the tables with these names, in the order of their declaration; all tables if no name is given.
fn requested(names: &[String]) -> Result<Vec<&'static Table>, UsageError> {
    if let Some(unknown) = names.iter().find(|name| Table::named(name).is_none()) {
        let known = TABLES.map(|table| table.name).join(", ");
        return Err(UsageError(format!(
            "--tables {unknown}: there is no such table; the tables are {known}"
        )));
    }
    let is_wanted = |table: &&Table| names.is_empty() || names.iter().any(|name| name == table.name);
    Ok(TABLES.into_iter().filter(is_wanted).collect())
}

/// Prints the list of tables.
fn print(written: &Written, args: &ExportArgs, place: impl Fn(&str) -> String) -> anyhow::Result<()> {
    let mut out = stdout();
    if args.output == VerifyFormat::Json {
        serde_json::to_writer(&mut out, written)?;
        return Ok(writeln!(out)?);
    }
    for table in &written.tables {
        writeln!(out, "{:<40} {:>12} rows", place(&table.name), HumanCount(table.rows).to_string())?;
    }
    for note in &written.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_requested_by_name() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let found = requested(&names(&["ticks", "signals"])).expect("both are tables");
        assert_eq!(found.iter().map(|table| table.name).collect::<Vec<_>>(), ["signals", "ticks"]);
        assert_eq!(requested(&[]).expect("all tables").len(), TABLES.len());
        let error = requested(&names(&["signals", "bars"])).expect_err("no such table").to_string();
        assert!(error.contains("bars") && error.contains("dead_letters"), "{error}");
    }
}
