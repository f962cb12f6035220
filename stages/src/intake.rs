//! The host side of a partition: it numbers symbols, judges lateness, and deals rows to groups.
//!
//! ```text
//!   record (columns) ──► bad rows? far ahead? a symbol too many? ──yes──► dead letters
//!                          │no
//!                          ▼
//!                         late?  ──yes──► late topic
//!                          │no
//!                          ▼
//!                   watermark moves past an interval's end? ──► watermark row to every group with symbols
//!                          │
//!                          ▼
//!                   row of the symbol's group
//! ```
//!
//! Everything here is computed at each tick in log order, so that no result depends on the batches in which the log was
//! read.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use warptape_events::tick::{RowScales, Scales, Side, TickColumns, TickKind};
use warptape_events::{DecodeError, DecodeTicks, InvalidTick, SetEventTime, SymbolTable, TickProblem};
use warptape_kernels::{Aggressor, Isa, RowKind};

use crate::ahead::AheadLimits;
use crate::bytes::{
    get_bytes, get_i64, get_text, get_u32, get_u64, get_version, put_i64, put_text, put_u32, put_u64,
};
use crate::evicted::{PAGE_SYMBOLS_MAX, read_page};
use crate::lateness::Lateness;
use crate::market::Market;
use crate::quorum::{JudgedTick, Moves, Quorum};
use crate::scales::{PriceScales, Problem, set_scales, size_exponent};
use crate::sides::Sides;
use crate::trade_ids::{TradeIdCounts, TradeIds};
use crate::{Evicted, GroupQueue, GroupStage, Repack, SlotSymbol, StageConfig, StageError, SymbolMarket};

/// Average rows per group from which a calm run is dealt by groups. With fewer rows, going through the groups costs more
/// than it saves.
const ROWS_BY_GROUP_MIN: usize = 8;
/// Rows of a run for which a group keeps room at most: 16 KiB.
const DEALT_ROOM_MAX: usize = 4096;
/// Version of the intake's snapshot bytes.
pub(crate) const STATE_VERSION: u32 = 6;
/// Reserved bytes of the state, which are 0.
const RESERVED: usize = 12;
/// Least share of idle symbols for an eviction: one in this number of those in memory.
const EVICTED_SHARE: usize = 8;

/// A tick older than the watermark it met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Row of the tick within its record.
    pub index: u32,
    /// The watermark that was ahead of it, ns since the epoch.
    pub watermark_ns: i64,
}

/// A record of ticks as it lies in the log.
#[derive(Clone, Copy, Debug)]
pub struct TickRecord<'a> {
    /// Its offset.
    pub offset: i64,
    /// Writing time of the record; 0 if it is unknown.
    pub written_ns: i64,
    /// Its bytes.
    pub value: &'a [u8],
}

/// The group and the slot of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SymbolPlace {
    group: u32,
    /// [`NO_SLOT`] if the symbol is evicted.
    slot: u32,
}

const NO_SLOT: u32 = u32::MAX;

/// The rows `first..` of columns, which are those of the record at an offset.
#[derive(Clone, Copy)]
struct RecordRows<'a> {
    offset: i64,
    ticks: &'a TickColumns,
    first: usize,
}

/// The outcome of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The record was taken; the number is that of its rows, rejected ones included.
    Taken(usize),
    /// Nothing was taken: symbols of the record are in these pages, which have to be read back first.
    Waits(Vec<i32>),
}

/// State of one partition on the host.
#[derive(Debug)]
pub struct PartitionIntake {
    config: StageConfig,
    config_fingerprint: u64,
    lateness: Lateness,
    symbols: SymbolTable,
    /// Places of symbols, by symbol number.
    places: Vec<SymbolPlace>,
    /// Scales of prices, by symbol number.
    price_scales: PriceScales,
    /// Slots used, by group.
    group_slots: Vec<u32>,
    /// Symbols by group, evicted ones included.
    group_symbols: Vec<u32>,
    evicted: Evicted,
    /// True for a group whose slots are in another order than the numbers of their symbols.
    is_out_of_order: Vec<bool>,
    /// Greatest event time of accepted ticks; `None` before the first.
    event_time_max_ns: Option<i64>,
    /// Event time of the first tick, or of the last one that moved event time back: ticks before it could not be seen.
    seen_since_ns: i64,
    /// Greatest event time of ticks alone since event time was last set back; the least number before the first tick.
    ticks_max_ns: i64,
    /// The watermark at which the next time bar of any interval closes, by class of lateness.
    next_closes_ns: Vec<i64>,
    market: Market,
    /// Votes of symbols on jumps of event time.
    quorum: Quorum,
    /// The newest trade ids of each symbol.
    trade_ids: TradeIds,
    /// Rows of the calm run at hand, by group; kept between runs for their memory.
    dealt: Vec<Vec<u32>>,
}

impl PartitionIntake {
    /// The state at the beginning of a log.
    pub fn new(config: &StageConfig) -> Self {
        let lateness = Lateness::of(config);
        Self {
            config: config.clone(),
            config_fingerprint: config.fingerprint(),
            next_closes_ns: vec![i64::MAX; lateness.classes() as usize],
            lateness,
            symbols: SymbolTable::default(),
            places: Vec::new(),
            price_scales: PriceScales::default(),
            group_slots: vec![0; config.groups_per_partition as usize],
            group_symbols: vec![0; config.groups_per_partition as usize],
            evicted: Evicted::default(),
            is_out_of_order: vec![false; config.groups_per_partition as usize],
            event_time_max_ns: None,
            seen_since_ns: i64::MIN,
            ticks_max_ns: i64::MIN,
            market: Market::new(config.market),
            quorum: Quorum::default(),
            trade_ids: TradeIds::default(),
            dealt: vec![Vec::new(); config.groups_per_partition as usize],
        }
    }

