//! Policies that are held against each other: names, and files of networks.

use warptape_scheduler::{TASK_POLICIES, dqn};
use warptape_schemas::journal::{SchedulerConfig, Trained};
use warptape_simulator::{BASELINES, Options, Scaling};

use crate::cli::SimulateArgs;
use crate::network_file;
use crate::settings::{Sources, load};
use crate::usage_error::UsageError;

/// Digits of a network's hash in tables: as many as name it to `warptape control`.
const HASH_DIGITS: usize = 8;

/// What `warptape run` tells the scheduler where nothing is configured.
pub fn production() -> SchedulerConfig {
    let (settings, _) = load(&Sources::default()).expect("the defaults are good");
    settings.engine_config(None).core.scheduler
}

/// A policy that is run.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What it is called in tables and pictures.
    pub label: String,
    /// What the scheduler or a baseline is called.
    name: String,
    /// Its network, where it has one.
    network: Option<Trained>,
    /// What is to be said of it.
    pub remark: Option<String>,
}

impl Policy {
    /// The policy that is given as `--policy`, for a fleet of so many lanes.
    pub fn new(given: &str, lanes: usize) -> Result<Self, UsageError> {
        let is_known = |name: &str| TASK_POLICIES.contains(&name) || BASELINES.contains(&name);
        if is_known(given) {
            let (label, name) = (given.to_owned(), given.to_owned());
            return Ok(Self { label, name, network: None, remark: None });
        }
        if network_file::is_only_a_hash(given) {
            return Err(UsageError(format!(
                "--policy {given:?} names a network by its hash, and a simulation knows none: give its file, as dqn:FILE"
            )));
        }
        let trained = network_file::of_policy(given, Some(lanes)).ok_or_else(|| {
            let known = TASK_POLICIES.into_iter().chain(BASELINES).collect::<Vec<_>>().join(", ");
            UsageError(format!("--policy {given:?} is not known; there are: {known}, and dqn:FILE"))
        })??;
        let label = dqn::name(&trained.hash[..HASH_DIGITS]);
        let remark = format!("{label} is the network in {}.", dqn::rest_of(given).unwrap_or_default());
        Ok(Self { label, name: dqn::name(&trained.hash), network: Some(trained), remark: Some(remark) })
    }

    /// Whether it is of the simulator alone.
    pub fn is_baseline(&self) -> bool {
        BASELINES.contains(&self.name.as_str())
    }

    /// Options of a run under it, with what is the same for all policies: the configuration of production where nothing is configured.
    pub fn options(&self, args: &SimulateArgs, scaling: Scaling) -> Options {
        let options = Options::of_production(&self.name, &production());
        let slice_ns = args.slice_us.map_or(options.slice_ns, |us| us * 1_000);
        let (network, placement) = (self.network.clone(), args.placement.clone());
        Options { network, slice_ns, placement, scaling, ..options }
    }

    /// Its label as a part of file names.
    pub fn file_name(&self) -> String {
        self.label.replace(':', "-")
    }
}
