//! The lane side of a symbol group: its state, and the one way in which rows change it.

use std::ops::Range;
use std::sync::Arc;

use warptape_events::encode_signal;
use warptape_events::tick::Scales;
use warptape_kernels::device::{self, SlotState};
use warptape_kernels::{
    BarSlab, BarSpec, ClosedBars, Detected, IndicatorColumns, IndicatorSlab, Isa, RowKind, Rows, SignalSlab,
};

use crate::bytes::{get_i64, get_text, get_u32, get_u64, get_version, put_i64, put_text, put_u32, put_u64};
use crate::evicted::write_page;
use crate::formulas::{Computed, FormulaSlab, Occurred, Program, inputs_of};
use crate::{Evicted, Lateness, Page, SignalChunk, SignalKey, StageConfig, StageError};

/// Version of the snapshot bytes of a group.
const STATE_VERSION: u32 = 4;

/// Closed bars for which a specification keeps room between runs. More memory, as when all symbols close at once, is
/// given back.
const CLOSED_ROOM_MAX: usize = 1_024;

/// A symbol that got the next free slot of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotSymbol {
    /// Number of the symbol in its partition.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Digits of its prices after the decimal point.
    pub price_scale: u8,
    /// Event time before which no tick of its partition could be seen.
    pub seen_since_ns: i64,
    /// Offset of the record that named it first; for one that comes back, that of the last barrier or record before.
    pub offset: i64,
    /// The state of a symbol that comes back from a page; `None` for a new one.
    pub state: Option<Arc<[u8]>>,
}

/// The new slots of a group at a barrier: evicted symbols have left, and the others are in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repack {
    /// The barrier.
    pub barrier: i64,
    /// The old slot of each new slot.
    pub slots: Vec<u32>,
    /// Number of each page to be made, with the old slots of its symbols.
    pub pages: Vec<(i32, Vec<u32>)>,
}

/// The states of symbols that left memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageState {
    /// The barrier at which the symbols left.
    pub barrier: i64,
    /// Number of the page in its partition.
    pub page: i32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Rows and symbols that wait on the host for one group.
#[derive(Debug, Default)]
pub struct GroupQueue {
    /// Symbols that have slots but are not known to the group's stage yet, by slot.
    pub symbols: Vec<SlotSymbol>,
    /// Rows in log order.
    pub rows: Rows,
    /// Repacks at barriers among the rows, in their order.
    pub repacks: Vec<Repack>,
}

impl GroupQueue {
    /// Takes the first `rows` rows and the symbols that are new by then. Later symbols stay, because a barrier still to
    /// come must not see them.
    pub fn take(&mut self, rows: usize) -> GroupInput {
        let rows = self.rows.take_front(rows);
        let last = if self.rows.is_empty() { Some(i64::MAX) } else { rows.offset.last().copied() };
        let count = last.map_or(0, |last| self.symbols.partition_point(|symbol| symbol.offset <= last));
        let symbols = self.symbols.drain(..count).collect();
        let count =
            self.repacks.iter().take_while(|repack| barrier_row(&rows, repack.barrier).is_some()).count();
        let repacks = self.repacks.drain(..count).collect();
        GroupInput { symbols, rows: Arc::new(rows), repacks }
    }

    /// Puts back the inputs that were taken last, the oldest first.
    pub fn put_back(&mut self, taken: impl IntoIterator<Item = GroupInput>) {
        let mut whole = Self::default();
        for input in taken {
            whole.symbols.extend(input.symbols);
            whole.rows.append(&mut Arc::unwrap_or_clone(input.rows));
            whole.repacks.extend(input.repacks);
        }
        whole.symbols.append(&mut self.symbols);
        whole.rows.append(&mut self.rows);
        whole.repacks.append(&mut self.repacks);
        *self = whole;
    }
}

/// The input of one group in a batch.
#[derive(Clone, Debug, Default)]
pub struct GroupInput {
    /// New symbols, by slot.
    pub symbols: Vec<SlotSymbol>,
    /// Rows in log order.
    pub rows: Arc<Rows>,
    /// Repacks at barriers among the rows, in their order.
    pub repacks: Vec<Repack>,
}

/// The row of a barrier; `None` if it is not among the rows.
fn barrier_row(rows: &Rows, barrier: i64) -> Option<usize> {
    (0..rows.len()).find(|&row| rows.kind[row] == RowKind::BARRIER && rows.time_ns[row] == barrier)
}

