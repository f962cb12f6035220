//! Multiplication followed by division, with intermediate products beyond `i64`.

/// `a * b / c` with a positive `c`, rounded towards 0. It divides 64-bit numbers if the product fits, because 128-bit
/// division takes several times as long.
pub(crate) fn mul_div(a: i64, b: i64, c: i64) -> i128 {
    match a.checked_mul(b) {
        Some(product) => i128::from(product / c),
        None => i128::from(a) * i128::from(b) / i128::from(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_however_large_the_product_is() {
        for a in [0, 1, -7, 1_000_003, i64::MAX, i64::MIN] {
            for b in [1, -3, 1_000_000, i64::MAX] {
                for c in [1, 2, 999_983, i64::MAX] {
                    assert_eq!(
                        mul_div(a, b, c),
                        i128::from(a) * i128::from(b) / i128::from(c),
                        "{a} {b} {c}"
                    );
                }
            }
        }
    }
}
