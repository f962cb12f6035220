//! Training of learned policies against the simulator, on the processor.
//!
//! ```text
//!   scenes ──► episode: the simulator runs the real scheduler,          ┌──► float network ◄── Adam ◄── loss ◄── batches ◄─┐
//!              the integer network chooses lanes ──► transitions ──► replay buffer ──────────────────────────────────────────┘
//!                        ▲                                              └──► quantised ──┐
//!                        └───────────────────────────────────────────────────────────────┘
//! ```
//!
//! The crate owns the means of learning: floats, tensors and gradients. The scheduler never depends on it. Integer
//! networks act in episodes, with production's code and features, so training meets the behaviour that will run.

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
