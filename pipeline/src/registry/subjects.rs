//! Schemas of the topics, and their subjects in a registry.

use warptape_schemas::known::{self, KnownSchema};

use crate::runtime::Topics;

/// A schema for the records of a topic, with its subject in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The topic.
    pub topic: String,
    /// The schema.
    pub schema: KnownSchema,
    /// Name of the subject.
    pub name: String,
    /// Rule by which the registry accepts further versions.
    pub compatibility: &'static str,
}

/// Compatibility: every version reads, and is read by, every other.
const FULL: &str = "FULL_TRANSITIVE";
/// Compatibility under which every version can read all earlier ones. Some records allow no more than this. New kinds
/// of problems, answers, inputs and decisions are branches of unions, and new kinds of signals are symbols of an enum.
/// Earlier readers lack them.
const BACKWARD: &str = "BACKWARD_TRANSITIVE";
/// Schemas whose unions get new branches, or whose enums get new symbols.
const BACKWARD_ONLY: [KnownSchema; 5] =
    [known::RISK_REQUEST, known::RISK_RESULT, known::JOURNAL_ENTRY, known::CONTROL, known::SIGNAL];

/// Returns the schemas of the topics: ticks, the engine's outputs, risk requests and results, progress of feeds,
/// operators' commands and their answers.
///
/// A topic's subject is `TOPIC-value`, by Confluent's TopicNameStrategy. The topic of ticks also has records that no
/// compatibility rule allows in the same subject. These use `TOPIC-warptape.TickBatch`,
/// `TOPIC-warptape.ScaledTickBatch` and `TOPIC-warptape.PackedTickBatch`, by the TopicRecordNameStrategy. Some records
/// are written in several versions.
pub fn subjects(topics: &Topics) -> Vec<Subject> {
    let value = |topic: &str, schema: KnownSchema| Subject {
        topic: topic.to_owned(),
        schema,
        name: format!("{topic}-value"),
        compatibility: match schema.name {
            name if BACKWARD_ONLY.map(|schema| schema.name).contains(&name) => BACKWARD,
            _ => FULL,
        },
    };
    let of_ticks = |schema: KnownSchema| Subject {
        name: format!("{}-warptape.{}", topics.ticks, schema.name),
        ..value(&topics.ticks, schema)
    };
    let of_ticks = [
        value(&topics.ticks, known::TICK),
        of_ticks(known::TICK_BATCH),
        of_ticks(known::SCALED_TICK_BATCH),
        of_ticks(known::PACKED_TICK_BATCH),
    ];
    let others = [
        (&topics.signals, known::SIGNAL),
        (&topics.journal, known::JOURNAL_ENTRY),
        (&topics.snapshots, known::SNAPSHOT),
        (&topics.late, known::LATE_TICK),
        (&topics.dead_letter, known::DEAD_LETTER),
        (&topics.lifecycle, known::LIFECYCLE),
        (&topics.risk_requests, known::RISK_REQUEST),
        (&topics.risk_results, known::RISK_RESULT),
        (&topics.feeds, known::FEED),
        (&topics.control, known::CONTROL),
        (&topics.control_results, known::CONTROL_RESULT),
    ];
    let of_topic = |(topic, current): (&String, KnownSchema)| -> Vec<Subject> {
        known::written(current).map(|schema| value(topic, schema)).collect()
    };
    of_ticks.into_iter().chain(others.into_iter().flat_map(of_topic)).collect()
}
