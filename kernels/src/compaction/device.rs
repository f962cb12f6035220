//! What the kernels that put bars in order are given.

use bytemuck::{Pod, Zeroable};

/// Places of a tile.
pub const TILE: usize = 32;

/// Threads that copy a bar.
pub const GATHER_THREADS: usize = 16;

/// As `CompactionArgs` of `compaction.cu`.
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
