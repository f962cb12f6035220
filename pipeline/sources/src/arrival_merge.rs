//! Merges several files into one stream, in the order of their ticks' arrival.
//!
//! Lateness depends on the order of ticks in a partition's log, so files recorded at the same time must be interleaved
//! again. The merge holds one tick per file.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use warptape_events::tick::Tick;

use super::input::FileProgress;
use super::price_scales::PriceScales;
use super::{FieldProblem, PassedOver, SourceError, SourceProgress, TickSource};

/// One file of a format: its ticks, and further information that the merge needs.
pub trait TickInput: Iterator<Item = Result<Tick, SourceError>> {
    /// The word for a tick's place in the file.
    const PLACE: &'static str = "line";

    /// Counts the input's last tick as left out, because no record can hold it.
    fn leave_out(&mut self, problem: FieldProblem) -> Result<(), SourceError>;

    /// Returns the progress in bytes.
    fn progress(&self) -> &FileProgress;

    /// Returns the place of the input's last tick, from 1.
    fn place(&self) -> u64;

    /// Returns the counts of input that became no tick so far.
    fn passed_over(&self) -> PassedOver;
}

/// Merges inputs by arrival: receive time if known, otherwise event time. Equal times are in the order of the inputs,
/// and the order within an input never changes. The merge ends after an error.
pub struct ArrivalMerge<I> {
    inputs: Vec<I>,
    /// The next tick of each input; `None` if it was not read yet, or the input is at its end.
    heads: Vec<Option<Tick>>,
    /// Arrival time of each input's next tick, with the input's index.
    order: BinaryHeap<Reverse<(i64, usize)>>,
    /// Inputs whose next tick must be read before the merge chooses one: all at the beginning, later the input of the
    /// last tick. Because of this late reading, an error is reported only after all ticks before it.
    to_read: Vec<usize>,
    /// Number of ticks still to leave out, by input.
    left: Vec<u64>,
    /// Returns the time by which ticks are merged.
    time_ns: fn(&Tick) -> i64,
    scales: PriceScales,
    failed: bool,
}

impl<I: TickInput> ArrivalMerge<I> {
    pub(super) fn new(inputs: Vec<I>) -> ArrivalMerge<I> {
        let heads = inputs.iter().map(|_| None).collect();
        let to_read = (0..inputs.len()).collect();
        let left = vec![0; inputs.len()];
        let scales = PriceScales::default();
        let time_ns = arrival_ns;
        ArrivalMerge {
            inputs,
            heads,
            order: BinaryHeap::new(),
            to_read,
            left,
            time_ns,
            scales,
            failed: false,
        }
    }

    /// Merges by event time, whatever the receive times.
    pub(super) fn by_event_time(inputs: Vec<I>) -> ArrivalMerge<I> {
        ArrivalMerge { time_ns: |tick| tick.event_time_ns, ..ArrivalMerge::new(inputs) }
    }

    /// Returns the symbols with prices of another scale than nine decimals.
    pub(super) fn scaled_symbols(&self) -> &BTreeSet<String> {
        self.scales.others()
    }

    /// Returns the inputs, for their counts.
    pub(super) fn inputs(&self) -> &[I] {
        &self.inputs
    }

    fn pull(&mut self) -> Result<Option<Tick>, SourceError> {
        loop {
            while let Some(input) = self.to_read.pop() {
                self.heads[input] = self.inputs[input].next().transpose()?;
                if let Some(tick) = &self.heads[input] {
                    self.order.push(Reverse(((self.time_ns)(tick), input)));
                }
            }
            let Some(Reverse((_, input))) = self.order.pop() else { return Ok(None) };
            self.to_read.push(input);
            let tick = self.heads[input].take();
            if let Some(Err(problem)) = tick.as_ref().map(|tick| self.scales.check(tick)) {
                self.inputs[input].leave_out(problem)?;
                continue;
            }
            match self.left[input].checked_sub(1) {
                Some(left) => self.left[input] = left,
                None => return Ok(tick),
            }
        }
    }
}

