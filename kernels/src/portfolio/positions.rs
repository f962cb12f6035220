//! Positions, and their books.

use std::ops::RangeInclusive;

use thiserror::Error;

use std::sync::Arc;

use super::revaluation::{Held, HeldTerms, unit_value};
use super::tree;
use crate::isa::Isa;
use crate::pricing::options::check;
use crate::pricing::{
    AmericanOption, AssetMarket, DigitalPayout, EXPIRY_YEARS_RANGE, ExerciseBoundary, OptionKind,
    PRICE_RANGE, ParameterError,
};

/// Greatest number of assets. Their covariance has the square of that many numbers.
pub const ASSETS_MAX: usize = 4_096;
/// Greatest number of positions.
pub const POSITIONS_MAX: usize = 1 << 24;
/// Greatest number of books.
pub const BOOKS_MAX: usize = 65_536;
/// Range of quantities, in units of the asset or in contracts on one unit; short positions are negative.
pub const QUANTITY_RANGE: RangeInclusive<f64> = -1e15..=1e15;

/// The instrument of a position. Formulas give the value of one unit, in the currency of the asset's price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instrument {
    /// The asset itself: `S`.
    Spot,
    /// A forward at an agreed price: `S·e^{−qT} − K·e^{−rT}`.
    Forward {
        /// Price to be paid.
        strike: f64,
        /// Years until the payment.
        expiry_years: f64,
    },
    /// A European option, valued by the formula of Black, Scholes and Merton as in [`Greeks`](crate::pricing::Greeks).
    Option {
        /// Call or put.
        kind: OptionKind,
        /// Strike.
        strike: f64,
        /// Years until expiry; 0 for an option that expires now, whose value is its payoff.
        expiry_years: f64,
    },
    /// An American option, valued by its exercise boundary, which must be found first: [`Portfolio::with_boundaries`].
    American {
        /// Call or put.
        kind: OptionKind,
        /// Strike.
        strike: f64,
        /// Years until expiry; 0 for an option that expires now.
        expiry_years: f64,
    },
    /// A European option that pays all or nothing: cash, worth `amount·e^{−rT}·Φ(w·d₂)`, or the asset, worth
    /// `amount·S·e^{−qT}·Φ(w·d₁)`.
    Digital {
        /// A call pays above the strike, a put below.
        kind: OptionKind,
        /// Strike.
        strike: f64,
        /// Years until expiry; 0 for an option that expires now.
        expiry_years: f64,
        /// The payout: cash or the asset.
        pays: DigitalPayout,
        /// Amount of cash, or units of the asset.
        amount: f64,
    },
}

/// A position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Number of the asset.
    pub asset: usize,
    /// Number of its book.
    pub book: usize,
    /// Quantity of the instrument.
    pub quantity: f64,
    /// The instrument that is held.
    pub instrument: Instrument,
}

/// Reasons for which a portfolio is refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PortfolioError {
    /// A number of an asset's market is out of range.
    #[error("asset {asset}: {error}")]
    Asset {
        /// Number of the asset.
        asset: usize,
        /// The error.
        error: ParameterError,
    },
    /// A number of a position is out of range.
    #[error("position {position}: {error}")]
    Position {
        /// Number of the position.
        position: usize,
        /// The error.
        error: ParameterError,
    },
    /// A position names an asset or a book that does not exist.
    #[error("position {position}: {field} is {value}, but there are {count} of them, numbered from 0")]
    Unknown {
        /// Number of the position.
        position: usize,
        /// `asset` or `book`.
        field: &'static str,
        /// The named number.
        value: usize,
        /// Number of assets or books.
        count: usize,
    },
    /// The books do not form a tree.
    #[error(
        "book {book}: its parent is {parent:?}: the first book, which is all, must have none, and each other one \
         that comes before it"
    )]
    Parent {
        /// Number of the book.
        book: usize,
        /// Number of its parent, as given.
        parent: Option<usize>,
    },
    /// There are more assets, positions or books than are allowed.
    #[error("there are {count} {field}: give {most} at most")]
    TooMany {
        /// `assets`, `positions` or `books`.
        field: &'static str,
        /// Given number.
        count: usize,
        /// The limit.
        most: usize,
    },
}

