//! Databento Binary Encoding: files of the schemas trades, mbp-1 and tbbo, plain or compressed with Zstandard.
//!
//! | record | becomes |
//! | --- | --- |
//! | trades, action `T` | a trade |
//! | mbp-1, action `T` | a trade; its levels are the book before it, known already |
//! | mbp-1, any other action | a quote of level 0 |
//! | tbbo | a quote (level 0, the book before the trade), then the trade |
//! | of another schema; a negative price, as spreads have | nothing |
//!
//! Prices are 1e-9 in the files too; an undefined price is an absent side of the book. Sizes are whole units. The event
//! time is `ts_event`, the receive time `ts_recv`. Symbols are `VENUE:RAW_SYMBOL`: the raw symbol from the file's
//! symbology at the record's time, the venue the file's dataset unless another is given. Several files are merged by
//! receive time.

use std::collections::VecDeque;
use std::ffi::c_char;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use ::dbn::decode::{DbnDecoder, DbnMetadata, DynReader};
use ::dbn::{
    FIXED_PRICE_SCALE, Mbp1Msg, Record, RecordHeader, RecordRef, Schema, SymbolIndex, TradeMsg, TsSymbolMap,
    UNDEF_ORDER_SIZE, UNDEF_PRICE, UNDEF_TIMESTAMP, VersionUpgradePolicy,
};
use warptape_schemas::tick::{Side, Tick, TickKind};

use super::arrival_merge::ArrivalMerge;
use super::input::{CountedFile, FileProgress};
use super::{FieldProblem, PassedOver, Progress, SourceError};

/// `DBN`, the version, and the length of the metadata that follow (little endian).
const PRELUDE_BYTES: usize = 8;
const ACTION_TRADE: c_char = b'T' as c_char;
const SIDE_ASK: c_char = b'A' as c_char;
const SIDE_BID: c_char = b'B' as c_char;

/// Ticks of one or more DBN files.
pub struct DbnSource {
    merge: ArrivalMerge<DbnFile>,
}

impl DbnSource {
    /// Opens the files and reads their metadata.
    ///
    /// # Errors
    /// If there is none, or one cannot be opened or is no DBN.
    pub fn open(paths: &[PathBuf], venue: Option<&str>) -> Result<DbnSource, SourceError> {
        if paths.is_empty() {
            return Err(SourceError::NoFiles);
        }
        let files: Result<Vec<DbnFile>, SourceError> =
            paths.iter().map(|path| DbnFile::open(path, venue)).collect();
        Ok(DbnSource { merge: ArrivalMerge::new(files?) })
    }

    /// Bytes read of all files.
    pub fn progress(&self) -> Progress {
        FileProgress::sum(self.merge.inputs().iter().map(|file| &file.progress))
    }

    /// Records that are no ticks.
    pub fn passed_over(&self) -> PassedOver {
        self.merge.inputs().iter().map(|file| PassedOver { ignored: file.ignored, bad: 0 }).sum()
    }
}

impl Iterator for DbnSource {
    type Item = Result<Tick, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.merge.next()
    }
}

/// Ticks of one file, in the order of its records.
struct DbnFile {
    path: PathBuf,
    decoder: DbnDecoder<WholeStream<DynReader<'static, BufReader<CountedFile>>>>,
    progress: FileProgress,
    reader: RecordReader,
    /// Records decoded so far.
    record: u64,
    /// Bytes of these records, uncompressed.
    records_bytes: u64,
    ignored: u64,
}

/// A stream of which the decoder must not mistake the middle for the end: it takes bytes that are missing for the end
/// of the records. Here they are an error, and the bytes that were there are counted.
struct WholeStream<R> {
    inner: R,
    read_bytes: u64,
    prelude: [u8; PRELUDE_BYTES],
}

/// What is needed to make ticks of records; ticks of the last record wait here.
struct RecordReader {
    symbols: TsSymbolMap,
    /// `VENUE:`, put before every raw symbol.
    symbol_prefix: String,
    /// Whether level 0 is told only here, before its trade.
    is_tbbo: bool,
    ticks: VecDeque<Tick>,
}

/// Why a record makes no tick.
enum RecordProblem {
    Field(FieldProblem),
    UnknownInstrument { instrument_id: u32, event_time_ns: u64 },
    Decode(::dbn::Error),
}

