//! Reads files of vendors through the maps in docs/feeds.md.

use std::path::Path;

use warptape_events::tick::{Side, Tick, TickKind};

use super::{CsvConfig, CsvSource};
use crate::test_ticks::write_file;

/// The compared parts of a tick: symbol, time, price and size with the side, or bid and ask with their sizes, in 1e-9.
#[derive(Debug, PartialEq)]
enum Seen {
    Trade(&'static str, i64, i64, i64, Side),
    Quote(&'static str, i64, [i64; 4]),
}

const E9: i64 = 1_000_000_000;
/// 2024-08-08T00:00:00Z.
const DAY_NS: i64 = 1_723_075_200 * E9;
const MS: i64 = 1_000_000;

fn seen(tick: &Tick) -> Seen {
    let symbol: &'static str = tick.symbol.clone().leak();
    let time_ns = tick.event_time_ns;
    match tick.kind {
        TickKind::Trade => Seen::Trade(symbol, time_ns, tick.price_e9, tick.size_e9, tick.side),
        TickKind::Quote => Seen::Quote(
            symbol,
            time_ns,
            [tick.bid_price_e9, tick.bid_size_e9, tick.ask_price_e9, tick.ask_size_e9],
        ),
    }
}

fn check(map: &str, text: &str, expected: &[Seen]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_file(&folder, "a.csv", text);
    let config = CsvConfig {
        venue: Some("V".to_owned()),
        mappings: vec![map.parse().unwrap_or_else(|error| panic!("{map}: {error}"))],
        now_ns: Some(DAY_NS + 400 * 86_400 * E9),
        ..CsvConfig::default()
    };
    let source = CsvSource::open(&[path], &config).expect("opens");
    let found: Vec<Seen> = source.map(|tick| seen(&tick.expect("good"))).collect();
    assert_eq!(found, expected, "{map}");
    let guide = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/feeds.md"));
    let guide = guide.expect("the guide").replace("\\|", "|");
    assert!(guide.contains(&format!("`{map}`")), "docs/feeds.md has another map than {map}");
}

#[test]
fn databento() {
    check(
        "symbol=symbol,time=ts_event:ns,receive_time=ts_recv:ns,price=price:e9,size=size,side=side,only=action:'T'",
        "ts_recv,ts_event,action,side,depth,price,size,symbol\n\
         1723075200100250000,1723075200100000000,T,A,0,3720250000000,5,XYZ4\n\
         1723075200100250000,1723075200100000000,A,A,0,3720500000000,5,XYZ4\n\
         1723075209000250000,1723075209000000000,T,B,0,3720500000000,1,XYZ4\n",
        &[
            Seen::Trade("V:XYZ4", DAY_NS + 100 * MS, 3_720_250_000_000, 5 * E9, Side::Sell),
            Seen::Trade("V:XYZ4", DAY_NS + 9_000 * MS, 3_720_500_000_000, E9, Side::Buy),
        ],
    );
}

#[test]
fn tardis() {
    check(
        "symbol=symbol,time=timestamp:us,receive_time=local_timestamp:us,price=price,size=amount,side=side,trade_id=id",
        "exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n\
         bitmex,XYZ,1723075200100000,1723075200100150,00000000-0000-4000-8000-000000000001,sell,8531.5,2000\n\
         bitmex,XYZ,1723075200100000,1723075200100150,00000000-0000-4000-8000-000000000002,unknown,8531,0\n",
        &[Seen::Trade("V:XYZ", DAY_NS + 100 * MS, 8_531_500_000_000, 2_000 * E9, Side::Sell)],
    );
    check(
        "symbol=symbol,time=timestamp:us,receive_time=local_timestamp:us,bid_price=bid_price,bid_size=bid_amount,ask_price=ask_price,\
         ask_size=ask_amount",
        "exchange,symbol,timestamp,local_timestamp,ask_amount,ask_price,bid_price,bid_amount\n\
         bitmex,XYZ,1723075200100000,1723075200100150,3,8532,8531.5,2000\n",
        &[Seen::Quote("V:XYZ", DAY_NS + 100 * MS, [8_531_500_000_000, 2_000 * E9, 8_532 * E9, 3 * E9])],
    );
}

#[test]
fn exchanges_of_coins() {
    check(
        "symbol='KRAKEN:XBTUSD',time=1:s,price=2,size=3",
        "1723075200,61837.6,0.00000123\n",
        &[Seen::Trade("KRAKEN:XBTUSD", DAY_NS, 61_837_600_000_000, 1_230, Side::None)],
    );
    check(
        "symbol=symbol,time=timestamp:s,price=price,size=size,side=side,trade_id=trdMatchID",
        "timestamp,symbol,side,size,price,tickDirection,trdMatchID,grossValue,homeNotional,foreignNotional\n\
         1723075200.1234,BTCUSDT,Buy,0.002,55168.00,PlusTick,7d5f6a8e-0d1a-5e0c-9a0e-6c0d3a1b2c3d,1.1e+10,0.002,110.336\n",
        &[Seen::Trade("V:BTCUSDT", DAY_NS + 123_400_000, 55_168 * E9, 2_000_000, Side::Buy)],
    );
}

#[test]
fn lobster() {
    // 2012-06-21 10:00 in New York is 14:00 UTC.
    let ten = 1_340_287_200 * E9;
    check(
        "symbol='NASDAQ:AAPL',date='2012-06-21',time=1:s,zone=America/New_York,price=5:e4,size=4,side=6,buy='-1',sell='1',only=2:'4|5'",
        "36000.000000001,1,7001,18,1002500,1\n36000.250000000,4,7001,18,1002500,1\n\
         36000.500000000,5,0,100,1002600,-1\n36001.0,7,0,0,-1,-1\n36060.0,7,0,0,1,-1\n",
        &[
            Seen::Trade("NASDAQ:AAPL", ten + 250 * MS, 100_250_000_000, 18 * E9, Side::Sell),
            Seen::Trade("NASDAQ:AAPL", ten + 500 * MS, 100_260_000_000, 100 * E9, Side::Buy),
        ],
    );
}

#[test]
fn currencies() {
    // Athens is three hours ahead in August.
    let midnight = DAY_NS - 3 * 3_600 * E9;
    let quote = |time_ns, bid, ask| Seen::Quote("FX:EURUSD", time_ns, [bid, 0, ask, 0]);
    check(
        "symbol='FX:EURUSD',date=1:'%Y.%m.%d',time=2:'%H:%M:%S%.f',zone=Europe/Athens,bid_price=3,ask_price=4,empty=last,delimiter=tab,\
         header=yes",
        "<DATE>\t<TIME>\t<BID>\t<ASK>\t<LAST>\t<VOLUME>\t<FLAGS>\n2024.08.08\t00:00:00.123\t1.0924\t1.0925\t\t\t6\n\
         2024.08.08\t00:00:01.000\t\t1.0926\t\t\t4\n",
        &[
            quote(midnight + 123 * MS, 1_092_400_000, 1_092_500_000),
            quote(midnight + E9, 1_092_400_000, 1_092_600_000),
        ],
    );
    check(
        "symbol=1,time=2:'%Y%m%d %H:%M:%S%.f',zone=UTC,bid_price=3,ask_price=4",
        "EUR/USD,20240808 00:00:00.123,1.09240,1.09243\n",
        &[Seen::Quote("V:EUR/USD", DAY_NS + 123 * MS, [1_092_400_000, 0, 1_092_430_000, 0])],
    );
    check(
        "symbol='FX:EURUSD',time=1:'%Y%m%d %H%M%S%f',zone=-05:00,bid_price=2,ask_price=3",
        "20240807 190000123,1.092400,1.092430,0\n",
        &[quote(DAY_NS + 123 * MS, 1_092_400_000, 1_092_430_000)],
    );
    check(
        "symbol='FX:EURUSD',time=1:'%d.%m.%Y %H:%M:%S%.f',zone=UTC,ask_price=2,bid_price=3,ask_size=4,bid_size=5,header=yes",
        "Gmt time,Ask,Bid,AskVolume,BidVolume\n08.08.2024 00:00:00.123,1.09243,1.0924,0.9,1.12\n",
        &[Seen::Quote(
            "FX:EURUSD",
            DAY_NS + 123 * MS,
            [1_092_400_000, 1_120_000_000, 1_092_430_000, 900_000_000],
        )],
    );
}

#[test]
fn brokers() {
    // Berlin is two hours ahead in August.
    let nine = DAY_NS + 7 * 3_600 * E9;
    let trade = |time_ns, price_e9, size| Seen::Trade("V:ACME", time_ns, price_e9, size * E9, Side::None);
    check(
        "symbol=Symbol,date=Datum:'%d.%m.%Y',time=Zeit:'%H:%M:%S,%f',zone=Europe/Berlin,price=Kurs,size=Menge,delimiter=';',decimal=comma,\
         thousands=dot",
        "Datum;Zeit;Symbol;Kurs;Menge\n08.08.2024;09:00:00,123;ACME;1.234,56;10\n08.08.2024;09:00:00,456;ACME;1.234,60;5\n\
         08.08.2024;09:00:10,000;ACME;1.235,00;5\n",
        &[
            trade(nine + 123 * MS, 1_234_560_000_000, 10),
            trade(nine + 456 * MS, 1_234_600_000_000, 5),
            trade(nine + 10_000 * MS, 1_235_000_000_000, 5),
        ],
    );
}
