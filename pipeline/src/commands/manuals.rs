//! `warptape completions` and `warptape man`, both generated from the declaration of the command line.

use std::fs;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::cli::{Cli, CompletionsArgs, ManArgs, ShellName};
use crate::printable::stdout;

/// Prints the completions of a shell.
pub fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let shell = match args.shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Elvish => Shell::Elvish,
        ShellName::Fish => Shell::Fish,
        ShellName::PowerShell => Shell::PowerShell,
        ShellName::Zsh => Shell::Zsh,
    };
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "warptape", &mut script);
    stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a manual page for each command.
pub fn man(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let folder = args.to.display();
    let written =
        fs::create_dir_all(&args.to).and_then(|()| clap_mangen::generate_to(Cli::command(), &args.to));
    written.with_context(|| {
        format!("{folder}: the pages cannot be written; name a folder that you can write to")
    })?;
    writeln!(stdout(), "pages written to {folder}: read them with `man -l {folder}/warptape.1`")?;
    Ok(ExitCode::SUCCESS)
}