impl GroupInput {
    /// The input after a barrier among the rows.
    pub fn behind(&self, barrier: i64) -> Self {
        let at = barrier_row(&self.rows, barrier).expect("the barrier is among the rows");
        let offset = self.rows.offset[at];
        let symbols = self.symbols.iter().filter(|symbol| symbol.offset >= offset).cloned().collect();
        let mut rows = Rows::clone(&self.rows);
        rows.take_front(at + 1);
        let repacks = self.repacks.iter().filter(|repack| repack.barrier > barrier).cloned().collect();
        Self { symbols, rows: Arc::new(rows), repacks }
    }
}

/// The outputs of a group for its input.
#[derive(Debug, Default)]
pub struct GroupOutput {
    /// Encoded signals in order.
    pub signals: SignalChunk,
    /// State at each barrier of the input: barrier id and bytes.
    pub snapshots: Vec<(i64, Vec<u8>)>,
    /// Pages of the symbols that left at these barriers.
    pub pages: Vec<PageState>,
    /// Time bars that were open at the last of these barriers; `None` if there was no barrier.
    pub open_bars: Option<u64>,
}

/// State of one bar specification.
#[derive(Debug)]
pub(crate) struct SpecState {
    pub(crate) name: String,
    pub(crate) is_of_time: bool,
    bars: BarSlab,
    indicators: IndicatorSlab,
    signals: SignalSlab,
    /// Bars closed by the rows in hand; beside them their indicators and detected signals.
    pub(crate) closed: ClosedBars,
    pub(crate) columns: IndicatorColumns,
    pub(crate) detected: Vec<Detected>,
    /// Computed when signals are encoded, on the host also for groups on a device.
    formulas: FormulaSlab,
    pub(crate) computed: Computed,
}

/// The symbol of a slot.
#[derive(Clone, Debug)]
pub(crate) struct GroupSymbol {
    /// Number in the partition.
    number: u32,
    pub(crate) name: String,
    /// Digits of its prices after the decimal point.
    pub(crate) price_scale: u8,
    /// Event time before which no tick of its partition could be seen.
    pub(crate) seen_since_ns: i64,
}

/// State of one symbol group.
#[derive(Debug)]
pub struct GroupStage {
    isa: Isa,
    config: Arc<StageConfig>,
    config_fingerprint: u64,
    program: Arc<Program>,
    /// The symbols of the slots, by slot.
    symbols: Vec<GroupSymbol>,
    pub(crate) specs: Vec<SpecState>,
    /// Signals of the rows in hand, to be sorted.
    order: Vec<(SignalKey, u32)>,
}

impl GroupStage {
    /// The state at the beginning of a log.
    pub fn new(config: &StageConfig, isa: Isa) -> Self {
        Self::empty(Arc::new(config.clone()), config.fingerprint(), Arc::new(Program::of(config)), isa)
    }

    fn empty(config: Arc<StageConfig>, config_fingerprint: u64, program: Arc<Program>, isa: Isa) -> Self {
        let lateness_max_ns = Lateness::of(&config).max_ns();
        let specs = config.bars.iter().map(|spec| SpecState {
            name: spec.to_string(),
            is_of_time: matches!(spec, BarSpec::Time { .. }),
            bars: BarSlab::new(*spec, lateness_max_ns),
            indicators: IndicatorSlab::new(config.indicators.clone(), &config.signals),
            signals: SignalSlab::new(config.signals),
            closed: ClosedBars::default(),
            columns: IndicatorColumns::default(),
            detected: Vec::new(),
            formulas: FormulaSlab::new(&program),
            computed: Computed::default(),
        });
        Self {
            isa,
            config_fingerprint,
            symbols: Vec::new(),
            specs: specs.collect(),
            order: Vec::new(),
            config,
            program,
        }
    }

