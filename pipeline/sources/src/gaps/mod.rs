//! Gaps in the times of a feed's ticks. `run` rejects the first ticks after a gap as wrong.
//!
//! A gap is followed if time never returns to before it. [`GapSurvey`] finds such gaps in the ticks in feeding order.
//! [`GapFollower`] processes the same ticks again, and finds those before which event time must be set. Both are
//! independent of the log.

mod earliest;
mod follower;
mod survey;
mod venue_time;

pub use self::earliest::EarliestTicks;
pub use self::follower::{GapFollower, Word};
pub use self::survey::{GapSummary, GapSurvey, Gaps, TickPlace};
pub use self::venue_time::JUMP_ROWS;
