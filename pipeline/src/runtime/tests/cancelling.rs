//! Requests that are cancelled, cost too much, or were unanswered when their partition was assigned.

use warptape_schemas::journal::Input;

use super::*;

/// Sequence in a result for which the scheduler was not asked.
const NO_SEQUENCE: i64 = -1;

fn cancels(offset: i64, request_id: &str) -> ReadRequest {
    let problem = json!({"type": "options", "assets": [], "options": []});
    let request = json!({"request_id": offset.to_string(), "tenant": "desk", "cancels": request_id,
                         "problem": problem});
    let request: RiskRequest = serde_json::from_value(request).expect("a request");
    let mut record = unreadable(offset, 0);
    encode_risk_request(&request, &mut record.value);
    read_request(&record)
}

impl Shell {
    fn cancel(&mut self, now_ns: i64, offset: i64, request_id: &str) {
        self.read(now_ns, vec![cancels(offset, request_id)]);
        self.turn(now_ns);
    }
}

fn message(result: &RiskResult) -> &str {
    match &result.outcome {
        RiskOutcome::Error(error) => &error.message,
        _ => "",
    }
}

const BY: &str = "cancelled by request \"1\" of tenant \"desk\", at offset 1";

/// Returns, for each result in order, the request, its error code, and the cancelled request.
fn told(results: &[RiskResult]) -> Vec<(&str, Option<RiskErrorCode>, Option<&str>)> {
    results
        .iter()
        .map(|result| (result.request_id.as_str(), code(result), result.cancels.as_deref()))
        .collect()
}

#[test]
fn a_request_is_cancelled_wherever_it_is() {
    // The request waits for its turn, is being prepared, or has a slice on a lane.
    for stage in 0..3 {
        // Requests wait if the market is older than before.
        let mut shell = Shell::begin(i64::from(stage == 0));
        if stage > 0 {
            shell.tick(0, 0);
        }
        let now_ns = 1_000_000_000;
        let asked = request(0, Some(9_000_000_000), &json!({"from": "market"}));
        shell.read(now_ns, vec![asked]);
        if stage > 0 {
            shell.settle(now_ns);
        }
        if stage == 2 {
            shell.around.held_slices = Some(Vec::new());
            let prepared = shell.around.preparations.remove(0).run();
            shell.tell(now_ns, Event::Prepared(prepared));
            assert_eq!(shell.core.status().tasks, 1);
        }
        shell.read(now_ns, vec![cancels(1, "0")]);
        shell.around.news.extend(shell.around.held_slices.take().into_iter().flatten());
        let results = shell.results(now_ns);
        let expected = [("0", Some(RiskErrorCode::Expired), None), ("1", None, Some("0"))];
        assert_eq!(told(&results), expected, "{stage}");
        assert_eq!(message(&results[0]), BY);
        let entries = shell.entries();
        let dropped = entries.iter().filter(|entry| matches!(entry.input, Input::TaskDropped(_)));
        assert_eq!(dropped.count(), usize::from(stage == 2), "{stage}");
        // The results of its work in progress are dropped.
        shell.turn(now_ns);
        while !shell.around.preparations.is_empty() {
            shell.prepare(now_ns);
        }
        assert!(shell.results(10_000_000_000).is_empty());
        assert_eq!(shell.core.status().tasks, 0);
        assert_eq!(shell.wants().wake_at_ns, None);
    }
}

#[test]
fn what_has_its_answer_is_not_cancelled() {
    let mut shell = Shell::begin(0);
    shell.tick(0, 0);
    shell.ask(1_000_000_000, 0, None);
    shell.prepare(1_000_000_000);
    // The result is being assembled, and nothing else is due.
    shell.cancel(1_000_000_000, 1, "0");
    shell.cancel(1_000_000_000, 2, "nobody");
    shell.conclude(1_000_000_000);
    let results = shell.results(1_000_000_000);
    let bad = Some(RiskErrorCode::BadParameter);
    assert_eq!(told(&results), [("2", bad, Some("nobody")), ("0", None, None), ("1", bad, Some("0"))]);
    assert_eq!(message(&results[2]), "0 has its result already");
    assert!(message(&results[0]).starts_with("no request nobody came before"), "{}", message(&results[0]));
}

#[test]
fn what_would_take_too_long_is_refused() {
    let mut shell = Shell::begin(0);
    shell.tick(0, 0);
    let asset = json!({"symbol": "A:X", "spot": 100.0, "volatility": 0.2});
    let problem = json!({"type": "simulation", "assets": [asset], "expiry_years": 1.0, "steps": 65_536,
                         "contract": {"type": "asian", "kind": "call", "strike": 100.0}, "paths_max": 1 << 28});
    let asked: RiskRequest =
        serde_json::from_value(json!({"request_id": "long", "problem": problem})).expect("a request");
    let mut record = unreadable(0, 0);
    encode_risk_request(&asked, &mut record.value);
    let asked = read_request(&record);
    shell.read(5, vec![asked]);
    shell.turn(5);
    shell.prepare(5);
    let results = shell.results(5);
    let [result] = &results[..] else { panic!("there is one request") };
    assert_eq!((code(result), result.decision_sequence), (Some(RiskErrorCode::BadParameter), NO_SEQUENCE));
    assert!(message(result).contains("risk.cost_max_s allows 3600:"), "{}", message(result));
    assert_eq!(result.cost_max_ns, 3_600_000_000_000);
    assert!(result.cost_ns > 14 * result.cost_max_ns, "{result:?}");
}

#[test]
fn what_had_no_answer_when_its_partition_came_is_told() {
    let mut shell = Shell::begin_with(0, 20);
    let mut read = |offsets: std::ops::Range<i64>| {
        shell.around.told.clear();
        shell.read(0, offsets.map(|offset| request(offset, None, &json!(100.0))).collect());
        let told = shell.around.told.iter().filter(|(event, _)| *event == LifecycleEvent::Restored);
        told.map(|(_, detail)| detail.clone()).collect::<Vec<_>>()
    };
    assert_eq!(read(0..19), [""; 0], "not all of them are read");
    let told = read(19..25);
    let [told] = &told[..] else { panic!("{told:?}") };
    assert!(told.starts_with("risk.requests 0: 20 requests had no answer"), "{told}");
    assert!(
        told.contains("\"0\", \"1\"") && told.contains("and 4 more") && told.contains("done again"),
        "{told}"
    );
    assert_eq!(read(25..26), [""; 0]);
}