impl DbnFile {
    fn open(path: &Path, venue: Option<&str>) -> Result<DbnFile, SourceError> {
        let (file, progress) = CountedFile::open(path)?;
        let failed = |source| SourceError::Dbn { path: path.to_owned(), record: 0, source };
        let stream = WholeStream::new(DynReader::inferred_with_buffer(file).map_err(failed)?);
        // The records that matter are the same in versions 1 to 3; as they are, their bytes can be counted.
        let decoder = DbnDecoder::with_upgrade_policy(stream, VersionUpgradePolicy::AsIs).map_err(failed)?;
        let metadata = decoder.metadata();
        let reader = RecordReader {
            symbols: metadata.symbol_map().map_err(failed)?,
            symbol_prefix: format!("{}:", venue.unwrap_or(&metadata.dataset)),
            is_tbbo: metadata.schema == Some(Schema::Tbbo),
            ticks: VecDeque::new(),
        };
        Ok(DbnFile {
            path: path.to_owned(),
            decoder,
            progress,
            reader,
            record: 0,
            records_bytes: 0,
            ignored: 0,
        })
    }

    /// The next tick, past records that make none.
    fn pull(&mut self) -> Result<Option<Tick>, SourceError> {
        loop {
            if let Some(tick) = self.reader.ticks.pop_front() {
                return Ok(Some(tick));
            }
            let record = match self.decoder.decode_ref() {
                Ok(Some(record)) => record,
                Ok(None) => return self.check_end(),
                Err(source) => {
                    return Err(SourceError::Dbn { path: self.path.clone(), record: self.record, source });
                }
            };
            self.record += 1;
            self.records_bytes += record.record_size() as u64;
            let made = self.reader.read(record);
            let path = || self.path.clone();
            match made {
                Ok(()) if self.reader.ticks.is_empty() => self.ignored += 1,
                Ok(()) => {}
                Err(RecordProblem::Field(problem)) => {
                    return Err(SourceError::BadRecord { path: path(), record: self.record, problem });
                }
                Err(RecordProblem::UnknownInstrument { instrument_id, event_time_ns }) => {
                    let (path, record) = (path(), self.record);
                    return Err(SourceError::UnknownInstrument {
                        path,
                        record,
                        instrument_id,
                        event_time_ns,
                    });
                }
                Err(RecordProblem::Decode(source)) => {
                    return Err(SourceError::Dbn { path: path(), record: self.record - 1, source });
                }
            }
        }
    }
}

impl DbnFile {
    /// The end of the stream must be the end of a record.
    fn check_end(&self) -> Result<Option<Tick>, SourceError> {
        let stream = self.decoder.get_ref();
        if stream.read_bytes == stream.metadata_bytes() + self.records_bytes {
            return Ok(None);
        }
        Err(SourceError::DbnCutShort { path: self.path.clone(), record: self.record })
    }
}

impl Iterator for DbnFile {
    type Item = Result<Tick, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pull().transpose()
    }
}

impl<R> WholeStream<R> {
    fn new(inner: R) -> WholeStream<R> {
        WholeStream { inner, read_bytes: 0, prelude: [0; PRELUDE_BYTES] }
    }

    /// Length of what comes before the records.
    fn metadata_bytes(&self) -> u64 {
        let [_, _, _, _, length @ ..] = self.prelude;
        PRELUDE_BYTES as u64 + u64::from(u32::from_le_bytes(length))
    }
}

impl<R: Read> Read for WholeStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::new(io::ErrorKind::InvalidData, error),
            _ => error,
        })?;
        if self.read_bytes < PRELUDE_BYTES as u64 {
            let have = self.read_bytes as usize;
            let new = read.min(PRELUDE_BYTES - have);
            self.prelude[have..have + new].copy_from_slice(&buffer[..new]);
        }
        self.read_bytes += read as u64;
        Ok(read)
    }
}

