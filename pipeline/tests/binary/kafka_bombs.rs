//! Foreign batches of records that are small on the wire but huge when unpacked. They are in every topic that a
//! pipeline reads from other programs.

use std::process::Command;

use warptape_eventlog::{EventLog, KafkaLog, NewRecord, Record};
use warptape_schemas::risk::RiskOutcome;
use warptape_schemas::{
    DeadLetter, DeadLetterReason, decode_control_result, decode_dead_letter, decode_risk_result,
};

use super::broker::shared;
use super::kafka_clients::given;
use super::kafka_market::Market;
use super::kafka_poison::tick;
use super::outputs::records;
use super::processes::{texts, warptape};

const UNPACKED_BYTES_MAX: usize = 16 << 20;
/// Greatest allowed memory of a process, in bytes. The first bomb alone would exceed it if it were unpacked.
const MEMORY_BYTES_MAX: usize = 320 << 20;
/// Codec of each bomb, and its number of records with 5 MB of zeros each.
const BOMBS: [(&str, usize); 5] = [("zstd", 90), ("gzip", 90), ("lz4", 40), ("snappy", 3), ("snappy", 4)];

/// Publishes one batch of records with 5 MB of zeros each.
pub fn publish_bomb(brokers: &str, topic: &str, partition: i32, codec: &str, count: usize) {
    let script = "import sys, confluent_kafka as kafka\n\
                  brokers, topic, partition, codec, count = sys.argv[1:]\n\
                  producer = kafka.Producer({'bootstrap.servers': brokers, 'compression.type': codec, 'linger.ms': 60000,\n\
                  \x20   'message.max.bytes': 1000000000, 'batch.size': 1000000000, 'queue.buffering.max.kbytes': 2000000})\n\
                  zeros = bytes(5000000)\n\
                  for _ in range(int(count)):\n\
                  \x20   producer.produce(topic, zeros, partition=int(partition))\n\
                  sys.exit(producer.flush(120))";
    let [partition, count] = [partition as usize, count].map(|number| number.to_string());
    let arguments = ["-c", script, brokers, topic, &partition, codec, &count];
    let status = Command::new(given("WARPTAPE_TEST_PYTHON")).args(arguments).status();
    assert!(status.expect("Python starts").success(), "the batch is not published");
}

fn publish_tick(log: &KafkaLog, topic: &str, number: i64) {
    let mut producer = log.producer(topic).expect("a producer");
    producer.begin().expect("a transaction");
    let value = tick(number).into();
    producer.send(NewRecord { topic: topic.into(), value, ..NewRecord::default() }).expect("a record");
    producer.commit().expect("a commit");
}

/// Returns the peak memory of a process, in bytes.
fn memory_peak(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process that runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells");
    peak.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

fn letters(market: &Market) -> Vec<DeadLetter> {
    let letters = records(&market.log, &market.topic("dead-letter"), 0);
    letters.iter().map(|record| decode_dead_letter(&record.value).expect("a dead letter")).collect()
}

#[test]
fn a_batch_that_unpacks_without_bound_is_one_dead_letter_and_reading_goes_on() {
    let options = shared();
    let (brokers, url) = (options.brokers.clone(), format!("kafka:{}", options.brokers));
    let settings =
        format!("kafka.session_timeout_ms = 6000\nkafka.unpacked_bytes_max = {UNPACKED_BYTES_MAX}");
    let market = Market::reached_by("bombs", options, url, &settings);
    let ticks = market.topic("ticks");
    publish_tick(&market.log, &ticks, 1);
    for (number, (codec, count)) in (2..).zip(BOMBS) {
        publish_bomb(&brokers, &ticks, 0, codec, count);
        publish_tick(&market.log, &ticks, number);
    }
    for topic in ["risk.requests", "control"] {
        publish_bomb(&brokers, &market.topic(topic), 0, "zstd", 60);
    }

    let mut run = market.start_run();
    let (letter_count, results, answers) =
        (BOMBS.len() - 1 + 3, market.topic("risk.results"), market.topic("control.results"));
    let one = |topic: &str| records(&market.log, topic, 0).pop();
    let result: Record = run.run_until("the batch of requests has one answer", || one(&results));
    let answer: Record = run.run_until("the batch of commands has one answer", || one(&answers));
    run.run_until("all is read", || (letters(&market).len() == letter_count).then_some(()));
    let peak = memory_peak(run.id());
    println!("{} MiB at most", peak >> 20);
    assert!(peak < MEMORY_BYTES_MAX, "{peak} bytes");
    market.drain(run);
    // A second process life finds nothing more to do.
    market.drain(market.start_idle_run(&[]));

    let (batches, others): (Vec<_>, Vec<_>) =
        letters(&market).into_iter().partition(|letter| letter.reason == DeadLetterReason::UnreadableBatch);
    assert_eq!(others.len(), 3, "three records of zeros fit, and are no ticks");
    let too_large = BOMBS.iter().filter(|(codec, count)| (*codec, *count) != ("snappy", 3));
    for (letter, (codec, count)) in batches.iter().zip(too_large) {
        let last_offset = letter.last_offset.expect("the end of the batch");
        assert_eq!(last_offset - letter.offset + 1, *count as i64, "{letter:?}");
        let named = [*codec, &count.to_string(), &UNPACKED_BYTES_MAX.to_string()];
        assert!(named.iter().all(|word| letter.detail.contains(word)), "{}", letter.detail);
        assert!(letter.key.is_none() && letter.value.is_empty() && letter.cut.is_none(), "{letter:?}");
    }
    let RiskOutcome::Error(error) = decode_risk_result(&result.value).expect("a result").outcome else {
        panic!("an error");
    };
    assert!(error.message.contains("a batch of 60 records"), "{error:?}");
    let answer = decode_control_result(&answer.value).expect("an answer");
    assert!(answer.detail.contains("a batch of 60 records"), "{answer:?}");

    let last = batches.last().expect("a batch");
    let shown = format!("{ticks}:0:{}-{}", last.offset, last.last_offset.expect("an end"));
    let (list, _) = texts(&warptape(market.path(), &market.arguments(&["dlq", "list"], &market.url)), 0);
    assert!(list.contains(&shown), "{shown} is missing: {list}");

    // A rerun makes the same letters, from this log and from its export.
    let verify = ["replay", "verify", "--outputs"];
    let (said, _) = texts(&warptape(market.path(), &market.arguments(&verify, &market.url)), 0);
    assert!(said.ends_with("identical\n"), "{said}");
    let export = ["replay", "export", "--with-ticks", "--to", "bombs.db"];
    texts(&warptape(market.path(), &market.arguments(&export, &market.url)), 0);
    let (said, _) = texts(&warptape(market.path(), &market.arguments(&verify, "sqlite:bombs.db")), 0);
    assert!(said.ends_with("identical\n"), "{said}");

    // A batch cannot be sent again, nor can a record of 5 MB if the topic refuses its unpacked size.
    let (out, error) = texts(&warptape(market.path(), &market.arguments(&["dlq", "replay"], &market.url)), 0);
    assert!(out.contains(&format!("kept back  {letter_count:>8}")), "{out}");
    assert!(error.contains("Have the producer send them again, in smaller batches"), "{error}");
}
