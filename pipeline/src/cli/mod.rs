//! The command line: arguments in, one command run, an exit code out.
//!
//! This module defines the arguments, and the settings that flags set; `commands` executes the commands.

mod control;
mod count;
mod dlq;
mod exit;
mod export;
mod feed;
mod hot;
mod interrupt;
mod journal;
mod live_feed;
mod log;
mod manuals;
mod mcp;
mod replay;
mod risk;
mod run;
mod show;
mod simulate;
mod top;
mod train;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{ArgAction, Parser, Subcommand};
use warptape_stages::formulas::{Registered, register};

pub use control::{BreakerWord, ControlArgs, ControlFormat, ControlWord};
pub use dlq::{DlqArgs, DlqCommand, DlqFormat, DlqListArgs, DlqReplayArgs, DlqShowArgs};
pub use exit::{DIVERGED, INEXACT, UNUSABLE, exit_code};
pub use export::{ExportArgs, ExportFormat};
pub use feed::{
    CaptureArgs, CsvArgs, DbnArgs, FeedArgs, FeedCommon, FeedSource, GapArgs, StoredSource, SynthArgs,
    VenueFile,
};
pub use hot::{HotArgs, HotCommand, HotFormat, HotGetArgs, HotResultArgs, HotStateArg};
pub use interrupt::Interrupt;
pub use journal::{JournalArgs, JournalCommand, KeygenArgs};
pub use live_feed::{LiveArgs, LiveSource};
pub use log::{BackupArgs, LogArgs, LogCommand};
pub use manuals::{CompletionsArgs, ManArgs, ShellName};
pub use mcp::McpArgs;
pub use replay::{
    BACKWARDS, ChainFormat, DebugArgs, DebugFormat, DiffArgs, ReplayArgs, ReplayCommand, ReportArgs,
    SlowestArgs, TimelineArgs, VerifyArgs, VerifyFormat, WhatIfArgs, WhyArgs, WhyNotArgs, WhySubject,
    WindowArgs, parse_bound, parse_condition,
};
pub use risk::{
    AskingArgs, FileArgs, ImpliedVolArgs, OptionFlags, PortfolioArgs, PriceArgs, RecordedFlags, RiskArgs,
    RiskCommand, RiskFormat, RiskSubcommand, SimulationFlags, SweepArgs,
};
pub use run::{DemoArgs, ListenArg, ReadyArgs, RunArgs};
pub use show::{ConfigArgs, ConfigCommand, DevicesArgs, ListFormat, TailArgs, TopicsArgs, TopicsCommand};
pub use simulate::{Experiment, SimulateArgs, SimulateFormat};
pub use top::TopArgs;
pub use train::{CompareArgs, NetworkKind, TrainArgs, TrainCommand};

use crate::commands;
use crate::logging::{self, LogFormat, NOTICE};
use crate::printable::to_stderr;
use crate::settings::{self, Assignment, Sources};
use crate::terminal::Terminal;
use crate::usage_error::UsageError;

/// Event-sourced stream processing of market data: ticks in, signals and decisions out, every run replayable.
#[derive(Debug, Parser)]
#[command(
    name = "warptape",
    version,
    after_help = "\
Configuration is a TOML file (-c), then environment variables (WARPTAPE__SECTION__KEY), then flags.
Exit status: 0 done, 1 failed or a difference found, 2 wrong usage or unreadable input.

Example: warptape feed synth --symbols 100 --ticks 1000000 && warptape run"
)]
pub struct Cli {
    /// Event log to use: `sqlite:PATH`, the PATH of its file, or `kafka:HOST:PORT` (sets log.url)
    #[arg(long, global = true, value_name = "URL", help_heading = "Common options")]
    pub log: Option<String>,
    /// Configuration file (TOML)
    #[arg(short, long, global = true, value_name = "FILE", help_heading = "Common options")]
    pub config: Option<PathBuf>,
    /// Log more on standard error: -v events, -vv reasons, -vvv everything (WARPTAPE_LOG overrides)
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Common options")]
    pub verbose: u8,
    /// Format of standard error: lines for people, or one JSON object per line (WARPTAPE_LOG_FORMAT is the same)
    /// [default: text]
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        hide_possible_values = true,
        help_heading = "Common options"
    )]
    pub log_format: Option<LogFormat>,
    /// Command to run
    #[command(subcommand)]
    pub command: Command,
}

