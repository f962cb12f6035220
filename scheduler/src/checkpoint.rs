//! Checkpoints: the whole state as bytes, so that a replay may begin there.
//!
//! ```text
//!   4, the state, Learnt, Later, Rules
//!   5, the same, Newest                   the state has something that version 4 lacks, such as slices that others have passed
//!   6, the same, Wide                     lanes or units have widths
//! ```
//!
//! The bytes begin with their version; the rest is postcard. All versions are read. The first version that holds the
//! whole state is written, so that states without later additions keep their bytes. Additions to the state go into
//! [`Later`], in a new version. A change of any other type within the state needs a new version as well; the test of a
//! checkpoint's bytes fails without one.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use warptape_events::journal::{LaneId, LaneSpec, SchedulerConfig, Started, TaskId};

use crate::audit;
use crate::config::{FIRST_RULES, RULES};
use crate::lanes::Slice;
use crate::learnt::{Later, Learnt, Rules};
use crate::life::Life;
use crate::machine::Scheduler;
use crate::policy::task::{TaskPolicy, task_policies_listed};
use crate::risk::{Shadows, Widths, widths_of};

/// Version of the encoding of a state followed by [`Learnt`], [`Later`] and [`Rules`]: the first released one.
const RULED: u8 = 4;
/// Version of the encoding with [`Newest`] after [`Rules`].
const NEWEST: u8 = 5;
/// Version of the encoding with [`Wide`] after [`Newest`].
const WIDE: u8 = 6;

/// Parts of the state that were added after version 5.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Wide {
    /// Widths by lane; empty if all are 1.
    lanes: Vec<i32>,
    /// Widths of units, by task; a missing one is 0.
    units: Vec<(TaskId, u16)>,
}

impl Wide {
    fn of(life: &Life) -> Self {
        Self { lanes: life.risk.widths().of_lanes().to_vec(), units: life.risk.unit_widths().collect() }
    }

    /// Puts the parts into a state without them; returns false if they do not fit.
    fn put_into(self, life: &mut Life) -> bool {
        let classes = life.lanes.iter().map(|lane| lane.class);
        Widths::new(self.lanes, classes).is_some_and(|widths| life.risk.restore_widths(widths, self.units))
    }
}

/// Parts of the state that were added after version 4.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Newest {
    owes_aged: bool,
    /// Slices that a critical slice has passed, by lane.
    passed: Vec<(LaneId, Slice)>,
    /// Time of each lane's last measurement by its breaker.
    measured_ns: Vec<i64>,
}

impl Newest {
    fn of(life: &Life) -> Self {
        let passed = life.lanes.iter().filter_map(|lane| Some((lane.id, lane.passed()?)));
        let (owes_aged, measured_ns) = (life.learnt.later.owes_aged, life.breakers.measured_ns());
        Self { owes_aged, passed: passed.collect(), measured_ns }
    }

    /// Puts the parts into a state without them; returns false if they do not fit.
    fn put_into(self, life: &mut Life) -> bool {
        life.learnt.later.owes_aged = self.owes_aged;
        life.breakers.restore_measured(&self.measured_ns)
            && self.passed.into_iter().all(|(lane, slice)| {
                let index = usize::try_from(lane).unwrap_or(usize::MAX);
                let may = life
                    .lanes
                    .get(index)
                    .is_some_and(|lane| lane.slice().is_some() && lane.passed().is_none());
                if may {
                    life.lanes[index].restore_passed(slice);
                }
                may
            })
    }
}

/// The error of bytes from which no scheduler can be restored.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CheckpointError {
    /// Another version of the scheduler wrote it.
    #[error("the state has version {found}, but this software reads versions {RULED} to {WIDE}")]
    Version {
        /// Its version.
        found: u8,
    },
    /// The checkpoint needs a task policy, or a version of one, that this software does not have.
    #[error("the state needs the task policy {found}, which this software does not have; it has: {known}")]
    Policy {
        /// The policy, with its version.
        found: String,
        /// The policies that this software has.
        known: String,
    },
    /// The state has shadow policies, which this build does not have.
    #[error(
        "the state has policies in the shadow, which need the feature `lab`: build with `cargo build \
         --release --features lab`"
    )]
    Shadow,
    /// The state follows rules that this software does not know.
    #[error("the state follows rules {found}, but this software knows rules {FIRST_RULES} to {RULES}")]
    Rules {
        /// Number of the rules.
        found: i32,
    },
    /// The bytes are no valid state.
    #[error("the state cannot be read: {0}")]
    Damaged(String),
}

