//! Which instructions a hot loop may use: the only `unsafe` of this crate, and nothing about what the loops compute.

/// Instruction set that hot loops are compiled for. Results have the same bits for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// What every x86-64 (or any other) processor has.
    Baseline,
    /// x86-64 with AVX2 and FMA. Where the processor has them not, the baseline runs in its place.
    Avx2Fma,
}

/// A hot loop. `run` must be `#[inline(always)]`, all the way down: what is not inlined is compiled for the baseline.
pub(crate) trait Work {
    fn run(self);
}

impl Isa {
    /// The fastest one that this processor has.
    pub fn detect() -> Self {
        if has_avx2_fma() { Self::Avx2Fma } else { Self::Baseline }
    }

    /// Runs a hot loop.
    #[inline]
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(crate) fn run<W: Work>(self, work: W) {
        #[cfg(target_arch = "x86_64")]
        if self == Self::Avx2Fma && has_avx2_fma() {
            // SAFETY: the processor has AVX2 and FMA, as just asked (the answer is cached: one load).
            unsafe { run_avx2_fma(work) };
            return;
        }
        run_baseline(work);
    }
}

#[inline(never)]
fn run_baseline<W: Work>(work: W) {
    work.run();
}

#[cfg(target_arch = "x86_64")]
fn has_avx2_fma() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2_fma() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2_fma<W: Work>(work: W) {
    work.run();
}
