//! Tests of the network's public interface: the bits of its choices, its encoding, and errors for other bytes.

use warptape_network::*;

/// Endless numbers from a seed (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, below: u64) -> i64 {
        (self.next() % below) as i64
    }

    fn layer(&mut self, inputs: usize, outputs: usize) -> Layer {
        let row = |_| WeightsRow {
            bias: self.below(1 << 18) as i32 - (1 << 17),
            shift: 6 + self.below(3) as u8,
            weights: (0..inputs).map(|_| self.below(256) as u8 as i8).collect(),
        };
        let rows: Vec<_> = (0..outputs).map(row).collect();
        Layer::new(inputs, &rows).unwrap()
    }

    fn improved(&mut self) -> Network {
        let inputs = LANE_FEATURES + TASK_FEATURES;
        let shapes = [(inputs, 32), (64, 32), (32, 1), (32, 16), (16, 1)];
        let layers = shapes.map(|(inputs, outputs)| self.layer(inputs, outputs));
        Network::new(Architecture::Improved(Improved::new(layers).unwrap())).unwrap()
    }

    fn paper(&mut self, lanes: usize) -> Network {
        let inputs = lanes * 9 + PRIORITIES + KIND_BUCKETS;
        let shapes = [(CONVOLUTION_LANES * WINDOWS, 8), (inputs, 48), (48, lanes)];
        let layers = shapes.map(|(inputs, outputs)| self.layer(inputs, outputs));
        Network::new(Architecture::Paper(Paper::new(layers).unwrap())).unwrap()
    }

    fn task(&mut self) -> TaskState {
        TaskState {
            priority: self.below(3) as usize,
            kind: self.below(8) as usize,
            waiting: self.below(200),
            laxity_ns: (self.below(2) == 1).then(|| self.below(1 << 34)),
        }
    }

    fn lanes(&mut self, number: usize) -> Vec<LaneState> {
        let lane = |_| LaneState {
            tasks: self.below(12),
            backlog_ns: self.below(1 << 32),
            task_ns: self.below(1 << 28),
            weight: 1 + self.below(1_000),
            utilization_ppm: [self.below(1_000_001), self.below(1_000_001)],
            is_excluded: self.below(5) == 0,
        };
        (0..number).map(lane).collect()
    }
}

/// A dense layer in plain 64-bit arithmetic, one sum after the other.
fn slowly(row: &WeightsRow, inputs: &[i64]) -> i64 {
    let pairs = row.weights.iter().zip(inputs);
    i64::from(row.bias) + pairs.map(|(weight, input)| i64::from(*weight) * input).sum::<i64>()
}

fn hidden(layer: &Layer, inputs: &[i64]) -> Vec<i64> {
    let activation = |row: &WeightsRow| {
        let half = if row.shift == 0 { 0 } else { 1 << (row.shift - 1) };
        ((slowly(row, inputs) + half) >> row.shift).clamp(0, 32_767)
    };
    layer.rows().iter().map(activation).collect()
}

fn score(layer: &Layer, output: usize, inputs: &[i64]) -> i64 {
    let row = &layer.rows()[output];
    (slowly(row, inputs) * 256) >> row.shift
}

fn wide(values: &[i16]) -> Vec<i64> {
    values.iter().map(|value| i64::from(*value)).collect()
}

