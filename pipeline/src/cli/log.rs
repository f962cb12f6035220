//! Arguments of `log`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `warptape log`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
An embedded log is a file, and a folder with its name and -segments for large blocks. While it is in use, files with its name and -wal,
-shm and -head lie beside it and belong to it. Once all writers have ended, the file and the folder are the whole log.

Example: warptape log check --log sqlite:market.db")]
pub struct LogArgs {
    /// Action on the log
    #[command(subcommand)]
    pub command: LogCommand,
}

/// Actions on a log.
#[derive(Clone, Debug, Subcommand)]
pub enum LogCommand {
    /// Read the whole log and list any damage (exit status 1 if there is some)
    #[command(after_help = "Example: warptape log check --log sqlite:market.db")]
    Check,
    /// Make a log that is damaged or has lost records usable again, with its intact contents
    #[command(after_help = "\
The command builds a new log of the newest format from all intact contents, and keeps the damaged file beside it. It lists the offsets that
are given up, and the consumer groups that continue from other offsets. Stop all writers of the log first.

Example: warptape log recover --log sqlite:market.db")]
    Recover,
    /// Copy the log, while others read and write it
    Backup(BackupArgs),
}

/// Arguments of `warptape log backup`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape log backup copy.db --log sqlite:market.db")]
pub struct BackupArgs {
    /// File to create, which must not exist yet
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
