//! Model of a commit while the group revokes a partition.

use loom::sync::{Arc, Mutex};
use loom::thread;

use crate::fence::Fence;

/// The broker's state: the current membership, and each committed assignment with the membership of its commit.
#[derive(Default)]
struct Group {
    membership: u64,
    committed: Vec<(u64, u64)>,
}

/// Commits like a Kafka transaction: it first reads the membership, then asks the fence. The group accepts only commits
/// with the current membership.
fn commit(group: &Mutex<Group>, fence: &Fence, assignment: u64) {
    let membership = group.lock().unwrap().membership;
    if !fence.is_open(0, assignment) {
        return;
    }
    let mut group = group.lock().unwrap();
    if group.membership == membership {
        group.committed.push((assignment, membership));
    }
}

#[test]
fn nothing_commits_for_a_partition_that_was_let_go() {
    loom::model(|| {
        let (group, fence) = (Arc::new(Mutex::new(Group::default())), Fence::default());
        fence.open(0, 0);
        let (of_commit, asked) = (group.clone(), fence.clone());
        let committing = thread::spawn(move || {
            commit(&of_commit, &asked, 0);
            commit(&of_commit, &asked, 0);
        });
        // The partition is released and taken back, so another process may have owned it in between.
        fence.close(0);
        group.lock().unwrap().membership = 1;
        fence.open(0, 1);
        commit(&group, &fence, 1);
        committing.join().unwrap();
        let committed = &group.lock().unwrap().committed;
        assert!(committed.iter().all(|(assignment, membership)| assignment == membership), "{committed:?}");
        assert!(committed.contains(&(1, 1)));
    });
}

#[test]
fn nothing_opens_beside_the_end_of_the_source() {
    loom::model(|| {
        let (group, fence) = (Arc::new(Mutex::new(Group::default())), Fence::default());
        let (of_source, closed) = (group.clone(), fence.clone());
        let source = thread::spawn(move || {
            closed.close_all();
            // The consumer leaves the group, so the next membership belongs to another process.
            of_source.lock().unwrap().membership = 1;
        });
        fence.open(0, 0);
        commit(&group, &fence, 0);
        source.join().unwrap();
        commit(&group, &fence, 0);
        assert!(group.lock().unwrap().committed.iter().all(|(_, membership)| *membership == 0));
    });
}
