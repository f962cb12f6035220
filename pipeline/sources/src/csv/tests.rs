//! CSV files to ticks, from bytes to what a caller sees.

use warptape_events::tick::{Scales, Side, TickKind};

use super::*;
use crate::test_ticks::{gzip, write_file};

const E9: i64 = 1_000_000_000;

/// Reads one file of this name and content.
fn read(name: &str, bytes: impl AsRef<[u8]>, config: &CsvConfig) -> Result<Vec<Tick>, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_file(&folder, name, bytes);
    CsvSource::open(&[path], config).and_then(Iterator::collect).map_err(|error| error.to_string())
}

fn mapped(map: &str) -> CsvConfig {
    CsvConfig { mapping: Some(map.parse().expect("a good mapping")), ..CsvConfig::default() }
}

fn trade(symbol: &str, event_time_ns: i64, trade_id: i64, price_e9: i64, size_e9: i64, side: Side) -> Tick {
    Tick {
        symbol: symbol.to_owned(),
        kind: TickKind::Trade,
        event_time_ns,
        receive_time_ns: 0,
        trade_id,
        side,
        price_e9,
        size_e9,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    }
}

fn quote(symbol: &str, event_time_ns: i64, book: [i64; 4]) -> Tick {
    let [bid_price_e9, bid_size_e9, ask_price_e9, ask_size_e9] = book;
    let empty = trade(symbol, event_time_ns, 0, 0, 0, Side::None);
    Tick { kind: TickKind::Quote, bid_price_e9, bid_size_e9, ask_price_e9, ask_size_e9, ..empty }
}

#[test]
fn binance_dumps_are_known_by_name() {
    let spot = "3734000000,55167.99000000,0.00018000,9.93023820,1723075200001,True,True\n\
                3734000001,55168.00000000,0.00200000,110.33600000,1723075200044,False,True\n";
    let expected = vec![
        trade(
            "BINANCE:BTCUSDT",
            1_723_075_200_001_000_000,
            3_734_000_000,
            55_167_990_000_000,
            180_000,
            Side::Sell,
        ),
        trade("BINANCE:BTCUSDT", 1_723_075_200_044_000_000, 3_734_000_001, 55_168 * E9, 2_000_000, Side::Buy),
    ];
    let config = CsvConfig::default();
    assert_eq!(read("BTCUSDT-trades-2024-08-08.csv", spot, &config), Ok(expected.clone()));
    assert_eq!(read("BTCUSDT-trades-2024-08.csv.gz", gzip(spot.as_bytes()), &config), Ok(expected.clone()));
    // Futures have a header; from 2025 on, spot dumps have microseconds.
    let futures =
        format!("id,price,qty,quote_qty,time,is_buyer_maker\r\n{}", spot.replace(",True\n", "\r\n"));
    assert_eq!(read("BTCUSDT-trades-2024-08-08.csv", futures, &config), Ok(expected));
    let micros = "1,2.5,4,10,1735689600000123,false,true\n";
    let venue = CsvConfig { venue: Some("B".to_owned()), ..CsvConfig::default() };
    let expected = trade("B:ETHUSDT", 1_735_689_600_000_123_000, 1, 2_500_000_000, 4 * E9, Side::Buy);
    assert_eq!(read("ETHUSDT-trades-2025-01-01.csv", micros, &venue), Ok(vec![expected]));
}

#[test]
fn aggregated_trades_and_book_tickers() {
    let header = "agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker\n";
    let row = "26129,0.01633102,4.70443515,27781,27790,1498793709153,true\n";
    let expected = vec![trade(
        "BINANCE:BNBBTC",
        1_498_793_709_153_000_000,
        26_129,
        16_331_020,
        4_704_435_150,
        Side::Sell,
    )];
    let config = CsvConfig::default();
    assert_eq!(
        read("BNBBTC-aggTrades-2024-08-08.csv", format!("{header}{row}"), &config),
        Ok(expected.clone())
    );
    assert_eq!(
        read("BNBBTC-aggTrades-2024-08-08.csv", row.replace("true", "true,true"), &config),
        Ok(expected)
    );
    let book = "update_id,best_bid_price,best_bid_qty,best_ask_price,best_ask_qty,transaction_time,event_time\n\
                7,1.5,2,1.6,3,1723075200001,1723075200009\n";
    let expected =
        quote("BINANCE:XUSDT", 1_723_075_200_001_000_000, [1_500_000_000, 2 * E9, 1_600_000_000, 3 * E9]);
    assert_eq!(read("XUSDT-bookTicker-2024-08-08.csv", book, &config), Ok(vec![expected]));
}

