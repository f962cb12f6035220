//! `warptape config check`, `show` and `schema`.

use std::io::Write;
use std::process::ExitCode;

use crate::cli::{ConfigArgs, ConfigCommand, DIVERGED};
use crate::open::failover_note;
use crate::printable::{stdout, to_stderr};
use crate::settings::{self, SettingsError, Sources};

/// Checks or shows the configuration of the sources.
pub fn execute(args: &ConfigArgs, sources: &Sources) -> anyhow::Result<ExitCode> {
    let mut stdout = stdout();
    match (args.command, settings::load(sources)) {
        // The schema is the same for every file, so mistakes in this one do not matter.
        (ConfigCommand::Schema, _) => {
            serde_json::to_writer_pretty(&mut stdout, &settings::json_schema())?;
            writeln!(stdout)?;
            Ok(ExitCode::SUCCESS)
        }
        (ConfigCommand::Check, Ok((settings, _))) => {
            match &sources.file {
                Some(path) => writeln!(stdout, "{}: ok", path.display())?,
                None => writeln!(stdout, "ok (no file given)")?,
            }
            if let Some(note) = failover_note(&settings) {
                to_stderr(format_args!("{note}"));
            }
            Ok(ExitCode::SUCCESS)
        }
        (ConfigCommand::Check, Err(error @ (SettingsError::Mistakes(_) | SettingsError::Syntax { .. }))) => {
            writeln!(stdout, "{error}")?;
            Ok(ExitCode::from(DIVERGED))
        }
        (ConfigCommand::Show, Ok((_, effective))) => {
            stdout.write_all(settings::effective_toml(&effective).as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        (_, Err(error)) => Err(error.into()),
    }
}
