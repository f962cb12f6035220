//! `warptape replay why`: explains a signal or a result by its causes. It explains the decisions of an entry by their
//! alternatives, the criterion, and the changes that would have led to other decisions.

use std::io::Write as _;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Value, json};
use warptape_eventlog::EventLog;
use warptape_hot::UnknownSymbol;
use warptape_replay::chain::{Chain, SignalOfSymbol, find_signal, why_batch, why_request, why_signal};
use warptape_replay::{Before, ReplayError, ReplayProgress, VerifyOptions, Why, WhyOptions, why};
use warptape_scheduler::{Choice, Comparison, Condition, Explanation, Instead, Measure, Otherwise, Subject};
use warptape_schemas::journal::Started;

use super::chain::{push_line, push_paragraph};
use super::{batch, chain, input_table, request};
use crate::cli::{VerifyFormat, WhyArgs, WhySubject};
use crate::commands::columns::{numbered, utc};
use crate::commands::fit::{Head, Room, table};
use crate::commands::json::{Integers, write_line_with_times};
use crate::commands::tail::{inputs, reasons};
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::stdout;
use crate::settings::Settings;
use crate::usage_error::UsageError;

const BAR_WITHOUT_SYMBOL: &str =
    "--bar chooses among the signals of a symbol; give a symbol such as SYNTH:AAAA, or leave --bar out";

