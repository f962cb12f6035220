//! Comparison of a learned policy with rules, on scenes that its training did not use.

use warptape_network::Network;
use warptape_simulator::{Interval, Options, interval};

use crate::episode::{Greedy, options, run};
use crate::scenes::{LOAD, Scene};

/// Rules with which learned policies are compared. `fair` is the dynamic split: a free lane takes a slice of the first
/// task.
pub const RULES: [&str; 3] = ["fair", "lp-price", "earliest-completion"];
/// First seed of comparisons. No other run uses these seeds.
const SEED: u64 = 1 << 40;

/// The comparison of a learned policy with a rule on one scene.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The scene's name.
    pub scene: String,
    /// The rule.
    pub rule: &'static str,
    /// Mean completion time of the learned policy, in seconds.
    pub learned_s: Interval,
    /// Mean completion time of the rule, in seconds.
    pub rule_s: Interval,
    /// Ratio of the learned policy's time to the rule's time, paired by seed.
    pub ratio: Interval,
}

/// Runs a function for several seeds, in any order, and returns the results in the order of the seeds. The first
/// argument names the work.
pub type OverSeeds<'a> = &'a mut dyn FnMut(&str, &(dyn Fn(u64) -> f64 + Sync)) -> Vec<f64>;

/// Compares a network with each rule on each scene. All of them get the same arrivals.
pub fn compare(network: &Network, scenes: &[Scene], over_seeds: OverSeeds<'_>) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for scene in scenes {
        let learned = |seed| run(scene, SEED + seed, &mut Greedy { network }).mean_s();
        let learned = over_seeds(&format!("the network, {}", scene.name), &learned);
        for rule in RULES {
            let options = Options { policy: rule.to_owned(), ..options() };
            let mean_s =
                |seed| warptape_simulator::run(&scene.fleet, &scene.workload, &options, SEED + seed).mean_s();
            let found = over_seeds(&format!("{rule}, {}", scene.name), &mean_s);
            let ratios: Vec<f64> = learned.iter().zip(&found).map(|(one, other)| one / other).collect();
            comparisons.push(Comparison {
                scene: scene.name.clone(),
                rule,
                learned_s: interval(&learned),
                rule_s: interval(&found),
                ratio: interval(&ratios),
            });
        }
    }
    comparisons
}

/// Returns the comparisons as a table.
pub fn table(comparisons: &[Comparison]) -> String {
    let mut text = format!(
        "| held-out arrivals, load {LOAD} | learned | rule | its mean | learned by rule | |\n|---|---|---|---|---|---|\n"
    );
    let ms = |values: Interval| format!("{:.0} ± {:.0} ms", values.mean * 1e3, values.half * 1e3);
    for one in comparisons {
        let Interval { mean, half } = one.ratio;
        text += &format!(
            "| {} | {} | `{}` | {} | {mean:.3} ± {half:.3} | {} |\n",
            one.scene,
            ms(one.learned_s),
            one.rule,
            ms(one.rule_s),
            one.ratio.verdict()
        );
    }
    text
}