#[test]
fn any_file_through_a_mapping() {
    let named = "\u{feff}sym,\"ts\",px,qty,side,id\r\n\"IBM\",1723075200,187.5,\"100\",S,7\r\n\r\nA:B,1723075200.25,1,2,,8\r\n";
    let mut config = mapped("symbol=sym,time=ts:s,price=px,size=qty,side=side,trade_id=id");
    config.venue = Some("NYSE".to_owned());
    let expected = vec![
        trade("NYSE:IBM", 1_723_075_200 * E9, 7, 187_500_000_000, 100 * E9, Side::Sell),
        trade("A:B", 1_723_075_200_250_000_000, 8, E9, 2 * E9, Side::None),
    ];
    assert_eq!(read("any.txt", named, &config), Ok(expected));

    let numbered = "2024-08-08T00:00:00Z\t5\t6\t1723075200000000100\n";
    let config = mapped("symbol='V:X',time=1:rfc3339,price=2,size=3,receive_time=4:ns,delimiter=tab");
    let expected = trade("V:X", 1_723_075_200 * E9, 0, 5 * E9, 6 * E9, Side::None);
    let expected = Tick { receive_time_ns: 1_723_075_200_000_000_100, ..expected };
    assert_eq!(read("any.tsv", numbered, &config), Ok(vec![expected]));
}

#[test]
fn trades_and_quotes_in_one_file() {
    let config =
        mapped("symbol='V:X',time=t:us,kind=k,price=p,size=q,bid_price=b,bid_size=B,ask_price=a,ask_size=A");
    let text = "t,k,p,q,b,B,a,A\n1000,trade,5,6,,,,\n2000,Q,,,1,2,3,4\n3000,bbo,,,,,3,4\n";
    let expected = vec![
        trade("V:X", 1_000_000, 0, 5 * E9, 6 * E9, Side::None),
        quote("V:X", 2_000_000, [E9, 2 * E9, 3 * E9, 4 * E9]),
        quote("V:X", 3_000_000, [0, 0, 3 * E9, 4 * E9]),
    ];
    assert_eq!(read("both.csv", text, &config), Ok(expected));
}

#[test]
fn files_are_merged_by_event_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let paths = [("AUSDT", [10, 40]), ("BUSDT", [20, 30])].map(|(ticker, times)| {
        let lines = times.map(|time| format!("{time},1,1,1,{},true,true\n", 1_723_075_200_000_i64 + time));
        write_file(&folder, &format!("{ticker}-trades-2024-08-08.csv"), lines.concat())
    });
    let mut source = CsvSource::open(&paths, &CsvConfig::default()).expect("opens");
    let ids: Vec<i64> = (&mut source).map(|tick| tick.expect("good").trade_id).collect();
    assert_eq!(ids, [10, 20, 30, 40]);
    assert_eq!(Some(source.progress().done), source.progress().total);
}

fn check_refused(name: &str, text: &str, config: &CsvConfig, expected: &str) {
    let message = read(name, text, config).expect_err("must be refused");
    assert!(message.contains(expected), "{message}\nshould say {expected}");
}

