//! Order of closed bars: by place, within a place by specification, and then in the order in which they closed.
//!
//! Many threads close bars at once, and each takes the next entry of one list, so that the order there is arbitrary.
//! But one thread alone closes the bars of a place under a specification, and specifications run one after the other.
//! So it knows the *rank* of each bar, `r = 0, 1, …`, and the final number `n(p)` of bars of the place `p`. The bar
//! belongs at
//!
//! ```text
//! b(p) + r,  where  b(p) = n(0) + … + n(p − 1)
//! ```
//!
//! The sums are made in two steps. Places are cut into *tiles* of 32, one to a warp, whose threads compute prefix sums
//! in five shuffles. Then one block does the same for the tiles: within warps, then over its warps through shared
//! memory, as often as needed. The sums are of integers, so their shape does not matter.

mod device;
mod twin;

pub use device::{CompactionArgs, GATHER_THREADS, TILE};
pub use twin::ordered;
