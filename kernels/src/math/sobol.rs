//! Sobol sequences (Sobol 1967) with the direction numbers of Joe and Kuo (2008): points that fill the unit cube more
//! evenly than random ones. The table, its source and licence are `sobol.txt`.
//!
//! Coordinate d of point n is `⊕ v[d][k]` over the bits k of the Gray code of n, as 32 binary digits after the point.
//! So any point can be computed without the previous ones (Antonov and Saleev 1979).

/// Number of dimensions for which there are direction numbers.
pub(crate) const SOBOL_DIMENSIONS: usize = 256;
/// Digits of a coordinate, and bits of a point's number.
pub(crate) const SOBOL_BITS: usize = 32;

/// Direction numbers of a dimension, the lowest bit first.
pub(crate) type Directions = [u32; SOBOL_BITS];

/// Direction numbers of the first `dimensions` dimensions, at most [`SOBOL_DIMENSIONS`].
pub(crate) fn directions(dimensions: usize) -> Vec<Directions> {
    assert!(dimensions <= SOBOL_DIMENSIONS, "callers check");
    let rows = include_str!("sobol.txt").lines().filter(|line| !line.starts_with('#'));
    rows.take(dimensions).map(of_row).collect()
}

/// `vₖ = vₖ₋ₛ ⊕ vₖ₋ₛ/2ˢ ⊕ a₁·vₖ₋₁ ⊕ … ⊕ aₛ₋₁·vₖ₋ₛ₊₁`, with the polynomial `xˢ + a₁·xˢ⁻¹ + … + 1`.
fn of_row(row: &str) -> Directions {
    let mut numbers = row.split(' ').map(|number| number.parse::<u32>().expect("the table has numbers"));
    let polynomial = numbers.next().expect("a row has a polynomial");
    let degree = polynomial.ilog2() as usize;
    let mut found = [0; SOBOL_BITS];
    for (bit, m) in numbers.enumerate() {
        found[bit] = m << (SOBOL_BITS - 1 - bit);
    }
    for bit in degree..SOBOL_BITS {
        if degree == 0 {
            found[bit] = 1 << (SOBOL_BITS - 1 - bit);
            continue;
        }
        found[bit] = found[bit - degree] ^ found[bit - degree] >> degree;
        for back in 1..degree {
            if polynomial >> (degree - back) & 1 == 1 {
                found[bit] ^= found[bit - back];
            }
        }
    }
    found
}

/// Coordinate of a point.
#[inline(always)]
pub(crate) fn coordinate(directions: &Directions, number: u32) -> u32 {
    let gray = number ^ number >> 1;
    let mut found = 0;
    for (bit, direction) in directions.iter().enumerate() {
        found ^= (gray >> bit & 1).wrapping_neg() & direction;
    }
    found
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::path::Path;

    use super::*;

    /// The points equal those in the fixture by `tests/scripts/make_risk_fixtures.py`.
    #[test]
    fn points_are_those_of_scipy_and_quantlib() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/sobol.csv.gz");
        let mut text = String::new();
        let file = std::fs::File::open(path).expect("the fixture is there");
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is text");
        let directions = directions(SOBOL_DIMENSIONS);
        for line in text.lines().skip(1) {
            let numbers: Vec<u32> = line.split(',').map(|number| number.parse().expect("a number")).collect();
            let [point, dimension, digits] = numbers[..] else { panic!("three columns: {line}") };
            assert_eq!(coordinate(&directions[dimension as usize], point), digits, "{line}");
        }
    }

    /// Each interval of length 2^-k has exactly one of any 2^k consecutive points that begin at a multiple of 2^k, in
    /// every dimension.
    #[test]
    fn intervals_have_their_points() {
        let directions = directions(SOBOL_DIMENSIONS);
        assert_eq!(directions.len(), SOBOL_DIMENSIONS);
        for (dimension, of) in directions.iter().enumerate() {
            for first in [0, 3 << 8, 0xffff_ff00] {
                let mut seen = [0; 256];
                (0..256).for_each(|number| seen[(coordinate(of, first + number) >> 24) as usize] += 1);
                assert_eq!(seen, [1; 256], "dimension {dimension}, from {first}");
            }
        }
    }
}
