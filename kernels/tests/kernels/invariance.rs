//! Results must have the same bits whatever the instructions, the cuts, and the way to a state.

use proptest::prelude::*;
use warptape_kernels::{
    ClosedBars, INDICATORS, Indicator, IndicatorColumns, IndicatorParams, IndicatorSlab, Isa, SignalParams,
};

use crate::bars::specs;
use crate::chain::{Chain, short_params};
use crate::market::{Market, Numbers, closed_bars, push};

const SECOND_NS: i64 = 1_000_000_000;

fn market(seed: u64, slots: u32, ticks: usize) -> Market {
    Market { seed, slots, ticks, allowed_lateness_ns: 2 * SECOND_NS, specs: specs() }
}

/// Arbitrary bars: prices and sizes of any magnitude and sign, slots in any order and number.
pub fn any_bars(seed: u64, slots: u32, bars: usize) -> ClosedBars {
    let mut numbers = Numbers::new(seed);
    let mut closed = ClosedBars::default();
    for bar in 0..bars {
        let slot = match numbers.below(3) {
            0 => numbers.below(slots.into()) as u32,
            _ => bar as u32 % slots,
        };
        let shift = numbers.below(63);
        let mut price = || (numbers.next() as i64) >> shift;
        let prices = [price(), price(), price(), price()];
        let volume_e9 = i128::from(numbers.next()) << numbers.below(60);
        push(&mut closed, slot, bar as i64, prices, 0);
        closed.volume_e9[bar] = volume_e9;
        closed.notional_e18[bar] = volume_e9.saturating_mul(i128::from(prices[0]));
    }
    closed
}

/// Some of the bars, in the given order.
fn select(closed: &ClosedBars, rows: &[usize]) -> ClosedBars {
    let mut selected = ClosedBars::default();
    for &row in rows {
        let prices = [closed.open_e9[row], closed.high_e9[row], closed.low_e9[row], closed.close_e9[row]];
        push(&mut selected, closed.slot[row], closed.offset[row], prices, closed.volume_e9[row]);
    }
    selected
}

