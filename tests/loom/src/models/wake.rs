//! Model of a reader of the embedded log beside a producer of the same process.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use loom::sync::atomic::AtomicU32;
use loom::thread;

use crate::wake::{Wake, Wakes};

/// The content of the file. Only the modelled operations order its changes.
#[derive(Default)]
struct File {
    records: AtomicU32,
    wakes: Wakes,
}

impl File {
    fn commit(&self, topic: i64) {
        self.records.fetch_add(1, Relaxed);
        self.wakes.notify(&[topic]);
    }

    /// Reads like a polling consumer: it reads the number of commits before it checks for records.
    fn read_until(&self, wake: &Wake, records: u32) {
        loop {
            let commits = wake.commits();
            if self.records.load(Relaxed) >= records {
                return;
            }
            wake.wait(commits, Duration::MAX);
        }
    }
}

#[test]
fn no_commit_is_slept_through() {
    loom::model(|| {
        let file = Arc::new(File::default());
        let producer = file.clone();
        let committed = thread::spawn(move || {
            producer.commit(3);
            producer.commit(3);
        });
        let wake = file.wakes.of_topics(vec![1, 3]);
        file.read_until(&wake, 1);
        file.read_until(&wake, 2);
        committed.join().unwrap();
    });
}

#[test]
fn a_reader_that_leaves_holds_nobody_up() {
    loom::model(|| {
        let file = Arc::new(File::default());
        let [producer, other] = [file.clone(), file.clone()];
        let committed = thread::spawn(move || producer.commit(3));
        let left = thread::spawn(move || drop(other.wakes.of_topics(vec![3])));
        let wake = file.wakes.of_topics(vec![3]);
        file.read_until(&wake, 1);
        committed.join().unwrap();
        left.join().unwrap();
    });
}
