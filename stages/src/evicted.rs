//! Symbols whose indicators are not in memory, and the page of the partition's snapshots with each one's state.
//!
//! ```text
//!   idle symbols of a group ──► a page of their states ──► log     memory keeps: name, last prices, trade ids, number of the page
//!   a tick of one of them   ◄── all symbols of the page ◄── log
//! ```
//!
//! Pages change no output: a symbol leaves with no time bar open, so that nothing happens to its state until its next
//! tick.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::StageError;
use crate::bytes::{get_bytes, get_i64, get_u32, get_u64, get_version, put_i64, put_u32, put_u64};
use crate::intake::STATE_VERSION as INTAKE_VERSION;

/// Most symbols of a page.
pub(crate) const PAGE_SYMBOLS_MAX: usize = 64;
/// Numbers of pages: more than a partition may have symbols.
const PAGES_MAX: i32 = 1 << 25;
/// Version of the bytes of a page.
const PAGE_VERSION: u32 = 1;

/// The evicted symbols of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evicted {
    pages: BTreeMap<i32, Page>,
    /// The page of each symbol.
    by_symbol: BTreeMap<u32, i32>,
    /// Pages that were read back, with the offset up to which snapshots have them.
    retired: BTreeMap<i32, i64>,
}

/// A page: symbols of one group that left memory at the same barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The barrier, which is the offset of the snapshot with the page.
    pub offset: i64,
    /// Numbers of the symbols, ascending.
    pub symbols: Vec<u32>,
}

impl Evicted {
    /// The evicted symbols of an intake whose state begins with these bytes.
    ///
    /// # Errors
    /// If they are no such bytes, or too few.
    pub fn of_intake(mut bytes: &[u8]) -> Result<Self, StageError> {
        let bytes = &mut bytes;
        get_version(bytes, "state of an intake", INTAKE_VERSION)?;
        get_u64(bytes, "configuration")?;
        Self::read(bytes)
    }

    /// The evicted symbols of these pages.
    pub fn of_pages(pages: impl IntoIterator<Item = (i32, Page)>) -> Self {
        let mut evicted = Self::default();
        pages.into_iter().for_each(|(number, page)| evicted.insert(number, page));
        evicted
    }

    /// True if all symbols are in memory.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Number of symbols.
    pub fn symbols(&self) -> usize {
        self.by_symbol.len()
    }

    /// The pages by number.
    pub fn pages(&self) -> &BTreeMap<i32, Page> {
        &self.pages
    }

    /// The page of a symbol; `None` if the symbol is in memory.
    pub fn page_of(&self, symbol: u32) -> Option<i32> {
        self.by_symbol.get(&symbol).copied()
    }

    /// The greatest number of an evicted symbol; `None` if there is none.
    pub(crate) fn greatest(&self) -> Option<u32> {
        self.by_symbol.last_key_value().map(|(symbol, _)| *symbol)
    }

    /// The least free numbers for pages.
    pub(crate) fn free_numbers(&self, count: usize) -> Vec<i32> {
        let is_taken = |number: &i32| self.pages.contains_key(number) || self.retired.contains_key(number);
        (0..PAGES_MAX).filter(|number| !is_taken(number)).take(count).collect()
    }

    /// Makes a page of symbols.
    pub(crate) fn add(&mut self, number: i32, offset: i64, symbols: Vec<u32>) {
        self.insert(number, Page { offset, symbols });
    }

    /// Takes a page out, which snapshots up to this offset have.
    pub(crate) fn take(&mut self, number: i32, offset: i64) -> Option<Page> {
        let page = self.pages.remove(&number)?;
        page.symbols.iter().for_each(|symbol| _ = self.by_symbol.remove(symbol));
        self.retired.insert(number, offset);
        Some(page)
    }

    /// Frees the numbers of pages that were read back before a snapshot, because it needs none of them.
    pub(crate) fn free_before(&mut self, snapshot: i64) {
        self.retired.retain(|_, offset| *offset >= snapshot);
    }

    fn insert(&mut self, number: i32, page: Page) {
        self.by_symbol.extend(page.symbols.iter().map(|symbol| (*symbol, number)));
        self.pages.insert(number, page);
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_u32(out, self.pages.len() as u32);
        for (number, Page { offset, symbols }) in &self.pages {
            put_u32(out, *number as u32);
            put_i64(out, *offset);
            put_u32(out, symbols.len() as u32);
            symbols.iter().for_each(|symbol| put_u32(out, *symbol));
        }
        put_u32(out, self.retired.len() as u32);
        for (number, offset) in &self.retired {
            put_u32(out, *number as u32);
            put_i64(out, *offset);
        }
    }

