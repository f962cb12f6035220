//! Open bars in a device's layout, and the arguments of the kernels that fold them.

use bytemuck::{Pod, Zeroable, cast_slice, pod_read_unaligned};

use super::open::{AGGRESSORS, OpenBar};
use super::quotes::{Quote, RECENT_QUOTES_MAX, RecentQuotes, Top};
use super::slab::{BarSlab, OpenBars};
use super::spec::BarSpec;
use crate::rows::RowKind;

/// An open bar: `Bar` of `bars.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct DeviceBar {
    volumes_e9: [i128; AGGRESSORS],
    notional_e18: i128,
    number: i64,
    open_time_ns: i64,
    close_time_ns: i64,
    open_e9: i64,
    high_e9: i64,
    low_e9: i64,
    close_e9: i64,
    trades: [i64; AGGRESSORS],
    /// 1 if the bar has a quote, else 0.
    quoted: i64,
    quote_time_ns: i64,
    top: DeviceTop,
    unused: i64,
}

/// Bid and ask: `Top` of `bars.cu`. A top without orders is all zeros.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct DeviceTop {
    prices_e9: [i64; 2],
    sizes: [i64; 2],
    /// Exponent of the sizes plus one; 0 if there are no orders.
    unit: i64,
}

/// Number of words of a [`DeviceTop`].
const TOP_WORDS: usize = size_of::<DeviceTop>() / 8;

impl DeviceTop {
    /// Converts a quote to the device's layout.
    fn of_quote(top: Top) -> Self {
        let Top { prices_e9, sizes, exponent } = top;
        Self { prices_e9, sizes, unit: i64::from(exponent) + 1 }
    }

    /// Converts the last quote of a slot, which may have had none, to the device's layout.
    fn of_slot(top: Top) -> Self {
        if top == Top::NONE { Self::default() } else { Self::of_quote(top) }
    }

    fn top(self) -> Top {
        let Self { prices_e9, sizes, unit } = self;
        match unit {
            0 => Top::NONE,
            unit => Top { prices_e9, sizes, exponent: unit as u32 - 1 },
        }
    }
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
    numbers: [i64; 2],
    top: DeviceTop,
    rows: [u32; 2],
}

/// A trade: `Trade` of `bars.cu`. The two structs after this one are `Quote` and `Mark` there.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct DeviceTrade {
    /// The place, followed by four bits with the exponent of the size, and two with the aggressor.
    place_kind: u32,
    row: u32,
    time_ns: i64,
    price_e9: i64,
    size: i64,
}

impl DeviceTrade {
    /// Number of places that fit into the remaining bits of `place_kind`.
    pub const PLACES_MAX: usize = 1 << 26;

