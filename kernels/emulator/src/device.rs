//! A device in the host's memory.

use std::collections::VecDeque;
use std::ffi::{CStr, c_int, c_uint};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use warptape_kernels::device::{Address, DOWNLOADS_MAX, Device, DeviceError, Kernel};

use crate::{Compiled, Program};

/// Possible numbers of threads in a block.
const BLOCKS: [usize; 3] = [32, 128, 64];
/// Number of orders in `emulator.h`.
const ORDERS: usize = 4;

/// A device in the host's memory, whose kernels are loops over their threads. The value is one stream of the device.
pub struct EmulatedDevice {
    programs: Vec<Arc<Program>>,
    /// True if a kernel has an artificial fault.
    is_faulty: bool,
    memory: Vec<Allocation>,
    memory_max: usize,
    /// Bytes allocated by all streams of the device. Below: those of this stream.
    used: Arc<AtomicUsize>,
    staging: Vec<u128>,
    launches: usize,
    uploads: usize,
    /// Postponed calls from before the last upload. Below: from after it.
    before_upload: Vec<Asked>,
    asked: Vec<Asked>,
    /// Results of downloads under way.
    downloads: VecDeque<Vec<u8>>,
    ended: Vec<u8>,
}

/// Words before and after an allocation, so that writes of a faulty kernel there do not damage other memory of the
/// process.
const ROOM: usize = 4_096;
/// Words after an allocation for kernels with an artificial fault, which write farther. Most of them are never
/// accessed, so the system allocates no pages for them.
const ROOM_FOR_FAULTS: usize = 4 << 20;
/// Number of these words next to an allocation that have a pattern.
const FENCE: usize = 32;
const PATTERN: u128 = u128::from_le_bytes(*b"no kernel writes");

/// Allocated memory between words that kernels must not write.
struct Allocation {
    words: Vec<u128>,
    bytes: usize,
}

impl Allocation {
    fn new(bytes: usize, room_behind: usize) -> Self {
        let within = words_of(bytes);
        let mut words = vec![0; ROOM + within + room_behind];
        words[ROOM - FENCE..ROOM].fill(PATTERN);
        words[ROOM + within..][..FENCE].fill(PATTERN);
        Self { words, bytes }
    }

    fn address(&self) -> Address {
        address_of(&self.words[ROOM..])
    }

    /// True if the words around the memory, and the unused bytes of its last word, are unchanged.
    fn is_fenced(&self) -> bool {
        let within = words_of(self.bytes);
        let is_pattern = |words: &[u128]| words.iter().all(|word| *word == PATTERN);
        let last = self.words[ROOM + within - 1].to_le_bytes();
        let beyond = self.bytes - 16 * (within - 1);
        is_pattern(&self.words[ROOM - FENCE..ROOM])
            && is_pattern(&self.words[ROOM + within..][..FENCE])
            && last[beyond..].iter().all(|byte| *byte == 0)
    }
}

fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(16).max(1)
}

/// A postponed call.
enum Asked {
    Launch { compiled: Compiled, args: Vec<u128>, form: [usize; 2], threads: usize },
    Clear { address: Address, bytes: usize },
    Download { from: Address, bytes: usize },
}

/// Zeroed memory for `bytes` bytes, with an alignment that suits any type.
fn zeros(bytes: usize) -> Vec<u128> {
    vec![0; words_of(bytes)]
}

fn bytes_of(memory: &mut [u128]) -> &mut [u8] {
    // SAFETY: all bit patterns are valid bytes, and the lifetime is that of the borrow.
    unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), size_of_val(memory)) }
}

fn address_of(memory: &[u128]) -> Address {
    memory.as_ptr().expose_provenance() as Address
}

impl EmulatedDevice {
    pub(crate) fn new(programs: Vec<Arc<Program>>, is_faulty: bool, memory_max: usize) -> Self {
        Self {
            programs,
            is_faulty,
            memory: Vec::new(),
            memory_max,
            used: Arc::default(),
            staging: Vec::new(),
            launches: 0,
            uploads: 0,
            before_upload: Vec::new(),
            asked: Vec::new(),
            downloads: VecDeque::new(),
            ended: Vec::new(),
        }
    }

    /// Runs all postponed calls.
    fn catch_up(&mut self) {
        let asked = self.before_upload.drain(..).chain(self.asked.drain(..));
        asked.collect::<Vec<Asked>>().into_iter().for_each(|asked| self.carry_out(asked));
    }

    fn carry_out(&mut self, asked: Asked) {
        match asked {
            Asked::Launch { compiled, args, form, threads } => {
                run(&compiled, &args, form, threads);
                let function = compiled.kernel.function;
                let is_fenced = self.memory.iter().all(Allocation::is_fenced);
                assert!(is_fenced, "{function} wrote beyond the memory that it was given");
            }
            Asked::Clear { address, bytes } => self.bytes(address, bytes).fill(0),
            Asked::Download { from, bytes } => {
                let found = self.bytes(from, bytes).to_vec();
                self.downloads.push_back(found);
            }
        }
    }

    /// Some bytes of an allocation.
    fn bytes(&mut self, address: Address, bytes: usize) -> &mut [u8] {
        let holds = |allocated: &&mut Allocation| {
            let first = allocated.address();
            address >= first && address + bytes as u64 <= first + allocated.bytes as u64
        };
        let allocated =
            self.memory.iter_mut().find(holds).expect("an address that was allocated, and no more");
        let from = (address - allocated.address()) as usize;
        &mut bytes_of(&mut allocated.words[ROOM..])[from..from + bytes]
    }
}

