//! Value at risk and expected shortfall of profits, and the components of both.
//!
//! With `p = 1 − confidence` and the n profits in ascending order `x₀ ≤ x₁ ≤ …`:
//!
//! - *Value at risk* is `−((1 − t)·x_k + t·x_{k+1})` with `h = (n − 1)·p`, `k = ⌊h⌋` and `t = h − k`. This is the
//!   quantile of R's type 7 (Hyndman and Fan, *Sample quantiles in statistical packages*, 1996), the default of NumPy's
//!   `quantile(x, p)`.
//! - *Expected shortfall* is `−(x₀ + … + x_{k−1} + t·x_k) / (n·p)` with `k = ⌊n·p⌋` and `t = n·p − k`. This is the mean
//!   of the worst share p of all scenarios, the last of them counted in part. It is never below the value at risk
//!   (Acerbi and Tasche, *On the coherence of expected shortfall*, 2002).
//!
//! Both have a *standard error* if profits were drawn independently. It is computed from the ranked profits:
//!
//! - of the value at risk, half of the difference between the profits of the ranks `h − s` and `h + s`, with the
//!   standard deviation `s = √(n·p·(1 − p))`. The number of profits below the true quantile is binomial, with that
//!   deviation (David and Nagaraja, *Order statistics*, 2003, 7.1). Ranks are rounded away from `h`, and limited to the
//!   worst and the best profit.
//! - of the expected shortfall, `√((V + (1 − p)·(E − Q)²) / (n·p))`. V is the variance of the ⌈n·p⌉ worst profits, E
//!   the expected shortfall and Q the value at risk. The source is Trindade, Uryasev, Shapiro and Zrazhevsky,
//!   *Financial prediction with constrained tail risk*, 2007.
//!
//! Both are losses: weighted means over few scenarios, which are a [`Tail`]. The same mean of the profits of a part is
//! that part's *component*: its derivative by the size of the part. Components add up to the whole (Euler). A
//! position's *marginal* risk is its component divided by its quantity. Components of the value at risk depend on at
//! most two scenarios, and are therefore uncertain; those of the expected shortfall are steadier.

use std::ops::RangeInclusive;

use thiserror::Error;

use super::positions::Portfolio;
use super::scenarios::{ScenarioError, Scenarios};
use super::tree;
use crate::isa::Isa;
use crate::pricing::ParameterError;
use crate::pricing::options::check;

/// Confidence levels: 0.99 is 99 %.
pub const CONFIDENCE_RANGE: RangeInclusive<f64> = 0.5..=0.999_999;

/// Errors of a measure.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MeasureError {
    /// The confidence is out of range.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// There are no scenarios.
    #[error("there are no scenarios: give one at least")]
    Empty,
    /// A profit is infinite or NaN.
    #[error("the profit in scenario {scenario} is {value}: give finite numbers")]
    NotFinite {
        /// Number of the scenario.
        scenario: usize,
        /// The given value.
        value: f64,
    },
    /// The covariance has another number of assets than the portfolio.
    #[error("the covariance is of {found} assets: give one of {expected}")]
    Assets {
        /// Assets of the covariance.
        found: usize,
        /// Assets of the portfolio.
        expected: usize,
    },
    /// The book does not exist.
    #[error("book is {book}, but there are {books}, numbered from 0")]
    UnknownBook {
        /// The requested book.
        book: usize,
        /// Number of books.
        books: usize,
    },
}

/// Scenarios in the order of their profits, the worst first; equal ones by number.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    order: Vec<usize>,
}

/// Some scenarios with weights that add up to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// Numbers of the scenarios, the worst first.
    pub scenarios: Vec<u64>,
    /// Weights of the scenarios.
    pub weights: Vec<f64>,
}

impl Ranked {
    /// Orders the profits in the scenarios 0, 1, 2 …
    pub fn new(profits: &[f64]) -> Result<Self, MeasureError> {
        if profits.is_empty() {
            return Err(MeasureError::Empty);
        }
        if let Some(scenario) = profits.iter().position(|profit| !profit.is_finite()) {
            return Err(MeasureError::NotFinite { scenario, value: profits[scenario] });
        }
        let mut order: Vec<usize> = (0..profits.len()).collect();
        // Adding 0 converts −0 to 0, so that both are equal in the order.
        order.sort_unstable_by(|&one, &other| {
            (profits[one] + 0.0).total_cmp(&(profits[other] + 0.0)).then(one.cmp(&other))
        });
        Ok(Self { order })
    }

    /// The scenarios at the quantile: their loss is the value at risk.
    pub fn value_at_risk(&self, confidence: f64) -> Result<Tail, MeasureError> {
        check("confidence", confidence, CONFIDENCE_RANGE)?;
        let last = self.order.len() - 1;
        let at = last as f64 * (1.0 - confidence);
        let first = at.floor();
        let (rank, share) = (first as usize, at - first);
        Ok(self.tail(&[(rank, 1.0 - share), ((rank + 1).min(last), share)]))
    }

    /// The scenarios up to the quantile: their loss is the expected shortfall.
    pub fn expected_shortfall(&self, confidence: f64) -> Result<Tail, MeasureError> {
        check("confidence", confidence, CONFIDENCE_RANGE)?;
        let share = self.order.len() as f64 * (1.0 - confidence);
        let whole = share.floor() as usize;
        let whole_weight = 1.0 / share;
        let mut ranks: Vec<(usize, f64)> = (0..whole).map(|rank| (rank, whole_weight)).collect();
        ranks.push((whole, (share - share.floor()) / share));
        Ok(self.tail(&ranks))
    }

