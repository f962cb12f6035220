//! The files of embedded logs: copying, moving and removing all of them.

use std::fs;
use std::path::{Path, PathBuf};

/// Suffix of the folder of segments.
const SEGMENTS: &str = "-segments";

/// Returns the path of a log with a suffix.
fn beside(log: &Path, part: &str) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(part);
    name.into()
}

/// Yields the files of a log, with their suffixes. SQLite creates the index of the write-ahead log again.
pub fn parts(log: &Path) -> impl Iterator<Item = (String, PathBuf)> {
    let segments = fs::read_dir(beside(log, SEGMENTS)).into_iter().flatten();
    let names = segments.map(|entry| entry.expect("a segment").file_name().into_string().expect("a number"));
    let mut parts: Vec<_> = ["", "-wal", "-head"].map(str::to_owned).into();
    parts.extend(names.map(|name| format!("{SEGMENTS}/{name}")));
    parts.sort();
    let with_paths: Vec<_> = parts.into_iter().map(|part| (part.clone(), beside(log, &part))).collect();
    with_paths.into_iter().filter(|(_, path)| path.exists())
}

/// Copies a log that no process uses. Files that are there already are overwritten.
pub fn copy_log(from: &Path, to: &Path) {
    for (part, path) in parts(from) {
        let copy = beside(to, &part);
        fs::create_dir_all(copy.parent().expect("a folder")).expect("a folder");
        fs::copy(path, copy).expect("a copy");
    }
}

/// Moves a log that no process uses to another folder.
pub fn move_log(from: &Path, to: &Path) {
    copy_log(from, to);
    remove_log(from);
}

/// Removes a log that no process uses.
pub fn remove_log(log: &Path) {
    for part in ["", "-wal", "-shm", "-head"] {
        drop(fs::remove_file(beside(log, part)));
    }
    drop(fs::remove_dir_all(beside(log, SEGMENTS)));
}