    /// The table in which a record's symbols are numbered while it is decoded.
    pub fn symbols_mut(&mut self) -> &mut SymbolTable {
        &mut self.symbols
    }

    /// The symbols seen, numbered by first appearance.
    pub fn symbols(&self) -> &SymbolTable {
        &self.symbols
    }

    /// The market of a symbol after the accepted records, which are those before `next_offset`; `None` if none of them
    /// had the symbol.
    pub fn market_of(&self, symbol: &str, partition: i32, next_offset: i64) -> Option<SymbolMarket> {
        let number = self.symbols.id(symbol).filter(|number| (*number as usize) < self.places.len())?;
        Some(self.market.of(number, partition, next_offset))
    }

    /// Counts of repeated trade ids in the record that was accepted last.
    pub fn trade_ids(&self) -> TradeIdCounts {
        self.trade_ids.counts()
    }

    /// Number of symbols seen.
    pub fn symbol_count(&self) -> usize {
        self.symbols.len()
    }

    /// The watermark of venues without a lateness of their own: their ticks with an earlier event time are late. `None`
    /// before the first tick.
    pub fn watermark_ns(&self) -> Option<i64> {
        self.event_time_max_ns.map(|time| time.saturating_sub(self.config.allowed_lateness_ns))
    }

    /// The watermark of a group's symbols; the least number before the first tick.
    #[inline(always)]
    fn watermark_of_group(&self, group: u32) -> i64 {
        let lateness_ns = self.lateness.of_class_ns(self.lateness.class_of_group(group));
        self.event_time_max_ns.map_or(i64::MIN, |time_ns| time_ns.saturating_sub(lateness_ns))
    }

    /// The greatest event time of the partition; `None` before the first tick.
    pub fn event_time_max_ns(&self) -> Option<i64> {
        self.event_time_max_ns
    }

    /// The latest event time up to `until_ns` at which a bar with the newest tick, one for each interval, closes.
    /// `None` if event time has reached it, or there is none.
    pub fn closed_by_ns(&self, until_ns: i64) -> Option<i64> {
        let event_time_max_ns = self.event_time_max_ns.filter(|_| self.ticks_max_ns > i64::MIN)?;
        let closed_by_ns = |interval_ns: i64| {
            let end_ns =
                self.ticks_max_ns.div_euclid(interval_ns).saturating_add(1).saturating_mul(interval_ns);
            end_ns.saturating_add(self.lateness.max_ns())
        };
        let closed =
            self.config.intervals_ns().map(closed_by_ns).filter(|&time_ns| time_ns <= until_ns).max()?;
        Some(closed).filter(|&time_ns| time_ns > event_time_max_ns && SetEventTime::check(time_ns).is_ok())
    }

    /// Decodes a record into `columns` and accepts it as [`PartitionIntake::accept`] does, unless it waits for pages. A
    /// `SetEventTime` has no rows, and is executed.
    ///
    /// # Errors
    /// If the record is rejected as a whole. Then no row is dealt and no symbol is numbered.
    pub fn accept_record(
        &mut self,
        record: TickRecord<'_>,
        decoder: &mut dyn DecodeTicks,
        columns: &mut TickColumns,
        queues: &mut [GroupQueue],
        late: &mut Vec<Late>,
    ) -> Result<Acceptance, DecodeError> {
        columns.clear();
        late.clear();
        if let Some(set) = SetEventTime::of(record.value) {
            self.set_event_time(&set?, record.offset, queues);
            return Ok(Acceptance::Taken(0));
        }
        decoder.decode(record.value, &mut self.symbols, columns)?;
        Ok(self.accept_decoded(record, columns, queues, late))
    }

    /// Likewise for a record whose rows are already in `columns`.
    pub fn accept_decoded(
        &mut self,
        record: TickRecord<'_>,
        columns: &mut TickColumns,
        queues: &mut [GroupQueue],
        late: &mut Vec<Late>,
    ) -> Acceptance {
        late.clear();
        let pages = self.pages_of(&columns.symbol);
        if !pages.is_empty() {
            self.symbols.truncate(self.places.len());
            return Acceptance::Waits(pages);
        }
        self.accept(record.offset, record.written_ns, columns, 0, queues, late);
        Acceptance::Taken(columns.len())
    }

    /// The pages of symbols, each once.
    fn pages_of(&self, symbols: &[u32]) -> Vec<i32> {
        if self.evicted.is_empty() {
            return Vec::new();
        }
        let has_left =
            |symbol: &&u32| self.places.get(**symbol as usize).is_some_and(|place| place.slot == NO_SLOT);
        let pages = symbols.iter().filter(has_left).filter_map(|symbol| self.evicted.page_of(*symbol));
        pages.collect::<BTreeSet<i32>>().into_iter().collect()
    }

    /// The symbols that are not in memory.
    pub fn evicted(&self) -> &Evicted {
        &self.evicted
    }

