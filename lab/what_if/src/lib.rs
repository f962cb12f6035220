//! What-if runs a recorded run under another configuration of the scheduler. External inputs arrive as recorded, and
//! the real scheduler decides in virtual time. A model of the lanes and the shell, fitted from the same journal,
//! answers its decisions.
//!
//! ```text
//!   journal ──┬─ from outside ──────────────► Scheduler ──► decisions
//!             ├─ what answers took ─► Service ──► answers ◄────┘ │
//!             └─ measured ──┐                                    ▼
//!                           └──────────── Report ◄──── modelled, as recorded, and with changes
//! ```
//!
//! External inputs, and inputs that answer a decision:
//!
//! | input | here | an answer to |
//! | --- | --- | --- |
//! | `Started` | recorded, with the changes; the rules stay as recorded | |
//! | `PartitionAssigned` | recorded, if the group's membership caused it | `Restore`: after a recorded time of restoring |
//! | `PartitionRevoked` | recorded | |
//! | `Arrived` | recorded; held back while its partition is paused or restored in the model | `LaneLost` that keeps rows, and `Restore`: rows not done come again |
//! | `Completed` | modelled | `Dispatch`: once the lane has done its earlier batches, and this one |
//! | `SliceDone` | modelled | `RunSlice` |
//! | `LaneLost`, `LaneReady` | recorded, by device; and the losses of the changes | |
//! | `Measured`, `Sampled` | recorded, for lanes of the model | |
//! | `Woke` | modelled, at its time | `WakeAt` |
//! | `Released` | modelled | `Release`: once the lane has done its batches in flight, after a recorded time of giving back |
//! | `TaskArrived` of a first round | recorded | |
//! | `TaskArrived` of a later round | modelled | `Finish` of the round before: after the recorded time |
//! | `TaskDropped` | recorded, if the task is still known | |
//! | `Priced` | solved anew | `AskPrices` |
//! | `Trained` | recorded, unless the changes choose a policy of tasks: then its network, if it has one | |
//! | `Draining`, `Control` | recorded; commands that choose a policy are left out if the changes choose one | |
//! | `Sealed`, `CommitEnded`, `Checkpoint`, `Positions` | left out | no decision depends on them |
//!
//! The model has limits. Rows arrive no earlier than recorded, so a source that was held up remains so. Slices and
//! batches take their recorded times, whatever now runs beside them. Residuals are drawn independently, so a machine
//! that was busy for a while becomes slightly slower all the time. The noise floor shows how much this matters: it
//! compares the model of the recorded configuration with the measurement. It measures the fit to this run; the blocks
//! of the run indicate how well the run repeats.
//!
//! The crate owns the model and its comparison with the measurement. It must not contain scheduling rules, and knows no
//! clock, threads or terminals.

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
