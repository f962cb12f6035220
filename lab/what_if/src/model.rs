//! Models one run in virtual time: recorded inputs come at their recorded times, and the model answers the scheduler's
//! decisions.
//!
//! The module owns the answers; the scheduler decides.

mod answers;

use std::collections::{BTreeMap, VecDeque};

use warptape_scheduler::Scheduler;
use warptape_schemas::journal::{
    Arrived, Completed, Control, ControlCommand, Decision, Input, LaneId, LaneLost, LaneReady, Measured,
    PartitionAssigned, PartitionId, Priced, Released, Sampled, ServicePoint, SliceDone, TaskArrived, TaskId,
    Trained, Woke,
};
use warptape_simulator::{Agenda, Next};

use crate::changes::{Changes, LossTime, Plan, check_for_lanes};
use crate::error::WhatIfError;
use crate::figures::Figures;
use crate::ledger::Ledger;
use crate::recording::{Life, Recording};
use crate::service::{Assumed, class_of};
use crate::written::Told;
use answers::scaled;

/// Time limit of a modelled run beyond the recorded one, as a multiple of the recorded length. The next constant is the
/// least limit. Work left then counts as not done.
const OVERTIME: i64 = 10;
const OVERTIME_NS_MIN: i64 = 600_000_000_000;

/// The result of a modelled run.
#[derive(Clone, Debug)]
pub struct Modelled {
    /// The figures.
    pub figures: Figures,
    /// Assumptions made where the journal has no data.
    pub assumed: Assumed,
}

/// A scheduled answer.
#[derive(Clone, Debug)]
enum Answer {
    BatchDone { lane: LaneId, life: u32, batch: i64, service_ns: i64 },
    SliceDone { lane: LaneId, life: u32, slice: i64, service_ns: i64 },
    Released { partition: PartitionId, group: i32, lane: LaneId, epoch: i64, life: u32 },
    Restored { partition: PartitionId, assignment: u32 },
    Priced { question: i64, prices: Vec<i64> },
    Round { task: TaskId, round: usize },
    Lost { lane: LaneId },
}

/// The state of a lane.
#[derive(Clone, Debug, Default)]
struct Lane {
    class: String,
    is_on_device: bool,
    is_lost: bool,
    /// True if the changes lose the lane permanently.
    is_gone: bool,
    /// Number of times the lane was lost.
    life: u32,
    /// Time at which the lane is done with its batches in flight.
    free_ns: i64,
}

/// The state of a partition of the source.
#[derive(Clone, Debug, Default)]
struct Source {
    groups: i32,
    position: i64,
    is_assigned: bool,
    is_restoring: bool,
    is_paused: bool,
    /// Number of times the partition was assigned.
    assignment: u32,
    /// Arrivals held back while the partition is paused or restored, with their recorded times.
    held: VecDeque<(i64, Arrived)>,
}

/// The state of a process life that is modelled.
struct Run<'a> {
    recording: &'a Recording,
    life: &'a Life,
    plan: Plan,
    seed: u64,
    scheduler: Scheduler,
    answers: Agenda<Answer>,
    lanes: Vec<Lane>,
    sources: BTreeMap<PartitionId, Source>,
    /// Number of rows that each group had in batches so far. It addresses the draw of the next batch, whatever the
    /// schedule.
    taken: BTreeMap<(PartitionId, i32), i64>,
    tasks: BTreeMap<TaskId, (TaskArrived, usize)>,
    ledger: &'a mut Ledger,
    assumed: &'a mut Assumed,
    told: Told<'a>,
}

impl Recording {
    /// Models the run with these changes, or as recorded if there are no changes. The same seed gives the same figures.
    ///
    /// # Errors
    /// If the changes do not fit the recording, or the journal has no service times.
    pub fn model(&self, changes: &Changes, seed: u64) -> Result<Modelled, WhatIfError> {
        self.model_told(changes, seed, &mut |_, _, _, _| Ok(()))
    }

