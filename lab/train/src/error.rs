//! Errors of training.

use std::path::PathBuf;

use warptape_network::NetworkError;

/// An error of training.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// An option is out of range.
    #[error("{name} is {found}, and must be {expected}")]
    Option {
        /// The option.
        name: &'static str,
        /// The value found.
        found: String,
        /// The allowed values.
        expected: &'static str,
    },
    /// The fleet has too few or too many lanes.
    #[error(
        "the fleet has {lanes} lanes, and networks are trained for 2 to 64: with one lane there is nothing to choose"
    )]
    Lanes {
        /// Number of lanes.
        lanes: usize,
    },
    /// The workload's arrivals are not random.
    #[error(
        "arrivals of a training are drawn anew for each episode, and those of recordings and closed loops are not: give a workload with Poisson, bursty or \
         diurnal arrivals"
    )]
    Arrivals,
    /// A checkpoint exists already.
    #[error("{path} is from an unfinished training: continue it with --resume, or remove the file")]
    Begun {
        /// The file.
        path: PathBuf,
    },
    /// The checkpoint to resume from does not exist.
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
        /// The error of the system.
        error: std::io::Error,
    },
    /// A file is no checkpoint of this training.
    #[error(
        "{path} is no checkpoint of this training: {why}. Train with the options that it was written with, or name another file"
    )]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// The difference.
        why: &'static str,
    },
    /// The trained weights do not fit a network.
    #[error("the trained network does not fit an integer network: {0}")]
    Network(#[from] NetworkError),
    /// Arithmetic on tensors failed, which is a defect of this crate.
    #[error("arithmetic on tensors failed: {0}")]
    Tensor(#[from] candle_core::Error),
}
