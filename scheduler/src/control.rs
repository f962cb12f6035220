//! Control: the effect of an operator's command, or the reason for refusing it, in words.
//!
//! The module owns which commands are valid, and the words of the answers. The consequences (releases, placements,
//! slices) are decisions of the rules that a command changes. Every published command is answered: no function here
//! returns an error to the caller.

use warptape_events::SetEventTime;
use warptape_events::journal::{
    BreakerMode, BreakerState, ChoosePolicy, Control, ControlCommand, ControlOutcome, Controlled, Decision,
    LaneId, SetWatermark, TenantWeight, WeighLane, WeighTenant,
};

use crate::balance;
use crate::breaker;
use crate::config::{TENANT_WEIGHT_MAX, TENANT_WEIGHTS_MAX, WEIGHT_MAX};
use crate::lanes::Lane;
use crate::life::Life;
use crate::partitions::PartitionPhase;
use crate::policy::placement::{PLACEMENT_POLICIES, PlacementPolicy};
use crate::policy::task::{TASK_POLICIES, TaskPolicy, current_task_policy, dqn};
use crate::risk;
use crate::service::{self, Change};

/// Most lanes named in a refusal.
const LANES_NAMED: usize = 4;

/// Number of task policies named in the refusal of an unknown one: those that existed when such a refusal was first
/// recorded. The words are part of the decision, so further policies must not change them.
const POLICIES_NAMED: usize = 11;
/// Number of placement policies named in such a refusal.
const PLACEMENTS_NAMED: usize = 2;

/// Executes a command or refuses it, and answers it.
pub(crate) fn obey(life: &mut Life, control: &Control, decisions: &mut Vec<Decision>) {
    let (outcome, detail) = match judge(life, control) {
        Ok(done) => (ControlOutcome::Done, done),
        Err(why) => (ControlOutcome::Refused, why),
    };
    decisions.push(Decision::Controlled(Controlled { id: control.id.clone(), outcome, detail }));
}

/// Executes a command. Returns a text about its effect, or the reason for refusing it.
fn judge(life: &mut Life, control: &Control) -> Result<String, String> {
    let late_ns = life.clock.at_ns.saturating_sub(control.deadline_ns);
    if late_ns > 0 {
        return Err(format!("it came {} ms after its deadline: send it again", late_ns / 1_000_000));
    }
    match &control.command {
        ControlCommand::DrainLane(drain) => drain_lane(life, drain.lane),
        ControlCommand::UndrainLane(undrain) => undrain_lane(life, undrain.lane),
        ControlCommand::WeighLane(weigh) => weigh_lane(life, *weigh),
        ControlCommand::Rebalance(_) => rebalance(life),
        ControlCommand::WeighTenant(weigh) => weigh_tenant(life, weigh),
        ControlCommand::SetBreaker(set) => set_breaker(life, set.lane, set.to),
        ControlCommand::ChoosePolicy(choice) => choose_policy(life, choice),
        ControlCommand::SetWatermark(set) => set_watermark(life, *set),
    }
}

fn known(life: &Life, lane: LaneId) -> Result<(), String> {
    let last = life.lanes.len() - 1;
    match usize::try_from(lane).is_ok_and(|index| index <= last) {
        true => Ok(()),
        false => Err(format!("there is no lane {lane}: lanes are numbered from 0 to {last}")),
    }
}

/// Returns a refusal if the lane is the last ready one in service.
fn dispensable(life: &Life, lane: LaneId) -> Result<(), String> {
    let mut others = life.lanes.iter().filter(|other| other.id != lane);
    match !life.lanes[lane as usize].ready || others.any(|other| other.ready && other.service.is_full()) {
        true => Ok(()),
        false => {
            let others = life.lanes.iter().filter(|other| other.id != lane);
            let kept: Vec<String> = others.clone().take(LANES_NAMED).map(what_keeps).collect();
            let more = match others.count() - kept.len() {
                0 => String::new(),
                more => format!(", and {more} more likewise"),
            };
            let kept = if kept.is_empty() { "there is none".to_owned() } else { kept.join(", ") };
            Err(format!("no other lane than {lane} is ready and in service: {kept}{more}"))
        }
    }
}

