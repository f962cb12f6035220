//! The rule that ends a simulation once it is accurate enough. It depends only on the first blocks, whatever was
//! computed after them.

/// Blocks before the first check: a round of Sobol's replicates.
pub const STOP_BLOCKS_FIRST: u64 = 32;

/// Stops at a standard error or at a number of blocks. It is checked only after [`STOP_BLOCKS_FIRST`] blocks, after
/// twice as many, and so on. So the same simulation stops at the same block, whatever the cuts. Stopping when the error
/// happens to be small biases prices and errors; because checks are rare, the bias is small.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StopRule {
    /// The standard error to be reached, in the unit of the price. An error of 0 is reached only by exact prices.
    pub standard_error: f64,
    /// Greatest number of blocks.
    pub blocks_max: u64,
}

/// The decision on a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopDecision {
    /// The simulation is accurate enough; the price is that of this many first blocks.
    Enough(u64),
    /// More blocks are needed; the next check is after this many.
    Until(u64),
}

impl StopRule {
    /// The decision after the first `blocks` blocks. `standard_error` returns the price's standard error for a number
    /// of first blocks.
    pub fn progress(&self, blocks: u64, standard_error: impl Fn(u64) -> f64) -> StopDecision {
        let mut check = STOP_BLOCKS_FIRST.min(self.blocks_max);
        loop {
            if check > blocks {
                return StopDecision::Until(check);
            }
            if check == self.blocks_max || standard_error(check) <= self.standard_error {
                return StopDecision::Enough(check);
            }
            check = check.saturating_mul(2).min(self.blocks_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stop_does_not_depend_on_what_is_there() {
        let rule = StopRule { standard_error: 0.1, blocks_max: 1_000 };
        let error = |blocks: u64| 1.0 / (blocks as f64).sqrt();
        assert_eq!(rule.progress(0, error), StopDecision::Until(32));
        assert_eq!(rule.progress(31, error), StopDecision::Until(32));
        assert_eq!(rule.progress(32, error), StopDecision::Until(64));
        assert_eq!(rule.progress(127, error), StopDecision::Until(128));
        for blocks in [128, 129, 500, 1_000, 5_000] {
            assert_eq!(rule.progress(blocks, error), StopDecision::Enough(128));
        }
        let exact = StopRule { standard_error: 0.0, ..rule };
        assert_eq!(exact.progress(999, error), StopDecision::Until(1_000));
        assert_eq!(exact.progress(1_001, error), StopDecision::Enough(1_000));
        assert_eq!(rule.progress(40, |_| f64::NAN), StopDecision::Until(64));
        let nothing = StopRule { blocks_max: 0, ..rule };
        assert_eq!(nothing.progress(0, |_| f64::INFINITY), StopDecision::Enough(0));
    }
}
