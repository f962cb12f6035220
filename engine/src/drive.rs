//! The loop around a core, written once: the order of its events, and the times at which its commands are executed.
//!
//! ```text
//!  urgent requests ─► next event ─┬─► wakes of the scheduler ─► news of lanes ─► watch on lanes ─► urgent requests ─► time ─► entries
//!  └──────────── drive ───────────┘   └──────────────────────────────────── settle ──────────────────────────────────────────────┘
//! ```
//!
//! Every command is executed before the core gets the next event. Production calls [`drive`]. The simulation, whose
//! events come from a seed, calls [`tell`] and [`settle`].

use warptape_events::journal::LaneId;

use crate::command::Command;
use crate::error::CoreError;
use crate::event::Event;
use crate::machine::{Core, Doing, Wants};
use crate::observer::Observer;

/// Requests, or fetches of requests, handled before other events get their turn.
const URGENT_MAX: usize = 16;

/// The surroundings of a core: they execute its commands and hold the events that it has not received yet.
pub trait Outside {
    /// The error that ends the loop.
    type Error: From<CoreError>;

    /// The time, in nanoseconds since the epoch.
    fn now_ns(&self) -> i64;

    /// The observer of all events and commands.
    fn observer(&mut self) -> impl Observer {}

    /// Executes a command.
    fn execute(&mut self, command: Command, core: &Core) -> Result<(), Self::Error>;

    /// The next undelivered event of a lane; `None` if there is none.
    fn lane_news(&mut self) -> Option<Event> {
        None
    }

    /// Current work of the threads of lanes on devices.
    fn doing(&mut self) -> Vec<(LaneId, Doing)> {
        Vec::new()
    }

    /// The next fetch of risk requests; `None` if there is none. Called only while the core accepts requests.
    fn read_requests(&mut self) -> Result<Option<Event>, Self::Error> {
        Ok(None)
    }

    /// The next prepared request; `None` if there is none.
    fn prepared_request(&mut self) -> Option<Event> {
        None
    }
}

/// Surroundings that can wait for events.
pub trait Waits: Outside {
    /// Waits for the next event that the core wants; `None` once the core's wake time has come.
    fn next(&mut self, core: &Core, wants: Wants) -> Result<Option<Event>, Self::Error>;
}

/// Drives a core until everything before the requested stop is processed and committed.
pub fn drive<O: Waits>(core: &mut Core, outside: &mut O) -> Result<(), O::Error> {
    tell(core, outside, Event::Begun)?;
    while !core.is_done() {
        // Requests go before ticks, because a critical task may be among them. Each turn takes some of both.
        let was_urgent = take_requests(core, outside)?;
        let mut wants = core.wants_now();
        if was_urgent {
            wants.wake_at_ns = Some(i64::MIN);
        }
        if let Some(event) = outside.next(core, wants)? {
            tell(core, outside, event)?;
        }
        settle(core, outside)?;
    }
    Ok(())
}

/// Passes an event to a core, and executes the core's commands.
pub fn tell<O: Outside>(core: &mut Core, outside: &mut O, event: Event) -> Result<(), O::Error> {
    let now_ns = outside.now_ns();
    let _span = event.span().entered();
    outside.observer().on_event(now_ns, &event);
    core.handle(event, now_ns)?;
    execute(core, outside)
}

/// Lets a core do its due work, including events that arrived meanwhile. Call it after each event: much of the work
/// that events make possible begins here.
pub fn settle<O: Outside>(core: &mut Core, outside: &mut O) -> Result<(), O::Error> {
    // Decisions go to the lanes at once, before their entry is encoded or a due commit is sealed.
    core.on_wake(outside.now_ns())?;
    execute(core, outside)?;
    // Events of lanes that arrived meanwhile become part of the next commit.
    while let Some(event) = outside.lane_news() {
        tell(core, outside, event)?;
    }
    let now_ns = outside.now_ns();
    core.on_watch(now_ns, &outside.doing())?;
    execute(core, outside)?;
    take_requests(core, outside)?;
    core.on_time(outside.now_ns())?;
    execute(core, outside)?;
    // The lanes have their work by now, so encoding the entries delays nobody.
    core.write_entries();
    let now_ns = outside.now_ns();
    outside.observer().on_settled(now_ns, core);
    Ok(())
}

/// Handles read and prepared requests, up to `URGENT_MAX` of each. Returns true if there were any.
fn take_requests<O: Outside>(core: &mut Core, outside: &mut O) -> Result<bool, O::Error> {
    let mut were_there = false;
    for _ in 0..URGENT_MAX {
        // Read requests go first: one may be more urgent than all prepared ones.
        let read = if core.takes_requests() { outside.read_requests()? } else { None };
        let prepared = outside.prepared_request();
        if read.is_none() && prepared.is_none() {
            break;
        }
        for event in [read, prepared].into_iter().flatten() {
            tell(core, outside, event)?;
        }
        core.prepare_requests();
        execute(core, outside)?;
        were_there = true;
    }
    Ok(were_there)
}

/// Executes the core's commands.
fn execute<O: Outside>(core: &mut Core, outside: &mut O) -> Result<(), O::Error> {
    while let Some(command) = core.poll() {
        let now_ns = outside.now_ns();
        outside.observer().on_command(now_ns, &command);
        outside.execute(command, core)?;
    }
    Ok(())
}