    pub(crate) fn read(bytes: &mut &[u8]) -> Result<Self, StageError> {
        let number = |bytes: &mut &[u8]| {
            let number = get_u32(bytes, "page number")?;
            let is_one = |number: &i32| *number < PAGES_MAX;
            let number_or = i32::try_from(number).ok().filter(is_one);
            number_or.ok_or_else(|| StageError::Damaged { found: format!("page {number}") })
        };
        let mut evicted = Self::default();
        for _ in 0..get_u32(bytes, "page count")? {
            let number = number(bytes)?;
            let offset = get_i64(bytes, "offset of a page")?;
            let mut symbols = Vec::new();
            for _ in 0..get_u32(bytes, "symbols of a page")? {
                let symbol = get_u32(bytes, "symbol of a page")?;
                if symbols.last().is_some_and(|last| *last >= symbol)
                    || evicted.by_symbol.contains_key(&symbol)
                {
                    let found = format!("symbol {symbol} stands twice, or out of order, in pages");
                    return Err(StageError::Damaged { found });
                }
                symbols.push(symbol);
            }
            if symbols.is_empty() || evicted.pages.contains_key(&number) {
                return Err(StageError::Damaged {
                    found: format!("page {number} is empty, or stands twice"),
                });
            }
            evicted.insert(number, Page { offset, symbols });
        }
        for _ in 0..get_u32(bytes, "count of retired pages")? {
            let number = number(bytes)?;
            evicted.retired.insert(number, get_i64(bytes, "offset of a retired page")?);
        }
        Ok(evicted)
    }
}

/// The bytes of a page: the states of its symbols, each as that of a group with no other symbol.
pub(crate) fn write_page(config_fingerprint: u64, states: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    put_u32(&mut out, PAGE_VERSION);
    put_u64(&mut out, config_fingerprint);
    put_u32(&mut out, states.len() as u32);
    for state in states {
        put_u32(&mut out, state.len() as u32);
        out.extend_from_slice(state);
    }
    out
}

/// The states in a page that [`write_page`] wrote.
pub(crate) fn read_page(config_fingerprint: u64, mut bytes: &[u8]) -> Result<Vec<Arc<[u8]>>, StageError> {
    let bytes = &mut bytes;
    get_version(bytes, "page", PAGE_VERSION)?;
    let found = get_u64(bytes, "configuration")?;
    if found != config_fingerprint {
        return Err(StageError::OtherConfig { expected: config_fingerprint, found });
    }
    let mut states = Vec::new();
    for _ in 0..get_u32(bytes, "states of a page")? {
        let length = get_u32(bytes, "length of a state")? as usize;
        states.push(get_bytes(bytes, length, "state")?.into());
    }
    if bytes.is_empty() {
        Ok(states)
    } else {
        Err(StageError::Damaged { found: format!("{} bytes after the end", bytes.len()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_was_read_back_keeps_its_number_until_no_snapshot_needs_it() {
        let mut evicted = Evicted::default();
        let add = |evicted: &mut Evicted, offset, symbols: &[u32]| {
            let number = evicted.free_numbers(1)[0];
            evicted.add(number, offset, symbols.to_vec());
            number
        };
        assert_eq!([add(&mut evicted, 10, &[1, 4]), add(&mut evicted, 10, &[2])], [0, 1]);
        assert_eq!((evicted.page_of(4), evicted.page_of(3), evicted.symbols()), (Some(0), None, 3));
        assert_eq!(evicted.take(0, 15).map(|page| page.symbols), Some(vec![1, 4]));
        assert_eq!((evicted.take(0, 16), evicted.page_of(4)), (None, None));
        // The snapshot at 10 still has the page, and is the newest in the log while that at 20 goes out.
        evicted.free_before(10);
        assert_eq!(add(&mut evicted, 20, &[1]), 2);
        evicted.free_before(20);
        assert_eq!(add(&mut evicted, 30, &[4]), 0);
    }

    #[test]
    fn what_was_written_reads_back_and_damages_are_errors() {
        let mut evicted = Evicted::default();
        evicted.add(0, 10, vec![1, 4]);
        evicted.add(1, 10, vec![2, 7]);
        evicted.take(0, 12);
        let mut bytes = Vec::new();
        evicted.write(&mut bytes);
        assert_eq!(Evicted::read(&mut bytes.as_slice()).expect("what was written"), evicted);
        assert!((0..bytes.len()).all(|length| Evicted::read(&mut &bytes[..length]).is_err()));
        let twice = [&bytes[..24], &[2, 0, 0, 0]].concat();
        assert!(Evicted::read(&mut twice.as_slice()).is_err());

        let page = write_page(7, &[vec![1, 2], vec![], vec![3]]);
        let states = read_page(7, &page).expect("what was written");
        assert_eq!(states.iter().map(|state| state.len()).collect::<Vec<_>>(), [2, 0, 1]);
        assert!(read_page(8, &page).is_err());
        assert!((0..page.len()).all(|length| read_page(7, &page[..length]).is_err()));
        assert!(read_page(7, &[&page[..], &[0]].concat()).is_err());
    }
}
