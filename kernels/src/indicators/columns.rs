//! What indicators come out as.

use super::table::{INDICATORS, Indicator};

/// Bars whose values lie side by side. All columns of so many are 4 KiB: in more, values of a bar would have addresses that
/// processors take for the same when they look for what a load depends on.
const TILE: usize = 32;

/// One value per indicator and closed bar; NaN where there is none yet.
#[derive(Clone, Debug, Default)]
pub struct IndicatorColumns {
    /// Number of bars.
    len: usize,
    /// By bar: all columns of a tile are at fixed distances, so that one check is enough to set all values of a bar.
    tiles: Vec<[[f64; TILE]; INDICATORS]>,
}

impl IndicatorColumns {
    /// Number of bars.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bars.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Value of one indicator at one bar, by its position in the closed bars it was computed from.
    #[inline]
    pub fn at(&self, indicator: Indicator, row: usize) -> f64 {
        assert!(row < self.len, "there are {} bars", self.len);
        self.tiles[row / TILE][indicator as usize][row % TILE]
    }

    /// Values of one bar, by [`Indicator`].
    #[inline]
    pub fn of_bar(&self, row: usize) -> [f64; INDICATORS] {
        assert!(row < self.len, "there are {} bars", self.len);
        let mut values = [0.0; INDICATORS];
        for (value, column) in values.iter_mut().zip(&self.tiles[row / TILE]) {
            *value = column[row % TILE];
        }
        values
    }

    /// Makes room for the values of so many bars, which all have to be set.
    pub(crate) fn resize(&mut self, bars: usize) {
        self.len = bars;
        self.tiles.resize(bars.div_ceil(TILE), [[f64::NAN; TILE]; INDICATORS]);
    }

    /// Removes all bars.
    pub fn clear(&mut self) {
        self.resize(0);
    }

    /// Adds a bar's values.
    pub(crate) fn push(&mut self, values: [f64; INDICATORS]) {
        let row = self.len;
        self.resize(row + 1);
        self.set(row, &values.map(|value| [value]));
    }

    /// Sets all values of the bars at `row ..`.
    #[inline(always)]
    pub(crate) fn set<const L: usize>(&mut self, row: usize, lanes: &[[f64; L]; INDICATORS]) {
        let position = row % TILE;
        if position + L <= TILE {
            let tile = &mut self.tiles[row / TILE];
            for (column, lanes) in tile.iter_mut().zip(lanes) {
                column[position..position + L].copy_from_slice(lanes);
            }
        } else {
            for lane in 0..L {
                let (tile, position) = ((row + lane) / TILE, (row + lane) % TILE);
                for (column, lanes) in self.tiles[tile].iter_mut().zip(lanes) {
                    column[position] = lanes[lane];
                }
            }
        }
    }
}