    /// Evicts symbols at the barrier `offset`, which is put into the queues next. They are those without a tick for
    /// `idle_ns` of event time, once they are a worthwhile share; none if `idle_ns` is `None`. `before` is the offset
    /// of the snapshot before.
    ///
    /// Groups whose symbols came back are reordered as well, so that the states at a barrier are in the order of
    /// numbers.
    pub fn evict(&mut self, idle_ns: Option<i64>, offset: i64, before: i64, queues: &mut [GroupQueue]) {
        self.evicted.free_before(before);
        let idle = idle_ns.map_or_else(Vec::new, |idle_ns| self.idle(idle_ns));
        if idle.is_empty() && !self.is_out_of_order.contains(&true) {
            return;
        }
        let mut left: Vec<Vec<u32>> = vec![Vec::new(); queues.len()];
        idle.into_iter().for_each(|symbol| left[self.places[symbol as usize].group as usize].push(symbol));
        let count = left.iter().map(|symbols| symbols.len().div_ceil(PAGE_SYMBOLS_MAX)).sum();
        let mut numbers = self.evicted.free_numbers(count).into_iter();
        let mut pages: Vec<Vec<(i32, Vec<u32>)>> = vec![Vec::new(); left.len()];
        for (symbols, pages) in left.iter().zip(&mut pages) {
            for (symbols, number) in symbols.chunks(PAGE_SYMBOLS_MAX).zip(&mut numbers) {
                self.evicted.add(number, offset, symbols.to_vec());
                let slot = |symbol: &u32| self.places[*symbol as usize].slot;
                pages.push((number, symbols.iter().map(slot).collect()));
            }
        }
        left.iter().flatten().for_each(|symbol| self.places[*symbol as usize].slot = NO_SLOT);
        let is_repacked = |group: usize| self.is_out_of_order[group] || !left[group].is_empty();
        let mut slots: Vec<Vec<u32>> = vec![Vec::new(); queues.len()];
        for place in self.places.iter_mut().filter(|place| place.slot != NO_SLOT) {
            let group = place.group as usize;
            if is_repacked(group) {
                slots[group].push(place.slot);
                place.slot = slots[group].len() as u32 - 1;
            }
        }
        for (group, (slots, pages)) in slots.into_iter().zip(pages).enumerate() {
            if is_repacked(group) {
                self.group_slots[group] = slots.len() as u32;
                queues[group].repacks.push(Repack { barrier: offset, slots, pages });
            }
        }
        self.is_out_of_order.fill(false);
    }

    /// Symbols in memory without a tick for `idle_ns` and without an open time bar; none if they are too few to be
    /// worth it.
    fn idle(&self, idle_ns: i64) -> Vec<u32> {
        let Some(event_time_max_ns) = self.event_time_max_ns else { return Vec::new() };
        let interval_ns = self.config.intervals_ns().max().unwrap_or(0);
        let open_ns = self.lateness.max_ns().saturating_add(interval_ns.saturating_mul(2));
        let before_ns = event_time_max_ns.saturating_sub(idle_ns.max(open_ns));
        let is_idle = |symbol: &u32| {
            self.places[*symbol as usize].slot != NO_SLOT && self.market.newest_ns(*symbol) < before_ns
        };
        let mut idle: Vec<u32> = (0..self.places.len() as u32).filter(is_idle).collect();
        if idle.len() * EVICTED_SHARE < self.places.len() - self.evicted.symbols() {
            idle.clear();
        }
        idle
    }

    /// True if the symbols of a group's state are exactly those of the group that are in memory, in the order of their
    /// numbers.
    pub fn has_group(&self, group: u32, stage: &GroupStage) -> bool {
        let places = (0..).zip(&self.places);
        let of_group = places.filter(|(_, place)| place.group == group && place.slot != NO_SLOT);
        stage.symbols().eq(of_group.map(|(number, _)| (number, self.symbols.name(number))))
    }

    /// The states of a page's symbols.
    ///
    /// # Errors
    /// If the bytes are not those of the page.
    pub fn check_page(&self, page: i32, bytes: &[u8]) -> Result<Vec<Arc<[u8]>>, StageError> {
        let damaged = |found: String| StageError::Damaged { found };
        let states = read_page(self.config_fingerprint, bytes)?;
        let of_page = self.evicted.pages().get(&page).map_or(&[][..], |page| &page.symbols);
        if of_page.len() != states.len() || states.is_empty() {
            return Err(damaged(format!(
                "page {page} has {} symbols instead of {}",
                states.len(),
                of_page.len()
            )));
        }
        for (symbol, state) in of_page.iter().zip(&states) {
            let stage = GroupStage::read(&self.config, Isa::Baseline, state)?;
            let scale = self.price_scales.of(*symbol);
            if !stage.is_of_one_at_rest(*symbol, self.symbols.name(*symbol), scale) {
                return Err(damaged(format!("page {page} has no state of {}", self.symbols.name(*symbol))));
            }
        }
        Ok(states)
    }

    /// Takes the symbols of a page back, after barriers at offsets up to this one and before later ones.
    ///
    /// # Errors
    /// If the bytes are not those of the page. Then nothing is taken back.
    pub fn take_back(
        &mut self,
        page: i32,
        bytes: &[u8],
        offset: i64,
        queues: &mut [GroupQueue],
    ) -> Result<(), StageError> {
        let states = self.check_page(page, bytes)?;
        let taken = self.evicted.take(page, offset).expect("it was there a moment ago");
        for (number, state) in taken.symbols.into_iter().zip(states) {
            let place = &mut self.places[number as usize];
            let group = place.group as usize;
            place.slot = self.group_slots[group];
            self.group_slots[group] += 1;
            self.is_out_of_order[group] = true;
            let (name, price_scale) = (self.symbols.name(number).to_owned(), self.price_scales.of(number));
            let seen_since_ns = self.seen_since_ns;
            let state = Some(state);
            queues[group].symbols.push(SlotSymbol {
                number,
                name,
                price_scale,
                seen_since_ns,
                offset,
                state,
            });
        }
        Ok(())
    }

