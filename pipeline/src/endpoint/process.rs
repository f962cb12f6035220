//! What the process itself uses, as the system counts it.

use std::time::Duration;

/// Processor time and memory of this process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Processor time of all threads, in seconds.
    pub(super) cpu_s: f64,
    /// Memory that is in use, in bytes; none where the system does not say (only Linux does).
    pub(super) resident_bytes: Option<u64>,
    /// Open files, likewise.
    pub(super) open_files: Option<u64>,
}

/// What the process uses now.
pub(super) fn usage() -> Usage {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu = Duration::try_from(time).unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).and_then(kibibytes);
    let files = std::fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64);
    Usage { cpu_s: cpu.as_secs_f64(), resident_bytes: resident, open_files: files }
}

fn kibibytes(text: &str) -> Option<u64> {
    text.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_uses_something() {
        let usage = usage();
        assert!(usage.cpu_s > 0.0);
        if cfg!(target_os = "linux") {
            assert!(usage.resident_bytes.is_some_and(|bytes| bytes > 1 << 20), "{usage:?}");
            assert!(usage.open_files.is_some_and(|files| files >= 3), "{usage:?}");
        }
    }
}
