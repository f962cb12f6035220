//! Rows are judged one by one: the outcome of a tick does not depend on how ticks were put into records.

use super::*;

const MINUTE_NS: i64 = 60 * SECOND_NS;
/// Writing time of all records: long after their ticks, as in a recording.
const WRITTEN_NS: i64 = 1_000_000 * SECOND_NS;

fn config() -> StageConfig {
    StageConfig {
        future_max_ns: MINUTE_NS,
        clock_skew_max_ns: SECOND_NS,
        symbols_max: 4,
        ..super::config(&["1s"], SECOND_NS)
    }
}

/// The outcome of ticks: numbers of the ticks that were left out, with reasons.
#[derive(Debug, Default, PartialEq)]
struct Found {
    rejected: Vec<(usize, DeadLetterReason)>,
    late: Vec<usize>,
    /// Bars, without the records that closed them.
    bars: Vec<(String, i64, Option<i64>)>,
    watermark_ns: Option<i64>,
    symbols: Vec<String>,
}

/// Runs ticks in records of `batch` each, with snapshots between.
fn run(config: &StageConfig, ticks: &[Tick], batch: usize) -> Found {
    let mut partition = Partition::new(config);
    let mut found = Found::default();
    for (record, chunk) in ticks.chunks(batch).enumerate() {
        let mut columns = TickColumns::default();
        chunk.iter().for_each(|tick| columns.push(tick, partition.intake.symbols_mut()));
        let Partition { intake, queues, late, .. } = &mut partition;
        intake.accept(record as i64, WRITTEN_NS, &mut columns, 0, queues, late);
        let number = |row: usize| record * batch + row;
        found.rejected.extend(columns.rejected.iter().map(|bad| (number(bad.row), bad.reason())));
        found.late.extend(late.drain(..).map(|late| number(late.index as usize)));
        partition.run(usize::MAX);
        for signal in partition.signals() {
            let signal = decode_signal(&signal).unwrap();
            if let Some(bar) = &signal.bar {
                found.bars.push((signal.symbol.to_string(), signal.bar_start_ns, bar.open_e9));
            }
        }
        if record % 5 == 4 {
            partition = partition.restored();
        }
    }
    found.watermark_ns = partition.intake.watermark_ns();
    found.symbols = partition.intake.symbols_mut().iter().map(str::to_owned).collect();
    // Bars that one tick closes are in the order of its record's symbols, which a larger record may name earlier.
    found.bars.sort();
    found
}

#[test]
fn one_wrong_time_costs_itself_wherever_it_is() {
    let config = StageConfig { symbols_max: u32::MAX, ..config() };
    let start_ns = 1_000 * SECOND_NS;
    for wrong in [0, 1, 5, 100, 255, 299] {
        for batch in [1, 7, 256, 300] {
            let ticks: Vec<Tick> = (0..300)
                .map(|number| {
                    let far_ns = if number == wrong { 1_000 * MINUTE_NS } else { 0 };
                    trade("X:A", start_ns + number * SECOND_NS + far_ns, 5)
                })
                .collect();
            let found = run(&config, &ticks, batch);
            match wrong {
                // The first tick is not known to be wrong before others vote against it.
                0 => assert_eq!((found.rejected.len(), found.late.len()), (0, 7), "batches of {batch}"),
                wrong => {
                    let expected = [(wrong as usize, DeadLetterReason::BadTime)];
                    assert_eq!(
                        (&found.rejected[..], found.late.len()),
                        (&expected[..], 0),
                        "batches of {batch}"
                    );
                }
            }
        }
    }
}

#[test]
fn one_symbol_does_not_move_the_watermark_of_others() {
    let config = StageConfig { symbols_max: u32::MAX, ..config() };
    let at = |number: i64| 1_000 * SECOND_NS + number * SECOND_NS / 10;
    let mut ticks: Vec<Tick> =
        (0..2_000).map(|number| trade(["X:A", "X:B"][number as usize % 2], at(number), 5)).collect();
    // Hundreds in a row, in the wrong unit.
    ticks.extend((0..3_000).map(|number| trade("X:C", 1_000 * at(number), 5)));
    ticks.extend((2_000..2_100).map(|number| trade("X:A", at(number), 5)));
    for batch in [1, 256] {
        let found = run(&config, &ticks, batch);
        assert_eq!((found.rejected.len(), found.late.len()), (3_000, 0), "batches of {batch}");
    }
}

#[test]
fn what_becomes_of_a_tick_does_not_depend_on_its_record() {
    let tick = (0..7_u8, 0..2_000_i64, 0..60_u8, 1..200_i64);
    let [rejected, late, moved] = [const { Cell::new(0) }; 3];
    TestRunner::deterministic()
        .run(&(prop::collection::vec(tick, 1..250), 2..40_usize), |(steps, batch)| {
            let mut time_ns = 1_000 * SECOND_NS;
            let one = |(symbol, step, odd, price): (u8, i64, u8, i64)| {
                time_ns += step * 1_000_000;
                let mut tick = trade(&format!("X:{symbol}"), time_ns, price * 10_000_000);
                match odd {
                    0 => time_ns += 100 * MINUTE_NS,
                    1 => tick.event_time_ns += 100 * MINUTE_NS,
                    2 => tick.event_time_ns -= 2 * SECOND_NS,
                    3 => tick.event_time_ns = WRITTEN_NS + 2 * SECOND_NS,
                    4 => tick.event_time_ns -= 90 * MINUTE_NS.min(tick.event_time_ns / 90 - 1),
                    5 => tick.scales = Scales { price: 18, size: 9 },
                    6 => (tick.scales, tick.price_e9) = (Scales { price: 2, size: 2 }, i64::MAX / 10),
                    _ => {}
                }
                tick
            };
            let ticks: Vec<Tick> = steps.into_iter().map(one).collect();
            let config = config();
            let single = run(&config, &ticks, 1);
            let batched = run(&config, &ticks, batch);
            prop_assert_eq!(&single, &batched);
            rejected.set(rejected.get() + single.rejected.len());
            late.set(late.get() + single.late.len());
            moved.set(moved.get() + usize::from(single.bars.len() > 3));
            Ok(())
        })
        .unwrap();
    let counts = [rejected, late, moved].map(Cell::into_inner);
    assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
}

#[test]
fn a_symbol_too_many_is_named_and_the_others_go_on() {
    let config = config();
    let ticks: Vec<Tick> = (0..100)
        .map(|number| trade(&format!("X:{}", number % 10), (1_000 + number) * SECOND_NS, 5))
        .collect();
    for batch in [1, 3, 100] {
        let found = run(&config, &ticks, batch);
        assert_eq!(found.rejected.len(), 60, "batches of {batch}");
        assert!(
            found
                .rejected
                .iter()
                .all(|(number, reason)| number % 10 >= 4 && *reason == DeadLetterReason::BadSymbol)
        );
    }
}
