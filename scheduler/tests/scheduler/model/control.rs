//! The model's rules for operators' commands: the lanes that get work, and the commands that may be refused.

use warptape_events::journal::*;
use warptape_scheduler::{PLACEMENT_POLICIES, TASK_POLICIES, current_task_policy};

use super::{Model, kind_of, predictions};

impl Model {
    /// True if a lane gets work: one in service, or any ready lane if none is in full service.
    pub fn serves(&self, lane: LaneId) -> bool {
        let any = self.lanes.iter().any(|lane| lane.ready && lane.is_in_full_service());
        let lane = &self.lanes[lane as usize];
        lane.ready && (lane.is_in_service() || !any)
    }

    /// Checks the reason for which a lane releases a group. Returns the reason's name.
    pub(super) fn check_release(&self, release: &Release) -> String {
        let lane = &self.lanes[release.lane as usize];
        assert_eq!(release.route.is_some(), release.cause == ReleaseCause::Route, "{release:?}");
        assert_eq!(release.imbalance.is_some(), release.cause == ReleaseCause::Balance, "{release:?}");
        let serves = self.serves(release.lane);
        match release.cause {
            ReleaseCause::Route => {
                let route = release.route.expect("checked above");
                assert_ne!(kind_of(release.lane), route.kind, "a group moves to where it is");
                let [there_ns, here_ns] = predictions(&route);
                assert!(there_ns * 5 < here_ns * 4, "a group moves for little: {route:?}");
                return format!("release to {:?}", route.kind);
            }
            ReleaseCause::Drained => assert!(lane.drained && !serves, "{release:?}"),
            ReleaseCause::Breaker => assert!(!lane.drained && !serves, "{release:?}"),
            ReleaseCause::Balance => self.check_imbalance(release),
            ReleaseCause::Rebalance => assert!(self.lanes.len() > 1, "{release:?}"),
        }
        format!("release {:?}", release.cause)
    }

    /// Checks that a group moves from a busy lane to one with less load, and that the recorded gain is correct.
    fn check_imbalance(&self, release: &Release) {
        let imbalance = release.imbalance.expect("a move says what it gains");
        let Imbalance { to, group_load_ns, from_load_ns, to_load_ns, gain_ns, cost_ns, windows } = imbalance;
        assert!(self.config.placement_policy.starts_with("balanced"), "{release:?}");
        assert!(to != release.lane && self.serves(to) && self.serves(release.lane), "{release:?}");
        assert!(cost_ns > 0 && gain_ns > 2 * cost_ns && windows == 3, "{release:?}");
        assert!(from_load_ns > to_load_ns && group_load_ns >= 0, "{release:?}");
        let most_ns = i128::from(from_load_ns - to_load_ns) * i128::from(self.config.balance_interval_ns);
        assert!(i128::from(gain_ns) <= most_ns / 1_000_000_000, "it gains more than there is: {release:?}");
    }

    fn may_refuse_watermark(&self, set: SetWatermark) -> bool {
        let is_owned =
            self.partitions.get(&set.partition).is_some_and(|known| known.assigned || known.restoring);
        !is_owned || !(1..i64::MAX).contains(&set.event_time_max_ns)
    }

    /// Applies an executed command, or checks that there is a reason for refusing it.
    pub(super) fn execute_control(&mut self, control: &Control, controlled: &Controlled) {
        assert_eq!(controlled.id, control.id);
        assert!(!controlled.detail.is_empty(), "a command is answered without a word");
        let is_late = self.at_ns > control.deadline_ns;
        if controlled.outcome == ControlOutcome::Refused {
            assert!(is_late || self.may_refuse(&control.command), "{control:?}: {controlled:?}");
            return;
        }
        assert!(!is_late, "a command is obeyed after its deadline");
        match &control.command {
            ControlCommand::DrainLane(drain) => self.lanes[drain.lane as usize].drained = true,
            ControlCommand::UndrainLane(undrain) => self.lanes[undrain.lane as usize].drained = false,
            ControlCommand::WeighLane(weigh) => self.lanes[weigh.lane as usize].weight = weigh.weight,
            ControlCommand::SetBreaker(set) => self.lanes[set.lane as usize].breaker.set(set.to),
            ControlCommand::Rebalance(_) => assert!(!self.life.draining, "groups are to move at the end"),
            ControlCommand::SetWatermark(set) => assert!(!self.may_refuse_watermark(*set), "{set:?}"),
            ControlCommand::WeighTenant(weigh) => assert!((1..=1_000).contains(&weigh.weight)),
            ControlCommand::ChoosePolicy(choice) if choice.of == "placement" => {
                assert!(PLACEMENT_POLICIES.contains(&choice.name.as_str()), "no such policy: {choice:?}");
                let bytes = self.config.placement_policy.split_once('/').map(|(_, bytes)| bytes.to_owned());
                let bytes = bytes.map_or(String::new(), |bytes| format!("/{bytes}"));
                self.config.placement_policy = format!("{}{bytes}", choice.name);
            }
            ControlCommand::ChoosePolicy(choice) => {
                let is_network = |hash| self.life.networks.contains(hash);
                assert!(
                    is_task_policy(&choice.name) || choice.name.strip_prefix("dqn:").is_some_and(is_network),
                    "there is no such policy: {choice:?}"
                );
                self.config.risk.policy = choice.name.clone();
                (self.tasks.finished_since, self.tasks.has_fallen) = (0, false);
            }
        }
    }

    /// Opens a lane's shares of tasks if it is out of service while another lane is in service.
    pub(super) fn settle_shares(&mut self) {
        for lane in 0..self.lanes.len() as LaneId {
            if !self.serves(lane) {
                self.reopen_shares(lane);
            }
        }
    }

    fn may_refuse(&self, command: &ControlCommand) -> bool {
        let unknown = |lane: LaneId| !(0..self.lanes.len() as LaneId).contains(&lane);
        let others = |lane: LaneId| {
            let mut others = (0..).zip(&self.lanes).filter(|(other, _)| *other != lane);
            others.any(|(_, other)| other.ready && other.is_in_full_service())
        };
        match command {
            ControlCommand::DrainLane(DrainLane { lane }) => unknown(*lane) || !others(*lane),
            ControlCommand::UndrainLane(UndrainLane { lane }) => unknown(*lane),
            ControlCommand::WeighLane(WeighLane { lane, weight }) => {
                unknown(*lane) || !(0..=1_000_000).contains(weight)
            }
            ControlCommand::SetBreaker(SetBreaker { lane, to }) => {
                unknown(*lane) || (*to == BreakerMode::Open && !others(*lane))
            }
            ControlCommand::Rebalance(_) => self.life.draining,
            ControlCommand::SetWatermark(set) => self.may_refuse_watermark(*set),
            ControlCommand::WeighTenant(weigh) => !(1..=1_000).contains(&weigh.weight),
            ControlCommand::ChoosePolicy(choice) if choice.of == "placement" => {
                !PLACEMENT_POLICIES.contains(&choice.name.as_str())
            }
            ControlCommand::ChoosePolicy(choice) => match choice.name.strip_prefix("dqn:") {
                Some(hash) => !self.life.networks.contains(hash),
                None => !is_task_policy(&choice.name),
            },
        }
    }
}

/// True if a text names a task policy with its version, or without it if that is version 1.
fn is_task_policy(text: &str) -> bool {
    let current = TASK_POLICIES.map(current_task_policy);
    current.iter().any(|current| current == text || current.strip_suffix("@1") == Some(text))
}
