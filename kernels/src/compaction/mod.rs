//! Puts closed bars in order: by place, within a place by specification, and within that in the order in which they closed.
//!
//! Bars are closed by many threads at once, each of which takes the next entry of one list, so that their order there is arbitrary. But one thread
//! alone closes the bars of a place under a specification, and one specification comes after the other. So it knows the *rank* of
//! each of them, `r = 0, 1, …`, and how many bars `n(p)` the place `p` has in the end. The bar belongs at
//!
//! ```text
//! b(p) + r,  where  b(p) = n(0) + … + n(p − 1)
//! ```
//!
//! The sums are made in two steps. Places are cut into *tiles* of 32, one to a warp, whose threads add up what is before each of them
//! in five shuffles; then one block does the same to the tiles, by warps first, then over its warps through shared memory, as
//! often as it takes. They are of integers, so their shape does not matter.

mod device;
mod twin;

pub use device::{CompactionArgs, GATHER_THREADS, TILE};
pub use twin::ordered;
