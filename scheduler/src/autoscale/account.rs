//! The account of a number of wanted lanes, for explanations.

use warptape_events::journal::{AutoscalePolicy, ScaleReason};

use super::forecast::Seen;
use super::{Autoscaler, Figures, LANES_E6_MAX, horizon, load_e6, load_that_counts};
use crate::account::{Account, Comparison, Instead};

impl Autoscaler {
    /// Explains the wanted number of lanes after a window that is not judged yet.
    pub(super) fn account(&self, figures: &Figures) -> Account {
        let mut account = Account::default();
        let config = &self.config;
        let wish = self.clone().window(figures);
        let arrived_e6 = load_e6(figures.arrived_ns, config.window_ns);
        let seen = self.forecast.clone().observe(config, horizon(config), figures.number, arrived_e6);
        let busy_e6 = load_e6(figures.busy_ns, config.window_ns);
        let waiting_e6 = load_e6(figures.waiting_ns, config.clear_ns);
        account.held("utilization_percent", wish.utilization_percent, config.utilization_percent.into());
        account.figure("busy_e6", busy_e6);
        account.figure("arrived_e6", arrived_e6);
        account.figure("load_e6", wish.load_e6);
        account.figure("waiting_ns", figures.waiting_ns);
        account.figure("lanes_for_waiting_e6", waiting_e6);
        let error_ppm_max = i64::from(config.error_percent_max) * 10_000;
        if let Some(forecast_e6) = seen.forecast_e6 {
            account.figure("forecast_e6", forecast_e6);
        }
        account.held("error_ppm", seen.error_ppm, error_ppm_max);
        account.held("deviations_e3", seen.deviations_e3, i64::from(config.anomaly_deviations) * 1_000);
        let (least, held) = self.stabilizer.lanes_for(config, wish.load_e6, waiting_e6);
        account.figure("lanes_that_would_do", least.into());
        account.figure("lanes_that_would_do_with_hysteresis_in_hold", held.into());
        account.held("lanes_wanted", i64::from(wish.lanes), config.lanes_max.into());
        account.figure("lanes_min", config.lanes_min.into());

        let lanes_with = |load_e6: i64, waiting_e6: i64| {
            let mut stabilizer = self.stabilizer.clone();
            stabilizer.settle(config, load_e6, waiting_e6, ScaleReason::Utilization).0
        };
        let lanes_at = |load_e6: i64| lanes_with(load_e6, waiting_e6);
        let instead = |lanes: i32| match lanes == self.lanes() {
            true => Instead::Nothing,
            false => Instead::Lanes(lanes),
        };
        let least_e6 = first_of(&|load_e6| lanes_at(load_e6) >= wish.lanes);
        if least_e6 > 0 {
            account.with("load_e6", Comparison::Below, least_e6, instead(lanes_at(least_e6 - 1)));
        }
        let more_e6 = first_of(&|load_e6| lanes_at(load_e6) > wish.lanes);
        if lanes_at(more_e6) > wish.lanes {
            account.with("load_e6", Comparison::AtLeast, more_e6, instead(lanes_at(more_e6)));
        }
        let least_e6 = first_of(&|waiting_e6| lanes_with(wish.load_e6, waiting_e6) >= wish.lanes);
        if least_e6 > 0 {
            let lanes = lanes_with(wish.load_e6, least_e6 - 1);
            account.with("lanes_for_waiting_e6", Comparison::Below, least_e6, instead(lanes));
        }
        if config.policy == AutoscalePolicy::Predictive
            && let Some(error_ppm) = seen.error_ppm
        {
            // The number of lanes if forecasts were trusted, or were not.
            let is_trusted = error_ppm <= error_ppm_max;
            let (is, other_ppm) = match is_trusted {
                true => (Comparison::Above, error_ppm_max + 1),
                false => (Comparison::AtMost, error_ppm_max),
            };
            let (other_e6, _) =
                load_that_counts(config, &Seen { error_ppm: Some(other_ppm), ..seen }, busy_e6);
            let lanes = lanes_at(other_e6);
            if lanes != wish.lanes {
                account.with("error_ppm", is, error_ppm_max, instead(lanes));
            }
        }
        account
    }
}

/// The least load from which on a predicate holds, for predicates that hold for all greater loads too: more load never
/// leads to fewer lanes. Returns the greatest load if it holds for none.
fn first_of(is_enough: &dyn Fn(i64) -> bool) -> i64 {
    let (mut low, mut high) = (0, LANES_E6_MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        (low, high) = if is_enough(middle) { (low, middle) } else { (middle + 1, high) };
    }
    low
}