impl RecordReader {
    /// Puts the record's ticks into `ticks`.
    fn read(&mut self, record: RecordRef) -> Result<(), RecordProblem> {
        if record.has::<TradeMsg>() {
            let message: &TradeMsg = record.try_get().map_err(RecordProblem::Decode)?;
            if message.action == ACTION_TRADE && message.price >= 0 {
                let common = self.common(&message.hd, message.ts_recv, self.symbols.get_for_rec(message))?;
                self.ticks.push_back(trade(
                    common,
                    message.price,
                    message.size,
                    message.side,
                    message.sequence,
                )?);
            }
        } else if record.has::<Mbp1Msg>() {
            let message: &Mbp1Msg = record.try_get().map_err(RecordProblem::Decode)?;
            let is_trade = message.action == ACTION_TRADE;
            let level = &message.levels[0];
            let has_quote = (self.is_tbbo || !is_trade) && level.bid_px >= 0 && level.ask_px >= 0;
            let has_trade = is_trade && message.price >= 0;
            if !has_quote && !has_trade {
                return Ok(());
            }
            let common = self.common(&message.hd, message.ts_recv, self.symbols.get_for_rec(message))?;
            if has_quote {
                let (bid_price_e9, bid_size_e9) = side_of_book(level.bid_px, level.bid_sz);
                let (ask_price_e9, ask_size_e9) = side_of_book(level.ask_px, level.ask_sz);
                let book = Tick { bid_price_e9, bid_size_e9, ask_price_e9, ask_size_e9, ..common.clone() };
                self.ticks.push_back(book);
            }
            if has_trade {
                self.ticks.push_back(trade(
                    common,
                    message.price,
                    message.size,
                    message.side,
                    message.sequence,
                )?);
            }
        } else {
            // Live recordings carry their mappings in the stream.
            self.symbols.on_record(record).map_err(RecordProblem::Decode)?;
        }
        Ok(())
    }

    /// A quote without a book: symbol and times, to be filled.
    fn common(
        &self,
        header: &RecordHeader,
        ts_recv: u64,
        raw: Option<&String>,
    ) -> Result<Tick, RecordProblem> {
        let Some(raw) = raw else {
            let (instrument_id, event_time_ns) = (header.instrument_id, header.ts_event);
            return Err(RecordProblem::UnknownInstrument { instrument_id, event_time_ns });
        };
        let time_ns = |name: &str, time: u64| {
            let bad = || {
                FieldProblem::new(name, time.to_string(), "a time in nanoseconds after 1970 and before 2262")
            };
            i64::try_from(time).map_err(|_| RecordProblem::Field(bad()))
        };
        let event_time_ns = time_ns("ts_event", header.ts_event)?;
        Ok(Tick {
            symbol: [&self.symbol_prefix, raw.as_str()].concat(),
            kind: TickKind::Quote,
            event_time_ns,
            receive_time_ns: if ts_recv == UNDEF_TIMESTAMP { 0 } else { time_ns("ts_recv", ts_recv)? },
            trade_id: 0,
            side: Side::None,
            price_e9: 0,
            size_e9: 0,
            bid_price_e9: 0,
            bid_size_e9: 0,
            ask_price_e9: 0,
            ask_size_e9: 0,
        })
    }
}

/// A trade; its id is the venue's sequence number, as DBN carries no other.
fn trade(common: Tick, price: i64, size: u32, side: c_char, sequence: u32) -> Result<Tick, RecordProblem> {
    if price == UNDEF_PRICE {
        return Err(RecordProblem::Field(FieldProblem::new("price", "undefined", "the price of a trade")));
    }
    let side = match side {
        SIDE_ASK => Side::Sell,
        SIDE_BID => Side::Buy,
        _ => Side::None,
    };
    let (kind, trade_id) = (TickKind::Trade, i64::from(sequence));
    Ok(Tick { kind, side, trade_id, price_e9: price, size_e9: size_e9(size), ..common })
}

/// Price and size of one side of the book; zeros where it is absent.
fn side_of_book(price: i64, size: u32) -> (i64, i64) {
    if price == UNDEF_PRICE { (0, 0) } else { (price, size_e9(size)) }
}

/// At most 4.3e18, which an `i64` holds.
fn size_e9(size: u32) -> i64 {
    if size == UNDEF_ORDER_SIZE { 0 } else { i64::from(size) * FIXED_PRICE_SCALE }
}

#[cfg(test)]
mod tests {
    use ::dbn::encode::{DbnEncodable, EncodeRecord};
    use ::dbn::{BidAskPair, MappingInterval, Metadata, SType, SymbolMapping};

