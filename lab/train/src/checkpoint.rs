//! The checkpoint file: weights, moments of the optimiser, progress, validations, and the best network. It omits the
//! replay buffer, which is refilled before learning resumes.
//!
//! ```text
//!   "WTTC"  version 2  kind  seed  what is trained on, as a hash  episodes  updates  powers of β  tensors…  validations…  best network
//! ```

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use candle_core::{Device, Tensor};
use warptape_network::Network;

use crate::adam::Adam;
use crate::error::TrainError;
use crate::model::{Layers, Model};
use crate::train::Validation;

const MAGIC: &[u8; 5] = b"WTTC\x02";

/// The state from which training resumes.
pub(crate) struct Checkpoint {
    pub(crate) episodes: u64,
    pub(crate) target: Layers,
    pub(crate) validations: Vec<Validation>,
    pub(crate) best: Network,
}

fn tensors<'a>(model: &'a Model, adam: &'a Adam, target: &'a Layers) -> Vec<&'a Tensor> {
    let vars = model.vars.iter().map(|var| var.as_tensor());
    let moments = adam.moments.iter().flatten();
    vars.chain(moments).chain(target.iter().flat_map(|(weights, biases)| [weights, biases])).collect()
}

pub(crate) fn write(
    path: &Path,
    (seed, trained_on): (u64, u64),
    model: &Model,
    adam: &Adam,
    checkpoint: &Checkpoint,
) -> Result<(), TrainError> {
    let mut bytes = MAGIC.to_vec();
    bytes.push(model.kind as u8);
    [seed, trained_on, checkpoint.episodes, adam.updates]
        .iter()
        .for_each(|word| bytes.extend(word.to_le_bytes()));
    adam.powers.iter().for_each(|power| bytes.extend(power.to_le_bytes()));
    for tensor in tensors(model, adam, &checkpoint.target) {
        let values = tensor.flatten_all()?.to_vec1::<f32>()?;
        values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    }
    bytes.extend((checkpoint.validations.len() as u64).to_le_bytes());
    for Validation { episode, ratio } in &checkpoint.validations {
        bytes.extend(episode.to_le_bytes());
        bytes.extend(ratio.to_le_bytes());
    }
    bytes.extend(checkpoint.best.to_bytes());
    // The rename keeps the previous file intact if the process stops while it writes.
    let new = path.with_extension("new");
    let failed = |error| TrainError::File { path: path.to_owned(), error };
    fs::write(&new, bytes).and_then(|()| fs::rename(&new, path)).map_err(failed)
}

/// Greatest size of a checkpoint, in bytes; it exceeds the size of any network with its optimiser.
const BYTES_MAX: u64 = 4 << 30;

fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match fs::metadata(path)?.is_file() {
        true => fs::File::open(path)?.take(BYTES_MAX).read_to_end(&mut bytes).map(|_| bytes),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")),
    }
}

/// Reads a checkpoint into a model and its optimiser.
pub(crate) fn read(
    path: &Path,
    (seed, trained_on): (u64, u64),
    model: &mut Model,
    adam: &mut Adam,
) -> Result<Checkpoint, TrainError> {
    let bytes = match first_bytes(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(TrainError::NotBegun { path: path.to_owned() });
        }
        Err(error) => return Err(TrainError::File { path: path.to_owned(), error }),
    };
    let other = |why| TrainError::Checkpoint { path: path.to_owned(), why };
    let cut = || other("it is truncated, or another kind of file");
    let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(|| other("it has another header"))?;
    let mut take = |number: usize| {
        let (first, after) = rest.split_at_checked(number).ok_or_else(cut)?;
        rest = after;
        Ok::<_, TrainError>(first)
    };
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes were taken"));
    if take(1)?[0] != model.kind as u8 {
        return Err(other("it has another architecture"));
    }
    if word(take(8)?) != seed {
        return Err(other("it has another seed"));
    }
    if word(take(8)?) != trained_on {
        return Err(other("it has another fleet, workload or option"));
    }
    let episodes = word(take(8)?);
    adam.updates = word(take(8)?);
    for power in &mut adam.powers {
        *power = f64::from_bits(word(take(8)?));
    }
    let shapes: Vec<Vec<usize>> =
        tensors(model, adam, &model.layers()).iter().map(|tensor| tensor.dims().to_vec()).collect();
    let mut read = Vec::new();
    for shape in shapes {
        let floats = take(4 * shape.iter().product::<usize>())?.chunks_exact(4);
        let values = floats.map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        read.push(Tensor::from_vec(values.collect::<Vec<_>>(), shape, &Device::Cpu)?);
    }
    let mut read = read.into_iter();
    let mut next = || read.next().expect("as many as there are shapes");
    for var in &model.vars {
        var.set(&next())?;
    }
    adam.moments.iter_mut().flatten().for_each(|moment| *moment = next());
    let target = (0..model.vars.len() / 2).map(|_| (next(), next())).collect();
    let number = word(take(8)?);
    let mut validations = Vec::new();
    for _ in 0..number {
        validations.push(Validation { episode: word(take(8)?), ratio: f64::from_bits(word(take(8)?)) });
    }
    let best = Network::from_bytes(rest)?;
    Ok(Checkpoint { episodes, target, validations, best })
}
