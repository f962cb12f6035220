//! Costs of launches and copies on a GPU, whatever the kernel. They are measured for design decisions; the program does
//! not use them.

use warptape_kernels::device::{COMPILER_OPTIONS, DeviceError, FOLD_QUOTES, FoldArgs};

use crate::compiler::Program;
use crate::devices::{CudaDevices, Opened};
use crate::raw::{DriverResult, Function, TIMING_VERSION_MIN, describe};
use crate::score::{SOURCE, SOURCE_NAME};

/// Number of successive launches: kernels of a batch with two bar specifications.
const SEQUENCE: usize = 12;
/// Repetitions of a sequence; the first one is a warm-up.
const REPETITIONS: usize = 100;
/// Threads of a block.
const BLOCK_THREADS: u32 = 128;
/// Bytes of a copy that runs concurrently with kernels.
const COPY_BYTES: usize = 32 << 20;
/// Multiply-adds of each thread of a kernel that runs concurrently with a copy. Below: blocks of that kernel.
const ROUNDS: u64 = 2048;
const BLOCKS: u32 = 1024;

/// The measured figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchFigures {
    /// Time from the end of an empty kernel to the end of the next one, in microseconds.
    pub gap_us: f64,
    /// Time of a sequence of 12 such launches, in microseconds.
    pub sequence_us: f64,
    /// Time of the same sequence, recorded as a CUDA graph.
    pub graph_us: f64,
    /// Time saved by running an upload and kernels concurrently, as a share of the shorter of the two times.
    pub overlap: f64,
}

impl CudaDevices {
    /// Measures a GPU, which takes milliseconds.
    pub fn launch_figures(&self, name: &str, ordinal: u32) -> Result<LaunchFigures, DeviceError> {
        let opened = self.open_gpu(name, ordinal)?;
        if opened.driver_version < TIMING_VERSION_MIN {
            let reason = "its driver supports no CUDA 12.8, which times kernels".to_owned();
            return Err(DeviceError::Unavailable { device: name.to_owned(), reason });
        }
        let load = |program: &Program<'_>, function| {
            let functions = self.load(name, &opened, program, &[function])?;
            Ok(functions.into_iter().next().expect("as many as were asked for"))
        };
        let text = FOLD_QUOTES.program();
        let program = Program { name: FOLD_QUOTES.source.name, text: &text, options: &COMPILER_OPTIONS };
        let nothing = load(&program, FOLD_QUOTES.function)?;
        let options = &["--std=c++17"];
        let work = load(&Program { name: SOURCE_NAME, text: SOURCE, options }, "measure")?;
        measure(&opened, &nothing, &work).map_err(|error| DeviceError::Failed {
            device: name.to_owned(),
            call: "measuring launches",
            reason: describe(error),
        })
    }
}

fn measure(opened: &Opened, nothing: &Function, work: &Function) -> DriverResult<LaunchFigures> {
    let session = &opened.session;
    // Without places, every thread ends at once.
    let args = vec![0_u8; size_of::<FoldArgs>()];
    let sequence = || (0..SEQUENCE).try_for_each(|_| session.launch(nothing, 1, BLOCK_THREADS, &args));
    let sequence_us = 1e3 * mean_ms(opened, &sequence)?;
    let graph = session.record(sequence)?;
    let graph_us = 1e3 * mean_ms(opened, &|| session.launch_graph(&graph))?;

    let mut pinned = session.pin(COPY_BYTES)?;
    let buffer = session.allocate(COPY_BYTES)?;
    let args = [0_u64.to_le_bytes(), ROUNDS.to_le_bytes()].concat();
    let kernel = || session.launch(work, BLOCKS, BLOCK_THREADS, &args);
    let kernel_ms = mean_ms(opened, &kernel)?;
    let mut time_ms = |beside: usize| -> DriverResult<f64> {
        let mut best_ms = f64::INFINITY;
        for _ in 0..REPETITIONS / 10 {
            session.synchronize()?;
            session.settle()?;
            let begin = session.moment()?;
            (0..beside).try_for_each(|_| kernel())?;
            session.upload(buffer, &mut pinned, COPY_BYTES)?;
            let end = session.moment()?;
            session.synchronize()?;
            pinned.wait()?;
            best_ms = best_ms.min(begin.ms_until(&end)?);
        }
        Ok(best_ms)
    };
    let copy_ms = time_ms(0)?;
    let kernels = (copy_ms / kernel_ms).ceil().clamp(1.0, 1e4) as usize;
    let both_ms = time_ms(kernels)?;
    session.free(buffer)?;
    let kernels_ms = kernels as f64 * kernel_ms;
    let overlap = (copy_ms + kernels_ms - both_ms) / copy_ms.min(kernels_ms);
    Ok(LaunchFigures { gap_us: sequence_us / SEQUENCE as f64, sequence_us, graph_us, overlap })
}

/// Mean time of work that is repeated without pauses, by the GPU's clock.
fn mean_ms(opened: &Opened, work: &impl Fn() -> DriverResult<()>) -> DriverResult<f64> {
    let session = &opened.session;
    work()?;
    session.synchronize()?;
    let begin = session.moment()?;
    (0..REPETITIONS).try_for_each(|_| work())?;
    let end = session.moment()?;
    session.synchronize()?;
    Ok(begin.ms_until(&end)? / REPETITIONS as f64)
}
