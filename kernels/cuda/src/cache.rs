//! A cache folder for files that take long to make: compiled kernels, and scores of GPUs.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The cache folder: below `XDG_CACHE_HOME`, or else below the home folder; `None` if neither is set.
pub fn cache_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))?;
    Some(caches.join("warptape").join("kernels"))
}

/// The name of a file: a hash of all inputs that determine its content.
pub(crate) fn name_of(kind: &str, parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        // The length separates the parts.
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    format!("{kind}-{}", hasher.finalize().to_hex())
}

/// A folder of files, each with a checksum at its beginning. A file with a wrong checksum is made again. One that
/// cannot be written is made again the next time.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    /// The folder; `None` for a cache that keeps no files.
    folder: Option<PathBuf>,
}

/// Size of the checksum: BLAKE3 of the name and the content.
const CHECKSUM_BYTES: usize = blake3::OUT_LEN;

impl Cache {
    pub(crate) fn new(folder: Option<PathBuf>) -> Cache {
        Cache { folder }
    }

    /// Returns the content of a file; makes it with `make` if it is missing.
    pub(crate) fn get<E>(&self, name: &str, make: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<Vec<u8>, E> {
        let Some(folder) = &self.folder else { return make() };
        if let Some(content) = read(folder, name) {
            return Ok(content);
        }
        let content = make()?;
        if let Err(error) = write(folder, name, &content) {
            tracing::debug!(%error, folder = %folder.display(), "what was compiled cannot be kept");
        }
        Ok(content)
    }
}

fn checksum(name: &str, content: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(name.as_bytes()).update(content);
    hasher.finalize()
}

fn read(folder: &Path, name: &str) -> Option<Vec<u8>> {
    let mut content = fs::read(folder.join(name)).ok()?;
    let expected: [u8; CHECKSUM_BYTES] = content.get(..CHECKSUM_BYTES)?.try_into().ok()?;
    content.drain(..CHECKSUM_BYTES);
    (checksum(name, &content) == expected).then_some(content)
}

/// Writes the file under another name and renames it, so that other processes see either the whole file or none.
fn write(folder: &Path, name: &str, content: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    let unfinished = folder.join(format!(".{name}.{}.{thread}", std::process::id()));
    let mut file = fs::File::create(&unfinished)?;
    let written = file
        .write_all(checksum(name, content).as_bytes())
        .and_then(|()| file.write_all(content))
        .and_then(|()| fs::rename(&unfinished, folder.join(name)));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(cache: &Cache, name: &str, content: &[u8]) -> bool {
        let mut made = false;
        let found = cache.get(name, || {
            made = true;
            Ok::<_, ()>(content.to_vec())
        });
        assert_eq!(found.as_deref(), Ok(content));
        made
    }

    #[test]
    fn what_was_made_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(folder.path().join("deep/er")));
        assert!(made(&cache, "a", b"content"));
        assert!(!made(&cache, "a", b"content"));
        assert!(made(&cache, "b", b""));
        assert!(!made(&cache, "b", b""));
        let files = fs::read_dir(folder.path().join("deep/er")).unwrap().count();
        assert_eq!(files, 2, "nothing unfinished stays");
    }

    #[test]
    fn what_is_damaged_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(folder.path().to_owned()));
        let path = folder.path().join("a");
        assert!(made(&cache, "a", b"content"));
        let good = fs::read(&path).unwrap();
        let mut flipped = good.clone();
        *flipped.last_mut().unwrap() ^= 1;
        let mut longer = good.clone();
        longer.push(0);
        for bad in [&good[..good.len() - 1], &good[..CHECKSUM_BYTES], &good[..5], b"", &flipped, &longer] {
            fs::write(&path, bad).unwrap();
            assert!(made(&cache, "a", b"content"), "{bad:?}");
            assert!(!made(&cache, "a", b"content"), "{bad:?}");
        }
        fs::rename(&path, folder.path().join("b")).unwrap();
        assert!(made(&cache, "b", b"content"), "another name's content");
        fs::create_dir(&path).unwrap();
        assert!(made(&cache, "a", b"content"), "a folder can be neither read nor replaced");
    }

    #[test]
    fn without_a_folder_nothing_is_kept() {
        let cache = Cache::new(None);
        assert!(made(&cache, "a", b"content"));
        assert!(made(&cache, "a", b"content"));
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(made(&Cache::new(Some(folder.path().join("file/below"))), "a", b"content"));
    }

    #[test]
    fn what_fails_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(folder.path().to_owned()));
        assert_eq!(cache.get("a", || Err("no")), Err("no"));
        assert!(made(&cache, "a", b"content"));
    }

    #[test]
    fn names_depend_on_every_part() {
        let names =
            [&["ab", "c"], &["a", "bc"], &["abc", ""], &["ab", "d"]].map(|parts| name_of("kernel", parts));
        for (index, name) in names.iter().enumerate() {
            assert!(name.starts_with("kernel-") && name.len() == 7 + 64, "{name}");
            assert!(!names[..index].contains(name));
        }
    }

    #[test]
    fn folders() {
        let check = |variables: &[(&str, &str)], expected: Option<&str>| {
            let found = |name: &str| {
                variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into())
            };
            assert_eq!(cache_folder(found), expected.map(PathBuf::from), "{variables:?}");
        };
        check(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")], Some("/x/warptape/kernels"));
        check(&[("XDG_CACHE_HOME", ""), ("HOME", "/h")], Some("/h/.cache/warptape/kernels"));
        check(&[("XDG_CACHE_HOME", "relative"), ("HOME", "/h")], Some("/h/.cache/warptape/kernels"));
        check(&[], None);
    }
}
