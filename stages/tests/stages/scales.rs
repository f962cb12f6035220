//! Prices and sizes that do not fit 64-bit numbers of 1e-9.

use warptape_schemas::signal::{Bar, Signal};
use warptape_schemas::{TickDecoder, encode_scaled_tick_batch};

use super::*;

/// Bars of one symbol, each closed by one tick.
fn bars(ticks: &[Tick]) -> Vec<Signal<'static>> {
    let mut partition = Partition::new(&config(&["tick:1"], SECOND_NS));
    for (offset, tick) in (0..).zip(ticks) {
        partition.accept(offset, tick);
        if offset == 7 {
            partition.run(usize::MAX);
            partition = Partition { merge: std::mem::take(&mut partition.merge), ..partition.restored() };
        }
    }
    partition.run(usize::MAX);
    partition.signals().iter().map(|bytes| decode_signal(bytes).unwrap().into_owned()).collect()
}

fn bar(signal: &Signal<'_>) -> Bar {
    signal.bar.clone().expect("a bar")
}

fn walk() -> Vec<Tick> {
    let price = |step: i64| 5_000_000_000 + (step * 7_919 % 400 - 200) * 1_000_000;
    (0..120).map(|step| trade("X:A", (1_000 + step) * SECOND_NS, price(step))).collect()
}

#[test]
fn a_market_with_another_scale_has_the_same_signals() {
    let ordinary = bars(&walk());
    for scale in [6, 12] {
        let scaled = walk().into_iter().map(|tick| {
            let price_e9 = if scale > 9 { tick.price_e9 * 1_000 } else { tick.price_e9 / 1_000 };
            Tick { price_e9, scales: Scales { price: scale, size: 9 }, ..tick }
        });
        let scaled = bars(&scaled.collect::<Vec<_>>());
        assert!(ordinary.len() > 120 && ordinary.len() == scaled.len(), "bars and alerts");
        for (ordinary, scaled) in ordinary.iter().zip(&scaled) {
            assert_eq!((ordinary.kind, ordinary.source_offset), (scaled.kind, scaled.source_offset));
            assert_near(ordinary.value, scaled.value);
            assert_near(ordinary.threshold, scaled.threshold);
            let (Some(ordinary), Some(scaled)) = (&ordinary.bar, &scaled.bar) else { continue };
            let exact = scaled.exact.expect("prices of another scale");
            assert_eq!(
                (exact.open.0, exact.volume.0),
                (i128::from(ordinary.open_e9.unwrap()) * 1_000_000_000, 1_000_000_000)
            );
            assert_eq!((scaled.open_e9, scaled.close_e9, scaled.volume_e9), (None, None, ordinary.volume_e9));
            assert_near(ordinary.close(), scaled.close());
            for (ordinary, scaled) in ordinary.indicators.iter().zip(&scaled.indicators) {
                assert_eq!(ordinary.is_some(), scaled.is_some());
                assert_near(ordinary.unwrap_or(0.0), scaled.unwrap_or(0.0));
            }
        }
    }
}

fn assert_near(one: f64, other: f64) {
    assert!((one - other).abs() <= 1e-9 * one.abs().max(1e-3), "{one} {other}");
}

/// A trade of 18,999,999,999 coins among ordinary ones, which once stopped a feed.
#[test]
fn a_large_size_fits_whatever_came_before() {
    let ordinary = trade("X:COIN", 1_000 * SECOND_NS, 8_120);
    let large = Tick {
        size_e9: 18_999_999_999,
        scales: Scales { price: 9, size: 0 },
        event_time_ns: 1_001 * SECOND_NS,
        ..ordinary.clone()
    };
    let with_fraction =
        Tick { size_e9: 189_999_999_995, scales: Scales { price: 9, size: 1 }, ..large.clone() };
    // More digits than nine, of which the last are 0.
    let fine = Tick { size_e9: 2_000, scales: Scales { price: 9, size: 12 }, ..large.clone() };
    let found = bars(&[ordinary, large, with_fraction, fine]);
    let volumes = found.iter().map(|signal| bar(signal).exact.map(|exact| exact.volume.0));
    let whole = 18_999_999_999_000_000_000;
    let expected = [None, Some(whole), Some(whole + 500_000_000), None];
    assert_eq!(volumes.collect::<Vec<_>>(), expected);
    for large in &found[1..3] {
        assert_eq!((bar(large).volume_e9, bar(large).open_e9), (i64::MAX, Some(8_120)));
    }
    assert_eq!(bar(&found[3]).volume_e9, 2);
}

