//! The causes that held a signal up, in total: all waits for one lane count together, whatever their kind.

use serde::Serialize;
use warptape_schemas::journal::LaneId;

use super::facts::Chain;
use super::waits::{Step, Wait};
use crate::moment::utc;

/// The `--partition` argument for a partition of the journal, with a space before it; empty for partition 0, the
/// default.
pub fn partition_argument(journal: i32) -> String {
    match journal {
        0 => String::new(),
        journal => format!(" --partition {journal}"),
    }
}

/// The cause that held a signal up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// A lane. Rows of the signal's group waited for it: in the queue, behind other batches, or for their own. Or the
    /// signal waited for rows of other groups on it.
    Lane {
        /// The lane.
        lane: LaneId,
        /// Its device.
        device: String,
    },
    /// Something else.
    Step(Step),
}

/// The time for which one cause held a signal up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// The cause.
    pub by: Holder,
    /// Total time, ns.
    pub ns: i64,
    /// The waits that it consists of, the longest first.
    pub waits: Vec<Wait>,
}

impl Chain {
    /// The causes that held the signal up, the longest first. Their times add up to the whole.
    pub fn held_by(&self) -> Vec<Held> {
        let mut all: Vec<Held> = Vec::new();
        for &wait in &self.waits {
            let by = self.holder(wait.step);
            match all.iter_mut().find(|held| held.by == by) {
                Some(held) => {
                    held.ns += wait.ns;
                    held.waits.push(wait);
                }
                None => all.push(Held { by, ns: wait.ns, waits: vec![wait] }),
            }
        }
        // Among equals the earliest one comes first.
        all.iter_mut().for_each(|held| held.waits.sort_by_key(|wait| std::cmp::Reverse(wait.ns)));
        all.sort_by_key(|held| std::cmp::Reverse(held.ns));
        all
    }

    /// The arguments of `warptape` that explain the state of the lane that held the signal up, in the middle of the
    /// longest wait for it.
    pub fn why_not(&self, held: &Held) -> Option<String> {
        let Holder::Lane { lane, .. } = held.by else { return None };
        let longest = held.waits.first()?;
        let before = self.waits.iter().take_while(|wait| wait.step != longest.step);
        let at = utc(self.tick.created_ns + before.map(|wait| wait.ns).sum::<i64>() + longest.ns / 2);
        Some(format!("replay why-not {lane} --at {at}{}", partition_argument(self.process.journal?)))
    }

    fn holder(&self, step: Step) -> Holder {
        let batch = match step {
            Step::Queue | Step::Lane | Step::Service | Step::Handover => self.batch.as_ref(),
            Step::OtherGroups => self.last_batch.as_ref(),
            _ => None,
        };
        match batch {
            Some(batch) => Holder::Lane { lane: batch.lane, device: batch.device.clone() },
            None => Holder::Step(step),
        }
    }
}
