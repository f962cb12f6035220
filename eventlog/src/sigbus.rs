//! Names the truncated file when SIGBUS ends the process.
//!
//! SQLite maps the index of a write-ahead log into memory. If another process truncates that file, the system ends any
//! reader of a lost page with SIGBUS and no message. Committed data is not affected: it is in the write-ahead log
//! itself.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};

/// The signal's number on Linux.
const SIGBUS: i32 = 7;
/// Longest line of the list of mappings that is examined.
const LINE_BYTES_MAX: usize = 4 << 10;

/// Installs a handler that names the truncated file before SIGBUS ends the process.
pub fn say_before_sigbus() -> io::Result<()> {
    // SAFETY: the handler allocates nothing, takes no lock and calls only the system.
    unsafe {
        signal_hook_registry::register_sigaction(SIGBUS, |info| {
            // SAFETY: a signal of this kind has an address.
            say(info.si_addr() as usize);
        })?;
    }
    Ok(())
}

/// Writes the message. When the handler returns, the signal is raised again and ends the process, because the
/// previously installed handler has restored the default action.
fn say(address: usize) {
    static WAS_SAID: AtomicBool = AtomicBool::new(false);
    if WAS_SAID.swap(true, Ordering::Relaxed) {
        // No handler restored the default action.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::ABORT);
        return;
    }
    let mut line = [0; LINE_BYTES_MAX];
    let file = mapped_at(address, &mut line).unwrap_or_default();
    let told: &[&[u8]] = match file {
        file if file.ends_with(b"-shm") => &[
            b"warptape: the index of a write-ahead log, ",
            file,
            b", was cut while it was in use, which ends this process (SIGBUS); all that was committed is in the write-ahead log: stop every \
              process that uses the log, and start again\n",
        ],
        b"" => &[b"warptape: memory that is not there was read (SIGBUS): a file was cut while it was in use, or a device has failed\n"],
        file => &[b"warptape: ", file, b" was cut while it was in use, which ends this process (SIGBUS)\n"],
    };
    // SAFETY: standard error stays open for as long as the process runs.
    let stderr = unsafe { BorrowedFd::borrow_raw(2) };
    for part in told {
        let _ = rustix::io::write(stderr, part);
    }
}

/// Returns the file mapped at an address, in `line`.
fn mapped_at(address: usize, line: &mut [u8; LINE_BYTES_MAX]) -> Option<&[u8]> {
    let maps = rustix::fs::open(c"/proc/self/maps", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut length = 0;
    let mut byte = [0; 1];
    while rustix::io::read(&maps, &mut byte).ok()? == 1 {
        match byte[0] {
            b'\n' if holds(&line[..length], address) => return path_of(&line[..length]),
            b'\n' => length = 0,
            byte if length < line.len() => {
                line[length] = byte;
                length += 1;
            }
            _ => {}
        }
    }
    None
}

/// Returns true if a line such as `7f00-7f08 rw-s 00000000 08:01 123 /a/path` has a range with the address.
fn holds(line: &[u8], address: usize) -> bool {
    let number = |digits: &[u8]| usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    let range = || {
        let mut ends = line.split(|byte| *byte == b' ').next()?.split(|byte| *byte == b'-');
        Some(number(ends.next()?)?..number(ends.next()?)?)
    };
    range().is_some_and(|range| range.contains(&address))
}

fn path_of(line: &[u8]) -> Option<&[u8]> {
    let start = line.iter().position(|byte| *byte == b'/')?;
    Some(&line[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_found_by_an_address_in_it() {
        let line = b"7f00-7f08 rw-s 00000000 08:01 123                /a path/log.db-shm";
        assert!(holds(line, 0x7f00) && holds(line, 0x7f07));
        assert!(!holds(line, 0x7eff) && !holds(line, 0x7f08) && !holds(b"", 0) && !holds(b"x-y", 0));
        assert_eq!(path_of(line), Some(&b"/a path/log.db-shm"[..]));
        let mut line = [0; LINE_BYTES_MAX];
        let found = mapped_at(mapped_at as *const () as usize, &mut line).expect("the program is a file");
        let program = std::env::current_exe().unwrap();
        assert_eq!(found, program.as_os_str().as_encoded_bytes());
    }
}
