//! Open bars of one interval of event time, for all slots.

use std::ops::Range;

use super::closed::ClosedBars;
use super::open::{OpenBar, Trade};
use super::quotes::{Quote, Top};
use crate::StateError;
use crate::rows::{RowKind, Rows};
use crate::state::{get_i64, get_u8, get_u32, put_i64, put_u8, put_u32};

/// Open bars of one interval, oldest first. Their number is bounded by the lateness that the watermark allows.
#[derive(Clone, Debug)]
pub(crate) struct TimeBars {
    interval_ns: i64,
    /// Most bars that may be open at once.
    open_max: i64,
    slots: usize,
    /// Open bars, ascending by number.
    open: Vec<OpenRow>,
    /// Empty rows, to be reused for the next bars.
    spare: Vec<OpenRow>,
    /// The last quote before all open bars, by slot.
    last_quotes: Vec<Top>,
}

/// The bars of all slots with the same number. A slot without trades and quotes in that time has no bar.
#[derive(Clone, Debug, Default)]
struct OpenRow {
    /// Number of the bar, which spans the event times `number · interval .. (number + 1) · interval`.
    number: i64,
    /// Place of a slot's bar in `bars`, counted from 1; 0 if the slot has none.
    places: Vec<u32>,
    /// Bars in the order of their first tick; none is empty.
    bars: Vec<OpenBar>,
    /// Slots of the bars, in the same order.
    touched: Vec<u32>,
}

impl OpenRow {
    /// The bar of a slot, for adding to it; it is empty if the slot had none yet.
    #[inline(always)]
    fn bar_mut(&mut self, slot: u32) -> &mut OpenBar {
        let place = &mut self.places[slot as usize];
        if *place == 0 {
            self.touched.push(slot);
            self.bars.push(OpenBar::default());
            *place = self.bars.len() as u32;
        }
        &mut self.bars[*place as usize - 1]
    }

    fn bar(&self, slot: usize) -> Option<&OpenBar> {
        let place = self.places[slot] as usize;
        place.checked_sub(1).map(|place| &self.bars[place])
    }
}

/// Most bars for which an empty row keeps memory. Without the limit, a row that once had bars of all symbols would keep
/// memory for all.
const SPARE_BARS_MAX: usize = 64;

/// The open bar of the last tick, which is tried first for the next tick.
#[derive(Clone, Copy)]
struct Current {
    position: usize,
    start_ns: i64,
    end_ns: i64,
}

impl Current {
    /// No bar: no event time is within it.
    const NONE: Self = Self { position: 0, start_ns: 0, end_ns: 0 };
}

impl TimeBars {
    pub fn new(interval_ns: i64, open_max: i64) -> Self {
        assert!(interval_ns > 0, "BarSpec::check and FromStr let no such interval through");
        Self { interval_ns, open_max, slots: 0, open: Vec::new(), spare: Vec::new(), last_quotes: Vec::new() }
    }

    pub fn resize(&mut self, slots: usize) {
        self.slots = self.slots.max(slots);
        for row in self.open.iter_mut().chain(&mut self.spare) {
            grow(&mut row.places, self.slots, 0);
        }
        grow(&mut self.last_quotes, self.slots, Top::NONE);
    }

