//! Open bars as a device has them, and the arguments of the kernels that fold them.

use bytemuck::{Pod, Zeroable};

use super::open::OpenBar;
use super::quotes::{Quote, RECENT_QUOTES_MAX, RecentQuotes};
use super::slab::{BarSlab, OpenBars};
use super::spec::BarSpec;

/// An open bar: as `Bar` of `bars.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct DeviceBar {
    volume_e9: i128,
    notional_e18: i128,
    number: i64,
    open_time_ns: i64,
    close_time_ns: i64,
    open_e9: i64,
    high_e9: i64,
    low_e9: i64,
    close_e9: i64,
    trades: i64,
    quoted: i64,
    quote: [i64; 3],
}

/// The fold of neighbouring trades: `Part` of `bars.cu`. Only the device reads its fields.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct DevicePart {
    bar: DeviceBar,
    rows: [u32; 4],
}

/// The last of neighbouring quotes: `QuotePart` of `bars.cu`. Only the device reads its fields.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct DeviceQuotePart {
    numbers: [i64; 4],
    rows: [u32; 2],
}

/// A trade: `Trade` of `bars.cu`. The two structs after this one are `Quote` and `Mark` there.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct DeviceTrade {
    /// The place, and in the highest four bits the exponent of the size.
    place_exponent: u32,
    row: u32,
    time_ns: i64,
    price_e9: i64,
    size: i64,
}

impl DeviceTrade {
    /// Number of places that fit into the bits that a size's exponent leaves.
    pub const PLACES_MAX: usize = 1 << 28;

