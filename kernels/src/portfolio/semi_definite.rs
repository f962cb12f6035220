//! The check that a matrix of covariances or correlations is positive semi-definite up to rounding, and the only one.
//! An eigenvalue that is negative only by rounding counts as 0, and the factor is that of the nearest matrix without
//! it.
//!
//! The check uses `C`, with `C_ab = Σ_ab / (s_a·s_b)` and `s_a = √Σ_aa`, whose diagonal is 1, so that the answer does
//! not depend on the units of the assets. Eigenvalues are computed by Householder's tridiagonal form and the QL method
//! with implicit shifts (Martin, Reinsch and Wilkinson 1968; Bowdler, Martin, Reinsch and Wilkinson 1968). All of it
//! runs on one thread in one order, so that the same matrix has the same bits.

/// Magnitude, per asset, up to which a negative eigenvalue of `C` counts as rounding of numbers with nine digits.
pub(crate) const ROUNDING: f64 = 1e-9;
/// Magnitude, per asset, up to which a positive eigenvalue of `C` counts as 0.
const NOTHING: f64 = 1e-14;
/// The least `s_a`, as a share of the greatest: an asset that varies less counts as constant.
const SCALE_MIN: f64 = 1e-12;
/// Most iterations of the QL method for an eigenvalue; three are usual.
const SWEEPS_MAX: usize = 64;

/// Eigenvalues of a matrix that is indefinite beyond rounding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Indefinite {
    /// The least eigenvalue of the matrix as given.
    pub least: f64,
    /// The greatest eigenvalue.
    pub greatest: f64,
}

/// The lower triangular matrix L, row by row, whose product `L·Lᵀ` is the symmetric matrix. Its diagonal is not
/// negative.
pub(crate) fn lower_factor(n: usize, matrix: &[f64]) -> Result<Vec<f64>, Indefinite> {
    let scales = scales_of(n, matrix);
    let scaled = |number: usize| matrix[number] / (scales[number / n] * scales[number % n]);
    let Eigen { values, vectors } = Eigen::of(n, (0..n * n).map(scaled).collect());
    // The comparison is false for NaN, which is thus refused.
    let is_rounding = values.iter().all(|value| *value >= -(ROUNDING * n as f64));
    if !is_rounding {
        let Eigen { values, .. } = Eigen::of(n, matrix.to_vec());
        let [least, greatest] = [f64::min, f64::max].map(|of| values.iter().copied().fold(f64::NAN, of));
        return Err(Indefinite { least, greatest });
    }
    // The remainder of an eigenvalue of 0 is not variance.
    let nothing = NOTHING * n as f64;
    let roots: Vec<f64> =
        values.iter().map(|&value| if value > nothing { value.sqrt() } else { 0.0 }).collect();
    let root = |number: usize| scales[number / n] * (vectors[number] * roots[number % n]);
    Ok(lower_triangle(n, (0..n * n).map(root).collect()))
}

fn scales_of(n: usize, matrix: &[f64]) -> Vec<f64> {
    let roots: Vec<f64> = (0..n).map(|asset| matrix[asset * n + asset].max(0.0).sqrt()).collect();
    let greatest = roots.iter().copied().fold(0.0, f64::max);
    let least = if greatest > 0.0 { SCALE_MIN * greatest } else { 1.0 };
    roots.into_iter().map(|root| root.max(least)).collect()
}

/// The lower triangular matrix with the same `F·Fᵀ`: Householder reflections of the rows clear the part right of the
/// diagonal.
fn lower_triangle(n: usize, mut rows: Vec<f64>) -> Vec<f64> {
    for pivot in 0..n {
        let row = &rows[pivot * n + pivot..(pivot + 1) * n];
        let norm = row.iter().fold(0.0, |sum, number| sum + number * number).sqrt();
        let mut mirror = row.to_vec();
        mirror[0] += if mirror[0] < 0.0 { -norm } else { norm };
        let squares = mirror.iter().fold(0.0, |sum, number| sum + number * number);
        if squares > 0.0 {
            for row in rows[pivot * n..].chunks_exact_mut(n) {
                let row = &mut row[pivot..];
                let product = row.iter().zip(&mirror).fold(0.0, |sum, (one, other)| sum + one * other);
                let factor = 2.0 * product / squares;
                row.iter_mut().zip(&mirror).for_each(|(number, mirror)| *number -= factor * mirror);
            }
        }
        rows[pivot * n + pivot + 1..(pivot + 1) * n].fill(0.0);
        if rows[pivot * n + pivot] < 0.0 {
            (pivot..n).for_each(|row| rows[row * n + pivot] = -rows[row * n + pivot]);
        }
    }
    rows
}

