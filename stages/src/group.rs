//! The lane side of a symbol group: its state, and the one way in which rows change it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use warptape_kernels::device::{self, SlotState};
use warptape_kernels::{
    BarSlab, ClosedBars, Detected, IndicatorColumns, IndicatorSlab, Isa, QuotesByArrival, RowKind, Rows,
    SignalSlab,
};
use warptape_schemas::encode_signal;
use warptape_schemas::signal::{Bar, Signal, SignalKind};

use crate::bytes::{get_text, get_u32, get_u64, put_text, put_u32, put_u64};
use crate::{QuoteOrder, SignalChunk, SignalKey, StageConfig, StageError};

/// Version of the group's snapshot bytes.
const STATE_VERSION: u32 = 2;

/// A symbol that got the next free slot of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotSymbol {
    /// Number of the symbol in its partition.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Offset of the record that named it first.
    pub offset: i64,
}

/// What waits on the host for one group.
#[derive(Debug, Default)]
pub struct GroupQueue {
    /// Symbols that have slots but are not known to the group's stage yet, by slot.
    pub symbols: Vec<SlotSymbol>,
    /// Rows in log order.
    pub rows: Rows,
}

impl GroupQueue {
    /// Takes the first `rows` rows, and the symbols new by then: not those behind, which a barrier still to come must
    /// not see.
    pub fn take(&mut self, rows: usize) -> GroupInput {
        let rows = self.rows.take_front(rows);
        let last = if self.rows.is_empty() { Some(i64::MAX) } else { rows.offset.last().copied() };
        let count = last.map_or(0, |last| self.symbols.partition_point(|symbol| symbol.offset <= last));
        let symbols = self.symbols.drain(..count).collect();
        GroupInput { symbols, rows: Arc::new(rows) }
    }

    /// Puts back what was taken last, the oldest first.
    pub fn put_back(&mut self, taken: impl IntoIterator<Item = GroupInput>) {
        let mut whole = Self::default();
        for input in taken {
            whole.symbols.extend(input.symbols);
            whole.rows.append(&mut Arc::unwrap_or_clone(input.rows));
        }
        whole.symbols.append(&mut self.symbols);
        whole.rows.append(&mut self.rows);
        *self = whole;
    }
}

/// Part of a batch: what one group has to process.
#[derive(Clone, Debug, Default)]
pub struct GroupInput {
    /// New symbols, by slot.
    pub symbols: Vec<SlotSymbol>,
    /// Rows in log order.
    pub rows: Arc<Rows>,
}

impl GroupInput {
    /// What lies behind a barrier among the rows.
    pub fn behind(&self, barrier: i64) -> Self {
        let (kind, number) = (&self.rows.kind, &self.rows.time_ns);
        let at = (0..self.rows.len()).find(|&row| kind[row] == RowKind::BARRIER && number[row] == barrier);
        let at = at.expect("the barrier is among the rows");
        let offset = self.rows.offset[at];
        let symbols = self.symbols.iter().filter(|symbol| symbol.offset >= offset).cloned().collect();
        let mut rows = Rows::clone(&self.rows);
        rows.take_front(at + 1);
        Self { symbols, rows: Arc::new(rows) }
    }
}

/// What a group made of its input.
#[derive(Debug, Default)]
pub struct GroupOutput {
    /// Encoded signals in order.
    pub signals: SignalChunk,
    /// State at each barrier of the input: barrier id and bytes.
    pub snapshots: Vec<(i64, Vec<u8>)>,
}

/// State of one bar specification.
#[derive(Debug)]
pub(crate) struct SpecState {
    name: String,
    bars: BarSlab,
    indicators: IndicatorSlab,
    signals: SignalSlab,
    /// Bars closed by the rows in hand, with their indicators and what was detected on them.
    pub(crate) closed: ClosedBars,
    pub(crate) columns: IndicatorColumns,
    pub(crate) detected: Vec<Detected>,
}

/// State of one symbol group.
#[derive(Debug)]
pub struct GroupStage {
    isa: Isa,
    config_fingerprint: u64,
    /// Number in the partition and name, by slot.
    symbols: Vec<(u32, String)>,
    /// Where bars have the quotes that arrived last.
    quotes_by_arrival: Option<QuotesByArrival>,
    pub(crate) specs: Vec<SpecState>,
    /// Signals of the rows in hand, to be sorted.
    order: Vec<(SignalKey, u32)>,
}

