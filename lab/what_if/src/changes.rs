//! The changes that a user requests, and their effect on a recorded start.
//!
//! Fields of the scheduler's configuration are named as in the journal and in `replay diff`. The module must not know
//! how a run is modelled.

use serde_json::Value;
use warptape_network::Network;
use warptape_replay::chain::LaneName;
use warptape_scheduler::{
    PLACEMENT_POLICIES, TASK_POLICIES, check_config, check_lanes, current_task_policy, dqn, measures,
};
use warptape_schemas::journal::{LaneId, LaneKind, LaneSpec, Peer, SchedulerConfig, Started, Trained};

use crate::error::WhatIfError;

/// Time at which a lane is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossTime {
    /// Nanoseconds since the epoch.
    At(i64),
    /// Nanoseconds after the beginning of the window.
    After(i64),
}

/// Changes to a recorded run. Lanes are named by number or device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Policy of tasks or of placement.
    pub policy: Option<String>,
    /// Network for the policy `dqn:HASH`; `None` to use one of the recorded run.
    pub network: Option<Trained>,
    /// Fields of the scheduler's configuration, each with its new value.
    pub set: Vec<(String, String)>,
    /// Devices of the lanes, in the syntax of `engine.devices`; empty to keep the recorded devices.
    pub devices: Vec<String>,
    /// New weights by lane.
    pub weights: Vec<(String, i32)>,
    /// Duration of work in thousandths of the recorded duration, by lane; 1000 changes nothing.
    pub slow: Vec<(String, i64)>,
    /// Lanes that are lost and never return.
    pub lose: Vec<(String, LossTime)>,
}

/// A recorded start with the changes, ready to be modelled.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) started: Started,
    /// Duration of work in thousandths of the recorded duration, by lane.
    pub(crate) slow: Vec<i64>,
    /// Lanes that are lost.
    pub(crate) lose: Vec<(LaneId, LossTime)>,
    /// Modelled lane of each recorded lane; `None` if no modelled lane has its device.
    pub(crate) lane_of: Vec<Option<LaneId>>,
    /// True if recorded commands that choose a policy are omitted: for tasks, and for placement.
    pub(crate) chooses: [bool; 2],
    /// Lanes whose weight the changes set. Recorded commands that weigh them are omitted.
    pub(crate) weighed: Vec<LaneId>,
    /// Network of the task policy; `None` unless the changes choose a policy with a network.
    pub(crate) network: Option<Trained>,
}

impl Changes {
    /// Applies the changes to a recorded start. `networks` are the networks of the recorded run.
    pub(crate) fn apply(&self, recorded: &Started, networks: &[Trained]) -> Result<Plan, WhatIfError> {
        let mut started = recorded.clone();
        if !self.devices.is_empty() {
            started.lanes = lanes(&self.devices, &recorded.lanes)?;
        }
        let mut weighed = Vec::new();
        for (name, weight) in &self.weights {
            let lane = find_lane("--weight", name, &started.lanes)?;
            let specs = started.lanes.iter_mut().filter(|spec| spec.lane == lane);
            specs.for_each(|spec| spec.weight = *weight);
            weighed.push(lane);
        }
        let mut config = started.scheduler.clone();
        let mut chooses = [false; 2];
        if let Some(policy) = &self.policy {
            chooses = choose(policy, &mut config)?;
        }
        for (key, value) in &self.set {
            config = match strip(key) {
                "risk.policy" => set(&config, key, &current_task_policy(value))?,
                _ => set(&config, key, value)?,
            };
            chooses[0] |= strip(key) == "risk.policy";
            chooses[1] |= strip(key) == "placement_policy";
        }
        let mut network = None;
        if chooses[0] && dqn::rest_of(&config.risk.policy).is_some() {
            let found = self.network_of(&config.risk.policy, networks)?;
            check_for_lanes(found, started.lanes.len())?;
            config.risk.policy = dqn::name(&found.hash);
            network = Some(found.clone());
        }
        let mistakes: Vec<String> = check_config(&config)
            .iter()
            .chain(&check_lanes(&started.lanes))
            .map(ToString::to_string)
            .collect();
        if !mistakes.is_empty() {
            return Err(WhatIfError::BadConfig { mistakes: mistakes.join("; ") });
        }
        started.scheduler = config;
        let mut slow = vec![1_000; started.lanes.len()];
        for (name, thousandths) in &self.slow {
            slow[find_lane("--slow", name, &started.lanes)? as usize] = *thousandths;
        }
        let lose = self.lose.iter();
        let lose = lose.map(|(name, time)| Ok((find_lane("--lose", name, &started.lanes)?, *time)));
        let lose = lose.collect::<Result<_, WhatIfError>>()?;
        let of_device = |lane: &LaneSpec| {
            started.lanes.iter().find(|other| other.device == lane.device).map(|other| other.lane)
        };
        let lane_of = recorded.lanes.iter().map(of_device).collect();
        Ok(Plan { started, slow, lose, lane_of, chooses, weighed, network })
    }

