//! A recorded run under another configuration of the scheduler: what came from outside comes as it was recorded, the real scheduler decides in
//! virtual time, and lanes and shell answer as a model says that is fitted from the same journal.
//!
//! ```text
//!   journal ──┬─ from outside ──────────────► Scheduler ──► decisions
//!             ├─ what answers took ─► Service ──► answers ◄────┘ │
//!             └─ measured ──┐                                    ▼
//!                           └──────────── Report ◄──── modelled, as recorded, and with changes
//! ```
//!
//! Which inputs come from outside, and which answer a decision:
//!
//! | input | here | an answer to |
//! | --- | --- | --- |
//! | `Started` | recorded, with the changes; the rules are those that it was recorded by | |
//! | `PartitionAssigned` | recorded, where the group's membership is the cause | `Restore`: after as long as restoring took |
//! | `PartitionRevoked` | recorded | |
//! | `Arrived` | recorded; held back while its partition is paused or being restored here, and then given at once | `LaneLost` with what is kept, and `Restore`: what was not done comes again |
//! | `Completed` | modelled | `Dispatch`: when the lane has done what it had before, and the batch |
//! | `SliceDone` | modelled | `RunSlice` |
//! | `LaneLost`, `LaneReady` | recorded, by device; and what is asked for | |
//! | `Measured`, `Sampled` | recorded, of lanes that there are | |
//! | `Woke` | modelled, at its time | `WakeAt` |
//! | `Released` | modelled | `Release`: when the lane has done what it had in flight, and as long as giving back took |
//! | `TaskArrived` of a first round | recorded | |
//! | `TaskArrived` of a later round | modelled | `Finish` of the round before: after as long as recorded |
//! | `TaskDropped` | recorded, where the task is still known | |
//! | `Priced` | solved anew | `AskPrices` |
//! | `Trained` | recorded, unless a policy of tasks is asked for: then its own network, if it has one | |
//! | `Draining`, `Control` | recorded; commands that choose a policy are left out where one is asked for | |
//! | `Sealed`, `CommitEnded`, `Checkpoint`, `Positions` | left out | nothing is decided by them |
//!
//! What it cannot tell: rows come no earlier than recorded, so that a source which was held up stays so; slices and batches take what they
//! took, whatever runs beside them now; residuals are drawn independently of each other, so that a machine that was busy for a while is so
//! here all the time, but less. The model of the recorded configuration beside what was measured shows how much that matters: the noise floor. It is the fit
//! within this run and not how well the run repeats, which blocks of the run hint at.
//!
//! It owns the model and its comparison; it must not hold rules of scheduling, and knows no clock, threads or terminals.

mod blocks;
mod changes;
mod curve;
mod error;
mod figures;
mod ledger;
mod model;
mod recording;
mod report;
mod service;
mod written;

pub use changes::{Changes, LossTime};
pub use error::WhatIfError;
pub use figures::{Figures, Order};
pub use model::Modelled;
pub use recording::Recording;
pub use report::{Changed, Claim, FigureRow, Mean, OrderOf, Report};
