//! The topics as an AsyncAPI document: their configured names, the schemas of their records, and their senders and
//! receivers.

use serde_json::{Map, Value, json};
use warptape_schemas::known::{self, KnownSchema};

use super::subjects::subjects;
use crate::runtime::Topics;

/// Media type of Avro schemas, by AsyncAPI's table of schema formats.
const SCHEMA_FORMAT: &str = "application/vnd.apache.avro+json;version=1.9.0";

/// A topic as clients see it.
struct Channel<'a> {
    /// Name in the document.
    name: &'static str,
    /// The topic.
    topic: &'a str,
    /// Description of the contents.
    about: &'static str,
    /// Action of a running pipeline on the topic; `None` if only other commands use the topic.
    action: Option<&'static str>,
}

/// Returns the topics of a pipeline.
fn channels(topics: &Topics) -> [Channel<'_>; 12] {
    let channel = |name, topic, action, about| Channel { name, topic, about, action };
    let (sends, receives) = (Some("send"), Some("receive"));
    [
        channel("ticks", &topics.ticks, receives, "Trades and quotes, one in a record or many in columns."),
        channel("signals", &topics.signals, sends, "Closed bars with their indicators, and alerts."),
        channel(
            "journal",
            &topics.journal,
            sends,
            "Inputs and decisions of the scheduler, chained by hashes.",
        ),
        channel("snapshots", &topics.snapshots, sends, "State of a partition at an offset."),
        channel("late", &topics.late, sends, "Ticks older than the allowed lateness."),
        channel(
            "deadLetter",
            &topics.dead_letter,
            sends,
            "Records and rows that cannot be processed, with the reason.",
        ),
        channel(
            "lifecycle",
            &topics.lifecycle,
            sends,
            "Starts, stops, aborts and lost lanes of processes; not transactional.",
        ),
        channel(
            "riskRequests",
            &topics.risk_requests,
            receives,
            "Pricing and portfolio requests, keyed by symbol.",
        ),
        channel("riskResults", &topics.risk_results, sends, "One answer or error per risk request."),
        channel(
            "feeds",
            &topics.feeds,
            None,
            "Progress of each source of ticks; written by `warptape feed`.",
        ),
        channel("control", &topics.control, receives, "Commands of operators; partition N is for process N."),
        channel("controlResults", &topics.control_results, sends, "One answer per command."),
    ]
}

/// Returns the AsyncAPI document of these topics.
pub fn asyncapi(topics: &Topics) -> Value {
    let subjects = subjects(topics);
    let (mut of_channels, mut operations) = (Map::new(), Map::new());
    for Channel { name, topic, about, action } in channels(topics) {
        let of_topic = subjects.iter().filter(|subject| subject.topic == topic).map(|subject| subject.schema);
        // `SetEventTime` records among the ticks have no subject in a registry.
        let among_ticks = (name == "ticks").then(|| known::written(known::SET_EVENT_TIME));
        let messages: Map<_, _> = of_topic.chain(among_ticks.into_iter().flatten()).map(message).collect();
        of_channels
            .insert(name.to_owned(), json!({"address": topic, "description": about, "messages": messages}));
        let reference = json!({"$ref": format!("#/channels/{name}")});
        let mut operation = |action: &str, about: &str| {
            let of = json!({"action": action, "channel": reference.clone(), "summary": about});
            operations.insert(format!("{action}.{name}"), of);
        };
        if let Some(action) = action {
            operation(action, about);
        }
        if name == "ticks" {
            operation("send", "Event time of a quiet or corrected market: SetEventTime alone.");
        }
    }
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Warptape",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Topics of a Warptape pipeline. Operations are those of `warptape run`. Records are in Avro's single-object encoding, \
                            or in the frame of a schema registry where one is configured.",
        },
        "defaultContentType": "application/avro",
        "channels": of_channels,
        "operations": operations,
    })
}

/// Returns a message of a topic, with its name in the document.
fn message(schema: KnownSchema) -> (String, Value) {
    let KnownSchema { name, version, text, .. } = schema;
    let parsed: Value = serde_json::from_str(text).expect("schemas are JSON");
    let message = json!({
        "name": format!("warptape.{name}"),
        "title": format!("{name} version {version}"),
        "contentType": "application/avro",
        "payload": {"schemaFormat": SCHEMA_FORMAT, "schema": parsed},
    });
    (format!("{name}{version}"), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_that_is_written_is_in_the_document_of_its_topic() {
        let topics = Topics::new("desk.");
        let document = asyncapi(&topics);
        let of_channels = document["channels"].as_object().expect("channels");
        assert_eq!(of_channels.len(), 12);
        for subject in subjects(&topics) {
            let channel = of_channels.values().find(|channel| channel["address"] == *subject.topic);
            let messages =
                channel.expect("a channel of the topic")["messages"].as_object().expect("messages");
            let schema: Value = serde_json::from_str(subject.schema.text).expect("JSON");
            assert!(messages.values().any(|message| message["payload"]["schema"] == schema), "{subject:?}");
        }
        for operation in document["operations"].as_object().expect("operations").values() {
            let reference = operation["channel"]["$ref"].as_str().expect("a reference");
            assert!(of_channels.contains_key(reference.trim_start_matches("#/channels/")), "{reference}");
        }
    }

    /// `WARPTAPE_UPDATE_DOCS=1 cargo test -p warptape-pipeline --lib document_in_docs` rewrites the file.
    #[test]
    fn the_document_in_docs_is_that_of_the_default_topics() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/asyncapi.json");
        let text = format!("{:#}\n", asyncapi(&Topics::new("")));
        if std::env::var_os("WARPTAPE_UPDATE_DOCS").is_some() {
            std::fs::write(path, &text).expect("the document");
        }
        let found = std::fs::read_to_string(path).expect("the document");
        assert!(found == text, "run with WARPTAPE_UPDATE_DOCS=1 to write it anew");
    }
}
