//! The meaning of ticks: symbols and their groups, watermark and lateness, bars, indicators and signals.
//!
//! The host side ([`PartitionIntake`]) turns the records of one partition into rows for its groups. The lane side
//! ([`GroupStage`], or [`DeviceGroups`] on a GPU) turns a group's rows into encoded signals. Both are plain functions
//! of their inputs: this crate knows no clock, no thread, no log and no scheduler. Its results do not depend on how
//! rows were cut into batches.

mod ahead;
mod bytes;
mod config;
mod device;
mod error;
mod evicted;
pub mod formulas;
mod group;
mod intake;
mod lateness;
mod market;
mod outputs;
mod quorum;
pub mod risk;
mod samples;
mod scales;
mod sides;
mod signals;
mod trade_ids;

pub use config::{Numbers, QuoteOrder, Rejects, Rules, StageConfig, TimeUnits};
pub use device::{Begun, DeviceGroups};
pub use error::StageError;
pub use evicted::{Evicted, Page};
pub use group::{GroupInput, GroupOutput, GroupQueue, GroupStage, PageState, Repack, SlotSymbol};
pub use intake::{Acceptance, Late, PartitionIntake, TickRecord};
pub use lateness::{Lateness, group_of};
pub use market::{MarketConfig, Samples, SymbolMarket};
pub use outputs::{MergedSignals, SignalChunk, SignalKey, SignalMerge, SignalRef};
pub use trade_ids::{RepeatedId, RepeatedTrade, RepeatedTrades, TradeIdCounts};
pub use warptape_kernels::{Indicator, Isa, RowKind, Rows};
