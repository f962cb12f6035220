//! One connection to Redis and the operations on it. Every wait is bounded.
//!
//! It knows keys, scripts and pipelines. The writer decides which values to write, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use redis::{Connection, FromRedisValue, Pipeline, RedisResult, Script};
use serde::de::DeserializeOwned;
use warptape_schemas::journal::PartitionId;

use crate::error::HotError;
use crate::keys::{
    Keys, LAYOUT, LaneValue, PlacementValue, PositionValue, ResultValue, SignalValue, encode, lane_field,
    placement_field,
};
use crate::url::RedisUrl;

/// Longest wait for a connection, including greeting and password.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait for an answer, and for space to send.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Greatest number of commands in one pipeline.
const PIPELINE_COMMANDS_MAX: usize = 256;
/// Number of members of a set or fields of a hash that are requested at once.
const SCAN_COUNT: usize = 512;
/// The script that writes newer values. Its file describes it.
const WRITE: &str = include_str!("write.lua");
/// Answer of [`WRITE`] if the stored partition is gone.
const EMPTIED: i64 = -1;

/// Fields to write to one hash. A field is written only if it is newer than the stored one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashWrite {
    /// Key of the hash.
    pub key: String,
    /// Partition and rebuild of the values; `None` for values outside any rebuild.
    pub rebuild: Option<(PartitionId, String)>,
    /// Fields and their values.
    pub fields: Vec<(String, String)>,
}

/// A result to write, unless Redis already has one for the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultWrite {
    /// Id of the request.
    pub request_id: String,
    /// The value.
    pub value: String,
    /// Time to live in milliseconds, greater than 0.
    pub expires_in_ms: i64,
}

/// State of a partition in Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPartition {
    /// Name of the rebuild to which the values belong.
    pub rebuild: String,
    /// Position up to which the partition is written; `None` while it is being cleared.
    pub position: Option<PositionValue>,
}

/// Hot state in Redis.
pub struct RedisStore {
    connection: Connection,
    url: String,
    keys: Keys,
    write: Script,
    /// True if a key of another type had replaced the placements of all partitions.
    is_without_placements: bool,
}

impl RedisStore {
    /// Connects to the server.
    pub fn connect(url: &RedisUrl, keys: Keys) -> Result<Self, HotError> {
        let connect = || {
            let connection = url.client()?.get_connection_with_timeout(CONNECT_TIMEOUT)?;
            connection.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            connection.set_write_timeout(Some(ANSWER_TIMEOUT))?;
            Ok(connection)
        };
        let shown = url.to_string();
        let connection =
            connect().map_err(|cause| HotError::Redis { url: shown.clone(), doing: "connecting", cause })?;
        Ok(Self { connection, url: shown, keys, write: Script::new(WRITE), is_without_placements: false })
    }

    /// Returns the names of keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Checks that existing keys have this version's layout.
    pub fn check_layout(&mut self) -> Result<(), HotError> {
        let key = self.keys.layout();
        let found: Option<String> = self.ask("reading the layout", redis::cmd("GET").arg(&key))?;
        match found {
            Some(found) if found != LAYOUT => {
                Err(HotError::Layout { url: self.url.clone(), key, found, expected: LAYOUT })
            }
            _ => Ok(()),
        }
    }

    /// Checks the layout as [`Self::check_layout`] does, and claims this one if no keys exist yet.
    pub fn claim_layout(&mut self) -> Result<(), HotError> {
        let key = self.keys.layout();
        self.remove_of_other_types(&[
            (key.clone(), "string"),
            (self.keys.partitions(), "set"),
            (self.keys.lanes(), "hash"),
        ])?;
        self.is_without_placements = self.remove_of_other_types(&[(self.keys.placements(), "hash")])?;
        let _: Option<String> =
            self.ask("writing the layout", redis::cmd("SET").arg(&key).arg(LAYOUT).arg("NX"))?;
        self.check_layout()
    }

