//! A breaker's account for explanations: the figures of the step, compared with the limits.

use warptape_events::journal::{Breaker, BreakerReason, BreakerState, Headroom};

use super::{COOL_SAMPLES, LaneBreaker, SLOW_BATCHES, SLOW_PROBES, withheld_percent};
use crate::account::{Account, Comparison, Instead};
use crate::lanes::Lane;
use crate::life::Life;
use crate::service::weight_of;

/// Explains why a breaker changed its state, given the states before and after the step.
pub(crate) fn account(before: &Life, after: &Life, at_ns: i64, turned: &Breaker) -> Account {
    let mut account = Account::default();
    let Some(config) = before.config.breakers else { return account };
    let Breaker { lane, reason, measured, limit, state } = *turned;
    let known = &before.breakers.lanes[lane as usize];
    let LaneBreaker { since_ns, passed, failed, .. } = *known;
    match reason {
        BreakerReason::Losses => {
            account.at_least("losses_in_window", measured, limit);
            // The oldest of these losses would have left the window first.
            let counted = known.losses.iter().filter(|lost_ns| at_ns - *lost_ns < config.window_ns);
            let others = usize::try_from(limit - 1).unwrap_or(0);
            if let Some(first_ns) = counted.rev().take(others).last() {
                account.below("first_of_these_losses_ago_ns", at_ns - first_ns, config.window_ns);
            }
        }
        BreakerReason::Slow => {
            let (slow_since_ns, batches) = known.slow.unwrap_or((at_ns, 0));
            account.at_least("slowness_beside_others_percent", measured, limit);
            account.at_least("slow_for_ns", at_ns - slow_since_ns, config.slow_ns);
            account.at_least("slow_batches", (batches + 1).min(SLOW_BATCHES).into(), SLOW_BATCHES.into());
            if let Some(others) = before.breakers.others_percent(before, at_ns, lane) {
                account.figure("median_slowness_of_others_percent", others);
            }
        }
        BreakerReason::Memory => account.at_least("further_memory_errors", measured, 1),
        BreakerReason::Probe => account.at_least("out_of_service_ns", measured, limit),
        // A lane that is lost during probing has no number of losses to reach.
        BreakerReason::ProbeFailed if limit == 0 => account.at_least("losses_while_tried", 1, 1),
        BreakerReason::ProbeFailed => {
            account.at_least("slowness_of_probe_percent", measured, limit);
            account.at_least("slow_probes", (failed + 1).into(), SLOW_PROBES.into());
            account.figure("good_probes", passed.into());
        }
        BreakerReason::Recovered => {
            account.at_least("good_probes", measured, limit);
            account.below("slow_probes", failed.into(), SLOW_PROBES.into());
        }
    }
    if since_ns > 0 {
        account.figure("state_before_lasted_ns", at_ns - since_ns);
    }
    if state == BreakerState::Open {
        let serves = |other: &&Lane| other.id != lane && other.ready && other.service.is_full();
        let others = before.lanes.iter().filter(serves).count();
        account.at_least("other_lanes_in_full_service", others as i64, 1);
        account.figure("time_to_probe_ns", after.breakers.lanes[lane as usize].wait_ns);
        if before.clock.draining {
            // The process is ending: groups stay with their lanes, and so do the rows that wait for them.
            account.figure("process_is_to_end", 1);
        }
    }
    account
}

/// Explains a `Headroom` decision: a changed percentage of a lane's weight.
pub(crate) fn headroom_account(before: &Life, decided: &Headroom) -> Account {
    let mut account = Account::default();
    let Some(config) = before.config.breakers else { return account };
    let Headroom { lane, weight_percent, temperature_c, limit_c } = *decided;
    let headroom_c = i64::from(config.headroom_c);
    let heat = &before.breakers.lanes[lane as usize].heat;
    let weight_before = 100 - heat.withheld_percent;
    account.held("degrees_to_throttling_c", limit_c.saturating_sub(temperature_c), headroom_c);
    account.figure("temperature_c", temperature_c);
    account.figure("throttles_at_c", limit_c);
    account.figure("weight_before_percent", weight_before.into());
    // No weight falls below 1, so a lower percentage may result in the same weight.
    let weight = before.lanes[lane as usize].weight;
    account.figure("weight_before", weight.current.into());
    account.figure("weight", weight_of(weight.full, 100 - weight_percent).into());
    if weight_percent > weight_before {
        account.at_least("cool_samples", (heat.cool_samples + 1).into(), COOL_SAMPLES.into());
    }
    let weight_at = |temperature_c: i64| {
        let mut heat = heat.clone();
        heat.feel(withheld_percent(limit_c.saturating_sub(temperature_c), headroom_c));
        100 - heat.withheld_percent
    };
    // The greatest temperatures with full weight and with half of it; the one nearer to the present temperature first.
    let highest_c = [limit_c.saturating_sub(headroom_c), limit_c.saturating_sub((headroom_c + 1) / 2)];
    let cooler = highest_c.into_iter().rev().filter(|highest_c| temperature_c > *highest_c);
    let warmer = highest_c.into_iter().filter(|highest_c| temperature_c <= *highest_c);
    let cooler = cooler.map(|highest_c| (Comparison::AtMost, highest_c));
    let warmer = warmer.map(|highest_c| (Comparison::AtLeast, highest_c.saturating_add(1)));
    let mut said = vec![weight_percent];
    for (is, value) in cooler.chain(warmer) {
        let weight = weight_at(value);
        if said.contains(&weight) {
            continue;
        }
        said.push(weight);
        let instead = if weight == weight_before { Instead::Nothing } else { Instead::WeightPercent(weight) };
        account.with("temperature_c", is, value, instead);
    }
    account
}
