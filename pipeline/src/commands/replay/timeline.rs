//! `warptape replay timeline`: a run, or a window of it, as a trace that Perfetto shows.

use std::io::Write;
use std::process::ExitCode;

use indicatif::{HumanBytes, HumanCount};
use warptape_replay::ReplayError;
use warptape_replay::history::HistoryOptions;
use warptape_timeline::{Drawn, write_timeline};

use crate::cli::{TimelineArgs, VerifyFormat};
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::stdout;
use crate::settings::Settings;

/// Writes the file.
pub fn execute(args: &TimelineArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let OpenLog { log, .. } = open_log(settings, Purpose::Replay).map_err(ReplayError::from)?;
    let options = HistoryOptions {
        journal: settings.topics.names.journal.clone(),
        partition: args.partition,
        window: args.window(),
    };
    let bar = super::progress_bar();
    let drawn = write_timeline(&*log, &args.to, &options, &mut |progress| super::show(&bar, progress));
    bar.finish_and_clear();
    print(&drawn?, args)?;
    Ok(ExitCode::SUCCESS)
}

fn print(drawn: &Drawn, args: &TimelineArgs) -> anyhow::Result<()> {
    let mut out = stdout();
    if args.output == VerifyFormat::Json {
        serde_json::to_writer(&mut out, drawn)?;
        return Ok(writeln!(out)?);
    }
    let path = args.to.display();
    let [lives, batches, commits] = [drawn.lives, drawn.batches, drawn.commits].map(HumanCount);
    writeln!(
        out,
        "timeline in {path}: {lives} process lives, {batches} batches, {commits} transactions, {}",
        HumanBytes(drawn.bytes)
    )?;
    if drawn.left_out > 0 {
        let left_out = HumanCount(drawn.left_out);
        writeln!(
            out,
            "note: {left_out} events are left out, because too many overlap; a shorter window has all of them"
        )?;
    }
    Ok(writeln!(out, "open it at https://ui.perfetto.dev: drag the file into the window")?)
}