impl Scheduler {
    /// Versions that are read and written.
    pub const CHECKPOINT_VERSIONS: RangeInclusive<u8> = RULED..=WIDE;

    /// The bytes of the whole state.
    pub fn checkpoint(&self) -> Vec<u8> {
        let nothing = Learnt::default();
        let learnt = self.life.as_ref().map_or(&nothing, |life| &life.learnt);
        let newest = self.life.as_ref().map(Newest::of).unwrap_or_default();
        let wide = self.life.as_ref().map(Wide::of).unwrap_or_default();
        let version = match (&newest, &wide) {
            (newest, wide) if (newest, wide) == (&Newest::default(), &Wide::default()) => RULED,
            (_, wide) if *wide == Wide::default() => NEWEST,
            _ => WIDE,
        };
        let mut bytes = postcard::to_extend(self, vec![version])
            .and_then(|bytes| postcard::to_extend(learnt, bytes))
            .and_then(|bytes| postcard::to_extend(&learnt.later, bytes))
            .and_then(|bytes| postcard::to_extend(&learnt.later.rules, bytes));
        if version >= NEWEST {
            bytes = bytes.and_then(|bytes| postcard::to_extend(&newest, bytes));
        }
        if version >= WIDE {
            bytes = bytes.and_then(|bytes| postcard::to_extend(&wide, bytes));
        }
        bytes.expect("the state is made of numbers, texts and lists")
    }

    /// Restores a scheduler from the bytes of a checkpoint.
    ///
    /// # Errors
    /// The bytes are damaged or of an unknown version, or the state needs a policy or rules that this software does not
    /// have.
    pub fn from_checkpoint(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let (&version, state) = bytes.split_first().ok_or_else(|| damaged("there are no bytes"))?;
        if !Self::CHECKPOINT_VERSIONS.contains(&version) {
            return Err(CheckpointError::Version { found: version });
        }
        let (mut scheduler, rest) = postcard::take_from_bytes::<Self>(state).map_err(damaged)?;
        let (learnt, rest) = postcard::take_from_bytes::<Learnt>(rest).map_err(damaged)?;
        let (later, rest) = postcard::take_from_bytes::<Later>(rest).map_err(damaged)?;
        let (rules, mut rest) = postcard::take_from_bytes::<Rules>(rest).map_err(damaged)?;
        let (mut newest, mut wide) = (Newest::default(), Wide::default());
        if version >= NEWEST {
            (newest, rest) = postcard::take_from_bytes(rest).map_err(damaged)?;
        }
        if version >= WIDE {
            (wide, rest) = postcard::take_from_bytes(rest).map_err(damaged)?;
        }
        if version == NEWEST && newest == Newest::default() || version == WIDE && wide == Wide::default() {
            return Err(damaged(format!("its contents need only version {}", version - 1)));
        }
        let learnt = Learnt { later: Later { rules, ..later }, ..learnt };
        match &mut scheduler.life {
            Some(life) => {
                life.learnt = learnt;
                life.risk.restore_totals();
                if !newest.put_into(life) || !wide.put_into(life) {
                    return Err(damaged("it has values for lanes, slices or tasks that it lacks"));
                }
            }
            None if learnt == Learnt::default() && newest == Newest::default() && wide == Wide::default() => {
            }
            None => return Err(damaged("it has learnt values, but no process has started")),
        }
        if !rest.is_empty() {
            return Err(damaged(format!("{} bytes too many", rest.len())));
        }
        if !audit::hash_is_kept(&scheduler) {
            return Err(damaged("its hash does not match"));
        }
        if let Some(life) = &scheduler.life {
            check_known(life, cfg!(feature = "lab"))?;
        }
        Ok(scheduler)
    }
}

impl Scheduler {
    /// The first field of a `Started` input that contradicts this state; `None` if there is none. Fields that operators
    /// may change later do not count: policies, and weights of lanes and tenants.
    pub fn contradiction(&self, started: &Started) -> Option<&'static str> {
        let Some(life) = &self.life else { return Some("scheduler") };
        let without = |config: &SchedulerConfig| {
            let mut config = config.clone();
            config.placement_policy.clear();
            config.risk.policy.clear();
            config.risk.tenant_weights.clear();
            config
        };
        let Rules(rules) = life.learnt.later.rules;
        let kinds = life.lanes.iter().map(|lane| lane.kind);
        let widths = life.lanes.iter().map(|lane| life.risk.widths().of_lane(lane.id) as i32);
        match () {
            () if without(&life.config) != without(&started.scheduler) => Some("scheduler"),
            () if !kinds.eq(started.lanes.iter().map(LaneSpec::kind)) => Some("lanes"),
            () if !widths.eq(widths_of(&started.lanes, started.rules)) => Some("lanes"),
            () if rules != started.rules => Some("rules"),
            () => None,
        }
    }
}

