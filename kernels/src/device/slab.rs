//! State of slots that stays in a device's memory, and the batches of rows that move it on.
//!
//! ```text
//! StagedRows ──▶ fold_runs ──▶ close_bars ──▶ update_indicators ──▶ detect_signals ──▶ closed bars to the host
//!                    (for each bar specification)                        then: fold_quotes
//! ```

use bytemuck::{Pod, bytes_of, cast_slice, cast_slice_mut, pod_read_unaligned};

use super::closed::{ClosedBarsArgs, DeviceClosedBar};
use super::slots::{
    CLOSES, Field, MoveArgs, NUMBERS, OPEN, OPEN_COUNT, QUOTE_FIELDS, SPEC_FIELDS, SQUARED_RETURNS,
    SlotState, WEIGHTS, Words, ZONES, fields, pack, unpack,
};
use super::staged::{ALIGNMENT, GroupRows, StagedRows, padded};
use super::{
    Address, CLOSE_BARS, DETECT_SIGNALS, Device, DeviceError, FOLD_QUOTES, FOLD_RUNS, Kernel, MOVE_SLOTS,
    UPDATE_INDICATORS,
};
use crate::bars::BarSpec;
use crate::bars::device::{DevicePart, FoldArgs, RUN};
use crate::indicators::IndicatorParams;
use crate::indicators::device::{IndicatorArgs, IndicatorConstants};
use crate::signals::SignalParams;
use crate::signals::device::SignalArgs;

/// Bytes of closed bars up to which room is made for all bars that may be open, without asking how many are: where many may
/// be, few are.
const OPEN_BYTES_UNASKED: usize = 64 << 20;

/// How many bars were closed, and whether there was no room for one.
type Counters = [u32; 2];

/// Closed bars that are asked for beyond those that are expected, and the most that are asked for on a guess.
const CLOSED_MORE: usize = 64;
const GUESS_MAX: usize = 16_384;

/// What the state of slots depends on.
#[derive(Clone, Debug)]
pub struct SlabConfig {
    /// Bar specifications.
    pub bars: Vec<BarSpec>,
    /// How far event times may fall behind, in nanoseconds.
    pub allowed_lateness_ns: i64,
    /// Windows of indicators.
    pub indicators: IndicatorParams,
    /// Thresholds of signals.
    pub signals: SignalParams,
}

impl SlabConfig {
    /// Most bars of a slot that can be open at once.
    pub(super) fn open_max(&self, spec: BarSpec) -> usize {
        spec.open_bars_max(self.allowed_lateness_ns) as usize
    }
}

/// Rows in a device's memory.
#[derive(Clone, Copy, Debug)]
pub struct StagedBatch {
    args: FoldArgs,
}

/// State of slots in a device's memory.
pub struct DeviceSlab {
    name: String,
    device: Box<dyn Device>,
    config: SlabConfig,
    constants: IndicatorConstants,
    fields: Vec<Field>,
    /// By field, each with room for `capacity` slots.
    memory: Vec<Address>,
    capacity: usize,
    /// Slots that were ever taken: those behind are zeros.
    used: usize,
    /// Slots that were given back, whose words are anything.
    free: Vec<u32>,
    /// Bars that the last batch closed.
    closed_before: usize,
    /// What is uploaded.
    input: Buffer,
    /// What kernels hand on to each other.
    work: Buffer,
}

/// Memory that grows.
#[derive(Default)]
struct Buffer {
    address: Address,
    bytes: usize,
}

impl Buffer {
    /// Memory of so many bytes, with anything in it.
    fn room(&mut self, device: &mut dyn Device, bytes: usize) -> Result<Address, DeviceError> {
        if self.bytes < bytes {
            if self.bytes > 0 {
                self.bytes = 0;
                device.free(self.address)?;
            }
            let wanted = bytes.next_power_of_two();
            self.address = device.allocate(wanted)?;
            self.bytes = wanted;
        }
        Ok(self.address)
    }
}

