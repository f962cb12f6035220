//! Reads the whole record of a dead letter that holds only part of it, while the record's topic still keeps it.

use std::time::{Duration, Instant};

use warptape_eventlog::{EventLog, Fetched, LogError, Record, TopicPartition};
use warptape_schemas::DeadLetter;

/// Longest wait for a record that the log should have.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Length of one poll within the wait.
const POLL: Duration = Duration::from_millis(100);

/// Returns the letter with the whole record, or the reason why the record is not available.
pub fn whole(log: &dyn EventLog, letter: DeadLetter) -> Result<Result<DeadLetter, String>, LogError> {
    if let Some(last_offset) = letter.last_offset {
        let DeadLetter { topic, partition, offset, .. } = letter;
        return Ok(Err(format!(
            "the dead letter is for a whole batch, {topic} partition {partition} offsets {offset} to \
             {last_offset}, and holds none of its records. Have the producer send them again, in smaller \
             batches"
        )));
    }
    if letter.cut.is_none() {
        return Ok(Ok(letter));
    }
    let source = TopicPartition { topic: letter.topic.clone(), partition: letter.partition };
    let place = format!("{} partition {} offset {}", letter.topic, letter.partition, letter.offset);
    Ok(match record_at(log, &source, letter.offset)? {
        None => Err(format!(
            "the dead letter holds only part of the record, and the original, {place}, was \
                             removed: it cannot be sent"
        )),
        Some(record) if !letter.is_of(record.key.as_deref(), &record.value) => {
            let found = record.value.len();
            Err(format!(
                "the dead letter holds only part of a record of {} bytes, and {place} now holds another \
                 record, of {found} bytes: it cannot be sent",
                letter.value_bytes()
            ))
        }
        Some(Record { key, value, .. }) => Ok(DeadLetter { key, value, cut: None, ..letter }),
    })
}

/// Returns the reason why a log would refuse the record as too large; `None` if it would take it.
pub fn too_large(letter: &DeadLetter, bytes_max: usize) -> Option<String> {
    let bytes = letter.value.len() + letter.key.as_ref().map_or(0, Vec::len);
    (bytes > bytes_max).then(|| {
        format!(
            "the record has {bytes} bytes, and {} takes at most {bytes_max} from this client, so it was not \
             sent. Raise max.message.bytes of the topic, or have the producer send the record again",
            letter.topic
        )
    })
}

/// Returns the record at an offset; `None` if the log no longer has it.
fn record_at(log: &dyn EventLog, source: &TopicPartition, offset: i64) -> Result<Option<Record>, LogError> {
    let mut reader = log.reader(std::slice::from_ref(source))?;
    let range = reader.offsets(source)?;
    if !(range.first..range.next).contains(&offset) {
        return Ok(None);
    }
    reader.seek(source, offset)?;
    let deadline = Instant::now() + WAIT_MAX;
    // If compaction has removed the record, the reader gets the next record or reaches the end.
    while reader.position(source)? <= offset && Instant::now() < deadline {
        if let Fetched::Records { records, .. } = reader.poll(POLL, 1, 1)? {
            return Ok(records.into_iter().find(|record| record.offset == offset));
        }
    }
    Ok(None)
}
