//! Symbols by number and by name.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Symbols of one partition, numbered densely from 0 in order of first appearance in its log.
#[derive(Clone, Debug, Default)]
pub struct SymbolTable {
    /// The numbering; the only content that is compared or iterated.
    names: Vec<Box<str>>,
    /// Numbers by the hash of their name.
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl SymbolTable {
    /// The number of `name`, which is the next free one when the name is new.
    pub fn intern(&mut self, name: &str) -> u32 {
        self.find(name.as_bytes()).unwrap_or_else(|| self.push(name))
    }

    /// The number of `name` if it has one.
    pub fn id(&self, name: &str) -> Option<u32> {
        self.find(name.as_bytes())
    }

    /// The name with this number.
    ///
    /// # Panics
    /// If the number was never given: numbers come from this table only.
    pub fn name(&self, id: u32) -> &str {
        &self.names[id as usize]
    }

    /// Number of symbols.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Names in order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + DoubleEndedIterator {
        self.names.iter().map(|name| &**name)
    }

    /// Forgets the symbols with numbers from `len` on.
    pub fn truncate(&mut self, len: usize) {
        while self.names.len() > len {
            let id = (self.names.len() - 1) as u32;
            let hash = self.hasher.hash_one(self.names[id as usize].as_bytes());
            if let Ok(entry) = self.ids.find_entry(hash, |&other| other == id) {
                entry.remove();
            }
            self.names.pop();
        }
    }

    /// The number of the symbol with these bytes. Any known name is valid UTF-8, so the bytes need no check before.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        self.ids.find(hash, |&id| self.names[id as usize].as_bytes() == name).copied()
    }

    /// Numbers a name that has no number yet.
    pub(crate) fn push(&mut self, name: &str) -> u32 {
        // A partition's records would have to name 2^32 symbols of at least one byte; the state for them does not fit.
        let id = u32::try_from(self.names.len()).expect("fewer than 2^32 symbols in a partition");
        self.names.push(name.into());
        let Self { names, ids, hasher } = self;
        let hash = hasher.hash_one(name.as_bytes());
        ids.insert_unique(hash, id, |&other| hasher.hash_one(names[other as usize].as_bytes()));
        id
    }
}

impl PartialEq for SymbolTable {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
    }
}

impl Eq for SymbolTable {}

impl<S: AsRef<str>> FromIterator<S> for SymbolTable {
    /// Numbers the names in the order given.
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

    /// Against a plain list, over many growths and cuts.
    #[test]
    fn agrees_with_a_list() {
        let (mut table, mut list) = (SymbolTable::default(), Vec::<String>::new());
        for step in 0..20_000_usize {
            let name = format!("X:{}", step * 7919 % 3001);
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
    }
}
