//! Compares operators' commands, and the answers to them, with the journal.
//!
//! ```text
//!  journal ──► commands as the scheduler was given them, with what it decided ──┬──► each command of the topic is the one that was given
//!                                                                               │
//!  commands ──► those that are refused without a decision ──────────────────────┴──► the answers there must be, in order
//! ```
//!
//! The journal does not have the time at which a command was sent, and nothing depends on it. The time and process of a
//! refusal without a decision are not checked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use warptape_engine::{ControlRefusal, payload_of};
use warptape_eventlog::{EventLog, OffsetRange, Record, TopicPartition};
use warptape_schemas::control::{Control, ControlCommand, ControlOutcome, ControlResult};
use warptape_schemas::journal::{self, Checkpoint, Controlled, Decision, Input, JournalEntry, Started};
use warptape_schemas::{
    DecodeError, Describer, SetEventTime, decode_control, decode_control_result, encode_control_result,
};

use crate::comparison::{Expected, changed};
use crate::cut::ControlCut;
use crate::difference::{Difference, differences};
use crate::partition_reader::PartitionReader;
use crate::{OutputDivergence, OutputOptions, OutputProblem, ReplayError};

/// The journals' account of operators' commands.
#[derive(Debug, Default)]
pub(crate) struct Controls {
    /// Accounts by process.
    journals: BTreeMap<i32, JournalControls>,
    /// Process whose journal is being read.
    journal: i32,
}

/// The account of one process's journal.
#[derive(Debug, Default)]
struct JournalControls {
    lives: Vec<Life>,
    /// Executed commands in the order of their sequences.
    obeyed: Vec<Obeyed>,
    /// True if older entries were removed; and the first known sequence.
    is_headless: bool,
    first_sequence: Option<i64>,
}

/// A process life.
#[derive(Debug)]
struct Life {
    node: Arc<str>,
    software: String,
}

/// A command that the scheduler got, with its decision.
#[derive(Debug)]
struct Obeyed {
    sequence: i64,
    at_ns: i64,
    node: Arc<str>,
    control: journal::Control,
    controlled: Controlled,
}

impl Controls {
    /// Begins the journal of a process. `is_headless` is true if its first entries were removed.
    pub(crate) fn begin(&mut self, process: i32, is_headless: bool) {
        self.journal = process;
        self.journals.insert(process, JournalControls { is_headless, ..JournalControls::default() });
    }

    /// Drops all entries, for callers that do not need them.
    pub(crate) fn forget(&mut self) {
        self.journals.clear();
    }

    /// Adds the next entry.
    pub(crate) fn add(&mut self, entry: &JournalEntry) {
        let Some(journal) = self.journals.get_mut(&self.journal) else { return };
        journal.first_sequence.get_or_insert(entry.sequence);
        match &entry.input {
            Input::Started(started) => journal.lives.push(Life::of(started)),
            Input::Checkpoint(Checkpoint { started: Some(started), .. }) if journal.lives.is_empty() => {
                journal.lives.push(Life::of(started));
            }
            Input::Control(control) => {
                let controlled = entry.decisions.iter().find_map(|decision| match decision {
                    Decision::Controlled(controlled) => Some(controlled.clone()),
                    _ => None,
                });
                // An entry that was found identical has both.
                if let (Some(controlled), Some(life)) = (controlled, journal.lives.last()) {
                    let (sequence, at_ns, node) = (entry.sequence, entry.at_ns, life.node.clone());
                    let control = control.clone();
                    journal.obeyed.push(Obeyed { sequence, at_ns, node, control, controlled });
                }
            }
            _ => {}
        }
    }
}

impl Life {
    fn of(started: &Started) -> Self {
        Self { node: started.node.as_str().into(), software: started.software.clone() }
    }
}

impl JournalControls {
    /// True if another version of this software may have decided which commands are readable.
    fn has_other_software(&self) -> bool {
        self.is_headless || self.lives.iter().any(|life| life.software != env!("CARGO_PKG_VERSION"))
    }

