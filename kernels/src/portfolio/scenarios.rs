//! Scenarios: joint moves of the assets' markets. They are given explicitly, taken from history, defined as stress
//! scenarios, or drawn at random.
//!
//! In a scenario an option that expires in T years sees the following market of its asset:
//!
//! | quantity | in the scenario |
//! | --- | --- |
//! | spot | `S · (spot_factor + spot_slope·T)` |
//! | volatility | `σ + volatility + volatility_slope·T` |
//! | rate | `r + rate + rate_slope·T` |
//! | dividend yield | `q + dividend_yield + dividend_yield_slope·T`; of a future, the rate in the scenario |
//!
//! Each is kept within the range that [`pricing`](crate::pricing) allows; the asset itself has `T = 0`. Scenario `s` is
//! a function of its number only. In drawn scenarios, the normal number of asset `a` is that of path `s` and step `a`
//! in [`draws`](crate::pricing).

use std::ops::{Range, RangeInclusive};

use thiserror::Error;

use super::covariance::{Covariance, CovarianceError};
use crate::isa::{HotLoop, Isa};
use crate::math::exp;
use crate::pricing::draws::{Draws, LANES, Lanes, Stream};
use crate::pricing::options::check;
use crate::pricing::sampling::NumberSource;
use crate::pricing::{ParameterError, Sampling};

/// Most numbers that are kept for scenarios, or for profits by position: 1 GiB.
pub const CELLS_MAX: usize = 1 << 27;
/// Range of the factor by which a spot price is multiplied.
pub(super) const FACTOR_RANGE: RangeInclusive<f64> = 1e-9..=1e9;
/// Range of moves of a volatility or a rate, and of all slopes per year.
const MOVE_RANGE: RangeInclusive<f64> = -100.0..=100.0;
/// Range of an asset's expected logarithmic return over the horizon.
const MEAN_RANGE: RangeInclusive<f64> = -10.0..=10.0;
/// Range of the years over which scenarios are drawn.
const HORIZON_YEARS_RANGE: RangeInclusive<f64> = 1e-9..=60.0;

/// Number of columns of an asset's moves: one for each field of [`Shock`].
pub(super) const MOVES: usize = 8;

/// An asset's moves in the scenarios of a group.
pub(super) type Moves = [Lanes<f64>; MOVES];

/// The move of the market of one asset; the module's table has the formulas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shock {
    /// Factor by which the spot price is multiplied.
    pub spot_factor: f64,
    /// Change of that factor for each year until expiry.
    pub spot_slope: f64,
    /// Number that is added to the volatility.
    pub volatility: f64,
    /// Number that is added to the volatility for each year until expiry.
    pub volatility_slope: f64,
    /// Number that is added to the rate.
    pub rate: f64,
    /// Number that is added to the rate for each year until expiry.
    pub rate_slope: f64,
    /// Number that is added to the dividend yield, which is the foreign rate of a currency.
    pub dividend_yield: f64,
    /// Number that is added to the dividend yield for each year until expiry.
    pub dividend_yield_slope: f64,
}

impl Shock {
    /// The shock that changes nothing.
    pub const NONE: Shock = Shock {
        spot_factor: 1.0,
        spot_slope: 0.0,
        volatility: 0.0,
        volatility_slope: 0.0,
        rate: 0.0,
        rate_slope: 0.0,
        dividend_yield: 0.0,
        dividend_yield_slope: 0.0,
    };

    /// The same move for all expiries: the spot price by a share of itself, volatility and rate by an addition.
    pub fn shift(spot: f64, volatility: f64, rate: f64) -> Shock {
        Shock { spot_factor: 1.0 + spot, volatility, rate, ..Shock::NONE }
    }

    /// A move proportional to the years between an expiry and the pivot: down before the pivot, up after it. The asset
    /// itself moves like an option that expires now.
    pub fn twist(pivot_years: f64, spot: f64, volatility: f64, rate: f64) -> Shock {
        Shock {
            spot_factor: 1.0 - spot * pivot_years,
            spot_slope: spot,
            volatility: -(volatility * pivot_years),
            volatility_slope: volatility,
            rate: -(rate * pivot_years),
            rate_slope: rate,
            ..Shock::NONE
        }
    }