    pub fn fold(&mut self, rows: &Rows, range: Range<usize>, closed: &mut ClosedBars) {
        let first = range.start;
        let kinds = &rows.kind[range.clone()];
        let slots = &rows.slot[range.clone()][..kinds.len()];
        let times_ns = &rows.time_ns[range.clone()][..kinds.len()];
        let prices_e9 = &rows.price_e9[range.clone()][..kinds.len()];
        let sizes_e9 = &rows.size_e9[range][..kinds.len()];
        let mut quote_sizes = rows.quote_sizes[rows.quotes_before(first)..].iter();
        let mut current = Current::NONE;
        for row in 0..kinds.len() {
            let time_ns = times_ns[row];
            match kinds[row].base() {
                RowKind::QUOTE => {
                    if time_ns < current.start_ns || time_ns >= current.end_ns {
                        current = self.bar_at(time_ns);
                    }
                    let bar = self.open[current.position].bar_mut(slots[row]);
                    let sizes = *quote_sizes.next().expect("each quote has an entry");
                    bar.add_quote(Quote::of(rows, first + row, sizes));
                }
                RowKind::WATERMARK => {
                    self.close(time_ns, rows, first + row, closed);
                    current = Current::NONE;
                }
                RowKind::BARRIER => {}
                _ => {
                    if time_ns < current.start_ns || time_ns >= current.end_ns {
                        current = self.bar_at(time_ns);
                    }
                    let bar = self.open[current.position].bar_mut(slots[row]);
                    let trade = Trade::new(kinds[row], time_ns, prices_e9[row], sizes_e9[row]);
                    if bar.is_empty() {
                        *bar = OpenBar { quote: bar.quote, ..OpenBar::of_trade(trade) };
                    } else {
                        bar.add_by_event_time(trade);
                    }
                }
            }
        }
    }

    /// The open bar at an event time; opens it if it does not exist.
    fn bar_at(&mut self, time_ns: i64) -> Current {
        let number = time_ns.div_euclid(self.interval_ns);
        let position = match self.open.binary_search_by_key(&number, |row| row.number) {
            Ok(position) => position,
            Err(position) => {
                assert!(
                    (self.open.len() as i64) < self.open_max,
                    "late trades were left out and watermarks closed the older bars: {} ns would be bar {} that is open",
                    time_ns,
                    self.open_max + 1
                );
                let mut row = self.spare.pop().unwrap_or_default();
                row.number = number;
                grow(&mut row.places, self.slots, 0);
                self.open.insert(position, row);
                position
            }
        };
        Current { position, start_ns: self.start_ns(number), end_ns: self.end_ns(number) }
    }

    /// Closes the bars that end at the watermark or earlier, oldest first. In this order, a bar without a quote of its
    /// own gets the last one before it.
    fn close(&mut self, watermark_ns: i64, rows: &Rows, cause: usize, closed: &mut ClosedBars) {
        let count = self.open.iter().take_while(|row| self.end_ns(row.number) <= watermark_ns).count();
        for position in 0..count {
            let (start_ns, end_ns) =
                (self.start_ns(self.open[position].number), self.end_ns(self.open[position].number));
            let row = &mut self.open[position];
            row.touched.sort_unstable();
            for slot in row.touched.drain(..) {
                let place = std::mem::take(&mut row.places[slot as usize]);
                let bar = &mut row.bars[place as usize - 1];
                let quote = &mut self.last_quotes[slot as usize];
                if let Some(Quote { top, .. }) = bar.quote.take() {
                    *quote = top;
                }
                if !bar.is_empty() {
                    closed.push(slot, [start_ns, end_ns], bar, *quote, rows, cause);
                }
            }
            row.bars.clear();
            row.bars.shrink_to(SPARE_BARS_MAX);
        }
        self.spare.extend(self.open.drain(..count));
    }

    /// Event time at which a bar starts, clamped to the range of i64.
    fn start_ns(&self, number: i64) -> i64 {
        number.saturating_mul(self.interval_ns)
    }

    fn end_ns(&self, number: i64) -> i64 {
        number.saturating_add(1).saturating_mul(self.interval_ns)
    }

    /// Open bars of a slot with their numbers, oldest first.
    pub fn of_slot(&self, slot: usize) -> impl Iterator<Item = (i64, &OpenBar)> {
        self.open.iter().filter_map(move |row| Some((row.number, row.bar(slot)?)))
    }

    /// Sets the bar with this number for a slot that does not have it yet.
    pub fn set_bar(&mut self, slot: usize, number: i64, bar: OpenBar) {
        let position = self.bar_at(self.start_ns(number)).position;
        *self.open[position].bar_mut(slot as u32) = bar;
    }

    /// True if any bar is open.
    pub fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Number of open bars that have trades.
    pub fn open_count(&self) -> usize {
        self.open.iter().flat_map(|row| &row.bars).filter(|bar| !bar.is_empty()).count()
    }

