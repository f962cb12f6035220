//! The recording of a live feed: a line `<receive ns> <JSON>` per message, the format that feeds of captures read.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::new_file::refuse_taken;

/// A recording in progress. Its file can be read at any time, up to the last flush.
pub struct Recorder {
    path: PathBuf,
    file: BufWriter<File>,
    messages: u64,
    /// Messages outside the feed; `None` before the first.
    aside: Option<BufWriter<File>>,
}

impl Recorder {
    /// Begins a recording in a new or empty file.
    ///
    /// # Errors
    /// If the file is not empty, or cannot be created.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        refuse_taken(path)?;
        refuse_taken(&aside(path))?;
        let file = File::create(path).with_context(|| cannot(path))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), messages: 0, aside: None })
    }

    /// Adds a message of the feed.
    pub fn add(&mut self, line: &[u8]) -> anyhow::Result<()> {
        self.messages += 1;
        write(&mut self.file, line).with_context(|| cannot(&self.path))
    }

    /// Adds a message outside the feed to a separate file.
    pub fn add_aside(&mut self, line: &[u8]) -> anyhow::Result<()> {
        let path = aside(&self.path);
        let file = match self.aside.take() {
            Some(file) => file,
            None => BufWriter::new(File::create(&path).with_context(|| cannot(&path))?),
        };
        write(self.aside.insert(file), line).with_context(|| cannot(&path))
    }

    /// Writes out all messages so far.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        self.file.flush().with_context(|| cannot(&self.path))?;
        if let Some(file) = &mut self.aside {
            file.flush().with_context(|| cannot(&aside(&self.path)))?;
        }
        Ok(())
    }

    /// Returns the file, and the number of its messages.
    pub fn recorded(&self) -> (&Path, u64) {
        (&self.path, self.messages)
    }
}

fn write(file: &mut BufWriter<File>, line: &[u8]) -> io::Result<()> {
    file.write_all(line)?;
    file.write_all(b"\n")
}

fn aside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".bad");
    PathBuf::from(name)
}

fn cannot(path: &Path) -> String {
    format!(
        "--record: {}: cannot be written; check the permissions of the folder and the free space on the disk",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_feed_and_others_are_apart_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.jsonl");
        let mut recorder = Recorder::create(&path).expect("a new file");
        recorder.add(b"1 {}").expect("the disk takes it");
        assert!(!aside(&path).exists());
        recorder.add_aside(b"2 x").expect("the disk takes it");
        recorder.add_aside(b"3 y").expect("the disk takes it");
        recorder.flush().expect("the disk takes it");
        assert_eq!(recorder.recorded(), (path.as_path(), 1));
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "1 {}\n");
        assert_eq!(std::fs::read_to_string(aside(&path)).expect("a file"), "2 x\n3 y\n");
        assert!(Recorder::create(&path).is_err());
        std::fs::remove_file(&path).expect("it is there");
        assert!(Recorder::create(&path).is_err(), "the file beside it is there");
    }
}
