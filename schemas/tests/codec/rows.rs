//! Invalid rows of a batch, rejected one by one: the other rows are valid, and each invalid row can become a record of
//! its own.

use warptape_schemas::tick::TickColumns;
use warptape_schemas::*;

use crate::rejected::{framed, longs, texts};

/// The problems of rows 1, 2, 4, 5, 6 and 7 of [`batch`].
const WRONG: [(usize, &str, DeadLetterReason); 6] = [
    (1, "symbol", DeadLetterReason::BadSymbol),
    (2, "price_e9", DeadLetterReason::BadPrice),
    (4, "kind", DeadLetterReason::BadKind),
    (5, "symbol", DeadLetterReason::BadSymbol),
    (6, "event_time_ns", DeadLetterReason::BadTime),
    (7, "symbol", DeadLetterReason::BadSymbol),
];

/// Ten trades, some of them invalid in many ways; the last symbol has a valid row only after invalid ones.
fn batch() -> Vec<u8> {
    let ones = longs(&[1; 10]);
    framed(
        known::TICK_BATCH,
        &[
            texts(&[b"A:X", b"", b"B:X", b"C:X", b"\xff"]),
            longs(&[0, 1, 0, 2, 0, 9, 3, -1, 2, 3]),
            longs(&[0, 0, 0, 0, 7, 0, 0, 0, 0, 0]),
            longs(&[5, 5, 5, 5, 5, 5, 0, 5, 6, 7]),
            longs(&[]),
            longs(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
            longs(&[]),
            longs(&[10, 20, 0, 40, 50, 60, 70, 80, 90, 100]),
            ones,
            longs(&[]),
            longs(&[]),
            longs(&[]),
            longs(&[]),
        ],
    )
}

fn decode(decoder: &mut TickDecoder, payload: &[u8]) -> (SymbolTable, TickColumns, usize) {
    let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
    let rows = decoder.decode(payload, &mut symbols, &mut columns).expect("rows are judged by themselves");
    (symbols, columns, rows)
}

#[test]
fn bad_rows_cost_themselves() {
    let (symbols, columns, rows) = decode(&mut TickDecoder::new().by_rows(true), &batch());
    assert_eq!((rows, columns.len()), (10, 10));
    let found: Vec<_> =
        columns.rejected.iter().map(|invalid| (invalid.row, invalid.field, invalid.reason())).collect();
    assert_eq!(found, WRONG);
    assert!(symbols.iter().eq(["A:X", "B:X", "C:X"]), "in the order of their first good rows");
    for (row, symbol, price) in [(0, "A:X", 10), (3, "B:X", 40), (8, "B:X", 90), (9, "C:X", 100)] {
        let tick = columns.tick(row, &symbols);
        assert_eq!((&*tick.symbol, tick.price_e9), (symbol, price));
    }
    let error = TickDecoder::new().decode(&batch(), &mut SymbolTable::default(), &mut TickColumns::default());
    assert!(error.is_err(), "otherwise they cost the record");
    // An unreadable record is always rejected as a whole.
    let mut cut = batch();
    cut.pop();
    let error = TickDecoder::new().by_rows(true).decode(
        &cut,
        &mut SymbolTable::default(),
        &mut TickColumns::default(),
    );
    assert!(matches!(error, Err(DecodeError::Truncated { .. })), "{error:?}");
}

#[test]
fn a_row_alone_is_as_bad_as_it_was() {
    let mut decoder = TickDecoder::new().by_rows(true);
    let (_, whole, _) = decode(&mut decoder, &batch());
    let numbers: Vec<u32> = WRONG.iter().map(|(row, ..)| *row as u32).collect();
    let mut selections: Vec<&[u32]> = numbers.chunks(1).collect();
    selections.extend([&[0, 9][..], &numbers]);
    let alone = decoder.rows_alone(&batch(), &selections);
    for ((_, field, reason), payload) in WRONG.iter().zip(&alone) {
        let (_, columns, rows) = decode(&mut decoder, payload);
        let found: Vec<_> =
            columns.rejected.iter().map(|invalid| (invalid.row, invalid.field, invalid.reason())).collect();
        assert_eq!((rows, found), (1, vec![(0, *field, *reason)]));
    }
    let (symbols, columns, rows) = decode(&mut decoder, &alone[WRONG.len()]);
    assert_eq!((rows, &columns.rejected[..]), (2, &[][..]));
    let ticks = [0, 1].map(|row| columns.tick(row, &symbols));
    assert_eq!(
        ticks.map(|tick| (tick.symbol, tick.trade_id)),
        [("A:X".to_owned(), 1), ("C:X".to_owned(), 10)]
    );
    let (_, columns, _) = decode(&mut decoder, &alone[WRONG.len() + 1]);
    let reasons =
        |columns: &TickColumns| columns.rejected.iter().map(InvalidTick::reason).collect::<Vec<_>>();
    assert_eq!(reasons(&columns), reasons(&whole));
    // A producer corrects the invalid values and sends the rest unchanged, so all numbers are kept.
    assert_eq!(columns.trade_id, [2, 3, 5, 6, 7, 8]);
}

#[test]
fn rows_with_scales_keep_them_and_bad_scales_cost_their_rows() {
    let payload = framed(
        known::SCALED_TICK_BATCH,
        &[
            texts(&[b"A:X", b"B:X", b"C:X"]),
            longs(&[14, 77, 2]),
            longs(&[0, 0, 0]),
            longs(&[0, 1, 2, 2]),
            longs(&[0, 0, 0, 0]),
            longs(&[5, 5, 0, 5]),
            longs(&[]),
            longs(&[]),
            longs(&[]),
            longs(&[1, 2, 3, 0]),
            longs(&[]),
            longs(&[]),
            longs(&[]),
            longs(&[]),
            longs(&[]),
        ],
    );
    let mut decoder = TickDecoder::new().by_rows(true);
    let (_, columns, _) = decode(&mut decoder, &payload);
    let found: Vec<_> = columns.rejected.iter().map(|invalid| (invalid.row, invalid.field)).collect();
    assert_eq!(found, [(1, "price_scale"), (2, "event_time_ns")]);
    let alone = decoder.rows_alone(&payload, &[&[1], &[2], &[0, 3]]);
    for (payload, field) in alone.iter().zip(["price_scale", "event_time_ns"]) {
        assert_eq!(decode(&mut decoder, payload).1.rejected[0].field, field);
    }
    let (symbols, columns, _) = decode(&mut decoder, &alone[2]);
    let ticks = [0, 1].map(|row| columns.tick(row, &symbols));
    assert_eq!(ticks.map(|tick| (tick.price_e9, tick.scales.price)), [(1, 14), (0, 2)]);
}