    /// Deals the rows `first..` of `ticks`, which are those of the record at `offset`, to the group queues, one per
    /// group by index. Late rows go to `late` instead. `written_ns` is the writing time of the record; 0 if it is
    /// unknown.
    ///
    /// Bad rows are among [`TickColumns::rejected`] afterwards, and are neither dealt nor late.
    pub fn accept(
        &mut self,
        offset: i64,
        written_ns: i64,
        ticks: &mut TickColumns,
        first: usize,
        queues: &mut [GroupQueue],
        late: &mut Vec<Late>,
    ) {
        assert_eq!(queues.len(), self.group_slots.len(), "one queue per group");
        self.trade_ids.begin_record();
        if !self.are_all_good(&*ticks, first, written_ns) {
            let back_at = self.judge_rows(ticks, first, written_ns);
            self.see_first(ticks, first);
            self.place_new_symbols(offset, queues);
            let rows = first..ticks.len();
            self.deal_row_by_row(RecordRows { offset, ticks, first }, rows, &back_at, queues, late);
            return;
        }
        self.price_scales.begin_record();
        (self.places.len()..self.symbols.len()).for_each(|_| self.price_scales.add_new(Scales::E9.price));
        self.place_new_symbols(offset, queues);
        let record = RecordRows { offset, ticks, first };
        let mut from = first;
        while from < ticks.len() {
            // The row that ends a run belongs to what is dealt row by row.
            let run = from..self.end_of_calm(record, from);
            from = if run.len() >= ROWS_BY_GROUP_MIN * self.group_slots.len() {
                self.quorum.hear(ticks.symbol[run.clone()].iter().copied(), written_ns);
                self.deal_by_groups(record, run.clone(), queues);
                run.end
            } else {
                let rows = from..ticks.len().min(run.end + 1);
                self.hear_in_time(ticks, rows.clone(), written_ns);
                self.deal_row_by_row(record, rows.clone(), &[], queues, late);
                rows.end
            };
        }
    }

    /// True if no row is to be rejected and none is a vote, as far as that shows without a look at each row.
    fn are_all_good(&self, ticks: &TickColumns, first: usize, written_ns: i64) -> bool {
        let has_scales = !ticks.scales_from(first).is_empty() || !self.price_scales.are_of_nine_digits();
        let symbols = self.symbols.len();
        let has_room = symbols <= self.config.symbols_max as usize;
        // The first tick decides what the others are compared with.
        let Some(reference_ns) = self.event_time_max_ns else { return false };
        if !ticks.rejected.is_empty() || has_scales || !has_room && symbols > self.places.len() {
            return false;
        }
        let Some(limits) = AheadLimits::of(&self.config, Some(reference_ns), written_ns) else { return true };
        let times_ns = ticks.event_time_ns[first..].iter().copied();
        let (min, max) =
            times_ns.fold((i64::MAX, i64::MIN), |(min, max), time_ns| (min.min(time_ns), max.max(time_ns)));
        let is_behind =
            self.quorum.is_young() && min < max.max(reference_ns).saturating_sub(limits.future_max_ns());
        !limits.is_ahead(max) && !is_behind
    }

    /// Notes the event time from which on ticks are seen, before the first good tick of the partition is dealt.
    fn see_first(&mut self, ticks: &TickColumns, first: usize) {
        if self.event_time_max_ns.is_some() {
            return;
        }
        let mut rejected = ticks.rejected.iter().peekable();
        let is_good = |row: &usize| rejected.next_if(|invalid| invalid.row == row - first).is_none();
        if let Some(row) = (first..ticks.len()).find(is_good) {
            self.seen_since_ns = ticks.event_time_ns[row];
        }
    }

    /// Tells the quorum which ticks among these rows of a good record are in time.
    fn hear_in_time(&mut self, ticks: &TickColumns, rows: Range<usize>, written_ns: i64) {
        let mut reference_ns = self.event_time_max_ns.unwrap_or(i64::MIN);
        for (&time_ns, &symbol) in ticks.event_time_ns[rows.clone()].iter().zip(&ticks.symbol[rows]) {
            let class = self.lateness.class_of_group(self.places[symbol as usize].group);
            if time_ns >= reference_ns.saturating_sub(self.lateness.of_class_ns(class)) {
                reference_ns = reference_ns.max(time_ns);
                self.quorum.hear([symbol].into_iter(), written_ns);
            }
        }
    }

    /// Judges each row as if its record had no other: numbers the symbols of good rows, and adds bad rows to the
    /// rejected ones. Returns the rows at which event time moves back.
    fn judge_rows(&mut self, ticks: &mut TickColumns, first: usize, written_ns: i64) -> Vec<usize> {
        let mut new = NewSymbols::take(&mut self.symbols, self.places.len());
        let mut before = std::mem::take(&mut ticks.rejected).into_iter().peekable();
        let (mut back_at, mut scales, mut reference_ns) = (Vec::new(), Vec::new(), self.event_time_max_ns);
        self.price_scales.begin_record();
        for row in first..ticks.len() {
            if let Some(invalid) = before.next_if(|invalid| invalid.row == row - first) {
                ticks.rejected.push(invalid);
                continue;
            }
            match self.judge_row(ticks, row, written_ns, reference_ns, &mut new) {
                Ok((moves, row_scales)) => {
                    let time_ns = ticks.event_time_ns[row];
                    if moves == Moves::Back {
                        back_at.push(row);
                        reference_ns = Some(time_ns);
                    }
                    let lateness_ns = self.lateness.of_symbol_ns(self.symbols.name(ticks.symbol[row]));
                    if reference_ns
                        .is_none_or(|reference_ns| time_ns >= reference_ns.saturating_sub(lateness_ns))
                    {
                        reference_ns = reference_ns.max(Some(time_ns));
                        self.quorum.hear([ticks.symbol[row]].into_iter(), written_ns);
                    }
                    if row_scales != Scales::E9 {
                        scales.push(RowScales { row: row as u32, scales: row_scales });
                    }
                }
                Err((field, problem)) => {
                    ticks.rejected.push(InvalidTick { row: row - first, field, problem })
                }
            }
        }
        set_scales(ticks, first, &mut scales);
        back_at
    }

