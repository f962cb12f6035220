//! The consumer group: which process owns which partition, and how this changes.

use std::collections::BTreeMap;

use warptape_engine::{Assigned, Event};

use super::Simulation;

/// A partition's owner according to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    Process(usize),
    /// The process was asked to hand the partition over, and has not done so yet.
    Leaving(usize),
}

/// The owner of each partition.
#[derive(Debug)]
pub(super) struct Group(Vec<Owner>);

impl Group {
    pub(super) fn new(partitions: usize) -> Self {
        Self(vec![Owner::Nobody; partitions])
    }

    /// True if the group accepts a partition's offsets from a process.
    pub(super) fn is_member(&self, process: usize, partition: i32) -> bool {
        let owner = self.0[partition as usize];
        owner == Owner::Process(process) || owner == Owner::Leaving(process)
    }

    /// True if the group lets a process keep a partition.
    pub(super) fn is_kept(&self, process: usize, partition: i32) -> bool {
        self.0[partition as usize] == Owner::Process(process)
    }

    /// Frees the partitions that a process was asked to hand over and has released.
    pub(super) fn release(&mut self, process: usize) {
        self.give_back(Owner::Leaving(process));
    }

    /// Frees all partitions of a process that is gone.
    pub(super) fn leave(&mut self, process: usize) {
        self.give_back(Owner::Leaving(process));
        self.give_back(Owner::Process(process));
    }

    fn give_back(&mut self, from: Owner) {
        for owner in self.0.iter_mut().filter(|owner| **owner == from) {
            *owner = Owner::Nobody;
        }
    }
}

impl Simulation {
    /// Assigns free partitions to processes whose sources poll.
    pub(super) fn assign(&mut self) {
        let Self { world, processes } = self;
        let listens = |index: &usize| {
            processes[*index]
                .as_ref()
                .is_some_and(|process| !process.around.source.stands_still && !process.leaves)
        };
        let members: Vec<usize> = (0..processes.len()).filter(listens).collect();
        if members.is_empty() {
            return;
        }
        let of_nobody = (0..world.group.0.len()).filter(|&index| world.group.0[index] == Owner::Nobody);
        let mut dealt: BTreeMap<usize, Vec<Assigned>> = BTreeMap::new();
        for partition in of_nobody.collect::<Vec<_>>() {
            let member = members[world.random.index(members.len())];
            world.group.0[partition] = Owner::Process(member);
            let assigned = world.hold(partition as i32);
            dealt.entry(member).or_default().push(assigned);
        }
        for (member, assigned) in dealt {
            world.coverage.assigned_together += usize::from(assigned.len() > 1);
            let process = processes[member].as_mut().expect("it is a member");
            process.around.source.tell(Event::Assigned(assigned));
        }
    }

    /// Takes partitions from a process. They are lost without notice if `may_lose` is set, and revoked otherwise.
    pub(super) fn rebalance(&mut self, may_lose: bool) {
        let Self { world, processes } = self;
        let first = world.random.index(world.group.0.len());
        let Owner::Process(index) = world.group.0[first] else { return };
        let process = processes[index].as_mut().expect("owners are there");
        if process.around.source.stands_still {
            return;
        }
        // Takes the drawn partition, and some others of the same process.
        let mut partitions = Vec::new();
        for (partition, owner) in world.group.0.iter_mut().enumerate() {
            let goes = partition == first || world.random.one_in(2);
            if goes && *owner == Owner::Process(index) {
                *owner = if may_lose { Owner::Nobody } else { Owner::Leaving(index) };
                partitions.push(partition as i32);
            }
        }
        if may_lose {
            world.coverage.partitions_lost += partitions.len();
            process.around.source.tell(Event::Lost(partitions));
        } else {
            process.around.source.tell(Event::Revoked(partitions));
        }
        process.around.source.stands_still = true;
    }
}
