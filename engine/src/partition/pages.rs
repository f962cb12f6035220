//! Pages of evicted symbols: pages still in memory, and pages that a record waits for.
//!
//! ```text
//!   barrier ──► lane writes the page ──► held here ──► snapshot is committed ──► page is found in the log ──► let go
//!   record of a symbol that left ──► held here, or read from the log ──► its symbols are taken back ──► the record is read again
//! ```

use std::collections::BTreeMap;

use warptape_stages::{Evicted, PageState};

/// A page in the log: its number, and the offset of the snapshot that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageId {
    /// Its number in the partition.
    pub page: i32,
    /// Offset of the snapshot.
    pub offset: i64,
}

/// A page with its bytes; `None` if it is not in the log.
pub type ReadPage = (PageId, Option<Vec<u8>>);

/// The pages of one partition.
#[derive(Default)]
pub(super) struct Pages {
    held: BTreeMap<PageId, Held>,
    /// Numbers of the pages that a record waits for; empty if no record waits.
    wanted: Vec<i32>,
    /// Number of the requested read of wanted pages; `None` if none was requested.
    reading: Option<u64>,
}

struct Held {
    bytes: Vec<u8>,
    /// True if a search for the page in the log is under way.
    is_sought: bool,
}

/// The next action for a record that waits for pages.
pub(crate) enum Need {
    /// None: no record waits, or a read or a page is under way.
    Nothing,
    /// Read these pages from the log.
    Read(Vec<PageId>),
    /// Take the symbols of these pages back: they are all pages of the record, and all are in memory.
    Here(Vec<PageId>),
}

impl Pages {
    /// Keeps a page that a lane has written.
    pub(super) fn hold(&mut self, page: &PageState) {
        let id = PageId { page: page.page, offset: page.barrier };
        self.held.insert(id, Held { bytes: page.bytes.clone(), is_sought: false });
    }

    /// Notes that a record waits for pages.
    pub(super) fn want(&mut self, pages: Vec<i32>) {
        (self.wanted, self.reading) = (pages, None);
    }

    /// True if a record waits.
    pub(super) fn waits(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// The next action for the record that waits. `is_coming` is true for a snapshot's offset if lanes have not yet
    /// written all its pages.
    pub(super) fn need(&self, evicted: &Evicted, is_coming: impl Fn(i64) -> bool) -> Need {
        let id = |page: &i32| PageId { page: *page, offset: evicted.pages()[page].offset };
        let wanted: Vec<PageId> = self.wanted.iter().map(id).collect();
        let missing: Vec<PageId> = wanted.iter().copied().filter(|id| !self.held.contains_key(id)).collect();
        if wanted.is_empty() || self.reading.is_some() || missing.iter().any(|id| is_coming(id.offset)) {
            Need::Nothing
        } else if missing.is_empty() {
            Need::Here(wanted)
        } else {
            Need::Read(missing)
        }
    }

    /// Notes a requested read.
    pub(super) fn begin_reading(&mut self, number: u64) {
        self.reading = Some(number);
    }

    /// True if this read is awaited.
    pub(super) fn awaits(&self, number: u64) -> bool {
        self.reading == Some(number)
    }

    /// Adds the pages of the awaited read.
    pub(super) fn end_reading(&mut self, pages: Vec<(PageId, Vec<u8>)>) {
        self.reading = None;
        let held = pages.into_iter().map(|(id, bytes)| (id, Held { bytes, is_sought: true }));
        self.held.extend(held);
    }

    /// Takes the bytes of a page in memory, and ends the wait of the record.
    pub(super) fn take(&mut self, id: PageId) -> Vec<u8> {
        self.wanted.clear();
        self.held.remove(&id).expect("the page is here").bytes
    }

    /// Pages of committed snapshots, up to an offset, that were not searched for so far.
    pub(super) fn begin_to_seek(&mut self, committed: i64) -> Vec<PageId> {
        let mut sought = Vec::new();
        for (id, held) in self.held.iter_mut().filter(|(id, _)| id.offset <= committed) {
            if !std::mem::replace(&mut held.is_sought, true) {
                sought.push(*id);
            }
        }
        sought
    }

    /// Frees pages that were found in the log, unless a record waits for them. Pages that were not found are searched
    /// for again after the next commit, because a log may show them a little later.
    pub(super) fn let_go(&mut self, sought: &[PageId], found: &[PageId]) {
        self.held.retain(|id, _| !found.contains(id) || self.wanted.contains(&id.page));
        for id in sought.iter().filter(|id| !found.contains(id)) {
            if let Some(held) = self.held.get_mut(id) {
                held.is_sought = false;
            }
        }
    }
}