    /// Judges a row after ticks up to `reference_ns`, and numbers the symbol of a good one.
    fn judge_row(
        &mut self,
        ticks: &mut TickColumns,
        row: usize,
        written_ns: i64,
        reference_ns: Option<i64>,
        new: &mut NewSymbols,
    ) -> Result<(Moves, Scales), Problem> {
        let given = ticks.symbol[row];
        let number = new.number(given);
        let symbols_max = self.config.symbols_max;
        if number.is_none() && self.symbols.len() >= symbols_max as usize {
            return Err(("symbol", TickProblem::TooManySymbols { symbols_max }));
        }
        let scales = self.price_scales.convert_row(ticks, row, number)?;
        let limits = AheadLimits::of(&self.config, reference_ns, written_ns);
        let symbols = &self.symbols;
        let symbol = number.map_or_else(|| new.name(given), |number| symbols.name(number));
        let tick = JudgedTick { symbol, time_ns: ticks.event_time_ns[row], written_ns };
        let moves = self.quorum.judge(tick, limits.as_ref(), reference_ns, |number| symbols.name(number));
        let moves = moves.map_err(|problem| ("event_time_ns", problem))?;
        if number.is_none() {
            new.add(given, &mut self.symbols);
            self.price_scales.add_new(scales.price);
            self.quorum.grow(self.symbols.len());
        }
        ticks.symbol[row] = new.number(given).expect("it was numbered a moment ago");
        Ok((moves, scales))
    }

    /// Sets event time as a record at `offset` says, before the next record.
    fn set_event_time(&mut self, set: &SetEventTime, offset: i64, queues: &mut [GroupQueue]) {
        let time_ns = set.event_time_max_ns;
        self.trade_ids.begin_record();
        if set.only_forward && self.event_time_max_ns.is_none_or(|before_ns| time_ns <= before_ns) {
            return;
        }
        match self.event_time_max_ns {
            Some(before_ns) if time_ns < before_ns => self.go_back(time_ns, offset, 0, queues),
            None => {
                self.seen_since_ns = time_ns;
                self.advance(time_ns, offset, 0, queues);
            }
            Some(_) => self.advance_by(time_ns, set.cuts_bars, offset, 0, queues),
        }
        self.quorum.settle();
    }

    /// The end of the calm run that begins at the row `from`. In a calm run no tick is late, ends a bar or has the market
    /// sampled. Then only the order of ticks within a group matters.
    fn end_of_calm(&self, record: RecordRows<'_>, from: usize) -> usize {
        let RecordRows { ticks, first, .. } = record;
        // Rows with scales of their own are few, and are looked up one by one.
        let Some(mut max_ns) = self.event_time_max_ns.filter(|_| ticks.scales_from(first).is_empty()) else {
            return from;
        };
        let closes = (0..).zip(&self.next_closes_ns);
        let closes_ns =
            closes.map(|(class, time_ns)| time_ns.saturating_add(self.lateness.of_class_ns(class)));
        let before_ns = closes_ns.min().unwrap_or(i64::MAX).min(self.market.next_sample_ns());
        let lateness_ns = self.lateness.min_ns();
        let ends = |&time_ns: &i64| {
            let is_calm = time_ns < before_ns && time_ns >= max_ns.saturating_sub(lateness_ns);
            max_ns = max_ns.max(time_ns);
            !is_calm
        };
        let times_ns = &ticks.event_time_ns[from..];
        from + times_ns.iter().position(ends).unwrap_or(times_ns.len())
    }

    /// Deals the rows of a calm run, group by group and column by column. Rows that go to queues in turn keep missing
    /// the processor's caches, which do not hold the end of every column of every queue.
    fn deal_by_groups(&mut self, record: RecordRows<'_>, run: Range<usize>, queues: &mut [GroupQueue]) {
        let RecordRows { offset, ticks, first } = record;
        let max_ns = ticks.event_time_ns[run.clone()].iter().copied().max();
        self.event_time_max_ns = self.event_time_max_ns.max(max_ns);
        self.ticks_max_ns = self.ticks_max_ns.max(max_ns.unwrap_or(i64::MIN));
        let [times, prices, sizes, bids, asks] =
            [&ticks.event_time_ns, &ticks.price_e9, &ticks.size_e9, &ticks.bid_price_e9, &ticks.ask_price_e9]
                .map(|column| &column[first..]);
        let [bid_sizes, ask_sizes] = [&ticks.bid_size_e9, &ticks.ask_size_e9].map(|column| &column[first..]);
        let (symbols, kinds, sides) = (&ticks.symbol[first..], &ticks.kind[first..], &ticks.side[first..]);
        let quoted =
            |index: usize| Sides::new([bids[index], asks[index]], [bid_sizes[index], ask_sizes[index]]);
        let trade_ids = &ticks.trade_id[first..];
        for index in run.start - first..run.end - first {
            let symbol = symbols[index];
            match kinds[index] {
                TickKind::Trade => {
                    self.market.trade(symbol, times[index], prices[index]);
                    self.trade_ids.watch(symbol, trade_ids[index]);
                }
                TickKind::Quote => {
                    let sides = quoted(index);
                    self.market.quote(symbol, times[index], sides.prices, sides.are_both_there);
                }
            }
            self.dealt[self.places[symbol as usize].group as usize].push(index as u32);
        }
        for (dealt, queue) in self.dealt.iter_mut().zip(queues) {
            queue.rows.extend_record(
                offset,
                dealt,
                |index| match kinds[index] {
                    TickKind::Trade => RowKind::trade(0, aggressor(sides[index])),
                    TickKind::Quote => RowKind::QUOTE,
                },
                |index| self.places[symbols[index] as usize].slot,
                |index| times[index],
                |index| match kinds[index] {
                    TickKind::Trade => prices[index],
                    TickKind::Quote => quoted(index).prices[0],
                },
                |index| match kinds[index] {
                    TickKind::Trade => sizes[index],
                    TickKind::Quote => quoted(index).prices[1],
                },
                |index| (kinds[index] == TickKind::Quote).then(|| quoted(index).sizes),
            );
            dealt.clear();
            dealt.shrink_to(DEALT_ROOM_MAX);
        }
    }

