//! `warptape replay report`: writes a run as one HTML page.

use std::io::Write as _;
use std::process::ExitCode;

use indicatif::HumanBytes;
use warptape_eventlog::EventLog;
use warptape_replay::chain::{Slow, SlowestOptions, why_signal};
use warptape_replay::history::Bound;
use warptape_replay::{ReplayError, ReplayProgress, VerifyOptions, verify};
use warptape_report::{About, Page, Verdict, gather, write};

use super::chain;
use crate::cli::{DIVERGED, ReportArgs};
use crate::clock::wall_clock_ns;
use crate::commands::columns::utc;
use crate::commands::fit::Room;
use crate::new_file::NewFile;
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::stdout;
use crate::settings::Settings;

/// Writes the page.
pub fn execute(args: &ReportArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let window = args.window()?;
    let mut file = NewFile::create(&args.to)?;
    let OpenLog { log, schemas, .. } = open_log(settings, Purpose::Replay).map_err(ReplayError::from)?;
    let options = VerifyOptions { outputs: args.outputs, ..super::sources(settings, schemas) };
    let wanted = SlowestOptions { count: args.slowest.into(), window, partition: None };
    let bar = super::progress_bar();
    let mut progress = |progress| super::show(&bar, progress);
    let gathered = gather(&*log, &options, wanted, &mut progress)?;
    let slowest = &gathered.slowest.signals;
    let chains: Vec<_> = slowest.iter().map(|slow| explained(&*log, &options, slow, &mut progress)).collect();
    let verdict = match args.no_verify {
        true => Verdict::NotAsked,
        false => match verify(&*log, &options, &mut progress) {
            Ok(report) => Verdict::Compared(Box::new(report)),
            Err(error) => Verdict::Failed(error.to_string()),
        },
    };
    bar.finish_and_clear();
    let about = about(args, settings);
    let page =
        Page { about: &about, verdict: &verdict, gathered: &gathered, chains: &chains, cause: chain::cause };
    write(&page, &mut file)?;
    file.finish()?;
    print(args, &verdict)
}

/// Explains a signal by its chain of causes, and by the scheduler's reasons if the scheduler's state is known.
fn explained(
    log: &dyn EventLog,
    options: &VerifyOptions,
    slow: &Slow,
    progress: &mut dyn FnMut(ReplayProgress),
) -> String {
    let signal = &slow.chain.signal;
    match why_signal(log, options, signal.partition, signal.offset, progress) {
        Ok(explained) => chain::text(&explained, Room::Whole),
        Err(_) => chain::text(&slow.chain, Room::Whole),
    }
}

fn about(args: &ReportArgs, settings: &Settings) -> About {
    let topics = &settings.topics.names;
    let words = |bound: Bound| match bound {
        Bound::Time(at_ns) => utc(at_ns),
        Bound::Offset(offset) => format!("offset {offset} of the journal"),
        Bound::Sequence(sequence) => format!("entry {sequence}"),
    };
    let since = args.since.map(|bound| format!("since {}", words(bound)));
    let until = args.until.map(|bound| format!("until {}", words(bound)));
    let asked: Vec<_> = since.into_iter().chain(until).collect();
    let command: Vec<_> = std::env::args().skip(1).map(|argument| quoted(&argument)).collect();
    About {
        log: settings.log.url.clone(),
        topics: vec![
            ("journal", topics.journal.clone()),
            ("ticks", topics.ticks.clone()),
            ("signals", topics.signals.clone()),
        ],
        asked: (!asked.is_empty()).then(|| asked.join(", ")),
        command: format!("warptape {}", command.join(" ")),
        log_arguments: format!("--log {}", quoted(&settings.log.url)),
        made_ns: wall_clock_ns(),
        software: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Quotes an argument for a shell.
fn quoted(argument: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+#".contains(&byte);
    match !argument.is_empty() && argument.bytes().all(is_plain) && !argument.starts_with('#') {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    }
}

fn print(args: &ReportArgs, verdict: &Verdict) -> anyhow::Result<ExitCode> {
    let mut out = stdout();
    let bytes = std::fs::metadata(&args.to)?.len();
    writeln!(out, "report written to {}: {}", args.to.display(), HumanBytes(bytes))?;
    match verdict {
        Verdict::NotAsked => writeln!(out, "the run was not verified")?,
        Verdict::Failed(error) => writeln!(out, "the run could not be verified: {error}")?,
        Verdict::Compared(report) => writeln!(out, "{report}")?,
    }
    let differs = matches!(verdict, Verdict::Compared(report) if !report.is_identical());
    Ok(if differs { ExitCode::from(DIVERGED) } else { ExitCode::SUCCESS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        let expected = ["sqlite:market.db", "'a b'", "''", r"'it'\''s'", "'$(x)'"];
        assert_eq!(["sqlite:market.db", "a b", "", "it's", "$(x)"].map(quoted), expected);
    }
}