    use super::*;
    use crate::sources::test_ticks::write_file;

    const EVENT_NS: u64 = 1_723_161_255_000_000_000;
    const E9: i64 = FIXED_PRICE_SCALE;

    fn metadata(schema: Schema) -> Metadata {
        let mut metadata = Metadata::builder()
            .dataset("XNAS.ITCH")
            .schema(Some(schema))
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
            action: ACTION_TRADE,
            side: side as c_char,
            ts_recv: EVENT_NS + offset_ns + 7,
            sequence: 99,
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
            side: SIDE_BID,
            ts_recv: EVENT_NS + offset_ns + 7,
            sequence: 7,
            levels: [BidAskPair { bid_px, ask_px, bid_sz, ask_sz, bid_ct: 1, ask_ct: 1 }],
            ..Mbp1Msg::default()
        }
    }

    fn encode<T: DbnEncodable>(schema: Schema, records: &[T], compressed: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let metadata = metadata(schema);
        if compressed {
            let mut encoder = ::dbn::encode::DbnEncoder::with_zstd(&mut bytes, &metadata).expect("encodes");
            encoder.encode_records(records).expect("encodes");
        } else {
            let mut encoder = ::dbn::encode::DbnEncoder::new(&mut bytes, &metadata).expect("encodes");
            encoder.encode_records(records).expect("encodes");
        }
        bytes
    }

    fn read(bytes: &[u8], venue: Option<&str>) -> (Result<Vec<Tick>, String>, PassedOver) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = write_file(&folder, "file.dbn", bytes);
        let mut source = match DbnSource::open(&[path], venue) {
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
                trade_of(quote(offset as i64, (0, 0), (0, 0)), 99, side, 187 * E9 + 1, 300 * E9)
            })
            .collect();
        for compressed in [false, true] {
            let (ticks, passed_over) = read(&encode(Schema::Trades, &records, compressed), None);
            assert_eq!(ticks.as_deref(), Ok(&expected[..]));
            assert_eq!(passed_over.ignored, 0);
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
        let (ticks, passed_over) = read(&encode(Schema::Mbp1, &records, true), None);
        assert_eq!(ticks, Ok(vec![first, traded.clone(), one_sided]));
        assert_eq!(passed_over, PassedOver { ignored: 1, bad: 0 });
        // In tbbo the book comes with its trade only.
        let (ticks, _) = read(&encode(Schema::Tbbo, &records[1..2], false), None);
        assert_eq!(ticks, Ok(vec![quote(1, (100 * E9, 5 * E9), (101 * E9, 6 * E9)), traded]));
    }

    fn check_refused(bytes: &[u8], expected: &str) {
        let message = read(bytes, None).0.expect_err("must be refused");
        assert!(message.contains("file.dbn") && message.contains(expected), "{message}");
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
        check_refused(b"not DBN at all", "decoding error");
        check_refused(b"", "whole .dbn");
    }

    #[test]
    fn files_cut_short_are_refused() {
        let records: Vec<TradeMsg> = (0..100).map(|offset| trade_message(offset, b'A')).collect();
        let plain = encode(Schema::Trades, &records, false);
        check_refused(&plain[..plain.len() - 20], "ends within a record after record 99");
        let compressed = encode(Schema::Trades, &records, true);
        check_refused(&compressed[..compressed.len() - 20], "whole .dbn");
        // Cut between records is a shorter file of whole records: nothing tells that more was there.
        assert_eq!(read(&plain[..plain.len() - 48], None).0.map(|ticks| ticks.len()), Ok(99));
    }

    #[test]
    fn files_are_merged_by_receive_time() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let paths = [[0, 30, 60], [10, 20, 70]].map(|offsets: [u64; 3]| {
            let records = offsets.map(|offset| trade_message(offset, b'A'));
            write_file(&folder, &format!("{}.dbn", offsets[0]), encode(Schema::Trades, &records, false))
        });
        let source = DbnSource::open(&paths, None).expect("opens");
        let offsets: Vec<i64> =
            source.map(|tick| tick.expect("good").event_time_ns - EVENT_NS as i64).collect();
        assert_eq!(offsets, [0, 10, 20, 30, 60, 70]);
    }
}