    fn deal_row_by_row(
        &mut self,
        record: RecordRows<'_>,
        rows: Range<usize>,
        back_at: &[usize],
        queues: &mut [GroupQueue],
        late: &mut Vec<Late>,
    ) {
        let RecordRows { offset, ticks, first } = record;
        let has_scales = !ticks.scales_from(first).is_empty();
        let mut rejected = ticks.rejected.iter().peekable();
        for row in rows {
            let index = (row - first) as u32;
            if rejected.next_if(|invalid| invalid.row == row - first).is_some() {
                continue;
            }
            let (time_ns, symbol) = (ticks.event_time_ns[row], ticks.symbol[row]);
            if back_at.contains(&row) {
                self.go_back(time_ns, offset, index, queues);
            }
            // Quotes have no trade ids. Late trades are watched too, because repeated trades are mostly late.
            self.trade_ids.watch(symbol, ticks.trade_id[row]);
            let place = self.places[symbol as usize];
            let watermark_ns = self.watermark_of_group(place.group);
            if time_ns < watermark_ns {
                late.push(Late { index, watermark_ns });
                continue;
            }
            self.ticks_max_ns = self.ticks_max_ns.max(time_ns);
            if self.event_time_max_ns.is_none_or(|max| time_ns > max) {
                self.advance(time_ns, offset, index, queues);
            }
            let rows = &mut queues[place.group as usize].rows;
            match ticks.kind[row] {
                TickKind::Trade => {
                    let (price, size) = (ticks.price_e9[row], ticks.size_e9[row]);
                    self.market.trade(symbol, time_ns, price);
                    let exponent = if has_scales { size_exponent(ticks.scales_of(row)) } else { 0 };
                    let size = (size, exponent, aggressor(ticks.side[row]));
                    rows.push_trade_of(place.slot, time_ns, price, size, offset, index);
                }
                TickKind::Quote => {
                    let prices = [ticks.bid_price_e9[row], ticks.ask_price_e9[row]];
                    let sizes = [ticks.bid_size_e9[row], ticks.ask_size_e9[row]];
                    let sides = Sides::new(prices, sizes);
                    self.market.quote(symbol, time_ns, sides.prices, sides.are_both_there);
                    let exponent = if has_scales { size_exponent(ticks.scales_of(row)) } else { 0 };
                    rows.push_quote_of(
                        place.slot,
                        time_ns,
                        sides.prices,
                        (sides.sizes, exponent),
                        offset,
                        index,
                    );
                }
            }
        }
    }

    /// Puts a barrier row into every queue, at which each group writes its state. `offset` is that of the next record
    /// to be accepted, so that the barrier holds back the partition's progress as that record does.
    pub fn barrier(&self, id: i64, offset: i64, queues: &mut [GroupQueue]) {
        for queue in queues {
            queue.rows.push_barrier(id, offset, 0);
        }
    }

    /// Moves the greatest event time on, and tells the groups if bars end by it.
    fn advance(&mut self, time_ns: i64, offset: i64, index: u32, queues: &mut [GroupQueue]) {
        self.advance_by(time_ns, false, offset, index, queues);
    }

    /// Likewise; `cuts_bars` is true if bars close that might have had more ticks.
    fn advance_by(
        &mut self,
        time_ns: i64,
        cuts_bars: bool,
        offset: i64,
        index: u32,
        queues: &mut [GroupQueue],
    ) {
        let first = self.event_time_max_ns.is_none();
        self.event_time_max_ns = Some(time_ns);
        self.market.advance(time_ns);
        for class in 0..self.lateness.classes() {
            let watermark_ns = time_ns.saturating_sub(self.lateness.of_class_ns(class));
            if first || watermark_ns >= self.next_closes_ns[class as usize] {
                self.next_closes_ns[class as usize] = self.close_after(watermark_ns);
            } else {
                continue;
            }
            for (group, queue) in (0..).zip(&mut *queues) {
                let has_symbols = self.group_symbols[group as usize] > 0;
                if first || !has_symbols || self.lateness.class_of_group(group) != class {
                    continue;
                }
                if cuts_bars {
                    queue.rows.push_cut(watermark_ns, 0, offset, index);
                } else {
                    queue.rows.push_watermark(watermark_ns, offset, index);
                }
            }
        }
    }

    /// Moves the greatest event time back and closes all open bars, because later bars may never follow them.
    fn go_back(&mut self, time_ns: i64, offset: i64, index: u32, queues: &mut [GroupQueue]) {
        let before_ns = self.event_time_max_ns.replace(time_ns);
        let interval_ns = self.config.intervals_ns().max();
        self.ticks_max_ns = i64::MIN;
        self.seen_since_ns = time_ns;
        if let Some((before_ns, interval_ns)) = before_ns.zip(interval_ns) {
            let end_ns = before_ns.saturating_add(interval_ns);
            for (queue, _) in queues.iter_mut().zip(&self.group_symbols).filter(|(_, symbols)| **symbols > 0)
            {
                queue.rows.push_cut(end_ns, time_ns, offset, index);
            }
        }
        self.market.go_back(time_ns);
        self.set_next_closes(time_ns);
    }

    /// Notes the watermarks at which bars close next, by the present event time.
    fn set_next_closes(&mut self, event_time_max_ns: i64) {
        let classes = 0..self.lateness.classes();
        let watermarks_ns =
            classes.map(|class| event_time_max_ns.saturating_sub(self.lateness.of_class_ns(class)));
        self.next_closes_ns = watermarks_ns.map(|watermark_ns| self.close_after(watermark_ns)).collect();
    }

    /// The first multiple of any interval after `watermark_ns`.
    fn close_after(&self, watermark_ns: i64) -> i64 {
        let next =
            |interval: i64| watermark_ns.div_euclid(interval).saturating_add(1).saturating_mul(interval);
        self.config.intervals_ns().map(next).min().unwrap_or(i64::MAX)
    }