    /// Writes values that are newer than the stored ones, in pipelines. Returns the number of fields written. After an
    /// error some may be written; all of them can be written again.
    pub fn write(&mut self, writes: &[HashWrite]) -> Result<u64, HotError> {
        let mut written = 0;
        for some in writes.chunks(PIPELINE_COMMANDS_MAX) {
            let mut pipeline = redis::pipe();
            // The script is loaded each time, in case Redis was restarted or its scripts were flushed.
            pipeline.cmd("SCRIPT").arg("LOAD").arg(WRITE).ignore();
            for write in some {
                let (guard, rebuild) = match &write.rebuild {
                    Some((partition, rebuild)) => (self.keys.partition(*partition), rebuild.as_str()),
                    None => (write.key.clone(), ""),
                };
                pipeline.cmd("EVALSHA").arg(self.write.get_hash()).arg(2);
                pipeline.arg(guard).arg(&write.key).arg(rebuild);
                for (field, value) in &write.fields {
                    pipeline.arg(field).arg(value);
                }
            }
            let answers: Vec<i64> = self.ask_all("writing", &pipeline)?;
            if answers.contains(&EMPTIED) {
                return Err(HotError::Emptied { url: self.url.clone() });
            }
            written += answers.iter().map(|count| *count as u64).sum::<u64>();
        }
        Ok(written)
    }

    /// Writes results of requests that have no stored one, in pipelines. Returns their number. After an error some may
    /// be written; all of them can be written again. The partition's index is written first, so that clearing finds all
    /// results.
    pub fn write_results(
        &mut self,
        partition: PartitionId,
        now_ms: i64,
        writes: &[ResultWrite],
    ) -> Result<u64, HotError> {
        let index = self.keys.results(partition);
        let mut written = 0;
        for some in writes.chunks(PIPELINE_COMMANDS_MAX) {
            let keys = some.iter().map(|write| (self.keys.result(&write.request_id), "string"));
            self.remove_of_other_types(&keys.collect::<Vec<_>>())?;
            let mut pipeline = redis::pipe();
            pipeline.cmd("ZREMRANGEBYSCORE").arg(&index).arg("-inf").arg(now_ms).ignore();
            pipeline.cmd("ZADD").arg(&index);
            for write in some {
                pipeline.arg(now_ms + write.expires_in_ms).arg(&write.request_id);
            }
            pipeline.ignore();
            for write in some {
                pipeline.cmd("SET").arg(self.keys.result(&write.request_id)).arg(&write.value);
                pipeline.arg("NX").arg("PX").arg(write.expires_in_ms);
            }
            // The answer is nil for a result that already exists.
            let answers: Vec<Option<String>> = self.ask_all("writing results", &pipeline)?;
            written += answers.iter().flatten().count() as u64;
        }
        Ok(written)
    }

    /// Adds symbols to the index of their partition.
    pub fn add_symbols(&mut self, partition: PartitionId, symbols: &[&str]) -> Result<(), HotError> {
        for some in symbols.chunks(SCAN_COUNT) {
            let key = self.keys.symbols(partition);
            let _: i64 = self.ask("writing symbols", redis::cmd("SADD").arg(key).arg(some))?;
        }
        Ok(())
    }

    /// Returns the stored partition; `None` if there is none, or if one of its keys had another type and was removed.
    pub fn partition(&mut self, partition: PartitionId) -> Result<Option<StoredPartition>, HotError> {
        let key = self.keys.partition(partition);
        let were_removed = self.remove_of_other_types(&[
            (key.clone(), "hash"),
            (self.keys.symbols(partition), "set"),
            (self.keys.results(partition), "zset"),
        ])?;
        if were_removed || self.is_without_placements {
            return Ok(None);
        }
        // The index of partitions may be among the removed keys.
        let index = self.keys.partitions();
        let _: i64 = self.ask("writing a partition", redis::cmd("SADD").arg(index).arg(partition))?;
        let (rebuild, position): (Option<String>, Option<String>) =
            self.ask("reading a position", redis::cmd("HMGET").arg(&key).arg("rebuild").arg("position"))?;
        let Some(rebuild) = rebuild else { return Ok(None) };
        let position = position.map(|text| self.decode(&key, Some("position"), &text)).transpose()?;
        Ok(Some(StoredPartition { rebuild, position }))
    }

