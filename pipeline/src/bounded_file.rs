//! Reads whole files, each up to a limit of its length. Regular files and pipes are accepted; devices, which may have
//! no end, are refused.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// Greatest length of a file of settings, certificates or keys, in bytes.
pub const SETTINGS_BYTES_MAX: u64 = 4 << 20;

/// Opens a file. A pipe without a writer does not block.
///
/// # Errors
/// If the file cannot be read, or is a folder, a socket or a device.
pub fn open(path: &Path) -> io::Result<File> {
    let nonblock = OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(nonblock).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder; name a file"));
    }
    if !kind.is_file() && !kind.is_fifo() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a device or a socket, not a file"));
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? & !OFlags::NONBLOCK)?;
    Ok(file)
}

/// Reads a file of at most `bytes_max` bytes.
///
/// # Errors
/// As for [`open`], and if the file is longer than `bytes_max`.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_bounded(open(path)?, bytes_max)
}

/// Reads a text of at most `bytes_max` bytes.
///
/// # Errors
/// As for [`read`], and if the text is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    text_of(read(path, bytes_max)?)
}

/// Reads standard input to its end.
///
/// # Errors
/// As for [`read_text`].
pub fn read_stdin(bytes_max: u64) -> io::Result<String> {
    text_of(read_bounded(io::stdin(), bytes_max)?)
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

fn read_bounded(from: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let found = format!("it has more than {bytes_max} bytes, the limit for such a file");
        return Err(io::Error::new(io::ErrorKind::InvalidData, found));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, "0123456789").expect("a file");
        assert_eq!(read_text(&path, 10).expect("it fits"), "0123456789");
        let refused = |path: &Path| read(path, 9).expect_err("it is not read").to_string();
        assert!(refused(&path).contains("more than 9 bytes"));
        assert!(refused(Path::new("/dev/zero")).contains("a device"));
        assert!(refused(folder.path()).contains("a folder"));
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        assert_eq!(read(&pipe, 9).expect("nobody writes to it"), b"");
        std::fs::write(&path, [0xff]).expect("a file");
        assert!(read_text(&path, 9).is_err());
    }
}