    /// Models the run like [`Recording::model`], and reports each step.
    pub(crate) fn model_told(
        &self,
        changes: &Changes,
        seed: u64,
        told: Told<'_>,
    ) -> Result<Modelled, WhatIfError> {
        let mut ledger = Ledger::new(self.window_ns.0, true);
        let mut assumed = Assumed::new();
        let plan = |life: &Life| changes.apply(&life.started, &self.networks);
        let plans: Vec<Plan> = self.lives.iter().map(plan).collect::<Result<_, _>>()?;
        let losses = losses(self, &plans)?;
        for (index, (life, plan)) in self.lives.iter().zip(plans).enumerate() {
            let end_ns = self.lives.get(index + 1).map(|next| next.began_ns);
            ledger.begin(life.began_ns, &plan.started.lanes);
            let mut run = Run::new((self, life), plan, seed, (&mut ledger, &mut assumed, told));
            for &(at_ns, lane) in losses
                .iter()
                .filter(|(at_ns, _)| *at_ns >= life.began_ns && end_ns.is_none_or(|end_ns| *at_ns < end_ns))
            {
                run.answers.push(at_ns, Answer::Lost { lane });
            }
            run.go(end_ns.unwrap_or(self.overtime_ns()))?;
        }
        Ok(Modelled { figures: ledger.finish(), assumed })
    }

    fn overtime_ns(&self) -> i64 {
        let length_ns = self.window_ns.1 - self.lives[0].began_ns;
        self.window_ns.1.saturating_add(length_ns.saturating_mul(OVERTIME).max(OVERTIME_NS_MIN))
    }
}

/// Returns the times and lanes of the losses in the changes.
fn losses(recording: &Recording, plans: &[Plan]) -> Result<Vec<(i64, LaneId)>, WhatIfError> {
    let (first_ns, last_ns) = recording.window_ns;
    let loss = |&(lane, time): &(LaneId, LossTime)| {
        let at_ns = match time {
            LossTime::At(at_ns) => at_ns,
            LossTime::After(after_ns) => first_ns.saturating_add(after_ns),
        };
        if (first_ns..=last_ns).contains(&at_ns) {
            return Ok((at_ns, lane));
        }
        let seconds = |ns: i64| ns as f64 / 1e9;
        Err(WhatIfError::TimeOutside {
            lane: lane.to_string(),
            after_s: seconds(at_ns.saturating_sub(first_ns)),
            window_s: seconds(last_ns - first_ns),
        })
    };
    plans[0].lose.iter().map(loss).collect()
}

