//! Symbols by number and by name.
//!
//! ```text
//!  slots   |  0  | hash, number + 1 |  0  | hash, number + 1 | ...     a power of two, at most a quarter of them in use
//!                          |
//!  names   "BINANCE:BTCUSDT", "XETRA:MÜV2", ...                        by number
//! ```
//!
//! Every tick is looked up here, so the table is optimised for short keys. The hash reads 8 bytes at a time, and the 32
//! bits of hash in a slot show whether the name needs to be compared.

use std::hash::{BuildHasher, RandomState};

/// Symbols of one partition, numbered densely from 0 in order of first appearance in its log.
#[derive(Clone, Debug)]
pub struct SymbolTable {
    /// Names by number; the only content that is compared or iterated.
    names: Vec<Box<str>>,
    /// Slots. A free slot is 0; any other has 32 bits of a name's hash, and the name's number plus one. Probing is
    /// linear from the hash's slot.
    slots: Vec<u64>,
    /// Seed of the hashes. It differs between processes, so that no producer can choose names that collide.
    seed: u64,
}

/// Number of slots of an empty table.
const SLOTS_MIN: usize = 64;

impl Default for SymbolTable {
    fn default() -> Self {
        Self { names: Vec::new(), slots: vec![0; SLOTS_MIN], seed: RandomState::new().hash_one(()) }
    }
}

impl SymbolTable {
    /// Returns the number of `name`; a new name gets the next free number.
    pub fn intern(&mut self, name: &str) -> u32 {
        self.find(name.as_bytes()).unwrap_or_else(|| self.push(name))
    }

    /// Returns the number of `name`; `None` if it has none.
    pub fn id(&self, name: &str) -> Option<u32> {
        self.find(name.as_bytes())
    }

    /// Returns the name with this number.
    ///
    /// # Panics
    /// No symbol has the number. Numbers must come from this table.
    pub fn name(&self, id: u32) -> &str {
        &self.names[id as usize]
    }

    /// Returns the number of symbols.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// True if there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the names in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + DoubleEndedIterator {
        self.names.iter().map(|name| &**name)
    }

    /// Forgets the symbols with numbers from `len` on.
    pub fn truncate(&mut self, len: usize) {
        if len < self.names.len() {
            self.names.truncate(len);
            // This is rare: only records that are rejected late have new symbols to remove.
            self.fill(self.slots.len());
        }
    }

    /// Returns the number of the symbol with these bytes. Known names are valid UTF-8, so the bytes need no check.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        let hash = hash(self.seed, name);
        let mut place = self.place(hash);
        loop {
            let slot = self.slots[place];
            if slot == 0 {
                return None;
            }
            let id = slot as u32 - 1;
            if slot >> 32 == hash >> 32 && equal(self.names[id as usize].as_bytes(), name) {
                return Some(id);
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
    }

    /// Numbers a name that has no number yet.
    pub fn push(&mut self, name: &str) -> u32 {
        // 2^32 symbols of at least one byte would need more memory for their state than any machine has.
        let id = u32::try_from(self.names.len())
            .ok()
            .filter(|id| *id < u32::MAX)
            .expect("fewer than 2^32 symbols");
        self.names.push(name.into());
        if self.names.len() * 4 > self.slots.len() {
            self.fill(self.slots.len() * 2);
        } else {
            self.insert(id);
        }
        id
    }

    /// Inserts all names into a new table of `slots` empty slots.
    fn fill(&mut self, slots: usize) {
        self.slots.clear();
        self.slots.resize(slots, 0);
        (0..self.names.len() as u32).for_each(|id| self.insert(id));
    }

    fn insert(&mut self, id: u32) {
        let hash = hash(self.seed, self.names[id as usize].as_bytes());
        let mut place = self.place(hash);
        while self.slots[place] != 0 {
            place = (place + 1) & (self.slots.len() - 1);
        }
        self.slots[place] = hash >> 32 << 32 | u64::from(id + 1);
    }

    /// Returns the first slot to probe.
    #[inline]
    fn place(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }
}