/// Eigenvalues, and a column of `vectors` for each.
struct Eigen {
    values: Vec<f64>,
    vectors: Vec<f64>,
}

impl Eigen {
    fn of(n: usize, matrix: Vec<f64>) -> Self {
        let (mut values, mut beside) = (vec![0.0; n], vec![0.0; n]);
        let mut vectors = matrix;
        if n > 0 {
            tridiagonal(n, &mut vectors, &mut values, &mut beside);
            diagonal(n, &mut vectors, &mut values, &mut beside);
        }
        Self { values, vectors }
    }
}

/// Transforms a symmetric matrix to tridiagonal form: the diagonal, the second diagonal, and the rotation in place of
/// the matrix.
fn tridiagonal(n: usize, v: &mut [f64], d: &mut [f64], e: &mut [f64]) {
    d.copy_from_slice(&v[(n - 1) * n..]);
    for i in (1..n).rev() {
        let scale = d[..i].iter().fold(0.0, |sum, number| sum + number.abs());
        let mut h = 0.0;
        if scale == 0.0 {
            e[i] = d[i - 1];
            for j in 0..i {
                d[j] = v[(i - 1) * n + j];
                (v[i * n + j], v[j * n + i]) = (0.0, 0.0);
            }
        } else {
            for number in &mut d[..i] {
                *number /= scale;
                h += *number * *number;
            }
            let f = d[i - 1];
            let g = if f > 0.0 { -h.sqrt() } else { h.sqrt() };
            e[i] = scale * g;
            h -= f * g;
            d[i - 1] = f - g;
            e[..i].fill(0.0);
            for j in 0..i {
                let f = d[j];
                v[j * n + i] = f;
                let mut g = e[j] + v[j * n + j] * f;
                for k in j + 1..i {
                    g += v[k * n + j] * d[k];
                    e[k] += v[k * n + j] * f;
                }
                e[j] = g;
            }
            let mut f = 0.0;
            for j in 0..i {
                e[j] /= h;
                f += e[j] * d[j];
            }
            let half = f / (h + h);
            (0..i).for_each(|j| e[j] -= half * d[j]);
            for j in 0..i {
                let (f, g) = (d[j], e[j]);
                for k in j..i {
                    v[k * n + j] -= f * e[k] + g * d[k];
                }
                d[j] = v[(i - 1) * n + j];
                v[i * n + j] = 0.0;
            }
        }
        d[i] = h;
    }
    gather_turns(n, v, d);
    e[0] = 0.0;
}

/// Multiplies the rotations, in place of their parts.
fn gather_turns(n: usize, v: &mut [f64], d: &mut [f64]) {
    for i in 0..n - 1 {
        v[(n - 1) * n + i] = v[i * n + i];
        v[i * n + i] = 1.0;
        let h = d[i + 1];
        if h != 0.0 {
            (0..=i).for_each(|k| d[k] = v[k * n + i + 1] / h);
            for j in 0..=i {
                let product = (0..=i).fold(0.0, |sum, k| sum + v[k * n + i + 1] * v[k * n + j]);
                (0..=i).for_each(|k| v[k * n + j] -= product * d[k]);
            }
        }
        (0..=i).for_each(|k| v[k * n + i + 1] = 0.0);
    }
    for j in 0..n {
        d[j] = v[(n - 1) * n + j];
        v[(n - 1) * n + j] = 0.0;
    }
    v[(n - 1) * n + n - 1] = 1.0;
}

/// Transforms a tridiagonal matrix to diagonal form, and rotates the vectors with it.
fn diagonal(n: usize, v: &mut [f64], d: &mut [f64], e: &mut [f64]) {
    e.rotate_left(1);
    e[n - 1] = 0.0;
    let (mut shift, mut most) = (0.0, 0.0_f64);
    for l in 0..n {
        most = most.max(d[l].abs() + e[l].abs());
        let is_small = |number: f64| number.abs() <= f64::EPSILON * most;
        let end = (l..n).find(|&at| is_small(e[at])).unwrap_or(n - 1);
        for _ in 0..if end > l { SWEEPS_MAX } else { 0 } {
            shift += shifted(l, d, e);
            sweep(n, (l, end), v, d, e);
            if is_small(e[l]) {
                break;
            }
        }
        d[l] += shift;
        e[l] = 0.0;
    }
}

/// Subtracts the implicit shift from the diagonal from `l` on.
fn shifted(l: usize, d: &mut [f64], e: &[f64]) -> f64 {
    let first = d[l];
    let p = (d[l + 1] - first) / (2.0 * e[l]);
    let root = (p * p + 1.0).sqrt();
    let r = if p < 0.0 { -root } else { root };
    d[l] = e[l] / (p + r);
    d[l + 1] = e[l] * (p + r);
    let shift = first - d[l];
    d[l + 2..].iter_mut().for_each(|number| *number -= shift);
    shift
}

