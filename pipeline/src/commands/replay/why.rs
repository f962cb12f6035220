//! `warptape replay why`: what the decisions of an entry were chosen among, by what, and what would have changed them.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use serde_json::Value;
use warptape_replay::{ReplayError, Why, WhyOptions, why};
use warptape_scheduler::{Choice, Explanation, Otherwise, Subject};

use crate::cli::{VerifyFormat, WhyArgs};
use crate::commands::columns::{Align, aligned, utc};
use crate::commands::tail::reasons;
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::stdout;
use crate::settings::Settings;

/// Explains an entry.
pub fn execute(args: &WhyArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let OpenLog { log, .. } = open_log(settings, Purpose::Replay).map_err(ReplayError::from)?;
    let journal = settings.topics.names.journal.clone();
    let options = WhyOptions { journal, partition: args.partition, sequence: args.sequence };
    let found = why(&*log, &options)?;
    let mut stdout = stdout();
    match args.output {
        VerifyFormat::Text => write!(stdout, "{}", text(&found)?)?,
        VerifyFormat::Json => {
            serde_json::to_writer(&mut stdout, &found)?;
            writeln!(stdout)?;
        }
    }
    Ok(ExitCode::SUCCESS)
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
        text.push_str(&choices(explanation));
        for otherwise in &explanation.otherwise {
            writeln!(text, "  {}", words(otherwise))?;
        }
    }
    Ok(text)
}

/// What was chosen among, a row each, with a column for each figure that any of them has.
fn choices(explanation: &Explanation) -> String {
    let mut names: Vec<&'static str> = Vec::new();
    for term in explanation.choices.iter().flat_map(|choice| &choice.terms) {
        if !names.contains(&term.name) {
            names.push(term.name);
        }
    }
    if explanation.choices.is_empty() {
        return String::new();
    }
    let scored = explanation.choices.iter().any(|choice| choice.score.is_some());
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
    let rows: Vec<Vec<String>> = explanation.choices.iter().map(row).collect();
    aligned(&header, &rows)
}

fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Lane(lane) => format!("lane {lane}"),
        Subject::Task(task) => format!("task {task}"),
    }
}

fn words(otherwise: &Otherwise) -> String {
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
    }
}
