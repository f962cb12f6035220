//! Converts DBN files, written with the crate's own encoder, to ticks.

use ::dbn::encode::{DbnEncodable, EncodeRecord};
use ::dbn::{
    BboMsg, BidAskPair, CbboMsg, Cmbp1Msg, ConsolidatedBidAskPair, MappingInterval, Mbp10Msg, Metadata,
    SType, SymbolMapping,
};

use std::ffi::c_char;

use ::dbn::{FIXED_PRICE_SCALE, Mbp1Msg, RecordHeader, Schema, TradeMsg, UNDEF_PRICE, UNDEF_TIMESTAMP};
use warptape_events::tick::{Scales, Side, TickKind};

use super::*;
use crate::TickSource;
use crate::test_ticks::write_file;

const EVENT_NS: u64 = 1_723_161_255_000_000_000;
const E9: i64 = FIXED_PRICE_SCALE;

fn metadata(dataset: &str, schema: Option<Schema>) -> Metadata {
    let mut metadata = Metadata::builder()
        .dataset(dataset)
        .schema(schema)
        .start(EVENT_NS)
        .stype_in(Some(SType::RawSymbol))
        .stype_out(SType::InstrumentId)
        .build();
    let start_date = metadata.start().date();
    let interval = MappingInterval {
        start_date,
        end_date: start_date.next_day().expect("not the last day of time"),
        symbol: "42".to_owned(),
    };
    metadata.mappings = vec![SymbolMapping { raw_symbol: "AAPL".to_owned(), intervals: vec![interval] }];
    metadata
}

fn header<T: ::dbn::HasRType>(rtype: u8, offset_ns: u64, instrument_id: u32) -> RecordHeader {
    RecordHeader::new::<T>(rtype, 2, instrument_id, EVENT_NS + offset_ns)
}

fn trade_message(offset_ns: u64, side: u8) -> TradeMsg {
    TradeMsg {
        hd: header::<TradeMsg>(::dbn::rtype::MBP_0, offset_ns, 42),
        price: 187 * E9 + 1,
        size: 300,
        action: b'T' as c_char,
        side: side as c_char,
        ts_recv: EVENT_NS + offset_ns + 7,
        sequence: 99 + offset_ns as u32,
        ..TradeMsg::default()
    }
}

fn book_message(offset_ns: u64, action: u8, bid: (i64, u32), ask: (i64, u32)) -> Mbp1Msg {
    let (bid_px, bid_sz) = bid;
    let (ask_px, ask_sz) = ask;
    Mbp1Msg {
        hd: header::<Mbp1Msg>(::dbn::rtype::MBP_1, offset_ns, 42),
        price: 187 * E9,
        size: 5,
        action: action as c_char,
        side: b'B' as c_char,
        ts_recv: EVENT_NS + offset_ns + 7,
        sequence: 7,
        levels: [BidAskPair { bid_px, ask_px, bid_sz, ask_sz, bid_ct: 1, ask_ct: 1 }],
        ..Mbp1Msg::default()
    }
}

fn level(bid_px: i64, ask_px: i64) -> BidAskPair {
    BidAskPair { bid_px, ask_px, bid_sz: 5, ask_sz: 6, bid_ct: 1, ask_ct: 1 }
}

fn consolidated_level(bid_px: i64, ask_px: i64) -> ConsolidatedBidAskPair {
    ConsolidatedBidAskPair {
        bid_px,
        ask_px,
        bid_sz: 5,
        ask_sz: 6,
        bid_pb: 39,
        ask_pb: 40,
        ..Default::default()
    }
}

fn encode<T: DbnEncodable>(schema: Schema, records: &[T], compressed: bool) -> Vec<u8> {
    encode_with(&metadata("XNAS.ITCH", Some(schema)), records, compressed)
}

fn encode_with<T: DbnEncodable>(metadata: &Metadata, records: &[T], compressed: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    if compressed {
        let mut encoder = ::dbn::encode::DbnEncoder::with_zstd(&mut bytes, metadata).expect("encodes");
        encoder.encode_records(records).expect("encodes");
    } else {
        let mut encoder = ::dbn::encode::DbnEncoder::new(&mut bytes, metadata).expect("encodes");
        encoder.encode_records(records).expect("encodes");
    }
    bytes
}

fn read(bytes: &[u8], venue: Option<&str>) -> (Result<Vec<Tick>, String>, PassedOver) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_file(&folder, "file.dbn", bytes);
    let mut source = match DbnSource::open(&[path], venue, false) {
        Ok(source) => source,
        Err(error) => return (Err(error.to_string()), PassedOver::default()),
    };
    let ticks: Result<Vec<Tick>, SourceError> = (&mut source).collect();
    (ticks.map_err(|error| error.to_string()), source.passed_over())
}

