//! Market data of a request, taken at one moment. Taking it is quick, because ticks wait for it; the request becomes a
//! task elsewhere while the market goes on.

use std::collections::BTreeMap;

use warptape_events::journal::AsOf;
use warptape_events::risk::{Matrix, RiskError, RiskProblem, RiskRequest};

use super::assets::{ASSETS_MAX, wants_market};
use super::{MarketOf, RiskTask, kind_of};
use crate::SymbolMarket;

/// The markets of the symbols that a request asks about.
#[derive(Debug, Default)]
pub struct MarketSnapshot {
    /// The market of each symbol in the order of the request; `None` for an unknown symbol.
    known: Vec<Option<SymbolMarket>>,
    /// The markets in which they were looked up; empty if it asks about no symbol.
    as_of: Vec<AsOf>,
}

impl MarketSnapshot {
    /// Takes the data of a request from these markets, which come by rising partition. Prices are shared, not copied.
    pub fn of(
        request: &RiskRequest,
        market_of: MarketOf<'_>,
        markets: impl IntoIterator<Item = AsOf>,
    ) -> Self {
        let known: Vec<_> = symbols_of(&request.problem).map(market_of).collect();
        let as_of = if known.is_empty() { Vec::new() } else { markets.into_iter().collect() };
        Self { known, as_of }
    }

    /// True if a symbol was unknown.
    pub fn lacks_a_symbol(&self) -> bool {
        self.known.iter().any(Option::is_none)
    }

    /// The markets in which the symbols of the request were looked up.
    pub fn as_of(&self) -> &[AsOf] {
        &self.as_of
    }
}

impl RiskTask {
    /// Makes a task of a request as [`RiskTask::new`] does, with the market that was taken for it.
    pub fn of_taken(request: &RiskRequest, taken: MarketSnapshot) -> Result<Self, RiskError> {
        let known: BTreeMap<&str, Option<SymbolMarket>> =
            symbols_of(&request.problem).zip(taken.known).collect();
        Self::new(request, &|symbol| known.get(symbol).cloned().flatten())
    }
}

/// True if a problem takes a covariance from the market.
pub fn takes_matrix(problem: &RiskProblem) -> bool {
    matches!(kind_of(problem).matrix(), Some(Matrix::Market(_)))
}

/// The symbols whose market a problem needs, in its order.
pub fn symbols_of(problem: &RiskProblem) -> impl Iterator<Item = &str> {
    let kind = kind_of(problem);
    let has_matrix = takes_matrix(problem);
    // A request with more assets is refused for that.
    let assets = if kind.assets().len() > ASSETS_MAX { &[] } else { kind.assets() };
    assets.iter().filter(move |asset| wants_market(asset, has_matrix)).map(|asset| asset.symbol.as_str())
}
