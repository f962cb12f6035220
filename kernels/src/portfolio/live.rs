//! Profits that are updated after changes of positions and markets.
//!
//! The sums of each book are kept as a tree, whose leaves are the profits of its positions and of the books in it:
//!
//! ```text
//! 4 leaves   p₀  p₁  p₂  p₃  book₅         a column of scenarios each
//!             └─┬─┘   └─┬─┘    │
//!               └───┬───┘      │
//!                   └─────┬────┘
//!                       the book ──▶ a leaf of the book above
//! ```
//!
//! [`Portfolio::run`] sums in the same shape. So after a change only the sums above changed leaves are recomputed, and
//! the bits are those of a full run.

use std::ops::Range;
use std::sync::Arc;

use super::positions::Portfolio;
use super::revaluation::Profits;
use super::scenarios::{CELLS_MAX, ScenarioError, Scenarios};
use crate::isa::Isa;

/// The profits of all books in a range of scenarios, for the current positions and markets.
#[derive(Clone, Debug)]
pub struct LiveProfits {
    portfolio: Arc<Portfolio>,
    scenarios: Scenarios,
    trees: Vec<SumTree>,
    /// The leaf of each position in its book's tree.
    leaf_of_position: Vec<usize>,
    /// The leaf of each book in the tree of the book above it.
    leaf_of_book: Vec<usize>,
}

/// Counts of the work for a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recomputed {
    /// Positions that were revalued in all scenarios.
    pub positions: usize,
    /// Sums of two columns that were recomputed in all scenarios.
    pub sums: usize,
}

impl LiveProfits {
    /// Computes all profits in a range of scenarios: those of one lane, or all.
    pub fn new(
        isa: Isa,
        portfolio: impl Into<Arc<Portfolio>>,
        scenarios: &Scenarios,
        range: Range<u64>,
    ) -> Result<Self, ScenarioError> {
        let portfolio = portfolio.into();
        assert_eq!(scenarios.assets(), portfolio.assets().len(), "moves for each asset");
        let (positions, count) = (portfolio.positions().len(), range.end - range.start);
        // A tree has fewer sums than leaves.
        let columns = 2 * (positions + portfolio.parents().len()) as u64;
        if count.checked_mul(columns).is_none_or(|cells| cells > CELLS_MAX as u64) {
            return Err(ScenarioError::TooManyPositions { scenarios: count, positions });
        }
        let scenarios = scenarios.part(isa, range)?;
        let mut leaf_of_position = vec![0; positions];
        let mut leaf_of_book = vec![0; portfolio.parents().len()];
        let mut trees = Vec::new();
        for members in portfolio.members() {
            let own = members.positions.len();
            members.positions.iter().zip(0..).for_each(|(position, leaf)| leaf_of_position[*position] = leaf);
            members.books.iter().zip(own..).for_each(|(book, leaf)| leaf_of_book[*book] = leaf);
            trees.push(SumTree::new(own + members.books.len(), count as usize));
        }
        let mut live = Self { portfolio, scenarios, trees, leaf_of_position, leaf_of_book };
        live.revalue(isa, &(0..positions).collect::<Vec<usize>>());
        Ok(live)
    }

    /// The current positions and markets.
    pub fn portfolio(&self) -> &Arc<Portfolio> {
        &self.portfolio
    }

    /// The profits of a book and the books in it, by scenario.
    pub fn of_book(&self, book: usize) -> &[f64] {
        self.trees[book].sum()
    }

    /// The profits of all books.
    pub fn profits(&self) -> Profits {
        let columns = self.trees.iter().map(|tree| tree.sum().to_vec()).collect();
        Profits { columns, ..Profits::default() }
    }

