//! Errors of bytes that should be a network.

use crate::bytes::BYTES_MAX;
use crate::layer::{SHIFT_MAX, WIDTH_MAX};
use crate::state::LANES_MAX;

/// The error of bytes or layers that do not make a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The bytes are not a network.
    #[error("this is no network: a network begins with the bytes WTNN. Give a file that training wrote")]
    NotANetwork,
    /// The bytes are of another version.
    #[error(
        "the network has format version {version}, but this release reads version 1: train it anew, or use a newer release"
    )]
    Version {
        /// Their version.
        version: u8,
    },
    /// The bytes were damaged after they were written.
    #[error(
        "the network's bytes are damaged (their checksum differs, or bytes are missing): copy the file again"
    )]
    Damaged,
    /// The bytes are more than a network may have.
    #[error(
        "the network has {bytes} bytes, but at most {BYTES_MAX} are allowed: train one with smaller layers"
    )]
    TooLarge {
        /// Their number.
        bytes: usize,
    },
    /// The bytes name an architecture that does not exist.
    #[error("the network has the unknown architecture {architecture}; known are 0 (paper) and 1 (improved)")]
    Architecture {
        /// Its number.
        architecture: u8,
    },
    /// The network is for an impossible number of lanes.
    #[error("the network is for {lanes} lanes; it must be for 1 to {LANES_MAX}")]
    Lanes {
        /// The number.
        lanes: usize,
    },
    /// A layer has an impossible size.
    #[error(
        "a layer has {inputs} inputs and {outputs} outputs; both must be from 1 to {WIDTH_MAX}, with a weight for each input"
    )]
    Width {
        /// Its inputs.
        inputs: usize,
        /// Its outputs.
        outputs: usize,
    },
    /// A layer does not fit the one before it, or the features.
    #[error(
        "layer {layer} has {inputs} inputs and {outputs} outputs, which do not fit the neighbouring layers"
    )]
    Shape {
        /// Its number, from 0 on.
        layer: usize,
        /// Its inputs.
        inputs: usize,
        /// Its outputs.
        outputs: usize,
    },
    /// A layer shifts by too many bits.
    #[error("output {output} of a layer is shifted by {shift} bits, but at most {SHIFT_MAX} are allowed")]
    Shift {
        /// The output.
        output: usize,
        /// The bits.
        shift: u8,
    },
    /// A sum of the network could leave 32 bits.
    #[error(
        "output {output} of a layer could reach {most}, which does not fit into 32 bits: its weights are too large"
    )]
    Overflow {
        /// The output.
        output: usize,
        /// The greatest possible sum.
        most: i64,
    },
}