/// Scores computed directly from the diagrams of the two architectures.
fn reference(network: &Network, task: &TaskState, lanes: &[LaneState]) -> Vec<Option<i64>> {
    let layers = network.layers();
    if let Architecture::Paper(_) = network.architecture() {
        let (matrix, beside) = paper_inputs(task, lanes);
        let at = |lane: i64| matrix.get(lane as usize).map_or([0; WINDOWS], |windows| windows.map(i64::from));
        let mut inputs: Vec<i64> = (0..lanes.len() as i64)
            .flat_map(|lane| hidden(layers[0], &[at(lane - 1), at(lane), at(lane + 1)].concat()))
            .collect();
        inputs.extend(wide(&beside));
        let hidden = hidden(layers[1], &inputs);
        let one = |(index, lane): (usize, &LaneState)| {
            (!lane.is_excluded).then(|| score(layers[2], index, &hidden))
        };
        return lanes.iter().enumerate().map(one).collect();
    }
    let features = Features::new(task, lanes);
    let embed = |lane: &[i16; LANE_FEATURES]| hidden(layers[0], &[wide(lane), wide(&features.task)].concat());
    let embedded: Vec<Option<Vec<i64>>> = lanes
        .iter()
        .zip(&features.lanes)
        .map(|(lane, features)| (!lane.is_excluded).then(|| embed(features)))
        .collect();
    let there: Vec<_> = embedded.iter().flatten().collect();
    if there.is_empty() {
        return vec![None; lanes.len()];
    }
    let number = there.len() as i64;
    let mean: Vec<i64> = (0..layers[0].outputs())
        .map(|unit| there.iter().map(|one| one[unit]).sum::<i64>() / number)
        .collect();
    let value = score(layers[4], 0, &hidden(layers[3], &mean));
    let advantage =
        |one: &Vec<i64>| score(layers[2], 0, &hidden(layers[1], &[one.clone(), mean.clone()].concat()));
    let advantages: Vec<Option<i64>> = embedded.iter().map(|one| one.as_ref().map(advantage)).collect();
    let common = value - advantages.iter().flatten().sum::<i64>().div_euclid(number);
    advantages.iter().map(|one| one.map(|advantage| common + advantage)).collect()
}

#[test]
fn scores_are_those_of_slow_sums_and_the_choice_is_the_first_of_the_greatest() {
    let mut numbers = Numbers(1);
    for round in 0..200 {
        let lanes = 1 + numbers.below(24) as usize;
        let (task, states) = (numbers.task(), numbers.lanes(lanes));
        for network in [numbers.improved(), numbers.paper(lanes)] {
            let expected = reference(&network, &task, &states);
            assert_eq!(network.scores(&task, &states), expected, "round {round}");
            let greatest = expected.iter().flatten().max();
            let first = greatest.and_then(|most| expected.iter().position(|score| *score == Some(*most)));
            assert_eq!(network.choose(&task, &states), first, "round {round}");
        }
    }
}

/// Equal lanes have equal scores under the improved network, so that the first lane that is not excluded wins.
#[test]
fn ties_go_to_the_lowest_index_and_nothing_is_chosen_where_nothing_may_be() {
    let mut numbers = Numbers(2);
    let (network, paper, task) = (numbers.improved(), numbers.paper(4), numbers.task());
    let lane = LaneState { task_ns: 5_000, weight: 7, ..LaneState::default() };
    let excluded = LaneState { is_excluded: true, ..lane };
    assert_eq!(network.choose(&task, &[excluded, lane, lane]), Some(1));
    for network in [&network, &paper] {
        assert_eq!(network.choose(&task, &[excluded; 4]), None);
        assert_eq!(network.choose(&task, &[]), None);
    }
    assert_eq!((network.lanes(), paper.lanes()), (None, Some(4)));
    assert_eq!(paper.choose(&task, &[lane; 3]), None, "it is for four lanes");
    assert_eq!(network.choose(&task, &[lane; LANES_MAX + 1]), None);
}

/// The scores of fixed networks. A change of them would change the replay of recorded decisions.
#[test]
fn decisions_of_fixed_networks_are_pinned() {
    let mut numbers = Numbers(3);
    let networks = [numbers.improved(), numbers.paper(16)];
    let mut found = Vec::new();
    for network in &networks {
        let choices: String = (0..32)
            .map(|_| {
                let choice = network.choose(&numbers.task(), &numbers.lanes(16)).unwrap();
                char::from_digit(choice as u32, 16).unwrap()
            })
            .collect();
        found.push(format!("{choices} {}", &network.hash()[..16]));
    }
    assert_eq!(found, PINNED);
}

