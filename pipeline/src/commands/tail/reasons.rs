//! Describes decisions of the scheduler and their reasons.

use serde::Deserialize;
use serde_json::Value;
use warptape_schemas::journal::{Breaker, Started};

use super::show::branch;
use crate::commands::columns::{numbered, utc};
use crate::runtime::breaker_words;

/// Describes the decisions of a journal entry, in their order. `entry` has the fields of a `JournalEntry`; its input is
/// not read. `started` is the start of the entry's process, if known; it has the limits that decisions compare with.
pub fn of_decisions<'a>(entry: &'a Value, started: Option<&'a Started>) -> impl Iterator<Item = String> + 'a {
    let at_ns = entry["at_ns"].as_i64().unwrap_or(0);
    let decisions = entry["decisions"].as_array().into_iter().flatten();
    decisions.map(move |decision| of_decision(decision, at_ns, started))
}

/// Returns the fields of a union's branch.
fn fields_of(union: &Value) -> &Value {
    union.as_object().and_then(|object| object.values().next()).unwrap_or(&Value::Null)
}

/// Describes a decision that was made at `at_ns`.
pub fn of_decision(decision: &Value, at_ns: i64, started: Option<&Started>) -> String {
    let name = branch(decision);
    let fields = fields_of(decision);
    let of = Fields { fields, at_ns, started };
    let words = match name {
        "Place" => of.place(),
        "Dispatch" => of.dispatch(),
        "Pause" => format!(
            "partition {} is paused: {} of its rows wait on the host, above the high-water mark of {}",
            of.text("partition"),
            of.text("waiting_rows"),
            of.text("high_water_rows"),
        ),
        "Resume" => format!(
            "partition {} is read again: {} of its rows wait on the host, and the low-water mark is {}",
            of.text("partition"),
            of.text("waiting_rows"),
            of.text("low_water_rows"),
        ),
        "Fence" => format!(
            "lane {} is cut off and loses {}; results that it still sends are ignored: {}",
            of.text("lane"),
            of.numbered("groups", "group", "groups"),
            of.text("reason"),
        ),
        "Restore" => format!(
            "partition {} is restored from snapshot and log, because lane {} is lost",
            of.text("partition"),
            of.text("lost_lane"),
        ),
        "WakeAt" => {
            format!("the scheduler asks for a wake-up at {}, unless an input comes first", of.time("at_ns"))
        }
        "Release" => format!(
            "lane {} gives up group {} of partition {}: {}",
            of.text("lane"),
            of.text("group"),
            of.text("partition"),
            of.release(),
        ),
        "Assign" => format!(
            "task {} joins the queue of lane {}, behind {} ({} of work){}",
            of.text("task"),
            of.text("lane"),
            of.numbered("tasks", "task", "tasks"),
            milliseconds(of.number("backlog_ns")),
            match of.fields["reason"].as_str() {
                Some("EXPLORED") => ", because the task was drawn at random",
                Some("STOOD_IN") => ", because the network of the policy is missing",
                _ => "",
            },
        ),
        "AskPrices" => format!(
            "question {} asks for the prices of task kinds, with these numbers of lanes in each class: {}",
            of.text("question"),
            of.text("lanes"),
        ),
        "Controlled" => format!(
            "the command {} is {}: {}",
            of.text("id"),
            if fields["outcome"] == "DONE" { "obeyed" } else { "refused" },
            of.text("detail"),
        ),
        "Admit" => format!(
            "task {} of {} ({}) is admitted; {} tasks are known now",
            of.text("task"),
            of.text("tenant"),
            of.text("class"),
            of.text("tasks"),
        ),
        "Reject" => of.reject(),
        "Split" => of.split(),
        "Reserve" => format!(
            "lanes {} are reserved for task {} until {}, because {} of them are busy",
            of.text("lanes"),
            of.text("task"),
            of.time("until_ns"),
            of.text("busy"),
        ),
        "RunSlice" => of.run_slice(),
        "Expire" => format!(
            "task {} is given up, with {} running: its deadline {} has passed",
            of.text("task"),
            of.numbered("slices_running", "slice", "slices"),
            of.time("deadline_ns"),
        ),
        "Finish" => format!(
            "task {} is done, in {} and {} of lane time; the prediction was {}",
            of.text("task"),
            of.numbered("slices", "slice", "slices"),
            milliseconds(of.number("service_ns")),
            milliseconds(of.number("predicted_ns")),
        ),
        "Shed" => format!(
            "task {} ({}) is shed after {}: tasks have waited longer than {} throughout an interval",
            of.text("task"),
            of.text("class"),
            milliseconds(of.number("waited_ns")),
            milliseconds(of.number("target_ns")),
        ),
        "Drift" => format!(
            "slice {} of {} took {} on lane {} and the prediction was {}; earlier slices were off likewise, so the measurements of {} slices are dropped",
            of.text("slice"),
            of.text("rate_key"),
            milliseconds(of.number("service_ns")),
            of.text("lane"),
            milliseconds(of.number("predicted_ns")),
            of.text("slices"),
        ),
        "FellBack" => of.fell_back(),
        "Scale" => of.scale(),
        "Shadow" => of.shadow(),
        "Breaker" => of.breaker(),
        "Headroom" => format!(
            "lane {} counts with {} % of its weight: its device is at {} °C, its limit is {} °C",
            of.text("lane"),
            of.text("weight_percent"),
            of.text("temperature_c"),
            of.text("limit_c"),
        ),
        // Decision of a newer version.
        _ => fields.to_string(),
    };
    format!("{name}: {words}")
}

