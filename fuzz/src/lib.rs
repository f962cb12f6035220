//! Whatever bytes readers get, they answer, and never panic. The targets are in `tests`; `tests/fuzz` runs one of them for as long as is asked.

use std::path::PathBuf;

/// Bytes as a file, for what reads files.
pub struct InFile {
    _folder: tempfile::TempDir,
    /// Where it is.
    pub path: PathBuf,
}

impl InFile {
    /// A file of this name with these bytes.
    pub fn new(name: &str, bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("the folder takes a file");
        Self { _folder: folder, path }
    }
}
