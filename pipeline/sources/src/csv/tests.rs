//! Tests from the bytes of CSV files to the ticks that a caller gets.

use warptape_events::tick::{Scales, Side, TickKind};

use super::*;
use crate::test_ticks::{gzip, write_file};

const E9: i64 = 1_000_000_000;

/// Reads one file with this name and these contents.
fn read(name: &str, bytes: impl AsRef<[u8]>, config: &CsvConfig) -> Result<Vec<Tick>, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_file(&folder, name, bytes);
    CsvSource::open(&[path], config).and_then(Iterator::collect).map_err(|error| error.to_string())
}

fn mapped(map: &str) -> CsvConfig {
    CsvConfig { mappings: vec![map.parse().expect("a good mapping")], ..CsvConfig::default() }
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
    // Futures dumps have a header; spot dumps have microseconds from 2025 on.
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
        (",4,", ",1e3e,", "quantity"),
        ("1723075200001", "0", "time"),
        ("1723075200001", "soon", "time"),
        ("1723075200001", "17230752000000000000", "time"),
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

/// An unquoted decimal comma would turn a price of 1.5 into a price of 1 and a size of 5.
#[test]
fn a_line_of_more_columns_than_its_header_is_bad() {
    let config = mapped("symbol=s,time=t:ns,price=p,size=q");
    check_refused(
        "any.csv",
        "s,t,p,q\nV:A,1,5,2,,\nV:A,2,1,5,2\n",
        &config,
        ":3: column `line`: found `V:A,2,1,5,2`, expected 4 columns, like the header",
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
        let asides = source.asides();
        assert_eq!((&asides[0].path, asides[0].count, asides[0].first_line), (&expected_path, 4, 2));
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
    assert!(source.asides().is_empty());
    assert!(!folder.path().join("a.csv.bad").exists());
    // The error is that bad lines cannot be written.
    std::fs::write(&path, "bad\n").expect("can be written");
    config.bad_lines = BadLines::Aside { folder: Some(folder.path().join("missing")) };
    let mut source = CsvSource::open(&[path], &config).expect("opens");
    let error = source.next().expect("not the end").expect_err("cannot be written");
    assert!(matches!(error, SourceError::Aside { .. }), "{error}");
    assert!(source.next().is_none());
}

/// Returns the ticks of a file, and the counts of other input.
fn read_all(name: &str, bytes: impl AsRef<[u8]>, config: &CsvConfig) -> (Vec<Tick>, PassedOver) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_file(&folder, name, bytes);
    let mut source = CsvSource::open(&[path], config).expect("opens");
    let ticks = (&mut source).map(|tick| tick.expect("a good line")).collect();
    (ticks, source.passed_over())
}

fn ignored(kind: &str, count: u64) -> PassedOver {
    PassedOver { ignored: [(kind.to_owned(), count)].into(), bad: 0 }
}

#[test]
fn trades_of_price_or_size_0_are_none() {
    let dump = "id,price,qty,quote_qty,time,is_buyer_maker\n1,2.2,10,22,1723075200000,true\n2,0,0,0,1723075200600,false\n\
                3,2.3,0.0,0,1723075200700,false\n4,2.4,5,12,1723075209000,false\n";
    let (ticks, passed_over) = read_all("XRPUSDT-trades-2024-08-08.csv", dump, &CsvConfig::default());
    assert_eq!(ticks.iter().map(|tick| tick.trade_id).collect::<Vec<_>>(), [1, 4]);
    assert_eq!(passed_over, ignored(crate::ZERO_TRADE, 2));
    // Spreads trade at 0 and below, but never without a size.
    let spread = mapped("symbol='V:S',time=1:ms,price=2,size=3,signed=yes");
    let (ticks, passed_over) =
        read_all("a.csv", "1723075200000,0,1\n1723075200000,-1,1\n1723075200000,-1,0\n", &spread);
    assert_eq!(ticks.iter().map(|tick| tick.price_e9).collect::<Vec<_>>(), [0, -E9]);
    assert_eq!(passed_over, ignored(crate::ZERO_TRADE, 1));
}

#[test]
fn numbers_as_programs_write_them() {
    let map = "symbol='V:X',time=1:ms,price=2,size=3";
    let prices = |map: &str, text: &str| -> Result<Vec<_>, String> {
        let ticks = read("a.csv", text, &mapped(map))?;
        Ok(ticks.iter().map(|tick| (tick.event_time_ns, tick.price_e9, tick.size_e9)).collect())
    };
    let ns = 1_723_075_200_000_000_000;
    assert_eq!(
        prices(map, "1.7230752E+12,1.23e-05,1e6\n1723075200000.0,1.24E-05,2.5e+06\n"),
        Ok(vec![(ns, 12_300, 1_000_000 * E9), (ns, 12_400, 2_500_000 * E9)])
    );
    let rounded =
        "1723075200000,61686.299999999996,0.30000000000000004\n1723075200000,0.00031099999999999997,1\n";
    assert_eq!(
        prices(&format!("{map},round=9"), rounded),
        Ok(vec![(ns, 61_686_300_000_000, 300_000_000), (ns, 311_000, E9)])
    );
    let too_small = prices(&format!("{map},round=9"), "1723075200000,1e-12,1\n").expect_err("0");
    assert!(too_small.contains("stays above 0 after rounding"), "{too_small}");
    let grouped = format!("{map},delimiter=';',decimal=',',thousands='.'");
    assert_eq!(
        prices(&grouped, "1723075200000;1.234,5;1.000\n"),
        Ok(vec![(ns, 1_234_500_000_000, 1_000 * E9)])
    );
    let wrong = prices(&grouped, "1723075200000;1234.5;1\n").expect_err("a point for decimals");
    assert!(wrong.contains("`decimal` or `thousands`"), "{wrong}");
}

#[test]
fn prices_have_the_decimals_of_their_symbols_first_one() {
    let noise = "t,s,p,q\n1723075200000,V:A,61686.2,1\n1723075201000,V:A,61686.299999999996,1\n1723075202000,V:A,61686.4,1\n\
                 1723075202000,V:A,0.00000000012,1\n";
    let map = "symbol=s,time=t:ms,price=p,size=q";
    let (ticks, passed_over) = read_all("a.csv", noise, &mapped(map));
    assert_eq!((ticks.len(), passed_over.unfit()), (2, 2));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_file(&folder, "a.csv", noise);
    let mut survey = CsvSource::open_to_survey(std::slice::from_ref(&path), &mapped(map)).expect("opens");
    assert_eq!((&mut survey).count(), 2);
    let refused = survey.file_orders().expect_err("refused").to_string();
    for expected in [
        "2 lines have numbers that a tick cannot hold",
        "line 3",
        "61686.299999999996",
        "--round 9",
        "--skip-bad",
    ] {
        assert!(refused.contains(expected), "{refused}");
    }
    // If bad lines go to a separate file, they are no reason to reject.
    let aside = CsvConfig { bad_lines: BadLines::Aside { folder: None }, ..mapped(map) };
    let mut survey = CsvSource::open_to_survey(std::slice::from_ref(&path), &aside).expect("opens");
    assert_eq!(((&mut survey).count(), survey.passed_over().bad), (2, 2));
    survey.file_orders().expect("lines go aside");
    assert!(!folder.path().join("a.csv.bad").exists(), "a survey writes nothing");
    // Scales in the log take precedence over those in the file.
    let mut source = CsvSource::open(&[path], &aside).expect("opens");
    source.scales().expect("scales of files").know("V:A", 0);
    assert_eq!(((&mut source).count(), source.passed_over().bad), (0, 4));
    // A first price with digits to spare admits all later prices of 64 bits.
    let fine = "t,s,p,q\n1723075200000,V:A,0.0000123456789,1\n1723075201000,V:A,1.5,1\n1723075202000,V:A,20000000000,1\n";
    let (ticks, passed_over) = read_all("a.csv", fine, &mapped(map));
    assert_eq!((ticks.len(), passed_over.unfit()), (2, 1));
}

#[test]
fn words_rows_and_ids_of_vendors() {
    let map = "symbol='V:X',time=1:ms,price=2,size=3,side=4,buy='-1',sell='1|S',trade_id=5,only=6:'4|5',except=7:'X'";
    let text = "1723075200000,1,1,-1,7,4,\n1723075200000,1,1,1,abc,5,\n1723075200000,1,1,S,,5,\nno,row,of,the,map,1,\n\
                1723075200000,1,1,S,9,5,X\n1723075200000,1,1,none,9,5,\n";
    let (ticks, passed_over) = read_all("a.csv", text, &mapped(map));
    let found: Vec<_> = ticks.iter().map(|tick| (tick.side, tick.trade_id)).collect();
    // XXH3-64 of "abc" is 0x78af5f94892f3950.
    let hash = 0x78af_5f94_892f_3950;
    assert_eq!(found, [(Side::Buy, 7), (Side::Sell, hash), (Side::Sell, 0), (Side::None, 9)]);
    assert_eq!(passed_over, ignored("line that `only` or `except` leaves out", 2));
    let wrong = read("a.csv", "1723075200000,1,1,buy,7,4,\n", &mapped(map)).expect_err("no word of the map");
    assert!(wrong.contains("expected -1, 1, S, as in the mapping"), "{wrong}");
}

#[test]
fn quotes_without_sizes_and_with_sides_that_stay() {
    let quotes = |map: &str, text: &str| -> Vec<[i64; 4]> {
        let ticks = read("a.csv", text, &mapped(map)).expect("good lines");
        ticks
            .iter()
            .map(|tick| [tick.bid_price_e9, tick.bid_size_e9, tick.ask_price_e9, tick.ask_size_e9])
            .collect()
    };
    let text = "1723075200000,1,2\n1723075200000,,3\n1723075200000,0,4\n";
    let map = "symbol='V:X',time=1:ms,bid_price=2,ask_price=3";
    assert_eq!(quotes(map, text), [[E9, 0, 2 * E9, 0], [0, 0, 3 * E9, 0], [0, 0, 4 * E9, 0]]);
    let last = format!("{map},empty=last");
    assert_eq!(quotes(&last, text), [[E9, 0, 2 * E9, 0], [E9, 0, 3 * E9, 0], [0, 0, 4 * E9, 0]]);
    let signed = format!("{map},signed=yes");
    assert_eq!(quotes(&signed, "1723075200000,0,-1\n"), [[0, E9, -E9, E9]]);
    let sized = "symbol='V:X',time=1:ms,bid_price=2,bid_size=3,ask_price=4,ask_size=5";
    // A price of 0 means an absent side unless prices are signed, so the mid is not half of the ask.
    let zero = "1723075200000,0,5,2,6\n";
    assert_eq!(quotes(sized, zero), [[0, 0, 2 * E9, 6 * E9]]);
    assert_eq!(quotes(&format!("{sized},signed=yes"), zero), [[0, 5 * E9, 2 * E9, 6 * E9]]);
    assert_eq!(
        quotes(sized, "1723075200000,1,,2,\n1723075200000,,,2,5\n"),
        [[E9, 0, 2 * E9, 0], [0, 0, 2 * E9, 5 * E9]]
    );
    let half = read("a.csv", "1723075200000,1,,2,5\n", &mapped(sized)).expect_err("a size is missing");
    assert!(half.contains("expected a size, because the other side has one"), "{half}");
    let constant = format!("{map},bid_size='100',ask_size='100'");
    assert_eq!(quotes(&constant, "1723075200000,1,\n"), [[E9, 100 * E9, 0, 0]]);
}

#[test]
fn times_of_civil_clocks() {
    let time = |map: &str, text: &str| -> Result<i64, String> {
        let map = format!("symbol='V:X',price=2,size=3,{map}");
        Ok(read("a.csv", format!("{text},1,1\n"), &mapped(&map))?[0].event_time_ns)
    };
    let midnight = 1_723_075_200 * E9;
    let new_york = "time=1:'%Y-%m-%d %H:%M:%S%.f',zone=America/New_York";
    assert_eq!(time(new_york, "2024-08-07 20:00:00"), Ok(midnight));
    assert_eq!(time(new_york, "2024-08-07 20:00:00.000000001"), Ok(midnight + 1));
    assert_eq!(time("time=1:rfc3339,zone=UTC", "2024-08-08 00:00:00.5"), Ok(midnight + E9 / 2));
    assert_eq!(time("time=1:rfc3339,zone=UTC", "2024-08-08T02:00:00+02:00"), Ok(midnight));
    assert_eq!(time("time=1:'%d/%b/%Y:%H:%M:%S %z'", "08/Aug/2024:02:00:00 +0200"), Ok(midnight));
    assert_eq!(time("date='2024-08-08',time=1:ms,zone=+02:00", "7200000"), Ok(midnight));
    assert_eq!(time("date='2024-08-08',time=1:'%I:%M:%S %p',zone=UTC", "12:00:01 AM"), Ok(midnight + E9));
    // An hour that occurs twice counts as the first one, and an hour that never occurs is an error.
    let first = time(new_york, "2024-11-03 01:30:00").expect("the first of both");
    assert_eq!(first, time("time=1:rfc3339", "2024-11-03T01:30:00-04:00").expect("a time"));
    let never = time(new_york, "2024-03-10 02:30:00").expect_err("clocks pass over it");
    assert!(never.contains("America/New_York; its clocks skip"), "{never}");
    let unzoned = time("time=1:rfc3339", "2024-08-08 00:00:00").expect_err("whose time?");
    assert!(unzoned.contains("zone=UTC"), "{unzoned}");
    let other = time(new_york, "08.08.2024 00:00:00").expect_err("another format");
    assert!(other.contains("a time written as %Y-%m-%d %H:%M:%S%.f"), "{other}");
    assert!(time("date='2024-08-08',time=1:s,zone=UTC", "86400").is_err(), "a day has 24 hours");
}

#[test]
fn times_that_cannot_be_are_told_of_with_their_unit() {
    let now_ns = Some(1_790_000_000 * E9);
    let read = |map: &str, text: &str| {
        let config = CsvConfig { now_ns, ..mapped(&format!("symbol='V:X',price=2,size=3,{map}")) };
        read("a.csv", format!("{text},1,1\n"), &config)
    };
    let seconds = read("time=1:ms", "1723075200").expect_err("seconds");
    for expected in ["a.csv:1", "as ms, it is 1970-01-20T22:37:55.2Z", "as s 2024-08-08T00:00:00Z: write 1:s"]
    {
        assert!(seconds.contains(expected), "{seconds}");
    }
    for (map, text, unit) in
        [("s", "1723075200000", "ms"), ("us", "1723075200000", "ms"), ("ms", "1723075200000000", "us")]
    {
        let wrong = read(&format!("time=1:{map}"), text).expect_err("another unit");
        assert!(wrong.contains(&format!("as {unit} 2024-08-08T00:00:00Z: write 1:{unit}")), "{wrong}");
    }
    let ahead = read("time=1:s", "1790086401").expect_err("more than a day ahead");
    assert!(ahead.contains("is ahead of this machine's clock"), "{ahead}");
    assert!(read("time=1:s", "1790086400").is_ok());
    // Implausibly old times are read, with a remark.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_file(&folder, "a.csv", "1985-01-02T00:00:00Z,1,1\n2024-01-02T00:00:00Z,1,1\n");
    let config = CsvConfig { now_ns, ..mapped("symbol='V:X',time=1:rfc3339,price=2,size=3") };
    let mut source = CsvSource::open(&[path], &config).expect("opens");
    assert_eq!((&mut source).count(), 2);
    assert!(
        source.remarks()[0].contains("1 times lie before 1990, the first in line 1 (1985-01-02T00:00:00Z)")
    );
}

#[test]
fn packed_files_and_utf16() {
    let text = "0,2500.0,1,2500,1723075200000,true,true\n1,2500.1,1,2500,1723075201000,true,true\n";
    let expected = read("ETHUSDT-trades-2024-08-08.csv", text, &CsvConfig::default());
    assert_eq!(expected.as_ref().map(Vec::len), Ok(2));
    let zipped = |deflate: bool, names: &[&str]| zip_archive(names, text.as_bytes(), deflate);
    for deflate in [true, false] {
        let archive = zipped(deflate, &["ETHUSDT-trades-2024-08-08.csv"]);
        assert_eq!(read("ETHUSDT-trades-2024-08-08.zip", archive, &CsvConfig::default()), expected);
    }
    let refused = |archive: &[u8]| {
        read("ETHUSDT-trades-2024-08-08.zip", archive, &CsvConfig::default())
            .expect_err("no archive of one file")
    };
    assert!(refused(&zipped(true, &["a", "b"])).contains("several files: unpack it"));
    let mut damaged = zipped(false, &["a"]);
    damaged[40] ^= 1;
    assert!(refused(&damaged).contains("checksum"));
    let cut = zipped(true, &["a"]);
    refused(&cut[..cut.len() / 2]);
    let wide: Vec<u8> = "\u{feff}sym\tts\tpx\tqty\r\nV:Ü\t1723075200000\t1.5\t2\r\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let config = mapped("symbol=sym,time=ts:ms,price=px,size=qty,delimiter=tab");
    let ticks = read("a.csv", wide, &config).expect("UTF-16");
    assert_eq!((&*ticks[0].symbol, ticks[0].price_e9, ticks[0].size_e9), ("V:Ü", 1_500_000_000, 2 * E9));
}

/// Creates an archive that contains the same contents under each of these names.
fn zip_archive(names: &[&str], content: &[u8], deflate: bool) -> Vec<u8> {
    use std::io::Write;
    let packed = if deflate {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).expect("memory");
        encoder.finish().expect("memory")
    } else {
        content.to_vec()
    };
    let mut crc = flate2::Crc::new();
    crc.update(content);
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for name in names {
        let mut common = Vec::new();
        // Version, flags, method, time, date.
        for field in [20_u16, 0, if deflate { 8 } else { 0 }, 0, 33] {
            common.extend(field.to_le_bytes());
        }
        for field in [crc.sum(), packed.len() as u32, content.len() as u32] {
            common.extend(field.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend(0_u16.to_le_bytes());
        let offset = archive.len() as u32;
        archive.extend([b"PK\x03\x04", &common[..], name.as_bytes(), &packed].concat());
        directory.extend([b"PK\x01\x02", &20_u16.to_le_bytes()[..], &common[..], &[0; 10]].concat());
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (start, length, count) = (archive.len() as u32, directory.len() as u32, names.len() as u16);
    archive.extend(directory);
    archive.extend([b"PK\x05\x06", &[0; 4][..], &count.to_le_bytes(), &count.to_le_bytes()].concat());
    archive.extend([&length.to_le_bytes()[..], &start.to_le_bytes(), &[0; 2]].concat());
    archive
}

const ORDER_MAP: &str = "symbol='V:X',time=1:s,price=2,size='1'";

/// A file, its configuration, and what the survey says about its order.
type Surveyed = (tempfile::TempDir, PathBuf, CsvConfig, Result<Vec<FileOrder>, String>);

fn survey(text: &str, order: FeedOrder) -> Surveyed {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_file(&folder, "a.csv", text);
    let limits = OrderLimits { lateness_ns: 2 * E9, ahead_ns_max: 4 * 86_400 * E9, ..Default::default() };
    let config = CsvConfig { limits, order, ..mapped(ORDER_MAP) };
    let mut survey = CsvSource::open_to_survey(std::slice::from_ref(&path), &config).expect("opens");
    (&mut survey).for_each(|tick| drop(tick.expect("a good line")));
    let orders = survey.file_orders().map_err(|error| error.to_string());
    (folder, path, config, orders)
}

#[test]
fn rows_out_of_order_are_refused_or_sorted() {
    let rows = |times: &[i64]| -> String {
        times
            .iter()
            .enumerate()
            .map(|(row, time)| format!("{},{}\n", 1_723_075_200 + time, row + 1))
            .collect()
    };
    for (times, found, sorted) in [
        (
            &[10, 11, 5, 12, 1][..],
            "2 of 5 rows lie more than 2 s behind earlier rows, the first in line 3, the farthest by 11 s in line 5",
            &[5, 3, 1, 2, 4][..],
        ),
        (&[30, 20, 20, 10, 1], "the newest of its 5 rows comes first", &[5, 4, 3, 2, 1]),
    ] {
        let (_folder, _, _, refused) = survey(&rows(times), FeedOrder::Checked);
        let refused = refused.expect_err("out of order");
        assert!(refused.contains(found) && refused.contains("--sort"), "{refused}");
        let (_folder, path, config, orders) = survey(&rows(times), FeedOrder::Sorted);
        let orders = orders.expect("rows are sorted");
        let source = CsvSource::open_in_order(&[path], &config, &orders).expect("opens");
        let prices: Vec<i64> = source.map(|tick| tick.expect("good").price_e9 / E9).collect();
        assert_eq!(prices, sorted);
        let (_folder, _, _, kept) = survey(&rows(times), FeedOrder::Kept);
        assert!(!kept.expect("rows are kept")[0].is_sorted);
    }
    // A file already in order is not sorted.
    let (_folder, _, _, orders) = survey(&rows(&[1, 1, 2]), FeedOrder::Sorted);
    assert!(!orders.expect("in order")[0].is_sorted);
    let (_folder, _, _, orders) = survey(&rows(&[2, 1, 3]), FeedOrder::Checked);
    orders.expect("within the lateness");
}

#[test]
fn sorted_rows_are_counted_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_file(
        &folder,
        "a.csv",
        "1723075210,3\nbad\n\n1723075200,0\n1723075205,2\n1723075201,1.0000000001\n",
    );
    let config = CsvConfig {
        bad_lines: BadLines::Aside { folder: None },
        order: FeedOrder::Sorted,
        ..mapped(ORDER_MAP)
    };
    let order = FileOrder { is_sorted: true, is_newest_first: false };
    let mut source = CsvSource::open_in_order(&[path], &config, &[order]).expect("opens");
    // The first price in the order of times has ten decimals, so all prices do.
    let times: Vec<i64> =
        (&mut source).map(|tick| tick.expect("good").event_time_ns / E9 - 1_723_075_200).collect();
    assert_eq!(times, [1, 5, 10]);
    let passed_over = source.passed_over();
    assert_eq!((passed_over.bad, passed_over.ignored.len()), (1, 2), "{passed_over:?}");
    assert_eq!(std::fs::read(folder.path().join("a.csv.bad")).expect("written"), b"bad\n");
}

#[test]
fn files_have_maps_of_their_own() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trades = write_file(&folder, "trades.csv", "t,p,q\n1723075200,1,1\n1723075202,2,1\n");
    let quotes = write_file(&folder, "quotes.csv", "t,b,a\n1723075201,1,2\n1723075203,2,3\n");
    let mappings: Vec<CsvMapping> =
        ["symbol='V:X',time=t:s,price=p,size=q", "symbol='V:X',time=t:s,bid_price=b,ask_price=a"]
            .map(|map| map.parse().expect("a good map"))
            .into();
    let config = CsvConfig { mappings, ..CsvConfig::default() };
    let source = CsvSource::open(&[trades.clone(), quotes], &config).expect("opens");
    let kinds: Vec<TickKind> = source.map(|tick| tick.expect("good").kind).collect();
    assert_eq!(kinds, [TickKind::Trade, TickKind::Quote, TickKind::Trade, TickKind::Quote]);
    let refused = CsvSource::open(&[trades], &config).err().expect("two maps for one file").to_string();
    assert!(refused.contains("2 maps for 1 files"), "{refused}");
}

#[test]
fn prices_in_small_units_are_told_of() {
    let text = "1723075200000,3720250000000,5\n";
    let prices = |map: &str| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = write_file(&folder, "a.csv", text);
        let mut source = CsvSource::open(&[path], &mapped(map)).expect("opens");
        let tick = source.next().expect("a row").expect("good");
        ((tick.price_e9, tick.scales.price), source.remarks())
    };
    let (price, remarks) = prices("symbol='V:X',time=1:ms,price=2,size=3");
    assert_eq!(price, (3_720_250_000_000, 0));
    assert!(remarks[0].contains("3720250000000") && remarks[0].contains("price=COLUMN:e9"), "{remarks:?}");
    let in_units = prices("symbol='V:X',time=1:ms,price=2:e9,size=3");
    assert_eq!(in_units, ((3_720_250_000_000, 9), Vec::new()));
}