/// One sweep of rotations from `end` down to `l`.
fn sweep(n: usize, (l, end): (usize, usize), v: &mut [f64], d: &mut [f64], e: &mut [f64]) {
    let (next, beside) = (d[l + 1], e[l + 1]);
    let mut p = d[end];
    let ([mut c, mut c2, mut c3], [mut s, mut s2]) = ([1.0; 3], [0.0; 2]);
    for i in (l..end).rev() {
        (c3, c2, s2) = (c2, c, s);
        let (g, h) = (c * e[i], c * p);
        let r = (p * p + e[i] * e[i]).sqrt();
        e[i + 1] = s * r;
        (s, c) = if r > 0.0 { (e[i] / r, p / r) } else { (0.0, 1.0) };
        p = c * d[i] - s * g;
        d[i + 1] = h + s * (c * g + s * d[i]);
        for row in v.chunks_exact_mut(n) {
            let h = row[i + 1];
            row[i + 1] = s * row[i] + c * h;
            row[i] = c * row[i] - s * h;
        }
    }
    p = -s * s2 * c3 * beside * e[l] / next;
    e[l] = s * p;
    d[l] = c * p;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(n: usize, factor: &[f64]) -> Vec<f64> {
        let of =
            |row: usize, column: usize| (0..n).map(|k| factor[row * n + k] * factor[column * n + k]).sum();
        (0..n * n).map(|number| of(number / n, number % n)).collect()
    }

    /// Pseudorandom numbers between -1 and 1, always the same.
    fn numbers(count: usize, seed: u64) -> Vec<f64> {
        let mut state = seed;
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
        };
        (0..count).map(next).collect()
    }

    /// The sample covariance of `times` times: with fewer times than assets it has less than full rank.
    fn covariance(n: usize, times: usize) -> Vec<f64> {
        let returns = numbers(n * times, (n * 1_000 + times) as u64);
        let of = |one: usize, other: usize| -> f64 {
            (0..times).map(|time| returns[time * n + one] * returns[time * n + other]).sum::<f64>()
                / times as f64
        };
        (0..n * n).map(|number| of(number / n, number % n)).collect()
    }

    #[test]
    fn a_factor_gives_the_matrix_back_whatever_its_rank() {
        for (n, times) in [(1, 1), (2, 1), (3, 2), (10, 4), (10, 40), (65, 7), (128, 30)] {
            let matrix = covariance(n, times);
            let factor = lower_factor(n, &matrix).expect("a covariance of samples");
            for (number, (found, given)) in product(n, &factor).iter().zip(&matrix).enumerate() {
                assert!((found - given).abs() < 1e-13 * n as f64, "{n} {times} {number}: {found} {given}");
            }
            let is_lower = |number: usize| factor[number] == 0.0 || number % n <= number / n;
            assert!((0..n * n).all(is_lower) && (0..n).all(|asset| factor[asset * n + asset] >= 0.0));
        }
    }

    #[test]
    fn eigenvalues_are_told_of_what_cannot_be() {
        let matrix = [0.04, 0.054, -0.027, 0.054, 0.09, 0.0405, -0.027, 0.0405, 0.0225];
        let Indefinite { least, greatest } = lower_factor(3, &matrix).expect_err("no covariance");
        // The expected values are from numpy.linalg.eigvalsh.
        let is_close = |found: f64, expected: f64| (found - expected).abs() < 1e-8;
        assert!(is_close(least, -0.032_376_13) && is_close(greatest, 0.128_762_61), "{least} {greatest}");
        // The result is the same in other units.
        let tiny: Vec<f64> = matrix.iter().map(|number| number * 1e-12).collect();
        assert!(lower_factor(3, &tiny).is_err());
        assert!(lower_factor(2, &[0.0, 1e-3, 1e-3, 1.0]).is_err(), "nothing that varies with another");
        assert!(lower_factor(2, &[0.0, 0.0, 0.0, 1.0]).is_ok());
        assert!(lower_factor(2, &[0.0; 4]).is_ok());
        assert!(lower_factor(0, &[]).is_ok());
        assert!(lower_factor(2, &[1.0, f64::NAN, f64::NAN, 1.0]).is_err());
    }

    #[test]
    fn rounding_is_forgiven_and_more_is_not() {
        let with = |excess: f64| lower_factor(2, &[1.0, 1.0 + excess, 1.0 + excess, 1.0]).is_ok();
        assert!(with(0.0) && with(1.9e-9) && !with(2.1e-9));
    }
}
