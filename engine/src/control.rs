//! Operators' commands: answers that are not committed yet.
//!
//! Each process reads only one partition of the topic: the one with the number of its ordinal. The answer to a record
//! is in the same transaction as the journal entry with the effects and the offset after the record. So each command is
//! executed once, and the next life reads an uncommitted one again.

use warptape_events::control::{
    Control, ControlCommand, ControlOutcome, ControlResult, SetWatermark, TEXT_BYTES_MAX,
};
use warptape_events::{DecodeError, SetEventTime, encode_control_result, encode_set_event_time, journal};
use warptape_record::TopicPartition;

use crate::text::cut;

/// Bytes of uncommitted answers from which the engine reads no further commands.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Longest text of an answer to a command that caused no decision, in bytes.
const DETAIL_BYTES_MAX: usize = 4 << 10;

/// A command as it was read.
#[derive(Debug)]
pub struct ReadControl {
    /// Its offset.
    pub offset: i64,
    /// The command, or the reason why it cannot be read.
    pub control: Result<Control, DecodeError>,
}

/// A command that is refused without asking the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlRefusal {
    /// The command's id; empty if the command cannot be read.
    pub id: String,
    /// The reason of the refusal, in words.
    pub detail: String,
}

impl ControlRefusal {
    /// Refuses a command that is unreadable or has too long a text; `None` if the scheduler has to decide about it.
    pub fn of(control: &Result<Control, DecodeError>) -> Option<Self> {
        let (id, detail) = match control {
            Err(error) => (String::new(), format!("it cannot be read: {error}")),
            Ok(control) => {
                let (what, bytes) = control.long_text()?;
                let detail = format!("{what} has {bytes} bytes; it may have up to {TEXT_BYTES_MAX}");
                (control.id.clone(), detail)
            }
        };
        Some(Self { id: cut(id, TEXT_BYTES_MAX), detail: cut(detail, DETAIL_BYTES_MAX) })
    }
}

/// Answers of a transaction.
#[derive(Clone, Debug, Default)]
pub struct ControlAnswers {
    /// Answers, each as key and encoded record.
    pub results: Vec<(String, Vec<u8>)>,
    /// Offset of the next command to read; `None` if there is no answer.
    pub next: Option<(TopicPartition, i64)>,
    /// `SetEventTime` records for the topic of ticks: the partition and the encoded record of each.
    pub event_times: Vec<(i32, Vec<u8>)>,
}

/// The command that the scheduler is deciding about.
struct Obeying {
    ordinal: i32,
    offset: i64,
    sequence: i64,
    /// The partition and the event time to write among its ticks if the command is executed; `None` for other commands.
    event_time: Option<(i32, SetEventTime)>,
}

/// Answers that wait for a commit.
#[derive(Default)]
pub(crate) struct ControlDesk {
    answers: ControlAnswers,
    bytes: usize,
    asked: Option<Obeying>,
}

impl ControlDesk {
    /// True if the engine may read more commands.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes < WAITING_BYTES_MAX
    }

    /// Bytes of the answers.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.bytes
    }

    /// True if answers wait for a commit.
    pub(crate) fn has_answers(&self) -> bool {
        self.answers.next.is_some() || !self.answers.event_times.is_empty()
    }

    /// Notes a command about to be passed to the scheduler, in the journal entry with this sequence.
    pub(crate) fn ask(&mut self, ordinal: i32, sequence: i64, command: &journal::Control) {
        let journal::Control { offset, id, by, command, .. } = command;
        let event_time = match command {
            ControlCommand::SetWatermark(SetWatermark { partition, event_time_max_ns }) => {
                let (id, by, event_time_max_ns) = (id.clone(), by.clone(), *event_time_max_ns);
                Some((
                    *partition,
                    SetEventTime { id, by, event_time_max_ns, cuts_bars: false, only_forward: false },
                ))
            }
            _ => None,
        };
        self.asked = Some(Obeying { ordinal, offset: *offset, sequence, event_time });
    }

    /// Notes the scheduler's answer to the current command.
    pub(crate) fn answer(&mut self, topic: &str, result: ControlResult) {
        let Obeying { ordinal, offset, sequence, event_time } =
            self.asked.take().expect("one command is answered at a time");
        if let Some((partition, set)) = event_time.filter(|_| result.outcome == ControlOutcome::Done) {
            self.say_event_time(partition, &set);
        }
        self.push(topic, ControlResult { ordinal, offset, sequence: Some(sequence), ..result });
    }

    /// Adds a `SetEventTime` record to the next commit, for the ticks of a partition.
    pub(crate) fn say_event_time(&mut self, partition: i32, set: &SetEventTime) {
        let mut record = Vec::new();
        encode_set_event_time(set, &mut record);
        self.bytes += record.len();
        self.answers.event_times.push((partition, record));
    }

    /// Adds the refusal of a command that caused no decision.
    pub(crate) fn refuse(&mut self, topic: &str, result: ControlResult) {
        self.push(topic, result);
    }

    fn push(&mut self, topic: &str, result: ControlResult) {
        let mut record = Vec::new();
        encode_control_result(&result, &mut record);
        self.bytes += record.len();
        let partition = TopicPartition { topic: topic.to_owned(), partition: result.ordinal };
        self.answers.next = Some((partition, result.offset + 1));
        self.answers.results.push((result.id, record));
    }

    /// Makes the next commit move the group's offset to this command, without an answer.
    pub(crate) fn move_to(&mut self, commands: TopicPartition, next: i64) {
        self.answers.next = Some((commands, next));
    }

    /// Hands the answers to a commit.
    pub(crate) fn seal(&mut self) -> ControlAnswers {
        self.bytes = 0;
        std::mem::take(&mut self.answers)
    }
}
