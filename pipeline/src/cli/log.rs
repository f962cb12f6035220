//! Arguments of `log`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `warptape log`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
An embedded log is a file with what lies beside it while it is used: its name with -wal, -shm and -head. Once everybody who writes it
has ended, the file alone is the log.

Example: warptape log check --log sqlite:market.db")]
pub struct LogArgs {
    /// What to do
    #[command(subcommand)]
    pub command: LogCommand,
}

/// What to do with a log.
#[derive(Clone, Debug, Subcommand)]
pub enum LogCommand {
    /// Read all of it and name what is damaged (exit status 1)
    #[command(after_help = "Example: warptape log check --log sqlite:market.db")]
    Check,
    /// Go on from what is whole of a log that is damaged or has lost something
    #[command(after_help = "\
What is whole becomes the log, in the newest format; what was found is kept beside it. Says which offsets are given up, and which
groups go on elsewhere. Nobody may write the log meanwhile.

Example: warptape log recover --log sqlite:market.db")]
    Recover,
    /// Make a whole copy, while others read and write
    Backup(BackupArgs),
}

/// Arguments of `warptape log backup`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape log backup copy.db --log sqlite:market.db")]
pub struct BackupArgs {
    /// File to make; there must be none yet
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
