//! The next entries that meet a condition, for scripts.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;
use warptape_replay::debugger::{Found, Step, Stepper};
use warptape_replay::{Difference, Phase, ReplayProgress};
use warptape_schemas::journal::{Decision, Input};

use crate::cli::{DebugArgs, DebugFormat};
use crate::commands::columns::utc;
use crate::commands::tail::{inputs, reasons};
use crate::printable::{printable_line, stdout, to_stderr};

/// One line of JSON output.
#[derive(Serialize)]
struct Match<'a> {
    sequence: i64,
    offset: i64,
    at_ns: i64,
    input: &'a Input,
    decisions: &'a [Decision],
    /// Differences between the recorded entry and the decisions of this software.
    differences: Vec<Difference>,
}

/// Prints matching entries from the place in the arguments on, up to the requested number. Without a condition, all
/// entries match. Refuses a place after the last entry.
pub fn print(stepper: &mut Stepper<'_>, args: &DebugArgs, format: DebugFormat) -> anyhow::Result<()> {
    let bar = super::super::progress_bar();
    let range = stepper.range();
    let mut progress = |offset: i64| {
        let (done, total) = ((offset - range.first).max(0) as u64, (range.next - range.first).max(0) as u64);
        super::super::show(&bar, ReplayProgress { phase: Phase::Journal, done, total });
        true
    };
    let mut out = stdout();
    let mut printed = 0;
    if let Some(bound) = args.at
        && stepper.go_to(bound, &mut progress)? == Found::Nothing
    {
        return Err(stepper.outside()?.into());
    }
    let (begin, mut found) = (stepper.step().entry.sequence, Found::Here);
    // The first entry may match as well.
    if found == Found::Here
        && args.condition.as_ref().is_some_and(|condition| !condition.holds(&stepper.step()))
    {
        found = next(stepper, args, &mut progress)?;
    }
    while found == Found::Here {
        bar.suspend(|| print_step(&mut out, stepper, format))?;
        printed += 1;
        if printed == args.count {
            break;
        }
        found = next(stepper, args, &mut progress)?;
    }
    bar.finish_and_clear();
    let last = stepper.last()?.sequence;
    match printed {
        0 => to_stderr(format_args!("the condition holds for none of the entries {begin} to {last}")),
        _ if printed < args.count => {
            to_stderr(format_args!("{printed} entries; no more matches up to the last entry, {last}"));
        }
        _ => {}
    }
    Ok(())
}

fn next(
    stepper: &mut Stepper<'_>,
    args: &DebugArgs,
    progress: &mut dyn FnMut(i64) -> bool,
) -> anyhow::Result<Found> {
    Ok(match &args.condition {
        Some(condition) => stepper.find_next(condition, progress)?,
        None => stepper.forward()?,
    })
}

fn print_step(out: &mut impl Write, stepper: &Stepper<'_>, format: DebugFormat) -> io::Result<()> {
    let step = stepper.step();
    let entry = step.entry;
    if format == DebugFormat::Json {
        let differences = step.differences();
        let (sequence, offset, at_ns) = (entry.sequence, step.offset, entry.at_ns);
        let (input, decisions) = (&entry.input, &entry.decisions[..]);
        serde_json::to_writer(&mut *out, &Match { sequence, offset, at_ns, input, decisions, differences })?;
        return writeln!(out);
    }
    let words = inputs::words(entry, step.started);
    writeln!(out, "{:>10}  {}  {}", entry.sequence, utc(entry.at_ns), printable_line(&words))?;
    let lines = decision_words(&step).into_iter().chain(difference_words(&step));
    for line in lines {
        writeln!(out, "    {}", printable_line(&line))?;
    }
    Ok(())
}

/// Returns the decisions of an entry in words.
pub fn decision_words(step: &Step<'_>) -> Vec<String> {
    let entry = step.entry;
    // The input is left out because it may contain the whole state.
    let fields = json!({"at_ns": entry.at_ns, "decisions": entry.decisions});
    reasons::of_decisions(&fields, step.started).collect()
}

/// Returns the differences between a recorded step and its replay in words.
pub fn difference_words(step: &Step<'_>) -> Vec<String> {
    if !step.differs() {
        return Vec::new();
    }
    let words = |difference: warptape_replay::Difference| {
        let lines = difference.to_string();
        let mut lines = lines.lines().map(str::trim);
        let field = lines.next().unwrap_or_default();
        // Each value of a difference is on its own line in a column; extra blanks are removed here.
        let one_blank = |line: &str| match line.split_once(' ') {
            Some((label, value)) => format!("{label} {}", value.trim_start()),
            None => line.to_owned(),
        };
        format!("differs in {field}: {}", lines.map(one_blank).collect::<Vec<_>>().join(", "))
    };
    step.differences().into_iter().map(words).collect()
}
