//! Training of learned policies with the simulator, on the processor.
//!
//! ```text
//!   scenes ──► episode: the simulator runs the real scheduler,          ┌──► float network ◄── Adam ◄── loss ◄── batches ◄─┐
//!              the integer network chooses lanes ──► transitions ──► replay buffer ──────────────────────────────────────────┘
//!                        ▲                                              └──► quantised ──┐
//!                        └───────────────────────────────────────────────────────────────┘
//! ```
//!
//! The crate owns all means of learning: floats, tensors and gradients. The scheduler never depends on it. In episodes,
//! integer networks act through production's code and features, so training sees the same behaviour as production.

mod adam;
mod buffer;
mod checkpoint;
mod compare;
mod episode;
mod error;
mod model;
mod numbers;
mod quantise;
mod scenes;
mod train;

pub use compare::{Comparison, OverSeeds, RULES, compare, table};
pub use episode::Greedy;
pub use error::TrainError;
pub use model::Method;
pub use scenes::{Scene, held_out};
pub use train::{TrainOptions, Trained, TrainingProgress, Validation, on_one_thread, train};