    pub fn new(place: u32, exponent: u32, row: u32, [time_ns, price_e9, size]: [i64; 3]) -> Self {
        Self { place_exponent: place | exponent << 28, row, time_ns, price_e9, size }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct DeviceQuote {
    pub place: u32,
    pub row: u32,
    pub time_ns: i64,
    pub bid_e9: i64,
    pub ask_e9: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct DeviceMark {
    pub row: u64,
    pub time_ns: i64,
}

/// Number of trades that one thread of `fold_runs` folds, and of quotes that one of `fold_quotes` does.
pub const RUN: usize = 32;

/// Arguments of the kernels that fold bars: `FoldArgs` of `bars.cu`. All but `kind`, `parameter`, `places`,
/// `allowed_lateness_ns`, `trades`, `quotes`, `open_max` and `closed_max` are addresses.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[expect(missing_docs, reason = "bars.cu says what each one is")]
pub struct FoldArgs {
    pub spec: u64,
    pub kind: u64,
    pub parameter: i64,
    pub allowed_lateness_ns: i64,
    pub places: u64,
    pub slot: u64,
    pub group: u64,
    pub trades: u64,
    pub trade_begin: u64,
    pub trade: u64,
    pub quotes: u64,
    pub quote_begin: u64,
    pub quote: u64,
    pub mark_begin: u64,
    pub mark: u64,
    pub open_max: u64,
    pub open: u64,
    pub open_count: u64,
    pub kept_quotes: u64,
    pub parts: u64,
    pub part_count: u64,
    pub quote_parts: u64,
    pub quote_part_count: u64,
    pub closed_max: u64,
    pub closed_count: u64,
    pub failed: u64,
    pub first: u64,
    pub closed_by_place: u64,
    pub closed: u64,
}

impl FoldArgs {
    /// The arguments that follow from the specification: what closes a bar, and how many bars may be open.
    pub fn new(spec: BarSpec, allowed_lateness_ns: i64) -> Self {
        let (kind, parameter) = match spec {
            BarSpec::Time { interval_ns } => (0, interval_ns),
            BarSpec::Ticks { count } => (1, count),
            BarSpec::Volume { volume_e9 } => (2, volume_e9),
        };
        let open_max = spec.open_bars_max(allowed_lateness_ns) as u64;
        Self { kind, parameter, allowed_lateness_ns, open_max, ..Self::default() }
    }
}

impl BarSlab {
    /// Open bars of a slot as a device has them, by ascending number.
    pub(crate) fn open_bars(&self, slot: usize) -> Vec<DeviceBar> {
        match &self.open {
            OpenBars::Time(bars) => {
                bars.of_slot(slot).map(|(number, bar)| DeviceBar::new(number, bar)).collect()
            }
            OpenBars::Filled(bars) => {
                bars.of_slot(slot).map(|bar| DeviceBar::new(0, bar)).into_iter().collect()
            }
        }
    }

    /// Sets the open bars of a slot that has none, by ascending number.
    pub(crate) fn set_open_bars(&mut self, slot: usize, open: &[DeviceBar]) {
        for bar in open {
            match &mut self.open {
                OpenBars::Time(bars) => bars.set_bar(slot, bar.number, bar.bar()),
                OpenBars::Filled(bars) => bars.set_bar(slot, bar.bar()),
            }
        }
    }
}

/// Number of words that a slot's quotes take under a specification. Time bars need bid and ask. Other bars need a ring: the position at
/// which it begins, the number of quotes, and the event time, bid and ask of each.
pub(crate) fn quote_words(spec: BarSpec) -> usize {
    match spec {
        BarSpec::Time { .. } => 2,
        BarSpec::Ticks { .. } | BarSpec::Volume { .. } => 2 + 3 * RECENT_QUOTES_MAX,
    }
}

impl BarSlab {
    /// Quotes of a slot as a device has them.
    pub(crate) fn quotes(&self, slot: usize) -> Vec<i64> {
        match &self.open {
            OpenBars::Time(bars) => bars.last_quote(slot).to_vec(),
            OpenBars::Filled(bars) => {
                let quotes = bars.quotes(slot).iter();
                let head = [0, quotes.len() as i64];
                let of_quotes =
                    quotes.flat_map(|Quote { time_ns, bid_e9, ask_e9 }| [*time_ns, *bid_e9, *ask_e9]);
                let mut words: Vec<i64> = head.into_iter().chain(of_quotes).collect();
                words.resize(2 + 3 * RECENT_QUOTES_MAX, 0);
                words
            }
        }
    }

    /// Sets the quotes of a slot, given as a device has them.
    pub(crate) fn set_quotes(&mut self, slot: usize, words: &[i64]) {
        let (head, ring) = words.split_at(2);
        match &mut self.open {
            OpenBars::Time(bars) => bars.set_last_quote(slot, [head[0], head[1]]),
            OpenBars::Filled(bars) => {
                let quotes = (head[0]..head[0] + head[1]).map(|at| {
                    let of_quote = &ring[3 * (at as usize % RECENT_QUOTES_MAX)..][..3];
                    Quote { time_ns: of_quote[0], bid_e9: of_quote[1], ask_e9: of_quote[2] }
                });
                bars.set_quotes(slot, quotes.collect::<RecentQuotes>());
            }
        }
    }
}

impl DeviceBar {
    fn new(number: i64, bar: &OpenBar) -> Self {
        let OpenBar {
            volume_e9,
            notional_e18,
            open_time_ns,
            close_time_ns,
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            trades,
            quote,
        } = *bar;
        let of_quote = quote.unwrap_or_default();
        Self {
            volume_e9,
            notional_e18,
            number,
            open_time_ns,
            close_time_ns,
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            trades,
            quoted: quote.is_some().into(),
            quote: [of_quote.time_ns, of_quote.bid_e9, of_quote.ask_e9],
        }
    }

    fn bar(&self) -> OpenBar {
        let Self {
            volume_e9,
            notional_e18,
            open_time_ns,
            close_time_ns,
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            trades,
            quoted,
            quote: [quote_time_ns, bid_e9, ask_e9],
            ..
        } = *self;
        let quote = Quote { time_ns: quote_time_ns, bid_e9, ask_e9 };
        OpenBar {
            volume_e9,
            notional_e18,
            open_time_ns,
            close_time_ns,
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            trades,
            quote: (quoted != 0).then_some(quote),
        }
    }
}