    /// Returns notes for the user about a plan.
    pub(crate) fn notes(&self, recorded: &Started, plan: &Plan) -> Vec<String> {
        let mut notes = Vec::new();
        if plan.chooses[1]
            && measures(&plan.started.scheduler)
            && plan.started.scheduler.balance_interval_ns == 0
        {
            notes.push(format!(
                "{} moves no group, because the recorded scheduler.balance_interval_ns is 0: add --set scheduler.balance_interval_ms=250",
                plan.started.scheduler.placement_policy.split(['@', '/']).next().unwrap_or_default(),
            ));
        }
        let unlike = recorded.lanes.windows(2).any(|pair| pair[0].weight != pair[1].weight);
        if !self.devices.is_empty() && unlike {
            let weights = plan
                .started
                .lanes
                .iter()
                .map(|lane| format!("{} ({}): {}", lane.lane, lane.device, lane.weight));
            let weights: Vec<_> = weights.collect();
            notes.push(format!(
                "lanes have these weights (the recorded ones, unless --weight changes them): {}",
                weights.join(", ")
            ));
        }
        notes
    }

    /// Returns the network that a policy names, from the changes or from the recording.
    fn network_of<'a>(&'a self, policy: &str, recorded: &'a [Trained]) -> Result<&'a Trained, WhatIfError> {
        let unknown = || WhatIfError::UnknownNetwork {
            policy: policy.to_owned(),
            there: match recorded.is_empty() {
                true => "none".to_owned(),
                false => recorded.iter().map(|one| dqn::name(&one.hash)).collect::<Vec<_>>().join(", "),
            },
        };
        let prefix = dqn::prefix_of(policy).ok_or_else(unknown)?;
        let there = self.network.iter().chain(recorded);
        let mut found: Vec<&Trained> = there.filter(|one| one.hash.starts_with(prefix)).collect();
        found.dedup();
        match found[..] {
            [one] => Ok(one),
            _ => Err(unknown()),
        }
    }
}

/// Checks that a network fits the number of lanes.
pub(crate) fn check_for_lanes(trained: &Trained, lanes: usize) -> Result<(), WhatIfError> {
    // The scheduler refuses bytes that are not a network.
    let wanted = Network::from_bytes(&trained.network.0).ok().and_then(|network| network.lanes());
    match wanted.filter(|wanted| *wanted != lanes) {
        Some(wanted) => Err(WhatIfError::NetworkLanes { hash: trained.hash.clone(), wanted, lanes }),
        None => Ok(()),
    }
}

/// Sets a policy in the configuration. Returns whether it is a task policy, and whether it is a placement policy.
fn choose(policy: &str, config: &mut SchedulerConfig) -> Result<[bool; 2], WhatIfError> {
    let name = policy.split('@').next().unwrap_or_default();
    if TASK_POLICIES.contains(&name) || dqn::prefix_of(policy).is_some() {
        config.risk.policy = current_task_policy(policy);
        return Ok([true, false]);
    }
    if PLACEMENT_POLICIES.contains(&name) {
        // The limit of decisions per step belongs to the journal's records, not to the policy.
        let limit = config.placement_policy.split_once('/').map(|(_, limit)| format!("/{limit}"));
        config.placement_policy = format!("{policy}{}", limit.unwrap_or_default());
        return Ok([false, true]);
    }
    Err(WhatIfError::UnknownPolicy {
        policy: policy.to_owned(),
        tasks: TASK_POLICIES.join(", "),
        placement: PLACEMENT_POLICIES.join(", "),
    })
}