/// Arrays one behind the other.
#[derive(Default)]
struct Layout {
    bytes: usize,
}

impl Layout {
    /// Room for another array; gives its distance from the beginning.
    fn add<T>(&mut self, count: usize) -> u64 {
        let at = self.bytes;
        self.bytes += padded::<T>(count);
        at as u64
    }
}

impl DeviceSlab {
    /// No slots, with room for some at first.
    pub fn new(
        name: &str,
        device: Box<dyn Device>,
        config: SlabConfig,
        capacity: usize,
    ) -> Result<Self, DeviceError> {
        let mut slab = Self {
            name: name.to_owned(),
            device,
            fields: fields(&config),
            constants: IndicatorConstants::new(&config.indicators),
            config,
            memory: Vec::new(),
            capacity,
            used: 0,
            free: Vec::new(),
            closed_before: 0,
            input: Buffer::default(),
            work: Buffer::default(),
        };
        slab.memory = slab.allocate(capacity)?;
        Ok(slab)
    }

    /// Takes slots in the state that slots begin with.
    pub fn take_slots(&mut self, count: usize) -> Result<Vec<u32>, DeviceError> {
        let again = self.free.split_off(self.free.len().saturating_sub(count));
        self.clear(&again)?;
        let mut slots = again;
        let fresh = count - slots.len();
        if self.used + fresh > self.capacity {
            self.grow((self.used + fresh).next_power_of_two())?;
        }
        slots.extend(self.used as u32..(self.used + fresh) as u32);
        self.used += fresh;
        Ok(slots)
    }

    /// Gives slots back.
    pub fn give_back(&mut self, slots: &[u32]) {
        self.free.extend_from_slice(slots);
    }

    /// Sets the state of slots to that of the first ones of slabs on the host.
    pub fn install(&mut self, slots: &[u32], state: &SlotState<'_>) -> Result<(), DeviceError> {
        if slots.is_empty() {
            return Ok(());
        }
        let packed = pack(&self.config, slots.len(), state);
        let [at, slot] = self.upload([cast_slice(&packed), cast_slice(slots)])?;
        self.move_slots(slots.len(), slot, Packed::From(at))
    }

    /// Sets the state of the first slots of slabs on the host, which have room for them, to that of slots.
    pub fn read(&mut self, slots: &[u32], state: &mut SlotState<'_>) -> Result<(), DeviceError> {
        if slots.is_empty() {
            return Ok(());
        }
        let words: usize = self.fields.iter().map(|field| field.words * slots.len()).sum();
        let at = self.work.room(self.device.as_mut(), 8 * words)?;
        let [slot] = self.upload([cast_slice(slots)])?;
        self.move_slots(slots.len(), slot, Packed::To(at))?;
        let mut packed = vec![0_u64; words];
        self.device.download(at, cast_slice_mut(&mut packed))?;
        unpack(&self.config, slots.len(), &packed, state);
        Ok(())
    }

