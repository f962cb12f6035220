//! Observers of a core: they turn its events and commands into figures, logs and traces, and decide nothing.

use crate::command::Command;
use crate::event::Event;
use crate::machine::Core;

/// A listener to the events and commands of a core.
pub trait Observer {
    /// Called before the core handles an event.
    fn on_event(&mut self, _now_ns: i64, _event: &Event) {}

    /// Called before a command of the core is executed.
    fn on_command(&mut self, _now_ns: i64, _command: &Command) {}

    /// Called after the core has done its due work.
    fn on_settled(&mut self, _now_ns: i64, _core: &Core) {}
}

impl Observer for () {}

impl<O: Observer> Observer for &mut O {
    fn on_event(&mut self, now_ns: i64, event: &Event) {
        (**self).on_event(now_ns, event);
    }

    fn on_command(&mut self, now_ns: i64, command: &Command) {
        (**self).on_command(now_ns, command);
    }

    fn on_settled(&mut self, now_ns: i64, core: &Core) {
        (**self).on_settled(now_ns, core);
    }
}

/// Calls both observers, one after the other.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn on_event(&mut self, now_ns: i64, event: &Event) {
        self.0.on_event(now_ns, event);
        self.1.on_event(now_ns, event);
    }

    fn on_command(&mut self, now_ns: i64, command: &Command) {
        self.0.on_command(now_ns, command);
        self.1.on_command(now_ns, command);
    }

    fn on_settled(&mut self, now_ns: i64, core: &Core) {
        self.0.on_settled(now_ns, core);
        self.1.on_settled(now_ns, core);
    }
}
