//! Service curve: the time that lanes of a class take for a batch, by the batch's rows. It is first measured, and then
//! learnt from every batch.
//!
//! The module owns the estimate; it must not know which decisions use it.

use serde::{Deserialize, Serialize};
use warptape_events::journal::ServicePoint;

use crate::config::DURATION_NS_MAX;
use crate::state_hash::{Component, StateHash, hash_component};

/// Number of batch sizes that are distinguished. Point `i` has the batches with `4^i` to below `4^(i+1)` rows, and the
/// last point all larger ones.
const POINTS: usize = 10;
/// Share by which a new sample moves its point: 1/8.
const SMOOTHING: i64 = 8;
/// Most that a sample counts for, as a multiple of the known time, so that one disturbed batch has little influence.
const OUTLIER: i64 = 2;

/// Service times of batches, by their rows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServiceCurve {
    points: [Point; POINTS],
}

/// Batches of about one size.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Point {
    /// Smoothed rows of a batch; 0 if there was none.
    rows: i64,
    /// Smoothed time of a batch.
    service_ns: i64,
    /// Rows and time as measured when lanes began; 0 if they were not measured.
    measured: (i64, i64),
    /// True if there was a batch since the last call of [`ServiceCurve::age`].
    is_fresh: bool,
    contribution: u64,
}

impl Point {
    fn learn(&mut self, sample: ServicePoint) {
        let service_ns = sample.service_ns.min(DURATION_NS_MAX);
        if self.rows == 0 {
            (self.rows, self.service_ns) = (sample.rows, service_ns);
            return;
        }
        self.rows += (sample.rows - self.rows) / SMOOTHING;
        let service_ns = service_ns.min(self.service_ns.saturating_mul(OUTLIER));
        self.service_ns += (service_ns - self.service_ns) / SMOOTHING;
    }

    fn hash(&self, curve: i64, size: usize) -> u64 {
        let (measured_rows, measured_ns) = self.measured;
        let fields = [
            curve,
            size as i64,
            self.rows,
            self.service_ns,
            measured_rows,
            measured_ns,
            i64::from(self.is_fresh),
        ];
        hash_component(Component::ServicePoint, fields)
    }
}

/// The point of batches with `rows` rows, at least one.
fn size_of_rows(rows: i64) -> usize {
    ((rows.ilog2() / 2) as usize).min(POINTS - 1)
}

impl ServiceCurve {
    fn point(&mut self, rows: i64) -> (usize, &mut Point) {
        let size = size_of_rows(rows);
        (size, &mut self.points[size])
    }

    /// Learns from the time of a batch, which has at least one row. `curve` is the curve's number in the state hash.
    pub(crate) fn learn(&mut self, curve: i64, sample: ServicePoint, hash: &mut StateHash) {
        let (size, point) = self.point(sample.rows);
        point.learn(sample);
        point.is_fresh = true;
        let now = point.hash(curve, size);
        hash.replace(&mut point.contribution, now);
    }

    /// Learns from a batch of a lane's measurement.
    pub(crate) fn measure(&mut self, curve: i64, sample: ServicePoint, hash: &mut StateHash) {
        self.learn(curve, sample, hash);
        let (size, point) = self.point(sample.rows);
        point.measured = (point.rows, point.service_ns);
        let now = point.hash(curve, size);
        hash.replace(&mut point.contribution, now);
    }

    /// Moves points without a recent batch back towards their measurement. Otherwise a slow estimate would keep batches
    /// away from lanes that are fast again.
    pub(crate) fn age(&mut self, curve: i64, hash: &mut StateHash) {
        for (size, point) in self.points.iter_mut().enumerate().filter(|(_, point)| point.rows > 0) {
            let (measured_rows, measured_ns) = point.measured;
            if !point.is_fresh && measured_rows > 0 {
                point.rows += (measured_rows - point.rows) / SMOOTHING;
                point.service_ns += (measured_ns - point.service_ns) / SMOOTHING;
            }
            point.is_fresh = false;
            let now = point.hash(curve, size);
            hash.replace(&mut point.contribution, now);
        }
    }

    /// Forgets everything.
    pub(crate) fn forget(&mut self, hash: &mut StateHash) {
        self.points.iter().for_each(|point| hash.remove(point.contribution));
        *self = Self::default();
    }

