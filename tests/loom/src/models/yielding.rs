//! Model of the embedded log's checkpoint. A thread folds the write-ahead log, and yields to commits meanwhile; for the
//! rest, it makes them wait.

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use crate::yielding::Breakable;

/// A connection. As in SQLite, an interrupt ends a running statement.
#[derive(Default)]
struct Connection {
    statement: Mutex<Statement>,
    interrupted: Condvar,
}

#[derive(Default)]
struct Statement {
    runs: bool,
    is_broken: bool,
}

impl Connection {
    fn interrupt(&self) {
        let mut statement = self.statement.lock().unwrap();
        statement.is_broken = statement.runs;
        self.interrupted.notify_all();
    }

    /// Runs a statement that only an interrupt ends.
    fn run_without_end(&self) {
        let mut statement = self.statement.lock().unwrap();
        statement.runs = true;
        while !statement.is_broken {
            statement = self.interrupted.wait(statement).unwrap();
        }
        *statement = Statement::default();
    }

    /// Runs a statement of two steps; returns true if it was interrupted between them.
    fn run(&self) -> bool {
        self.statement.lock().unwrap().runs = true;
        std::mem::take(&mut *self.statement.lock().unwrap()).is_broken
    }
}

type Fold = Breakable<Arc<Connection>, Arc<Connection>>;

fn take(fold: &Fold) -> impl std::ops::DerefMut<Target = Option<Arc<Connection>>> + '_ {
    fold.take(|connection| connection.interrupt(), thread::yield_now)
}

#[test]
fn a_commit_breaks_off_what_yields_and_nothing_else() {
    let mut model = loom::model::Builder::new();
    // Without this bound, there would be too many orders.
    model.preemption_bound = Some(3);
    model.check(|| {
        let fold = Arc::new(Fold::default());
        *take(&fold) = Some(Arc::default());
        let taken = take(&fold);
        let connection = taken.as_ref().unwrap();
        let of_commit = fold.clone();
        let committing = thread::spawn(move || assert!(!take(&of_commit).as_ref().unwrap().run()));
        fold.run_yielding(connection.clone(), || connection.run_without_end());
        assert!(!connection.run(), "what a commit has to wait for is broken off");
        drop(taken);
        committing.join().unwrap();
    });
}
