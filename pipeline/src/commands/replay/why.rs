//! `warptape replay why`: what led to a signal or a result; what the decisions of an entry were chosen among, by what, and what would have
//! changed them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;
use warptape_eventlog::EventLog;
use warptape_replay::chain::{find_signal_of_symbol, why_batch, why_request, why_signal};
use warptape_replay::{Before, Progress, ReplayError, VerifyOptions, Why, WhyOptions, why};
use warptape_scheduler::{Choice, Comparison, Condition, Explanation, Instead, Measure, Otherwise, Subject};

use super::{batch, chain, request};
use crate::cli::{VerifyFormat, WhyArgs, WhySubject};
use crate::commands::columns::{Align, aligned, utc};
use crate::commands::tail::reasons;
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::stdout;
use crate::settings::Settings;

/// Explains what the arguments name.
pub fn execute(args: &WhyArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let OpenLog { log, schemas, .. } = open_log(settings, Purpose::Replay).map_err(ReplayError::from)?;
    let options = super::sources(settings, schemas);
    let bar = super::progress_bar();
    let printed = explain(args, &*log, &options, &mut |progress| super::show(&bar, progress));
    bar.finish_and_clear();
    write!(stdout(), "{}", printed?)?;
    Ok(ExitCode::SUCCESS)
}

fn explain(
    args: &WhyArgs,
    log: &dyn EventLog,
    options: &VerifyOptions,
    progress: &mut dyn FnMut(Progress),
) -> anyhow::Result<String> {
    match &args.subject {
        WhySubject::Entry(sequence) => {
            let journal = options.journal.clone();
            let options = WhyOptions { journal, partition: args.partition, sequence: *sequence };
            let found = why(log, &options)?;
            printed(args.output, &found, text)
        }
        WhySubject::Signal { partition, offset } => {
            let chain = why_signal(log, options, *partition, *offset, progress)?;
            printed(args.output, &chain, |chain| Ok(chain::text(chain)))
        }
        WhySubject::Symbol { symbol, at_ns } => {
            let (partition, offset) = find_signal_of_symbol(log, options, symbol, *at_ns, progress)?;
            let chain = why_signal(log, options, partition, offset, progress)?;
            printed(args.output, &chain, |chain| Ok(chain::text(chain)))
        }
        WhySubject::Request(id) => {
            let chain = why_request(log, options, id, progress)?;
            printed(args.output, &chain, |chain| Ok(request::text(chain)))
        }
        WhySubject::Batch(number) => {
            let chain = why_batch(log, options, args.partition, *number, progress)?;
            printed(args.output, &chain, |chain| Ok(batch::text(chain)))
        }
    }
}

fn printed<T: Serialize>(
    format: VerifyFormat,
    found: &T,
    text: impl Fn(&T) -> anyhow::Result<String>,
) -> anyhow::Result<String> {
    match format {
        VerifyFormat::Text => text(found),
        VerifyFormat::Json => Ok(serde_json::to_string(found)? + "\n"),
    }
}

fn text(why: &Why) -> anyhow::Result<String> {
    let fields = serde_json::to_value(&why.entry)?;
    let input = fields["input"].as_object().and_then(|input| input.iter().next());
    let (name, input) = input.map_or(("", &Value::Null), |(name, input)| (name.as_str(), input));
    let mut text = format!(
        "entry {} of partition {} at {}\n{name}: {input}\n",
        why.entry.sequence,
        why.partition,
        utc(why.entry.at_ns)
    );
    if why.explanations.is_empty() {
        text.push_str("\nnothing was decided\n");
    }
    for (reason, explanation) in reasons::of_decisions(&fields).zip(&why.explanations) {
        write!(text, "\n{reason}\n")?;
        text.push_str(&explained(&explanation.explanation));
        if let Some(before) = &explanation.before {
            writeln!(text, "  {}", said_before(before)?)?;
        }
    }
    Ok(text)
}

/// What was decided of the same before.
fn said_before(before: &Before) -> anyhow::Result<String> {
    Ok(match before {
        Before::Decided { at, decision } => format!(
            "before it, entry {} at {} decided: {}",
            at.sequence,
            utc(at.at_ns),
            reasons::of_decision(&serde_json::to_value(decision)?, at.at_ns)
        ),
        Before::NoneSinceStart(began) => format!(
            "before it nothing of the kind was decided since the process began with entry {} at {}",
            began.sequence,
            utc(began.at_ns)
        ),
        Before::NoneSince(Some(first)) => format!(
            "before it nothing of the kind was decided from entry {} at {} on, the first one that was looked at",
            first.sequence,
            utc(first.at_ns)
        ),
        Before::NoneSince(None) => {
            "no entry before it is left that could tell what was decided before".to_owned()
        }
    })
}

/// What a decision was chosen among, and below it what would have changed it.
pub(super) fn explained(explanation: &Explanation) -> String {
    let mut text = choices(&explanation.choices) + &measures(&explanation.measures);
    for otherwise in &explanation.otherwise {
        text.push_str(&format!("  {}\n", words(otherwise)));
    }
    text
}

