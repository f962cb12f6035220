//! The zone of each slot's last bar in each relation, and the signals for entering another zone.

use super::detected::{Detected, SignalKind};
use super::params::SignalParams;
use crate::StateError;
use crate::bars::ClosedBars;
use crate::indicators::{Indicator, IndicatorColumns, scaled};
use crate::state::{expect_head, get_u8, put_head, put_u8};

const STATE_VERSION: u32 = 1;

/// Number of relations, each with a signal for entering *above* and one for entering *below*.
const RELATIONS: usize = KINDS.len();
pub(super) const KINDS: [(SignalKind, SignalKind); 4] = [
    (SignalKind::EmaCrossUp, SignalKind::EmaCrossDown),
    (SignalKind::RsiOverbought, SignalKind::RsiOversold),
    (SignalKind::BandBreakUp, SignalKind::BandBreakDown),
    (SignalKind::ZScoreHigh, SignalKind::ZScoreLow),
];

/// Number of relations whose zones fit in a byte.
const RELATIONS_IN_BYTE: usize = 4;
// A device has one of 32 bits for each kind of signal.
const _: () = assert!(RELATIONS <= 16);

/// Position of a value relative to its two lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
enum Zone {
    /// The value or one of the lines is not available.
    #[default]
    None = 0,
    Below = 1,
    Between = 2,
    Above = 3,
}

/// A value with its two lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relation {
    pub value: f64,
    pub upper: f64,
    pub lower: f64,
}

impl Relation {
    fn zone(self) -> Zone {
        if self.value > self.upper {
            Zone::Above
        } else if self.value < self.lower {
            Zone::Below
        } else if self.value <= self.upper && self.value >= self.lower {
            Zone::Between
        } else {
            Zone::None
        }
    }
}

/// The zones of each slot's last bar.
#[derive(Clone, Debug)]
pub struct SignalSlab {
    params: SignalParams,
    zones: Vec<[Zone; RELATIONS]>,
}

impl SignalSlab {
    /// A slab with no slots. The parameters must have passed [`SignalParams::check`].
    pub fn new(params: SignalParams) -> Self {
        Self { params, zones: Vec::new() }
    }

    /// Makes room for `slots` slots; the number never decreases.
    pub fn resize(&mut self, slots: usize) {
        self.zones.resize(self.zones.len().max(slots), Default::default());
    }

    /// Copies the zones of a slot from another slab.
    pub fn copy_slot(&mut self, to: usize, from: &Self, slot: usize) {
        self.zones[to] = from.zones[slot];
    }

    /// Adds the signals of bars and their indicators, in the order of the bars and then of the kinds. Panics at a slot
    /// without room.
    pub fn detect(&mut self, closed: &ClosedBars, indicators: &IndicatorColumns, out: &mut Vec<Detected>) {
        assert_eq!(closed.len(), indicators.len(), "indicators were computed from other bars");
        for row in 0..closed.len() {
            let bar = detected_bar(closed, row);
            out.push(bar);
            let zones = &mut self.zones[closed.slot[row] as usize];
            for ((zone, relation), (above, below)) in
                zones.iter_mut().zip(relations(&self.params, bar.value, indicators, row)).zip(KINDS)
            {
                let before = std::mem::replace(zone, relation.zone());
                if before == *zone || before == Zone::None {
                    continue;
                }
                let (kind, threshold) = match zone {
                    Zone::Above => (above, relation.upper),
                    Zone::Below => (below, relation.lower),
                    Zone::Between | Zone::None => continue,
                };
                out.push(Detected { row: bar.row, kind, value: relation.value, threshold });
            }
        }
    }

    /// Appends the state's bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_head(out, STATE_VERSION, self.zones.len());
        let bytes = self.bytes_of_zones();
        for zones in &self.zones {
            packed(zones).to_le_bytes()[..bytes].iter().for_each(|&byte| put_u8(out, byte));
        }
    }

    /// Bytes of a slot's zones in states: one, plus one if a relation after the fourth is on.
    fn bytes_of_zones(&self) -> usize {
        self.params.relations().div_ceil(RELATIONS_IN_BYTE)
    }

    /// The zones of each slot in a device's layout: two bits for each relation, the first one lowest.
    pub(crate) fn packed_zones(&self) -> impl Iterator<Item = u32> + '_ {
        self.zones.iter().map(packed)
    }

    /// Sets the zones of a slot, given in a device's layout.
    pub(crate) fn set_packed_zones(&mut self, slot: usize, zones: u32) {
        self.zones[slot] = unpacked(zones);
    }

    /// Reads the bytes of [`SignalSlab::write`] for the same number of slots, and advances `bytes`.
    pub fn read(params: SignalParams, slots: usize, bytes: &mut &[u8]) -> Result<Self, StateError> {
        expect_head(bytes, "signal state", STATE_VERSION, slots)?;
        let mut slab = Self::new(params);
        for _ in 0..slots {
            let mut zones = [0; 4];
            for byte in &mut zones[..slab.bytes_of_zones()] {
                *byte = get_u8(bytes, "signal zones")?;
            }
            slab.zones.push(unpacked(u32::from_le_bytes(zones)));
        }
        Ok(slab)
    }
}

