//! Operators' commands in a simulated run: sent at any time, and interrupted by crashes. In the end, each command that
//! was read must have exactly one answer.

use std::collections::BTreeMap;

use warptape_engine::{Event, ReadControl};
use warptape_scheduler::PLACEMENT_POLICIES;
use warptape_schemas::control::{
    BreakerMode, ChoosePolicy, Control, ControlCommand, ControlOutcome, DrainLane, Rebalance, SetBreaker,
    UndrainLane, WeighLane,
};
use warptape_schemas::{decode_control, decode_control_result, encode_control};

use super::process::Process;
use super::{Failure, World};
use crate::random::Random;

/// Commands of a run, by the ordinal of the process.
#[derive(Default)]
pub(super) struct Controls {
    /// Commands in the log, encoded.
    log: BTreeMap<i32, Vec<Vec<u8>>>,
    /// Committed offsets of the next command to read.
    pub(super) offsets: BTreeMap<i32, i64>,
}

impl Process {
    /// Reads the process's next command; if there is none, sends one.
    pub(super) fn control(&mut self, world: &mut World) -> Result<(), Failure> {
        if !self.core.wants().is_some_and(|wants| wants.controls) {
            return Ok(());
        }
        let committed = world.controls.offsets.get(&self.around.ordinal).copied().unwrap_or(0);
        let offset = self.around.control_next.unwrap_or(committed);
        let log = world.controls.log.entry(self.around.ordinal).or_default();
        if log.len() as i64 == offset {
            if world.phase.healing {
                return Ok(());
            }
            log.push(command(&mut world.random, world.config.core.lanes.len(), world.now_ns));
        }
        let control = decode_control(&log[offset as usize]);
        self.around.control_next = Some(offset + 1);
        let controls = vec![ReadControl { offset, control }];
        self.tell(Event::Controls { ordinal: self.around.ordinal, controls }, world)
    }
}

fn command(random: &mut Random, lanes: usize, now_ns: i64) -> Vec<u8> {
    if random.one_in(20) {
        return b"garbage".to_vec();
    }
    let lane = random.between(-1, lanes as i64) as i32;
    let breaker = |to| ControlCommand::SetBreaker(SetBreaker { lane, to });
    let command = match random.index(9) {
        0 | 1 => ControlCommand::DrainLane(DrainLane { lane }),
        2 | 3 => ControlCommand::UndrainLane(UndrainLane { lane }),
        4 => ControlCommand::WeighLane(WeighLane { lane, weight: random.between(0, 4) as i32 }),
        5 => breaker(BreakerMode::Open),
        6 => breaker(BreakerMode::Auto),
        7 => {
            let name = PLACEMENT_POLICIES[random.index(PLACEMENT_POLICIES.len())].to_owned();
            ControlCommand::ChoosePolicy(ChoosePolicy { of: "placement".to_owned(), name })
        }
        _ => ControlCommand::Rebalance(Rebalance {}),
    };
    let deadline_ns = now_ns + random.between(-1, 100_000_000);
    let control =
        Control { id: "one".to_owned(), at_ns: now_ns, by: "someone".to_owned(), deadline_ns, command };
    let mut value = Vec::new();
    encode_control(&control, &mut value);
    value
}

impl World {
    /// Checks that each command before the committed offset has exactly one answer, in order.
    pub(super) fn check_controls(&mut self) -> Result<(), Failure> {
        let mut outcomes = [0, 0];
        for (&ordinal, &committed) in &self.controls.offsets {
            let answers = self.topic("control.results", ordinal).iter();
            let answers = answers.map(|record| decode_control_result(record).expect("answers are whole"));
            let answers: Vec<_> = answers.collect();
            if !answers.iter().map(|answer| answer.offset).eq(0..committed) {
                let found: Vec<i64> = answers.iter().map(|answer| answer.offset).collect();
                return Err(Failure::Outputs(format!(
                    "process {ordinal}: {committed} commands, answers {found:?}"
                )));
            }
            for answer in &answers {
                outcomes[usize::from(answer.outcome == ControlOutcome::Refused)] += 1;
            }
        }
        let [done, refused] = outcomes;
        self.coverage.controls_done += done;
        self.coverage.controls_refused += refused;
        Ok(())
    }
}
