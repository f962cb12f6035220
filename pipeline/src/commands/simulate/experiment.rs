//! Repeats a published experiment and prints its page.

use std::io::Write;

use warptape_simulator::experiment::{Found, JOBS, METHODS, ideal, options, page, scenes};
use warptape_simulator::{Fleet, run as simulate};

use super::policies::production;
use super::seeds::SeedsProgress;

/// Runs all methods in all loops.
pub fn run(seeds: u64, out: &mut impl Write) -> anyhow::Result<()> {
    run_jobs(seeds, JOBS, out)
}

/// Runs all methods in all loops, with `jobs` jobs in each run.
pub fn run_jobs(seeds: u64, jobs: usize, out: &mut impl Write) -> anyhow::Result<()> {
    let (fleet, scenes) = (Fleet::volta_turing_radeon(), scenes(jobs));
    // Clairvoyant schedules count as another method.
    let mut progress = SeedsProgress::new((scenes.len() * (METHODS.len() + 1)) as u64 * seeds);
    let production = production();
    let (mut found, mut ideals) = (Vec::new(), Vec::new());
    for (scene, at) in scenes.iter().enumerate() {
        let name = at.load.map_or("closed loop".to_owned(), |load| format!("open loop, load {load}"));
        for (method, one) in METHODS.iter().enumerate() {
            progress.say(format!("{}, {name}", one.name));
            let options = options(one, &production);
            let of = |seed| simulate(&fleet, &at.workload, &options, seed);
            found.push(Found { scene, method, outcomes: progress.over_seeds(seeds, jobs, of) });
        }
        progress.say(format!("schedules with all sizes known, {name}"));
        let of_scene = progress.over_seeds(seeds, 0, |seed| ideal(&fleet, at, seed));
        ideals.push(of_scene.into_iter().flatten().collect());
    }
    write!(out, "{}", page(&fleet, &scenes, &found, &ideals, seeds))?;
    progress.finish();
    Ok(())
}
