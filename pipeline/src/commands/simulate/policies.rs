//! Policies to compare, given by name or by a network's file.

use warptape_scheduler::{TASK_POLICIES, dqn};
use warptape_schemas::journal::{SchedulerConfig, Trained};
use warptape_simulator::{BASELINES, Options, Scaling};

use crate::cli::SimulateArgs;
use crate::network_file;
use crate::settings::{Sources, load};
use crate::usage_error::UsageError;

/// Digits of a network's hash in tables. `warptape control` accepts a hash cut to this length.
const HASH_DIGITS: usize = 8;

/// Returns the scheduler's configuration of `warptape run` without settings.
pub fn production() -> SchedulerConfig {
    let (settings, _) = load(&Sources::default()).expect("the defaults are good");
    settings.engine_config(None).core.scheduler
}

/// A policy to run.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Name shown in tables and pictures.
    pub label: String,
    /// Name that the scheduler or the baselines know.
    name: String,
    /// Network of the policy; `None` for a policy without one.
    network: Option<Trained>,
    /// Remark on the policy below the tables; `None` if there is none.
    pub remark: Option<String>,
}

impl Policy {
    /// Parses a policy of `--policy`, for a fleet of `lanes` lanes.
    pub fn new(given: &str, lanes: usize) -> Result<Self, UsageError> {
        let is_known = |name: &str| TASK_POLICIES.contains(&name) || BASELINES.contains(&name);
        if is_known(given) {
            let (label, name) = (given.to_owned(), given.to_owned());
            return Ok(Self { label, name, network: None, remark: None });
        }
        if network_file::is_only_a_hash(given) {
            return Err(UsageError(format!(
                "--policy {given:?} names a network by its hash, which a simulation cannot look up: give the file, as dqn:FILE"
            )));
        }
        let trained = network_file::of_policy(given, Some(lanes)).ok_or_else(|| {
            let known = TASK_POLICIES.into_iter().chain(BASELINES).collect::<Vec<_>>().join(", ");
            UsageError(format!("--policy {given:?} is not known; give one of: {known}, or dqn:FILE"))
        })??;
        let label = dqn::name(&trained.hash[..HASH_DIGITS]);
        let remark = format!("{label} is the network in {}.", dqn::rest_of(given).unwrap_or_default());
        Ok(Self { label, name: dqn::name(&trained.hash), network: Some(trained), remark: Some(remark) })
    }

    /// True if only the simulator has the policy.
    pub fn is_baseline(&self) -> bool {
        BASELINES.contains(&self.name.as_str())
    }

    /// Returns the options of a run under the policy. Everything else is the same for all policies: production's
    /// default configuration.
    pub fn options(&self, args: &SimulateArgs, scaling: Scaling) -> Options {
        let options = Options::of_production(&self.name, &production());
        let slice_ns = args.slice_us.map_or(options.slice_ns, |us| us * 1_000);
        let (network, placement) = (self.network.clone(), args.placement.clone());
        Options { network, slice_ns, placement, scaling, ..options }
    }

    /// Returns the label in a form for file names.
    pub fn file_name(&self) -> String {
        self.label.replace(':', "-")
    }
}