    /// The instruction set on which it runs.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Processes rows and adds the outputs to `output`.
    pub fn run(&mut self, mut input: GroupInput, output: &mut GroupOutput) {
        let rows = &*input.rows;
        let ends: Vec<usize> = (0..rows.len())
            .filter(|&row| rows.kind[row] == RowKind::BARRIER || rows.seen_since_ns(row).is_some())
            .collect();
        let mut start = 0;
        for end in ends {
            if let Some(seen_since_ns) = rows.seen_since_ns(end) {
                // The record with the cut may name symbols before it.
                self.add_symbols(&mut input.symbols, rows.offset[end] + 1);
                self.run_range(rows, start..end + 1, output);
                self.see_since(seen_since_ns);
            } else {
                self.add_symbols(&mut input.symbols, rows.offset[end]);
                self.run_range(rows, start..end, output);
                self.meet_barrier(rows.time_ns[end], &mut input.repacks, output);
            }
            start = end + 1;
        }
        self.add_symbols(&mut input.symbols, i64::MAX);
        self.run_range(rows, start..rows.len(), output);
    }

    /// Sets the event time from which on the partition can see ticks, for all symbols.
    pub(crate) fn see_since(&mut self, seen_since_ns: i64) {
        self.symbols.iter_mut().for_each(|symbol| symbol.seen_since_ns = seen_since_ns);
    }

    /// Writes the state at a barrier, after the repack at it. Returns the repack; `None` if there is none.
    pub(crate) fn meet_barrier(
        &mut self,
        barrier: i64,
        repacks: &mut Vec<Repack>,
        output: &mut GroupOutput,
    ) -> Option<Repack> {
        let is_here = repacks.first().is_some_and(|repack| repack.barrier == barrier);
        let repack = is_here.then(|| repacks.remove(0));
        if let Some(repack) = &repack {
            for (page, slots) in &repack.pages {
                output.pages.push(PageState { barrier, page: *page, bytes: self.page(slots) });
            }
            *self = self.of_slots(&repack.slots);
        }
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        output.snapshots.push((barrier, bytes));
        output.open_bars = Some(self.specs.iter().map(|state| state.bars.open_time_bars() as u64).sum());
        repack
    }

    /// The bytes of a page of the symbols in these slots.
    fn page(&self, slots: &[u32]) -> Vec<u8> {
        let state = |slot: &u32| {
            let mut state = Vec::new();
            self.of_slots(&[*slot]).write(&mut state);
            state
        };
        write_page(self.config_fingerprint, &slots.iter().map(state).collect::<Vec<_>>())
    }

    /// The state of a group with only the symbols of these slots, in this order.
    pub(crate) fn of_slots(&self, slots: &[u32]) -> Self {
        let mut stage =
            Self::empty(self.config.clone(), self.config_fingerprint, self.program.clone(), self.isa);
        stage.symbols = slots.iter().map(|slot| self.symbols[*slot as usize].clone()).collect();
        stage.resize();
        for (to, slot) in slots.iter().enumerate() {
            stage.copy_slot(to, self, *slot as usize);
        }
        stage
    }

    fn copy_slot(&mut self, to: usize, from: &Self, slot: usize) {
        for (state, from) in self.specs.iter_mut().zip(&from.specs) {
            state.bars.copy_slot(to, &from.bars, slot);
            state.indicators.copy_slot(to, &from.indicators, slot);
            state.signals.copy_slot(to, &from.signals, slot);
            state.formulas.copy_slot(to, &from.formulas, slot);
        }
    }

    /// Gives slots to the symbols named before `offset`. Returns the slots of those that come back, with their states.
    pub(crate) fn add_symbols(&mut self, symbols: &mut Vec<SlotSymbol>, offset: i64) -> Vec<u32> {
        let count = symbols.partition_point(|symbol| symbol.offset < offset);
        let (first, mut back) = (self.symbols.len(), Vec::new());
        for SlotSymbol { number, name, price_scale, seen_since_ns, state, .. } in symbols.drain(..count) {
            back.extend(state.map(|state| (self.symbols.len() as u32, state)));
            self.symbols.push(GroupSymbol { number, name, price_scale, seen_since_ns });
        }
        if self.symbols.len() > first {
            self.resize();
        }
        for (slot, state) in &back {
            let empty =
                Self::empty(self.config.clone(), self.config_fingerprint, self.program.clone(), self.isa);
            let one = empty.filled(state).expect("whoever has read the page has checked it");
            self.copy_slot(*slot as usize, &one, 0);
        }
        back.into_iter().map(|(slot, _)| slot).collect()
    }

