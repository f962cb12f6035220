//! Closing of time bars that no tick closes: the process writes a `SetEventTime` record among the ticks, and reads it
//! like any tick. So the outputs stay a function of the log alone.

use std::collections::BTreeMap;

use warptape_events::SetEventTime;

use super::Core;

impl Core {
    /// Writes a `SetEventTime` record for each quiet partition with bars that have ended by the wall clock.
    pub(super) fn close_quiet_bars(&mut self, now_ns: i64) {
        let Some(grace_ns) = self.config.times.idle_close_ns.filter(|_| self.stopping.at.is_none()) else {
            return;
        };
        let said = self.partitions.iter_mut();
        let said = said.filter_map(|(&id, owned)| Some((id, owned.quiet_event_time(now_ns, grace_ns)?)));
        let said = said.collect();
        self.say_event_times(&said, false);
    }

    /// Writes, for all partitions, an event time that closes all time bars, if that is configured and not done yet.
    /// Returns true if there is now something to read.
    pub(super) fn close_bars(&mut self) -> bool {
        if self.stopping.closing.is_some() {
            return false;
        }
        let said = self.partitions.iter_mut();
        let said = said.filter_map(|(&id, owned)| Some((id, owned.last_event_time()?)));
        let closing: BTreeMap<i32, i64> = said.collect();
        self.say_event_times(&closing, true);
        if let Some(stop) = &mut self.stopping.at {
            stop.ticks.extend(closing.keys().map(|&partition| (partition, i64::MAX)));
        }
        let has_said = !closing.is_empty();
        self.stopping.closing = Some(closing);
        has_said
    }

    /// Ends reading, because all bars are closed.
    pub(super) fn end_closing(&mut self) {
        let closing = self.stopping.closing.replace(BTreeMap::new()).unwrap_or_default();
        if let Some(stop) = &mut self.stopping.at {
            for partition in closing.into_keys() {
                let next_offset = self.partitions.get(&partition).map_or(0, |owned| owned.next_offset);
                stop.ticks.insert(partition, next_offset);
            }
        }
    }

    fn say_event_times(&mut self, said: &BTreeMap<i32, i64>, cuts_bars: bool) {
        for (&partition, &event_time_max_ns) in said {
            let (id, by) = (String::new(), self.config.node.clone());
            let set = SetEventTime { id, by, event_time_max_ns, cuts_bars, only_forward: true };
            self.control.say_event_time(partition, &set);
        }
    }
}
