//! Flushes the log's file to the disk while no commit waits for it.
//!
//! It uses SQLite's own handle of the file, because closing any other one would drop this process's locks.
#![allow(unsafe_code)]

use std::ptr;

use rusqlite::{Connection, Error, ffi};

/// Waits until everything that checkpoints have written to the file so far is on the disk.
pub(super) fn sync(connection: &Connection) -> rusqlite::Result<()> {
    let mut file: *mut ffi::sqlite3_file = ptr::null_mut();
    // SAFETY: the connection is open and used by this thread alone meanwhile. For this code SQLite writes a pointer
    // through the argument; that pointer stays valid while the connection is open.
    let found = unsafe {
        let pointer = ptr::from_mut(&mut file).cast();
        ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_FILE_POINTER,
            pointer,
        )
    };
    checked(found)?;
    // SAFETY: as above; a file with methods is open, and is a valid argument of its methods.
    let synced = unsafe {
        let methods = file.as_ref().and_then(|file| file.pMethods.as_ref());
        methods.and_then(|methods| methods.xSync).map(|sync| sync(file, ffi::SQLITE_SYNC_NORMAL))
    };
    checked(synced.unwrap_or(ffi::SQLITE_OK))
}

fn checked(code: i32) -> rusqlite::Result<()> {
    match code {
        ffi::SQLITE_OK => Ok(()),
        code => Err(Error::SqliteFailure(ffi::Error::new(code), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_synced() {
        let directory = tempfile::tempdir().unwrap();
        let connection = Connection::open(directory.path().join("log.db")).unwrap();
        connection.execute_batch("CREATE TABLE t(x)").unwrap();
        sync(&connection).unwrap();
        assert!(checked(ffi::SQLITE_IOERR_FSYNC).is_err());
    }
}