/// What was chosen among, a row each, with a column for each figure that any of them has.
pub(super) fn choices(choices: &[Choice]) -> String {
    let mut names: Vec<&'static str> = Vec::new();
    for term in choices.iter().flat_map(|choice| &choice.terms) {
        if !names.contains(&term.name) {
            names.push(term.name);
        }
    }
    if choices.is_empty() {
        return String::new();
    }
    let scored = choices.iter().any(|choice| choice.score.is_some());
    let mut header = vec![("", Align::Left), ("choice", Align::Left)];
    header.extend(scored.then_some(("score", Align::Right)));
    header.extend(names.iter().map(|name| (*name, Align::Right)));
    header.push(("excluded", Align::Left));
    let row = |choice: &Choice| {
        let chosen = if choice.is_chosen { "  *" } else { "" };
        let mut row = vec![chosen.to_owned(), subject(&choice.subject)];
        row.extend(scored.then(|| choice.score.map_or_else(String::new, |score| score.to_string())));
        row.extend(names.iter().map(|name| {
            let term = choice.terms.iter().find(|term| term.name == *name);
            match term.map(|term| term.value) {
                None => String::new(),
                Some(i64::MAX) => "none".to_owned(),
                Some(value) => value.to_string(),
            }
        }));
        let excluded = choice.excluded.map(|reason| serde_json::json!(reason));
        row.push(excluded.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned());
        row
    };
    let rows: Vec<Vec<String>> = choices.iter().map(row).collect();
    aligned(&header, &rows)
}

/// What was measured, a row each, with what it was held against.
fn measures(measures: &[Measure]) -> String {
    if measures.is_empty() {
        return String::new();
    }
    let header = [
        ("", Align::Left),
        ("measure", Align::Left),
        ("value", Align::Right),
        ("held against", Align::Right),
    ];
    let row = |measure: &Measure| {
        let threshold = measure.threshold.map_or_else(String::new, |threshold| threshold.to_string());
        vec![String::new(), measure.name.to_owned(), measure.value.to_string(), threshold]
    };
    let rows: Vec<Vec<String>> = measures.iter().map(row).collect();
    aligned(&header, &rows)
}

fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Lane(lane) => format!("lane {lane}"),
        Subject::Task(task) => format!("task {task}"),
    }
}

pub(super) fn words(otherwise: &Otherwise) -> String {
    match otherwise {
        Otherwise::Next(next, Some(less)) => {
            format!("without it: {}, whose score is less by {less}", subject(next))
        }
        Otherwise::Next(next, None) => format!("without it: {}", subject(next)),
        Otherwise::Unless(lane, reason) => {
            let reason = serde_json::json!(reason);
            format!("lane {lane}, if it had not been excluded as {}", reason.as_str().unwrap_or_default())
        }
        Otherwise::AtLatest(at_ns) => {
            format!("on a busy lane, and without further rows, it would have left by {}", utc(*at_ns))
        }
        Otherwise::FullWith(rows) => format!("with {rows} rows more it would have been full"),
        Otherwise::With(condition) => with(condition),
    }
}

fn with(condition: &Condition) -> String {
    let Condition { name, is, value, instead } = condition;
    let is = match is {
        Comparison::Below => "below",
        Comparison::AtMost => "at most",
        Comparison::AtLeast => "at least",
        Comparison::Above => "above",
    };
    let instead = match instead {
        Instead::Nothing => "it would not have been decided".to_owned(),
        Instead::Lanes(lanes) => format!("{lanes} lanes would have been wanted"),
        Instead::WeightPercent(percent) => format!("the lane would count with {percent} % of its weight"),
    };
    format!("with {name} {is} {value}, {instead}")
}

#[cfg(test)]
mod tests {
    use warptape_replay::history::Moment;
    use warptape_schemas::journal::{Breaker, BreakerReason, BreakerState, Decision};

    use super::*;

    #[test]
    fn what_was_measured_and_what_would_have_changed_it_are_told() {
        let breaker = Breaker {
            lane: 1,
            state: BreakerState::Open,
            reason: BreakerReason::Losses,
            measured: 2,
            limit: 2,
        };
        let with = |name, is, value, instead| Otherwise::With(Condition { name, is, value, instead });
        let explanation = Explanation {
            decision: Decision::Breaker(breaker),
            choices: Vec::new(),
            measures: vec![
                Measure { name: "losses_in_window", value: 2, threshold: Some(2) },
                Measure { name: "time_to_probe_ns", value: 500, threshold: None },
            ],
            otherwise: vec![
                with("losses_in_window", Comparison::Below, 2, Instead::Nothing),
                with("load_e6", Comparison::AtLeast, 10, Instead::Lanes(3)),
                with("temperature_c", Comparison::AtMost, 80, Instead::WeightPercent(50)),
            ],
        };
        let expected = "  measure           value  held against
  losses_in_window      2             2
  time_to_probe_ns    500
  with losses_in_window below 2, it would not have been decided
  with load_e6 at least 10, 3 lanes would have been wanted
  with temperature_c at most 80, the lane would count with 50 % of its weight
";
        assert_eq!(explained(&explanation), expected);

        let before = Before::Decided {
            at: Moment { sequence: 7, at_ns: 1_000_000_000 },
            decision: Decision::Breaker(breaker),
        };
        assert_eq!(
            said_before(&before).expect("JSON"),
            "before it, entry 7 at 1970-01-01T00:00:01.000000Z decided: Breaker: lane 1 gets no work: it was lost 2 times lately, and 2 are too many"
        );
        let began = Moment { sequence: 0, at_ns: 0 };
        assert!(
            said_before(&Before::NoneSinceStart(began))
                .expect("JSON")
                .contains("since the process began with entry 0 at ")
        );
        assert!(said_before(&Before::NoneSince(Some(began))).expect("JSON").contains("from entry 0 at "));
    }
}