    fn numbers(&self) -> [f64; MOVES] {
        [
            self.spot_factor,
            self.spot_slope,
            self.volatility,
            self.volatility_slope,
            self.rate,
            self.rate_slope,
            self.dividend_yield,
            self.dividend_yield_slope,
        ]
    }
}

/// A stress scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Stress {
    /// All assets move alike.
    All(Shock),
    /// Shocks of assets by number; if an asset has several, the last one counts. Other assets do not move.
    Assets(Vec<(usize, Shock)>),
}

/// Kinds of returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// `ln(S'/S)`.
    Logarithmic,
    /// `S'/S − 1`.
    Simple,
}

/// Scenarios that are drawn at random: logarithmic returns with a normal distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn<'a> {
    /// Key of the random numbers: equal keys give equal scenarios.
    pub key: u64,
    /// Number of scenarios.
    pub scenarios: u64,
    /// Covariance of the assets' logarithmic returns in a year.
    pub covariance: &'a Covariance,
    /// Years over which spot prices move in a scenario. Options are still revalued as of now.
    pub horizon_years: f64,
    /// Expected logarithmic return of each asset in a year; an empty list means zeros.
    pub means: &'a [f64],
}

/// Reasons for which scenarios are refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ScenarioError {
    /// A list has too few or too many numbers.
    #[error("{field} has {count} numbers: give {expected}")]
    Shape {
        /// Name of the list.
        field: &'static str,
        /// Numbers in the list.
        count: usize,
        /// Numbers that it should have.
        expected: usize,
    },
    /// A number is out of range.
    #[error("scenario {scenario}, asset {asset}: {error}")]
    Shock {
        /// Number of the scenario.
        scenario: usize,
        /// Number of the asset.
        asset: usize,
        /// The error.
        error: ParameterError,
    },
    /// A stress names an asset that does not exist.
    #[error("scenario {scenario} names asset {asset}, but there are {assets} of them, numbered from 0")]
    UnknownAsset {
        /// Number of the scenario.
        scenario: usize,
        /// The named asset.
        asset: usize,
        /// Number of assets.
        assets: usize,
    },
    /// A parameter is out of range.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// No returns can have such a covariance.
    #[error(transparent)]
    Covariance(#[from] CovarianceError),
    /// There are more profits than are kept.
    #[error(
        "the profits of {positions} positions in {scenarios} scenarios are too many numbers: {CELLS_MAX} are kept at \
         most, half of them sums"
    )]
    TooManyPositions {
        /// Number of scenarios.
        scenarios: u64,
        /// Number of positions.
        positions: usize,
    },
    /// There are more numbers than are kept.
    #[error("{scenarios} scenarios of {assets} assets are too many numbers: {CELLS_MAX} are kept at most")]
    TooMany {
        /// Number of scenarios.
        scenarios: u64,
        /// Number of assets.
        assets: usize,
    },
}

/// Scenarios whose numbers are in range, numbered from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenarios {
    count: u64,
    assets: usize,
    pub(super) source: ShockSource,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ShockSource {
    /// Numbers of each column by asset and scenario; empty if that column never moves.
    Given([Vec<f64>; MOVES]),
    /// Spot prices move by `exp(drift + Σ factor·z)`. The factor is a lower triangular matrix, row by row.
    Drawn { key: u64, drifts: Vec<f64>, factor: Vec<f64> },
}

impl Scenarios {
    /// Scenarios given one after the other, each with a shock for every asset.
    pub fn given(assets: usize, shocks: &[Shock]) -> Result<Self, ScenarioError> {
        let count = shocks.len().checked_div(assets).unwrap_or(0);
        expect("shocks", shocks.len(), count * assets)?;
        check_cells(count as u64, assets)?;
        for (number, shock) in shocks.iter().enumerate() {
            check_shock(shock).map_err(|error| ScenarioError::Shock {
                scenario: number / assets,
                asset: number % assets,
                error,
            })?;
        }
        let still = Shock::NONE.numbers();
        let column = |number: usize| -> Vec<f64> {
            let of = |shock: &Shock| shock.numbers()[number];
            if shocks.iter().all(|shock| of(shock) == still[number]) {
                return Vec::new();
            }
            let of_asset =
                |asset: usize| (0..count).map(move |scenario| of(&shocks[scenario * assets + asset]));
            (0..assets).flat_map(of_asset).collect()
        };
        Ok(Self { count: count as u64, assets, source: ShockSource::Given(std::array::from_fn(column)) })
    }

