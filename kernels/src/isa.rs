//! The instruction sets for which hot loops are compiled, and prefetches of memory to be written. This is the only
//! `unsafe` of the crate; it does not know what the loops compute.

/// Instruction set for which hot loops are compiled. Results have the same bits for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// The instructions of every x86-64 processor, or of any other processor.
    Baseline,
    /// x86-64 with AVX2 and FMA.
    Avx2Fma(Present),
    /// x86-64 with AVX-512 (F, BW, DQ, VL) as well.
    Avx512(Present),
}

/// Proof that this processor has the named instructions; only [`Isa::supported`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Present(());

/// A hot loop. `run` and everything that it calls, closures included, must be `#[inline(always)]`: code that is not
/// inlined is compiled for the baseline.
pub(crate) trait HotLoop {
    fn run(self);
}

impl Isa {
    /// The instruction sets that this processor has, the fastest last.
    pub fn supported() -> impl Iterator<Item = Self> {
        let avx2_fma = has_avx2_fma().then_some(Self::Avx2Fma(Present(())));
        let avx512 = has_avx512().then_some(Self::Avx512(Present(())));
        [Some(Self::Baseline), avx2_fma, avx512].into_iter().flatten()
    }

    /// Name of the instruction set in configurations of lanes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Avx2Fma(_) => "avx2",
            Self::Avx512(_) => "avx512",
        }
    }

    /// The fastest instruction set of this processor.
    pub fn detect() -> Self {
        Self::supported().last().unwrap_or(Self::Baseline)
    }

    /// The fastest instruction set up to AVX2, for loops over four numbers side by side, which fill its registers. A
    /// processor with AVX-512 has AVX2 too.
    pub(crate) fn of_four(self) -> Self {
        match self {
            Self::Avx512(present) => Self::Avx2Fma(present),
            Self::Baseline | Self::Avx2Fma(_) => self,
        }
    }

    /// Runs a hot loop.
    #[inline]
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(crate) fn run<W: HotLoop>(self, work: W) {
        match self {
            Self::Baseline => run_baseline(work),
            // SAFETY: the value was made by `supported`, which has found AVX2 and FMA.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Fma(Present(())) => unsafe { run_avx2_fma(work) },
            // SAFETY: the value was made by `supported`, which has found AVX-512.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(Present(())) => unsafe { run_avx512(work) },
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2Fma(_) | Self::Avx512(_) => run_baseline(work),
        }
    }
}

#[inline(never)]
fn run_baseline<W: HotLoop>(work: W) {
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
fn run_avx2_fma<W: HotLoop>(work: W) {
    work.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn run_avx512<W: HotLoop>(work: W) {
    work.run();
}

/// Prefetches the cache lines after the end of a column, into which the next numbers will be written. This is a hint,
/// which only affects time.
#[inline(always)]
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(crate) fn prefetch_behind(column: &[f64], count: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        const LINE_BYTES: usize = 64;
        for number in (0..count).step_by(LINE_BYTES / size_of::<f64>()) {
            let at = column.as_ptr().wrapping_add(column.len() + number);
            // SAFETY: a hint neither reads nor writes, whatever the address is.
            unsafe { _mm_prefetch::<_MM_HINT_ET0>(at.cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (column, count);
}
