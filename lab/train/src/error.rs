//! Why nothing was trained.

use std::path::PathBuf;

use warptape_network::NetworkError;

/// Why nothing was trained.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// An option is out of range.
    #[error("{name} is {found}, and must be {expected}")]
    Option {
        /// The option.
        name: &'static str,
        /// What it is.
        found: String,
        /// What it may be.
        expected: &'static str,
    },
    /// The fleet has too few or too many lanes.
    #[error(
        "the fleet has {lanes} lanes, and networks are trained for 2 to 64: with one lane there is nothing to choose"
    )]
    Lanes {
        /// The number.
        lanes: usize,
    },
    /// Arrivals are not drawn.
    #[error(
        "arrivals of a training are drawn anew for each episode, and those of recordings and closed loops are not: give a workload with Poisson, bursty or \
         diurnal arrivals"
    )]
    Arrivals,
    /// There is a checkpoint already.
    #[error("{path} is of a training that was begun: go on with it (--resume), or remove it")]
    Begun {
        /// The file.
        path: PathBuf,
    },
    /// There is no checkpoint to go on from.
    #[error("there is no {path} to go on from: begin without --resume")]
    NotBegun {
        /// The file.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("the checkpoint {path} could not be read or written: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A file is no checkpoint of this training.
    #[error(
        "{path} is no checkpoint of this training: {why}. Train with the options that it was written with, or name another file"
    )]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What differs.
        why: &'static str,
    },
    /// What was learnt does not fit a network.
    #[error("what was learnt does not fit an integer network: {0}")]
    Network(#[from] NetworkError),
    /// Arithmetic on tensors failed, which is a defect of this crate.
    #[error("arithmetic on tensors failed: {0}")]
    Tensor(#[from] candle_core::Error),
}
