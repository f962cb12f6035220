//! An entry for each venue that symbols name.

use std::collections::HashMap;

/// Greatest number of venues with separate entries; all others share one.
const VENUES_MAX: usize = 1_024;

/// An entry of type `T` for each venue.
#[derive(Debug)]
pub(super) struct Venues<T> {
    venues: Vec<(String, T)>,
    /// Indexes in `venues`, by name.
    places: HashMap<String, usize>,
    /// Index of the last entry used, because rows of one venue mostly follow each other.
    last: usize,
}

impl<T> Default for Venues<T> {
    fn default() -> Venues<T> {
        Venues { venues: Vec::new(), places: HashMap::new(), last: 0 }
    }
}

impl<T> Venues<T> {
    /// Returns the entry of a symbol's venue. A new venue begins with the result of `new` for its name.
    pub(super) fn of(&mut self, symbol: &str, new: impl FnOnce(&str) -> T) -> &mut T {
        let name = symbol.split_once(':').map_or("", |(venue, _)| venue);
        if self.venues.get(self.last).is_none_or(|(last, _)| last != name) {
            self.last = self.place(name, new);
        }
        &mut self.venues[self.last].1
    }

    /// Returns the entry of each venue.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.venues.iter().map(|(_, of_venue)| of_venue)
    }

    /// Returns the name under which the last symbol's venue is kept.
    pub(super) fn last_name(&self) -> &str {
        &self.venues[self.last].0
    }

    fn place(&mut self, name: &str, new: impl FnOnce(&str) -> T) -> usize {
        let is_known = self.places.contains_key(name);
        let name = if is_known || self.venues.len() < VENUES_MAX { name } else { "" };
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.venues.push((name.to_owned(), new(name)));
        self.places.insert(name.to_owned(), self.venues.len() - 1);
        self.venues.len() - 1
    }
}
