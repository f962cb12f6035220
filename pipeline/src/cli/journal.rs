//! Arguments of `journal`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `warptape journal`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape journal keygen journal.key")]
pub struct JournalArgs {
    /// Action on the journal's anchors
    #[command(subcommand)]
    pub command: JournalCommand,
}

/// Actions on the anchors of a journal.
#[derive(Clone, Debug, Subcommand)]
pub enum JournalCommand {
    /// Make a pair of Ed25519 keys: one to sign the journal with, one to verify it
    Keygen(KeygenArgs),
    /// Print the anchors in the journal, one a line: each is a statement, the key that signed it, and the signature
    #[command(after_help = "Example: warptape journal anchors --log sqlite:market.db | tail -n 1")]
    Anchors,
}

/// Arguments of `warptape journal keygen`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The command writes the private key to FILE, which only its owner can read, and the public key to FILE.pub; both in PEM, as openssl does.

Example: warptape journal keygen journal.key")]
pub struct KeygenArgs {
    /// File to create for the private key, which must not exist yet
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
