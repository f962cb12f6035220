//! Binance's public dumps (data.binance.vision), recognised by their file names.
//!
//! | name | columns |
//! | --- | --- |
//! | `BTCUSDT-trades-2024-08-08.csv` | id, price, quantity, quote quantity, time, buyer is maker[, best match] |
//! | `BTCUSDT-aggTrades-2024-08-08.csv` | aggregate id, price, quantity, first id, last id, time, buyer is maker[, best match] |
//! | `BTCUSDT-bookTicker-2024-08-08.csv` | update id, bid price, bid quantity, ask price, ask quantity, transaction time, event time |
//!
//! Monthly dumps (`-2024-08.csv`) and compressed ones are also read (`.csv.gz`, `.csv.zst`, and Binance's own form,
//! `.zip` without `.csv`). Spot dumps have no header; futures dumps have had one since 2022. Times are milliseconds,
//! and in spot dumps microseconds from 2025 on; their magnitude shows which.

use std::path::Path;

use super::column::{Column, NumberColumn};
use super::number_format::NumberFormat;
use super::row_plan::{KindRule, QuoteColumns, RowPlan, SideRule, SymbolRule, TradeColumns};
use super::time_rule::{TimeRule, Written};
use crate::time_unit::TimeUnit;

/// The default venue of dumps.
pub(super) const DEFAULT_VENUE: &str = "BINANCE";

/// Returns the plan of a dump; `None` if the file is not named like a dump.
pub(super) fn plan(path: &Path, venue: Option<&str>, round: Option<u8>) -> Option<RowPlan> {
    let (ticker, kind) = parse_name(path.file_name()?.to_str()?)?;
    let column = |number: usize, name: &str| Column::new(number - 1, name);
    let number = |place: usize, name: &str| NumberColumn { column: column(place, name), unit: 0 };
    let time = |place: usize, name: &str| TimeRule {
        column: column(place, name),
        written: Written::Number(TimeUnit::Binance),
    };
    let trades = |trade_id: &str, side_column: usize| {
        KindRule::Trades(TradeColumns {
            trade_id: Some(column(1, trade_id)),
            hashes_ids: false,
            price: number(2, "price"),
            size: number(3, "quantity"),
            side: SideRule::BuyerIsMaker(column(side_column, "buyer is maker")),
        })
    };
    let (event_time, kind) = match kind {
        "trades" => (time(5, "time"), trades("id", 6)),
        "aggTrades" => (time(6, "time"), trades("aggregate id", 7)),
        "bookTicker" => {
            let quotes = KindRule::Quotes(QuoteColumns {
                bid_price: number(2, "bid price"),
                bid_size: Some(number(3, "bid quantity")),
                ask_price: number(4, "ask price"),
                ask_size: Some(number(5, "ask quantity")),
                empty_is_last: false,
            });
            (time(6, "transaction time"), quotes)
        }
        _ => return None,
    };
    let symbol = SymbolRule::Constant(format!("{}:{ticker}", venue.unwrap_or(DEFAULT_VENUE)));
    Some(RowPlan {
        filters: Vec::new(),
        symbol,
        event_time,
        receive_time: None,
        kind,
        numbers: NumberFormat { round, ..NumberFormat::default() },
        signed: false,
    })
}

/// Returns true if the first field of a dump's first line belongs to a header: data begins with a number.
pub(super) fn is_header(first_field: &[u8]) -> bool {
    first_field.first().is_some_and(u8::is_ascii_alphabetic)
}

/// Returns the name of a dump without its compression suffix, so that a dump and its compressed copies have the same
/// name.
pub fn unpacked_name(name: &str) -> String {
    match name.strip_suffix(".zip") {
        Some(stem) => format!("{}.csv", stem.strip_suffix(".csv").unwrap_or(stem)),
        None => name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(name).to_owned(),
    }
}

/// Returns ticker and kind of `TICKER-kind-YYYY-MM[-DD].csv`, compressed or not.
fn parse_name(name: &str) -> Option<(&str, &str)> {
    let stem = ["", ".gz", ".zst"].iter().find_map(|packed| name.strip_suffix(packed)?.strip_suffix(".csv"));
    let stem = stem.or_else(|| name.strip_suffix(".zip"))?;
    let stem = stem.strip_suffix(".csv").unwrap_or(stem);
    let (ticker, rest) = stem.split_once('-')?;
    let (kind, date) = rest.split_once('-')?;
    let is_ticker = !ticker.is_empty()
        && ticker.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    let digits = |part: &str, count| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_date = match date.split('-').collect::<Vec<_>>().as_slice() {
        [year, month] => digits(year, 4) && digits(month, 2),
        [year, month, day] => digits(year, 4) && digits(month, 2) && digits(day, 2),
        _ => false,
    };
    (is_ticker && is_date).then_some((ticker, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(parse_name("BTCUSDT-trades-2024-08-08.csv"), Some(("BTCUSDT", "trades")));
        assert_eq!(parse_name("BTCUSD_PERP-aggTrades-2024-08.csv.gz"), Some(("BTCUSD_PERP", "aggTrades")));
        assert_eq!(
            parse_name("1000PEPEUSDT-bookTicker-2024-01-31.csv"),
            Some(("1000PEPEUSDT", "bookTicker"))
        );
        assert_eq!(parse_name("BTCUSDT-trades-2024-08-08.zip"), Some(("BTCUSDT", "trades")));
        assert_eq!(parse_name("BTCUSDT-trades-2024-08-08.csv.zst"), Some(("BTCUSDT", "trades")));
        let dump = "BTCUSDT-trades-2024-08-08.csv";
        for packed in ["BTCUSDT-trades-2024-08-08.zip", &format!("{dump}.zip"), &format!("{dump}.gz"), dump] {
            assert_eq!(unpacked_name(packed), dump);
        }
        for name in ["trades.csv", "btc-trades-2024-08-08.csv", "BTC-trades-24-08.csv"] {
            assert_eq!(parse_name(name), None, "{name}");
        }
        assert!(plan(Path::new("BTCUSDT-klines-2024-08-08.csv"), None, None).is_none());
    }
}
