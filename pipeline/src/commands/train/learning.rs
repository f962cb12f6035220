//! The command `train`, in a build that can train.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use warptape_network::Network;
use warptape_report::drawing::{Point, Series, Words, curves};
use warptape_train::{
    Method, Scene, TrainError, TrainOptions, Trained, TrainingProgress, Validation, compare, held_out,
    on_one_thread, table, train,
};

use crate::cli::{CompareArgs, Interrupt, NetworkKind, TrainArgs, TrainCommand};
use crate::commands::fleets;
use crate::commands::seeds::over_seeds;
use crate::logging::NOTICE;
use crate::network_file;
use crate::new_file::NewFile;
use crate::printable::stdout;
use crate::usage_error::UsageError;

/// Trains or compares.
pub fn execute(args: &TrainArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        Some(TrainCommand::Compare(args)) => execute_compare(args, &mut stdout())?,
        None => {
            let interrupt = Interrupt::install()?;
            execute_train(args, &interrupt, &mut stdout())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn execute_train(args: &TrainArgs, interrupt: &Interrupt, out: &mut impl Write) -> anyhow::Result<()> {
    let (Some(fleet), Some(workload), Some(to)) = (&args.fleet, &args.workload, &args.to) else {
        return Err(UsageError("--fleet, --workload and --to must all be given".to_owned()).into());
    };
    let (given, tasks) = scene(fleet, workload)?;
    let options = TrainOptions {
        seed: args.seed,
        episodes: args.episodes,
        tasks: args.tasks as usize,
        checkpoint: Some(beside(to, ".checkpoint")),
        resume: args.resume,
        ..TrainOptions::new(given, kind(args.kind))
    };
    let [network, curve] = [to.clone(), beside(to, ".svg")].map(|path| new_file(&path, args.resume));
    let (mut network, mut curve) = (network?, curve?);
    let bar = bar(args.episodes, "episodes");
    let (began, longest) = (Instant::now(), args.seconds.map_or(Duration::MAX, Duration::from_secs));
    let trained = on_one_thread(|| {
        train(&options, &mut |progress| {
            tell(&bar, progress);
            began.elapsed() < longest && !interrupt.is_set()
        })
    });
    bar.finish_and_clear();
    let trained = trained.map_err(told)?;
    network.write_all(&trained.network.to_bytes())?;
    network.finish()?;
    let name = if options.kind == Method::Paper { "paper" } else { "improved" };
    curve.write_all(learning_curve(name, &trained.validations).as_bytes())?;
    curve.finish()?;
    summarise(&trained, to, out)?;
    if args.seeds > 0 && !interrupt.is_set() {
        writeln!(out)?;
        print_comparison(&trained.network, &options.given, (args.seeds, tasks), out)?;
    }
    Ok(())
}

/// Draws the learning curve as SVG: the mean completion time on the validation scenes, relative to that of earliest
/// completion, against episodes. Below 1 is better.
fn learning_curve(name: &str, validations: &[Validation]) -> String {
    let series = |name: &str, ratio: &dyn Fn(&Validation) -> f64| {
        let point = |one: &Validation| Point { at: one.episode as f64, value: ratio(one), half: 0.0 };
        Series { name: name.to_owned(), points: validations.iter().map(point).collect() }
    };
    let words = Words {
        title: "Learning: mean completion time on validation scenes",
        below: "episodes",
        beside: "mean completion time divided by that of earliest-completion",
        at: "",
        unit: "",
    };
    curves(&[series("earliest-completion", &|_| 1.0), series(name, &|one| one.ratio)], words)
}

fn execute_compare(args: &CompareArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let (given, tasks) = scene(&args.fleet, &args.workload)?;
    let path = &args.network;
    let trained = network_file::read(path, Some(given.fleet.lanes()));
    let trained = trained.map_err(|why| UsageError(format!("{} {why}", path.display())))?;
    let network = Network::from_bytes(&trained.network.0)?;
    print_comparison(&network, &given, (args.seeds, tasks), out)
}

/// Returns the training scene, and the number of tasks in a run of the comparison.
fn scene(fleet: &Path, workload: &Path) -> anyhow::Result<(Scene, usize)> {
    // Scenes set their own loads.
    let path = workload;
    let (fleet, workload) = fleets::read(fleet, workload, 1.0)?;
    if workload.ticks.is_some() {
        let path = path.display();
        return Err(UsageError(format!("{path}: networks are trained only on tasks; remove [ticks]")).into());
    }
    let tasks = workload.tasks;
    let given = Scene::given(fleet, workload).map_err(told)?;
    Ok((given, tasks))
}

fn kind(kind: NetworkKind) -> Method {
    match kind {
        NetworkKind::Improved => Method::Improved,
        NetworkKind::Paper => Method::Paper,
    }
}

/// Converts errors that the caller can fix to usage errors.
fn told(error: TrainError) -> anyhow::Error {
    match error {
        TrainError::Tensor(_) | TrainError::Network(_) | TrainError::File { .. } => error.into(),
        _ => UsageError(error.to_string()).into(),
    }
}

/// Returns the path with `ending` appended to the file's name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

/// Creates a file. Replaces an existing one only if training resumes.
fn new_file(path: &Path, may_replace: bool) -> anyhow::Result<NewFile> {
    match may_replace {
        true => NewFile::replace(path),
        false => NewFile::create(path),
    }
}

fn bar(length: u64, what: &str) -> ProgressBar {
    let template = format!("{{wide_bar}} {{pos}}/{{len}} {what}, {{eta}} left  {{msg}}");
    let style = ProgressStyle::with_template(&template);
    ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn tell(bar: &ProgressBar, progress: &TrainingProgress) {
    let TrainingProgress { episode, episodes, updates, loss, epsilon, validation } = *progress;
    bar.set_position(episode);
    bar.set_message(format!("loss {loss:.4}, ε {epsilon:.2}"));
    let Some(validation) = validation else { return };
    let ratio = validation.ratio;
    bar.suspend(|| {
        tracing::info!(
            target: NOTICE,
            "episode {episode} of {episodes}, {updates} updates: loss {loss:.4}, ε {epsilon:.2}; mean completion time {ratio:.4} of that of earliest-completion"
        );
    });
}

fn summarise(trained: &Trained, to: &Path, out: &mut impl Write) -> anyhow::Result<()> {
    let (bytes, hash) = (trained.network.to_bytes().len(), trained.network.hash());
    let best = trained.validations.iter().map(|one| one.ratio).fold(f64::INFINITY, f64::min);
    let last = trained.validations.last().map_or(0, |one| one.episode);
    writeln!(out, "{}: {bytes} bytes, dqn:{hash}", to.display())?;
    writeln!(
        out,
        "best of {} validations in {last} episodes: mean completion time {best:.4} of that of earliest-completion",
        trained.validations.len()
    )?;
    writeln!(
        out,
        "the last integer network chooses differently from its float network in {:.2} % of states, which costs {:.4} % of the spread of values",
        trained.disagreement * 100.0,
        trained.regret * 100.0
    )
    .context("cannot write to standard output")
}

fn print_comparison(
    network: &Network,
    given: &Scene,
    (seeds, tasks): (u64, usize),
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let scenes = held_out(given, tasks);
    let runs = scenes.len() * (warptape_train::RULES.len() + 1);
    let bar = bar(runs as u64 * seeds, "runs");
    let found = compare(network, &scenes, &mut |name, of| {
        bar.set_message(name.to_owned());
        over_seeds(seeds, &bar, of)
    });
    bar.finish_and_clear();
    writeln!(out, "{seeds} seeds of {tasks} tasks, network {}\n\n{}", network.hash(), table(&found))?;
    Ok(())
}

#[cfg(test)]
mod tests;
