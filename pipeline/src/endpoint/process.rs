//! Resource usage of the process, as the operating system reports it.

use std::path::Path;
use std::time::Duration;

/// Resource usage of this process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Processor time of all threads, in seconds.
    pub(super) cpu_s: f64,
    /// Memory in use, in bytes; `None` if the system does not report it (only Linux does).
    pub(super) resident_bytes: Option<u64>,
    /// Memory that the process may use, in bytes; `None` if unknown.
    pub(super) limit_bytes: Option<u64>,
    /// Number of open files; `None` if unknown.
    pub(super) open_files: Option<u64>,
}

/// Returns the present usage of the process.
pub(super) fn usage() -> Usage {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu = Duration::try_from(time).unwrap_or_default();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).and_then(kibibytes);
    let files = std::fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64);
    Usage {
        cpu_s: cpu.as_secs_f64(),
        resident_bytes: resident,
        limit_bytes: memory_limit(Path::new("/")),
        open_files: files,
    }
}

/// Returns the smallest of the machine's memory and the limits of this process's control groups. `root` is the root of
/// the file system.
fn memory_limit(root: &Path) -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let machine =
        read("proc/meminfo")?.lines().find_map(|line| kibibytes(line.strip_prefix("MemTotal:")?))?;
    let groups = read("proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(|line| {
        // The line is `0::/a/b` in version 2, and `4:memory:/a/b` in version 1.
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let (folder, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            "memory" => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return Vec::new(),
        };
        // Limits of outer groups apply, too. In a container the path may be the host's, while the folder is the
        // container's own.
        let ancestors = Path::new(path.trim_start_matches('/')).ancestors();
        let limit = |group: &Path| {
            std::fs::read_to_string(root.join(folder).join(group).join(file)).ok()?.trim().parse::<u64>().ok()
        };
        ancestors.filter_map(limit).collect()
    });
    Some(limits.fold(machine, u64::min))
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
            assert!(usage.limit_bytes >= usage.resident_bytes, "{usage:?}");
        }
    }

    #[test]
    fn the_least_limit_holds() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        let limit = || memory_limit(root.path());
        assert_eq!(limit(), None);
        write("proc/meminfo", "MemTotal:        4096 kB\nMemFree:         1024 kB\n");
        assert_eq!(limit(), Some(4 << 20));
        write("proc/self/cgroup", "0::/a/b\n");
        write("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(limit(), Some(4 << 20));
        write("sys/fs/cgroup/a/memory.max", "1048576\n");
        assert_eq!(limit(), Some(1 << 20));
        write("proc/self/cgroup", "5:cpu:/x\n4:memory:/docker/x\n");
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n");
        assert_eq!(limit(), Some(2 << 20));
    }
}
