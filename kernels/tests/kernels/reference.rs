//! A slow reference for bars: it follows their definition over the whole history.

use std::collections::BTreeMap;

use warptape_kernels::{ABSENT, BarSpec, BySide, ClosedBars, FORGOTTEN, RECENT_QUOTES_MAX, RowKind, Rows};

/// The bars that rows close, by definition.
pub fn bars(spec: BarSpec, rows: &Rows) -> ClosedBars {
    let mut found: Vec<(usize, Bar)> = match spec {
        BarSpec::Time { interval_ns } => time_bars(interval_ns, rows),
        BarSpec::Ticks { count } => filled_bars(rows, |bar| bar.len() as i64 >= count),
        BarSpec::Volume { volume_e9 } => filled_bars(rows, |bar| {
            bar.iter().map(|&row| size_e9(rows, row)).sum::<i128>() >= i128::from(volume_e9)
        }),
    };
    found.sort_by_key(|(cause, bar)| (*cause, bar.start_ns, bar.slot));
    let mut closed = ClosedBars::default();
    for (cause, bar) in found {
        let prices: Vec<i64> = bar.trades.iter().map(|&row| rows.price_e9[row]).collect();
        let sizes: Vec<i128> = bar.trades.iter().map(|&row| size_e9(rows, row)).collect();
        let quote = quote(spec, rows, cause, &bar);
        closed.slot.push(bar.slot);
        closed.start_ns.push(bar.start_ns);
        closed.end_ns.push(bar.end_ns);
        closed.open_e9.push(prices[0]);
        closed.high_e9.push(*prices.iter().max().expect("a bar has trades"));
        closed.low_e9.push(*prices.iter().min().expect("a bar has trades"));
        closed.close_e9.push(prices[prices.len() - 1]);
        closed.volume_e9.push(sizes.iter().sum());
        let notional = prices.iter().zip(&sizes).map(|(&price, &size)| i128::from(price) * size);
        closed.notional_e18.push(notional.sum());
        closed.trades.push(prices.len() as i64);
        closed.bid_price_e9.push(quote.map_or(0, |row| rows.price_e9[row]));
        closed.ask_price_e9.push(quote.map_or(0, |row| rows.size_e9[row]));
        let of = |aggressor: u32| -> (i128, i64) {
            let trades = bar.trades.iter().filter(|&&row| rows.kind[row].aggressor() == aggressor);
            (trades.clone().map(|&row| size_e9(rows, row)).sum(), trades.count() as i64)
        };
        let [(buys_e9, buys), (sells_e9, sells)] = [of(1), of(2)];
        closed.by_side.push(BySide { volumes_e9: [buys_e9, sells_e9], trades: [buys, sells] });
        closed
            .quote_sizes_e9
            .push(quote.map_or_else(|special| [special.into(); 2], |row| quote_sizes_e9(rows, row)));
        closed.is_cut.push(rows.kind[cause] == RowKind::CUT);
        closed.offset.push(rows.offset[cause]);
        closed.index.push(rows.index[cause]);
        closed.row.push(cause as u32);
    }
    closed
}

/// Row of a bar's quote. For a time bar, it is the last quote before the bar's end, by event time and arrival, at any
/// row. For other bars, it is the last quote at or before the end, among the rows before the one that closed the bar.
/// Without such a quote, returns the special size: a quote is forgotten if too many newer ones came before the trade.
fn quote(spec: BarSpec, rows: &Rows, cause: usize, bar: &Bar) -> Result<usize, i64> {
    let of_slot = |&row: &usize| rows.kind[row].is_quote() && rows.slot[row] == bar.slot;
    let last = |quotes: Vec<usize>| quotes.into_iter().max_by_key(|&row| (rows.time_ns[row], row));
    if let BarSpec::Time { .. } = spec {
        let before_end = (0..rows.len()).filter(of_slot).filter(|&row| rows.time_ns[row] < bar.end_ns);
        return last(before_end.collect()).ok_or(ABSENT);
    }
    let (after, quotes): (Vec<usize>, Vec<usize>) =
        (0..cause).filter(of_slot).partition(|&row| rows.time_ns[row] > bar.end_ns);
    match after.len() {
        ..RECENT_QUOTES_MAX => last(quotes).ok_or(ABSENT),
        RECENT_QUOTES_MAX if quotes.is_empty() => Err(ABSENT),
        _ => Err(FORGOTTEN),
    }
}

fn quote_sizes_e9(rows: &Rows, row: usize) -> [i128; 2] {
    let unit = 10_i128.pow(rows.kind[row].exponent());
    let quotes = (0..row).filter(|&before| rows.kind[before].is_quote()).count();
    rows.quote_sizes[quotes].map(|size| if size == ABSENT { size.into() } else { i128::from(size) * unit })
}

fn size_e9(rows: &Rows, row: usize) -> i128 {
    i128::from(rows.size_e9[row]) * 10_i128.pow(rows.kind[row].exponent())
}

struct Bar {
    slot: u32,
    start_ns: i64,
    end_ns: i64,
    /// Rows of the trades, first trade first.
    trades: Vec<usize>,
}

fn time_bars(interval_ns: i64, rows: &Rows) -> Vec<(usize, Bar)> {
    let mut open: BTreeMap<(i64, u32), Vec<usize>> = BTreeMap::new();
    for row in 0..rows.len() {
        if rows.kind[row].is_trade() {
            open.entry((rows.time_ns[row].div_euclid(interval_ns), rows.slot[row])).or_default().push(row);
        }
    }
    let mut found = Vec::new();
    for ((number, slot), mut trades) in open {
        let end_ns = (number + 1) * interval_ns;
        let cause = (0..rows.len())
            .find(|&row| rows.kind[row].base() == RowKind::WATERMARK && rows.time_ns[row] >= end_ns);
        if let Some(cause) = cause {
            trades.sort_by_key(|&row| rows.time_ns[row]);
            found.push((cause, Bar { slot, start_ns: number * interval_ns, end_ns, trades }));
        }
    }
    found
}

fn filled_bars(rows: &Rows, is_full: impl Fn(&[usize]) -> bool) -> Vec<(usize, Bar)> {
    let mut open: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut found = Vec::new();
    for row in 0..rows.len() {
        if !rows.kind[row].is_trade() {
            continue;
        }
        let slot = rows.slot[row];
        let trades = open.entry(slot).or_default();
        trades.push(row);
        if is_full(trades) {
            let trades = std::mem::take(trades);
            let (start_ns, end_ns) = (rows.time_ns[trades[0]], rows.time_ns[row]);
            found.push((row, Bar { slot, start_ns, end_ns, trades }));
        }
    }
    found
}
