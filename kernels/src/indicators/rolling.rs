//! Sums over windows: updated by entering and leaving values, and recomputed before errors can matter.
//!
//! Each step adds an absolute error of about one rounding of the rolling sum's greatest value. The sum is recomputed
//! each time its ring has wrapped [`WRAPS_PER_SUM`](super::ring::WRAPS_PER_SUM) times, and whenever it has fallen below
//! [`FRESH`] of the greatest value since then. So the relative error stays below `8 · ring length · 2^-52 / FRESH`,
//! which is 4e-10 for 20 bars, and in practice a hundredth of that. Both conditions depend only on the slot's own bars.

use super::lanes::{BlockRows, SlotPlaces};
use super::ring::Ring;
use super::table::WINDOW_MAX;

/// Least size of a sum, relative to its peak; a smaller sum is recomputed.
const FRESH: f64 = 1e-4;

// Right after a recomputation, Σd² − (Σd)²/n is at least Σd²/n, because the anchor is within the window. The result
// must not cause another recomputation.
const _: () = assert!(FRESH * (WINDOW_MAX as f64) < 0.5);

/// Number of independent partial sums, so that additions overlap. It is part of the definition of the results.
const ACCUMULATORS: usize = 4;

/// Sums over the last `ring.length` numbers, of `Q` quantities.
#[derive(Clone, Debug)]
pub(super) struct RollingSums<const Q: usize> {
    pub ring: Ring<Q>,
}

impl<const Q: usize> RollingSums<Q> {
    pub fn new(length: u32) -> Self {
        Self { ring: Ring::new(length) }
    }

    /// Adds one value per quantity and slot, and returns the sums, which are at `first` in the slots' state. After them
    /// comes the greatest magnitude of each sum since its recomputation. A sum of an infinite value is infinite.
    #[inline(always)]
    pub fn roll<const L: usize, const K: usize, P: SlotPlaces<L>>(
        &mut self,
        place: &P,
        steps: P::Steps,
        state: &mut [BlockRows<K>],
        first: usize,
        values: &[[f64; L]; Q],
    ) -> [[f64; L]; Q] {
        let length = self.ring.length;
        let oldest = place.exchange(&mut self.ring, steps, values);
        let mut sums: [[f64; L]; Q] = place.load(state, first);
        let mut peaks: [[f64; L]; Q] = place.load(state, first + Q);
        for quantity in 0..Q {
            for lane in 0..L {
                let sum = sums[quantity][lane] + (values[quantity][lane] - oldest[quantity][lane]);
                let peak = peaks[quantity][lane];
                peaks[quantity][lane] = if sum.abs() > peak { sum.abs() } else { peak };
                sums[quantity][lane] = sum;
            }
        }
        // The comparison is false for NaN, which remains after an infinite value has left.
        let is_fresh = |sum: f64, peak: f64| sum.abs() >= FRESH * peak;
        if let Some(block) = place.due(steps) {
            sums = sums_of(self.ring.last_rows(block, length));
            peaks = sums.map(|lanes| lanes.map(f64::abs));
        } else {
            let mut all_fresh = true;
            for quantity in 0..Q {
                for lane in 0..L {
                    all_fresh &= is_fresh(sums[quantity][lane], peaks[quantity][lane])
                        & !P::step(steps, lane).sums_due;
                }
            }
            if !all_fresh {
                for lane in 0..L {
                    let step = P::step(steps, lane);
                    let anew = sums_of_one(self.ring.newest(place.slot(lane), step.position, length));
                    for quantity in 0..Q {
                        if step.sums_due || !is_fresh(sums[quantity][lane], peaks[quantity][lane]) {
                            sums[quantity][lane] = anew[quantity];
                            peaks[quantity][lane] = anew[quantity].abs();
                        }
                    }
                }
            }
        }
        place.store(state, first, sums);
        place.store(state, first + Q, peaks);
        sums
    }
}

/// Moments over the last `length` values of a ring, which windows of other lengths share.
#[derive(Clone, Debug)]
pub(super) struct RollingMoments {
    pub length: usize,
    pub inverse: f64,
}

/// Number of quantities of a window's moments: Σd, Σd², greatest Σd² since the last recomputation, and the anchor of d.
pub(super) const MOMENTS: usize = 4;

/// The moments of a window.
pub(super) struct WindowMoments<const L: usize> {
    pub mean: [f64; L],
    /// Newest value minus mean.
    pub distance: [f64; L],
    /// Population standard deviation.
    pub deviation: [f64; L],
}

impl RollingMoments {
    pub fn new(length: u32) -> Self {
        Self { length: length as usize, inverse: 1.0 / f64::from(length) }
    }

