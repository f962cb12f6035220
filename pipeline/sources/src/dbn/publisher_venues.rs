//! Venues of a data set: one for each of its publishers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use ::dbn::{Dataset, Publisher};

/// Names of venues by publisher. Books of two publishers are different books, so they are different symbols.
pub(super) struct PublisherVenues {
    /// Name of the data set, or the name that the user gave it.
    dataset: String,
    /// The data set's only publisher; `None` if it has several.
    only: Option<u16>,
    /// Names returned so far.
    names: HashMap<u16, String>,
}

impl PublisherVenues {
    pub(super) fn new(dataset: &str, venue: Option<&str>) -> PublisherVenues {
        let only = match dataset.parse().map(|dataset: Dataset| dataset.publishers()) {
            Ok(&[publisher]) => Some(publisher.into()),
            _ => None,
        };
        PublisherVenues { dataset: venue.unwrap_or(dataset).to_owned(), only, names: HashMap::new() }
    }

    /// Returns the venue of a publisher's records. The only publisher, and consolidated records, which have no
    /// publisher (0), get the data set's name. For others, the publisher's venue is appended, or the publisher's number
    /// if the crate `dbn` does not know it.
    pub(super) fn name(&mut self, publisher_id: u16) -> &str {
        if publisher_id == 0 || self.only == Some(publisher_id) {
            return &self.dataset;
        }
        match self.names.entry(publisher_id) {
            Entry::Occupied(name) => name.into_mut(),
            Entry::Vacant(place) => place.insert(match Publisher::try_from(publisher_id) {
                Ok(publisher) => format!("{}.{}", self.dataset, publisher.venue().as_str()),
                Err(_) => format!("{}.{publisher_id}", self.dataset),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_publisher_is_a_venue_but_for_the_only_one() {
        for (dataset, venue, publisher_id, expected) in [
            ("GLBX.MDP3", None, 1, "GLBX.MDP3"),
            ("GLBX.MDP3", Some("CME"), 1, "CME"),
            ("GLBX.MDP3", None, 0, "GLBX.MDP3"),
            ("GLBX.MDP3", None, 2, "GLBX.MDP3.XNAS"),
            ("DBEQ.BASIC", None, 39, "DBEQ.BASIC.XCHI"),
            ("DBEQ.BASIC", None, 40, "DBEQ.BASIC.XCIS"),
            ("DBEQ.BASIC", Some("US"), 40, "US.XCIS"),
            ("DBEQ.BASIC", None, 65_000, "DBEQ.BASIC.65000"),
            ("NOT.KNOWN", None, 65_000, "NOT.KNOWN.65000"),
            ("NOT.KNOWN", None, 0, "NOT.KNOWN"),
        ] {
            let mut venues = PublisherVenues::new(dataset, venue);
            for _ in 0..2 {
                assert_eq!(venues.name(publisher_id), expected, "{dataset} {publisher_id}");
            }
        }
    }
}
