//! The values of indicators, as columns.

use super::table::{ALWAYS, FURTHER, INDICATORS, Indicator};

/// Number of bars whose values are stored side by side. With it, all columns that are always computed take 4 KiB. In a
/// larger tile, values of one bar would have addresses 4 KiB apart. Processors take these for the same address when
/// they check the dependencies of a load.
const TILE: usize = 32;

/// Values of some bars, by column.
type Tile<const C: usize> = [[f64; TILE]; C];

/// One value per indicator and closed bar; NaN if it is not available yet.
#[derive(Clone, Debug, Default)]
pub struct IndicatorColumns {
    /// Number of bars.
    len: usize,
    /// Values by bar. All columns of a tile are at fixed distances, so that one bounds check is enough for all values
    /// of a bar.
    tiles: Vec<Tile<ALWAYS>>,
    /// Values of the indicators that may be off, by bar; empty if all of them are off.
    further: Vec<Tile<FURTHER>>,
}

impl IndicatorColumns {
    /// Number of bars.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no bars.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Value of an indicator at a bar, by the bar's position in the closed bars.
    #[inline]
    pub fn at(&self, indicator: Indicator, row: usize) -> f64 {
        assert!(row < self.len, "there are {} bars", self.len);
        let column = indicator as usize;
        if column < ALWAYS {
            self.tiles[row / TILE][column][row % TILE]
        } else {
            self.further.get(row / TILE).map_or(f64::NAN, |tile| tile[indicator.further()][row % TILE])
        }
    }

    /// Values of one bar, by [`Indicator`].
    #[inline]
    pub fn of_bar(&self, row: usize) -> [f64; INDICATORS] {
        assert!(row < self.len, "there are {} bars", self.len);
        let mut values = [f64::NAN; INDICATORS];
        let (always, further) = values.split_at_mut(ALWAYS);
        for (value, column) in always.iter_mut().zip(&self.tiles[row / TILE]) {
            *value = column[row % TILE];
        }
        for (value, column) in further.iter_mut().zip(self.further.get(row / TILE).into_iter().flatten()) {
            *value = column[row % TILE];
        }
        values
    }

    /// Makes room for the values of `bars` bars, all of which must then be set.
    pub(crate) fn resize(&mut self, bars: usize, has_further: bool) {
        self.len = bars;
        let tiles = bars.div_ceil(TILE);
        self.tiles.resize(tiles, [[f64::NAN; TILE]; ALWAYS]);
        self.further.resize(if has_further { tiles } else { 0 }, [[f64::NAN; TILE]; FURTHER]);
    }

    /// Removes all bars.
    pub fn clear(&mut self) {
        self.resize(0, false);
    }

    /// Adds a bar's values.
    pub(crate) fn push(&mut self, values: [f64; INDICATORS]) {
        let row = self.len;
        self.resize(row + 1, true);
        let (always, further) = values.split_at(ALWAYS);
        self.set(row, &std::array::from_fn(|column| [always[column]]));
        self.set_further(row, &std::array::from_fn(|column| [further[column]]));
    }

    /// Sets the values that are always computed, for the bars at `row ..`.
    #[inline(always)]
    pub(crate) fn set<const L: usize>(&mut self, row: usize, lanes: &[[f64; L]; ALWAYS]) {
        set(&mut self.tiles, row, lanes);
    }

    /// Sets the values of the indicators that may be off, for the bars at `row ..`.
    #[inline(always)]
    pub(crate) fn set_further<const L: usize>(&mut self, row: usize, lanes: &[[f64; L]; FURTHER]) {
        set(&mut self.further, row, lanes);
    }
}

#[inline(always)]
fn set<const L: usize, const C: usize>(tiles: &mut [Tile<C>], row: usize, lanes: &[[f64; L]; C]) {
    let position = row % TILE;
    if position + L <= TILE {
        let tile = &mut tiles[row / TILE];
        for (column, lanes) in tile.iter_mut().zip(lanes) {
            column[position..position + L].copy_from_slice(lanes);
        }
    } else {
        for lane in 0..L {
            let (tile, position) = ((row + lane) / TILE, (row + lane) % TILE);
            for (column, lanes) in tiles[tile].iter_mut().zip(lanes) {
                column[position] = lanes[lane];
            }
        }
    }
}
