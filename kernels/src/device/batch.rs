//! Batches of rows, which advance the state of a slab's slots.
//!
//! ```text
//! StagedRows ──▶ fold_runs ──▶ fold_quotes ──▶ close_bars ──▶ update_indicators ──▶ detect_signals     (for each bar specification)
//!                scan_places ──▶ scan_tiles ──▶ gather_bars ──▶ closed bars, in order, to the host
//! ```

use bytemuck::{cast_slice_mut, pod_read_unaligned};

use super::closed::{ClosedBarsArgs, DeviceClosedBar};
use super::slab::{DeviceSlab, Layout};
use super::slots::{
    CLOSES, MoveArgs, NUMBERS, OPEN, OPEN_COUNT, QUOTES, SPEC_FIELDS, SQUARED_RETURNS, WEIGHTS, ZONES,
};
use super::staged::{ALIGNMENT, GroupRows, StagedRows};
use super::{
    Address, CLOSE_BARS, DETECT_SIGNALS, DeviceError, FOLD_QUOTES, FOLD_RUNS, GATHER_BARS, MOVE_SLOTS,
    SCAN_PLACES, SCAN_TILES, UPDATE_INDICATORS,
};
use crate::bars::BarSpec;
use crate::bars::device::{DevicePart, DeviceQuotePart, FoldArgs, RUN};
use crate::compaction::{CompactionArgs, GATHER_THREADS, TILE};
use crate::indicators::device::IndicatorArgs;
use crate::signals::device::SignalArgs;

/// Bytes up to which memory for the greatest number of open bars is allocated without counting them. Above it they are
/// counted first, because usually few of them are open.
const OPEN_BYTES_UNASKED: usize = 64 << 20;

/// Number of closed bars. Second, 1 if there was no room for one of them, else 0.
type Counters = [u32; 2];

/// Number of closed bars that the first download covers in addition to the expected ones.
const CLOSED_MORE: usize = 64;
/// Most closed bars that the first download covers, before their number is known.
const GUESS_MAX: usize = 16_384;

/// Rows in a device's memory.
#[derive(Clone, Copy, Debug)]
pub struct StagedBatch {
    args: FoldArgs,
}

/// A batch whose kernels are running or about to run.
pub struct RunningBatch {
    /// Memory for data passed between kernels; `None` if there are no slots.
    work: Option<BatchMemory>,
    /// Number of bars covered by the download under way.
    guess: usize,
}

/// Addresses of data that kernels pass to each other and to the host.
struct BatchMemory {
    /// Number of bars closed so far, by place. The counters come after it, and the ordered bars after these.
    closed_by_place: Address,
    counters: Address,
    ordered: Address,
    closed: Address,
    closed_max: usize,
    by_tile: Address,
    first: Address,
    parts: Address,
    part_count: Address,
    quote_parts: Address,
    quote_part_count: Address,
}

