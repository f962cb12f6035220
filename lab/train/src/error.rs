//! Errors of training.

use std::path::PathBuf;

use warptape_network::NetworkError;

/// An error of training.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// An option is out of range.
    #[error("{name} is {found}; it must be {expected}")]
    Option {
        /// The option.
        name: &'static str,
        /// The value found.
        found: String,
        /// The allowed values.
        expected: &'static str,
    },
    /// The fleet has too few or too many lanes.
    #[error("the fleet has {lanes} lanes; networks can be trained for 2 to 64")]
    Lanes {
        /// Number of lanes.
        lanes: usize,
    },
    /// The workload's arrivals are not random.
    #[error(
        "training draws new arrivals for each episode, which recordings and closed loops do not allow: give \
         a workload with Poisson, bursty or diurnal arrivals"
    )]
    Arrivals,
    /// A checkpoint exists already.
    #[error("{path} belongs to an unfinished training: continue it with --resume, or remove the file")]
    Begun {
        /// The file.
        path: PathBuf,
    },
    /// The checkpoint to resume from does not exist.
    #[error("there is no {path} to continue from: start without --resume")]
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
        "{path} is not a checkpoint of this training: {why}. Use the options with which it was written, or name another file"
    )]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// The difference between the file and this training.
        why: &'static str,
    },
    /// The trained weights do not fit a network.
    #[error("the learnt weights do not fit an integer network: {0}")]
    Network(#[from] NetworkError),
    /// Arithmetic on tensors failed, which is a defect of this crate.
    #[error("arithmetic on tensors failed: {0}")]
    Tensor(#[from] candle_core::Error),
}