impl GroupStage {
    /// The state at the beginning of a log.
    pub fn new(config: &StageConfig, isa: Isa) -> Self {
        let specs = config.bars.iter().map(|spec| SpecState {
            name: spec.to_string(),
            bars: BarSlab::new(*spec, config.allowed_lateness_ns),
            indicators: IndicatorSlab::new(config.indicators.clone()),
            signals: SignalSlab::new(config.signals.clone()),
            closed: ClosedBars::default(),
            columns: IndicatorColumns::default(),
            detected: Vec::new(),
        });
        Self {
            isa,
            config_fingerprint: config.fingerprint(),
            symbols: Vec::new(),
            quotes_by_arrival: (config.quotes == QuoteOrder::Arrival).then(QuotesByArrival::default),
            specs: specs.collect(),
            order: Vec::new(),
        }
    }

    /// Processes rows; `output` is added to.
    pub fn run(&mut self, mut input: GroupInput, output: &mut GroupOutput) {
        let rows = &*input.rows;
        let barriers: Vec<usize> =
            (0..rows.len()).filter(|&row| rows.kind[row] == RowKind::BARRIER).collect();
        let mut start = 0;
        for barrier in barriers {
            self.add_symbols(&mut input.symbols, rows.offset[barrier]);
            self.run_range(rows, start..barrier, output);
            let mut bytes = Vec::new();
            self.write(&mut bytes);
            output.snapshots.push((rows.time_ns[barrier], bytes));
            start = barrier + 1;
        }
        self.add_symbols(&mut input.symbols, i64::MAX);
        self.run_range(rows, start..rows.len(), output);
    }

    /// Gives slots to the symbols named before `offset`.
    pub(crate) fn add_symbols(&mut self, symbols: &mut Vec<SlotSymbol>, offset: i64) {
        let count = symbols.partition_point(|symbol| symbol.offset < offset);
        if count > 0 {
            self.symbols.extend(symbols.drain(..count).map(|symbol| (symbol.number, symbol.name)));
            self.resize();
        }
    }

    fn run_range(&mut self, rows: &Rows, range: Range<usize>, output: &mut GroupOutput) {
        if range.is_empty() {
            return;
        }
        for state in &mut self.specs {
            state.closed.clear();
            state.bars.fold(rows, range.clone(), &mut state.closed);
            if let Some(quotes) = &mut self.quotes_by_arrival {
                quotes.fill(rows, range.clone(), &mut state.closed);
            }
            state.indicators.update(self.isa, &state.closed, &mut state.columns);
            state.detected.clear();
            state.signals.detect(&state.closed, &state.columns, &mut state.detected);
        }
        if let Some(quotes) = &mut self.quotes_by_arrival {
            quotes.fold(rows, range);
        }
        self.emit(&mut output.signals);
    }

    /// Encodes what the specifications detected, in the order of the keys.
    pub(crate) fn emit(&mut self, signals: &mut SignalChunk) {
        self.order.clear();
        for (spec, state) in self.specs.iter().enumerate() {
            for (position, detected) in state.detected.iter().enumerate() {
                let row = detected.row as usize;
                let key = SignalKey {
                    offset: state.closed.offset[row],
                    index: state.closed.index[row],
                    symbol: self.symbols[state.closed.slot[row] as usize].0,
                    spec: spec as u16,
                    bar_start_ns: state.closed.start_ns[row],
                    kind: detected.kind as u8,
                };
                self.order.push((key, position as u32));
            }
        }
        self.order.sort_unstable();
        for &(key, position) in &self.order {
            let state = &self.specs[usize::from(key.spec)];
            let detected = &state.detected[position as usize];
            let (_, symbol) = &self.symbols[state.closed.slot[detected.row as usize] as usize];
            signals.push(key, symbol, |bytes| encode_signal(&state.signal(symbol, detected), bytes));
        }
    }

    /// Number of symbols.
    pub(crate) fn symbol_count(&self) -> usize {
        self.symbols.len()
    }

