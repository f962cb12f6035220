//! The speed of a GPU as one number.

use std::time::{Duration, Instant};

use warptape_kernels::device::DeviceError;

use crate::cache::name_of;
use crate::compiler::Program;
use crate::devices::{CudaDevices, Opened};
use crate::inventory::Gpu;
use crate::raw::{DriverResult, describe};

/// The measured speeds of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Rate of copies within its memory, 10⁹ bytes per second; each byte is read and written.
    pub copy_gb_s: f64,
    /// Rate of additions and multiplications of `f64`, 10⁹ per second.
    pub f64_gflop_s: f64,
}

/// Greatest score, which equals the greatest weight of a lane.
const SCORE_MAX: f64 = 1_000_000.0;

impl Score {
    /// `round(100 · √(copy GB/s / 1000 · f64 GFLOP/s / 1000))`, from 1 to 1,000,000. Kernels move columns and compute
    /// in `f64`, so the score is the geometric mean of both speeds: neither is enough by itself.
    pub fn value(&self) -> i32 {
        let mean = (self.copy_gb_s / 1000.0 * (self.f64_gflop_s / 1000.0)).sqrt();
        (100.0 * mean).round().clamp(1.0, SCORE_MAX) as i32
    }

    fn to_bytes(self) -> Vec<u8> {
        [self.copy_gb_s.to_le_bytes(), self.f64_gflop_s.to_le_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Score> {
        let (copy, f64s) = bytes.split_first_chunk::<8>()?;
        let score = Score {
            copy_gb_s: f64::from_le_bytes(*copy),
            f64_gflop_s: f64::from_le_bytes(*f64s.first_chunk()?),
        };
        (score.copy_gb_s.is_finite() && score.f64_gflop_s.is_finite()).then_some(score)
    }
}

pub(crate) const SOURCE_NAME: &str = "score.cu";
pub(crate) const SOURCE: &str = include_str!("score.cu");
/// Chains of multiply-adds of a thread, as in `score.cu`.
const CHAINS: u64 = 8;
/// Multiply-adds of each chain.
const CHAIN_LENGTH: u64 = 2048;
const BLOCK_THREADS: u32 = 256;
/// Blocks per multiprocessor: enough to occupy all of its threads.
const MULTIPROCESSOR_BLOCKS: u32 = 8;
/// Greatest size of the buffer in bytes; one half of it is copied to the other.
const BUFFER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Copies per measurement, so that the start of one does not matter.
const COPIES: usize = 8;
/// Repetitions after a warm-up; the best one counts.
const REPETITIONS: usize = 3;

impl CudaDevices {
    /// Measures a GPU, which takes milliseconds and a little memory. The result is cached with the kernels, by the
    /// GPU's UUID and the driver's version.
    pub fn score(&self, gpu: &Gpu) -> Result<Score, DeviceError> {
        let name = format!("cuda:{}", gpu.ordinal);
        let driver = gpu.driver_version.as_deref().unwrap_or_default();
        let file = name_of("score", &[&gpu.uuid, driver, SOURCE]);
        let mut measured = None;
        let kept = self.cache.get(&file, || {
            let score = self.measure(&name, gpu)?;
            measured = Some(score);
            Ok(score.to_bytes())
        })?;
        match measured.or_else(|| Score::from_bytes(&kept)) {
            Some(score) => Ok(score),
            None => self.measure(&name, gpu),
        }
    }

    fn measure(&self, name: &str, gpu: &Gpu) -> Result<Score, DeviceError> {
        let opened = self.open_gpu(name, gpu.ordinal)?;
        let failed = |call| {
            move |error| DeviceError::Failed { device: name.to_owned(), call, reason: describe(error) }
        };
        let copy_gb_s = copy_gb_s(&opened).map_err(failed("measuring copies"))?;
        let program = Program { name: SOURCE_NAME, text: SOURCE, options: &["--std=c++17"] };
        let functions = self.load(name, &opened, &program, &["measure"])?;
        let args = [0_u64.to_le_bytes(), CHAIN_LENGTH.to_le_bytes()].concat();
        let blocks = gpu.multiprocessors.max(1) * MULTIPROCESSOR_BLOCKS;
        let best = fastest(&opened, || opened.session.launch(&functions[0], blocks, BLOCK_THREADS, &args))
            .map_err(failed("measuring f64"))?;
        let operations = 2 * CHAINS * CHAIN_LENGTH * u64::from(blocks) * u64::from(BLOCK_THREADS);
        Ok(Score { copy_gb_s, f64_gflop_s: rate(operations as f64, best) })
    }
}

fn copy_gb_s(opened: &Opened) -> DriverResult<f64> {
    let session = &opened.session;
    let half = (session.memory_free_bytes()? / 8).min(BUFFER_BYTES_MAX) / 2;
    let buffer = session.allocate(half * 2)?;
    let best =
        fastest(opened, || (0..COPIES).try_for_each(|_| session.copy(buffer, buffer + half as u64, half)));
    session.free(buffer)?;
    Ok(rate((COPIES * half) as f64, best?))
}

/// Time of the fastest of a few repetitions.
fn fastest(opened: &Opened, work: impl Fn() -> DriverResult<()>) -> DriverResult<Duration> {
    let mut best = Duration::MAX;
    for repetition in 0..=REPETITIONS {
        opened.session.synchronize()?;
        let start = Instant::now();
        work()?;
        opened.session.synchronize()?;
        if repetition > 0 {
            best = best.min(start.elapsed());
        }
    }
    Ok(best)
}

/// Rate in 10⁹ per second.
fn rate(count: f64, time: Duration) -> f64 {
    count / time.as_secs_f64().max(1e-9) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores() {
        let check = |copy_gb_s, f64_gflop_s, expected| {
            assert_eq!(Score { copy_gb_s, f64_gflop_s }.value(), expected);
        };
        check(1000.0, 1000.0, 100);
        check(2000.0, 34_000.0, 825);
        check(120.0, 250.0, 17);
        check(0.0, 1000.0, 1);
        check(1e12, 1e12, 1_000_000);
    }

    #[test]
    fn what_is_kept_is_read_back() {
        let score = Score { copy_gb_s: 0.1, f64_gflop_s: 12_345.678 };
        assert_eq!(Score::from_bytes(&score.to_bytes()), Some(score));
        assert_eq!(Score::from_bytes(&score.to_bytes()[..15]), None);
        assert_eq!(Score::from_bytes(&[0xff; 16]), None);
    }
}
