//! Limits of a topic's specification, common to all logs.

use crate::{LogError, TopicSpec};

/// Longest topic name, bytes (Kafka's limit).
pub const TOPIC_NAME_BYTES_MAX: usize = 249;
/// Largest number of partitions of a topic.
pub const PARTITIONS_MAX: i32 = 4096;

/// Rejects an invalid specification.
pub(crate) fn check_spec(url: &str, spec: &TopicSpec) -> Result<(), LogError> {
    let conflict = |found: &str, action: String| LogError::TopicConflict {
        url: url.to_owned(),
        topic: spec.name.clone(),
        found: found.to_owned(),
        action,
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if spec.name.is_empty()
        || spec.name.len() > TOPIC_NAME_BYTES_MAX
        || matches!(spec.name.as_str(), "." | "..")
        || !spec.name.bytes().all(allowed)
    {
        return Err(conflict(
            "its name is not allowed",
            format!("use 1 to {TOPIC_NAME_BYTES_MAX} of a-z A-Z 0-9 . _ -"),
        ));
    }
    if !(1..=PARTITIONS_MAX).contains(&spec.partitions) {
        return Err(conflict(
            &format!("{} partitions", spec.partitions),
            format!("use 1 to {PARTITIONS_MAX} partitions"),
        ));
    }
    Ok(())
}

/// Returns the error for a topic that exists with another specification; `None` if they match.
pub(crate) fn conflict_of(url: &str, found: &TopicSpec, wanted: &TopicSpec) -> Option<LogError> {
    if (found.partitions, found.compacted) == (wanted.partitions, wanted.compacted) {
        return None;
    }
    let describe = |spec: &TopicSpec| {
        format!("{} partitions{}", spec.partitions, if spec.compacted { ", compacted" } else { "" })
    };
    Some(LogError::TopicConflict {
        url: url.to_owned(),
        topic: wanted.name.clone(),
        found: format!("it exists with {}, but {} was requested", describe(found), describe(wanted)),
        action: "use the same settings as before, another topic name or another log".to_owned(),
    })
}