    /// Replaces the portfolio by another one, and revalues only positions that differ, or whose assets' markets differ.
    /// Returns `None`, without a change, if the new portfolio has other books, other numbers of assets or positions, or
    /// a position in another book.
    pub fn follow(&mut self, isa: Isa, portfolio: &Arc<Portfolio>) -> Option<Recomputed> {
        let (before, after) = (&*self.portfolio, &**portfolio);
        let books = |of: &Portfolio| of.positions().iter().map(|position| position.book).collect::<Vec<_>>();
        let is_alike = before.assets().len() == after.assets().len()
            && before.parents() == after.parents()
            && books(before) == books(after);
        if !is_alike {
            return None;
        }
        let has_moved = before.moved_assets(after);
        let positions = before.positions().iter().zip(after.positions()).enumerate();
        let differs = positions.filter(|(_, (before, after))| before != after || has_moved[after.asset]);
        let changed: Vec<usize> = differs.map(|(number, _)| number).collect();
        self.portfolio = portfolio.clone();
        Some(self.revalue(isa, &changed))
    }

    fn revalue(&mut self, isa: Isa, changed: &[usize]) -> Recomputed {
        let count = self.scenarios.len();
        let mut leaves = vec![Vec::new(); self.trees.len()];
        let mut profits = Vec::with_capacity(count as usize);
        for &position in changed {
            let book = self.portfolio.positions()[position].book;
            let leaf = self.leaf_of_position[position];
            profits.clear();
            self.portfolio.run_position(isa, &self.scenarios, 0..count, position, &mut profits);
            self.trees[book].column_mut(0, leaf).copy_from_slice(&profits);
            leaves[book].push(leaf);
        }
        let mut sums = 0;
        // A book comes after its parent.
        for book in (0..self.trees.len()).rev() {
            if leaves[book].is_empty() {
                continue;
            }
            sums += self.trees[book].add_anew(&leaves[book]);
            if let Some(parent) = self.portfolio.parents()[book] {
                let leaf = self.leaf_of_book[book];
                let (above, own) = self.trees.split_at_mut(book);
                above[parent].column_mut(0, leaf).copy_from_slice(own[0].sum());
                leaves[parent].push(leaf);
            }
        }
        Recomputed { positions: changed.len(), sums }
    }
}

/// The tree of a book: its leaves, the sums of two of them, and so on up to one sum. Each node is a column of
/// scenarios.
#[derive(Clone, Debug)]
struct SumTree {
    /// Length of a column: the number of scenarios.
    count: usize,
    /// Sums by level, the leaves first; the columns of a level come one after the other.
    levels: Vec<Vec<f64>>,
}

impl SumTree {
    fn new(leaves: usize, count: usize) -> Self {
        // The sum of no leaves is 0.
        let mut columns = leaves.max(1);
        let mut levels = vec![vec![0.0; columns * count]];
        while columns > 1 {
            columns = columns.div_ceil(2);
            levels.push(vec![0.0; columns * count]);
        }
        Self { count, levels }
    }

    fn sum(&self) -> &[f64] {
        self.levels.last().expect("there are leaves")
    }

    fn column_mut(&mut self, level: usize, column: usize) -> &mut [f64] {
        &mut self.levels[level][column * self.count..][..self.count]
    }

    /// Recomputes the sums above some leaves, and returns the number of these sums.
    fn add_anew(&mut self, leaves: &[usize]) -> usize {
        let (mut changed, mut sums) = (leaves.to_vec(), 0);
        changed.sort_unstable();
        for level in 1..self.levels.len() {
            changed.iter_mut().for_each(|column| *column /= 2);
            changed.dedup();
            let (below, above) = self.levels.split_at_mut(level);
            let (below, above) = (&below[level - 1], &mut above[0]);
            for &column in &changed {
                let mut terms = below.chunks_exact(self.count.max(1)).skip(2 * column);
                let sum = &mut above[column * self.count..][..self.count];
                let (Some(first), second) = (terms.next(), terms.next()) else { continue };
                sum.copy_from_slice(first);
                if let Some(second) = second {
                    sum.iter_mut().zip(second).for_each(|(sum, term)| *sum += term);
                    sums += 1;
                }
            }
        }
        sums
    }
}