/// Words for the condition that keeps a lane from full service, and for how it ends.
fn what_keeps(other: &Lane) -> String {
    let (lane, service) = (other.id, &other.service);
    match (service.mode(), service.breaker()) {
        _ if !other.ready => format!("lane {lane} is lost"),
        _ if service.is_drained() => format!("lane {lane} is drained (`undrain {lane}`)"),
        (BreakerMode::Open, _) => format!("the breaker of lane {lane} is held open (`breaker {lane} auto`)"),
        (_, BreakerState::HalfOpen) => {
            format!("the breaker of lane {lane} is half open, and tries it (`breaker {lane} close`)")
        }
        _ => format!("the breaker of lane {lane} is open (`breaker {lane} close`)"),
    }
}

/// Words for what happens to the groups of a lane that gets no more work.
fn groups_go(life: &Life, lane: LaneId) -> String {
    match life.lanes[lane as usize].groups_placed {
        _ if life.clock.draining => "the pipeline ends, so that its groups stay".to_owned(),
        0 => "it has no groups".to_owned(),
        1 => "its group goes to another lane".to_owned(),
        groups => format!("its {groups} groups go to other lanes"),
    }
}

fn drain_lane(life: &mut Life, lane: LaneId) -> Result<String, String> {
    known(life, lane)?;
    if life.lanes[lane as usize].service.is_drained() {
        return Ok(format!("lane {lane} is drained already"));
    }
    if life.lanes[lane as usize].service.is_on() {
        dispensable(life, lane)?;
    }
    let groups = groups_go(life, lane);
    service::change(life, lane, Change::Drained(true));
    Ok(format!("lane {lane} is drained: {groups}, and it gets no slices"))
}

fn undrain_lane(life: &mut Life, lane: LaneId) -> Result<String, String> {
    known(life, lane)?;
    if !life.lanes[lane as usize].service.is_drained() {
        return Ok(format!("lane {lane} is not drained"));
    }
    service::change(life, lane, Change::Drained(false));
    Ok(comes_back(life, lane, format!("lane {lane} is drained no more")))
}

/// Makes groups move to a lane that is in service again, and adds that to the words.
fn comes_back(life: &mut Life, lane: LaneId, words: String) -> String {
    let lane_now = &life.lanes[lane as usize];
    if !lane_now.service.is_on() {
        let why = if lane_now.service.is_drained() { "it is drained" } else { "its breaker is open" };
        return format!("{words}; {why}");
    }
    if !lane_now.ready {
        return format!("{words}; it is lost");
    }
    life.rebalancing.begin(Some(lane), &mut life.hash);
    format!("{words}: groups that are best there move to it")
}

fn weigh_lane(life: &mut Life, weigh: WeighLane) -> Result<String, String> {
    let WeighLane { lane, weight } = weigh;
    known(life, lane)?;
    if !(0..=WEIGHT_MAX).contains(&weight) {
        return Err(format!("{weight} is no weight of a lane: it is from 0 (stands by) to {WEIGHT_MAX}"));
    }
    let changed = &mut life.lanes[lane as usize];
    let before = std::mem::replace(&mut changed.weight.full, weight);
    let withheld_percent = changed.weight.withheld_percent;
    service::withhold(life, lane, withheld_percent);
    Ok(format!(
        "lane {lane} weighs {weight}, and weighed {before}; groups stay where they are until `rebalance`"
    ))
}

fn rebalance(life: &mut Life) -> Result<String, String> {
    if life.clock.draining {
        return Err("the pipeline ends: groups stay where they are".to_owned());
    }
    life.rebalancing.begin(None, &mut life.hash);
    let groups = life.counts.groups_assigned;
    Ok(format!("of {groups} groups those move that would be placed elsewhere now"))
}

fn weigh_tenant(life: &mut Life, weigh: &WeighTenant) -> Result<String, String> {
    let WeighTenant { tenant, weight } = weigh;
    if !(1..=TENANT_WEIGHT_MAX).contains(weight) {
        return Err(format!("{weight} is no weight of a tenant: it is from 1 to {TENANT_WEIGHT_MAX}"));
    }
    let weights = &mut life.config.risk.tenant_weights;
    let known = weights.iter().position(|known| known.tenant == *tenant);
    if known.is_none() && weights.len() >= TENANT_WEIGHTS_MAX {
        return Err(format!(
            "{TENANT_WEIGHTS_MAX} tenants have a weight of their own, and no more may have one"
        ));
    }
    let before = match known {
        Some(index) => std::mem::replace(&mut weights[index].weight, *weight),
        None => {
            weights.push(TenantWeight { tenant: tenant.clone(), weight: *weight });
            1
        }
    };
    life.risk.weigh(tenant, *weight);
    life.refresh_config();
    Ok(format!("tenant {tenant} weighs {weight}, and weighed {before}"))
}