    pub fn new(place: u32, kind: RowKind, row: u32, [time_ns, price_e9, size]: [i64; 3]) -> Self {
        let place_kind = place | kind.exponent() << 26 | kind.aggressor() << 30;
        Self { place_kind, row, time_ns, price_e9, size }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct DeviceQuote {
    place: u32,
    row: u32,
    time_ns: i64,
    top: DeviceTop,
}

impl DeviceQuote {
    pub fn new(place: u32, row: u32, quote: Quote) -> Self {
        Self { place, row, time_ns: quote.time_ns, top: DeviceTop::of_quote(quote.top) }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct DeviceMark {
    pub row: u64,
    pub time_ns: i64,
}

/// Number of trades that one thread of `fold_runs` folds, and of quotes that one thread of `fold_quotes` folds.
pub const RUN: usize = 32;

/// Arguments of the kernels that fold bars: `FoldArgs` of `bars.cu`. All fields are addresses except `kind`,
/// `parameter`, `places`, `allowed_lateness_ns`, `trades`, `quotes`, `open_max` and `closed_max`.
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
    /// The arguments determined by the specification: the condition that closes a bar, and the greatest number of open
    /// bars.
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
    /// Open bars of a slot in the device's layout, by ascending number.
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

    /// Sets the open bars of a slot that has none yet, by ascending number.
    pub(crate) fn set_open_bars(&mut self, slot: usize, open: &[DeviceBar]) {
        for bar in open {
            match &mut self.open {
                OpenBars::Time(bars) => bars.set_bar(slot, bar.number, bar.bar()),
                OpenBars::Filled(bars) => bars.set_bar(slot, bar.bar()),
            }
        }
    }
}

/// Number of words for a slot's quotes under a specification. Time bars keep bid and ask. Other bars keep a ring: its
/// beginning, the number of quotes, and a mark if one was forgotten. Each quote has its event time, bid and ask.
pub(crate) fn quote_words(spec: BarSpec) -> usize {
    match spec {
        BarSpec::Time { .. } => TOP_WORDS,
        BarSpec::Ticks { .. } | BarSpec::Volume { .. } => RING_HEAD + QUOTE_WORDS * RECENT_QUOTES_MAX,
    }
}

/// Number of words before the quotes of a ring. Below: words of each quote.
const RING_HEAD: usize = 3;
const QUOTE_WORDS: usize = 1 + TOP_WORDS;

impl BarSlab {
    /// Quotes of a slot in the device's layout.
    pub(crate) fn quotes(&self, slot: usize) -> Vec<i64> {
        match &self.open {
            OpenBars::Time(bars) => cast_slice(&[DeviceTop::of_slot(bars.last_quote(slot))]).to_vec(),
            OpenBars::Filled(bars) => {
                let recent = bars.quotes(slot);
                let mut words = vec![0, recent.iter().len() as i64, recent.has_forgotten.into()];
                for quote in recent.iter() {
                    words.push(quote.time_ns);
                    words.extend_from_slice(cast_slice(&[DeviceTop::of_quote(quote.top)]));
                }
                words.resize(RING_HEAD + QUOTE_WORDS * RECENT_QUOTES_MAX, 0);
                words
            }
        }
    }

    /// Sets the quotes of a slot, given in the device's layout.
    pub(crate) fn set_quotes(&mut self, slot: usize, words: &[i64]) {
        let top = |words: &[i64]| pod_read_unaligned::<DeviceTop>(cast_slice(words)).top();
        match &mut self.open {
            OpenBars::Time(bars) => bars.set_last_quote(slot, top(words)),
            OpenBars::Filled(bars) => {
                let (head, ring) = words.split_at(RING_HEAD);
                let quotes = (head[0]..head[0] + head[1]).map(|at| {
                    let of_quote = &ring[QUOTE_WORDS * (at as usize % RECENT_QUOTES_MAX)..][..QUOTE_WORDS];
                    Quote { time_ns: of_quote[0], top: top(&of_quote[1..]) }
                });
                let mut quotes = quotes.collect::<RecentQuotes>();
                quotes.has_forgotten = head[2] != 0;
                bars.set_quotes(slot, quotes);
            }
        }
    }
}

impl DeviceBar {
    fn new(number: i64, bar: &OpenBar) -> Self {
        let OpenBar {
            volumes_e9,
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
        Self {
            volumes_e9,
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
            quote_time_ns: quote.map_or(0, |quote| quote.time_ns),
            top: quote.map_or(DeviceTop::default(), |quote| DeviceTop::of_quote(quote.top)),
            unused: 0,
        }
    }

    fn bar(&self) -> OpenBar {
        let Self {
            volumes_e9,
            notional_e18,
            open_time_ns,
            close_time_ns,
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            trades,
            quoted,
            quote_time_ns,
            top,
            ..
        } = *self;
        let quote = (quoted != 0).then(|| Quote { time_ns: quote_time_ns, top: top.top() });
        OpenBar {
            volumes_e9,
            notional_e18,
            open_time_ns,
            close_time_ns,
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            trades,
            quote,
        }
    }
}