    /// The slabs, for a device that has their state.
    pub(crate) fn slot_state(&mut self) -> SlotState<'_> {
        let specs = self.specs.iter_mut().map(SpecState::slot_state).collect();
        SlotState { specs }
    }

    fn resize(&mut self) {
        let slots = self.symbols.len();
        if let Some(quotes) = &mut self.quotes_by_arrival {
            quotes.resize(slots);
        }
        for state in &mut self.specs {
            state.bars.resize(slots);
            state.indicators.resize(slots);
            state.signals.resize(slots);
        }
    }

    /// Device-neutral bytes of the state: equal states have equal bytes. Panics where bars have the quotes that arrived last: logs
    /// are run again by that rule, from their beginning, and no snapshots are taken.
    pub fn write(&self, out: &mut Vec<u8>) {
        assert!(self.quotes_by_arrival.is_none(), "only reruns of former logs have such quotes");
        put_u32(out, STATE_VERSION);
        put_u64(out, self.config_fingerprint);
        put_u32(out, self.symbols.len() as u32);
        for (number, name) in &self.symbols {
            put_u32(out, *number);
            put_text(out, name);
        }
        for state in &self.specs {
            state.bars.write(out);
            state.indicators.write(out);
            state.signals.write(out);
        }
    }

    /// Restores what [`GroupStage::write`] wrote.
    pub fn read(config: &StageConfig, isa: Isa, mut bytes: &[u8]) -> Result<Self, StageError> {
        let bytes = &mut bytes;
        let mut stage = Self::new(config, isa);
        let version = get_u32(bytes, "version")?;
        if version != STATE_VERSION {
            return Err(StageError::Damaged { found: format!("group state version {version}") });
        }
        let found = get_u64(bytes, "configuration")?;
        if found != stage.config_fingerprint {
            return Err(StageError::OtherConfig { expected: stage.config_fingerprint, found });
        }
        for _ in 0..get_u32(bytes, "symbol count")? {
            let number = get_u32(bytes, "symbol number")?;
            stage.symbols.push((number, get_text(bytes, "symbol")?));
        }
        let slots = stage.symbols.len();
        for (state, spec) in stage.specs.iter_mut().zip(&config.bars) {
            state.bars = BarSlab::read(*spec, config.allowed_lateness_ns, slots, bytes)?;
            state.indicators = IndicatorSlab::read(config.indicators.clone(), slots, bytes)?;
            state.signals = SignalSlab::read(config.signals.clone(), slots, bytes)?;
        }
        if !bytes.is_empty() {
            return Err(StageError::Damaged { found: format!("{} bytes after the end", bytes.len()) });
        }
        Ok(stage)
    }
}

impl SpecState {
    fn slot_state(&mut self) -> device::SpecState<'_> {
        let Self { bars, indicators, signals, .. } = self;
        device::SpecState { bars, indicators, signals }
    }

    /// Forgets what the last rows came to.
    pub(crate) fn clear(&mut self) {
        self.closed.clear();
        self.columns.clear();
        self.detected.clear();
    }

    /// The record of a detected signal.
    fn signal<'a>(&'a self, symbol: &'a str, detected: &Detected) -> Signal<'a> {
        let (closed, row) = (&self.closed, detected.row as usize);
        let kind = signal_kind(detected.kind);
        Signal {
            symbol: Cow::Borrowed(symbol),
            kind,
            bar_spec: Cow::Borrowed(&self.name),
            bar_start_ns: closed.start_ns[row],
            bar_end_ns: closed.end_ns[row],
            source_offset: closed.offset[row],
            source_index: closed.index[row] as i32,
            value: detected.value,
            threshold: detected.threshold,
            bar: (kind == SignalKind::Bar).then(|| self.bar(row)),
        }
    }

    fn bar(&self, row: usize) -> Bar {
        let closed = &self.closed;
        Bar {
            open_e9: closed.open_e9[row],
            high_e9: closed.high_e9[row],
            low_e9: closed.low_e9[row],
            close_e9: closed.close_e9[row],
            volume_e9: i64::try_from(closed.volume_e9[row]).unwrap_or(i64::MAX),
            trades: closed.trades[row],
            bid_price_e9: closed.bid_price_e9[row],
            ask_price_e9: closed.ask_price_e9[row],
            indicators: self.columns.of_bar(row).map(|value| (!value.is_nan()).then_some(value)),
        }
    }
}

/// The record's word for a kernel's signal kind.
fn signal_kind(kind: warptape_kernels::SignalKind) -> SignalKind {
    use warptape_kernels::SignalKind as Kernel;
    match kind {
        Kernel::Bar => SignalKind::Bar,
        Kernel::EmaCrossUp => SignalKind::EmaCrossUp,
        Kernel::EmaCrossDown => SignalKind::EmaCrossDown,
        Kernel::RsiOverbought => SignalKind::RsiOverbought,
        Kernel::RsiOversold => SignalKind::RsiOversold,
        Kernel::BandBreakUp => SignalKind::BandBreakUp,
        Kernel::BandBreakDown => SignalKind::BandBreakDown,
        Kernel::ZScoreHigh => SignalKind::ZScoreHigh,
        Kernel::ZScoreLow => SignalKind::ZScoreLow,
    }
}