/// Explains the subject of the arguments.
pub fn execute(args: &WhyArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let bar = super::progress_bar();
    let printed = answer(args, settings, &mut |progress| super::show(&bar, progress));
    bar.finish_and_clear();
    write!(stdout(), "{}", printed?)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the explanation in the format of the arguments.
pub fn answer(
    args: &WhyArgs,
    settings: &Settings,
    progress: &mut dyn FnMut(ReplayProgress),
) -> anyhow::Result<String> {
    let OpenLog { log, schemas, .. } = open_log(settings, Purpose::Replay).map_err(ReplayError::from)?;
    explain(args, &*log, &super::sources(settings, schemas), progress)
}

/// Form of the printed explanation.
#[derive(Clone, Copy)]
enum Form {
    Text(Room),
    Json(Integers),
}

pub(in super::super) fn explain(
    args: &WhyArgs,
    log: &dyn EventLog,
    options: &VerifyOptions,
    progress: &mut dyn FnMut(ReplayProgress),
) -> anyhow::Result<String> {
    let integers = Integers::of(args.raw, args.output == VerifyFormat::Json)?;
    let form = match args.output {
        VerifyFormat::Text => Form::Text(Room::of_stdout(args.wide)),
        VerifyFormat::Json => Form::Json(integers),
    };
    if args.bar.is_some() && !matches!(args.subject, WhySubject::Symbol { .. }) {
        return Err(UsageError(BAR_WITHOUT_SYMBOL.to_owned()).into());
    }
    match &args.subject {
        WhySubject::Entry(sequence) => {
            let journal = options.journal.clone();
            let options = WhyOptions { journal, partition: args.partition, sequence: *sequence };
            printed(form, &why(log, &options)?, text)
        }
        WhySubject::Signal { partition, offset } => {
            printed(form, &why_signal(log, options, *partition, *offset, progress)?, chain_text)
        }
        WhySubject::Symbol { symbol, at_ns } => {
            let wanted = SignalOfSymbol { symbol, bar: args.bar.as_deref(), at_ns: *at_ns };
            let found = find_signal(log, options, wanted, progress);
            let (partition, offset) = found.map_err(with_near_symbols)?;
            printed(form, &why_signal(log, options, partition, offset, progress)?, chain_text)
        }
        WhySubject::Request(id) => {
            let chain = why_request(log, options, id, progress)?;
            printed(form, &chain, |chain, room| Ok(request::text(chain, room)))
        }
        WhySubject::Batch(number) => {
            let chain = why_batch(log, options, args.partition, *number, progress)?;
            printed(form, &chain, |chain, room| Ok(batch::text(chain, room)))
        }
    }
}

fn chain_text(chain: &Chain, room: Room) -> anyhow::Result<String> {
    Ok(chain::text(chain, room))
}

/// Adds similar names to the error of an unknown symbol.
fn with_near_symbols(error: ReplayError) -> anyhow::Error {
    match error {
        ReplayError::NoSymbol { url, topic, symbol, known } => {
            UsageError(UnknownSymbol::new(&symbol, format!("{url} ({topic})"), &known).to_string()).into()
        }
        error => error.into(),
    }
}

fn printed<T: Serialize>(
    form: Form,
    found: &T,
    text: impl Fn(&T, Room) -> anyhow::Result<String>,
) -> anyhow::Result<String> {
    match form {
        Form::Text(room) => text(found, room),
        Form::Json(integers) => {
            let mut line = Vec::new();
            write_line_with_times(&mut line, found, integers)?;
            Ok(String::from_utf8(line)?)
        }
    }
}

fn text(why: &Why, room: Room) -> anyhow::Result<String> {
    let Why { entry, started, .. } = why;
    let started = started.as_ref();
    let decisions = json!({ "at_ns": entry.at_ns, "decisions": entry.decisions });
    let mut text = String::new();
    push_line(
        &mut text,
        &format!("entry {} of partition {} at {}", entry.sequence, why.partition, utc(entry.at_ns)),
    );
    push_line(&mut text, &inputs::words(entry, started));
    text.push_str(&input_table::of(&entry.input, room)?);
    if why.explanations.is_empty() {
        text.push_str(
            "\nnothing was decided: `warptape tail journal --from-beginning --exit-at-end` lists all entries with their decisions\n",
        );
    }
    for (reason, explanation) in reasons::of_decisions(&decisions, started).zip(&why.explanations) {
        push_paragraph(&mut text, &reason);
        text.push_str(&explained(&explanation.explanation, room));
        if let Some(before) = &explanation.before {
            push_line(&mut text, &format!("  {}", said_before(before, started)));
        }
    }
    Ok(text)
}

/// Describes the previous decision about the same subject.
pub(super) fn said_before(before: &Before, started: Option<&Started>) -> String {
    match before {
        Before::Decided { at, decision } => format!(
            "the previous decision on the same subject, in entry {} at {}: {}",
            at.sequence,
            utc(at.at_ns),
            reasons::of_decision(&json!(decision), at.at_ns, started)
        ),
        Before::NoneSinceStart(began) => format!(
            "no earlier decision on the same subject since the process started with entry {} at {}",
            began.sequence,
            utc(began.at_ns)
        ),
        Before::NoneSince(Some(first)) => format!(
            "no earlier decision on the same subject since entry {} at {}, the first entry that was read",
            first.sequence,
            utc(first.at_ns)
        ),
        Before::NoneSince(None) => {
            "earlier decisions are unknown, because all earlier entries were removed".to_owned()
        }
    }
}

/// Formats the alternatives of a decision, and below them the changes that would have led to another decision.
pub(super) fn explained(explanation: &Explanation, room: Room) -> String {
    let mut text = choices(&explanation.choices, room) + &measures(&explanation.measures, room);
    for otherwise in &explanation.otherwise {
        text.push_str(&format!("  {}\n", words(otherwise)));
    }
    text
}

/// Formats the alternatives, one a row, with a column for each figure that at least one of them has.
pub(super) fn choices(choices: &[Choice], room: Room) -> String {
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
    let titles: Vec<String> = names.iter().map(|name| titled(name)).collect();
    let mut heads = vec![Head::fixed(""), Head::fixed("choice")];
    heads.extend(scored.then_some(Head::number("rank")));
    heads.extend(titles.iter().map(|title| Head::number(title)));
    heads.push(Head::text("excluded", 12));
    // The rank is shown because a score alone is not comparable. If two scores are equal, the first one ranks higher.
    let rank = |of: usize| {
        let score = choices[of].score?;
        let is_better = |(index, other): &(usize, &Choice)| {
            other.score.is_some_and(|other| other > score || (other == score && *index < of))
        };
        Some(1 + choices.iter().enumerate().filter(is_better).count())
    };
    let row = |(index, choice): (usize, &Choice)| {
        let chosen = if choice.is_chosen { "  *" } else { "" };
        let mut row = vec![chosen.to_owned(), subject(&choice.subject)];
        row.extend(scored.then(|| rank(index).map_or_else(String::new, |rank| rank.to_string())));
        row.extend(names.iter().map(|name| {
            let term = choice.terms.iter().find(|term| term.name == *name);
            term.map_or_else(String::new, |term| valued(name, term.value))
        }));
        let excluded = choice.excluded.map(|reason| serde_json::json!(reason));
        row.push(excluded.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned());
        row
    };
    let rows: Vec<Vec<String>> = choices.iter().enumerate().map(row).collect();
    table(&heads, &["", "choice", "rank", "excluded"], &rows, room)
}

/// Returns a figure's name for people: times are in milliseconds.
fn titled(name: &str) -> String {
    match name {
        // The figure counts the lane's groups without the one to be placed.
        "groups" => "other_groups".to_owned(),
        _ => match (name.strip_suffix("_ns"), name.strip_suffix("_ns_per_s")) {
            (Some(stem), _) => format!("{stem}_ms"),
            (None, Some(stem)) => format!("{stem}_ms_per_s"),
            (None, None) => name.to_owned(),
        },
    }
}

/// Formats a figure in the unit of its title.
fn valued(name: &str, value: i64) -> String {
    match value {
        i64::MAX => "none".to_owned(),
        // Tasks are ordered by a time of day or by a duration, depending on the policy.
        value if name == "ordered_by_ns" && value > YEARS_NS => utc(value),
        value if name.ends_with("_ns") || name.ends_with("_ns_per_s") => format!("{:.3}", value as f64 / 1e6),
        value => value.to_string(),
    }
}

/// Three years in ns, longer than any task lasts: a greater value is a time of day.
const YEARS_NS: i64 = 100_000_000_000_000_000;

/// Formats the measured values, one a row, with the limits that they were compared with.
fn measures(measures: &[Measure], room: Room) -> String {
    if measures.is_empty() {
        return String::new();
    }
    let heads =
        [Head::fixed(""), Head::text("measure", 12), Head::number("value"), Head::number("held against")];
    let row = |measure: &Measure| {
        let shown = |value: i64| valued(measure.name, value);
        let threshold = measure.threshold.map_or_else(String::new, shown);
        vec![String::new(), titled(measure.name), shown(measure.value), threshold]
    };
    let rows: Vec<Vec<String>> = measures.iter().map(row).collect();
    table(&heads, &["", "measure", "value"], &rows, room)
}

fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Lane(lane) => format!("lane {lane}"),
        Subject::Task(task) => format!("task {task}"),
    }
}

