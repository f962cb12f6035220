//! Files of fleets and workloads, for simulations and trainings.

use std::path::Path;

use figment::Figment;
use figment::providers::{Format, Toml};
use serde::de::DeserializeOwned;
use warptape_simulator::files::{FleetFile, WorkloadFile, check_ticks, trace};
use warptape_simulator::{Fleet, Workload};

use crate::bounded_file;
use crate::usage_error::UsageError;

/// Greatest length of a recording, a fleet or a workload, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Reads a fleet and a workload from two files. `load` applies if the workload has no load of its own.
pub fn read(fleet: &Path, workload: &Path, load: f64) -> anyhow::Result<(Fleet, Workload)> {
    let workload = read_workload(workload, load)?;
    let kinds = workload.kinds.iter().map(|kind| kind.name.as_str());
    let read = read_toml::<FleetFile>(fleet)?.fleet(kinds);
    let read = read.and_then(|fleet| check_ticks(&fleet, &workload).map(|()| fleet));
    let fleet = read.map_err(|error| UsageError(format!("{}: {error}", fleet.display())))?;
    Ok((fleet, workload))
}

fn read_text(path: &Path) -> anyhow::Result<String> {
    let unusable = |error: String| UsageError(format!("{}: {error}", path.display()));
    Ok(bounded_file::read_text(path, FILE_BYTES_MAX).map_err(|error| unusable(error.to_string()))?)
}

fn read_toml<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = read_text(path)?;
    let read = Figment::from(Toml::string(&text)).extract();
    Ok(read.map_err(|error| UsageError(format!("{}: {error}", path.display())))?)
}

fn read_workload(path: &Path, load: f64) -> anyhow::Result<Workload> {
    let workload = match path.extension().is_some_and(|extension| extension == "csv") {
        true => trace(&read_text(path)?),
        false => read_toml::<WorkloadFile>(path)?.workload(load),
    };
    Ok(workload.map_err(|error| UsageError(format!("{}: {error}", path.display())))?)
}