    /// Adds one value per slot, which is already in the ring. `oldest` has left the window, whose [`MOMENTS`] are at
    /// `first` in the slots' state.
    #[inline(always)]
    pub fn roll<const L: usize, const K: usize, P: SlotPlaces<L>>(
        &self,
        place: &P,
        steps: P::Steps,
        state: &mut [BlockRows<K>],
        first: usize,
        ring: &Ring<1>,
        [values, oldest]: [&[f64; L]; 2],
    ) -> WindowMoments<L> {
        let inverse = self.inverse;
        let mut scratch = [[0.0; L]; MOMENTS];
        let moments = place.take(state, first, &mut scratch);
        let [mut distances, mut squares, mut peaks, mut anchors] = *moments;
        for lane in 0..L {
            let entering = values[lane] - anchors[lane];
            let leaving = oldest[lane] - anchors[lane];
            let square = squares[lane] + (entering * entering - leaving * leaving);
            distances[lane] += entering - leaving;
            peaks[lane] = if square > peaks[lane] { square } else { peaks[lane] };
            squares[lane] = square;
        }
        let is_fresh =
            |distance: f64, square: f64, peak: f64| square - distance * distance * inverse >= FRESH * peak;
        if let Some(block) = place.due(steps) {
            [distances, squares] = moments_of(ring.last_rows(block, self.length), values);
            peaks = squares;
            anchors = *values;
        } else {
            let mut all_fresh = true;
            for lane in 0..L {
                all_fresh &=
                    is_fresh(distances[lane], squares[lane], peaks[lane]) & !P::step(steps, lane).sums_due;
            }
            if !all_fresh {
                for lane in 0..L {
                    let step = P::step(steps, lane);
                    if step.sums_due || !is_fresh(distances[lane], squares[lane], peaks[lane]) {
                        let window = ring.newest(place.slot(lane), step.position, self.length);
                        [distances[lane], squares[lane]] = sums_of_one(window.map(|[value]| {
                            let distance = value - values[lane];
                            [distance, distance * distance]
                        }));
                        peaks[lane] = squares[lane];
                        anchors[lane] = values[lane];
                    }
                }
            }
        }
        *moments = [distances, squares, peaks, anchors];
        place.put(state, first, &scratch);

        let mut out = WindowMoments { mean: [0.0; L], distance: [0.0; L], deviation: [0.0; L] };
        for lane in 0..L {
            let mean_distance = distances[lane] * inverse;
            let variance = squares[lane] * inverse - mean_distance * mean_distance;
            out.mean[lane] = anchors[lane] + mean_distance;
            out.distance[lane] = (values[lane] - anchors[lane]) - mean_distance;
            out.deviation[lane] = (if variance > 0.0 { variance } else { 0.0 }).sqrt();
        }
        out
    }
}

/// Sums of one lane, oldest value first: value i is added to accumulator i mod 4; the result is (0+2) + (1+3).
#[inline(always)]
fn sums_of_one<const K: usize>(values: impl Iterator<Item = [f64; K]>) -> [f64; K] {
    let mut sums = [[0.0; K]; ACCUMULATORS];
    for (position, values) in values.enumerate() {
        for quantity in 0..K {
            sums[position % ACCUMULATORS][quantity] += values[quantity];
        }
    }
    let mut total = [0.0; K];
    for quantity in 0..K {
        total[quantity] = (sums[0][quantity] + sums[2][quantity]) + (sums[1][quantity] + sums[3][quantity]);
    }
    total
}

/// Sums of all lanes, in the same order.
#[inline(always)]
fn sums_of<'a, const L: usize, const Q: usize>(
    rows: impl Iterator<Item = &'a BlockRows<Q>>,
) -> [[f64; L]; Q] {
    let mut sums = [[[0.0; L]; Q]; ACCUMULATORS];
    for (position, BlockRows(row)) in rows.enumerate() {
        let sums = &mut sums[position % ACCUMULATORS];
        for quantity in 0..Q {
            for lane in 0..L {
                sums[quantity][lane] += row[quantity][lane];
            }
        }
    }
    total(&sums)
}

/// Σd and Σd² of all lanes in the same order; d is the distance from `anchors`.
#[inline(always)]
fn moments_of<'a, const L: usize>(
    rows: impl Iterator<Item = &'a BlockRows<1>>,
    anchors: &[f64; L],
) -> [[f64; L]; 2] {
    let mut sums = [[[0.0; L]; 2]; ACCUMULATORS];
    for (position, BlockRows([row])) in rows.enumerate() {
        let [distances, squares] = &mut sums[position % ACCUMULATORS];
        for lane in 0..L {
            let distance = row[lane] - anchors[lane];
            distances[lane] += distance;
            squares[lane] += distance * distance;
        }
    }
    total(&sums)
}

#[inline(always)]
fn total<const L: usize, const Q: usize>(sums: &[[[f64; L]; Q]; ACCUMULATORS]) -> [[f64; L]; Q] {
    let mut total = [[0.0; L]; Q];
    for quantity in 0..Q {
        for lane in 0..L {
            let sum = |accumulator: usize| sums[accumulator][quantity][lane];
            total[quantity][lane] = (sum(0) + sum(2)) + (sum(1) + sum(3));
        }
    }
    total
}
