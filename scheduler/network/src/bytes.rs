//! The bytes of a network.
//!
//! ```text
//!   "WTNN"  version 1  architecture  layers…                                              checksum
//!    4       1          1             inputs  outputs  rows…                               8: the first bytes of BLAKE3 of all before
//!                                     2       2        bias   shift  a weight each input
//!                                                      4      1      1
//! ```
//!
//! Numbers are little-endian. The number of layers follows from the architecture.

use crate::error::NetworkError;
use crate::improved::Improved;
use crate::layer::{Layer, WeightsRow};
use crate::network::Architecture;
use crate::paper::Paper;

/// Most bytes of a network.
pub const BYTES_MAX: usize = 64 << 10;
const MAGIC: &[u8; 4] = b"WTNN";
const VERSION: u8 = 1;
const PAPER: u8 = 0;
const IMPROVED: u8 = 1;
const CHECKSUM: usize = 8;

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let mut first = [0; CHECKSUM];
    first.copy_from_slice(&blake3::hash(bytes).as_bytes()[..CHECKSUM]);
    first
}

pub(crate) fn check_size(bytes: usize) -> Result<(), NetworkError> {
    if bytes > BYTES_MAX { Err(NetworkError::TooLarge { bytes }) } else { Ok(()) }
}

pub(crate) fn write(architecture: &Architecture) -> Vec<u8> {
    let (number, layers) = match architecture {
        Architecture::Paper(paper) => (PAPER, paper.layers().to_vec()),
        Architecture::Improved(improved) => (IMPROVED, improved.layers().to_vec()),
    };
    let mut bytes = MAGIC.to_vec();
    bytes.extend([VERSION, number]);
    for layer in layers {
        // Widths are checked when a layer is made.
        [layer.inputs(), layer.outputs()]
            .into_iter()
            .for_each(|width| bytes.extend((width as u16).to_le_bytes()));
        for WeightsRow { bias, shift, weights } in layer.rows() {
            bytes.extend(bias.to_le_bytes());
            bytes.push(shift);
            bytes.extend(weights.iter().map(|weight| *weight as u8));
        }
    }
    let checksum = checksum(&bytes);
    bytes.extend(checksum);
    bytes
}

pub(crate) fn read(bytes: &[u8]) -> Result<Architecture, NetworkError> {
    if !bytes.starts_with(MAGIC) {
        return Err(NetworkError::NotANetwork);
    }
    match bytes.get(MAGIC.len()) {
        None => return Err(NetworkError::Damaged),
        Some(&VERSION) => {}
        Some(&version) => return Err(NetworkError::Version { version }),
    }
    check_size(bytes.len())?;
    let (rest, sum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(NetworkError::Damaged)?;
    if checksum(rest) != *sum {
        return Err(NetworkError::Damaged);
    }
    let mut reader = Reader { rest: rest.get(MAGIC.len() + 1..).ok_or(NetworkError::Damaged)? };
    let [number] = reader.take()?;
    let architecture = match number {
        PAPER => Architecture::Paper(Paper::new(reader.layers()?)?),
        IMPROVED => Architecture::Improved(Improved::new(reader.layers()?)?),
        architecture => return Err(NetworkError::Architecture { architecture }),
    };
    if reader.rest.is_empty() { Ok(architecture) } else { Err(NetworkError::Damaged) }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], NetworkError> {
        let (first, rest) = self.rest.split_first_chunk::<N>().ok_or(NetworkError::Damaged)?;
        self.rest = rest;
        Ok(*first)
    }

    fn layers<const N: usize>(&mut self) -> Result<[Layer; N], NetworkError> {
        let layers = (0..N).map(|_| self.layer()).collect::<Result<Vec<_>, _>>()?;
        Ok(layers.try_into().expect("as many as were asked for"))
    }

    fn layer(&mut self) -> Result<Layer, NetworkError> {
        let [inputs, outputs] =
            [self.take()?, self.take()?].map(|width| usize::from(u16::from_le_bytes(width)));
        let row = |_| {
            let bias = i32::from_le_bytes(self.take()?);
            let [shift] = self.take()?;
            let (weights, rest) = self.rest.split_at_checked(inputs).ok_or(NetworkError::Damaged)?;
            self.rest = rest;
            Ok(WeightsRow { bias, shift, weights: weights.iter().map(|weight| *weight as i8).collect() })
        };
        let rows = (0..outputs).map(row).collect::<Result<Vec<_>, NetworkError>>()?;
        Layer::new(inputs, &rows)
    }
}
