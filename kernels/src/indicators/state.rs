//! Encoding of indicator state. Each slot has the number of its bars, its averages, and for each window its values,
//! oldest first, and their sums. Values that have left a window are not written. The kept values of indicators follow.
//! Indicators that are off have no bytes.

use super::averages::{AVERAGES, BARS};
use super::ring::Ring;
use super::rolling::MOMENTS;
use super::slab::IndicatorSlab;
use super::table::IndicatorParams;
use super::windows::{MOMENTS_OF_CLOSES, QUANTITIES, SQUARED_RETURNS, WEIGHTS};
use crate::StateError;
use crate::signals::SignalParams;
use crate::state::{expect_head, expect_i64, get_f64, get_i64, put_f64, put_head, put_i64};

const STATE_VERSION: u32 = 1;

/// Limit of a slot's number of bars, which is never reached in practice; `f64` counts exactly up to it.
const BARS_MAX: i64 = 1 << 52;

impl IndicatorSlab {
    /// Appends the state's bytes; equal states have equal bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_head(out, STATE_VERSION, self.slots);
        for (_, window) in self.params.windows() {
            put_i64(out, window.into());
        }
        for slot in 0..self.slots {
            let numbers = self.columns.of_slot(slot);
            let bars = numbers[BARS] as i64;
            put_i64(out, bars);
            if bars == 0 {
                continue;
            }
            write_numbers(out, numbers[BARS + 1..AVERAGES].iter().copied());
            let windows = &self.windows;
            write_numbers(out, windows.closes.of_slot(slot, bars).map(|[close]| close));
            let moments = &numbers[MOMENTS_OF_CLOSES..][..windows.moments.len() * MOMENTS];
            write_numbers(out, moments.iter().copied());
            let squared_returns = windows.squared_returns.ring.of_slot(slot, bars);
            write_numbers(out, squared_returns.map(|[squared_return]| squared_return));
            write_numbers(out, numbers[SQUARED_RETURNS..][..2].iter().copied());
            for weight in 0..2 {
                write_numbers(out, windows.weights.ring.of_slot(slot, bars).map(|weights| weights[weight]));
                write_numbers(out, [numbers[WEIGHTS + weight], numbers[WEIGHTS + 2 + weight]]);
            }
            for kept in &windows.kept {
                write_numbers(out, kept.of_slot(slot, bars).map(|[value]| value));
            }
        }
    }

    /// Reads the bytes of [`IndicatorSlab::write`] for the same parameters and number of slots, and advances `bytes`.
    pub fn read(
        params: IndicatorParams,
        signals: &SignalParams,
        slots: usize,
        bytes: &mut &[u8],
    ) -> Result<Self, StateError> {
        expect_head(bytes, "indicator state", STATE_VERSION, slots)?;
        for (name, window) in params.windows() {
            expect_i64(bytes, name, window.into())?;
        }
        let mut slab = Self::new(params, signals);
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
        let mut numbers = [0.0; QUANTITIES];
        numbers[BARS] = bars as f64;
        for average in &mut numbers[BARS + 1..AVERAGES] {
            *average = get_f64(bytes, "average", false)?;
        }
        let windows = &mut self.windows;
        read_ring(bytes, &mut windows.closes, slot, 0, bars)?;
        let moments = windows.moments.len() * MOMENTS;
        read_sums(bytes, numbers[MOMENTS_OF_CLOSES..][..moments].iter_mut())?;
        read_ring(bytes, &mut windows.squared_returns.ring, slot, 0, bars)?;
        read_sums(bytes, numbers[SQUARED_RETURNS..][..2].iter_mut())?;
        for weight in 0..2 {
            read_ring(bytes, &mut windows.weights.ring, slot, weight, bars)?;
            read_sums(bytes, numbers[WEIGHTS + weight..].iter_mut().step_by(2).take(2))?;
        }
        for kept in &mut windows.kept {
            read_ring(bytes, kept, slot, 0, bars)?;
        }
        self.columns.set_slot(slot, numbers);
        Ok(())
    }
}

fn write_numbers(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = f64>) {
    for number in numbers {
        put_f64(out, number);
    }
}

fn read_sums<'a>(bytes: &mut &[u8], numbers: impl Iterator<Item = &'a mut f64>) -> Result<(), StateError> {
    for number in numbers {
        *number = get_f64(bytes, "sum over a window", true)?;
    }
    Ok(())
}

fn read_ring<const Q: usize>(
    bytes: &mut &[u8],
    ring: &mut Ring<Q>,
    slot: usize,
    quantity: usize,
    bars: i64,
) -> Result<(), StateError> {
    let mut values = Vec::new();
    for _ in 0..bars.min(ring.length as i64) {
        values.push(get_f64(bytes, "value of a window", true)?);
    }
    ring.set_slot(slot, quantity, bars, &values);
    Ok(())
}