fn strip(key: &str) -> &str {
    key.strip_prefix("scheduler.").unwrap_or(key)
}

/// Returns the configuration with a field set.
fn set(config: &SchedulerConfig, key: &str, text: &str) -> Result<SchedulerConfig, WhatIfError> {
    let mut value = serde_json::to_value(config).expect("a configuration is numbers and texts");
    let known = {
        let mut known = Vec::new();
        leaves("", &value, &mut known);
        known.join(", ")
    };
    let pointer_of = |name: &str| format!("/{}", name.replace('.', "/"));
    let mut pointer = pointer_of(strip(key));
    let mut in_ns = None;
    // In the configuration file, names of times end in a unit; in the journal, all times are in nanoseconds.
    if value.pointer(&pointer).is_none()
        && let Some((name, unit_ns)) = without_unit(strip(key))
        && let of_ns = pointer_of(&format!("{name}_ns"))
        && value.pointer(&of_ns).is_some()
    {
        in_ns = Some(nanoseconds(text, unit_ns).ok_or_else(|| WhatIfError::BadValue {
            key: key.to_owned(),
            value: text.to_owned(),
            mistake: "give a number in its unit, up to 292 years".to_owned(),
        })?);
        pointer = of_ns;
    }
    let (given_text, text) = (text, in_ns.as_deref().unwrap_or(text));
    let field = value.pointer_mut(&pointer).filter(|field| !field.is_object());
    let field = field.ok_or_else(|| WhatIfError::UnknownKey { key: key.to_owned(), known })?;
    let given = match field {
        Value::String(_) => Value::String(text.to_owned()),
        _ => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
    };
    *field = given;
    let mistake = match serde_json::from_value(value.clone()) {
        Ok(config) => return Ok(config),
        Err(error) => error.to_string(),
    };
    // The journal writes words in upper case, the configuration file in lower case.
    if let Some(field) = value.pointer_mut(&pointer) {
        *field = Value::String(text.to_uppercase().replace('-', "_"));
    }
    serde_json::from_value(value).map_err(|_| WhatIfError::BadValue {
        key: key.to_owned(),
        value: given_text.to_owned(),
        mistake,
    })
}

/// Splits the unit off a name, and returns the name and the unit's length in nanoseconds; `None` if the name has no
/// unit.
fn without_unit(name: &str) -> Option<(&str, f64)> {
    [("_us", 1e3), ("_ms", 1e6), ("_s", 1e9)]
        .into_iter()
        .find_map(|(unit, ns)| Some((name.strip_suffix(unit)?, ns)))
}

/// Converts a number of units to nanoseconds; `None` if the text is not a number, or the result is too large.
fn nanoseconds(text: &str, unit_ns: f64) -> Option<String> {
    let ns = (text.parse::<f64>().ok()? * unit_ns).round();
    (ns.abs() < i64::MAX as f64).then(|| (ns as i64).to_string())
}

fn leaves(path: &str, value: &Value, known: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                leaves(&path, field, known);
            }
        }
        _ => known.push(path.to_owned()),
    }
}

fn find_lane(flag: &'static str, name: &str, lanes: &[LaneSpec]) -> Result<LaneId, WhatIfError> {
    LaneName::named(name).of(lanes).ok_or_else(|| {
        let there = lanes.iter().map(|lane| format!("{} ({})", lane.lane, lane.device));
        WhatIfError::UnknownLane { flag, lane: name.to_owned(), there: there.collect::<Vec<_>>().join(", ") }
    })
}