/// Hashes a name by multiplying and folding 8 bytes at a time; the last 8 overlap those before them.
#[inline]
fn hash(seed: u64, name: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(ODD);
        product as u64 ^ (product >> 64) as u64
    };
    let state = fold(seed, name.len() as u64);
    match name.last_chunk::<8>() {
        Some(last) => {
            // The last byte is left out, so that the last 8 bytes, which are always folded, are not folded twice.
            let (words, _) = name[..name.len() - 1].as_chunks::<8>();
            let state = words.iter().fold(state, |state, word| fold(state, u64::from_le_bytes(*word)));
            fold(state, u64::from_le_bytes(*last))
        }
        None => fold(state, name.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))),
    }
}

/// Compares 8 bytes at a time; the last 8 overlap those before them. Names are too short for a call of `memcmp`.
#[inline]
fn equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match (one.last_chunk::<8>(), other.last_chunk::<8>()) {
        (Some(one_last), Some(other_last)) => {
            let (one, other) = (one.as_chunks::<8>().0, other.as_chunks::<8>().0);
            one_last == other_last && one.iter().zip(other).all(|(one, other)| one == other)
        }
        _ => one.iter().eq(other),
    }
}

impl PartialEq for SymbolTable {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
    }
}

impl Eq for SymbolTable {}

impl<S: AsRef<str>> FromIterator<S> for SymbolTable {
    /// Numbers the names in the given order.
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        let mut table = Self::default();
        for name in names {
            table.intern(name.as_ref());
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_first_appearance_and_truncation_takes_them_back() {
        let mut table = SymbolTable::default();
        assert_eq!(["b", "a", "b", "c"].map(|name| table.intern(name)), [0, 1, 0, 2]);
        assert_eq!(table.iter().collect::<Vec<_>>(), ["b", "a", "c"]);
        table.truncate(1);
        assert_eq!((table.len(), table.id("a"), table.id("b")), (1, None, Some(0)));
        assert_eq!(table.intern("c"), 1);
        assert_eq!(table, ["b", "c"].into_iter().collect());
        table.truncate(9);
        assert_eq!((table.len(), table.name(1)), (2, "c"));
        table.truncate(0);
        assert!(table.is_empty() && table == SymbolTable::default());
    }

    /// Compares the table with a plain list, over many growths and truncations, with names of every length and many
    /// duplicates.
    #[test]
    fn agrees_with_a_list() {
        let (mut table, mut list) = (SymbolTable::default(), Vec::<String>::new());
        for step in 0..if cfg!(miri) { 200 } else { 20_000_usize } {
            let number = step * 7919 % 1009;
            let name = format!("{}{number}{}", "V:".repeat(number % 13), "X".repeat(number % 29));
            let expected = list.iter().position(|known| *known == name).unwrap_or_else(|| {
                list.push(name.clone());
                list.len() - 1
            });
            assert_eq!(table.intern(&name) as usize, expected);
            if step % 997 == 0 {
                let len = list.len() / 2;
                list.truncate(len);
                table.truncate(len);
            }
        }
        assert!(table.iter().eq(list.iter()));
        assert_eq!(table.id(""), None);
        assert_eq!(table.intern(""), table.len() as u32 - 1);
    }

    /// Names that differ in any one byte, or in length, are distinct.
    #[test]
    fn every_byte_counts() {
        for length in 0..70 {
            let mut table = SymbolTable::default();
            let base = "a".repeat(length);
            assert_eq!(table.intern(&base), 0);
            for place in 0..length {
                let mut other = base.clone();
                other.replace_range(place..=place, "b");
                assert_eq!((table.id(&other), table.intern(&other)), (None, place as u32 + 1));
            }
            assert_eq!(table.id(&"a".repeat(length + 1)), None);
            assert_eq!(table.id(&base), Some(0));
        }
    }
}
