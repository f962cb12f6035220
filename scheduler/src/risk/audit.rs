//! Audit of the state of tasks: it walks over all of them, so it is only for tests and tools.

use std::collections::BTreeMap;

use warptape_events::journal::TaskClass;

use super::Risk;
use super::assign::turns_hash;
use super::congestion::Congestion;
use super::task::{Stage, Task};
use crate::lanes::Lane;
use crate::life::Life;
use crate::name::Name;

/// Hash of the state of tasks, computed by walking over it.
pub(crate) fn walked_hash(risk: &Risk, lanes: &[Lane]) -> u64 {
    let busy = risk.lanes.busy.iter().zip(lanes).map(|(busy, lane)| busy.hash(lane));
    let reserves = risk.lanes.reserves.iter().zip(lanes).map(|(reserve, lane)| reserve.hash(lane));
    let tasks = risk.tasks.values().map(|task| task.hash().wrapping_add(task.units_hash()));
    let rest = [
        risk.hash(),
        risk.widths.hash(),
        risk.tenants.accounts.walked_hash(),
        risk.rates.walked_hash(),
        turns_hash(&risk.turns),
        risk.prices.walked_hash(),
        risk.tenants.quotas.walked_hash(),
        risk.congestion.as_ref().map_or(0, Congestion::hash),
    ];
    tasks.chain(rest).chain(busy).chain(reserves).fold(0, u64::wrapping_add)
}

/// Computes incrementally updated state again by walking.
///
/// # Panics
/// The results differ.
pub(crate) fn audit(life: &Life) {
    let risk = &life.risk;
    assert!(risk.complete.is_none(), "a task that is complete was not settled");
    let (lanes, widths) = (life.lanes.len(), risk.widths.clone());
    let mut fresh = Risk::new(&life.config.risk, risk.policy, lanes, life.routing.classes(), widths);
    let mut by_tenant: BTreeMap<(TaskClass, Name), i32> = BTreeMap::new();
    let mut of_quotas: BTreeMap<Name, i64> = BTreeMap::new();
    for task in risk.tasks.values() {
        audit_task(life, task);
        let spec = &task.spec;
        *by_tenant.entry((spec.class, spec.tenant.clone())).or_default() += 1;
        *of_quotas.entry(spec.tenant.clone()).or_default() += 1;
        if let Some(congestion) = fresh.congestion.as_mut().filter(|_| !task.has_begun) {
            congestion.insert(spec.class, spec.arrived_ns, spec.id);
        }
        fresh.deadlines.extend(spec.deadline_ns.map(|deadline_ns| (deadline_ns, spec.id)));
        let (kind, turn, due) = (risk.kind_of(task), risk.turn(task), task.due(risk.policy.order()));
        match task.stage {
            Stage::Whole | Stage::Reserved(_) => _ = fresh.queues.whole.insert(&kind, &turn, due),
            Stage::Aside(until_ns) => drop(fresh.queues.aside.insert((until_ns, spec.id))),
            Stage::Shared if task.open.is_empty() => {}
            Stage::Shared => _ = fresh.queues.open.insert(&kind, &turn, due),
        }
        for (lane, units) in &task.shares {
            fresh.queues.shares.insert(*lane, &kind, &turn, due);
            fresh.lanes.queues[*lane as usize].add(risk.widths.of_lane(*lane), task, units.count());
        }
        fresh.numbers.waiting += i32::from(task.is_waiting());
        if task.is_waiting() {
            fresh.ageing.insert(task.since_ns, spec.id);
        }
        fresh.bytes += spec.bytes;
    }
    risk.tenants.accounts.audit(&by_tenant);
    risk.tenants.quotas.audit(&life.config.risk.queues.quotas, &of_quotas);
    risk.congestion.iter().zip(&fresh.congestion).for_each(|(kept, fresh)| kept.audit(fresh));
    assert_eq!(
        (&risk.deadlines, risk.numbers.waiting, risk.bytes),
        (&fresh.deadlines, fresh.numbers.waiting, fresh.bytes),
        "deadlines, waiting tasks, bytes"
    );
    assert_eq!(
        (&risk.queues.whole, &risk.queues.aside),
        (&fresh.queues.whole, &fresh.queues.aside),
        "tasks to be split"
    );
    assert_eq!(
        (&risk.queues.open, &risk.queues.shares),
        (&fresh.queues.open, &fresh.queues.shares),
        "tasks to be taken from"
    );
    assert_eq!(risk.lanes.queues, fresh.lanes.queues, "what waits for each lane alone");
    assert_eq!(risk.ageing, fresh.ageing, "tasks by how long they wait");
    risk.rates.audit();
}

fn audit_task(life: &Life, task: &Task) {
    let running = life.lanes.iter().flat_map(Lane::slices).filter(|slice| slice.task == Some(task.spec.id));
    let mut units: Vec<_> = running.map(|slice| slice.units).collect();
    assert_eq!(units.len() as i32, task.slices_running, "task {}: slices", task.spec.id);
    units.extend(&task.open);
    units.extend(task.shares.iter().map(|(_, units)| *units));
    units.sort_unstable();
    assert!(units.iter().all(|units| units.count() > 0), "task {}: no units", task.spec.id);
    assert!(units.is_sorted_by(|one, next| one.to <= next.from), "task {}: units twice", task.spec.id);
    assert!(task.open.is_sorted_by(|one, next| one.to < next.from), "task {}: units apart", task.spec.id);
    assert!(task.open.len() <= 2 * life.lanes.len() + 1, "task {}: in too many pieces", task.spec.id);
    let left: i64 = units.iter().map(|units| units.count()).sum();
    assert_eq!(left, task.units_left, "task {}: units left", task.spec.id);
    let owners = || task.shares.iter().map(|(lane, _)| *lane);
    assert!(owners().is_sorted_by(|one, next| one < next), "task {}: shares by lane", task.spec.id);
    assert!(
        owners().all(|lane| life.lanes[lane as usize].ready),
        "task {}: a lost lane's share",
        task.spec.id
    );
}
