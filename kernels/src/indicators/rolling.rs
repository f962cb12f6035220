//! Sums over windows, kept up to date by what enters and leaves, and summed anew before errors can matter.
//!
//! A rolling sum has an absolute error of about one rounding of its greatest value for each step. It is summed anew each
//! time its ring has wrapped [`WRAPS_PER_SUM`](super::ring::WRAPS_PER_SUM) times, and whenever it has fallen below
//! [`FRESH`] of the greatest value since: so the relative error stays below `8 · ring length · 2^-52 / FRESH`, which is
//! 4e-10 for 20 bars and in practice a hundredth of that. Both conditions depend on the slot's own bars alone.

use super::lanes::{Columns, Place, Rows};
use super::params::WINDOW_MAX;
use super::ring::Ring;

/// How small, relative to its peak, a sum may get before it is summed anew.
const FRESH: f64 = 1e-4;

// Right after summing anew, Σd² − (Σd)²/n is at least Σd²/n, the anchor being within the window: that must be enough.
const _: () = assert!(FRESH * (WINDOW_MAX as f64) < 0.5);

/// Independent sums, so that additions overlap. Part of the results' definition.
const ACCUMULATORS: usize = 4;

/// Sums over the last `ring.length` of numbers that are not negative.
#[derive(Clone, Debug)]
pub(super) struct RollingSum {
    pub ring: Ring,
    /// The sum, and the greatest since it was made anew.
    pub sums: Columns<2>,
}

impl RollingSum {
    pub fn new(length: u32) -> Self {
        Self { ring: Ring::new(length), sums: Columns::default() }
    }

    /// Makes room for `slots` slots.
    pub fn resize(&mut self, slots: usize) {
        self.ring.resize(slots);
        self.sums.resize(slots);
    }

    /// Takes in one value per slot and gives the sums. A sum with an infinite value in it is infinite.
    #[inline(always)]
    pub fn roll<const L: usize, P: Place<L>>(
        &mut self,
        place: &P,
        steps: P::Steps,
        values: &[f64; L],
    ) -> [f64; L] {
        let length = self.ring.length;
        let oldest = place.exchange(&mut self.ring, steps, values);
        let mut scratch = [[0.0; L]; 2];
        let state = place.take(&mut self.sums, &mut scratch);
        let [mut sums, mut peaks] = *state;
        for lane in 0..L {
            let sum = sums[lane] + (values[lane] - oldest[lane]);
            peaks[lane] = if sum > peaks[lane] { sum } else { peaks[lane] };
            sums[lane] = sum;
        }
        // Not true of NaN, which is what remains when an infinite value leaves.
        let is_fresh = |sum: f64, peak: f64| sum >= FRESH * peak;
        if let Some(block) = place.due(steps) {
            sums = sums_of(self.ring.last_rows(block, length));
            peaks = sums;
        } else {
            let mut all_fresh = true;
            for lane in 0..L {
                all_fresh &= is_fresh(sums[lane], peaks[lane]) & !P::step(steps, lane).sums_due;
            }
            if !all_fresh {
                for lane in 0..L {
                    let step = P::step(steps, lane);
                    if step.sums_due || !is_fresh(sums[lane], peaks[lane]) {
                        let window = self.ring.newest(place.slot(lane), step.position, length);
                        [sums[lane]] = sums_of_one(window.map(|value| [value]));
                        peaks[lane] = sums[lane];
                    }
                }
            }
        }
        *state = [sums, peaks];
        place.put(&mut self.sums, &scratch);
        sums
    }
}

/// Moments over the last `length` values of a ring that others use too.
#[derive(Clone, Debug)]
pub(super) struct RollingMoments {
    pub length: usize,
    inverse: f64,
    /// Σd, Σd², greatest Σd² since summing anew, and the value that d is measured from.
    pub moments: Columns<4>,
}

/// What a window gives.
pub(super) struct Moments<const L: usize> {
    pub mean: [f64; L],
    /// Newest value minus mean.
    pub distance: [f64; L],
    /// Population standard deviation.
    pub deviation: [f64; L],
}

impl RollingMoments {
    pub fn new(length: u32) -> Self {
        Self { length: length as usize, inverse: 1.0 / f64::from(length), moments: Columns::default() }
    }

    /// Takes in one value per slot, which is in the ring already; `oldest` left the window.
    #[inline(always)]
    pub fn roll<const L: usize, P: Place<L>>(
        &mut self,
        place: &P,
        steps: P::Steps,
        ring: &Ring,
        values: &[f64; L],
        oldest: &[f64; L],
    ) -> Moments<L> {
        let inverse = self.inverse;
        let mut scratch = [[0.0; L]; 4];
        let state = place.take(&mut self.moments, &mut scratch);
        let [mut distances, mut squares, mut peaks, mut anchors] = *state;
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
                        [distances[lane], squares[lane]] = sums_of_one(window.map(|value| {
                            let distance = value - values[lane];
                            [distance, distance * distance]
                        }));
                        peaks[lane] = squares[lane];
                        anchors[lane] = values[lane];
                    }
                }
            }
        }
        *state = [distances, squares, peaks, anchors];
        place.put(&mut self.moments, &scratch);

        let mut out = Moments { mean: [0.0; L], distance: [0.0; L], deviation: [0.0; L] };
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

/// Sums of one lane, oldest value first: value i goes to accumulator i mod 4, then (0+2) + (1+3).
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

/// Likewise of all lanes.
#[inline(always)]
fn sums_of<'a, const L: usize>(rows: impl Iterator<Item = &'a Rows<1>>) -> [f64; L] {
    let mut sums = [[0.0; L]; ACCUMULATORS];
    for (position, Rows([row])) in rows.enumerate() {
        let sums = &mut sums[position % ACCUMULATORS];
        for lane in 0..L {
            sums[lane] += row[lane];
        }
    }
    total(&sums)
}

/// Σd and Σd² of all lanes, d measured from `anchors`, in the same shape.
#[inline(always)]
fn moments_of<'a, const L: usize>(
    rows: impl Iterator<Item = &'a Rows<1>>,
    anchors: &[f64; L],
) -> [[f64; L]; 2] {
    let mut distances = [[0.0; L]; ACCUMULATORS];
    let mut squares = [[0.0; L]; ACCUMULATORS];
    for (position, Rows([row])) in rows.enumerate() {
        let (distances, squares) =
            (&mut distances[position % ACCUMULATORS], &mut squares[position % ACCUMULATORS]);
        for lane in 0..L {
            let distance = row[lane] - anchors[lane];
            distances[lane] += distance;
            squares[lane] += distance * distance;
        }
    }
    [total(&distances), total(&squares)]
}

#[inline(always)]
fn total<const L: usize>(sums: &[[f64; L]; ACCUMULATORS]) -> [f64; L] {
    let mut total = [0.0; L];
    for lane in 0..L {
        total[lane] = (sums[0][lane] + sums[2][lane]) + (sums[1][lane] + sums[3][lane]);
    }
    total
}
