//! Wakes this process's readers and writers when another process commits.
//!
//! Every commit ends with a write to the log's head, and the kernel reports such writes (inotify). A thread waits for
//! these reports, and counts the commits of others: those in the head, less this process's own.
//!
//! It only shortens waits. The kernel reports nothing of other machines on a network file system, for example. Readers
//! find those commits by themselves.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::beside::open_file;
use super::head::{self, head_path};
use super::wake::Wakes;

/// Pause between two attempts to watch a head. A log has none before its first commit.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Size of the buffer for the kernel's reports, in bytes. A report without a name has 16.
const REPORT_BYTES: usize = 1024;

/// The watch on the head of a log, started at the first wait.
pub(super) struct Watch {
    log: PathBuf,
    wakes: Arc<Wakes>,
    /// Commits of this process, counted before they are in the head.
    own_commits: Arc<AtomicI64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    watcher: Option<Watcher>,
    tried: Option<Instant>,
}

/// The thread, and the descriptor that ends it.
struct Watcher {
    end: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn new(log: PathBuf, wakes: Arc<Wakes>) -> Self {
        Self { log, wakes, own_commits: Arc::default(), state: Mutex::default() }
    }

    /// Counts a commit of this process. Must be called before the head is written.
    pub(super) fn count_own(&self) {
        self.own_commits.fetch_add(1, Ordering::Relaxed);
    }

    /// Starts the thread unless it runs.
    pub(super) fn ensure(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_running = state
            .watcher
            .as_ref()
            .and_then(|watcher| watcher.thread.as_ref())
            .is_some_and(|thread| !thread.is_finished());
        if is_running || state.tried.is_some_and(|tried| tried.elapsed() < RETRY_INTERVAL) {
            return;
        }
        state.tried = Some(Instant::now());
        state.watcher = None;
        match self.start() {
            Ok(watcher) => state.watcher = Some(watcher),
            Err(error) => {
                tracing::debug!(log = %self.log.display(), %error, "the head of the log is not watched");
            }
        }
    }

    /// Lets no thread start, as on a system that reports nothing.
    #[cfg(test)]
    pub(super) fn turn_off(&self) {
        const DAY: Duration = Duration::from_secs(86_400);
        let tried = Instant::now().checked_add(DAY);
        *self.state.lock().unwrap() = State { watcher: None, tried };
    }

    fn start(&self) -> io::Result<Watcher> {
        let path = head_path(&self.log);
        let head = open_file(&path)?;
        let reports = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        // A removal is reported as a change of the attributes, because the thread keeps the file open.
        let flags = WatchFlags::MODIFY | WatchFlags::ATTRIB | WatchFlags::MOVE_SELF;
        inotify::add_watch(&reports, &path, flags)?;
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let watching = Watching {
            head,
            reports,
            end: Arc::clone(&end),
            wakes: Arc::clone(&self.wakes),
            own_commits: Arc::clone(&self.own_commits),
        };
        let thread = thread::Builder::new().name("log watch".to_owned()).spawn(move || watching.run())?;
        Ok(Watcher { end, thread: Some(thread) })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // The write can only fail if the counter is full, and then the thread wakes as well.
        let _ = rustix::io::write(&*self.end, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's state.
struct Watching {
    head: File,
    reports: OwnedFd,
    end: Arc<OwnedFd>,
    wakes: Arc<Wakes>,
    own_commits: Arc<AtomicI64>,
}

impl Watching {
    /// Wakes waiting threads for each commit of others, until the end is asked for or the head is replaced.
    fn run(self) {
        let mut others = None;
        loop {
            let now = self.others();
            if now != others {
                self.wakes.notify_all();
            }
            others = now;
            let mut ready =
                [PollFd::new(&self.reports, PollFlags::IN), PollFd::new(&*self.end, PollFlags::IN)];
            match poll(&mut ready, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            if !ready[1].revents().is_empty() || !self.take_reports() {
                return;
            }
        }
    }

    /// Returns the number of other processes' commits, up to a constant; `None` if the head is damaged.
    fn others(&self) -> Option<i64> {
        let all = head::transactions(&self.head).ok().flatten()?;
        Some(all - self.own_commits.load(Ordering::Relaxed))
    }

    /// Takes all reports. Returns false if the file is no longer the head.
    fn take_reports(&self) -> bool {
        let mut bytes = [MaybeUninit::uninit(); REPORT_BYTES];
        let mut reader = Reader::new(&self.reports, &mut bytes);
        loop {
            match reader.next() {
                Ok(report) if report.events().contains(ReadFlags::MOVE_SELF) => return false,
                Ok(_) => {}
                Err(Errno::WOULDBLOCK) => break,
                Err(_) => return false,
            }
        }
        self.head.metadata().is_ok_and(|head| head.nlink() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::head::HeadFile;
    use super::*;

    /// Longer than any test waits.
    const LONG: Duration = Duration::from_secs(600);

    fn log() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.db");
        std::fs::write(&log, "").unwrap();
        (folder, log)
    }

    #[test]
    fn commits_of_others_wake_and_own_ones_do_not() {
        let (_folder, log) = log();
        let head = HeadFile::open(&log).unwrap().unwrap();
        head.write(7, &[]).unwrap();
        let wakes = Arc::new(Wakes::default());
        let reader = wakes.of_topics(vec![1]);
        let watch = Watch::new(log, Arc::clone(&wakes));
        watch.ensure();
        assert!(reader.wait(0, LONG), "commits before the start may be new to the reader");
        let mut seen = reader.commits();
        for transactions in [8, 10, 12] {
            watch.count_own();
            head.write(transactions, &[]).unwrap();
            // Another process's commit follows, and is the only reason for a wake.
            assert_eq!(reader.commits(), seen);
            head.write(transactions + 1, &[]).unwrap();
            assert!(reader.wait(seen, LONG));
            seen += 1;
            assert_eq!(reader.commits(), seen);
        }
    }

    #[test]
    fn a_replaced_head_is_watched_again() {
        let (_folder, log) = log();
        let wakes = Arc::new(Wakes::default());
        let watch = Watch::new(log.clone(), Arc::clone(&wakes));
        let begin = || watch.state.lock().unwrap().tried = None;
        watch.ensure();
        assert!(watch.state.lock().unwrap().watcher.is_none(), "there is no head yet");
        for transactions in 1..4 {
            let head = HeadFile::open(&log).unwrap().unwrap();
            head.write(transactions, &[]).unwrap();
            begin();
            let seen = wakes.any.commits();
            watch.ensure();
            assert!(wakes.any.wait(seen, LONG));
            std::fs::remove_file(head_path(&log)).unwrap();
            drop(head);
            let is_finished = || {
                let state = watch.state.lock().unwrap();
                state.watcher.as_ref().unwrap().thread.as_ref().unwrap().is_finished()
            };
            while !is_finished() {
                thread::yield_now();
            }
        }
    }
}