fn quote(offset_ns: i64, bid: (i64, i64), ask: (i64, i64)) -> Tick {
    Tick {
        symbol: "XNAS.ITCH:AAPL".to_owned(),
        kind: TickKind::Quote,
        event_time_ns: EVENT_NS as i64 + offset_ns,
        receive_time_ns: EVENT_NS as i64 + offset_ns + 7,
        trade_id: 0,
        side: Side::None,
        price_e9: 0,
        size_e9: 0,
        bid_price_e9: bid.0,
        bid_size_e9: bid.1,
        ask_price_e9: ask.0,
        ask_size_e9: ask.1,
        scales: Scales::E9,
    }
}

fn trade_of(quote: Tick, trade_id: i64, side: Side, price_e9: i64, size_e9: i64) -> Tick {
    let without_book = Tick { bid_price_e9: 0, bid_size_e9: 0, ask_price_e9: 0, ask_size_e9: 0, ..quote };
    Tick { kind: TickKind::Trade, trade_id, side, price_e9, size_e9, ..without_book }
}

#[test]
fn trades_plain_and_compressed() {
    let records = [trade_message(0, b'A'), trade_message(1, b'B'), trade_message(2, b'N')];
    let expected: Vec<Tick> = [Side::Sell, Side::Buy, Side::None]
        .into_iter()
        .enumerate()
        .map(|(offset, side)| {
            let at = quote(offset as i64, (0, 0), (0, 0));
            trade_of(at, 99 + offset as i64, side, 187 * E9 + 1, 300 * E9)
        })
        .collect();
    for compressed in [false, true] {
        let (ticks, passed_over) = read(&encode(Schema::Trades, &records, compressed), None);
        assert_eq!(ticks.as_deref(), Ok(&expected[..]));
        assert_eq!(passed_over, PassedOver::default());
    }
    let (ticks, _) = read(&encode(Schema::Trades, &records[..1], true), Some("NASDAQ"));
    assert_eq!(ticks.expect("good")[0].symbol, "NASDAQ:AAPL");
}

#[test]
fn books_give_quotes_and_trades() {
    let records = [
        book_message(0, b'A', (100 * E9, 5), (101 * E9, 6)),
        book_message(1, b'T', (100 * E9, 5), (101 * E9, 6)),
        book_message(2, b'C', (UNDEF_PRICE, 0), (101 * E9, 6)),
        book_message(3, b'A', (-E9, 1), (101 * E9, 6)),
    ];
    let first = quote(0, (100 * E9, 5 * E9), (101 * E9, 6 * E9));
    let traded = trade_of(quote(1, (0, 0), (0, 0)), 7, Side::Buy, 187 * E9, 5 * E9);
    let one_sided = quote(2, (0, 0), (101 * E9, 6 * E9));
    let of_spread = quote(3, (-E9, E9), (101 * E9, 6 * E9));
    let (ticks, passed_over) = read(&encode(Schema::Mbp1, &records, true), None);
    assert_eq!(ticks, Ok(vec![first, traded.clone(), one_sided, of_spread]));
    assert_eq!(passed_over, PassedOver::default());
    // In tbbo, a book comes only with its trade.
    let (ticks, _) = read(&encode(Schema::Tbbo, &records[1..2], false), None);
    assert_eq!(ticks, Ok(vec![quote(1, (100 * E9, 5 * E9), (101 * E9, 6 * E9)), traded]));
}

/// Symbol, price of the trade or 0, bid and ask, in whole units.
type Summary = (String, i64, i64, i64);

/// Returns the ticks as summaries, and counts of records without ticks.
fn summary(bytes: &[u8]) -> (Vec<Summary>, Vec<(String, u64)>) {
    let (ticks, passed_over) = read(bytes, None);
    let ticks = ticks.expect("good").into_iter().map(|tick| {
        let [price, bid, ask] = [tick.price_e9, tick.bid_price_e9, tick.ask_price_e9].map(|price| price / E9);
        (tick.symbol, price, bid, ask)
    });
    (ticks.collect(), passed_over.ignored.into_iter().collect())
}

fn counted(kind: &str, count: u64) -> Vec<(String, u64)> {
    vec![(kind.to_owned(), count)]
}