    fn place_new_symbols(&mut self, offset: i64, queues: &mut [GroupQueue]) {
        self.price_scales.keep_new();
        for number in self.places.len()..self.symbols.len() {
            let name = self.symbols.name(number as u32);
            let group = self.lateness.group_of(name, self.config.groups_per_partition);
            let slot = self.group_slots[group as usize];
            self.group_slots[group as usize] += 1;
            self.group_symbols[group as usize] += 1;
            self.places.push(SymbolPlace { group, slot });
            let price_scale = self.price_scales.of(number as u32);
            self.market.add_symbol(price_scale);
            queues[group as usize].symbols.push(SlotSymbol {
                number: number as u32,
                name: name.to_owned(),
                price_scale,
                seen_since_ns: self.seen_since_ns,
                offset,
                state: None,
            });
        }
        self.trade_ids.grow(self.places.len());
        self.quorum.grow(self.places.len());
    }

    /// Device-neutral bytes of the state.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_with(&self.evicted, out);
    }

    /// The same bytes as if only these symbols were evicted.
    pub fn write_with(&self, evicted: &Evicted, out: &mut Vec<u8>) {
        put_u32(out, STATE_VERSION);
        put_u64(out, self.config_fingerprint);
        evicted.write(out);
        put_i64(out, self.event_time_max_ns.unwrap_or(i64::MIN));
        put_i64(out, self.seen_since_ns);
        put_i64(out, self.ticks_max_ns);
        put_u32(out, self.symbols.len() as u32);
        for number in 0..self.symbols.len() {
            put_text(out, self.symbols.name(number as u32));
        }
        self.market.write(out);
        out.extend_from_slice(&[0; RESERVED]);
        self.trade_ids.write(out);
        self.price_scales.write(out);
        self.quorum.write(out);
    }

    /// Restores the state from the bytes of [`PartitionIntake::write`].
    pub fn read(config: &StageConfig, mut bytes: &[u8]) -> Result<Self, StageError> {
        let bytes = &mut bytes;
        let mut intake = Self::new(config);
        get_version(bytes, "state of an intake", STATE_VERSION)?;
        let found = get_u64(bytes, "configuration")?;
        if found != intake.config_fingerprint {
            return Err(StageError::OtherConfig { expected: intake.config_fingerprint, found });
        }
        intake.evicted = Evicted::read(bytes)?;
        let event_time_max_ns = get_i64(bytes, "greatest event time")?;
        intake.seen_since_ns = get_i64(bytes, "time of the first tick")?;
        intake.ticks_max_ns = get_i64(bytes, "greatest event time of ticks")?;
        for number in 0..get_u32(bytes, "symbol count")? {
            let name = get_text(bytes, "symbol")?;
            if intake.symbols.intern(&name) != number {
                return Err(StageError::Damaged { found: format!("symbol {name} stands twice") });
            }
            let group = intake.lateness.group_of(&name, config.groups_per_partition);
            intake.group_symbols[group as usize] += 1;
            let slot = if intake.evicted.page_of(number).is_some() {
                NO_SLOT
            } else {
                intake.group_slots[group as usize] += 1;
                intake.group_slots[group as usize] - 1
            };
            intake.places.push(SymbolPlace { group, slot });
        }
        if intake.evicted.greatest().is_some_and(|greatest| greatest as usize >= intake.places.len()) {
            return Err(StageError::Damaged {
                found: "pages have more symbols than the partition".to_owned(),
            });
        }
        if event_time_max_ns != i64::MIN {
            intake.event_time_max_ns = Some(event_time_max_ns);
            intake.set_next_closes(event_time_max_ns);
        }
        intake.market = Market::read(config.market, intake.places.len(), bytes)?;
        if get_bytes(bytes, RESERVED, "reserved bytes")? != [0; RESERVED] {
            return Err(StageError::Damaged { found: "reserved bytes that are not 0".to_owned() });
        }
        intake.trade_ids = TradeIds::read(intake.places.len(), bytes)?;
        intake.price_scales = PriceScales::read(intake.places.len(), bytes)?;
        intake.market.set_price_scales(&intake.price_scales);
        intake.quorum = Quorum::read(intake.places.len(), bytes)?;
        if !bytes.is_empty() {
            return Err(StageError::Damaged { found: format!("{} bytes after the end", bytes.len()) });
        }
        Ok(intake)
    }
}

/// The aggressor of a trade, as kernels encode it.
#[inline(always)]
fn aggressor(side: Side) -> Aggressor {
    match side {
        Side::Buy => Aggressor::Buyer,
        Side::Sell => Aggressor::Seller,
        Side::None => Aggressor::Unknown,
    }
}

/// Symbols that a record names first. They are numbered again in the order of their first good rows.
struct NewSymbols {
    /// Number of symbols before the record.
    known: usize,
    names: Vec<String>,
    /// The new numbers; `None` for a symbol without a good row.
    numbers: Vec<Option<u32>>,
}

impl NewSymbols {
    /// Takes the symbols out of the table.
    fn take(symbols: &mut SymbolTable, known: usize) -> Self {
        let names: Vec<String> =
            (known..symbols.len()).map(|number| symbols.name(number as u32).to_owned()).collect();
        symbols.truncate(known);
        Self { known, numbers: vec![None; names.len()], names }
    }

    /// The number of a symbol that was decoded with this one; `None` if it has none.
    fn number(&self, given: u32) -> Option<u32> {
        (given as usize).checked_sub(self.known).map_or(Some(given), |new| self.numbers[new])
    }

    /// The name of a symbol without a number.
    fn name(&self, given: u32) -> &str {
        &self.names[given as usize - self.known]
    }

