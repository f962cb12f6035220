//! Counts commands and events by kind, to check that the simulation covers all kinds that the core has.

use warptape_engine::{Command, Event};

/// Declares the kinds of a type in one place. A new kind does not compile until it is listed here.
macro_rules! kinds {
    ($(#[$doc:meta])* $names:ident, $counts:ident of $type:ident { $($kind:ident),* $(,)? }) => {
        $(#[$doc])*
        pub const $names: &[&str] = &[$(stringify!($kind)),*];

        /// Number of occurrences of each kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $counts([usize; $names.len()]);

        impl Default for $counts {
            fn default() -> Self {
                Self([0; $names.len()])
            }
        }

        impl $counts {
            /// Counts one value.
            pub fn count(&mut self, one: &$type) {
                enum Kind { $($kind),* }
                let kind = match one { $($type::$kind { .. } => Kind::$kind),* };
                self.0[kind as usize] += 1;
            }

            /// Returns the sums of two counts.
            pub fn plus(self, other: Self) -> Self {
                Self(std::array::from_fn(|kind| self.0[kind] + other.0[kind]))
            }

            /// Returns the names of the kinds that never occurred.
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

/// Commands that no simulation causes. Its stage configuration never changes. Its logs lose only records covered by
/// snapshots, and never a page of a snapshot.
pub const COMMANDS_UNMET: [&str; 3] = ["NewSegment", "TicksRemoved", "PagesMissing"];
