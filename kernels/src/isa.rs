//! Which instructions a hot loop may use: the only `unsafe` of this crate, and nothing about what the loops compute.

/// Instruction set that hot loops are compiled for. Results have the same bits for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// What every x86-64 (or any other) processor has.
    Baseline,
    /// x86-64 with AVX2 and FMA. Where the processor has them not, the baseline runs in its place.
    Avx2Fma,
    /// x86-64 with AVX-512 (F, BW, DQ, VL) too. Where the processor has it not, the next best runs in its place.
    Avx512,
}

/// A hot loop. `run` must be `#[inline(always)]`, all the way down: what is not inlined is compiled for the baseline.
pub(crate) trait Work {
    fn run(self);
}

impl Isa {
    /// The fastest one that this processor has.
    pub fn detect() -> Self {
        if has_avx512() {
            Self::Avx512
        } else if has_avx2_fma() {
            Self::Avx2Fma
        } else {
            Self::Baseline
        }
    }

    /// Runs a hot loop.
    #[inline]
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(crate) fn run<W: Work>(self, work: W) {
        #[cfg(target_arch = "x86_64")]
        if self == Self::Avx512 && has_avx512() {
            // SAFETY: the processor has AVX-512, as just asked.
            unsafe { run_avx512(work) };
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if self != Self::Baseline && has_avx2_fma() {
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

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    has_avx2_fma()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2_fma() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2_fma<W: Work>(work: W) {
    work.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn run_avx512<W: Work>(work: W) {
    work.run();
}
