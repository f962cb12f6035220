//! Compares a task, as the scheduler got it, with its request.

use serde_json::Value;
use warptape_schemas::journal::TaskArrived;
use warptape_schemas::risk::{RiskProblem, RiskRequest};
use warptape_stages::risk::{MarketOf, RiskTask, refusals};

use crate::admissions::Admission;
use crate::difference::{Difference, differences};

/// Returns the differences in the fields that repeat the request, for a task whose market is unknown.
pub(super) fn check_repeated(admission: &Admission, request: &RiskRequest) -> Option<Vec<Difference>> {
    let found = &*admission.arrived;
    let expected = repeated(found, request);
    (expected != *found).then(|| differences("input.TaskArrived", &value(&expected), &value(found)))
}

/// Returns the differences in the first round of a task.
pub(super) fn check(
    admission: &Admission,
    request: &RiskRequest,
    bytes: usize,
    market_of: MarketOf<'_>,
) -> Option<Vec<Difference>> {
    let found = &*admission.arrived;
    let of_request = repeated(found, request);
    let gang = |units: i64| request.gang && units > 1;
    // The deadline passed before a task was made for the request.
    let overdue = TaskArrived {
        rate_key: String::new(),
        first_unit: 0,
        units: 1,
        unit_cost: 1,
        slice_units_max: 1,
        gang: false,
        bytes: bytes as i64,
        unit_width: 0,
        ..of_request.clone()
    };
    let is_overdue = request.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= admission.at_ns);
    let mut expected = Vec::from_iter(is_overdue.then_some(overdue));
    expected.extend(RiskTask::new(request, market_of).ok().map(|task| {
        let whole = TaskArrived { bytes: (bytes + task.bytes()) as i64, ..of_request.clone() };
        // Portfolio tasks after earlier ones have fewer units, and rates of their own.
        if matches!(request.problem, RiskProblem::Portfolio(_)) {
            return TaskArrived { gang: gang(found.units), ..whole };
        }
        let units = task.units();
        let count = units.end - units.start;
        TaskArrived {
            rate_key: task.rate_key(),
            first_unit: units.start,
            units: count,
            unit_cost: task.unit_cost(),
            slice_units_max: count,
            gang: gang(count),
            // Earlier processes recorded no widths.
            unit_width: if found.unit_width == 0 && !admission.has_widths { 0 } else { task.unit_width() },
            ..whole
        }
    }));
    if expected.contains(found) {
        return None;
    }
    let expected = expected.last().unwrap_or(&of_request);
    Some(differences("input.TaskArrived", &value(expected), &value(found)))
}

/// Returns the task that the request implies, in the fields that repeat the request.
fn repeated(found: &TaskArrived, request: &RiskRequest) -> TaskArrived {
    TaskArrived {
        request_id: refusals::repeated(&request.request_id),
        tenant: refusals::repeated(&request.tenant),
        class: request.class,
        deadline_ns: request.deadline_ns,
        ..found.clone()
    }
}

fn value(arrived: &TaskArrived) -> Value {
    serde_json::to_value(arrived).unwrap_or_default()
}
