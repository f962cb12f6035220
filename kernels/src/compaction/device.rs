//! Arguments of the kernels that sort closed bars.

use bytemuck::{Pod, Zeroable};

/// Number of places in a tile.
pub const TILE: usize = 32;

/// Number of threads that copy one bar.
pub const GATHER_THREADS: usize = 16;

/// Arguments of the kernels of `compaction.cu`: its `CompactionArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[expect(missing_docs, reason = "compaction.cu says what each one is")]
pub struct CompactionArgs {
    pub places: u64,
    pub by_place: u64,
    pub by_tile: u64,
    pub closed_count: u64,
    pub closed_max: u64,
    pub closed: u64,
    pub ordered: u64,
}