/// Returns lanes on other devices. Each one copies the recorded lane on the same device, or else the recorded lane of
/// its kind with the greatest weight. New devices are refused if the recorded lanes of their kind differ in class.
fn lanes(devices: &[String], recorded: &[LaneSpec]) -> Result<Vec<LaneSpec>, WhatIfError> {
    let mut lanes: Vec<LaneSpec> = Vec::new();
    for device in devices {
        let unknown = |mistake: &str| WhatIfError::UnknownDevice {
            device: device.clone(),
            mistake: mistake.to_owned(),
            there: recorded.iter().map(|lane| lane.device.clone()).collect::<Vec<_>>().join(", "),
        };
        let names = names(device).ok_or_else(|| {
            unknown("give `cpu:N` (N lanes on the CPU), `cuda:N` (a lane on GPU N) or `cuda:N#M` (M lanes on GPU N)")
        })?;
        for name in names {
            // Lanes on the processor are numbered among all lanes.
            let name = name.unwrap_or_else(|| format!("cpu:{}", lanes.len()));
            if lanes.iter().any(|lane| lane.device == name) {
                return Err(unknown("it is named twice"));
            }
            let kind = LaneSpec::new(0, &name, 1).kind();
            let alike: Vec<&LaneSpec> = recorded.iter().filter(|lane| lane.kind() == kind).collect();
            let same = alike.iter().find(|lane| lane.device == name).copied();
            let like = same.or_else(|| alike.iter().max_by_key(|lane| lane.weight).copied());
            let like = like.ok_or_else(|| unknown("the speed of such devices is unknown"))?;
            if same.is_none() && alike.iter().any(|lane| lane.class != like.class) {
                return Err(unknown(
                    "the journal has GPUs of several classes, so the class of this one is unknown",
                ));
            }
            // A lane that the user names is not a standby lane.
            let weight = if kind == LaneKind::Host { like.weight.max(1) } else { like.weight };
            lanes.push(LaneSpec { lane: lanes.len() as LaneId, device: name, weight, ..like.clone() });
        }
    }
    if lanes.iter().all(|lane| lane.kind() == LaneKind::Device) {
        // Recorded standby lanes on the processor remain if all other lanes are on GPUs.
        for like in recorded.iter().filter(|lane| lane.kind() == LaneKind::Host && lane.weight == 0) {
            let lane = lanes.len() as LaneId;
            lanes.push(LaneSpec { lane, device: format!("cpu:{lane}"), ..like.clone() });
        }
    }
    let of_device: Vec<(String, LaneId)> =
        lanes.iter().map(|lane| (lane.device.clone(), lane.lane)).collect();
    for lane in &mut lanes {
        let is_recorded = recorded.iter().any(|other| other.device == lane.device);
        let peers = std::mem::take(&mut lane.peers).into_iter().filter(|_| is_recorded);
        let renumbered = peers.filter_map(|Peer { lane, link }| {
            let device = &recorded.get(lane as usize)?.device;
            let (_, lane) = of_device.iter().find(|(other, _)| other == device)?;
            Some(Peer { lane: *lane, link })
        });
        lane.peers = renumbered.collect();
    }
    Ok(lanes)
}

/// Returns the device of each lane that a text names, `None` for a lane on the processor; `None` overall if the text is
/// wrong.
fn names(device: &str) -> Option<Vec<Option<String>>> {
    let (kind, rest) = device.split_once(':')?;
    let number = |text: &str| text.parse::<u32>().ok();
    match (kind, rest.split_once('#')) {
        ("cpu", None) => {
            let lanes = number(rest).filter(|lanes| (1..=64).contains(lanes))?;
            Some(vec![None; lanes as usize])
        }
        ("cuda", None) => number(rest).map(|ordinal| vec![Some(format!("cuda:{ordinal}"))]),
        ("cuda", Some((ordinal, lanes))) => {
            let (ordinal, lanes) =
                (number(ordinal)?, number(lanes).filter(|lanes| (1..=16).contains(lanes))?);
            let name = |lane| match lanes {
                1 => format!("cuda:{ordinal}"),
                _ => format!("cuda:{ordinal}#{lane}"),
            };
            Some((0..lanes).map(|lane| Some(name(lane))).collect())
        }
        _ => None,
    }
}