/// All commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a synthetic market through the whole pipeline, here and now
    Demo(DemoArgs),
    /// Run the pipeline
    Run(RunArgs),
    /// Ask a running pipeline whether it is ready
    Ready(ReadyArgs),
    /// Watch a running pipeline in the terminal
    Top(TopArgs),
    /// Publish ticks from recordings, dumps or a synthetic market
    Feed(FeedArgs),
    /// Replay a recorded run and compare
    Replay(ReplayArgs),
    /// Ask for prices, Greeks, value at risk, stress, weights or a sweep, and wait for the answer
    Risk(Box<RiskArgs>),
    /// Command running processes: drain a lane, weigh lanes and tenants, move groups
    Control(ControlArgs),
    /// Run a modelled fleet in virtual time, and compare task policies
    Simulate(SimulateArgs),
    /// Train a network that chooses lanes for tasks, and compare it with rules
    Train(TrainArgs),
    /// Print the records of a topic and follow it
    Tail(TailArgs),
    /// Show hot state: the latest of a symbol, or the result of a risk request
    Hot(HotArgs),
    /// List dead letters, show one, or send their records back to their topics
    Dlq(DlqArgs),
    /// List topics with their offsets
    Topics(TopicsArgs),
    /// Check, recover or back up an embedded log
    Log(LogArgs),
    /// Make keys that sign a journal, or print who signed it
    Journal(JournalArgs),
    /// Show the devices that lanes run on
    Devices(DevicesArgs),
    /// Check or show the configuration
    Config(ConfigArgs),
    /// Offer the commands to an assistant as tools that only read (Model Context Protocol)
    Mcp(McpArgs),
    /// Print a shell's completions of the commands
    Completions(CompletionsArgs),
    /// Write manual pages of all commands
    Man(ManArgs),
}

/// Runs a command line in a program with functions of its own for formulas (docs/formulas.md).
pub fn main_with(functions: &[Registered], arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match register(functions) {
        Ok(()) => main(arguments),
        Err(error) => {
            // A failure here means that standard error is closed.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(UNUSABLE)
        }
    }
}

/// Runs a command line; its first argument is the name of the command.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let name = arguments.first().and_then(|name| name.to_str()).unwrap_or("warptape").to_owned();
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            if error.use_stderr() && LogFormat::guessed() == LogFormat::Json {
                // A failure here only loses the log line.
                let _ = logging::start(0, LogFormat::Json, &Terminal::new(LogFormat::Json));
                let text = error.to_string();
                tracing::error!(target: NOTICE, "{}", text.trim_start_matches("error: ").trim_end());
                return ExitCode::from(UNUSABLE);
            }
            // A failure here means that standard output or standard error is closed.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { UNUSABLE } else { 0 });
        }
    };
    let format = LogFormat::chosen(cli.log_format);
    let terminal = Terminal::new(*format.as_ref().unwrap_or(&LogFormat::Text));
    let started = logging::start(cli.verbose, terminal.format(), &terminal)
        .and_then(|()| Ok(format.map(drop)?))
        .and_then(|()| interrupt::outlive_file_limit().context("cannot watch for signals"))
        .and_then(|()| warptape_eventlog::say_before_sigbus().context("cannot watch for signals"));
    match started.and_then(|()| execute(&cli, &name, &terminal)) {
        Ok(code) => code,
        Err(error) => {
            let code = exit_code(&error);
            if code != 0 {
                tracing::error!(target: NOTICE, "{}", told(&error));
            }
            ExitCode::from(code)
        }
    }
}

/// Returns an error's text with its causes, each of them once: some messages already contain their cause.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let mut told = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !told.contains(&cause) {
            told += ": ";
            told += &cause;
        }
    }
    told
}

/// Name that a configuration file usually has.
const USUAL_CONFIG: &str = "warptape.toml";

/// True if a command uses the configured lanes. Other commands do not look for devices.
fn runs_lanes(command: &Command) -> bool {
    matches!(command, Command::Demo(_) | Command::Run(_) | Command::Devices(_))
}