    /// Checks the types of the indices. A foreign value in place of an index is removed, and these partitions count as
    /// emptied: the next session writes them again.
    pub fn check_types(&mut self, partitions: &[PartitionId]) -> Result<(), HotError> {
        let mut keys = vec![
            (self.keys.layout(), "string"),
            (self.keys.partitions(), "set"),
            (self.keys.placements(), "hash"),
        ];
        for partition in partitions {
            keys.push((self.keys.symbols(*partition), "set"));
            keys.push((self.keys.results(*partition), "zset"));
        }
        if !self.remove_of_other_types(&keys)? {
            return Ok(());
        }
        let mut remove = redis::pipe();
        for partition in partitions {
            remove.cmd("UNLINK").arg(self.keys.partition(*partition)).ignore();
        }
        self.ask_all::<()>("clearing partitions", &remove)?;
        Err(HotError::Emptied { url: self.url.clone() })
    }

    /// Clears a partition and begins a new rebuild of it. Later writes for an earlier rebuild are rejected.
    pub fn renew(
        &mut self,
        partition: PartitionId,
        rebuild: &str,
        position: &PositionValue,
    ) -> Result<(), HotError> {
        let doing = "clearing a partition";
        let (key, symbols, placements) =
            (self.keys.partition(partition), self.keys.symbols(partition), self.keys.placements());
        let results = self.keys.results(partition);
        // A partition without a position counts as half cleared, even after a crash in between.
        let mut begin = redis::pipe();
        begin.cmd("HDEL").arg(&key).arg("position").ignore();
        begin.cmd("HSET").arg(&key).arg("rebuild").arg(rebuild).ignore();
        self.ask_all::<()>(doing, &begin)?;
        self.scan(&["SSCAN", &symbols], |keys, found: Vec<String>, clear| {
            clear
                .cmd("UNLINK")
                .arg(found.iter().map(|symbol| keys.symbol(symbol)).collect::<Vec<_>>())
                .ignore();
        })?;
        self.scan(&["ZSCAN", &results], |keys, found: Vec<(String, String)>, clear| {
            let found: Vec<_> = found.iter().map(|(request_id, _)| keys.result(request_id)).collect();
            clear.cmd("UNLINK").arg(found).ignore();
        })?;
        let groups = format!("{partition}/*");
        self.scan(&["HSCAN", &placements, "MATCH", &groups], |keys, found: Vec<(String, String)>, clear| {
            let fields: Vec<_> = found.into_iter().map(|(field, _)| field).collect();
            clear.cmd("HDEL").arg(keys.placements()).arg(fields).ignore();
        })?;
        let mut end = redis::pipe();
        end.cmd("UNLINK").arg(&symbols).arg(&results).ignore();
        end.cmd("SADD").arg(self.keys.partitions()).arg(partition).ignore();
        end.cmd("HSET").arg(&key).arg("rebuild").arg(rebuild).arg("position").arg(encode(position)).ignore();
        self.ask_all(doing, &end)
    }

    /// Returns all values of a symbol, by field of its hash; empty for an unknown symbol.
    pub fn symbol(&mut self, symbol: &str) -> Result<BTreeMap<String, SignalValue>, HotError> {
        let key = self.keys.symbol(symbol);
        let found: BTreeMap<String, String> =
            self.ask("reading a symbol", redis::cmd("HGETALL").arg(&key))?;
        let value =
            |(field, text): (String, String)| Ok((field.clone(), self.decode(&key, Some(&field), &text)?));
        found.into_iter().map(value).collect()
    }

    /// Returns the result of a request; `None` if it is not stored.
    pub fn result(&mut self, request_id: &str) -> Result<Option<ResultValue>, HotError> {
        let key = self.keys.result(request_id);
        let found: Option<String> = self.ask("reading a result", redis::cmd("GET").arg(&key))?;
        found.map(|text| self.decode(&key, None, &text)).transpose()
    }

    /// Returns the process and lane that compute a group; `None` if unknown.
    pub fn placement(
        &mut self,
        partition: PartitionId,
        group: i32,
    ) -> Result<Option<PlacementValue>, HotError> {
        self.field(self.keys.placements(), placement_field(partition, group))
    }

