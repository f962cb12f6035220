//! The command's report on written tables.

use std::io::Write;

use indicatif::HumanCount;
use warptape_tables::{TableFormat, Written};

use crate::cli::{ExportArgs, ExportFormat, VerifyFormat};
use crate::printable::stdout;

/// Returns the format of tables; `None` if a log is requested.
pub fn format_of(format: ExportFormat) -> Option<TableFormat> {
    match format {
        ExportFormat::Log => None,
        ExportFormat::Parquet => Some(TableFormat::Parquet),
        ExportFormat::Arrow => Some(TableFormat::Arrow),
    }
}

/// Prints the list of tables.
pub fn print(written: &Written, args: &ExportArgs, format: TableFormat) -> anyhow::Result<()> {
    let mut out = stdout();
    if args.output == VerifyFormat::Json {
        serde_json::to_writer(&mut out, written)?;
        return Ok(writeln!(out)?);
    }
    for table in &written.tables {
        let file = args.to.join(format!("{}.{}", table.name, format.ending()));
        writeln!(out, "{:<40} {:>12} rows", file.display().to_string(), HumanCount(table.rows).to_string())?;
    }
    for note in &written.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}