    fn add(&mut self, given: u32, symbols: &mut SymbolTable) {
        let new = given as usize - self.known;
        self.numbers[new] = Some(symbols.push(&self.names[new]));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::tests::config;
    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;

    const SECOND_NS: i64 = 1_000_000_000;
    const GROUPS: usize = 3;

    /// Symbol, true for a quote, and event time after the row before, in ns.
    type Row = (u32, bool, i64);

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let step = prop_oneof![60 => 0..1_000_000_i64, 1 => -SECOND_NS / 4..SECOND_NS / 2];
        proptest::collection::vec((0..9_u32, any::<bool>(), step), 1..4 * ROWS_BY_GROUP_MIN * GROUPS)
    }

    fn columns(rows: &[Row], time_ns: &mut i64, symbols: &mut SymbolTable) -> TickColumns {
        let mut columns = TickColumns::default();
        for &(symbol, is_quote, step_ns) in rows {
            *time_ns += step_ns;
            let price = i64::from(symbol) + *time_ns % 7 + 1;
            let of_kind = |kind, price| if is_quote == kind { price } else { 0 };
            columns
                .symbol
                .push(symbols.intern(&format!("{}:{symbol}", if symbol % 3 == 1 { "Y" } else { "X" })));
            columns.kind.push(if is_quote { TickKind::Quote } else { TickKind::Trade });
            columns.event_time_ns.push(*time_ns);
            columns.receive_time_ns.push(0);
            columns.trade_id.push(if is_quote { 0 } else { *time_ns / 10_000 % 3_000 });
            columns.side.push(if is_quote {
                Side::None
            } else {
                [Side::None, Side::Buy, Side::Sell][*time_ns as usize % 3]
            });
            columns.price_e9.push(of_kind(false, price));
            columns.size_e9.push(of_kind(false, price + 1));
            columns.bid_price_e9.push(of_kind(true, price));
            columns.bid_size_e9.push(of_kind(true, *time_ns % 3));
            columns.ask_price_e9.push(of_kind(true, price / 2 * 2));
            columns.ask_size_e9.push(of_kind(true, *time_ns % 2));
        }
        columns
    }

    #[test]
    fn by_groups_or_row_by_row_is_the_same() {
        for lateness_of_y_ns in [SECOND_NS / 10, SECOND_NS / 5, SECOND_NS / 20] {
            is_the_same(lateness_of_y_ns);
        }
    }

    fn is_the_same(lateness_of_y_ns: i64) {
        let config = StageConfig {
            allowed_lateness_ns: SECOND_NS / 10,
            lateness_by_venue_ns: BTreeMap::from([("Y".to_owned(), lateness_of_y_ns)]),
            groups_per_partition: GROUPS as u32,
            ..config()
        };
        let queues = || (0..GROUPS).map(|_| GroupQueue::default()).collect::<Vec<_>>();
        let state = |intake: &PartitionIntake| {
            let mut bytes = Vec::new();
            intake.write(&mut bytes);
            (bytes, intake.next_closes_ns.clone())
        };
        let [by_groups, partly, not_calm, late_rows, repeated, untold] = [const { Cell::new(0) }; 6];
        let records = proptest::collection::vec(rows(), 1..20);
        TestRunner::deterministic()
            .run(&records, |records| {
                let (mut intake, mut reference) =
                    (PartitionIntake::new(&config), PartitionIntake::new(&config));
                let (mut dealt, mut expected) = (queues(), queues());
                let (mut late, mut expected_late) = (Vec::new(), Vec::new());
                let mut time_ns = 1_000 * SECOND_NS;
                for (offset, rows) in (7..).zip(&records) {
                    let mut columns = columns(rows, &mut time_ns, &mut intake.symbols);
                    reference.symbols = intake.symbols.clone();
                    if rows.len() >= ROWS_BY_GROUP_MIN * GROUPS {
                        let record = RecordRows { offset, ticks: &columns, first: 0 };
                        let way = match intake.end_of_calm(record, 0) {
                            0 => &not_calm,
                            end if end == rows.len() => &by_groups,
                            _ => &partly,
                        };
                        way.set(way.get() + 1);
                    }
                    intake.accept(offset, 0, &mut columns, 0, &mut dealt, &mut late);
                    assert_eq!(columns.rejected, [], "nothing is too far ahead");
                    for _ in reference.places.len()..reference.symbols.len() {
                        reference.price_scales.add_new(Scales::E9.price);
                    }
                    reference.see_first(&columns, 0);
                    reference.place_new_symbols(offset, &mut expected);
                    let all = 0..rows.len();
                    reference.hear_in_time(&columns, all.clone(), 0);
                    reference.trade_ids.begin_record();
                    let late = &mut expected_late;
                    let record = RecordRows { offset, ticks: &columns, first: 0 };
                    reference.deal_row_by_row(record, all, &[], &mut expected, late);
                    if rows.len() % 5 == 0 {
                        let set = SetEventTime {
                            id: String::new(),
                            by: String::new(),
                            event_time_max_ns: time_ns + rows.len() as i64 * SECOND_NS / 100,
                            cuts_bars: rows.len() % 2 == 0,
                            only_forward: true,
                        };
                        intake.set_event_time(&set, offset, &mut dealt);
                        reference.set_event_time(&set, offset, &mut expected);
                    }
                    prop_assert_eq!(state(&intake), state(&reference));
                    let ids = intake.trade_ids();
                    prop_assert_eq!(ids, reference.trade_ids());
                    repeated.set(repeated.get() + ids.repeated as usize);
                    untold.set(untold.get() + ids.untold as usize);
                }
                for (dealt, expected) in dealt.iter().zip(&expected) {
                    prop_assert_eq!(&dealt.rows, &expected.rows);
                    prop_assert_eq!(&dealt.symbols, &expected.symbols);
                }
                prop_assert_eq!(&late, &expected_late);
                late_rows.set(late_rows.get() + late.len());
                Ok(())
            })
            .expect("both are the same");
        let counts = [by_groups, partly, not_calm, late_rows, repeated, untold].map(Cell::into_inner);
        assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
    }
}
