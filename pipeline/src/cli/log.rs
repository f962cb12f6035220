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
What is intact becomes the log, in the newest format; the damaged file is kept beside it. The command says which offsets are given up,
and which groups go on from other offsets. Nobody may write the log meanwhile.

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
