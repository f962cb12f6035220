//! Sums in the shape that the documentation of `portfolio` describes, added term by term.

use crate::pricing::draws::{LANES, Lanes};

/// A sum in progress: the partial sums that wait for a neighbour, the one with the most terms first. The bits of
/// `count` give the number of terms of each.
#[derive(Debug, Default)]
pub(super) struct Tree {
    waiting: Vec<Lanes<f64>>,
    count: usize,
}

impl Tree {
    #[inline(always)]
    pub(super) fn add(&mut self, mut term: Lanes<f64>) {
        for _ in 0..self.count.trailing_ones() {
            let Some(before) = self.waiting.pop() else { break };
            for (term, before) in term.iter_mut().zip(&before) {
                *term += before;
            }
        }
        self.waiting.push(term);
        self.count += 1;
    }

    /// Returns the sum, which is 0 if there are no terms, and begins a new one.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Lanes<f64> {
        self.count = 0;
        let mut sum = self.waiting.pop().unwrap_or([0.0; LANES]);
        while let Some(before) = self.waiting.pop() {
            for (sum, before) in sum.iter_mut().zip(&before) {
                *sum += before;
            }
        }
        sum
    }
}

/// The sum of some numbers in the same shape.
pub(super) fn sum(terms: &[f64]) -> f64 {
    match terms {
        [] => 0.0,
        [term] => *term,
        _ => {
            let (first, rest) = terms.split_at(terms.len().next_power_of_two() / 2);
            sum(first) + sum(rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_have_one_shape() {
        let terms: Vec<f64> = (0..300).map(|i| 1.0 / f64::from(i * i + 1)).collect();
        let mut tree = Tree::default();
        for count in 0..terms.len() {
            terms[..count].iter().for_each(|term| tree.add([*term; LANES]));
            assert_eq!(tree.take(), [sum(&terms[..count]); LANES], "{count}");
        }
        // A sum of another shape must have other bits here; otherwise this test would prove nothing.
        assert_ne!(sum(&terms), terms.iter().sum::<f64>());
    }
}
