//! Indicator state as bytes. For each slot: the number of its bars, its averages, and its windows from the oldest value
//! to the newest, without what has left them.

use super::params::IndicatorParams;
use super::slab::{IndicatorSlab, Weight};
use crate::StateError;
use crate::state::{
    expect_head, expect_i64, get_f64, get_i64, get_i128, put_f64, put_head, put_i64, put_i128,
};

const STATE_VERSION: u32 = 1;

/// More bars than any slot will have, and far from overflow.
const BARS_MAX: i64 = i64::MAX / 2;

impl IndicatorSlab {
    /// Adds the state's bytes: equal states have equal bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_head(out, STATE_VERSION, self.columns.bars.len());
        for (_, window, _) in self.params.windows() {
            put_i64(out, window.into());
        }
        for (slot, &bars) in self.columns.bars.iter().enumerate() {
            put_i64(out, bars);
            if bars == 0 {
                continue;
            }
            for column in self.columns.numbers() {
                put_f64(out, column[slot]);
            }
            for ring in &self.closes.rings {
                for close in ring.newest(slot, filled(ring.length, bars)) {
                    put_f64(out, close);
                }
            }
            let returns = &self.squared_returns;
            for square in returns.newest(slot, filled(returns.length, bars - 1)) {
                put_f64(out, square);
            }
            for weight in self.weights.newest(slot, filled(self.weights.length, bars)) {
                put_i128(out, weight.notional_e18);
                put_i128(out, weight.volume_e9);
            }
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
                slab.columns.bars[slot] = bars;
                slab.read_slot(slot, bars, bytes)?;
            }
        }
        Ok(slab)
    }

    fn read_slot(&mut self, slot: usize, bars: i64, bytes: &mut &[u8]) -> Result<(), StateError> {
        for column in self.columns.numbers_mut() {
            column[slot] = get_f64(bytes, "average", false)?;
        }
        for ring in &mut self.closes.rings {
            let count = filled(ring.length, bars);
            ring.seek(slot, bars - count as i64);
            for _ in 0..count {
                ring.push(slot, get_f64(bytes, "close", false)?);
            }
        }
        let returns = &mut self.squared_returns;
        let count = filled(returns.length, bars - 1);
        returns.seek(slot, bars - count as i64);
        for _ in 0..count {
            returns.push(slot, get_f64(bytes, "squared return", true)?);
        }
        let count = filled(self.weights.length, bars);
        self.weights.seek(slot, bars - count as i64);
        for _ in 0..count {
            let weight = Weight {
                notional_e18: weight_part(bytes, "notional")?,
                volume_e9: weight_part(bytes, "volume")?,
            };
            self.weights.push(slot, weight);
            self.weight_sums[slot].notional_e18 += weight.notional_e18;
            self.weight_sums[slot].volume_e9 += weight.volume_e9;
        }
        Ok(())
    }
}

fn weight_part(bytes: &mut &[u8], what: &'static str) -> Result<i128, StateError> {
    let part = get_i128(bytes, what)?;
    if (0..=super::slab::WEIGHT_MAX).contains(&part) {
        Ok(part)
    } else {
        Err(StateError::Impossible { what, found: part.to_string() })
    }
}

/// How many values a ring holds after so many were put in.
fn filled(length: usize, values: i64) -> usize {
    usize::try_from(values).map_or(length, |values| values.min(length))
}
