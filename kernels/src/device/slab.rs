//! State of slots that stays in a device's memory.

use bytemuck::{Pod, bytes_of, cast_slice, cast_slice_mut};

use super::slots::{Field, MoveArgs, SPEC_FIELDS, SlotState, Words, fields, pack, unpack};
use super::staged::padded;
use super::{Address, Device, DeviceError, Kernel, MOVE_SLOTS};
use crate::bars::BarSpec;
use crate::indicators::IndicatorParams;
use crate::indicators::device::IndicatorConstants;
use crate::signals::SignalParams;

/// The configuration that determines the layout and meaning of the state of slots.
#[derive(Clone, Debug)]
pub struct SlabConfig {
    /// Bar specifications.
    pub bars: Vec<BarSpec>,
    /// Allowed lateness of event times, in nanoseconds.
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

/// State of slots in a device's memory.
pub struct DeviceSlab {
    pub(super) name: String,
    pub(super) device: Box<dyn Device>,
    pub(super) config: SlabConfig,
    pub(super) constants: IndicatorConstants,
    pub(super) fields: Vec<Field>,
    /// Addresses of the fields' memory, with room for `capacity` slots.
    pub(super) memory: Vec<Address>,
    pub(super) capacity: usize,
    /// Number of slots that were ever taken; the memory of all others is zero.
    pub(super) used: usize,
    /// Slots that were given back; their memory contains old values.
    pub(super) free: Vec<u32>,
    /// Number of bars that the last batch closed.
    pub(super) closed_before: usize,
    /// Memory for uploads: two parts, used alternately.
    pub(super) input: Turns,
    /// Memory for data that kernels pass to each other and to the host: that of a batch, and of the previous one.
    pub(super) work: Turns,
    /// Memory for all other downloads.
    pub(super) scratch: Buffer,
}

/// Memory that grows.
#[derive(Default)]
pub(super) struct Buffer {
    address: Address,
    bytes: usize,
}

impl Buffer {
    /// Memory of this many bytes, whose content is undefined.
    pub(super) fn room(&mut self, device: &mut dyn Device, bytes: usize) -> Result<Address, DeviceError> {
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

/// Memory that is used alternately, so that the next use need not wait for the previous one.
#[derive(Default)]
pub(super) struct Turns {
    buffers: [Buffer; 2],
    turn: usize,
}

impl Turns {
    /// Memory of this many bytes, other than the part that was returned last.
    pub(super) fn next(&mut self, device: &mut dyn Device, bytes: usize) -> Result<Address, DeviceError> {
        self.turn = 1 - self.turn;
        self.buffers[self.turn].room(device, bytes)
    }

    fn bytes(&self) -> usize {
        self.buffers.iter().map(|buffer| buffer.bytes).sum()
    }
}

/// The layout of consecutive arrays.
#[derive(Default)]
pub(super) struct Layout {
    pub(super) bytes: usize,
}

impl Layout {
    /// Adds an array, and returns its distance from the beginning in bytes.
    pub(super) fn add<T>(&mut self, count: usize) -> u64 {
        let at = self.bytes;
        self.bytes += padded::<T>(count);
        at as u64
    }
}

impl DeviceSlab {
    /// A slab without slots, with memory for some.
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
            constants: IndicatorConstants::new(&config.indicators, &config.signals),
            config,
            memory: Vec::new(),
            capacity,
            used: 0,
            free: Vec::new(),
            closed_before: 0,
            input: Turns::default(),
            work: Turns::default(),
            scratch: Buffer::default(),
        };
        slab.memory = slab.allocate(capacity)?;
        Ok(slab)
    }

    /// Takes slots in the initial state.
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

    /// Copies the state of the first slots of host slabs to slots of the device.
    pub fn install(&mut self, slots: &[u32], state: &SlotState<'_>) -> Result<(), DeviceError> {
        if slots.is_empty() {
            return Ok(());
        }
        let packed = pack(&self.config, slots.len(), state);
        let [at, slot] = self.upload([cast_slice(&packed), cast_slice(slots)])?;
        self.move_slots(slots.len(), slot, Packed::From(at))
    }

    /// Copies the state of slots to the first slots of host slabs, which must have room for them.
    pub fn read(&mut self, slots: &[u32], state: &mut SlotState<'_>) -> Result<(), DeviceError> {
        if slots.is_empty() {
            return Ok(());
        }
        let words: usize = self.fields.iter().map(|field| field.words * slots.len()).sum();
        let at = self.scratch.room(self.device.as_mut(), 8 * words)?;
        let [slot] = self.upload([cast_slice(slots)])?;
        self.move_slots(slots.len(), slot, Packed::To(at))?;
        let mut packed = vec![0_u64; words];
        self.device.download(at, cast_slice_mut(&mut packed))?;
        unpack(&self.config, slots.len(), &packed, state);
        Ok(())
    }

    /// Waits until all earlier calls are done.
    pub fn wait(&mut self) -> Result<(), DeviceError> {
        self.device.download(self.memory[0], &mut [])
    }

    /// Bytes of the device's memory for slots, for uploads, and for data passed between kernels.
    pub fn memory_bytes(&self) -> [usize; 3] {
        let slots = self.fields.iter().map(|field| field.bytes(self.capacity)).sum();
        [slots, self.input.bytes(), self.work.bytes() + self.scratch.bytes]
    }

    /// Copies arrays to the device in one upload, and returns their addresses.
    fn upload<const N: usize>(&mut self, arrays: [&[u8]; N]) -> Result<[Address; N], DeviceError> {
        let mut layout = Layout::default();
        let places = arrays.map(|array| layout.add::<u8>(array.len()));
        let input = self.input.next(self.device.as_mut(), layout.bytes)?;
        let staging = self.device.staging(layout.bytes)?;
        for (array, at) in arrays.into_iter().zip(places) {
            staging[at as usize..][..array.len()].copy_from_slice(array);
        }
        self.device.upload(input, layout.bytes)?;
        Ok(places.map(|at| input + at))
    }

    pub(super) fn launch<A: Pod>(
        &mut self,
        kernel: &Kernel,
        args: &A,
        threads: usize,
    ) -> Result<(), DeviceError> {
        if threads == 0 {
            return Ok(());
        }
        self.device.launch(kernel, bytes_of(args), threads)
    }

    pub(super) fn field(&self, spec: usize, field: usize) -> Address {
        self.memory[SPEC_FIELDS * spec + field]
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

    /// Sets the state of slots to the initial one.
    fn clear(&mut self, slots: &[u32]) -> Result<(), DeviceError> {
        if slots.is_empty() {
            return Ok(());
        }
        let [slot] = self.upload([cast_slice(slots)])?;
        self.move_slots(slots.len(), slot, Packed::Zeros)
    }

    /// Moves all fields of `count` slots, whose numbers are stored at an address.
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

/// Packed memory from or to which the state of slots is moved: the words of all fields, one field after the other.
#[derive(Clone, Copy)]
enum Packed {
    Zeros,
    From(Address),
    To(Address),
}

impl Drop for DeviceSlab {
    fn drop(&mut self) {
        let buffers = self
            .input
            .buffers
            .iter()
            .chain(&self.work.buffers)
            .chain([&self.scratch])
            .filter(|buffer| buffer.bytes > 0);
        for address in self.memory.iter().copied().chain(buffers.map(|buffer| buffer.address)) {
            // A failed device has already lost all of its memory.
            drop(self.device.free(address));
        }
    }
}