#[test]
fn a_recording_without_a_schema_has_the_book_of_each_trade() {
    let book = ((100 * E9, 5), (101 * E9, 6));
    let records = [0, 1].map(|offset| book_message(offset, b'T', book.0, book.1));
    let live = encode_with(&metadata("XNAS.ITCH", None), &records, false);
    let named = encode(Schema::Tbbo, &records, false);
    let (ticks, _) = read(&live, None);
    assert_eq!(ticks.as_ref().map(Vec::len), Ok(4));
    assert_eq!(ticks, read(&named, None).0, "as from a file whose schema says tbbo");
    // A file of mbp-1 that begins with a trade has no earlier record with the book.
    let (ticks, _) = summary(&encode(Schema::Mbp1, &records, false));
    let symbol = || "XNAS.ITCH:AAPL".to_owned();
    assert_eq!(ticks, [(symbol(), 0, 100, 101), (symbol(), 187, 0, 0), (symbol(), 187, 0, 0)]);
}

#[test]
fn each_publisher_of_a_data_set_is_a_venue() {
    let of = |publisher_id: u16, offset_ns: u64, action: u8, bid: i64, ask: i64| {
        let mut message = book_message(offset_ns, action, (bid * E9, 1), (ask * E9, 1));
        message.hd.publisher_id = publisher_id;
        message
    };
    let records = [of(39, 0, b'M', 100, 102), of(40, 1, b'M', 90, 110), of(39, 2, b'T', 100, 102)];
    let metadata = metadata("DBEQ.BASIC", Some(Schema::Mbp1));
    let (ticks, _) = summary(&encode_with(&metadata, &records, false));
    let [first, second] = ["DBEQ.BASIC.XCHI:AAPL", "DBEQ.BASIC.XCIS:AAPL"].map(str::to_owned);
    assert_eq!(ticks, [(first.clone(), 0, 100, 102), (second, 0, 90, 110), (first, 187, 0, 0)]);
}

#[test]
fn the_first_level_of_a_deep_book_is_told_where_it_changes() {
    let of = |offset_ns: u64, action: u8, bid: i64, deep: i64| {
        let mut levels: [BidAskPair; 10] = std::array::from_fn(|_| level(deep * E9, 200 * E9));
        levels[0] = level(bid * E9, 101 * E9);
        let hd = header::<Mbp10Msg>(::dbn::rtype::MBP_10, offset_ns, 42);
        let (action, size, ts_recv) = (action as c_char, 5, EVENT_NS + offset_ns);
        Mbp10Msg { hd, price: 100 * E9, size, action, ts_recv, levels, ..Mbp10Msg::default() }
    };
    let records = [of(0, b'A', 100, 99), of(1, b'A', 100, 98), of(2, b'T', 100, 98), of(3, b'C', 99, 98)];
    let (ticks, ignored) = summary(&encode(Schema::Mbp10, &records, false));
    let symbol = || "XNAS.ITCH:AAPL".to_owned();
    assert_eq!(ticks, [(symbol(), 0, 100, 101), (symbol(), 100, 0, 0), (symbol(), 0, 99, 101)]);
    assert_eq!(ignored, counted("mbp-10 with the first level as before", 1));
}

#[test]
fn bad_records_are_skipped_and_counted_where_that_is_asked_for() {
    let mut records = [0, 1, 2].map(|offset_ns| trade_message(offset_ns, b'A'));
    records[1].hd.instrument_id = 43;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_file(&folder, "file.dbn", encode(Schema::Trades, &records, false));
    let read = |skips_bad| {
        let mut source = DbnSource::open(std::slice::from_ref(&path), None, skips_bad).expect("opens");
        let ticks: Vec<_> = (&mut source).collect();
        (
            ticks.iter().filter(|tick| tick.is_ok()).count(),
            ticks.iter().any(Result::is_err),
            source.passed_over().bad,
        )
    };
    assert_eq!(read(true), (2, false, 1));
    assert_eq!(read(false), (1, true, 0));
}

