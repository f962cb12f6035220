//! Backpressure: it pauses a partition at its source while too many of its rows wait on the host, and resumes it.
//!
//! The module owns the two marks of waiting rows, for pausing and for resuming; it must not know lanes. The distance
//! between them keeps a partition from flapping.

use warptape_events::journal::{Decision, Pause, Resume};

use crate::life::{Life, Step};

/// Checks every partition whose waiting rows changed in this step, by partition, and pauses or resumes it.
pub(crate) fn settle(life: &mut Life, decisions: &mut Vec<Decision>) {
    let Life { config, partitions, hash, step: Step { touched, .. }, .. } = life;
    touched.sort_unstable();
    touched.dedup();
    for id in touched.drain(..) {
        let partition = partitions.get_mut(&id).expect("touched partitions are known");
        let waiting_rows = partition.waiting_rows;
        if partition.paused && waiting_rows <= config.low_water_rows {
            partition.paused = false;
            let low_water_rows = config.low_water_rows;
            decisions.push(Decision::Resume(Resume { partition: id, waiting_rows, low_water_rows }));
        } else if !partition.paused && waiting_rows >= config.high_water_rows {
            partition.paused = true;
            let high_water_rows = config.high_water_rows;
            decisions.push(Decision::Pause(Pause { partition: id, waiting_rows, high_water_rows }));
        } else {
            continue;
        }
        partition.refresh(hash);
    }
}
