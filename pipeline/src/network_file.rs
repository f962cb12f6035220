//! Network files: reads and checks them, and names networks by their hash.

use std::io::{self, Read};
use std::path::Path;

use warptape_network::{BYTES_MAX, Network};
#[cfg(feature = "lab")]
use warptape_scheduler::dqn;
use warptape_schemas::journal::{StateBytes, Trained};

use crate::bounded_file;
#[cfg(feature = "lab")]
use crate::usage_error::UsageError;

/// Reads the network in a file, for this number of lanes if it is known. An error describes the mistake in the file.
pub fn read(path: &Path, lanes: Option<usize>) -> Result<Trained, String> {
    let bytes = first_bytes(path).map_err(|error| format!("cannot be read: {error}"))?;
    let network = Network::from_bytes(&bytes).map_err(|error| format!("cannot be used: {error}"))?;
    match (network.lanes(), lanes) {
        (Some(wanted), Some(lanes)) if wanted != lanes => Err(format!(
            "is for {wanted} lanes, but there are {lanes}. Train one for {lanes} lanes, or one of the \
             architecture `improved`, which fits any number"
        )),
        _ => Ok(Trained { hash: network.hash(), network: StateBytes(bytes) }),
    }
}

/// Reads the network of a policy `dqn:FILE` on a command line; `None` for other policies.
#[cfg(feature = "lab")]
pub fn of_policy(policy: &str, lanes: Option<usize>) -> Option<Result<Trained, UsageError>> {
    let path = Path::new(dqn::rest_of(policy)?);
    let unusable = |why| UsageError(format!("--policy {policy:?}: {} {why}", path.display()));
    Some(read(path, lanes).map_err(unusable))
}

/// True if a policy has the form `dqn:HASH`, and no file has that name.
#[cfg(feature = "lab")]
pub fn is_only_a_hash(policy: &str) -> bool {
    dqn::prefix_of(policy).is_some_and(|hash| !Path::new(hash).exists())
}

/// Reads at most one byte more than a network may have; that byte shows that the file is too long.
fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bounded_file::open(path)?.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
