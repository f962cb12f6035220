//! A network against rules on arrivals that were held out: the table of docs/scheduling.md.
//!
//! ```text
//! cargo run --release -p warptape-train --example compare FILE [SEEDS [TASKS]]
//! ```

use warptape_network::Network;
use warptape_train::{compare, held_out, table};

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| {
        given.get(index).map_or(default, |text| text.parse().expect("SEEDS and TASKS are numbers"))
    };
    let file = given.first().expect("give the network's file");
    let network = std::fs::read(file).map_err(|error| error.to_string());
    let network = network.and_then(|bytes| Network::from_bytes(&bytes).map_err(|error| error.to_string()));
    let network = network.unwrap_or_else(|error| panic!("{file}: {error}"));
    let (seeds, tasks) = (number(1, 20), number(2, 1_000) as usize);
    let found = compare(&network, &held_out(tasks), seeds, &mut |scene| eprintln!("{}", scene.name));
    println!("{seeds} seeds of {tasks} tasks, network {}\n\n{}", network.hash(), table(&found));
}
