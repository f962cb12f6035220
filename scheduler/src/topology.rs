//! Topology: how close lanes are to each other, as the process reported at its start.
//!
//! The module must not know which decisions use it.

use serde::{Deserialize, Serialize};
use warptape_events::journal::{LaneId, LaneSpec, Link, Peer};

/// Closeness of two lanes, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Closeness {
    /// State moves through the host's memory, between different or unknown NUMA nodes.
    Far = 0,
    /// State moves through the memory of one NUMA node.
    SameNode = 1,
    /// One device copies to the other over PCI Express.
    Pcie = 2,
    /// One device copies to the other over NVLink.
    Nvlink = 3,
    /// Both lanes are on one device.
    SameDevice = 4,
    /// Both are the same lane.
    Same = 5,
}

impl Closeness {
    /// Number of variants.
    pub(crate) const COUNT: usize = 6;
}

/// The reported topology of all lanes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Topology {
    lanes: Vec<Reported>,
}

/// A lane as reported. Checkpoints contain exactly these fields, so later fields of [`LaneSpec`] are left out.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Reported {
    lane: LaneId,
    device: String,
    weight: i32,
    class: String,
    memory_bytes: i64,
    numa_node: Option<i32>,
    peers: Vec<Peer>,
}

impl Topology {
    pub(crate) fn new(lanes: &[LaneSpec]) -> Self {
        let reported = |spec: &LaneSpec| {
            let LaneSpec { lane, device, weight, class, memory_bytes, numa_node, peers, width: _ } =
                spec.clone();
            Reported { lane, device, weight, class, memory_bytes, numa_node, peers }
        };
        Self { lanes: lanes.iter().map(reported).collect() }
    }

    /// Closeness of `to` to `from`.
    pub(crate) fn between(&self, from: LaneId, to: LaneId) -> Closeness {
        if from == to {
            return Closeness::Same;
        }
        let [from, other] = [from, to].map(|lane| &self.lanes[lane as usize]);
        match from.peers.iter().find(|peer| peer.lane == to).map(|peer| peer.link) {
            Some(Link::SameDevice) => Closeness::SameDevice,
            Some(Link::Nvlink) => Closeness::Nvlink,
            Some(Link::Pcie) => Closeness::Pcie,
            None if from.numa_node.is_some() && from.numa_node == other.numa_node => Closeness::SameNode,
            None => Closeness::Far,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_closer_than_a_node_and_a_node_than_nothing() {
        let mut lanes: Vec<_> = (0..4).map(|lane| LaneSpec::new(lane, "cuda:0", 1)).collect();
        lanes[0].peers = vec![Peer { lane: 1, link: Link::SameDevice }, Peer { lane: 2, link: Link::Nvlink }];
        for lane in [0, 1, 3] {
            lanes[lane].numa_node = Some(1);
        }
        let topology = Topology::new(&lanes);
        let found = [0, 1, 2, 3].map(|to| topology.between(0, to));
        use Closeness::{Far, Nvlink, Same, SameDevice, SameNode};
        assert_eq!(found, [Same, SameDevice, Nvlink, SameNode]);
        assert_eq!(topology.between(3, 2), Far, "nothing is known of the node of lane 2");
    }
}
