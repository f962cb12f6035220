//! The consumer group: which process owns a partition, and how that changes.

use warptape_engine::Assigned;

use super::Simulation;
use super::process::SourceEvent;

/// Whose a partition is to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    Process(usize),
    /// This process was asked to hand it over and has not done so yet.
    Leaving(usize),
}

/// By partition, its owner.
#[derive(Debug)]
pub(super) struct Group(Vec<Owner>);

impl Group {
    pub(super) fn new(partitions: usize) -> Self {
        Self(vec![Owner::Nobody; partitions])
    }

    /// Whether the group takes offsets of a partition from a process.
    pub(super) fn is_member(&self, process: usize, partition: i32) -> bool {
        let owner = self.0[partition as usize];
        owner == Owner::Process(process) || owner == Owner::Leaving(process)
    }

    /// A process has let go of what it was asked for.
    pub(super) fn release(&mut self, process: usize) {
        self.give_back(Owner::Leaving(process));
    }

    /// A process is gone.
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
    /// Deals out the partitions that nobody has, to processes whose sources listen.
    pub(super) fn assign(&mut self) {
        let Self { world, processes } = self;
        let listens = |index: &usize| {
            processes[*index].as_ref().is_some_and(|process| !process.stands_still && !process.leaves)
        };
        let members: Vec<usize> = (0..processes.len()).filter(listens).collect();
        if members.is_empty() {
            return;
        }
        let of_nobody = (0..world.group.0.len()).filter(|&index| world.group.0[index] == Owner::Nobody);
        for partition in of_nobody.collect::<Vec<_>>() {
            let member = members[world.random.index(members.len())];
            world.group.0[partition] = Owner::Process(member);
            let committed = world.committed_offset(partition as i32);
            let end = world.published(world.source[partition].len()) as i64;
            let assigned = Assigned { partition: partition as i32, committed, end };
            let process = processes[member].as_mut().expect("it is a member");
            process.hear(SourceEvent::Assigned(vec![assigned]));
        }
    }

    /// Takes a partition from its owner: asked for, or lost without a word.
    pub(super) fn rebalance(&mut self, may_lose: bool) {
        let Self { world, processes } = self;
        let partition = world.random.index(world.group.0.len());
        let Owner::Process(index) = world.group.0[partition] else { return };
        let process = processes[index].as_mut().expect("owners are there");
        if process.stands_still {
            return;
        }
        if may_lose {
            world.coverage.partitions_lost += 1;
            world.group.0[partition] = Owner::Nobody;
            process.hear(SourceEvent::Lost(vec![partition as i32]));
        } else {
            world.group.0[partition] = Owner::Leaving(index);
            process.hear(SourceEvent::Revoked(vec![partition as i32]));
        }
        process.stands_still = true;
    }
}
