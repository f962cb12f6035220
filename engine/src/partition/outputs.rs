//! Outputs of a partition that wait for a commit: signals, late ticks and dead letters, and digests of the records.

use std::collections::{BTreeMap, VecDeque};

use warptape_stages::SignalMerge;

use crate::commit::{Receipt, RecordTimes, Sealed, SideOutput};

/// Outputs, by the source offset of the record that caused them.
#[derive(Default)]
pub(super) struct Outputs {
    pub(super) signals: SignalMerge,
    /// Late ticks and dead letters, by source offset.
    side_outputs: VecDeque<SideOutput>,
    asides_bytes: usize,
    /// Offsets and digests of the records that are not sealed yet.
    digests: VecDeque<(i64, u64)>,
    /// Times of records, each with the offset from which on records have them.
    times: VecDeque<(i64, RecordTimes)>,
}

impl Outputs {
    /// Notes the times of a record.
    pub(super) fn push_times(&mut self, offset: i64, times: RecordTimes) {
        if self.times.back().is_none_or(|(_, last)| *last != times) {
            self.times.push_back((offset, times));
        }
    }

    pub(super) fn push_digest(&mut self, offset: i64, digest: u64) {
        self.digests.push_back((offset, digest));
    }

    pub(super) fn push_aside(&mut self, side_output: SideOutput) {
        self.asides_bytes += side_output.bytes.len();
        self.side_outputs.push_back(side_output);
    }

    /// Bytes of signals and side outputs.
    pub(super) fn bytes(&self) -> usize {
        self.signals.bytes() + self.asides_bytes
    }

    /// The offset before which to seal outputs of `complete` records, so that they have about `bytes_max`. All outputs
    /// of a record are sealed together, and at least one record's.
    pub(super) fn seal_before(&self, complete: i64, bytes_max: usize) -> i64 {
        if self.bytes() <= bytes_max {
            return complete;
        }
        let mut sizes = BTreeMap::new();
        self.signals.bytes_by_offset(&mut sizes);
        for side_output in &self.side_outputs {
            *sizes.entry(side_output.offset).or_default() += side_output.bytes.len();
        }
        let mut bytes = 0;
        for (offset, size) in sizes {
            if bytes > 0 && bytes + size > bytes_max {
                return complete.min(offset);
            }
            bytes += size;
        }
        complete
    }

    /// Seals outputs of records before an offset and counts them in the receipt. Drops signals of records before
    /// `committed`.
    pub(super) fn seal(&mut self, before: i64, committed: i64, sealed: &mut Sealed, receipt: &mut Receipt) {
        sealed.signals = self.signals.take_before(before);
        // These signals come from replaying records behind a snapshot, and an earlier life committed them.
        sealed.signals.skip_before(committed);
        for key in sealed.signals.keys() {
            while self.times.get(1).is_some_and(|&(first, _)| first <= key.offset) {
                self.times.pop_front();
            }
            receipt.count_signal(self.times.front().map_or_else(RecordTimes::default, |&(_, times)| times));
        }
        while self.times.get(1).is_some_and(|&(first, _)| first < before) {
            self.times.pop_front();
        }
        while let Some((_, digest)) = self.digests.pop_front_if(|(offset, _)| *offset < before) {
            sealed.ticks_digest = sealed.ticks_digest.wrapping_add(digest);
        }
        while let Some(side_output) =
            self.side_outputs.pop_front_if(|side_output| side_output.offset < before)
        {
            self.asides_bytes -= side_output.bytes.len();
            sealed.side_outputs.push(side_output);
        }
    }
}