#[test]
fn what_does_not_fit_is_refused_and_says_why() {
    let mut partition = Partition::new(&config(&["1s"], SECOND_NS));
    let at = |price_e9, price, size| Tick {
        scales: Scales { price, size },
        ..trade("X:A", 1_000 * SECOND_NS, price_e9)
    };
    partition.accept(0, &at(5_000_000_000, 9, 9));
    // The same price with other scales.
    partition.accept(1, &at(5, 0, 9));
    partition.accept(2, &at(5_000_000_000_000, 12, 9));
    let too_fine = partition.try_accept(3, &at(5_000_000_000_001, 12, 9)).unwrap_err();
    assert_eq!(too_fine.reason(), DeadLetterReason::BadPrice);
    assert!(too_fine.to_string().contains("12 digits"), "{too_fine}");
    let too_large = partition.try_accept(3, &at(10_000_000_000, 0, 9)).unwrap_err();
    assert_eq!(too_large.reason(), DeadLetterReason::BadPrice);
    let size = Tick { size_e9: 1, ..at(5_000_000_000, 9, 12) };
    let error = partition.try_accept(3, &size).unwrap_err();
    assert_eq!((error.reason(), error.field), (DeadLetterReason::BadSize, "size"));
    let new = Tick { symbol: "X:NEW".to_owned(), ..size };
    assert!(partition.try_accept(3, &new).is_err());
    assert_eq!(partition.intake.symbol_count(), 1, "what is refused numbers no symbol");
    // A symbol that begins with another scale keeps it.
    partition.accept(3, &Tick { symbol: "X:LARGE".to_owned(), ..at(10_000_000_000, 0, 9) });
    partition = partition.restored();
    partition.accept(4, &Tick { symbol: "X:LARGE".to_owned(), ..at(2_000_000_000_000, 2, 9) });
    let fine = Tick { symbol: "X:LARGE".to_owned(), ..at(2_000_000_000_005, 2, 9) };
    assert_eq!(partition.try_accept(5, &fine).unwrap_err().reason(), DeadLetterReason::BadPrice);
}

#[test]
fn the_first_scale_of_a_record_is_that_of_its_symbol() {
    let at = |price_e9, price| Tick {
        scales: Scales { price, size: 9 },
        ..trade("X:A", 1_000 * SECOND_NS, price_e9)
    };
    let mut payload = Vec::new();
    encode_scaled_tick_batch(&[at(700, 2), at(0, 9), at(-5_000_000_000, 9)], &mut payload).unwrap();
    let mut partition = Partition::new(&config(&["tick:3"], SECOND_NS));
    let mut columns = TickColumns::default();
    let Partition { intake, queues, late, .. } = &mut partition;
    TickDecoder::new().decode(&payload, intake.symbols_mut(), &mut columns).unwrap();
    intake.accept(0, 0, &mut columns, 0, queues, late);
    partition.run(usize::MAX);
    let signal = decode_signal(&partition.signals()[0]).unwrap().into_owned();
    let exact = bar(&signal).exact.expect("prices of two digits");
    const E18: i128 = 1_000_000_000_000_000_000;
    assert_eq!((exact.open.0, exact.high.0, exact.low.0), (7 * E18, 7 * E18, -5 * E18));
    assert_eq!(signal.value, -5.0);
}

#[test]
fn a_late_tick_keeps_its_scale() {
    let mut partition = Partition::new(&config(&["1s"], 0));
    partition
        .accept(0, &Tick { scales: Scales { price: 2, size: 0 }, ..trade("X:A", 2_000 * SECOND_NS, 500) });
    let mut columns = TickColumns::default();
    let late = Tick {
        scales: Scales { price: 3, size: 0 },
        size_e9: 19_000_000_000,
        ..trade("X:A", 1_000 * SECOND_NS, 5_010)
    };
    columns.push(&late, partition.intake.symbols_mut());
    let Partition { intake, queues, late, .. } = &mut partition;
    intake.accept(1, 0, &mut columns, 0, queues, late);
    assert_eq!(late.len(), 1);
    let tick = columns.tick(0, intake.symbols_mut());
    // The tick has the symbol's scale, and a size that fits 64 bits.
    assert_eq!((tick.price_e9, tick.scales.price), (501, 2));
    assert_eq!(
        i128::from(tick.size_e9) * 10_i128.pow(9 - u32::from(tick.scales.size)),
        19_000_000_000 * 1_000_000_000
    );
}
