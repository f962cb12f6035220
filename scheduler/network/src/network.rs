//! A network of either architecture.

use crate::bytes;
use crate::error::NetworkError;
use crate::improved::Improved;
use crate::layer::Layer;
use crate::paper::Paper;
use crate::state::{LANES_MAX, LaneState, TaskState};

/// Layers of a network, by architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// The architecture as published.
    Paper(Paper),
    /// The improved architecture: features per lane, masked lanes, and separate value and advantage outputs.
    Improved(Improved),
}

/// A network that chooses lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    architecture: Architecture,
}

impl Network {
    /// Makes a network of layers.
    ///
    /// # Errors
    /// The network would have more than [`BYTES_MAX`](crate::BYTES_MAX) bytes.
    pub fn new(architecture: Architecture) -> Result<Self, NetworkError> {
        let network = Self { architecture };
        bytes::check_size(network.to_bytes().len())?;
        Ok(network)
    }

    /// Reads a network.
    ///
    /// # Errors
    /// The bytes are not a network, of another version, damaged or too many, or a sum in it could leave 32 bits.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NetworkError> {
        Ok(Self { architecture: bytes::read(bytes)? })
    }

    /// Encodes the network; [`Network::from_bytes`] reads it back.
    pub fn to_bytes(&self) -> Vec<u8> {
        bytes::write(&self.architecture)
    }

    /// BLAKE3 of the encoded network, as 64 hexadecimal digits: the address that policies name.
    pub fn hash(&self) -> String {
        blake3::hash(&self.to_bytes()).to_hex().to_string()
    }

    /// Number of lanes that the network accepts; `None` if it accepts any number up to [`LANES_MAX`].
    pub fn lanes(&self) -> Option<usize> {
        match &self.architecture {
            Architecture::Paper(paper) => Some(paper.lanes()),
            Architecture::Improved(_) => None,
        }
    }

    /// The layers, by architecture.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// The layers, in their order in the bytes.
    pub fn layers(&self) -> Vec<&Layer> {
        match &self.architecture {
            Architecture::Paper(paper) => paper.layers().to_vec(),
            Architecture::Improved(improved) => improved.layers().to_vec(),
        }
    }

    /// Score of each lane, in units of 2^-[`SCORE_FRACTION_BITS`](crate::SCORE_FRACTION_BITS); `None` for excluded
    /// lanes. All are `None` if the network is not for this number of lanes.
    pub fn scores(&self, task: &TaskState, lanes: &[LaneState]) -> Vec<Option<i64>> {
        match &self.architecture {
            Architecture::Paper(paper) => paper.scores(task, lanes),
            Architecture::Improved(improved) if lanes.len() <= LANES_MAX => improved.scores(task, lanes),
            Architecture::Improved(_) => vec![None; lanes.len()],
        }
    }

    /// Index of the lane with the highest score, the first one in a tie; `None` if no lane has a score.
    pub fn choose(&self, task: &TaskState, lanes: &[LaneState]) -> Option<usize> {
        let scores = self.scores(task, lanes);
        let scored = scores.iter().enumerate().filter_map(|(index, score)| Some((index, (*score)?)));
        let best = scored.reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map(|(index, _)| index)
    }
}
