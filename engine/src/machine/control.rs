//! The core's side of operators' commands: read from their topic, decided by the scheduler, answered.

use warptape_events::control::{Control, ControlOutcome, ControlResult};
use warptape_events::journal::{Controlled, Input};

use super::Core;
use crate::RecordError;
use crate::control::{ControlRefusal, ReadControl};

impl Core {
    /// Handles commands that were read from this process's partition of the topic.
    pub(super) fn on_controls(
        &mut self,
        now_ns: i64,
        ordinal: i32,
        controls: Vec<ReadControl>,
    ) -> Result<(), RecordError> {
        for ReadControl { offset, control } in controls {
            let Some(ControlRefusal { id, detail }) = ControlRefusal::of(&control) else {
                let control = control.expect("what cannot be read is refused");
                self.obey_control(now_ns, ordinal, offset, control)?;
                continue;
            };
            let node = self.config.node.clone();
            let (at_ns, outcome, sequence) = (now_ns, ControlOutcome::Refused, None);
            let refused = ControlResult { id, ordinal, node, offset, at_ns, outcome, detail, sequence };
            self.control.refuse(&self.config.topics.control, refused);
        }
        Ok(())
    }

    fn obey_control(
        &mut self,
        now_ns: i64,
        ordinal: i32,
        offset: i64,
        control: Control,
    ) -> Result<(), RecordError> {
        let Control { id, by, deadline_ns, command, .. } = control;
        let input = warptape_events::journal::Control { offset, id, by, deadline_ns, command };
        self.control.ask(ordinal, self.recorder.next_sequence(), &input);
        self.step(now_ns, Input::Control(input))
    }

    /// Handles the scheduler's decision on a command.
    pub(super) fn controlled(&mut self, now_ns: i64, controlled: Controlled) {
        let Controlled { id, outcome, detail } = controlled;
        tracing::warn!(id, ?outcome, detail, "an operator's command was decided");
        let node = self.config.node.clone();
        let result =
            ControlResult { id, ordinal: 0, node, offset: 0, at_ns: now_ns, outcome, detail, sequence: None };
        self.control.answer(&self.config.topics.control, result);
    }

    /// True if the engine may read commands now. A process that is ending leaves them to its next life.
    pub(super) fn takes_controls(&self) -> bool {
        !self.is_full() && self.control.has_room() && !self.stopping.draining
    }
}
