//! Checks of explanations: they have all alternatives, and agree with the recorded decision.

use warptape_events::journal::*;
use warptape_scheduler::{Choice, Comparison, Condition, Explanation, Otherwise, Scheduler, Subject};

/// Explains and checks all decisions of a step that was taken in the state `before`.
pub(super) fn check(before: &Scheduler, at_ns: i64, input: &Input, decisions: &[Decision]) {
    for (index, decision) in decisions.iter().enumerate() {
        let explanation = before.explain(at_ns, input, index).expect("the step was taken");
        assert_eq!(explanation.decision, *decision);
        let chosen: Vec<Subject> = explanation
            .choices
            .iter()
            .filter(|choice| choice.is_chosen)
            .map(|choice| choice.subject)
            .collect();
        match decision {
            Decision::Place(place) => {
                assert_eq!(chosen, [Subject::Lane(place.lane)]);
                check_place(place, &explanation);
            }
            Decision::Dispatch(batch) => {
                assert_eq!(chosen, [Subject::Lane(batch.lane)]);
                assert!(
                    explanation.choices[0]
                        .terms
                        .iter()
                        .any(|term| term.name == "waiting_rows" && term.value >= batch.rows)
                );
            }
            Decision::RunSlice(run) => {
                assert_eq!(chosen, [Subject::Task(run.task)]);
                assert!(!explanation.otherwise.contains(&Otherwise::Next(Subject::Task(run.task), None)));
            }
            Decision::Assign(assign) => {
                assert_eq!(chosen, [Subject::Lane(assign.lane)]);
                let seen = explanation.choices.iter().find(|choice| choice.is_chosen).expect("just found");
                let expected =
                    [("tasks", assign.tasks), ("backlog_ns", assign.backlog_ns), ("task_ns", assign.task_ns)];
                let found = seen.terms.iter().map(|term| (term.name, term.value));
                assert!(found.take(3).eq(expected), "{assign:?}: {seen:?}");
                assert_eq!(seen.excluded, None);
            }
            Decision::Shadow(shadow) => {
                let instead = shadow.lane_instead.map(Subject::Lane);
                let instead = instead.or(shadow.task_instead.map(Subject::Task)).expect("it says something");
                assert_eq!(chosen, [instead], "{explanation:?}");
                assert!(!explanation.otherwise.contains(&Otherwise::Next(instead, None)));
                assert_eq!(explanation.measures.len(), 1, "{explanation:?}");
            }
            Decision::Breaker(_) | Decision::Headroom(_) | Decision::FellBack(_) | Decision::Scale(_) => {
                assert!(explanation.choices.is_empty() && !explanation.measures.is_empty());
                // Load alone, or waiting work alone, may call for more lanes than the limit.
                let is_limit =
                    matches!(decision, Decision::Scale(scale) if scale.reason == ScaleReason::Limit);
                assert!(is_limit || !explanation.otherwise.is_empty(), "{explanation:?}");
            }
            _ => assert!(explanation.choices.is_empty() && explanation.measures.is_empty()),
        }
        explanation.otherwise.iter().for_each(|otherwise| check_condition(&explanation, otherwise));
    }
}

/// Checks that a condition for another decision did not hold.
fn check_condition(explanation: &Explanation, otherwise: &Otherwise) {
    let Otherwise::With(Condition { name, is, value, .. }) = otherwise else { return };
    let measure = explanation.measures.iter().find(|measure| measure.name == *name);
    let found = measure.unwrap_or_else(|| panic!("{name} is told: {explanation:?}")).value;
    let holds = match is {
        Comparison::Below => found < *value,
        Comparison::AtMost => found <= *value,
        Comparison::AtLeast => found >= *value,
        Comparison::Above => found > *value,
    };
    assert!(!holds, "{otherwise:?} holds: {explanation:?}");
}

/// Checks that the lanes, their scores and the reasons are those in the decision.
fn check_place(place: &Place, explanation: &Explanation) {
    let lane = |choice: &Choice| match choice.subject {
        Subject::Lane(lane) => lane,
        Subject::Task(task) => panic!("a group is placed on task {task}"),
    };
    let (excluded, candidates): (Vec<_>, Vec<_>) =
        explanation.choices.iter().partition(|choice| choice.excluded.is_some());
    let candidates: Vec<_> = candidates.into_iter().map(|choice| (lane(choice), choice.score)).collect();
    let expected: Vec<_> = place.candidates.iter().map(|one| (one.lane, Some(one.score))).collect();
    assert_eq!(candidates, expected, "{place:?}");
    let excluded: Vec<_> = excluded.into_iter().map(|choice| (lane(choice), choice.excluded)).collect();
    let expected: Vec<_> = place.excluded.iter().map(|one| (one.lane, Some(one.reason))).collect();
    assert_eq!(excluded, expected, "{place:?}");
    for otherwise in &explanation.otherwise {
        match otherwise {
            Otherwise::Next(Subject::Lane(lane), less) => {
                assert!(*lane != place.lane && less.is_none_or(|less| less >= 0), "{explanation:?}");
            }
            Otherwise::Unless(lane, reason) => {
                assert!(place.excluded.contains(&Exclusion { lane: *lane, reason: *reason }));
            }
            other => panic!("{other:?} of a placement"),
        }
    }
}
