//! Brownian bridges: the order in which the dimensions of Sobol's points make a path of several steps.
//!
//! The first dimensions of the points are the most even ones, so they determine the most important values. Dimension 0
//! is the end of the Brownian motion `W` after n steps. Each further dimension is a point in the middle of two known
//! ones, level by level, and within a level in the order of time. Sources are Glasserman, *Monte Carlo Methods in
//! Financial Engineering*, 2004, section 3.1, and for any n Jäckel, *Monte Carlo Methods in Finance*, 2002, section
//! 10.8.3. Between adjacent known steps l and r, the next point is `m = ⌊(l + r)/2⌋`, with
//!
//! ```text
//!   W(m) = (r − m)/(r − l)·W(l) + (m − l)/(r − l)·W(r) + √((m − l)(r − m)/(r − l))·z
//! ```
//!
//! With 6 steps, dimensions 0 to 5 are the ends of steps 6, 3, 1, 4, 2, 5. Steps have equal length, 1. A payoff gets
//! `W(k + 1) − W(k)`, which is normal with variance 1.
//!
//! Paths are walked in the order of time, so that only the known points to the right are kept, the nearest one last.
//! Each level adds at most one:
//!
//! ```text
//!   step 0:  draws 6, then 3, then 1; takes 1      ends: 6 3
//!   step 1:  draws 2;                 takes 2      ends: 6 3
//!   step 2:                           takes 3      ends: 6
//! ```

use std::collections::VecDeque;

use bytemuck::{Pod, Zeroable};

use super::draws::{LANES, Lanes};
use crate::math::{Real, SOBOL_DIMENSIONS};

/// Most known points to the right: the end, and one for each time that the steps can be halved. `bridge.cuh` has the
/// same number.
const ENDS_MAX: usize = 1 + SOBOL_DIMENSIONS.ilog2() as usize;

/// A point of a bridge, `left·W(l) + right·W(r) + deviation·z`: `BridgePoint` of `bridge.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub(crate) struct BridgePoint {
    left: f64,
    right: f64,
    deviation: f64,
    /// The dimension of z.
    dimension: u32,
    /// The step before which the point is drawn: l.
    step: u32,
}

/// The points of a path, in the order in which they are drawn.
pub(crate) fn bridge_points(steps: u32) -> Vec<BridgePoint> {
    let end =
        BridgePoint { left: 0.0, right: 0.0, deviation: f64::from(steps).sqrt(), dimension: 0, step: 0 };
    let mut points = vec![end];
    let mut spans = VecDeque::from([(0, steps)]);
    while let Some((from, to)) = spans.pop_front() {
        if to - from < 2 {
            continue;
        }
        let middle = (from + to) / 2;
        let [before, after, all] = [middle - from, to - middle, to - from].map(f64::from);
        points.push(BridgePoint {
            left: after / all,
            right: before / all,
            deviation: (before * after / all).sqrt(),
            dimension: points.len() as u32,
            step: from,
        });
        spans.extend([(from, middle), (middle, to)]);
    }
    // Among points with the same left neighbour, the farther ones are on earlier levels.
    points.sort_unstable_by_key(|point| (point.step, point.dimension));
    points
}

/// Brownian motions of a group of paths, walked step by step.
pub(crate) struct Bridge<T> {
    points: Vec<BridgePoint>,
    /// The number of the point to be drawn next.
    next: usize,
    /// The point that paths have reached.
    now: Lanes<T>,
    /// The known points to the right, the nearest one last. The first entry is always 0: it is used if no point is
    /// known.
    ends: [Lanes<T>; 1 + ENDS_MAX],
    ends_count: usize,
}

impl<T: Real> Bridge<T> {
    pub fn new(steps: u32) -> Self {
        assert!((1..=SOBOL_DIMENSIONS as u32).contains(&steps), "callers check");
        let zeros = [T::of(0.0); LANES];
        Self { points: bridge_points(steps), next: 0, now: zeros, ends: [zeros; 1 + ENDS_MAX], ends_count: 0 }
    }

    /// Begins new paths, at time 0.
    #[inline(always)]
    pub fn start(&mut self) {
        (self.next, self.ends_count) = (0, 0);
        self.now = [T::of(0.0); LANES];
    }

    /// The dimension of the next point to be drawn before a step; `None` if there is none.
    #[inline(always)]
    pub fn dimension(&self, step: u64) -> Option<u64> {
        let point = self.points.get(self.next).filter(|point| u64::from(point.step) == step)?;
        Some(u64::from(point.dimension))
    }