    /// Historical scenarios. The rows of `returns` are the returns of all assets over successive days, or over another
    /// horizon.
    pub fn historical(assets: usize, kind: Returns, returns: &[f64]) -> Result<Self, ScenarioError> {
        let factor = |value: &f64| match kind {
            Returns::Logarithmic if value.is_nan() => f64::NAN,
            Returns::Logarithmic => exp(*value),
            Returns::Simple => 1.0 + value,
        };
        let shocks: Vec<Shock> =
            returns.iter().map(|value| Shock { spot_factor: factor(value), ..Shock::NONE }).collect();
        Self::given(assets, &shocks)
    }

    /// Stress scenarios, one for each stress.
    pub fn stress(assets: usize, stresses: &[Stress]) -> Result<Self, ScenarioError> {
        check_cells(stresses.len() as u64, assets)?;
        let mut shocks = Vec::with_capacity(assets * stresses.len());
        for (scenario, stress) in stresses.iter().enumerate() {
            let first = shocks.len();
            shocks.resize(first + assets, if let Stress::All(shock) = stress { *shock } else { Shock::NONE });
            let Stress::Assets(named) = stress else { continue };
            for &(asset, shock) in named {
                let unknown = ScenarioError::UnknownAsset { scenario, asset, assets };
                *shocks[first..].get_mut(asset).ok_or(unknown)? = shock;
            }
        }
        Self::given(assets, &shocks)
    }

    /// Scenarios that are drawn at random when they are computed.
    pub fn drawn(spec: &Drawn) -> Result<Self, ScenarioError> {
        let assets = spec.covariance.assets();
        check("horizon_years", spec.horizon_years, HORIZON_YEARS_RANGE)?;
        let root = spec.horizon_years.sqrt();
        let factor = spec.covariance.factor()?.iter().map(|number| number * root).collect();
        let mut drifts = vec![0.0; assets];
        if !spec.means.is_empty() {
            expect("means", spec.means.len(), assets)?;
            for (drift, mean) in drifts.iter_mut().zip(spec.means) {
                *drift = mean * spec.horizon_years;
                check("means", *drift, MEAN_RANGE)?;
            }
        }
        Ok(Self {
            count: spec.scenarios,
            assets,
            source: ShockSource::Drawn { key: spec.key, drifts, factor },
        })
    }

    /// Number of scenarios.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of assets.
    pub fn assets(&self) -> usize {
        self.assets
    }

    /// True if any scenario moves more than spot prices.
    pub fn moves_more_than_spots(&self) -> bool {
        match &self.source {
            ShockSource::Given(columns) => columns[2..].iter().any(|column| !column.is_empty()),
            ShockSource::Drawn { .. } => false,
        }
    }

    /// Bytes of memory of the scenarios.
    pub fn bytes(&self) -> usize {
        let numbers = match &self.source {
            ShockSource::Given(columns) => columns.iter().map(Vec::len).sum::<usize>(),
            ShockSource::Drawn { drifts, factor, .. } => drifts.len() + factor.len(),
        };
        numbers * size_of::<f64>()
    }

    /// Copies some of the scenarios as given ones, with the same bits, so that they need not be drawn again for each
    /// position.
    pub fn selected(&self, isa: Isa, numbers: &[u64]) -> Result<Self, ScenarioError> {
        check_cells(numbers.len() as u64, self.assets)?;
        let mut columns = <[Vec<f64>; MOVES]>::default();
        isa.run(Select { scenarios: self, numbers, columns: &mut columns });
        Ok(Self { count: numbers.len() as u64, assets: self.assets, source: ShockSource::Given(columns) })
    }

    /// A range of the scenarios, as given ones.
    pub fn part(&self, isa: Isa, range: Range<u64>) -> Result<Self, ScenarioError> {
        check_cells(range.end - range.start, self.assets)?;
        self.selected(isa, &range.collect::<Vec<u64>>())
    }