/// True if a command runs the configured scheduler or checks its configuration. Other commands do not read the files of
/// networks, which may be missing on their machine.
fn reads_networks(command: &Command) -> bool {
    matches!(command, Command::Demo(_) | Command::Run(_) | Command::Config(_))
}

fn execute(cli: &Cli, name: &str, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let mut sources = sources(cli)?;
    if let Command::Demo(args) = &cli.command {
        prefer_for_demo(args, &mut sources)?;
    }
    if let Command::Config(args) = &cli.command {
        return commands::config::execute(args, &sources);
    }
    // These commands read no configuration.
    match &cli.command {
        #[cfg(feature = "manuals")]
        Command::Completions(args) => return commands::manuals::completions(args),
        #[cfg(feature = "manuals")]
        Command::Man(args) => return commands::manuals::man(args),
        #[cfg(not(feature = "manuals"))]
        Command::Completions(_) => return Err(UsageError::not_built("completions", "manuals").into()),
        #[cfg(not(feature = "manuals"))]
        Command::Man(_) => return Err(UsageError::not_built("man", "manuals").into()),
        #[cfg(not(feature = "mcp"))]
        Command::Mcp(_) => return Err(UsageError::not_built("mcp", "mcp").into()),
        #[cfg(feature = "lab")]
        Command::Simulate(args) => return commands::simulate::execute(args),
        #[cfg(not(feature = "lab"))]
        Command::Simulate(_) => return Err(UsageError::not_built("simulate", "lab").into()),
        Command::Train(args) => return commands::train::execute(args),
        _ => {}
    }
    let (settings, _) = settings::load(&sources)?;
    match &cli.command {
        Command::Demo(args) => {
            commands::demo::execute(args, &settings, name, cli.config.as_deref(), terminal)
        }
        Command::Run(args) => {
            if cli.config.is_none() && Path::new(USUAL_CONFIG).is_file() {
                to_stderr(format_args!("{USUAL_CONFIG} is not read: name it with -c {USUAL_CONFIG}"));
            }
            commands::run::execute(args, &settings, terminal)
        }
        Command::Ready(args) => commands::ready::execute(args, &settings.endpoint),
        #[cfg(feature = "top")]
        Command::Top(args) => commands::top::execute(args, &settings.endpoint, terminal),
        #[cfg(not(feature = "top"))]
        Command::Top(_) => Err(UsageError::not_built("top", "top").into()),
        Command::Feed(args) => commands::feed::execute(args, &settings),
        Command::Replay(args) => commands::replay::execute(args, &settings, terminal),
        Command::Risk(args) => commands::risk::execute(args, &settings),
        Command::Control(args) => commands::control::execute(args, &settings),
        Command::Tail(args) => commands::tail::execute(args, &settings),
        Command::Hot(args) => commands::hot::execute(args, &settings),
        Command::Dlq(args) => commands::dlq::execute(args, &settings),
        Command::Topics(args) => commands::topics::execute(args, &settings),
        Command::Log(args) => commands::log::execute(args, &settings),
        Command::Journal(args) => commands::journal::execute(args, &settings),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => commands::mcp::execute(args, &settings, cli.config.as_deref()),
        #[cfg(not(feature = "mcp"))]
        Command::Mcp(_) => unreachable!("refused above"),
        Command::Devices(DevicesArgs {}) => commands::devices::execute(&settings),
        Command::Config(_)
        | Command::Simulate(_)
        | Command::Train(_)
        | Command::Completions(_)
        | Command::Man(_) => {
            unreachable!("handled above: they work whatever is configured")
        }
    }
}

/// Sets the defaults of a demo: its own log, and four lanes.
fn prefer_for_demo(args: &DemoArgs, sources: &mut Sources) -> anyhow::Result<()> {
    if let Some(log) = sources.flags.iter().find(|flag| flag.key == "log.url") {
        commands::demo::refuse_existing(log.value.trim_start_matches("sqlite:").as_ref())?;
    } else {
        let value = format!("sqlite:{}", commands::demo::log_path(args)?.display());
        sources.flags.push(Assignment { giver: "--data", key: "log.url", value });
    }
    sources.preferences.push(Assignment { giver: "demo", key: "engine.devices", value: "cpu:4".to_owned() });
    Ok(())
}