/// The fields of a decision, and the time at which it was made.
struct Fields<'a> {
    fields: &'a Value,
    at_ns: i64,
    started: Option<&'a Started>,
}

impl Fields<'_> {
    fn text(&self, name: &str) -> String {
        text(&self.fields[name])
    }

    fn number(&self, name: &str) -> i64 {
        self.fields[name].as_i64().unwrap_or(0)
    }

    fn numbered(&self, name: &str, one: &str, many: &str) -> String {
        match self.fields[name].as_i64() {
            Some(number) => numbered(number, one, many),
            None => format!("{} {many}", self.text(name)),
        }
    }

    fn fell_back(&self) -> String {
        let milli = |name: &str| format!("{:.2}", self.number(name) as f64 / 1e3);
        let [policy, task, completions] = ["policy", "task", "completions"].map(|name| self.text(name));
        let (error, expected) = (milli("error_milli"), milli("expected_milli"));
        match self.fields["has_returned"].as_bool() {
            Some(true) => format!(
                "policy {policy} decides again from task {task} on, {completions} completions after it fell back to its rule: its predictions are off by {error} powers of two, those of the rule by {expected}"
            ),
            _ => format!(
                "policy {policy} falls back to its rule with task {task}: its predictions are off by {error} powers of two, after {expected} on average; it drops what it learnt from {completions} completions"
            ),
        }
    }

    fn scale(&self) -> String {
        let [lanes, before, in_service] =
            ["lanes", "lanes_before", "lanes_in_service"].map(|name| self.text(name));
        let cause = match self.fields["reason"].as_str() {
            Some("UTILIZATION") => "for the load of the last window",
            Some("WAITING") => "some of them for waiting work",
            Some("FORECAST") => "for the forecast load",
            Some("ANOMALY") => "arrivals are an anomaly, so the current load counts beside the forecast",
            Some("HOLD") => {
                "fewer would be enough, but the hysteresis and the wait before a reduction hold \
                             the number"
            }
            Some("LIMIT") => "by the limit autoscale.lanes_min or autoscale.lanes_max",
            _ => "for a reason that only a newer version knows",
        };
        let load = |name: &str| format!("{:.2}", self.number(name) as f64 / 1e6);
        let mut words = format!(
            "{lanes} lanes are wanted instead of {before}: {cause}; the load is {} lanes, the {} lanes in service were busy for {} % of the window, and {} of work waits",
            load("load_e6"),
            in_service,
            self.text("utilization_percent"),
            milliseconds(self.number("waiting_ns")),
        );
        if !self.fields["forecast_e6"].is_null() {
            words += &format!("; the forecast is up to {} lanes", load("forecast_e6"));
        }
        if !self.fields["error_ppm"].is_null() {
            words += &format!(", with a mean error of {:.0} %", self.number("error_ppm") as f64 / 1e4);
        }
        words
    }

    fn shadow(&self) -> String {
        let [policy, task] = ["policy", "task"].map(|name| self.text(name));
        let [lane, lane_instead, task_instead] =
            ["lane", "lane_instead", "task_instead"].map(|name| self.fields[name].as_i64());
        let words = match (lane, lane_instead, task_instead) {
            (Some(lane), Some(instead), _) if lane == instead => {
                format!("would also send task {task} to the queue of lane {lane}")
            }
            (Some(lane), Some(instead), _) => {
                format!("would send task {task} to the queue of lane {instead}, not of lane {lane}")
            }
            (None, Some(instead), _) => format!("would send task {task} to the queue of lane {instead}"),
            (Some(lane), None, Some(instead)) if instead == self.number("task") => {
                format!("would also give task {task} to lane {lane}")
            }
            (Some(lane), None, Some(instead)) => {
                format!("would give task {instead} to lane {lane}, not task {task}")
            }
            // Reason of a newer version.
            _ => return self.fields.to_string(),
        };
        format!("policy {policy} of risk.shadow {words}")
    }

    /// Describes the breaker in the words of the process's own log.
    fn breaker(&self) -> String {
        match Breaker::deserialize(self.fields) {
            Ok(breaker) => format!("lane {} {}", breaker.lane, breaker_words(&breaker)),
            // State of a newer version.
            Err(_) => self.fields.to_string(),
        }
    }

    fn time(&self, name: &str) -> String {
        utc(self.number(name))
    }

    fn place(&self) -> String {
        // The first of the highest scores is chosen. Scores are not printed, because they mean nothing by themselves.
        let mut candidates: Vec<&Value> =
            self.fields["candidates"].as_array().into_iter().flatten().collect();
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate["score"].as_i64()));
        let ranks = candidates.into_iter().map(|candidate| {
            let [lane, placed, most] =
                ["lane", "groups_placed", "groups_max"].map(|name| text(&candidate[name]));
            format!("lane {lane} ({placed} of {most} groups)")
        });
        let ranks = ranks.collect::<Vec<_>>().join(", then ");
        let excluded = list(&self.fields["excluded"], |excluded| {
            let why = match excluded["reason"].as_str() {
                Some("LOST") => "is lost",
                Some("FULL") => "has its greatest number of groups",
                Some("SLOWER") => "is of the slower kind",
                Some("DRAINED") => "is drained",
                Some("BROKEN") => "has an open breaker",
                Some("MEMORY") => "has little free memory on its device",
                other => other.unwrap_or_default(),
            };
            format!("lane {} {why}", text(&excluded["lane"]))
        });
        let policy = &self.fields["policy"];
        let mut words = format!(
            "group {} of partition {} goes to lane {} with epoch {}: policy {} {}{} ranks {ranks}",
            self.text("group"),
            self.text("partition"),
            self.text("lane"),
            self.text("epoch"),
            text(&policy["id"]),
            text(&policy["version"]),
            match policy["id"].as_str() {
                Some("rendezvous") => ", which draws lanes by their weights,",
                Some("balanced") => ", which goes by measured loads,",
                _ => "",
            },
        );
        if !excluded.is_empty() {
            words += &format!("; {excluded}");
        }
        let why = &self.fields["route"];
        if !why.is_null() {
            words += &format!("; {}", route(why));
        }
        words
    }

    fn dispatch(&self) -> String {
        let why = match self.fields["reason"].as_str() {
            Some("IDLE") => "the lane is idle",
            Some("FULL") => "enough rows for a full batch wait",
            Some("DEADLINE") => match self.started {
                Some(started) => &format!(
                    "the oldest row must be done within {} ms of its arrival (scheduler.row_deadline_ms) and cannot wait any longer",
                    started.scheduler.row_deadline_ns as f64 / 1e6
                ),
                None => "the oldest row cannot wait any longer",
            },
            Some("DRAIN") => "the pipeline drains",
            other => other.unwrap_or_default(),
        };
        let telemetry = &self.fields["telemetry"];
        let takes = self.fields["takes"].as_array().map_or(0, Vec::len);
        let in_flight = |name: &str| telemetry[name].as_i64().unwrap_or(0);
        format!(
            "batch {} of {} of {} to lane {}: {why}; the oldest row arrived {} ago; the lane has {} of {} in \
             flight, {}",
            self.text("batch"),
            numbered(self.number("rows"), "row", "rows"),
            numbered(takes as u64, "group", "groups"),
            self.text("lane"),
            milliseconds(self.at_ns - self.number("oldest_arrival_ns")),
            numbered(in_flight("in_flight_rows"), "row", "rows"),
            numbered(in_flight("in_flight_batches"), "batch", "batches"),
            match telemetry["service_ps_per_row"].as_i64() {
                Some(0) => "and no end is predicted, because the lane has not been measured yet".to_owned(),
                _ => {
                    let in_ns = self.number("predicted_finish_ns") - self.at_ns;
                    format!("and the end is predicted in {}", milliseconds(in_ns))
                }
            },
        )
    }

    fn release(&self) -> String {
        match self.fields["cause"].as_str() {
            Some("DRAINED") => "the lane is drained".to_owned(),
            Some("BREAKER") => "its breaker is open".to_owned(),
            Some("BALANCE") => imbalance(&self.fields["imbalance"]),
            Some("REBALANCE") => "the group would now be placed elsewhere".to_owned(),
            _ => route(&self.fields["route"]),
        }
    }

    fn reject(&self) -> String {
        let why = match self.fields["reason"].as_str() {
            Some("OVERLOADED") => format!(
                "{} of at most {} tasks are known, with {} of at most {} bytes of requests, this one included",
                self.text("tasks"),
                self.text("tasks_max"),
                self.text("bytes"),
                self.text("bytes_max"),
            ),
            Some("EXPIRED") => format!("its deadline {} has passed", self.time("deadline_ns")),
            Some("QUOTA") => format!(
                "the quota {} is full: {} of its {} tasks are known or guaranteed to others",
                self.text("quota"),
                self.text("tasks"),
                self.text("tasks_max"),
            ),
            Some("RATE") => {
                format!(
                    "quota {} may send at most {} requests per second",
                    self.text("quota"),
                    self.text("tasks_max")
                )
            }
            Some("CONGESTED") => format!(
                "tasks have waited for too long, so only {} may be known for now, and {} are",
                self.text("tasks_max"),
                self.text("tasks"),
            ),
            other => other.unwrap_or_default().to_owned(),
        };
        format!("task {} is refused: {why}", self.text("task"))
    }

    fn split(&self) -> String {
        let shares = list(&self.fields["shares"], |share| {
            let [lane, from, to, score] = ["lane", "from", "to", "score"].map(|name| text(&share[name]));
            format!("lane {lane} gets units {from} to {to}, with a score of {score}")
        });
        let gang =
            if self.fields["gang"] == true { "which begin at the same time" } else { "each in its own time" };
        format!("task {} is split ({}) among lanes, {gang}: {shares}", self.text("task"), self.text("policy"))
    }

    fn run_slice(&self) -> String {
        let why = match self.fields["reason"].as_str() {
            Some("RESERVED") => "because the task is critical and the lane has reserved time",
            Some("AGED") => "because the task has waited longest",
            Some("EXPLORED") => "because the task was drawn at random",
            Some("STOLEN") => {
                &format!("because it is idle and lane {} would reach them later", self.text("stolen_from"))
            }
            _ => "because the lane is free",
        };
        format!(
            "lane {} does units {} to {} of task {}, {why}: {} ({}) has had {} of service, and {} tasks wait; the end is predicted in {}",
            self.text("lane"),
            self.text("from"),
            self.text("to"),
            self.text("task"),
            self.text("tenant"),
            self.text("class"),
            milliseconds(self.number("tenant_service_ns")),
            self.text("tasks_waiting"),
            milliseconds(self.number("predicted_finish_ns") - self.at_ns),
        )
    }
}

