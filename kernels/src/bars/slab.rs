//! Open bars of one specification, with their quotes, for all slots of a group.

use std::ops::Range;

use super::closed::ClosedBars;
use super::filled::{Fill, FilledBars};
use super::spec::BarSpec;
use super::time::TimeBars;
use crate::StateError;
use crate::rows::Rows;
use crate::state::{expect_head, expect_i64, put_head, put_i64};

/// Version of the state's bytes.
const STATE_VERSION: u32 = 3;

/// Open bars of one specification for all slots of a group.
#[derive(Clone, Debug)]
pub struct BarSlab {
    spec: BarSpec,
    slots: usize,
    pub(super) open: OpenBars,
}

#[derive(Clone, Debug)]
pub(super) enum OpenBars {
    Time(TimeBars),
    Filled(FilledBars),
}

impl BarSlab {
    /// A slab with no slots. The specification must have passed [`BarSpec::check`] with the same lateness.
    pub fn new(spec: BarSpec, allowed_lateness_ns: i64) -> Self {
        let open_max = spec.open_bars_max(allowed_lateness_ns);
        let open = match spec {
            BarSpec::Time { interval_ns } => OpenBars::Time(TimeBars::new(interval_ns, open_max)),
            BarSpec::Ticks { count } => {
                OpenBars::Filled(FilledBars::new(Fill::Trades(count), allowed_lateness_ns))
            }
            BarSpec::Volume { volume_e9 } => {
                OpenBars::Filled(FilledBars::new(Fill::VolumeE9(volume_e9), allowed_lateness_ns))
            }
        };
        Self { spec, slots: 0, open }
    }

    /// Makes room for `slots` slots; the number never decreases.
    pub fn resize(&mut self, slots: usize) {
        self.slots = self.slots.max(slots);
        match &mut self.open {
            OpenBars::Time(bars) => bars.resize(slots),
            OpenBars::Filled(bars) => bars.resize(slots),
        }
    }

    /// True if open bars exist that a watermark will close.
    pub fn has_open_time_bars(&self) -> bool {
        match &self.open {
            OpenBars::Time(bars) => bars.has_open(),
            OpenBars::Filled(_) => false,
        }
    }

    /// Number of open bars with trades that a watermark will close.
    pub fn open_time_bars(&self) -> usize {
        match &self.open {
            OpenBars::Time(bars) => bars.open_count(),
            OpenBars::Filled(_) => 0,
        }
    }

    /// Sets the state of a slot, which has none yet, to that of a slot in a slab of the same kind.
    pub fn copy_slot(&mut self, to: usize, from: &Self, slot: usize) {
        match (&mut self.open, &from.open) {
            (OpenBars::Time(bars), OpenBars::Time(from)) => bars.copy_slot(to, from, slot),
            (OpenBars::Filled(bars), OpenBars::Filled(from)) => bars.copy_slot(to, from, slot),
            _ => panic!("the slabs are of one specification"),
        }
    }

    /// Folds the trades and quotes of `range` and adds the bars that trades and watermarks close to `closed`.
    ///
    /// Panics at a slot without room, and if more time bars are open than the lateness allows. The caller must leave
    /// out late ticks, and put a watermark row before each tick that moves the watermark over a boundary.
    pub fn fold(&mut self, rows: &Rows, range: Range<usize>, closed: &mut ClosedBars) {
        match &mut self.open {
            OpenBars::Time(bars) => bars.fold(rows, range, closed),
            OpenBars::Filled(bars) => bars.fold(rows, range, closed),
        }
    }

    /// Appends the state's bytes; equal states have equal bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_head(out, STATE_VERSION, self.slots);
        let (kind, parameter) = kind_and_parameter(self.spec);
        put_i64(out, kind);
        put_i64(out, parameter);
        match &self.open {
            OpenBars::Time(bars) => bars.write(out),
            OpenBars::Filled(bars) => bars.write(out),
        }
    }

    /// Reads the bytes of [`BarSlab::write`] for the same specification, lateness and number of slots, and advances
    /// `bytes`.
    pub fn read(
        spec: BarSpec,
        allowed_lateness_ns: i64,
        slots: usize,
        bytes: &mut &[u8],
    ) -> Result<Self, StateError> {
        expect_head(bytes, "bar state", STATE_VERSION, slots)?;
        let (kind, parameter) = kind_and_parameter(spec);
        expect_i64(bytes, "kind of bars", kind)?;
        expect_i64(bytes, "interval, count or volume", parameter)?;
        let open_max = spec.open_bars_max(allowed_lateness_ns);
        let open = match spec {
            BarSpec::Time { interval_ns } => {
                OpenBars::Time(TimeBars::read(interval_ns, open_max, slots, bytes)?)
            }
            BarSpec::Ticks { count } => {
                OpenBars::Filled(FilledBars::read(Fill::Trades(count), allowed_lateness_ns, slots, bytes)?)
            }
            BarSpec::Volume { volume_e9 } => OpenBars::Filled(FilledBars::read(
                Fill::VolumeE9(volume_e9),
                allowed_lateness_ns,
                slots,
                bytes,
            )?),
        };
        Ok(Self { spec, slots, open })
    }
}

fn kind_and_parameter(spec: BarSpec) -> (i64, i64) {
    match spec {
        BarSpec::Time { interval_ns } => (0, interval_ns),
        BarSpec::Ticks { count } => (1, count),
        BarSpec::Volume { volume_e9 } => (2, volume_e9),
    }
}