/// Refuses a state that needs something that the build, with or without the laboratory, does not have.
fn check_known(life: &Life, has_lab: bool) -> Result<(), CheckpointError> {
    let Rules(found) = life.learnt.later.rules;
    if !(FIRST_RULES..=RULES).contains(&found) {
        return Err(CheckpointError::Rules { found });
    }
    if !has_lab && life.learnt.later.shadows.is_some() {
        return Err(CheckpointError::Shadow);
    }
    let shadows = life.learnt.later.shadows.iter().flat_map(Shadows::names);
    let unknown = shadows.chain([&life.config.risk.policy]).find(|name| TaskPolicy::parse(name).is_none());
    match unknown.cloned() {
        Some(found) => Err(CheckpointError::Policy { found, known: task_policies_listed() }),
        None => Ok(()),
    }
}

fn damaged(what: impl ToString) -> CheckpointError {
    CheckpointError::Damaged(what.to_string())
}

#[cfg(test)]
mod tests {
    use warptape_events::journal::{Input, ShadowConfig};

    use super::*;
    use crate::config::tests::good;
    use crate::policy::task::current_task_policy;

    fn begun(config: SchedulerConfig, shadow: Option<ShadowConfig>) -> Scheduler {
        let started = Started {
            node: "node".to_owned(),
            software: "test".to_owned(),
            stage_config: "{}".to_owned(),
            scheduler: config,
            lanes: vec![LaneSpec::new(0, "cpu:0".to_owned(), 1)],
            autoscale: None,
            shadow,
            rules: RULES,
        };
        let mut scheduler = Scheduler::new();
        scheduler.step(0, &Input::Started(Box::new(started)), &mut Vec::new()).expect("good input");
        scheduler
    }

    #[test]
    fn a_state_under_a_version_of_a_policy_that_is_not_there_is_refused_by_its_name() {
        let mut config = good();
        config.risk.policy = current_task_policy("linucb");
        let shadow = ShadowConfig { policies: vec!["fair@1".to_owned()], every: 1 };
        let mut scheduler = begun(config, Some(shadow));
        assert!(Scheduler::from_checkpoint(&scheduler.checkpoint()).is_ok());
        let life = scheduler.life.as_ref().expect("it has begun");
        assert_eq!(check_known(life, false), Err(CheckpointError::Shadow));
        // The bytes become those of software with the other version of the policy.
        let life = scheduler.life.as_mut().expect("it has begun");
        life.config.risk.policy = "linucb@99".to_owned();
        life.refresh_config();
        let refused = Scheduler::from_checkpoint(&scheduler.checkpoint()).expect_err("nobody has it");
        let CheckpointError::Policy { found, known } = &refused else { panic!("{refused}") };
        assert_eq!(found, "linucb@99");
        assert!(known.ends_with(&current_task_policy("linucb")), "{known}");

        let life = scheduler.life.as_mut().expect("it has begun");
        life.config.risk.policy = "fair@1".to_owned();
        life.refresh_config();
        assert!(Scheduler::from_checkpoint(&scheduler.checkpoint()).is_ok());
        let life = scheduler.life.as_mut().expect("it has begun");
        let shadows = life.learnt.later.shadows.as_mut().expect("it has policies in the shadow");
        shadows.rename("fair@99", &mut life.hash);
        let refused = Scheduler::from_checkpoint(&scheduler.checkpoint()).expect_err("nobody has it");
        assert!(matches!(&refused, CheckpointError::Policy { found, .. } if found == "fair@99"), "{refused}");
    }

    #[test]
    fn a_state_by_rules_that_are_not_known_is_refused_by_their_number() {
        let mut scheduler = begun(good(), None);
        // The bytes become those of software with the other rules.
        let life = scheduler.life.as_mut().expect("it has begun");
        life.learnt.later.rules = Rules(RULES + 1);
        life.refresh_config();
        let refused = Scheduler::from_checkpoint(&scheduler.checkpoint()).expect_err("nobody knows them");
        assert_eq!(refused, CheckpointError::Rules { found: RULES + 1 });
    }
}