    /// Copies the bars and the quote of a slot from another value; the slot has none yet.
    pub fn copy_slot(&mut self, to: usize, from: &Self, slot: usize) {
        self.set_last_quote(to, from.last_quote(slot));
        from.of_slot(slot).for_each(|(number, bar)| self.set_bar(to, number, *bar));
    }

    /// A slot's last quote before all open bars.
    pub fn last_quote(&self, slot: usize) -> Top {
        self.last_quotes[slot]
    }

    /// Sets a slot's last quote before all open bars.
    pub fn set_last_quote(&mut self, slot: usize, quote: Top) {
        self.last_quotes[slot] = quote;
    }

    /// Writes for each slot the last quote before its open bars, the number of these, and their numbers and contents,
    /// oldest first.
    pub fn write(&self, out: &mut Vec<u8>) {
        for slot in 0..self.slots {
            self.last_quotes[slot].write(out);
            put_u32(out, self.of_slot(slot).count() as u32);
            for (number, bar) in self.of_slot(slot) {
                put_i64(out, number);
                put_u8(out, u8::from(!bar.is_empty()) | u8::from(bar.quote.is_some()) << 1);
                if !bar.is_empty() {
                    bar.write(out);
                }
                if let Some(quote) = bar.quote {
                    quote.write(out);
                }
            }
        }
    }

    /// Reads an open bar with this number.
    fn read_bar(number: i64, interval_ns: i64, bytes: &mut &[u8]) -> Result<OpenBar, StateError> {
        let parts = get_u8(bytes, "parts of an open bar")?;
        if !(1..=3).contains(&parts) {
            let found = format!("parts {parts:#b}");
            return Err(StateError::Impossible { what: "open bar", found });
        }
        let of_trades = if parts & 1 == 0 { OpenBar::default() } else { OpenBar::read(bytes)? };
        let quote = if parts & 2 == 0 { None } else { Some(Quote::read(bytes)?) };
        let bar = OpenBar { quote, ..of_trades };
        let within = |time_ns: i64| time_ns.div_euclid(interval_ns) == number;
        let of_trades = bar.is_empty()
            || bar.open_time_ns <= bar.close_time_ns && within(bar.open_time_ns) && within(bar.close_time_ns);
        if of_trades && bar.quote.is_none_or(|quote| within(quote.time_ns)) {
            return Ok(bar);
        }
        let found = format!(
            "bar {number} with trades from {} to {} ns and {:?}",
            bar.open_time_ns, bar.close_time_ns, bar.quote
        );
        Err(StateError::Impossible { what: "open bar times", found })
    }

    /// Reads the bytes of [`TimeBars::write`].
    pub fn read(
        interval_ns: i64,
        open_max: i64,
        slots: usize,
        bytes: &mut &[u8],
    ) -> Result<Self, StateError> {
        let mut bars = Self::new(interval_ns, open_max);
        bars.resize(slots);
        for slot in 0..slots {
            bars.last_quotes[slot] = Top::read(bytes)?;
            let mut last = None;
            for _ in 0..get_u32(bytes, "open bars")? {
                let number = get_i64(bytes, "open bar number")?;
                let bar = Self::read_bar(number, interval_ns, bytes)?;
                if last.is_some_and(|last| last >= number) {
                    let found = format!("bar {number} after {last:?}");
                    return Err(StateError::Impossible { what: "open bar numbers", found });
                }
                last = Some(number);
                let known = bars.open.binary_search_by_key(&number, |row| row.number).is_ok();
                if !known && bars.open.len() as i64 >= open_max {
                    let found = format!("more than {open_max} open bars");
                    return Err(StateError::Impossible { what: "open bars", found });
                }
                bars.set_bar(slot, number, bar);
            }
        }
        Ok(bars)
    }
}

/// Extends a list, and reserves room for a quarter more. Doubling would leave half of the memory of all slots unused.
fn grow<T: Clone>(list: &mut Vec<T>, len: usize, value: T) {
    if len > list.capacity() {
        list.reserve_exact(len + len / 4 - list.len());
    }
    if len > list.len() {
        list.resize(len, value);
    }
}
