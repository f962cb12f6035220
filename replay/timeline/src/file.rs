//! A file that has its name once it is whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::TimelineError;

/// A file under the name that it has until it is whole. Dropped before [`Unfinished::finish`] it is removed.
pub(crate) struct Unfinished {
    path: PathBuf,
    to: PathBuf,
    is_finished: bool,
}

impl Unfinished {
    /// Begins a file that will be at `to`, where there must be none.
    pub(crate) fn create(to: &Path) -> Result<(Self, BufWriter<File>), TimelineError> {
        refuse_taken(to)?;
        let Some(name) = to.file_name() else {
            let cause = "it has no name of its own; name a file that does not exist yet".to_owned();
            return Err(TimelineError::Unwritable { path: to.to_path_buf(), cause });
        };
        let mut name = name.to_owned();
        name.push("-unfinished");
        let path = to.with_file_name(name);
        let file = File::create_new(&path).map_err(|error| {
            let cause = match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    "it exists: another timeline is being written there, or one was killed; remove it if none runs".to_owned()
                }
                _ => error.to_string(),
            };
            TimelineError::Unwritable { path: path.clone(), cause }
        })?;
        Ok((Self { path, to: to.to_path_buf(), is_finished: false }, BufWriter::new(file)))
    }

    /// Gives it its name, once it is on the disk.
    pub(crate) fn finish(mut self, mut out: BufWriter<File>) -> Result<(), TimelineError> {
        refuse_taken(&self.to)?;
        let finished = out
            .flush()
            .and_then(|()| out.get_ref().sync_all())
            .and_then(|()| fs::rename(&self.path, &self.to));
        finished.map_err(|cause| unwritable(&self.to, &cause))?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_finished {
            // What is left if this fails is refused by the next one, which says what to do.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The error that a file cannot be written.
pub(crate) fn unwritable(path: &Path, cause: &io::Error) -> TimelineError {
    TimelineError::Unwritable { path: path.to_path_buf(), cause: cause.to_string() }
}

fn refuse_taken(to: &Path) -> Result<(), TimelineError> {
    match fs::symlink_metadata(to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(unwritable(to, &error)),
        Ok(_) => Err(TimelineError::Taken { path: to.to_path_buf() }),
    }
}
