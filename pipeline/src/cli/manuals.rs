//! Arguments of `completions` and `man`, which print shell completions and write manual pages.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Arguments of `warptape completions`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example: warptape completions bash > ~/.local/share/bash-completion/completions/warptape
Example: warptape completions zsh > \"${fpath[1]}/_warptape\"")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: ShellName,
}

/// A shell with completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShellName {
    /// Bash
    Bash,
    /// Elvish
    Elvish,
    /// fish
    Fish,
    /// PowerShell
    #[value(name = "powershell")]
    PowerShell,
    /// Z shell
    Zsh,
}

/// Arguments of `warptape man`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape man --to ~/.local/share/man/man1 && man warptape-feed")]
pub struct ManArgs {
    /// Folder of the pages, made if it is missing; pages of the same names are replaced
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
}