pub(super) fn words(otherwise: &Otherwise) -> String {
    match otherwise {
        // A randomly drawn choice may rank below the next alternative.
        Otherwise::Next(next, Some(..0)) => format!("without it: {}, which ranks higher", subject(next)),
        Otherwise::Next(next, _) => format!("without it: {}", subject(next)),
        Otherwise::Unless(lane, reason) => {
            let reason = serde_json::json!(reason);
            format!("lane {lane}, if it were not excluded as {}", reason.as_str().unwrap_or_default())
        }
        Otherwise::AtLatest(at_ns) => {
            format!(
                "on a busy lane and without further rows, it would have been dispatched by {}",
                utc(*at_ns)
            )
        }
        Otherwise::FullWith(rows) => {
            format!("with {} more, the batch would have been full", numbered(*rows, "row", "rows"))
        }
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
        Instead::Lanes(lanes) => format!("{} would have been wanted", numbered(*lanes, "lane", "lanes")),
        Instead::WeightPercent(percent) => format!("the lane would count with {percent} % of its weight"),
    };
    format!("with {} {is} {}, {instead}", titled(name), valued(name, *value))
}

#[cfg(test)]
mod tests {
    use warptape_replay::history::Moment;
    use warptape_scheduler::Term;
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
                Measure { name: "time_to_probe_ns", value: 1_500_000, threshold: None },
            ],
            otherwise: vec![
                with("losses_in_window", Comparison::Below, 2, Instead::Nothing),
                with("load_e6", Comparison::AtLeast, 10, Instead::Lanes(3)),
                with("temperature_c", Comparison::AtMost, 80, Instead::WeightPercent(50)),
            ],
        };
        let expected = "  measure           value  held against
  losses_in_window      2             2
  time_to_probe_ms  1.500
  with losses_in_window below 2, it would not have been decided
  with load_e6 at least 10, 3 lanes would have been wanted
  with temperature_c at most 80, the lane would count with 50 % of its weight
";
        assert_eq!(explained(&explanation, Room::Whole), expected);

        let before = Before::Decided {
            at: Moment { sequence: 7, at_ns: 1_000_000_000 },
            decision: Decision::Breaker(breaker),
        };
        assert_eq!(
            said_before(&before, None),
            "the previous decision on the same subject, in entry 7 at 1970-01-01T00:00:01.000000Z: Breaker: lane 1 gets no work: it was lost 2 times recently, and the limit is 2"
        );
        let began = Moment { sequence: 0, at_ns: 0 };
        let said = |before: Before| said_before(&before, None);
        assert!(said(Before::NoneSinceStart(began)).contains("since the process started with entry 0 at "));
        assert!(said(Before::NoneSince(Some(began))).contains("since entry 0 at "));
    }

    #[test]
    fn choices_are_ranked_and_their_times_are_milliseconds() {
        let term = |name, value| Term { name, value };
        let choice = |lane, score, is_chosen, groups, free_ns| Choice {
            subject: Subject::Lane(lane),
            is_chosen,
            score: Some(score),
            excluded: None,
            terms: vec![term("groups", groups), term("lane_is_free_in_ns", free_ns)],
        };
        let lanes =
            [choice(0, -18_523_393_473_118_208, false, 2, 1_500_000), choice(1, -7, true, 11, i64::MAX)];
        let expected = "     choice  rank  other_groups  lane_is_free_in_ms  excluded
     lane 0     2             2               1.500
  *  lane 1     1            11                none
";
        assert_eq!(choices(&lanes, Room::Whole), expected);
        assert_eq!(titled("load_of_group_ns_per_s"), "load_of_group_ms_per_s");
        assert_eq!(valued("load_of_group_ns_per_s", 2_000_000), "2.000");
        assert_eq!(valued("ordered_by_ns", 1_795_500_000_000_000_000), "2026-11-24T06:00:00.000000Z");
        assert_eq!(valued("ordered_by_ns", 2_000_000), "2.000");
        let next = Otherwise::Next(Subject::Lane(0), Some(-5));
        assert_eq!(words(&next), "without it: lane 0, which ranks higher");
    }
}
