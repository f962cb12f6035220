//! Which schemas the topics hold, and under which names a registry keeps them.

use warptape_schemas::known::{self, KnownSchema};

use crate::engine::Topics;

/// A schema that is written to a topic, with its name in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The topic.
    pub topic: String,
    /// The schema.
    pub schema: KnownSchema,
    /// Name of the subject.
    pub name: String,
}

/// What is written to the topics: first ticks, then what the engine puts out, then risk requests and
/// their results, and how far sources of ticks are.
///
/// A topic's subject is `TOPIC-value`, as Confluent's TopicNameStrategy has it. The topic of ticks holds other records,
/// which no rule of compatibility would let into the same subject: `TOPIC-warptape.TickBatch` and
/// `TOPIC-warptape.ScaledTickBatch`, by the TopicRecordNameStrategy. Of signals three versions are written, of late ticks two.
pub fn subjects(topics: &Topics) -> Vec<Subject> {
    let value = |topic: &str, schema: KnownSchema| Subject {
        topic: topic.to_owned(),
        schema,
        name: format!("{topic}-value"),
    };
    let of_ticks = |schema: KnownSchema| Subject {
        name: format!("{}-warptape.{}", topics.ticks, schema.name),
        ..value(&topics.ticks, schema)
    };
    vec![
        value(&topics.ticks, known::TICK),
        of_ticks(known::TICK_BATCH),
        of_ticks(known::SCALED_TICK_BATCH),
        value(&topics.signals, known::SIGNAL_1),
        value(&topics.signals, known::SIGNAL_2),
        value(&topics.signals, known::SIGNAL),
        value(&topics.journal, known::JOURNAL_ENTRY),
        value(&topics.snapshots, known::SNAPSHOT),
        value(&topics.late, known::LATE_TICK_1),
        value(&topics.late, known::LATE_TICK),
        value(&topics.dead_letter, known::DEAD_LETTER),
        value(&topics.lifecycle, known::LIFECYCLE),
        value(&topics.risk_requests, known::RISK_REQUEST),
        value(&topics.risk_results, known::RISK_RESULT),
        value(&topics.feeds, known::FEED),
    ]
}
