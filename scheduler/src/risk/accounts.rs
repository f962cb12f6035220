//! Weighted fair shares: the service of each tenant so far, class by class.
//!
//! This is start-time fair queueing (Goyal, Vin and Cheng 1996) in integers. A tenant's service is the time that lanes
//! worked for it, divided by its weight, and the tenant with the least goes first. A new or returning tenant begins at
//! the least service of the tenants with tasks, or at its own earlier service if that is more. So no tenant saves up
//! credit, and none loses its service by leaving for a moment. The module owns the sums; it must not know tasks or
//! lanes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use warptape_events::journal::{TaskClass, TenantWeight};
use xxhash_rust::xxh3::xxh3_64;

use super::queue::Turn;
use crate::config::DURATION_NS_MAX;
use crate::name::Name;
use crate::state_hash::{Component, StateHash, hash_component};

/// Most tenants without tasks whose service is remembered, in each class. Those with the least are forgotten first.
const ABSENT_MAX: usize = 1_024;

/// Service of all tenants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Accounts {
    weights: BTreeMap<String, i64>,
    classes: [Class; 3],
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Class {
    known: BTreeMap<Name, Account>,
    /// Tenants with tasks, by service.
    present: BTreeSet<(i64, Name)>,
    /// Tenants without tasks, by service. Their service exceeds the least of the tenants with tasks; others are
    /// forgotten.
    absent: BTreeSet<(i64, Name)>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Account {
    service_ns: i64,
    tasks: i32,
    contribution: u64,
}

impl Account {
    fn hash(&self, class: usize, tenant: &str) -> u64 {
        let fields =
            [class as i64, xxh3_64(tenant.as_bytes()) as i64, self.service_ns, i64::from(self.tasks)];
        hash_component(Component::Account, fields)
    }

    fn refresh(&mut self, class: usize, tenant: &str, hash: &mut StateHash) {
        let now = self.hash(class, tenant);
        hash.replace(&mut self.contribution, now);
    }
}

impl Accounts {
    pub(crate) fn new(weights: &[TenantWeight]) -> Self {
        let weights = weights.iter().map(|weight| (weight.tenant.clone(), i64::from(weight.weight)));
        Self { weights: weights.collect(), classes: Default::default() }
    }

    /// Sets a tenant's weight; earlier charges do not change.
    pub(crate) fn weigh(&mut self, tenant: &str, weight: i32) {
        self.weights.insert(tenant.to_owned(), i64::from(weight));
    }

    /// Counts one more task of a tenant. Returns the shared copy of its name.
    pub(crate) fn join(&mut self, class: TaskClass, tenant: &str, hash: &mut StateHash) -> Name {
        let accounts = &mut self.classes[class as usize];
        let name = match accounts.known.get_key_value(tenant) {
            Some((name, _)) => name.clone(),
            None => tenant.into(),
        };
        let least_ns = accounts.present.first().map_or(0, |(service_ns, _)| *service_ns);
        let account = accounts.known.entry(name.clone()).or_default();
        if account.tasks == 0 {
            accounts.absent.remove(&(account.service_ns, name.clone()));
            account.service_ns = account.service_ns.max(least_ns);
            accounts.present.insert((account.service_ns, name.clone()));
        }
        account.tasks += 1;
        account.refresh(class as usize, &name, hash);
        name
    }

    /// Counts one task less of a tenant.
    pub(crate) fn leave(&mut self, class: TaskClass, tenant: &Name, hash: &mut StateHash) {
        let accounts = &mut self.classes[class as usize];
        let account = accounts.known.get_mut(tenant).expect("a tenant with tasks is known");
        account.tasks -= 1;
        account.refresh(class as usize, tenant, hash);
        if account.tasks == 0 {
            let turn = (account.service_ns, tenant.clone());
            accounts.present.remove(&turn);
            accounts.absent.insert(turn);
            accounts.forget(hash);
        }
    }

    /// Turn of a tenant with tasks.
    pub(crate) fn turn(&self, class: TaskClass, tenant: &Name) -> Turn {
        let service_ns = self.classes[class as usize].known[tenant].service_ns;
        Turn { class, service_ns, tenant: tenant.clone() }
    }

    /// Lane time divided by the tenant's weight; at least 1.
    pub(crate) fn weighted_ns(&self, tenant: &str, lane_ns: i64) -> i64 {
        let weight = self.weights.get(tenant).copied().unwrap_or(1);
        (lane_ns.min(DURATION_NS_MAX) / weight).max(1)
    }

    /// Adds to the service of a tenant with tasks. Returns its new turn.
    pub(crate) fn charge(&mut self, turn: &Turn, weighted_ns: i64, hash: &mut StateHash) -> Turn {
        let accounts = &mut self.classes[turn.class as usize];
        let account = accounts.known.get_mut(&turn.tenant).expect("a tenant with tasks is known");
        accounts.present.remove(&(account.service_ns, turn.tenant.clone()));
        account.service_ns = account.service_ns.saturating_add(weighted_ns);
        accounts.present.insert((account.service_ns, turn.tenant.clone()));
        account.refresh(turn.class as usize, &turn.tenant, hash);
        let charged = Turn { service_ns: account.service_ns, ..turn.clone() };
        accounts.forget(hash);
        charged
    }

    /// Hash of all accounts, computed by walking over them.
    pub(crate) fn walked_hash(&self) -> u64 {
        let classes = self.classes.iter().enumerate();
        let hashes = classes.flat_map(|(class, accounts)| {
            accounts.known.iter().map(move |(tenant, account)| account.hash(class, tenant))
        });
        hashes.fold(0, u64::wrapping_add)
    }

    /// Checks the orders against the accounts, given the number of tasks of each tenant.
    pub(crate) fn audit(&self, tasks: &BTreeMap<(TaskClass, Name), i32>) {
        let mut found = BTreeMap::new();
        for (class, accounts) in
            [TaskClass::Critical, TaskClass::Interactive, TaskClass::Batch].into_iter().zip(&self.classes)
        {
            let (mut present, mut absent) = (BTreeSet::new(), BTreeSet::new());
            for (tenant, account) in &accounts.known {
                let order = if account.tasks > 0 { &mut present } else { &mut absent };
                order.insert((account.service_ns, tenant.clone()));
                if account.tasks > 0 {
                    found.insert((class, tenant.clone()), account.tasks);
                }
            }
            assert_eq!((&accounts.present, &accounts.absent), (&present, &absent), "{class:?}: tenants");
            let least = present.first().map(|(service_ns, _)| *service_ns);
            let remembered = |turn: &(i64, Name)| least.is_some_and(|least_ns| turn.0 > least_ns);
            assert!(absent.iter().all(remembered), "{class:?}: a tenant is remembered for nothing");
            assert!(absent.len() <= ABSENT_MAX, "{class:?}: too many tenants are remembered");
        }
        assert_eq!(&found, tasks, "tasks by tenant");
    }
}

impl Class {
    /// Forgets tenants without tasks whose service does not exceed the least of the tenants with tasks, and those
    /// beyond [`ABSENT_MAX`].
    fn forget(&mut self, hash: &mut StateHash) {
        let least_ns = self.present.first().map_or(i64::MAX, |(service_ns, _)| *service_ns);
        while let Some((service_ns, _)) = self.absent.first()
            && (*service_ns <= least_ns || self.absent.len() > ABSENT_MAX)
        {
            let (_, tenant) = self.absent.pop_first().expect("just seen");
            let forgotten = self.known.remove(&tenant).expect("who is in the order is known");
            hash.remove(forgotten.contribution);
        }
    }
}