impl Device for EmulatedDevice {
    fn allocate(&mut self, bytes: usize) -> Result<Address, DeviceError> {
        self.catch_up();
        let used = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.memory_max);
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, used).is_err() {
            return Err(DeviceError::OutOfMemory { device: "emulator".to_owned(), wanted_bytes: bytes });
        }
        let allocated = Allocation::new(bytes, if self.is_faulty { ROOM_FOR_FAULTS } else { ROOM });
        let address = allocated.address();
        self.memory.push(allocated);
        Ok(address)
    }

    fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        self.catch_up();
        let at = self.memory.iter().position(|allocated| allocated.address() == address);
        let allocated = self.memory.swap_remove(at.expect("an address that was allocated"));
        self.used.fetch_sub(allocated.bytes, Ordering::Relaxed);
        Ok(())
    }

    fn staging(&mut self, bytes: usize) -> Result<&mut [u8], DeviceError> {
        self.staging = zeros(bytes);
        self.staging.fill(0xa5a5 << 64);
        Ok(&mut bytes_of(&mut self.staging)[..bytes])
    }

    fn upload(&mut self, to: Address, bytes: usize) -> Result<(), DeviceError> {
        std::mem::take(&mut self.before_upload).into_iter().for_each(|asked| self.carry_out(asked));
        let mut staging = std::mem::take(&mut self.staging);
        self.bytes(to, bytes).copy_from_slice(&bytes_of(&mut staging)[..bytes]);
        self.staging = staging;
        self.before_upload = std::mem::take(&mut self.asked);
        // In some cases no call is delayed.
        self.uploads += 1;
        if mixed(self.uploads).is_multiple_of(3) {
            self.catch_up();
        }
        Ok(())
    }

    fn download(&mut self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.catch_up();
        bytes.copy_from_slice(self.bytes(from, bytes.len()));
        Ok(())
    }

    fn begin_download(&mut self, from: Address, bytes: usize) -> Result<(), DeviceError> {
        let waits = |asked: &&Asked| matches!(asked, Asked::Download { .. });
        let under_way = self.before_upload.iter().chain(&self.asked).filter(waits).count();
        assert!(under_way + self.downloads.len() < DOWNLOADS_MAX, "no more downloads are under way at once");
        self.asked.push(Asked::Download { from, bytes });
        Ok(())
    }

    fn end_download(&mut self) -> Result<&[u8], DeviceError> {
        if self.downloads.is_empty() {
            self.catch_up();
        }
        self.ended = self.downloads.pop_front().expect("a download that ends was begun");
        Ok(&self.ended)
    }

    fn download_ended(&mut self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        bytes.copy_from_slice(self.bytes(from, bytes.len()));
        Ok(())
    }

    fn clear(&mut self, address: Address, bytes: usize) -> Result<(), DeviceError> {
        self.asked.push(Asked::Clear { address, bytes });
        Ok(())
    }

    fn launch(&mut self, kernel: &Kernel, args: &[u8], threads: usize) -> Result<(), DeviceError> {
        let mut compiled = self.programs.iter().flat_map(|program| &program.kernels);
        let compiled =
            *compiled.find(|compiled| compiled.kernel.function == kernel.function).expect("all are compiled");
        // SAFETY: the function takes no arguments and returns a number.
        let args_bytes = unsafe { (compiled.args_bytes)() };
        let function = kernel.function;
        assert_eq!(args_bytes, args.len() as u64, "both sides lay out the arguments of {function} alike");
        // The buffer is sufficiently aligned for the struct.
        let mut aligned = zeros(args.len());
        bytes_of(&mut aligned)[..args.len()].copy_from_slice(args);
        let form = form(self.launches);
        self.launches += 1;
        self.asked.push(Asked::Launch { compiled, args: aligned, form, threads });
        Ok(())
    }

    fn background(&mut self) -> Result<Box<dyn Device>, DeviceError> {
        let mut background = Self::new(self.programs.clone(), self.is_faulty, self.memory_max);
        background.used = self.used.clone();
        Ok(Box::new(background))
    }
}

impl Drop for EmulatedDevice {
    fn drop(&mut self) {
        let bytes: usize = self.memory.iter().map(|allocated| allocated.bytes).sum();
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

fn run(compiled: &Compiled, args: &[u128], [block, order]: [usize; 2], threads: usize) {
    let blocks = threads.div_ceil(block) as c_uint;
    // SAFETY: it is the function of `emulator.h`; the arguments are those of the kernel, and refer to memory of the
    // device.
    let failure = unsafe {
        CStr::from_ptr((compiled.launch)(args.as_ptr().cast(), blocks, block as c_uint, order as c_int))
    };
    // On a GPU, the kernel would hang or have undefined behaviour.
    assert!(failure.is_empty(), "{}: {}", compiled.kernel.function, failure.to_string_lossy());
}

/// A pseudorandom number for a counter.
fn mixed(count: usize) -> usize {
    ((count as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

/// Size of blocks, and order, for the launch with this number; they do not repeat in step with repeated launches.
fn form(launch: usize) -> [usize; 2] {
    let form = mixed(launch) % (BLOCKS.len() * ORDERS);
    [BLOCKS[form / ORDERS], form % ORDERS]
}