#[test]
fn sampled_books_are_quotes_of_the_interval_s_end() {
    let hd = |rtype| RecordHeader::new::<BboMsg>(rtype, 2, 42, UNDEF_TIMESTAMP);
    let (price, ts_recv) = (UNDEF_PRICE, EVENT_NS + 9);
    for rtype in [::dbn::rtype::BBO_1S, ::dbn::rtype::BBO_1M] {
        let levels = [level(100 * E9, 101 * E9)];
        let record =
            BboMsg { hd: hd(rtype), price, ts_recv, levels, ..BboMsg::default_for_schema(Schema::Bbo1S) };
        let ticks = read(&encode(Schema::Bbo1S, &[record.clone(), record], false), None).0.expect("good");
        let told: Vec<_> = ticks.iter().map(|tick| (tick.event_time_ns, tick.bid_price_e9)).collect();
        assert_eq!(told, [(ts_recv as i64, 100 * E9); 2]);
    }
    for rtype in [::dbn::rtype::CBBO_1S, ::dbn::rtype::CBBO_1M] {
        let hd = hd(rtype);
        let levels = [consolidated_level(100 * E9, 101 * E9)];
        let record = CbboMsg { hd, price, ts_recv, levels, ..CbboMsg::default_for_schema(Schema::Cbbo1S) };
        let (ticks, _) = summary(&encode(Schema::Cbbo1S, &[record], false));
        assert_eq!(ticks, [("XNAS.ITCH:AAPL".to_owned(), 0, 100, 101)]);
    }
    let record = BboMsg {
        hd: hd(::dbn::rtype::BBO_1S),
        ts_recv: UNDEF_TIMESTAMP,
        ..BboMsg::default_for_schema(Schema::Bbo1S)
    };
    check_refused(&encode(Schema::Bbo1S, &[record], false), "column `ts_recv`");
}

#[test]
fn consolidated_books_are_of_the_data_set() {
    let of = |rtype: u8, publisher_id: u16, action: u8, bid: i64| {
        let hd = RecordHeader::new::<Cmbp1Msg>(rtype, publisher_id, 42, EVENT_NS);
        let (action, ts_recv) = (action as c_char, EVENT_NS);
        let levels = [consolidated_level(bid * E9, 101 * E9)];
        Cmbp1Msg {
            hd,
            price: 100 * E9,
            size: 3,
            action,
            ts_recv,
            levels,
            ..Cmbp1Msg::default_for_schema(Schema::Cmbp1)
        }
    };
    let symbol = || "DBEQ.BASIC:AAPL".to_owned();
    let cmbp = ::dbn::rtype::CMBP_1;
    let records = [of(cmbp, 39, b'A', 99), of(cmbp, 40, b'M', 100), of(cmbp, 41, b'T', 100)];
    let metadata_of = |schema| metadata("DBEQ.BASIC", Some(schema));
    let (ticks, _) = summary(&encode_with(&metadata_of(Schema::Cmbp1), &records, false));
    assert_eq!(ticks, [(symbol(), 0, 99, 101), (symbol(), 0, 100, 101), (symbol(), 100, 0, 0)]);
    let records = [39, 40].map(|publisher| of(::dbn::rtype::TCBBO, publisher, b'T', 100));
    for schema in [Schema::Tcbbo, Schema::Cmbp1] {
        let (ticks, _) = summary(&encode_with(&metadata_of(schema), &records, false));
        let once = [(symbol(), 0, 100, 101), (symbol(), 100, 0, 0)];
        assert_eq!(ticks, [once.clone(), once].concat());
    }
}

#[test]
fn an_id_is_of_one_trade_and_a_trade_has_a_size() {
    let records = [(0, 50, 300), (1, 50, 300), (2, 0, 300), (3, 51, 0), (4, 51, 1), (5, 52, u32::MAX)];
    let records =
        records.map(|(offset, sequence, size)| TradeMsg { sequence, size, ..trade_message(offset, b'A') });
    let (ticks, passed_over) = read(&encode(Schema::Trades, &records, false), None);
    let ids: Vec<_> = ticks.expect("good").iter().map(|tick| tick.trade_id).collect();
    assert_eq!(ids, [50, 0, 0, 51]);
    assert_eq!(passed_over.ignored, [("trade of price or size 0".to_owned(), 2)].into());
}

fn check_refused(bytes: &[u8], expected: &str) {
    let message = read(bytes, None).0.expect_err("must be refused");
    assert!(message.contains("file.dbn") && message.contains(expected), "{message}");
}

#[test]
fn a_record_without_receive_time_has_its_event_time_s_symbol() {
    let mut record = trade_message(3, b'A');
    record.ts_recv = UNDEF_TIMESTAMP;
    let ticks = read(&encode(Schema::Trades, &[record], false), None).0.expect("good");
    assert_eq!((ticks[0].receive_time_ns, ticks[0].event_time_ns), (0, EVENT_NS as i64 + 3));
    assert_eq!(ticks[0].symbol, "XNAS.ITCH:AAPL");
}

