//! The contract of driving a core: the order of calls, and the only two functions for it.

use std::path::Path;

use warptape_engine::{Doing, Observer, Stop, Waits, drive};
use warptape_schemas::journal::LaneId;

use super::*;

/// An environment of the core that only logs the calls. Its process is asked to end at once.
#[derive(Default)]
struct Seen {
    /// Questions and observations, in their order.
    log: Vec<&'static str>,
    has_asked_to_stop: bool,
    is_committing: bool,
}

impl Observer for Seen {
    fn on_event(&mut self, _: i64, event: &Event) {
        self.log.push(if matches!(event, Event::Begun) { "begun" } else { "event" });
    }

    fn on_command(&mut self, _: i64, _: &Command) {
        self.log.push("command");
    }

    fn on_settled(&mut self, _: i64, _: &Core) {
        self.log.push("settled");
    }
}

impl Outside for Seen {
    type Error = CoreError;

    fn now_ns(&self) -> i64 {
        1
    }

    fn observer(&mut self) -> impl Observer {
        self
    }

    fn execute(&mut self, command: Command, _: &Core) -> Result<(), CoreError> {
        self.log.push("execute");
        self.is_committing |= matches!(command, Command::Commit(_));
        Ok(())
    }

    fn lane_news(&mut self) -> Option<Event> {
        self.log.push("lanes");
        None
    }

    fn doing(&mut self) -> Vec<(LaneId, Doing)> {
        self.log.push("doing");
        Vec::new()
    }

    fn read_requests(&mut self) -> Result<Option<Event>, CoreError> {
        self.log.push("requests");
        Ok(None)
    }

    fn prepared_request(&mut self) -> Option<Event> {
        self.log.push("prepared");
        None
    }
}

impl Waits for Seen {
    fn next(&mut self, _: &Core, _: Wants) -> Result<Option<Event>, CoreError> {
        self.log.push("next");
        if take(&mut self.is_committing) {
            return Ok(Some(Event::Committed(written(1))));
        }
        let has_asked = std::mem::replace(&mut self.has_asked_to_stop, true);
        Ok((!has_asked).then_some(Event::Stop(Stop::Now)))
    }
}

#[test]
fn a_core_is_driven_in_one_order_until_all_is_committed() {
    let sources = Sources { cores: 1, ..Sources::default() };
    let config = load(&sources).expect("the defaults are good").0.engine_config(None).core;
    let positions = JournalPositions::beginning();
    let mut core = Core::new(config, Box::new(TickDecoder::new()), None, positions).expect("a new journal");
    let mut seen = Seen::default();
    drive(&mut core, &mut seen).expect(TOLD);
    assert!(core.wants().is_none() && !core.status().has_uncommitted);

    assert_eq!(seen.log.first(), Some(&"begun"));
    for (what, next) in seen.log.iter().zip(&seen.log[1..]) {
        assert_eq!(*what == "command", *next == "execute", "each command is executed, before all else");
    }
    let is_asked = |what: &&&str| !["begun", "event", "command", "execute"].contains(*what);
    let asked: Vec<&str> = seen.log.iter().filter(is_asked).copied().collect();
    let turn = ["requests", "prepared", "next", "lanes", "doing", "requests", "prepared", "settled"];
    assert!(asked.len() >= 2 * turn.len(), "it is asked to stop, and commits");
    for found in asked.chunks(turn.len()) {
        assert_eq!(found, turn);
    }
}

/// Any other public function would allow calls in another order.
#[test]
fn there_is_one_way_in_and_one_way_out() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/src");
    let modules = std::fs::read_dir(engine.join("machine")).expect("the engine's sources lie beside");
    let modules = modules.map(|entry| entry.expect("they can be listed").path());
    let mut public = Vec::new();
    for path in modules.chain([engine.join("machine.rs")]) {
        let text = std::fs::read_to_string(path).expect("a source is text");
        let blocks =
            text.split("\nimpl Core {\n").skip(1).map(|rest| rest.split("\n}\n").next().unwrap_or(rest));
        let names = blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("    pub fn "));
        public.extend(names.map(|name| name.split('(').next().unwrap_or(name).to_owned()));
    }
    public.sort();
    assert_eq!(public, ["handle", "new", "poll", "status", "wants", "with_next_control"]);
}