/// Explains why a group is restricted to lanes of one kind.
fn route(route: &Value) -> String {
    let number = |name: &str| milliseconds(route[name].as_i64().unwrap_or(0));
    format!(
        "{} rows are predicted to take {} on the CPU and {} on GPUs",
        text(&route["rows"]),
        number("host_ns"),
        number("device_ns"),
    )
}

/// Explains why a group moves to a lane with less load.
fn imbalance(imbalance: &Value) -> String {
    let number = |name: &str| milliseconds(imbalance[name].as_i64().unwrap_or(0));
    format!(
        "the lane is busy for {} per second and lane {} for {}; the group takes {}; the move gains {} in a window and costs {}",
        number("from_load_ns"),
        text(&imbalance["to"]),
        number("to_load_ns"),
        number("group_load_ns"),
        number("gain_ns"),
        number("cost_ns"),
    )
}

fn list(items: &Value, words: impl Fn(&Value) -> String) -> String {
    items.as_array().into_iter().flatten().map(words).collect::<Vec<_>>().join(", ")
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) => list(value, text),
        other => other.to_string(),
    }
}

/// Formats milliseconds with three decimals.
pub fn milliseconds(ns: i64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::inputs::tests::started;
    use super::*;

    fn check(decision: Value, expected: &str) {
        let entry = json!({"at_ns": 5_000_000, "decisions": [decision]});
        assert_eq!(of_decisions(&entry, None).collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn a_placement_says_who_was_asked_and_who_was_not() {
        check(
            json!({"warptape.Place": {
                "partition": 1, "group": 7, "lane": 2, "epoch": 3, "policy": {"id": "rendezvous", "version": 2},
                "candidates": [
                    {"lane": 0, "score": -40, "groups_placed": 1, "groups_max": 5},
                    {"lane": 2, "score": 91, "groups_placed": 0, "groups_max": 5},
                ],
                "excluded": [{"lane": 1, "reason": "LOST"}, {"lane": 3, "reason": "FULL"}],
                "random_stream": 1, "random_counter": 0, "propensity_ppm": 1_000_000,
                "route": {"kind": "DEVICE", "rows": 900, "break_even_rows": 400, "host_ns": 2_000_000, "device_ns": 1_000_000},
            }}),
            "Place: group 7 of partition 1 goes to lane 2 with epoch 3: policy rendezvous 2, which draws \
             lanes by their weights, ranks lane 2 (0 of 5 groups), then lane 0 (1 of 5 groups); lane 1 is \
             lost, lane 3 has its greatest number of groups; 900 rows are predicted to take 2.000 ms on the \
             CPU and 1.000 ms on GPUs",
        );
    }

    #[test]
    fn a_batch_says_why_now() {
        check(
            json!({"Dispatch": {
                "batch": 4, "lane": 1, "rows": 812, "bytes": 1, "reason": "DEADLINE",
                "takes": [{"partition": 0, "group": 1, "epoch": 1, "rows": 812}],
                "telemetry": {"in_flight_rows": 10, "in_flight_batches": 1, "in_flight_bytes": 9, "service_ps_per_row": 5},
                "oldest_arrival_ns": 4_000_000, "predicted_finish_ns": 5_500_000,
            }}),
            "Dispatch: batch 4 of 812 rows of 1 group to lane 1: the oldest row cannot wait any longer; the \
             oldest row arrived 1.000 ms ago; the lane has 10 rows of 1 batch in flight, and the end is \
             predicted in 0.500 ms",
        );
    }

    #[test]
    fn the_limit_of_waiting_is_named_where_it_is_known() {
        let dispatch = json!({"Dispatch": {
            "batch": 4, "lane": 1, "rows": 812, "bytes": 1, "reason": "DEADLINE", "takes": [],
            "telemetry": {"in_flight_rows": 0, "in_flight_batches": 0, "in_flight_bytes": 0, "service_ps_per_row": 0},
            "oldest_arrival_ns": 0, "predicted_finish_ns": 0,
        }});
        let words = of_decision(&dispatch, 0, Some(&started()));
        let limit = "the oldest row must be done within 5 ms of its arrival (scheduler.row_deadline_ms) and cannot \
             wait any longer; ";
        assert!(words.contains(limit), "{words}");
    }

    #[test]
    fn of_a_lane_that_was_not_measured_no_end_is_predicted() {
        check(
            json!({"Dispatch": {
                "batch": 0, "lane": 1, "rows": 812, "bytes": 1, "reason": "IDLE",
                "takes": [{"partition": 0, "group": 1, "epoch": 1, "rows": 812}],
                "telemetry": {"in_flight_rows": 0, "in_flight_batches": 0, "in_flight_bytes": 0, "service_ps_per_row": 0},
                "oldest_arrival_ns": 5_000_000, "predicted_finish_ns": 5_000_000,
            }}),
            "Dispatch: batch 0 of 812 rows of 1 group to lane 1: the lane is idle; the oldest row arrived \
             0.000 ms ago; the lane has 0 rows of 0 batches in flight, and no end is predicted, because the \
             lane has not been measured yet",
        );
    }

    #[test]
    fn a_breaker_is_told_in_the_words_of_the_log() {
        let words = |state: &str, reason: &str, measured: i64, limit: i64| {
            let fields =
                json!({"lane": 3, "state": state, "reason": reason, "measured": measured, "limit": limit});
            let entry = json!({"at_ns": 5_000_000, "decisions": [{"Breaker": fields}]});
            of_decisions(&entry, None).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(
            words("OPEN", "LOSSES", 3, 3),
            "Breaker: lane 3 gets no work: it was lost 3 times recently, and the limit is 3"
        );
        assert_eq!(
            words("HALF_OPEN", "PROBE", 2_000_000_000, 1_000_000_000),
            "Breaker: lane 3 is tried with half of its groups and with slices: it has been out of service for 2000 ms"
        );
        assert!(words("OPEN", "PROBE_FAILED", 0, 0).contains(": it was lost during its trial; "));
        assert!(
            words("OPEN", "PROBE_FAILED", 450, 300)
                .contains(" took 450 % of the predicted time, and the limit is 300 %")
        );
        assert!(words("OPEN", "OF_A_LATER_VERSION", 1, 2).ends_with(r#""state":"OPEN"}"#));
    }

    #[test]
    fn every_decision_has_words_without_gaps() {
        let schema: Value =
            serde_json::from_str(include_str!("../../../../schemas/avro/journal_entry.avsc")).unwrap();
        let decisions =
            schema["fields"].as_array().unwrap().iter().find(|field| field["name"] == "decisions").unwrap();
        let decisions = decisions["type"]["items"].as_array().unwrap();
        for decision in decisions {
            let fields = decision["fields"].as_array().unwrap().iter();
            let value = |field: &Value| match &field["type"]["symbols"][0] {
                Value::Null => json!(1),
                symbol => symbol.clone(),
            };
            let fields =
                fields.map(|field| (field["name"].as_str().unwrap().to_owned(), value(field))).collect();
            let name = decision["name"].as_str().unwrap().to_owned();
            let raw = format!("{name}: {{");
            let words =
                of_decision(&Value::Object([(name, Value::Object(fields))].into_iter().collect()), 0, None);
            assert!(!words.starts_with(&raw), "a decision of a new kind wants words: {words}");
            let is_route = |part: &str| part.contains("rows are predicted");
            let own: Vec<_> = words.split("; ").filter(|part| !is_route(part)).collect();
            // A missing value within a field gives null, as a missing field would.
            let gaps = own.join("; ").matches("null").count();
            let within = match decision["name"].as_str().unwrap() {
                "Place" => 2,
                "Dispatch" => 2,
                "Release" => 1,
                _ => 0,
            };
            assert!(gaps <= within, "{words}");
        }
        check(json!({"Later": {"x": 1}}), "Later: {\"x\":1}");
    }
}