#[test]
fn mistakes_name_file_line_and_column() {
    let dump = "BTCUSDT-trades-2024-08-08.csv";
    let config = CsvConfig::default();
    let good = "1,2.5,4,10,1723075200001,true,true\n";
    for (found, replaced, column) in [
        ("1,2.5", "x1,2.5", "id"),
        ("2.5", "NaN", "price"),
        ("2.5", "-2.5", "price"),
        ("2.5", "0", "price"),
        (",4,", ",1e3,", "quantity"),
        ("1723075200001", "0", "time"),
        ("1723075200001", "soon", "time"),
        ("true,true", "maybe,true", "buyer is maker"),
        ("1723075200001,true,true", "", "time"),
    ] {
        let text = format!("{good}{}", good.replacen(found, replaced, 1));
        check_refused(dump, &text, &config, &format!("{dump}:2: column `{column}`: found `"));
    }
    check_refused(dump, "1,\"2.5,4,10,1723075200001,true,true\n", &config, ":1: column `line`");
    check_refused("trades.csv", good, &config, "--map");
    let config = mapped("symbol=sym,time=ts:ms,price=px,size=qty");
    check_refused(
        "any.csv",
        "sym,ts,price,qty\n",
        &config,
        "no column `px` in the header; it has: sym, ts, price, qty",
    );
    check_refused("any.csv", "", &config, "no column `px` in the header; it has: ");
    check_refused(
        "any.csv",
        "sym,ts,px,qty\nIBM,1,1,1\n",
        &config,
        ":2: column `sym`: found `IBM`, expected VENUE:TICKER",
    );
    check_refused(
        "any.csv",
        "sym,ts,px,qty\n,1,1,1\n",
        &config,
        ":2: column `sym`: found ``, expected VENUE",
    );
    let mut with_venue = config.clone();
    with_venue.venue = Some("V".to_owned());
    check_refused(
        "any.csv",
        "sym,ts,px,qty\n,1,1,1\n",
        &with_venue,
        ":2: column `sym`: found ``, expected a ticker",
    );
    let long = format!("sym,ts,px,qty\n{},1,1,1\n", "X".repeat(63));
    check_refused("any.csv", &long, &with_venue, "expected a symbol of at most 64 bytes");
    let config = mapped("symbol='IBM',time=1:ms,price=2,size=3");
    check_refused("any.csv", "1,2,3\n", &config, "--map: symbol='IBM': expected VENUE:IBM");
    let config = mapped("symbol='V:X',time=1:ms,price=2,size=3");
    check_refused(
        "any.csv",
        "1,2,3\n1,2\n",
        &config,
        ":2: column `3`: found `nothing`, expected a line of at least 3",
    );
}

#[test]
fn bad_lines_are_written_aside_byte_for_byte() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bad: [&[u8]; 4] = [b"x,2,3\r\n", b"\xff\xfe,1\n", b"1,\"2,3\n", b"1,2"];
    let text = [b"1,2,3\n".as_slice(), bad[0], bad[1], b"\n", bad[2], b"4,5,6\n", bad[3]].concat();
    let aside_folder = tempfile::tempdir().expect("a temporary folder");
    for (name, other_folder) in [("a.csv", None), ("b.csv", Some(aside_folder.path().to_owned()))] {
        let path = write_file(&folder, name, &text);
        let expected_path = other_folder.as_deref().unwrap_or(folder.path()).join(format!("{name}.bad"));
        std::fs::write(&expected_path, "of an earlier run").expect("can be written");
        let mut config = mapped("symbol='V:X',time=1:ns,price=2,size=3");
        config.bad_lines = BadLines::Aside { folder: other_folder };
        let mut source = CsvSource::open(&[path], &config).expect("opens");
        let times: Vec<i64> = (&mut source).map(|tick| tick.expect("skipped").event_time_ns).collect();
        assert_eq!(times, [1, 4]);
        assert_eq!(
            source.passed_over(),
            PassedOver { ignored: [("empty line".to_owned(), 1)].into(), bad: 4 }
        );
        assert_eq!(source.aside_paths(), [&expected_path]);
        assert_eq!(std::fs::read(&expected_path).expect("written"), bad.concat());
    }
}

#[test]
fn nothing_is_written_aside_where_all_is_well() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_file(&folder, "a.csv", "1,2,3\n");
    let mut config = mapped("symbol='V:X',time=1:ns,price=2,size=3");
    config.bad_lines = BadLines::Aside { folder: None };
    let mut source = CsvSource::open(std::slice::from_ref(&path), &config).expect("opens");
    assert_eq!((&mut source).count(), 1);
    assert!(source.aside_paths().is_empty());
    assert!(!folder.path().join("a.csv.bad").exists());
    // Where bad lines cannot be written, that is the error.
    std::fs::write(&path, "bad\n").expect("can be written");
    config.bad_lines = BadLines::Aside { folder: Some(folder.path().join("missing")) };
    let mut source = CsvSource::open(&[path], &config).expect("opens");
    let error = source.next().expect("not the end").expect_err("cannot be written");
    assert!(matches!(error, SourceError::Aside { .. }), "{error}");
    assert!(source.next().is_none());
}