/// Returns the settings of the environment.
pub(crate) fn environment() -> Result<Vec<(String, String)>, UsageError> {
    let mut environment = Vec::new();
    for (name, value) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with(settings::ENVIRONMENT_PREFIX)) else {
            continue;
        };
        // The value is not repeated: it may be a secret.
        let value = value.into_string().map_err(|_| {
            UsageError(format!("environment variable {name} is not UTF-8; set it to UTF-8 text or unset it"))
        })?;
        environment.push((name.to_owned(), value));
    }
    Ok(environment)
}

/// Returns the sources of the settings of a command line.
fn sources(cli: &Cli) -> anyhow::Result<Sources> {
    let environment = environment()?;
    let log = cli.log.iter().map(|url| Assignment {
        giver: "--log",
        key: "log.url",
        value: settings::log_url(url),
    });
    let hot_state = match &cli.command {
        Command::Run(args) => args.hot_state.url.as_ref(),
        Command::Demo(args) => args.hot_state.url.as_ref(),
        Command::Hot(args) => args.hot_state.url.as_ref(),
        _ => None,
    };
    let hot_state =
        hot_state.map(|url| Assignment { giver: "--hot-state", key: "hot_state.url", value: url.clone() });
    let listen = match &cli.command {
        Command::Run(args) => args.listen.listen.as_ref(),
        Command::Demo(args) => args.listen.listen.as_ref(),
        _ => None,
    };
    let listen = listen.map(|address| Assignment {
        giver: "--listen",
        key: "endpoint.listen",
        value: address.clone(),
    });
    let flags: Vec<Assignment> = log.chain(hot_state).chain(listen).collect();
    for flag in &flags {
        if let Some(warning) = settings::exposed_password(flag) {
            tracing::warn!(target: NOTICE, "{warning}");
        }
    }
    Ok(Sources {
        preferences: Vec::new(),
        file: cli.config.clone(),
        environment,
        flags,
        cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        reads_networks: reads_networks(&cli.command),
        gpus: runs_lanes(&cli.command).then_some(commands::devices::PROBE),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use warptape_sources::SourceError;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example() {
        fn check(command: &clap::Command) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example: warptape "), "{}: {help}", command.get_name());
            command.get_subcommands().filter(|inner| inner.get_name() != "help").for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn causes_are_told_once() {
        let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let source = SourceError::Open { path: "a.csv".into(), source: missing() };
        let error = anyhow::Error::new(source).context("stopped after 0 ticks were published");
        assert_eq!(
            told(&error),
            format!("stopped after 0 ticks were published: cannot open a.csv: {}", missing())
        );
        assert_eq!(told(&anyhow::anyhow!("a").context("b")), "b: a");
    }

    /// `train` takes a fleet, a workload and a file, or a subcommand.
    #[test]
    fn a_training_is_asked_for_or_a_comparison() {
        let parsed = |line: &str| Cli::try_parse_from(line.split(' ')).map(|cli| cli.command);
        let Ok(Command::Train(args)) = parsed("warptape train --fleet a --workload b --to c") else {
            panic!("it is a training");
        };
        assert_eq!((args.to, args.seeds), (Some(PathBuf::from("c")), 5));
        let Ok(Command::Train(args)) = parsed("warptape train compare c --fleet a --workload b") else {
            panic!("it is a comparison");
        };
        assert!(matches!(args.command, Some(TrainCommand::Compare(args)) if args.seeds == 20));
        for wrong in
            ["train", "train --fleet a --workload b", "train compare c --fleet a", "train --to c compare c"]
        {
            assert!(parsed(&format!("warptape {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn global_flags_may_stand_anywhere() {
        let cli =
            Cli::try_parse_from(["warptape", "topics", "--log", "sqlite:x", "-c", "w.toml", "-vv"]).unwrap();
        assert_eq!((cli.log.as_deref(), cli.verbose), (Some("sqlite:x"), 2));
        assert_eq!(cli.config, Some(PathBuf::from("w.toml")));
    }
}
