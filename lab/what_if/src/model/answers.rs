//! The answers of lanes and the shell, and the times they take.

use warptape_schemas::journal::{Dispatch, PartitionId, Release, RunSlice, TaskId};

use super::{Answer, Run};
use crate::curve::Times;
use crate::error::WhatIfError;

impl Run<'_> {
    pub(super) fn dispatch(&mut self, at_ns: i64, dispatch: &Dispatch) -> Result<(), WhatIfError> {
        let mut address = Vec::with_capacity(16);
        for take in &dispatch.takes {
            let taken = self.taken.entry((take.partition, take.group)).or_default();
            if address.is_empty() {
                address.extend(take.partition.to_le_bytes());
                address.extend(take.group.to_le_bytes());
                address.extend(taken.to_le_bytes());
            }
            *taken += take.rows;
        }
        let lane = &mut self.lanes[dispatch.lane as usize];
        let service = &self.recording.service;
        let times = service.batch(&lane.class, dispatch.rows, (self.seed, &address), self.assumed)?;
        let Times { occupied_ns, service_ns } = slowed(times, self.plan.slow[dispatch.lane as usize]);
        lane.free_ns = lane.free_ns.max(at_ns) + occupied_ns;
        let (lane, life, free_ns, batch) = (dispatch.lane, lane.life, lane.free_ns, dispatch.batch);
        self.answers.push(free_ns, Answer::BatchDone { lane, life, batch, service_ns });
        Ok(())
    }

    pub(super) fn run_slice(&mut self, at_ns: i64, run: &RunSlice) -> Result<(), WhatIfError> {
        let Some((task, _)) = self.tasks.get(&run.task) else { return Ok(()) };
        let lane = &self.lanes[run.lane as usize];
        let mut address = Vec::with_capacity(16);
        address.extend(run.task.to_le_bytes());
        address.extend(run.from.to_le_bytes());
        let cost = (run.to - run.from).saturating_mul(task.unit_cost);
        let drawn = (self.seed, &address[..]);
        let service = &self.recording.service;
        let times = service.slice(&lane.class, &task.rate_key, cost, drawn, self.assumed)?;
        let Times { occupied_ns, service_ns } = slowed(times, self.plan.slow[run.lane as usize]);
        let (lane, life, slice) = (run.lane, lane.life, run.slice);
        self.answers.push(at_ns + occupied_ns, Answer::SliceDone { lane, life, slice, service_ns });
        Ok(())
    }

    /// Schedules the release of a group. It follows the batches in flight, because a lane works in order.
    pub(super) fn give_back(&mut self, at_ns: i64, release: &Release) {
        let lane = &self.lanes[release.lane as usize];
        let address = release.epoch.to_le_bytes();
        let after_ns = self.recording.service.release_ns(self.seed, &address, self.assumed);
        let &Release { partition, group, lane: number, epoch, .. } = release;
        let (at_ns, life) = (lane.free_ns.max(at_ns) + after_ns, lane.life);
        self.answers.push(at_ns, Answer::Released { partition, group, lane: number, epoch, life });
    }

    pub(super) fn restore(&mut self, at_ns: i64, partition: PartitionId) {
        let address = partition.to_le_bytes();
        let after_ns = self.recording.service.restore_ns(self.seed, &address, self.assumed);
        let source = self.source(partition);
        source.is_restoring = true;
        source.is_paused = false;
        let assignment = source.assignment;
        self.answers.push(at_ns + after_ns, Answer::Restored { partition, assignment });
    }

    /// Ends a round. The next round begins after the recorded pause, if the journal has one.
    pub(super) fn finish(&mut self, at_ns: i64, task: TaskId) {
        let Some(&(_, round)) = self.tasks.get(&task) else { return };
        let next = self.life.rounds.get(&task).and_then(|rounds| rounds.get(round));
        match next.map(|(after_ns, _)| *after_ns) {
            Some(after_ns) => self.answers.push(at_ns + after_ns.max(0), Answer::Round { task, round }),
            None => {
                self.tasks.remove(&task);
            }
        }
    }
}

fn slowed(times: Times, thousandths: i64) -> Times {
    Times {
        occupied_ns: scaled(times.occupied_ns, thousandths),
        service_ns: scaled(times.service_ns, thousandths),
    }
}

pub(super) fn scaled(ns: i64, thousandths: i64) -> i64 {
    (i128::from(ns) * i128::from(thousandths) / 1_000).min(i128::from(i64::MAX / 4)) as i64
}