impl DeviceSlab {
    /// Uploads rows of groups for the next run; each group occurs once.
    pub fn stage(&mut self, groups: &[GroupRows<'_>]) -> Result<StagedBatch, DeviceError> {
        let rows = StagedRows::count(groups);
        let bytes = rows.bytes();
        let input = self.input.next(self.device.as_mut(), bytes)?;
        let args = rows.write(self.device.staging(bytes)?, input);
        self.device.upload(input, bytes)?;
        Ok(StagedBatch { args })
    }

    /// Runs the rows that were staged last, and waits for the closed bars.
    pub fn run(&mut self, batch: &StagedBatch) -> Result<Vec<DeviceClosedBar>, DeviceError> {
        let running = self.begin(batch)?;
        self.finish(running)
    }

    /// Begins to run the rows that were staged last. One more batch may be staged and begun before this one is
    /// finished.
    pub fn begin(&mut self, batch: &StagedBatch) -> Result<RunningBatch, DeviceError> {
        let rows = batch.args;
        let places = rows.places as usize;
        if places == 0 {
            return Ok(RunningBatch { work: None, guess: 0 });
        }
        let work = self.work_for(&rows)?;
        for spec in 0..self.config.bars.len() {
            self.run_spec(spec, &rows, &work)?;
        }
        let guess = self.guess(&work);
        let compaction = CompactionArgs {
            places: rows.places,
            by_place: work.closed_by_place,
            by_tile: work.by_tile,
            closed_count: work.counters,
            closed_max: work.closed_max as u64,
            closed: work.closed,
            ordered: work.ordered,
        };
        self.launch(&SCAN_PLACES, &compaction, places)?;
        self.launch(&SCAN_TILES, &compaction, 1)?;
        self.launch(&GATHER_BARS, &compaction, GATHER_THREADS * guess)?;
        // The counters come before the bars, in a part as large as the alignment.
        self.device.begin_download(work.counters, ALIGNMENT + guess * size_of::<DeviceClosedBar>())?;
        Ok(RunningBatch { work: Some(work), guess })
    }

    /// Waits for the batch that was begun first. Returns its closed bars by place, then by specification, then in the
    /// order of closing. Places are numbered over the slots of all groups, and rows over the rows of all groups.
    pub fn finish(&mut self, batch: RunningBatch) -> Result<Vec<DeviceClosedBar>, DeviceError> {
        let RunningBatch { work: Some(work), guess } = batch else { return Ok(Vec::new()) };
        let (head, bars) = self.device.end_download()?.split_at(ALIGNMENT);
        let [count, failed]: Counters = pod_read_unaligned(&head[..size_of::<Counters>()]);
        if failed != 0 {
            return Err(DeviceError::Void { device: self.name.clone() });
        }
        let count = count as usize;
        let mut closed_bars: Vec<DeviceClosedBar> =
            bars.chunks_exact(size_of::<DeviceClosedBar>()).take(count).map(pod_read_unaligned).collect();
        if count > guess {
            closed_bars.resize(count, DeviceClosedBar::default());
            let rest = work.ordered + (guess * size_of::<DeviceClosedBar>()) as Address;
            self.device.download_ended(rest, cast_slice_mut(&mut closed_bars[guess..]))?;
        }
        self.closed_before = count;
        Ok(closed_bars)
    }

    /// Allocates memory for a batch, with counters of zero.
    fn work_for(&mut self, rows: &FoldArgs) -> Result<BatchMemory, DeviceError> {
        let (places, trades, quotes) = (rows.places as usize, rows.trades as usize, rows.quotes as usize);
        let closed_max = self.closed_max(rows.slot, places, trades)?;
        let mut layout = Layout::default();
        let closed_by_place = layout.add::<u32>(places);
        let counters = layout.add::<Counters>(1);
        let ordered = layout.add::<DeviceClosedBar>(closed_max);
        let closed = layout.add::<DeviceClosedBar>(closed_max);
        let by_tile = layout.add::<u32>(places.div_ceil(TILE));
        let first = layout.add::<u32>(places);
        let parts = layout.add::<DevicePart>(trades);
        let part_count = layout.add::<u32>(trades.div_ceil(RUN));
        let quote_parts = layout.add::<DeviceQuotePart>(quotes);
        let quote_part_count = layout.add::<u32>(quotes.div_ceil(RUN));
        let at = self.work.next(self.device.as_mut(), layout.bytes)?;
        self.device.clear(at, ordered as usize)?;
        Ok(BatchMemory {
            closed_by_place: at + closed_by_place,
            counters: at + counters,
            ordered: at + ordered,
            closed: at + closed,
            closed_max,
            by_tile: at + by_tile,
            first: at + first,
            parts: at + parts,
            part_count: at + part_count,
            quote_parts: at + quote_parts,
            quote_part_count: at + quote_part_count,
        })
    }

    /// Folds rows under one specification, and advances indicators and signals' zones by the closed bars.
    fn run_spec(&mut self, spec: usize, rows: &FoldArgs, work: &BatchMemory) -> Result<(), DeviceError> {
        let (places, trades, quotes) = (rows.places as usize, rows.trades as usize, rows.quotes as usize);
        let of_spec = FoldArgs::new(self.config.bars[spec], self.config.allowed_lateness_ns);
        let fold = FoldArgs {
            spec: spec as u64,
            kind: of_spec.kind,
            parameter: of_spec.parameter,
            allowed_lateness_ns: of_spec.allowed_lateness_ns,
            open_max: of_spec.open_max,
            open: self.field(spec, OPEN),
            open_count: self.field(spec, OPEN_COUNT),
            kept_quotes: self.field(spec, QUOTES),
            parts: work.parts,
            part_count: work.part_count,
            quote_parts: work.quote_parts,
            quote_part_count: work.quote_part_count,
            closed_max: work.closed_max as u64,
            closed_count: work.counters,
            failed: work.counters + 4,
            first: work.first,
            closed_by_place: work.closed_by_place,
            closed: work.closed,
            ..*rows
        };
        let bars =
            ClosedBarsArgs { places: rows.places, slot: rows.slot, first: work.first, bars: work.closed };
        let indicators = IndicatorArgs {
            bars,
            constants: self.constants,
            capacity: self.capacity as u64,
            numbers: self.field(spec, NUMBERS),
            closes: self.field(spec, CLOSES),
            squared_returns: self.field(spec, SQUARED_RETURNS),
            weights: self.field(spec, WEIGHTS),
        };
        let zones = self.field(spec, ZONES);
        let signals = SignalArgs { bars, thresholds: self.config.signals, zones };
        self.launch(&FOLD_RUNS, &fold, trades.div_ceil(RUN))?;
        if let BarSpec::Time { .. } = self.config.bars[spec] {
            self.launch(&FOLD_QUOTES, &fold, quotes.div_ceil(RUN))?;
        }
        self.launch(&CLOSE_BARS, &fold, places)?;
        self.launch(&UPDATE_INDICATORS, &indicators, places)?;
        self.launch(&DETECT_SIGNALS, &signals, places)
    }

    /// Number of bars to copy before their number is known. It is a little more than in the last batch, so one copy is
    /// usually enough.
    fn guess(&self, work: &BatchMemory) -> usize {
        (self.closed_before + self.closed_before / 4 + CLOSED_MORE).min(GUESS_MAX).min(work.closed_max)
    }

    /// Most bars, over all specifications, that this many trades can close.
    fn closed_max(&mut self, slot: Address, places: usize, trades: usize) -> Result<usize, DeviceError> {
        let mut closed_max = 0;
        for (number, spec) in self.config.bars.clone().into_iter().enumerate() {
            closed_max += match spec {
                BarSpec::Time { .. } => {
                    let open_max = places * self.config.open_max(spec);
                    let few = open_max * size_of::<DeviceClosedBar>() <= OPEN_BYTES_UNASKED;
                    trades + if few { open_max } else { self.open_bars(number, slot, places)? }
                }
                BarSpec::Ticks { count } => (trades / count as usize + places).min(trades),
                BarSpec::Volume { .. } => trades,
            };
        }
        Ok(closed_max)
    }

    /// Number of open bars of the slots whose numbers are stored at an address.
    fn open_bars(&mut self, spec: usize, slot: Address, places: usize) -> Result<usize, DeviceError> {
        let number = SPEC_FIELDS * spec + OPEN_COUNT;
        let (field, memory) = (self.fields[number], self.memory[number]);
        let at = self.scratch.room(self.device.as_mut(), field.bytes(places))?;
        let args = MoveArgs {
            places: places as u64,
            words: field.words as u64,
            from: field.words(memory, slot, self.capacity),
            to: field.words(at, 0, places),
        };
        self.launch(&MOVE_SLOTS, &args, places * field.words)?;
        let mut counts = vec![0_u64; places];
        self.device.download(at, cast_slice_mut(&mut counts))?;
        Ok(counts.iter().sum::<u64>() as usize)
    }
}