    /// Draws the moves of a group of scenarios, if the scenarios are drawn.
    #[inline(always)]
    pub(super) fn draw(&self, group: u64, scratch: &mut Scratch) {
        let ShockSource::Drawn { key, drifts, factor } = &self.source else { return };
        let (numbers, mut draws) = (NumberSource::new(Sampling::Random, *key, 1, 1), Draws::<f64>::new());
        scratch.normals.resize(self.assets, [0.0; LANES]);
        scratch.factors.resize(self.assets, [0.0; LANES]);
        for (asset, normals) in scratch.normals.iter_mut().enumerate() {
            draws.normals(&numbers, group, asset as u64, Stream::STEPS, normals);
        }
        for asset in 0..self.assets {
            let mut sum = [drifts[asset]; LANES];
            for (factor, normals) in factor[asset * self.assets..][..=asset].iter().zip(&scratch.normals) {
                for (sum, normal) in sum.iter_mut().zip(normals) {
                    *sum += factor * normal;
                }
            }
            for (found, sum) in scratch.factors[asset].iter_mut().zip(&sum) {
                *found = exp(*sum);
            }
        }
    }

    /// An asset's moves in a group of scenarios; those of drawn scenarios are in `scratch`. Lanes after the last
    /// scenario do not move.
    #[inline(always)]
    pub(super) fn moves(&self, group: u64, asset: usize, scratch: &Scratch) -> Moves {
        let mut moves = Shock::NONE.numbers().map(|still| [still; LANES]);
        match &self.source {
            ShockSource::Drawn { .. } => moves[0] = scratch.factors[asset],
            ShockSource::Given(columns) => {
                let count = self.count as usize;
                let first = group as usize * LANES;
                let lanes = LANES.min(count - first);
                for (lane, column) in moves.iter_mut().zip(columns) {
                    if !column.is_empty() {
                        lane[..lanes].copy_from_slice(&column[asset * count + first..][..lanes]);
                    }
                }
            }
        }
        moves
    }
}

/// The drawn moves of a group, by asset.
#[derive(Default)]
pub(super) struct Scratch {
    normals: Vec<Lanes<f64>>,
    factors: Vec<Lanes<f64>>,
}

struct Select<'a> {
    scenarios: &'a Scenarios,
    numbers: &'a [u64],
    columns: &'a mut [Vec<f64>; MOVES],
}

impl HotLoop for Select<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { scenarios, numbers, columns } = self;
        let (count, assets) = (numbers.len(), scenarios.assets);
        for (number, column) in columns.iter_mut().enumerate() {
            let moves = match &scenarios.source {
                ShockSource::Given(from) => !from[number].is_empty(),
                ShockSource::Drawn { .. } => number == 0,
            };
            column.resize(if moves { count * assets } else { 0 }, 0.0);
        }
        let (mut scratch, mut drawn) = (Scratch::default(), None);
        for (at, &scenario) in numbers.iter().enumerate() {
            let (group, lane) = (scenario / LANES as u64, (scenario % LANES as u64) as usize);
            if drawn != Some(group) {
                scenarios.draw(group, &mut scratch);
                drawn = Some(group);
            }
            for asset in 0..assets {
                let moves = scenarios.moves(group, asset, &scratch);
                for (column, moves) in columns.iter_mut().zip(&moves) {
                    if !column.is_empty() {
                        column[asset * count + at] = moves[lane];
                    }
                }
            }
        }
    }
}

fn expect(field: &'static str, count: usize, expected: usize) -> Result<(), ScenarioError> {
    if count == expected { Ok(()) } else { Err(ScenarioError::Shape { field, count, expected }) }
}

fn check_cells(scenarios: u64, assets: usize) -> Result<(), ScenarioError> {
    let cells = scenarios.checked_mul(assets as u64);
    if cells.is_some_and(|cells| cells <= CELLS_MAX as u64) {
        return Ok(());
    }
    Err(ScenarioError::TooMany { scenarios, assets })
}

fn check_shock(shock: &Shock) -> Result<(), ParameterError> {
    check("spot_factor", shock.spot_factor, FACTOR_RANGE)?;
    check("spot_slope", shock.spot_slope, MOVE_RANGE)?;
    check("volatility", shock.volatility, MOVE_RANGE)?;
    check("volatility_slope", shock.volatility_slope, MOVE_RANGE)?;
    check("rate", shock.rate, MOVE_RANGE)?;
    check("rate_slope", shock.rate_slope, MOVE_RANGE)?;
    check("dividend_yield", shock.dividend_yield, MOVE_RANGE)?;
    check("dividend_yield_slope", shock.dividend_yield_slope, MOVE_RANGE)
}
