//! A file that is written under a temporary name and renamed once it is complete. An interruption leaves no partial
//! file under the final name.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::usage_error::UsageError;

/// A file in progress, which is removed if it is dropped before [`NewFile::finish`].
pub struct NewFile {
    to: PathBuf,
    /// Temporary name of the file.
    unfinished: PathBuf,
    file: File,
    /// True if the file may replace an existing one.
    may_replace: bool,
    is_finished: bool,
}

impl NewFile {
    /// Begins a file whose final name is `to`. A file of that name must not exist, or must be empty.
    ///
    /// # Errors
    /// If a non-empty file exists, or the new one cannot be created.
    pub fn create(to: &Path) -> anyhow::Result<Self> {
        refuse_taken(to)?;
        Self::begin(to, false)
    }

    /// Begins a file whose final name is `to`, and which replaces an existing file.
    ///
    /// # Errors
    /// If the file cannot be created.
    #[cfg(feature = "training")]
    pub fn replace(to: &Path) -> anyhow::Result<Self> {
        Self::begin(to, true)
    }

    fn begin(to: &Path, may_replace: bool) -> anyhow::Result<Self> {
        let mut name = OsString::from(to);
        name.push("-unfinished");
        let unfinished = PathBuf::from(name);
        let file = File::create(&unfinished).with_context(|| cannot(to))?;
        Ok(Self { to: to.to_owned(), unfinished, file, may_replace, is_finished: false })
    }

    /// Flushes the file to the disk, and renames it.
    ///
    /// # Errors
    /// If the disk cannot store the file, or another file has taken its name meanwhile.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.file.sync_all().with_context(|| cannot(&self.to))?;
        if !self.may_replace {
            refuse_taken(&self.to)?;
        }
        fs::rename(&self.unfinished, &self.to).with_context(|| cannot(&self.to))?;
        self.is_finished = true;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_finished {
            drop(fs::remove_file(&self.unfinished));
        }
    }
}

/// Refuses the path of an existing file, unless the file is empty.
pub(crate) fn refuse_taken(to: &Path) -> Result<(), UsageError> {
    match fs::symlink_metadata(to) {
        Ok(found) if found.is_dir() || found.len() > 0 => Err(UsageError(format!(
            "{} exists, and existing files are never overwritten; name a new file, or remove this one",
            to.display()
        ))),
        _ => Ok(()),
    }
}

fn cannot(to: &Path) -> String {
    format!(
        "{}: cannot be written; check the permissions of the folder and the free space on the disk",
        to.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("page.html");
        let files = || fs::read_dir(folder.path()).expect("the folder").count();
        let mut file = NewFile::create(&to).expect("it is made");
        file.write_all(b"half").expect("the disk takes it");
        assert!(!to.exists());
        drop(file);
        assert_eq!(files(), 0);
        fs::write(&to, "").expect("an empty file");
        let mut file = NewFile::create(&to).expect("an empty file may be there");
        file.write_all(b"whole").expect("the disk takes it");
        file.finish().expect("it gets its name");
        assert_eq!((fs::read_to_string(&to).expect("the file").as_str(), files()), ("whole", 1));
        let error = NewFile::create(&to).err().expect("it is taken");
        assert!(error.is::<UsageError>() && error.to_string().contains("never overwritten"), "{error}");
        assert!(NewFile::create(&folder.path().join("no/page.html")).is_err());
    }
}