fn update(
    params: &IndicatorParams,
    isa: Isa,
    slots: u32,
    closed: &ClosedBars,
) -> (Vec<[u64; INDICATORS]>, Vec<u8>) {
    let mut slab = IndicatorSlab::new(params.clone(), &SignalParams::default());
    slab.resize(slots as usize);
    let mut columns = IndicatorColumns::default();
    slab.update(isa, closed, &mut columns);
    let bits = (0..columns.len()).map(|row| columns.of_bar(row).map(f64::to_bits)).collect();
    let mut state = Vec::new();
    slab.write(&mut state);
    (bits, state)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn instructions_do_not_change_a_bit(seed: u64, slots in 1..30_u32, bars in 1..900_usize) {
        let closed = any_bars(seed, slots, bars);
        for params in [short_params(), IndicatorParams::default()] {
            let baseline = update(&params, Isa::Baseline, slots, &closed);
            for isa in Isa::supported() {
                prop_assert!(baseline == update(&params, isa, slots, &closed), "bits differ with {isa:?}");
            }
        }
    }

    #[test]
    fn neighbours_do_not_change_a_bit(seed: u64, slots in 1..23_u32, ahead in prop::collection::vec(0..30_usize, 23)) {
        // First, only some slots have bars. Then every slot has one at each time, in blocks if the slots are even.
        let params = short_params();
        let times = closed_bars(seed, slots, 180);
        let mut together = IndicatorSlab::new(params.clone(), &SignalParams::default());
        together.resize(slots as usize);
        let mut single = together.clone();
        let mut reversed = together.clone();
        let mut columns = [IndicatorColumns::default(), IndicatorColumns::default(), IndicatorColumns::default()];
        for (time, closed) in times.iter().enumerate() {
            let rows: Vec<usize> = (0..slots as usize).filter(|&slot| time >= 30 || time < ahead[slot]).collect();
            let all = select(closed, &rows);
            together.update(Isa::detect(), &all, &mut columns[0]);
            let backwards: Vec<usize> = rows.iter().rev().copied().collect();
            reversed.update(Isa::detect(), &select(closed, &backwards), &mut columns[1]);
            for (position, &row) in rows.iter().enumerate() {
                single.update(Isa::Baseline, &select(closed, &[row]), &mut columns[2]);
                for indicator in Indicator::ALL {
                    let expected = columns[0].at(indicator, position).to_bits();
                    prop_assert_eq!(columns[1].at(indicator, rows.len() - 1 - position).to_bits(), expected);
                    prop_assert_eq!(columns[2].at(indicator, 0).to_bits(), expected);
                }
            }
        }
        let state = |slab: &IndicatorSlab| {
            let mut bytes = Vec::new();
            slab.write(&mut bytes);
            bytes
        };
        prop_assert_eq!(state(&together), state(&single));
        prop_assert_eq!(state(&together), state(&reversed));
    }

    #[test]
    fn cuts_do_not_change_a_bit(
        seed: u64,
        slots in 1..20_u32,
        cuts in prop::collection::vec(0.0..1.0, 0..12),
    ) {
        let market = market(seed, slots, 1500);
        let rows = market.rows();
        let params = short_params();
        let mut whole = Chain::new(&market, &params, Isa::detect());
        whole.run(&rows, 0..rows.len());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| (cut * rows.len() as f64) as usize).collect();
        cuts.extend([0, rows.len()]);
        cuts.sort_unstable();
        let mut parts = Chain::new(&market, &params, Isa::Baseline);
        let mut rest = rows.clone();
        for cut in cuts.windows(2) {
            // The rows of a part are separate rows, as a lane gets them.
            let part = rest.take_front(cut[1] - cut[0]);
            parts.run(&part, 0..part.len());
        }
        for (whole, parts) in whole.out.iter_mut().zip(&mut parts.out) {
            // Only the row's position within the part may differ.
            for closed in whole.closed.iter_mut().chain(&mut parts.closed) {
                closed.row.clear();
            }
            prop_assert!(whole == parts, "outputs differ");
        }
        prop_assert_eq!(whole.state(), parts.state());
    }

    #[test]
    fn a_restored_state_has_the_same_future(seed: u64, slots in 1..20_u32, cut in 0.0..1.0) {
        let market = market(seed, slots, 1500);
        let rows = market.rows();
        let cut = (cut * rows.len() as f64) as usize;
        for params in [short_params(), IndicatorParams { sma: 40, vwap: 33, ..IndicatorParams::default() }] {
            let mut straight = Chain::new(&market, &params, Isa::detect());
            straight.run(&rows, 0..cut);
            let bytes = straight.state();
            let mut restored = Chain::new(&market, &params, Isa::detect());
            restored.restore(&market, &params, &bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(restored.state(), bytes);
            restored.out = straight.out.clone();
            straight.run(&rows, cut..rows.len());
            restored.run(&rows, cut..rows.len());
            prop_assert!(straight.out == restored.out, "outputs differ");
            prop_assert_eq!(straight.state(), restored.state());
        }
    }

    #[test]
    fn damaged_bytes_are_an_error_or_another_state(seed: u64, place in 0.0..1.0, bit in 0..8_u32, cut in 0.0..1.0) {
        let market = market(seed, 3, 300);
        let rows = market.rows();
        let params = short_params();
        let mut chain = Chain::new(&market, &params, Isa::Baseline);
        chain.run(&rows, 0..rows.len());
        let bytes = chain.state();
        let cut = (cut * bytes.len() as f64) as usize;
        prop_assert!(chain.clone().restore(&market, &params, &bytes[..cut]).is_err(), "truncated bytes were read");
        let mut flipped = bytes.clone();
        flipped[(place * bytes.len() as f64) as usize] ^= 1 << bit;
        if chain.restore(&market, &params, &flipped).is_ok() {
            prop_assert_eq!(chain.state(), flipped);
        }
    }
}

#[test]
fn state_of_another_configuration_is_refused() {
    let market = market(5, 3, 100);
    let params = short_params();
    let chain = Chain::new(&market, &params, Isa::Baseline);
    let bytes = chain.state();
    let refused =
        |market: &Market, params: &IndicatorParams| chain.clone().restore(market, params, &bytes).is_err();
    assert!(!refused(&market, &params));
    assert!(refused(&Market { slots: 4, ..market.clone() }, &params));
    assert!(refused(&market, &IndicatorParams { roc: 6, ..params.clone() }));
    let mut specs = specs();
    specs.swap(0, 1);
    assert!(refused(&Market { specs, ..market.clone() }, &params));
}