const PINNED: [&str; 2] = [
    "f8fce3bb346fd55e75178bab1a6f1f02 65825be32e358126",
    "4ff44444f444444c4cfef4444444444f 78914431ab923936",
];

#[test]
fn bytes_give_the_same_network() {
    let mut numbers = Numbers(4);
    for network in [numbers.improved(), numbers.paper(16)] {
        let bytes = network.to_bytes();
        assert!(bytes.len() < BYTES_MAX / 4, "{}", bytes.len());
        let read = Network::from_bytes(&bytes).unwrap();
        assert_eq!((&read, read.to_bytes(), read.hash()), (&network, bytes, network.hash()));
        assert_eq!(network.hash().len(), 64);
    }
}

#[test]
fn damage_is_found_wherever_it_is() {
    let mut numbers = Numbers(5);
    for network in [numbers.improved(), numbers.paper(2)] {
        let bytes = network.to_bytes();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let expected = match at {
                0..4 => NetworkError::NotANetwork,
                4 => NetworkError::Version { version: damaged[4] },
                _ => NetworkError::Damaged,
            };
            assert_eq!(Network::from_bytes(&damaged), Err(expected), "byte {at}");
            let short = Network::from_bytes(&bytes[..at]);
            let expected = if at < 4 { NetworkError::NotANetwork } else { NetworkError::Damaged };
            assert_eq!(short, Err(expected), "{at} bytes");
        }
        assert_eq!(Network::from_bytes(&[bytes.clone(), vec![0]].concat()), Err(NetworkError::Damaged));
        let long = [bytes, vec![0; BYTES_MAX]].concat();
        assert_eq!(Network::from_bytes(&long), Err(NetworkError::TooLarge { bytes: long.len() }));
    }
}

/// Forged bytes with a valid checksum give an error, or a network that answers without a panic.
#[test]
fn forged_bytes_are_an_error_or_a_network() {
    let mut numbers = Numbers(6);
    let (task, lanes) = (numbers.task(), numbers.lanes(2));
    let (mut errors, mut networks) = (0, 0);
    for network in [numbers.improved(), numbers.paper(2)] {
        let bytes = network.to_bytes();
        let body = bytes.len() - 8;
        for round in 0..4_000 {
            let mut forged = bytes[..body].to_vec();
            let at = if round < 64 { 5 + round % 9 } else { 5 + numbers.below(body as u64 - 5) as usize };
            forged[at] = numbers.below(256) as u8;
            forged.extend(&blake3::hash(&forged).as_bytes()[..8]);
            match Network::from_bytes(&forged) {
                Err(_) => errors += 1,
                Ok(network) => {
                    networks += 1;
                    assert_eq!(network.scores(&task, &lanes), reference(&network, &task, &lanes));
                    assert_eq!(network.to_bytes(), forged);
                }
            }
        }
    }
    assert!(errors > 50 && networks > 1_000, "{errors} {networks}");
}

#[test]
fn layers_must_fit_each_other() {
    let mut numbers = Numbers(7);
    let inputs = LANE_FEATURES + TASK_FEATURES;
    let shapes = [(inputs, 8), (17, 4), (4, 1), (8, 4), (4, 1)];
    let layers = shapes.map(|(inputs, outputs)| numbers.layer(inputs, outputs));
    assert_eq!(Improved::new(layers), Err(NetworkError::Shape { layer: 1, inputs: 17, outputs: 4 }));
    let layers = [(6, 8), (50, 4), (4, 300)].map(|(inputs, outputs)| numbers.layer(inputs, outputs));
    assert_eq!(Paper::new(layers), Err(NetworkError::Lanes { lanes: 300 }));
    let shapes = [(inputs, 200), (400, 200), (200, 1), (200, 4), (4, 1)];
    let layers = shapes.map(|(inputs, outputs)| numbers.layer(inputs, outputs));
    let large = Network::new(Architecture::Improved(Improved::new(layers).unwrap()));
    assert!(matches!(large, Err(NetworkError::TooLarge { .. })));
}
