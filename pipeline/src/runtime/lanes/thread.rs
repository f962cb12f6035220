//! A lane's thread: executes commands and reports news. It starts the next batch while one is in progress.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, SendError, Sender};
use warptape_kernels::device::DeviceError;
use warptape_schemas::journal::LaneId;

use super::super::failpoint::{self, Failpoint};
use super::super::measure::measure;
use super::super::{Clock, EngineConfig};
use super::slice_threads::{self, Reporter};
use super::{Activity, LaneCommand, LaneEvent, LaneNews, LaneResult, LaneWork, Slice};

pub(super) struct LaneWorker {
    pub(super) lane: LaneId,
    pub(super) life: u32,
    pub(super) config: EngineConfig,
    pub(super) clock: Clock,
    pub(super) work: Arc<Activity>,
    /// Current work of the thread for slices on the lane's device.
    pub(super) slice_work: Arc<Activity>,
    /// Slices for that thread; `None` after it has started, or if there is no device.
    pub(super) device_slices: Option<Receiver<Slice>>,
    pub(super) events: Sender<LaneEvent>,
}

impl LaneWorker {
    /// Runs until the engine drops its end of the channel, or the lane fails.
    pub(super) fn run(mut self, commands: &Receiver<LaneCommand>) {
        let mut slice_thread = None;
        let lost = match catch_unwind(AssertUnwindSafe(|| self.obey(commands, &mut slice_thread))) {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(panic) => Some(panic_message(panic.as_ref())),
        };
        self.work.done();
        if let Some(reason) = lost {
            // An ended engine reads no news.
            drop(self.tell(LaneNews::Lost { reason }));
        }
        // The process must not end while one of its threads uses a device.
        slice_thread.into_iter().for_each(|thread| thread.join().expect("it catches what panics"));
    }

    fn reporter(&self) -> Reporter {
        let Self { lane, life, clock, .. } = *self;
        Reporter { lane, life, clock, events: self.events.clone() }
    }

    fn tell(&self, news: LaneNews) -> Result<(), SendError<LaneEvent>> {
        self.events.send(LaneEvent { lane: self.lane, life: self.life, news })
    }

    /// Executes commands. Sets `slice_thread` to the thread for slices on the lane's device.
    fn obey(
        &mut self,
        commands: &Receiver<LaneCommand>,
        slice_thread: &mut Option<JoinHandle<()>>,
    ) -> Result<(), DeviceError> {
        self.work.on_other(self.clock.now_ns());
        let mut stages = self.config.lanes.open(&self.config, self.lane, self.life)?;
        if self.life == 0 && self.config.is_measured(self.lane) {
            let points = measure(&mut *stages, &self.config, self.clock)?;
            if self.tell(LaneNews::Measured { points }).is_err() {
                return Ok(());
            }
        }
        if let (Some(background), Some(slices)) = (stages.take_background(), self.device_slices.take()) {
            *slice_thread =
                slice_threads::on_device(self.reporter(), background, self.slice_work.clone(), slices);
        }
        self.work.done();
        let mut since_ns = 0;
        loop {
            // While a batch is in progress, the thread waits for its end rather than for commands.
            let next = match stages.is_running() {
                true => commands.try_recv().ok(),
                false => Some(match commands.recv() {
                    Ok(command) => command,
                    Err(_) => return Ok(()),
                }),
            };
            if stages.is_running() && !next.as_ref().is_some_and(|command| stages.may_overlap(command)) {
                let done = stages.finish()?;
                if self.report(done, &*stages, &mut since_ns).is_err() {
                    return Ok(());
                }
            }
            let Some(command) = next else { continue };
            if !stages.is_running() {
                since_ns = self.clock.now_ns();
                match command {
                    LaneCommand::Run(_) | LaneCommand::Release { .. } => self.work.on_batch(since_ns),
                    LaneCommand::Install { .. } | LaneCommand::Drop { .. } => self.work.on_other(since_ns),
                }
            }
            if matches!(command, LaneCommand::Run(_)) {
                failpoint::hang(Failpoint::LaneHangs);
                failpoint::fail(Failpoint::LaneFails, self.lane);
            }
            let _span = match &command {
                LaneCommand::Run(batch) => {
                    tracing::debug_span!("batch", lane = self.lane, batch = batch.batch).entered()
                }
                _ => tracing::Span::none().entered(),
            };
            let done = stages.obey(command)?;
            if self.report(done, &*stages, &mut since_ns).is_err() {
                return Ok(());
            }
        }
    }

    /// Reports a result. If the next batch is in progress, its time starts now.
    fn report(
        &self,
        done: Option<LaneResult>,
        stages: &dyn LaneWork,
        since_ns: &mut i64,
    ) -> Result<(), SendError<LaneEvent>> {
        let now_ns = self.clock.now_ns();
        let told = match done {
            Some(LaneResult::Batch { batch, parts }) => {
                let service_ns = now_ns - std::mem::replace(since_ns, now_ns);
                let memory_bytes = stages.memory_bytes();
                self.tell(LaneNews::Completed { batch, service_ns, parts, memory_bytes })
            }
            Some(LaneResult::Released { group, epoch, stage }) => {
                self.tell(LaneNews::Released { group, epoch, stage })
            }
            None => Ok(()),
        };
        match stages.is_running() {
            true => self.work.on_batch(*since_ns),
            false => self.work.done(),
        }
        told
    }
}

pub(super) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a stage panicked without a message".to_owned()
    }
}