    /// Returns the health of a lane; `None` if unknown.
    pub fn lane(&mut self, node: &str, lane: i32) -> Result<Option<LaneValue>, HotError> {
        self.field(self.keys.lanes(), lane_field(node, lane))
    }

    /// Returns the symbols of all partitions.
    pub fn symbols(&mut self) -> Result<Vec<String>, HotError> {
        let partitions: Vec<PartitionId> =
            self.ask("reading partitions", redis::cmd("SMEMBERS").arg(self.keys.partitions()))?;
        let mut symbols = Vec::new();
        for partition in partitions {
            let key = self.keys.symbols(partition);
            let found: Vec<String> = self.ask("reading symbols", redis::cmd("SMEMBERS").arg(key))?;
            symbols.extend(found);
        }
        Ok(symbols)
    }

    /// Removes keys whose types differ from those given here. They are foreign values, which would make all writes
    /// fail. Returns true if there were any.
    fn remove_of_other_types(&mut self, keys: &[(String, &str)]) -> Result<bool, HotError> {
        let doing = "looking at the types of keys";
        let mut types = redis::pipe();
        for (key, _) in keys {
            types.cmd("TYPE").arg(key);
        }
        let found: Vec<String> = self.ask_all(doing, &types)?;
        let mut remove = redis::pipe();
        for ((key, kind), found) in
            keys.iter().zip(&found).filter(|((_, kind), found)| ![kind, "none"].contains(&found.as_str()))
        {
            tracing::warn!(
                key,
                found,
                wanted = kind,
                "a key of hot state is of another type: it is removed and written again"
            );
            remove.cmd("UNLINK").arg(key).ignore();
        }
        if remove.is_empty() {
            return Ok(false);
        }
        self.ask_all::<()>(doing, &remove)?;
        Ok(true)
    }

    fn field<T: DeserializeOwned>(&mut self, key: String, field: String) -> Result<Option<T>, HotError> {
        let found: Option<String> = self.ask("reading", redis::cmd("HGET").arg(&key).arg(&field))?;
        found.map(|text| self.decode(&key, Some(&field), &text)).transpose()
    }

    /// Scans a set, a sorted set or a hash in pieces, and runs the commands that `clear` adds for each piece.
    fn scan<T: FromRedisValue + IntoIterator + Clone>(
        &mut self,
        command: &[&str],
        clear: impl Fn(&Keys, T, &mut Pipeline),
    ) -> Result<(), HotError> {
        let doing = "clearing a partition";
        let (name, key) = (command[0], command[1]);
        let mut cursor = 0_u64;
        loop {
            let mut scan = redis::cmd(name);
            scan.arg(key).arg(cursor).arg(&command[2..]).arg("COUNT").arg(SCAN_COUNT);
            let (next, found): (u64, T) = self.ask(doing, &scan)?;
            if found.clone().into_iter().next().is_some() {
                let mut pipeline = redis::pipe();
                clear(&self.keys, found, &mut pipeline);
                self.ask_all::<()>(doing, &pipeline)?;
            }
            cursor = next;
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    fn ask<T: FromRedisValue>(&mut self, doing: &'static str, command: &redis::Cmd) -> Result<T, HotError> {
        let answer = command.query(&mut self.connection);
        self.answered(doing, answer)
    }

    fn ask_all<T: FromRedisValue>(
        &mut self,
        doing: &'static str,
        pipeline: &Pipeline,
    ) -> Result<T, HotError> {
        let answer = pipeline.query(&mut self.connection);
        self.answered(doing, answer)
    }

    fn answered<T>(&self, doing: &'static str, answer: RedisResult<T>) -> Result<T, HotError> {
        answer.map_err(|cause| HotError::Redis { url: self.url.clone(), doing, cause })
    }

    fn decode<T: DeserializeOwned>(&self, key: &str, field: Option<&str>, text: &str) -> Result<T, HotError> {
        serde_json::from_str(text).map_err(|cause| HotError::Value {
            url: self.url.clone(),
            key: key.to_owned(),
            field: field.map(str::to_owned),
            cause,
        })
    }
}