    /// True if a life of this journal has this node name, or may have it.
    fn has_node(&self, node: &str) -> bool {
        self.is_headless || self.lives.iter().any(|life| *life.node == *node)
    }
}

/// Compares the commands and answers of all processes.
pub(crate) struct ControlCheck<'a> {
    log: &'a dyn EventLog,
    options: &'a OutputOptions,
    controls: &'a Controls,
    describer: Describer,
    /// Number of answers found identical.
    pub(crate) identical: u64,
    /// Descriptions of parts that could not be compared.
    pub(crate) notes: Vec<String>,
}

/// Commands to one process, as found in its topic.
#[derive(Default)]
struct Commands {
    /// Commands that are refused without a decision, by offset.
    refused: BTreeMap<i64, ControlRefusal>,
    /// Commands that could have been executed but are not in the journal, by offset.
    unknown: BTreeMap<i64, Control>,
    /// Offsets of the other commands.
    obeyed: BTreeSet<i64>,
}

/// An expected answer.
enum Answer<'a> {
    Obeyed(&'a Obeyed),
    Refused(i64, &'a ControlRefusal),
}

impl<'a> ControlCheck<'a> {
    pub(crate) fn new(log: &'a dyn EventLog, options: &'a OutputOptions, controls: &'a Controls) -> Self {
        Self { log, options, controls, describer: Describer::new(), identical: 0, notes: Vec::new() }
    }

    /// Compares the commands and answers of a process.
    pub(crate) fn check_partition(
        &mut self,
        process: i32,
        cut: &ControlCut,
    ) -> Result<Option<OutputDivergence>, ReplayError> {
        let nothing = JournalControls::default();
        let journal = self.controls.journals.get(&process).unwrap_or(&nothing);
        let commands = match self.check_commands(process, cut, journal)? {
            Ok(commands) => commands,
            Err(divergence) => return Ok(Some(*divergence)),
        };
        self.check_results(process, cut, journal, &commands)
    }

    /// Compares the commands that were answered with those that the scheduler got.
    fn check_commands(
        &self,
        process: i32,
        cut: &ControlCut,
        journal: &JournalControls,
    ) -> Result<Result<Commands, Box<OutputDivergence>>, ReplayError> {
        let OffsetRange { first, next } = cut.commands;
        let range = OffsetRange { first, next: next.min(answered(cut, journal)) };
        let source = self.commands_of(process);
        let mut reader = PartitionReader::open(self.log, source.clone(), range)?;
        // Commands after the committed offset have not been executed yet.
        let mut given: BTreeMap<i64, &journal::Control> = journal
            .obeyed
            .iter()
            .map(|obeyed| (obeyed.control.offset, &obeyed.control))
            .filter(|(offset, _)| *offset >= first)
            .collect();
        let mut commands = Commands::default();
        while let Some(record) = reader.next()? {
            let missing = given.first_key_value().filter(|(offset, _)| **offset < record.offset);
            if let Some((offset, control)) = missing {
                return Ok(Err(lacking(&source, *offset, control)));
            }
            let command = payload_of(&record).and_then(decode_control);
            match given.remove(&record.offset) {
                Some(control) => {
                    if let Some(problem) = other_command(control, &command) {
                        return Ok(Err(Box::new(divergence(&source, record.offset, problem))));
                    }
                    commands.obeyed.insert(record.offset);
                }
                None => match (ControlRefusal::of(&command), command) {
                    (None, Ok(command)) => drop(commands.unknown.insert(record.offset, command)),
                    (refusal, _) => commands.refused.extend(refusal.map(|refusal| (record.offset, refusal))),
                },
            }
        }
        Ok(match given.first_key_value() {
            Some((offset, control)) => Err(lacking(&source, *offset, control)),
            None => Ok(commands),
        })
    }

    /// Compares the answers with the expected ones.
    fn check_results(
        &mut self,
        process: i32,
        cut: &ControlCut,
        journal: &JournalControls,
        commands: &Commands,
    ) -> Result<Option<OutputDivergence>, ReplayError> {
        let source = TopicPartition { topic: self.options.control_results.clone(), partition: process };
        let mut results = Vec::new();
        let mut reader = PartitionReader::open(self.log, source.clone(), cut.results)?;
        let mut passed = 0_u64;
        while let Some(record) = reader.next()? {
            match decode_control_result(&record.value) {
                Ok(result) if is_gone(&result, cut, journal) => passed += 1,
                Ok(result) => results.push((record, result)),
                Err(error) => {
                    let (error, expected) = (error.to_string(), "an answer to a command".into());
                    let problem = OutputProblem::Unreadable { error, expected };
                    return Ok(Some(divergence(&source, record.offset, problem)));
                }
            }
        }
        if passed > 0 {
            self.notes.push(format!(
                "{}/{process}: {passed} answers were not compared, because their commands or the decisions on them were removed",
                source.topic
            ));
        }
        let mut answers = answers(journal, commands);
        if cut.results.first > 0 {
            // The answers to earlier commands were removed.
            let first = results.first().map(|(_, result)| result.offset);
            let is_left = |answer: &Answer<'_>| first == Some(answer.offset());
            answers.drain(..answers.iter().position(is_left).unwrap_or(answers.len()));
        }
        let is = |answer: &Answer<'_>, (record, result): &(Record, ControlResult)| {
            answer.is(process, (record, result), journal)
        };
        let mut next = 0;
        for (index, found) in results.iter().enumerate() {
            let (record, result) = found;
            let answer = answers.get(next);
            if answer.is_some_and(|answer| is(answer, found)) {
                next += 1;
                self.identical += 1;
                continue;
            }
            // More answers are left than commands: this one may have lost its command.
            let is_surplus = results.len() - index > answers.len() - next;
            if let Some(of_command) =
                self.unfit_command(process, cut, (journal, commands), result).filter(|_| is_surplus)
            {
                if journal.has_other_software() {
                    // Other software may know fewer commands.
                    self.identical += 1;
                    continue;
                }
                return Ok(Some(of_command));
            }
            let problem = match answer {
                None => surplus(result),
                Some(answer) => {
                    let later = answers[next..].iter().position(|answer| is(answer, found));
                    let is_next = results.get(index + 1).is_some_and(|next| is(answer, next));
                    match later {
                        Some(count) => OutputProblem::Missing { count: count as u64, first: answer.shown() },
                        None if is_next => surplus(result),
                        None => {
                            let expected = answer.expected(process, (record, result), journal);
                            changed(&self.describer, &expected, record)
                        }
                    }
                }
            };
            return Ok(Some(divergence(&source, record.offset, problem)));
        }
        Ok(answers.get(next).map(|answer| {
            let count = (answers.len() - next) as u64;
            let problem = OutputProblem::Missing { count, first: answer.shown() };
            divergence(&source, cut.results.next, problem)
        }))
    }

    /// Returns the divergence of an answer without a decision: the command would have been executed, or is missing.
    fn unfit_command(
        &self,
        process: i32,
        cut: &ControlCut,
        (journal, commands): (&JournalControls, &Commands),
        result: &ControlResult,
    ) -> Option<OutputDivergence> {
        let offset = result.offset;
        if result.sequence.is_some() || result.outcome != ControlOutcome::Refused {
            return None;
        }
        let problem = if let Some(command) = commands.unknown.get(&offset) {
            let expected = format!("one that is refused: {}", result.detail);
            let differences = vec![Difference::new("command", expected, to_value(command))];
            OutputProblem::Changed { differences }
        } else if (cut.commands.first..answered(cut, journal)).contains(&offset)
            && !commands.refused.contains_key(&offset)
            && !commands.obeyed.contains(&offset)
        {
            OutputProblem::Missing { count: 1, first: json!({"offset": offset, "id": result.id}) }
        } else {
            return None;
        };
        Some(divergence(&self.commands_of(process), offset, problem))
    }

    /// Checks that the ticks contain every event time that operators set according to a journal.
    pub(crate) fn check_event_times(&self) -> Result<Option<OutputDivergence>, ReplayError> {
        let obeyed = self.controls.journals.values().flat_map(|journal| &journal.obeyed);
        let mut told = BTreeMap::<i32, BTreeMap<&str, &Obeyed>>::new();
        for obeyed in obeyed.filter(|obeyed| obeyed.controlled.outcome == ControlOutcome::Done) {
            if let ControlCommand::SetWatermark(set) = &obeyed.control.command {
                told.entry(set.partition).or_default().insert(&obeyed.control.id, obeyed);
            }
        }
        for (partition, mut missing) in told {
            let source = TopicPartition { topic: self.options.ticks.clone(), partition };
            let topics = self.log.topics()?;
            let ticks = topics.iter().find(|topic| topic.spec.name == source.topic);
            let range = ticks.and_then(|ticks| ticks.offsets.get(usize::try_from(partition).ok()?));
            // If a partition has lost its beginning, the record may be gone.
            let Some(&range) = range.filter(|range| range.first == 0) else { continue };
            let mut reader = PartitionReader::open(self.log, source.clone(), range)?;
            while let Some(record) = reader.next()? {
                let Some(Ok(set)) = SetEventTime::of(&record.value) else { continue };
                let given = missing.remove(&*set.id).map(|obeyed| &obeyed.control);
                let Some(given) = given else { continue };
                let is_given = matches!(&given.command, ControlCommand::SetWatermark(command)
                    if command.event_time_max_ns == set.event_time_max_ns && given.by == set.by);
                if !is_given {
                    let found = json!({"by": set.by, "event_time_max_ns": set.event_time_max_ns});
                    let differences = vec![Difference::new("command", to_value(given), found)];
                    let problem = OutputProblem::Changed { differences };
                    return Ok(Some(divergence(&source, record.offset, problem)));
                }
            }
            if let Some(first) = missing.values().min_by_key(|obeyed| obeyed.sequence) {
                let problem =
                    OutputProblem::Missing { count: missing.len() as u64, first: to_value(&first.control) };
                return Ok(Some(divergence(&source, range.next, problem)));
            }
        }
        Ok(None)
    }

    fn commands_of(&self, process: i32) -> TopicPartition {
        TopicPartition { topic: self.options.control.clone(), partition: process }
    }
}

