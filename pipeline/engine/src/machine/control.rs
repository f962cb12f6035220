//! The core's side of operators' commands: in from their topic, out as answers, with the scheduler in between.

use warptape_events::control::{Control, ControlOutcome, ControlResult};
use warptape_events::journal::{Controlled, Input};

use super::Core;
use crate::RecordError;
use crate::control::ReadControl;

impl Core {
    /// Commands were read from the partition of this process's number.
    pub fn on_controls(
        &mut self,
        now_ns: i64,
        ordinal: i32,
        controls: Vec<ReadControl>,
    ) -> Result<(), RecordError> {
        for ReadControl { offset, control } in controls {
            let refusal = |id: String, detail: String| ControlResult {
                id,
                ordinal,
                node: self.config.node.clone(),
                offset,
                at_ns: now_ns,
                outcome: ControlOutcome::Refused,
                detail,
                sequence: None,
            };
            let refused = match control {
                Err(error) => refusal(String::new(), format!("it cannot be read: {error}")),
                Ok(control) => match control.long_text() {
                    Some((what, bytes)) => {
                        refusal(control.id, format!("{what} has {bytes} bytes; it may have up to 256"))
                    }
                    None => {
                        self.obey_control(now_ns, ordinal, offset, control)?;
                        continue;
                    }
                },
            };
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
        self.control.ask(ordinal, offset, self.recorder.next_sequence());
        let input = warptape_events::journal::Control { offset, id, by, deadline_ns, command };
        self.step(now_ns, &Input::Control(input))
    }

    /// The scheduler has said what becomes of a command.
    pub(super) fn controlled(&mut self, now_ns: i64, controlled: Controlled) {
        let Controlled { id, outcome, detail } = controlled;
        tracing::warn!(id, ?outcome, detail, "an operator's command");
        let node = self.config.node.clone();
        let result =
            ControlResult { id, ordinal: 0, node, offset: 0, at_ns: now_ns, outcome, detail, sequence: None };
        self.control.answer(&self.config.topics.control, result);
    }

    /// Whether commands may come now. A process that ends leaves them to its next life.
    pub fn takes_controls(&self) -> bool {
        !self.is_full() && self.control.has_room() && !self.stopping.draining
    }
}