impl<'a> Run<'a> {
    fn new(
        (recording, life): (&'a Recording, &'a Life),
        plan: Plan,
        seed: u64,
        (ledger, assumed, told): (&'a mut Ledger, &'a mut Assumed, Told<'a>),
    ) -> Self {
        let lane = |spec: &warptape_schemas::journal::LaneSpec| Lane {
            class: class_of(spec),
            is_on_device: spec.kind() == warptape_schemas::journal::LaneKind::Device,
            ..Lane::default()
        };
        Self {
            recording,
            life,
            lanes: plan.started.lanes.iter().map(lane).collect(),
            plan,
            seed,
            scheduler: Scheduler::new(),
            answers: Agenda::default(),
            sources: BTreeMap::new(),
            taken: BTreeMap::new(),
            tasks: BTreeMap::new(),
            ledger,
            assumed,
            told,
        }
    }

    /// Runs until all work is done, or until the given time.
    fn go(&mut self, end_ns: i64) -> Result<(), WhatIfError> {
        let (life, mut next) = (self.life, 0);
        self.step(life.began_ns, &Input::Started(Box::new(self.plan.started.clone())))?;
        if let Some(trained) = self.plan.network.clone() {
            self.step(life.began_ns, &Input::Trained(trained))?;
        }
        loop {
            let input_ns = life.inputs.get(next).map(|input| input.0);
            if input_ns.is_none() && self.answers.is_empty() && self.scheduler.is_quiet() {
                return Ok(());
            }
            match self.answers.next(input_ns, self.scheduler.wake_at_ns(), end_ns) {
                None => return Ok(()),
                Some((at_ns, Next::Event(answer))) => self.give(at_ns, answer)?,
                Some((at_ns, Next::Wake)) => self.step(at_ns, &Input::Woke(Woke {}))?,
                Some((at_ns, Next::Input)) => {
                    self.pass_on(at_ns, &life.inputs[next].1)?;
                    next += 1;
                }
            }
        }
    }

    /// Passes on a recorded input, if it applies to this run.
    fn pass_on(&mut self, at_ns: i64, input: &Input) -> Result<(), WhatIfError> {
        let lane_of = |lane: LaneId| self.plan.lane_of.get(lane as usize).copied().flatten();
        match input {
            Input::PartitionAssigned(assigned) => {
                let source = self.sources.entry(assigned.partition).or_default();
                *source = Source {
                    groups: assigned.groups,
                    position: assigned.snapshot_offset,
                    is_assigned: true,
                    assignment: source.assignment + 1,
                    ..Source::default()
                };
                self.step(at_ns, input)
            }
            Input::PartitionRevoked(revoked) => {
                let Some(source) = self.sources.get_mut(&revoked.partition) else { return Ok(()) };
                if !std::mem::take(&mut source.is_assigned) {
                    return Ok(());
                }
                source.held.clear();
                self.step(at_ns, input)
            }
            Input::Arrived(arrived) => self.arrive(at_ns, at_ns, arrived.clone()),
            Input::LaneLost(lost) => match lane_of(lost.lane) {
                Some(lane) => self.lose(at_ns, LaneLost { lane, ..lost.clone() }),
                None => Ok(()),
            },
            Input::LaneReady(ready) => {
                let Some(lane) = lane_of(ready.lane) else { return Ok(()) };
                let of = &mut self.lanes[lane as usize];
                if !of.is_lost || of.is_gone {
                    return Ok(());
                }
                of.is_lost = false;
                self.step(at_ns, &Input::LaneReady(LaneReady { lane }))
            }
            Input::Measured(measured) => {
                let Some(lane) = lane_of(measured.lane) else { return Ok(()) };
                let slow = self.plan.slow[lane as usize];
                let point = |point: &ServicePoint| ServicePoint {
                    service_ns: scaled(point.service_ns, slow),
                    ..*point
                };
                let points = measured.points.iter().map(point).collect();
                self.step(at_ns, &Input::Measured(Measured { lane, points }))
            }
            Input::Sampled(sampled) => match lane_of(sampled.lane) {
                Some(lane) => self
                    .step(at_ns, &Input::Sampled(Box::new(Sampled { lane, sample: sampled.sample.clone() }))),
                None => Ok(()),
            },
            Input::Control(control) => match self.command(control) {
                Some(command) => self.step(at_ns, &Input::Control(Control { command, ..control.clone() })),
                None => Ok(()),
            },
            Input::TaskArrived(arrived) => match self.is_known(arrived.partition) {
                true => {
                    self.tasks.insert(arrived.task, (arrived.clone(), 0));
                    self.step(at_ns, input)
                }
                false => Ok(()),
            },
            Input::Trained(trained) => self.tell_of(at_ns, trained),
            Input::TaskDropped(dropped) => {
                // Between two rounds only the shell knows the task.
                self.tasks.remove(&dropped.task);
                match self.ledger.is_open(dropped.task) {
                    true => self.step(at_ns, input),
                    false => Ok(()),
                }
            }
            _ => self.step(at_ns, input),
        }
    }

    /// Passes on a recorded network, unless the changes choose a task policy, or the network does not fit the lanes.
    fn tell_of(&mut self, at_ns: i64, trained: &Trained) -> Result<(), WhatIfError> {
        if self.plan.chooses[0] {
            return Ok(());
        }
        if let Err(error) = check_for_lanes(trained, self.lanes.len()) {
            self.assumed.insert(format!("a recorded network is left out: {error}"));
            return Ok(());
        }
        self.step(at_ns, &Input::Trained(trained.clone()))
    }

    /// Translates a recorded command to the lanes of this run; `None` if its lane is missing, or the changes override
    /// it.
    fn command(&mut self, control: &Control) -> Option<ControlCommand> {
        let lane_of = |lane: LaneId| self.plan.lane_of.get(lane as usize).copied().flatten();
        let mut command = control.command.clone();
        match &mut command {
            ControlCommand::DrainLane(of) => of.lane = lane_of(of.lane)?,
            ControlCommand::UndrainLane(of) => of.lane = lane_of(of.lane)?,
            ControlCommand::WeighLane(of) => {
                of.lane = lane_of(of.lane)?;
                if self.plan.weighed.contains(&of.lane) {
                    let note =
                        "recorded commands that change the weight of a lane are left out if --weight sets it";
                    self.assumed.insert(note.to_owned());
                    return None;
                }
            }
            ControlCommand::SetBreaker(of) => of.lane = lane_of(of.lane)?,
            ControlCommand::ChoosePolicy(choice) => {
                let [tasks, placement] = self.plan.chooses;
                if tasks && choice.of == "tasks" || placement && choice.of == "placement" {
                    let note =
                        "recorded commands that choose another policy are left out if --policy sets it";
                    self.assumed.insert(note.to_owned());
                    return None;
                }
            }
            ControlCommand::Rebalance(_)
            | ControlCommand::WeighTenant(_)
            | ControlCommand::SetWatermark(_) => {}
        }
        Some(command)
    }

    /// Passes on an answer. Answers of a lane that was lost since are dropped.
    fn give(&mut self, at_ns: i64, answer: Answer) -> Result<(), WhatIfError> {
        let is_of = |lanes: &[Lane], lane: LaneId, life: u32| {
            let lane = &lanes[lane as usize];
            lane.life == life && !lane.is_lost
        };
        match answer {
            Answer::BatchDone { lane, life, batch, service_ns } if is_of(&self.lanes, lane, life) => {
                self.step(at_ns, &Input::Completed(Completed { lane, batch, service_ns, sample: None }))
            }
            Answer::SliceDone { lane, life, slice, service_ns } if is_of(&self.lanes, lane, life) => {
                self.step(at_ns, &Input::SliceDone(SliceDone { lane, slice, service_ns }))
            }
            Answer::Released { partition, group, lane, epoch, life } if is_of(&self.lanes, lane, life) => {
                self.release(at_ns, Released { partition, group, lane, epoch })
            }
            Answer::BatchDone { .. } | Answer::SliceDone { .. } | Answer::Released { .. } => Ok(()),
            Answer::Priced { question, prices } => {
                self.step(at_ns, &Input::Priced(Priced { question, prices }))
            }
            Answer::Round { task, round } => self.begin_round(at_ns, task, round),
            Answer::Restored { partition, assignment } => self.restored(at_ns, partition, assignment),
            Answer::Lost { lane } => {
                self.lanes[lane as usize].is_gone = true;
                let kept = self.lanes[lane as usize].is_on_device;
                self.lose(at_ns, LaneLost { lane, reason: "what if".to_owned(), kept })
            }
        }
    }

    /// Passes on rows, or holds them back while their partition is paused or restored.
    fn arrive(&mut self, at_ns: i64, since_ns: i64, arrived: Arrived) -> Result<(), WhatIfError> {
        let Some(source) = self.sources.get_mut(&arrived.partition).filter(|source| source.is_assigned)
        else {
            return Ok(());
        };
        if source.is_paused || source.is_restoring || !source.held.is_empty() {
            source.held.push_back((since_ns, arrived));
            return Ok(());
        }
        source.position = source.position.max(arrived.next_offset);
        self.ledger.arrive(&arrived, since_ns, false);
        self.step(at_ns, &Input::Arrived(arrived))
    }

    /// Passes on the held rows of a partition, until it is paused again.
    fn read_on(&mut self, at_ns: i64, partition: PartitionId) -> Result<(), WhatIfError> {
        while let Some(source) = self.sources.get_mut(&partition) {
            if source.is_paused || source.is_restoring {
                return Ok(());
            }
            let Some((since_ns, arrived)) = source.held.pop_front() else { return Ok(()) };
            source.position = source.position.max(arrived.next_offset);
            self.ledger.arrive(&arrived, since_ns, false);
            self.step(at_ns, &Input::Arrived(arrived))?;
        }
        Ok(())
    }

    fn is_known(&self, partition: PartitionId) -> bool {
        self.sources.get(&partition).is_some_and(|source| source.is_assigned)
    }

    /// Loses a lane. If `lost.kept` is set, the lane's rows in flight arrive again at once.
    fn lose(&mut self, at_ns: i64, lost: LaneLost) -> Result<(), WhatIfError> {
        let lane = &mut self.lanes[lost.lane as usize];
        if std::mem::replace(&mut lane.is_lost, true) {
            return Ok(());
        }
        lane.life += 1;
        lane.free_ns = at_ns;
        let is_kept = lost.kept;
        self.step(at_ns, &Input::LaneLost(lost))?;
        if !is_kept {
            return Ok(());
        }
        let partitions: Vec<PartitionId> = self.sources.keys().copied().collect();
        partitions.into_iter().try_for_each(|partition| self.arrive_again(at_ns, partition))
    }

    fn arrive_again(&mut self, at_ns: i64, partition: PartitionId) -> Result<(), WhatIfError> {
        let groups = self.ledger.lost_of(partition);
        let Some(source) = self.sources.get(&partition).filter(|source| source.is_assigned) else {
            return Ok(());
        };
        if groups.is_empty() || source.is_restoring {
            return Ok(());
        }
        let arrived = Arrived { partition, next_offset: source.position, groups };
        self.ledger.arrive(&arrived, at_ns, true);
        self.step(at_ns, &Input::Arrived(arrived))
    }

    fn restored(&mut self, at_ns: i64, partition: PartitionId, assignment: u32) -> Result<(), WhatIfError> {
        let Some(source) = self.sources.get_mut(&partition) else { return Ok(()) };
        if !source.is_restoring || !source.is_assigned || source.assignment != assignment {
            return Ok(());
        }
        source.is_restoring = false;
        source.is_paused = false;
        let (groups, offset) = (source.groups, source.position);
        let assigned = PartitionAssigned {
            partition,
            groups,
            committed_offset: offset,
            snapshot_offset: offset,
            ..PartitionAssigned::default()
        };
        self.step(at_ns, &Input::PartitionAssigned(assigned))?;
        self.arrive_again(at_ns, partition)?;
        self.read_on(at_ns, partition)
    }

    fn release(&mut self, at_ns: i64, released: Released) -> Result<(), WhatIfError> {
        // The partition may have been revoked or restored since the lane got the order.
        let placement = self
            .scheduler
            .placements()
            .find(|placement| placement.partition == released.partition && placement.group == released.group);
        match placement.is_some_and(|placement| placement.epoch == released.epoch && placement.lane.is_none())
        {
            true => self.step(at_ns, &Input::Released(released)),
            false => Ok(()),
        }
    }

    fn begin_round(&mut self, at_ns: i64, task: TaskId, round: usize) -> Result<(), WhatIfError> {
        let Some((_, arrived)) = self.life.rounds.get(&task).and_then(|rounds| rounds.get(round)) else {
            return Ok(());
        };
        // The task was withdrawn since, or its partition was revoked.
        if !self.tasks.contains_key(&task) || !self.is_known(arrived.partition) {
            return Ok(());
        }
        self.tasks.insert(task, (arrived.clone(), round + 1));
        self.step(at_ns, &Input::TaskArrived(arrived.clone()))
    }

    fn step(&mut self, at_ns: i64, input: &Input) -> Result<(), WhatIfError> {
        let (mut decisions, state_hash) = (Vec::new(), self.scheduler.state_hash());
        self.scheduler.step(at_ns, input, &mut decisions).map_err(|error| WhatIfError::Refused {
            input: input.name(),
            at_ns,
            error: error.to_string(),
        })?;
        (self.told)(at_ns, input, &decisions, state_hash)?;
        self.ledger.see(at_ns, input);
        self.ledger.decided(at_ns, &decisions);
        let mut resumed = Vec::new();
        for decision in &decisions {
            match decision {
                Decision::Dispatch(dispatch) => self.dispatch(at_ns, dispatch)?,
                Decision::RunSlice(run) => self.run_slice(at_ns, run)?,
                Decision::Release(release) => self.give_back(at_ns, release),
                Decision::Pause(pause) => self.source(pause.partition).is_paused = true,
                Decision::Resume(resume) => {
                    self.source(resume.partition).is_paused = false;
                    resumed.push(resume.partition);
                }
                Decision::Restore(restore) => self.restore(at_ns, restore.partition),
                Decision::AskPrices(question) => {
                    let address = question.question.to_le_bytes();
                    let after_ns = self.recording.service.pricing_ns(self.seed, &address, self.assumed);
                    let prices = warptape_prices::solve(question);
                    self.answers
                        .push(at_ns + after_ns, Answer::Priced { question: question.question, prices });
                }
                Decision::Finish(finish) => self.finish(at_ns, finish.task),
                // Other decisions only lead to further decisions, or need no answer from the shell.
                Decision::Place(_)
                | Decision::Fence(_)
                | Decision::WakeAt(_)
                | Decision::Admit(_)
                | Decision::Reject(_)
                | Decision::Split(_)
                | Decision::Reserve(_)
                | Decision::Expire(_)
                | Decision::Assign(_)
                | Decision::Controlled(_)
                | Decision::Breaker(_)
                | Decision::Headroom(_)
                | Decision::Drift(_)
                | Decision::FellBack(_)
                | Decision::Scale(_)
                | Decision::Shadow(_)
                | Decision::Shed(_) => {}
            }
        }
        resumed.into_iter().try_for_each(|partition| self.read_on(at_ns, partition))
    }

    fn source(&mut self, partition: PartitionId) -> &mut Source {
        self.sources.entry(partition).or_default()
    }
}
