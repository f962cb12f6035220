//! Kinds of commands and of events, counted: what the core may say and be told, the simulation has it say and be told.

use warptape_engine::{Command, Event};

/// Declares the kinds of a type once: a kind that is added does not compile before it is here.
macro_rules! kinds {
    ($(#[$doc:meta])* $names:ident, $counts:ident of $type:ident { $($kind:ident),* $(,)? }) => {
        $(#[$doc])*
        pub const $names: &[&str] = &[$(stringify!($kind)),*];

        /// How often each of them was met.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $counts([usize; $names.len()]);

        impl Default for $counts {
            fn default() -> Self {
                Self([0; $names.len()])
            }
        }

        impl $counts {
            /// Counts one.
            pub fn count(&mut self, one: &$type) {
                enum Kind { $($kind),* }
                let kind = match one { $($type::$kind { .. } => Kind::$kind),* };
                self.0[kind as usize] += 1;
            }

            /// Both together.
            pub fn plus(self, other: Self) -> Self {
                Self(std::array::from_fn(|kind| self.0[kind] + other.0[kind]))
            }

            /// Kinds that were never met.
            pub fn missing(&self) -> Vec<&'static str> {
                $names.iter().zip(self.0).filter(|(_, count)| *count == 0).map(|(name, _)| *name).collect()
            }
        }
    };
}

kinds! {
    /// Kinds of commands.
    COMMANDS, Commands of Command {
        StartLane, EndLane, Lane, Slice, Own, LetGo, ReleaseSource, Pause, Resume, Seek, Restore, ReadPages, FindPages, OpenRequests,
        ReadRequests, ForgetRequests, Prepare, Abandon, Conclude, AskPrices, Commit, GiveUp, Hurry, NewSegment, TicksRemoved, Accepted,
        PagesMissing, Breaker, Lifecycle,
    }
}

kinds! {
    /// Kinds of events.
    EVENTS, Events of Event {
        Begun, Stop, Assigned, Revoked, Lost, Positions, Records, Lane, Sample, Committed, Aborted, Restored, PagesRead, PagesFound,
        RequestsOpened, Requests, RequestsPosition, Prepared, Concluded, Priced, Controls,
    }
}

/// Commands that no simulation meets: its stage configuration stays what it is, and its logs lose no more than what snapshots stand for, and
/// no page of a snapshot.
pub const COMMANDS_UNMET: [&str; 3] = ["NewSegment", "TicksRemoved", "PagesMissing"];
