//! The causes that held a signal up. All waits for the same lane are added up, whatever their kind.

use serde::Serialize;
use warptape_schemas::journal::LaneId;

use super::facts::Chain;
use super::waits::{Step, Wait};
use crate::moment::utc;

/// Returns the argument `--partition` for a partition of the journal, after a space; empty for partition 0, the
/// default.
pub fn partition_argument(journal: i32) -> String {
    match journal {
        0 => String::new(),
        journal => format!(" --partition {journal}"),
    }
}

/// A cause that held a signal up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// A lane. Rows of the signal's group waited for it: in the queue, behind other batches, or during their own batch.
    /// Or the signal waited for rows of other groups on the lane.
    Lane {
        /// The lane.
        lane: LaneId,
        /// Device of the lane.
        device: String,
    },
    /// A step other than work on a lane.
    Step(Step),
}

/// The total time for which one cause held a signal up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// The cause.
    pub by: Holder,
    /// Total time, ns.
    pub ns: i64,
    /// Waits of this cause, the longest first.
    pub waits: Vec<Wait>,
}

impl Chain {
    /// Returns the causes that held the signal up, the longest first. Their times add up to the total.
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
        // If waits are equal, the earliest one comes first.
        all.iter_mut().for_each(|held| held.waits.sort_by_key(|wait| std::cmp::Reverse(wait.ns)));
        all.sort_by_key(|held| std::cmp::Reverse(held.ns));
        all
    }

    /// Returns the arguments of `warptape` that explain the lane's state in the middle of the signal's longest wait for
    /// it; `None` for another cause.
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
