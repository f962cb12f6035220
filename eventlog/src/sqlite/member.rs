//! One live member per consumer group and log: an operating system lock on a file next to the log.
//!
//! The lock ends with its process, so a crashed member never blocks the next one. The file is not deleted, because then
//! two members could lock two files of the same name. Other users may not open it, because any reader of a file can
//! hold its lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::limits::NOFOLLOW;
use crate::LogError;

/// Longest group name, bytes: its lock file's name must fit the 255 bytes of common file systems.
pub const GROUP_NAME_BYTES_MAX: usize = 64;

/// Attempts to lock while another process may only be checking the lock. Below: the longest duration of one such check.
const LOOKS_MAX: u32 = 3;
const LOOK_TIME: Duration = Duration::from_millis(5);

/// Membership of a consumer group; ends when dropped.
#[derive(Debug)]
pub(super) struct Membership {
    /// The file whose lock is held until it is closed.
    _file: File,
}

/// Returns the path of a group's lock file: `PATH.GROUP.lock`, with every byte outside `[A-Za-z0-9_-]` as `%XX`.
fn lock_path(log: &Path, group: &str) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".");
    for byte in group.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => name.push((byte as char).to_string()),
            _ => name.push(format!("%{byte:02X}")),
        }
    }
    name.push(".lock");
    PathBuf::from(name)
}

/// Joins the group; fails with the name of the current member if there is one.
pub(super) fn join(url: &str, log: &Path, group: &str) -> Result<Membership, LogError> {
    if group.is_empty() || group.len() > GROUP_NAME_BYTES_MAX {
        return Err(LogError::Argument {
            url: url.to_owned(),
            argument: "consumer group",
            value: group.to_owned(),
            allowed: format!("use 1 to {GROUP_NAME_BYTES_MAX} bytes"),
        });
    }
    let path = lock_path(log, group);
    let failed = |doing: &str, cause: std::io::Error| LogError::Storage {
        url: url.to_owned(),
        doing: format!("{doing} the lock file {} of consumer group {group:?}", path.display()),
        cause: cause.to_string(),
    };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(NOFOLLOW)
        .open(&path)
        .map_err(|cause| failed("opening", cause))?;
    keep_from_strangers(&file, log).map_err(|cause| failed("taking over", cause))?;
    match lock(&file) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(LogError::GroupTaken {
                url: url.to_owned(),
                group: group.to_owned(),
                holder: holder(&mut file),
                lock: path.display().to_string(),
            });
        }
        Err(TryLockError::Error(cause)) => return Err(failed("locking", cause)),
    }
    let id = std::process::id();
    file.set_len(0).and_then(|()| writeln!(file, "{id}")).map_err(|cause| failed("writing", cause))?;
    Ok(Membership { _file: file })
}

/// Returns true if a group has a member, as far as this process can see: another user's lock file counts as locked. A
/// member that joins during this check tries again.
pub(super) fn is_joined(url: &str, log: &Path, group: &str) -> Result<bool, LogError> {
    let path = lock_path(log, group);
    let failed = |cause: std::io::Error| LogError::Storage {
        url: url.to_owned(),
        doing: format!("reading the lock file {} of consumer group {group:?}", path.display()),
        cause: cause.to_string(),
    };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Ok(true),
        Err(error) => return Err(failed(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(cause)) => Err(failed(cause)),
    }
}

/// Locks the file of a group; tries again if another process may only be checking it.
fn lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..LOOKS_MAX {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::park_timeout(LOOK_TIME),
            result => return result,
        }
    }
    file.try_lock()
}

/// Rejects another user's lock file, and restricts the permissions of one that others may open.
fn keep_from_strangers(file: &File, log: &Path) -> std::io::Result<()> {
    let (metadata, own) = (file.metadata()?, rustix::process::geteuid().as_raw());
    let owner = metadata.uid();
    let is_of_log = || std::fs::metadata(log).is_ok_and(|log| log.uid() == owner);
    if owner != own && owner != 0 && !is_of_log() {
        let found =
            format!("it belongs to user {owner}, who owns neither the log nor this process: remove it");
        return Err(std::io::Error::other(found));
    }
    if metadata.mode() & 0o077 != 0 && owner == own {
        file.set_permissions(PermissionsExt::from_mode(0o600))?;
    }
    Ok(())
}

/// Returns the name of the lock file's writer. A holder may not have written it yet, so the content may be anything.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(32).read_to_string(&mut text));
    match (read, text.trim().parse::<u32>()) {
        (Ok(_), Ok(id)) if id == std::process::id() => format!("this process, {id}"),
        (Ok(_), Ok(id)) => format!("process {id}"),
        _ => "a process that has not written its id yet".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_files_of_different_groups_differ() {
        let check = |group: &str, expected: &str| {
            assert_eq!(lock_path(Path::new("/d/log.db"), group), Path::new("/d").join(expected));
        };
        check("engine", "log.db.engine.lock");
        check("a/b", "log.db.a%2Fb.lock");
        check("a.b", "log.db.a%2Eb.lock");
        check("a%2Eb", "log.db.a%252Eb.lock");
        check("é", "log.db.%C3%A9.lock");
    }

    #[test]
    fn one_member_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log.db");
        let first = join("sqlite:log.db", &log, "engine").unwrap();
        let other = join("sqlite:log.db", &log, "other").unwrap();
        let message = join("sqlite:log.db", &log, "engine").unwrap_err().to_string();
        let id = std::process::id().to_string();
        for part in ["sqlite:log.db", "\"engine\"", "log.db.engine.lock", &id, "stop it"] {
            assert!(message.contains(part), "{part:?} is missing in: {message}");
        }
        let is_joined = |group: &str| is_joined("sqlite:log.db", &log, group).unwrap();
        assert_eq!(["engine", "other", "none"].map(is_joined), [true, true, false]);
        drop(first);
        assert!(!is_joined("engine"));
        join("sqlite:log.db", &log, "engine").unwrap();
        drop(other);
        let path = lock_path(&log, "engine");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
        // The superuser may read every file.
        assert_eq!(is_joined("engine"), File::open(&path).is_err());
    }

    #[test]
    fn nobody_else_can_hold_a_lock() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log.db");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        let path = lock_path(&log, "engine");
        drop(join("sqlite:log.db", &log, "engine").unwrap());
        assert_eq!(mode(&path), 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        drop(join("sqlite:log.db", &log, "engine").unwrap());
        assert_eq!(mode(&path), 0o600);
        // A link placed by another user is not followed, even to one of our files.
        let target = directory.path().join("target");
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, lock_path(&log, "linked")).unwrap();
        let error = join("sqlite:log.db", &log, "linked").unwrap_err().to_string();
        assert!(error.contains("log.db.linked.lock"), "{error}");
        assert_eq!(std::fs::read(&target).unwrap(), b"precious");
        // The superuser can give files away.
        if std::os::unix::fs::chown(&path, Some(12345), None).is_ok() {
            let error = join("sqlite:log.db", &log, "engine").unwrap_err().to_string();
            assert!(error.contains("belongs to user 12345") && error.contains("remove it"), "{error}");
        }
    }

    #[test]
    fn names_that_cannot_be() {
        let long = "g".repeat(GROUP_NAME_BYTES_MAX + 1);
        for group in ["", &long] {
            let error = join("sqlite:x", Path::new("/nowhere/x"), group).unwrap_err();
            assert!(matches!(error, LogError::Argument { argument: "consumer group", .. }), "{error}");
        }
    }
}