impl Answer<'_> {
    /// Returns the offset of the command.
    fn offset(&self) -> i64 {
        match self {
            Self::Obeyed(obeyed) => obeyed.control.offset,
            Self::Refused(offset, _) => *offset,
        }
    }

    /// Returns the record that is expected in place of `found`, which was decoded from `record`.
    fn expected(
        &self,
        process: i32,
        (record, found): (&Record, &ControlResult),
        journal: &JournalControls,
    ) -> Expected {
        let result = match self {
            Self::Obeyed(Obeyed { sequence, at_ns, node, control, controlled }) => ControlResult {
                id: controlled.id.clone(),
                ordinal: process,
                node: node.to_string(),
                offset: control.offset,
                at_ns: *at_ns,
                outcome: controlled.outcome,
                detail: controlled.detail.clone(),
                sequence: Some(*sequence),
            },
            Self::Refused(offset, refusal) => {
                // Other versions describe unreadable commands differently.
                let other = (journal.has_other_software() && found.offset == *offset)
                    .then(|| ControlRefusal { id: found.id.clone(), detail: found.detail.clone() });
                let ControlRefusal { id, detail } = other.unwrap_or_else(|| (*refusal).clone());
                let known = journal.lives.last().map(|life| life.node.to_string()).unwrap_or_default();
                let node = if journal.has_node(&found.node) { found.node.clone() } else { known };
                let (ordinal, offset, at_ns) = (process, *offset, found.at_ns);
                let (outcome, sequence) = (ControlOutcome::Refused, None);
                ControlResult { id, ordinal, node, offset, at_ns, outcome, detail, sequence }
            }
        };
        let mut value = Vec::new();
        encode_control_result(&result, &mut value);
        // Some logs do not distinguish a missing key from an empty one.
        let key = Some(result.id.into_bytes()).filter(|key| !key.is_empty() || record.key.is_some());
        Expected { key, value }
    }

    fn is(&self, process: i32, found: (&Record, &ControlResult), journal: &JournalControls) -> bool {
        self.offset() == found.1.offset && self.expected(process, found, journal).is(found.0)
    }

    /// Returns the answer as JSON, for messages.
    fn shown(&self) -> Value {
        match self {
            Self::Obeyed(Obeyed { sequence, control, controlled, .. }) => json!({
                "offset": control.offset, "id": controlled.id, "outcome": controlled.outcome,
                "detail": controlled.detail, "sequence": sequence,
            }),
            Self::Refused(offset, ControlRefusal { id, detail }) => {
                json!({"offset": offset, "id": id, "outcome": ControlOutcome::Refused, "detail": detail})
            }
        }
    }
}

