//! `warptape replay timeline`: writes a run, or a window of it, as a trace that Perfetto shows.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use indicatif::HumanBytes;
use warptape_replay::ReplayError;
use warptape_replay::history::HistoryOptions;
use warptape_timeline::{Drawn, write_timeline};

use crate::cli::{TimelineArgs, VerifyFormat};
use crate::commands::columns::counted;
use crate::new_file::NewFile;
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::stdout;
use crate::settings::Settings;

/// Writes the file.
pub fn execute(args: &TimelineArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let window = args.window()?;
    let mut file = NewFile::create(&args.to)?;
    let OpenLog { log, .. } = open_log(settings, Purpose::Replay).map_err(ReplayError::from)?;
    let options =
        HistoryOptions { journal: settings.topics.names.journal.clone(), partition: args.partition, window };
    let bar = super::progress_bar();
    let out = BufWriter::new(&mut file);
    let drawn = write_timeline(&*log, out, &options, &mut |progress| super::show(&bar, progress));
    bar.finish_and_clear();
    let drawn = drawn?;
    file.finish()?;
    print(&drawn, args)?;
    Ok(ExitCode::SUCCESS)
}

fn print(drawn: &Drawn, args: &TimelineArgs) -> anyhow::Result<()> {
    let mut out = stdout();
    if args.output == VerifyFormat::Json {
        serde_json::to_writer(&mut out, drawn)?;
        return Ok(writeln!(out)?);
    }
    let path = args.to.display();
    writeln!(
        out,
        "timeline in {path}: {}, {}, {}, {}",
        counted(drawn.lives, "process life", "process lives"),
        counted(drawn.batches, "batch", "batches"),
        counted(drawn.commits, "transaction", "transactions"),
        HumanBytes(drawn.bytes)
    )?;
    if drawn.left_out > 0 {
        writeln!(
            out,
            "note: {} left out, because too many overlap; choose a shorter window to see all",
            counted(drawn.left_out, "event is", "events are")
        )?;
    }
    Ok(writeln!(out, "open it at https://ui.perfetto.dev: drag the file into the window")?)
}