#[test]
fn spreads_trade_at_prices_of_0_and_below() {
    let records = [0, -5 * E9].map(|price| TradeMsg { price, ..trade_message(0, b'A') });
    let (ticks, passed_over) = read(&encode(Schema::Trades, &records, false), None);
    let prices: Vec<_> = ticks.expect("two trades").iter().map(|tick| (tick.kind, tick.price_e9)).collect();
    assert_eq!(prices, [(TickKind::Trade, 0), (TickKind::Trade, -5 * E9)]);
    assert_eq!(passed_over, PassedOver::default());
}

#[test]
fn what_cannot_be_read_is_named() {
    let mut unknown = trade_message(0, b'A');
    unknown.hd.instrument_id = 43;
    check_refused(&encode(Schema::Trades, &[unknown], true), "no symbol for instrument id 43");
    let mut another_day = trade_message(0, b'A');
    another_day.ts_recv += 86_400_000_000_000;
    check_refused(&encode(Schema::Trades, &[another_day], false), "no symbol for instrument id 42");
    let mut timeless = trade_message(0, b'A');
    timeless.hd.ts_event = UNDEF_TIMESTAMP;
    check_refused(&encode(Schema::Trades, &[timeless], false), "column `ts_event`");
    let mut priceless = trade_message(0, b'A');
    priceless.price = UNDEF_PRICE;
    check_refused(&encode(Schema::Trades, &[priceless], false), "column `price`");
    let mut nowhen = trade_message(0, b'A');
    nowhen.ts_recv = UNDEF_TIMESTAMP;
    nowhen.hd.ts_event = 0;
    check_refused(&encode(Schema::Trades, &[nowhen], false), "column `ts_event`: found `0`");
    check_refused(b"not DBN at all", "decoding error");
    check_refused(b"", "complete .dbn");
}

#[test]
fn files_cut_short_are_refused() {
    let records: Vec<TradeMsg> = (0..100).map(|offset| trade_message(offset, b'A')).collect();
    let plain = encode(Schema::Trades, &records, false);
    check_refused(&plain[..plain.len() - 20], "ends within a record after record 99");
    let compressed = encode(Schema::Trades, &records, true);
    check_refused(&compressed[..compressed.len() - 20], "complete .dbn");
    // A cut between records leaves a shorter file of whole records, which nothing shows.
    assert_eq!(read(&plain[..plain.len() - 48], None).0.map(|ticks| ticks.len()), Ok(99));
}

#[test]
fn a_record_of_a_damaged_length_is_named_after_the_ticks_before_it() {
    let records: Vec<TradeMsg> = (0..100).map(|offset| trade_message(offset, b'A')).collect();
    let whole = encode(Schema::Trades, &records, false);
    let third = whole.len() - 98 * size_of::<TradeMsg>();
    for (length, found) in [(13, "52 bytes"), (11, "44 bytes"), (0, "0 bytes")] {
        let mut damaged = whole.clone();
        damaged[third] = length;
        check_refused(&damaged, &format!("the record at byte {third} (uncompressed) claims {found}"));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = write_file(&folder, "file.dbn", &damaged);
        let mut source = DbnSource::open(&[path], None, true).expect("opens");
        assert_eq!((&mut source).filter(Result::is_ok).count(), 2);
    }
}

#[test]
fn files_are_merged_by_receive_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let paths = [[0, 30, 60], [10, 20, 70]].map(|offsets: [u64; 3]| {
        let records = offsets.map(|offset| trade_message(offset, b'A'));
        write_file(&folder, &format!("{}.dbn", offsets[0]), encode(Schema::Trades, &records, false))
    });
    let source = DbnSource::open(&paths, None, false).expect("opens");
    let offsets: Vec<i64> = source.map(|tick| tick.expect("good").event_time_ns - EVENT_NS as i64).collect();
    assert_eq!(offsets, [0, 10, 20, 30, 60, 70]);
}

#[test]
fn gaps_are_found_by_the_record_behind_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let later = |number: u64| if number < 10 { 0 } else { 120_000_000_000 };
    let trades: Vec<TradeMsg> = (0..20).map(|number| trade_message(number + later(number), b'B')).collect();
    let path = write_file(&folder, "gap.dbn", encode(Schema::Trades, &trades, false));
    let mut source = crate::Source::of(DbnSource::open(&[path], None, false).expect("opens"));
    let mut survey = crate::GapSurvey::new(60 * E9, 1);
    while let Some(tick) = source.next() {
        let tick = tick.expect("a trade");
        survey.add(source.last_place(), &tick.symbol, tick.event_time_ns);
    }
    let gap = survey.gaps().of_input(0).expect("a gap");
    assert_eq!((gap.count, gap.line, gap.length_ns / E9), (1, 11, 120));
}
