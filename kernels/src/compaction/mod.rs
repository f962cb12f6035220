//! Order of closed bars: by place, then by specification, then in the order of closing.
//!
//! Many threads close bars at once, and each takes the next entry of one list, so that the list's order is arbitrary.
//! But only one thread closes the bars of a place under a specification, and specifications run one after the other. So
//! it knows the *rank* of each bar, `r = 0, 1, …`, and the final number `n(p)` of bars of the place `p`. The position
//! of the bar is
//!
//! ```text
//! b(p) + r,  where  b(p) = n(0) + … + n(p − 1)
//! ```
//!
//! The sums are computed in two steps. Places are divided into *tiles* of 32, one per warp, whose threads compute
//! prefix sums in five shuffles. Then one block does the same for the tiles: within warps, then over its warps through
//! shared memory, as often as needed. The sums are of integers, so the order of additions does not matter.

mod device;
mod twin;

pub use device::{CompactionArgs, GATHER_THREADS, TILE};
pub use twin::ordered;