/// Returns the expected answers, in order.
fn answers<'a>(journal: &'a JournalControls, commands: &'a Commands) -> Vec<Answer<'a>> {
    let refused = |(offset, refusal): (&i64, &'a ControlRefusal)| Answer::Refused(*offset, refusal);
    let mut refusals = commands.refused.iter().map(refused).peekable();
    let mut answers = Vec::new();
    for obeyed in &journal.obeyed {
        while let Some(refused) = refusals.next_if(|refused| refused.offset() < obeyed.control.offset) {
            answers.push(refused);
        }
        answers.push(Answer::Obeyed(obeyed));
    }
    answers.extend(refusals);
    answers
}

/// Returns the offset before which every command has its answer. Without a committed offset of the group, it is the
/// offset after the last executed command in the journal.
fn answered(cut: &ControlCut, journal: &JournalControls) -> i64 {
    let of_journal = journal.obeyed.iter().map(|obeyed| obeyed.control.offset.saturating_add(1)).max();
    cut.answered.or(of_journal).unwrap_or(0)
}

/// True if the source of an answer was removed: the journal's entry, or the command if it led to no decision.
fn is_gone(result: &ControlResult, cut: &ControlCut, journal: &JournalControls) -> bool {
    match (result.sequence, journal.first_sequence) {
        (None, _) => {
            let is_known = cut.answered.is_some() || result.offset < answered(cut, journal);
            result.offset < cut.commands.first || !is_known
        }
        (Some(sequence), Some(first)) => journal.is_headless && sequence < first,
        (Some(_), None) => journal.is_headless,
    }
}

/// Returns the difference between a command and the one that the scheduler got; `None` if they are equal.
fn other_command(given: &journal::Control, found: &Result<Control, DecodeError>) -> Option<OutputProblem> {
    let expected = to_value(given);
    let found = match found {
        Err(error) => return Some(OutputProblem::Unreadable { error: error.to_string(), expected }),
        Ok(found) => found.clone(),
    };
    let Control { id, by, deadline_ns, command, .. } = found;
    let found = journal::Control { offset: given.offset, id, by, deadline_ns, command };
    (found != *given).then(|| {
        let differences = differences("", &expected, &to_value(&found));
        OutputProblem::Changed { differences }
    })
}

/// Returns the divergence of a command that the scheduler got but that is missing.
fn lacking(source: &TopicPartition, offset: i64, given: &journal::Control) -> Box<OutputDivergence> {
    let problem = OutputProblem::Missing { count: 1, first: to_value(given) };
    Box::new(divergence(source, offset, problem))
}

fn surplus(result: &ControlResult) -> OutputProblem {
    OutputProblem::Surplus { count: 1, first: to_value(result) }
}

fn divergence(source: &TopicPartition, offset: i64, problem: OutputProblem) -> OutputDivergence {
    let TopicPartition { topic, partition } = source.clone();
    OutputDivergence { topic, partition, offset, symbol: None, request_id: None, problem }
}

fn to_value(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("records of commands are structs of numbers and texts")
}