/// Positions in assets, and the tree of books that contains them. Book 0 is the whole portfolio.
#[derive(Clone, Debug, PartialEq)]
pub struct Portfolio {
    assets: Vec<AssetMarket>,
    positions: Vec<Position>,
    parents: Vec<Option<usize>>,
    /// The positions of each book, and the books directly within it, each by number.
    members: Vec<Members>,
    /// Value of one unit of each position now.
    units: Vec<f64>,
    /// True for each asset whose price is that of a future.
    futures: Vec<bool>,
    /// The exercise boundary of each position; `None` for other instruments and for boundaries that are not found yet.
    boundaries: Vec<Option<Arc<ExerciseBoundary>>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Members {
    pub(super) positions: Vec<usize>,
    pub(super) books: Vec<usize>,
}

impl Portfolio {
    /// Checks all parts. `parents` has the parent of each book: `None` for book 0, and a lower number for each other
    /// book.
    pub fn new(
        assets: Vec<AssetMarket>,
        parents: Vec<Option<usize>>,
        positions: Vec<Position>,
    ) -> Result<Self, PortfolioError> {
        let futures = vec![false; assets.len()];
        Self::with_futures(assets, &futures, parents, positions)
    }

    /// As [`Self::new`], with futures: an asset whose price is that of a future has its rate as dividend yield, even if
    /// rates move.
    pub fn with_futures(
        assets: Vec<AssetMarket>,
        futures: &[bool],
        parents: Vec<Option<usize>>,
        positions: Vec<Position>,
    ) -> Result<Self, PortfolioError> {
        assert_eq!(futures.len(), assets.len(), "a word on each asset");
        for (field, count, most) in [
            ("assets", assets.len(), ASSETS_MAX),
            ("books", parents.len(), BOOKS_MAX),
            ("positions", positions.len(), POSITIONS_MAX),
        ] {
            if count > most {
                return Err(PortfolioError::TooMany { field, count, most });
            }
        }
        for (asset, market) in assets.iter().enumerate() {
            market.check().map_err(|error| PortfolioError::Asset { asset, error })?;
        }
        let mut members = vec![Members::default(); parents.len()];
        for (book, &parent) in parents.iter().enumerate() {
            match parent {
                None if book == 0 => {}
                Some(above) if above < book => members[above].books.push(book),
                _ => return Err(PortfolioError::Parent { book, parent }),
            }
        }
        let mut portfolio = Self {
            assets,
            positions: Vec::new(),
            parents,
            members,
            units: Vec::new(),
            futures: futures.to_vec(),
            boundaries: Vec::new(),
        };
        for (number, position) in positions.iter().enumerate() {
            portfolio.check(number, position)?;
            portfolio.members[position.book].positions.push(number);
        }
        portfolio.boundaries = vec![None; positions.len()];
        portfolio.positions = positions;
        portfolio.units = (0..portfolio.positions.len()).map(|number| portfolio.unit_now(number)).collect();
        Ok(portfolio)
    }

    fn check(&self, position: usize, given: &Position) -> Result<(), PortfolioError> {
        for (field, value, count) in
            [("asset", given.asset, self.assets.len()), ("book", given.book, self.parents.len())]
        {
            if value >= count {
                return Err(PortfolioError::Unknown { position, field, value, count });
            }
        }
        let checked = check("quantity", given.quantity, QUANTITY_RANGE).and(match given.instrument {
            Instrument::Spot => Ok(()),
            Instrument::Forward { strike, expiry_years }
            | Instrument::Option { strike, expiry_years, .. }
            | Instrument::American { strike, expiry_years, .. } => check_terms(strike, expiry_years),
            Instrument::Digital { strike, expiry_years, amount, .. } => {
                check_terms(strike, expiry_years).and(check("amount", amount, PRICE_RANGE))
            }
        });
        checked.map_err(|error| PortfolioError::Position { position, error })
    }

    /// The American options that have a boundary, with the numbers of their positions.
    pub fn americans(&self) -> Vec<(usize, AmericanOption)> {
        let american = |(number, position): (usize, &Position)| match position.instrument {
            Instrument::American { kind, strike, expiry_years } if expiry_years > 0.0 => {
                let market = self.assets[position.asset];
                Some((number, AmericanOption { market, kind, strike, expiry_years }))
            }
            _ => None,
        };
        self.positions.iter().enumerate().filter_map(american).collect()
    }