fn set_breaker(life: &mut Life, lane: LaneId, to: BreakerMode) -> Result<String, String> {
    known(life, lane)?;
    let service = &life.lanes[lane as usize].service;
    let held = match to {
        BreakerMode::Auto => "judges by itself",
        BreakerMode::Open => "is held open",
        BreakerMode::Closed => "is held closed",
    };
    if service.mode() == to {
        return Ok(format!("the breaker of lane {lane} {held} already"));
    }
    let (was_on, was_full) = (service.is_on(), service.is_full());
    if to == BreakerMode::Open && was_on {
        dispensable(life, lane)?;
    }
    let groups = groups_go(life, lane);
    service::change(life, lane, Change::Mode(to));
    breaker::forget(life, lane);
    let words = format!("the breaker of lane {lane} {held}");
    let service = &life.lanes[lane as usize].service;
    Ok(match (was_on && !service.is_on(), !was_full && service.is_full()) {
        (true, _) => format!("{words}: {groups}, and it gets no slices"),
        (false, true) => comes_back(life, lane, words),
        (false, false) => words,
    })
}

/// Only checks the command: it does not affect scheduling. The owner of the partition writes the event time to the log.
fn set_watermark(life: &Life, set: SetWatermark) -> Result<String, String> {
    let SetWatermark { partition, event_time_max_ns } = set;
    let known = life.partitions.get(&partition);
    if known.is_none_or(|known| known.phase == PartitionPhase::Revoked) {
        return Err(format!("partition {partition} is not this process's: tell the one that has it"));
    }
    SetEventTime::check(event_time_max_ns).map_err(|problem| format!("the event time {problem}"))?;
    Ok(format!(
        "the greatest event time of partition {partition} is {event_time_max_ns} for ticks behind those that are there now"
    ))
}

fn choose_policy(life: &mut Life, choice: &ChoosePolicy) -> Result<String, String> {
    let ChoosePolicy { of, name } = choice;
    match of.as_str() {
        "tasks" => choose_task_policy(life, name),
        "placement" => choose_placement_policy(life, name),
        _ => Err(format!("there are no policies of {of}; there are policies of: tasks, placement")),
    }
}

fn choose_placement_policy(life: &mut Life, name: &str) -> Result<String, String> {
    let known = PlacementPolicy::parse(name).filter(|_| !name.contains('/'));
    let Some((policy, _)) = known else {
        let names = PLACEMENT_POLICIES[..PLACEMENTS_NAMED].join(", ");
        return Err(format!("there is no policy of placement called {name}; there are: {names}"));
    };
    let before = std::mem::replace(&mut life.policy, policy);
    // The bound on a step's decisions does not change.
    life.config.placement_policy = match life.config.placement_policy.split_once('/') {
        Some((_, bytes)) => format!("{name}/{bytes}"),
        None => name.to_owned(),
    };
    if before != policy {
        balance::forget(life);
    }
    life.refresh_config();
    Ok(format!(
        "the policy of placement is {name}, and was {}; groups stay where they are until `rebalance`, or until it moves them",
        before.name()
    ))
}

fn choose_task_policy(life: &mut Life, name: &str) -> Result<String, String> {
    // A prefix of a network's hash is enough here; the configuration gets all of it.
    let whole = match name.starts_with("dqn:") {
        true => dqn::name(life.learnt.networks.named(name)?),
        false => name.to_owned(),
    };
    let name = whole.as_str();
    let Some(policy) = TaskPolicy::parse(name).filter(|_| !name.is_empty()) else {
        let known = name.split('@').next().unwrap_or_default();
        if TASK_POLICIES[POLICIES_NAMED..].contains(&known) {
            let current = current_task_policy(known);
            return Err(format!("there is no policy of tasks called {name}: this software has {current}"));
        }
        let names = TASK_POLICIES[..POLICIES_NAMED].join(", ");
        return Err(format!("there is no policy of tasks called {name}; there are: {names}"));
    };
    let before = std::mem::replace(&mut life.config.risk.policy, name.to_owned());
    let before = if before.is_empty() { "fair" } else { &before };
    risk::choose_policy(life, policy);
    life.refresh_config();
    Ok(format!("the policy of tasks is {name}, and was {before}; what waits for one lane alone stays there"))
}
