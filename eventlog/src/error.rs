//! The errors of a log.

/// Every failure of an event log. Messages name the log and say what to do.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log's file is missing, not a log, truncated or corrupted.
    #[error("{url}: {found}; {action}")]
    Unreadable {
        /// The log.
        url: String,
        /// The finding.
        found: String,
        /// The remedy for the user.
        action: String,
    },
    /// The log's file cannot be opened at all.
    #[error(
        "{url}: cannot be opened ({cause}) while {doing}; check the permissions of the file, of its -wal and -shm \
         files and of their directory"
    )]
    Denied {
        /// The log.
        url: String,
        /// The operation that failed.
        doing: String,
        /// The storage's message.
        cause: String,
    },
    /// The log can be read but not written.
    #[error(
        "{url}: cannot write while {doing}: the file or its directory is read-only, or the log was opened \
         for reading. Make both writable, and open the log for writing"
    )]
    ReadOnly {
        /// The log.
        url: String,
        /// The operation that failed.
        doing: String,
    },
    /// No space is left. The transaction is rolled back and still buffered: a later commit of it may succeed.
    #[error(
        "{url}: the disk is full while {doing}; nothing of the transaction was written: free some space and \
         commit again, or abort"
    )]
    Full {
        /// The log.
        url: String,
        /// The operation that failed.
        doing: String,
    },
    /// Other writers held the log for too long. The transaction is still buffered: a later commit may succeed.
    #[error(
        "{url}: other writers kept the log locked for {waited_ms} ms (LOCK_WAIT_MAX) while {doing}; try \
         again, or find the process that keeps a transaction open"
    )]
    Busy {
        /// The log.
        url: String,
        /// The operation that failed.
        doing: String,
        /// Time waited, milliseconds.
        waited_ms: u64,
    },
    /// A limit of this process was reached: descriptors, memory or the size of files.
    #[error("{url}: {doing} failed: {cause}; raise the limit and start again")]
    Limit {
        /// The log.
        url: String,
        /// The operation that failed.
        doing: String,
        /// The system's message, with the limit.
        cause: String,
    },
    /// Any other failure of the storage below.
    #[error("{url}: {doing} failed: {cause}; check the disk and the permissions of the log's directory")]
    Storage {
        /// The log.
        url: String,
        /// The operation that failed.
        doing: String,
        /// The storage's message.
        cause: String,
    },
    /// The schema registry failed, so that records cannot be framed.
    #[error("{url}: {found}; {action}")]
    Schemas {
        /// The registry.
        url: String,
        /// The finding.
        found: String,
        /// The remedy for the user.
        action: String,
    },
    /// Another live member holds the consumer group.
    #[error(
        "{url}: consumer group {group:?} already has a live member ({holder}, lock file {lock}); stop it first, \
         or use another log"
    )]
    GroupTaken {
        /// The log.
        url: String,
        /// The consumer group.
        group: String,
        /// The process that holds it, as far as known: `process 4711`.
        holder: String,
        /// The file whose lock represents the membership.
        lock: String,
    },
    /// A newer producer with the same transactional id took over. This one refuses every further call.
    #[error(
        "{url}: producer {transactional_id:?} was fenced by a newer one with the same transactional id, and \
         its open transaction is lost. Stop this process, or give it its own transactional id"
    )]
    Fenced {
        /// The log.
        url: String,
        /// The transactional id that both use.
        transactional_id: String,
    },
    /// The log acknowledged a transaction, but no longer has its offsets.
    #[error(
        "{url}: an acknowledged transaction of producer {transactional_id:?} is not in the log. A broker was \
         killed or stood still, and left it without commit markers: find it with `kafka-transactions.sh \
         find-hanging`, and abort it with `kafka-transactions.sh abort`. The broker's log names the \
         partitions. Then start this process again"
    )]
    TransactionLost {
        /// The log.
        url: String,
        /// The transactional id of its producer.
        transactional_id: String,
    },
    /// The topic does not exist in the log.
    #[error("{url}: no topic {topic:?}; the log has {known}; create the topic first or check its name")]
    UnknownTopic {
        /// The log.
        url: String,
        /// The requested topic.
        topic: String,
        /// The topics that exist, for the message.
        known: String,
    },
    /// The partition does not exist in the topic, or this consumer does not read it.
    #[error("{url}: no partition {partition} of topic {topic:?} here; allowed: {allowed}")]
    UnknownPartition {
        /// The log.
        url: String,
        /// The topic.
        topic: String,
        /// The requested partition.
        partition: i32,
        /// The allowed partitions, for the message.
        allowed: String,
    },
    /// The topic specification is invalid, or differs from the existing topic of that name.
    #[error("{url}: topic {topic:?} cannot be created: {found}; {action}")]
    TopicConflict {
        /// The log.
        url: String,
        /// The topic.
        topic: String,
        /// The fault.
        found: String,
        /// The remedy for the user.
        action: String,
    },
    /// An argument outside its allowed values.
    #[error("{url}: {argument} {value:?} is not allowed; {allowed}")]
    Argument {
        /// The log.
        url: String,
        /// The argument's name.
        argument: &'static str,
        /// The argument's value.
        value: String,
        /// The allowed values.
        allowed: String,
    },
    /// A producer was used out of order: `send` outside a transaction, or `begin` inside one.
    #[error("{url}: {call} needs {needs}")]
    TransactionState {
        /// The log.
        url: String,
        /// The call that was made.
        call: &'static str,
        /// The state it needs.
        needs: &'static str,
    },
    /// The open transaction would exceed its size limit. It stays open without the record.
    #[error(
        "{url}: a transaction of {bytes} bytes is over the limit of {bytes_max} (TRANSACTION_BYTES_MAX); commit \
         more often or send smaller records"
    )]
    TransactionTooLarge {
        /// The log.
        url: String,
        /// Size of the transaction with the refused record.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The cluster does not answer.
    #[error(
        "{url}: the cluster cannot be reached while {doing}: {cause}; check the address, and that the brokers run"
    )]
    Unreachable {
        /// The log.
        url: String,
        /// The operation that failed.
        doing: String,
        /// The finding.
        cause: String,
    },
    /// The cluster rejects this user, or this program rejects the cluster's certificate.
    #[error(
        "{url}: refused while {doing}: {cause}; check security.protocol, the user and the password, and the \
         certificate authority"
    )]
    Authentication {
        /// The log.
        url: String,
        /// The operation that failed.
        doing: String,
        /// The cause, without secrets.
        cause: String,
    },
    /// The cluster knows this user but does not allow the operation.
    #[error("{url}: not allowed while {doing}: {cause}; grant the right to this user")]
    NotAuthorized {
        /// The log.
        url: String,
        /// The operation that failed.
        doing: String,
        /// The operation that is not allowed.
        cause: String,
    },
    /// Another error of the cluster.
    #[error("{url}: {doing} failed with {code}: {cause}; look the code up in Kafka's documentation")]
    Broker {
        /// The log.
        url: String,
        /// The operation that failed.
        doing: String,
        /// Kafka's name of the error.
        code: String,
        /// The client's message.
        cause: String,
    },
    /// A batch of records cannot be unpacked, and the client does not report where it ends.
    #[error(
        "{url}: topic {topic:?} partition {partition} cannot be read at offset {offset}: {cause}. Remove the \
         records up to this offset (kafka-delete-records.sh)"
    )]
    UnreadableBatch {
        /// The log.
        url: String,
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The batch's first offset.
        offset: i64,
        /// The client's message.
        cause: String,
    },
    /// The record is larger than the log accepts. The transaction stays open without it.
    #[error("{url}: a record of {bytes} bytes for topic {topic:?} is over the limit; {action}")]
    RecordTooLarge {
        /// The log.
        url: String,
        /// The topic.
        topic: String,
        /// Size of its key and value.
        bytes: usize,
        /// The remedy for the user.
        action: &'static str,
    },
    /// The log aborted the transaction; nothing of it is or becomes visible. The caller calls `abort`, rolls back its own
    /// state, and may begin another.
    #[error("{url}: the transaction of {transactional_id:?} was aborted: {cause}; nothing of it was written")]
    Aborted {
        /// The log.
        url: String,
        /// The producer.
        transactional_id: String,
        /// The reason.
        cause: String,
    },
    /// The outcome of the commit is unknown. The producer refuses every further call. The caller drops it and makes a new one
    /// with the same transactional id, which settles the transaction; the committed offsets then tell the outcome.
    #[error(
        "{url}: no answer while {doing} for {transactional_id:?}; the outcome of its transaction is unknown: \
         {cause}"
    )]
    OutcomeUnknown {
        /// The log.
        url: String,
        /// The producer.
        transactional_id: String,
        /// The operation that failed.
        doing: String,
        /// The finding.
        cause: String,
    },
    /// The log has unread records, but does not deliver them.
    #[error(
        "{url}: nothing was read for {waited_ms} ms, although there are records: {what} ({cause}); check the \
         brokers and start this process again"
    )]
    Stalled {
        /// The log.
        url: String,
        /// A stalled partition with its position.
        what: String,
        /// Time waited, milliseconds.
        waited_ms: u64,
        /// The trouble reported meanwhile.
        cause: String,
    },
    /// The partition does not have the offset at which reading should continue.
    #[error(
        "{url}: {topic}/{partition} has no offset {offset}, but {there}. Records were removed before they \
         were read, or the topic was recreated. Start the process again: it says what is missing and how to \
         continue. Raise the retention of the topic"
    )]
    OffsetOutOfRange {
        /// The log.
        url: String,
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The requested offset.
        offset: i64,
        /// The offsets that exist, for the message.
        there: String,
    },
    /// Another member with the same instance id took over.
    #[error(
        "{url}: another process joined group {group:?} as {instance_id:?} and took the place of this one: \
         give each process its own instance id. If there is no other process, the broker was silent for \
         longer than the session timeout. It then took this process for a second one: start it again"
    )]
    MemberFenced {
        /// The log.
        url: String,
        /// The consumer group.
        group: String,
        /// The instance id that both use.
        instance_id: String,
    },
    /// The URL names no log.
    #[error(
        "log URL {url:?}: {found}; allowed: sqlite:PATH, for example sqlite:warptape.db, or \
         kafka:HOST:PORT[,HOST:PORT…], for example kafka:localhost:9092"
    )]
    Url {
        /// The URL.
        url: String,
        /// The fault in it.
        found: String,
    },
}
