//! A broker that sets record times itself (`message.timestamp.type=LogAppendTime`). The waits that `replay why` shows
//! for an answer still add up, and it names the clock of each time.

use serde_json::Value;
use warptape_eventlog::KafkaOptions;
use warptape_schemas::journal::Input;
use warptape_schemas::{decode_journal_entry, decode_risk_result};

use super::broker::Broker;
use super::kafka_market::Market;
use super::outputs::records;
use super::processes::{texts, warptape};

const REQUEST: [&str; 16] = [
    "risk",
    "price",
    "--kind",
    "call",
    "--strike",
    "100",
    "--expiry-days",
    "30",
    "--spot",
    "100",
    "--volatility",
    "0.2",
    "--request-id",
    "mine",
    "--timeout-s",
    "120",
];

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn an_answer_is_explained_where_the_broker_gives_records_their_times() {
    let broker = Broker::start("clocks");
    let market = Market::new("clocks", KafkaOptions::new(&broker.address));
    for topic in ["risk.requests", "risk.results"] {
        broker.alter(&market.topic(topic), "message.timestamp.type=LogAppendTime");
    }
    let run = market.start_run();
    let command =
        |command: &[&str]| texts(&warptape(market.path(), &market.arguments(command, &market.url)), 0).0;
    command(&REQUEST);
    // The journal records the outcome of a transaction together with the next one.
    command(&REQUEST.map(|word| if word == "mine" { "other" } else { word }));
    run.stop("TERM");

    let chain: Value =
        serde_json::from_str(&command(&["replay", "why", "request:mine", "-o", "json"])).expect("JSON");
    assert_eq!(chain["created_clock"], "log", "{chain}");
    let (partition, offset) = (number(&chain["partition"]) as i32, number(&chain["offset"]));
    let requests = records(&market.log, &market.topic("risk.requests"), partition);
    let request = requests.iter().find(|record| record.offset == offset).expect("the request");
    assert_eq!(number(&chain["created_ns"]), request.timestamp_ns);
    let waits = chain["waits"].as_array().expect("waits");
    assert!(waits.iter().all(|wait| number(&wait["ns"]) > 0), "{chain}");
    let sum: i64 = waits.iter().map(|wait| number(&wait["ns"])).sum();
    let journal = records(&market.log, &market.topic("journal"), 0);
    let entries: Vec<_> =
        journal.iter().map(|record| decode_journal_entry(&record.value).expect("an entry")).collect();
    // The expected transaction is the first one with results that was sealed after the answer was known.
    let results =
        records(&market.log, &market.topic("risk.results"), number(&chain["result_partition"]) as i32);
    let result = results.iter().find(|record| record.offset == number(&chain["result_offset"]));
    let result = decode_risk_result(&result.expect("the result").value).expect("a result");
    let has_results = |input: &Input| match input {
        Input::Sealed(sealed) => sealed.partitions.iter().any(|part| part.risk_results > 0),
        _ => false,
    };
    let sealed = entries.iter().find(|entry| entry.at_ns >= result.finished_ns && has_results(&entry.input));
    let sealed = sealed.expect("its transaction");
    assert_eq!(number(&chain["transaction"]["sealed_sequence"]), sealed.sequence, "{chain}");
    let ended_ns = entries.iter().find_map(|entry| match &entry.input {
        Input::CommitEnded(ended) if ended.sealed == sealed.sequence => Some(ended.ended_ns),
        _ => None,
    });
    let from_ns = request.timestamp_ns.min(result.received_ns);
    let expected_ns = ended_ns.expect("its commit") - from_ns;
    assert_eq!(
        (sum, number(&chain["total_ns"]), number(&chain["from_ns"])),
        (expected_ns, expected_ns, from_ns)
    );

    let words = command(&["replay", "why", "request:mine"]);
    assert!(words.contains(" by the log's clock, which stamps the records of this topic; "), "{words}");

    // Markers of transactions follow the last entry, but are not records.
    let last = entries.last().expect("an entry").sequence.to_string();
    command(&["replay", "why-not", "cpu:0", "--at", &last]);
    for behind in ["2100-01-01T00:00:00Z", "1000000000"] {
        let asked = market.arguments(&["replay", "why-not", "0", "--at", behind], &market.url);
        let (_, error) = texts(&warptape(market.path(), &asked), 2);
        assert!(error.contains(&format!(" to {last}, ")), "{error}");
    }

    // An exported file gives the same answer.
    command(&["replay", "export", "--to", "copy.db"]);
    let copied = market.arguments(&["replay", "why", "request:mine"], "sqlite:copy.db");
    assert_eq!(texts(&warptape(market.path(), &copied), 0).0, words);
}