    /// Adds the normal numbers of the next dimension.
    #[inline(always)]
    pub fn put(&mut self, z: &Lanes<T>) {
        let BridgePoint { left, right, deviation, .. } = self.points[self.next];
        let [left, right, deviation] = [left, right, deviation].map(T::of);
        let (known, unknown) = self.ends.split_at_mut(1 + self.ends_count);
        let (nearest, found) = (&known[self.ends_count], &mut unknown[0]);
        for lane in 0..LANES {
            found[lane] = (left * self.now[lane] + right * nearest[lane]) + deviation * z[lane];
        }
        self.next += 1;
        self.ends_count += 1;
    }

    /// Advances to the nearest point, which is the end of the step, and returns the distance to it.
    #[inline(always)]
    pub fn advance(&mut self, z: &mut Lanes<T>) {
        let nearest = &self.ends[self.ends_count];
        for lane in 0..LANES {
            z[lane] = nearest[lane] - self.now[lane];
            self.now[lane] = nearest[lane];
        }
        self.ends_count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contribution of each dimension to each step, found from paths with a single number of 1.
    fn factors(steps: u32) -> Vec<Vec<f64>> {
        let mut bridge = Bridge::<f64>::new(steps);
        let of_dimension = |dimension: u64| {
            bridge.start();
            let mut of_step = |step| {
                let mut z = [0.0; LANES];
                while let Some(drawn) = bridge.dimension(step) {
                    bridge.put(&[f64::from(u8::from(drawn == dimension)); LANES]);
                }
                bridge.advance(&mut z);
                z[LANES - 1]
            };
            (0..u64::from(steps)).map(&mut of_step).collect()
        };
        (0..u64::from(steps)).map(of_dimension).collect()
    }

    #[test]
    fn steps_are_independent_with_variance_1() {
        for steps in (1..40).chain([63, 64, 65, 100, 127, 128, 129, 252, 255, 256]) {
            let factors = factors(steps);
            for one in 0..steps as usize {
                for other in 0..=one {
                    let product: f64 = factors.iter().map(|steps| steps[one] * steps[other]).sum();
                    let expected = if one == other { 1.0 } else { 0.0 };
                    assert!((product - expected).abs() < 1e-12, "{one} and {other} of {steps}: {product}");
                }
            }
        }
    }

    /// Walks like paths do, and finds for each dimension the step whose end its point is; no point may remain.
    #[test]
    fn dimensions_have_the_order_of_the_textbook() {
        let order = |steps: u32| {
            let mut points: Vec<(u32, u32)> = Vec::new();
            let mut ends: Vec<u32> = Vec::new();
            let (all, mut next) = (bridge_points(steps), 0);
            for step in 0..steps {
                while let Some(point) = all.get(next).filter(|point| point.step == step) {
                    let to = ends.last().map_or(steps, |right| step + ((right - step) / 2));
                    points.push((point.dimension, to));
                    ends.push(to);
                    next += 1;
                }
                assert_eq!(ends.pop(), Some(step + 1), "of {steps}");
            }
            assert_eq!((next, ends.len()), (all.len(), 0));
            points.sort_unstable();
            points.into_iter().map(|(_, to)| to).collect::<Vec<_>>()
        };
        assert_eq!(order(1), [1]);
        assert_eq!(order(2), [2, 1]);
        assert_eq!(order(5), [5, 2, 1, 3, 4]);
        assert_eq!(order(6), [6, 3, 1, 4, 2, 5]);
        assert_eq!(order(8), [8, 4, 2, 6, 1, 3, 5, 7]);
        assert_eq!(order(12), [12, 6, 3, 9, 1, 4, 7, 10, 2, 5, 8, 11]);
    }

    #[test]
    fn the_first_dimension_is_the_end() {
        for steps in [4, 7, 252] {
            let factors = factors(steps);
            let ends: Vec<f64> = factors.iter().map(|steps| steps.iter().sum()).collect();
            assert!((ends[0] - f64::from(steps).sqrt()).abs() < 1e-13, "{}", ends[0]);
            assert!(ends[1..].iter().all(|end| end.abs() < 1e-13), "{ends:?}");
        }
    }

    /// A path of one step has the same numbers with and without a bridge.
    #[test]
    fn of_one_step_nothing_changes() {
        let mut bridge = Bridge::<f32>::new(1);
        for number in [-0.123_456_79_f32, 3.25] {
            let mut z = [0.0; LANES];
            bridge.start();
            assert_eq!(bridge.dimension(0), Some(0));
            bridge.put(&[number; LANES]);
            bridge.advance(&mut z);
            assert_eq!(z, [number; LANES]);
        }
    }
}