    /// True if batches with about `rows` rows were learnt from.
    pub(crate) fn knows(&self, rows: i64) -> bool {
        self.points[size_of_rows(rows)].rows > 0
    }

    /// Smoothed rows of the smallest known batches; `None` if none are known.
    pub(crate) fn rows_least(&self) -> Option<i64> {
        self.points.iter().map(|point| point.rows).find(|rows| *rows > 0)
    }

    /// Hash of all points, computed by walking over them.
    pub(crate) fn walked_hash(&self, curve: i64) -> u64 {
        let known = self.points.iter().enumerate().filter(|(_, point)| point.rows > 0);
        known.fold(0, |sum, (size, point)| sum.wrapping_add(point.hash(curve, size)))
    }

    /// Predicted time of a batch of `rows` rows, in nanoseconds, on the line between the neighbouring points. For fewer
    /// rows than all points, it is the time of the smallest; for more rows, it is proportional to that of the largest.
    /// `None` while nothing is known.
    pub(crate) fn predict(&self, rows: i64) -> Option<i64> {
        let known = || self.points.iter().filter(|point| point.rows > 0);
        let below = known().rev().find(|point| point.rows <= rows);
        let above = known().find(|point| point.rows > rows);
        let predicted = match (below, above) {
            (None, above) => i128::from(above?.service_ns),
            (Some(below), None) => i128::from(below.service_ns) * i128::from(rows) / i128::from(below.rows),
            (Some(below), Some(above)) => {
                let between = i128::from(above.service_ns - below.service_ns) * i128::from(rows - below.rows);
                i128::from(below.service_ns) + between / i128::from(above.rows - below.rows)
            }
        };
        Some(predicted.min(i128::from(DURATION_NS_MAX)) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(samples: &[(i64, i64)]) -> ServiceCurve {
        let (mut curve, mut hash) = (ServiceCurve::default(), StateHash::default());
        for &(rows, service_ns) in samples {
            curve.learn(0, ServicePoint { rows, service_ns }, &mut hash);
        }
        assert_eq!(hash.value(), curve.walked_hash(0));
        curve
    }

    #[test]
    fn predictions_lie_between_what_was_measured() {
        assert_eq!(curve(&[]).predict(10), None);
        let curve = curve(&[(8, 100), (128, 340), (2_048, 2_000)]);
        let found = [1, 8, 9, 68, 128, 1_088, 2_048, 8_192].map(|rows| curve.predict(rows).unwrap());
        assert_eq!(found, [100, 100, 102, 220, 340, 1_170, 2_000, 8_000]);
    }

    #[test]
    fn batches_of_one_size_are_smoothed_and_outliers_are_cut() {
        assert_eq!(curve(&[(16, 800), (16, 1_600)]).predict(16), Some(900));
        assert_eq!(curve(&[(16, 800), (16, 1_000_000)]).predict(16), Some(900));
        // 63 rows belong to the same point, 64 to the next.
        assert_eq!(curve(&[(16, 800), (63, 800)]).predict(63), Some(2_400));
        assert_eq!(curve(&[(16, 800), (64, 800)]).predict(63), Some(800));
    }

    #[test]
    fn what_is_not_met_any_more_is_as_it_was_measured() {
        let (mut curve, mut hash) = (ServiceCurve::default(), StateHash::default());
        curve.measure(1, ServicePoint { rows: 16, service_ns: 800 }, &mut hash);
        curve.learn(1, ServicePoint { rows: 16, service_ns: 1_600 }, &mut hash);
        let looks = [0; 4].map(|_| {
            curve.age(1, &mut hash);
            curve.predict(16).unwrap()
        });
        assert_eq!(looks, [900, 888, 877, 868]);
        assert_eq!(hash.value(), curve.walked_hash(1));
    }

    #[test]
    fn no_sample_leaves_the_range() {
        let curve = curve(&[(1, i64::MAX), (crate::ROWS_MAX, i64::MAX)]);
        for rows in [1, crate::ROWS_MAX, i64::MAX] {
            assert_eq!(curve.predict(rows), Some(DURATION_NS_MAX));
        }
    }
}
