//! What lanes of a kind take for a batch, by its rows: measured, and learnt from every batch since.
//!
//! It owns the estimate; it must not know what is decided from it.

use warptape_schemas::journal::ServicePoint;

/// Sizes of batches that are told apart: the rows of point `i` are from `4^i` to below `4^(i+1)`, those of the last one
/// are all above.
const POINTS: usize = 10;
/// A new sample moves its point by this share: 1/8.
const SMOOTHING: i64 = 8;
/// Longest service time that is learnt: one day.
const SERVICE_NS_MAX: i64 = crate::config::DURATION_NS_MAX;

/// Service times of batches by their rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServiceCurve {
    /// Rows and service time of the batches of each size, smoothed; 0 rows where there were none.
    points: [(i64, i64); POINTS],
}

impl ServiceCurve {
    /// Learns what a batch took, which has at least one row.
    pub(crate) fn learn(&mut self, sample: ServicePoint) {
        let service_ns = sample.service_ns.min(SERVICE_NS_MAX);
        let size = (sample.rows.ilog2() / 2) as usize;
        let point = &mut self.points[size.min(POINTS - 1)];
        *point = match *point {
            (0, _) => (sample.rows, service_ns),
            (rows, known_ns) => {
                (rows + (sample.rows - rows) / SMOOTHING, known_ns + (service_ns - known_ns) / SMOOTHING)
            }
        };
    }

    /// What a batch of so many rows is predicted to take, in nanoseconds: on the line between the points beside it; a batch
    /// smaller than all takes what the smallest does, a larger one in proportion to the largest. `None` while nothing is
    /// known.
    pub(crate) fn predict(&self, rows: i64) -> Option<i64> {
        let known = || self.points.iter().filter(|(rows, _)| *rows > 0);
        let below = known().rev().find(|(of, _)| *of <= rows);
        let above = known().find(|(of, _)| *of > rows);
        let predicted = match (below, above) {
            (None, above) => i128::from(above?.1),
            (Some(&(of, ns)), None) => i128::from(ns) * i128::from(rows) / i128::from(of),
            (Some(&(from, from_ns)), Some(&(to, to_ns))) => {
                let [from, from_ns, to, to_ns, rows] = [from, from_ns, to, to_ns, rows].map(i128::from);
                from_ns + (to_ns - from_ns) * (rows - from) / (to - from)
            }
        };
        Some(predicted.min(i128::from(SERVICE_NS_MAX)) as i64)
    }

    /// Rows and times of all points, for the state hash.
    pub(crate) fn points(&self) -> impl Iterator<Item = (i64, i64)> {
        self.points.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(samples: &[(i64, i64)]) -> ServiceCurve {
        let mut curve = ServiceCurve::default();
        samples.iter().for_each(|&(rows, service_ns)| curve.learn(ServicePoint { rows, service_ns }));
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
    fn batches_of_one_size_are_smoothed() {
        assert_eq!(curve(&[(16, 800), (16, 1_600)]).predict(16), Some(900));
        // 63 rows are of the same size, 64 are not.
        assert_eq!(curve(&[(16, 800), (63, 800)]).points[2], (21, 800));
        assert_eq!(curve(&[(16, 800), (64, 800)]).points[2..4], [(16, 800), (64, 800)]);
    }

    #[test]
    fn no_sample_leaves_the_range() {
        let curve = curve(&[(1, i64::MAX), (crate::ROWS_MAX, i64::MAX)]);
        assert_eq!(curve.predict(1), Some(SERVICE_NS_MAX));
        assert_eq!(curve.predict(crate::ROWS_MAX), Some(SERVICE_NS_MAX));
        assert_eq!(curve.predict(i64::MAX), Some(SERVICE_NS_MAX));
    }
}