fn unpacked(zones: u32) -> [Zone; RELATIONS] {
    std::array::from_fn(|relation| match zones >> (2 * relation) & 3 {
        0 => Zone::None,
        1 => Zone::Below,
        2 => Zone::Between,
        _ => Zone::Above,
    })
}

fn packed(zones: &[Zone; RELATIONS]) -> u32 {
    zones.iter().rev().fold(0, |packed, &zone| packed << 2 | zone as u32)
}

/// The signal of a bar itself.
pub(super) fn detected_bar(closed: &ClosedBars, row: usize) -> Detected {
    let number = u32::try_from(row).expect("bars of a batch are counted in 32 bits");
    Detected { row: number, kind: SignalKind::Bar, value: scaled(closed.close_e9[row]), threshold: 0.0 }
}

/// The relations of a bar, in the order of [`KINDS`].
pub(super) fn relations(
    params: &SignalParams,
    close: f64,
    indicators: &IndicatorColumns,
    row: usize,
) -> [Relation; RELATIONS] {
    let at = |indicator| indicators.at(indicator, row);
    let slow = at(Indicator::EmaSlow);
    [
        Relation { value: at(Indicator::EmaFast), upper: slow, lower: slow },
        Relation { value: at(Indicator::Rsi), upper: params.rsi_upper, lower: params.rsi_lower },
        Relation { value: close, upper: at(Indicator::BollingerUpper), lower: at(Indicator::BollingerLower) },
        Relation {
            value: at(Indicator::Zscore),
            upper: params.zscore_threshold,
            lower: -params.zscore_threshold,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indicators::INDICATORS;

    /// Checks the signals of one slot's bars with these RSI values.
    fn check(values: &[f64], expected: &[(u32, SignalKind)]) {
        let mut closed = ClosedBars::default();
        closed.slot.resize(values.len(), 0);
        closed.close_e9.resize(values.len(), 5_000_000_000);
        let mut indicators = IndicatorColumns::default();
        for &value in values {
            let mut bar = [f64::NAN; INDICATORS];
            bar[Indicator::Rsi as usize] = value;
            indicators.push(bar);
        }
        let mut slab = SignalSlab::new(SignalParams::default());
        slab.resize(1);
        let mut detected = Vec::new();
        slab.detect(&closed, &indicators, &mut detected);
        let (bars, others): (Vec<Detected>, Vec<Detected>) =
            detected.into_iter().partition(|detected| detected.kind == SignalKind::Bar);
        assert!(bars.iter().all(|bar| bar.value == 5.0 && bar.threshold == 0.0));
        assert_eq!(bars.len(), values.len());
        let found: Vec<_> = others.iter().map(|detected| (detected.row, detected.kind)).collect();
        assert_eq!(found, expected, "{values:?}");
        for detected in others {
            assert_eq!(detected.value, values[detected.row as usize]);
            assert_eq!(
                detected.threshold,
                if detected.kind == SignalKind::RsiOverbought { 70.0 } else { 30.0 }
            );
        }
    }

    #[test]
    fn entering_a_zone_is_detected_and_staying_is_not() {
        use SignalKind::{RsiOverbought as Up, RsiOversold as Down};
        check(&[50.0, 71.0, 72.0, 70.0, 71.0], &[(1, Up), (4, Up)]);
        check(&[50.0, 29.0, 28.0, 30.0, 29.0], &[(1, Down), (4, Down)]);
        check(&[50.0, 71.0, 29.0, 71.0], &[(1, Up), (2, Down), (3, Up)]);
        check(&[70.0, 30.0, 70.0], &[]);
    }

    #[test]
    fn nothing_is_detected_on_a_first_value() {
        use SignalKind::RsiOversold as Down;
        check(&[f64::NAN, 71.0, 72.0], &[]);
        check(&[71.0, f64::NAN, 71.0, 29.0], &[(3, Down)]);
    }
}
