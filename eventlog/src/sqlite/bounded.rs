//! A connection for untrusted logs: no code in the file runs, and every operation is bounded.
//!
//! It does not know the tables' meaning.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::beside::Beside;
use super::limits::{RECORD_BYTES_MAX, STEPS_MAX};

/// Most steps of SQLite while a connection opens: enough for 300,000 tables, each of which SQLite must parse.
const OPENING_STEPS_MAX: u64 = 4 << 20;
/// Most steps per byte of a file that is read as a whole. A row of two dozen bytes takes about 50 steps.
const STEPS_PER_BYTE: u64 = 16;
/// Number of steps between two checks of the remaining number.
const LOOK_STEPS: u32 = 1 << 20;
/// Longest value in bytes: a record plus the numbers before its parts.
const VALUE_BYTES_MAX: i32 = RECORD_BYTES_MAX as i32 + (1 << 20);
/// Limits of SQLite, as low as this crate's statements allow.
const LIMITS: [(Limit, i32); 6] = [
    (Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 16 << 10),
    (Limit::SQLITE_LIMIT_COLUMN, 32),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 32),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
];
/// Switches that limit a file's influence on SQLite, each with its setting.
const SWITCHES: [(DbConfig, bool); 6] = [
    (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
    (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
    (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
    (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
    (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
];

/// The connection. SQLite loads extensions only on request, and this crate never requests any.
pub(super) struct Bounded {
    connection: Connection,
    /// Remaining steps of the operation. SQLite's progress handler counts them down; [`Self::allow`] sets them.
    steps_left: Arc<AtomicU64>,
    beside: Arc<Beside>,
}

impl Bounded {
    pub(super) fn open(
        path: impl AsRef<Path>,
        flags: OpenFlags,
        beside: Arc<Beside>,
    ) -> rusqlite::Result<Self> {
        let mut connection = Connection::open_with_flags(path, flags)?;
        for (limit, most) in LIMITS {
            connection.set_limit(limit, most)?;
        }
        for (switch, is_on) in SWITCHES {
            connection.set_db_config(switch, is_on)?;
        }
        let steps_left = Arc::new(AtomicU64::new(OPENING_STEPS_MAX));
        let left = Arc::clone(&steps_left);
        let is_over = move || {
            let before = left.load(Ordering::Relaxed);
            left.store(before.saturating_sub(LOOK_STEPS.into()), Ordering::Relaxed);
            before == 0
        };
        connection.progress_handler(LOOK_STEPS as i32, Some(is_over))?;
        Ok(Self { connection, steps_left, beside })
    }

    /// Begins an operation of at most `steps` steps.
    pub(super) fn allow(&self, steps: u64) {
        self.steps_left.store(steps, Ordering::Relaxed);
    }

    /// Begins an operation that reads `bytes` bytes.
    pub(super) fn allow_reading(&self, bytes: u64) {
        self.allow(STEPS_MAX.saturating_add(bytes.saturating_mul(STEPS_PER_BYTE)));
    }

    /// Makes the connection leave the write-ahead log unchanged when it closes.
    pub(super) fn leave_as_it_is(&self) {
        // It never fails for an open connection.
        let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        if self.beside.is_cut() {
            self.leave_as_it_is();
        }
    }
}

impl Deref for Bounded {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for Bounded {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ErrorCode;

    use super::*;

    #[test]
    fn no_statement_goes_on_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let flags = OpenFlags::default();
        let connection = Bounded::open(&path, flags, Arc::new(Beside::new(path.clone()))).unwrap();
        let count = |rows: u32| -> rusqlite::Result<u32> {
            let sql = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT ?1) SELECT count(*) FROM n";
            connection.query_row(sql, [rows], |row| row.get(0))
        };
        for _ in 0..3 {
            connection.allow(u64::from(LOOK_STEPS));
            let error = count(LOOK_STEPS).unwrap_err();
            assert_eq!(error.sqlite_error_code(), Some(ErrorCode::OperationInterrupted));
            connection.allow(STEPS_MAX);
            assert_eq!(count(LOOK_STEPS).unwrap(), LOOK_STEPS);
        }
    }

    #[test]
    fn nothing_in_a_file_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let sql = "CREATE TABLE t(x); CREATE VIEW v AS SELECT 1;
             CREATE TRIGGER r AFTER INSERT ON t BEGIN DELETE FROM t; END";
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let beside = Arc::new(Beside::new(path.clone()));
        let connection = Bounded::open(&path, OpenFlags::default(), beside).unwrap();
        connection.execute("INSERT INTO t VALUES (1)", []).unwrap();
        let count =
            |of: &str| connection.query_row(&format!("SELECT count(*) FROM {of}"), [], |row| row.get(0));
        assert_eq!(count("t"), Ok(1));
        let refused = |sql: &str| connection.execute_batch(sql).unwrap_err().to_string();
        assert!(count("v").unwrap_err().to_string().contains("prohibited"));
        for sql in [
            "UPDATE sqlite_schema SET sql = ''",
            "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = ''",
            "ATTACH 'other.db' AS other",
            "SELECT load_extension('x')",
            "SELECT \"x\"",
        ] {
            println!("{}", refused(sql));
        }
    }
}