    /// Standard errors of value at risk and expected shortfall, for profits that were drawn independently. `profits`
    /// are the profits that were ranked.
    pub fn standard_errors(&self, profits: &[f64], confidence: f64) -> Result<[f64; 2], MeasureError> {
        let count = profits.len() as f64;
        let share = 1.0 - confidence;
        let at = (count - 1.0) * share;
        let spread = (count * share * confidence).sqrt();
        let of_rank = |rank: f64| profits[self.order[rank.clamp(0.0, count - 1.0) as usize]];
        let value_at_risk = (of_rank((at + spread).ceil()) - of_rank((at - spread).floor())) / 2.0;

        let worst = &self.order[..((count * share).ceil() as usize).clamp(1, profits.len())];
        let of_worst = |of: &dyn Fn(f64) -> f64| {
            tree::sum(&worst.iter().map(|&scenario| of(profits[scenario])).collect::<Vec<f64>>())
                / worst.len() as f64
        };
        let mean = of_worst(&|profit| profit);
        let variance = of_worst(&|profit| (profit - mean) * (profit - mean));
        let quantile = self.value_at_risk(confidence)?.loss(profits);
        let beyond = self.expected_shortfall(confidence)?.loss(profits) - quantile;
        let expected_shortfall = ((variance + confidence * beyond * beyond) / (count * share)).sqrt();
        Ok([value_at_risk, expected_shortfall])
    }

    fn tail(&self, ranks: &[(usize, f64)]) -> Tail {
        let ranks = || ranks.iter().filter(|(_, weight)| *weight > 0.0);
        Tail {
            scenarios: ranks().map(|(rank, _)| self.order[*rank] as u64).collect(),
            weights: ranks().map(|(_, weight)| *weight).collect(),
        }
    }
}

/// Number of scenarios in a block of a tail. It is a power of two, so that the sums of blocks are partial sums of the
/// whole sum.
pub const TAIL_BLOCK: usize = 64;

impl Tail {
    /// Number of blocks, the last of which may be shorter than [`TAIL_BLOCK`].
    pub fn blocks(&self) -> usize {
        self.scenarios.len().div_ceil(TAIL_BLOCK)
    }

    /// A block of the tail. [`loss_of_blocks`] computes the loss of the whole tail from the losses of its blocks, with
    /// the same bits.
    pub fn block(&self, number: usize) -> Tail {
        let end = ((number + 1) * TAIL_BLOCK).min(self.scenarios.len());
        let range = number * TAIL_BLOCK..end;
        Tail { scenarios: self.scenarios[range.clone()].to_vec(), weights: self.weights[range].to_vec() }
    }

    /// The weighted loss in the tail's scenarios. `profits` are those of the whole portfolio, a book, or a position, in
    /// all scenarios.
    pub fn loss(&self, profits: &[f64]) -> f64 {
        let in_tail: Vec<f64> = self.scenarios.iter().map(|scenario| profits[*scenario as usize]).collect();
        self.loss_of(&in_tail)
    }

    fn loss_of(&self, in_tail: &[f64]) -> f64 {
        let weighted = self.weights.iter().zip(in_tail).map(|(weight, profit)| weight * profit);
        0.0 - tree::sum(&weighted.collect::<Vec<f64>>())
    }
}

/// The loss in a tail from the losses in its blocks, in order.
pub fn loss_of_blocks(losses: &[f64]) -> f64 {
    tree::sum(losses)
}

impl Portfolio {
    /// The components of some positions: the loss of each in a tail's scenarios. Their [`Portfolio::book_sums`] are the
    /// components of books. Only these scenarios are recomputed, and no profits are kept. Any range of positions can be
    /// computed anywhere.
    pub fn component_losses(
        &self,
        isa: Isa,
        scenarios: &Scenarios,
        tail: &Tail,
        positions: std::ops::Range<usize>,
    ) -> Result<Vec<f64>, ScenarioError> {
        let selected = scenarios.selected(isa, &tail.scenarios)?;
        let mut profits = Vec::with_capacity(tail.scenarios.len());
        let component = |position| {
            profits.clear();
            self.run_position(isa, &selected, 0..selected.len(), position, &mut profits);
            tail.loss_of(&profits)
        };
        Ok(positions.map(component).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_take_their_share() {
        let profits = [3.0, -1.0, 2.0, -4.0, 0.0];
        let ranked = Ranked::new(&profits).unwrap();
        assert_eq!(ranked.order, [3, 1, 4, 2, 0]);
        // n·p = 1.25: the worst profit, and a quarter of the next.
        let tail = ranked.expected_shortfall(0.75).unwrap();
        assert_eq!(
            (tail.scenarios.as_slice(), tail.weights.as_slice()),
            ([3, 1].as_slice(), [0.8, 0.2].as_slice())
        );
        assert!((tail.loss(&profits) - 3.4).abs() < 1e-15 * 4.0);
        // (n − 1)·p = 1: exactly the second profit.
        let tail = ranked.value_at_risk(0.75).unwrap();
        assert_eq!((tail.scenarios.as_slice(), tail.loss(&profits)), ([1].as_slice(), 1.0));
        assert_eq!(Ranked::new(&[]), Err(MeasureError::Empty));
        let error = Ranked::new(&[0.0, f64::INFINITY]).unwrap_err();
        assert_eq!(error.to_string(), "the profit in scenario 1 is inf: give finite numbers");
        let error = ranked.value_at_risk(1.0).unwrap_err();
        assert_eq!(error.to_string(), "confidence is 1: give a number from 5e-1 to 9.99999e-1");
        let single = Ranked::new(&[-2.0]).unwrap();
        assert_eq!(single.expected_shortfall(0.99).unwrap().loss(&[-2.0]), 2.0);
        assert_eq!(single.value_at_risk(0.99).unwrap().loss(&[-2.0]), 2.0);
    }
}
