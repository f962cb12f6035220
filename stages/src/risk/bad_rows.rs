//! Rows of a request that have no numbers: each gets a row of the answer with the reason, and the others are computed.

use warptape_events::risk::RiskError;

/// Rows without numbers, by their place in the request, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct BadRows(Vec<(usize, String)>);

impl BadRows {
    /// Divides the rows that are read into good and bad ones. If none is good, the error is that of the first.
    pub(super) fn divide<T>(
        read: impl Iterator<Item = Result<T, RiskError>>,
    ) -> Result<(Vec<T>, Self), RiskError> {
        let (mut good, mut bad, mut first) = (Vec::new(), Vec::new(), None);
        for (place, row) in read.enumerate() {
            match row {
                Ok(row) => good.push(row),
                Err(error) => {
                    bad.push((place, said(&error)));
                    first.get_or_insert(error);
                }
            }
        }
        match first {
            Some(error) if good.is_empty() => Err(error),
            _ => Ok((good, Self(bad))),
        }
    }

    /// Places and reasons.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &str)> {
        self.0.iter().map(|(place, why)| (*place, why.as_str()))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes of the reasons.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|(_, why)| why.len()).sum()
    }

    /// True if the row at a place of the request has numbers.
    pub(super) fn is_good(&self, place: usize) -> bool {
        self.0.binary_search_by_key(&place, |(bad, _)| *bad).is_err()
    }

    /// The places of the good rows among `rows` rows.
    pub(super) fn good_places(&self, rows: usize) -> Vec<usize> {
        (0..rows).filter(|&place| self.is_good(place)).collect()
    }

    /// Adds further bad rows, by their places among the good ones of `rows` rows.
    pub(super) fn add_good(&mut self, rows: usize, bad: Vec<(usize, String)>) {
        let places = self.good_places(rows);
        self.0.extend(bad.into_iter().map(|(good, why)| (places[good], why)));
        self.0.sort_by_key(|(place, _)| *place);
    }

    /// The results of the good rows, with results for the bad ones between them, in the order of the request.
    pub(super) fn between<T>(&self, found: Vec<T>, without: impl Fn(usize, String) -> T) -> Vec<T> {
        let mut all = Vec::with_capacity(found.len() + self.0.len());
        let mut found = found.into_iter();
        for (place, why) in &self.0 {
            all.extend(found.by_ref().take(place - all.len()));
            all.push(without(*place, why.clone()));
        }
        all.extend(found);
        all
    }
}

/// `field: message`.
pub(super) fn said(error: &RiskError) -> String {
    format!("{}: {}", error.field, error.message)
}
