//! Gaps in the times of what is fed, behind which `run` takes the first ticks for wrong.
//!
//! A gap is followed where time goes on later for good. [`GapSurvey`] decides that of ticks in the order in which they are fed;
//! [`GapFollower`] goes over the same ticks again and says before which of them event time has to be set. Neither knows the log.

mod earliest;
mod follower;
mod survey;
mod venue_time;

pub use self::earliest::EarliestTicks;
pub use self::follower::{GapFollower, Word};
pub use self::survey::{GapSummary, GapSurvey, Gaps, TickPlace};
pub use self::venue_time::JUMP_ROWS;