    /// The portfolio with the boundaries of its American options, in the order of [`Self::americans`].
    #[must_use]
    pub fn with_boundaries(mut self, isa: Isa, found: Vec<Arc<ExerciseBoundary>>) -> Self {
        let americans = self.americans();
        assert_eq!(americans.len(), found.len(), "a boundary for each");
        for ((position, option), boundary) in americans.into_iter().zip(found) {
            self.units[position] = boundary.values(isa, &[option.market.spot])[0];
            self.boundaries[position] = Some(boundary);
        }
        self
    }

    /// The portfolio without some positions, whose numbers ascend.
    #[must_use]
    pub fn without(mut self, positions: &[usize]) -> Self {
        let is_kept = |number: usize| positions.binary_search(&number).is_err();
        let kept: Vec<usize> = (0..self.positions.len()).filter(|&number| is_kept(number)).collect();
        self.positions = kept.iter().map(|&number| self.positions[number]).collect();
        self.units = kept.iter().map(|&number| self.units[number]).collect();
        self.boundaries = kept.iter().map(|&number| self.boundaries[number].clone()).collect();
        self.members.iter_mut().for_each(|members| members.positions.clear());
        for (number, position) in self.positions.iter().enumerate() {
            self.members[position.book].positions.push(number);
        }
        self
    }

    /// True if any position has an exercise boundary.
    pub fn has_boundaries(&self) -> bool {
        self.boundaries.iter().any(Option::is_some)
    }

    /// True for each asset whose market differs in a later portfolio with as many assets.
    pub fn moved_assets(&self, after: &Self) -> Vec<bool> {
        let before = self.assets.iter().zip(&self.futures);
        before.zip(after.assets.iter().zip(&after.futures)).map(|(before, after)| before != after).collect()
    }

    /// True for each asset whose price is that of a future.
    pub fn futures(&self) -> &[bool] {
        &self.futures
    }

    /// Current markets of the assets.
    pub fn assets(&self) -> &[AssetMarket] {
        &self.assets
    }

    /// Positions.
    pub fn positions(&self) -> &[Position] {
        &self.positions
    }

    /// Parents of the books.
    pub fn parents(&self) -> &[Option<usize>] {
        &self.parents
    }

    /// The value of each position now: its quantity times the value of one unit.
    pub fn values(&self) -> Vec<f64> {
        self.positions.iter().zip(&self.units).map(|(position, unit)| position.quantity * unit).collect()
    }

    /// The value of each book now, with the books within it.
    pub fn book_values(&self) -> Vec<f64> {
        self.book_sums(&self.values())
    }

    /// The sums of one number per position for each book, including the books within it, in the shape that the module
    /// describes.
    pub fn book_sums(&self, of_positions: &[f64]) -> Vec<f64> {
        assert_eq!(of_positions.len(), self.positions.len(), "a number for each position");
        let mut sums = vec![0.0; self.members.len()];
        for (book, members) in self.members.iter().enumerate().rev() {
            let positions = members.positions.iter().map(|position| of_positions[*position]);
            let terms: Vec<f64> = positions.chain(members.books.iter().map(|book| sums[*book])).collect();
            sums[book] = tree::sum(&terms);
        }
        sums
    }

    pub(super) fn members(&self) -> &[Members] {
        &self.members
    }

    pub(super) fn terms(&self, number: usize) -> HeldTerms {
        let position = &self.positions[number];
        let is_future = self.futures[position.asset];
        HeldTerms::new(position, &self.assets[position.asset], is_future, self.units[number])
    }

    pub(super) fn held(&self, number: usize) -> Held<'_> {
        Held { terms: self.terms(number), boundary: self.boundaries[number].as_deref() }
    }

    /// The value of one unit; NaN for an American option until its boundary is found.
    fn unit_now(&self, number: usize) -> f64 {
        let position = &self.positions[number];
        match position.instrument {
            Instrument::American { expiry_years, .. } if expiry_years > 0.0 => f64::NAN,
            _ => {
                let is_future = self.futures[position.asset];
                unit_value(&HeldTerms::new(position, &self.assets[position.asset], is_future, 0.0))
            }
        }
    }
}

/// An option that expires now is worth its payoff.
fn check_terms(strike: f64, expiry_years: f64) -> Result<(), ParameterError> {
    check("strike", strike, PRICE_RANGE)?;
    if expiry_years == 0.0 {
        Ok(())
    } else {
        check("expiry_years", expiry_years, EXPIRY_YEARS_RANGE).map(|_| ())
    }
}