impl<I: TickInput> TickSource for ArrivalMerge<I> {
    fn progress(&self) -> SourceProgress {
        FileProgress::sum(self.inputs.iter().map(I::progress))
    }

    fn last_input(&self) -> usize {
        self.to_read.last().copied().unwrap_or(0)
    }

    fn last_line(&self) -> u64 {
        self.inputs[self.last_input()].place()
    }

    fn place_word(&self) -> &'static str {
        I::PLACE
    }

    /// Left-out ticks are still read when their turn comes, because earlier ticks of other inputs may affect how an
    /// input reads its lines.
    fn leave(&mut self, input: usize, ticks: u64) {
        self.left[input] = ticks;
    }

    fn scales(&mut self) -> Option<&mut PriceScales> {
        Some(&mut self.scales)
    }

    fn passed_over(&self) -> PassedOver {
        self.inputs.iter().map(I::passed_over).sum()
    }
}

impl<I: TickInput> Iterator for ArrivalMerge<I> {
    type Item = Result<Tick, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let pulled = self.pull();
        self.failed = pulled.is_err();
        pulled.transpose()
    }
}

fn arrival_ns(tick: &Tick) -> i64 {
    if tick.receive_time_ns != 0 { tick.receive_time_ns } else { tick.event_time_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_ticks::tick;

    impl TickInput for std::vec::IntoIter<Result<Tick, SourceError>> {
        fn leave_out(&mut self, _: FieldProblem) -> Result<(), SourceError> {
            Ok(())
        }

        fn progress(&self) -> &FileProgress {
            unreachable!("these ticks are in no file")
        }

        fn place(&self) -> u64 {
            0
        }

        fn passed_over(&self) -> PassedOver {
            PassedOver::default()
        }
    }

    fn merged(inputs: &[&[i64]]) -> Vec<(i64, i64)> {
        let inputs = inputs.iter().enumerate().map(|(input, times)| {
            let ticks: Vec<_> = times
                .iter()
                .map(|&time_ns| Ok(Tick { receive_time_ns: time_ns, trade_id: input as i64, ..tick() }))
                .collect();
            ticks.into_iter()
        });
        ArrivalMerge::new(inputs.collect())
            .map(|tick| tick.expect("no input fails"))
            .map(|tick| (tick.receive_time_ns, tick.trade_id))
            .collect()
    }

    #[test]
    fn by_time_then_by_input() {
        assert_eq!(merged(&[]), []);
        assert_eq!(merged(&[&[], &[3], &[]]), [(3, 1)]);
        assert_eq!(merged(&[&[1, 5, 5], &[1, 4, 5]]), [(1, 0), (1, 1), (4, 1), (5, 0), (5, 0), (5, 1)]);
    }

    #[test]
    fn order_within_an_input_is_kept() {
        assert_eq!(merged(&[&[9, 2], &[3]]), [(3, 1), (9, 0), (2, 0)]);
    }

    #[test]
    fn event_time_stands_in_for_an_unknown_receive_time() {
        let at = |time_ns| Ok(Tick { receive_time_ns: 0, event_time_ns: time_ns, ..tick() });
        let merge = ArrivalMerge::new(vec![vec![at(7)].into_iter(), vec![at(6)].into_iter()]);
        let times: Vec<i64> = merge.map(|tick| tick.expect("no input fails").event_time_ns).collect();
        assert_eq!(times, [6, 7]);
    }

    #[test]
    fn an_error_ends_the_stream() {
        let inputs = vec![vec![Ok(tick()), Err(SourceError::NoFiles), Ok(tick())].into_iter()];
        let mut merge = ArrivalMerge::new(inputs);
        assert!(matches!(merge.next(), Some(Ok(_))));
        assert!(matches!(merge.next(), Some(Err(SourceError::NoFiles))));
        assert!(merge.next().is_none());
    }
}
