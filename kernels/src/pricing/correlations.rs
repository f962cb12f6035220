//! Correlations of assets, and the factor that gives them to independent numbers.

use thiserror::Error;

use crate::portfolio::semi_definite::{self, Indefinite};

/// Allowed error of correlations. Also the share of a variance that counts as 0.
const TOLERANCE: f64 = 1e-12;

/// The reason why a matrix is not a matrix of correlations. Rows and columns are numbered from 0.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CorrelationError {
    /// The size of the matrix does not match the number of assets.
    #[error(
        "correlations has {given} numbers: give {wanted}, the rows of a square matrix one after the other"
    )]
    Size {
        /// Number of given values.
        given: usize,
        /// Required number of values.
        wanted: usize,
    },
    /// A number is not from −1 to 1.
    #[error("correlations is {value} in row {row}, column {column}: give a number from -1 to 1")]
    Range {
        /// Row of the number.
        row: usize,
        /// Column of the number.
        column: usize,
        /// The number.
        value: f64,
    },
    /// The correlation of an asset with itself is not 1.
    #[error("correlations is {value} in row and column {asset}: give 1 for an asset with itself")]
    Diagonal {
        /// The asset.
        asset: usize,
        /// The number.
        value: f64,
    },
    /// The matrix is not symmetric.
    #[error("correlations differs between row {row}, column {column} and its mirror image: give the same")]
    Asymmetric {
        /// A row.
        row: usize,
        /// A column.
        column: usize,
    },
    /// The matrix is not positive semi-definite: no assets can have these correlations.
    #[error(
        "correlations is not positive semi-definite: its least eigenvalue is {least:e} and its greatest {greatest:e}, which no rounding \
         explains: move correlations towards 0"
    )]
    Negative {
        /// The least eigenvalue.
        least: f64,
        /// The greatest.
        greatest: f64,
    },
}

/// The lower triangular L such that `L·Lᵀ` is the matrix, row by row without the part above the diagonal. It is
/// Cholesky's factor if every asset has variance of its own. Otherwise it is the factor of the nearest matrix without
/// negative eigenvalues, by the same check as for covariances.
pub(crate) fn factor(correlations: &[f64], assets: usize) -> Result<Vec<Vec<f64>>, CorrelationError> {
    check(correlations, assets)?;
    if let Some(rows) = cholesky(correlations, assets) {
        return Ok(rows);
    }
    let factor = semi_definite::lower_factor(assets, correlations)
        .map_err(|Indefinite { least, greatest }| CorrelationError::Negative { least, greatest })?;
    Ok(factor.chunks_exact(assets).enumerate().map(|(row, factors)| factors[..=row].to_vec()).collect())
}

/// Cholesky's factor; `None` if the earlier assets explain an asset's variance.
fn cholesky(correlations: &[f64], assets: usize) -> Option<Vec<Vec<f64>>> {
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(assets);
    for row in 0..assets {
        let mut factors: Vec<f64> = Vec::with_capacity(row + 1);
        for column in 0..row {
            let rest = correlations[row * assets + column] - product(&factors, &rows[column]);
            factors.push(rest / rows[column][column]);
        }
        let rest = 1.0 - product(&factors, &factors);
        // The comparison is false for NaN as well.
        let is_free = rest > TOLERANCE;
        if !is_free {
            return None;
        }
        factors.push(rest.sqrt());
        rows.push(factors);
    }
    Some(rows)
}

/// Sum of products of the first numbers of both, up to the length of the shorter one, added in order.
fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).fold(0.0, |sum, (one, other)| sum + one * other)
}

fn check(correlations: &[f64], assets: usize) -> Result<(), CorrelationError> {
    let (given, wanted) = (correlations.len(), assets * assets);
    if given != wanted {
        return Err(CorrelationError::Size { given, wanted });
    }
    for row in 0..assets {
        for column in 0..=row {
            let [value, mirrored] =
                [row * assets + column, column * assets + row].map(|place| correlations[place]);
            if row == column && value != 1.0 {
                return Err(CorrelationError::Diagonal { asset: row, value });
            }
            if !(-1.0..=1.0).contains(&value) {
                return Err(CorrelationError::Range { row, column, value });
            }
            // The comparison is false for NaN, which is thus refused.
            let is_same = (value - mirrored).abs() <= TOLERANCE;
            if !is_same {
                return Err(CorrelationError::Asymmetric { row, column });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_give_the_matrix_back() {
        // The third asset is the mean of the first two, the fourth the opposite of the first.
        let root = 0.75_f64.sqrt();
        let given =
            [1.0, 0.5, root, -1.0, 0.5, 1.0, root, -0.5, root, root, 1.0, -root, -1.0, -0.5, -root, 1.0];
        let rows = factor(&given, 4).unwrap();
        assert!(rows[2][2].abs() < 1e-12 && rows[3][3].abs() < 1e-12, "{rows:?}");
        for row in 0..4 {
            for column in 0..4 {
                let found = product(&rows[row], &rows[column]);
                assert!((found - given[4 * row + column]).abs() < 1e-11, "{row}, {column}: {found}");
            }
        }
    }

    #[test]
    fn what_is_no_correlation_is_named() {
        use CorrelationError::*;
        assert_eq!(factor(&[1.0; 3], 2), Err(Size { given: 3, wanted: 4 }));
        assert_eq!(factor(&[1.0, 0.0, 0.0, 0.9], 2), Err(Diagonal { asset: 1, value: 0.9 }));
        assert_eq!(factor(&[1.0, 0.0, 1.5, 1.0], 2), Err(Range { row: 1, column: 0, value: 1.5 }));
        assert_eq!(factor(&[1.0, 0.1, 0.2, 1.0], 2), Err(Asymmetric { row: 1, column: 0 }));
        assert_eq!(factor(&[1.0, f64::NAN, 0.2, 1.0], 2), Err(Asymmetric { row: 1, column: 0 }));
        let of = |third: f64| factor(&[1.0, 0.9, third, 0.9, 1.0, 0.9, third, 0.9, 1.0], 3);
        assert!(of(0.63).is_ok());
        assert!(matches!(of(0.6), Err(Negative { least: ..0.0, .. })));
        // Two equal assets have different correlations with a third one.
        let unequal = factor(&[1.0, 1.0, 0.5, 1.0, 1.0, 0.4, 0.5, 0.4, 1.0], 3);
        let text = unequal.unwrap_err().to_string();
        assert!(
            text.starts_with("correlations is not positive semi-definite: its least eigenvalue"),
            "{text}"
        );
    }
}