    /// Brings rows of groups to the device, each group once, for the next run.
    pub fn stage(&mut self, groups: &[GroupRows<'_>]) -> Result<StagedBatch, DeviceError> {
        let rows = StagedRows::count(groups);
        let bytes = rows.bytes();
        let input = self.input.room(self.device.as_mut(), bytes)?;
        let args = rows.write(self.device.staging(bytes)?, input);
        self.device.upload(input, bytes)?;
        Ok(StagedBatch { args: FoldArgs { bid_e9: self.memory[0], ask_e9: self.memory[1], ..args } })
    }

    /// Runs rows that were staged last: the bars that they close, of all specifications, in any order. A bar's place counts
    /// the slots of all groups, its row all their rows.
    pub fn run(&mut self, batch: &StagedBatch) -> Result<Vec<DeviceClosedBar>, DeviceError> {
        let rows = batch.args;
        let (places, trades) = (rows.places as usize, rows.trades as usize);
        if places == 0 {
            return Ok(Vec::new());
        }
        let closed_max = self.closed_max(rows.slot, places, trades)?;
        let mut layout = Layout::default();
        let counters = layout.add::<Counters>(1);
        let closed = layout.add::<DeviceClosedBar>(closed_max);
        let first = layout.add::<u32>(places);
        let parts = layout.add::<DevicePart>(trades);
        let part_count = layout.add::<u32>(trades.div_ceil(RUN));
        let work = self.work.room(self.device.as_mut(), layout.bytes)?;
        self.device.clear(work + counters, size_of::<Counters>())?;

        for (spec, bar_spec) in self.config.bars.clone().into_iter().enumerate() {
            let of_spec = FoldArgs::new(bar_spec, self.config.allowed_lateness_ns);
            let args = FoldArgs {
                spec: spec as u64,
                kind: of_spec.kind,
                parameter: of_spec.parameter,
                open_max: of_spec.open_max,
                open: self.field(spec, OPEN),
                open_count: self.field(spec, OPEN_COUNT),
                parts: work + parts,
                part_count: work + part_count,
                closed_max: closed_max as u64,
                closed_count: work + counters,
                failed: work + counters + 4,
                first: work + first,
                closed: work + closed,
                ..rows
            };
            let bars = ClosedBarsArgs {
                places: places as u64,
                slot: rows.slot,
                first: args.first,
                bars: args.closed,
            };
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
            let signals = SignalArgs { bars, zones, ..SignalArgs::new(&self.config.signals) };
            self.launch(&FOLD_RUNS, &args, trades.div_ceil(RUN))?;
            self.launch(&CLOSE_BARS, &args, places)?;
            self.launch(&UPDATE_INDICATORS, &indicators, places)?;
            self.launch(&DETECT_SIGNALS, &signals, places)?;
        }
        self.launch(&FOLD_QUOTES, &rows, places)?;
        self.closed_bars(work + counters, work + closed, closed_max)
    }

    /// The bars that were closed. With their number come as many as there were last, and some more: mostly one copy is enough.
    fn closed_bars(
        &mut self,
        counters: Address,
        closed: Address,
        closed_max: usize,
    ) -> Result<Vec<DeviceClosedBar>, DeviceError> {
        let guess =
            (self.closed_before + self.closed_before / 4 + CLOSED_MORE).min(GUESS_MAX).min(closed_max);
        // The counters are before the bars, and take as much as the alignment.
        let mut bytes = vec![0_u8; ALIGNMENT + guess * size_of::<DeviceClosedBar>()];
        self.device.download(counters, &mut bytes)?;
        let (head, bars) = bytes.split_at(ALIGNMENT);
        let [count, failed]: Counters = pod_read_unaligned(&head[..size_of::<Counters>()]);
        if failed != 0 {
            return Err(DeviceError::Void { device: self.name.clone() });
        }
        let count = count as usize;
        let mut closed_bars: Vec<DeviceClosedBar> =
            bars.chunks_exact(size_of::<DeviceClosedBar>()).take(count).map(pod_read_unaligned).collect();
        if count > guess {
            closed_bars.resize(count, DeviceClosedBar::default());
            let rest = closed + (guess * size_of::<DeviceClosedBar>()) as Address;
            self.device.download(rest, cast_slice_mut(&mut closed_bars[guess..]))?;
        }
        self.closed_before = count;
        Ok(closed_bars)
    }

    /// Waits until everything before is done.
    pub fn wait(&mut self) -> Result<(), DeviceError> {
        self.device.download(self.memory[0], &mut [])
    }

    /// Bytes of the device's memory: of slots, of what is uploaded, of what kernels hand on.
    pub fn memory_bytes(&self) -> [usize; 3] {
        let slots = self.fields.iter().map(|field| field.bytes(self.capacity)).sum();
        [slots, self.input.bytes, self.work.bytes]
    }

    /// Most bars that so many trades can close, of all specifications.
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

    /// Open bars of slots, whose numbers are at an address.
    fn open_bars(&mut self, spec: usize, slot: Address, places: usize) -> Result<usize, DeviceError> {
        let number = QUOTE_FIELDS + SPEC_FIELDS * spec + OPEN_COUNT;
        let (field, memory) = (self.fields[number], self.memory[number]);
        let at = self.work.room(self.device.as_mut(), field.bytes(places))?;
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

    /// Copies arrays to the device, all at once, and gives their addresses.
    fn upload<const N: usize>(&mut self, arrays: [&[u8]; N]) -> Result<[Address; N], DeviceError> {
        let mut layout = Layout::default();
        let places = arrays.map(|array| layout.add::<u8>(array.len()));
        let input = self.input.room(self.device.as_mut(), layout.bytes)?;
        let staging = self.device.staging(layout.bytes)?;
        for (array, at) in arrays.into_iter().zip(places) {
            staging[at as usize..][..array.len()].copy_from_slice(array);
        }
        self.device.upload(input, layout.bytes)?;
        Ok(places.map(|at| input + at))
    }

    fn launch<A: Pod>(&mut self, kernel: &Kernel, args: &A, threads: usize) -> Result<(), DeviceError> {
        if threads == 0 {
            return Ok(());
        }
        self.device.launch(kernel, bytes_of(args), threads)
    }

    fn field(&self, spec: usize, field: usize) -> Address {
        self.memory[QUOTE_FIELDS + SPEC_FIELDS * spec + field]
    }

    fn allocate(&mut self, capacity: usize) -> Result<Vec<Address>, DeviceError> {
        self.fields.iter().map(|field| self.device.allocate(field.bytes(capacity))).collect()
    }

    fn grow(&mut self, capacity: usize) -> Result<(), DeviceError> {
        let larger = self.allocate(capacity)?;
        for (number, to) in larger.into_iter().enumerate() {
            let (field, from) = (self.fields[number], self.memory[number]);
            let args = MoveArgs {
                places: self.capacity as u64,
                words: field.words as u64,
                from: field.words(from, 0, self.capacity),
                to: field.words(to, 0, capacity),
            };
            self.launch(&MOVE_SLOTS, &args, self.capacity * field.words)?;
            self.memory[number] = to;
            self.device.free(from)?;
        }
        self.capacity = capacity;
        Ok(())
    }

    /// Sets the state of slots to that in which slots begin.
    fn clear(&mut self, slots: &[u32]) -> Result<(), DeviceError> {
        if slots.is_empty() {
            return Ok(());
        }
        let [slot] = self.upload([cast_slice(slots)])?;
        self.move_slots(slots.len(), slot, Packed::Zeros)
    }

    /// Moves all fields of so many slots, whose numbers are at an address.
    fn move_slots(&mut self, count: usize, slots: Address, packed: Packed) -> Result<(), DeviceError> {
        let mut packed_before = 0;
        for (field, &memory) in self.fields.clone().iter().zip(&self.memory.clone()) {
            let of_slab = field.words(memory, slots, self.capacity);
            let of_packed = |at: Address| field.words(at + packed_before, 0, count);
            let (from, to) = match packed {
                Packed::Zeros => (Words::default(), of_slab),
                Packed::From(at) => (of_packed(at), of_slab),
                Packed::To(at) => (of_slab, of_packed(at)),
            };
            let args = MoveArgs { places: count as u64, words: field.words as u64, from, to };
            self.launch(&MOVE_SLOTS, &args, count * field.words)?;
            packed_before += field.bytes(count) as u64;
        }
        Ok(())
    }
}

/// The other end when slots are moved: words of all their fields, one behind the other.
#[derive(Clone, Copy)]
enum Packed {
    Zeros,
    From(Address),
    To(Address),
}

impl Drop for DeviceSlab {
    fn drop(&mut self) {
        let buffers = [&self.input, &self.work].into_iter().filter(|buffer| buffer.bytes > 0);
        for address in self.memory.iter().copied().chain(buffers.map(|buffer| buffer.address)) {
            // A device that has failed has lost its memory with everything else.
            drop(self.device.free(address));
        }
    }
}
