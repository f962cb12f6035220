//! Indicator state as bytes. For each slot: the number of its bars, its averages, and for each window its values from the
//! oldest to the newest, without what has left it, and the sums over them.

use super::averages::{AVERAGES, BARS};
use super::params::IndicatorParams;
use super::ring::Ring;
use super::rolling::RollingSum;
use super::slab::IndicatorSlab;
use crate::StateError;
use crate::state::{expect_head, expect_i64, get_f64, get_i64, put_f64, put_head, put_i64};

const STATE_VERSION: u32 = 1;

/// More bars than any slot will have, and few enough to be counted in `f64`.
const BARS_MAX: i64 = 1 << 52;

impl IndicatorSlab {
    /// Adds the state's bytes: equal states have equal bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_head(out, STATE_VERSION, self.slots);
        for (_, window, _) in self.params.windows() {
            put_i64(out, window.into());
        }
        for slot in 0..self.slots {
            let averages = self.columns.of_slot(slot);
            let bars = averages[BARS] as i64;
            put_i64(out, bars);
            if bars == 0 {
                continue;
            }
            write_numbers(out, averages[BARS + 1..].iter().copied());
            let windows = &self.windows;
            write_numbers(out, windows.closes.of_slot(slot, bars));
            for window in &windows.moments {
                write_numbers(out, window.rolling.moments.of_slot(slot));
            }
            write_sum(out, &windows.squared_returns, slot, bars);
            write_sum(out, &windows.notional, slot, bars);
            write_sum(out, &windows.volume, slot, bars);
        }
    }

    /// Reads what [`IndicatorSlab::write`] wrote for the same parameters and number of slots, and moves `bytes` behind it.
    pub fn read(params: IndicatorParams, slots: usize, bytes: &mut &[u8]) -> Result<Self, StateError> {
        expect_head(bytes, "indicator state", STATE_VERSION, slots)?;
        for (name, window, _) in params.windows() {
            expect_i64(bytes, name, window.into())?;
        }
        let mut slab = Self::new(params);
        slab.resize(slots);
        for slot in 0..slots {
            let bars = get_i64(bytes, "number of bars")?;
            if !(0..=BARS_MAX).contains(&bars) {
                return Err(StateError::Impossible { what: "number of bars", found: bars.to_string() });
            }
            if bars > 0 {
                slab.read_slot(slot, bars, bytes)?;
            }
        }
        Ok(slab)
    }

    fn read_slot(&mut self, slot: usize, bars: i64, bytes: &mut &[u8]) -> Result<(), StateError> {
        let mut averages = [0.0; AVERAGES];
        averages[BARS] = bars as f64;
        for average in &mut averages[BARS + 1..] {
            *average = get_f64(bytes, "average", false)?;
        }
        self.columns.set_slot(slot, averages);
        let windows = &mut self.windows;
        read_ring(bytes, &mut windows.closes, slot, bars)?;
        for window in &mut windows.moments {
            window.rolling.moments.set_slot(slot, read_numbers(bytes)?);
        }
        read_sum(bytes, &mut windows.squared_returns, slot, bars)?;
        read_sum(bytes, &mut windows.notional, slot, bars)?;
        read_sum(bytes, &mut windows.volume, slot, bars)
    }
}

fn write_numbers(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = f64>) {
    for number in numbers {
        put_f64(out, number);
    }
}

fn read_numbers<const K: usize>(bytes: &mut &[u8]) -> Result<[f64; K], StateError> {
    let mut numbers = [0.0; K];
    for number in &mut numbers {
        *number = get_f64(bytes, "sum over a window", true)?;
    }
    Ok(numbers)
}

fn write_sum(out: &mut Vec<u8>, rolling: &RollingSum, slot: usize, bars: i64) {
    write_numbers(out, rolling.ring.of_slot(slot, bars));
    write_numbers(out, rolling.sums.of_slot(slot));
}

fn read_sum(bytes: &mut &[u8], rolling: &mut RollingSum, slot: usize, bars: i64) -> Result<(), StateError> {
    read_ring(bytes, &mut rolling.ring, slot, bars)?;
    rolling.sums.set_slot(slot, read_numbers(bytes)?);
    Ok(())
}

fn read_ring(bytes: &mut &[u8], ring: &mut Ring, slot: usize, bars: i64) -> Result<(), StateError> {
    let mut values = Vec::new();
    for _ in 0..bars.min(ring.length as i64) {
        values.push(get_f64(bytes, "value of a window", true)?);
    }
    ring.set_slot(slot, bars, &values);
    Ok(())
}
