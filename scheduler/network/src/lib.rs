//! The integer network by which learned policies choose a lane for a task.
//!
//! ```text
//!   TaskState, LaneState ──► features ──► layers ──► a score for each lane ──► choose
//!   (what a push policy sees) 16 bits      int8 weights, i32 sums
//! ```
//!
//! The crate owns the features, the arithmetic and the bytes of a network. It must not know a clock, randomness,
//! floats, the scheduler's state, or how networks are trained. All arithmetic is on integers with bounds that
//! [`Network::from_bytes`] checks, so that no sum overflows and a choice has the same bits on every machine.
//!
//! - **Activations** and features are 16-bit integers; [`ONE`] is the value 1.
//! - **Weights** have 8 bits. A row of a layer sums weight × activation in 32 bits, and its own shift brings the sum
//!   back. So the value of a weight is weight × 2^-shift.
//! - **Scores** have [`SCORE_FRACTION_BITS`] bits after the point: the higher, the better.
#![deny(clippy::float_arithmetic, clippy::disallowed_types, clippy::disallowed_methods)]

mod bytes;
mod error;
mod features;
mod improved;
mod layer;
mod log2;
mod network;
mod paper;
mod state;

pub use bytes::BYTES_MAX;
pub use error::NetworkError;
pub use features::{Features, LANE_FEATURES, TASK_FEATURES};
pub use improved::Improved;
pub use layer::{ACTIVATION_MAX, Layer, ONE, SCORE_FRACTION_BITS, SHIFT_MAX, WIDTH_MAX, WeightsRow};
pub use network::{Architecture, Network};
pub use paper::{CONVOLUTION_LANES, Paper, paper_inputs};
pub use state::{KIND_BUCKETS, LANES_MAX, LaneState, PRIORITIES, TaskState, WINDOWS, kind_bucket};