    fn run_range(&mut self, rows: &Rows, range: Range<usize>, output: &mut GroupOutput) {
        if range.is_empty() {
            return;
        }
        for state in &mut self.specs {
            state.closed.clear();
            state.bars.fold(rows, range.clone(), &mut state.closed);
            state.indicators.update(self.isa, &state.closed, &mut state.columns);
            state.detected.clear();
            state.signals.detect(&state.closed, &state.columns, &mut state.detected);
        }
        self.emit(&mut output.signals);
        self.specs
            .iter_mut()
            .filter(|state| state.closed.len() > CLOSED_ROOM_MAX)
            .for_each(SpecState::forget);
    }

    /// Encodes the signals that the specifications detected, in the order of the keys.
    pub(crate) fn emit(&mut self, signals: &mut SignalChunk) {
        if !self.program.is_empty() {
            self.compute();
        }
        self.order.clear();
        for (spec, state) in self.specs.iter().enumerate() {
            let detected = state.detected.iter().map(|detected| (detected.row, detected.kind, 0));
            let of = |occurred: &Occurred| (occurred.row, occurred.kind, occurred.number);
            let occurred = state.computed.occurred.iter().map(of);
            for (position, (row, kind, number)) in detected.chain(occurred).enumerate() {
                let row = row as usize;
                let key = SignalKey {
                    offset: state.closed.offset[row],
                    index: state.closed.index[row],
                    symbol: self.symbols[state.closed.slot[row] as usize].number,
                    spec: spec as u16,
                    bar_start_ns: state.closed.start_ns[row],
                    kind: kind as u8,
                    number,
                };
                self.order.push((key, position as u32));
            }
        }
        self.order.sort_unstable();
        for &(key, position) in &self.order {
            let state = &self.specs[usize::from(key.spec)];
            let position = position as usize;
            let symbol_of = |row: u32| &self.symbols[state.closed.slot[row as usize] as usize];
            if let Some(detected) = state.detected.get(position) {
                let symbol = symbol_of(detected.row);
                let signal = || state.signal(symbol, detected, &self.program);
                signals.push(key, &symbol.name, |bytes| encode_signal(&signal(), bytes));
            } else {
                let occurred = &state.computed.occurred[position - state.detected.len()];
                let symbol = symbol_of(occurred.row);
                signals.push(key, &symbol.name, |bytes| {
                    encode_signal(&state.occurrence(symbol, occurred), bytes)
                });
            }
        }
    }

    /// Computes the formulas of the bars that closed.
    fn compute(&mut self) {
        let Self { program, symbols, specs, .. } = self;
        for SpecState { closed, columns, formulas, computed, .. } in specs {
            computed.clear();
            for row in 0..closed.len() {
                let slot = closed.slot[row] as usize;
                let inputs = inputs_of(closed, columns, row, symbols[slot].price_scale);
                program.run(row as u32, &inputs, formulas.of_slot(slot), computed);
            }
        }
    }

