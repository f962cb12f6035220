//! Trains a network and writes it, with its learning curve.
//!
//! ```text
//! cargo run --release -p warptape-train --example train improved|paper FILE [EPISODES [SECONDS [SEED]]]
//! ```
//!
//! `FILE.checkpoint` is what training goes on from when it is called again, `FILE.svg` the learning curve. After so many seconds it ends.

use std::path::PathBuf;
use std::time::Instant;

use warptape_train::{Kind, TrainOptions, learning_curve, train};

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let (kind, file) = match given.as_slice() {
        [kind, file, ..] if kind == "improved" => (Kind::Improved, file),
        [kind, file, ..] if kind == "paper" => (Kind::Paper, file),
        _ => panic!("give improved or paper, and the file to write"),
    };
    let number = |index: usize, default: u64| {
        given.get(index).map_or(default, |text| text.parse().expect("EPISODES, SECONDS and SEED are numbers"))
    };
    let mut options = TrainOptions::new(kind);
    options.episodes = number(2, options.episodes);
    options.seed = number(4, options.seed);
    options.checkpoint = Some(PathBuf::from(format!("{file}.checkpoint")));
    let (begin, seconds) = (Instant::now(), number(3, u64::MAX));
    let trained = train(&options, &mut |progress| {
        let passed = begin.elapsed().as_secs();
        if let Some(validation) = progress.validation {
            println!(
                "episode {} of {}, {} updates, {passed} s: loss {:.4}, epsilon {:.2}, {:.4} of earliest-completion",
                progress.episode,
                progress.episodes,
                progress.updates,
                progress.loss,
                progress.epsilon,
                validation.ratio
            );
        }
        passed < seconds
    });
    let trained = match trained {
        Ok(trained) => trained,
        Err(error) => panic!("{error}"),
    };
    let bytes = trained.network.to_bytes();
    println!(
        "{} bytes, {}; the integer network chooses otherwise in {:.2} % of states, which costs {:.4} % of the spread of values",
        bytes.len(),
        trained.network.hash(),
        trained.disagreement * 100.0,
        trained.regret * 100.0
    );
    std::fs::write(file, bytes).expect("the network is written");
    std::fs::write(format!("{file}.svg"), learning_curve(&given[0], &trained.validations))
        .expect("the curve is written");
}
