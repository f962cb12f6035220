//! Files of networks: read, checked, and named by their hash.

use std::io::{self, Read};
use std::path::Path;

use warptape_network::{BYTES_MAX, Network};
#[cfg(feature = "lab")]
use warptape_scheduler::dqn;
use warptape_schemas::journal::{StateBytes, Trained};

use crate::bounded_file;
#[cfg(feature = "lab")]
use crate::usage_error::UsageError;

/// The network in a file, if it is for so many lanes; or what is wrong with the file.
pub fn read(path: &Path, lanes: Option<usize>) -> Result<Trained, String> {
    let bytes = first_bytes(path).map_err(|error| format!("cannot be read: {error}"))?;
    let network = Network::from_bytes(&bytes).map_err(|error| format!("cannot be used: {error}"))?;
    match (network.lanes(), lanes) {
        (Some(wanted), Some(lanes)) if wanted != lanes => Err(format!(
            "is for {wanted} lanes, and there are {lanes}: train one for {lanes}, or one of the architecture `improved`, which is for any number"
        )),
        _ => Ok(Trained { hash: network.hash(), network: StateBytes(bytes) }),
    }
}

/// The network that a policy `dqn:FILE` of a command line names; none of other policies.
#[cfg(feature = "lab")]
pub fn of_policy(policy: &str, lanes: Option<usize>) -> Option<Result<Trained, UsageError>> {
    let path = Path::new(dqn::rest_of(policy)?);
    let unusable = |why| UsageError(format!("--policy {policy:?}: {} {why}", path.display()));
    Some(read(path, lanes).map_err(unusable))
}

/// Whether a policy has the form of `dqn:HASH`, and no file is called so.
#[cfg(feature = "lab")]
pub fn is_only_a_hash(policy: &str) -> bool {
    dqn::prefix_of(policy).is_some_and(|hash| !Path::new(hash).exists())
}

/// More bytes than a network may have are enough to see that a file is none.
fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bounded_file::open(path)?.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