    /// Numbers and names of the symbols, by slot.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = (u32, &str)> {
        self.symbols.iter().map(|symbol| (symbol.number, symbol.name.as_str()))
    }

    /// True if the group has only this symbol, and no open time bar.
    pub(crate) fn is_of_one_at_rest(&self, number: u32, name: &str, price_scale: u8) -> bool {
        let is_it = |symbol: &GroupSymbol| {
            (symbol.number, symbol.name.as_str(), symbol.price_scale) == (number, name, price_scale)
        };
        let rests = || self.specs.iter().all(|state| !state.bars.has_open_time_bars());
        self.symbols.len() == 1 && is_it(&self.symbols[0]) && rests()
    }

    /// Number of symbols.
    pub(crate) fn symbol_count(&self) -> usize {
        self.symbols.len()
    }

    /// The slabs, for a device that holds their state.
    pub(crate) fn slot_state(&mut self) -> SlotState<'_> {
        let specs = self.specs.iter_mut().map(SpecState::slot_state).collect();
        SlotState { specs }
    }

    fn resize(&mut self) {
        let slots = self.symbols.len();
        for state in &mut self.specs {
            state.bars.resize(slots);
            state.indicators.resize(slots);
            state.signals.resize(slots);
            state.formulas.resize(slots);
        }
    }

    /// Device-neutral bytes of the state: equal states have equal bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_u32(out, STATE_VERSION);
        put_u64(out, self.config_fingerprint);
        put_u32(out, self.symbols.len() as u32);
        for symbol in &self.symbols {
            put_u32(out, symbol.number);
            put_text(out, &symbol.name);
        }
        self.symbols.iter().for_each(|symbol| put_u32(out, symbol.price_scale.into()));
        self.symbols.iter().for_each(|symbol| put_i64(out, symbol.seen_since_ns));
        for state in &self.specs {
            state.bars.write(out);
            state.indicators.write(out);
            state.signals.write(out);
            state.formulas.write(out);
        }
    }

    /// The bytes of the state as if these symbols were evicted. Returns the pages of those that left at an offset.
    pub fn write_without(&self, evicted: &Evicted, offset: i64, out: &mut Vec<u8>) -> Vec<PageState> {
        if evicted.is_empty() {
            self.write(out);
            return Vec::new();
        }
        let slot_of = |number: &u32| {
            self.symbols.binary_search_by_key(number, |symbol| symbol.number).ok().map(|slot| slot as u32)
        };
        let stay = |slot: &u32| evicted.page_of(self.symbols[*slot as usize].number).is_none();
        let slots: Vec<u32> = (0..self.symbols.len() as u32).filter(stay).collect();
        self.of_slots(&slots).write(out);
        let of_offset = evicted.pages().iter().filter(|(_, page)| page.offset == offset);
        let page = |(&number, page): (&i32, &Page)| {
            let slots: Option<Vec<u32>> = page.symbols.iter().map(slot_of).collect();
            slots.map(|slots| PageState { barrier: offset, page: number, bytes: self.page(&slots) })
        };
        of_offset.filter_map(page).collect()
    }

    /// Restores the state from the bytes of [`GroupStage::write`].
    pub fn read(config: &StageConfig, isa: Isa, bytes: &[u8]) -> Result<Self, StageError> {
        Self::new(config, isa).filled(bytes)
    }

    /// Fills an empty group with the state in these bytes.
    fn filled(mut self, mut bytes: &[u8]) -> Result<Self, StageError> {
        let bytes = &mut bytes;
        let (config, program) = (self.config.clone(), self.program.clone());
        get_version(bytes, "state of a group", STATE_VERSION)?;
        let found = get_u64(bytes, "configuration")?;
        if found != self.config_fingerprint {
            return Err(StageError::OtherConfig { expected: self.config_fingerprint, found });
        }
        for _ in 0..get_u32(bytes, "symbol count")? {
            let number = get_u32(bytes, "symbol number")?;
            let name = get_text(bytes, "symbol")?;
            let (price_scale, seen_since_ns) = (Scales::E9.price, i64::MIN);
            self.symbols.push(GroupSymbol { number, name, price_scale, seen_since_ns });
        }
        for symbol in &mut self.symbols {
            let scale = get_u32(bytes, "scale")?;
            let damaged = || StageError::Damaged { found: format!("scale {scale} of {}", symbol.name) };
            symbol.price_scale =
                u8::try_from(scale).ok().filter(|scale| *scale <= Scales::MAX).ok_or_else(damaged)?;
        }
        for symbol in &mut self.symbols {
            symbol.seen_since_ns = get_i64(bytes, "time of the first tick")?;
        }
        let (slots, lateness_max_ns) = (self.symbols.len(), Lateness::of(&config).max_ns());
        for (state, spec) in self.specs.iter_mut().zip(&config.bars) {
            state.bars = BarSlab::read(*spec, lateness_max_ns, slots, bytes)?;
            let (indicators, signals) = (config.indicators.clone(), &config.signals);
            state.indicators = IndicatorSlab::read(indicators, signals, slots, bytes)?;
            state.signals = SignalSlab::read(config.signals, slots, bytes)?;
            state.formulas = FormulaSlab::read(&program, slots, bytes)?;
        }
        if !bytes.is_empty() {
            return Err(StageError::Damaged { found: format!("{} bytes after the end", bytes.len()) });
        }
        Ok(self)
    }
}

impl SpecState {
    fn slot_state(&mut self) -> device::SpecState<'_> {
        let Self { bars, indicators, signals, .. } = self;
        device::SpecState { bars, indicators, signals }
    }

    /// Forgets the results of the last rows, and frees their memory.
    fn forget(&mut self) {
        self.closed = ClosedBars::default();
        self.columns = IndicatorColumns::default();
        self.detected = Vec::new();
        self.computed = Computed::default();
    }

    /// Forgets the results of the last rows.
    pub(crate) fn clear(&mut self) {
        self.closed.clear();
        self.columns.clear();
        self.detected.clear();
        self.computed.clear();
    }
}
